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

use crate::apply::apply;
use crate::kernel::{Child, Kernel, SlabWork, UNIT_CHUNKS, UNIT_ROWS, Unit};
use crate::marks::Marks;
use crate::memory::Bytes;
use crate::tables::{CHUNK, Tables};
use crate::{Progress, Stopped};
use game::sow::Class;
use game::{Index, Orientation, Slab};
use rayon::prelude::*;

/// Staged bytes a thread and batch: large enough to make the barrier cheap, small enough for the caches.
const BATCH_BYTES: usize = 1 << 18;

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
    assert!(captures.len() as u64 == index.positions() && values.len() as u64 == index.positions());
    let threads = rayon::current_num_threads();
    let mut sweep = Sweep {
        tables,
        index,
        captures,
        kernel,
        marks: Marks::none(index),
        staging: vec![0; BATCH_BYTES * threads + UNIT_ROWS * (UNIT_CHUNKS + 1) * CHUNK],
    };
    let mut report = Report::default();
    let mut pass = Pass::Full;
    let expected = index.positions() * USUAL_PASSES;
    loop {
        let mut changed = 0;
        for slab in index.slabs().iter().rev() {
            let (recomputed, slab_changed) = sweep.slab(slab, pass, values);
            changed += slab_changed;
            report.recomputed += recomputed;
            if progress.advance(report.recomputed, expected.max(report.recomputed)).is_break() {
                return Err(Stopped);
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
    /// One slab in one pass: positions recomputed and changed.
    fn slab(&mut self, slab: &Slab, pass: Pass, values: &mut Bytes) -> (u64, u64) {
        let units = self.units(slab, pass);
        if units.is_empty() {
            return (0, 0);
        }
        let recomputed =
            units.iter().map(|unit| unit.wanted.iter().map(|w| u64::from(w.count_ones())).sum::<u64>()).sum::<u64>();
        let mut staging = std::mem::take(&mut self.staging);
        let work = work(self.tables, self.index, self.captures, slab);
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
            batch.par_iter_mut().for_each(|(unit, staged)| self.kernel.recompute(&work, unit, old, staged));
            changed += apply(self.kernel, slab, &batch, values, |change| {
                if pass != Pass::Full {
                    self.marks.mark_parents(self.tables, self.index.stones(), slab.opponent_stones, &change);
                }
            });
        }
        drop(work);
        self.staging = staging;
        (recomputed * (CHUNK as u64).min(u64::from(slab.opponent_halves)), changed)
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

/// A slab as the kernels see it.
pub(crate) fn work<'a>(tables: &'a Tables, index: &Index, captures: &'a Bytes, slab: &Slab) -> SlabWork<'a> {
    let mut children = SlabWork::no_children();
    for (number, child) in children.iter_mut().enumerate() {
        let crossing = u32::from(Class::from_number(number).crossing);
        if crossing <= slab.mover_stones {
            let to = index.slab(slab.opponent_stones + crossing);
            *child = Some(Child {
                gather: tables.gather(slab.opponent_stones, number),
                offset: to.offset as usize,
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
