//! Ranks that are processes, of one machine or of many, which MPI connects.
//!
//! MPI may not notice that a process has died, and a call that waits for it then waits for ever. So no call here waits
//! inside MPI, and every rank tells all others that it lives, whenever it polls or waits and has sent them nothing for a
//! while. A rank of which nothing is heard is an error of who waits for it.
//!
//! Who leaves says so. If all do, in order, MPI is ended as it should be; if anything has broken it is not, since that
//! would wait for all ranks: the process ends without, and the launcher, seeing that, ends what is left of the job.

mod library;

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use library::{MessageKind, MpiLibrary, Transfer};

use crate::{CommunicationError, Communicator, MessageTraffic, assert_other, check_size, launched};

/// How long a rank may be silent, if nothing else is said.
const PATIENCE: Duration = Duration::from_secs(600);

/// So often within the patience does a rank tell the others that it lives, if it polls as often.
const SIGNS: u32 = 8;

/// How long a rank leaves MPI alone before it ends it. In `MPI_Finalize` MPICH 4.0 over UCX closes its connections, and
/// then waits for the other ranks without answering any of them (mended in pmodels/mpich#6596): a rank that comes later,
/// and has answered the others before it came, waits for their answer for ever. So nobody answers before all are there. Of three ranks over TCP on two cores one end in eight
/// hung without this, and none of 120 with it.
const STILLNESS: Duration = Duration::from_millis(200);

/// How long a rank that leaves a broken job waits for its last words to leave.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// One end of a job whose ranks are processes. Dropping it leaves the job, once all that was sent has left, and waits
/// for the others to leave too; in a panic it ends the processes of all ranks.
#[derive(Debug)]
pub struct MpiCommunicator {
    /// Here until the end.
    library: Option<MpiLibrary>,
    rank: usize,
    others: Vec<Peer>,
    /// What has not left yet.
    sending: Vec<Transfer>,
    patience: Duration,
    /// When this rank last looked for what has come.
    looked: Instant,
    /// Something failed, here or elsewhere, after which MPI cannot be ended in order.
    broken: bool,
    /// This end is being dropped.
    leaving: bool,
    traffic: MessageTraffic,
}

/// What is known of another rank.
#[derive(Debug)]
struct Peer {
    /// What it sent and was not received yet, in order; of the first, bytes may still be under way.
    inbox: VecDeque<Transfer>,
    /// How long nothing has come from it while this rank looked.
    silence: Duration,
    /// When anything was sent to it.
    last_sent: Instant,
    /// The last that it said of itself.
    said: MessageKind,
}

impl Peer {
    fn is_gone(&self) -> bool {
        self.said >= MessageKind::Farewell
    }
}

impl MpiCommunicator {
    /// Joins the job, if a launcher started this process as a rank of one; else there is no job, and MPI is not touched.
    /// Can be done once a process.
    ///
    /// # Errors
    /// What MPI says; an MPI that was built without support for threads.
    pub fn start() -> Result<Option<MpiCommunicator>, CommunicationError> {
        if !launched() {
            return Ok(None);
        }
        let library = MpiLibrary::start()?;
        let now = Instant::now();
        let other =
            || Peer { inbox: VecDeque::new(), silence: Duration::ZERO, last_sent: now, said: MessageKind::Alive };
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

    /// How long nothing may come from a rank that is waited for, before that is an error; 10 minutes if not set. The
    /// same for all ranks: each polls or waits more often than that, and tells that it lives eight times as often.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// The name and version of the MPI that this program was built with.
    pub fn library() -> String {
        library::version()
    }

    /// Lets everything move on. Whether anything did that can be seen.
    fn move_on(&mut self) -> Result<bool, CommunicationError> {
        let moved = self.try_move_on();
        self.broken |= moved.is_err();
        moved
    }

    fn try_move_on(&mut self) -> Result<bool, CommunicationError> {
        let library = self.library.as_mut().expect(UNTIL_DROPPED);
        let now = Instant::now();
        // While this rank computed, or was stopped with the whole job, it could have heard nothing: that counts for little.
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
            other.said = other.said.max(arrival.kind);
            self.broken |= arrival.kind == MessageKind::Broken;
            moved = true;
        }
        for (to, other) in self.others.iter_mut().enumerate() {
            // One that has left waits until this one does, and wants to know that it lives; a farewell is the last word.
            if to != self.rank && !self.leaving && now.duration_since(other.last_sent) >= self.patience / SIGNS {
                other.last_sent = now;
                self.sending.push(library.send(to, MessageKind::Alive, Vec::new())?);
            }
        }
        Ok(moved)
    }

