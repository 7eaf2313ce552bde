//! The wins that a rank keeps: the `OpponentMajor` rows that moves from its own rows lead to.
//!
//! A new win is sent to every rank that keeps its row. A row to which no move leads is kept by one rank,
//! since the database contains it. One of the ranks that keep a row *reports* it, that is, logs the wins that
//! are found there at a bound.

use super::log::DecisionLog;
use super::message::{BoundMessage, EncodedBits};
use super::partition::{RowPartition, RowSet};
use crate::bounds::storage::Wins;
use crate::bounds::{BitKernel, PlaneLayout, PlaneSlab, PlaneUnit, RowBits};
use crate::huge_pages::Words;
use crate::kernels::cpu;
use crate::kernels::tables::{CHUNK, Tables};
use crate::word_update::WordUpdate;
use rayon::prelude::*;
use std::iter;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A message of this length is sent before the end of the pass.
const LONG_MESSAGE_BYTES: usize = 4 << 10;

/// Words of a cache line.
const LINE_WORDS: usize = 8;

/// The ranks that keep each row of wins. A function of the database and the number of ranks.
#[derive(Debug)]
pub(super) struct RowKeepers {
    ranks: usize,
    /// By row, counted over all slabs: a bit for each rank, in [`mask_bytes`] bytes.
    masks: Vec<u8>,
}

/// Bytes of a mask with a bit for each rank.
pub(super) const fn mask_bytes(ranks: usize) -> usize {
    ranks.div_ceil(8)
}

impl RowKeepers {
    pub(super) fn new(tables: &Tables, partition: &RowPartition) -> RowKeepers {
        let ranks = partition.ranks();
        let rows: usize = partition.slabs().iter().map(|slab| slab.opponent_halves as usize).sum();
        let mut keepers = RowKeepers { ranks, masks: vec![0; rows * mask_bytes(ranks)] };
        let all: Vec<_> = (0..ranks).collect();
        // The sets of all ranks would take more memory than the masks.
        for some in all.chunks(rayon::current_num_threads()) {
            let held: Vec<_> = some.par_iter().map(|&rank| partition.held(tables, rank)).collect();
            for (&rank, held) in some.iter().zip(&held) {
                let mut first = 0;
                for (slab, held) in partition.slabs().iter().zip(held) {
                    held.iter().for_each(|row| keepers.add(first + row, rank));
                    first += slab.opponent_halves as usize;
                }
            }
        }
        let mut first = 0;
        for slab in partition.slabs() {
            let rows = slab.opponent_halves as usize;
            for row in (0..rows).filter(|row| keepers.keep(first + row).next().is_none()).collect::<Vec<_>>() {
                keepers.add(first + row, row * ranks / rows);
            }
            first += rows;
        }
        keepers
    }

    fn add(&mut self, row: usize, rank: usize) {
        self.masks[row * mask_bytes(self.ranks) + rank / 8] |= 1 << (rank % 8);
    }

    fn keeps(&self, row: usize, rank: usize) -> bool {
        self.masks[row * mask_bytes(self.ranks) + rank / 8] >> (rank % 8) & 1 == 1
    }

    /// Iterates over the ranks that keep a row, ascending.
    #[inline]
    pub(super) fn keep(&self, row: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        let bytes = mask_bytes(self.ranks);
        (0..).step_by(8).zip(&self.masks[row * bytes..][..bytes]).flat_map(|(first, &mask)| {
            let mut left = mask;
            iter::from_fn(move || {
                let rank = (left != 0).then(|| first + left.trailing_zeros() as usize);
                left &= left.wrapping_sub(1);
                rank
            })
        })
    }

    /// Returns the rows of a slab that a rank keeps.
    fn of(&self, rank: usize, slab: &PlaneSlab) -> RowSet {
        RowSet::of_rows(slab.rows, |row| self.keeps(slab.first_row + row, rank))
    }

    /// Returns the rank that reports a row: the ranks that keep it take turns.
    fn reports(&self, row: usize) -> usize {
        let keepers = self.keep(row);
        let turn = row / CHUNK % keepers.clone().count();
        keepers.clone().nth(turn).expect("every row is kept")
    }
}

/// Storage of the words of the rows of wins that a rank keeps: zeros at first. Sets and reads are ordered as those of
/// [`Wins`].
pub trait KeptWords<E>: Sync {
    /// Row that is read while other threads set bits in it.
    type Row<'a>: RowBits
    where
        Self: 'a;

    /// Makes the current pool the one whose threads set bits.
    fn enter_pool(&mut self);

