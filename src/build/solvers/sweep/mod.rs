//! The method *sweep*: one byte a position, swept until nothing changes.
//!
//! From 0 everywhere, repeat `v(p) = max(capture(p), max over quiet moves of -v(child))`. In the order in which 0 is
//! least and magnitudes grow outward the operator is monotone, so updates in any order, in place and with stale reads,
//! converge to the least fixpoint, which is the score; cycles stay 0. A sweep may start from any mixture of
//! intermediate states.
//!
//! **Order.** A move that stays in the mover's half raises the half's rank and leaves the other half alone. So a pass
//! processes the two slabs in which the players have m and n - m stones together, in bands of halves from the highest
//! rank: first the rows of the band, where it is the mover's half, then the columns of the other slab, where it is the
//! opponent's. In both, the children by such moves are already up to date. A band is repeated while changes in it may
//! cause more (`tile.rs`). Whole lines of play thus settle in one pass: 6 to 7 passes leave one position in a thousand,
//! compared with 21 passes row by row and slab by slab.
//!
//! Scores are stored `OpponentMajor`. Passes are full until few positions change. From then on each change marks its
//! parents, and only marked positions are recomputed (`marked.rs`).

mod guarantees;
mod marked;
mod marks;
mod pair;
pub mod ranks;
mod tile;

pub use guarantees::{BoundCaptures, Guarantees};
pub use ranks::{RankScores, SweepReport, sweep};

use crate::huge_pages::Bytes;
use crate::kernels::scores::{ChildScores, Kernel, SlabWork};
use crate::kernels::tables::Tables;
use crate::layout::rows::{ScoreRows, SlabRows, row_bytes};
use game::sow::SowClass;
use game::{Index, Slab};
use marks::Marks;
use messaging::Alone;
use pair::SlabPair;
use std::io;

/// Passes are full while more than one in this many positions changes.
pub(crate) const MARK_BELOW: u64 = 30;

/// Numbers of recomputed and of changed positions.
#[derive(Clone, Copy, Default)]
pub(crate) struct PassCounts {
    pub(crate) recomputed: u64,
    pub(crate) changed: u64,
}

impl PassCounts {
    pub(crate) fn add(self, other: PassCounts) -> PassCounts {
        PassCounts { recomputed: self.recomputed + other.recomputed, changed: self.changed + other.changed }
    }
}

/// Solves a database on this machine, without an observer, from its best captures (`MoverMajor`, see
/// [`crate::capture`]).
///
/// # Errors
/// If there is not enough memory.
pub fn solve(tables: &Tables, index: &Index, captures: &Bytes, kernel: Kernel) -> io::Result<(ScoreRows, SweepReport)> {
    let mut scores = RankScores::alone(tables, index, ScoreRows::zeroed(index)?);
    let swept = sweep(tables, index, captures, &mut scores, kernel, &mut Alone, &());
    Ok((scores.into_rows(), swept.expect("nothing stops it, and there is no message to lose")))
}

/// Bytes of the scores and marks of a database that is being solved.
pub fn memory_bytes(slabs: &[Slab]) -> u64 {
    row_bytes(slabs) + Marks::bytes(slabs)
}

/// Pairs the slabs of a database, those with the most unequal players first: crossing moves from few stones lead there.
/// `rows` has the locations of the scores that moves lead to, from slabs whose mover has the larger half and from
/// others. The slabs' own scores are at the latter.
pub(crate) fn pairs<'a>(
    tables: &'a Tables,
    slabs: &'a [Slab],
    captures: impl Fn(&Slab) -> (&'a [i8], usize),
    rows: [&[SlabRows]; 2],
) -> Vec<SlabPair<'a>> {
    let pair = |m: usize| {
        let [high, low] = [m, slabs.len() - 1 - m].map(|slab| (&slabs[slab], rows[1][slab], captures(&slabs[slab])));
        let high = work(tables, high.0, high.1, rows[0], high.2);
        SlabPair::new(tables, high, work(tables, low.0, low.1, rows[1], low.2))
    };
    (slabs.len() / 2..slabs.len()).rev().map(pair).collect()
}

/// Builds the kernels' view of a slab from the locations of its scores and of those that its moves lead to, and its
/// best captures with their stride.
pub(crate) fn work<'a>(
    tables: &'a Tables,
    slab: &'a Slab,
    to: SlabRows,
    rows: &[SlabRows],
    (captures, captures_stride): (&'a [i8], usize),
) -> SlabWork<'a> {
    let mut children = SlabWork::no_children();
    for (number, child) in children.iter_mut().enumerate() {
        let class = SowClass::from_number(number);
        let crossing = u32::from(class.crossing);
        if class.occurs() && crossing <= slab.mover_stones {
            let to = rows[(slab.opponent_stones + crossing) as usize];
            *child = Some(ChildScores {
                gather: tables.gather(slab.opponent_stones, number),
                offset: to.offset,
                bytes: to.bytes(),
                stride: to.stride,
                end: to.lead + to.stride,
            });
        }
    }
    SlabWork {
        slab,
        to,
        rows: tables.rows(slab.mover_stones),
        columns: slab.opponent_halves as usize,
        children,
        captures,
        captures_stride,
    }
}
