//! The job as controlled by its leader, rank 0.

use super::message;
use super::order::{JobOrder, StageOrder, StageTask};
use disk::threads;
use messaging::Communicator;
use pipeline::StageError;
use pipeline::StageResult as Result;
use planner::Settings;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::Builder;
use std::time::Duration;

/// Interval at which the leader handles messages while it does other work.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Positions of a database below which rank 0 alone is faster than the exchange of messages.
const SHARED_POSITIONS_MIN: u64 = 1 << 16;

/// The handle with which rank 0, the leader, controls a job.
pub struct JobLeader {
    communicator: Arc<Mutex<Box<dyn Communicator>>>,
    ranks: usize,
    /// A rank whose answer to a lease may come at any time, and would be taken for another; 0 if there is none.
    lost: AtomicUsize,
}

impl JobLeader {
    /// Starts to lead a job.
    ///
    /// # Panics
    /// On a rank other than 0.
    pub fn new(communicator: Box<dyn Communicator>) -> io::Result<JobLeader> {
        assert_eq!(communicator.rank(), 0, "rank 0 leads");
        let ranks = communicator.size();
        let communicator = Arc::new(Mutex::new(communicator));
        let weak = Arc::downgrade(&communicator);
        threads::spawn(Builder::new().name("pulse".to_owned()), move || poll_until_dropped(&weak))?;
        Ok(JobLeader { communicator, ranks, lost: AtomicUsize::new(0) })
    }

    /// Returns the number of ranks, including the leader.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Ends the job on all ranks. A rank that has left already is not an error.
    pub fn dismiss(&self) {
        drop(self.send(&JobOrder::Leave));
    }

    /// Whether all ranks capture, write, verify and count the database of `stones`.
    pub(crate) fn shares(&self, settings: &Settings, stones: u32) -> bool {
        is_shared(settings, stones, self.ranks)
    }

    /// Refuses further orders: the answer of a rank may come at any time.
    pub(crate) fn lose(&self, rank: usize) {
        self.lost.store(rank, Ordering::Relaxed);
    }

    /// Sends the task of a kind of stage to all ranks, and returns the communicator to carry it out with.
    pub(crate) fn order(&self, kind: &str, task: &impl StageTask) -> Result<MutexGuard<'_, Box<dyn Communicator>>> {
        match self.lost.load(Ordering::Relaxed) {
            // A path that is not UTF-8 cannot be sent.
            0 => self.send(&JobOrder::Stage(StageOrder::new(kind, task).map_err(StageError::failed)?)),
            rank => Err(StageError::failed(format!(
                "rank {rank} did not answer while the book was expanded: end the job and run it again, which goes on here"
            ))),
        }
    }

    fn send(&self, order: &JobOrder) -> Result<MutexGuard<'_, Box<dyn Communicator>>> {
        let message = message::encode(order);
        let mut communicator = self.communicator.lock().unwrap_or_else(PoisonError::into_inner);
        communicator.broadcast(0, Some(message)).map_err(StageError::failed)?;
        Ok(communicator)
    }
}

/// As [`JobLeader::shares`], for a number of ranks.
pub(crate) fn is_shared(settings: &Settings, stones: u32, ranks: usize) -> bool {
    ranks > 1 && settings.set.positions(stones) >= SHARED_POSITIONS_MIN
}

/// Handles messages while the leader does other work, until the job is dropped.
fn poll_until_dropped(communicator: &Weak<Mutex<Box<dyn Communicator>>>) {
    while let Some(communicator) = communicator.upgrade() {
        if let Ok(mut communicator) = communicator.try_lock() {
            // Ignored: the next receive returns the error again.
            let _ = communicator.poll();
        }
        drop(communicator);
        std::thread::sleep(POLL_INTERVAL);
    }
}
