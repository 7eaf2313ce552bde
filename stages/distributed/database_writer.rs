//! Writing of a database by all ranks: each collects the scores of a part of the file, encodes its blocks and writes
//! them; rank 0 adds header and index, and publishes the file, which equals that of one machine.
//!
//! Offsets of compressed blocks are known once all are encoded: until then each rank keeps its blocks in an unnamed
//! file. The file gets its final name when all parts are durable. A rank whose disk fails ends the stage.

use super::agreement::{RankResult, agree};
use super::job::is_shared;
use crate::files;
use crate::opening::OpeningSolver;
use disk::{Disk, DiskError, Edge, Joint, Region, ScratchFile, edges_of};
use game::{Index, Score};
use messaging::{CommunicationError, Communicator};
use pipeline::StageResult as Result;
use planner::Settings;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use store::{Division, FileKind, StoreError};

/// Bytes of a copy at a time.
const MOVED_BYTES: u64 = 4 << 20;

/// A database to write.
pub(super) struct DatabaseOutput<'a> {
    pub(super) settings: &'a Settings,
    pub(super) disk: &'a dyn Disk,
    pub(super) index: &'a Index,
    pub(super) path: &'a Path,
    /// Directory on the local disk of each rank; `None` is that of the file.
    pub(super) scratch: Option<&'a Path>,
    /// Best capture of the opening, if the database has the opening and it has captures.
    pub(super) opening_capture: Option<Score>,
}

/// Receives scores in canonical order, until it breaks.
pub(super) type ScoreSink<'a> = &'a mut dyn FnMut(&[i8]) -> ControlFlow<()>;

/// Distributes the scores by the ranges of ranks, as [`solvers::distributed::collect`].
pub(super) type CollectScores<'a> =
    &'a mut dyn FnMut(&[Range<u64>], &mut dyn Communicator, ScoreSink) -> messaging::Result<bool>;

