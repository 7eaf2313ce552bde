//! Ranks that are processes, on one machine or on many: [`Mpi`], behind the feature `mpi`.
//!
//! A crate of its own, so that nothing below the program is built another time for it.

#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(feature = "mpi")]
mod mpi;

#[cfg(feature = "mpi")]
pub use mpi::Mpi;
