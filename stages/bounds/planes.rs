//! Files of planes: names, identities, readers and writers.
//!
//! A plane is stored as a matrix of bytes: a row of the file is a row of a slab, with little-endian words. A file of
//! seeds has one plane for each bound, interleaved by groups of units: slabs, groups in a slab, descending bounds in a
//! group.

use crate::distributed::{RankResult, TeamFile, TeamWriter};
use crate::files;
use disk::{Digest, Disk, signed_of};
use game::{Index, Orientation};
use messaging::{Alone, Communicator};
use pipeline::StageResult as Result;
use pipeline::{ArtifactName, StageContext};
use planner::{SEEDS_GROUP_WORDS, Settings};
use rayon::prelude::*;
use solvers::bounds::{BitKernel, PlaneLayout, PlaneUnit};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use store::{BlockRun, FileKind, Identity, PendingRun, Role, Scores, Shape, SlabShape, ValueRange};

/// A kind of file of planes, of one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaneFile {
    /// By bound, the positions with a best capture of that score, `MoverMajor`.
    WinSeeds,
    /// By bound, the positions in which captures prevent a loss at higher bounds only, `MoverMajor`.
    CandidateSeeds,
    /// Positions that a capture wins at the bound but not at higher ones, `OpponentMajor`.
    Seed(u32),
    /// Positions won at the bound but not at higher ones, `OpponentMajor`.
    Won(u32),
    /// Positions lost at the bound but not at higher ones, `MoverMajor`.
    Lost(u32),
    /// As [`Lost`](Self::Lost), `OpponentMajor`.
    Decided(u32),
}

impl PlaneFile {
    pub(crate) fn name(self, stones: u32) -> ArtifactName {
        let file = match self {
            PlaneFile::WinSeeds => "win.seeds".to_owned(),
            PlaneFile::CandidateSeeds => "candidate.seeds".to_owned(),
            PlaneFile::Seed(bound) => format!("{bound:02}.seed"),
            PlaneFile::Won(bound) => format!("{bound:02}.won"),
            PlaneFile::Lost(bound) => format!("{bound:02}.lost"),
            PlaneFile::Decided(bound) => format!("{bound:02}.plane"),
        };
        ArtifactName::new(PlaneFile::folder(stones) + &file).expect("names are made of letters, digits and slashes")
    }

    /// Returns the prefix of the names of all planes of a database.
    pub(crate) fn folder(stones: u32) -> String {
        format!("planes/{stones:02}/")
    }

