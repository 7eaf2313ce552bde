//! Stages that are work for all ranks of a job.
//!
//! Rank 0 leads: it alone runs the pipeline, writes the journal and publishes files. The others follow: they wait for an
//! [`Order`], and do their share of it. All ranks see the run directory, and read there what they need.
//!
//! * `capture:n`: each captures for some rows of each slab, and sends them to rank 0 (`capture.rs`).
//! * `sweep:n`, `counting:n`: each solves what it owns (`solve.rs`), with snapshots on a disk of its own if it has one
//!   (`apart.rs`), and writes a part of the database (`parts.rs`).
//! * `process:n:b` of two-bit: each solves what it owns (`bounds/ranks.rs`), and rank 0 writes.
//! * `verify:n`: each reads and derives a part (`verify.rs`). `stats:n`: each counts a part (`count.rs`).
//!
//! What goes wrong on one rank is told to all, so that they leave a stage together ([`agree`]).

mod apart;
mod capture;
mod count;
mod counts;
pub(crate) mod load;
mod order;
mod parts;
mod solve;
mod verify;

pub(crate) use apart::name_of;
pub(crate) use capture::run as capture;
pub(crate) use count::run as count;
pub(crate) use order::Order;
pub(crate) use solve::{By, run as solve};
pub(crate) use verify::run as verify;

use crate::bounds;
use disk::{Disk, heap};
use engines::Tables;
use messaging::{CommunicationError, Communicator};
use pipeline::{ArtifactName, StageError};
use planner::{BuildPlan, Settings};
use std::fmt;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// More ranks than any job has.
const RANKS_MAX: usize = 1 << 16;

/// More logical processors than a rank has threads.
const PROCESSORS_MAX: usize = 1 << 16;

/// How often a leader that does something else shows that it lives.
const PULSE: Duration = Duration::from_secs(1);

/// Smaller databases take rank 0 less time than it takes to tell the others of them.
const SHARED_POSITIONS_MIN: u64 = 1 << 16;

/// The other ranks, as rank 0 sees them.
pub struct Job {
    communicator: Arc<Mutex<Box<dyn Communicator>>>,
    ranks: usize,
}

impl Job {
    /// A job that this process leads.
    ///
    /// # Errors
    /// If no thread can be had that shows the others that it lives.
    ///
    /// # Panics
    /// On another rank than 0.
    pub fn lead(communicator: Box<dyn Communicator>) -> io::Result<Job> {
        assert_eq!(communicator.rank(), 0, "rank 0 leads");
        let ranks = communicator.size();
        let communicator = Arc::new(Mutex::new(communicator));
        let weak = Arc::downgrade(&communicator);
        std::thread::Builder::new().name("pulse".to_owned()).spawn(move || pulse(&weak))?;
        Ok(Job { communicator, ranks })
    }

    /// Ranks, the leader among them.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Lets the others leave. A rank that has gone already is no reason to complain.
    pub fn dismiss(&self) {
        let _ = self.communicator().broadcast(0, Some(Order::Leave.encode()));
    }

    /// Whether all ranks capture for the database of `stones`, write it, verify it and count.
    pub(crate) fn shares(&self, settings: &Settings, stones: u32) -> bool {
        is_shared(settings, stones, self.ranks)
    }

    pub(crate) fn communicator(&self) -> MutexGuard<'_, Box<dyn Communicator>> {
        self.communicator.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As [`Job::shares`], of so many ranks.
fn is_shared(settings: &Settings, stones: u32, ranks: usize) -> bool {
    ranks > 1 && settings.set.positions(stones) >= SHARED_POSITIONS_MIN
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("ranks", &self.ranks).finish_non_exhaustive()
    }
}

/// Sees to the messages while the leader is at something else, until there is no job any more.
fn pulse(communicator: &Weak<Mutex<Box<dyn Communicator>>>) {
    while let Some(communicator) = communicator.upgrade() {
        if let Ok(mut communicator) = communicator.try_lock() {
            // Whoever waits for a message next is told what is wrong.
            let _ = communicator.poll();
        }
        drop(communicator);
        std::thread::sleep(PULSE);
    }
}

