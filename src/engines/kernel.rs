//! The row kernels: what a unit of work computes, in a portable form, and the choice of a faster one at run time.
//!
//! A unit is up to 64 rows of a `MoverMajor` slab by up to 16 chunks of 64 columns. *Recompute* derives the scores of
//! its wanted row chunks from their children and stages them row by row; *apply* transposes a staged chunk into the
//! `OpponentMajor` array and says what changed. Recomputing only reads the array, applying only writes the bytes of
//! its own rows and columns; a driver keeps the two apart in time.

use crate::simd;
use crate::tables::{CHUNK, Gather, Piece, RowMove};
use game::HALF_PITS;
use game::sow::Class;

/// Rows in a unit.
pub(crate) const UNIT_ROWS: usize = 64;
/// Chunks in a unit: staged scores of a unit stay in the second-level cache, its rows of them in the first.
pub(crate) const UNIT_CHUNKS: usize = 16;

/// Which implementation of the row kernels runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Plain Rust, on any processor.
    Portable,
    /// AVX-512 with VBMI byte permutations.
    Avx512,
}

/// A slab as the kernels see it.
pub(crate) struct SlabWork<'a> {
    /// By the rank of the mover's half.
    pub(crate) rows: &'a [[RowMove; HALF_PITS]],
    /// Columns of the slab in `MoverMajor`.
    pub(crate) columns: usize,
    /// By class number.
    pub(crate) children: Vec<Option<Child<'a>>>,
    /// Best captures of the slab, row by row, readable for a vector behind its end.
    pub(crate) captures: &'a [i8],
}

/// Where the moves of a class lead from a slab.
#[derive(Clone, Copy)]
pub(crate) struct Child<'a> {
    pub(crate) gather: &'a Gather,
    /// Offset of the child slab.
    pub(crate) offset: usize,
    /// Columns of the child slab in `OpponentMajor`.
    pub(crate) columns: usize,
}

/// A unit: rows and chunks of a slab, and per row the chunks wanted.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    pub(crate) row: usize,
    pub(crate) rows: usize,
    pub(crate) chunk: usize,
    pub(crate) chunks: usize,
    pub(crate) wanted: [u16; UNIT_ROWS],
}

impl Unit {
    /// Bytes from one staged row to the next: one vector more than a row, so that columns spread over cache sets.
    pub(crate) fn stride(&self) -> usize {
        (self.chunks + 1) * CHUNK
    }

    /// Bytes staged.
    pub(crate) fn staged_bytes(&self) -> usize {
        UNIT_ROWS * self.stride()
    }

    /// A bit a row: whether the chunk is wanted there.
    pub(crate) fn wanted_rows(&self, chunk: usize) -> u64 {
        self.wanted[..self.rows]
            .iter()
            .enumerate()
            .fold(0, |rows, (row, chunks)| rows | u64::from(chunks >> chunk & 1) << row)
    }
}

impl<'a> SlabWork<'a> {
    pub(crate) fn no_children() -> Vec<Option<Child<'a>>> {
        vec![None; Class::COUNT]
    }
}

/// Where apply writes: a chunk of columns of the unit's rows, in the `OpponentMajor` array.
#[derive(Clone, Copy)]
pub(crate) struct Destination {
    /// Offset of the chunk's first column at the unit's first row.
    pub(crate) offset: usize,
    /// Bytes from one column to the next.
    pub(crate) stride: usize,
    /// Columns, at most [`CHUNK`].
    pub(crate) columns: usize,
    /// Rows, at most [`UNIT_ROWS`].
    pub(crate) rows: usize,
}

impl Kernel {
    /// The fastest kernel this processor has.
    pub fn detect() -> Kernel {
        if simd::available() { Kernel::Avx512 } else { Kernel::Portable }
    }

    /// Derives the wanted chunks of a unit. `values` is the whole `OpponentMajor` array with its padding.
    pub(crate) fn recompute(self, work: &SlabWork, unit: &Unit, values: &[i8], staged: &mut [i8]) {
        assert!(staged.len() >= unit.staged_bytes() && unit.row + unit.rows <= work.rows.len());
        match self {
            Kernel::Portable => recompute(work, unit, values, staged),
            Kernel::Avx512 => simd::recompute(work, unit, values, staged),
        }
    }
}

fn recompute(work: &SlabWork, unit: &Unit, values: &[i8], staged: &mut [i8]) {
    let stride = unit.stride();
    for (row, &wanted) in unit.wanted[..unit.rows].iter().enumerate() {
        let staged = &mut staged[row * stride..][..unit.chunks * CHUNK];
        let captures = &work.captures[(unit.row + row) * work.columns + unit.chunk * CHUNK..];
        for (at, staged) in staged.chunks_exact_mut(CHUNK).enumerate().filter(|&(at, _)| wanted >> at & 1 == 1) {
            let mut least = [i8::MAX; CHUNK];
            for to in work.rows[unit.row + row].iter().take_while(|&&to| to != RowMove::NONE) {
                let child = work.children[to.class()].as_ref().expect("every class of a row has a child slab");
                let scores = &values[child.offset + to.rank() as usize * child.columns..];
                let (first, end) = (child.gather.first[unit.chunk + at], child.gather.first[unit.chunk + at + 1]);
                for piece in &child.gather.pieces[first as usize..end as usize] {
                    gather(&mut least, &scores[piece.base as usize..], piece, child.gather);
                }
            }
            for (lane, score) in staged.iter_mut().enumerate() {
                *score = captures[at * CHUNK + lane].max(-least[lane]);
            }
        }
    }
}

fn gather(least: &mut [i8; CHUNK], window: &[i8], piece: &Piece, gather: &Gather) {
    let mut lanes = piece.mask;
    while lanes != 0 {
        let lane = lanes.trailing_zeros() as usize;
        let from = match piece.lanes {
            Piece::STRAIGHT => lane,
            at => usize::from(gather.lanes[at as usize].0[lane]),
        };
        least[lane] = least[lane].min(window[from]);
        lanes &= lanes - 1;
    }
}
