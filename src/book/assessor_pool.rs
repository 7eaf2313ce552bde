//! Assessors that share positions, a thread each.

use crate::assess::{Assessed, AssessmentError, AssessmentLimits, Assessor};
use crate::awari::AwariGame;
use disk::threads;
use search::{ExactScores, SearchStop};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

/// Assessors, at least one.
pub struct AssessorPool<'a>(Vec<Assessor<'a>>);

impl<'a> AssessorPool<'a> {
    /// Makes assessors for a number of threads.
    ///
    /// # Errors
    /// If the system refuses the memory of their tables.
    pub fn new(
        game: AwariGame,
        databases: &'a dyn ExactScores,
        limits: AssessmentLimits,
        threads: usize,
    ) -> io::Result<AssessorPool<'a>> {
        let assessors = (0..threads.max(1)).map(|_| Assessor::new(game, databases, limits));
        assessors.collect::<io::Result<_>>().map(AssessorPool)
    }

    /// Returns one of the assessors.
    pub fn first(&self) -> &Assessor<'a> {
        &self.0[0]
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> usize {
        self.0.len()
    }

    /// Assesses positions, by all threads. The results are in the order of the positions.
    ///
    /// # Errors
    /// The first [`AssessmentError`].
    pub fn assess(&self, keys: &[u64], stop: &SearchStop) -> Result<Vec<Assessed>, AssessmentError> {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(vec![None; keys.len()]);
        let work = |assessor: &Assessor<'a>| {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(&key) = keys.get(at) else { break };
                let result = assessor.assess(key, stop);
                results.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(result);
            }
        };
        thread::scope(|scope| {
            for assessor in self.0.iter().skip(1).take(keys.len().saturating_sub(1)) {
                let work = &work;
                // Without a thread, the others have more to do.
                let _ = threads::spawn_scoped(scope, Builder::new().name("book".to_owned()), move || work(assessor));
            }
            work(&self.0[0]);
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.into_iter().map(|result| result.unwrap_or(Err(AssessmentError::Stopped))).collect()
    }
}
