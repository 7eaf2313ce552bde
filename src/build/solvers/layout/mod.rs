//! Memory layouts of the rows of a database: bytes ([`ScoreRows`]) and bits ([`PlaneLayout`]).

pub(crate) mod plane;
pub(crate) mod rows;

pub use plane::{PlaneLayout, PlaneSlab, PlaneUnit};
pub use rows::{ScoreRows, row_bytes};
