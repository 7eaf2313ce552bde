//! One database solved by several machines, the *ranks* of a job: the method sweep over messages; for the method counting
//! see [`counting`].
//!
//! A rank owns `MoverMajor` rows, which it solves, and holds the `OpponentMajor` rows that moves lead to from there, see
//! `cluster/share.rs`. Only changes travel: masks of columns and new scores, combined into one message for each other
//! rank that holds the rows. A *superstep* is one pass of every rank over what it owns, slab after slab in phases; what
//! one phase found travels while the next is computed. It ends with a vote, by which all do the same next.
//!
//! Updates may be late, but never wrong (see [`crate::sweep`]), so the databases are those of one machine, byte for byte,
//! by any number of ranks and threads. What a rank owns is a checkpoint by itself: from any mixture of what ranks had at
//! different times, of as many or other ranks, they go on.

#[cfg(test)]
mod cases;
mod collect;
pub mod counting;
mod letter;
mod share;

pub use collect::collect;
pub use share::Shares;

use crate::kernel::{Kernel, Moves, SlabWork, UNIT_BYTES_MAX, UNIT_CHUNKS, UNIT_ROWS, Unit};
use crate::memory::Bytes;
use crate::rows::Rows;
use crate::sweep::{Done, MARK_BELOW, work};
use crate::tables::{CHUNK, RowMove, Tables, chunks};
use game::{HALF_PITS, Index, Slab};
use letter::{Letter, Malformed, lanes};
use ranks::{CommunicationError, Communicator, Traffic};
use rayon::prelude::*;
use share::{HeldRows, as_usize};
use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Columns of a stripe: those of a unit.
const STRIPE: usize = UNIT_CHUNKS * CHUNK;

/// A phase has at least one in this many of the positions, so that small slabs share a message.
const PHASES_MAX: u64 = 24;

/// Blocks that the rows of a slab are taken in, the last first: moves that stay in the mover's half lead to later rows,
/// and what a rank holds of its own is up to date after each block.
const BLOCKS: usize = 6;

/// Rows of a block, at least.
const BLOCK_ROWS_MIN: usize = 256;

/// What a rank owns of a database: its scores, slab by slab in stripes of columns, a stripe row by row.
#[derive(Debug)]
pub struct Part {
    shares: Shares,
    rank: usize,
    scores: Bytes,
}

/// Who asks a rank to stop, and takes its checkpoints. What one rank wants, all do.
pub trait Watch<P = Part>: Sync {
    /// Told between supersteps how many positions were recomputed (by [`sweep`]) or are decided (by
    /// [`counting`](counting::counting)), by all ranks; its answer stops the job.
    fn advance(&self, done: u64) -> ControlFlow<()>;

    /// Whether it is time for a checkpoint.
    fn is_due(&self) -> bool;

    /// Takes a checkpoint.
    fn checkpoint(&self, part: &P);
}

impl<P> Watch<P> for () {
    fn advance(&self, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn is_due(&self) -> bool {
        false
    }

    fn checkpoint(&self, _: &P) {}
}

/// What a job did: all ranks together, but for the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Supersteps until nothing changed.
    pub supersteps: u64,
    /// Positions recomputed, by 64 columns of a row.
    pub recomputed: u64,
    /// Changes of a score.
    pub changed: u64,
    /// Messages and bytes of this rank.
    pub traffic: Traffic,
}

