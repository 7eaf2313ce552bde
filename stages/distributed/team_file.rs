//! Writing of a file by all ranks: each encodes the blocks of a range of positions and writes them; rank 0
//! adds header and index, and publishes the file, which equals that of one machine.
//!
//! Offsets of compressed blocks are known once all are encoded: until then each rank keeps its blocks in a
//! [`Spool`]. The file gets its final name when all parts are durable. A rank whose disk fails ends the
//! stage.

use super::agreement::{RankResult, agree};
use super::job::is_shared;
use crate::files;
use disk::{Digest, Disk, Edge, Joint, Region, Spool, edges_of};
use game::Index;
use messaging::{CommunicationError, Communicator};
use pipeline::{StageError, StageResult as Result};
use planner::Settings;
use std::ops::Range;
use std::path::{Path, PathBuf};
use store::{Codec, Division, FileKind, Identity, PartPlace, PartWriter, Shape, StoreError, ValueRange, Writer};

/// A file that all ranks write.
pub(crate) struct TeamFile<'d, 'a> {
    pub(crate) disk: &'d dyn Disk,
    pub(crate) path: &'a Path,
    pub(crate) identity: Identity,
    pub(crate) shape: Shape,
    pub(crate) range: ValueRange,
    pub(crate) codec: Codec,
    /// Directory on the local disk of each rank; `None` is that of the file.
    pub(crate) scratch: Option<&'a Path>,
    /// Whether each rank writes a part; otherwise rank 0 writes all, which is faster for a small file.
    pub(crate) is_shared: bool,
    /// The first positions of the parts, or nothing for parts of as many positions each.
    pub(crate) starts: Option<Vec<u64>>,
}

/// Writer of the positions of one rank.
pub(crate) struct TeamWriter<'a> {
    kind: FileKind,
    stones: u32,
    /// By rank.
    positions: Vec<Range<u64>>,
    rank: usize,
    share: WrittenShare<'a>,
}

