//! The driver of the method *sweep* in memory, by the ranks of a job. A machine alone is a job of one rank.
//!
//! Each rank sweeps its partition (`partition.rs`), see [`crate::sweep`]. Changed scores that
//! other ranks read are combined into one message for each (`changes.rs`). A *superstep* is one pass of all ranks over
//! their partitions, in phases: the changes of one phase are sent while the next one is computed. It ends with a vote,
//! which decides the next pass of all ranks.
//!
//! Updates may be late but are never wrong (see [`crate::sweep`]), so the databases are byte for byte those of one
//! machine, for any number of ranks and threads. The scores of each rank are a checkpoint: a job may resume from any
//! mixture of scores of different times, with another number of ranks.

mod changes;
mod memory_layout;
mod part;
mod partition;
mod subscribers;
#[cfg(test)]
pub(crate) mod tests;

pub use memory_layout::{MemoryLayout, memory_layouts};
pub use part::RankScores;
pub use partition::ScorePartition;

use crate::huge_pages::Bytes;
use crate::kernels::apply::ChangedColumn;
use crate::kernels::cpu;
use crate::kernels::scores::Kernel;
use crate::kernels::tables::{CHUNK, Tables, halves_of};
use crate::layout::rows::SlabRows;
use crate::observer::EndedPass;
use crate::ranks::varint::Malformed;
use crate::ranks::{JobError, JobObserver};
use crate::sweep::marked::MarkedPasses;
use crate::sweep::marks::{Marks, Own, SlabRegion};
use crate::sweep::pair::{PairTile, SlabPair};
use crate::sweep::tile::Tiles;
use crate::sweep::{MARK_BELOW, PassCounts, pairs};
use crate::work_stealing::with_spinning_pool;
use changes::{AHEAD, ChangeMessage, ChangedWord, PendingChanges};
use game::{Index, Slab};
use messaging::{CommunicationError, Communicator, MessageTraffic, Result};
use partition::SlabPatch;
use rayon::ThreadPool;
use rayon::prelude::*;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use subscribers::Subscribers;

/// Most phases of a superstep. With fewer phases changes arrive later: 18 stones on 4 ranks take 23 supersteps with 12
/// phases, 17 with 72.
const PHASES_MAX: u64 = 64;

/// Least positions of a rank in a phase, so that small databases take few messages.
const PHASE_POSITIONS_MIN: u64 = 1 << 16;

/// Phases that each rank lags behind the next one, which has the later halves, to which moves of this one lead.
const LAG: usize = 3;

/// Phases that may be in transit before a rank waits for those of the others, since phases take unequal time.
pub const SLACK: usize = 2;

/// Words of changes that a thread encodes at a time, about.
const MESSAGE_WORDS: usize = 1 << 14;

/// Bytes before a change message: slab and length.
const MESSAGE_HEAD_BYTES: usize = 5;

/// Times that a position is recomputed, in databases of more than a few stones.
const USUAL_PASSES: u64 = 14;

/// Work done by a job, of all ranks together but for the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SweepReport {
    /// Passes over the database until nothing changed.
    pub passes: u64,
    /// Positions recomputed, in whole chunks of 64 columns.
    pub recomputed: u64,
    /// Number of changed scores.
    pub changed: u64,
    /// Traffic of this rank.
    pub traffic: MessageTraffic,
}

