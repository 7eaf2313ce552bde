//! The stage `capture:n` by all ranks: each captures for some rows of every slab, and reads only what these rows lead
//! to in the smaller databases. Rank 0 writes the pieces to the file in order.
//!
//! A rank runs at most a few pieces ahead of the writer, so memory does not depend on the database.

use super::{KIND, SmallerFiles};
use crate::build_context::BuildContext;
use crate::distributed::{FollowerRank, JobLeader, LoadMeter, RankLoads, RankResult, ReadTask, StageOrder, agree};
use crate::files;
use crate::solver_progress::SolverProgress;
use disk::Disk;
use game::{Index, Score};
use messaging::{CommunicationError, Communicator};
use pipeline::StageResult as Result;
use pipeline::{StageContext, StageError, StageReport};
use planner::{CAPTURE_PIECES_AHEAD, DatabasePlan, Settings};
use solvers::capture::{CapturePartition, CapturePiece, capture_piece};
use solvers::{DriverObserver, Tables};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use store::{BlockCache, FileKind};

/// Reply of rank 0 to a piece: written, send more. Any other reply: stop.
const TAKEN: u8 = 1;

/// Runs the stage, on rank 0.
pub(crate) fn run(build: &BuildContext, job: &JobLeader, stones: u32, context: &StageContext) -> Result<StageReport> {
    let settings = build.settings();
    let index = Index::new(stones, settings.set);
    let smaller = settings.smaller(stones).map(|stones| context.input(&files::database(stones)));
    let task = ReadTask { stones, threads: context.threads(), files: smaller.collect() };
    let mut communicator = job.order(KIND, &task)?;
    let tables = build.tables();
    let plan = build.plan(stones);
    let member = CaptureRank { settings, plan, disk: context.disk(), tables: &tables, task: &task, index: &index };
    let path = context.output(&files::capture(stones));
    let create = || {
        files::create(
            context.disk(),
            &path,
            settings,
            FileKind::Capture,
            &index,
            settings.intermediates.captures_codec(),
        )
    };
    let watch = SolverProgress::new(context, index.slab_positions());
    let mut end = 0;
    let mut writer = None;
    let done = member.take_part(&mut **communicator, context.stop_flag(), &mut |best| {
        end += best.len() as u64;
        let writer = match &mut writer {
            Some(writer) => writer,
            None => writer.insert(create()?),
        };
        writer.append(best).map_err(files::unwritable)?;
        if watch.advance(end, index.slab_positions()).is_break() { Err(StageError::Stopped) } else { Ok(()) }
    })?;
    let writer = writer.expect("every database has a row");
    writer.finish().map_err(files::unwritable)?;
    let report = StageReport::new(index.slab_positions()).with("blocks", done.blocks).with("decoded", done.decoded);
    Ok(done.loads.expect("rank 0 gathers the loads").report(report))
}

/// Runs the stage on a rank other than 0.
pub(super) fn follow(
    follower: &mut FollowerRank,
    order: &StageOrder,
    communicator: &mut dyn Communicator,
) -> RankResult<()> {
    let (task, tables): (ReadTask, _) = (order.task()?, follower.tables());
    let FollowerRank { plan, disk, stop, .. } = *follower;
    let settings = plan.settings();
    let index = Index::new(task.stones, settings.set);
    let plan = plan.database(task.stones);
    let member = CaptureRank { settings, plan, disk, tables: &tables, task: &task, index: &index };
    member.take_part(communicator, stop, &mut |_| unreachable!("rank 0 alone writes")).map(drop)
}

/// Inputs of one rank.
struct CaptureRank<'a> {
    settings: &'a Settings,
    plan: &'a DatabasePlan,
    disk: &'a dyn Disk,
    tables: &'a Tables,
    task: &'a ReadTask,
    index: &'a Index,
}

/// Figures of the stage.
struct CaptureOutcome {
    /// Blocks of smaller databases.
    blocks: u64,
    /// Blocks decoded by all ranks.
    decoded: u64,
    loads: Option<RankLoads>,
}

/// Writes the captures of the next rows.
type Write<'a> = &'a mut dyn FnMut(&[Score]) -> Result<()>;

