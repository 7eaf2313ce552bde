//! The method *sweep*: one byte a position, swept until nothing changes.
//!
//! From 0 everywhere, repeat `v(p) = max(capture(p), max over quiet moves of -v(child))`. In the order in which 0 is
//! least and magnitudes grow outward the operator is monotone, so updates in any order, in place and with stale reads,
//! converge to the least fixpoint, which is the score; cycles stay 0. The array may start from any mixture of earlier
//! states of the same run.
//!
//! **Order.** A move that stays in the mover's half raises the half's rank, and leaves the other half alone. So a pass
//! takes the two slabs in which the players have m and n - m stones together, block of ranks by block, from the
//! highest: the rows of a block where the mover owns them, then, in the other slab, the columns of the block, where
//! the opponent does. Both find their children of such moves already up to date, and in the cache; a block is taken
//! again while what changed in it may change more of it. Whole lines of play settle in one pass: 7 to 8 passes leave
//! one position in a thousand, where passes row by row through slab after slab took 21.
//!
//! Scores are kept `OpponentMajor`. What is recomputed of a block is staged while nobody writes the array, then
//! applied, by all threads; columns of a block read nothing of their own slab and are written at once. Passes are full
//! until few positions change; from then on a change marks the row chunks of its parents, and only marked chunks are
//! recomputed.

mod pair;

use crate::apply::{Changed, Staged, apply, is_small, recompute_and_apply};
use crate::kernel::{Child, Kernel, SlabWork, UNIT_CHUNKS, UNIT_ROWS, Unit};
use crate::marks::Marks;
use crate::memory::Bytes;
use crate::rows::{Rows, SlabRows};
use crate::tables::{CHUNK, Tables};
use crate::{Progress, Stopped};
use game::sow::Class;
use game::{Index, Slab};
use pair::{Block, Pair, Recent, Wanted, chunks};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Mutex;

/// Staged bytes a thread and batch: large enough to make the barrier cheap, small enough for the caches.
const BATCH_BYTES: usize = 1 << 20;

/// Bytes of the largest staged unit.
const UNIT_BYTES_MAX: usize = UNIT_ROWS * (UNIT_CHUNKS + 1) * CHUNK;
const _: () = assert!(UNIT_BYTES_MAX <= BATCH_BYTES);

/// Passes are full while more than one position in this many changes.
const MARK_BELOW: u64 = 8;

/// How often a block is taken in one pass, at most.
const ROUNDS_MAX: usize = 4;

/// How often a position is recomputed in a database of more than a few stones.
const USUAL_PASSES: u64 = 14;

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Passes over the database until nothing changed.
    pub passes: u64,
    /// Positions recomputed, by 64 columns of a row.
    pub recomputed: u64,
    /// Changes of a score.
    pub changed: u64,
}

struct Sweep<'a> {
    tables: &'a Tables,
    index: &'a Index,
    captures: &'a Bytes,
    kernel: Kernel,
    marks: Marks,
    staging: Vec<i8>,
    /// For each thread, a staged unit.
    buffers: Vec<Mutex<Vec<i8>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// Everything, leaving no marks.
    Full,
    /// Everything, marking the parents of what changes.
    FullMarking,
    /// What is marked.
    Marked,
}

/// Positions recomputed, and how many changed.
#[derive(Clone, Copy, Default)]
struct Done {
    recomputed: u64,
    changed: u64,
}