    /// Returns the content of the artifact, in words.
    pub(crate) fn content(self) -> &'static str {
        match self {
            PlaneFile::WinSeeds => "win seeds",
            PlaneFile::CandidateSeeds => "candidate seeds",
            PlaneFile::Seed(_) => "seed",
            PlaneFile::Won(_) => "won",
            PlaneFile::Lost(_) => "lost",
            PlaneFile::Decided(_) => "plane",
        }
    }

    pub(crate) fn orientation(self) -> Orientation {
        match self {
            PlaneFile::WinSeeds | PlaneFile::CandidateSeeds | PlaneFile::Lost(_) => Orientation::MoverMajor,
            _ => Orientation::OpponentMajor,
        }
    }

    /// Returns the groups of units of the plane's layout.
    pub(crate) fn groups(self, index: &Index) -> Vec<UnitGroup> {
        UnitGroup::all(&PlaneLayout::new(index, self.orientation()).units())
    }

    /// Returns the bound, 0 for files with all bounds.
    pub(crate) fn bound(self) -> u32 {
        match self {
            PlaneFile::WinSeeds | PlaneFile::CandidateSeeds => 0,
            PlaneFile::Seed(bound) | PlaneFile::Won(bound) | PlaneFile::Lost(bound) | PlaneFile::Decided(bound) => {
                bound
            }
        }
    }

    /// Returns the kind of file for the content of an artifact, if that is a plane.
    pub(crate) fn kind_of(content: &str, bound: u32) -> Option<FileKind> {
        let each = [PlaneFile::Seed(bound), PlaneFile::Won(bound), PlaneFile::Lost(bound), PlaneFile::Decided(bound)];
        let all = [PlaneFile::WinSeeds, PlaneFile::CandidateSeeds].into_iter().chain(each);
        all.into_iter().find(|plane| plane.content() == content).map(PlaneFile::kind)
    }

    /// Returns the file for a role.
    pub(crate) fn of(role: Role, bound: u32) -> PlaneFile {
        match role {
            Role::WinSeeds => PlaneFile::WinSeeds,
            Role::CandidateSeeds => PlaneFile::CandidateSeeds,
            Role::Seed => PlaneFile::Seed(bound),
            Role::Won => PlaneFile::Won(bound),
            Role::Lost => PlaneFile::Lost(bound),
            Role::Decided => PlaneFile::Decided(bound),
        }
    }

    pub(crate) fn kind(self) -> FileKind {
        let role = match self {
            PlaneFile::WinSeeds => Role::WinSeeds,
            PlaneFile::CandidateSeeds => Role::CandidateSeeds,
            PlaneFile::Seed(_) => Role::Seed,
            PlaneFile::Won(_) => Role::Won,
            PlaneFile::Lost(_) => Role::Lost,
            PlaneFile::Decided(_) => Role::Decided,
        };
        FileKind::Plane { role, bound: self.bound() as u8 }
    }

    fn identity(self, settings: &Settings, stones: u32) -> Identity {
        files::identity(settings.rules.name, settings.set, self.kind(), stones)
    }

    fn shape(self, layout: &PlaneLayout, stones: u32) -> Shape {
        let planes = if matches!(self, PlaneFile::WinSeeds | PlaneFile::CandidateSeeds) { stones } else { 1 };
        let slabs = layout
            .slabs()
            .iter()
            .map(|slab| SlabShape { rows: slab.rows as u32 * planes, columns: slab.row_words as u32 * 8 });
        Shape::new(slabs.collect()).expect("an index has 1 to 49 slabs, none of them empty")
    }
}

/// Consecutive words of a plane.
pub(crate) enum PlanePortion<'a> {
    /// This many zero words. At high bounds most words are zero, and cost almost nothing.
    Zeros(usize),
    /// Words, which may be zero.
    Words(&'a mut [u64]),
}

impl PlanePortion<'_> {
    /// Returns the number of bits set.
    pub(crate) fn count(&self, kernel: BitKernel) -> u64 {
        match self {
            PlanePortion::Zeros(_) => 0,
            PlanePortion::Words(words) => kernel.count(words),
        }
    }
}

/// Range of the bytes of a plane: all.
const RANGE: (i8, i8) = (i8::MIN, i8::MAX);

/// Writer of the words of one rank of a file of planes.
pub(crate) struct PlaneWriter<'d> {
    writer: TeamWriter<'d>,
    /// The words of this rank.
    words: Range<usize>,
    /// The word that comes next. Words of other ranks are passed over.
    next: usize,
}

