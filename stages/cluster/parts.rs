//! A database written by all ranks: each collects the scores of a part of the file, encodes its blocks and writes them
//! to their place; rank 0 puts header and index around them, and publishes the file, the same as one machine makes.
//!
//! Where blocks are compressed, their places are known when all are encoded: till then each rank keeps its own in a file
//! without a name. Nothing has a final name before all parts are durable, and a rank whose disk fails ends the stage.

use super::{Failure, agree, is_shared};
use crate::files;
use disk::{Disk, DiskError, Edge, Joint, Region, ScratchFile, edges_of};
use game::Index;
use messaging::{CommunicationError, Communicator};
use pipeline::StageError;
use planner::Settings;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use store::{Division, FileKind, StoreError};

/// Bytes of a part that are moved at a time.
const MOVED_BYTES: u64 = 4 << 20;

/// A database to be written.
pub(super) struct Output<'a> {
    pub(super) settings: &'a Settings,
    pub(super) disk: &'a dyn Disk,
    pub(super) index: &'a Index,
    /// Its final name.
    pub(super) path: &'a Path,
    /// Where each rank keeps what nobody else reads; if not, beside the file.
    pub(super) scratch: Option<&'a Path>,
}

/// Takes scores in canonical order, and says whether it wants more.
pub(super) type Sink<'a> = &'a mut dyn FnMut(&[i8]) -> ControlFlow<()>;

/// Gives each rank the scores of its range, as [`engines::distributed::collect`].
pub(super) type Collect<'a> =
    &'a mut dyn FnMut(&[Range<u64>], &mut dyn Communicator, Sink) -> Result<bool, CommunicationError>;

