//! The method *sweep*: one byte a position, swept until nothing changes.
//!
//! From 0 everywhere, repeat `v(p) = max(capture(p), max over quiet moves of -v(child))`. In the order in which 0 is
//! least and magnitudes grow outward the operator is monotone, so updates in any order, in place and with stale reads,
//! converge to the least fixpoint, which is the score; cycles stay 0. The array may start from any mixture of earlier
//! states of the same run.
//!
//! Scores are kept `OpponentMajor`. A pass takes the slabs one by one, a slab in batches of units: a batch is
//! recomputed by all threads into a staging buffer while nobody writes the array, then applied by all threads. Passes
//! are full until few positions change; from then on a change marks the row chunks of its parents, and only marked
//! chunks are recomputed.

use crate::apply::{Changed, Staged, apply, is_small, recompute_and_apply};
use crate::kernel::{Child, Kernel, SlabWork, UNIT_CHUNKS, UNIT_ROWS, Unit};
use crate::marks::Marks;
use crate::memory::Bytes;
use crate::tables::{CHUNK, Tables};
use crate::{Progress, Stopped};
use game::sow::Class;
use game::{Index, Orientation, Slab};
use rayon::prelude::*;
use std::sync::Mutex;

/// Staged bytes a thread and batch: large enough to make the barrier cheap, small enough for the caches.
const BATCH_BYTES: usize = 1 << 20;

/// Bytes of the largest staged unit.
const UNIT_BYTES_MAX: usize = UNIT_ROWS * (UNIT_CHUNKS + 1) * CHUNK;
const _: () = assert!(UNIT_BYTES_MAX <= BATCH_BYTES);

/// Passes are full while more than one position in this many changes.
const MARK_BELOW: u64 = 64;

/// Full passes that a database of more than a few stones is worth: measured 20 to 22 for 11 to 24 stones.
const USUAL_PASSES: u64 = 22;

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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Everything, leaving no marks.
    Full,
    /// Everything, marking the parents of what changes.
    FullMarking,
    /// What is marked.
    Marked,
}

