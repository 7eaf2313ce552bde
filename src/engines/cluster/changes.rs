//! What changed of what a rank owns, and how it tells others.
//!
//! A *letter* is about one slab: its rows, `OpponentMajor`, are cut into words of 64 columns, numbered chunk of columns by
//! chunk, row by row: so those lie together that a tile derives together. A word with changes: how far it is from the one before (zigzag, see `numbers`); how many changed if that is little, and
//! which columns, a byte each; else `0xff` and 64 bits. Then the scores.

use super::numbers::{self, Malformed, take_bytes};
use super::territory::Patch;
use crate::hands::Hands;
use crate::kernel::{Kernel, lanes};
use crate::memory::Words;
use crate::tables::CHUNK;
use game::Slab;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

/// Columns told one by one, at most: a mask takes as much as this many.
const LISTED_MAX: u32 = 7;

/// Stands before a mask.
const MASK: u8 = 0xff;

/// Positions whose score is not told yet: a bit each, `OpponentMajor`.
pub(crate) struct Changes {
    words: Words,
    /// By the mover's stones where the words begin, the first chunk that has any, and rows.
    slabs: Vec<(usize, usize, usize)>,
    hands: Hands,
}

impl Changes {
    /// None, of a database of these slabs, in some chunks of columns of each; for the threads of the current pool.
    pub(crate) fn none(slabs: &[Slab], chunks: impl Fn(usize) -> Range<usize>) -> Changes {
        let mut words = 0;
        let place = |(at, slab): (usize, &Slab)| {
            let (first, chunks, rows) = (words, chunks(at), slab.opponent_halves as usize);
            words += rows * chunks.len();
            (first, chunks.start, rows)
        };
        let slabs = slabs.iter().enumerate().map(place).collect();
        Changes { words: Words::zeroed(words), slabs, hands: Hands::here() }
    }

    /// Bytes of memory that changes of these patches come to take.
    pub(super) fn bytes(patches: &[Patch]) -> u64 {
        let words =
            |patch: &Patch| patch.rows.len() * (patch.columns.end.div_ceil(CHUNK) - patch.columns.start / CHUNK);
        patches.iter().map(|patch| (words(patch) * size_of::<u64>()) as u64).sum()
    }

    /// Notes some of the 64 columns of a chunk.
    pub(crate) fn note(&self, slab: usize, row: usize, chunk: usize, columns: u64) {
        let (first, first_chunk, rows) = self.slabs[slab];
        self.hands.set(&self.words[first + (chunk - first_chunk) * rows + row], columns);
    }

    /// Takes what is noted of a chunk of a patch: visits each row that has any.
    pub(crate) fn take(&self, patch: &Patch, chunk: usize, mut visit: impl FnMut(usize, u64)) {
        let (first, first_chunk, rows) = self.slabs[patch.slab];
        let words = &self.words[first + (chunk - first_chunk) * rows..][patch.rows.clone()];
        for (row, word) in patch.rows.clone().zip(words) {
            if word.load(Relaxed) != 0 {
                visit(row, self.hands.take(word));
            }
        }
    }
}

/// Changes of a slab, for one rank.
#[derive(Default)]
pub(crate) struct Letter {
    bytes: Vec<u8>,
    word: u64,
}

/// Some of 64 columns, and their scores.
pub(crate) struct Told<'a> {
    pub(crate) word: u64,
    pub(crate) columns: u64,
    /// One for each of these columns.
    pub(crate) scores: &'a [u8],
}

