//! What the distributed drivers share: their watch, their errors, and the collection of results.

mod collect;
pub(crate) mod varint;

pub use collect::{RowBand, ScoreShare, collect};

pub(crate) use collect::fits;

use crate::EndedPass;
use messaging::CommunicationError;
use std::io;
use std::ops::ControlFlow;

/// Who asks a rank to stop, and takes its checkpoints. What one rank wants, all do.
pub trait JobObserver<P>: Sync {
    /// Told between supersteps how many positions were recomputed (by [`sweep`](crate::sweep::distributed::sweep)) or are decided (by
    /// [`counting`](crate::counting::distributed::counting)), by all ranks; its answer stops the job.
    fn advance(&self, done: u64) -> ControlFlow<()>;

    /// All ranks have ended a pass, of a driver that repeats passes until one changes nothing.
    fn end_pass(&self, _pass: EndedPass) {}

    /// Bound `bound` begins, of a driver that takes bounds from `bounds` down to 1.
    fn begin_bound(&self, _bound: u32, _bounds: u32) {}

    /// Whether it is time for a checkpoint.
    fn is_due(&self) -> bool;

    /// Takes a checkpoint.
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

/// Why a job did not solve its database.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// It was asked to stop: what each rank owns is a checkpoint.
    #[error("stopped on request")]
    Stopped,
    /// A rank cannot be reached any more.
    #[error(transparent)]
    Communication(#[from] CommunicationError),
    /// The checkpoints that the ranks were to go on from are none that a call left.
    #[error("a position heard of more children than it has")]
    Inconsistent,
    /// The operating system has no memory for what the rank holds.
    #[error("no memory for what this rank holds: {0}")]
    Memory(#[from] io::Error),
}
