//! What can go wrong between ranks.

/// A message that cannot be sent or does not come. The job cannot go on after it: let go of the communicator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommunicationError {
    /// The other side has let go of its end.
    #[error("rank {rank} left the job early; its own output says why")]
    Gone {
        /// The other side.
        rank: usize,
    },
    /// Nothing at all comes any more from the other side, not even that it lives.
    #[error(
        "no message from rank {rank} for {seconds:.0} s: its process or machine is dead, stopped or unreachable; end \
         the job and run it again"
    )]
    Silent {
        /// The other side.
        rank: usize,
        /// How long this rank waited, in seconds.
        seconds: f64,
    },
    /// All of a circle of ranks wait for the next one of it: a mistake of the program.
    #[error(
        "deadlock: rank {rank} waits for a message while another rank waits for one from it; this is a bug in awari"
    )]
    Deadlock {
        /// The other side.
        rank: usize,
    },
    /// A message that is too large.
    #[error("a message to rank {rank} has {bytes} bytes, the limit is {bytes_max}; run with more ranks")]
    TooLarge {
        /// The other side.
        rank: usize,
        /// The bytes of the message.
        bytes: usize,
        /// The most that a message may have.
        bytes_max: usize,
    },
    /// A message that makes no sense in the place where it came.
    #[error("rank {rank} sent {found}, expected {expected}: run the same program with the same arguments on all ranks")]
    Unexpected {
        /// The other side.
        rank: usize,
        /// What should have come.
        expected: String,
        /// What came.
        found: String,
    },
    /// The library that carries the messages failed.
    #[error(
        "{call} failed: {text}; check the network between the ranks, and that the launcher belongs to the MPI library"
    )]
    Library {
        /// The function of the library.
        call: &'static str,
        /// What the library says.
        text: String,
    },
}