impl DatabaseOutput<'_> {
    /// Writes the database with the other ranks.
    pub(super) fn write(&self, communicator: &mut dyn Communicator, collect: CollectScores) -> RankResult<()> {
        let (rank, ranks) = (communicator.rank(), communicator.size());
        if !is_shared(self.settings, self.index.stones(), ranks) {
            return self.write_alone(communicator, collect);
        }
        let division = agree(communicator, self.division(ranks).map_err(files::unwritable))?;
        let known = division.part_bytes();
        let (joint, region) = match &known {
            Some(bytes) => self.open(communicator, &division, bytes)?,
            None => (None, agree(communicator, self.keep(&division, rank))?),
        };
        let mut writer = division.writer(rank, region);
        let mut failed = None;
        let mut opening = self.opening();
        let ranges = division.ranges();
        let mut received = ranges[rank].start;
        let mut append = |run: &[i8]| {
            if let Some(opening) = &mut opening {
                opening.see(received, run);
            }
            received += run.len() as u64;
            continue_or_record(writer.append(run), &mut failed)
        };
        let mut all = collect(&ranges, communicator, &mut append)?;
        if let Some(mut opening) = opening {
            opening.combine(&communicator.sum(&opening.seen())?);
            if all && ranges[rank].contains(&self.index.slab_positions()) {
                all = continue_or_record(writer.append(&[opening.score()]), &mut failed).is_continue();
            }
        }
        let encoded = match (failed, all) {
            (Some(error), _) => Err(error),
            (None, true) => writer.finish().map(Some),
            // The rank that stopped the collection reports the error.
            (None, false) => Ok(None),
        };
        let unwritable = |error| files::unwritable_scores(self.index.stones(), error);
        let encoded = agree(communicator, encoded.map_err(unwritable))?;
        let (summary, region) = encoded.expect("a rank that has enough failed");
        let summaries = communicator.gather(0, summary)?;
        let whole = summaries.map(|summaries| {
            let misfit = |(rank, expected, found)| CommunicationError::Unexpected { rank, expected, found };
            division.whole(summaries).map_err(misfit)
        });
        let whole = whole.transpose()?;
        let (part_bytes, joint, region) = match known {
            Some(bytes) => (bytes, joint, region),
            None => {
                let message = whole.as_ref().map(|whole| encode(&whole.part_bytes));
                let message = communicator.broadcast(0, message)?;
                let bytes = decode(&message, &division, ranks)?;
                let (joint, to) = self.open(communicator, &division, &bytes)?;
                let copied = copy_part(region, bytes[rank], to, communicator);
                (bytes, joint, agree(communicator, copied)?)
            }
        };
        let edges = agree(communicator, region.finish())?;
        let edges = communicator.gather(0, edges.into_iter().flat_map(|edge| edge.bytes).collect())?;
        let published = match (joint, whole, edges) {
            (Some(joint), Some(whole), Some(messages)) => {
                let mut edges = division.edges(&whole).to_vec();
                for (rank, bytes) in messages.iter().enumerate() {
                    edges.extend(take_edges(rank, bytes, &division.range(rank, &part_bytes))?);
                }
                joint.publish(edges).map(drop)
            }
            _ => Ok(()),
        };
        agree(communicator, published)
    }

    /// Writes the database on rank 0 alone, for the smallest databases.
    fn write_alone(&self, communicator: &mut dyn Communicator, collect: CollectScores) -> RankResult<()> {
        let DatabaseOutput { settings, disk, index, path, .. } = *self;
        let create = || files::create(disk, path, settings, FileKind::Database, index, settings.codec);
        let created = (communicator.rank() == 0).then(create).transpose();
        let mut writer = agree(communicator, created)?;
        let range = |rank: usize| if rank == 0 { 0..index.slab_positions() } else { 0..0 };
        let ranges: Vec<_> = (0..communicator.size()).map(range).collect();
        let mut failed = None;
        let mut opening = self.opening();
        let mut received = 0;
        let mut all = collect(&ranges, communicator, &mut |run| {
            let writer = writer.as_mut().expect("rank 0 alone has a range");
            if let Some(opening) = &mut opening {
                opening.see(received, run);
            }
            received += run.len() as u64;
            continue_or_record(writer.append(run), &mut failed)
        })?;
        if let (Some(opening), Some(writer), true) = (opening, &mut writer, all) {
            all = continue_or_record(writer.append(&[opening.score()]), &mut failed).is_continue();
        }
        let written = match (failed, all) {
            (None, true) => writer.map(|writer| writer.finish()).transpose().map(drop),
            (failed, _) => failed.map_or(Ok(()), Err),
        };
        let unwritable = |error| files::unwritable_scores(self.index.stones(), error);
        agree(communicator, written.map_err(unwritable))
    }

    /// Returns the solver of the opening, if the database has it.
    fn opening(&self) -> Option<OpeningSolver> {
        OpeningSolver::new(self.settings.rules, self.index, self.opening_capture)
    }

    /// Returns the division of the file into parts.
    fn division(&self, parts: usize) -> store::Result<Division> {
        let Settings { rules, set, codec, .. } = *self.settings;
        let (kind, stones) = (FileKind::Database, self.index.stones());
        let identity = files::identity(rules.name, set, kind, stones);
        let shape = files::shape(self.index, kind);
        Division::new(self.path, &identity, &shape, files::range(kind, stones), codec, parts)
    }

    /// Creates the file under a temporary name on rank 0, and opens it on all ranks.
    fn open(
        &self,
        communicator: &mut dyn Communicator,
        division: &Division,
        part_bytes: &[u64],
    ) -> RankResult<(Option<Joint<'_>>, Region<'_>)> {
        let (rank, bytes) = (communicator.rank(), division.file_bytes(part_bytes));
        let create = || Joint::create(self.disk, self.path, bytes);
        let joint = agree(communicator, (rank == 0).then(create).transpose())?;
        let message = joint.as_ref().map(|joint| joint.temporary().display().to_string().into_bytes());
        let message = communicator.broadcast(0, message)?;
        let temporary = PathBuf::from(String::from_utf8_lossy(&message).into_owned());
        let region = Region::open(self.disk, &temporary, bytes, division.range(rank, part_bytes));
        Ok((joint, agree(communicator, region)?))
    }

    /// Creates the unnamed file for the part of a rank, used while the offset of the part is unknown.
    fn keep(&self, division: &Division, rank: usize) -> Result<Region<'_>> {
        let bytes = division.part_bytes_max(rank);
        let name = self.path.file_name().unwrap_or_default().display();
        let directory = self.scratch.or(self.path.parent()).unwrap_or(Path::new(""));
        let path = directory.join(format!("{name}-part-{rank}"));
        Ok(Region::of(self.disk.scratch(&path, bytes)?, 0..bytes))
    }
}

/// Continues, or records the error and breaks.
fn continue_or_record(appended: store::Result<()>, failed: &mut Option<StoreError>) -> ControlFlow<()> {
    match appended {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            *failed = Some(error);
            ControlFlow::Break(())
        }
    }
}

