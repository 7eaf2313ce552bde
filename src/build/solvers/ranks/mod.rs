//! Parts that all drivers of the ranks of a job share: observer, errors, encoding of numbers, and collection
//! of the result.

mod collect;
pub(crate) mod varint;

pub use collect::{BAND_POSITIONS, RowBand, ScoreShare, collect};

pub use collect::fits;

use crate::observer::DriverObserver;
use messaging::CommunicationError;
use rayon::ThreadPool;
use std::sync::Arc;

/// Observer of one rank of a job, and what saves its state. If one rank wants to stop or take a checkpoint,
/// all ranks do.
pub trait JobObserver<P>: DriverObserver {
    /// Whether a checkpoint is due.
    fn is_due(&self) -> bool;

    /// Returns a larger pool of threads in which a machine alone is to go on, once there is one.
    fn larger_pool(&self) -> Option<Arc<ThreadPool>> {
        None
    }

    /// Takes a checkpoint of this rank: when one is due, and when the job is stopped.
    fn checkpoint(&self, part: &P);
}

impl<P> JobObserver<P> for () {
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
}
