//! Builds by several ranks, in one process and as processes.

#![allow(clippy::unwrap_used)]

#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "mpi")]
mod slurm;
mod threads;
