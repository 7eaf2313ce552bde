//! The plan: which stages run, and why; a pure function of graph, journal and what is on disk.
//!
//! A stage runs if
//!
//! * one of its outputs that is wanted for its own sake is not fresh (module `freshness`),
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

use crate::artifact::{ArtifactKind, ArtifactName, Found};
use crate::error::PipelineError;
use crate::fingerprint::Fingerprint;
use crate::freshness::{Freshness, evaluate};
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

/// Makes a plan.
///
/// # Errors
/// [`PipelineError::UnknownStage`] if `until` or `force` names none; [`PipelineError::Frozen`] if
/// something is stale and must not be rebuilt.
pub fn plan(graph: &Graph, state: &State, found: &Findings, options: &PlanOptions) -> Result<Plan, PipelineError> {
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
    let runs: Vec<bool> = reasons.iter().map(Option::is_some).collect();

    let mut plan = Plan::default();
    for (at, (stage, reason)) in graph.stages().iter().zip(reasons).enumerate() {
        match reason {
            Some(reason) if at <= last => plan.steps.push(Step { stage: stage.name.clone(), reason, cost: stage.cost }),
            reason => plan.fresh.push(Settled {
                stage: stage.name.clone(),
                why: match reason {
                    Some(_) => Why::NotAsked,
                    None => why_settled(graph, stage, &freshness),
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
        if let Freshness::Fresh { digest, adopted: Some(fingerprint) } = freshness {
            plan.adopted.push(Adopted { artifact: name.clone(), digest: *digest, fingerprint: fingerprint.clone() });
        }
    }
    if options.keep == Keep::Targets {
        plan.removable = removable(graph, &freshness, &runs, found);
    }
    plan.prediction = predict(graph, &plan.steps, options.keep);
    Ok(plan)
}

/// The place of the stage that a user named.
pub(crate) fn find(graph: &Graph, name: &str) -> Result<usize, PipelineError> {
    let known = name.parse().ok().and_then(|name| graph.position(&name));
    known.ok_or_else(|| PipelineError::UnknownStage {
        name: name.chars().take(80).collect(),
        suggestions: graph.suggest(name),
    })
}

/// Why each stage of the graph runs, if it does. From last to first, since readers demand.
fn demand(
    graph: &Graph,
    freshness: &BTreeMap<ArtifactName, Freshness>,
    forced: &BTreeSet<usize>,
    keep: Keep,
) -> Vec<Option<Reason>> {
    let mut reasons = vec![None; graph.stages().len()];
    // Intermediates that a stage which runs reads, with the first such stage.
    let mut readers: BTreeMap<&ArtifactName, &StageName> = BTreeMap::new();
    for (at, stage) in graph.stages().iter().enumerate().rev() {
        let wanted = |name: &ArtifactName| {
            let reason = freshness[name].reason()?.clone();
            if !graph.is_intermediate(name) || keep == Keep::All {
                return Some(reason);
            }
            let reader = readers.get(name)?;
            Some(match reason {
                Reason::Absent { artifact } => Reason::NeededBy { stage: (*reader).clone(), artifact },
                other => other,
            })
        };
        let reason = if forced.contains(&at) { Some(Reason::Forced) } else { stage.outputs.iter().find_map(wanted) };
        if reason.is_some() {
            for input in &stage.inputs {
                if graph.is_intermediate(input) {
                    readers.insert(input, &stage.name);
                }
            }
        }
        reasons[at] = reason;
    }
    reasons
}

fn why_settled(graph: &Graph, stage: &StageSpec, freshness: &BTreeMap<ArtifactName, Freshness>) -> Why {
    let mut why = Why::Recorded;
    for output in graph.outputs(stage) {
        match &freshness[&output.name] {
            // Only intermediates can be stale here, or the stage would run.
            Freshness::Stale { .. } => return Why::NotNeeded,
            Freshness::Fresh { adopted, .. } => {
                if adopted.is_some() {
                    why = Why::Adopted;
                }
            }
        }
    }
    why
}

/// Intermediates on disk that nothing will read: every target made from them is fresh and verified.
fn removable(
    graph: &Graph,
    freshness: &BTreeMap<ArtifactName, Freshness>,
    runs: &[bool],
    found: &Findings,
) -> Vec<ArtifactName> {
    let is_fresh = |name: &ArtifactName| freshness[name].reason().is_none();
    let is_verified = |name: &ArtifactName| {
        let mut verifications = graph.verifications(name).iter();
        verifications.all(|(_, verification)| is_fresh(verification))
    };
    // From last to first: whether a stage needs its inputs no more.
    let mut settled = vec![false; graph.stages().len()];
    let mut removable = Vec::new();
    for (at, stage) in graph.stages().iter().enumerate().rev() {
        settled[at] = !runs[at]
            && graph.outputs(stage).all(|output| match output.kind {
                ArtifactKind::Intermediate => graph.readers(&output.name).iter().all(|at| settled[*at]),
                ArtifactKind::Target => is_fresh(&output.name) && is_verified(&output.name),
                ArtifactKind::Report | ArtifactKind::Verification => is_fresh(&output.name),
            });
        for output in &stage.outputs {
            let is_there = found.get(output).is_some_and(|f| *f != Found::Absent);
            let unread = || graph.readers(output).iter().all(|at| settled[*at]);
            if graph.is_intermediate(output) && is_there && !runs[at] && unread() {
                removable.push(output.clone());
            }
        }
    }
    removable.reverse();
    removable
}

/// Adds up the costs of steps. Intermediates take space until the last step that keeps them from
/// being removed.
fn predict(graph: &Graph, steps: &[Step], keep: Keep) -> Prediction {
    let mut prediction = Prediction::default();
    let mut place = BTreeMap::new();
    for (number, step) in steps.iter().enumerate() {
        if let Some(at) = graph.position(&step.stage) {
            place.insert(at, number);
        }
    }
    // Per stage of the graph, from last to first: the last step that may still need what it makes.
    let mut last_use = vec![0; graph.stages().len()];
    for (at, stage) in graph.stages().iter().enumerate().rev() {
        let mut last = place.get(&at).copied().unwrap_or(0);
        for output in graph.outputs(stage) {
            if output.kind == ArtifactKind::Intermediate {
                for reader in graph.readers(&output.name) {
                    last = last.max(last_use[*reader]);
                }
            }
            for (verifier, _) in graph.verifications(&output.name) {
                last = last.max(place.get(verifier).copied().unwrap_or(0));
            }
        }
        last_use[at] = last;
    }
    let mut held: u64 = 0;
    let mut released = vec![0u64; steps.len()];
    for (number, step) in steps.iter().enumerate() {
        prediction.positions = prediction.positions.saturating_add(step.cost.positions);
        prediction.seconds += step.cost.seconds;
        if step.cost.memory_bytes > prediction.memory_bytes {
            prediction.memory_bytes = step.cost.memory_bytes;
            prediction.memory_stage = Some(step.stage.clone());
        }
        let peak = held.saturating_add(step.cost.disk_bytes);
        held = held.saturating_add(step.cost.disk_kept_bytes);
        prediction.disk_bytes = prediction.disk_bytes.max(peak).max(held);
        let Some(at) = graph.position(&step.stage) else {
            continue;
        };
        let outputs = &graph.stages()[at].outputs;
        if keep == Keep::Targets && outputs.iter().all(|name| graph.is_intermediate(name)) {
            let release = &mut released[last_use[at].max(number)];
            *release = release.saturating_add(step.cost.disk_kept_bytes);
        }
        held = held.saturating_sub(released[number]);
    }
    prediction
}
