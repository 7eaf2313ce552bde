//! Reads endgame databases of awari, as the program `awari` builds them, and probes positions.
//!
//! [`Databases`] opens all databases of a run directory. It answers for a [`Position`]: its score, the values of its
//! moves, and which of them are best. A [`Database`] gives the scores of all positions with one number of stones, and
//! numbers these positions.
//!
//! A score is the number of stones on the board that the player to move will capture, minus the number that
//! the opponent will, if both play best. By the rules of oware ([`Databases::rules`]) a position has no score
//! but two [`Bounds`]: what the player to move can force, and to what the opponent can hold that player. No
//! function returns one of them as a score: a score is known where both are equal.
//!
//! ```
//! use awari_db::{Databases, Position};
//!
//! # let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/example");
//! let databases = Databases::open(directory)?;
//! let position: Position = "0 0 0 0 0 1 1 1 0 0 0 0".parse()?;
//! assert_eq!(databases.score(&position)?, 1);
//! for best in databases.best_moves(&position)? {
//!     println!("{} captures {} and is worth {}", best.pit, best.captured, best.value);
//! }
//! # Ok::<(), awari_db::Error>(())
//! ```
//!
//! Features, none of which is on by default: `engine` adds an `Engine` that searches positions of any number
//! of stones as long as its caller wants, by any rules; `threads` reads many scores on all threads of the
//! current rayon pool; `zstd` reads databases of that codec.
//!
//! Every byte that is used was compared with a checksum, and the score of a position with the values of its moves, so
//! that a damaged or wrong database gives an [`Error`] and not a wrong score. All types are `Send` and `Sync`; one
//! [`Databases`] serves all threads.

#![warn(clippy::missing_errors_doc)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod database;
mod databases;
#[cfg(feature = "engine")]
mod engine;
mod error;
mod position;
mod storage;

pub use database::{Database, Slab};
pub use databases::{Databases, Move};
#[cfg(feature = "engine")]
pub use engine::{Engine, EngineMove, EngineReport, EngineRequest, SearchLimits, SearchStop};
pub use error::{Error, FileError};
pub use game::Rules;
pub use oracle::Bounds;
pub use position::{Position, SownMove};
pub use storage::{Storage, StoredFile};
pub use store::MappedScores;