impl<'d> PlaneWriter<'d> {
    /// Creates a file of planes of `index` at `path`, alone.
    pub(crate) fn create(
        disk: &'d dyn Disk,
        path: &Path,
        settings: &Settings,
        index: &Index,
        plane: PlaneFile,
    ) -> Result<PlaneWriter<'d>> {
        Ok(PlaneWriter::begin(disk, path, settings, index, plane, false, &mut Alone)?)
    }

    /// Creates an output of a stage, alone.
    pub(crate) fn output(
        context: &'d StageContext,
        settings: &Settings,
        index: &Index,
        plane: PlaneFile,
    ) -> Result<PlaneWriter<'d>> {
        let path = context.output(&plane.name(index.stones()));
        PlaneWriter::create(context.disk(), &path, settings, index, plane)
    }

    /// Begins to write a file with the other ranks.
    pub(crate) fn begin(
        disk: &'d dyn Disk,
        path: &Path,
        settings: &Settings,
        index: &Index,
        plane: PlaneFile,
        is_shared: bool,
        communicator: &mut dyn Communicator,
    ) -> RankResult<PlaneWriter<'d>> {
        let layout = PlaneLayout::new(index, plane.orientation());
        let file = TeamFile {
            disk,
            path,
            identity: plane.identity(settings, index.stones()),
            shape: plane.shape(&layout, index.stones()),
            range: ValueRange::new(RANGE.0, RANGE.1),
            codec: settings.intermediates.planes_codec(),
            scratch: settings.scratch.as_deref(),
            is_shared,
        };
        let writer = file.begin(communicator)?;
        let words = words_of(&writer.positions());
        Ok(PlaneWriter { writer, next: words.start, words })
    }

    /// The words of this rank.
    pub(crate) fn words(&self) -> Range<usize> {
        self.words.clone()
    }

    /// The words of all ranks.
    pub(crate) fn words_of_all(&self) -> Vec<Range<usize>> {
        self.writer.positions_of_all().iter().map(words_of).collect()
    }

    /// Begins with a word that is not after the first one of this rank.
    pub(crate) fn begin_at(&mut self, word: usize) {
        assert!(word <= self.words.start && self.next == self.words.start, "no word is left out");
        self.next = word;
    }

    /// Returns those of the next words that are of this rank.
    fn own<'w>(&mut self, portion: PlanePortion<'w>) -> PlanePortion<'w> {
        let length = match &portion {
            PlanePortion::Zeros(words) => *words,
            PlanePortion::Words(words) => words.len(),
        };
        let first = self.next;
        self.next += length;
        let within = |word: usize| word.clamp(first, first + length) - first;
        let own = within(self.words.start)..within(self.words.end);
        match portion {
            PlanePortion::Zeros(_) => PlanePortion::Zeros(own.len()),
            PlanePortion::Words(words) => PlanePortion::Words(&mut words[own]),
        }
    }

    /// Appends words.
    pub(crate) fn append(&mut self, portion: PlanePortion<'_>) -> Result<()> {
        let portion = self.own(portion);
        self.append_own(portion)
    }

    /// Appends words, and returns the number of bits that are set in those of this rank.
    pub(crate) fn append_and_count(&mut self, portion: PlanePortion<'_>, kernel: BitKernel) -> Result<u64> {
        let portion = self.own(portion);
        let count = portion.count(kernel);
        self.append_own(portion).map(|()| count)
    }

    fn append_own(&mut self, portion: PlanePortion<'_>) -> Result<()> {
        match portion {
            PlanePortion::Zeros(words) => self.writer.append_zeros(words as u64 * 8),
            PlanePortion::Words(words) => {
                words.iter_mut().for_each(|word| *word = word.to_le());
                self.writer.append(signed_of(disk::bytes_of_words(words)))
            }
        }
    }

    /// Publishes the file of a machine alone, and returns the digest of its content.
    pub(crate) fn finish(self) -> Result<Digest> {
        Ok(self.finish_with(Ok(()), &mut Alone)?.expect("rank 0 has the digest"))
    }

    /// Publishes the file, and returns the digest of its content on rank 0. `appended` tells whether this rank appended all
    /// its words, or what prevented it.
    pub(crate) fn finish_with(
        self,
        appended: Result<()>,
        communicator: &mut dyn Communicator,
    ) -> RankResult<Option<Digest>> {
        self.writer.finish(appended, communicator)
    }
}

/// Returns the words of some bytes. Blocks are whole words.
fn words_of(bytes: &Range<u64>) -> Range<usize> {
    debug_assert!(bytes.start.is_multiple_of(8) && bytes.end.is_multiple_of(8));
    (bytes.start / 8) as usize..(bytes.end / 8) as usize
}

/// Compressed bytes that a reader holds, in addition to a decoded block.
const RUN_BYTES: u64 = 64 << 10;

/// The same for the only plane that a stage reads, in order: longer reads take less processor time.
const LONG_RUN_BYTES: u64 = 512 << 10;

/// The same for a file of seeds, of which one bound of a group is read: 15 KiB on average, 50 where most is decided.
/// Other bounds follow in the file and are not read.
const SEEDS_RUN_BYTES: u64 = 128 << 10;

