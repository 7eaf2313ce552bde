//! What every rank of a job holds.

mod collective;

use crate::{CommunicationError, MessageTraffic};

/// The most bytes of a message: MPI counts them in a C `int`.
pub const MESSAGE_BYTES_MAX: usize = i32::MAX as usize;

/// One rank's end of the job.
///
/// No call may name the rank itself as the other side, or one that the job does not have: that is a mistake of the
/// program, and panics.
///
/// What has come and was not asked for yet waits in memory, without limit: the program sees to it that no rank runs far
/// ahead of the others, as in steps where each hears from all before it goes on.
pub trait Communicator: Send {
    /// Which rank this is, below `size`.
    fn rank(&self) -> usize;

    /// How many ranks the job has, at least 1.
    fn size(&self) -> usize;

    /// Hands a message over and returns at once; the communicator owns it until it has left. Messages from one rank to
    /// another arrive in order.
    ///
    /// # Errors
    /// A message of more than [`MESSAGE_BYTES_MAX`] bytes, a rank that is known to have gone, or a job that is broken.
    /// That a message was taken does not mean that it will be read.
    fn send(&mut self, to: usize, message: Vec<u8>) -> Result<(), CommunicationError>;

    /// The next message of a rank; waits for it. Meanwhile everything else moves on too.
    ///
    /// # Errors
    /// A rank that has gone, or from which nothing comes.
    fn receive(&mut self, from: usize) -> Result<Vec<u8>, CommunicationError>;

    /// Lets messages move on, and tells the others that this rank lives; for whoever computes for long.
    ///
    /// # Errors
    /// A job that is broken.
    fn poll(&mut self) -> Result<(), CommunicationError>;

    /// What went through so far.
    fn traffic(&self) -> MessageTraffic;

    /// Collects one message of every rank at `root`, which gets them by rank, its own among them; the others get `None`.
    ///
    /// # Errors
    /// What `send` and `receive` fail with.
    fn gather(&mut self, root: usize, message: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, CommunicationError> {
        collective::gather(self, root, message)
    }

    /// Gives all ranks the message of `root`, which alone brings one.
    ///
    /// # Errors
    /// What `send` and `receive` fail with.
    ///
    /// # Panics
    /// If `root` brings no message, or another rank one.
    fn broadcast(&mut self, root: usize, message: Option<Vec<u8>>) -> Result<Vec<u8>, CommunicationError> {
        collective::broadcast(self, root, message)
    }

    /// Adds up what all ranks bring, place by place; all get the sums.
    ///
    /// # Errors
    /// What `send` and `receive` fail with; ranks that bring different numbers of values; a sum of 2^64 or more.
    fn sum(&mut self, values: &[u64]) -> Result<Vec<u64>, CommunicationError> {
        collective::sum(self, values)
    }

    /// Waits until all ranks are here.
    ///
    /// # Errors
    /// What `send` and `receive` fail with.
    fn barrier(&mut self) -> Result<(), CommunicationError> {
        collective::sum(self, &[]).map(drop)
    }
}

/// Whether a message may be sent, which every communicator asks first.
///
/// # Errors
/// If it is longer than [`MESSAGE_BYTES_MAX`].
pub fn check_size(to: usize, bytes: usize) -> Result<(), CommunicationError> {
    if bytes > MESSAGE_BYTES_MAX {
        return Err(CommunicationError::TooLarge { rank: to, bytes, bytes_max: MESSAGE_BYTES_MAX });
    }
    Ok(())
}

/// That a rank may be written to or heard from, which every communicator asks first.
///
/// # Panics
/// When there is no such rank, or it is this one.
pub fn assert_other(other: usize, rank: usize, size: usize) {
    assert!(other < size, "a job of {size} ranks has no rank {other}");
    assert!(other != rank, "rank {rank} cannot exchange messages with itself");
}
