//! Errors of communication between ranks.

/// The result of sending or receiving.
pub type Result<T, E = CommunicationError> = std::result::Result<T, E>;

/// Error of sending or receiving a message. The job cannot continue after it: drop the communicator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant explains its fields")]
pub enum CommunicationError {
    /// The other rank has dropped its communicator.
    #[error("rank {rank} left the job early; the output of that rank has the reason")]
    Gone { rank: usize },
    /// The other rank sends nothing, not even keep-alive messages.
    #[error(
        "no message from rank {rank} for {seconds:.0} s: its process or machine is dead, stopped or unreachable; end \
         the job and run it again"
    )]
    Silent {
        rank: usize,
        /// Seconds without any message.
        seconds: f64,
    },
    /// A cycle of ranks, each of which waits for a message from the next: a bug of the program.
    #[error(
        "deadlock: rank {rank} waits for a message while another rank waits for one from it; this is a bug in awari"
    )]
    Deadlock { rank: usize },
    /// A message is too large.
    #[error("a message to rank {rank} has {bytes} bytes, the limit is {bytes_max}; run with more ranks")]
    TooLarge { rank: usize, bytes: usize, bytes_max: usize },
    /// A message is not what the program expects at this point.
    #[error("rank {rank} sent {found}, expected {expected}: run the same program with the same arguments on all ranks")]
    Unexpected { rank: usize, expected: String, found: String },
    /// The message-passing library failed.
    #[error(
        "{call} failed: {text}; check the network between the ranks, and that the launcher belongs to the MPI library"
    )]
    Library { call: &'static str, text: String },
}
