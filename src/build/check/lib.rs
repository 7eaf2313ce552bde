//! Checks of finished databases: integrity, verifier, certificate, published counts and statistics.
//!
//! The checks use the plain rules, and nothing that solvers use: no kernels, sow maps or capture databases.
//! So they share no error with a solver. They read files and never write them.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bars;
mod certify;
mod change;
mod chart;
mod databases;
mod derive;
mod difference;
mod error;
mod extent;
mod histogram;
mod integrity;
mod pairs;
mod published;
mod report;
#[cfg(test)]
mod solved;
mod statistics;
mod stream;
mod verify;
mod walk;
mod wrong_score;

pub use bars::bars;
pub use certify::{Certified, certify, certify_bounds, certify_bounds_watched, certify_watched};
pub use change::ScoreChanges;
pub use chart::svg;
pub use databases::{Database, Databases, ScoreSource};
pub use difference::{Differences, differences};
pub use error::{CheckError, Result};
pub use extent::{Extent, Sample};
pub use histogram::{Histogram, ScoreShares};
pub use integrity::check_integrity;
pub use pairs::PairStatistics;
pub use published::Published;
pub use report::{csv, json, pairs_table, table, table_rows};
pub use statistics::{CaptureStatistics, Statistics};
pub use stream::{ScoreReceiver, verify_portion_in_rounds, verify_streamed};
pub use verify::{
    PortionFindings, Verified, verify, verify_bounds, verify_bounds_watched, verify_portion, verify_watched,
};
pub use walk::DatabasePortion;
pub use wrong_score::WrongScore;
