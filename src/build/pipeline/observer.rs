//! Events of a run, and their observers.

use crate::artifact::ArtifactName;
use crate::journal::{Measured, RunEnd};
use crate::plan::{Reason, StageCounts};
use crate::progress::ProgressReading;
use crate::stage::{Cost, StageName};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// An observer of a run. Called from the thread of the run and, for [`Event::Progress`], from another.
pub trait Observer: Sync {
    /// Handles an event. Must return quickly, because the run blocks on it.
    fn notice(&self, event: &Event);

    /// Returns the time between reports of progress.
    fn interval(&self) -> Duration {
        Duration::from_millis(250)
    }
}

/// An observer that ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilentObserver;

impl Observer for SilentObserver {
    fn notice(&self, _event: &Event) {}
}

/// An event of a run. Serialises to one JSON object with its name under `event`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the doc of a variant explains its fields")]
pub enum Event {
    /// The run starts: the directory is locked, and the plan is made.
    RunStarted {
        /// The run directory, or the scratch directory of a single-stage run.
        #[serde(serialize_with = "crate::path_text::one")]
        directory: PathBuf,
        /// The number of this run in its directory, from 1.
        run: u64,
        /// Steps of the plan; later steps may turn out to be unnecessary.
        steps: usize,
        /// The stages of the plan by standing.
        counts: StageCounts,
        /// Predicted seconds of all steps.
        seconds: f64,
        /// Predicted seconds of the run: fewer where stages run side by side.
        run_seconds: f64,
        /// The stages of the plan.
        #[serde(skip)]
        stages: Vec<StageName>,
    },
    /// Files that were not in the journal were adopted by their headers.
    Adopted { artifacts: Vec<ArtifactName> },
    /// The end of the journal was torn by a crash and has been truncated.
    JournalCut {
        /// Bytes truncated.
        bytes: u64,
    },
    /// A stage begins.
    StageStarted {
        stage: StageName,
        reason: Reason,
        /// Its number among the steps of this run, from 1.
        number: usize,
        /// The steps of this run, as currently planned.
        steps: usize,
        cost: Cost,
    },
    /// A running stage reports its progress, at [`Observer::interval`].
    Progress {
        stage: StageName,
        /// Its progress.
        #[serde(flatten)]
        reading: ProgressReading,
        /// Seconds since the stage began.
        seconds: f64,
    },
    /// A stage is done and its outputs are durable.
    StageDone { stage: StageName, measured: Measured, bytes: u64 },
    /// A stage stopped early on request.
    StageStopped { stage: StageName },
    /// A stage failed.
    StageFailed { stage: StageName, message: String },
    /// Damage was found; the artifact will be rebuilt.
    DamageFound { artifact: ArtifactName, what: String },
    /// Unneeded files were removed.
    Removed { artifacts: Vec<ArtifactName>, bytes: u64 },
    /// The run is over.
    RunEnded {
        how: RunEnd,
        /// Wall-clock seconds of the run.
        seconds: f64,
    },
}