/// Solves the database of `index` from its best captures (`MoverMajor`, see [`crate::capture`]).
///
/// `values` is the array to solve in: zeros, or a mixture of earlier states. `checkpoint` sees it between passes.
///
/// # Panics
/// When the arrays do not have the size of the index, or the tables serve fewer stones or another position set.
pub fn sweep(
    tables: &Tables,
    index: &Index,
    captures: &Bytes,
    values: &mut Bytes,
    kernel: Kernel,
    progress: &dyn Progress,
    checkpoint: &mut dyn FnMut(&Bytes),
) -> Result<Report, Stopped> {
    assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
    assert!(Kernel::available().any(|available| available == kernel), "this processor has no {kernel:?}");
    assert!(captures.len() as u64 == index.positions() && values.len() as u64 == index.positions());
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
    let mut report = Report::default();
    let mut pass = Pass::Full;
    let expected = index.positions() * USUAL_PASSES;
    loop {
        let mut changed = 0;
        // Slabs whose mover has less than half of the stones read only slabs whose mover has more than half, which
        // come first.
        let first_high = (index.stones() / 2 + 1) as usize;
        let first_self = index.stones().div_ceil(2) as usize;
        let mut done = |(recomputed, slab_changed): (u64, u64)| {
            changed += slab_changed;
            report.recomputed += recomputed;
            progress.advance(report.recomputed, expected.max(report.recomputed)).is_break()
        };
        for slab in index.slabs()[first_self..].iter().rev() {
            if done(sweep.slab(slab, pass, values)) {
                return Err(Stopped);
            }
        }
        if done(sweep.low_slabs(&index.slabs()[..first_self], first_high, pass, values)) {
            return Err(Stopped);
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
    /// One slab in one pass: positions recomputed and changed.
    fn slab(&mut self, slab: &Slab, pass: Pass, values: &mut Bytes) -> (u64, u64) {
        let units = self.units(slab, pass);
        if units.is_empty() {
            return (0, 0);
        }
        let mut staging = std::mem::take(&mut self.staging);
        let work = work(self.tables, self.index, self.captures, slab, 0);
        let mut changed = 0;
        let mut rest = &units[..];
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
            let old = values.padded();
            let recompute = |(unit, staged): &mut Staged| self.kernel.recompute(&work, unit, old, staged);
            if is_small(batch.iter().map(|(unit, _)| *unit)) {
                batch.iter_mut().for_each(recompute);
            } else {
                batch.par_iter_mut().for_each(recompute);
            }
            changed += apply(self.kernel, slab, &batch, values, |change| self.mark(slab, pass, &change));
        }
        drop(work);
        self.staging = staging;
        (positions_of(slab, &units), changed)
    }

    /// Slabs that do not read each other, in one pass, without staging.
    fn low_slabs(&self, slabs: &[Slab], first_high: usize, pass: Pass, values: &mut Bytes) -> (u64, u64) {
        let split = self.index.slabs()[first_high..].first().map_or(values.len(), |slab| slab.offset as usize);
        let slabs: Vec<_> = slabs
            .iter()
            .map(|slab| (slab, self.units(slab, pass), work(self.tables, self.index, self.captures, slab, split)))
            .collect();
        let (low, high) = values.split_padded_at_mut(split);
        let changed = recompute_and_apply(self.kernel, &slabs, &self.buffers, high, low, |slab, change| {
            self.mark(slab, pass, &change)
        });
        (slabs.iter().map(|(slab, units, _)| positions_of(slab, units)).sum(), changed)
    }

    /// Marks what must be recomputed after a change, in a pass that leaves marks.
    fn mark(&self, slab: &Slab, pass: Pass, change: &Changed) {
        if pass != Pass::Full {
            self.marks.mark_parents(self.tables, self.index.stones(), slab.opponent_stones, change);
        }
    }

    /// The units of a slab that have something to recompute; their marks are taken.
    fn units(&self, slab: &Slab, pass: Pass) -> Vec<Unit> {
        let (rows, columns) = slab.rows_columns(Orientation::MoverMajor);
        let (rows, chunks_all) = (rows as usize, (columns as usize).div_ceil(CHUNK));
        let mut units = Vec::new();
        for row in (0..rows).step_by(UNIT_ROWS) {
            for chunk in (0..chunks_all).step_by(UNIT_CHUNKS) {
                let chunks = UNIT_CHUNKS.min(chunks_all - chunk);
                let full = ((1u32 << chunks) - 1) as u16;
                let mut unit = Unit { row, rows: UNIT_ROWS.min(rows - row), chunk, chunks, wanted: [full; UNIT_ROWS] };
                unit.wanted[unit.rows..].fill(0);
                let mut any = 0;
                if pass != Pass::Full {
                    for (at, wanted) in unit.wanted[..unit.rows].iter_mut().enumerate() {
                        let marks = self.marks.take(slab.mover_stones as usize, row + at, chunk, full);
                        if pass == Pass::Marked {
                            *wanted = marks;
                            any |= marks;
                        }
                    }
                }
                if pass != Pass::Marked || any != 0 {
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

/// A slab as the kernels see it, which are given the scores from position `first` on.
pub(crate) fn work<'a>(
    tables: &'a Tables,
    index: &Index,
    captures: &'a Bytes,
    slab: &Slab,
    first: usize,
) -> SlabWork<'a> {
    let mut children = SlabWork::no_children();
    for (number, child) in children.iter_mut().enumerate() {
        let class = Class::from_number(number);
        let crossing = u32::from(class.crossing);
        if class.occurs() && crossing <= slab.mover_stones {
            let to = index.slab(slab.opponent_stones + crossing);
            let Some(offset) = (to.offset as usize).checked_sub(first) else { continue };
            *child = Some(Child {
                gather: tables.gather(slab.opponent_stones, number),
                offset,
                positions: to.positions() as usize,
                columns: to.mover_halves as usize,
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
