//! The game: rules, boards, moves and un-moves, halves, and the index with its two orientations.
//!
//! Everything here is a pure function of its arguments: this crate does no I/O, starts no threads and knows neither
//! files nor solving methods. The fast tables (`sow`) and the plain rules (`board`) are tested against each other and
//! against [`mod@reference`], a slow twin written from the rule text.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod binomial;
mod board;
mod half;
mod index;
pub mod notation;
mod opening;
pub mod play;
pub mod quantity;
pub mod reference;
mod rules;
pub mod sow;
pub mod transcript;

pub use binomial::binomial;
pub use board::{Board, Illegal, LegalMoves, Pit, Played};
pub use half::{HALF_PITS, Half, Halves, STONES_MAX};
pub use index::{Index, Orientation, PositionSet, Slab};
pub use opening::Opening;
pub use rules::{RepetitionRule, RestOwner, Rules, Score, Slam};