/// Solves the database of `index` together with the other ranks, from the captures that [`RankScores::captures`] made
/// of `part`. The scores of `part` are zeros or a checkpoint: any mixture of scores of different times. A machine alone
/// stops within a pass, a rank of several at its end.
///
/// # Panics
/// If the captures are not those of `part`, `part` is of another rank or database than the job, or the tables serve
/// fewer stones or another position set.
pub fn sweep(
    tables: &Tables,
    index: &Index,
    captures: &Bytes,
    part: &mut RankScores,
    kernel: Kernel,
    communicator: &mut dyn Communicator,
    watch: &dyn JobObserver<RankScores>,
) -> Result<SweepReport, JobError> {
    assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
    assert!(Kernel::available().any(|available| available == kernel), "this processor has no {kernel:?}");
    let (partition, rank) = (part.partition(), part.rank());
    assert!(partition.slabs() == index.slabs());
    assert!((rank, partition.ranks()) == (communicator.rank(), communicator.size()));
    let slabs = index.slabs();
    let places = part.places();
    let captures_of = |slab: &Slab| part.captures_of(captures, slab.mover_stones as usize);
    let pairs = pairs(tables, slabs, captures_of, places.each_ref().map(|places| &places[..]));
    let own: Vec<_> = (0..slabs.len()).map(|slab| partition.own(rank, slab)).collect();
    let before = communicator.traffic();
    let phases = phases(index.slab_positions(), partition.ranks()) as usize;
    let (tiles, waves) = tiles_in_phases(&pairs, kernel, part, phases);
    let mut job = RankSweep {
        slabs,
        pairs: &pairs,
        patches: own.iter().zip(slabs).enumerate().map(|(at, (own, slab))| patches(at, slab, own)).collect(),
        phases,
        waves,
        tiles,
        outgoing: (partition.ranks() > 1).then(|| OutgoingChanges {
            changes: PendingChanges::none(slabs, |slab| partition.chunks_sent(rank, slab)),
            subscribers: Subscribers::new(tables, partition, rank, part.first_mirrored()),
        }),
        marked: MarkedPasses {
            tables,
            stones: index.stones(),
            kernel,
            marks: Marks::none(slabs, own),
            first_mirrored: part.first_mirrored(),
        },
        part,
        communicator,
        spare: Vec::new(),
        watch,
        positions: index.slab_positions(),
        pool: None,
    };
    // Alone, the threads of the pool spin for work from beginning to end; in a job only during each wave,
    // because a rank waits for messages in between.
    let mut report = if job.outgoing.is_none() { with_spinning_pool(|| job.run())? } else { job.run()? };
    report.traffic = job.communicator.traffic().since(&before);
    Ok(report)
}

/// Returns the number of phases of a superstep.
pub fn phases(positions: u64, ranks: usize) -> u64 {
    (positions / ranks as u64 / PHASE_POSITIONS_MIN).clamp(1, PHASES_MAX)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Superstep {
    /// Nothing is recomputed; nonzero scores are sent.
    Announce,
    /// Everything, leaving no marks.
    Full,
    /// Everything, marking the parents of what changes.
    FullMarking,
    /// Marked positions only.
    Marked,
}

impl Superstep {
    fn leaves_marks(self) -> bool {
        matches!(self, Superstep::FullMarking | Superstep::Marked)
    }
}

/// Work of this rank in a superstep.
struct SuperstepCounts {
    /// Positions that all ranks recomputed before.
    before: u64,
    counts: PassCounts,
    wants_stop: bool,
}

/// Driver of one rank.
struct RankSweep<'a, 'c> {
    slabs: &'a [Slab],
    pairs: &'a [SlabPair<'a>],
    /// By slab, the patches that this rank recomputes.
    patches: Vec<Vec<SlabPatch>>,
    /// Phases of a superstep.
    phases: usize,
    tiles: Tiles<'a>,
    /// By phase, its waves of tiles.
    waves: Vec<Range<usize>>,
    marked: MarkedPasses<'a>,
    /// Changes to send to other ranks, and to copy to the mirror of this rank. A machine alone has none.
    outgoing: Option<OutgoingChanges<'a>>,
    part: &'a mut RankScores,
    communicator: &'c mut dyn Communicator,
    /// Buffers of processed messages, for reuse: their pages are already committed.
    spare: Vec<Vec<u8>>,
    watch: &'a dyn JobObserver<RankScores>,
    /// Positions of the database.
    positions: u64,
    /// The pool in which it goes on, if it is not that in which it began.
    pool: Option<Arc<ThreadPool>>,
}

/// Changes not sent yet, and those who read them.
struct OutgoingChanges<'a> {
    changes: PendingChanges,
    subscribers: Subscribers<'a>,
}

impl OutgoingChanges<'_> {
    fn add(&self, slab: &Slab, change: &ChangedColumn) {
        let (slab, row, chunk) = (slab.mover_stones as usize, change.column as usize, change.first_row / CHUNK);
        if self.subscribers.is_any(slab, row, chunk) {
            self.changes.add(slab, row, chunk, change.rows);
        }
    }
}

