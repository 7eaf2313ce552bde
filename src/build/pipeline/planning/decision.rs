//! The decision which stages run.

use super::freshness::{Freshness, FreshnessTable, evaluate};
use crate::artifact::{ArtifactKind, ArtifactName, ArtifactSpec, Inspection};
use crate::directory::{Inspections, Space};
use crate::error::{PipelineError, Result};
use crate::graph::{Graph, StageArtifacts};
use crate::journal::JournalState;
use crate::plan::{
    AdoptedArtifact, Keep, Plan, PlanOptions, PlanPrediction, PlannedStage, Reason, ReplacedArtifact, SettledReason,
    SettledStage,
};
use crate::stage::{StageName, StageSpec};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Makes a plan. Its prediction of disk space assumes an empty directory.
///
/// # Errors
/// [`PipelineError::UnknownStage`] if `until` or `force` names none; [`PipelineError::ForcedTooLate`] if `until` comes
/// before a stage of `force`; [`PipelineError::Frozen`] if something is stale and must not be rebuilt.
pub fn plan(graph: &Graph, state: &JournalState, found: &Inspections, options: &PlanOptions) -> Result<Plan> {
    plan_of(graph, &evaluate(graph, state, found), found, &Space::default(), options)
}

/// Makes a plan from the freshness of all artifacts and a survey of the directory.
pub(crate) fn plan_of(
    graph: &Graph,
    freshness: &FreshnessTable,
    found: &Inspections,
    space: &Space,
    options: &PlanOptions,
) -> Result<Plan> {
    let last = match &options.until {
        Some(name) => find(graph, name)?,
        None => graph.stages().len(),
    };
    let mut forced = BTreeSet::new();
    for name in &options.force {
        let at = find(graph, name)?;
        if at > last {
            let until = graph.stages()[last].name.clone();
            return Err(PipelineError::ForcedTooLate { stage: graph.stages()[at].name.clone(), until });
        }
        forced.insert(at);
    }
    let reasons = demand(graph, freshness, &forced, options.keep);
    let runs: Vec<bool> = reasons.iter().map(Option::is_some).collect();
    let removable = match options.keep {
        Keep::Targets => removable(graph, freshness, &runs, found),
        Keep::All => Vec::new(),
    };
    let space = &if removable.is_empty() { Cow::Borrowed(space) } else { Cow::Owned(space.without(&removable)) };

    let mut plan = Plan::default();
    let mut places = Vec::new();
    for (at, (stage, reason)) in graph.stages().iter().zip(reasons).enumerate() {
        match reason {
            Some(reason) if at <= last => {
                let disk_there_bytes = space.there(stage).min(stage.cost.disk_bytes);
                let (disk_kept_bytes, disk_released_bytes) = (0, 0);
                let (stage, cost) = (stage.name.clone(), stage.cost);
                plan.steps.push(PlannedStage {
                    stage,
                    reason,
                    cost,
                    disk_there_bytes,
                    disk_kept_bytes,
                    disk_released_bytes,
                });
                places.push(at);
            }
            reason => plan.fresh.push(SettledStage {
                stage: stage.name.clone(),
                why: match reason {
                    Some(_) => SettledReason::NotRequested,
                    None => why_settled(graph, at, freshness),
                },
            }),
        }
    }
    for (name, freshness) in freshness.iter() {
        if let Freshness::Fresh { digest, adopted: Some(fingerprint) } = freshness {
            plan.adopted.push(AdoptedArtifact {
                artifact: name.clone(),
                digest: *digest,
                fingerprint: fingerprint.clone(),
            });
        }
    }
    let outputs = places.iter().flat_map(|&at| &graph.numbers(at).outputs);
    plan.replaced = outputs.filter_map(|&output| replaced(graph.numbered(output), freshness.of(output))).collect();
    if options.frozen {
        let stale = |step: &&PlannedStage| step.reason.is_stale();
        let stale: Vec<PlannedStage> = plan.steps.iter().filter(stale).cloned().collect();
        if !stale.is_empty() {
            return Err(PipelineError::Frozen { stale, replaces: !plan.replaced.is_empty() });
        }
    }
    if !removable.is_empty() {
        plan.removable = removable;
        let removed: BTreeSet<&ArtifactName> = plan.removable.iter().collect();
        // What a run removes is not needed, even while it exists.
        for settled in plan.fresh.iter_mut().filter(|settled| settled.why != SettledReason::NotRequested) {
            let outputs = graph.stage(&settled.stage).map_or(&[][..], |stage| &stage.outputs);
            if !outputs.is_empty() && outputs.iter().all(|output| removed.contains(output)) {
                settled.why = SettledReason::NotNeeded;
            }
        }
    }
    plan.prediction = predict(graph, &places, &mut plan.steps, options.keep, space);
    Ok(plan)
}

