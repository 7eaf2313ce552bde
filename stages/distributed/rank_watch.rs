//! Watch over the processes of a job, which MPI does not keep: a rank that dies or hangs ends the others.
//!
//! Each rank has a thread that replaces a small file in the run directory every second, its *sign of life*,
//! and looks at other ranks. Rank 0 reads the signs of all ranks and the others that of rank 0, so that a job
//! of n ranks reads 2n files a second. A rank also looks up the processes of the ranks on its own machine,
//! which shows their end at once. The rank that finds one lost writes so into its own sign, and ends; the
//! others read that and end too.
//!
//! Signs are compared with their predecessors, never with a clock of another machine. Only time in which the
//! reader made its own rounds counts as silence of another rank: a job that was suspended as a whole, or
//! whose file system hangs, goes on. Besides the watch, only `awari status` reads the signs. They stay until
//! the next job of the directory.

use super::roster::Roster;
use disk::{Disk, DiskError, ProcessIdentity, ProcessState, threads};
use pipeline::directory::ranks_path;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The longest sign in bytes.
const SIGN_BYTES_MAX: u64 = 4096;

/// Intervals of a watch.
#[derive(Clone, Copy, Debug)]
struct WatchTimes {
    /// Time between two rounds.
    round: Duration,
    /// Time without a new sign after which a rank is lost.
    silence: Duration,
    /// Time after which a process that a signal has stopped is lost.
    stop: Duration,
    /// Time that a rank which found a loss waits before it ends, for the rank that reports it: a launcher
    /// kills all ranks when the first ends.
    grace: Duration,
}

const TIMES: WatchTimes = WatchTimes {
    round: Duration::from_secs(1),
    silence: Duration::from_secs(20),
    stop: Duration::from_secs(7),
    grace: Duration::from_secs(3),
};

/// A rank that a job has lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRank {
    /// Its number.
    pub rank: usize,
    /// Its process.
    process: ProcessIdentity,
    how: Loss,
    /// What its last sign says.
    activity: String,
    /// Seconds for which it had been at that.
    seconds: u64,
}

/// How a rank was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Loss {
    /// Its process has ended without a farewell.
    Dead,
    /// A signal has stopped its process.
    Stopped,
    /// It gives no signs of life.
    Silent {
        /// Seconds of silence.
        seconds: u64,
    },
}

impl LostRank {
    /// Whether a rank reports the loss: the first that is left.
    pub fn is_reported_by(&self, rank: usize) -> bool {
        rank == usize::from(self.rank == 0)
    }
}

impl fmt::Display for LostRank {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "rank {} (process {} on {}) ", self.rank, self.process.pid, self.process.host)?;
        match self.how {
            Loss::Dead => f.write_str("died: it was killed, or the machine had no memory left for it")?,
            Loss::Stopped => f.write_str("was stopped by a signal")?,
            Loss::Silent { seconds } => write!(
                f,
                "gave no sign of life for {seconds} s: it hangs, or its machine, network or file system is down"
            )?,
        }
        write!(f, "; the last that it did was {}, for {} s", self.activity, self.seconds)
    }
}

/// The sign of life of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankSign {
    /// Rank 0 of the job.
    job: ProcessIdentity,
    /// The process of this rank.
    pub process: ProcessIdentity,
    /// Number of the sign.
    number: u64,
    /// When it was written, in seconds since 1970.
    pub at: u64,
    /// What the rank does: a stage.
    pub activity: String,
    /// Seconds for which it has been at that.
    pub seconds: u64,
    /// The end of the rank, or of the job.
    pub end: Option<SignedEnd>,
}

/// The end of a rank in its last sign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignedEnd {
    /// It has left the job properly.
    Left,
    /// It ends because a rank was lost.
    Lost(LostRank),
}

impl RankSign {
    /// Reads the last sign of a rank, if there is a readable one.
    pub fn read(disk: &dyn Disk, directory: &Path, rank: usize) -> Option<RankSign> {
        RankSign::at(disk, &sign_path(directory, rank))
    }

    fn at(disk: &dyn Disk, path: &Path) -> Option<RankSign> {
        serde_json::from_slice(&disk.read(path, SIGN_BYTES_MAX).ok()?).ok()
    }
}

