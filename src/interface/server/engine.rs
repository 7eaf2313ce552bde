//! The engine of a site: searches on threads of their own, a bounded number at a time.
//!
//! A search takes seconds, a probe microseconds. So searches have threads of a lower priority than those that
//! answer probes, and queues of their own: one for analyses, and one for the moves of players, which are
//! short.

use super::limits::ServerLimits;
use super::refusal::Refusal;
use game::Rules;
use search::{Evaluation, SearchStop, Searcher};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The engine of a site.
#[derive(Debug)]
pub struct SiteEngine {
    /// The searcher of all analyses.
    pub(super) searcher: Searcher,
    evaluation: Evaluation,
    prepare_thread: fn(),
}

/// A queue for searches: a number of them run, a number wait, and others are refused.
#[derive(Debug)]
pub(super) struct SearchQueue {
    running: Arc<Semaphore>,
    waiting: Semaphore,
    wait: Duration,
}

/// A flag that is set when the request that holds it ends, whether it was answered or abandoned.
#[derive(Debug, Default)]
pub(super) struct StopOnDrop(pub(super) Arc<SearchStop>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl SearchQueue {
    pub(super) fn new(limits: &ServerLimits) -> SearchQueue {
        SearchQueue {
            running: Arc::new(Semaphore::new(limits.analyses_max)),
            waiting: Semaphore::new(limits.analyses_waiting_max),
            wait: limits.analysis_wait,
        }
    }

    /// Waits for a permit to search.
    ///
    /// # Errors
    /// If the queue is full, or the wait is too long.
    pub(super) async fn enter(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        if let Ok(permit) = Arc::clone(&self.running).try_acquire_owned() {
            return Ok(permit);
        }
        let Ok(_place) = self.waiting.try_acquire() else { return Err(Refusal::queue_full()) };
        match timeout(self.wait, Arc::clone(&self.running).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Refusal::queue_full()),
        }
    }
}

impl SiteEngine {
    /// Makes an engine by some rules, with a table of about this size. Each thread that searches calls
    /// `prepare_thread` first, which is to lower its priority.
    ///
    /// # Errors
    /// If the system refuses the memory.
    pub fn new(rules: Rules, table_bytes: u64, evaluation: Evaluation, prepare_thread: fn()) -> io::Result<SiteEngine> {
        let searcher = Searcher::by(rules, table_bytes, Evaluation::clone(&evaluation))?;
        Ok(SiteEngine { searcher, evaluation, prepare_thread })
    }

    /// Makes a searcher with a table of its own.
    ///
    /// # Errors
    /// If the system refuses the memory.
    pub(super) fn searcher(&self, table_bytes: u64) -> io::Result<Searcher> {
        Searcher::by(*self.searcher.rules(), table_bytes, Evaluation::clone(&self.evaluation))
    }

    /// Starts a search on a thread of its own, which holds the permit until it ends.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(super) fn start(
        &self,
        permit: OwnedSemaphorePermit,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), Refusal> {
        let prepare = self.prepare_thread;
        let run = move || {
            let _permit = permit;
            prepare();
            work();
        };
        thread::Builder::new().name("analysis".to_owned()).spawn(run).map(drop).map_err(|_| Refusal::busy())
    }
}