impl Output<'_> {
    /// Writes the database together with the other ranks.
    pub(super) fn write(&self, communicator: &mut dyn Communicator, collect: Collect) -> Result<(), Failure> {
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
        let all = collect(&division.ranges(), communicator, &mut |run| taken(writer.append(run), &mut failed));
        let encoded = match (failed, all.map_err(Failure::lost)?) {
            (Some(error), _) => Err(error),
            (None, true) => writer.finish().map(Some),
            // Whoever has enough says why.
            (None, false) => Ok(None),
        };
        let unwritable = |error| files::unwritable_scores(self.index.stones(), error);
        let encoded = agree(communicator, encoded.map_err(unwritable))?;
        let (summary, region) = encoded.expect("a rank that has enough failed");
        let summaries = communicator.gather(0, summary).map_err(Failure::lost)?;
        let whole = summaries.map(|summaries| {
            let misfit = |(rank, expected, found)| CommunicationError::Unexpected { rank, expected, found };
            division.whole(summaries).map_err(misfit)
        });
        let whole = whole.transpose().map_err(Failure::lost)?;
        let (part_bytes, joint, region) = match known {
            Some(bytes) => (bytes, joint, region),
            None => {
                let told = whole.as_ref().map(|whole| encode(&whole.part_bytes));
                let told = communicator.broadcast(0, told).map_err(Failure::lost)?;
                let bytes = decode(&told, &division, ranks).map_err(Failure::lost)?;
                let (joint, to) = self.open(communicator, &division, &bytes)?;
                let moved = moved(region, bytes[rank], to, communicator).map_err(StageError::Disk);
                (bytes, joint, agree(communicator, moved)?)
            }
        };
        let edges = agree(communicator, region.finish().map_err(StageError::Disk))?;
        let edges = communicator.gather(0, edges.into_iter().flat_map(|edge| edge.bytes).collect());
        let published = match (joint, whole, edges.map_err(Failure::lost)?) {
            (Some(joint), Some(whole), Some(told)) => {
                let mut edges = division.edges(&whole).to_vec();
                for (rank, bytes) in told.iter().enumerate() {
                    edges.extend(take_edges(rank, bytes, &division.place(rank, &part_bytes)).map_err(Failure::lost)?);
                }
                joint.publish(edges).map(drop)
            }
            _ => Ok(()),
        };
        agree(communicator, published.map_err(StageError::Disk))
    }

    /// The same by rank 0, for the smallest databases.
    fn write_alone(&self, communicator: &mut dyn Communicator, collect: Collect) -> Result<(), Failure> {
        let Output { settings, disk, index, path, .. } = *self;
        let create = || files::create(disk, path, settings, FileKind::Database, index, settings.codec);
        let created = (communicator.rank() == 0).then(create).transpose();
        let mut writer = agree(communicator, created)?;
        let range = |rank: usize| if rank == 0 { 0..index.positions() } else { 0..0 };
        let ranges: Vec<_> = (0..communicator.size()).map(range).collect();
        let mut failed = None;
        let all = collect(&ranges, communicator, &mut |run| {
            let writer = writer.as_mut().expect("rank 0 alone has a range");
            taken(writer.append(run), &mut failed)
        });
        let written = match (failed, all.map_err(Failure::lost)?) {
            (None, true) => writer.map(|writer| writer.finish()).transpose().map(drop),
            (failed, _) => failed.map_or(Ok(()), Err),
        };
        let unwritable = |error| files::unwritable_scores(self.index.stones(), error);
        agree(communicator, written.map_err(unwritable))
    }

    /// The file in so many parts.
    fn division(&self, parts: usize) -> Result<Division, StoreError> {
        let Settings { rules, set, codec, .. } = *self.settings;
        let (kind, stones) = (FileKind::Database, self.index.stones());
        let identity = files::identity(rules.name, set, kind, stones);
        let shape = files::shape(self.index, identity.orientation);
        Division::new(self.path, &identity, &shape, files::range(kind, stones), codec, parts)
    }

    /// Opens the file under a temporary name, on all ranks: rank 0 makes it.
    fn open(
        &self,
        communicator: &mut dyn Communicator,
        division: &Division,
        part_bytes: &[u64],
    ) -> Result<(Option<Joint<'_>>, Region<'_>), Failure> {
        let (rank, bytes) = (communicator.rank(), division.file_bytes(part_bytes));
        let create = || Joint::create(self.disk, self.path, bytes).map_err(StageError::Disk);
        let joint = agree(communicator, (rank == 0).then(create).transpose())?;
        let told = joint.as_ref().map(|joint| joint.temporary().display().to_string().into_bytes());
        let told = communicator.broadcast(0, told).map_err(Failure::lost)?;
        let temporary = PathBuf::from(String::from_utf8_lossy(&told).into_owned());
        let region = Region::open(self.disk, &temporary, bytes, division.place(rank, part_bytes));
        Ok((joint, agree(communicator, region.map_err(StageError::Disk))?))
    }

    /// Where a rank keeps its part until that has a place in the file.
    fn keep(&self, division: &Division, rank: usize) -> Result<Region<'_>, StageError> {
        let bytes = division.part_bytes_max(rank);
        let name = self.path.file_name().unwrap_or_default().display();
        let directory = self.scratch.or(self.path.parent()).unwrap_or(Path::new(""));
        let path = directory.join(format!("{name}-part-{rank}"));
        Ok(Region::of(self.disk.scratch(&path, bytes)?, 0..bytes))
    }
}

/// Goes on, or notes why not.
fn taken(appended: Result<(), StoreError>, failed: &mut Option<StoreError>) -> ControlFlow<()> {
    match appended {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            *failed = Some(error);
            ControlFlow::Break(())
        }
    }
}

/// Moves what was kept of a part to where it belongs.
fn moved<'d>(
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
        // Tells the others that this rank lives. What goes wrong with messages shows when they are waited for.
        let _ = communicator.poll();
    }
    Ok(to)
}

/// Bytes of all parts, as rank 0 tells them.
fn encode(part_bytes: &[u64]) -> Vec<u8> {
    part_bytes.iter().flat_map(|bytes| bytes.to_le_bytes()).collect()
}

