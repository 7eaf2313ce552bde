//! The communicator: the interface of a rank to the other ranks of its job.

mod collective;

use crate::error::{CommunicationError, Result};
use crate::traffic::MessageTraffic;

/// Most bytes of a message: MPI counts them in a C `int`.
pub const MESSAGE_BYTES_MAX: usize = i32::MAX as usize;

/// The interface of a rank to the other ranks of its job.
///
/// No call may name the rank itself as the other side, or a rank that does not exist: that is a bug of the
/// program, and panics.
///
/// Messages that have arrived but were not received yet are queued in memory without limit. The program must keep ranks
/// from running far ahead of each other, for example by steps in which each rank receives from all others.
pub trait Communicator: Send {
    /// Number of this rank, below `size`.
    fn rank(&self) -> usize;

    /// Number of ranks of the job, at least 1.
    fn size(&self) -> usize;

    /// Queues a message for sending and returns at once. Messages from one rank to another arrive in order.
    ///
    /// # Errors
    /// If the message has more than [`MESSAGE_BYTES_MAX`] bytes, the rank is known to have left, or the job is broken.
    /// Success does not mean that the message will be read.
    fn send(&mut self, to: usize, message: Vec<u8>) -> Result<()>;

    /// Receives the next message from a rank, and blocks until it has arrived. Other transfers make progress meanwhile.
    ///
    /// # Errors
    /// If the rank has left, or is silent for too long.
    fn receive(&mut self, from: usize) -> Result<Vec<u8>>;

    /// Returns the next message from a rank, or `None` if none has arrived. Other transfers make progress
    /// meanwhile. A rank may be silent for any time.
    ///
    /// # Errors
    /// If the rank has left.
    fn try_receive(&mut self, from: usize) -> Result<Option<Vec<u8>>>;

    /// Makes progress on transfers and sends keep-alive messages. Must be called during long computations.
    fn poll(&mut self) -> Result<()>;

    /// Traffic so far.
    fn traffic(&self) -> MessageTraffic;

    /// Collects one message of every rank at `root`, which gets all of them by rank; the other ranks get `None`.
    fn gather(&mut self, root: usize, message: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>> {
        collective::gather(self, root, message)
    }

    /// Sends the message of `root` to all ranks. Only `root` passes a message.
    ///
    /// # Panics
    /// If `root` passes no message, or another rank passes one.
    fn broadcast(&mut self, root: usize, message: Option<Vec<u8>>) -> Result<Vec<u8>> {
        collective::broadcast(self, root, message)
    }

    /// Adds up the values of all ranks, element by element; all ranks get the sums.
    ///
    /// # Errors
    /// Those of `send` and `receive`; ranks with different numbers of values; a sum of 2^64 or more.
    fn sum(&mut self, values: &[u64]) -> Result<Vec<u64>> {
        collective::sum(self, values)
    }

    /// Blocks until all ranks have called it.
    fn barrier(&mut self) -> Result<()> {
        collective::sum(self, &[]).map(drop)
    }
}

/// Checks the size of a message; called first by every implementation of `send`.
///
/// # Errors
/// If it is longer than [`MESSAGE_BYTES_MAX`].
pub fn check_size(to: usize, bytes: usize) -> Result<()> {
    if bytes > MESSAGE_BYTES_MAX {
        return Err(CommunicationError::TooLarge { rank: to, bytes, bytes_max: MESSAGE_BYTES_MAX });
    }
    Ok(())
}

/// Checks that a rank exists and is not this one; called first by every implementation of `send` and `receive`.
///
/// # Panics
/// If there is no such rank, or it is this one.
pub fn assert_other(other: usize, rank: usize, size: usize) {
    assert!(other < size, "a job of {size} ranks has no rank {other}");
    assert!(other != rank, "rank {rank} cannot exchange messages with itself");
}
