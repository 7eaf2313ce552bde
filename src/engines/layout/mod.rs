//! Where the rows of a database are in memory: bytes ([`ScoreRows`]) and bits ([`PlaneLayout`]).

pub(crate) mod plane;
pub(crate) mod rows;

pub use plane::{PlaneLayout, PlaneSlab, PlaneUnit};
pub use rows::{ScoreRows, row_bytes};