    /// Returns the row of the words from `first` on, of which only `words`, counted from there, will be read.
    /// `buffer` is scratch space for the storage.
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

    fn enter_pool(&mut self) {
        self.update = WordUpdate::for_pool();
    }

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
    kernel: BitKernel,
    keepers: RowKeepers,
    slabs: Vec<PlaneSlab>,
    /// By slab, the rows that this rank keeps.
    kept: Vec<RowSet>,
    /// By slab, the first word of its rows in `words`.
    first_words: Vec<usize>,
    pub(super) words: W,
    /// By slab, the rows that this rank reports.
    reported: Vec<RowSet>,
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
        (rank, kernel): (usize, BitKernel),
        make: impl FnOnce(usize) -> Result<W, E>,
    ) -> Result<KeptWins<W>, E> {
        let slabs = layout.slabs().to_vec();
        let kept: Vec<_> = slabs.par_iter().map(|slab| keepers.of(rank, slab)).collect();
        let mut end = 0;
        let first_words = slabs.iter().zip(&kept).map(|(slab, kept)| {
            let first = end;
            end += kept.count as usize * slab.row_words;
            first
        });
        let first_words = first_words.collect();
        let reported = slabs
            .par_iter()
            .map(|slab| RowSet::of_rows(slab.rows, |row| keepers.reports(slab.first_row + row) == rank));
        let reported = reported.collect();
        let ranks = keepers.ranks;
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
            kernel,
            keepers,
            slabs,
            kept,
            first_words,
            words: make(end)?,
            reported,
            is_logging: AtomicBool::new(false),
            is_sending: AtomicBool::new(false),
            won: DecisionLog::new(layout, kernel),
            outboxes: (0..rayon::current_num_threads()).map(|_| outbox()).collect(),
        })
    }

    /// Sets the origin of the wins that are set next.
    pub(super) fn expect_from(&self, source: WinSource) {
        self.is_logging.store(matches!(source, WinSource::Own | WinSource::Others), Relaxed);
        self.is_sending.store(source == WinSource::Own, Relaxed);
    }

    /// Runs `set`, in which the current thread sets wins that another rank sent, while other threads set
    /// those of this rank.
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
        let (kept, layout) = (&self.kept[slab], &self.slabs[slab]);
        let mut row = unit.rows.start;
        iter::from_fn(move || {
            let first = (row..end).find(|&row| kept.contains(row as u32))?;
            row = (first..end).find(|&row| !kept.contains(row as u32)).unwrap_or(end);
            Some(PlaneUnit { slab, rows: first..row, words: layout.word(first)..layout.word(row) })
        })
    }

    /// Whether this rank reports a row.
    pub(super) fn reports(&self, slab: usize, row: usize) -> bool {
        self.reported[slab].contains(row as u32)
    }

    /// Whether a row is kept here and has all these bits, of words whose numbers do not descend.
    pub(super) fn takes(&self, slab: usize, row: usize, bits: &[(u32, u64)]) -> bool {
        self.words_of(slab, row).is_some() && self.slabs[slab].has_bits(bits)
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
        let place = self.kept[slab].find(row as u32)? as usize;
        let words = self.slabs[slab].row_words;
        let first = self.first_words[slab] + place * words;
        Some(first..first + words)
    }

    /// Returns the first word of a row that moves lead to.
    fn first_word(&self, slab: usize, row: usize) -> usize {
        self.words_of(slab, row).expect("rows that moves lead to are kept").start
    }

    /// Adds encoded wins of a row to the messages for all other ranks that keep it.
    fn notify(&self, bound_messages: &mut [BoundMessage], (slab, row): (usize, usize), encoded: &EncodedBits) {
        let row = self.slabs[slab].first_row + row;
        for to in self.keepers.keep(row).filter(|&to| to != self.rank) {
            bound_messages[to].append(row as u32, encoded);
        }
    }
}

impl<W: KeptWords<E>, E> Wins<E> for KeptWins<W> {
    type Row<'a>
        = W::Row<'a>
    where
        Self: 'a;

    fn enter_pool(&mut self) {
        self.words.enter_pool();
    }

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
                encoded.encode(self.kernel, bits);
                self.notify(bound_messages, (slab, row), encoded);
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
        let is_sent = is_sending && !*is_receiving;
        let is_logged = self.is_logging.load(Relaxed) && self.reports(slab, row);
        if is_sent || is_logged {
            encoded.encode(self.kernel, new);
        }
        if is_sent {
            self.notify(bound_messages, (slab, row), encoded);
        }
        if is_logged {
            self.won.append(slab, row, encoded);
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
