//! The planes of what a bound decides, which all ranks of a job write, and what each rank remembers and counts of them.

use super::planes::{PlaneFile, PlanePortion, PlaneReader, PlaneWriter, SeedsReader, UnitGroup};
use super::planes_above::UnionReader;
use super::team::{PlaneMember, PlaneTask};
use super::transpose::TransposedReader;
use crate::distributed::RankResult;
use crate::files;
use disk::{DiskError, ScratchFile};
use messaging::Communicator;
use pipeline::{StageError, StageResult as Result};
use solvers::bounds::BitKernel;
use solvers::bounds::ranks::{Decided, PlaneRun, RankSolver};
use std::ops::{ControlFlow, Range};

/// Words of planes that are read at a time.
const UNION_WORDS: usize = 64 << 10;

/// A plane of what a bound decides, with the captures at the bound.
pub(super) enum DecidedPlane<'a> {
    /// Positions won: those that the ranks found, and those that a capture wins.
    Won { by_capture: PlaneReader, so_far: Option<WonSoFar> },
    /// Positions lost, and the positions that a capture made candidates, if they are counted.
    Lost { candidates: Option<SeedsReader<'a>> },
}

/// The words of a plane that this rank has written.
pub(super) struct WrittenPlane {
    pub(super) words: Range<usize>,
    /// Positions in these words.
    pub(super) count: u64,
    /// Those of them that score what their best capture does, unless that could not be read.
    pub(super) best_captures: Option<u64>,
    /// Wins at this bound and those above, of positions won.
    pub(super) so_far: Option<WonSoFar>,
}