/// Returns the rank that a job lost, if the signs in its run directory name one. Rank 0 of the job is the
/// process `pid` of `host`.
///
/// # Errors
/// If the signs cannot be listed.
pub fn lost_rank(disk: &dyn Disk, directory: &Path, host: &str, pid: u32) -> Result<Option<LostRank>, DiskError> {
    let signs = disk.list(&ranks_path(directory))?;
    let signs = signs.iter().filter_map(|path| RankSign::at(disk, path));
    let mut of_job = signs.filter(|sign| (sign.job.host.as_str(), sign.job.pid) == (host, pid));
    Ok(of_job.find_map(|sign| match sign.end {
        Some(SignedEnd::Lost(lost)) => Some(lost),
        _ => None,
    }))
}

fn sign_path(directory: &Path, rank: usize) -> PathBuf {
    ranks_path(directory).join(format!("{rank:04}"))
}

/// The watch of one rank. Dropping it says that the rank has left properly: do so after the communicator is dropped.
pub struct RankWatch {
    times: WatchTimes,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the rank and its watch share.
struct Shared {
    state: Mutex<OwnState>,
    changed: Condvar,
    disk: Box<dyn Disk>,
    directory: PathBuf,
    roster: Roster,
    rank: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, OwnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the last sign that a rank gave in this job, if there is a readable one.
    fn sign_of(&self, rank: usize) -> Option<RankSign> {
        RankSign::read(&*self.disk, &self.directory, rank).filter(|sign| sign.job == self.roster.of(0).process)
    }

    /// Replaces the sign of this rank, if the directory is claimed. A failure shows to others as silence.
    fn give_sign(&self, end: Option<SignedEnd>) {
        let clock = self.disk.clock();
        let sign = {
            let mut state = self.lock();
            if !state.is_claimed {
                return;
            }
            state.number += 1;
            RankSign {
                job: self.roster.of(0).process.clone(),
                process: self.roster.of(self.rank).process.clone(),
                number: state.number,
                at: clock.utc().as_secs(),
                activity: state.activity.clone(),
                seconds: clock.steady().saturating_sub(state.since).as_secs(),
                end,
            }
        };
        let Ok(text) = serde_json::to_vec(&sign) else { return };
        if let Err(error) = self.disk.post(&sign_path(&self.directory, self.rank), &text) {
            tracing::warn!("this rank cannot give a sign of life: {error}");
        }
    }
}

/// State of the own rank.
struct OwnState {
    activity: String,
    /// When it began, on the steady clock.
    since: Duration,
    /// Whether the run directory is that of the job. Until then nothing is written there.
    is_claimed: bool,
    /// Number of signs given.
    number: u64,
    has_left: bool,
}

impl RankWatch {
    /// Starts the watch of a rank. It reads and writes nothing before rank 0 calls [`claim`](Self::claim).
    /// When a rank is lost, it calls `on_loss`, which should end the process.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(
        disk: impl Disk + 'static,
        directory: &Path,
        roster: Roster,
        rank: usize,
        on_loss: impl FnOnce(&LostRank) + Send + 'static,
    ) -> io::Result<RankWatch> {
        RankWatch::start_with(TIMES, disk, directory, roster, rank, on_loss)
    }

