//! The two slabs in which the players have m and n - m stones, cut into blocks of ranks; and what changed in a block.

use crate::apply::Changed;
use crate::tables::{CHUNK, RowMove, Tables};
use game::sow::{Class, Ends};
use game::{HALF_PITS, Slab};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Positions of a block in one of the two slabs, roughly: they stay in the second-level cache.
const BLOCK_POSITIONS: usize = 1 << 18;

/// The most chunks of rows in a block: one word has a bit for each of its chunks of columns.
const BLOCK_CHUNKS_MAX: usize = 16;

/// The class of the moves that stay in the mover's half.
const STRAIGHT: usize = Class { crossing: 0, ends: Ends::Mover }.number();

/// A slab whose mover has at least half of the stones, and the one whose opponent has as many.
pub(crate) struct Pair<'a> {
    /// The rows of a block are rows of this slab.
    pub(crate) high: &'a Slab,
    /// The rows of a block are columns of this slab. The same slab if both have half of the stones.
    pub(crate) low: &'a Slab,
    tables: &'a Tables,
    /// For each chunk of rows of `high`, and behind the last, the first chunk of columns of `low` with those halves or
    /// later ones, and the end of those with earlier ones. They differ where the position set leaves out halves of the
    /// opponent: a chunk of columns may have halves of two chunks of rows.
    cuts: Vec<(usize, usize)>,
    block_chunks: usize,
}

/// Some rows of `high`, and the columns of `low` with the same halves, in chunks. Two blocks may share a chunk of
/// columns.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) rows: Range<usize>,
    pub(crate) columns: Range<usize>,
}

/// What changed in a block since it was last looked at.
pub(crate) struct Recent {
    /// For each column of the block in `low`, a bit for each chunk of its rows.
    low: Vec<AtomicU64>,
    low_words: usize,
    first_low: usize,
    /// For each column of `high`, a bit for each chunk of rows of the block.
    high: Vec<AtomicU64>,
    first_high: usize,
}

impl<'a> Pair<'a> {
    pub(crate) fn new(tables: &'a Tables, high: &'a Slab, low: &'a Slab) -> Pair<'a> {
        let row_chunks = chunks(high.mover_halves);
        let inverse = &tables.gather(low.opponent_stones, STRAIGHT).inverse;
        let columns = chunks(low.opponent_halves);
        let mut cuts = vec![(columns, 0); row_chunks + 1];
        // A chunk of rows of which the position set has no half has no columns.
        for chunk in (0..row_chunks).rev() {
            cuts[chunk].0 = cuts[chunk + 1].0.min(inverse[chunk].0 as usize);
        }
        for chunk in 0..row_chunks {
            cuts[chunk + 1].1 = cuts[chunk].1.max(inverse[chunk].1 as usize);
        }
        (cuts[0].0, cuts[row_chunks].1) = (0, columns);
        let row_chunk = CHUNK * (high.opponent_halves as usize).next_multiple_of(CHUNK);
        let block_chunks = (BLOCK_POSITIONS / row_chunk).clamp(1, BLOCK_CHUNKS_MAX);
        Pair { high, low, tables, cuts, block_chunks }
    }

    /// Both players have half of the stones.
    pub(crate) fn is_one(&self) -> bool {
        self.high.mover_stones == self.low.mover_stones
    }

    /// The blocks, the highest ranks first.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = Block> + use<'_> {
        let chunks = self.cuts.len() - 1;
        let block = move |first: usize| {
            let end = chunks.min(first + self.block_chunks);
            Block { rows: first..end, columns: self.cuts[first].0..self.cuts[end].1 }
        };
        (0..chunks).step_by(self.block_chunks).rev().map(block)
    }

    /// Nothing changed so far in a block.
    pub(crate) fn recent(&self, block: &Block) -> Recent {
        let words = |len: usize| (0..len).map(|_| AtomicU64::new(0)).collect();
        let low_words = chunks(self.low.mover_halves).div_ceil(64);
        Recent {
            low: words(block.columns.len() * CHUNK * low_words),
            low_words,
            first_low: block.columns.start * CHUNK,
            high: words(self.high.opponent_halves as usize),
            first_high: block.rows.start,
        }
    }

