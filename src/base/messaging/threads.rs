//! In-process communicator: the ranks of a job are threads of one process.

use crate::communicator::{Communicator, assert_other, check_size};
use crate::error::{CommunicationError, Result};
use crate::faults::NetworkFaults;
use crate::traffic::MessageTraffic;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Communicator of a rank that is a thread of this process. Dropping it leaves the job; messages sent before can still
/// be received.
#[derive(Debug)]
pub struct ThreadCommunicator {
    rank: usize,
    job: Arc<SharedJob>,
    sent: Vec<u64>,
    /// Number of calls so far.
    calls: u64,
    traffic: MessageTraffic,
}

#[derive(Debug)]
struct SharedJob {
    faults: NetworkFaults,
    /// One lock for all ranks: messages are moved, not copied, so it is never held for long.
    ranks: Mutex<Vec<RankState>>,
    /// By rank, signalled at each change that the rank may be waiting for.
    news: Vec<Condvar>,
}

#[derive(Debug)]
struct RankState {
    /// Messages not received yet, by sender.
    inbox: Vec<VecDeque<DelayedMessage>>,
    here: bool,
    /// The rank that it is blocked on, if any.
    waits_for: Option<usize>,
}

#[derive(Debug)]
struct DelayedMessage {
    due: Instant,
    bytes: Vec<u8>,
}

impl ThreadCommunicator {
    /// Creates a job of `size` ranks and returns their communicators, by rank.
    ///
    /// # Panics
    /// If `size` is 0.
    pub fn job(size: usize, faults: NetworkFaults) -> Vec<ThreadCommunicator> {
        assert!(size > 0, "a job has at least one rank");
        let rank = || RankState { inbox: (0..size).map(|_| VecDeque::new()).collect(), here: true, waits_for: None };
        let job = Arc::new(SharedJob {
            faults,
            ranks: Mutex::new((0..size).map(|_| rank()).collect()),
            news: (0..size).map(|_| Condvar::new()).collect(),
        });
        let end = |rank| ThreadCommunicator {
            rank,
            job: Arc::clone(&job),
            sent: vec![0; size],
            calls: 0,
            traffic: MessageTraffic::default(),
        };
        (0..size).map(end).collect()
    }

    /// Injects the faults of one call.
    fn begin(&mut self) -> Result<()> {
        let call = self.calls;
        self.calls += 1;
        if self.job.faults.is_lost(self.rank, call) {
            self.leave();
            return Err(CommunicationError::Gone { rank: self.rank });
        }
        let stall = self.job.faults.stall_of(self.rank, call);
        if !stall.is_zero() {
            thread::sleep(stall);
        }
        Ok(())
    }

    fn leave(&self) {
        let mut ranks = self.job.lock();
        let gone = &mut ranks[self.rank];
        gone.here = false;
        for inbox in &mut gone.inbox {
            inbox.clear();
        }
        drop(ranks);
        for news in &self.job.news {
            news.notify_all();
        }
    }

    /// Blocks until the next message from a rank.
    fn wait(&mut self, from: usize) -> Result<Vec<u8>> {
        let (rank, job) = (self.rank, &self.job);
        let mut ranks = job.lock();
        loop {
            let front = ranks[rank].inbox[from].front();
            let late = front.map(|message| message.due.saturating_duration_since(Instant::now()));
            ranks = match late {
                Some(Duration::ZERO) => {
                    let message = ranks[rank].inbox[from].pop_front();
                    return Ok(message.expect("there is one at the front").bytes);
                }
                Some(late) => {
                    let waited = job.news[rank].wait_timeout(ranks, late);
                    waited.expect(NO_PANIC).0
                }
                None if !ranks[from].here => return Err(CommunicationError::Gone { rank: from }),
                None => {
                    ranks[rank].waits_for = Some(from);
                    if in_circle(&ranks, rank) {
                        ranks[rank].waits_for = None;
                        return Err(CommunicationError::Deadlock { rank: from });
                    }
                    job.news[rank].wait(ranks).expect(NO_PANIC)
                }
            };
            ranks[rank].waits_for = None;
        }
    }
}

/// Message of `expect` on the lock: the reason why it is never poisoned.
const NO_PANIC: &str = "nothing panics while it holds the lock";

impl SharedJob {
    fn lock(&self) -> MutexGuard<'_, Vec<RankState>> {
        self.ranks.lock().expect(NO_PANIC)
    }
}

/// Whether a chain of waiting ranks leads from `start` back to it. A rank whose message has been sent does not count as
/// waiting, even if it has not woken up yet; nor does a rank that waits for one that has left.
fn in_circle(ranks: &[RankState], start: usize) -> bool {
    let blocked = |rank: usize| {
        let from = ranks[rank].waits_for?;
        (ranks[from].here && ranks[rank].inbox[from].is_empty()).then_some(from)
    };
    // A longer chain ends, or runs into a circle without `start`.
    let mut at = start;
    for _ in 0..ranks.len() {
        match blocked(at) {
            Some(next) if next == start => return true,
            Some(next) => at = next,
            None => return false,
        }
    }
    false
}

impl Communicator for ThreadCommunicator {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.sent.len()
    }

    fn send(&mut self, to: usize, message: Vec<u8>) -> Result<()> {
        assert_other(to, self.rank, self.size());
        check_size(to, message.len())?;
        self.begin()?;
        let length = message.len();
        let mut ranks = self.job.lock();
        if !ranks[to].here {
            return Err(CommunicationError::Gone { rank: to });
        }
        if self.job.faults.is_muted(self.rank, self.calls - 1) {
            return Ok(());
        }
        let delay = self.job.faults.delay_of(self.rank, to, self.sent[to]);
        ranks[to].inbox[self.rank].push_back(DelayedMessage { due: Instant::now() + delay, bytes: message });
        drop(ranks);
        self.job.news[to].notify_all();
        self.sent[to] += 1;
        self.traffic.sent(length);
        Ok(())
    }

    fn receive(&mut self, from: usize) -> Result<Vec<u8>> {
        assert_other(from, self.rank, self.size());
        let began = Instant::now();
        self.begin()?;
        let message = self.wait(from)?;
        self.traffic.received(message.len(), began.elapsed().as_secs_f64());
        Ok(message)
    }

    fn try_receive(&mut self, from: usize) -> Result<Option<Vec<u8>>> {
        assert_other(from, self.rank, self.size());
        self.begin()?;
        let mut ranks = self.job.lock();
        let is_here = ranks[from].here;
        let inbox = &mut ranks[self.rank].inbox[from];
        match inbox.front() {
            Some(message) if message.due > Instant::now() => return Ok(None),
            Some(_) => {}
            None if is_here => return Ok(None),
            None => return Err(CommunicationError::Gone { rank: from }),
        }
        let message = inbox.pop_front().expect("there is one at the front").bytes;
        drop(ranks);
        self.traffic.received(message.len(), 0.0);
        Ok(Some(message))
    }

    fn poll(&mut self) -> Result<()> {
        self.begin()
    }

    fn traffic(&self) -> MessageTraffic {
        self.traffic
    }
}

impl Drop for ThreadCommunicator {
    fn drop(&mut self) {
        self.leave();
    }
}