/// Copies a kept part into the file.
fn copy_part<'d>(
    kept: Region<'_>,
    bytes: u64,
    mut to: Region<'d>,
    communicator: &mut dyn Communicator,
) -> Result<Region<'d>, DiskError> {
    let kept: Box<dyn ScratchFile + '_> = kept.finish_alone()?;
    let mut piece = Vec::new();
    for offset in (0..bytes).step_by(MOVED_BYTES as usize) {
        piece.resize((bytes - offset).min(MOVED_BYTES) as usize, 0);
        kept.read_at(offset, &mut piece)?;
        to.write(&piece)?;
        // Sends keep-alive messages. An error is returned again by the next message.
        let _ = communicator.poll();
    }
    Ok(to)
}

/// Encodes the bytes of all parts.
fn encode(part_bytes: &[u64]) -> Vec<u8> {
    part_bytes.iter().flat_map(|bytes| bytes.to_le_bytes()).collect()
}

fn decode(message: &[u8], division: &Division, ranks: usize) -> messaging::Result<Vec<u64>> {
    let (words, rest) = message.as_chunks();
    let bytes: Vec<u64> = words.iter().map(|&word| u64::from_le_bytes(word)).collect();
    let fits = |(part, &bytes): (usize, &u64)| bytes <= division.part_bytes_max(part);
    if rest.is_empty() && bytes.len() == ranks && bytes.iter().enumerate().all(fits) {
        return Ok(bytes);
    }
    let (expected, found) = (format!("the bytes of {ranks} parts"), format!("{message:?}"));
    Err(CommunicationError::Unexpected { rank: 0, expected, found })
}