impl CaptureRank<'_> {
    fn take_part(
        &self,
        communicator: &mut dyn Communicator,
        stop: &AtomicBool,
        write: Write,
    ) -> RankResult<CaptureOutcome> {
        let cache = BlockCache::new(self.plan.memory().cache_bytes);
        let opened =
            SmallerFiles::open(self.settings, self.disk, self.task.files.iter().cloned(), &cache, |_, _| None, 0);
        let smaller = agree(communicator, opened)?;
        let meter = LoadMeter::start(communicator);
        let capture = |piece: &CapturePiece, best: &mut Vec<Score>| {
            if stop.load(Relaxed) {
                return Err(StageError::Stopped);
            }
            capture_piece(self.tables, self.index, piece, &smaller, best)
        };
        let partition = CapturePartition::new(self.index.slabs(), communicator.size());
        let done = match communicator.rank() {
            0 => lead(&partition, self.index, communicator, capture, write),
            _ => {
                send(&partition, self.index, CAPTURE_PIECES_AHEAD * partition.piece_positions(), communicator, capture)
            }
        };
        agree(communicator, done?)?;
        let loads = meter.gather(communicator)?;
        let decoded = communicator.sum(&[cache.decoded()])?[0];
        Ok(CaptureOutcome { blocks: smaller.blocks(), decoded, loads })
    }
}

/// Sends the pieces of this rank to rank 0, at most `window` positions ahead of its replies. An empty message, which is
/// never a piece, ends the stream after an error or a stop request.
fn send(
    partition: &CapturePartition,
    index: &Index,
    window: u64,
    communicator: &mut dyn Communicator,
    capture: impl Fn(&CapturePiece, &mut Vec<Score>) -> Result<()>,
) -> messaging::Result<Result<()>> {
    let rank = communicator.rank();
    let mut best = Vec::new();
    // Positions of each piece without a reply, and their sum.
    let (mut sent, mut ahead) = (VecDeque::new(), 0);
    for piece in partition.pieces().filter(|piece| piece.rank == rank) {
        let positions = piece.positions(index);
        while ahead > 0 && ahead + positions > window {
            if !is_taken(communicator)? {
                return communicator.send(0, Vec::new()).map(Ok);
            }
            ahead -= sent.pop_front().unwrap_or(0);
        }
        if let Err(error) = capture(&piece, &mut best) {
            communicator.send(0, Vec::new())?;
            while is_taken(communicator)? {}
            return Ok(Err(error));
        }
        communicator.send(0, best.iter().map(|&score| score as u8).collect())?;
        sent.push_back(positions);
        ahead += positions;
    }
    for _ in sent {
        if !is_taken(communicator)? {
            return communicator.send(0, Vec::new()).map(Ok);
        }
    }
    Ok(Ok(()))
}

/// Receives the reply of rank 0 to a piece.
fn is_taken(communicator: &mut dyn Communicator) -> messaging::Result<bool> {
    Ok(communicator.receive(0)? == [TAKEN])
}

/// Captures the pieces of rank 0, and writes those of all ranks.
fn lead(
    partition: &CapturePartition,
    index: &Index,
    communicator: &mut dyn Communicator,
    capture: impl Fn(&CapturePiece, &mut Vec<Score>) -> Result<()>,
    write: Write,
) -> messaging::Result<Result<()>> {
    let ranks = communicator.size();
    // By rank: replies sent, and whether its stream has ended.
    let (mut taken, mut ended) = (vec![0; ranks], vec![false; ranks]);
    let mut best = Vec::new();
    let mut written = Ok(());
    for piece in partition.pieces() {
        let CapturePiece { rank, .. } = piece;
        written = if rank == 0 {
            capture(&piece, &mut best)
        } else {
            let message = communicator.receive(rank)?;
            ended[rank] = message.is_empty();
            take(&message, &piece, index, &mut best)?
        };
        written = written.and_then(|()| write(&best));
        if written.is_err() {
            break;
        }
        if rank != 0 {
            communicator.send(rank, vec![TAKEN])?;
            taken[rank] += 1;
        }
    }
    if written.is_err() {
        let mut pieces = vec![0; ranks];
        partition.pieces().for_each(|piece| pieces[piece.rank] += 1);
        for rank in (1..ranks).filter(|&rank| taken[rank] < pieces[rank]) {
            communicator.send(rank, vec![0])?;
            // Pieces in flight must not be mistaken for later messages.
            while !ended[rank] {
                ended[rank] = communicator.receive(rank)?.is_empty();
            }
        }
    }
    Ok(written)
}