    fn start_with(
        times: WatchTimes,
        disk: impl Disk + 'static,
        directory: &Path,
        roster: Roster,
        rank: usize,
        on_loss: impl FnOnce(&LostRank) + Send + 'static,
    ) -> io::Result<RankWatch> {
        let since = disk.clock().steady();
        let activity = "to start".to_owned();
        let state = OwnState { activity, since, is_claimed: false, number: 0, has_left: false };
        let peers = peers(&roster, rank);
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            disk: Box::new(disk),
            directory: directory.to_path_buf(),
            roster,
            rank,
        });
        let mut watcher = Watcher { times, peers, shared: Arc::clone(&shared) };
        let watch = move || {
            if let Some(lost) = watcher.watch() {
                on_loss(&lost);
            }
        };
        let thread = threads::spawn(Builder::new().name("watch".to_owned()), watch)?;
        Ok(RankWatch { times, shared, thread: Some(thread) })
    }

    /// Begins to give signs in the run directory. Called by rank 0, once it holds the lock of the directory.
    /// The others see its first sign before they can leave.
    ///
    /// # Errors
    /// If the folder of the signs cannot be made, or old ones not be removed.
    pub fn claim(&self) -> Result<(), DiskError> {
        let Shared { disk, directory, .. } = &*self.shared;
        let folder = ranks_path(directory);
        disk.create_dir_all(&folder)?;
        for old in disk.list(&folder)? {
            disk.remove(&old)?;
        }
        self.shared.lock().is_claimed = true;
        self.shared.give_sign(None);
        Ok(())
    }

    /// Notes what the rank does from now on.
    pub fn note(&self, activity: &str) {
        let now = self.shared.disk.clock().steady();
        let mut state = self.shared.lock();
        activity.clone_into(&mut state.activity);
        state.since = now;
    }

    /// Waits until the watch has found a lost rank, for as long as that can take. Call it when communication
    /// fails: mostly because a rank has died, which the library for messages may notice first, but cannot
    /// name.
    pub fn wait_for_loss(&self) {
        let now = || self.shared.disk.clock().steady();
        let end = now() + self.times.silence + 3 * self.times.round;
        while now() < end && self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            std::thread::sleep(self.times.round / 10);
        }
    }
}

impl Drop for RankWatch {
    fn drop(&mut self) {
        self.shared.lock().has_left = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic in it was printed, and the rank has left.
            let _ = thread.join();
        }
    }
}

/// The thread of a watch.
struct Watcher {
    times: WatchTimes,
    peers: Vec<WatchedRank>,
    shared: Arc<Shared>,
}

/// A watched rank.
struct WatchedRank {
    rank: usize,
    /// Whether its signs are read. Otherwise only its process is looked up.
    is_read: bool,
    /// Its last sign.
    sign: Option<RankSign>,
    silence: Duration,
    /// Time for which its process has been stopped.
    stopped: Duration,
}

/// Returns the ranks that a rank watches.
fn peers(roster: &Roster, rank: usize) -> Vec<WatchedRank> {
    let is_read = |other: usize| rank == 0 || other == 0;
    let is_here = |other: usize| roster.of(other).process.state() != ProcessState::Unknown;
    let others = (0..roster.ranks()).filter(|&other| other != rank && (is_read(other) || is_here(other)));
    let peer = |other| WatchedRank {
        rank: other,
        is_read: is_read(other),
        sign: None,
        silence: Duration::ZERO,
        stopped: Duration::ZERO,
    };
    others.map(peer).collect()
}

impl Watcher {
    /// Makes rounds until this rank has left, or another is lost.
    fn watch(&mut self) -> Option<LostRank> {
        let shared = Arc::clone(&self.shared);
        let mut last = shared.disk.clock().steady();
        loop {
            let waited = shared.changed.wait_timeout_while(shared.lock(), self.times.round, |state| !state.has_left);
            let has_left = waited.unwrap_or_else(PoisonError::into_inner).0.has_left;
            let now = shared.disk.clock().steady();
            // Time in which this process was stopped or its file system hung says nothing about others.
            let passed = now.saturating_sub(last).min(2 * self.times.round);
            last = now;
            let is_claimed = shared.lock().is_claimed || shared.sign_of(0).is_some();
            shared.lock().is_claimed = is_claimed;
            if has_left {
                shared.give_sign(Some(SignedEnd::Left));
                return None;
            }
            if !is_claimed {
                continue;
            }
            shared.give_sign(None);
            if let Some(lost) = self.look(passed) {
                shared.give_sign(Some(SignedEnd::Lost(lost.clone())));
                if !lost.is_reported_by(shared.rank) {
                    std::thread::sleep(self.times.grace);
                }
                return Some(lost);
            }
        }
    }

