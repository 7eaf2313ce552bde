//! The wins that a rank keeps: the `OpponentMajor` rows that moves from its own rows lead to.
//!
//! A new win is sent to every rank that keeps its row. A row to which no move leads is kept by one rank, since the
//! database contains it. One of the ranks that keep a row *reports* it, that is, logs the wins that are found there at a bound.

use super::log::DecisionLog;
use super::message::{BoundMessage, EncodedBits};
use super::partition::{RowPartition, RowSet};
use crate::bounds::{PlaneLayout, PlaneSlab, PlaneUnit, RowBits, Wins};
use crate::huge_pages::Words;
use crate::kernels::cpu;
use crate::kernels::tables::{CHUNK, Tables};
use crate::word_update::WordUpdate;
use std::iter;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A message of this length is sent before the end of the pass.
const LONG_MESSAGE_BYTES: usize = 4 << 10;

/// Words of a cache line.
const LINE_WORDS: usize = 8;

/// The rows of wins that each rank keeps. A function of the database and the number of ranks.
#[derive(Debug)]
pub(super) struct RowKeepers {
    /// By rank and slab.
    rows: Vec<Vec<RowSet>>,
}

impl RowKeepers {
    pub(super) fn new(tables: &Tables, partition: &RowPartition) -> RowKeepers {
        let held = partition.held_by_all(tables);
        let ranks = partition.ranks() as u64;
        let mut words: Vec<Vec<Vec<u64>>> = vec![Vec::new(); partition.ranks()];
        for (number, slab) in partition.slabs().iter().enumerate() {
            let chunks = (slab.opponent_halves as usize).div_ceil(CHUNK);
            for (words, held) in words.iter_mut().zip(&held) {
                words.push((0..chunks).map(|chunk| held[number].of(chunk)).collect());
            }
            for row in 0..slab.opponent_halves {
                if !held.iter().any(|held| held[number].contains(row)) {
                    let keeper = u64::from(row) * ranks / u64::from(slab.opponent_halves);
                    words[keeper as usize][number][row as usize / CHUNK] |= 1 << (row as usize % CHUNK);
                }
            }
        }
        RowKeepers { rows: words.into_iter().map(|slabs| slabs.into_iter().map(RowSet::new).collect()).collect() }
    }

    /// The rows that a rank keeps, by slab.
    pub(super) fn of(&self, rank: usize) -> &[RowSet] {
        &self.rows[rank]
    }

    /// The ranks that keep a row.
    fn keep(&self, slab: usize, row: usize) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.rows.len()).filter(move |&rank| self.rows[rank][slab].contains(row as u32))
    }

    /// Returns the rank that reports a row: the ranks that keep it take turns.
    fn reports(&self, slab: usize, row: usize) -> usize {
        let count = self.keep(slab, row).count();
        self.keep(slab, row).nth(row / CHUNK % count).expect("every row is kept")
    }
}

/// Storage of the words of the rows of wins that a rank keeps: zeros at first. Sets and reads are ordered as those of
/// [`Wins`].
pub trait KeptWords<E>: Sync {
    /// Row that is read while other threads set bits in it.
    type Row<'a>: RowBits
    where
        Self: 'a;

    /// Returns the row of the words from `first` on, of which only `words`, counted from there, will be read. `buffer` is
    /// scratch space for the storage.
    fn row<'a>(&'a self, first: usize, words: Range<usize>, buffer: &'a mut Vec<u64>) -> Self::Row<'a>;

    /// Hints that words will be read or set soon.
    fn expect(&self, _words: Range<usize>) {}

    /// Whether all these bits are set, by word, counted from `first`.
    fn has(&self, first: usize, bits: &[(u32, u64)]) -> bool;

    /// Sets bits of a word, and returns those that are new.
    fn set(&self, word: usize, bits: u64) -> u64;

    /// Reads words.
    fn read(&self, words: Range<usize>, into: &mut [u64]);

    /// Returns the first failure since the last call. Until then reads may miss bits.
    fn check(&self) -> Result<(), E>;
}

/// Words in memory.
pub struct KeptInMemory {
    words: Words,
    update: WordUpdate,
}

impl KeptInMemory {
    /// Creates this many words. Only threads of the current pool may set their bits.
    pub fn zeroed(words: usize) -> KeptInMemory {
        KeptInMemory { words: Words::zeroed(words), update: WordUpdate::for_pool() }
    }

    /// Number of words.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }
}

impl<E> KeptWords<E> for KeptInMemory {
    type Row<'a> = &'a [AtomicU64];

    fn row<'a>(&'a self, first: usize, words: Range<usize>, _: &'a mut Vec<u64>) -> &'a [AtomicU64] {
        &self.words[first..first + words.end]
    }

    fn expect(&self, words: Range<usize>) {
        cpu::prefetch(&self.words[words]);
    }

    fn has(&self, first: usize, bits: &[(u32, u64)]) -> bool {
        bits.iter().all(|&(at, bits)| bits & !self.words[first + at as usize].load(Relaxed) == 0)
    }