/// Does what rank 0 wants, until that is to leave. `settings` are those of the same manifest, or why
/// there are none.
///
/// # Errors
/// If a rank cannot be reached any more.
pub fn follow(
    settings: Result<&Settings, String>,
    disk: &dyn Disk,
    communicator: &mut dyn Communicator,
    stop: &AtomicBool,
) -> Result<(), StageError> {
    let plan = settings.map(|settings| BuildPlan::new(settings.clone().with_ranks(communicator.size())));
    let mut kept = Kept::default();
    loop {
        let order = communicator.broadcast(0, None).map_err(StageError::failed)?;
        let order = Order::decode(&order).map_err(StageError::failed)?;
        if order == Order::Leave {
            return Ok(());
        }
        let followed = match &plan {
            Ok(plan) => {
                let threads = plan.settings().threads;
                heap::room_for_threads(threads).map_err(StageError::no_threads)?;
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                let pool = pool.map_err(StageError::no_threads)?;
                let follower = Follower { plan, settings: plan.settings(), disk, stop };
                pool.install(|| follower.obey(order, &mut kept, communicator))
            }
            Err(why) => agree(communicator, Err(StageError::failed(why.clone()))),
        };
        if let Err(Failure::Alone(error)) = followed {
            return Err(error);
        }
    }
}

/// Another rank than 0.
struct Follower<'a> {
    plan: &'a BuildPlan,
    settings: &'a Settings,
    disk: &'a dyn Disk,
    /// Raised by a signal.
    stop: &'a AtomicBool,
}

/// What it keeps from one order to the next.
#[derive(Default)]
struct Kept {
    tables: Option<Arc<Tables>>,
    share: Option<bounds::Share>,
}

impl Follower<'_> {
    fn obey(&self, order: Order, kept: &mut Kept, communicator: &mut dyn Communicator) -> Result<(), Failure> {
        match order {
            Order::Capture(reading) => capture::follow(self, &reading, &self.tables(kept), communicator),
            Order::Solve(task) => solve::follow(self, &task, &self.tables(kept), communicator),
            Order::Bound(task) => {
                let tables = self.tables(kept);
                if task.is_last() {
                    // Large ones, for pushing wins, are not needed afterwards.
                    kept.tables = None;
                }
                bounds::follow(self.settings, self.disk, tables, &task, &mut kept.share, communicator, self.stop)
            }
            Order::Verify(reading) => verify::follow(self, &reading, communicator),
            Order::Count(reading) => count::follow(self, &reading, &self.tables(kept), communicator),
            Order::Leave => Ok(()),
        }
    }

    fn tables(&self, kept: &mut Kept) -> Arc<Tables> {
        let Settings { rules, set, .. } = *self.settings;
        let tables = kept.tables.get_or_insert_with(|| Arc::new(Tables::new(rules, set, self.settings.stones_max())));
        Arc::clone(tables)
    }
}

/// Why a task came to nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// All ranks know, and go on together.
    Together(StageError),
    /// This rank has lost the others.
    Alone(StageError),
}

impl Failure {
    /// Of a message that did not come or go.
    pub(crate) fn lost(error: CommunicationError) -> Failure {
        Failure::Alone(StageError::failed(error))
    }

    /// What rank 0 says about its stage.
    pub(crate) fn into_error(self) -> StageError {
        let (Failure::Together(error) | Failure::Alone(error)) = self;
        error
    }
}

/// Whether all ranks could do what each of them tried: else an error for all, the same but for those that have their own.
/// Damage goes before any other error, and that before a request to stop.
pub(crate) fn agree<T>(communicator: &mut dyn Communicator, mine: Result<T, StageError>) -> Result<T, Failure> {
    let told = mine.as_ref().err().map(|error| Trouble::of(error, communicator.rank()).encode());
    let all = communicator.gather(0, told.unwrap_or_default()).map_err(Failure::lost)?;
    let verdict = match all {
        Some(all) => {
            let told = all.iter().enumerate().filter(|(_, told)| !told.is_empty());
            let all = told.map(|(rank, told)| Trouble::decode(told, rank)).collect::<Result<Vec<_>, _>>();
            Some(Trouble::worst(all.map_err(Failure::lost)?).map_or_else(Vec::new, |trouble| trouble.encode()))
        }
        None => None,
    };
    let verdict = communicator.broadcast(0, verdict).map_err(Failure::lost)?;
    match mine {
        Err(error) if !matches!(error, StageError::Stopped) => Err(Failure::Together(error)),
        Ok(mine) if verdict.is_empty() => Ok(mine),
        _ => Err(Failure::Together(Trouble::decode(&verdict, 0).map_err(Failure::lost)?.into_error())),
    }
}

/// An error of a stage on its way to other ranks.
#[derive(Debug, PartialEq, Eq)]
enum Trouble {
    Damaged { artifact: ArtifactName, what: String, silent: bool },
    Failed(String),
    Stopped,
}