/// Bytes of a group of seeds that are read at once, all bounds: 0.4 MiB on average.
const GROUP_BYTES: u64 = 1 << 20;

/// How many times as many words as a read of seeds wants are read ahead of the next reads.
const AHEAD_TIMES: usize = 4;

/// Reader of a file of planes, mostly in order. It holds the blocks of the last read, and one of them decoded.
pub(crate) struct PlaneReader {
    scores: Arc<Scores>,
    held: HeldRuns,
    /// Whether reads are sequential, so that long ones pay.
    reads_on: bool,
    /// Whether blocks are decoded on all threads.
    is_parallel: bool,
    block: Option<usize>,
    bytes: Vec<i8>,
}

/// The stored blocks that a reader holds.
struct HeldRuns {
    run: Option<BlockRun>,
    /// A run that is being read.
    ahead: Option<PendingRun>,
    /// Bytes of a run, at most.
    bytes: u64,
    /// Whether each read starts the next one.
    reads_ahead: bool,
}

impl HeldRuns {
    fn of_bytes(bytes: u64) -> HeldRuns {
        HeldRuns { run: None, ahead: None, bytes, reads_ahead: false }
    }

    /// Returns the held run if it has the first of the blocks, else the run that was started if it has that, else reads
    /// the next run.
    fn with(&mut self, scores: &Scores, blocks: Range<usize>) -> store::Result<&BlockRun> {
        let has_first = |run: &Range<usize>| run.contains(&blocks.start);
        let run = match self.run.take() {
            Some(run) if has_first(&run.blocks()) => run,
            _ => {
                let run = match self.ahead.take() {
                    Some(run) if has_first(&run.blocks()) => scores.finish_run(run)?,
                    _ => scores.read_run(blocks.clone(), self.bytes)?,
                };
                if self.reads_ahead {
                    self.start(scores, run.blocks().end..blocks.end);
                }
                run
            }
        };
        Ok(self.run.insert(run))
    }

    /// Starts to read the first of the blocks that are not zeros.
    fn start(&mut self, scores: &Scores, blocks: Range<usize>) {
        let Some(blocks) = without_leading_zeros(scores, blocks) else { return };
        let is_there = self.run.as_ref().is_some_and(|run| run.blocks().contains(&blocks.start))
            || self.ahead.as_ref().is_some_and(|run| run.blocks().contains(&blocks.start));
        if !is_there {
            self.ahead = Some(scores.start_run(blocks, self.bytes));
        }
    }
}

/// Returns the blocks from the first on that is not zeros.
fn without_leading_zeros(scores: &Scores, mut blocks: Range<usize>) -> Option<Range<usize>> {
    let end = blocks.end;
    blocks.find(|&block| !scores.is_zeros(block)).map(|first| first..end)
}

impl PlaneReader {
    pub(crate) fn open(
        disk: &dyn Disk,
        path: &Path,
        settings: &Settings,
        index: &Index,
        plane: PlaneFile,
    ) -> store::Result<PlaneReader> {
        let layout = PlaneLayout::new(index, plane.orientation());
        let shape = plane.shape(&layout, index.stones());
        let file = match plane {
            // The next bound follows.
            PlaneFile::WinSeeds | PlaneFile::CandidateSeeds => Scores::open_scattered(disk, path)?,
            _ => Scores::open_windowed(disk, path)?,
        };
        let scores = file.expect(&plane.identity(settings, index.stones()), &shape)?;
        Ok(PlaneReader::of(Arc::new(scores)))
    }

    fn of(scores: Arc<Scores>) -> PlaneReader {
        PlaneReader {
            scores,
            held: HeldRuns::of_bytes(RUN_BYTES),
            reads_on: true,
            is_parallel: true,
            block: None,
            bytes: Vec::new(),
        }
    }

    /// Returns another reader of the file, with the same index.
    pub(crate) fn another(&self) -> PlaneReader {
        PlaneReader::of(Arc::clone(&self.scores))
    }

