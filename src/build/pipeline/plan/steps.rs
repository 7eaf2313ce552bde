//! The parts of a plan.

use crate::artifact::ArtifactName;
use crate::fingerprint::Fingerprint;
use crate::plan::reason::Reason;
use crate::stage::{Cost, StageName};
use disk::Digest;
use serde::Serialize;
use std::collections::BTreeSet;

/// Which artifacts are kept once no stage needs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Targets and reports.
    #[default]
    Targets,
    /// Intermediates too.
    All,
}

/// Options of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanOptions {
    /// The last stage to run, in the order of the graph.
    pub until: Option<String>,
    /// Stages to run although they are fresh, without the stages after them.
    pub force: BTreeSet<String>,
    /// Whether to refuse to rebuild what exists but is stale.
    pub frozen: bool,
    /// Which artifacts are kept.
    pub keep: Keep,
}

/// The stages that run, those that need not, and the predicted cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plan {
    /// Stages to run, in order.
    pub steps: Vec<PlannedStage>,
    /// Stages that need not run.
    pub fresh: Vec<SettledStage>,
    /// Files to adopt by their headers.
    pub adopted: Vec<AdoptedArtifact>,
    /// Intermediates that no stage will read.
    pub removable: Vec<ArtifactName>,
    /// Finished files for other parameters that the steps replace.
    pub replaced: Vec<ReplacedArtifact>,
    /// The predicted cost of the steps.
    pub prediction: PlanPrediction,
}

/// A stage to run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedStage {
    /// Which.
    pub stage: StageName,
    /// The reason why it runs.
    pub reason: Reason,
    /// The predicted cost.
    pub cost: Cost,
    /// The part of its disk space that is already taken: an interrupted stage continues in it.
    pub disk_there_bytes: u64,
    /// The change of the space that is taken, once it has ended: by its outputs, and what they replace.
    #[serde(skip)]
    pub disk_kept_bytes: i64,
    /// The space of intermediates that no step after it needs.
    #[serde(skip)]
    pub disk_released_bytes: u64,
}

/// A stage that need not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettledStage {
    /// Which.
    pub stage: StageName,
    /// The reason why it need not run.
    pub why: SettledReason,
}

/// Why a stage need not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SettledReason {
    /// Its outputs match the journal.
    Recorded,
    /// Its outputs are not in the journal, and their headers match the declaration.
    Adopted,
    /// It makes only intermediates, and no stage that runs reads them.
    NotNeeded,
    /// It would run, but comes after the last requested stage.
    #[serde(rename = "not-asked")]
    NotRequested,
}

/// A sentence that follows the words of the [`Standing`](crate::plan::Standing).
impl std::fmt::Display for SettledReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SettledReason::Recorded => "its outputs match the journal",
            SettledReason::Adopted => "its outputs are adopted (headers checked)",
            SettledReason::NotNeeded => "it makes only intermediates, and no stage to run reads them",
            SettledReason::NotRequested => "it comes after the last stage requested",
        })
    }
}

/// A file to adopt by its header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AdoptedArtifact {
    /// Which.
    pub artifact: ArtifactName,
    /// The digest in its header.
    pub digest: Digest,
    /// The fingerprint to record.
    #[serde(skip)]
    pub fingerprint: Fingerprint,
}

/// A finished file for other parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplacedArtifact {
    /// Which.
    pub artifact: ArtifactName,
    /// The parameter that differs.
    pub field: String,
    /// The value in the file.
    pub was: String,
    /// The requested value.
    pub is: String,
}

/// The predicted cost of all steps of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlanPrediction {
    /// Positions processed.
    pub positions: u64,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Peak memory.
    pub memory_bytes: u64,
    /// The stage with the peak.
    pub memory_stage: Option<StageName>,
    /// Peak disk space, in addition to the space that is already taken.
    pub disk_bytes: u64,
}