impl RankSweep<'_, '_> {
    fn run(&mut self) -> Result<SweepReport, JobError> {
        let watch = self.watch;
        let mut report = SweepReport::default();
        let mut pass =
            if self.part.is_fresh || self.outgoing.is_none() { Superstep::Full } else { Superstep::Announce };
        self.part.is_fresh = false;
        loop {
            self.grow();
            let (done, wants_stop) = match self.pool.clone() {
                Some(pool) => pool.install(|| with_spinning_pool(|| self.superstep(pass, &report)))?,
                None => self.superstep(pass, &report)?,
            };
            let is_new = u64::from(pass == Superstep::Announce);
            let vote = [done.recomputed, done.changed, u64::from(wants_stop), u64::from(watch.is_due()), is_new];
            let all = self.communicator.sum(&vote)?;
            let (changed, wants_stop, is_due) = (all[1], all[2] != 0, all[3] != 0);
            report.recomputed += all[0];
            report.changed += changed;
            report.passes += 1;
            if wants_stop || is_due {
                watch.checkpoint(self.part);
            }
            if wants_stop {
                return Err(JobError::Stopped);
            }
            let was_full = matches!(pass, Superstep::Full | Superstep::FullMarking);
            pass = match pass {
                Superstep::Announce => Superstep::Full,
                // Ranks that started from zeros wait for those that started from a checkpoint.
                Superstep::Full if all[4] != 0 => Superstep::Full,
                Superstep::Full if changed * MARK_BELOW < self.positions => Superstep::FullMarking,
                Superstep::Full => Superstep::Full,
                _ if changed == 0 => return Ok(report),
                _ => Superstep::Marked,
            };
            watch.end_pass(EndedPass { is_full: was_full, is_next_full: pass != Superstep::Marked, changed });
        }
    }

    /// Goes on in a larger pool, if this is a machine alone and there is one.
    fn grow(&mut self) {
        if self.outgoing.is_none()
            && let Some(pool) = self.watch.larger_pool()
        {
            pool.install(|| {
                (self.tiles, self.waves) = tiles_in_phases(self.pairs, self.marked.kernel, self.part, self.phases);
                self.marked.marks.enter_pool();
            });
            self.pool = Some(pool);
        }
    }

    /// Runs one pass of all ranks over their partitions, after those of `before`. Returns whether the observer wants to
    /// stop; a machine alone then leaves the pass.
    fn superstep(&mut self, pass: Superstep, before: &SweepReport) -> Result<(PassCounts, bool), JobError> {
        let mut done = SuperstepCounts { before: before.recomputed, counts: PassCounts::default(), wants_stop: false };
        // In other passes all ranks process the same slabs at a time, since slabs take different time.
        let behind = match pass {
            Superstep::Full | Superstep::FullMarking => self.communicator.size() - 1 - self.communicator.rank(),
            Superstep::Announce | Superstep::Marked => 0,
        };
        let lag = LAG * behind % self.phases;
        for step in 0..self.phases {
            let phase = (step + self.phases - lag) % self.phases;
            let patches = match pass {
                Superstep::Full | Superstep::FullMarking => self.waves(phase, pass, &mut done),
                Superstep::Announce | Superstep::Marked => self.pairs(phase, pass, &mut done),
            };
            if self.outgoing.is_some() {
                self.send_changes(&patches, pass)?;
                if step >= SLACK {
                    self.receive(pass)?;
                }
            } else if done.wants_stop {
                break;
            }
        }
        if self.outgoing.is_some() {
            for _ in 0..SLACK.min(self.phases) {
                self.receive(pass)?;
            }
        }
        Ok((done.counts, done.wants_stop))
    }

    /// Adds the counts of a step of a superstep. Returns whether to leave the superstep.
    fn count(&self, done: &mut SuperstepCounts, now: PassCounts) -> bool {
        done.counts = done.counts.add(now);
        // The other ranks have done about as much.
        let recomputed = done.before + done.counts.recomputed * self.communicator.size() as u64;
        let expected = (self.positions * USUAL_PASSES).max(recomputed);
        done.wants_stop |= self.watch.advance(recomputed, expected).is_break();
        done.wants_stop && self.outgoing.is_none()
    }