    /// Opens an input of a stage.
    pub(crate) fn input(context: &StageContext, settings: &Settings, index: &Index, plane: PlaneFile) -> Result<Self> {
        let name = plane.name(index.stones());
        PlaneReader::open(context.disk(), &context.input(&name), settings, index, plane)
            .map_err(|error| files::unreadable(&name, error))
    }

    /// Returns the digest of the content, from the header.
    pub(crate) fn digest(&self) -> Digest {
        self.scores.digest()
    }

    /// Returns the reader with its share of `bytes`, for a stage with this many readers that reads in order. It reads ahead.
    #[must_use]
    pub(crate) fn with_share(self, bytes: u64, readers: u32) -> PlaneReader {
        // One run is held, and one read ahead.
        let bytes = (bytes / 2 / u64::from(readers.max(1))).clamp(RUN_BYTES, LONG_RUN_BYTES);
        PlaneReader { held: HeldRuns { reads_ahead: true, ..HeldRuns::of_bytes(bytes) }, ..self }
    }

    /// Returns the reader with longer reads, for a stage with few readers that reads in order. It reads ahead.
    #[must_use]
    pub(crate) fn with_long_reads(self) -> PlaneReader {
        PlaneReader { held: HeldRuns { reads_ahead: true, ..HeldRuns::of_bytes(LONG_RUN_BYTES) }, ..self }
    }

    /// Returns the reader with reads of a file of seeds, which end with the wanted words: the next bound follows.
    fn for_seeds(self) -> PlaneReader {
        PlaneReader { held: HeldRuns::of_bytes(SEEDS_RUN_BYTES), reads_on: false, ..self }
    }

    /// Returns the blocks that have some words, at least one.
    fn blocks_of(&self, words: Range<usize>) -> Range<usize> {
        let [first, last] = [words.start, words.end - 1].map(|word| self.scores.block_of(word as u64 * 8));
        first..last + 1
    }

    /// Starts to read the first of the blocks of some words, as many as `bytes` hold; see [`hold_run`](Self::hold_run).
    fn start_run(&self, words: Range<usize>, bytes: u64) -> PendingRun {
        self.scores.start_run(self.blocks_of(words), bytes)
    }

    /// As [`start_run`](Self::start_run), from the first block on that is not zeros, if there is one; as many bytes as
    /// this reader reads at a time.
    fn start_run_without_zeros(&self, words: Range<usize>) -> Option<PendingRun> {
        let blocks = without_leading_zeros(&self.scores, self.blocks_of(words))?;
        Some(self.scores.start_run(blocks, self.held.bytes))
    }

    /// Completes a read, and holds its blocks.
    fn hold_run(&mut self, run: PendingRun) -> store::Result<()> {
        self.held.run = Some(self.scores.finish_run(run)?);
        Ok(())
    }

    /// Reads words of a plane, and returns whether any may have a bit. Blocks of zeros are known from the index and not
    /// read; blocks that are needed whole are decoded on all threads.
    pub(crate) fn read(&mut self, words: Range<usize>, into: &mut [u64]) -> store::Result<bool> {
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
            let (scores, run) = (&self.scores, self.held.with(&self.scores, block..blocks_end)?);
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
            let decode = |(block, now): (usize, &mut [i8])| scores.decode_block_of(run, block, now);
            match self.is_parallel {
                true => pieces.into_par_iter().try_for_each(decode)?,
                false => pieces.into_iter().try_for_each(decode)?,
            }
        }
        into.iter_mut().for_each(|word| *word = u64::from_le(*word));
        Ok(any)
    }

    /// Decodes the first of the blocks, unless it is held; the others will be read next.
    fn hold(&mut self, blocks: Range<usize>) -> store::Result<()> {
        let block = blocks.start;
        if self.block != Some(block) {
            let range = self.scores.block_range(block);
            self.bytes.resize((range.end - range.start) as usize, 0);
            self.block = None;
            let run = self.held.with(&self.scores, blocks)?;
            self.scores.decode_block_of(run, block, &mut self.bytes)?;
            self.block = Some(block);
        }
        Ok(())
    }
}

