//! MPI communicator: the ranks of a job are processes on one or several machines. Empty without the feature `mpi`.
//!
//! MPI may not detect that a process has died, and a blocking call then never returns. So no call here blocks inside
//! MPI, and whenever a rank polls or waits, it sends keep-alive messages to ranks to which it has sent nothing for a
//! while. Waiting for a silent rank is an error.
//!
//! A rank that leaves sends a farewell message. If all ranks leave properly, MPI is finalized. If anything has failed,
//! it is not, since finalization would wait for all ranks: the process exits, and the launcher then ends the other
//! processes.

#![cfg(feature = "mpi")]

mod library;

use library::{MessageKind, MpiLibrary, Transfer};
use messaging::{CommunicationError, Communicator, MessageTraffic, Result, assert_other, check_size, launched};
use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

/// Default time that a rank may be silent.
const PATIENCE: Duration = Duration::from_secs(600);

/// Number of keep-alive messages that a rank sends within the patience, if it polls often enough.
const SIGNS: u32 = 8;

/// Time without MPI calls before `MPI_Finalize`. There, MPICH 4.0 over UCX closes its connections and then waits for
/// the other ranks without answering any of them (fixed in pmodels/mpich#6596): a rank that calls it later, and has
/// already answered the others, waits for their answer forever. With this pause no rank answers until all have called
/// it. With three ranks over TCP on two cores, one run in eight hung without it, and none of 120 with it.
const QUIET_PERIOD: Duration = Duration::from_millis(200);

/// Time that a rank leaving a broken job waits for its last messages to be sent.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Communicator of a rank that is a process. Dropping it leaves the job: it waits until all messages are sent and the
/// other ranks leave too. In a panic it ends the processes of all ranks.
#[derive(Debug)]
pub struct MpiCommunicator {
    /// `None` once MPI is finalized or abandoned.
    library: Option<MpiLibrary>,
    rank: usize,
    others: Vec<Peer>,
    /// Messages not sent completely yet.
    sending: Vec<Transfer>,
    patience: Duration,
    /// Time of the last poll for arrivals.
    looked: Instant,
    /// Whether anything failed, on any rank, after which MPI cannot be finalized.
    broken: bool,
    /// Whether this communicator is being dropped.
    leaving: bool,
    traffic: MessageTraffic,
}

/// State of another rank.
#[derive(Debug)]
struct Peer {
    /// Messages from it that were not received yet, in order; they may still be in transit.
    inbox: VecDeque<Transfer>,
    /// Time without any message from it, while this rank polled.
    silence: Duration,
    /// Time of the last message to it.
    last_sent: Instant,
    /// The kind of the last announcement received from it.
    announced: MessageKind,
}

impl Peer {
    fn is_gone(&self) -> bool {
        self.announced >= MessageKind::Farewell
    }
}

impl MpiCommunicator {
    /// Joins the job if a launcher started this process as a rank. Otherwise returns `None` without touching MPI. Can
    /// be called once a process.
    ///
    /// # Errors
    /// Errors of MPI; an MPI that was built without support for threads.
    pub fn start() -> Result<Option<MpiCommunicator>> {
        if !launched() {
            return Ok(None);
        }
        let library = MpiLibrary::start()?;
        let now = Instant::now();
        let other = || Peer {
            inbox: VecDeque::new(),
            silence: Duration::ZERO,
            last_sent: now,
            announced: MessageKind::KeepAlive,
        };
        Ok(Some(MpiCommunicator {
            rank: library.rank(),
            others: (0..library.size()).map(|_| other()).collect(),
            library: Some(library),
            sending: Vec::new(),
            patience: PATIENCE,
            looked: now,
            broken: false,
            leaving: false,
            traffic: MessageTraffic::default(),
        }))
    }

    /// Sets the time after which waiting for a silent rank is an error; the default is 10 minutes. It must be the same
    /// for all ranks, which must poll or wait more often than that: they send signs of life eight times as often.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Returns the name and version of the MPI that this program was built with.
    pub fn library() -> String {
        library::version()
    }

