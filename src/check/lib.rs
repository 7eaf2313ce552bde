//! Checks of finished databases: the verifier, the certificate, published counts, statistics.
//!
//! Built on the plain rules, and on nothing that solvers use: no kernels, no sow maps, no capture databases. An error of
//! a solver therefore has no way to excuse itself here. Checks read; they never write files.

mod certify;
mod derive;
mod error;
mod extent;
mod histogram;
mod look;
mod published;
#[cfg(test)]
mod solved;
mod statistics;
mod verify;
mod walk;

pub use certify::{Certified, certify};
pub use error::CheckError;
pub use extent::{Extent, Sample};
pub use histogram::Histogram;
pub use look::{Database, Databases, Look};
pub use published::Published;
pub use statistics::{Choice, Statistics};
pub use verify::{Mistake, Verified, verify};