/// Reader of a file of seeds, bound by bound.
pub(crate) struct SeedsReader<'a> {
    name: ArtifactName,
    reader: PlaneReader,
    groups: &'a [UnitGroup],
    bounds: u32,
    /// Readers of single threads that none uses now.
    of_threads: Mutex<Vec<PlaneReader>>,
    /// Reads that [`read_on`](Self::read_on) has started, by their first word in the file.
    ahead: Mutex<HashMap<usize, PendingRun>>,
}

impl<'a> SeedsReader<'a> {
    /// Opens an input of a stage. `groups` are those of the layout of the plane.
    pub(crate) fn input(
        context: &StageContext,
        settings: &Settings,
        index: &Index,
        plane: PlaneFile,
        groups: &'a [UnitGroup],
    ) -> Result<SeedsReader<'a>> {
        let reader = PlaneReader::input(context, settings, index, plane)?;
        Ok(SeedsReader::new(plane.name(index.stones()), reader, index.stones(), groups))
    }

    /// Returns the reader of an open file with this many bounds.
    pub(crate) fn new(name: ArtifactName, reader: PlaneReader, bounds: u32, groups: &'a [UnitGroup]) -> Self {
        let (of_threads, ahead) = (Mutex::default(), Mutex::default());
        SeedsReader { name, reader: reader.for_seeds(), groups, bounds, of_threads, ahead }
    }

    /// Returns the reader of one thread for all bounds of a group, of which [`hold`](Self::hold) has got the blocks.
    #[must_use]
    pub(crate) fn by_group(self) -> Self {
        SeedsReader { reader: PlaneReader { is_parallel: false, ..self.reader }, ..self }
    }

    /// Reads words of the plane of a bound, and returns whether any may have a bit.
    pub(crate) fn read(&mut self, bound: u32, words: Range<usize>, into: &mut [u64]) -> Result<bool> {
        let mut parts = self.parts(bound, words, into);
        match &mut parts[..] {
            [(words, into)] => {
                let read = self.reader.read(words.clone(), into);
                read.map_err(|error| files::unreadable(&self.name, error))
            }
            _ => {
                let parts = parts.into_iter().map(|(words, into)| (words, into, None));
                Ok(self.read_parts(parts.collect())?.contains(&true))
            }
        }
    }

    /// As [`read`](Self::read), but returns whether there may be a bit for each group in which some of the words are.
    /// Starts to read the words that follow.
    pub(crate) fn read_on(&self, bound: u32, words: Range<usize>, into: &mut [u64]) -> Result<Vec<bool>> {
        let parts = {
            let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
            let parts = self.parts(bound, words.clone(), into).into_iter().map(|(words, into)| {
                let run = ahead.remove(&words.start);
                let run = run.or_else(|| self.reader.start_run_without_zeros(words.clone()));
                (words, into, run)
            });
            let parts = parts.collect();
            let end = self.groups.last().map_or(0, |group| group.words.end);
            let next = words.end..end.min(words.end + AHEAD_TIMES * words.len());
            // Reads of words that were passed over are cancelled.
            let mut started = std::mem::take(&mut *ahead);
            ahead.extend(self.words_of(bound, next).filter_map(|words| {
                let run = started.remove(&words.start);
                Some((words.start, run.or_else(|| self.reader.start_run_without_zeros(words))?))
            }));
            parts
        };
        self.read_parts(parts)
    }

    /// Returns the words of the file for words of the plane of a bound: those in each group.
    fn words_of(&self, bound: u32, words: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let first = self.groups.partition_point(|group| group.words.end <= words.start);
        let inside = self.groups[first..].iter().take_while(move |group| group.words.start < words.end);
        inside.map(move |group| {
            let inside = words.start.max(group.words.start)..words.end.min(group.words.end);
            let start = group.seeds(bound, self.bounds).start + inside.start - group.words.start;
            start..start + inside.len()
        })
    }

    /// Returns the words of the file for words of the plane of a bound, and where those in each group are read to.
    fn parts<'w>(
        &self,
        bound: u32,
        words: Range<usize>,
        mut into: &'w mut [u64],
    ) -> Vec<(Range<usize>, &'w mut [u64])> {
        let parts = self.words_of(bound, words).map(|words| {
            let (now, rest) = std::mem::take(&mut into).split_at_mut(words.len());
            into = rest;
            (words, now)
        });
        parts.collect()
    }

    /// Reads words of the file, in parts of different groups, on all threads; reads may have been started. The parts lie
    /// far from each other.
    fn read_parts(&self, parts: Vec<(Range<usize>, &mut [u64], Option<PendingRun>)>) -> Result<Vec<bool>> {
        let readers = || self.of_threads.lock().unwrap_or_else(PoisonError::into_inner);
        let reader_of_thread = || PlaneReader { is_parallel: false, ..self.reader.another().for_seeds() };
        let read = |(words, into, run): (Range<usize>, &mut [u64], Option<PendingRun>)| {
            let mut reader = readers().pop().unwrap_or_else(reader_of_thread);
            let held = run.map_or(Ok(()), |run| reader.hold_run(run));
            let any = held.and_then(|()| reader.read(words, into));
            readers().push(reader);
            any.map_err(|error| files::unreadable(&self.name, error))
        };
        parts.into_par_iter().map(read).collect()
    }

    /// Starts to read a group, all bounds, the highest first.
    pub(crate) fn start_group(&self, group: &UnitGroup) -> PendingRun {
        let words = group.seeds(self.bounds, self.bounds).start..group.seeds(1, self.bounds).end;
        self.reader.start_run(words, GROUP_BYTES)
    }

    /// Completes such a read, so that the next reads of the group find its blocks.
    pub(crate) fn hold(&mut self, run: PendingRun) -> Result<()> {
        self.reader.hold_run(run).map_err(|error| files::unreadable(&self.name, error))
    }
}

