//! The interface between the pipeline and its stages.

use crate::artifact::{ArtifactName, ArtifactSpec, Inspection};
use crate::budget::Budget;
use crate::graph::Graph;
use crate::progress::StageProgress;
use crate::report::{StageError, StageReport};
use crate::snapshots::Snapshots;
use crate::stage::StageSpec;
use crate::stop_signal::StopSignal;
use disk::{Disk, DiskError, Stopwatch};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The stages of a pipeline: implemented by the crate `stages`, and by a toy in tests.
pub trait Work: Sync {
    /// Returns the graph of all stages and artifacts.
    fn graph(&self) -> &Graph;

    /// Inspects the file of an artifact, cheaply, in the run directory or a scratch directory. Never called for an
    /// [`ArtifactKind::Verification`](crate::ArtifactKind::Verification).
    ///
    /// # Errors
    /// If the operating system fails, which prevents the run. Wrong bytes are an [`Inspection`], not an error.
    fn inspect(&self, disk: &dyn Disk, path: &Path, artifact: &ArtifactSpec) -> Result<Inspection, DiskError>;

    /// Returns the folders of a run directory that hold artifacts of any graph of this work.
    fn folders(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Whether an artifact of any graph of this work can have this name.
    fn is_name(&self, name: &ArtifactName) -> bool;

    /// Whether a file begins like an artifact of this work, complete or damaged. False for an unreadable file.
    fn is_ours(&self, disk: &dyn Disk, path: &Path) -> bool;

    /// Whether the file of a name is a complete artifact, of this graph or of one for another method or other bounds.
    fn recognises(&self, disk: &dyn Disk, path: &Path, name: &ArtifactName) -> Result<bool, DiskError> {
        let _ = (disk, path, name);
        Ok(false)
    }

    /// Whether a file of a run directory belongs to the user although stages write it: it is neither an artifact nor
    /// strange, and is never removed. `name` is its path below the directory.
    fn is_kept(&self, name: &ArtifactName) -> bool {
        let _ = name;
        false
    }

    /// Returns the folder outside of the run directory in which stages of this run keep snapshots on this machine.
    fn local_snapshots(&self, disk: &dyn Disk, directory: &Path) -> Option<PathBuf> {
        let _ = (disk, directory);
        None
    }

    /// Runs a stage: reads its inputs and publishes its outputs, at the paths of `context`.
    ///
    /// # Errors
    /// [`StageError::Stopped`] if it ended early because of [`StageContext::stop_requested`]; any other error fails the
    /// run. Only complete outputs may have their final names.
    fn run(&self, stage: &StageSpec, context: &StageContext<'_>) -> Result<StageReport, StageError>;
}

/// The paths and resources of a running stage.
pub struct StageContext<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) directory: &'a Path,
    /// The scratch directory of a single stage.
    pub(crate) scratch: Option<ScratchArtifacts<'a>>,
    pub(crate) snapshots: Snapshots<'a>,
    pub(crate) threads: &'a AtomicUsize,
    pub(crate) memory: Budget,
    pub(crate) progress: &'a StageProgress,
    pub(crate) stop: StopSignal<'a>,
    pub(crate) company: Company,
}

/// Whether other stages may run while a stage runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    /// None: what the process takes is what the stage takes.
    Alone,
    /// Some: what the process takes is no measure of the stage.
    Others,
}

/// The scratch directory of a single stage, and the artifacts in it.
pub(crate) struct ScratchArtifacts<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) made: &'a BTreeSet<ArtifactName>,
}

impl<'a> StageContext<'a> {
    /// The disk.
    pub fn disk(&self) -> &'a dyn Disk {
        self.disk
    }

    /// Returns the path of an input.
    pub fn input(&self, name: &ArtifactName) -> PathBuf {
        match &self.scratch {
            Some(scratch) if scratch.made.contains(name) => name.below(scratch.directory),
            _ => name.below(self.directory),
        }
    }

    /// Returns the path at which to publish an output.
    pub fn output(&self, name: &ArtifactName) -> PathBuf {
        match &self.scratch {
            Some(scratch) => name.below(scratch.directory),
            None => name.below(self.directory),
        }
    }

    /// The snapshots of the stage.
    pub fn snapshots(&self) -> &Snapshots<'a> {
        &self.snapshots
    }

    /// Starts a stopwatch.
    pub fn stopwatch(&self) -> Stopwatch<'a> {
        Stopwatch::start(self.disk.clock())
    }

    /// Threads to use now; at least 1. They may become more, never less, if the stage [grows](StageSpec::grows).
    pub fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    /// The progress of the stage, which any thread may advance.
    pub fn progress(&self) -> &'a StageProgress {
        self.progress
    }

    /// Whether to stop at the end of the current unit: save a snapshot if worthwhile, then return
    /// [`StageError::Stopped`].
    pub fn stop_requested(&self) -> bool {
        self.stop.is_raised()
    }

    /// Whether the run has one stage at a time: then no other one has state in memory that it will use.
    pub fn is_alone(&self) -> bool {
        self.company == Company::Alone
    }

    /// The signal behind [`stop_requested`](Self::stop_requested), for solvers.
    pub fn stop_signal(&self) -> StopSignal<'a> {
        self.stop
    }
}