    /// Looks at all watched ranks once. `passed` is the time since the last round.
    fn look(&mut self, passed: Duration) -> Option<LostRank> {
        let Watcher { times, peers, shared } = self;
        for peer in peers {
            let process = &shared.roster.of(peer.rank).process;
            let state = process.state();
            // After the process: one that has ended cannot give another sign.
            let is_wanted = peer.is_read || state == ProcessState::Ended;
            let sign = if is_wanted { shared.sign_of(peer.rank) } else { None };
            if let Some(loss) = peer.judge(times, passed, state, sign) {
                let sign = peer.sign.take().or_else(|| shared.sign_of(peer.rank));
                return Some(match sign {
                    Some(RankSign { end: Some(SignedEnd::Lost(lost)), .. }) => lost,
                    sign => LostRank {
                        rank: peer.rank,
                        process: process.clone(),
                        how: loss,
                        activity: sign.as_ref().map_or("to start", |sign| &sign.activity).to_owned(),
                        seconds: sign.map_or(0, |sign| sign.seconds),
                    },
                });
            }
        }
        None
    }
}

impl WatchedRank {
    /// Returns how the rank, or one that it has found, was lost, given the state of its process and its current sign.
    fn judge(
        &mut self,
        times: &WatchTimes,
        passed: Duration,
        state: ProcessState,
        sign: Option<RankSign>,
    ) -> Option<Loss> {
        let is_new = sign.is_some() && sign != self.sign;
        if is_new {
            self.sign = sign;
        }
        match self.sign.as_ref().and_then(|sign| sign.end.as_ref()) {
            Some(SignedEnd::Left) => return None,
            Some(SignedEnd::Lost(_)) => return Some(Loss::Dead),
            None => {}
        }
        self.silence = if is_new || !self.is_read { Duration::ZERO } else { self.silence + passed };
        self.stopped = if state == ProcessState::Stopped { self.stopped + passed } else { Duration::ZERO };
        if state == ProcessState::Ended {
            Some(Loss::Dead)
        } else if self.stopped >= times.stop {
            Some(Loss::Stopped)
        } else if self.silence >= times.silence {
            Some(Loss::Silent { seconds: self.silence.as_secs() })
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributed::RankIdentity;
    use disk::{Digest, MemoryDisk};
    use messaging::{NetworkFaults, ThreadCommunicator};
    use std::sync::mpsc;
    use std::time::Instant;

    /// Short times.
    const QUICK: WatchTimes = WatchTimes {
        round: Duration::from_millis(10),
        silence: Duration::from_millis(500),
        stop: Duration::from_millis(70),
        grace: Duration::from_millis(30),
    };

    /// The roster of ranks that are threads of this process.
    fn roster(ranks: usize) -> Roster {
        let own = RankIdentity {
            process: ProcessIdentity::of_this_process(),
            release: String::new(),
            executable: Digest::of(b""),
        };
        let ends = ThreadCommunicator::job(ranks, NetworkFaults::none());
        std::thread::scope(|scope| {
            let running: Vec<_> = ends
                .into_iter()
                .map(|mut end| {
                    let own = &own;
                    scope.spawn(move || Roster::exchange(&mut end, own).unwrap())
                })
                .collect();
            running.into_iter().map(|rank| rank.join().unwrap()).next_back().unwrap()
        })
    }

    fn start(disk: &MemoryDisk, ranks: usize, rank: usize) -> (RankWatch, mpsc::Receiver<String>) {
        let (send, receive) = mpsc::channel();
        let found = move |lost: &LostRank| send.send(lost.to_string()).unwrap();
        let directory = Path::new("/run");
        (RankWatch::start_with(QUICK, disk.clone(), directory, roster(ranks), rank, found).unwrap(), receive)
    }

    #[test]
    fn a_silent_rank_ends_all_others() {
        let disk = MemoryDisk::new();
        let mut ranks: Vec<_> = (0..4).map(|rank| start(&disk, 4, rank)).collect();
        ranks[0].0.claim().unwrap();
        ranks[2].0.note("sweep:9");
        let end = Instant::now() + Duration::from_secs(60);
        while RankSign::read(&disk, Path::new("/run"), 2).is_none_or(|sign| sign.activity != "sweep:9") {
            assert!(Instant::now() < end, "no sign");
            std::thread::sleep(QUICK.round);
        }
        // Its thread ends, and its last sign does not say that it has left.
        let (hung, _) = ranks.remove(2);
        let sign = RankSign::read(&disk, Path::new("/run"), 2).unwrap();
        drop(hung);
        disk.post(&sign_path(Path::new("/run"), 2), &serde_json::to_vec(&RankSign { end: None, ..sign }).unwrap())
            .unwrap();
        for (_, found) in &ranks {
            let found = found.recv_timeout(Duration::from_secs(60)).unwrap();
            assert!(found.starts_with("rank 2 (process ") && found.contains("no sign of life"), "{found}");
            assert!(found.contains("the last that it did was sweep:9"), "{found}");
        }
        let ProcessIdentity { host, pid, .. } = roster(4).of(0).process.clone();
        let lost = |pid| lost_rank(&disk, Path::new("/run"), &host, pid).unwrap();
        assert_eq!(lost(pid).map(|lost| (lost.rank, lost.activity)), Some((2, "sweep:9".to_owned())));
        assert_eq!(lost(pid + 1), None, "the signs are of another job");
    }

    #[test]
    fn ranks_leave_one_by_one() {
        let disk = MemoryDisk::new();
        let mut ranks: Vec<_> = (0..3).map(|rank| start(&disk, 3, rank)).collect();
        ranks[0].0.claim().unwrap();
        while let Some((watch, _)) = ranks.pop() {
            drop(watch);
            std::thread::sleep(QUICK.silence * 2);
            assert!(ranks.iter().all(|(_, found)| found.try_recv().is_err()), "{} are left", ranks.len());
        }
        assert_eq!(RankSign::read(&disk, Path::new("/run"), 2).unwrap().end, Some(SignedEnd::Left));
    }

    #[test]
    fn nothing_is_written_before_the_directory_is_claimed() {
        let disk = MemoryDisk::new();
        let ranks: Vec<_> = (0..2).map(|rank| start(&disk, 2, rank)).collect();
        std::thread::sleep(QUICK.silence * 2);
        assert!(ranks.iter().all(|(_, found)| found.try_recv().is_err()));
        drop(ranks);
        assert_eq!(disk.list(Path::new("/run/ranks")).unwrap(), Vec::<PathBuf>::new());
    }

    fn judge(rounds: &[(ProcessState, Option<RankSign>)]) -> Option<Loss> {
        let mut peer =
            WatchedRank { rank: 1, is_read: true, sign: None, silence: Duration::ZERO, stopped: Duration::ZERO };
        let judged =
            |(state, sign): &(ProcessState, Option<RankSign>)| peer.judge(&TIMES, TIMES.round, *state, sign.clone());
        rounds.iter().find_map(judged)
    }

    fn sign(number: u64, end: Option<SignedEnd>) -> Option<RankSign> {
        let process = ProcessIdentity::of_this_process();
        let (at, activity, seconds) = (0, String::new(), 0);
        Some(RankSign { job: process.clone(), process, number, at, activity, seconds, end })
    }

    #[test]
    fn ranks_are_judged_by_process_and_signs() {
        use ProcessState::{Alive, Ended, Stopped, Unknown};
        let alive: Vec<_> = (0..100).map(|round| (Alive, sign(round / 15, None))).collect();
        assert_eq!(judge(&alive), None);
        let silent: Vec<_> = (0..21).map(|_| (Unknown, sign(7, None))).collect();
        assert_eq!(judge(&silent), Some(Loss::Silent { seconds: 20 }));
        assert_eq!(judge(&silent[..20]), None);
        assert_eq!(judge(&vec![(Unknown, None); 20]), Some(Loss::Silent { seconds: 20 }), "it never gave one");
        assert_eq!(judge(&[(Alive, sign(1, None)), (Ended, sign(1, None))]), Some(Loss::Dead));
        assert_eq!(judge(&vec![(Ended, sign(1, Some(SignedEnd::Left))); 30]), None);
        let stopped: Vec<_> = (0..7).map(|_| (Stopped, sign(1, None))).collect();
        assert_eq!(judge(&stopped), Some(Loss::Stopped));
        assert_eq!(judge(&[&stopped[..6], &[(Alive, sign(1, None))], &stopped[..6]].concat()), None, "it went on");
    }
}
