//! Readers of the state after several bounds, from their planes.

use super::planes::{PlaneFile, PlaneReader, SeedsReader};
use crate::{Result, files};
use std::ops::{Range, RangeInclusive};

/// Reader of the union of the planes of several bounds.
pub(crate) struct UnionReader {
    stones: u32,
    planes: Vec<(PlaneFile, PlaneReader)>,
    buffer: Vec<u64>,
}

impl UnionReader {
    /// Opens planes of the database of `stones`.
    pub(crate) fn open(
        stones: u32,
        planes: impl Iterator<Item = PlaneFile>,
        open: impl Fn(PlaneFile) -> Result<PlaneReader>,
    ) -> Result<UnionReader> {
        let planes = planes.map(|plane| Ok((plane, open(plane)?))).collect::<Result<_>>()?;
        Ok(UnionReader { stones, planes, buffer: Vec::new() })
    }

    /// Reads words of the union, and returns whether any may have a bit.
    pub(crate) fn read(&mut self, words: Range<usize>, into: &mut Vec<u64>) -> Result<bool> {
        clear(into, words.len());
        clear(&mut self.buffer, words.len());
        let mut any = false;
        for (plane, reader) in &mut self.planes {
            let read = reader.read(words.clone(), &mut self.buffer);
            if read.map_err(|error| files::unreadable(&plane.name(self.stones), error))? {
                into.iter_mut().zip(&self.buffer).for_each(|(all, new)| *all |= new);
                any = true;
            }
        }
        Ok(any)
    }
}

/// Reader of the candidates after several bounds: the seeds of all that are not lost.
pub(crate) struct CandidatesReader<'a> {
    bounds: RangeInclusive<u32>,
    seeds: SeedsReader<'a>,
    lost: UnionReader,
    lost_words: Vec<u64>,
}

impl<'a> CandidatesReader<'a> {
    /// Opens the planes lost at `bounds` of the database of `stones`, for candidates of these `seeds`.
    pub(crate) fn open(
        stones: u32,
        bounds: RangeInclusive<u32>,
        seeds: SeedsReader<'a>,
        open: impl Fn(PlaneFile) -> Result<PlaneReader>,
    ) -> Result<CandidatesReader<'a>> {
        let lost = UnionReader::open(stones, bounds.clone().map(PlaneFile::Lost), open)?;
        Ok(CandidatesReader { bounds, seeds, lost, lost_words: Vec::new() })
    }

    /// Reads words of the candidates.
    pub(crate) fn read(&mut self, words: Range<usize>, into: &mut Vec<u64>) -> Result<()> {
        clear(into, words.len());
        clear(&mut self.lost_words, words.len());
        for bound in self.bounds.clone() {
            if self.seeds.read(bound, words.clone(), &mut self.lost_words)? {
                into.iter_mut().zip(&self.lost_words).for_each(|(all, new)| *all |= new);
            }
        }
        if self.lost.read(words, &mut self.lost_words)? {
            into.iter_mut().zip(&self.lost_words).for_each(|(all, lost)| *all &= !lost);
        }
        Ok(())
    }
}

/// Sets a buffer to this many zeros.
fn clear(buffer: &mut Vec<u64>, words: usize) {
    buffer.clear();
    buffer.resize(words, 0);
}