/// Returns a target that exists for other parameters. One of another version or from other sources is only out of date.
fn replaced(spec: &ArtifactSpec, freshness: &Freshness) -> Option<ReplacedArtifact> {
    let Reason::Changed { field, was, is, .. } = freshness.reason()? else { return None };
    let is_other = spec.kind == ArtifactKind::Target && spec.identity.contains_key(field);
    let (field, was, is) = (field.clone(), was.clone(), is.clone());
    is_other.then(|| ReplacedArtifact { artifact: spec.name.clone(), field, was, is })
}

/// Returns the position of a stage named by the user.
pub(crate) fn find(graph: &Graph, name: &str) -> Result<usize> {
    let known = name.parse().ok().and_then(|name| graph.position(&name));
    known.ok_or_else(|| PipelineError::UnknownStage {
        name: name.chars().take(80).collect(),
        suggestions: graph.suggest(name),
    })
}

/// Returns why each stage of the graph runs, if it does. From last to first: a stage that runs demands its
/// intermediates.
fn demand(graph: &Graph, freshness: &FreshnessTable, forced: &BTreeSet<usize>, keep: Keep) -> Vec<Option<Reason>> {
    let mut reasons = vec![None; graph.stages().len()];
    // For each intermediate, the first stage that runs and reads it.
    let mut readers: Vec<Option<&StageName>> = vec![None; graph.artifacts().len()];
    for (at, stage) in graph.stages().iter().enumerate().rev() {
        let wanted = |&number: &usize| {
            let reason = freshness.of(number).reason()?;
            if !graph.is_intermediate_number(number) || keep == Keep::All {
                return Some(reason.clone());
            }
            let reader = readers[number]?;
            Some(match reason.clone() {
                Reason::Absent { artifact } => Reason::NeededBy { stage: reader.clone(), artifact },
                other => other,
            })
        };
        let StageArtifacts { inputs, outputs, .. } = graph.numbers(at);
        let reason = if forced.contains(&at) { Some(Reason::Forced) } else { outputs.iter().find_map(wanted) };
        if reason.is_some() {
            inputs
                .iter()
                .filter(|&&input| graph.is_intermediate_number(input))
                .for_each(|&input| readers[input] = Some(&stage.name));
        }
        reasons[at] = reason;
    }
    reasons
}

fn why_settled(graph: &Graph, at: usize, freshness: &FreshnessTable) -> SettledReason {
    let mut why = SettledReason::Recorded;
    for &output in &graph.numbers(at).outputs {
        match freshness.of(output) {
            // Only intermediates can be stale here: otherwise the stage would run.
            Freshness::Stale { .. } => return SettledReason::NotNeeded,
            Freshness::Fresh { adopted, .. } => {
                if adopted.is_some() {
                    why = SettledReason::Adopted;
                }
            }
        }
    }
    why
}

/// Returns the intermediates on disk that no stage will read: every intermediate made from them is fresh or
/// not needed, and every target fresh and verified.
fn removable(graph: &Graph, freshness: &FreshnessTable, runs: &[bool], found: &Inspections) -> Vec<ArtifactName> {
    let is_fresh = |number: usize| freshness.of(number).reason().is_none();
    let is_verified = |number| graph.uses(number).verifications.iter().all(|&(_, number)| is_fresh(number));
    // From last to first: whether a stage no longer needs its inputs.
    let mut settled = vec![false; graph.stages().len()];
    let mut removable = Vec::new();
    for at in (0..graph.stages().len()).rev() {
        let outputs = &graph.numbers(at).outputs;
        let is_unread = |number: usize| graph.uses(number).readers.iter().all(|&at| settled[at]);
        let is_settled = |&number: &usize| match graph.numbered(number).kind {
            ArtifactKind::Intermediate => is_fresh(number) || is_unread(number),
            ArtifactKind::Target => is_fresh(number) && is_verified(number),
            ArtifactKind::Report | ArtifactKind::Verification => is_fresh(number),
        };
        if runs[at] {
            continue;
        }
        let is_done = outputs.iter().all(is_settled);
        for &number in outputs {
            let ArtifactSpec { name, kind, .. } = graph.numbered(number);
            // Most that nothing reads are gone: their freshness says so without a look at their names.
            let is_absent = matches!(freshness.of(number).reason(), Some(Reason::Absent { .. }));
            let is_there = || !is_absent && found.get(name).is_some_and(|found| *found != Inspection::Absent);
            if *kind == ArtifactKind::Intermediate && is_unread(number) && is_there() {
                removable.push(name.clone());
            }
        }
        settled[at] = is_done;
    }
    removable.reverse();
    removable
}