impl Trouble {
    fn of(error: &StageError, rank: usize) -> Trouble {
        match error {
            StageError::Stopped => Trouble::Stopped,
            StageError::Damaged { artifact, what, silent } => {
                Trouble::Damaged { artifact: artifact.clone(), what: what.clone(), silent: *silent }
            }
            error => Trouble::Failed(format!("rank {rank}: {error}")),
        }
    }

    /// The first damage there is, or all that failed.
    fn worst(all: Vec<Trouble>) -> Option<Trouble> {
        let failed: Vec<&str> = all
            .iter()
            .filter_map(|trouble| match trouble {
                Trouble::Failed(what) => Some(&**what),
                _ => None,
            })
            .collect();
        let failed = (!failed.is_empty()).then(|| Trouble::Failed(failed.join("; ")));
        let is_damage = |trouble: &Trouble| matches!(trouble, Trouble::Damaged { .. });
        let is_any = !all.is_empty();
        let damaged = all.into_iter().find(is_damage);
        damaged.or(failed).or(is_any.then_some(Trouble::Stopped))
    }

    /// A word and the rest, by lines.
    fn encode(&self) -> Vec<u8> {
        let text = match self {
            Trouble::Damaged { artifact, what, silent } => {
                format!("{}\n{artifact}\n{what}", if *silent { "wrong" } else { "damaged" })
            }
            Trouble::Failed(what) => format!("failed\n{what}"),
            Trouble::Stopped => "stopped\n".to_owned(),
        };
        text.into_bytes()
    }

    fn decode(bytes: &[u8], rank: usize) -> Result<Trouble, CommunicationError> {
        let text = String::from_utf8_lossy(bytes);
        let trouble = text.split_once('\n').and_then(|(word, rest)| match word {
            "damaged" | "wrong" => {
                let (artifact, what) = rest.split_once('\n')?;
                let (artifact, silent) = (ArtifactName::new(artifact).ok()?, word == "wrong");
                Some(Trouble::Damaged { artifact, what: what.to_owned(), silent })
            }
            "failed" => Some(Trouble::Failed(rest.to_owned())),
            "stopped" => Some(Trouble::Stopped),
            _ => None,
        });
        let (expected, found) = ("an error of a stage".to_owned(), format!("{text:?}"));
        trouble.ok_or(CommunicationError::Unexpected { rank, expected, found })
    }

    fn into_error(self) -> StageError {
        match self {
            Trouble::Damaged { artifact, what, silent } => StageError::Damaged { artifact, what, silent },
            Trouble::Failed(what) => StageError::failed(what),
            Trouble::Stopped => StageError::Stopped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;
    use messaging::{NetworkFaults, ThreadCommunicator};

    /// What each of some ranks hears, of which each has an error or none.
    fn agreed(errors: Vec<Option<StageError>>) -> Vec<Option<String>> {
        let ends = ThreadCommunicator::job(errors.len(), NetworkFaults::none());
        std::thread::scope(|scope| {
            let running: Vec<_> = ends
                .into_iter()
                .zip(errors)
                .map(|(mut end, error)| scope.spawn(move || agree(&mut end, error.map_or(Ok(()), Err))))
                .collect();
            let heard = |found: Result<(), Failure>| found.err().map(|failure| failure.into_error().to_string());
            running.into_iter().map(|rank| heard(rank.join().unwrap())).collect()
        })
    }

    #[test]
    fn all_ranks_hear_what_is_wrong() {
        let text = |text: &str| Some(text.to_owned());
        let failed = |text: &str| Some(StageError::failed(text.to_owned()));
        let damaged = |what: &str| {
            let what = format!("{what},\nin two lines");
            Some(StageError::Damaged { artifact: files::database(7), what, silent: true })
        };
        assert_eq!(agreed(vec![None, None, None]), [None, None, None]);
        let all = text("rank 1: no room; rank 2: no disk");
        assert_eq!(agreed(vec![None, failed("no room"), failed("no disk")])[0], all);
        let stopped = agreed(vec![None, Some(StageError::Stopped), None]);
        assert_eq!(stopped, vec![text("stopped on request"); 3]);
        let heard = agreed(vec![Some(StageError::Stopped), failed("no room"), damaged("first"), damaged("second")]);
        let first = "databases/07.awari is damaged: first,\nin two lines";
        assert_eq!(heard[0], text(first));
        assert_eq!(heard[1], text("no room"), "each has its own");
    }

    #[test]
    fn other_errors_are_none() {
        for bytes in [&b""[..], b"stopped", b"damaged\nx", b"damaged\n../x\ny", b"other\nx"] {
            assert!(Trouble::decode(bytes, 1).is_err(), "{bytes:?}");
        }
    }
}
