//! How often a capture is the wrong move, counted over a whole database (Romein & Bal 2002: 22 %).
//!
//! Which positions offer a capturing and another move depends on halves and classes alone, 64 columns at a time; whether
//! only the other moves are best follows from the best capture and the score.

use crate::tables::{CHUNK, RowMove, Tables};
use crate::{Bytes, capture};
use game::{Index, Slab};
use rayon::prelude::*;

/// Counts over all positions of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Positions that offer both a capturing and a non-capturing move.
    pub offered: u64,
    /// Those of them in which every best move captures nothing.
    pub declined: u64,
}

/// Counts the choices of a database from its best captures (`MoverMajor`) and its scores (`OpponentMajor`).
///
/// # Panics
/// When sizes disagree.
pub fn choice(tables: &Tables, index: &Index, captures: &Bytes, scores: &[i8]) -> Choice {
    assert!(captures.len() as u64 == index.positions() && scores.len() as u64 == index.positions());
    let count = |slab: &Slab| {
        let none = capture::none(index.stones());
        let columns = slab.opponent_halves as usize;
        let stride = slab.mover_halves as usize;
        let scores = &scores[slab.offset as usize..][..slab.positions() as usize];
        let captures = &captures[slab.offset as usize..][..slab.positions() as usize];
        let rows = tables.rows(slab.mover_stones);
        let unit = |(unit, captures): (usize, &[i8])| {
            let first = unit * CHUNK;
            let mut declined = 0;
            for chunk in (0..columns).step_by(CHUNK) {
                for column in chunk..columns.min(chunk + CHUNK) {
                    let scores = &scores[column * stride + first..];
                    declined += captures[column..]
                        .iter()
                        .step_by(columns)
                        .zip(scores)
                        .filter(|&(&best, &score)| best != none && best < score)
                        .count() as u64;
                }
            }
            let rows = &rows[first..rows.len().min(first + CHUNK)];
            Choice { offered: rows.iter().map(|moves| offered(tables, slab, moves)).sum(), declined }
        };
        captures.par_chunks(columns * CHUNK).enumerate().map(unit).reduce(Choice::default, Choice::plus)
    };
    index.slabs().iter().map(count).fold(Choice::default(), Choice::plus)
}

/// Columns of a row that offer both a capturing and a non-capturing move.
fn offered(tables: &Tables, slab: &Slab, moves: &[RowMove]) -> u64 {
    let words = (slab.opponent_halves as usize).div_ceil(CHUNK);
    let moves = || {
        moves.iter().take_while(|&&to| to != RowMove::NONE).map(|to| tables.columns(slab.opponent_stones, to.class()))
    };
    (0..words)
        .map(|word| {
            let any = |columns: fn(&crate::tables::Columns) -> &[u64]| {
                moves().fold(0, |any, class| any | columns(class)[word])
            };
            u64::from((any(|class| &class.quiet) & any(|class| &class.capturing)).count_ones())
        })
        .sum()
}

impl Choice {
    fn plus(self, other: Choice) -> Choice {
        Choice { offered: self.offered + other.offered, declined: self.declined + other.declined }
    }
}
