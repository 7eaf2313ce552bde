//! The orchestrator: plans, runs and inspects the stages of a directory.
//!
//! A run does for each stage: record the start, run the stage, which publishes its outputs durably under
//! their final names, and record the end. After a kill in between the next run finds the outputs absent, or
//! complete, and then adopts or remakes them. A new plan is made after each stage. If several stages may run
//! at the same time, one thread alone plans, records and removes. Single stages, explanations and garbage
//! have a module each.

mod execution;
mod explain;
mod garbage;
mod heartbeat_observer;
mod progress_check;
mod run;
mod side_by_side;
mod single;
#[cfg(test)]
mod tests;

pub use explain::{ComparedField, ExplainedArtifact, Explanation};
pub use garbage::{Garbage, GarbageItem, GarbageReason};
pub use heartbeat_observer::HeartbeatObserver;
pub use run::{CompletedStage, RunSummary};
pub use single::{OutputComparison, ScratchDirectory, StageOutput, StageRerun};

use crate::budget::Budget;
use crate::directory::{Directory, Inspections, Space, holds_artifacts, journal_path, survey};
use crate::error::{PipelineError, Result, unusable};
use crate::journal::{Contents, JournalState};
use crate::observer::{Observer, SilentObserver};
use crate::plan::{Keep, Plan, PlanOptions, PlanPrediction};
use crate::planning::{evaluate, plan_of};
use crate::preflight::Resources;
use crate::schedule::{self, Limits, Reservation, SchedulePrediction};
use crate::turns::Turns;
use crate::work::Work;
use disk::{Disk, clock};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The last stage to run, in the order of the graph.
    pub until: Option<String>,
    /// Stages to run although they are fresh.
    pub force: Vec<String>,
    /// Whether to refuse to rebuild what exists but is stale.
    pub frozen: bool,
    /// Whether finished files for other parameters (rules, positions) may be replaced.
    pub replace: bool,
    /// Which artifacts are kept.
    pub keep: Keep,
    /// The most stages that run at the same time; 0 is the number whose predicted schedule is best.
    pub stages_at_a_time: usize,
    /// Threads for all running stages together; at least 1.
    pub threads: usize,
    /// Memory budget for all running stages together.
    pub memory: Budget,
    /// Time between snapshots of long stages.
    pub snapshot_interval: Duration,
    /// The number of runs without progress, one after the other, after which the next one fails.
    pub attempts_max: Option<usize>,
    /// The command line, for the lock and the journal.
    pub command: String,
    /// Name and version of the program, for the journal.
    pub program: String,
    /// The resolved manifest, written into the directory as `manifest.toml`.
    pub manifest: String,
}

impl RunOptions {
    /// Returns the most stages that a run with these options may have at a time.
    pub fn stages_max(&self) -> usize {
        match self.stages_at_a_time {
            // A run with one thread keeps to one core.
            0 if self.threads == 1 => 1,
            // One more than threads fills the gaps in which others read and write.
            0 => (self.threads + 1).min(STAGES_TRIED_MAX),
            given => given,
        }
    }
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            until: None,
            force: Vec::new(),
            frozen: false,
            replace: false,
            keep: Keep::Targets,
            stages_at_a_time: 1,
            threads: 1,
            memory: Budget::new(u64::MAX),
            snapshot_interval: Duration::from_secs(600),
            attempts_max: None,
            command: String::new(),
            program: String::new(),
            manifest: String::new(),
        }
    }
}

/// The most stages at a time whose schedule is predicted for the best one: few builds have more stages ready.
const STAGES_TRIED_MAX: usize = 8;

/// Plans and runs the stages of a [`Work`] in a directory.
pub struct Orchestrator<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) directory: PathBuf,
    pub(crate) work: &'a dyn Work,
    pub(crate) options: RunOptions,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) turns: Option<&'a dyn Turns>,
}

/// A flag that is never raised.
static NEVER: AtomicBool = AtomicBool::new(false);

impl<'a> Orchestrator<'a> {
    /// Makes an orchestrator without an observer or a stop flag.
    pub fn new(disk: &'a dyn Disk, directory: &Path, work: &'a dyn Work, options: RunOptions) -> Self {
        Orchestrator {
            disk,
            directory: directory.to_path_buf(),
            work,
            options,
            observer: &SilentObserver,
            stop: &NEVER,
            turns: None,
        }
    }

    /// Sets the observer.
    #[must_use]
    pub fn observer(mut self, observer: &'a dyn Observer) -> Self {
        self.observer = observer;
        self
    }

