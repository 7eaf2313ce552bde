//! Declarations of the stages of bound methods.

use super::planes::PlaneFile;
use crate::declaration;
use crate::kind::{Declaration, FamilyContent, FileFamily, STONES, StageKind, is_number, is_numbered};
use pipeline::{ArtifactKind, StageSpec};
use planner::{BuildPlan, DatabasePlan, PlanesInMemory, Settings};
use store::FileKind;

/// Version of planes, raised when the same inputs give another content.
const VERSION: u32 = 1;

/// The parameters of a stage of one bound.
pub(super) const PARAMETERS: &[&str] = &[STONES, "b"];

/// The planes of all databases: `planes/NN/BB.won`, `planes/NN/win.seeds`.
pub(super) static PLANES: FileFamily = FileFamily {
    folder: "planes",
    has: |name| {
        let Some((stones, file)) = name.split_once('/') else { return false };
        let is_of_bound = ["seed", "won", "lost", "plane"].iter().any(|extension| is_numbered(file, extension));
        is_number(stones) && (is_of_bound || ["win.seeds", "candidate.seeds"].contains(&file))
    },
    content: FamilyContent::Values(|artifact, _| {
        let bound = artifact.identity.get("bound").and_then(|bound| bound.parse().ok()).unwrap_or(0);
        PlaneFile::kind_of(&artifact.content, bound).unwrap_or(FileKind::Database)
    }),
};

/// Declares the stages of a kind for all bounds, from the inputs and outputs for some stones and a bound.
pub(super) fn of_bounds(
    kind: &StageKind,
    build: &BuildPlan,
    planes: impl Fn(u32, u32) -> (Vec<PlaneFile>, Vec<PlaneFile>),
) -> Vec<Declaration> {
    let of_database = |plan| {
        let planes = &planes;
        (1..=DatabasePlan::stones(plan)).rev().map(move |bound| {
            let (inputs, outputs) = planes(plan.stones(), bound);
            of_planes(kind, build.settings(), plan, Some(bound), inputs, &outputs)
        })
    };
    declaration::plans(kind, build).flat_map(of_database).collect()
}

/// Declares a stage that reads and makes planes.
pub(super) fn of_planes(
    kind: &StageKind,
    settings: &Settings,
    plan: &DatabasePlan,
    bound: Option<u32>,
    inputs: Vec<PlaneFile>,
    outputs: &[PlaneFile],
) -> Declaration {
    let stones = plan.stones();
    let names = |planes: &[PlaneFile]| planes.iter().map(|plane| plane.name(stones)).collect();
    let stage = StageSpec {
        folder: Some(PlaneFile::folder(stones)),
        ..declaration::stage(kind, plan, bound, names(&inputs), names(outputs))
    };
    let artifact = |plane: &PlaneFile| {
        declaration::artifact(settings, stones, plane.name(stones), ArtifactKind::Intermediate, plane.content())
            .version(VERSION)
            .identity("bound", plane.bound())
    };
    Declaration { stage, artifacts: outputs.iter().map(artifact).collect() }
}

/// Returns the planes of the bounds above `bound`, from which the state of a database follows.
pub(super) fn decided_above(stones: u32, bound: u32) -> impl Iterator<Item = PlaneFile> {
    (bound + 1..=stones).rev().flat_map(|above| [PlaneFile::Won(above), PlaneFile::Decided(above)])
}

/// Returns the parameters of a stage of one bound.
pub(super) fn stones_and_bound(parameters: &[u32]) -> (u32, u32) {
    (parameters[0], parameters[1])
}

/// Returns the planes that the method of a database keeps in memory.
pub(super) fn planes_in_memory(plan: &DatabasePlan) -> PlanesInMemory {
    plan.method().planes_in_memory().expect("only methods with planes have stages of bounds")
}
