//! Planes turned from one orientation into the other, some rows at a time.

use super::state::stop;
use engines::bound::PlaneSlab;
use pipeline::{StageContext, StageError};
use rayon::prelude::*;
use std::ops::Range;

/// Bytes of a plane that are turned in memory at a time.
const TURNED_BYTES: usize = 2 << 20;

/// Bytes read at a time.
const READ_BYTES: usize = 256 << 10;

/// Some rows of a slab of a plane in the other orientation.
#[derive(Default)]
pub(super) struct Turned {
    rows: Range<usize>,
    words: Vec<u64>,
    read: Vec<u64>,
}

impl Turned {
    /// Turns the slab `from` into rows of `to` from `first` (rounded down to a word of columns) on, as many as fit.
    /// `read` reads words of the plane.
    pub(super) fn fill(
        &mut self,
        (from, to): (&PlaneSlab, &PlaneSlab),
        first: usize,
        context: &StageContext,
        mut read: impl FnMut(Range<usize>, &mut [u64]) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        let first = first / 64;
        let words = (TURNED_BYTES / 8 / to.row_words / 64).max(1);
        self.rows = first * 64..to.rows.min((first + words) * 64);
        self.words.clear();
        self.words.resize(self.rows.len() * to.row_words, 0);
        let batch = (READ_BYTES / 8 / from.row_words).next_multiple_of(64);
        for row in (0..from.rows).step_by(batch) {
            stop(context)?;
            let count = (from.rows - row).min(batch);
            self.read.resize(count * from.row_words, 0);
            read(from.word(row)..from.word(row + count), &mut self.read)?;
            self.words.par_chunks_mut(64 * to.row_words).enumerate().for_each(|(at, turned)| {
                turn(&self.read, from.row_words, first + at, turned, to.row_words, row / 64);
            });
        }
        Ok(())
    }

    /// The rows that were turned.
    pub(super) fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Their words.
    pub(super) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }
}

/// Turns the word `word` of all rows into columns: words from `to_word` on of up to 64 rows of `turned`.
fn turn(rows: &[u64], row_words: usize, word: usize, turned: &mut [u64], to_words: usize, to_word: usize) {
    for (block_number, rows) in rows.chunks(64 * row_words).enumerate() {
        let mut block = [0; 64];
        let mut any = 0;
        for (block, row) in block.iter_mut().zip(rows.chunks(row_words)) {
            *block = row[word];
            any |= row[word];
        }
        if any != 0 {
            transpose(&mut block);
            for (turned, &bits) in turned.chunks_mut(to_words).zip(&block) {
                turned[to_word + block_number] = bits;
            }
        }
    }
}

/// Transposes 64 by 64 bits, by halves of halves (Warren, Hacker's Delight, section 7-3).
fn transpose(block: &mut [u64; 64]) {
    let (mut width, mut mask) = (32, 0x0000_0000_ffff_ffffu64);
    while width > 0 {
        let mut at = 0;
        while at < 64 {
            let swap = (block[at] >> width ^ block[at + width]) & mask;
            block[at] ^= swap << width;
            block[at + width] ^= swap;
            at = (at + width + 1) & !width;
        }
        width /= 2;
        mask ^= mask << width;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bits_change_places() {
        let block: [u64; 64] = std::array::from_fn(|at| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut turned = block;
        super::transpose(&mut turned);
        for (row, word) in block.iter().enumerate() {
            for (column, other) in turned.iter().enumerate() {
                assert_eq!(word >> column & 1, other >> row & 1);
            }
        }
    }
}
