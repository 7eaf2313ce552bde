//! The methods *two-bit*, *one-bit* and *one-bit-dual*: one bound after the other, on bits.
//!
//! A bound b asks which positions score at least b (won) and at most -b (lost). Bounds descend from the number of
//! stones: what is decided at b + 1 is decided at b, so every position is decided once, at the bound that is its score
//! up to sign. Two planes carry the state:
//!
//! * the *wins*, `OpponentMajor`: positions known to score at least b;
//! * the *candidates*, `MoverMajor`: positions that are not known to be lost, and none of whose captures scores more
//!   than -b (Romein and Bal's `Unknown`; the others are their `DrawOrWin`, or lost). Some may be won as well: then a
//!   move leads to a lost position, and no test finds them lost.
//!
//! A candidate all of whose quiet moves lead to wins is lost, and leaves the plane; whoever can move to it wins. Both
//! steps are local to rows. A row of candidates reads one row of wins for each move of its half, and the parents of
//! its positions lie in one row of wins for each number of stones that cross. That the two planes are orientated
//! differently is what Lincke (2002, section 2.5) calls dual indexing; what he found for caches holds for registers.
//!
//! **Order.** A pass takes slab after slab, in each the last rows first. A move that stays in the mover's half raises the
//! half's rank and leaves the other half alone, so rows of candidates depend, by such moves of both players, on later rows
//! only: whole lines of play settle in one pass, with no need for blocks as in [`crate::sweep`].
//!
//! The methods differ in where the planes live: see [`Wins`] and [`Units`].

pub mod distributed;
mod memory;
mod solver;
mod storage;

pub use crate::kernels::{BitKernel, RowBits};
pub use crate::layout::{PlaneLayout, PlaneSlab, PlaneUnit};
pub use memory::solve_in_memory;
pub use solver::{BoundReport, Solver, SolverError};
pub use storage::{Units, UnitsInMemory, Wins, WinsInMemory};

pub(crate) use memory::{in_both_orientations, mark, plane};
