//! The seam between the pipeline and the stages: what a stage is given, and what it gives back.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use disk::{Digest, Disk, DiskError, Stopwatch};
use serde::{Deserialize, Serialize};

use crate::artifact::{ArtifactName, ArtifactSpec, Found};
use crate::budget::Budget;
use crate::directory::Snapshots;
use crate::graph::Graph;
use crate::progress::Progress;
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
    /// wrong with its bytes is a [`Found`].
    fn inspect(&self, disk: &dyn Disk, path: &Path, artifact: &ArtifactSpec) -> Result<Found, DiskError>;

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
    pub(crate) scratch: Option<Scratch<'a>>,
    pub(crate) snapshots: Snapshots<'a>,
    pub(crate) threads: usize,
    pub(crate) memory: Budget,
    pub(crate) progress: &'a Progress,
    pub(crate) stop: &'a AtomicBool,
}

/// The scratch directory of a single-stage run.
pub(crate) struct Scratch<'a> {
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
    pub fn progress(&self) -> &'a Progress {
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

/// What a stage says about its run; time and memory are measured around it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// Positions it worked through.
    pub positions: u64,
    /// Anything worth counting: passes, changes, cache misses.
    pub counters: BTreeMap<String, Counter>,
    /// Digests of files without a checksum of their own, as the stage wrote them: a file that reads otherwise afterwards was
    /// damaged meanwhile.
    #[serde(skip)]
    pub written: BTreeMap<ArtifactName, Digest>,
}

impl StageReport {
    /// A report without counters.
    pub fn new(positions: u64) -> Self {
        StageReport { positions, ..StageReport::default() }
    }

    /// Adds the digest of a file as it was written.
    #[must_use]
    pub fn wrote(mut self, name: ArtifactName, digest: Digest) -> Self {
        self.written.insert(name, digest);
        self
    }

    /// Adds a counter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Counter>) -> Self {
        self.counters.insert(name.to_owned(), value.into());
        self
    }
}

/// A counted or measured number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Counter {
    /// Counted.
    Integer(u64),
    /// Measured; JSON cannot say infinity or NaN, which come back as 0.
    Real(#[serde(deserialize_with = "real_or_zero")] f64),
}

impl Counter {
    /// The number, rounded if it is a large integer.
    pub fn as_f64(self) -> f64 {
        match self {
            Counter::Integer(value) => value as f64,
            Counter::Real(value) => value,
        }
    }
}

impl From<u64> for Counter {
    fn from(value: u64) -> Self {
        Counter::Integer(value)
    }
}

impl From<f64> for Counter {
    fn from(value: f64) -> Self {
        Counter::Real(value)
    }
}

fn real_or_zero<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(0.0))
}

/// Why a stage did not finish.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// It was asked to stop, and did; it continues when run again.
    #[error("stopped on request")]
    Stopped,
    /// A file operation failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// An artifact is not what it must be: a checksum differs, or a check of its content failed.
    /// Recorded as damage, so the next run rebuilds it.
    #[error("{artifact} is damaged: {what}")]
    Damaged {
        /// Which artifact.
        artifact: ArtifactName,
        /// What was expected and what was found, in words.
        what: String,
        /// Whether a stage that reads it does not notice: a score is wrong, but every checksum is right. What was made
        /// from it since it was last known good is then rebuilt too.
        silent: bool,
    },
    /// Anything else.
    #[error("{0}")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StageError {
    /// Wraps any error, or a message.
    pub fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        StageError::Failed(error.into())
    }

    /// Threads cannot be had, with the remedy.
    pub fn no_threads(error: impl fmt::Display) -> Self {
        StageError::failed(format!(
            "threads cannot be started: {error}; allow more (ulimit -u, ulimit -v, or the pids control \
             group), or ask for fewer with --threads"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_survive_json() {
        let report = StageReport::new(7).with("passes", 50u64).with("share", 0.25).with("largest", u64::MAX);
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<StageReport>(&text).unwrap(), report);
        let strange = StageReport::new(7).with("strange", f64::NAN);
        let text = serde_json::to_string(&strange).unwrap();
        let back: StageReport = serde_json::from_str(&text).unwrap();
        assert_eq!(back.counters["strange"].as_f64(), 0.0);
    }
}
