//! Changed scores of a rank, and their encoding in messages.
//!
//! A [`ChangeMessage`] has changes of one slab. The rows of the slab, `OpponentMajor`, are cut into words of 64
//! columns, numbered by chunk of columns, then by row, so that words that a tile derives together are neighbours. A
//! word with changes is encoded as the difference of its number from the one before (zigzag, a varint); then the number
//! of changed columns and each of them in a byte, or, if they are many, `0xff` and a mask of 64 bits; then the new
//! scores.

use super::partition::SlabPatch;
use crate::huge_pages::Words;
use crate::kernels::scores::{Kernel, lanes};
use crate::kernels::tables::CHUNK;
use crate::ranks::varint::{self, Malformed, take_bytes};
use crate::word_update::WordUpdate;
use game::Slab;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Most listed columns: a mask takes as many bytes.
const LISTED_MAX: u32 = 7;

/// Distance, in words, of prefetches: the words are in different pages.
pub(crate) const AHEAD: usize = 12;

/// Marks a mask.
const MASK: u8 = 0xff;

/// Changes not sent yet: one bit a position, `OpponentMajor`.
pub(crate) struct PendingChanges {
    words: Words,
    /// By the mover's stones.
    slabs: Vec<SlabChanges>,
    /// By run of 64 rows of a chunk, whether it may have changes.
    runs: Vec<AtomicBool>,
    update: WordUpdate,
}

/// Location of the changes of a slab, by chunk, then by row.
#[derive(Clone, Copy)]
struct SlabChanges {
    /// First word.
    first: usize,
    /// First run.
    first_run: usize,
    /// First chunk with words.
    first_chunk: usize,
    rows: usize,
}

impl SlabChanges {
    fn word(&self, chunk: usize, row: usize) -> usize {
        self.first + (chunk - self.first_chunk) * self.rows + row
    }

    fn run(&self, chunk: usize, row: usize) -> usize {
        self.first_run + (chunk - self.first_chunk) * self.rows.div_ceil(CHUNK) + row / CHUNK
    }
}

impl PendingChanges {
    /// Creates an empty set for the given chunks of columns of each slab and the threads of the current pool.
    pub(crate) fn none(slabs: &[Slab], chunks: impl Fn(usize) -> Range<usize>) -> PendingChanges {
        let (mut words, mut runs) = (0, 0);
        let place = |(at, slab): (usize, &Slab)| {
            let (chunks, rows) = (chunks(at), slab.opponent_halves as usize);
            let place = SlabChanges { first: words, first_run: runs, first_chunk: chunks.start, rows };
            words += rows * chunks.len();
            runs += rows.div_ceil(CHUNK) * chunks.len();
            place
        };
        let slabs = slabs.iter().enumerate().map(place).collect();
        let runs = (0..runs).map(|_| AtomicBool::new(false)).collect();
        PendingChanges { words: Words::zeroed(words), slabs, runs, update: WordUpdate::for_pool() }
    }

    /// Bytes of memory that the changes of these patches take once touched.
    pub(super) fn bytes(patches: &[SlabPatch]) -> u64 {
        let words =
            |patch: &SlabPatch| patch.rows.len() * (patch.columns.end.div_ceil(CHUNK) - patch.columns.start / CHUNK);
        patches.iter().map(words).map(|words| (words * size_of::<u64>() + words / CHUNK) as u64).sum()
    }

    /// Adds changes of columns of a chunk.
    pub(crate) fn add(&self, slab: usize, row: usize, chunk: usize, columns: u64) {
        let slab = &self.slabs[slab];
        self.update.set(&self.words[slab.word(chunk, row)], columns);
        let run = &self.runs[slab.run(chunk, row)];
        if !run.load(Relaxed) {
            run.store(true, Relaxed);
        }
    }

    /// Removes the changes of a chunk of a patch, and visits each row with any. Calls `prefetch` some rows ahead. No
    /// thread may add changes at the same time.
    pub(crate) fn take(
        &self,
        patch: &SlabPatch,
        chunk: usize,
        prefetch: impl Fn(usize),
        mut visit: impl FnMut(usize, u64),
    ) {
        let slab = &self.slabs[patch.slab];
        let mut first = patch.rows.start;
        while first < patch.rows.end {
            let next = (first / CHUNK + 1) * CHUNK;
            let rows = first..next.min(patch.rows.end);
            first = next;
            let run = &self.runs[slab.run(chunk, rows.start)];
            if !run.load(Relaxed) {
                continue;
            }
            if rows.start % CHUNK == 0 && (rows.len() == CHUNK || rows.end == slab.rows) {
                run.store(false, Relaxed);
            }
            let words = &self.words[slab.word(chunk, rows.start)..][..rows.len()];
            for (at, (row, word)) in rows.zip(words).enumerate() {
                if words.get(at + AHEAD).is_some_and(|ahead| ahead.load(Relaxed) != 0) {
                    prefetch(row + AHEAD);
                }
                if word.load(Relaxed) != 0 {
                    visit(row, self.update.take(word));
                }
            }
        }
    }
}

/// Encoder of the changes of a slab, for one rank.
#[derive(Default)]
pub(crate) struct ChangeMessage {
    bytes: Vec<u8>,
    word: u64,
}

/// Decoded word: changed columns and their scores.
pub(crate) struct ChangedWord<'a> {
    pub(crate) word: u64,
    pub(crate) columns: u64,
    /// Scores of these columns.
    pub(crate) scores: &'a [u8],
}

