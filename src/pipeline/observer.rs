//! Events of a run, and their observers.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::artifact::ArtifactName;
use crate::journal::{Measured, RunEnd};
use crate::path_text;
use crate::plan::{Reason, StageCounts};
use crate::progress::ProgressReading;
use crate::stage::{Cost, StageName};

/// An observer of a run. Called from the thread of the run and, for [`Event::Progress`], from another.
pub trait Observer: Sync {
    /// Handles an event. It should return soon: the run waits.
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
pub enum Event {
    /// The run starts: the directory is locked, and the plan is made.
    RunStarted {
        /// The run directory, or the scratch directory of a single-stage run.
        #[serde(serialize_with = "path_text::one")]
        directory: PathBuf,
        /// The number of this run in its directory, from 1.
        run: u64,
        /// Steps of the plan; later steps may turn out to be unnecessary.
        steps: usize,
        /// The stages of the plan by standing.
        counts: StageCounts,
        /// Predicted seconds of all steps.
        seconds: f64,
    },
    /// Files that were not in the journal were adopted by their headers.
    Adopted {
        /// Which.
        artifacts: Vec<ArtifactName>,
    },
    /// The end of the journal was torn by a crash and has been truncated.
    JournalCut {
        /// Bytes truncated.
        bytes: u64,
    },
    /// A stage begins.
    StageStarted {
        /// Which.
        stage: StageName,
        /// Why.
        reason: Reason,
        /// Its number among the steps of this run, from 1.
        number: usize,
        /// The steps of this run, as currently planned.
        steps: usize,
        /// Prediction.
        cost: Cost,
    },
    /// A running stage reports its progress, at [`Observer::interval`].
    Progress {
        /// Which.
        stage: StageName,
        /// Its progress.
        #[serde(flatten)]
        reading: ProgressReading,
        /// Seconds since the stage began.
        seconds: f64,
    },
    /// A stage is done and its outputs are durable.
    StageDone {
        /// Which.
        stage: StageName,
        /// Its measured cost.
        measured: Measured,
        /// Bytes of its outputs.
        bytes: u64,
    },
    /// A stage stopped early on request.
    StageStopped {
        /// Which.
        stage: StageName,
    },
    /// A stage failed.
    StageFailed {
        /// Which.
        stage: StageName,
        /// Why.
        message: String,
    },
    /// Damage was found; the artifact will be rebuilt.
    DamageFound {
        /// Which artifact.
        artifact: ArtifactName,
        /// What is wrong with it.
        what: String,
    },
    /// Files that are no longer needed were removed.
    Removed {
        /// Which.
        artifacts: Vec<ArtifactName>,
        /// Their total length.
        bytes: u64,
    },
    /// The run is over.
    RunEnded {
        /// How.
        how: RunEnd,
        /// Wall-clock seconds of the run.
        seconds: f64,
    },
}
