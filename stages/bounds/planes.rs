//! The files of planes: names, identities, and reading and writing them in units.
//!
//! A plane is stored as a matrix of bytes: a row of a slab is a row, its words little-endian. The files of seeds hold
//! one plane for each bound, in groups of units: slab by slab, group by group, the bounds descending.

use crate::files;
use disk::{Digest, Disk, signed_of};
use engines::bounds::{BitKernel, PlaneLayout, PlaneUnit};
use game::{Index, Orientation};
use pipeline::{ArtifactName, StageContext, StageError};
use planner::{SEEDS_GROUP_WORDS, Settings};
use rayon::prelude::*;
use std::ops::Range;
use std::path::Path;
use store::{BlockRun, Codec, FileKind, Identity, Role, Scores, Shape, SlabShape, StoreError, ValueRange, Writer};

/// A file of planes of one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plane {
    /// By bound, the positions with a capture of just that score, `MoverMajor`.
    WinSeeds,
    /// By bound, the positions whose captures cease to save them from a loss, `MoverMajor`.
    CandidateSeeds,
    /// Positions that a capture wins at the bound, and nothing won before, `OpponentMajor`.
    Seed(u32),
    /// Positions won at the bound and not before, `OpponentMajor`.
    Won(u32),
    /// Positions lost at the bound and not before, `MoverMajor`.
    Lost(u32),
    /// The same, `OpponentMajor`.
    Decided(u32),
}

impl Plane {
    pub(crate) fn name(self, stones: u32) -> ArtifactName {
        let file = match self {
            Plane::WinSeeds => "win.seeds".to_owned(),
            Plane::CandidateSeeds => "candidate.seeds".to_owned(),
            Plane::Seed(bound) => format!("{bound:02}.seed"),
            Plane::Won(bound) => format!("{bound:02}.won"),
            Plane::Lost(bound) => format!("{bound:02}.lost"),
            Plane::Decided(bound) => format!("{bound:02}.plane"),
        };
        ArtifactName::new(Plane::folder(stones) + &file).expect("names are made of letters, digits and slashes")
    }

    /// How the names of all planes of a database begin.
    pub(crate) fn folder(stones: u32) -> String {
        format!("planes/{stones:02}/")
    }

    /// What the artifact's content is called.
    pub(crate) fn content(self) -> &'static str {
        match self {
            Plane::WinSeeds => "win seeds",
            Plane::CandidateSeeds => "candidate seeds",
            Plane::Seed(_) => "seed",
            Plane::Won(_) => "won",
            Plane::Lost(_) => "lost",
            Plane::Decided(_) => "plane",
        }
    }

    pub(crate) fn orientation(self) -> Orientation {
        match self {
            Plane::WinSeeds | Plane::CandidateSeeds | Plane::Lost(_) => Orientation::MoverMajor,
            _ => Orientation::OpponentMajor,
        }
    }

    /// The bound, 0 for the files that have all.
    pub(crate) fn bound(self) -> u32 {
        match self {
            Plane::WinSeeds | Plane::CandidateSeeds => 0,
            Plane::Seed(bound) | Plane::Won(bound) | Plane::Lost(bound) | Plane::Decided(bound) => bound,
        }
    }

    /// The kind of file that artifacts of a content are, if they are planes.
    pub(crate) fn kind_of(content: &str, bound: u32) -> Option<FileKind> {
        let each = [Plane::Seed(bound), Plane::Won(bound), Plane::Lost(bound), Plane::Decided(bound)];
        let all = [Plane::WinSeeds, Plane::CandidateSeeds].into_iter().chain(each);
        all.into_iter().find(|plane| plane.content() == content).map(Plane::kind)
    }

    /// The plane of a role.
    pub(crate) fn of(role: Role, bound: u32) -> Plane {
        match role {
            Role::WinSeeds => Plane::WinSeeds,
            Role::CandidateSeeds => Plane::CandidateSeeds,
            Role::Seed => Plane::Seed(bound),
            Role::Won => Plane::Won(bound),
            Role::Lost => Plane::Lost(bound),
            Role::Decided => Plane::Decided(bound),
        }
    }

    pub(crate) fn kind(self) -> FileKind {
        let role = match self {
            Plane::WinSeeds => Role::WinSeeds,
            Plane::CandidateSeeds => Role::CandidateSeeds,
            Plane::Seed(_) => Role::Seed,
            Plane::Won(_) => Role::Won,
            Plane::Lost(_) => Role::Lost,
            Plane::Decided(_) => Role::Decided,
        };
        FileKind::Plane { role, bound: self.bound() as u8 }
    }

    fn identity(self, settings: &Settings, stones: u32) -> Identity {
        files::identity(settings.rules.name, settings.set, self.kind(), stones)
    }

    fn shape(self, layout: &PlaneLayout, stones: u32) -> Shape {
        let planes = if matches!(self, Plane::WinSeeds | Plane::CandidateSeeds) { stones } else { 1 };
        let slabs = layout
            .slabs()
            .iter()
            .map(|slab| SlabShape { rows: slab.rows as u32 * planes, columns: slab.row_words as u32 * 8 });
        Shape::new(slabs.collect()).expect("an index has 1 to 49 slabs, none of them empty")
    }
}

