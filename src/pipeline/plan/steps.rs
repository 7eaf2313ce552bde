//! The parts of a plan: what runs and why, what need not, and what it takes.

use std::collections::BTreeSet;

use disk::Digest;
use serde::Serialize;

use crate::artifact::ArtifactName;
use crate::fingerprint::Fingerprint;
use crate::plan::reason::Reason;
use crate::stage::{Cost, StageName};

/// What is kept once it is no longer needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Targets and reports.
    #[default]
    Targets,
    /// Intermediates as well: they are then wanted for their own sake.
    All,
}

/// What the user asks of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanOptions {
    /// The last stage to run, in the order of the graph.
    pub until: Option<String>,
    /// Stages to run though they are fresh. Nothing else follows from it.
    pub force: BTreeSet<String>,
    /// Refuse to rebuild what is there but stale.
    pub frozen: bool,
    /// What is kept.
    pub keep: Keep,
}

/// What would run now, and what need not.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plan {
    /// Stages to run, in order.
    pub steps: Vec<PlannedStage>,
    /// Stages that need not run.
    pub fresh: Vec<SettledStage>,
    /// Files to take over on the word of their headers, with their fingerprints and digests.
    pub adopted: Vec<AdoptedArtifact>,
    /// Intermediates that are no longer needed.
    pub removable: Vec<ArtifactName>,
    /// Finished files that the steps replace by files of something else.
    pub replaced: Vec<ReplacedArtifact>,
    /// What the steps are predicted to take.
    pub prediction: PlanPrediction,
}

/// A stage to run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedStage {
    /// Which.
    pub stage: StageName,
    /// Why.
    pub reason: Reason,
    /// Prediction.
    pub cost: Cost,
    /// Of the disk space that it takes at most, what is taken already: an interrupted stage goes on in it.
    pub disk_there_bytes: u64,
}

/// A stage that need not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettledStage {
    /// Which.
    pub stage: StageName,
    /// Why not.
    pub why: SettledReason,
}

/// Why a stage need not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SettledReason {
    /// Its outputs are as the journal says.
    Recorded,
    /// The headers of its outputs say what is asked for; the journal does not know them.
    Adopted,
    /// It makes only intermediates, and nothing that runs reads them.
    NotNeeded,
    /// It would run, but comes after the last stage that was requested.
    #[serde(rename = "not-asked")]
    NotRequested,
}

/// The reason, to follow the words of its [`Standing`](crate::Standing).
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

/// A file to take over on the word of its header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AdoptedArtifact {
    /// Which.
    pub artifact: ArtifactName,
    /// The digest that its header holds.
    #[serde(with = "crate::fingerprint::hex")]
    pub digest: Digest,
    /// The fingerprint it is given.
    #[serde(skip)]
    pub fingerprint: Fingerprint,
}

/// A finished file of something else than what is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplacedArtifact {
    /// Which.
    pub artifact: ArtifactName,
    /// The parameter that differs.
    pub field: String,
    /// The value that it was made for.
    pub was: String,
    /// The value now asked for.
    pub is: String,
}

/// What the steps of a plan are predicted to take in all.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlanPrediction {
    /// Positions worked through.
    pub positions: u64,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Peak memory.
    pub memory_bytes: u64,
    /// The stage that takes it.
    pub memory_stage: Option<StageName>,
    /// The most disk space taken at any time, in addition to what is taken now.
    pub disk_bytes: u64,
}
