//! Solution of all bounds with everything in memory, for tests and benches.

use super::solver::{BoundReport, Solver};
use super::storage::{Units, UnitsInMemory, Wins, WinsInMemory};
use crate::kernels::BitKernel;
use crate::layout::plane::{PlaneLayout, PlaneUnit, WORD};
use crate::{Bytes, Tables, capture};
use game::{Index, Orientation, Score};
use std::convert::Infallible;
use std::sync::Arc;

/// Solves `index` from its best captures and returns the scores, `OpponentMajor`. `each` gets each bound, its report
/// and its duration by `clock`.
pub fn solve_in_memory(
    tables: &Arc<Tables>,
    index: &Index,
    captures: &Bytes,
    kernel: BitKernel,
    clock: impl Fn() -> f64,
    mut each: impl FnMut(u32, BoundReport, f64),
) -> Vec<Score> {
    let stones = index.stones();
    let layout = PlaneLayout::new(index, Orientation::MoverMajor);
    let wins_layout = PlaneLayout::new(index, Orientation::OpponentMajor);
    let wins = WinsInMemory::none(&wins_layout);
    let candidates = UnitsInMemory::zeroed(layout.units().into_iter().map(|unit| unit.words));
    let solver: Solver<_, _, Infallible> = Solver::new(Arc::clone(tables), index.clone(), kernel, wins, candidates);
    solver.settle();
    let captures = in_both_orientations(index, captures);
    let mut scores = vec![0; captures[1].len()];
    for bound in (1..=stones as Score).rev() {
        for unit in solver.wins_units() {
            solver.add_wins(unit, &mut plane(&wins_layout, unit, &captures[1], |best| best == bound));
        }
        let free = |best| best == -bound || bound == stones as Score && best == capture::none(stones);
        let mut before = Vec::new();
        for (number, unit) in solver.units().iter().enumerate() {
            let new = plane(&layout, unit, &captures[0], free);
            let Ok(()) = solver.add_candidates(number, &new, |words| before.push(words.to_vec()));
        }
        let start = clock();
        let report = solver
            .solve(&(), &mut || Ok(()))
            .unwrap_or_else(|failure| panic!("the observer never stops it: {failure:?}"));
        each(bound as u32, report, clock() - start);
        for unit in solver.wins_units() {
            let mut words = vec![0; unit.words.len()];
            Wins::<Infallible>::read(solver.wins(), unit.slab, unit.rows.clone(), &mut words);
            mark(&wins_layout, unit, &words, |slab, row, column| {
                let slab = &index.slabs()[slab];
                let score = &mut scores[slab.offset as usize + row * slab.mover_halves as usize + column];
                if *score == 0 {
                    *score = bound;
                }
            });
        }
        for (number, (unit, before)) in solver.units().iter().zip(&mut before).enumerate() {
            let Ok(()) = Units::<Infallible>::visit(solver.candidates(), number, &mut |words| {
                before.iter_mut().zip(words).for_each(|(before, word)| *before &= !*word);
                false
            });
            mark(&layout, unit, before, |slab, row, column| {
                let slab = &index.slabs()[slab];
                scores[slab.offset as usize + column * slab.mover_halves as usize + row] = -bound;
            });
        }
    }
    scores
}

/// Returns the captures, and the captures transposed.
pub(crate) fn in_both_orientations(index: &Index, captures: &Bytes) -> [Vec<Score>; 2] {
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
pub(crate) fn plane(
    layout: &PlaneLayout,
    unit: &PlaneUnit,
    values: &[Score],
    wanted: impl Fn(Score) -> bool,
) -> Vec<u64> {
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
pub(crate) fn mark(layout: &PlaneLayout, unit: &PlaneUnit, words: &[u64], mut visit: impl FnMut(usize, usize, usize)) {
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
