//! The stages of the bound methods *two-bit*, *one-bit* and *one-bit-dual*, which exchange planes on disk.
//!
//! First `seeds:n` sorts the captures by the bound at which they begin to matter. Then, for each bound b from n down to 1,
//!
//! * `preprocess:n:b` finds the positions that a capture wins at b but not at b + 1 (`BB.seed`);
//! * `process:n:b` solves the bound: the positions won (`BB.won`) and lost (`BB.lost`) at b but not at b + 1;
//! * `postprocess:n:b` transposes the lost positions into the orientation of the database (`BB.plane`);
//!
//! and `merge:n` makes the database from all bounds. A position is in the planes of one bound only, and the state at bound b
//! is the union of the planes of b and above. The state stays in memory from stage to stage ([`state`]); a resumed run or a
//! single stage loads it from the planes. The methods differ in the storage of the state ([`plane_storage`]), not in files.

mod batches;
mod bound_solver;
mod merge;
mod plane_storage;
mod planes;
mod planes_above;
mod postprocess;
mod preprocess;
mod previous_plane;
mod process;
mod seed_captures;
mod seeds;
mod state;
mod transpose;

pub(crate) use planes::{PlaneFile, PlanePortion, PlaneReader, PlaneWriter, SeedsReader, UnitGroup};
pub(crate) use planes_above::{CandidatesReader, UnionReader};
pub(crate) use preprocess::{ReadGroup, WritePortion, find_wins};
pub(crate) use seed_captures::{SEEDS, SeedCaptures};
pub(crate) use state::{StateSlot, stop};

use crate::{BuildContext, Result, declaration, files, opening};
use pipeline::{ArtifactKind, ArtifactSpec, StageContext, StageReport, StageSpec};
use planner::{DatabasePlan, Settings};

/// Version of planes, raised when the same inputs give another content.
const VERSION: u32 = 1;

/// Declares the stages of a database, and the artifacts that each makes.
pub(crate) fn declare(settings: &Settings, plan: &DatabasePlan) -> Vec<(StageSpec, Vec<ArtifactSpec>)> {
    use PlaneFile::{CandidateSeeds, Decided, Lost, Seed, WinSeeds, Won};
    let stones = plan.stones();
    let stage = |kind: &str, bound: Option<u32>, inputs: Vec<PlaneFile>, outputs: &[PlaneFile]| {
        let inputs = inputs.into_iter().map(|plane| plane.name(stones)).collect();
        let produced = outputs.iter().map(|plane| plane.name(stones)).collect();
        let stage = StageSpec {
            folder: Some(PlaneFile::folder(stones)),
            ..declaration::stage(plan, kind, bound, inputs, produced)
        };
        let artifact = |plane: &PlaneFile| {
            declaration::artifact(settings, stones, plane.name(stones), ArtifactKind::Intermediate, plane.content())
                .version(VERSION)
                .identity("bound", plane.bound())
        };
        (stage, outputs.iter().map(artifact).collect::<Vec<_>>())
    };
    let mut stages = Vec::new();
    if stones > 0 {
        let (mut seeds, planes) = stage("seeds", None, Vec::new(), &[WinSeeds, CandidateSeeds]);
        seeds.inputs.push(files::capture(stones));
        // Their space is reserved before they are written.
        seeds.folder = None;
        stages.push((seeds, planes));
    }
    for bound in (1..=stones).rev() {
        // The state follows from the planes of the bounds above.
        let above = || (bound + 1..=stones).rev().flat_map(|above| [Won(above), Decided(above)]);
        let inputs = [WinSeeds, CandidateSeeds].into_iter().chain(above()).collect();
        stages.push(stage("preprocess", Some(bound), inputs, &[Seed(bound)]));
        let inputs = [CandidateSeeds, Seed(bound)].into_iter().chain(above()).collect();
        stages.push(stage("process", Some(bound), inputs, &[Won(bound), Lost(bound)]));
        stages.push(stage("postprocess", Some(bound), vec![Lost(bound)], &[Decided(bound)]));
    }
    let inputs = (1..=stones).flat_map(|bound| [Won(bound), Decided(bound)]).collect();
    let (mut merge, mut artifacts) = stage("merge", None, inputs, &[]);
    merge.inputs.extend(opening::inputs(settings, stones));
    merge.outputs.push(files::database(stones));
    artifacts.push(files::declare_database(settings, stones));
    stages.push((merge, artifacts));
    stages
}

/// Runs a stage of a bound method.
pub(crate) fn run(build: &BuildContext, kind: &str, parameters: &[u32], context: &StageContext) -> Result<StageReport> {
    match (kind, parameters) {
        ("seeds", &[stones]) => seeds::run(build, stones, context),
        ("preprocess", &[stones, bound]) => preprocess::run(build, stones, bound, context),
        ("process", &[stones, bound]) => process::run(build, stones, bound, context),
        ("postprocess", &[stones, bound]) => postprocess::run(build, stones, bound, context),
        ("merge", &[stones]) => merge::run(build, stones, context),
        _ => unreachable!("the graph has no such stage: {kind} {parameters:?}"),
    }
}
