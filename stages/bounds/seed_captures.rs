//! Captures, restored from the seeds that were made from them.

use super::planes::{PlaneFile, PlaneReader, SeedsReader, UnitGroup};
use game::{Index, Score};
use pipeline::StageResult as Result;
use solvers::bounds::{BitKernel, PlaneLayout};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use store::PendingRun;

/// The two files of seeds of a database, win seeds first.
pub(crate) const SEEDS: [PlaneFile; 2] = [PlaneFile::WinSeeds, PlaneFile::CandidateSeeds];

/// Reader of the captures of a database, by several threads. A position without moves, whose value is its
/// score, reads like one without captures: both are candidates of the highest bound.
pub(crate) struct SeedCaptures<'a> {
    index: &'a Index,
    layout: PlaneLayout,
    groups: &'a [UnitGroup],
    files: [PlaneReader; 2],
    /// Readers that no thread uses now.
    readers: Mutex<Vec<ThreadReaders<'a>>>,
    /// Groups that are being read, ascending, in both files.
    ahead: Mutex<VecDeque<(usize, [PendingRun; 2])>>,
}

struct ThreadReaders<'a> {
    files: [SeedsReader<'a>; 2],
    words: Vec<u64>,
}

impl<'a> SeedCaptures<'a> {
    /// Returns a reader of open `files`: [`SEEDS`]. `groups` are those of the layout of both.
    pub(crate) fn new(index: &'a Index, files: [PlaneReader; 2], groups: &'a [UnitGroup]) -> SeedCaptures<'a> {
        let layout = PlaneLayout::new(index, PlaneFile::CandidateSeeds.orientation());
        SeedCaptures { index, layout, groups, files, readers: Mutex::default(), ahead: Mutex::default() }
    }

    /// Returns the first positions of the groups of seeds, in ascending order. Reads that end there read nothing twice.
    pub(crate) fn cuts(&self) -> Vec<u64> {
        let first = |group: &UnitGroup| {
            let (slab, offset) = (&self.layout.slabs()[group.slab], self.index.slabs()[group.slab].offset);
            offset + (group.rows.start * slab.columns) as u64
        };
        self.groups.iter().map(first).collect()
    }

    /// Reads the best captures of whole rows from position `first` on. Threads that read groups in order find
    /// the next ones read ahead.
    pub(crate) fn read(&self, first: u64, out: &mut [Score]) -> Result<()> {
        let readers = || self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reader = readers().pop().unwrap_or_else(|| self.reader());
        self.read_with(&mut reader, first, out)?;
        readers().push(reader);
        Ok(())
    }

    fn reader(&self) -> ThreadReaders<'a> {
        let stones = self.index.stones();
        let file = |at: usize| {
            let (plane, file) = (SEEDS[at], self.files[at].another());
            SeedsReader::new(plane.name(stones), file, stones, self.groups).by_group()
        };
        ThreadReaders { files: [file(0), file(1)], words: Vec::new() }
    }

    /// Returns the runs of a group if its read was started, and starts those of the next groups: one for each thread.
    fn take_ahead(&self, group: usize, files: &[SeedsReader<'a>; 2]) -> Option<[PendingRun; 2]> {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let threads = rayon::current_num_threads();
        // Groups that were passed over are dropped, and so are those from before a jump.
        ahead.retain(|&(number, _)| (group.saturating_sub(threads)..=group + threads).contains(&number));
        let at = ahead.iter().position(|&(number, _)| number == group);
        let found = at.and_then(|at| ahead.remove(at)).map(|(_, runs)| runs);
        let next = ahead.back().map_or(group + 1, |&(number, _)| (number + 1).max(group + 1));
        for next in next..self.groups.len().min(group + threads + 1) {
            ahead.push_back((next, files.each_ref().map(|file| file.start_group(&self.groups[next]))));
        }
        found
    }

    fn read_with(&self, reader: &mut ThreadReaders<'a>, first: u64, out: &mut [Score]) -> Result<()> {
        let number = self.index.slabs().partition_point(|slab| slab.offset <= first) - 1;
        let slab = &self.layout.slabs()[number];
        let row = (first - self.index.slabs()[number].offset) as usize / slab.columns;
        let words = slab.word(row)..slab.word(row + out.len() / slab.columns);
        let group = self.groups.partition_point(|group| group.words.end <= words.start);
        if self.groups[group].words.start == words.start
            && let Some(runs) = self.take_ahead(group, &reader.files)
        {
            reader.files.iter_mut().zip(runs).try_for_each(|(file, run)| file.hold(run))?;
        }
        let ThreadReaders { files: [wins, candidates], words: buffer } = reader;
        buffer.resize(words.len(), 0);
        let (stones, kernel) = (self.index.stones(), BitKernel::detect());
        out.fill(0);
        for bound in (1..=stones).rev() {
            let value = bound as Score;
            if wins.read(bound, words.clone(), buffer)? {
                kernel.set(out, slab.columns, value, buffer);
            }
            if candidates.read(bound, words.clone(), buffer)? {
                let value = if bound == stones { solvers::capture::none(stones) } else { -value };
                kernel.set(out, slab.columns, value, buffer);
            }
        }
        Ok(())
    }
}
