//! The seam between the pipeline and the stages: what a stage is given, and what it gives back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use disk::{Disk, DiskError, Stopwatch};

use crate::artifact::{ArtifactName, ArtifactSpec, Inspection};
use crate::budget::Budget;
use crate::directory::Snapshots;
use crate::graph::Graph;
use crate::progress::StageProgress;
use crate::report::{StageError, StageReport};
use crate::stage::StageSpec;

/// The work that a pipeline orders: implemented by the stages, and by a toy in tests.
pub trait Work: Sync {
    /// All stages and artifacts, in the order in which they run.
    fn graph(&self) -> &Graph;

    /// A cheap look at the file of an artifact, in the run directory or in a scratch one. Never
    /// called for an [`ArtifactKind::Verification`](crate::ArtifactKind::Verification).
    ///
    /// # Errors
    /// If the operating system fails: that is no reason to rebuild the file, so nothing runs. What is
    /// wrong with its bytes is a [`Inspection`].
    fn inspect(&self, disk: &dyn Disk, path: &Path, artifact: &ArtifactSpec) -> Result<Inspection, DiskError>;

    /// The folders of a run directory in which the artifacts of any graph of this work lie.
    fn folders(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Whether an artifact of any graph of this work can have this name.
    fn is_name(&self, name: &ArtifactName) -> bool;

    /// Whether a file begins as the artifacts of this work do, whole or damaged. What cannot be read does not.
    fn is_ours(&self, disk: &dyn Disk, path: &Path) -> bool;

    /// Whether the file of a name is a complete artifact, of this graph or of one for another method or other bounds.
    ///
    /// # Errors
    /// If the operating system fails.
    fn recognises(&self, disk: &dyn Disk, path: &Path, name: &ArtifactName) -> Result<bool, DiskError> {
        let _ = (disk, path, name);
        Ok(false)
    }

    /// Where stages have snapshots outside of the run directory, of this run alone, as seen from this machine.
    fn apart(&self, disk: &dyn Disk, directory: &Path) -> Option<PathBuf> {
        let _ = (disk, directory);
        None
    }

    /// Runs a stage: reads its inputs, publishes its outputs, all at the paths that `context` gives.
    ///
    /// # Errors
    /// [`StageError::Stopped`] if it left early because [`StageContext::stop_requested`]; anything
    /// else fails the run. No output may then have a final name unless it is complete.
    fn run(&self, stage: &StageSpec, context: &StageContext<'_>) -> Result<StageReport, StageError>;
}

/// Where and with what a stage runs.
pub struct StageContext<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) directory: &'a Path,
    /// In a single-stage run: where outputs go, and which artifacts were made there.
    pub(crate) scratch: Option<ScratchArtifacts<'a>>,
    pub(crate) snapshots: Snapshots<'a>,
    pub(crate) threads: usize,
    pub(crate) memory: Budget,
    pub(crate) progress: &'a StageProgress,
    pub(crate) stop: &'a AtomicBool,
}

/// The scratch directory of a single-stage run.
pub(crate) struct ScratchArtifacts<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) made: &'a BTreeSet<ArtifactName>,
}

impl<'a> StageContext<'a> {
    /// The door to the operating system.
    pub fn disk(&self) -> &'a dyn Disk {
        self.disk
    }

    /// Where to read an input.
    pub fn input(&self, name: &ArtifactName) -> PathBuf {
        match &self.scratch {
            Some(scratch) if scratch.made.contains(name) => name.below(scratch.directory),
            _ => name.below(self.directory),
        }
    }

    /// Where to publish an output.
    pub fn output(&self, name: &ArtifactName) -> PathBuf {
        match &self.scratch {
            Some(scratch) => name.below(scratch.directory),
            None => name.below(self.directory),
        }
    }

    /// The place for snapshots of unfinished work.
    pub fn snapshots(&self) -> &Snapshots<'a> {
        &self.snapshots
    }

    /// Measures time from here on.
    pub fn stopwatch(&self) -> Stopwatch<'a> {
        Stopwatch::start(self.disk.clock())
    }

    /// Threads to use; at least 1.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Memory to stay within.
    pub fn memory(&self) -> Budget {
        self.memory
    }

    /// The progress of this stage, to be advanced from any thread.
    pub fn progress(&self) -> &'a StageProgress {
        self.progress
    }

    /// Whether to stop at the end of the current unit: snapshot if worth it, then return
    /// [`StageError::Stopped`]. As cheap as a load.
    pub fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The flag behind [`stop_requested`](Self::stop_requested), for engines that know no pipeline.
    pub fn stop_flag(&self) -> &'a AtomicBool {
        self.stop
    }
}