/// The next words of a plane.
pub(crate) enum Portion<'a> {
    /// So many that have no bit. Most of high bounds are such, and should cost next to nothing.
    Zeros(usize),
    /// Any.
    Words(&'a mut [u64]),
}

impl Portion<'_> {
    /// Bits that are set.
    pub(crate) fn count(&self, kernel: BitKernel) -> u64 {
        match self {
            Portion::Zeros(_) => 0,
            Portion::Words(words) => kernel.count(words),
        }
    }
}

/// Any byte is eight bits of a plane.
const RANGE: (i8, i8) = (i8::MIN, i8::MAX);

/// A plane being written.
pub(crate) struct PlaneWriter<'d> {
    writer: Writer<'d>,
}

impl<'d> PlaneWriter<'d> {
    /// Writes a file of planes of `index` at `path`.
    pub(crate) fn create(
        disk: &'d dyn Disk,
        path: &Path,
        settings: &Settings,
        index: &Index,
        plane: Plane,
    ) -> Result<PlaneWriter<'d>, StageError> {
        let layout = PlaneLayout::new(index, plane.orientation());
        let (identity, shape) = (plane.identity(settings, index.stones()), plane.shape(&layout, index.stones()));
        let range = ValueRange::new(RANGE.0, RANGE.1);
        let writer = Writer::create(disk, path, &identity, &shape, range, Codec::Zstd).map_err(files::unwritable)?;
        Ok(PlaneWriter { writer })
    }

    /// The artifact that a stage publishes.
    pub(crate) fn output(
        context: &'d StageContext,
        settings: &Settings,
        index: &Index,
        plane: Plane,
    ) -> Result<PlaneWriter<'d>, StageError> {
        let path = context.output(&plane.name(index.stones()));
        PlaneWriter::create(context.disk(), &path, settings, index, plane)
    }

    /// The next words.
    pub(crate) fn append(&mut self, portion: Portion<'_>) -> Result<(), StageError> {
        let appended = match portion {
            Portion::Zeros(words) => self.writer.append_zeros(words as u64 * 8),
            Portion::Words(words) => {
                words.iter_mut().for_each(|word| *word = word.to_le());
                self.writer.append(signed_of(disk::bytes_of_words(words)))
            }
        };
        appended.map_err(files::unwritable)
    }

    /// Publishes the file, and tells the digest of its content.
    pub(crate) fn finish(self) -> Result<Digest, StageError> {
        self.writer.finish().map(|written| written.digest).map_err(files::unwritable)
    }
}

/// Bytes that a reader holds of a file, compressed, besides a block.
const RUN_BYTES: u64 = 64 << 10;

/// The same of a plane that a stage reads alone, and in order: longer reads take less of a processor.
const LONG_RUN_BYTES: u64 = 512 << 10;

/// The same of a file of seeds: a plane of a group at once. It takes 15 KiB on average, 50 where most is decided, and behind
/// it stand those of other bounds, which are not wanted now and not read.
const SEEDS_RUN_BYTES: u64 = 128 << 10;

/// A file of planes being read, in order for the most part: it holds the blocks it read last, and one of them decoded.
pub(crate) struct PlaneReader {
    scores: Scores,
    run: Option<BlockRun>,
    run_bytes: u64,
    /// Whether what is behind words that are read will be wanted next.
    reads_on: bool,
    block: Option<usize>,
    bytes: Vec<i8>,
}

