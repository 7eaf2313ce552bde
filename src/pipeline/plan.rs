//! The plan: which stages run, and why; a pure function of graph, journal and what is on disk.
//!
//! An artifact is *fresh* if its file is there, undamaged, and was made for what is now asked for:
//! its fingerprint in the journal agrees with the declaration and with the digests of its sources. A
//! target that the journal does not know is *adopted* if its header agrees. A stage runs if
//!
//! * one of its outputs that is wanted for its own sake is not fresh,
//! * or the user forces it,
//! * or a stage that runs reads an intermediate of its that is not fresh.
//!
//! Contents depend on fingerprints alone, so what is merely absent, damaged or forced is expected to
//! come out with the digest it had, and nothing after it is planned. If it does come out otherwise,
//! the next plan says so: plans are made anew after each stage, and one that turns out as it was
//! stops the change there.

use std::collections::{BTreeMap, BTreeSet};

use disk::Digest;
use serde::Serialize;

use crate::artifact::{ArtifactKind, ArtifactName, ArtifactSpec, Found};
use crate::error::PipelineError;
use crate::fingerprint::{Fingerprint, short};
use crate::graph::Graph;
use crate::reason::Reason;
use crate::stage::{Cost, StageName, StageSpec};
use crate::state::State;

/// What a look at every file of a run directory found.
pub type Findings = BTreeMap<ArtifactName, Found>;

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
    pub steps: Vec<Step>,
    /// Stages that need not run.
    pub fresh: Vec<Settled>,
    /// Files to take over on the word of their headers, with their fingerprints and digests.
    pub adopted: Vec<Adopted>,
    /// Intermediates that are no longer needed.
    pub removable: Vec<ArtifactName>,
    /// What the steps are predicted to take.
    pub prediction: Prediction,
}

/// A stage to run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Which.
    pub stage: StageName,
    /// Why.
    #[serde(flatten)]
    pub reason: Reason,
    /// Prediction.
    pub cost: Cost,
}

/// A stage that need not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Settled {
    /// Which.
    pub stage: StageName,
    /// Why not.
    pub why: Why,
}

/// Why a stage need not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Its outputs are as the journal says.
    Recorded,
    /// The headers of its outputs say what is asked for; the journal does not know them.
    Adopted,
    /// It makes only intermediates, and nothing that runs reads them.
    NotNeeded,
    /// It comes after the stage at which the user wants to stop.
    NotAsked,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Why::Recorded => "up to date",
            Why::Adopted => "up to date by its header, which the journal takes over",
            Why::NotNeeded => "not needed",
            Why::NotAsked => "after the stage to stop at",
        })
    }
}

/// A file to take over on the word of its header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Adopted {
    /// Which.
    pub artifact: ArtifactName,
    /// The digest that its header holds.
    #[serde(with = "crate::fingerprint::hex")]
    pub digest: Digest,
    /// The fingerprint it is given.
    #[serde(skip)]
    pub fingerprint: Fingerprint,
}

/// What the steps of a plan are predicted to take in all.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Prediction {
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

/// The state of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// As it should be.
    Fresh {
        digest: Digest,
        /// Only its header says so.
        adopted: bool,
    },
    /// To be made, if wanted; with this digest, if that can be foreseen.
    Stale {
        reason: Reason,
        expected: Option<Digest>,
    },
}

impl Freshness {
    fn digest(&self) -> Option<Digest> {
        match self {
            Freshness::Fresh { digest, .. } => Some(*digest),
            Freshness::Stale { expected, .. } => *expected,
        }
    }

    pub(crate) fn reason(&self) -> Option<&Reason> {
        match self {
            Freshness::Fresh { .. } => None,
            Freshness::Stale { reason, .. } => Some(reason),
        }
    }
}

/// Makes a plan.
///
/// # Errors
/// [`PipelineError::UnknownStage`] if `until` or `force` names none; [`PipelineError::Frozen`] if
/// something is stale and must not be rebuilt.
pub fn plan(
    graph: &Graph,
    state: &State,
    found: &Findings,
    options: &PlanOptions,
) -> Result<Plan, PipelineError> {
    let last = match &options.until {
        Some(name) => find(graph, name)?,
        None => graph.stages().len(),
    };
    let mut forced = BTreeSet::new();
    for name in &options.force {
        forced.insert(find(graph, name)?);
    }
    let freshness = evaluate(graph, state, found);
    let reasons = demand(graph, &freshness, &forced, options.keep);

    let mut plan = Plan::default();
    for (at, (stage, reason)) in graph.stages().iter().zip(reasons).enumerate() {
        match reason {
            Some(reason) if at <= last => plan.steps.push(Step {
                stage: stage.name.clone(),
                reason,
                cost: stage.cost,
            }),
            reason => plan.fresh.push(Settled {
                stage: stage.name.clone(),
                why: match reason {
                    Some(_) => Why::NotAsked,
                    None => why_settled(stage, &freshness),
                },
            }),
        }
    }
    if options.frozen {
        let stale = |step: &&Step| step.reason.is_stale();
        let stale: Vec<Step> = plan.steps.iter().filter(stale).cloned().collect();
        if !stale.is_empty() {
            return Err(PipelineError::Frozen { stale });
        }
    }
    for (name, freshness) in &freshness {
        if let Freshness::Fresh { digest, adopted: true } = freshness {
            plan.adopted.push(adopt(graph, name, *digest, freshness_digests(graph, name, &freshness_of(&plan, ()))));
        }
    }
    Ok(plan)
}