/// Solves the database of `index` from its best captures (`MoverMajor`, see [`crate::capture`]).
///
/// `values` is what to solve in: zeros, or a mixture of earlier states. `checkpoint` sees it between passes.
///
/// # Panics
/// When the arrays do not have the size of the index, or the tables serve fewer stones or another position set.
pub fn sweep(
    tables: &Tables,
    index: &Index,
    captures: &Bytes,
    values: &mut Rows,
    kernel: Kernel,
    progress: &dyn Progress,
    checkpoint: &mut dyn FnMut(&Rows),
) -> Result<Report, Stopped> {
    assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
    assert!(Kernel::available().any(|available| available == kernel), "this processor has no {kernel:?}");
    assert!(captures.len() as u64 == index.positions() && values.slabs().len() == index.slabs().len());
    assert!(index.slabs().iter().zip(values.slabs()).all(|(slab, rows)| {
        rows.rows == slab.opponent_halves as usize && rows.columns == slab.mover_halves as usize
    }));
    let threads = rayon::current_num_threads();
    let mut sweep = Sweep {
        tables,
        index,
        captures,
        kernel,
        marks: Marks::none(index),
        staging: vec![0; BATCH_BYTES * threads],
        buffers: (0..threads).map(|_| Mutex::new(vec![0; UNIT_BYTES_MAX])).collect(),
    };
    let slabs = index.slabs();
    let high = index.stones().div_ceil(2) as usize..slabs.len();
    // Those of the most unequal players first: what crosses from the few stones of the one leads to them.
    let pairs: Vec<_> = high.rev().map(|m| Pair::new(tables, &slabs[m], &slabs[slabs.len() - 1 - m])).collect();
    let mut report = Report::default();
    let mut pass = Pass::Full;
    let expected = index.positions() * USUAL_PASSES;
    loop {
        let mut changed = 0;
        for pair in &pairs {
            for block in pair.blocks() {
                let done = sweep.block(pair, &block, pass, values);
                changed += done.changed;
                report.recomputed += done.recomputed;
                if progress.advance(report.recomputed, expected.max(report.recomputed)).is_break() {
                    return Err(Stopped);
                }
            }
        }
        report.passes += 1;
        report.changed += changed;
        pass = match pass {
            Pass::Full if changed * MARK_BELOW < index.positions() => Pass::FullMarking,
            Pass::Full => Pass::Full,
            _ if changed == 0 => return Ok(report),
            _ => Pass::Marked,
        };
        checkpoint(values);
    }
}

impl Sweep<'_> {
    /// One block in one pass.
    fn block(&mut self, pair: &Pair, block: &Block, pass: Pass, values: &mut Rows) -> Done {
        let (high, low) = (pair.high, pair.low);
        // Where both slabs are one, a position is taken as a row or as a column, not as both.
        let high_columns = 0..if pair.is_one() { block.columns.end } else { chunks(high.opponent_halves) };
        let low_rows = 0..if pair.is_one() { block.rows.start * CHUNK } else { low.mover_halves as usize };
        // Once changes leave marks, these say all there is to take again.
        let mut recent = (pass == Pass::Full).then(|| pair.recent(block));
        let mut all = Done::default();
        for round in 0..ROUNDS_MAX {
            let pass = if round > 0 && pass == Pass::FullMarking { Pass::Marked } else { pass };
            let stale = recent.as_ref().filter(|_| round > 0).map(|recent| pair.stale_in_high(block, recent));
            let units = self.units(high, block.rows_of(high), high_columns.clone(), pass, stale);
            recent.iter_mut().for_each(Recent::forget_high);
            let tell = |change: &Changed| recent.iter().for_each(|recent| recent.changed_in_high(change));
            let mut done = self.staged(high, &units, pass, values, &tell);
            let stale = recent.as_ref().filter(|_| round > 0);
            let stale = stale.map(|recent| pair.stale_in_low(block, low_rows.clone(), recent));
            let units = self.units(low, low_rows.clone(), block.columns.clone(), pass, stale);
            recent.iter_mut().for_each(Recent::forget_low);
            let tell = |change: &Changed| recent.iter().for_each(|recent| recent.changed_in_low(change));
            let in_low = if pair.is_one() {
                self.staged(low, &units, pass, values, &tell)
            } else {
                self.at_once(low, &units, pass, values, &tell)
            };
            done.recomputed += in_low.recomputed;
            done.changed += in_low.changed;
            all.recomputed += done.recomputed;
            all.changed += done.changed;
            if done.changed == 0 {
                break;
            }
        }
        all
    }

    /// Recomputes units of a slab in batches, each staged before it is applied.
    fn staged(
        &mut self,
        slab: &Slab,
        units: &[Unit],
        pass: Pass,
        values: &mut Rows,
        tell: &(impl Fn(&Changed) + Sync),
    ) -> Done {
        if units.is_empty() {
            return Done::default();
        }
        let mut staging = std::mem::take(&mut self.staging);
        let work = work(self.tables, self.captures, slab, values.slabs(), 0);
        let mut changed = 0;
        let mut rest = units;
        while !rest.is_empty() {
            let mut batch = Vec::new();
            let mut buffer = &mut staging[..];
            while let Some((unit, after)) = rest.split_first() {
                let bytes = unit.staged_bytes();
                let Some((mine, others)) = buffer.split_at_mut_checked(bytes) else { break };
                batch.push((unit, mine));
                buffer = others;
                rest = after;
            }
            let old = values.bytes().padded();
            let recompute = |(unit, staged): &mut Staged| self.kernel.recompute(&work, unit, old, staged);
            if is_small(batch.iter().map(|(unit, _)| *unit)) {
                batch.iter_mut().for_each(recompute);
            } else {
                batch.par_iter_mut().for_each(recompute);
            }
            let rows = values.slab(slab);
            changed +=
                apply(self.kernel, rows, &batch, values.bytes_mut(), |change| self.note(slab, pass, &change, tell));
        }
        drop(work);
        self.staging = staging;
        Done { recomputed: positions_of(slab, units), changed }
    }

    /// Recomputes units of a slab that reads only later ones, and writes each at once.
    fn at_once(
        &self,
        slab: &Slab,
        units: &[Unit],
        pass: Pass,
        values: &mut Rows,
        tell: &(impl Fn(&Changed) + Sync),
    ) -> Done {
        if units.is_empty() {
            return Done::default();
        }
        let rows = values.slab(slab);
        let split = rows.offset + rows.bytes();
        let work = work(self.tables, self.captures, slab, values.slabs(), split);
        let (low, high) = values.bytes_mut().split_padded_at_mut(split);
        let changed = recompute_and_apply(self.kernel, rows, units, &work, &self.buffers, high, low, |change| {
            self.note(slab, pass, &change, tell);
        });
        Done { recomputed: positions_of(slab, units), changed }
    }

    /// Notes what must be recomputed after a change: in a full pass only what is near, else all.
    fn note(&self, slab: &Slab, pass: Pass, change: &Changed, tell: &impl Fn(&Changed)) {
        match pass {
            Pass::Full => tell(change),
            Pass::FullMarking | Pass::Marked => {
                self.marks.mark_parents(self.tables, self.index.stones(), slab.opponent_stones, change);
            }
        }
    }

    /// The units of some rows and chunks of a slab that have something to recompute: what is `stale`, if given, else
    /// what the pass wants; their marks are taken.
    fn units(
        &self,
        slab: &Slab,
        rows: Range<usize>,
        chunks: Range<usize>,
        pass: Pass,
        stale: Option<Wanted>,
    ) -> Vec<Unit> {
        let mut units = Vec::new();
        for row in rows.clone().step_by(UNIT_ROWS) {
            for chunk in chunks.clone().step_by(UNIT_CHUNKS) {
                let width = UNIT_CHUNKS.min(chunks.end - chunk);
                let full = ((1u32 << width) - 1) as u16;
                let height = UNIT_ROWS.min(rows.end - row);
                let mut unit = Unit { row, rows: height, chunk, chunks: width, wanted: [0; UNIT_ROWS] };
                let mut any = 0;
                for (at, wanted) in unit.wanted[..height].iter_mut().enumerate() {
                    *wanted = match (&stale, pass) {
                        (Some(stale), _) => stale.sixteen(row + at, chunk) & full,
                        (None, Pass::Full) => full,
                        (None, Pass::FullMarking | Pass::Marked) => {
                            let marks = self.marks.take(slab.mover_stones as usize, row + at, chunk, full);
                            if pass == Pass::Marked { marks } else { full }
                        }
                    };
                    any |= *wanted;
                }
                if any != 0 {
                    units.push(unit);
                }
            }
        }
        units
    }
}

