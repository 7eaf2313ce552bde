//! Answers questions about positions from finished databases.
//!
//! A [`Library`] holds the databases of one directory, of one rule set and one position set. An [`Oracle`] answers from
//! it: the score of a position, the value of each legal move, the best moves, and why the other moves are illegal.
//!
//! Invariants:
//!
//! * Answers are consistent: the score of a position is the best value of its moves, or the answer is an error.
//! * A damaged or missing database is an error only for queries that need it.
//! * One oracle serves all threads. Reading raw and packed databases takes no lock; compressed ones share a bounded
//!   cache of decoded blocks.
//!
//! Beyond the databases, the engine of the crate `search` gives the answers: proved bounds, and beside them
//! estimates. A short search of a fixed number of positions serves [`Oracle::answer`]; `Oracle::analyze`
//! searches as long as its caller wants. Without the feature `search`, which all but pure readers have, there
//! are only the bounds that follow from the databases.
//!
//! The crate opens no files: callers pass opened files.

#![warn(clippy::missing_errors_doc)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(feature = "search")]
mod analysis;
mod answer;
mod bounds;
mod error;
mod guarantee;
mod guarantee_graph;
mod level;
mod library;
mod line;
mod review;
#[cfg(feature = "search")]
mod searched;
#[cfg(feature = "search")]
mod searcher_pool;
#[cfg(not(feature = "search"))]
mod unsearched;

#[cfg(feature = "search")]
pub use analysis::SearchProbes;
pub use answer::{Answer, AnswerSource, IllegalMove, Oracle, ValuedMove};
pub use bounds::Bounds;
pub use error::OracleError;
pub use level::{Level, LevelError};
pub use library::{Library, LibraryFile};
pub use line::{LineEnd, PrincipalLine};
pub use review::{JudgedMove, Player, Review};
