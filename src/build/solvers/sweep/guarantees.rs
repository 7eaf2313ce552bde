//! What each player can force, where a repetition has no fixed value.
//!
//! If a repetition gives each player the stones of a side, a position has no score, since what happened before decides
//! which position is repeated first. It has two bounds: `low`, the most that the player to move can force, with endless
//! play as the worst for that player, and `high`, the least to which the opponent can hold that player, with endless
//! play as the worst for the opponent.
//!
//! ```text
//! low(p) = max(captured - high(child)), high(p) = max(captured - low(child))
//! ```
//!
//! From `low = -n` and `high = n` everywhere the operator raises `low` and lowers `high`; it converges to the
//! least `low` and the greatest `high` that satisfy the equations. Passes are full, and take one array and
//! write the other in turn, so no byte is read while another thread writes it.

use super::pair::units;
use super::ranks::SweepReport;
use super::work;
use crate::huge_pages::Bytes;
use crate::kernels::apply::apply;
use crate::kernels::scores::{Kernel, Moves, RowTask, SlabWork, UNIT_BYTES_MAX};
use crate::kernels::tables::{Tables, chunks};
use crate::layout::rows::{ScoreRows, SlabRows};
use crate::observer::{DriverObserver, EndedPass, Stopped};
use game::{Index, Slab};
use rayon::prelude::*;
use std::io;

/// Both bounds of all positions of a database.
#[derive(Debug)]
pub struct Guarantees {
    /// By position, what the player to move can force.
    pub low: ScoreRows,
    /// By position, what the opponent can hold the player to move to.
    pub high: ScoreRows,
}

/// The best captures of all positions, `MoverMajor`, by both bounds of the smaller databases.
#[derive(Clone, Copy, Debug)]
pub struct BoundCaptures<'a> {
    /// The captured stones minus the `high` of the child.
    pub low: &'a Bytes,
    /// The captured stones minus the `low` of the child.
    pub high: &'a Bytes,
}

impl Guarantees {
    /// Allocates the widest bounds of an index.
    pub fn widest(index: &Index) -> io::Result<Guarantees> {
        let (mut low, mut high) = (ScoreRows::zeroed(index)?, ScoreRows::zeroed(index)?);
        low.bytes_mut().fill(-(index.stones() as i8));
        high.bytes_mut().fill(index.stones() as i8);
        Ok(Guarantees { low, high })
    }

    /// Narrows the bounds until nothing changes. They may be any that an earlier call left when it was stopped, or that
    /// `checkpoint` got between passes.
    ///
    /// # Panics
    /// If the tables are of other positions, or an array has another length than the index.
    pub fn sweep(
        &mut self,
        tables: &Tables,
        index: &Index,
        captures: BoundCaptures,
        kernel: Kernel,
        progress: &dyn DriverObserver,
        checkpoint: &mut dyn FnMut(&Guarantees),
    ) -> Result<SweepReport, Stopped> {
        assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
        assert!([captures.low, captures.high].iter().all(|best| best.len() as u64 == index.slab_positions()));
        let mut report = SweepReport::default();
        let mut unchanged = 0;
        // Each bound depends on the other alone.
        for from_high in [true, false].into_iter().cycle() {
            if progress.advance(report.recomputed, report.recomputed + index.slab_positions()).is_break() {
                return Err(Stopped);
            }
            let changed = if from_high {
                pass(tables, index, captures.low, &self.high, &mut self.low, kernel)
            } else {
                pass(tables, index, captures.high, &self.low, &mut self.high, kernel)
            };
            report.passes += 1;
            report.recomputed += index.slab_positions();
            report.changed += changed;
            unchanged = if changed == 0 { unchanged + 1 } else { 0 };
            if unchanged == 2 {
                break;
            }
            progress.end_pass(EndedPass { is_full: true, is_next_full: true, changed });
            checkpoint(self);
        }
        Ok(report)
    }
}

/// Derives all scores of `to` from those of `from`, and returns the number of changes.
fn pass(tables: &Tables, index: &Index, captures: &Bytes, from: &ScoreRows, to: &mut ScoreRows, kernel: Kernel) -> u64 {
    let rows: Vec<SlabRows> = to.slabs().to_vec();
    let slabs = index.slabs().iter().zip(rows).zip(to.slabs_mut());
    let slabs: Vec<_> = slabs.collect();
    let slab = |((slab, rows), array): ((&Slab, SlabRows), &mut [i8])| {
        let best = (&captures.padded()[slab.offset as usize..], slab.opponent_halves as usize);
        let alone = SlabRows { offset: 0, ..rows };
        let work: SlabWork = work(tables, slab, alone, from.slabs(), best);
        let mut staged = vec![0; UNIT_BYTES_MAX];
        let (rows, columns) = (0..chunks(slab.mover_halves), 0..chunks(slab.opponent_halves));
        let recompute = |unit| {
            let (values, moves, floor) = (from.bytes().padded(), Moves::all_but(0..0), work.floor(&unit));
            kernel.recompute(&RowTask { work: &work, unit: &unit, values, moves, floor }, &mut staged);
            apply(kernel, &work, &unit, &staged, array, 0, |_| {})
        };
        units(&work, &rows, columns).map(recompute).sum::<u64>()
    };
    slabs.into_par_iter().map(slab).sum()
}
