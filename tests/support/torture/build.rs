//! A build of a small manifest on a disk in memory, each run as a process of its own, or as a job of several ranks.

use super::conditions::{Conditions, Flags, HostClock, PlannedStop};
use super::journal::{DIRECTORY, Journals};
use super::turns::SeededTurns;
use disk::{Disk, GuardedDisk, MemoryDisk, is_leftover};
use messaging::ThreadCommunicator;
use pipeline::journal::RunEnd;
use pipeline::manifest::Manifest;
use pipeline::{
    Event, HeartbeatObserver, Observer, Orchestrator, PipelineError, RunOptions, RunSummary, StageError, StageName,
    StopRequest,
};
use planner::{Settings, schema};
use stages::distributed::JobLeader;
use stages::{Awari, follow, kinds};
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A process that builds a manifest. Its memory is not shared with other processes.
pub struct DisturbedBuild {
    settings: Settings,
    awari: Awari,
    options: RunOptions,
}

/// Settings and options of a manifest with these keys. Without another wish one stage runs at a time, so that
/// the number of an operation of the disk always means the same one.
///
/// # Panics
/// If that is no manifest.
pub(crate) fn asked(overrides: &[(&str, &str)]) -> (Settings, RunOptions) {
    let overrides: Vec<_> = overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let one_stage = "[build]\nstages-at-a-time = 1\n";
    let manifest = Manifest::parse(one_stage, "test", &schema(), &overrides);
    let manifest = manifest.unwrap_or_else(|mistakes| panic!("{overrides:?}: {mistakes:?}"));
    let settings = Settings::new(&manifest);
    let options = RunOptions {
        keep: settings.keep,
        snapshot_interval: settings.snapshot,
        stages_at_a_time: settings.stages_at_a_time,
        threads: settings.threads,
        manifest: manifest.to_toml(),
        ..RunOptions::default()
    };
    (settings, options)
}

/// Outcome of a run.
pub struct Ended {
    /// The summary, the error, or the message of a panic.
    pub result: Result<Result<RunSummary, PipelineError>, String>,
    /// Stages that began.
    pub started: Vec<StageName>,
    /// Finished stages, and whether they resumed from a snapshot.
    pub done: Vec<(StageName, bool)>,
    /// A mistake in the journal at an event, if there was one.
    pub journal: Option<String>,
    /// Errors of ranks other than the first.
    pub lost: Vec<String>,
}

impl Ended {
    /// Whether a request to stop ended the run.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(&self.result, Ok(Ok(RunSummary { how: RunEnd::Stopped, .. })))
    }
}

impl DisturbedBuild {
    /// A build of an otherwise empty manifest.
    ///
    /// # Panics
    /// If that is no manifest.
    pub fn new(overrides: &[(&str, &str)]) -> DisturbedBuild {
        let (settings, options) = asked(overrides);
        DisturbedBuild { awari: Awari::new(settings.clone()), settings, options }
    }

    /// Runs it.
    ///
    /// # Errors
    /// As [`Orchestrator::run`].
    pub fn run(&self, disk: &dyn Disk) -> Result<RunSummary, PipelineError> {
        let turns = SeededTurns::new(0);
        let disk = GuardedDisk::new(disk, &turns);
        Orchestrator::new(&disk, Path::new(DIRECTORY), &self.awari, self.options.clone()).turns(&turns).run()
    }

    /// Runs it and reports what happened, panics included.
    pub fn run_watched(&self, disk: &MemoryDisk, conditions: &Conditions) -> Ended {
        let flags: Flags = (0..conditions.ranks).map(|_| Arc::default()).collect();
        let hosts: Vec<MemoryDisk> = (0..conditions.ranks).map(|rank| host(disk, rank, &flags, conditions)).collect();
        let request = match conditions.stop {
            Some(PlannedStop::Request { event }) => Some(event),
            _ => None,
        };
        let diary = Diary { journals: Journals::new(disk), disk, request, entries: Mutex::default() };
        let turns = SeededTurns::new(conditions.turns);
        let run = |work: &Awari| {
            let in_turns = GuardedDisk::new(&hosts[0], &turns);
            let orchestrator = Orchestrator::new(&in_turns, Path::new(DIRECTORY), work, self.options.clone());
            let orchestrator = orchestrator.stop(&flags[0]).turns(&turns);
            if conditions.clocks.is_none() {
                return orchestrator.observer(&diary).run();
            }
            let beating = HeartbeatObserver::new(&hosts[0], Path::new(DIRECTORY), &diary, &flags[0]);
            orchestrator.observer(&Seldom(&beating)).run()
        };
        let (result, others) = match conditions.ranks {
            1 => (catch_unwind(AssertUnwindSafe(|| run(&self.awari))), Vec::new()),
            ranks => by_ranks(
                ThreadCommunicator::job(ranks, conditions.network.clone()),
                |job| run(&Awari::led(self.settings.clone(), job)),
                |rank, end| follow(Ok(&self.settings), &hosts[rank], end, &flags[rank], &|_| ()),
            ),
        };
        let mut result = result.map_err(|panic| words(&*panic));
        let mut lost = Vec::new();
        for (rank, ended) in others.into_iter().enumerate() {
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(error)) => lost.push(format!("rank {}: {error}", rank + 1)),
                Err(panic) => result = Err(format!("rank {}: {}", rank + 1, words(&*panic))),
            }
        }
        let journal = diary.journals.wrong();
        let entries = diary.entries.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ended { result, started: entries.started, done: entries.done, journal, lost }
    }

    /// Reads the status of the run directory.
    pub(crate) fn status(&self, disk: &dyn Disk) -> Result<(), PipelineError> {
        pipeline::status::status(disk, Path::new(DIRECTORY), Some(&self.awari), self.settings.keep).map(drop)
    }

    /// The most stages at a time.
    pub(crate) fn stages_at_a_time(&self) -> usize {
        self.options.stages_at_a_time
    }

    /// Number of stages.
    pub(crate) fn stages(&self) -> usize {
        pipeline::Work::graph(&self.awari).stages().len()
    }

    /// Whether all outputs of a stage have their final names.
    pub(crate) fn is_made(&self, stage: &str, disk: &MemoryDisk) -> bool {
        let graph = pipeline::Work::graph(&self.awari);
        let found = graph.stages().iter().find(|known| known.name.to_string() == stage);
        let paths = disk.paths();
        found.is_some_and(|stage| {
            stage.outputs.iter().all(|output| paths.contains(&Path::new(DIRECTORY).join(output.to_string())))
        })
    }
}