    /// Runs a phase of a full pass, and returns the patches that it may have changed.
    fn waves(&mut self, phase: usize, pass: Superstep, done: &mut SuperstepCounts) -> Vec<SlabPatch> {
        let is_marking = pass == Superstep::FullMarking;
        let mut patches = Vec::new();
        for wave in self.waves[phase].clone() {
            let RankSweep { tiles, marked, outgoing, part, .. } = self;
            let notify = |slab: &Slab, change: &ChangedColumn, again: &SlabRegion| {
                if is_marking {
                    marked.mark_parents(slab, change, Some(again));
                }
                if let Some(outgoing) = &outgoing {
                    outgoing.add(slab, change);
                }
            };
            let is_told = is_marking || outgoing.is_some();
            let mut work = || tiles.wave(wave, is_marking, &mut part.rows, is_told.then_some(&notify));
            let now = if outgoing.is_none() { work() } else { with_spinning_pool(work) };
            if outgoing.is_some() {
                patches.extend(tiles.tiles(wave).flat_map(|(pair, tile)| patches_of(pair, &tile)));
            }
            // Errors show up when messages are received.
            let _ = self.communicator.poll();
            if self.count(done, now) {
                break;
            }
        }
        patches
    }

    /// Runs a phase of another pass, and returns the patches that it may have changed.
    fn pairs(&mut self, phase: usize, pass: Superstep, done: &mut SuperstepCounts) -> Vec<SlabPatch> {
        let pairs = self.pairs;
        let mut patches = Vec::new();
        for pair in &pairs[share(pairs.len(), phase, self.phases)] {
            let RankSweep { marked, outgoing, part, .. } = self;
            let notify = |slab: &Slab, change: &ChangedColumn| {
                if let Some(outgoing) = &outgoing {
                    outgoing.add(slab, change);
                }
            };
            let now = match pass {
                Superstep::Marked if outgoing.is_none() => marked.pair(pair, &mut part.rows, notify),
                Superstep::Marked => with_spinning_pool(|| marked.pair(pair, &mut part.rows, notify)),
                _ => PassCounts::default(),
            };
            if outgoing.is_some() {
                let slabs = [pair.high.slab.mover_stones as usize, pair.low.slab.mover_stones as usize];
                let slabs = &slabs[..if pair.is_one() { 1 } else { 2 }];
                patches.extend(slabs.iter().flat_map(|&slab| self.patches[slab].iter().cloned()));
            }
            let _ = self.communicator.poll();
            if self.count(done, now) {
                break;
            }
        }
        patches
    }

    /// Sends the changes in some patches, or all nonzero scores, to their subscribers, including the mirror of this
    /// rank.
    fn send_changes(&mut self, patches: &[SlabPatch], pass: Superstep) -> Result<()> {
        let RankSweep { slabs, outgoing, marked, part, communicator, spare, .. } = self;
        let Some(OutgoingChanges { changes, subscribers }) = outgoing else { return Ok(()) };
        let (ranks, mine, kernel) = (communicator.size(), communicator.rank(), marked.kernel);
        let pieces: Vec<_> = patches.iter().flat_map(SlabPatch::pieces).collect();
        let change_messages = pieces.par_iter().map(|piece| {
            let mut change_messages: Vec<_> = (0..ranks).map(|_| ChangeMessage::default()).collect();
            let (mut mirrored, mut found) = (Vec::new(), Vec::new());
            let (place, rows) = (part.rows.slabs()[piece.slab], slabs[piece.slab].opponent_halves as usize);
            for (chunk, of_chunk) in piece.chunks() {
                let scores =
                    |row: usize| &part.rows.bytes().padded()[place.offset + row * place.stride + chunk * CHUNK..];
                let mut write = |row: usize, columns: u64| {
                    subscribers.of(piece.slab, row, chunk, columns, &mut found);
                    for &(rank, columns) in &found {
                        if rank == mine {
                            mirrored.push((row, chunk, columns));
                        } else {
                            change_messages[rank].write(kernel, (chunk * rows + row) as u64, columns, scores(row));
                        }
                    }
                };
                if pass == Superstep::Announce {
                    piece.rows.clone().for_each(|row| match not_zero(scores(row)) & of_chunk {
                        0 => {}
                        columns => write(row, columns),
                    });
                } else {
                    changes.take(piece, chunk, |row| cpu::prefetch(&scores(row)[..CHUNK]), write);
                }
            }
            (change_messages.into_iter().map(ChangeMessage::into_bytes).collect::<Vec<_>>(), mirrored)
        });
        let (change_messages, mirrored): (Vec<_>, Vec<_>) = change_messages.unzip();
        for to in (0..ranks).filter(|&to| to != mine) {
            let mut message = spare.pop().unwrap_or_default();
            message.clear();
            for (piece, change_messages) in
                pieces.iter().zip(&change_messages).filter(|(_, change_messages)| !change_messages[to].is_empty())
            {
                message.push(piece.slab as u8);
                message.extend_from_slice(&(change_messages[to].len() as u32).to_le_bytes());
                message.extend_from_slice(&change_messages[to]);
            }
            communicator.send(to, message)?;
        }
        for (piece, mirrored) in pieces.iter().zip(mirrored).filter(|(_, mirrored)| !mirrored.is_empty()) {
            self.mirror(piece.slab, &mirrored, pass);
        }
        Ok(())
    }

