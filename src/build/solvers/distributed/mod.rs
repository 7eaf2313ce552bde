//! Parts that all distributed drivers share: observer, errors, encoding of numbers, and collection of the result.

mod collect;
pub(crate) mod varint;

pub use collect::{BAND_POSITIONS, RowBand, ScoreShare, collect};

pub use collect::fits;

use crate::EndedPass;
use messaging::CommunicationError;
use std::io;
use std::ops::ControlFlow;

/// Observer of one rank of a job. If one rank wants to stop or take a checkpoint, all ranks do.
pub trait JobObserver<P>: Sync {
    /// Reports, between supersteps, the positions that all ranks have recomputed
    /// ([`sweep`](crate::sweep::distributed::sweep)) or decided ([`counting`](crate::counting::distributed::counting)).
    /// `Break` stops the job.
    fn advance(&self, done: u64) -> ControlFlow<()>;

    /// Reports the end of a pass of all ranks, for drivers that repeat passes until one changes nothing.
    fn end_pass(&self, _pass: EndedPass) {}

    /// Reports the start of a bound, for drivers that go from `bounds` down to 1.
    fn begin_bound(&self, _bound: u32, _bounds: u32) {}

    /// Whether a checkpoint is due.
    fn is_due(&self) -> bool;

    /// Takes a checkpoint of this rank.
    fn checkpoint(&self, part: &P);
}

impl<P> JobObserver<P> for () {
    fn advance(&self, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn is_due(&self) -> bool {
        false
    }

    fn checkpoint(&self, _: &P) {}
}

/// Reason why a job did not solve its database.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// An observer stopped it. The state of each rank is a checkpoint.
    #[error("stopped on request")]
    Stopped,
    /// Communication with a rank failed.
    #[error(transparent)]
    Communication(#[from] CommunicationError),
    /// The ranks started from checkpoints that no run wrote.
    #[error("a position received more updates than it has children")]
    Inconsistent,
    /// The operating system has too little memory for this rank.
    #[error("cannot allocate the memory of this rank: {0}")]
    Memory(#[from] io::Error),
}
