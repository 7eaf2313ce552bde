//! Questions about positions, answered from finished databases.
//!
//! A [`Library`] is the databases of one directory, whatever their codec, known to be of one rule set and one position
//! set. An [`Oracle`] answers from it: what a position scores, what each legal move is worth, which are best, and why
//! the others may not be played. [`mod@http`] asks it over a network, for programs and for people with a browser.
//!
//! Invariants:
//!
//! * An answer agrees with the rules: the score of a position is the best of its moves, or the oracle refuses.
//! * A database that is damaged, or is not there, is an error only of the questions that need it.
//! * One oracle serves all threads; reading raw and packed databases takes no lock, compressed ones share a bounded
//!   cache of decoded blocks.
//!
//! It opens no files and knows no paths but those in errors: who asks brings the files. Nothing but `http` knows of a
//! network.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod bounds;
mod error;
pub mod http;
mod level;
mod library;
mod line;
mod page;
mod review;
mod search;

pub use answer::{Answer, AnswerSource, IllegalMove, Oracle, ValuedMove};
pub use bounds::Bounds;
pub use error::OracleError;
pub use level::{Level, LevelError};
pub use library::{Library, LibraryFile};
pub use line::{LineEnd, PrincipalLine};
pub use review::{JudgedMove, Player, Review};
