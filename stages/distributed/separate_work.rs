//! Work that the ranks of a job do separately, without sending each other anything. A rank tells all others
//! how its work ended, so that none goes on for long when another has failed.

use super::agreement::RankResult;
use messaging::{CommunicationError, Communicator};
use pipeline::{StageError, StageResult as Result};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A rank listens no more often than this: its work may ask for every row.
const LISTENING_INTERVAL: Duration = Duration::from_millis(10);

/// Messages of a rank whose work has ended.
const DONE: &[u8] = &[0];
const FAILED: &[u8] = &[1];

/// Does the work of this rank, which must call the function that it gets at least every few seconds, in any
/// thread: it keeps the connection alive, and returns an error if the work of another rank has failed.
/// Returns the result of this rank when all have ended; the ranks do not yet agree on it.
pub(crate) fn separately<T>(
    communicator: &mut dyn Communicator,
    work: impl FnOnce(&(dyn Fn() -> Result<()> + Sync)) -> Result<T>,
) -> RankResult<Result<T>> {
    let (rank, must_end) = (communicator.rank(), AtomicBool::new(false));
    let have_ended = (0..communicator.size()).map(|other| other == rank).collect();
    let others = Mutex::new(Others { communicator, have_ended, broken: None, listened: Instant::now() });
    let done = work(&|| {
        // One thread at a time; the others continue.
        if let Ok(mut others) = others.try_lock() {
            let has_failed = others.listen().unwrap_or_else(|error| {
                others.broken = Some(error);
                true
            });
            must_end.fetch_or(has_failed, Relaxed);
        }
        if must_end.load(Relaxed) { Err(StageError::Stopped) } else { Ok(()) }
    });
    let mut others = others.into_inner().unwrap_or_else(PoisonError::into_inner);
    others.end(if done.is_ok() { DONE } else { FAILED })?;
    Ok(done)
}

/// The other ranks, seen from one.
struct Others<'c> {
    communicator: &'c mut dyn Communicator,
    /// By rank; this one needs no message.
    have_ended: Vec<bool>,
    /// What broke the connection.
    broken: Option<CommunicationError>,
    /// When this rank listened last.
    listened: Instant,
}

impl Others<'_> {
    /// Returns whether some work is heard to have failed.
    fn listen(&mut self) -> messaging::Result<bool> {
        if self.listened.elapsed() < LISTENING_INTERVAL {
            return Ok(false);
        }
        self.listened = Instant::now();
        let mut has_failed = false;
        for (from, has_ended) in self.have_ended.iter_mut().enumerate().filter(|(_, has_ended)| !**has_ended) {
            if let Some(message) = self.communicator.try_receive(from)? {
                *has_ended = true;
                has_failed |= is_failure(from, &message)?;
            }
        }
        self.communicator.poll()?;
        Ok(has_failed)
    }

    /// Tells all how the work of this rank ended, and waits until that of all others has.
    fn end(&mut self, message: &[u8]) -> messaging::Result<()> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        let (rank, ranks) = (self.communicator.rank(), self.communicator.size());
        for to in (0..ranks).filter(|&to| to != rank) {
            self.communicator.send(to, message.to_vec())?;
        }
        for from in (0..ranks).filter(|&from| !self.have_ended[from]) {
            let message = self.communicator.receive(from)?;
            is_failure(from, &message)?;
        }
        Ok(())
    }
}

fn is_failure(rank: usize, message: &[u8]) -> messaging::Result<bool> {
    if [DONE, FAILED].contains(&message) {
        return Ok(message == FAILED);
    }
    let (expected, found) = ("the end of its work".to_owned(), format!("{} bytes", message.len()));
    Err(CommunicationError::Unexpected { rank, expected, found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use messaging::{NetworkFaults, ThreadCommunicator};

    fn job<T: Send>(ranks: usize, run: impl Fn(&mut ThreadCommunicator) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let ends = ThreadCommunicator::job(ranks, NetworkFaults::none()).into_iter();
            let run = &run;
            let running: Vec<_> = ends.map(|mut end| scope.spawn(move || run(&mut end))).collect();
            running.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn others_end_when_a_rank_fails() {
        for failing in 0..3 {
            let ended = job(3, |end| {
                let rank = end.rank();
                let done = separately(end, |goes_on| {
                    if rank == failing {
                        return Err(StageError::failed("no disk"));
                    }
                    // Work without an end.
                    loop {
                        goes_on()?;
                        std::thread::yield_now();
                    }
                    #[expect(unreachable_code)]
                    Ok(())
                });
                // A message left over would be mistaken for a part of this.
                assert_eq!(end.sum(&[1]).unwrap(), [3]);
                done.unwrap().unwrap_err()
            });
            for (rank, error) in ended.iter().enumerate() {
                let is_own = error.to_string().contains("no disk");
                assert!(is_own == (rank == failing) && (is_own || matches!(error, StageError::Stopped)), "{error}");
            }
        }
    }

    #[test]
    fn all_results_are_those_of_the_ranks() {
        for ranks in [1, 2, 5] {
            let done = job(ranks, |end| {
                let rank = end.rank();
                separately(end, |goes_on| (0..10 * rank).try_for_each(|_| goes_on()).map(|()| rank)).unwrap().unwrap()
            });
            assert!(done.into_iter().eq(0..ranks));
        }
    }

    #[test]
    fn something_else_is_an_error() {
        let ended = job(2, |end| {
            if end.rank() == 1 {
                end.send(0, vec![7]).unwrap();
                return end.receive(0).is_err();
            }
            separately(end, |_| Ok(())).is_err()
        });
        assert!(ended[0], "rank 1 sent something else");
    }
}