/// Positions that units recompute, by 64 columns of a row.
fn positions_of(slab: &Slab, units: &[Unit]) -> u64 {
    let chunks: u64 = units.iter().flat_map(|unit| unit.wanted).map(|wanted| u64::from(wanted.count_ones())).sum();
    chunks * (CHUNK as u64).min(u64::from(slab.opponent_halves))
}

/// A slab as the kernels see it, which are given the scores of `rows` from byte `first` on.
pub(crate) fn work<'a>(
    tables: &'a Tables,
    captures: &'a Bytes,
    slab: &Slab,
    rows: &[SlabRows],
    first: usize,
) -> SlabWork<'a> {
    let mut children = SlabWork::no_children();
    for (number, child) in children.iter_mut().enumerate() {
        let class = Class::from_number(number);
        let crossing = u32::from(class.crossing);
        if class.occurs() && crossing <= slab.mover_stones {
            let to = rows[(slab.opponent_stones + crossing) as usize];
            let Some(offset) = to.offset.checked_sub(first) else { continue };
            *child = Some(Child {
                gather: tables.gather(slab.opponent_stones, number),
                offset,
                bytes: to.bytes(),
                stride: to.stride,
            });
        }
    }
    SlabWork {
        rows: tables.rows(slab.mover_stones),
        columns: slab.opponent_halves as usize,
        children,
        captures: &captures.padded()[slab.offset as usize..],
    }
}