impl ChangeMessage {
    /// Appends columns of a word, given the scores of the whole word.
    pub(crate) fn write(&mut self, kernel: Kernel, word: u64, columns: u64, scores: &[i8]) {
        varint::push_gap(&mut self.bytes, self.word, word);
        self.word = word;
        if columns.count_ones() <= LISTED_MAX {
            self.bytes.push(columns.count_ones() as u8);
            self.bytes.extend(lanes(columns).map(|lane| lane as u8));
        } else {
            self.bytes.push(MASK);
            self.bytes.extend_from_slice(&columns.to_le_bytes());
        }
        let scores: &[i8; CHUNK] = scores.first_chunk().expect("rows are padded");
        // At once: growing the vector lane by lane takes longer than everything else.
        let picked = kernel.pick(scores, columns);
        self.bytes.extend_from_slice(&picked);
        self.bytes.truncate(self.bytes.len() - columns.count_zeros() as usize);
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Decodes a message of [`ChangeMessage::write`], up to the first malformed word.
pub(crate) fn read(bytes: &[u8]) -> impl Iterator<Item = Result<ChangedWord<'_>, Malformed>> {
    let (mut bytes, mut word) = (bytes, 0);
    std::iter::from_fn(move || {
        let entry = (!bytes.is_empty()).then(|| next(&mut bytes, &mut word));
        if let Some(Err(Malformed)) = entry {
            bytes = &[];
        }
        entry
    })
}

fn next<'a>(bytes: &mut &'a [u8], word: &mut u64) -> Result<ChangedWord<'a>, Malformed> {
    *word = varint::take_gap(bytes, *word)?;
    let [kind] = *take_bytes(bytes)?;
    let columns = if kind == MASK {
        u64::from_le_bytes(*take_bytes(bytes)?)
    } else {
        let (listed, rest) = bytes.split_at_checked(kind.into()).ok_or(Malformed)?;
        *bytes = rest;
        listed.iter().fold(0, |columns, lane| columns | 1 << (lane % CHUNK as u8))
    };
    let (scores, rest) = bytes.split_at_checked(columns.count_ones() as usize).ok_or(Malformed)?;
    *bytes = rest;
    Ok(ChangedWord { word: *word, columns, scores })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::partition::shuffled;

    #[test]
    fn written_messages_are_read_back() {
        let scores: Vec<i8> = (0..CHUNK).map(|at| (at * 37 % 97) as i8 - 48).collect();
        let words = [5u64, 6, 700, 3, 0, u64::from(u32::MAX) * 900, u64::from(u32::MAX) * 900 - 1, 7];
        let columns = |at: usize| if at == 7 { u64::MAX } else { 0x8421_0842_1084_2108 >> (at * 8) | 1 };
        let mut change_message = ChangeMessage::default();
        words
            .iter()
            .enumerate()
            .for_each(|(at, &word)| change_message.write(Kernel::detect(), word, columns(at), &scores));
        let bytes = change_message.into_bytes();
        let scores_of = |entry: ChangedWord| {
            let scores = lanes(entry.columns).zip(entry.scores);
            scores.map(|(lane, &score)| (entry.word, lane, score as i8)).collect::<Vec<_>>()
        };
        let found: Vec<_> = read(&bytes).flat_map(|entry| scores_of(entry.unwrap())).collect();
        let all = words.iter().enumerate();
        let scores = &scores;
        let all = all.flat_map(|(at, &word)| lanes(columns(at)).map(move |lane| (word, lane, scores[lane])));
        assert!(found.into_iter().eq(all));
        // A truncated message is never read as a whole one.
        for length in 0..bytes.len() {
            let whole = read(&bytes[..length]).take_while(Result::is_ok).count();
            assert!(whole < words.len(), "{length} of {}", bytes.len());
        }
        let mut malformed = read(&[0xff; 19]);
        assert!(matches!(malformed.next(), Some(Err(Malformed))) && malformed.next().is_none());
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
    fn each_change_is_taken_once() {
        let slab = |mover_stones, offset| Slab {
            mover_stones,
            opponent_stones: 1 - mover_stones,
            mover_halves: 200,
            opponent_halves: 205,
            offset,
        };
        let changes = PendingChanges::none(&[slab(0, 0), slab(1, 41_000)], |slab| if slab == 0 { 2..3 } else { 0..4 });
        let mut seen = Vec::new();
        let mut take = |slab: usize, rows: Range<usize>, chunk: usize| {
            let patch = SlabPatch { slab, rows, columns: 0..200 };
            changes.take(
                &patch,
                chunk,
                |row| assert!(patch.rows.contains(&row)),
                |row, columns| {
                    seen.push((slab, row, chunk, columns));
                },
            );
            std::mem::take(&mut seen)
        };
        for (row, columns) in [(2, 0xf0), (2, 1), (0, 7), (63, 2), (64, 3), (130, 4), (204, 5)] {
            changes.add(1, row, 3, columns);
        }
        changes.add(0, 2, 2, 9);
        assert_eq!((0..3).flat_map(|chunk| take(1, 0..205, chunk)).count(), 0);
        assert_eq!(take(1, 1..131, 3), [(1, 2, 3, 0xf1), (1, 63, 3, 2), (1, 64, 3, 3), (1, 130, 3, 4)]);
        assert_eq!(take(1, 1..131, 3), []);
        // The rest of runs that were taken in part.
        assert_eq!(take(1, 0..205, 3), [(1, 0, 3, 7), (1, 204, 3, 5)]);
        changes.add(1, 70, 3, 6);
        assert_eq!(take(1, 64..128, 3), [(1, 70, 3, 6)]);
        changes.add(1, 70, 3, 8);
        assert_eq!(take(1, 64..128, 3), [(1, 70, 3, 8)]);
        assert_eq!(take(0, 0..205, 2), [(0, 2, 2, 9)]);
    }
}