/// Adds up the costs of the stages at `places`. Intermediates take space until the last stage that needs
/// them. Space that is already taken counts towards the demand. Notes in each step what space it keeps and
/// releases.
fn predict(graph: &Graph, places: &[usize], planned: &mut [PlannedStage], keep: Keep, space: &Space) -> PlanPrediction {
    let mut prediction = PlanPrediction::default();
    let mut steps = vec![None; graph.stages().len()];
    places.iter().enumerate().for_each(|(step, &at)| steps[at] = Some(step));
    // For each stage of the graph, from last to first: the last step that may need its outputs.
    let mut last_use = vec![0; graph.stages().len()];
    // The last step that may need its inputs: itself, or the verification of its target.
    let mut needed_until = vec![0; graph.stages().len()];
    for at in (0..graph.stages().len()).rev() {
        let mut last = steps[at].unwrap_or(0);
        for &output in &graph.numbers(at).outputs {
            let uses = graph.uses(output);
            if graph.is_intermediate_number(output) {
                last = uses.readers.iter().fold(last, |last, &reader| last.max(needed_until[reader]));
            }
            for &(verifier, _) in &uses.verifications {
                last = last.max(steps[verifier].unwrap_or(0));
            }
        }
        last_use[at] = last;
        let is_target = |&output: &usize| !graph.is_intermediate_number(output);
        let makes_target = graph.numbers(at).outputs.iter().any(is_target);
        needed_until[at] = if makes_target { last } else { steps[at].unwrap_or(0) };
    }
    // Relative to the space that is taken now.
    let mut held: i64 = 0;
    let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    let mut released = vec![0u64; places.len()];
    if keep == Keep::Targets {
        for at in (0..graph.stages().len()).filter(|&at| steps[at].is_none()) {
            let outputs = graph.numbers(at).outputs.iter().filter(|&&output| graph.is_intermediate_number(output));
            let bytes = outputs.map(|&output| space.of(&graph.numbered(output).name)).fold(0, u64::saturating_add);
            if let Some(release) = released.get_mut(last_use[at]) {
                *release = release.saturating_add(bytes);
            }
        }
    }
    for (number, &at) in places.iter().enumerate() {
        let stage @ StageSpec { name, cost, .. } = &graph.stages()[at];
        prediction.positions = prediction.positions.saturating_add(cost.positions);
        prediction.seconds += cost.seconds;
        if cost.memory_bytes > prediction.memory_bytes {
            prediction.memory_bytes = cost.memory_bytes;
            prediction.memory_stage = Some(name.clone());
        }
        let peak = held.saturating_add(signed(cost.disk_bytes.saturating_sub(space.there(stage))));
        let freed = space.replaced(graph, at).saturating_add(space.of_snapshots(stage));
        let kept_bytes = signed(cost.disk_kept_bytes).saturating_sub(signed(freed));
        held = held.saturating_add(kept_bytes);
        prediction.disk_bytes = prediction.disk_bytes.max(u64::try_from(peak.max(held)).unwrap_or(0));
        if keep == Keep::Targets && graph.numbers(at).outputs.iter().all(|&output| graph.is_intermediate_number(output))
        {
            let release = &mut released[last_use[at].max(number)];
            *release = release.saturating_add(cost.disk_kept_bytes);
        }
        held = held.saturating_sub(signed(released[number]));
        (planned[number].disk_kept_bytes, planned[number].disk_released_bytes) = (kept_bytes, released[number]);
    }
    prediction.disk_bytes = prediction.disk_bytes.saturating_sub(space.leftover_bytes);
    prediction
}