/// Why a job did not solve its database.
#[derive(Debug, thiserror::Error)]
pub enum Unsolved {
    /// It was asked to stop: what each rank owns is a checkpoint.
    #[error("stopped on request")]
    Stopped,
    /// A rank cannot be reached any more.
    #[error(transparent)]
    Communication(#[from] CommunicationError),
    /// The checkpoints that the ranks were to go on from are none that a call left.
    #[error("a position heard of more children than it has")]
    Inconsistent,
    /// The operating system has no memory for what the rank holds.
    #[error("no memory for what this rank holds: {0}")]
    Memory(#[from] io::Error),
}

impl Part {
    /// What `rank` owns, all 0.
    ///
    /// # Errors
    /// If there is no memory for it.
    ///
    /// # Panics
    /// When there is no such rank.
    pub fn zeroed(shares: Shares, rank: usize) -> io::Result<Part> {
        let scores = Bytes::zeroed(shares.positions(rank) as usize)?;
        Ok(Part { shares, rank, scores })
    }

    /// Who owns what.
    pub fn shares(&self) -> &Shares {
        &self.shares
    }

    /// Whose part it is.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// What it owns of each slab, as slabs of their own.
    pub fn slabs(&self) -> Vec<Slab> {
        self.shares.owned(self.rank)
    }

    /// Takes what another part knows of the same positions: of two states of a score the later one, which is further
    /// from 0.
    ///
    /// # Panics
    /// When it is of another database.
    pub fn take_over(&mut self, other: &Part) {
        assert!(self.shares.slabs() == other.shares.slabs(), "both parts are of one database");
        for (mine, theirs) in self.slabs().iter().zip(&other.slabs()) {
            let [own, found] = [(&self.shares, self.rank), (&other.shares, other.rank)]
                .map(|(shares, rank)| as_usize(&shares.rows(rank, mine.mover_stones)));
            let rows = own.start.max(found.start)..own.end.min(found.end);
            if rows.is_empty() {
                continue;
            }
            let columns = mine.opponent_halves as usize;
            for first in (0..columns).step_by(STRIPE) {
                let width = STRIPE.min(columns - first);
                let place = |slab: &Slab, owned: &Range<usize>| {
                    let stripe = slab.offset as usize + slab.mover_halves as usize * first;
                    stripe + (rows.start - owned.start) * width..stripe + (rows.end - owned.start) * width
                };
                let to = self.scores[place(mine, &own)].iter_mut();
                for (to, &score) in to.zip(&other.scores[place(theirs, &found)]) {
                    if score.unsigned_abs() > to.unsigned_abs() {
                        *to = score;
                    }
                }
            }
        }
    }

    /// The scores, in the order of the part.
    pub fn scores(&self) -> &[i8] {
        &self.scores
    }

    /// To put a checkpoint there.
    pub fn scores_mut(&mut self) -> &mut [i8] {
        &mut self.scores
    }
}

/// Solves the database of `index` together with the other ranks, from the best captures of what `part` owns
/// (`MoverMajor`, slab by slab its rows). The part is zeros, or a checkpoint.
///
/// # Errors
/// See [`Unsolved`].
///
/// # Panics
/// When the arrays do not have the size of the part, the part is of another rank or database than the job, or the tables
/// serve fewer stones or another position set.
pub fn sweep(
    tables: &Tables,
    index: &Index,
    captures: &Bytes,
    part: &mut Part,
    kernel: Kernel,
    communicator: &mut dyn Communicator,
    watch: &dyn Watch,
) -> Result<Report, Unsolved> {
    assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
    assert!(Kernel::available().any(|available| available == kernel), "this processor has no {kernel:?}");
    assert!(part.shares.slabs() == index.slabs() && captures.len() == part.scores.len());
    assert!((part.rank, part.shares.ranks()) == (communicator.rank(), communicator.size()));
    let held = part.shares.held_by_all(tables);
    let owned = part.shares.owned(part.rank);
    let member = Member {
        tables,
        stones: index.stones(),
        kernel,
        rank: part.rank,
        rows: (0..=index.stones()).map(|mover| as_usize(&part.shares.rows(part.rank, mover))).collect(),
        moves: part.shares.moves(tables, part.rank, &held[part.rank]),
        marks: owned.iter().map(|slab| zeros(slab.mover_halves as usize * stripes(slab))).collect(),
        held,
        owned,
    };
    let rows = Rows::zeroed_for(&held_slabs(&part.shares, &member.held[part.rank]))?;
    let phases = phases(index.slabs(), index.positions());
    let before = communicator.traffic();
    let mut job = Job { member: &member, captures, rows, part, phases, communicator: Mutex::new(communicator) };
    let mut report = job.run(index.positions(), watch)?;
    report.traffic = job.communicator().traffic().since(&before);
    Ok(report)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// Nothing is recomputed; what is not 0 is told.
    Announce,
    /// Everything, leaving no marks.
    Full,
    /// Everything, marking the parents of what changes.
    FullMarking,
    /// What is marked.
    Marked,
}

/// What a rank knows.
struct Member<'a> {
    tables: &'a Tables,
    stones: u32,
    kernel: Kernel,
    rank: usize,
    /// By the mover's stones, the rows it owns.
    rows: Vec<Range<usize>>,
    /// The same, as slabs of their own.
    owned: Vec<Slab>,
    moves: Vec<Vec<[RowMove; HALF_PITS]>>,
    /// By rank and slab, the rows it holds.
    held: Vec<Vec<HeldRows>>,
    /// By slab, stripe by stripe: a row's chunks that have a changed child.
    marks: Vec<Vec<AtomicU16>>,
}

/// A rank at work.
struct Job<'a, 'c> {
    member: &'a Member<'a>,
    captures: &'a Bytes,
    /// The rows it holds.
    rows: Rows,
    part: &'a mut Part,
    /// Slabs that are taken one after the other before messages leave.
    phases: Vec<Vec<usize>>,
    communicator: Mutex<&'c mut dyn Communicator>,
}

/// Letters of a stripe, by rank.
type Letters = Vec<Letter>;

impl Job<'_, '_> {
    fn communicator(&mut self) -> &mut dyn Communicator {
        &mut **self.communicator.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&mut self, positions: u64, watch: &dyn Watch) -> Result<Report, Unsolved> {
        let mut report = Report::default();
        let mut pass = if self.part.scores.iter().any(|&score| score != 0) { Pass::Announce } else { Pass::Full };
        loop {
            let done = self.superstep(pass)?;
            let (wants_stop, is_due) = (watch.advance(report.recomputed).is_break(), watch.is_due());
            let vote = [done.recomputed, done.changed, u64::from(wants_stop), u64::from(is_due)];
            let all = self.communicator().sum(&vote)?;
            let (changed, wants_stop, is_due) = (all[1], all[2] != 0, all[3] != 0);
            report.recomputed += all[0];
            report.changed += changed;
            report.supersteps += 1;
            if wants_stop || is_due {
                watch.checkpoint(self.part);
            }
            if wants_stop {
                return Err(Unsolved::Stopped);
            }
            pass = match pass {
                Pass::Announce => Pass::Full,
                Pass::Full if changed * MARK_BELOW < positions => Pass::FullMarking,
                Pass::Full => Pass::Full,
                _ if changed == 0 => return Ok(report),
                _ => Pass::Marked,
            };
        }
    }

