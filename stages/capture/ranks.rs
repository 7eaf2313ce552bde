//! The stage `capture:n` by all ranks: each captures for some rows of every slab, and reads little more than what these rows
//! lead to in the smaller databases. It writes the captures of a range of positions, which all ranks send it.

use super::{KIND, SmallerFiles};
use crate::build_context::BuildContext;
use crate::distributed::{JobLeader, RankResult, ReadTask, TeamFile, agree};
use crate::files;
use crate::team::{self, TeamMember};
use game::{Index, Score, Slab};
use messaging::Communicator;
use pipeline::{StageContext, StageError, StageReport, StageResult as Result};
use solvers::Tables;
use solvers::capture::{CapturePartition, SmallerRows, capture_rows};
use solvers::ranks::{RowBand, ScoreShare, collect, fits};
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use store::BlockCache;

/// Runs the stage, on rank 0.
pub(super) fn run(build: &BuildContext, job: &JobLeader, stones: u32, context: &StageContext) -> Result<StageReport> {
    let settings = build.settings();
    let smaller = settings.smaller(stones).map(|stones| context.input(&files::database(stones)));
    let files = smaller.chain([context.output(&files::capture(stones))]).collect();
    let task = ReadTask { stones, threads: context.threads(), files };
    let (done, loads) = team::lead(KIND, build, Some(job), &task, context, capture_part)?;
    let report = StageReport::new(Index::new(stones, settings.set).slab_positions());
    Ok(team::report(report.with("blocks", done.blocks).with("decoded", done.decoded), loads))
}

/// Figures of the stage.
pub(super) struct CaptureOutcome {
    /// Blocks of smaller databases.
    blocks: u64,
    /// Blocks decoded by all ranks.
    decoded: u64,
}

/// Computes and exchanges captures, and writes those of this rank. The files of the task are the smaller databases, then the
/// captures.
pub(super) fn capture_part(
    member: &TeamMember<ReadTask>,
    communicator: &mut dyn Communicator,
) -> RankResult<CaptureOutcome> {
    let TeamMember { build, disk, ref index, task, .. } = *member;
    let (settings, cache) = (member.settings(), BlockCache::new(member.plan().memory().cache_bytes));
    let opened = split(&task.files).and_then(|(path, smaller)| {
        Ok((path, SmallerFiles::open(settings, disk, smaller.iter().cloned(), &cache, |_, _| None, 0)?))
    });
    let (path, smaller) = agree(communicator, opened)?;
    let (kind, ranks) = (files::capture_kind(&settings.rules), communicator.size());
    let format = (kind, settings.intermediates.captures_codec());
    let mut writer = TeamFile::of_values((disk, path), settings, index, format, ranks).begin(communicator)?;
    let ranges = writer.positions_of_all().to_vec();
    let partition = CapturePartition::new(index.slabs(), ranks);
    let (rank, tables) = (communicator.rank(), build.tables());
    let stop = || member.stop();
    let error = Mutex::new(None);
    let share = CaptureShare { partition, rank, tables: &tables, index, smaller: &smaller, stop: &stop, error };
    member.begin_progress(ranges[rank].end - ranges[rank].start);
    let appended = exchange(&share, &ranges, communicator, &mut |best| {
        member.advance(best.len() as u64);
        writer.append(best)
    })?;
    writer.finish(appended, communicator)?;
    let decoded = communicator.sum(&[cache.decoded()])?[0];
    Ok(CaptureOutcome { blocks: smaller.blocks(), decoded })
}

/// Passes the captures of the range of this rank, from all ranks, to `append` in order.
fn exchange<S: SmallerRows<Error = StageError> + Sync>(
    share: &CaptureShare<S>,
    ranges: &[Range<u64>],
    communicator: &mut dyn Communicator,
    append: &mut dyn FnMut(&[Score]) -> Result<()>,
) -> messaging::Result<Result<()>> {
    let mut appended = Ok(());
    let collected = collect(share, ranges, communicator, &mut |best| {
        appended = share.check().and_then(|()| append(best));
        if appended.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    appended = appended.and_then(|()| share.check());
    // The rank that ended the collection reports why.
    Ok(appended.and(if collected { Ok(()) } else { Err(StageError::Stopped) }))
}

/// Splits the files of the task into the captures and the smaller databases.
fn split(files: &[PathBuf]) -> Result<(&PathBuf, &[PathBuf])> {
    files.split_last().ok_or_else(|| StageError::failed("the order names no file"))
}

/// The captures that a rank computes, band by band, as they are collected.
struct CaptureShare<'a, S> {
    partition: CapturePartition,
    rank: usize,
    tables: &'a Tables,
    index: &'a Index,
    smaller: &'a S,
    /// Returns an error if the stage was asked to stop.
    stop: &'a (dyn Fn() -> Result<()> + Sync),
    /// What ended the computation. The captures after it are zeros, and the file is not published.
    error: Mutex<Option<StageError>>,
}

impl<S> CaptureShare<'_, S> {
    /// Returns what ended the computation, once.
    fn check(&self) -> Result<()> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    /// The runs of rows of a band, with the rank that computes each and the number of its positions.
    fn runs(&self, band: &RowBand) -> impl Iterator<Item = (usize, Range<u32>, usize)> {
        let columns = self.index.slabs()[band.slab].opponent_halves as usize;
        let runs = self.partition.runs(band.slab, band.rows.start as u32..band.rows.end as u32);
        runs.map(move |(rank, rows)| (rank, rows.clone(), rows.len() * columns))
    }
}