fn decode(told: &[u8], division: &Division, ranks: usize) -> Result<Vec<u64>, CommunicationError> {
    let (words, rest) = told.as_chunks();
    let bytes: Vec<u64> = words.iter().map(|&word| u64::from_le_bytes(word)).collect();
    let fits = |(part, &bytes): (usize, &u64)| bytes <= division.part_bytes_max(part);
    if rest.is_empty() && bytes.len() == ranks && bytes.iter().enumerate().all(fits) {
        return Ok(bytes);
    }
    let (expected, found) = (format!("the bytes of {ranks} parts"), format!("{told:?}"));
    Err(CommunicationError::Unexpected { rank: 0, expected, found })
}

/// The edges of the region of a rank, from its message.
fn take_edges(rank: usize, told: &[u8], place: &Range<u64>) -> Result<Vec<Edge>, CommunicationError> {
    let edges = edges_of(place);
    let expected: u64 = edges.iter().map(|edge| edge.end - edge.start).sum();
    if told.len() as u64 != expected {
        let (expected, found) = (format!("{expected} bytes at the ends of its part"), format!("{} bytes", told.len()));
        return Err(CommunicationError::Unexpected { rank, expected, found });
    }
    let mut rest = told;
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

    /// Scores that compress, and are in range.
    fn scores(index: &Index) -> Vec<i8> {
        let score = |position: u64| ((position / 9 % 13) as i8 - 6) * i8::from(!position.is_multiple_of(5)) / 2;
        (0..index.positions()).map(score).collect()
    }

    /// What all ranks come to, with a disk each.
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
                    let output = Output { settings, disk: &disk, index, path: Path::new(PATH), scratch: None };
                    let rank = end.rank();
                    let mut collect = |ranges: &[Range<u64>], end: &mut dyn Communicator, sink: Sink| {
                        let Range { start, end: last } = ranges[rank];
                        let mut runs = scores[start as usize..last as usize].chunks(10_007);
                        let all = runs.all(|run| sink(run).is_continue());
                        Ok(end.sum(&[u64::from(!all)])? == [0])
                    };
                    output.write(&mut end, &mut collect).map_err(|failure| failure.into_error().to_string())
                })
            };
            let ends = ThreadCommunicator::job(disks.len(), faults);
            let running: Vec<_> = ends.into_iter().zip(disks).map(run).collect();
            running.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn all_ranks_write_the_file_of_one() {
        for (codec, set) in ["raw", "packed", "zstd", "rans"]
            .into_iter()
            .flat_map(|codec| [(codec, PositionSet::All), (codec, PositionSet::Reachable)])
        {
            let mut settings = settings(codec);
            settings.set = set;
            for stones in [3, 8, 10] {
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
    fn a_disk_that_fails_ends_it_for_all() {
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
                    // Renamed, the file may be there though that is not durable.
                    assert!(failing == 0 || kept == b"old", "operation {k}");
                    assert!(!disks[0].paths().iter().any(|path| is_leftover(path)), "operation {k}");
                }
                assert!(failed >= 3, "{failed} operations are too few to be all");
            }
        }
    }

    #[test]
    fn other_messages_are_refused() {
        let settings = settings("zstd");
        let index = Index::new(8, settings.set);
        let disk = MemoryDisk::new();
        let output = Output { settings: &settings, disk: &disk, index: &index, path: Path::new(PATH), scratch: None };
        let division = output.division(3).unwrap();
        let part_bytes = [1000, division.part_bytes_max(1), 0];
        assert_eq!(decode(&encode(&part_bytes), &division, 3).unwrap(), part_bytes);
        for told in [&[][..], &[0; 23], &[0; 25], &[0; 32], &encode(&[0, division.part_bytes_max(1) + 1, 0])] {
            assert!(decode(told, &division, 3).is_err(), "{told:?}");
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