    /// One pass of every rank over what it owns.
    fn superstep(&mut self, pass: Pass) -> Result<Done, Unsolved> {
        let mut done = Done::default();
        let mut travelling = None;
        for phase in 0..self.phases.len() {
            done = done.add(self.phase(phase, pass)?);
            if let Some(phase) = travelling.replace(phase) {
                self.receive(phase, pass)?;
            }
        }
        travelling.map_or(Ok(()), |phase| self.receive(phase, pass))?;
        Ok(done)
    }

    /// Takes the slabs of a phase, and sends what the others are to know.
    fn phase(&mut self, phase: usize, pass: Pass) -> Result<Done, Unsolved> {
        let ranks = self.member.held.len();
        let mut done = Done::default();
        let mut letters: Vec<Vec<Letters>> = Vec::new();
        for &slab in &self.phases[phase].clone() {
            let stripes = stripes(&self.member.owned[slab]);
            let mut of_slab: Vec<Letters> =
                (0..stripes).map(|_| (0..ranks).map(|_| Letter::default()).collect()).collect();
            for block in blocks(self.member.rows[slab].len()).rev() {
                done = done.add(self.block(slab, block, pass, &mut of_slab));
                let own: Vec<_> = of_slab.iter_mut().map(|letters| letters[self.member.rank].take()).collect();
                let own: Vec<_> = own.iter().map(|letter| vec![(self.member.rank, &letter[..])]).collect();
                self.apply(slab, &own, pass)?;
            }
            letters.push(of_slab);
        }
        let rank = self.member.rank;
        for to in (0..ranks).filter(|&to| to != rank) {
            let message = message(letters.iter_mut().flatten().map(|letters| &mut letters[to]));
            self.communicator().send(to, message)?;
        }
        Ok(done)
    }

