//! The commands that answer questions about positions, analyse and play games.

pub(crate) mod analysis;
pub(crate) mod analyze;
pub(crate) mod engine;
pub(crate) mod engine_match;
pub(crate) mod opening_book;
pub(crate) mod play;
pub(crate) mod probe;
pub(crate) mod serve;