/// Decodes the edges of the region of a rank.
fn take_edges(rank: usize, message: &[u8], place: &Range<u64>) -> messaging::Result<Vec<Edge>> {
    let edges = edges_of(place);
    let expected: u64 = edges.iter().map(|edge| edge.end - edge.start).sum();
    if message.len() as u64 != expected {
        let (expected, found) =
            (format!("{expected} bytes at the ends of its part"), format!("{} bytes", message.len()));
        return Err(CommunicationError::Unexpected { rank, expected, found });
    }
    let mut rest = message;
    let edge = |edge: Range<u64>| {
        let (bytes, later) = rest.split_at((edge.end - edge.start) as usize);
        rest = later;
        Edge { offset: edge.start, bytes: bytes.to_vec() }
    };
    Ok(edges.into_iter().map(edge).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::{Fault, MemoryDisk, is_leftover};
    use game::PositionSet;
    use messaging::{NetworkFaults, ThreadCommunicator};
    use pipeline::Manifest;

    const PATH: &str = "run/databases/x.awari";

    fn settings(codec: &str) -> Settings {
        let text = format!("[build]\nstones = \"0..10\"\n[store]\ncodec = \"{codec}\"\n");
        Settings::new(&Manifest::parse(&text, "test", &planner::schema(), &[]).unwrap())
    }

    /// Returns scores that compress, and are in range.
    fn scores(index: &Index) -> Vec<i8> {
        let score = |position: u64| ((position / 9 % 13) as i8 - 6) * i8::from(!position.is_multiple_of(5)) / 2;
        let mut scores: Vec<i8> = (0..index.slab_positions()).map(score).collect();
        if let Some(mut opening) = OpeningSolver::new(game::Rules::AWARI, index, None) {
            opening.see(0, &scores);
            scores.push(opening.score());
        }
        scores
    }

    /// Returns the result of each rank, with a disk each.
    fn written(
        settings: &Settings,
        index: &Index,
        disks: &[MemoryDisk],
        faults: NetworkFaults,
    ) -> Vec<Result<(), String>> {
        let scores = scores(index);
        std::thread::scope(|scope| {
            let scores = &scores;
            let run = |(mut end, disk): (ThreadCommunicator, &MemoryDisk)| {
                let disk = disk.clone();
                scope.spawn(move || {
                    let path = Path::new(PATH);
                    let output =
                        DatabaseOutput { settings, disk: &disk, index, path, scratch: None, opening_capture: None };
                    let rank = end.rank();
                    let mut collect = |ranges: &[Range<u64>], end: &mut dyn Communicator, sink: ScoreSink| {
                        let Range { start, end: last } = ranges[rank];
                        let last = last.min(index.slab_positions()).max(start);
                        let mut runs = scores[start as usize..last as usize].chunks(10_007);
                        let all = runs.all(|run| sink(run).is_continue());
                        Ok(end.sum(&[u64::from(!all)])? == [0])
                    };
                    output
                        .write(&mut end, &mut collect)
                        .map_err(|failure| pipeline::StageError::from(failure).to_string())
                })
            };
            let ends = ThreadCommunicator::job(disks.len(), faults);
            let running: Vec<_> = ends.into_iter().zip(disks).map(run).collect();
            running.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn all_ranks_write_the_same_file_as_one() {
        let with_opening = PositionSet::Reachable { opening: game::Opening::new(1).unwrap() };
        for (codec, set, all_stones) in ["raw", "packed", "zstd", "rans"].into_iter().flat_map(|codec| {
            [
                (codec, PositionSet::All, &[3, 8, 10][..]),
                (codec, PositionSet::REACHABLE, &[3, 8, 10]),
                (codec, with_opening, &[12]),
            ]
        }) {
            let mut settings = settings(codec);
            settings.set = set;
            for &stones in all_stones {
                let index = Index::new(stones, set);
                let alone = MemoryDisk::new();
                let path = Path::new("alone");
                let codec = settings.codec;
                files::write(&alone, path, &settings, FileKind::Database, &index, codec, [&scores(&index)[..]])
                    .unwrap();
                let expected = alone.peek(path).unwrap();
                for ranks in [1, 2, 3, 4, 20] {
                    let disk = MemoryDisk::new();
                    let faults = if ranks == 3 { NetworkFaults::jitter(stones.into()) } else { NetworkFaults::none() };
                    let done = written(&settings, &index, &vec![disk.clone(); ranks], faults);
                    assert!(done.iter().all(Result::is_ok), "{done:?}");
                    assert_eq!(disk.paths(), [Path::new(PATH)]);
                    assert!(disk.peek(Path::new(PATH)).unwrap() == expected, "{codec}, {stones} stones, {ranks} ranks");
                }
            }
        }
    }

    #[test]
    fn a_failing_disk_ends_the_stage_on_all_ranks() {
        for codec in ["packed", "zstd"] {
            let settings = settings(codec);
            let index = Index::new(10, settings.set);
            for failing in 0..3 {
                let mut failed = 0;
                for k in 0.. {
                    let disks: Vec<MemoryDisk> = (0..3).map(|_| MemoryDisk::new()).collect();
                    disks[0].put(Path::new(PATH), b"old");
                    disks[failing].fail_at(k, Fault::NoSpace);
                    let done = written(&settings, &index, &disks, NetworkFaults::none());
                    let kept = disks[0].peek(Path::new(PATH)).unwrap();
                    if disks[failing].injected_faults().is_empty() {
                        assert!(done.iter().all(Result::is_ok) && kept != b"old");
                        break;
                    }
                    failed += 1;
                    let error = done[0].as_ref().unwrap_err();
                    assert!(failing == 0 || error.contains(&format!("rank {failing}: ")), "operation {k}: {error}");
                    assert!(done.iter().all(Result::is_err), "operation {k}: {done:?}");
                    // After the rename, the file may exist though the rename is not durable.
                    assert!(failing == 0 || kept == b"old", "operation {k}");
                    assert!(!disks[0].paths().iter().any(|path| is_leftover(path)), "operation {k}");
                }
                assert!(failed >= 3, "{failed} operations are too few to be all");
            }
        }
    }

    #[test]
    fn invalid_messages_are_rejected() {
        let settings = settings("zstd");
        let index = Index::new(8, settings.set);
        let disk = MemoryDisk::new();
        let output = DatabaseOutput {
            settings: &settings,
            disk: &disk,
            index: &index,
            path: Path::new(PATH),
            scratch: None,
            opening_capture: None,
        };
        let division = output.division(3).unwrap();
        let part_bytes = [1000, division.part_bytes_max(1), 0];
        assert_eq!(decode(&encode(&part_bytes), &division, 3).unwrap(), part_bytes);
        for message in [&[][..], &[0; 23], &[0; 25], &[0; 32], &encode(&[0, division.part_bytes_max(1) + 1, 0])] {
            assert!(decode(message, &division, 3).is_err(), "{message:?}");
        }
        let place = 100..200_000;
        let bytes = edges_of(&place).iter().map(|edge| (edge.end - edge.start) as usize).sum::<usize>();
        let edges = take_edges(1, &vec![7; bytes], &place).unwrap();
        assert!(edges.iter().map(|edge| edge.offset).eq(edges_of(&place).map(|edge| edge.start)));
        for other in [0, 1, bytes - 1, bytes + 1] {
            assert!(take_edges(1, &vec![7; other], &place).is_err(), "{other}");
        }
    }
}
