//! The methods *two-bit*, *one-bit* and *one-bit-dual*: one bound after the other, on bits.
//!
//! Bound b decides which positions score at least b (won) and at most -b (lost). Bounds descend from the number of
//! stones: positions decided at b + 1 are decided at b, so each position is decided once, at the absolute value of its
//! score. The state is two planes:
//!
//! * the *wins*, `OpponentMajor`: positions known to score at least b;
//! * the *candidates*, `MoverMajor`: positions that are not known to be lost and have no capture that scores more than
//!   -b (Romein and Bal's `Unknown`; the others are their `DrawOrWin`, or lost). A candidate may be won as well: then a
//!   move leads to a lost position, and no test finds the candidate lost.
//!
//! A candidate is lost if all its quiet moves lead to wins. It then leaves the plane, and its parents win. Both steps
//! are local to rows: a row of candidates reads one row of wins for each move of its half, and the parents of its
//! positions lie in one row of wins for each number of crossing stones. The different orientations of the two planes
//! are what Lincke (2002, section 2.5) calls dual indexing; his result for caches holds for registers as well.
//!
//! **Order.** A pass takes slab after slab, in each the last rows first. A move that stays in the mover's half raises
//! the half's rank and leaves the other half alone, so rows of candidates depend, by such moves of both players, on
//! later rows only: whole lines of play settle in one pass, without blocks as in [`crate::sweep`].
//!
//! The three methods differ in the storage of the planes: see [`Wins`] and [`Units`].

pub mod ranks;
mod solver;
mod storage;

pub use crate::kernels::{BitKernel, RowBits};
pub use crate::layout::{PlaneLayout, PlaneSlab, PlaneUnit};
pub use solver::{BoundReport, Solver, SolverError};
pub use storage::{Units, UnitsInMemory, Wins, WinsInMemory};