impl PlaneReader {
    pub(crate) fn open(
        disk: &dyn Disk,
        path: &Path,
        settings: &Settings,
        index: &Index,
        plane: Plane,
    ) -> Result<PlaneReader, StoreError> {
        let layout = PlaneLayout::new(index, plane.orientation());
        let shape = plane.shape(&layout, index.stones());
        let file = match plane {
            // Those of the next bound are behind.
            Plane::WinSeeds | Plane::CandidateSeeds => Scores::open_scattered(disk, path)?,
            _ => Scores::open_windowed(disk, path)?,
        };
        let scores = file.expect(&plane.identity(settings, index.stones()), &shape)?;
        Ok(PlaneReader { scores, run: None, run_bytes: RUN_BYTES, reads_on: true, block: None, bytes: Vec::new() })
    }

    /// An artifact that a stage reads.
    pub(crate) fn input(
        context: &StageContext,
        settings: &Settings,
        index: &Index,
        plane: Plane,
    ) -> Result<PlaneReader, StageError> {
        let name = plane.name(index.stones());
        PlaneReader::open(context.disk(), &context.input(&name), settings, index, plane)
            .map_err(|error| files::unreadable(&name, error))
    }

    /// The digest of the content, as the file says.
    pub(crate) fn digest(&self) -> Digest {
        self.scores.digest()
    }

    /// The same with reads of a share of so many bytes, for a stage that has so many readers and reads in order.
    #[must_use]
    pub(crate) fn with_share(self, bytes: u64, readers: u32) -> PlaneReader {
        PlaneReader { run_bytes: (bytes / u64::from(readers.max(1))).clamp(RUN_BYTES, LONG_RUN_BYTES), ..self }
    }

    /// The same with longer reads, for a stage that has few readers and reads in order.
    #[must_use]
    pub(crate) fn with_long_reads(self) -> PlaneReader {
        PlaneReader { run_bytes: LONG_RUN_BYTES, ..self }
    }

    /// Words of a plane, and whether any may have a bit. Blocks of zeros are known by the index and not read; those that
    /// are read as a whole are decoded on all threads.
    pub(crate) fn read(&mut self, words: Range<usize>, into: &mut [u64]) -> Result<bool, StoreError> {
        let into = &mut into[..words.len()];
        let mut any = false;
        let mut bytes = disk::signed_of_words_mut(into);
        let (mut at, end) = (words.start as u64 * 8, words.end as u64 * 8);
        let blocks_end = match self.reads_on || at == end {
            true => self.scores.block_count(),
            false => self.scores.block_of(end - 1) + 1,
        };
        while at < end {
            let block = match self.block {
                Some(block) if self.scores.block_range(block).contains(&at) => block,
                _ => self.scores.block_of(at),
            };
            let range = self.scores.block_range(block);
            let upto = end.min(range.end);
            if self.scores.is_zeros(block) {
                let (now, after) = bytes.split_at_mut((upto - at) as usize);
                now.fill(0);
                (bytes, at) = (after, upto);
                continue;
            }
            any = true;
            if at > range.start || range.end > end {
                self.hold(block..blocks_end)?;
                let (now, after) = bytes.split_at_mut((upto - at) as usize);
                now.copy_from_slice(&self.bytes[(at - range.start) as usize..(upto - range.start) as usize]);
                (bytes, at) = (after, upto);
                continue;
            }
            let (scores, run) =
                (&self.scores, run_with(&mut self.run, &self.scores, block..blocks_end, self.run_bytes)?);
            let blocks = (block..run.blocks().end).take_while(|&block| scores.block_range(block).end <= end);
            let pieces: Vec<_> = blocks
                .map(|block| {
                    let range = scores.block_range(block);
                    at = range.end;
                    let (now, after) = std::mem::take(&mut bytes).split_at_mut((range.end - range.start) as usize);
                    bytes = after;
                    (block, now)
                })
                .collect();
            pieces.into_par_iter().try_for_each(|(block, now)| scores.decode_block_of(run, block, now))?;
        }
        into.iter_mut().for_each(|word| *word = u64::from_le(*word));
        Ok(any)
    }

    /// Decodes the first of some blocks, all of which are wanted, unless it is the one held.
    fn hold(&mut self, blocks: Range<usize>) -> Result<(), StoreError> {
        let block = blocks.start;
        if self.block != Some(block) {
            let range = self.scores.block_range(block);
            self.bytes.resize((range.end - range.start) as usize, 0);
            self.block = None;
            let run = run_with(&mut self.run, &self.scores, blocks, self.run_bytes)?;
            self.scores.decode_block_of(run, block, &mut self.bytes)?;
            self.block = Some(block);
        }
        Ok(())
    }
}

