//! The methods that solve a database: [`sweep`], [`counting`] and [`bounds`], each in memory, on disk or by the
//! ranks of a job as far as it has such a driver; and [`capture`], which all of them start from.
//!
//! A driver takes slices and returns slices. It opens no file and knows no manifest: what lives on disk is behind a
//! trait that the caller implements. Work is cut into units that depend only on the number of stones (ranges of rows by
//! ranges of columns), so results do not depend on the number of threads. The inputs of a row kernel are plain arrays:
//! child offsets and the numbers of precompiled classes of moves.
//!
//! # Overview of types
//!
//! * **Inputs.** A `game::Index` numbers the positions of a database. [`Tables`] hold the moves of a set of
//!   rules, by half of the board. [`Bytes`] and [`WordArray`] are arrays on huge pages; [`ScoreRows`] are
//!   scores in rows, as kernels read them.
//! * **Kernels.** [`Kernel`] recomputes scores and [`bounds::BitKernel`] tests rows of bits, with the vectors
//!   of this processor.
//! * **Observers.** A [`DriverObserver`] sees progress and may stop a driver; a [`ranks::JobObserver`] also saves the
//!   part of a rank. A driver ends with its report, [`Stopped`], or a [`ranks::JobError`].
//! * **Captures.** [`capture::SmallerRows`] are the smaller databases, on disk or in memory, and
//!   [`capture::Sequential`] those that are read one after the other.
//! * **Scores.** [`sweep::RankScores`] and [`counting::RankValues`] are what one rank of a job, or a machine
//!   alone, holds of a database. [`ranks::ScoreShare`] gives them to those who write it.
//!   [`sweep::Guarantees`] are two bounds a position, for rules without scores.
//! * **Bounds.** A [`bounds::Solver`] decides one bound from [`bounds::Wins`] and [`bounds::Units`] of
//!   candidates, which the three methods store differently; [`bounds::ranks::RankPlanes`] are those of a
//!   rank.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod bounds;
pub mod capture;
pub mod counting;
mod huge_pages;
mod kernels;
mod layout;
mod observer;
pub mod ranks;
pub mod sweep;
mod word_update;
mod work_stealing;

pub use capture::{ChoiceCounts, DatabasePart, choice, choice_of, offered_choices};
pub use huge_pages::{Bytes, WordArray};
pub use kernels::Kernel;
pub use kernels::Tables;
pub use layout::{ScoreRows, row_bytes};
pub use observer::{DriverObserver, EndedPass, Stopped};
