//! What changed of what a rank owns, and how it tells others.
//!
//! A *letter* is about one slab: its rows, `OpponentMajor`, are cut into words of 64 columns, numbered row by row. A word
//! with changes: how far it is from the one before (zigzag, see `numbers`); how many changed if that is little, and
//! which columns, a byte each; else `0xff` and 64 bits. Then the scores.

use super::numbers::{self, Malformed, take_bytes};
use super::territory::Patch;
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
    /// By the mover's stones where the words would begin, were there one for every chunk of the first row; and words of
    /// a row.
    slabs: Vec<(usize, usize)>,
}

impl Changes {
    /// None, of a database of these slabs, in some chunks of columns of each.
    pub(crate) fn none(slabs: &[Slab], chunks: impl Fn(usize) -> Range<usize>) -> Changes {
        let mut words = 0;
        let place = |(at, slab): (usize, &Slab)| {
            let (first, chunks) = (words, chunks(at));
            words += chunks.start + slab.opponent_halves as usize * chunks.len();
            (first, chunks.len())
        };
        let slabs = slabs.iter().enumerate().map(place).collect();
        Changes { words: Words::zeroed(words), slabs }
    }

    /// Notes some of the 64 columns of a chunk.
    pub(crate) fn note(&self, slab: usize, row: usize, chunk: usize, columns: u64) {
        let (first, of_row) = self.slabs[slab];
        self.words[first + row * of_row + chunk].fetch_or(columns, Relaxed);
    }

    /// Takes what is noted of a row of a patch: visits each chunk that has any.
    pub(crate) fn take(&self, patch: &Patch, row: usize, mut visit: impl FnMut(usize, u64)) {
        let (first, of_row) = self.slabs[patch.slab];
        let chunks = patch.columns.start / CHUNK..patch.columns.end.div_ceil(CHUNK);
        let words = &self.words[first + row * of_row..][chunks.clone()];
        for (chunk, word) in chunks.zip(words) {
            if word.load(Relaxed) != 0 {
                visit(chunk, word.swap(0, Relaxed));
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
    pub(crate) fn write(&mut self, word: u64, columns: u64, scores: &[i8]) {
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
        // At once, and what is too much goes again: to ask for room lane by lane takes longer than all else.
        let first = self.bytes.len();
        self.bytes.resize(first + CHUNK, 0);
        for (to, lane) in self.bytes[first..].iter_mut().zip(lanes(columns)) {
            *to = scores[lane % CHUNK] as u8;
        }
        self.bytes.truncate(first + columns.count_ones() as usize);
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

/// The bits of a word, from the lowest.
pub(crate) fn lanes(mut columns: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = columns.trailing_zeros() as usize;
        (columns != 0).then(|| {
            columns &= columns - 1;
            lane
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let scores: Vec<i8> = (0..CHUNK).map(|at| (at * 37 % 97) as i8 - 48).collect();
        let words = [5u64, 6, 700, 3, 0, u64::from(u32::MAX) * 900, u64::from(u32::MAX) * 900 - 1, 7];
        let columns = |at: usize| if at == 7 { u64::MAX } else { 0x8421_0842_1084_2108 >> (at * 8) | 1 };
        let mut letter = Letter::default();
        words.iter().enumerate().for_each(|(at, &word)| letter.write(word, columns(at), &scores));
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
        changes.note(1, 2, 0, 7);
        let patch = Patch { slab: 1, rows: 0..5, columns: 64..200 };
        let mut seen = Vec::new();
        for row in 0..5 {
            changes.take(&patch, row, |chunk, columns| seen.push((row, chunk, columns)));
            changes.take(&patch, row, |chunk, columns| seen.push((row, chunk, columns)));
        }
        assert_eq!(seen, [(2, 3, 0xf1)]);
        changes.take(&Patch { columns: 0..200, ..patch }, 2, |chunk, columns| seen.push((2, chunk, columns)));
        assert_eq!(seen[1..], [(2, 0, 7)]);
    }
}