/// Runs a job of several ranks, each a thread: the first leads, the others follow until the first has ended.
/// Returns their results or panics.
pub fn by_ranks<T>(
    ends: Vec<ThreadCommunicator>,
    lead: impl FnOnce(Arc<JobLeader>) -> T,
    follow: impl Fn(usize, &mut ThreadCommunicator) -> Result<(), StageError> + Sync,
) -> (std::thread::Result<T>, Vec<std::thread::Result<Result<(), StageError>>>) {
    let mut ends = ends.into_iter();
    let first = ends.next().expect("a job has at least one rank");
    std::thread::scope(|scope| {
        let follow = &follow;
        let others: Vec<_> =
            (1..).zip(ends).map(|(rank, mut end)| scope.spawn(move || follow(rank, &mut end))).collect();
        let led = catch_unwind(AssertUnwindSafe(|| {
            let job = Arc::new(JobLeader::new(Box::new(first)).expect("a thread can be started"));
            let done = lead(Arc::clone(&job));
            job.dismiss();
            done
        }));
        (led, others.into_iter().map(|other| other.join()).collect())
    })
}

/// The disk as seen by a rank, whose host has its own clock.
fn host(disk: &MemoryDisk, rank: usize, flags: &Flags, conditions: &Conditions) -> MemoryDisk {
    let Some(clocks) = conditions.clocks else { return disk.clone() };
    let signal = match conditions.stop {
        Some(PlannedStop::Signal { reading, only }) if rank == 0 => {
            let some = flags.iter().enumerate().filter(|(rank, _)| only.is_none_or(|only| only == *rank));
            Some((reading, some.map(|(_, flag)| Arc::clone(flag)).collect()))
        }
        _ => None,
    };
    disk.with_clock(Arc::new(HostClock::new(clocks, rank, signal)))
}

/// The message of a panic.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

/// Records which stages began and which got done, looks at the journal at each event, and requests a stop at one.
struct Diary<'a> {
    disk: &'a MemoryDisk,
    journals: Journals<'a>,
    /// At which event to request a stop.
    request: Option<u64>,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    started: Vec<StageName>,
    done: Vec<(StageName, bool)>,
    events: u64,
    run: u64,
}

impl Observer for Diary<'_> {
    fn notice(&self, event: &Event) {
        self.journals.look();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::RunStarted { run, .. } => entries.run = *run,
            Event::StageStarted { stage, .. } => entries.started.push(stage.clone()),
            Event::StageDone { stage, measured, .. } => {
                let resumed = measured.report.counters.get("resumed").is_some_and(|count| count.as_f64() > 0.0);
                entries.done.push((stage.clone(), resumed));
            }
            _ => {}
        }
        if self.request == Some(entries.events) {
            // A request that cannot be written has no effect.
            let _ = StopRequest { run: entries.run }.post(self.disk, Path::new(DIRECTORY));
        }
        entries.events += 1;
    }

    fn interval(&self) -> Duration {
        // Runs of milliseconds need no progress.
        Duration::from_secs(3600)
    }
}

/// Overrides the interval of an observer, which is measured by the real clock.
struct Seldom<'a>(&'a dyn Observer);

impl Observer for Seldom<'_> {
    fn notice(&self, event: &Event) {
        self.0.notice(event);
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(3600)
    }
}

/// Files of stages that have a final name.
pub fn artifacts(disk: &MemoryDisk) -> BTreeMap<PathBuf, Vec<u8>> {
    let folders: Vec<PathBuf> = kinds::folders().iter().map(|folder| Path::new(DIRECTORY).join(folder)).collect();
    let inside = |path: &PathBuf| folders.iter().any(|folder| path.starts_with(folder)) && !is_leftover(path);
    let found = disk.paths().into_iter().filter(inside);
    found.filter_map(|path| disk.peek(&path).map(|bytes| (path, bytes))).collect()
}
