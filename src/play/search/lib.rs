//! Searches for the scores of positions beyond the databases.
//!
//! A [`Searcher`] looks ahead from a position as far as its limits allow. What it returns about a position
//! and about each move has two parts that are never mixed:
//!
//! * *Proved bounds*: `low` and `high`, between which the score lies. They rest on the rules, on databases,
//!   and on nothing else.
//! * An *estimate* in hundredths of a stone, which is always within the bounds.
//!
//! Invariants:
//!
//! * Bounds do not depend on how a position was reached: a repetition proves nothing here, so bounds in the
//!   table hold for every search. (The estimate of a repetition is 0, and estimates that rest on one are not kept.)
//! * An entry of the table belongs to exactly one position, not to a hash value that others share.
//! * Nothing is allocated while positions are searched.
//!
//! The crate does no I/O; databases are behind the trait [`ExactScores`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod beyond;
mod board;
mod busy;
mod evaluation;
mod exact_scores;
mod features;
mod inference;
mod limits;
mod memo;
mod memory;
mod open_estimates;
mod outcome;
mod recent;
mod report;
mod sampling;
mod searcher;
mod signature;
mod table;
#[cfg(test)]
mod tests;
mod training;
mod worker;

pub use beyond::EstimateSampler;
pub use evaluation::{Evaluation, EvaluationError};
pub use exact_scores::{ExactScores, NoScores};
pub use limits::{SearchLimits, SearchStop};
pub use memo::BoundsMemo;
pub use open_estimates::OpenEstimates;
pub use report::{MoveEstimate, SearchReport, SearchedMove};
pub use sampling::GameSampler;
pub use searcher::{SearchRequest, Searcher};
pub use signature::signature;
pub use table::TranspositionTable;
pub use training::Training;