enum WrittenShare<'a> {
    /// One rank writes all.
    Whole(Box<Writer<'a>>),
    /// Another rank writes all.
    Nothing,
    Part(Box<TeamPart<'a>>),
}

/// The part of a rank.
struct TeamPart<'a> {
    file: (&'a dyn Disk, PathBuf),
    division: Division,
    writer: PartWriter<'a>,
    /// The bytes of all parts, and the file on rank 0, if they are known before the blocks are encoded.
    known: Option<(Vec<u64>, Option<Joint<'a>>)>,
}

impl<'d, 'a> TeamFile<'d, 'a> {
    /// Returns the file of a value for each position of an index, which a number of ranks write.
    pub(crate) fn of_values(
        (disk, path): (&'d dyn Disk, &'a Path),
        settings: &'a Settings,
        index: &Index,
        (kind, codec): (FileKind, Codec),
        ranks: usize,
    ) -> TeamFile<'d, 'a> {
        let stones = index.stones();
        TeamFile {
            disk,
            path,
            identity: files::identity(settings.rules.name, settings.set, kind, stones),
            shape: files::shape(index, kind),
            range: files::range(kind, stones),
            codec,
            scratch: settings.scratch.as_deref(),
            is_shared: is_shared(settings, stones, ranks),
            starts: None,
        }
    }

    /// Begins to write with the other ranks.
    pub(crate) fn begin(self, communicator: &mut dyn Communicator) -> RankResult<TeamWriter<'d>> {
        let TeamFile { disk, path, ref identity, ref shape, range, codec, .. } = self;
        let (rank, ranks) = (communicator.rank(), communicator.size());
        let writer = |positions, share| TeamWriter {
            kind: identity.kind,
            stones: identity.stones.into(),
            positions,
            rank,
            share,
        };
        if ranks == 1 || !self.is_shared {
            let create = || Writer::create(disk, path, identity, shape, range, codec).map_err(files::unwritable);
            let whole = agree(communicator, (rank == 0).then(create).transpose())?;
            let positions = (0..ranks).map(|rank| if rank == 0 { 0..shape.positions() } else { 0..0 }).collect();
            return Ok(writer(
                positions,
                whole.map_or(WrittenShare::Nothing, |whole| WrittenShare::Whole(Box::new(whole))),
            ));
        }
        let starts = self.starts.unwrap_or_else(|| Division::even_starts(shape.positions(), ranks));
        let division = Division::new(path, identity, shape, range, codec, &starts).map_err(files::unwritable);
        let division = agree(communicator, division)?;
        let (known, place) = match division.part_bytes() {
            Some(bytes) => {
                let (joint, region) = open((disk, path), communicator, &division, &bytes)?;
                (Some((bytes, joint)), PartPlace::File(region))
            }
            None => {
                let name = path.file_name().unwrap_or_default().display();
                let directory = self.scratch.or(path.parent()).unwrap_or(Path::new(""));
                (None, PartPlace::Spool(Spool::new(disk, directory.join(format!("{name}-part-{rank}")))))
            }
        };
        let (positions, part) = (division.ranges(), division.writer(rank, place));
        let part = TeamPart { file: (disk, path.to_path_buf()), division, writer: part, known };
        Ok(writer(positions, WrittenShare::Part(Box::new(part))))
    }
}

impl TeamWriter<'_> {
    /// The positions of this rank, in canonical order.
    pub(crate) fn positions(&self) -> Range<u64> {
        self.positions[self.rank].clone()
    }

    /// The positions of all ranks.
    pub(crate) fn positions_of_all(&self) -> &[Range<u64>] {
        &self.positions
    }

    /// Appends the values of the next positions of this rank.
    pub(crate) fn append(&mut self, values: &[i8]) -> Result<()> {
        let appended = match &mut self.share {
            WrittenShare::Whole(writer) => writer.append(values),
            WrittenShare::Part(part) => part.writer.append(values),
            WrittenShare::Nothing => {
                assert!(values.is_empty(), "another rank writes all");
                Ok(())
            }
        };
        appended.map_err(|error| unwritable(self.kind, self.stones, error))
    }

    /// Appends zeros.
    pub(crate) fn append_zeros(&mut self, count: u64) -> Result<()> {
        let appended = match &mut self.share {
            WrittenShare::Whole(writer) => writer.append_zeros(count),
            WrittenShare::Part(part) => part.writer.append_zeros(count),
            WrittenShare::Nothing => {
                assert_eq!(count, 0, "another rank writes all");
                Ok(())
            }
        };
        appended.map_err(|error| unwritable(self.kind, self.stones, error))
    }

    /// Publishes the file, and returns the digest of its content on rank 0. `appended` tells whether this
    /// rank appended the values of all its positions, or what prevented it.
    pub(crate) fn finish(
        self,
        appended: Result<()>,
        communicator: &mut dyn Communicator,
    ) -> RankResult<Option<Digest>> {
        let TeamWriter { kind, stones, share, .. } = self;
        let unwritable = |error| unwritable(kind, stones, error);
        let part = match share {
            WrittenShare::Whole(writer) => {
                let finished = appended.and_then(|()| writer.finish().map_err(unwritable));
                return Ok(Some(agree(communicator, finished)?.digest));
            }
            WrittenShare::Nothing => return agree(communicator, appended).map(|()| None),
            WrittenShare::Part(part) => *part,
        };
        let TeamPart { file: (disk, path), division, writer, known } = part;
        let encoded = appended.and_then(|()| writer.finish().map_err(unwritable));
        let (summary, place) = agree(communicator, encoded)?;
        let summaries = communicator.gather(0, summary)?;
        let whole = summaries.map(|summaries| {
            let misfit = |(rank, expected, found)| CommunicationError::Unexpected { rank, expected, found };
            division.whole(summaries).map_err(misfit)
        });
        let whole = whole.transpose()?;
        let (part_bytes, joint) = match known {
            Some(known) => known,
            None => {
                let message = whole.as_ref().map(|whole| encode(&whole.part_bytes));
                let message = communicator.broadcast(0, message)?;
                (decode(&message, &division, communicator.size())?, None)
            }
        };
        let (joint, region) = match place {
            PartPlace::File(region) => (joint, region),
            PartPlace::Spool(spool) => {
                let (joint, mut region) = open((disk, &path), communicator, &division, &part_bytes)?;
                let copied = spool.pass_on(|bytes| {
                    // Sends keep-alive messages. An error is returned again by the next message.
                    let _ = communicator.poll();
                    region.write(bytes)
                });
                (joint, agree(communicator, copied.map(|()| region))?)
            }
        };
        let edges = agree(communicator, region.finish())?;
        let edges = communicator.gather(0, edges.into_iter().flat_map(|edge| edge.bytes).collect())?;
        let published = match (joint, &whole, edges) {
            (Some(joint), Some(whole), Some(messages)) => {
                let mut edges = division.edges(whole).to_vec();
                for (rank, bytes) in messages.iter().enumerate() {
                    edges.extend(take_edges(rank, bytes, &division.range(rank, &part_bytes))?);
                }
                joint.publish(edges).map(drop)
            }
            _ => Ok(()),
        };
        agree(communicator, published)?;
        Ok(whole.map(|whole| whole.digest))
    }
}