    fn set(&self, word: usize, bits: u64) -> u64 {
        bits & !self.update.set(&self.words[word], bits)
    }

    fn read(&self, words: Range<usize>, into: &mut [u64]) {
        into.iter_mut().zip(&self.words[words]).for_each(|(to, word)| *to = word.load(Relaxed));
    }

    fn check(&self) -> Result<(), E> {
        Ok(())
    }
}

/// The rows of wins of one rank.
#[derive(Debug)]
pub(super) struct KeptWins<W> {
    rank: usize,
    keepers: RowKeepers,
    slabs: Vec<PlaneSlab>,
    /// By slab, the first word of its rows in `words`.
    first_words: Vec<usize>,
    pub(super) words: W,
    /// By slab, the bit mask of the rows that this rank reports.
    reported: Vec<Vec<u64>>,
    /// Whether wins that are set were found at the current bound, and are logged.
    is_logging: AtomicBool,
    /// Whether wins that are set were found by this rank, and are sent.
    is_sending: AtomicBool,
    /// Log of the wins found at the bound, in the rows that this rank reports.
    pub(super) won: DecisionLog,
    outboxes: Vec<Mutex<Outbox>>,
}

/// Messages that a thread has written.
#[derive(Debug)]
struct Outbox {
    /// By rank.
    bound_messages: Vec<BoundMessage>,
    /// The new bits of a row.
    new: Vec<(u32, u64)>,
    /// The same, encoded.
    encoded: EncodedBits,
    /// Whether the thread sets wins that another rank sent.
    is_receiving: bool,
}

/// Origin of wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WinSource {
    /// Higher bounds.
    Above,
    /// Captures of this bound, which are known beforehand.
    Captures,
    /// Another rank.
    Others,
    /// This rank.
    Own,
}

impl<W> KeptWins<W> {
    /// Creates rows without wins, in the storage that `make` returns for their words.
    pub(super) fn none<E>(
        layout: &PlaneLayout,
        keepers: RowKeepers,
        rank: usize,
        make: impl FnOnce(usize) -> Result<W, E>,
    ) -> Result<KeptWins<W>, E> {
        let slabs = layout.slabs().to_vec();
        let mut end = 0;
        let first_words = slabs.iter().zip(keepers.of(rank)).map(|(slab, kept)| {
            let first = end;
            end += kept.count as usize * slab.row_words;
            first
        });
        let first_words = first_words.collect();
        let reported = (0..slabs.len()).map(|slab| {
            let mut rows = vec![0; slabs[slab].rows.div_ceil(CHUNK)];
            for row in (0..slabs[slab].rows).filter(|&row| keepers.reports(slab, row) == rank) {
                rows[row / CHUNK] |= 1 << (row % CHUNK);
            }
            rows
        });
        let reported = reported.collect();
        let ranks = keepers.rows.len();
        let outbox = || {
            Mutex::new(Outbox {
                bound_messages: (0..ranks).map(|_| BoundMessage::default()).collect(),
                new: Vec::new(),
                encoded: EncodedBits::default(),
                is_receiving: false,
            })
        };
        Ok(KeptWins {
            rank,
            keepers,
            slabs,
            first_words,
            words: make(end)?,
            reported,
            is_logging: AtomicBool::new(false),
            is_sending: AtomicBool::new(false),
            won: DecisionLog::new(layout),
            outboxes: (0..rayon::current_num_threads()).map(|_| outbox()).collect(),
        })
    }

    /// Sets the origin of the wins that are set next.
    pub(super) fn expect_from(&self, source: WinSource) {
        self.is_logging.store(matches!(source, WinSource::Own | WinSource::Others), Relaxed);
        self.is_sending.store(source == WinSource::Own, Relaxed);
    }

    /// Runs `set`, in which the current thread sets wins that another rank sent, while other threads set those of this rank.
    pub(super) fn receiving<T>(&self, set: impl FnOnce() -> T) -> T {
        self.outbox().is_receiving = true;
        let result = set();
        self.outbox().is_receiving = false;
        result
    }