/// A group of units in a file of seeds.
pub(crate) struct UnitGroup {
    pub(crate) slab: usize,
    pub(crate) rows: Range<usize>,
    pub(crate) words: Range<usize>,
    /// Units, in the list of all.
    pub(crate) units: Range<usize>,
}

impl UnitGroup {
    /// Returns the groups of a layout.
    pub(crate) fn all(units: &[PlaneUnit]) -> Vec<UnitGroup> {
        let mut groups: Vec<UnitGroup> = Vec::new();
        for (number, unit) in units.iter().enumerate() {
            match groups.last_mut() {
                Some(group) if group.slab == unit.slab && unit.words.end - group.words.start <= SEEDS_GROUP_WORDS => {
                    group.rows.end = unit.rows.end;
                    group.words.end = unit.words.end;
                    group.units.end = number + 1;
                }
                _ => groups.push(UnitGroup {
                    slab: unit.slab,
                    rows: unit.rows.clone(),
                    words: unit.words.clone(),
                    units: number..number + 1,
                }),
            }
        }
        groups
    }

    /// Returns the words of the group in a file of seeds with this many bounds.
    fn seeds(&self, bound: u32, bounds: u32) -> Range<usize> {
        let first = self.words.start * bounds as usize + self.words.len() * (bounds - bound) as usize;
        first..first + self.words.len()
    }

    /// Returns the consecutive groups that overlap `words`. `words` counts those of all `planes` planes of a group.
    pub(crate) fn overlapping<'g>(groups: &'g [UnitGroup], words: &Range<usize>, planes: usize) -> &'g [UnitGroup] {
        let first = groups.partition_point(|group| group.words.end * planes <= words.start);
        let end = groups.partition_point(|group| group.words.start * planes < words.end);
        &groups[first.min(end)..end]
    }

    /// Returns the words of consecutive groups.
    pub(crate) fn words_of_all(groups: &[UnitGroup]) -> Range<usize> {
        match groups {
            [first, .., last] => first.words.start..last.words.end,
            [one] => one.words.clone(),
            [] => 0..0,
        }
    }

    /// Splits `words`, which are those of the group, by units.
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
