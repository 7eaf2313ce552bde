//! Where the rows of a database are in memory: bytes ([`Rows`]) and bits ([`PlaneLayout`]).

pub(crate) mod plane;
pub(crate) mod rows;

pub use plane::{PlaneLayout, PlaneSlab, PlaneUnit};
pub use rows::{Rows, row_bytes};
