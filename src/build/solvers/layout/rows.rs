//! Scores of a database in memory, in rows that are aligned and padded for the kernels.

use crate::huge_pages::{Bytes, PAD};
use game::{Index, Orientation, Slab};
use rayon::prelude::*;
use std::io;
use std::ops::Range;

/// Columns handled by one step of a kernel. Aligned rows have a multiple of them.
pub(crate) const CHUNK: usize = 64;

/// Rows of at least this many columns start at a multiple of 64 bytes, so that a chunk of 64 columns is one cache line.
/// For shorter rows the padding costs more than alignment saves.
const ALIGNED_COLUMNS_MIN: usize = 700;

/// Positions that a thread copies at a time; at least one row.
const COPY_POSITIONS: usize = 1 << 20;

/// Positions read at a time; at least one row.
const BATCH_POSITIONS: usize = 1 << 22;

/// Scores of a database, `OpponentMajor`, initially zero. Takes about 2 % more bytes than positions.
#[derive(Debug)]
pub struct ScoreRows {
    bytes: Bytes,
    slabs: Vec<SlabRows>,
}

/// Location of the rows of a slab in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlabRows {
    /// Offset of the first row.
    pub(crate) offset: usize,
    /// Bytes from one row to the next.
    pub(crate) stride: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Unused bytes at the offset. A rank may keep a range of columns; they are placed as if only columns behind the
    /// range were missing.
    pub(crate) lead: usize,
}

impl SlabRows {
    /// Returns the location of some columns of a row.
    pub(crate) fn range(&self, row: usize, columns: &Range<usize>) -> Range<usize> {
        let first = self.offset + row * self.stride;
        first + columns.start..first + columns.end
    }

    /// Bytes of the slab, including the unused ones before and behind its rows.
    pub(crate) fn bytes(&self) -> usize {
        self.lead + self.rows * self.stride
    }

    fn of(slab: &Slab, offset: usize) -> SlabRows {
        let (rows, columns) = slab.rows_columns(Orientation::OpponentMajor);
        let (rows, columns) = (rows as usize, columns as usize);
        let is_aligned = columns >= ALIGNED_COLUMNS_MIN;
        let stride = if is_aligned { columns.next_multiple_of(CHUNK) } else { columns };
        SlabRows { offset, stride, rows, columns, lead: 0 }
    }
}

/// Bytes that slabs of a database take as [`ScoreRows`].
pub fn row_bytes(slabs: &[Slab]) -> u64 {
    slab_rows(slabs).last().map_or(0, |last| (last.offset + last.bytes()) as u64)
}

fn slab_rows(slabs: &[Slab]) -> Vec<SlabRows> {
    let mut end = 0usize;
    let place = |slab: &Slab| {
        let rows = SlabRows::of(slab, end.next_multiple_of(CHUNK));
        // Reads behind the end of a slab do not touch the next one.
        end = rows.offset + rows.bytes() + PAD;
        rows
    };
    slabs.iter().map(place).collect()
}

/// Locations of the kept columns of each slab, then of the slabs `more` as a whole; and the bytes of all.
pub(crate) fn sparse_places(
    slabs: &[Slab],
    kept: impl Fn(usize) -> Range<usize>,
    more: &[usize],
) -> (Vec<SlabRows>, usize) {
    let mut end = 0usize;
    let mut place = |at: usize, is_cut: bool| {
        let mut rows = SlabRows::of(&slabs[at], end.next_multiple_of(CHUNK));
        let kept = kept(at);
        if is_cut && kept.len() < rows.columns {
            // Reads before and behind the kept columns hit other columns.
            (rows.stride, rows.lead) = (kept.len().next_multiple_of(CHUNK), kept.start);
        }
        end = rows.offset + rows.bytes() + PAD;
        rows
    };
    let mut placed: Vec<_> = (0..slabs.len()).map(|at| place(at, true)).collect();
    placed.extend(more.iter().map(|&at| place(at, false)));
    (placed, end)
}

impl ScoreRows {
    /// Allocates the rows of an index, all scores 0.
    pub fn zeroed(index: &Index) -> io::Result<ScoreRows> {
        ScoreRows::zeroed_within(index, 0)
    }

    /// As [`zeroed`](Self::zeroed), in an array with capacity for at least `len_max` bytes.
    pub fn zeroed_within(index: &Index, len_max: usize) -> io::Result<ScoreRows> {
        let len = row_bytes(index.slabs()) as usize;
        Ok(ScoreRows { bytes: Bytes::zeroed_within(len, len.max(len_max))?, slabs: slab_rows(index.slabs()) })
    }

    /// As [`zeroed`](Self::zeroed), reusing the memory of `spare`; `None` if it is too short.
    pub fn zeroed_in(index: &Index, spare: Bytes) -> Option<ScoreRows> {
        let slabs = slab_rows(index.slabs());
        Some(ScoreRows { bytes: spare.zeroed_again(row_bytes(index.slabs()) as usize)?, slabs })
    }

    /// Allocates rows at the locations of [`sparse_places`], all 0; pages are committed at first touch.
    pub(crate) fn sparse(slabs: Vec<SlabRows>, len: usize) -> io::Result<ScoreRows> {
        Ok(ScoreRows { bytes: Bytes::sparse(len)?, slabs })
    }

