//! Marks: which row chunks must be recomputed because a child changed.
//!
//! One bit for 64 columns of a `MoverMajor` row. A mark that is set too often costs a recomputation, one that is missed
//! would cost a wrong score: whoever changes a score marks all its parents, whoever recomputes takes the marks first.

use crate::apply::Changed;
use crate::tables::{CHUNK, RowMove, Tables};
use game::Index;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) struct Marks {
    words: Vec<AtomicU64>,
    /// By the mover's stones: the first word of the slab and the words of a row.
    slabs: Vec<(usize, usize)>,
}

impl Marks {
    pub(crate) fn none(index: &Index) -> Marks {
        let mut total = 0;
        let slabs = index
            .slabs()
            .iter()
            .map(|slab| {
                let words = (slab.opponent_halves as usize).div_ceil(CHUNK).div_ceil(64);
                let first = total;
                total += words * slab.mover_halves as usize;
                (first, words)
            })
            .collect();
        Marks { words: (0..total).map(|_| AtomicU64::new(0)).collect(), slabs }
    }

    /// Takes the marks of the chunks of a row that `chunks` has a bit for, counted from `chunk`.
    pub(crate) fn take(&self, slab: usize, row: usize, chunk: usize, chunks: u16) -> u16 {
        let (first, words) = self.slabs[slab];
        let words = &self.words[first + row * words..][..words];
        let take = |word: usize, wanted: u64| {
            // Nothing is wanted of a word behind the row.
            let Some(word) = words.get(word).filter(|_| wanted != 0) else { return 0 };
            let marks = word.load(Relaxed) & wanted;
            if marks != 0 {
                word.fetch_and(!marks, Relaxed);
            }
            marks
        };
        let wanted = u128::from(chunks) << (chunk % 64);
        let low = take(chunk / 64, wanted as u64);
        let high = take(chunk / 64 + 1, (wanted >> 64) as u64);
        ((u128::from(high) << 64 | u128::from(low)) >> (chunk % 64)) as u16
    }

    /// Marks every row chunk with a move to what changed: positions of `stones` stones whose opponent has the half of
    /// rank `change.column` with `opponent_stones` stones.
    pub(crate) fn mark_parents(&self, tables: &Tables, stones: u32, opponent_stones: u32, change: &Changed) {
        let chunk = change.first_row / CHUNK;
        for &parent in tables.parents(opponent_stones).of(change.column) {
            let mover_stones = opponent_stones + parent.crossing();
            if mover_stones > stones {
                break;
            }
            let (from, to) = tables.gather(stones - mover_stones, parent.class()).inverse[chunk];
            if from < to {
                self.set(mover_stones as usize, parent, from as usize, to as usize);
            }
        }
    }

    fn set(&self, slab: usize, row: RowMove, from: usize, to: usize) {
        let (first, words) = self.slabs[slab];
        let row = &self.words[first + row.rank() as usize * words..][..words];
        for (at, word) in row.iter().enumerate().take(to.div_ceil(64)).skip(from / 64) {
            let low = from.max(at * 64) - at * 64;
            let high = to.min((at + 1) * 64) - at * 64;
            let bits = (u64::MAX >> (64 - (high - low))) << low;
            // Most are set already: looking first spares the locked operation.
            if word.load(Relaxed) & bits != bits {
                word.fetch_or(bits, Relaxed);
            }
        }
    }
}
