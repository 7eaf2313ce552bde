//! Messages between the *ranks* of one job (MPI's word).
//!
//! A program accesses its job through the trait [`Communicator`], one instance per rank. Ranks are threads of
//! one process ([`ThreadCommunicator`], with injected [`NetworkFaults`], for tests) or processes on any machines
//! (`MpiCommunicator` of the crate `mpi-messaging`). A machine alone is a job of one rank ([`Alone`]).
//!
//! Invariants:
//!
//! * Messages from one rank to another arrive whole, once and in order. Messages of different ranks may overtake each
//!   other.
//! * A sent message belongs to the communicator until it has left: `send` never blocks.
//! * Receiving from a rank that has left the job is an error; it never blocks forever.
//!
//! All ranks of a job run one program and make its collective calls (`gather`, `broadcast`, `sum`, `barrier`) in the
//! same order: these travel as messages like any other.
//!
//! This crate does not interpret messages and uses no other crate of the workspace.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod alone;
mod communicator;
mod error;
mod faults;
mod launch;
mod threads;
mod traffic;

pub use alone::Alone;
pub use communicator::{Communicator, MESSAGE_BYTES_MAX, assert_other, check_size};
pub use error::{CommunicationError, Result};
pub use faults::NetworkFaults;
pub use launch::{launched, launched_rank, launched_size};
pub use threads::ThreadCommunicator;
pub use traffic::MessageTraffic;
