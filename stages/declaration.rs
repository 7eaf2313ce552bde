//! Declarations of stages and artifacts of one database.

use crate::kind::{Declaration, StageKind};
use pipeline::{ArtifactKind, ArtifactName, ArtifactSpec, StageName, StageSpec};
use planner::{BuildPlan, DatabasePlan, Settings};

/// Declares one stage for each database whose method needs the kind.
pub(crate) fn of_databases(
    kind: &StageKind,
    build: &BuildPlan,
    declare: impl Fn(&StageKind, &Settings, &DatabasePlan) -> Declaration,
) -> Vec<Declaration> {
    plans(kind, build).map(|plan| declare(kind, build.settings(), plan)).collect()
}

/// Returns the plans of the databases whose method needs the kind.
pub(crate) fn plans<'b>(kind: &StageKind, build: &'b BuildPlan) -> impl Iterator<Item = &'b DatabasePlan> {
    build.databases().iter().filter(|plan| kind.is_needed_by(plan.method()))
}

/// Returns a stage of a database, with its planned cost.
pub(crate) fn stage(
    kind: &StageKind,
    plan: &DatabasePlan,
    bound: Option<u32>,
    inputs: Vec<ArtifactName>,
    outputs: Vec<ArtifactName>,
) -> StageSpec {
    let parameters: Vec<u32> = std::iter::once(plan.stones()).chain(bound).collect();
    let class = kind.class(plan.method()).expect("stages of databases have a class");
    StageSpec { inputs, outputs, cost: plan.cost(class), ..StageSpec::new(StageName::new(kind.word, &parameters)) }
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
