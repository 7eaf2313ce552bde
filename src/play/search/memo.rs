//! Bounds of small positions that searches have looked up.
//!
//! A search looks most of its small positions up more than once. In a file their bounds may lie in two
//! sections, each behind an index, a block and a check that no other process has changed the file; here they
//! are one load.

use crate::memory::{CacheLine, SharedLines};
use game::{Score, binomial};
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most stones of a position that is kept: 19 MB for all numbers of stones, and 5 MB up to 12 stones.
const STONES_MAX: usize = 14;

/// The places of positions: those with fewer stones have the smaller numbers.
const PLACES: usize = binomial(STONES_MAX as u32 + 12, 12) as usize;

/// The bits of a place: the lower bound, then the upper one.
const PLACE_BITS: usize = 16;

/// The places in a word.
const WORD_PLACES: usize = 64 / PLACE_BITS;

/// The places in a cache line.
const LINE_PLACES: usize = CacheLine::WORDS * WORD_PLACES;

/// The content of a place whose bounds are not known.
const EMPTY: u16 = 0;

/// Added to a bound, so that none is 0.
const OFFSET: Score = Score::MIN;

/// Known bounds by position. They are those of one set of databases; another set needs a memo of its own.
///
/// Threads share it without locks. Where two of them write to the same word at once, one of them writes nothing.
#[derive(Default)]
pub struct BoundsMemo {
    /// Made when the first position is looked up; `None` if the system refuses the memory.
    lines: OnceLock<Option<SharedLines>>,
}

impl BoundsMemo {
    /// Returns the place of the position of this number; `None` if it has too many stones.
    #[inline]
    pub(crate) fn place(&self, number: u64) -> Option<MemoPlace<'_>> {
        let at = number as usize;
        if at >= PLACES {
            return None;
        }
        let lines = self.lines.get_or_init(|| SharedLines::zeroed(PLACES.div_ceil(LINE_PLACES)).ok()).as_ref()?;
        let word = &lines[at / LINE_PLACES].0[at / WORD_PLACES % CacheLine::WORDS];
        Some(MemoPlace { word, shift: (at % WORD_PLACES * PLACE_BITS) as u32 })
    }
}

impl fmt::Debug for BoundsMemo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundsMemo").finish_non_exhaustive()
    }
}

/// The place of a position.
#[derive(Clone, Copy)]
pub(crate) struct MemoPlace<'a> {
    word: &'a AtomicU64,
    /// The lowest bit in the word.
    shift: u32,
}

impl MemoPlace<'_> {
    /// Returns the bounds, if they are known.
    #[inline]
    pub(crate) fn get(self) -> Option<(Score, Score)> {
        let kept = (self.word.load(Ordering::Relaxed) >> self.shift) as u16;
        let [low, high] = kept.to_le_bytes().map(|bound| (bound as Score).wrapping_sub(OFFSET));
        (kept != EMPTY).then_some((low, high))
    }

    /// Keeps the bounds, if none are known.
    #[inline]
    pub(crate) fn put(self, (low, high): (Score, Score)) {
        let kept = u16::from_le_bytes([low, high].map(|bound| bound.wrapping_add(OFFSET) as u8));
        let word = self.word.load(Ordering::Relaxed);
        if (word >> self.shift) as u16 == EMPTY {
            let with = word | u64::from(kept) << self.shift;
            let _ = self.word.compare_exchange(word, with, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::PackedBoard;
    use game::Board;
    use game::reference::boards;

    fn place(memo: &BoundsMemo, pits: [u8; 12]) -> Option<MemoPlace<'_>> {
        memo.place(PackedBoard::new(&Board(pits)).number())
    }

    /// Each position has a place of its own, which is written once.
    #[test]
    fn bounds_are_kept() {
        let memo = BoundsMemo::default();
        let all: Vec<([u8; 12], i8)> =
            (0..=6).flat_map(|stones| boards(stones).into_iter().map(move |pits| (pits, stones as i8))).collect();
        let bounds = |(number, stones): (usize, i8)| {
            let low = -stones + (number % (2 * stones as usize + 1)) as i8;
            (low, if number.is_multiple_of(2) { low } else { stones })
        };
        for (number, &(pits, stones)) in all.iter().enumerate() {
            let place = place(&memo, pits).unwrap();
            assert_eq!(place.get(), None, "{pits:?}");
            place.put(bounds((number, stones)));
            place.put((-stones, -stones));
        }
        for (number, &(pits, stones)) in all.iter().enumerate() {
            assert_eq!(place(&memo, pits).unwrap().get(), Some(bounds((number, stones))), "{pits:?}");
        }
    }

    #[test]
    fn positions_with_more_stones_have_no_place() {
        let memo = BoundsMemo::default();
        let most = STONES_MAX as i8;
        for pit in 0..12 {
            let mut pits = [0; 12];
            pits[pit] = STONES_MAX as u8;
            let place_of_most = place(&memo, pits).unwrap();
            place_of_most.put((-most, most));
            assert_eq!(place_of_most.get(), Some((-most, most)));
            pits[pit] += 1;
            assert!(place(&memo, pits).is_none());
        }
    }
}
