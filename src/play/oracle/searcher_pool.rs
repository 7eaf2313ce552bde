//! Searchers of short searches, kept from search to search: to allocate a table takes longer than to clear one.

use crate::error::OracleError;
use game::{Board, HALF_PITS, Rules};
use search::{Evaluation, ExactScores, SearchLimits, SearchReport, SearchRequest, SearchStop, Searcher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The number of positions of a short search: less than a millisecond. A limit of time would make answers
/// differ from one machine to another.
const NODES: u64 = 1_024;

/// The bytes of the table of a short search: it gets the smallest one.
const TABLE_BYTES: u64 = 0;

/// The most idle searchers, of 4 MiB each; others are dropped.
const IDLE_MAX: usize = 16;

/// Searchers for short searches.
#[derive(Debug)]
pub(crate) struct SearcherPool {
    rules: Rules,
    evaluation: Evaluation,
    idle: Mutex<Vec<Searcher>>,
    searches: AtomicU64,
}

impl SearcherPool {
    pub(crate) fn new(rules: Rules, evaluation: Evaluation) -> SearcherPool {
        SearcherPool { rules, evaluation, idle: Mutex::default(), searches: AtomicU64::new(0) }
    }

    /// Returns the evaluation of the searches.
    pub(crate) fn evaluation(&self) -> &Evaluation {
        &self.evaluation
    }

    /// Returns the number of searches so far.
    pub(crate) fn searches(&self) -> u64 {
        self.searches.load(Ordering::Relaxed)
    }

    /// Searches a position with estimates of all moves. The table begins empty, so that the report depends on
    /// the position, the databases and the evaluation alone, except for its time.
    ///
    /// # Errors
    /// [`OracleError::SearchTable`] if the system refuses the memory; [`OracleError::Contradiction`] if the
    /// databases contradict each other.
    pub(crate) fn search(&self, board: &Board, scores: &dyn ExactScores) -> Result<SearchReport, OracleError> {
        self.searches.fetch_add(1, Ordering::Relaxed);
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let searcher = match kept {
            Some(searcher) => {
                searcher.table().clear();
                searcher
            }
            None => Searcher::by(self.rules, TABLE_BYTES, self.evaluation.clone())
                .map_err(|error| OracleError::SearchTable { error })?,
        };
        let limits = SearchLimits { nodes: Some(NODES), ..SearchLimits::default() };
        let request = SearchRequest { lines: HALF_PITS, ..SearchRequest::new(*board, limits) };
        let report = searcher.search(&request, scores, &SearchStop::new(), &mut |_| {});
        let mut idle = idle();
        if idle.len() < IDLE_MAX {
            idle.push(searcher);
        }
        match report.contradiction {
            Some(board) => Err(OracleError::Contradiction { board }),
            None => Ok(report),
        }
    }
}
