//! Readers of the state after several bounds, from their planes.

use super::planes::{PlaneFile, PlaneReader, SeedsReader};
use super::transpose::TransposedReader;
use crate::files;
use game::{Index, Orientation};
use pipeline::StageResult as Result;
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
        into.resize(words.len(), 0);
        self.read_into(words, into)
    }

    fn read_into(&mut self, words: Range<usize>, into: &mut [u64]) -> Result<bool> {
        into.fill(0);
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
    transposed: TransposedReader,
    buffer: Vec<u64>,
}

impl<'a> CandidatesReader<'a> {
    /// Opens the planes lost at `bounds` of the database of `index`, for candidates of these `seeds`. They are stored
    /// transposed; the reader keeps rows of `bytes`.
    pub(crate) fn open(
        index: &Index,
        bounds: RangeInclusive<u32>,
        seeds: SeedsReader<'a>,
        bytes: usize,
        open: impl Fn(PlaneFile) -> Result<PlaneReader>,
    ) -> Result<CandidatesReader<'a>> {
        let lost = UnionReader::open(index.stones(), bounds.clone().map(PlaneFile::Decided), open)?;
        let transposed = TransposedReader::new(index, Orientation::MoverMajor, bytes);
        Ok(CandidatesReader { bounds, seeds, lost, transposed, buffer: Vec::new() })
    }

    /// Reads rows of a slab of the candidates, which are these words of the plane. `stop` returns an error if
    /// the reader must stop.
    pub(crate) fn read(
        &mut self,
        (slab, rows): (usize, Range<usize>),
        words: Range<usize>,
        into: &mut Vec<u64>,
        stop: impl Fn() -> Result<()>,
    ) -> Result<()> {
        into.resize(words.len(), 0);
        self.seeds.read_union(self.bounds.clone(), words, into, &mut self.buffer)?;
        let lost = |words, into: &mut [u64]| self.lost.read_into(words, into);
        if self.transposed.read(slab, rows, &mut self.buffer, stop, lost)? {
            into.iter_mut().zip(&self.buffer).for_each(|(all, lost)| *all &= !lost);
        }
        Ok(())
    }
}

/// Sets a buffer to this many zeros.
fn clear(buffer: &mut Vec<u64>, words: usize) {
    buffer.clear();
    buffer.resize(words, 0);
}