    /// Returns the array.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Iterates over the scores in canonical order, in runs of whole rows.
    pub fn runs(&self) -> impl Iterator<Item = &[i8]> {
        self.slabs.iter().flat_map(move |slab| {
            let (runs, length) =
                if slab.stride == slab.columns { (1, slab.bytes()) } else { (slab.rows, slab.columns) };
            (0..runs).map(move |run| &self.bytes[slab.offset + run * slab.stride..][..length])
        })
    }

    /// Copies all scores in canonical order to an array.
    pub fn to_bytes(&self) -> io::Result<Bytes> {
        let mut bytes = Bytes::zeroed(self.slabs.iter().map(|slab| slab.rows * slab.columns).sum())?;
        let mut rest = &mut bytes[..];
        for slab in &self.slabs {
            let (now, later) = rest.split_at_mut(slab.rows * slab.columns);
            rest = later;
            // On all threads: the kernel clears a page at first touch, which takes longer than copying it.
            let rows_at_once = COPY_POSITIONS.div_ceil(slab.columns);
            let from = self.bytes[slab.offset..][..slab.bytes()].par_chunks(rows_at_once * slab.stride);
            now.par_chunks_mut(rows_at_once * slab.columns).zip(from).for_each(|(to, from)| {
                for (to, from) in to.chunks_exact_mut(slab.columns).zip(from.chunks_exact(slab.stride)) {
                    to.copy_from_slice(&from[..slab.columns]);
                }
            });
        }
        Ok(bytes)
    }

    /// Copies all scores in canonical order to a vector.
    pub fn to_vec(&self) -> Vec<i8> {
        self.runs().flatten().copied().collect()
    }

    /// Sets all scores to 0.
    pub fn clear(&mut self) {
        self.bytes.fill(0);
    }

    /// Reads all scores through `read`, which gets ranges of positions in canonical order.
    ///
    /// # Errors
    /// The first error of `read`; the scores are then unspecified.
    pub fn fill<E>(&mut self, mut read: impl FnMut(Range<u64>, &mut [i8]) -> Result<(), E>) -> Result<(), E> {
        let mut first = 0;
        let mut batch = Vec::new();
        for slab in &self.slabs {
            let rows_at_once = (BATCH_POSITIONS / slab.columns).clamp(1, slab.rows);
            for row in (0..slab.rows).step_by(rows_at_once) {
                let rows = rows_at_once.min(slab.rows - row);
                batch.resize(rows * slab.columns, 0);
                read(first..first + batch.len() as u64, &mut batch)?;
                first += batch.len() as u64;
                let to = self.bytes[slab.offset + row * slab.stride..].chunks_mut(slab.stride);
                for (from, to) in batch.chunks_exact(slab.columns).zip(to) {
                    to[..slab.columns].copy_from_slice(from);
                }
            }
        }
        Ok(())
    }

    /// Returns a row of a slab.
    pub(crate) fn row(&self, slab: &Slab, row: usize) -> &[i8] {
        let rows = self.slabs[slab.mover_stones as usize];
        &self.bytes[rows.offset + row * rows.stride..][..rows.columns]
    }

    pub(crate) fn slabs(&self) -> &[SlabRows] {
        &self.slabs
    }

    /// Splits the array into slabs, each with its padding.
    pub(crate) fn slabs_mut(&mut self) -> Vec<&mut [i8]> {
        let mut end = 0;
        let mut rest = self.bytes.padded_mut();
        let mut slabs = Vec::with_capacity(self.slabs.len());
        for slab in &self.slabs {
            let (padded, others) = rest[slab.offset - end..].split_at_mut(slab.bytes() + PAD);
            slabs.push(padded);
            rest = others;
            end = slab.offset + slab.bytes() + PAD;
        }
        slabs
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut Bytes {
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::PositionSet;

    #[test]
    fn filled_rows_are_read_back_and_aligned() {
        for (set, stones) in [(PositionSet::All, 12), (PositionSet::REACHABLE, 13), (PositionSet::All, 0)] {
            let index = Index::new(stones, set);
            let mut rows = ScoreRows::zeroed(&index).unwrap();
            let score = |position: u64| (position * 7 % 251) as i8;
            let read = |positions: Range<u64>, out: &mut [i8]| {
                out.iter_mut().zip(positions).for_each(|(out, position)| *out = score(position));
                Ok::<_, ()>(())
            };
            rows.fill(read).unwrap();
            assert!(rows.to_vec().iter().copied().eq((0..index.slab_positions()).map(score)));
            assert_eq!(rows.to_vec(), rows.to_bytes().unwrap()[..]);
            for slab in rows.slabs() {
                assert!(slab.columns < ALIGNED_COLUMNS_MIN || slab.stride % CHUNK == 0 && slab.offset % CHUNK == 0);
            }
            assert_eq!(
                rows.fill(|range, _| if range.start > 0 { Err(range.start) } else { Ok(()) }).is_err(),
                stones > 0
            );
        }
    }
}