/// Writes the words of this rank of a plane, and adds those of positions won to the wins so far.
pub(super) fn write(
    member: &PlaneMember,
    plane: DecidedPlane,
    planes: &mut dyn RankSolver<DiskError>,
    communicator: &mut dyn Communicator,
) -> RankResult<WrittenPlane> {
    let PlaneTask { stones, bound, .. } = *member.task;
    let (file, decided) = match plane {
        DecidedPlane::Won { .. } => (PlaneFile::Won(bound), Decided::Won),
        DecidedPlane::Lost { .. } => (PlaneFile::Lost(bound), Decided::Lost),
    };
    let writer = member.create(file, communicator)?;
    let (words, ranges) = (writer.words(), writer.words_of_all());
    let (next, best_captures, kernel) = (words.start, Some(0), BitKernel::detect());
    let mut part =
        PlanePart { stones, bound, plane, writer, next, count: 0, best_captures, captures: Vec::new(), kernel };
    let mut taken = Ok(());
    let mut sink = |run: PlaneRun| {
        taken = part.take(run);
        if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    if !planes.collect(decided, &ranges, communicator, &mut sink)? && taken.is_ok() {
        // The rank whose sink broke reports the error.
        taken = Err(StageError::Stopped);
    }
    let PlanePart { plane, writer, count, best_captures, .. } = part;
    writer.finish_with(taken, communicator)?;
    let so_far = match plane {
        DecidedPlane::Won { so_far, .. } => so_far.map(|so_far| WonSoFar { bound, ..so_far }),
        DecidedPlane::Lost { .. } => None,
    };
    Ok(WrittenPlane { words, count, best_captures, so_far })
}

/// The words of this rank of a plane while it is written.
struct PlanePart<'d, 'a> {
    stones: u32,
    bound: u32,
    plane: DecidedPlane<'a>,
    writer: PlaneWriter<'d>,
    /// The word that comes next.
    next: usize,
    count: u64,
    best_captures: Option<u64>,
    captures: Vec<u64>,
    kernel: BitKernel,
}

impl PlanePart<'_, '_> {
    /// Appends the next words that the ranks found.
    fn take(&mut self, run: PlaneRun) -> Result<()> {
        match run {
            PlaneRun::Words(words) => self.append(words.len(), Some(words)),
            PlaneRun::Zeros(words) => {
                let end = self.next + words;
                while self.next < end {
                    self.append(UNION_WORDS.min(end - self.next), None)?;
                }
                Ok(())
            }
        }
    }

    /// Appends the next words: those that the ranks found, `None` if all are zero, with wins by captures.
    fn append(&mut self, words: usize, found: Option<&mut [u64]>) -> Result<()> {
        let words = self.next..self.next + words;
        self.next = words.end;
        let has_captures = self.read_captures(words.clone(), found.is_some())?;
        if has_captures {
            if let (DecidedPlane::Lost { .. }, Some(found)) = (&self.plane, &found) {
                self.captures.iter_mut().zip(&**found).for_each(|(captures, found)| *captures &= found);
            }
            self.best_captures = self.best_captures.map(|best| best + self.kernel.count(&self.captures));
        }
        let portion = match (&self.plane, found) {
            (DecidedPlane::Won { .. }, found) if has_captures => {
                let found = found.unwrap_or_default();
                self.captures.iter_mut().zip(found).for_each(|(won, found)| *won |= *found);
                PlanePortion::Words(&mut self.captures)
            }
            (_, Some(found)) => PlanePortion::Words(found),
            (_, None) => PlanePortion::Zeros(words.len()),
        };
        if let (DecidedPlane::Won { so_far: Some(so_far), .. }, PlanePortion::Words(won)) = (&mut self.plane, &portion)
        {
            so_far.add(words.start, won)?;
        }
        self.count += self.writer.append_and_count(portion, self.kernel)?;
        Ok(())
    }

    /// Reads the captures in some words, and returns whether there may be any. Candidates are read only where
    /// positions lost `are_found`.
    fn read_captures(&mut self, words: Range<usize>, are_found: bool) -> Result<bool> {
        let (stones, bound) = (self.stones, self.bound);
        self.captures.resize(words.len(), 0);
        match &mut self.plane {
            DecidedPlane::Won { by_capture, .. } => {
                let read = by_capture.read(words, &mut self.captures);
                read.map_err(|error| files::unreadable(&PlaneFile::Seed(bound).name(stones), error))
            }
            DecidedPlane::Lost { candidates: Some(candidates) } if are_found => {
                let read = candidates.read(bound, words, &mut self.captures);
                // No reason to lose the bound.
                Ok(read.unwrap_or_else(|_| {
                    self.best_captures = None;
                    false
                }))
            }
            DecidedPlane::Lost { .. } => Ok(false),
        }
    }
}

/// Wins at a bound and those above, in the words of this rank of a plane, in a scratch file.
pub(super) struct WonSoFar {
    pub(super) stones: u32,
    pub(super) bound: u32,
    words: Range<usize>,
    file: Box<dyn ScratchFile>,
    buffer: Vec<u64>,
}

impl WonSoFar {
    /// Loads the planes of the bounds above that of the task.
    pub(super) fn load(member: &PlaneMember, words: Range<usize>) -> Result<WonSoFar> {
        let PlaneTask { stones, bound, .. } = *member.task;
        let planes = member.path(&PlaneFile::Seed(bound).name(stones))?;
        let path = member.settings().scratch.as_deref().or(planes.parent()).unwrap_or(planes).join("won-so-far");
        let file = member.disk.scratch(&path, words.len() as u64 * 8)?;
        let mut won = WonSoFar { stones, bound: bound + 1, words: words.clone(), file, buffer: Vec::new() };
        let mut planes =
            UnionReader::open(stones, (bound + 1..=stones).map(PlaneFile::Won), |plane| member.open(plane))?;
        let mut read = Vec::new();
        for first in words.clone().step_by(UNION_WORDS) {
            member.stop()?;
            if planes.read(first..words.end.min(first + UNION_WORDS), &mut read)? {
                won.add(first, &read)?;
            }
        }
        Ok(won)
    }

    /// Whether it has these words, at this bound.
    pub(super) fn is_at(&self, stones: u32, bound: u32, words: &Range<usize>) -> bool {
        (self.stones, self.bound, &self.words) == (stones, bound, words)
    }

    /// Reads words, from word `first` on.
    pub(super) fn read(&self, first: usize, into: &mut [u64]) -> Result<()> {
        let place = (first - self.words.start) as u64 * 8;
        Ok(self.file.read_at(place, disk::bytes_of_words_mut(into))?)
    }

    /// Adds words of a plane, from word `first` on.
    fn add(&mut self, first: usize, words: &[u64]) -> Result<()> {
        let mut all = std::mem::take(&mut self.buffer);
        all.resize(words.len(), 0);
        self.read(first, &mut all)?;
        all.iter_mut().zip(words).for_each(|(all, new)| *all |= new);
        let place = (first - self.words.start) as u64 * 8;
        self.file.write_at(place, disk::bytes_of_words(&all))?;
        self.buffer = all;
        Ok(())
    }

    /// Counts the positions in some of the words that a capture makes candidates at any bound, and that are not won.
    pub(super) fn count_other_candidates(&self, member: &PlaneMember, words: Range<usize>) -> Result<u64> {
        let (index, stones) = (&member.index, self.stones);
        let groups = PlaneFile::Won(1).groups(index);
        let groups = UnitGroup::overlapping(&groups, &words, 1);
        let end = groups.last().map_or(0, |group| group.words.end);
        let bytes = member.plan().memory().transposed_bytes as usize;
        let mut transposed = TransposedReader::new(index, PlaneFile::Won(1).orientation(), bytes).until(end);
        let groups_of_seeds = PlaneFile::CandidateSeeds.groups(index);
        let mut seeds = member.open_seeds(PlaneFile::CandidateSeeds, &groups_of_seeds)?;
        let (mut of_bound, mut candidates, mut won) = (Vec::new(), Vec::new(), Vec::new());
        let (mut count, kernel) = (0, BitKernel::detect());
        for group in groups {
            candidates.resize(group.words.len(), 0);
            let read = |words, into: &mut [u64]| seeds.read_union(1..=stones, words, into, &mut of_bound);
            if !transposed.read(group.slab, group.rows.clone(), &mut candidates, || member.stop(), read)? {
                continue;
            }
            let mine = words.start.max(group.words.start)..words.end.min(group.words.end);
            let candidates = &mut candidates[mine.start - group.words.start..mine.end - group.words.start];
            won.resize(mine.len(), 0);
            self.read(mine.start, &mut won)?;
            candidates.iter_mut().zip(&won).for_each(|(candidates, won)| *candidates &= !won);
            count += kernel.count(candidates);
        }
        Ok(count)
    }
}
