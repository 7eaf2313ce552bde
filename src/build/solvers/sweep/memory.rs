//! The sweep with all scores in memory.

use super::marked::MarkedPasses;
use super::marks::{Marks, Own, SlabRegion};
use super::tile::Tiles;
use super::{MARK_BELOW, PassCounts, pairs};
use crate::huge_pages::Bytes;
use crate::kernels::apply::ChangedColumn;
use crate::kernels::scores::Kernel;
use crate::kernels::tables::Tables;
use crate::layout::rows::ScoreRows;
use crate::work_stealing::with_spinning_pool;
use crate::{DriverObserver, EndedPass, Stopped};
use game::{Index, Slab};

/// Times that a position is recomputed, in databases of more than a few stones.
const USUAL_PASSES: u64 = 14;

/// Work done by a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Passes over the database until nothing changed.
    pub passes: u64,
    /// Positions recomputed, in whole chunks of 64 columns.
    pub recomputed: u64,
    /// Number of changed scores.
    pub changed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SweepPass {
    /// Everything, leaving no marks.
    Full,
    /// Everything, marking the parents of what changes.
    FullMarking,
    /// Marked positions only.
    Marked,
}

/// Solves the database of `index` from its best captures (`MoverMajor`, see [`crate::capture`]).
///
/// `values` is zeros or a mixture of intermediate states, and has the scores in the end. `checkpoint` gets it between
/// passes.
///
/// # Panics
/// When the arrays do not have the size of the index, or the tables serve fewer stones or another position set.
pub fn sweep(
    tables: &Tables,
    index: &Index,
    captures: &Bytes,
    values: &mut ScoreRows,
    kernel: Kernel,
    progress: &dyn DriverObserver,
    checkpoint: &mut dyn FnMut(&ScoreRows),
) -> Result<SweepReport, Stopped> {
    assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
    assert!(Kernel::available().any(|available| available == kernel), "this processor has no {kernel:?}");
    assert!(captures.len() as u64 == index.slab_positions() && values.slabs().len() == index.slabs().len());
    assert!(index.slabs().iter().zip(values.slabs()).all(|(slab, rows)| {
        rows.rows == slab.opponent_halves as usize && rows.columns == slab.mover_halves as usize
    }));
    let slabs = index.slabs();
    let rows = values.slabs().to_vec();
    let captures_of = |slab: &Slab| (&captures.padded()[slab.offset as usize..], slab.opponent_halves as usize);
    let pairs = pairs(tables, slabs, captures_of, [&rows, &rows]);
    let mut tiles = Tiles::new(&pairs, kernel);
    let marked = MarkedPasses {
        tables,
        stones: index.stones(),
        kernel,
        marks: Marks::none(index.slabs(), index.slabs().iter().map(Own::all)),
        first_mirrored: slabs.len(),
    };
    let mut report = SweepReport::default();
    let mut pass = SweepPass::Full;
    let expected = index.slab_positions() * USUAL_PASSES;
    let passes = || loop {
        let before = report.changed;
        let mut add = |done: PassCounts| {
            report.recomputed += done.recomputed;
            report.changed += done.changed;
            progress.advance(report.recomputed, expected.max(report.recomputed)).is_break()
        };
        let notify =
            |slab: &Slab, change: &ChangedColumn, again: &SlabRegion| marked.mark_parents(slab, change, Some(again));
        if pass == SweepPass::Marked {
            for pair in &pairs {
                if add(marked.pair(pair, values, |_, _| {})) {
                    return Err(Stopped);
                }
            }
        } else {
            let is_marking = pass == SweepPass::FullMarking;
            for wave in 0..tiles.waves() {
                if add(tiles.wave(wave, is_marking, values, is_marking.then_some(&notify))) {
                    return Err(Stopped);
                }
            }
        }
        let changed = report.changed - before;
        report.passes += 1;
        let was_full = pass != SweepPass::Marked;
        pass = match pass {
            SweepPass::Full if changed * MARK_BELOW < index.slab_positions() => SweepPass::FullMarking,
            SweepPass::Full => SweepPass::Full,
            _ if changed == 0 => return Ok(report),
            _ => SweepPass::Marked,
        };
        progress.end_pass(EndedPass { is_full: was_full, is_next_full: pass != SweepPass::Marked, changed });
        checkpoint(values);
    };
    with_spinning_pool(passes)
}
