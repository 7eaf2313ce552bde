//! Reader of a file of seeds.

use super::reader::PlaneReader;
use super::{PlaneFile, UnitGroup};
use crate::files;
use disk::Digest;
use game::Index;
use pipeline::{ArtifactName, StageContext, StageResult as Result};
use planner::Settings;
use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};
use std::sync::{Mutex, PoisonError};
use store::PendingRun;

/// Bytes of a group of seeds that are read at once, all bounds: 0.4 MiB on average.
const GROUP_BYTES: u64 = 1 << 20;

/// How many times as many words as a read of seeds wants are read ahead of the next reads.
const AHEAD_TIMES: usize = 4;

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

    /// Returns the digest of the content, from the header.
    pub(crate) fn digest(&self) -> Digest {
        self.reader.digest()
    }

    /// Returns the reader of one thread for all bounds of a group, of which [`hold`](Self::hold) has got the blocks.
    #[must_use]
    pub(crate) fn by_group(self) -> Self {
        SeedsReader { reader: self.reader.on_one_thread(), ..self }
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

    /// Reads words of the union of the planes of some bounds, and returns whether any may have a bit.
    /// `of_bound` is a buffer.
    pub(crate) fn read_union(
        &mut self,
        bounds: RangeInclusive<u32>,
        words: Range<usize>,
        into: &mut [u64],
        of_bound: &mut Vec<u64>,
    ) -> Result<bool> {
        into.fill(0);
        of_bound.resize(words.len(), 0);
        let mut any = false;
        // In the order of the file.
        for bound in bounds.rev() {
            if self.read(bound, words.clone(), of_bound)? {
                into.iter_mut().zip(&*of_bound).for_each(|(all, new)| *all |= new);
                any = true;
            }
        }
        Ok(any)
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

    /// As [`read`](Self::read), of words that are not followed by others, by any thread.
    pub(crate) fn read_some(&self, bound: u32, words: Range<usize>, into: &mut [u64]) -> Result<()> {
        let parts = self.parts(bound, words, into).into_iter().map(|(words, into)| (words, into, None));
        self.read_parts(parts.collect()).map(drop)
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

    /// Reads words of the file, in parts of different groups, on all threads; reads may have been started.
    /// The parts lie far from each other.
    fn read_parts(&self, parts: Vec<(Range<usize>, &mut [u64], Option<PendingRun>)>) -> Result<Vec<bool>> {
        let readers = || self.of_threads.lock().unwrap_or_else(PoisonError::into_inner);
        let reader_of_thread = || self.reader.another().for_seeds().on_one_thread();
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