    /// Recomputes some rows of a slab, and writes what changed to whom it concerns.
    fn block(&mut self, slab: usize, rows: Range<usize>, pass: Pass, letters: &mut [Letters]) -> Done {
        let member = self.member;
        let owned = &member.owned[slab];
        if owned.mover_halves == 0 {
            return Done::default();
        }
        let mut work = work(member.tables, self.captures, owned, self.rows.slabs());
        work.rows = &member.moves[slab];
        let (held, communicator) = (self.rows.bytes().padded(), &self.communicator);
        let scores = &mut self.part.scores[owned.offset as usize..][..owned.positions() as usize];
        let height = owned.mover_halves as usize;
        let stripes = scores.par_chunks_mut(height * STRIPE).zip(letters.par_iter_mut()).enumerate();
        let done = stripes.map_init(
            || vec![0; UNIT_BYTES_MAX],
            |staged, (stripe, (scores, letters))| {
                let stripe = Stripe { slab, work: &work, stripe, width: scores.len() / height };
                let done = match pass {
                    Pass::Announce => member.announce(&stripe, rows.clone(), scores, letters),
                    _ => member.recompute(&stripe, rows.clone(), pass, held, scores, letters, staged),
                };
                // Whoever has nothing else to do sees to the messages. What goes wrong with them shows when they are
                // waited for.
                if let Ok(mut communicator) = communicator.try_lock() {
                    let _ = communicator.poll();
                }
                done
            },
        );
        done.reduce(Done::default, Done::add)
    }

    /// Takes in what the other ranks found in a phase.
    fn receive(&mut self, phase: usize, pass: Pass) -> Result<(), Unsolved> {
        let member = self.member;
        let mut messages = Vec::new();
        for from in (0..member.held.len()).filter(|&from| from != member.rank) {
            messages.push((from, self.communicator().receive(from)?));
        }
        let slabs = self.phases[phase].clone();
        let lengths: Vec<_> = slabs.iter().map(|&slab| stripes(&member.owned[slab])).collect();
        let mut split = Vec::new();
        for (from, message) in &messages {
            split.push((*from, letters(message, lengths.iter().sum()).ok_or_else(|| unexpected(*from))?.into_iter()));
        }
        for (&slab, &length) in slabs.iter().zip(&lengths) {
            let stripe = |_| split.iter_mut().filter_map(|(from, letters)| Some((*from, letters.next()?))).collect();
            let of_slab: Vec<_> = (0..length).map(stripe).collect();
            self.apply(slab, &of_slab, pass)?;
        }
        Ok(())
    }

    /// Writes new scores of a slab into the rows that hold them, stripe by stripe, and marks whom they concern.
    fn apply(&mut self, slab: usize, letters: &[Vec<(usize, &[u8])>], pass: Pass) -> Result<(), CommunicationError> {
        let member = self.member;
        let (held, to) = (&member.held[member.rank][slab], self.rows.slabs()[slab]);
        let mut rest = &mut self.rows.bytes_mut()[to.offset..][..to.bytes()];
        let mut stripes = Vec::with_capacity(letters.len());
        for (stripe, letters) in letters.iter().enumerate() {
            let rows = held.before(stripe * UNIT_CHUNKS)..held.before((stripe + 1) * UNIT_CHUNKS);
            let (own, others) = rest.split_at_mut(rows.len() * to.stride);
            rest = others;
            stripes.push((stripe, rows.start, own, letters));
        }
        stripes.into_par_iter().try_for_each(|(stripe, first, scores, letters)| {
            letters.iter().try_for_each(|&(from, letter)| {
                let read = letter::read(letter, |changed| {
                    let chunk = stripe * UNIT_CHUNKS + changed.chunk;
                    let mask = held.of(chunk);
                    if changed.row as usize >= to.columns || changed.columns & !mask != 0 {
                        return Err(Malformed);
                    }
                    let first = (held.before(chunk) - first) as usize;
                    for (lane, &score) in lanes(changed.columns).zip(changed.scores) {
                        let row = first + (mask & ((1 << lane) - 1)).count_ones() as usize;
                        scores[row * to.stride + changed.row as usize] = score as i8;
                        if matches!(pass, Pass::FullMarking | Pass::Marked) {
                            member.mark_parents(slab, (chunk * CHUNK + lane) as u32, changed.row as usize);
                        }
                    }
                    Ok(())
                });
                read.map_err(|Malformed| unexpected(from))
            })
        })
    }
}

/// A stripe of what a rank owns of a slab.
struct Stripe<'a> {
    slab: usize,
    work: &'a SlabWork<'a>,
    stripe: usize,
    width: usize,
}

