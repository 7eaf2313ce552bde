//! The transposition table: what searches found out about positions.
//!
//! An entry is one atomic word that holds the whole position: 25 bits beside the number of its line, which is
//! derived from the rest. So an entry never belongs to another position, and no thread ever sees half of one.
//! Threads share the table without locks; a lost update loses knowledge but is never wrong.
//!
//! ```text
//! bits   0..25   position within the line
//!       25..32   lower bound + 48, proved
//!       32..39   upper bound + 48, proved
//!       39..50   estimate + 960, in units of 1/20 stone
//!       50..52   kind of the estimate
//!       52..58   depth of the estimate
//!       58..61   pit of the best move; 7 if unknown
//!       61..64   generation, never 0
//! ```

use crate::board::NUMBER_BITS;
use crate::memory::{CacheLine, SharedLines};
use game::STONES_MAX;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The lines of the sample of [`TranspositionTable::permille_used`].
const SAMPLE_LINES: usize = 128;

/// The number of units of an estimate in a stone.
pub(crate) const STONE: i32 = 20;

/// The largest depth of an estimate.
pub(crate) const DEPTH_MAX: i32 = 63;

const KEY_BITS: u32 = 25;
const KEY_MASK: u64 = (1 << KEY_BITS) - 1;
const OFFSET: i32 = STONES_MAX as i32;

/// The fewest lines, with which [`KEY_BITS`] bits distinguish all positions of a line.
const LINES_MIN: u64 = 1 << (NUMBER_BITS - KEY_BITS);

/// How an estimate relates to that of a search with an open window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EstimateKind {
    /// There is no estimate.
    None,
    /// A lower bound.
    AtLeast,
    /// An upper bound.
    AtMost,
    /// The estimate itself.
    Full,
}

/// What the table holds about a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableEntry {
    /// Proved lower bound of the score.
    pub(crate) low: i8,
    /// Proved upper bound of the score.
    pub(crate) high: i8,
    /// The estimate, in units of 1/[`STONE`] stone.
    pub(crate) estimate: i32,
    pub(crate) kind: EstimateKind,
    /// The depth of the search that made the estimate.
    pub(crate) depth: i32,
    /// The pit of the best move, if one is known.
    pub(crate) pit: Option<u8>,
}

impl TableEntry {
    fn pack(&self, key: u64, generation: u8) -> u64 {
        debug_assert!(self.low <= self.high && self.estimate.abs() <= OFFSET * STONE);
        let kind = match self.kind {
            EstimateKind::None => 0,
            EstimateKind::AtLeast => 1,
            EstimateKind::AtMost => 2,
            EstimateKind::Full => 3,
        };
        key | ((i32::from(self.low) + OFFSET) as u64) << 25
            | ((i32::from(self.high) + OFFSET) as u64) << 32
            | ((self.estimate + OFFSET * STONE) as u64) << 39
            | kind << 50
            | (self.depth.clamp(0, DEPTH_MAX) as u64) << 52
            | u64::from(self.pit.unwrap_or(7)) << 58
            | u64::from(generation) << 61
    }

    #[inline]
    fn unpack(word: u64) -> TableEntry {
        let bits = |from: u32, count: u32| ((word >> from) & ((1 << count) - 1)) as i32;
        TableEntry {
            low: (bits(25, 7) - OFFSET) as i8,
            high: (bits(32, 7) - OFFSET) as i8,
            estimate: bits(39, 11) - OFFSET * STONE,
            kind: match bits(50, 2) {
                0 => EstimateKind::None,
                1 => EstimateKind::AtLeast,
                2 => EstimateKind::AtMost,
                _ => EstimateKind::Full,
            },
            depth: bits(52, 6),
            pit: Some(bits(58, 3) as u8).filter(|&pit| pit < 6),
        }
    }
}

/// The line of a position, and its key within the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TablePlace {
    line: usize,
    key: u64,
}

/// A table of positions, shared by threads and kept from search to search.
pub struct TranspositionTable {
    lines: SharedLines,
    /// The generation of the current search, 1 to 7.
    generation: AtomicU8,
}

impl TranspositionTable {
    /// The smallest size.
    pub const BYTES_MIN: u64 = LINES_MIN * CacheLine::BYTES as u64;

    /// The bytes of an entry: of one position.
    pub const BYTES_PER_POSITION: u64 = 8;