    /// Copies changes of a slab to its mirror, and marks the parents.
    fn mirror(&mut self, slab: usize, entry: &[(usize, usize, u64)], pass: Superstep) {
        let RankSweep { slabs, marked, part, .. } = self;
        let Some(mirror) = part.mirror(slab) else { return };
        let (main, bytes) = (part.rows.slabs()[slab], part.rows.bytes_mut());
        let columns_of = |chunk: usize| halves_of(&(chunk..chunk + 1), slabs[slab].mover_halves);
        for (at, &(row, chunk, columns)) in entry.iter().enumerate() {
            if let Some(&(row, chunk, _)) = entry.get(at + AHEAD) {
                cpu::prefetch(&bytes[mirror.range(row, &columns_of(chunk))]);
            }
            let (from, to) = (main.range(row, &columns_of(chunk)), mirror.range(row, &columns_of(chunk)).start);
            if from.len() == CHUNK {
                let scores: [i8; CHUNK] = *bytes[from].first_chunk().expect("a chunk is as long");
                bytes[to..to + CHUNK].copy_from_slice(&scores);
            } else {
                bytes.copy_within(from, to);
            }
            if pass.leaves_marks() {
                marked.mark_parents_by_mirror(&slabs[slab], &changed(row, chunk, columns));
            }
        }
    }

    /// Receives the changes of the other ranks in a phase.
    fn receive(&mut self, pass: Superstep) -> Result<()> {
        let (slabs, communicator) = (self.slabs, &mut *self.communicator);
        let mine = communicator.rank();
        let mut messages = Vec::new();
        for from in (0..communicator.size()).filter(|&from| from != mine) {
            messages.push((from, communicator.receive(from)?));
        }
        let mut change_messages: Vec<Vec<_>> = slabs.iter().map(|_| Vec::new()).collect();
        for (from, message) in &messages {
            let mut rest = &message[..];
            while !rest.is_empty() {
                let (slab, change_message);
                (slab, change_message, rest) = next_message(rest, slabs.len()).ok_or_else(|| unexpected(*from))?;
                change_messages[slab].push((*from, change_message));
            }
        }
        self.take_in(change_messages, pass)?;
        self.spare.extend(messages.into_iter().map(|(_, message)| message));
        Ok(())
    }

    /// Applies change messages, by slab, to all copies of the scores, and marks the parents.
    fn take_in(&mut self, change_messages: Vec<Vec<(usize, &[u8])>>, pass: Superstep) -> Result<()> {
        let RankSweep { slabs, marked, part, communicator, .. } = self;
        let (rank, places) = (communicator.rank(), part.rows.slabs().to_vec());
        let RankScores { needs, rows, .. } = &mut **part;
        let needs = needs.as_ref().expect("only a rank of several receives messages");
        let mut arrays = rows.slabs_mut().into_iter().zip(places).map(|(bytes, rows)| SlabCopy { bytes, rows });
        let of_slab = |(slab, main)| KeptSlab { slab, main, mirror: None };
        let mut kept: Vec<_> = slabs.iter().zip(arrays.by_ref()).map(of_slab).collect();
        let first_mirrored = slabs.len() - arrays.len();
        kept[first_mirrored..].iter_mut().zip(arrays).for_each(|(kept, mirror)| kept.mirror = Some(mirror));
        kept.into_par_iter().zip(change_messages).enumerate().try_for_each(|(at, (mut kept, change_messages))| {
            let (slab, is_mirrored) = (kept.slab, kept.mirror.is_some());
            change_messages.into_iter().try_for_each(|(from, change_message)| {
                let words = changes::read(change_message).map(|entry| {
                    let entry = entry?;
                    let (row, chunk) = place_of(slab, &entry)
                        .filter(|&(row, chunk)| needs.has(rank, at, row, chunk))
                        .ok_or(Malformed)?;
                    let in_main = !is_mirrored || needs.has_chunk(rank, at, chunk);
                    let in_mirror = is_mirrored && needs.has_row(rank, at, row);
                    Ok(Arrived { row, chunk, in_main, in_mirror, entry })
                });
                kept.take_in(words, marked, pass).map_err(|Malformed| unexpected(from))
            })
        })
    }
}