/// Decodes the captures of a piece.
fn take(message: &[u8], piece: &CapturePiece, index: &Index, best: &mut Vec<Score>) -> messaging::Result<Result<()>> {
    if message.is_empty() {
        // The ranks agree on that rank's error at the end.
        return Ok(Err(StageError::Stopped));
    }
    let expected = piece.positions(index);
    if message.len() as u64 != expected {
        let (expected, found) = (format!("{expected} captures"), format!("{} bytes", message.len()));
        return Err(CommunicationError::Unexpected { rank: piece.rank, expected, found });
    }
    best.clear();
    best.extend(message.iter().map(|&score| score as Score));
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::PositionSet;
    use messaging::{NetworkFaults, ThreadCommunicator};
    use std::sync::atomic::AtomicUsize;

    const STONES: u32 = 5;

    /// Returns whether each rank succeeds, and the captures written, if one rank fails at one of its pieces, or the
    /// file does.
    fn exchange(window: u64, ranks: usize, failing: Option<(usize, usize)>, full_at: usize) -> (Vec<bool>, Vec<Score>) {
        let index = Index::new(STONES, PositionSet::All);
        let partition = CapturePartition::new(index.slabs(), ranks);
        let mut written = Vec::new();
        let mut writes = 0;
        let ended = std::thread::scope(|scope| {
            let (index, partition) = (&index, &partition);
            let mut ends = ThreadCommunicator::job(ranks, NetworkFaults::none()).into_iter();
            let first = ends.next().unwrap();
            let pieces = |rank: usize| {
                let captured = AtomicUsize::new(0);
                move |piece: &CapturePiece, best: &mut Vec<Score>| {
                    assert_eq!(piece.rank, rank);
                    if failing == Some((rank, captured.fetch_add(1, Relaxed))) {
                        return Err(StageError::failed("no disk"));
                    }
                    best.clear();
                    best.resize(piece.positions(index) as usize, (piece.rows.start % 100) as Score);
                    Ok(())
                }
            };
            let follow = |mut end: ThreadCommunicator| {
                let capture = pieces(end.rank());
                scope.spawn(move || {
                    let sent = send(partition, index, window, &mut end, capture).unwrap();
                    // A message left over would be mistaken for a part of this.
                    end.barrier().unwrap();
                    sent.is_ok()
                })
            };
            let running: Vec<_> = ends.map(follow).collect();
            let mut end = first;
            let mut write = |best: &[Score]| {
                writes += 1;
                if writes > full_at {
                    return Err(StageError::failed("the disk is full"));
                }
                written.extend_from_slice(best);
                Ok(())
            };
            let led = lead(partition, index, &mut end, pieces(0), &mut write).unwrap();
            end.barrier().unwrap();
            let others = running.into_iter().map(|rank| rank.join().unwrap());
            std::iter::once(led.is_ok()).chain(others).collect()
        });
        (ended, written)
    }

    #[test]
    fn all_ranks_end_after_any_failure() {
        let index = Index::new(STONES, PositionSet::All);
        for (window, ranks) in [(1, 2), (300, 2), (1, 3), (300, 3), (1 << 20, 3)] {
            let (ended, whole) = exchange(window, ranks, None, usize::MAX);
            assert!(ended.iter().all(|&is_ok| is_ok) && whole.len() as u64 == index.positions());
            let partition = CapturePartition::new(index.slabs(), ranks);
            for rank in 0..ranks {
                let pieces = partition.pieces().filter(|piece| piece.rank == rank).count();
                for at in 0..pieces {
                    let (ended, written) = exchange(window, ranks, Some((rank, at)), usize::MAX);
                    assert!(!ended[0] && !ended[rank] && whole.starts_with(&written), "rank {rank}, piece {at}");
                }
            }
            for full_at in 0..partition.pieces().count() {
                let (ended, written) = exchange(window, ranks, None, full_at);
                assert!(!ended[0] && ended[1..].iter().all(|&is_ok| is_ok), "write {full_at}");
                assert!(written.len() < whole.len() && whole.starts_with(&written));
            }
        }
    }
}
