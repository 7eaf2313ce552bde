//! Finished databases in layouts of other programs, and comparison with databases of others.
//!
//! [`export`] writes a database as raw bytes, as text, as a Parquet table, or as the files in which the Vrije
//! Universiteit published the scores of 2002 (see [`Lexicographic`]). [`compare`] reads such files and reports
//! differences. [`archive()`] writes a database in its smallest form, from which [`restore`] recovers it.
//!
//! Invariants:
//!
//! * Scores come from [`store::Scores`], so every exported byte was covered by a checksum.
//! * Memory is bounded for any size of a database: by the caller's limit for another order, otherwise by a few MiB.
//! * No bound is written or compared as a score: of a database of pairs, formats hold both bounds, or the
//!   export is an error.
//! * A file appears under its name complete or not at all, and replaces another one only if the caller permits it.
//! * The bytes of a file depend on the database alone, not on threads, limits or time.
//!
//! It knows no run directory and no manifest: the caller opens the database.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod archive;
mod compare;
mod error;
mod export;
mod lexicographic;
#[cfg(test)]
mod tests;

pub use archive::{BestCaptures, RestoreTarget, archive, restore};
pub use compare::{ScoreComparison, ScoreDifference, compare};
pub use error::ExchangeError;
pub use export::{CSV_POSITIONS_MAX, Exported, Format, Options, export};
pub use lexicographic::{Lexicographic, LexicographicPart, file_of, require_scores};