    /// The outbox of the current thread.
    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        lock(&self.outboxes[rayon::current_thread_index().unwrap_or(0) % self.outboxes.len()])
    }

    /// Returns the runs of rows of a unit that are kept here.
    pub(super) fn kept_runs(&self, unit: &PlaneUnit) -> impl Iterator<Item = PlaneUnit> + '_ {
        let (slab, end) = (unit.slab, unit.rows.end);
        let (kept, layout) = (&self.keepers.of(self.rank)[slab], &self.slabs[slab]);
        let mut row = unit.rows.start;
        iter::from_fn(move || {
            let first = (row..end).find(|&row| kept.contains(row as u32))?;
            row = (first..end).find(|&row| !kept.contains(row as u32)).unwrap_or(end);
            Some(PlaneUnit { slab, rows: first..row, words: layout.word(first)..layout.word(row) })
        })
    }

    /// Whether this rank reports a row.
    pub(super) fn reports(&self, slab: usize, row: usize) -> bool {
        self.reported[slab][row / CHUNK] >> (row % CHUNK) & 1 == 1
    }

    /// Whether a row is kept here and has all these bits.
    pub(super) fn takes(&self, slab: usize, row: usize, bits: &[(u32, u64)]) -> bool {
        let layout = &self.slabs[slab];
        let fits = |&(word, bits): &(u32, u64)| {
            let before = word as usize * CHUNK;
            before < layout.columns && (layout.columns - before >= CHUNK || bits >> (layout.columns - before) == 0)
        };
        self.words_of(slab, row).is_some() && bits.iter().all(fits)
    }

    /// Takes the messages for a rank, or only the long ones.
    pub(super) fn bound_messages(&self, to: usize, only_long: bool) -> Vec<Vec<u8>> {
        let least = if only_long { LONG_MESSAGE_BYTES } else { 1 };
        let bound_messages = self.outboxes.iter().filter_map(|outbox| {
            let bound_message = &mut lock(outbox).bound_messages[to];
            (bound_message.len() >= least).then(|| bound_message.take())
        });
        bound_messages.collect()
    }

    /// Returns the range of the words of a row, if it is kept here.
    fn words_of(&self, slab: usize, row: usize) -> Option<Range<usize>> {
        let place = self.keepers.of(self.rank)[slab].find(row as u32)? as usize;
        let words = self.slabs[slab].row_words;
        let first = self.first_words[slab] + place * words;
        Some(first..first + words)
    }

    /// Returns the first word of a row that moves lead to.
    fn first_word(&self, slab: usize, row: usize) -> usize {
        self.words_of(slab, row).expect("rows that moves lead to are kept").start
    }

    /// Adds new wins of a row to the messages for all other ranks that keep it. They are encoded once, in `encoded`.
    fn notify(
        &self,
        bound_messages: &mut [BoundMessage],
        (slab, row): (usize, usize),
        bits: &[(u32, u64)],
        encoded: &mut EncodedBits,
    ) {
        encoded.encode(bits);
        for to in self.keepers.keep(slab, row).filter(|&to| to != self.rank) {
            bound_messages[to].append((self.slabs[slab].first_row + row) as u32, encoded);
        }
    }
}

impl<W: KeptWords<E>, E> Wins<E> for KeptWins<W> {
    type Row<'a>
        = W::Row<'a>
    where
        Self: 'a;

    fn row<'a>(&'a self, slab: usize, row: usize, words: Range<usize>, buffer: &'a mut Vec<u64>) -> W::Row<'a> {
        self.words.row(self.first_word(slab, row), words, buffer)
    }

    fn expect(&self, slab: usize, row: usize, words: Range<usize>) {
        let first = self.first_word(slab, row);
        self.words.expect(first + words.start..first + words.end);
    }

    fn expect_bits(&self, slab: usize, row: usize, bits: &[(u32, u64)]) {
        let Some(words) = self.words_of(slab, row) else { return };
        let mut line = usize::MAX;
        for &(at, _) in bits {
            let word = words.start + at as usize;
            if word / LINE_WORDS != line {
                line = word / LINE_WORDS;
                self.words.expect(word..word + 1);
            }
        }
    }

    fn set(&self, slab: usize, row: usize, bits: &[(u32, u64)], mut notify: impl FnMut(u32, u64)) {
        let is_sending = self.is_sending.load(Relaxed);
        let Some(words) = self.words_of(slab, row) else {
            if is_sending {
                let Outbox { bound_messages, encoded, .. } = &mut *self.outbox();
                self.notify(bound_messages, (slab, row), bits, encoded);
            }
            return;
        };
        // Most are set already.
        if self.words.has(words.start, bits) {
            return;
        }
        let Outbox { bound_messages, new, encoded, is_receiving } = &mut *self.outbox();
        new.clear();
        for &(at, bits) in bits {
            let bits = self.words.set(words.start + at as usize, bits);
            if bits != 0 {
                notify(at, bits);
                new.push((at, bits));
            }
        }
        if is_sending && !*is_receiving {
            self.notify(bound_messages, (slab, row), new, encoded);
        }
        if self.is_logging.load(Relaxed) && self.reports(slab, row) {
            self.won.write(slab, row, new);
        }
    }

    fn read(&self, slab: usize, rows: Range<usize>, into: &mut [u64]) {
        for (row, into) in rows.zip(into.chunks_mut(self.slabs[slab].row_words)) {
            match self.words_of(slab, row) {
                Some(words) => self.words.read(words, into),
                None => into.fill(0),
            }
        }
    }

    fn check(&self) -> Result<(), E> {
        self.words.check()
    }
}

fn lock(outbox: &Mutex<Outbox>) -> MutexGuard<'_, Outbox> {
    outbox.lock().unwrap_or_else(PoisonError::into_inner)
}