/// The run held, if it has the first of the blocks, else the next.
fn run_with<'a>(
    held: &'a mut Option<BlockRun>,
    scores: &Scores,
    blocks: Range<usize>,
    bytes: u64,
) -> Result<&'a BlockRun, StoreError> {
    match held.take().filter(|run| run.blocks().contains(&blocks.start)) {
        Some(run) => Ok(held.insert(run)),
        None => Ok(held.insert(scores.read_run(blocks, bytes)?)),
    }
}

/// A file of seeds being read, bound by bound.
pub(crate) struct SeedsReader<'a> {
    name: ArtifactName,
    reader: PlaneReader,
    groups: &'a [Group],
    bounds: u32,
}

impl<'a> SeedsReader<'a> {
    /// `groups` are those of the plane's layout.
    pub(crate) fn input(
        context: &StageContext,
        settings: &Settings,
        index: &Index,
        plane: Plane,
        groups: &'a [Group],
    ) -> Result<SeedsReader<'a>, StageError> {
        let reader = PlaneReader::input(context, settings, index, plane)?;
        Ok(SeedsReader::new(plane.name(index.stones()), reader, index.stones(), groups))
    }

    /// Of a file that is open. It has a plane for each of so many bounds.
    pub(crate) fn new(name: ArtifactName, reader: PlaneReader, bounds: u32, groups: &'a [Group]) -> SeedsReader<'a> {
        let reader = PlaneReader { run_bytes: SEEDS_RUN_BYTES, reads_on: false, ..reader };
        SeedsReader { name, reader, groups, bounds }
    }

    /// Words of the plane of a bound, and whether any may have a bit.
    pub(crate) fn read(&mut self, bound: u32, words: Range<usize>, mut into: &mut [u64]) -> Result<bool, StageError> {
        let first = self.groups.partition_point(|group| group.words.end <= words.start);
        let mut any = false;
        for group in self.groups[first..].iter().take_while(|group| group.words.start < words.end) {
            let inside = words.start.max(group.words.start)..words.end.min(group.words.end);
            let (now, rest) = into.split_at_mut(inside.len());
            let start = group.seeds(bound, self.bounds).start + inside.start - group.words.start;
            let read = self.reader.read(start..start + inside.len(), now);
            any |= read.map_err(|error| files::unreadable(&self.name, error))?;
            into = rest;
        }
        Ok(any)
    }
}

/// A group of units in a file of seeds.
pub(crate) struct Group {
    pub(crate) slab: usize,
    pub(crate) rows: Range<usize>,
    /// Its words in a plane.
    pub(crate) words: Range<usize>,
    /// Its units, in the list of all.
    pub(crate) units: Range<usize>,
}

impl Group {
    /// The groups of a layout.
    pub(crate) fn all(units: &[PlaneUnit]) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (number, unit) in units.iter().enumerate() {
            match groups.last_mut() {
                Some(group) if group.slab == unit.slab && unit.words.end - group.words.start <= SEEDS_GROUP_WORDS => {
                    group.rows.end = unit.rows.end;
                    group.words.end = unit.words.end;
                    group.units.end = number + 1;
                }
                _ => groups.push(Group {
                    slab: unit.slab,
                    rows: unit.rows.clone(),
                    words: unit.words.clone(),
                    units: number..number + 1,
                }),
            }
        }
        groups
    }

    /// Where its words are in a file of seeds for so many bounds.
    fn seeds(&self, bound: u32, bounds: u32) -> Range<usize> {
        let first = self.words.start * bounds as usize + self.words.len() * (bounds - bound) as usize;
        first..first + self.words.len()
    }

    /// Its units, with the words of each in `words`, which has those of the group.
    pub(crate) fn split<'a>(
        &'a self,
        units: &'a [PlaneUnit],
        words: &'a mut [u64],
    ) -> Vec<(usize, &'a PlaneUnit, &'a mut [u64])> {
        let mut rest = words;
        let split = self.units.clone().map(|number| {
            let (now, after) = std::mem::take(&mut rest).split_at_mut(units[number].words.len());
            rest = after;
            (number, &units[number], now)
        });
        split.collect()
    }
}