    /// Makes progress on all transfers. Returns whether any transfer advanced.
    fn move_on(&mut self) -> Result<bool> {
        let moved = self.try_move_on();
        self.broken |= moved.is_err();
        moved
    }

    fn try_move_on(&mut self) -> Result<bool> {
        let library = self.library.as_mut().expect(UNTIL_DROPPED);
        let now = Instant::now();
        // Time in which this rank computed, or was stopped with the whole job, counts little: it could not receive.
        let looked = now.duration_since(self.looked).min(self.patience / SIGNS);
        self.looked = now;
        for other in &mut self.others {
            other.silence += looked;
        }
        let mut moved = false;
        let mut at = 0;
        while at < self.sending.len() {
            if library.complete(&mut self.sending[at])? {
                self.sending.swap_remove(at);
                moved = true;
            } else {
                at += 1;
            }
        }
        while let Some(arrival) = library.next()? {
            let other = &mut self.others[arrival.from];
            other.silence = Duration::ZERO;
            other.inbox.extend(arrival.transfer);
            other.announced = other.announced.max(arrival.kind);
            self.broken |= arrival.kind == MessageKind::Broken;
            moved = true;
        }
        for (to, other) in self.others.iter_mut().enumerate() {
            // A rank that has left waits for this one and needs signs of life, until this one sends its farewell.
            if to != self.rank && !self.leaving && now.duration_since(other.last_sent) >= self.patience / SIGNS {
                other.last_sent = now;
                self.sending.push(library.send(to, MessageKind::KeepAlive, Vec::new())?);
            }
        }
        Ok(moved)
    }

    fn post(&mut self, to: usize, kind: MessageKind, bytes: Vec<u8>) -> Result<()> {
        let sent = self.library.as_mut().expect(UNTIL_DROPPED).send(to, kind, bytes);
        self.broken |= sent.is_err();
        self.sending.push(sent?);
        self.others[to].last_sent = Instant::now();
        Ok(())
    }

    /// Takes the next message of a rank, if it has arrived.
    fn take(&mut self, from: usize) -> Result<Option<Vec<u8>>> {
        let inbox = &mut self.others[from].inbox;
        let Some(first) = inbox.front_mut() else { return Ok(None) };
        let complete = self.library.as_mut().expect(UNTIL_DROPPED).complete(first);
        self.broken |= complete.is_err();
        Ok(if complete? { inbox.pop_front().map(Transfer::into_bytes) } else { None })
    }

    /// Checks that a rank has sent a message within the patience.
    fn check_liveness(&mut self, rank: usize) -> Result<()> {
        let silence = self.others[rank].silence;
        if silence < self.patience {
            return Ok(());
        }
        self.broken = true;
        Err(CommunicationError::Silent { rank, seconds: silence.as_secs_f64() })
    }

    fn wait(&mut self, from: usize) -> Result<Vec<u8>> {
        // Peers need signs of life only from here on.
        self.others[from].silence = Duration::ZERO;
        let mut pause = Pause::default();
        loop {
            let moved = self.move_on()?;
            if let Some(message) = self.take(from)? {
                return Ok(message);
            }
            let other = &self.others[from];
            if other.is_gone() && other.inbox.is_empty() {
                return Err(CommunicationError::Gone { rank: from });
            }
            self.check_liveness(from)?;
            pause.take(moved);
        }
    }

    /// Exchanges farewells with all ranks, then confirmations of these.
    fn leave(&mut self) -> Result<()> {
        self.part(MessageKind::Farewell)?;
        self.part(MessageKind::Settled)?;
        if self.others.len() > 1 {
            thread::sleep(QUIET_PERIOD);
        }
        Ok(())
    }