/// Converts an error of writing a file.
fn unwritable(kind: FileKind, stones: u32, error: StoreError) -> StageError {
    match kind {
        FileKind::Database => files::unwritable_scores(stones, error),
        _ => files::unwritable(error),
    }
}

/// Creates the file under a temporary name on rank 0, and opens it on all ranks.
fn open<'a>(
    (disk, path): (&'a dyn Disk, &Path),
    communicator: &mut dyn Communicator,
    division: &Division,
    part_bytes: &[u64],
) -> RankResult<(Option<Joint<'a>>, Region<'a>)> {
    let (rank, bytes) = (communicator.rank(), division.file_bytes(part_bytes));
    let create = || Joint::create(disk, path, bytes);
    let joint = agree(communicator, (rank == 0).then(create).transpose())?;
    let message = joint.as_ref().map(|joint| joint.temporary().display().to_string().into_bytes());
    let message = communicator.broadcast(0, message)?;
    let temporary = PathBuf::from(String::from_utf8_lossy(&message).into_owned());
    let region = Region::open(disk, &temporary, bytes, division.range(rank, part_bytes));
    Ok((joint, agree(communicator, region)?))
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
    use crate::opening::OpeningSolver;
    use crate::solver::{DatabaseOutput, DatabaseWriter};
    use disk::{Fault, MemoryDisk, is_leftover};
    use game::{Index, PositionSet};
    use messaging::{NetworkFaults, ThreadCommunicator};
    use pipeline::{Manifest, StageProgress};
    use planner::Settings;

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

    /// Writes the part of a rank.
    fn write(output: &DatabaseOutput, end: &mut ThreadCommunicator, scores: &[i8]) -> RankResult<()> {
        let mut writer = DatabaseWriter::begin(output, end)?;
        let Range { start, end: last } = writer.positions();
        let mut runs = scores[start as usize..last as usize].chunks(10_007);
        let appended = runs.try_for_each(|run| writer.append(run));
        writer.finish_with(appended, end).map(drop)
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
                    let (path, progress) = (Path::new(PATH), StageProgress::new());
                    let output = DatabaseOutput {
                        settings,
                        disk: &disk,
                        index,
                        path,
                        scratch: None,
                        opening_capture: None,
                        progress: Some(&progress),
                    };
                    let written = write(&output, &mut end, scores);
                    let reading = progress.read(disk.clock().steady());
                    let is_all = reading.writing_seconds.is_some() && reading.share().is_none();
                    assert!(written.is_err() || is_all, "{reading:?}");
                    written.map_err(|failure| StageError::from(failure).to_string())
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
        for (codec, set, all_stones) in Codec::ALL.map(Codec::name).into_iter().flat_map(|codec| {
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
        let kind = FileKind::Database;
        let identity = files::identity(settings.rules.name, settings.set, kind, 8);
        let (shape, range) = (files::shape(&index, kind), files::range(kind, 8));
        let starts = Division::even_starts(shape.positions(), 3);
        let division = Division::new(Path::new(PATH), &identity, &shape, range, settings.codec, &starts).unwrap();
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
