//! Solution of all bounds by the ranks of a job with everything in memory, for tests and benches.

use super::collect::PlaneRun;
use super::partition::RowPartition;
use super::{Decided, DistributedBoundReport, RankPlanes, RankSolver};
use crate::bounds::{BitKernel, PlaneLayout, PlaneUnit};
use crate::capture;
use crate::huge_pages::Bytes;
use crate::kernels::tables::Tables;
use crate::layout::plane::WORD;
use crate::observer::DriverObserver;
use crate::ranks::JobError;
use game::{Index, Orientation, Score};
use messaging::Communicator;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Solves `index` from its best captures. Returns the scores on rank 0, `OpponentMajor`, and zeros on the others.
/// `each` is called at the start of each bound, and with its report at the end.
pub fn solve_in_memory(
    tables: &Arc<Tables>,
    index: &Index,
    captures: &Bytes,
    kernel: BitKernel,
    communicator: &mut dyn Communicator,
    progress: &dyn DriverObserver,
    mut each: impl FnMut(u32, Option<DistributedBoundReport>),
) -> Result<Vec<Score>, JobError> {
    let stones = index.stones();
    let partition = RowPartition::new(stones, index.set(), communicator.size());
    let mut planes = RankPlanes::in_memory(Arc::clone(tables), index, &partition, communicator.rank(), kernel);
    let layout = PlaneLayout::new(index, Orientation::MoverMajor);
    let wins_layout = PlaneLayout::new(index, Orientation::OpponentMajor);
    let captures = in_both_orientations(index, captures);
    let mut scores = vec![0; captures[1].len()];
    for bound in (1..=stones as Score).rev() {
        for run in planes.kept_runs() {
            planes.add_seeds(&run, &mut plane(&wins_layout, &run, &captures[1], |best| best == bound));
        }
        let free = |best| best == -bound || bound == stones as Score && best == capture::none(stones);
        for (number, unit) in planes.units().iter().enumerate() {
            let Ok(()) = planes.add_candidates(number, &plane(&layout, unit, &captures[0], free));
        }
        each(bound as u32, None);
        each(bound as u32, Some(planes.solve(communicator, progress)?));
        for (decided, layout) in [(Decided::Won, &wins_layout), (Decided::Lost, &layout)] {
            let mut words = Vec::with_capacity(layout.words());
            let mut sink = |run: PlaneRun| {
                match run {
                    PlaneRun::Zeros(count) => words.resize(words.len() + count, 0),
                    PlaneRun::Words(run) => words.extend_from_slice(run),
                }
                ControlFlow::Continue(())
            };
            let all = |rank| if rank == 0 { 0..layout.words() } else { 0..0 };
            let ranges: Vec<_> = (0..communicator.size()).map(all).collect();
            assert!(planes.collect(decided, &ranges, communicator, &mut sink)?, "the sink takes all");
            if communicator.rank() != 0 {
                continue;
            }
            if decided == Decided::Won {
                // Those by captures that were not decided at a higher bound.
                let by_capture =
                    scores.iter_mut().zip(&captures[1][..]).filter(|(score, best)| **score == 0 && **best == bound);
                by_capture.for_each(|(score, _)| *score = bound);
            }
            for unit in layout.units() {
                mark(layout, &unit, &words[unit.words.clone()], |slab, row, column| {
                    let slab = &index.slabs()[slab];
                    let height = slab.mover_halves as usize;
                    let (at, score) = match decided {
                        Decided::Won => (row * height + column, bound),
                        Decided::Lost => (column * height + row, -bound),
                    };
                    let to = &mut scores[slab.offset as usize + at];
                    assert_eq!(*to, 0, "a position is decided once");
                    *to = score;
                });
            }
        }
    }
    Ok(scores)
}

/// Returns the captures, and the captures transposed.
fn in_both_orientations(index: &Index, captures: &Bytes) -> [Vec<Score>; 2] {
    let mut turned = vec![0; captures.len()];
    for slab in index.slabs() {
        let (rows, columns) = (slab.mover_halves as usize, slab.opponent_halves as usize);
        for row in 0..rows {
            for column in 0..columns {
                turned[slab.offset as usize + column * rows + row] =
                    captures[slab.offset as usize + row * columns + column];
            }
        }
    }
    [captures.to_vec(), turned]
}

/// Returns the words of a unit, with the bits of the wanted values set.
fn plane(layout: &PlaneLayout, unit: &PlaneUnit, values: &[Score], wanted: impl Fn(Score) -> bool) -> Vec<u64> {
    let slab = &layout.slabs()[unit.slab];
    let before: usize = layout.slabs()[..unit.slab].iter().map(|slab| slab.rows * slab.columns).sum();
    let mut words = vec![0; unit.words.len()];
    for (row, words) in unit.rows.clone().zip(words.chunks_mut(slab.row_words)) {
        for (column, &value) in values[before + row * slab.columns..][..slab.columns].iter().enumerate() {
            words[column / WORD] |= u64::from(wanted(value)) << (column % WORD);
        }
    }
    words
}

/// Visits the set bits of a unit: slab, row, column.
fn mark(layout: &PlaneLayout, unit: &PlaneUnit, words: &[u64], mut visit: impl FnMut(usize, usize, usize)) {
    let slab = &layout.slabs()[unit.slab];
    for (row, words) in unit.rows.clone().zip(words.chunks(slab.row_words)) {
        for (at, &word) in words.iter().enumerate() {
            let mut word = word;
            while word != 0 {
                visit(unit.slab, row, at * WORD + word.trailing_zeros() as usize);
                word &= word - 1;
            }
        }
    }
}
