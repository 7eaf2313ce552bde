//! Declarations of stages and artifacts of one database.

use pipeline::{ArtifactKind, ArtifactName, ArtifactSpec, StageName, StageSpec};
use planner::{DatabasePlan, Settings};

/// Returns a stage of a database, with its planned cost.
pub(crate) fn stage(
    plan: &DatabasePlan,
    kind: &str,
    bound: Option<u32>,
    inputs: Vec<ArtifactName>,
    outputs: Vec<ArtifactName>,
) -> StageSpec {
    let parameters: Vec<u32> = std::iter::once(plan.stones()).chain(bound).collect();
    StageSpec { inputs, outputs, cost: plan.cost(kind), ..StageSpec::new(StageName::new(kind, &parameters)) }
}

/// Returns an artifact of the database of `stones`.
pub(crate) fn artifact(
    settings: &Settings,
    stones: u32,
    name: ArtifactName,
    kind: ArtifactKind,
    content: &str,
) -> ArtifactSpec {
    ArtifactSpec::new(name, kind, content)
        .identity("rules", settings.rules.name)
        .identity("positions", settings.set)
        .identity("stones", stones)
}