impl Member<'_> {
    /// Tells of everything that is not 0.
    fn announce(&self, stripe: &Stripe, rows: Range<usize>, scores: &[i8], letters: &mut [Letter]) -> Done {
        for row in rows {
            let scores = &scores[row * stripe.width..][..stripe.width];
            let mut columns = [0; UNIT_CHUNKS];
            for (columns, scores) in columns.iter_mut().zip(scores.chunks(CHUNK)) {
                *columns = scores.iter().enumerate().fold(0, |all, (lane, &one)| all | u64::from(one != 0) << lane);
            }
            self.tell(stripe, row, &columns, scores, letters);
        }
        Done::default()
    }

    /// Recomputes what is wanted of some rows.
    #[expect(clippy::too_many_arguments)]
    fn recompute(
        &self,
        stripe: &Stripe,
        rows: Range<usize>,
        pass: Pass,
        held: &[i8],
        scores: &mut [i8],
        letters: &mut [Letter],
        staged: &mut [i8],
    ) -> Done {
        let &Stripe { slab, work, stripe: number, width } = stripe;
        let height = work.rows.len();
        let marks = &self.marks[slab][number * height..][..height];
        let first_chunk = number * UNIT_CHUNKS;
        let mut done = Done::default();
        for row in rows.clone().step_by(UNIT_ROWS) {
            let mut unit = Unit::whole(row, rows.end, first_chunk..first_chunk + width.div_ceil(CHUNK));
            if pass != Pass::Full {
                for (wanted, mark) in unit.wanted[..unit.rows].iter_mut().zip(&marks[row..]) {
                    // What a full pass recomputes is marked no more.
                    let marked = if mark.load(Relaxed) == 0 { 0 } else { mark.swap(0, Relaxed) };
                    if pass == Pass::Marked {
                        *wanted = marked;
                    }
                }
            }
            if unit.wanted_chunks() == 0 {
                continue;
            }
            done.recomputed += work.recomputed(&unit);
            self.kernel.recompute(work, &unit, held, &Moves::all(), work.floor(&unit), staged);
            for (at, &wanted) in unit.wanted[..unit.rows].iter().enumerate().filter(|&(_, &wanted)| wanted != 0) {
                let staged = &staged[at * unit.stride()..];
                let scores = &mut scores[(row + at) * width..][..width];
                let columns = differences(wanted, staged, scores);
                let changed: u32 = columns.iter().map(|columns| columns.count_ones()).sum();
                if changed != 0 {
                    done.changed += u64::from(changed);
                    for chunk in lanes(wanted.into()) {
                        let to = scores[chunk * CHUNK..].iter_mut().take(CHUNK);
                        to.zip(&staged[chunk * CHUNK..]).for_each(|(to, &new)| *to = new);
                    }
                    self.tell(stripe, row + at, &columns, scores, letters);
                }
            }
        }
        done
    }

    /// Writes to whoever holds the columns that changed.
    fn tell(&self, stripe: &Stripe, row: usize, columns: &[u64; UNIT_CHUNKS], scores: &[i8], letters: &mut [Letter]) {
        let row = (self.rows[stripe.slab].start + row) as u32;
        for (held, letter) in self.held.iter().zip(letters) {
            let held = &held[stripe.slab];
            let mut concerned = [0; UNIT_CHUNKS];
            for (chunk, (concerned, &columns)) in concerned.iter_mut().zip(columns).enumerate() {
                if columns != 0 {
                    *concerned = columns & held.of(stripe.stripe * UNIT_CHUNKS + chunk);
                }
            }
            letter.write(row, &concerned, scores);
        }
    }

    /// Marks what this rank owns of the parents of a position: its opponent's half, and its mover's.
    fn mark_parents(&self, slab: usize, opponent: u32, mover: usize) {
        let opponent_stones = self.stones - slab as u32;
        for &parent in self.tables.parents(opponent_stones).of(opponent) {
            let mover_stones = opponent_stones + parent.crossing();
            if mover_stones > self.stones {
                break;
            }
            let rows = &self.rows[mover_stones as usize];
            let row = parent.rank() as usize;
            if !rows.contains(&row) {
                continue;
            }
            let gather = self.tables.gather(self.stones - mover_stones, parent.class());
            let (from, to) = gather.inverse[mover / CHUNK];
            for chunk in from as usize..to as usize {
                if self.kernel.reached(gather, chunk, mover / CHUNK, 1 << (mover % CHUNK)) != 0 {
                    let stripe = chunk / UNIT_CHUNKS * rows.len();
                    let mark = &self.marks[mover_stones as usize][stripe + row - rows.start];
                    let bit = 1 << (chunk % UNIT_CHUNKS);
                    if mark.load(Relaxed) & bit == 0 {
                        mark.fetch_or(bit, Relaxed);
                    }
                }
            }
        }
    }
}