/// One copy of the rows of a slab: the main one or the mirror.
struct SlabCopy<'a> {
    bytes: &'a mut [i8],
    rows: SlabRows,
}

impl SlabCopy<'_> {
    fn begin(&self, word: &Arrived) -> usize {
        word.row * self.rows.stride + word.chunk * CHUNK
    }

    fn prefetch(&self, word: &Arrived) {
        let begin = self.begin(word);
        cpu::prefetch(&self.bytes[begin..self.bytes.len().min(begin + CHUNK)]);
    }

    /// Returns the columns that are new in this copy.
    fn merge(&mut self, kernel: Kernel, word: &Arrived) -> ChangedColumn {
        let begin = self.begin(word);
        changed(word.row, word.chunk, kernel.merge(&mut self.bytes[begin..], word.entry.columns, word.entry.scores))
    }
}

/// The copies of a slab.
struct KeptSlab<'a> {
    slab: &'a Slab,
    main: SlabCopy<'a>,
    mirror: Option<SlabCopy<'a>>,
}

impl<'a> KeptSlab<'a> {
    /// Applies the words of a message, prefetching some words ahead.
    fn take_in<'t>(
        &mut self,
        mut words: impl Iterator<Item = Result<Arrived<'t>, Malformed>>,
        marked: &MarkedPasses,
        pass: Superstep,
    ) -> Result<(), Malformed> {
        let mut asked = VecDeque::with_capacity(AHEAD);
        loop {
            while asked.len() < AHEAD
                && let Some(word) = words.next().transpose()?
            {
                self.copies(&word).into_iter().flatten().for_each(|copy| copy.prefetch(&word));
                asked.push_back(word);
            }
            let Some(word) = asked.pop_front() else { return Ok(()) };
            self.write(&word, marked, pass);
        }
    }

    /// Returns the copies that have a word: main, mirror.
    fn copies(&mut self, word: &Arrived) -> [Option<&mut SlabCopy<'a>>; 2] {
        [Some(&mut self.main).filter(|_| word.in_main), self.mirror.as_mut().filter(|_| word.in_mirror)]
    }

    fn write(&mut self, word: &Arrived, marked: &MarkedPasses, pass: Superstep) {
        let slab = self.slab;
        let [main, mirror] = self.copies(word).map(|copy| copy.map(|copy| copy.merge(marked.kernel, word)));
        let is_new = |new: &ChangedColumn| new.rows != 0 && pass.leaves_marks();
        if let Some(new) = main.filter(is_new) {
            marked.mark_parents(slab, &new, None);
        }
        if let Some(new) = mirror.filter(is_new) {
            marked.mark_parents_by_mirror(slab, &new);
        }
    }
}

/// Decoded word, and the copies that have it.
struct Arrived<'t> {
    row: usize,
    chunk: usize,
    in_main: bool,
    in_mirror: bool,
    entry: ChangedWord<'t>,
}

/// Returns the row and chunk of a word, if all its columns are in the slab.
fn place_of(slab: &Slab, entry: &ChangedWord) -> Option<(usize, usize)> {
    let rows = u64::from(slab.opponent_halves);
    let (row, chunk) = ((entry.word % rows) as usize, (entry.word / rows) as usize);
    let columns = (slab.mover_halves as usize).checked_sub(chunk.checked_mul(CHUNK)?)?;
    let is_beyond = columns == 0 || columns < CHUNK && entry.columns >> columns != 0;
    (!is_beyond).then_some((row, chunk))
}