impl Letter {
    /// Tells of some columns of a word, all scores of which are given.
    pub(crate) fn write(&mut self, kernel: Kernel, word: u64, columns: u64, scores: &[i8]) {
        numbers::push_gap(&mut self.bytes, self.word, word);
        self.word = word;
        if columns.count_ones() <= LISTED_MAX {
            self.bytes.push(columns.count_ones() as u8);
            self.bytes.extend(lanes(columns).map(|lane| lane as u8));
        } else {
            self.bytes.push(MASK);
            self.bytes.extend_from_slice(&columns.to_le_bytes());
        }
        let scores: &[i8; CHUNK] = scores.first_chunk().expect("rows are padded");
        // At once: to ask for room lane by lane takes longer than all else.
        let picked = kernel.pick(scores, columns);
        self.bytes.extend_from_slice(&picked);
        self.bytes.truncate(self.bytes.len() - columns.count_zeros() as usize);
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads what [`Letter::write`] wrote.
pub(crate) fn read(mut bytes: &[u8], mut visit: impl FnMut(Told) -> Result<(), Malformed>) -> Result<(), Malformed> {
    let mut word = 0u64;
    while !bytes.is_empty() {
        word = numbers::take_gap(&mut bytes, word)?;
        let [kind] = *take_bytes(&mut bytes)?;
        let columns = if kind == MASK {
            u64::from_le_bytes(*take_bytes(&mut bytes)?)
        } else {
            let (listed, rest) = bytes.split_at_checked(kind.into()).ok_or(Malformed)?;
            bytes = rest;
            listed.iter().fold(0, |columns, lane| columns | 1 << (lane % CHUNK as u8))
        };
        let (scores, rest) = bytes.split_at_checked(columns.count_ones() as usize).ok_or(Malformed)?;
        bytes = rest;
        visit(Told { word, columns, scores })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::deal::shuffled;

    #[test]
    fn what_is_written_is_read() {
        let scores: Vec<i8> = (0..CHUNK).map(|at| (at * 37 % 97) as i8 - 48).collect();
        let words = [5u64, 6, 700, 3, 0, u64::from(u32::MAX) * 900, u64::from(u32::MAX) * 900 - 1, 7];
        let columns = |at: usize| if at == 7 { u64::MAX } else { 0x8421_0842_1084_2108 >> (at * 8) | 1 };
        let mut letter = Letter::default();
        words.iter().enumerate().for_each(|(at, &word)| letter.write(Kernel::detect(), word, columns(at), &scores));
        let bytes = letter.into_bytes();
        let mut found = Vec::new();
        read(&bytes, |told| {
            found.extend(lanes(told.columns).zip(told.scores).map(|(lane, &score)| (told.word, lane, score as i8)));
            Ok(())
        })
        .unwrap();
        let all = words.iter().enumerate();
        let scores = &scores;
        let all = all.flat_map(|(at, &word)| lanes(columns(at)).map(move |lane| (word, lane, scores[lane])));
        assert!(found.into_iter().eq(all));
        // Nothing that is cut short is taken for whole.
        for length in 0..bytes.len() {
            let mut told = 0;
            let cut = read(&bytes[..length], |_| {
                told += 1;
                Ok(())
            });
            assert!(cut == Err(Malformed) || told < words.len(), "{length} of {}", bytes.len());
        }
        assert_eq!(read(&[0xff; 19], |_| Ok(())), Err(Malformed));
    }

    #[test]
    fn kernels_pick_and_merge_alike() {
        for seed in (0..500).map(|case| case << 8) {
            let scores: [i8; CHUNK] = std::array::from_fn(|lane| shuffled(seed + lane as u64) as i8);
            let old: [i8; CHUNK] = std::array::from_fn(|lane| shuffled(!seed - lane as u64) as i8 / 2);
            let few = if seed % 3 == 0 { shuffled(seed + 100) & shuffled(seed + 101) } else { u64::MAX };
            let columns = shuffled(seed + 102) & few;
            let mut expected = old;
            let mut new = 0;
            for lane in lanes(columns).filter(|&lane| scores[lane].unsigned_abs() > old[lane].unsigned_abs()) {
                expected[lane] = scores[lane];
                new |= 1 << lane;
            }
            for kernel in Kernel::available() {
                let picked = kernel.pick(&scores, columns);
                let picked = &picked[..columns.count_ones() as usize];
                assert!(picked.iter().map(|&score| score as i8).eq(lanes(columns).map(|lane| scores[lane])));
                let end = CHUNK - columns.leading_zeros() as usize;
                let mut merged = old;
                assert_eq!(kernel.merge(&mut merged[..end], columns, picked), new, "{kernel:?}");
                assert_eq!(merged, expected, "{kernel:?}");
            }
        }
    }

    #[test]
    fn what_is_noted_is_taken_once() {
        let slab = |mover_stones, offset| Slab {
            mover_stones,
            opponent_stones: 1 - mover_stones,
            mover_halves: 200,
            opponent_halves: 5,
            offset,
        };
        let changes = Changes::none(&[slab(0, 0), slab(1, 1000)], |slab| if slab == 0 { 2..3 } else { 0..4 });
        changes.note(1, 2, 3, 0xf0);
        changes.note(1, 2, 3, 1);
        changes.note(1, 0, 3, 7);
        let patch = Patch { slab: 1, rows: 1..5, columns: 0..200 };
        let mut seen = Vec::new();
        for chunk in 0..4 {
            changes.take(&patch, chunk, |row, columns| seen.push((row, chunk, columns)));
            changes.take(&patch, chunk, |row, columns| seen.push((row, chunk, columns)));
        }
        assert_eq!(seen, [(2, 3, 0xf1)]);
        changes.take(&Patch { rows: 0..5, ..patch }, 3, |row, columns| seen.push((row, 3, columns)));
        assert_eq!(seen[1..], [(0, 3, 7)]);
    }
}