    /// Which chunks of the rows of the block in `high` have a child that changed in the block in `low`, by a move that
    /// stays in the mover's half.
    pub(crate) fn stale_in_high(&self, block: &Block, recent: &Recent) -> Wanted {
        let inverse = &self.tables.gather(self.high.opponent_stones, STRAIGHT).inverse;
        let moves = self.tables.rows(self.high.mover_stones);
        let rows = block.rows_of(self.high);
        let mut stale = Wanted::none(rows.clone(), 0, chunks(self.high.opponent_halves));
        for row in rows {
            for rank in straight(&moves[row]) {
                let Some(column) = rank.checked_sub(recent.first_low) else { continue };
                for (word, bits) in recent.low.iter().skip(column * recent.low_words).take(recent.low_words).enumerate()
                {
                    each_bit(bits.load(Relaxed), |bit| stale.want(row, inverse[word * 64 + bit]));
                }
            }
        }
        stale
    }

    /// Which chunks of the block in `low`, of `rows`, have a child that changed in the block in `high`, by a move that
    /// stays in the mover's half.
    pub(crate) fn stale_in_low(&self, block: &Block, rows: Range<usize>, recent: &Recent) -> Wanted {
        let inverse = &self.tables.gather(self.low.opponent_stones, STRAIGHT).inverse;
        let moves = self.tables.rows(self.low.mover_stones);
        let mut stale = Wanted::none(rows.clone(), block.columns.start, block.columns.end);
        for row in rows {
            let changed = straight(&moves[row]).fold(0, |all, rank| all | recent.high[rank].load(Relaxed));
            each_bit(changed, |bit| stale.want(row, inverse[block.rows.start + bit]));
        }
        stale
    }
}

impl Block {
    /// The rows of the slab `high`.
    pub(crate) fn rows_of(&self, high: &Slab) -> Range<usize> {
        self.rows.start * CHUNK..(self.rows.end * CHUNK).min(high.mover_halves as usize)
    }
}

/// A bit for each of some chunks of some rows.
pub(crate) struct Wanted {
    first_row: usize,
    first_chunk: usize,
    end_chunk: usize,
    words: usize,
    bits: Vec<u64>,
}

impl Wanted {
    fn none(rows: Range<usize>, first_chunk: usize, end_chunk: usize) -> Wanted {
        let words = (end_chunk - first_chunk).div_ceil(64);
        Wanted { first_row: rows.start, first_chunk, end_chunk, words, bits: vec![0; rows.len() * words] }
    }

    fn want(&mut self, row: usize, (from, to): (u32, u32)) {
        let row = &mut self.bits[(row - self.first_row) * self.words..][..self.words];
        for chunk in (from as usize).max(self.first_chunk)..(to as usize).min(self.end_chunk) {
            let at = chunk - self.first_chunk;
            row[at / 64] |= 1 << (at % 64);
        }
    }

    /// The bits of the sixteen chunks from a multiple of sixteen behind the first on.
    pub(crate) fn sixteen(&self, row: usize, chunk: usize) -> u16 {
        let at = chunk - self.first_chunk;
        (self.bits[(row - self.first_row) * self.words + at / 64] >> (at % 64)) as u16
    }
}

fn each_bit(mut bits: u64, mut visit: impl FnMut(usize)) {
    while bits != 0 {
        visit(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

impl Recent {
    pub(crate) fn forget_low(&mut self) {
        self.low.iter_mut().for_each(|bits| *bits.get_mut() = 0);
    }

    pub(crate) fn forget_high(&mut self) {
        self.high.iter_mut().for_each(|bits| *bits.get_mut() = 0);
    }

    pub(crate) fn changed_in_low(&self, change: &Changed) {
        let chunk = change.first_row / CHUNK;
        let column = change.column as usize - self.first_low;
        set(&self.low[column * self.low_words + chunk / 64], chunk % 64);
    }

    pub(crate) fn changed_in_high(&self, change: &Changed) {
        set(&self.high[change.column as usize], change.first_row / CHUNK - self.first_high);
    }
}

fn set(word: &AtomicU64, bit: usize) {
    // Most are set already: looking first spares the locked operation.
    if word.load(Relaxed) >> bit & 1 == 0 {
        word.fetch_or(1 << bit, Relaxed);
    }
}

/// The rows that moves of a row lead to which stay in the mover's half.
fn straight(moves: &[RowMove; HALF_PITS]) -> impl Iterator<Item = usize> + '_ {
    let moves = moves.iter().take_while(|&&to| to != RowMove::NONE);
    moves.filter(|to| to.class() == STRAIGHT).map(|to| to.rank() as usize)
}

pub(crate) fn chunks(halves: u32) -> usize {
    (halves as usize).div_ceil(CHUNK)
}