    /// Allocates a table of at most `bytes` bytes, but no smaller than [`BYTES_MIN`](Self::BYTES_MIN).
    ///
    /// # Errors
    /// If the system refuses the memory.
    pub fn new(bytes: u64) -> io::Result<TranspositionTable> {
        let lines = (bytes / CacheLine::BYTES as u64).max(LINES_MIN);
        let lines = usize::try_from(lines).map_err(|_| io::ErrorKind::OutOfMemory)?;
        Ok(TranspositionTable { lines: SharedLines::zeroed(lines)?, generation: AtomicU8::new(1) })
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> u64 {
        (self.lines.len() * CacheLine::BYTES) as u64
    }

    /// Forgets everything. Afterwards the system has committed all memory of the table.
    pub fn clear(&self) {
        self.lines.iter().flat_map(|line| &line.0).for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Begins a search: entries of earlier searches are replaced first.
    pub(crate) fn next_generation(&self) {
        let generation = self.generation.load(Ordering::Relaxed) % 7 + 1;
        // Entries of the sample that are seven searches old would count as those of this one: they become six
        // searches old.
        for word in self.sample() {
            let old = word.load(Ordering::Relaxed);
            if (old >> 61) as u8 == generation {
                let aged = old & !(7 << 61) | u64::from(generation % 7 + 1) << 61;
                // Another search may replace it meanwhile.
                let _ = word.compare_exchange(old, aged, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
        self.generation.store(generation, Ordering::Relaxed);
    }

    /// The words in which entries are counted, to estimate how full the table is.
    fn sample(&self) -> impl Iterator<Item = &AtomicU64> {
        self.lines[..SAMPLE_LINES].iter().flat_map(|line| &line.0)
    }

    /// Returns the share of entries of the current search, in thousandths, from a sample.
    pub(crate) fn permille_used(&self) -> u32 {
        let generation = self.generation.load(Ordering::Relaxed);
        let used = self.sample().filter(|word| (word.load(Ordering::Relaxed) >> 61) as u8 == generation).count();
        (used * 1000 / (SAMPLE_LINES * CacheLine::WORDS)) as u32
    }

    /// Returns the place of the board of this number.
    #[inline]
    pub(crate) fn place_of(&self, number: u64) -> TablePlace {
        const MASK: u64 = (1 << NUMBER_BITS) - 1;
        // Each step is a bijection of numbers of 41 bits, so that different boards of a line have different keys.
        let mixed = number ^ (number >> 22);
        let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) & MASK;
        let mixed = mixed ^ (mixed >> 19);
        let mixed = mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) & MASK;
        let line = ((u128::from(mixed) * self.lines.len() as u128) >> NUMBER_BITS) as usize;
        TablePlace { line, key: mixed & KEY_MASK }
    }

    /// Starts to load the line of a place.
    #[inline]
    pub(crate) fn prefetch(&self, place: TablePlace) {
        self.lines[place.line].prefetch();
    }

    /// Returns the entry of a place.
    #[inline]
    pub(crate) fn get(&self, place: TablePlace) -> Option<TableEntry> {
        let words = self.lines[place.line].0.iter().map(|word| word.load(Ordering::Relaxed));
        let mut found = words.filter(|&word| word & KEY_MASK == place.key && word != 0);
        found.next().map(TableEntry::unpack)
    }

    /// Enters what a search found out. Proved bounds are joined with those that are there.
    #[inline]
    pub(crate) fn put(&self, place: TablePlace, mut entry: TableEntry) {
        let generation = self.generation.load(Ordering::Relaxed);
        let line = &self.lines[place.line].0;
        let (mut worst, mut worst_value) = (0, i32::MAX);
        for (at, word) in line.iter().enumerate() {
            let word = word.load(Ordering::Relaxed);
            if word == 0 {
                if worst_value > i32::MIN {
                    (worst, worst_value) = (at, i32::MIN);
                }
                continue;
            }
            let old = TableEntry::unpack(word);
            if word & KEY_MASK == place.key {
                entry.low = entry.low.max(old.low);
                entry.high = entry.high.min(old.high);
                if entry.low > entry.high {
                    // Scores of a database contradict each other: the search finds that out by itself.
                    return;
                }
                let is_current = (word >> 61) as u8 == generation;
                if entry.kind == EstimateKind::None || (is_current && old.depth > entry.depth + 2) {
                    let pit = if entry.kind == EstimateKind::None { old.pit.or(entry.pit) } else { old.pit };
                    entry = TableEntry { low: entry.low, high: entry.high, pit, ..old };
                }
                line[at].store(entry.pack(place.key, generation), Ordering::Relaxed);
                return;
            }
            let age = (i32::from(generation) + 7 - (word >> 61) as i32) % 7;
            let value = old.depth - 8 * age;
            if value < worst_value {
                (worst, worst_value) = (at, value);
            }
        }
        line[worst].store(entry.pack(place.key, generation), Ordering::Relaxed);
    }
}

impl fmt::Debug for TranspositionTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TranspositionTable").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_are_written() {
        let table = TranspositionTable::new(0).unwrap();
        assert_eq!(table.bytes(), TranspositionTable::BYTES_MIN);
        let last = (1 << NUMBER_BITS) - 1;
        for (number, low, high, estimate, kind, depth, pit) in [
            (0, -48, -48, -960, EstimateKind::None, 0, None),
            (1, -48, 48, 0, EstimateKind::AtLeast, 5, Some(0)),
            (last, 48, 48, 960, EstimateKind::Full, 63, Some(5)),
            (77, -3, 7, -13, EstimateKind::AtMost, 40, Some(2)),
        ] {
            let entry = TableEntry { low, high, estimate, kind, depth, pit };
            let place = table.place_of(number);
            assert_eq!(table.get(place), None);
            table.put(place, entry);
            assert_eq!(table.get(place), Some(entry));
        }
        table.clear();
        assert_eq!(table.get(table.place_of(1)), None);
    }

    /// Also after as many searches as there are generations.
    #[test]
    fn the_share_used_is_that_of_one_search() {
        let table = TranspositionTable::new(0).unwrap();
        let entry = TableEntry { low: -48, high: 48, estimate: 0, kind: EstimateKind::Full, depth: 9, pit: None };
        let lines: Vec<TablePlace> = (0..1 << 16).map(|number| table.place_of(number * 77_777)).collect();
        let first: Vec<TablePlace> = lines.into_iter().filter(|place| place.line < SAMPLE_LINES).collect();
        assert!(!first.is_empty());
        first.iter().for_each(|place| table.put(*place, entry));
        assert!(table.permille_used() > 0);
        for search in 0..20 {
            table.next_generation();
            assert_eq!(table.permille_used(), 0, "search {search}");
            assert!(first.iter().any(|place| table.get(*place) == Some(entry)));
        }
    }

    /// Positions of one line have different keys: the numbers of a line are contiguous after mixing.
    #[test]
    fn places_are_those_of_one_position() {
        for bytes in [0, 5_000_000, 100_000_000] {
            let table = TranspositionTable::new(bytes).unwrap();
            let count = 3_000_000_u64;
            let mut places: Vec<(usize, u64)> = (0..count)
                .map(|at| at * ((1 << NUMBER_BITS) / count))
                .chain(0..count)
                .map(|number| table.place_of(number))
                .map(|place| (place.line, place.key))
                .collect();
            places.sort_unstable();
            places.dedup();
            // 0 and a multiple of the step occur twice.
            let step = (1 << NUMBER_BITS) / count;
            let twice = count.div_ceil(step);
            assert_eq!(places.len() as u64, 2 * count - twice, "{bytes}");
        }
    }

    #[test]
    fn proved_bounds_are_joined() {
        let table = TranspositionTable::new(0).unwrap();
        let place = table.place_of(12345);
        let entry = |low, high, kind, depth| TableEntry { low, high, estimate: 0, kind, depth, pit: Some(1) };
        table.put(place, entry(-4, 9, EstimateKind::Full, 9));
        table.put(place, entry(-7, 5, EstimateKind::None, 0));
        assert_eq!(table.get(place), Some(entry(-4, 5, EstimateKind::Full, 9)));
        table.put(place, entry(-2, 9, EstimateKind::AtLeast, 8));
        assert_eq!(table.get(place), Some(entry(-2, 5, EstimateKind::AtLeast, 8)));
    }

    /// A full line keeps the deepest entries, and forgets those of earlier searches first.
    #[test]
    fn shallow_and_old_entries_are_replaced() {
        let table = TranspositionTable::new(0).unwrap();
        let first = table.place_of(0);
        let same_line: Vec<TablePlace> = (0..40_000_000)
            .map(|number| table.place_of(number))
            .filter(|place| place.line == first.line)
            .take(20)
            .collect();
        assert_eq!(same_line.len(), 20);
        let entry = |depth| TableEntry { low: 0, high: 1, estimate: 0, kind: EstimateKind::Full, depth, pit: None };
        for (depth, place) in (1..).zip(&same_line[..9]) {
            table.put(*place, entry(depth));
        }
        assert_eq!(table.get(same_line[0]), None);
        assert_eq!(table.get(same_line[8]), Some(entry(9)));
        table.next_generation();
        table.put(same_line[9], entry(0));
        table.put(same_line[10], entry(0));
        let held = |at: usize| table.get(same_line[at]).is_some();
        assert_eq!([1, 2, 3, 8, 9, 10].map(held), [false, false, true, true, true, true]);
    }
}