    /// Sends an announcement to all ranks, and waits for theirs and for all messages to be sent.
    fn part(&mut self, word: MessageKind) -> Result<()> {
        let others: Vec<usize> = (0..self.others.len()).filter(|&other| other != self.rank).collect();
        for &to in &others {
            self.post(to, word, Vec::new())?;
            self.others[to].silence = Duration::ZERO;
        }
        let mut pause = Pause::default();
        loop {
            let moved = self.move_on()?;
            for &from in &others {
                // Drains messages that will not be received, so that their senders can finish.
                while self.take(from)?.is_some() {}
            }
            let missing = |other: &Peer| other.announced < word || !other.inbox.is_empty();
            let missing: Vec<usize> = others.iter().copied().filter(|&other| missing(&self.others[other])).collect();
            if self.broken || missing.is_empty() && self.sending.is_empty() {
                return Ok(());
            }
            for rank in missing {
                self.check_liveness(rank)?;
            }
            pause.take(moved);
        }
    }

    /// Announces to all reachable ranks that the job is broken.
    fn warn(&mut self) {
        for to in 0..self.others.len() {
            if to != self.rank && !self.others[to].is_gone() && self.post(to, MessageKind::Broken, Vec::new()).is_err()
            {
                return;
            }
        }
        let began = Instant::now();
        let mut pause = Pause::default();
        while !self.sending.is_empty() && began.elapsed() < FLUSH_TIMEOUT {
            match self.move_on() {
                Ok(moved) => pause.take(moved),
                Err(_) => return,
            }
        }
    }
}

const UNTIL_DROPPED: &str = "the library is there until the communicator is dropped";

impl Communicator for MpiCommunicator {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.others.len()
    }

    fn send(&mut self, to: usize, message: Vec<u8>) -> Result<()> {
        assert_other(to, self.rank, self.size());
        check_size(to, message.len())?;
        if self.others[to].is_gone() {
            return Err(CommunicationError::Gone { rank: to });
        }
        self.traffic.sent(message.len());
        self.post(to, MessageKind::Message, message)
    }

    fn receive(&mut self, from: usize) -> Result<Vec<u8>> {
        assert_other(from, self.rank, self.size());
        let began = Instant::now();
        let message = self.wait(from)?;
        self.traffic.received(message.len(), began.elapsed().as_secs_f64());
        Ok(message)
    }

    fn try_receive(&mut self, from: usize) -> Result<Option<Vec<u8>>> {
        assert_other(from, self.rank, self.size());
        self.move_on()?;
        if let Some(message) = self.take(from)? {
            self.traffic.received(message.len(), 0.0);
            return Ok(Some(message));
        }
        let other = &self.others[from];
        if other.is_gone() && other.inbox.is_empty() { Err(CommunicationError::Gone { rank: from }) } else { Ok(None) }
    }

    fn poll(&mut self) -> Result<()> {
        self.move_on().map(drop)
    }

    fn traffic(&self) -> MessageTraffic {
        self.traffic
    }
}

impl Drop for MpiCommunicator {
    fn drop(&mut self) {
        if thread::panicking() {
            self.library.as_mut().expect(UNTIL_DROPPED).abort();
            return;
        }
        self.leaving = true;
        // An error marks the job as broken.
        let _ = if self.broken { Ok(()) } else { self.leave() };
        if self.broken {
            self.warn();
        } else if let Some(library) = self.library.take() {
            // No error can be reported here; the launcher detects the exit.
            let _ = library.finish();
        }
    }
}

/// Back-off that grows while nothing arrives, since ranks may share cores, and a rank that waits should use none.
#[derive(Debug, Default)]
struct Pause {
    rounds: u32,
}

impl Pause {
    fn take(&mut self, moved: bool) {
        const SPINS: u32 = 100;
        const YIELDS: u32 = 20;
        /// The first sleeps, how many have the same length, and how often it is doubled: to about a
        /// millisecond. A rank that sleeps for much of the time that it has waited delays all that wait for
        /// it.
        const SLEEP: Duration = Duration::from_micros(20);
        const ALIKE: u32 = 16;
        const DOUBLINGS: u32 = 6;
        self.rounds = if moved { 0 } else { self.rounds.saturating_add(1) };
        match self.rounds {
            0..=SPINS => std::hint::spin_loop(),
            rounds if rounds <= SPINS + YIELDS => thread::yield_now(),
            rounds => thread::sleep(SLEEP * (1 << ((rounds - SPINS - YIELDS) / ALIKE).min(DOUBLINGS))),
        }
    }
}
