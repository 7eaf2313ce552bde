//! Finished databases in layouts that other programs read, and databases of others compared with ours.
//!
//! [`export`] writes a database as bare bytes, as text, as a Parquet table, or as the files in which the Vrije
//! Universiteit published the scores of 2002 (see [`Lexicographic`]); [`compare`] reads such files and tells where they
//! differ. [`archive()`] writes a database in its smallest form, which [`restore`] brings back.
//!
//! Invariants:
//!
//! * Scores come from [`store::Scores`], so every byte that goes out was covered by a checksum.
//! * Memory is bounded whatever the size of a database: by the caller's limit for another order, by a few MiB else.
//! * A file appears under its name complete or not at all, and replaces another one only where the caller says so.
//! * The bytes of a file depend on the scores alone, not on threads, limits or time.
//!
//! It knows no directory of runs and no manifest: who asks brings the opened database.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod archive;
mod compare;
mod error;
mod export;
mod lexicographic;
#[cfg(test)]
mod solved;

pub use archive::{BestCaptures, RestoreTarget, archive, restore};
pub use compare::{ScoreComparison, ScoreDifference, compare, file_of};
pub use error::ExchangeError;
pub use export::{CSV_POSITIONS_MAX, Exported, Format, Options, export};
pub use lexicographic::{Lexicographic, LexicographicPart};