    fn post(&mut self, to: usize, kind: MessageKind, bytes: Vec<u8>) -> Result<(), CommunicationError> {
        let sent = self.library.as_mut().expect(UNTIL_DROPPED).send(to, kind, bytes);
        self.broken |= sent.is_err();
        self.sending.push(sent?);
        self.others[to].last_sent = Instant::now();
        Ok(())
    }

    /// The next message of a rank, if it is there.
    fn take(&mut self, from: usize) -> Result<Option<Vec<u8>>, CommunicationError> {
        let inbox = &mut self.others[from].inbox;
        let Some(first) = inbox.front_mut() else { return Ok(None) };
        let complete = self.library.as_mut().expect(UNTIL_DROPPED).complete(first);
        self.broken |= complete.is_err();
        Ok(if complete? { inbox.pop_front().map(Transfer::into_bytes) } else { None })
    }

    /// That a rank has been heard of lately.
    fn check_heard(&mut self, of: usize) -> Result<(), CommunicationError> {
        let silence = self.others[of].silence;
        if silence < self.patience {
            return Ok(());
        }
        self.broken = true;
        Err(CommunicationError::Silent { rank: of, seconds: silence.as_secs_f64() })
    }

    fn wait(&mut self, from: usize) -> Result<Vec<u8>, CommunicationError> {
        // Nobody needed to hear of it before.
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
            self.check_heard(from)?;
            pause.take(moved);
        }
    }

    /// Says farewell and waits for that of all others, and then that all know.
    fn leave(&mut self) -> Result<(), CommunicationError> {
        self.part(MessageKind::Farewell)?;
        self.part(MessageKind::Settled)?;
        if self.others.len() > 1 {
            thread::sleep(STILLNESS);
        }
        Ok(())
    }

    /// Says so to all others, and waits until all of them have, and all that was sent has left.
    fn part(&mut self, word: MessageKind) -> Result<(), CommunicationError> {
        let others: Vec<usize> = (0..self.others.len()).filter(|&other| other != self.rank).collect();
        for &to in &others {
            self.post(to, word, Vec::new())?;
            self.others[to].silence = Duration::ZERO;
        }
        let mut pause = Pause::default();
        loop {
            let moved = self.move_on()?;
            for &from in &others {
                // What nobody will receive is taken in, since it must leave there.
                while self.take(from)?.is_some() {}
            }
            let missing = |other: &Peer| other.said < word || !other.inbox.is_empty();
            let missing: Vec<usize> = others.iter().copied().filter(|&other| missing(&self.others[other])).collect();
            if self.broken || missing.is_empty() && self.sending.is_empty() {
                return Ok(());
            }
            for of in missing {
                self.check_heard(of)?;
            }
            pause.take(moved);
        }
    }

    /// Tells the others that the job is broken, if they can be told at all.
    fn warn(&mut self) {
        for to in 0..self.others.len() {
            if to != self.rank && !self.others[to].is_gone() && self.post(to, MessageKind::Broken, Vec::new()).is_err()
            {
                return;
            }
        }
        let began = Instant::now();
        let mut pause = Pause::default();
        while !self.sending.is_empty() && began.elapsed() < LAST_WORDS {
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

    fn send(&mut self, to: usize, message: Vec<u8>) -> Result<(), CommunicationError> {
        assert_other(to, self.rank, self.size());
        check_size(to, message.len())?;
        if self.others[to].is_gone() {
            return Err(CommunicationError::Gone { rank: to });
        }
        self.traffic.sent(message.len());
        self.post(to, MessageKind::Message, message)
    }

    fn receive(&mut self, from: usize) -> Result<Vec<u8>, CommunicationError> {
        assert_other(from, self.rank, self.size());
        let began = Instant::now();
        let message = self.wait(from)?;
        self.traffic.received(message.len(), began.elapsed().as_secs_f64());
        Ok(message)
    }

    fn poll(&mut self) -> Result<(), CommunicationError> {
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
        // Where this fails, the job is broken from here on.
        let _ = if self.broken { Ok(()) } else { self.leave() };
        if self.broken {
            self.warn();
        } else if let Some(library) = self.library.take() {
            // There is nobody left to tell; and the launcher notices.
            let _ = library.finish();
        }
    }
}

/// Waits a little longer each time that nothing moves: ranks may share cores, and wait for long.
#[derive(Debug, Default)]
struct Pause {
    rounds: u32,
}

impl Pause {
    fn take(&mut self, moved: bool) {
        const SPINS: u32 = 100;
        const YIELDS: u32 = 1000;
        const SLEEP: Duration = Duration::from_micros(50);
        self.rounds = if moved { 0 } else { self.rounds.saturating_add(1) };
        match self.rounds {
            0..=SPINS => std::hint::spin_loop(),
            rounds if rounds <= SPINS + YIELDS => thread::yield_now(),
            _ => thread::sleep(SLEEP),
        }
    }
}