/// Changed columns of a chunk of an `OpponentMajor` row.
fn changed(row: usize, chunk: usize, columns: u64) -> ChangedColumn {
    ChangedColumn { column: row as u32, first_row: chunk * CHUNK, rows: columns }
}

/// Returns the mask of the nonzero scores of a chunk.
fn not_zero(scores: &[i8]) -> u64 {
    let scores: &[i8; CHUNK] = scores.first_chunk().expect("rows are padded");
    scores.iter().enumerate().fold(0, |columns, (lane, &score)| columns | u64::from(score != 0) << lane)
}

/// Creates the tiles of the partition of a rank for the current pool, and distributes their waves over phases.
fn tiles_in_phases<'a>(
    pairs: &'a [SlabPair<'a>],
    kernel: Kernel,
    part: &RankScores,
    phases: usize,
) -> (Tiles<'a>, Vec<Range<usize>>) {
    let (partition, rank) = (part.partition(), part.rank());
    let own_chunks = |pair: &SlabPair| partition.chunks(rank, pair.high.slab.mover_stones as usize);
    let tiles = Tiles::new(pairs, kernel, own_chunks);
    let waves = in_phases(&tiles, phases);
    (tiles, waves)
}

/// Distributes the waves of a pass over phases with about equal numbers of positions.
fn in_phases(tiles: &Tiles, phases: usize) -> Vec<Range<usize>> {
    let mut done = 0;
    let mut ends = vec![0];
    ends.extend((0..tiles.waves()).map(|wave| {
        let positions = |tile: PairTile| {
            let chunks = tile.high_rows.len() * tile.high_columns.len() + tile.low_rows.len() * tile.low_columns.len();
            chunks as u64
        };
        done += tiles.tiles(wave).map(|(_, tile)| positions(tile)).sum::<u64>();
        done
    }));
    let wave = |phase: usize| ends.partition_point(|&end| end * (phases as u64) < done * phase as u64);
    (0..phases).map(|phase| wave(phase)..if phase + 1 == phases { tiles.waves() } else { wave(phase + 1) }).collect()
}

/// Returns share `share` of `shares` equal shares of some things.
fn share(things: usize, share: usize, shares: usize) -> Range<usize> {
    things * share / shares..things * (share + 1) / shares
}

/// Returns the patches of a slab that a rank recomputes.
fn patches(at: usize, slab: &Slab, own: &Own) -> Vec<SlabPatch> {
    let patch = |chunks: Range<usize>, columns: Range<usize>| SlabPatch {
        slab: at,
        rows: halves_of(&chunks, slab.opponent_halves),
        columns,
    };
    let patches = [patch(0..own.chunks_end, own.rows.clone()), patch(own.chunks.clone(), 0..own.rows_end)];
    patches.into_iter().filter(|patch| patch.positions() > 0).collect()
}

/// Returns the patches of a tile.
fn patches_of(pair: &SlabPair, tile: &PairTile) -> [SlabPatch; 2] {
    let patch = |slab: &Slab, rows: &Range<usize>, columns: &Range<usize>| SlabPatch {
        slab: slab.mover_stones as usize,
        rows: halves_of(columns, slab.opponent_halves),
        columns: halves_of(rows, slab.mover_halves),
    };
    [
        patch(pair.high.slab, &tile.high_rows, &tile.high_columns),
        patch(pair.low.slab, &tile.low_rows, &tile.low_columns),
    ]
}

/// Splits off the first change message, with its slab.
fn next_message(message: &[u8], slabs: usize) -> Option<(usize, &[u8], &[u8])> {
    let (head, rest) = message.split_first_chunk::<MESSAGE_HEAD_BYTES>()?;
    let [slab, length @ ..] = *head;
    let (change_message, rest) = rest.split_at_checked(u32::from_le_bytes(length) as usize)?;
    (usize::from(slab) < slabs).then_some((slab.into(), change_message, rest))
}

fn unexpected(rank: usize) -> CommunicationError {
    let (expected, found) = ("changes of rows that both hold".to_owned(), "something else".to_owned());
    CommunicationError::Unexpected { rank, expected, found }
}