/// Of the wanted chunks of a row, the columns with a new score.
fn differences(wanted: u16, new: &[i8], old: &[i8]) -> [u64; UNIT_CHUNKS] {
    let mut columns = [0; UNIT_CHUNKS];
    for chunk in lanes(wanted.into()) {
        let (new, old) = (&new[chunk * CHUNK..], &old[chunk * CHUNK..]);
        columns[chunk] = match (new.first_chunk(), old.first_chunk()) {
            (Some(new), Some(old)) => differing(new, old),
            // Lanes behind the last column hold anything.
            _ => old.iter().zip(new).enumerate().fold(0, |all, (lane, (old, new))| all | u64::from(old != new) << lane),
        };
    }
    columns
}

/// The lanes that differ.
fn differing(new: &[i8; CHUNK], old: &[i8; CHUNK]) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let mut lanes = 0;
    for (at, (new, old)) in new.as_chunks::<8>().0.iter().zip(old.as_chunks::<8>().0).enumerate() {
        let [new, old] = [new, old].map(|eight| u64::from_le_bytes(eight.map(|score| score as u8)));
        let differ = new ^ old;
        // The highest bit of each byte that is not 0, then these eight bits side by side.
        let highest = (((differ & LOW) + LOW) | differ) & !LOW;
        lanes |= (highest >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * at);
    }
    lanes
}

/// What all ranks hold of the slabs, as slabs of their own.
fn held_slabs(shares: &Shares, held: &[HeldRows]) -> Vec<Slab> {
    let slabs = shares.slabs().iter().zip(held);
    slabs.map(|(slab, held)| Slab { opponent_halves: held.count, ..*slab }).collect()
}

/// Stripes of a slab.
fn stripes(slab: &Slab) -> usize {
    chunks(slab.opponent_halves).div_ceil(UNIT_CHUNKS)
}

fn zeros(len: usize) -> Vec<AtomicU16> {
    (0..len).map(|_| AtomicU16::new(0)).collect()
}

/// The slabs, those of the most unequal players first, in phases: a function of the database alone.
fn phases(slabs: &[Slab], positions: u64) -> Vec<Vec<usize>> {
    let mut phases: Vec<Vec<usize>> = Vec::new();
    let mut size = 0;
    for high in (slabs.len() / 2..slabs.len()).rev() {
        let low = slabs.len() - 1 - high;
        for slab in [high, low].into_iter().take(if high == low { 1 } else { 2 }) {
            match phases.last_mut() {
                Some(phase) if size * PHASES_MAX < positions => phase.push(slab),
                _ => {
                    phases.push(vec![slab]);
                    size = 0;
                }
            }
            size += slabs[slab].positions();
        }
    }
    phases
}

/// So many rows in blocks.
fn blocks(rows: usize) -> impl DoubleEndedIterator<Item = Range<usize>> {
    let length = rows.div_ceil(BLOCKS).max(BLOCK_ROWS_MIN).next_multiple_of(UNIT_ROWS);
    (0..rows.div_ceil(length)).map(move |block| block * length..rows.min((block + 1) * length))
}

/// Letters as one message: their lengths, then all of them.
fn message<'a>(letters: impl Iterator<Item = &'a mut Letter>) -> Vec<u8> {
    let letters: Vec<_> = letters.map(Letter::take).collect();
    let length = letters.iter().map(Vec::len).sum::<usize>() + 4 * letters.len();
    let mut message = Vec::with_capacity(length);
    letters.iter().for_each(|letter| message.extend_from_slice(&(letter.len() as u32).to_le_bytes()));
    letters.iter().for_each(|letter| message.extend_from_slice(letter));
    message
}

/// The letters of a message, so many.
fn letters(message: &[u8], count: usize) -> Option<Vec<&[u8]>> {
    let (lengths, mut rest) = message.split_at_checked(4 * count)?;
    let mut letters = Vec::with_capacity(count);
    for length in lengths.as_chunks::<4>().0 {
        let (letter, others) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        letters.push(letter);
        rest = others;
    }
    rest.is_empty().then_some(letters)
}

fn unexpected(rank: usize) -> CommunicationError {
    let (expected, found) = ("changes of rows that both hold".to_owned(), "something else".to_owned());
    CommunicationError::Unexpected { rank, expected, found }
}