impl<S: SmallerRows<Error = StageError> + Sync> ScoreShare for CaptureShare<'_, S> {
    fn slabs(&self) -> &[Slab] {
        self.index.slabs()
    }

    fn columns(&self, slab: &Slab) -> usize {
        slab.opponent_halves as usize
    }

    fn give(&self, band: &RowBand, piece: &mut Vec<u8>) {
        let mut best: Vec<Score> = Vec::new();
        for (_, rows, positions) in self.runs(band).filter(|(rank, ..)| *rank == self.rank) {
            best.clear();
            best.resize(positions, 0);
            let captured = (self.stop)()
                .and_then(|()| capture_rows(self.tables, self.index, band.slab, &rows, self.smaller, &mut best));
            if let Err(error) = captured {
                self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
            piece.extend(best.iter().map(|&score| score as u8));
        }
    }

    fn join(&self, band: &RowBand, pieces: &[&[u8]], mut rows: &mut [Score]) -> messaging::Result<()> {
        for (rank, piece) in pieces.iter().enumerate() {
            let expected = self.runs(band).filter(|(of, ..)| *of == rank).map(|(_, _, positions)| positions).sum();
            fits(rank, expected, piece)?;
        }
        let mut pieces = pieces.to_vec();
        for (rank, _, positions) in self.runs(band) {
            let (best, rest) = pieces[rank].split_at(positions);
            pieces[rank] = rest;
            let to = rows.split_off_mut(..positions).expect("runs are all rows of the band");
            to.iter_mut().zip(best).for_each(|(to, &best)| *to = best as Score);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::{PositionSet, Rules};
    use messaging::{NetworkFaults, ThreadCommunicator};
    use solvers::capture::ChildRow;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    const STONES: u32 = 9;

    /// Smaller databases of zeros, of which a row cannot be read.
    struct Zeros {
        rows_before_failure: AtomicUsize,
    }

    impl SmallerRows for Zeros {
        type Window = Vec<Score>;
        type Error = StageError;

        fn window(&self) -> Vec<Score> {
            Vec::new()
        }

        fn row<'w>(&'w self, window: &'w mut Vec<Score>, row: ChildRow) -> Result<&'w [Score]> {
            if self.rows_before_failure.fetch_sub(1, Relaxed) == 0 {
                return Err(StageError::failed("no disk"));
            }
            window.resize(row.columns as usize, 0);
            Ok(window)
        }
    }

    /// Returns by rank what ended the exchange, and the captures of all, if a rank cannot read a row or append a portion.
    fn exchanged(
        ranks: usize,
        failing_row: (usize, usize),
        failing_append: (usize, usize),
    ) -> (Vec<Result<()>>, Vec<Score>) {
        let index = &Index::new(STONES, PositionSet::All);
        let tables = &Tables::new(Rules::AWARI, PositionSet::All, STONES);
        let part = |rank: usize| index.positions() * rank as u64 / ranks as u64;
        let ranges: &Vec<_> = &(0..ranks).map(|rank| part(rank)..part(rank + 1)).collect();
        let of_rank = |(failing, at): (usize, usize), rank| if failing == rank { at } else { usize::MAX };
        let run = |mut end: ThreadCommunicator| {
            let rank = end.rank();
            let smaller = Zeros { rows_before_failure: AtomicUsize::new(of_rank(failing_row, rank)) };
            let share = CaptureShare {
                partition: CapturePartition::new(index.slabs(), ranks),
                rank,
                tables,
                index,
                smaller: &smaller,
                stop: &|| Ok(()),
                error: Mutex::new(None),
            };
            let (mut best, mut appends_before_failure) = (Vec::new(), of_rank(failing_append, rank));
            let ended = exchange(&share, ranges, &mut end, &mut |more| {
                best.extend_from_slice(more);
                appends_before_failure -= 1;
                if appends_before_failure == 0 { Err(StageError::failed("the disk is full")) } else { Ok(()) }
            });
            // A message left over would be mistaken for a part of this.
            end.barrier().unwrap();
            (ended.unwrap(), best)
        };
        let ends = ThreadCommunicator::job(ranks, NetworkFaults::none());
        std::thread::scope(|scope| {
            let running: Vec<_> = ends.into_iter().map(|end| scope.spawn(move || run(end))).collect();
            let (ended, best): (Vec<_>, Vec<_>) = running.into_iter().map(|rank| rank.join().unwrap()).unzip();
            (ended, best.concat())
        })
    }

    #[test]
    fn all_ranks_end_after_any_failure() {
        const NEVER: (usize, usize) = (usize::MAX, 0);
        let (_, expected) = exchanged(1, NEVER, NEVER);
        for ranks in 2..=4 {
            let (ended, whole) = exchanged(ranks, NEVER, NEVER);
            assert!(ended.iter().all(Result::is_ok) && whole == expected, "{ranks} ranks");
            for rank in 0..ranks {
                for row in [0, 1, 10, 100] {
                    let (ended, _) = exchanged(ranks, (rank, row), NEVER);
                    let error = ended[rank].as_ref().unwrap_err();
                    assert!(error.to_string().contains("no disk"), "rank {rank} of {ranks}, row {row}: {error}");
                }
                for portion in 1..=2 {
                    let (ended, _) = exchanged(ranks, NEVER, (rank, portion));
                    let error = ended[rank].as_ref().unwrap_err();
                    assert!(
                        error.to_string().contains("the disk is full"),
                        "rank {rank} of {ranks}, {portion}: {error}"
                    );
                }
            }
        }
    }
}
