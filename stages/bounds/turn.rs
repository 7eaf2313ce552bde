//! Planes turned from one orientation into the other, some rows at a time.

use super::planes::Portion;
use super::state::stop;
use engines::bound::PlaneSlab;
use pipeline::{StageContext, StageError};
use rayon::prelude::*;
use std::ops::Range;

/// Bytes of a plane that are turned in memory at a time.
const TURNED_BYTES: usize = 2 << 20;

/// Bytes read at a time.
const READ_BYTES: usize = 256 << 10;

/// Words of a row, and as many times 64 rows, that are turned together: a line of a cache is then read, and written, once.
const TILE: usize = 8;

/// Some rows of a slab of a plane in the other orientation.
#[derive(Default)]
pub(super) struct Turned {
    rows: Range<usize>,
    row_words: usize,
    words: Vec<u64>,
    /// By 64 rows, whether any may have a bit.
    has_bits: Vec<bool>,
    read: Vec<u64>,
}

impl Turned {
    /// Turns the slab `from` into rows of `to` from `first` (rounded down to a word of columns) on, as many as fit.
    /// `read` reads words of the plane, and tells whether any may have a bit.
    pub(super) fn fill(
        &mut self,
        (from, to): (&PlaneSlab, &PlaneSlab),
        first: usize,
        context: &StageContext,
        mut read: impl FnMut(Range<usize>, &mut [u64]) -> Result<bool, StageError>,
    ) -> Result<(), StageError> {
        let first = first / 64;
        let words = (TURNED_BYTES / 8 / to.row_words / 64).max(1);
        // What has no bit stays cleared.
        for (strip, has_bits) in self.words.chunks_mut(64 * self.row_words.max(1)).zip(&self.has_bits) {
            if *has_bits {
                strip.fill(0);
            }
        }
        self.rows = first * 64..to.rows.min((first + words) * 64);
        self.row_words = to.row_words;
        self.words.resize(self.rows.len() * to.row_words, 0);
        self.has_bits.clear();
        self.has_bits.resize(self.rows.len().div_ceil(64), false);
        let batch = (READ_BYTES / 8 / from.row_words).next_multiple_of(64);
        for row in (0..from.rows).step_by(batch) {
            stop(context)?;
            let count = (from.rows - row).min(batch);
            self.read.resize(count * from.row_words, 0);
            if read(from.word(row)..from.word(row + count), &mut self.read)? {
                let strips = self.words.par_chunks_mut(TILE * 64 * to.row_words);
                strips.zip(self.has_bits.par_chunks_mut(TILE)).enumerate().for_each(|(at, (turned, has_bits))| {
                    let word = first + at * TILE;
                    for (tile, rows) in self.read.chunks(TILE * 64 * from.row_words).enumerate() {
                        let to_word = row / 64 + tile * TILE;
                        let strips = turned.chunks_mut(64 * to.row_words).zip(&mut *has_bits);
                        for (word, (turned, has_bits)) in (word..).zip(strips) {
                            *has_bits |= turn(rows, from.row_words, word, turned, to.row_words, to_word);
                        }
                    }
                });
            }
        }
        Ok(())
    }

    /// The rows that were turned.
    pub(super) fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Their words.
    pub(super) fn words_mut(&mut self) -> Portion<'_> {
        match self.has_bits.contains(&true) {
            true => Portion::Words(&mut self.words),
            false => Portion::Zeros(self.words.len()),
        }
    }

    /// The words of some of the rows, unless they have no bit.
    pub(super) fn words_of(&self, rows: Range<usize>) -> Option<&[u64]> {
        let rows = rows.start - self.rows.start..rows.end - self.rows.start;
        let strips = rows.start / 64..rows.end.div_ceil(64);
        let words = || &self.words[rows.start * self.row_words..rows.end * self.row_words];
        self.has_bits[strips].contains(&true).then(words)
    }
}

/// Turns the word `word` of all rows into columns: words from `to_word` on of up to 64 rows of `turned`. Tells whether
/// they have any bit.
fn turn(rows: &[u64], row_words: usize, word: usize, turned: &mut [u64], to_words: usize, to_word: usize) -> bool {
    let mut any = false;
    for (block_number, rows) in rows.chunks(64 * row_words).enumerate() {
        let mut block = [0; 64];
        let mut used = 0u64;
        for (at, row) in (0..).zip(rows.chunks(row_words)) {
            block[at] = row[word];
            used |= u64::from(row[word] != 0) << at;
        }
        if used == 0 {
            continue;
        }
        any = true;
        let to = to_word + block_number;
        if used.count_ones() <= FEW_ROWS {
            while used != 0 {
                let at = used.trailing_zeros();
                used &= used - 1;
                let mut bits = block[at as usize];
                while bits != 0 {
                    // Behind the last column of a sound plane there are none.
                    if let Some(word) = turned.get_mut(bits.trailing_zeros() as usize * to_words + to) {
                        *word |= 1 << at;
                    }
                    bits &= bits - 1;
                }
            }
        } else {
            transpose(&mut block);
            for (turned, &bits) in turned.chunks_mut(to_words).zip(&block) {
                turned[to] = bits;
            }
        }
    }
    any
}

/// Rows of a block that have bits, few enough to turn them bit by bit.
const FEW_ROWS: u32 = 12;

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
    /// Sparse and dense, in more than one tile.
    #[test]
    fn strips_turn() {
        let hash = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (rows, row_words, to_words) = (150, 3, 4);
        for rarity in [1, 4, 60, 5000] {
            let bit = |row: usize, column: usize| hash(row * 1000 + column) >> 40 & 0xffff < 0x10000 / rarity;
            let word = |at: usize| (0..64).map(|b| u64::from(bit(at / row_words, at % row_words * 64 + b)) << b).sum();
            let plane: Vec<u64> = (0..rows * row_words).map(word).collect();
            for word in 0..row_words {
                let mut turned = vec![0; 64 * to_words];
                let any = super::turn(&plane, row_words, word, &mut turned, to_words, 1);
                assert_eq!(any, turned.iter().any(|&word| word != 0));
                for (column, row) in (0..64).flat_map(|column| (0..rows).map(move |row| (column, row))) {
                    let is_set = turned[column * to_words + 1 + row / 64] >> (row % 64) & 1 == 1;
                    assert_eq!(is_set, bit(row, word * 64 + column), "{rarity}: {row}, {column}");
                }
            }
        }
    }

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
