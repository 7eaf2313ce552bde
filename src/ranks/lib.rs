//! Messages between the processes of one job, its *ranks* (MPI's word).
//!
//! Programs see the job through the trait [`Communicator`], of which every rank holds one end. [`Threads`] makes ranks
//! of the threads of one process, under any [`Weather`], for tests; the crate `processes` makes them of processes on any
//! machines.
//!
//! Invariants:
//!
//! * Messages from one rank to another arrive whole, in order, once. Nothing is promised of those of different ranks.
//! * A sent message belongs to the communicator until it has left: nobody waits in `send`.
//! * A rank that has gone is an error of whoever waits for it, never a wait without end.
//!
//! All ranks of a job run one program, and come to its collective calls (`gather`, `broadcast`, `sum`, `barrier`) in the
//! same order: these travel as messages like any other.
//!
//! This crate knows nothing of what it carries, and uses no other crate of ours.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod collective;
mod communicator;
mod error;
mod launch;
mod threads;
mod traffic;
mod weather;

pub use communicator::{Communicator, MESSAGE_BYTES_MAX, assert_other, check_size};
pub use error::CommunicationError;
pub use launch::{launched, launched_rank};
pub use threads::Threads;
pub use traffic::Traffic;
pub use weather::Weather;
