//! Writer of a file of planes.

use super::PlaneFile;
use crate::distributed::{RankResult, TeamFile, TeamWriter};
use disk::{Digest, Disk, signed_of};
use game::Index;
use messaging::{Alone, Communicator};
use pipeline::StageContext;
use pipeline::StageResult as Result;
use planner::Settings;
use solvers::bounds::{BitKernel, PlaneLayout};
use std::ops::Range;
use std::path::Path;
use store::ValueRange;

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
            starts: None,
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

    /// Publishes the file, and returns the digest of its content on rank 0. `appended` tells whether this
    /// rank appended all its words, or what prevented it.
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