    /// Sets the stop flag, which a signal handler raises.
    #[must_use]
    pub fn stop(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = stop;
        self
    }

    /// Sets the order in which threads of stages side by side go on.
    #[must_use]
    pub fn turns(mut self, turns: &'a dyn Turns) -> Self {
        self.turns = Some(turns);
        self
    }

    /// Makes the plan that [`run`](Self::run) would start with. Writes nothing and takes no lock.
    ///
    /// # Errors
    /// As [`crate::planning::plan`], or if the journal cannot be read.
    pub fn plan(&self) -> Result<Plan> {
        let journal = Contents::read(self.disk, &journal_path(&self.directory))?;
        let state = JournalState::replay(&journal.entries);
        let forced = self.options.force.iter().cloned().collect();
        let found = survey(self.disk, &self.directory, self.work)?;
        let space = self.space(&found)?;
        let graph = self.work.graph();
        plan_of(graph, &evaluate(graph, &state, &found), &found, &space, &self.plan_options(forced))
    }

    /// Predicts a run of a plan with free disk space: with the number of stages at a time of the options, or
    /// with the best one if that is 0.
    pub fn schedule(&self, plan: &Plan, disk_free: u64) -> SchedulePrediction {
        let RunOptions { stages_at_a_time, threads, memory, .. } = self.options;
        let limits = Limits {
            stages: self.options.stages_max(),
            threads,
            reserved: Reservation {
                memory_bytes: memory.bytes(),
                disk_bytes: disk_free.saturating_sub(plan.prediction.disk_bytes),
            },
        };
        match stages_at_a_time {
            0 => schedule::fastest(self.work.graph(), plan, &limits),
            _ => schedule::predict(self.work.graph(), plan, &limits),
        }
    }

    /// Measures the free disk space.
    pub fn free_bytes(&self) -> Result<u64> {
        self.disk.free_bytes(&self.directory).map_err(|source| unusable(&self.directory, source))
    }

    /// Measures the disk space that is already taken.
    fn space(&self, found: &Inspections) -> Result<Space> {
        let folders = self.directories();
        let folders = folders.iter().map(PathBuf::as_path);
        Space::survey(self.disk, &self.directory, found, folders).map_err(|source| unusable(&self.directory, source))
    }

    /// Checks that the directory can be a run directory. Writes nothing.
    ///
    /// # Errors
    /// [`PipelineError::Preflight`] if it holds foreign files, or cannot be read.
    pub fn check_directory(&self) -> Result<()> {
        let holds = || holds_artifacts(self.disk, &self.directory, self.work);
        Directory::check(self.disk, &self.directory, &holds)
    }

    /// Checks that the available resources suffice for what a plan predicts.
    pub fn preflight(&self, prediction: &PlanPrediction) -> Result<()> {
        Ok(self.resources()?.check(prediction, &self.directory)?)
    }

    /// Measures the available resources.
    fn resources(&self) -> Result<Resources> {
        Ok(Resources {
            memory: self.options.memory,
            memory_available: clock::attainable_bytes(),
            // Stages reuse or replace the scratch files of those before.
            disk_free: self.free_bytes()?.saturating_add(self.disk.scratch_bytes(&self.directory)),
        })
    }

    /// Checks that the options allow a plan: finished files for other parameters are replaced only on request.
    pub fn allows(&self, plan: &Plan) -> Result<()> {
        if self.options.replace || plan.replaced.is_empty() {
            return Ok(());
        }
        Err(PipelineError::Replaces { directory: self.directory.clone(), replaced: plan.replaced.clone() })
    }

    /// Locks the directory.
    pub(crate) fn open(&self) -> Result<Directory<'_>> {
        let holds_artifacts = || holds_artifacts(self.disk, &self.directory, self.work);
        Directory::open(self.disk, &self.directory, &self.options.command, &holds_artifacts)
    }

    pub(crate) fn plan_options(&self, force: BTreeSet<String>) -> PlanOptions {
        PlanOptions { until: self.options.until.clone(), force, frozen: self.options.frozen, keep: self.options.keep }
    }

    /// Returns the folders that hold artifacts, and the directory itself.
    pub(crate) fn directories(&self) -> BTreeSet<PathBuf> {
        let mut directories = BTreeSet::from([self.directory.clone()]);
        for artifact in self.work.graph().artifacts().filter(|artifact| artifact.kind.is_file()) {
            let path = artifact.name.below(&self.directory);
            directories.extend(path.parent().map(Path::to_path_buf));
        }
        directories
    }
}
