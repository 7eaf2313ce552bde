//! The orchestrator: carries out the plan, one stage at a time.
//!
//! Each stage is: start in the journal, work, outputs durable under their final names, done in the
//! journal. Killed in between, the next run finds the outputs absent, or complete and adopts or
//! remakes them. After each stage the plan is made anew.

mod execution;
mod explain;
mod garbage;
mod heartbeat_observer;
mod run;
mod single;
#[cfg(test)]
mod tests;

pub use explain::{ComparedField, ExplainedArtifact, Explanation};
pub use garbage::{Garbage, GarbageItem, GarbageReason};
pub use heartbeat_observer::HeartbeatObserver;
pub use run::{CompletedStage, RunSummary};
pub use single::{OutputComparison, ScratchDirectory, StageOutput, StageRerun};

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use disk::{Disk, clock};

use crate::budget::Budget;
use crate::directory::{Directory, Inspections, Space, holds_artifacts, journal_path, survey};
use crate::error::{PipelineError, unusable};
use crate::journal::{Contents, JournalState};
use crate::observer::{Observer, SilentObserver};
use crate::plan::{Keep, Plan, PlanOptions, evaluate, plan_of};
use crate::preflight::Resources;
use crate::work::Work;

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The last stage to run, in the order of the graph.
    pub until: Option<String>,
    /// Stages to run though they are fresh.
    pub force: Vec<String>,
    /// Refuse to rebuild what is there but stale.
    pub frozen: bool,
    /// Whether finished files may be replaced by files of something else: other rules, other positions.
    pub replace: bool,
    /// What is kept.
    pub keep: Keep,
    /// Threads for a stage; at least 1.
    pub threads: usize,
    /// Memory for a stage.
    pub memory: Budget,
    /// How often long stages snapshot.
    pub snapshot_interval: Duration,
    /// The command line, for the lock and the journal.
    pub command: String,
    /// Name and version of the program, for the journal.
    pub program: String,
    /// The resolved manifest, to be put into the directory as `manifest.toml`.
    pub manifest: String,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            until: None,
            force: Vec::new(),
            frozen: false,
            replace: false,
            keep: Keep::Targets,
            threads: 1,
            memory: Budget::new(u64::MAX),
            snapshot_interval: Duration::from_secs(600),
            command: String::new(),
            program: String::new(),
            manifest: String::new(),
        }
    }
}

/// Plans and runs the stages of a [`Work`] in a directory.
pub struct Orchestrator<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) directory: PathBuf,
    pub(crate) work: &'a dyn Work,
    pub(crate) options: RunOptions,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) stop: &'a AtomicBool,
}

/// A flag that nobody raises.
static NEVER: AtomicBool = AtomicBool::new(false);

impl<'a> Orchestrator<'a> {
    /// An orchestrator that nobody watches or stops.
    pub fn new(disk: &'a dyn Disk, directory: &Path, work: &'a dyn Work, options: RunOptions) -> Self {
        Orchestrator {
            disk,
            directory: directory.to_path_buf(),
            work,
            options,
            observer: &SilentObserver,
            stop: &NEVER,
        }
    }

    /// Sets who watches.
    #[must_use]
    pub fn observer(mut self, observer: &'a dyn Observer) -> Self {
        self.observer = observer;
        self
    }

    /// Sets the flag that asks to stop, raised by a signal handler.
    #[must_use]
    pub fn stop(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = stop;
        self
    }

    /// The plan that [`run`](Self::run) would begin with. Writes nothing and takes no lock.
    ///
    /// # Errors
    /// As [`crate::plan::plan`], or if the journal cannot be read.
    pub fn plan(&self) -> Result<Plan, PipelineError> {
        let journal = Contents::read(self.disk, &journal_path(&self.directory))?;
        let state = JournalState::replay(&journal.entries);
        let forced = self.options.force.iter().cloned().collect();
        let found = survey(self.disk, &self.directory, self.work)?;
        let space = self.space(&found)?;
        let graph = self.work.graph();
        plan_of(graph, &evaluate(graph, &state, &found), &found, &space, &self.plan_options(forced))
    }

    /// The disk space that is taken already.
    fn space(&self, found: &Inspections) -> Result<Space, PipelineError> {
        let folders = self.directories();
        let folders = folders.iter().map(PathBuf::as_path);
        Space::survey(self.disk, &self.directory, found, folders).map_err(|source| unusable(&self.directory, source))
    }

    /// Whether the directory can be a run directory. Writes nothing.
    ///
    /// # Errors
    /// [`PipelineError::Preflight`] if it holds files of others, or cannot be read.
    pub fn check_directory(&self) -> Result<(), PipelineError> {
        let holds = || holds_artifacts(self.disk, &self.directory, self.work);
        Directory::check(self.disk, &self.directory, &holds)
    }

    /// Whether the room there is suffices for a plan.
    ///
    /// # Errors
    /// [`PipelineError::Preflight`] with what is short.
    pub fn preflight(&self, plan: &Plan) -> Result<(), PipelineError> {
        let directory = &self.directory;
        let disk_free = self.disk.free_bytes(directory);
        let room = Resources {
            memory: self.options.memory,
            memory_available: clock::attainable_bytes(),
            disk_free: disk_free.map_err(|source| unusable(directory, source))?,
        };
        Ok(room.check(&plan.prediction, directory)?)
    }

    /// Whether the options allow a plan: finished files of something else are replaced only if asked to.
    ///
    /// # Errors
    /// [`PipelineError::Replaces`].
    pub fn allows(&self, plan: &Plan) -> Result<(), PipelineError> {
        if self.options.replace || plan.replaced.is_empty() {
            return Ok(());
        }
        Err(PipelineError::Replaces { directory: self.directory.clone(), replaced: plan.replaced.clone() })
    }

    /// Takes the directory.
    pub(crate) fn open(&self) -> Result<Directory<'_>, PipelineError> {
        let holds_artifacts = || holds_artifacts(self.disk, &self.directory, self.work);
        Directory::open(self.disk, &self.directory, &self.options.command, &holds_artifacts)
    }

    pub(crate) fn plan_options(&self, force: BTreeSet<String>) -> PlanOptions {
        PlanOptions { until: self.options.until.clone(), force, frozen: self.options.frozen, keep: self.options.keep }
    }

    /// The directories that hold files of a run.
    pub(crate) fn directories(&self) -> BTreeSet<PathBuf> {
        let mut directories = BTreeSet::from([self.directory.clone()]);
        for artifact in self.work.graph().artifacts().filter(|artifact| artifact.kind.is_file()) {
            let path = artifact.name.below(&self.directory);
            directories.extend(path.parent().map(Path::to_path_buf));
        }
        directories
    }
}
