//! The stage `preprocess:n:b`: the positions that a capture wins at bound b and nothing won at higher bounds.

use super::declaration::{self, BOUND_METHODS, PLANES};
use super::planes::PlaneFile::{CandidateSeeds, Seed, WinSeeds};
use super::ranks;
use super::state::{BoundState, slot};
use super::wins_by_capture::find_wins;
use crate::build_context::BuildContext;
use crate::kind::{Phase, StageKind};
use game::Index;
use pipeline::{StageContext, StageReport, StageResult as Result};
use planner::{Method, StageClass};
use std::time::Instant;

/// The kind `preprocess:n:b`.
pub(crate) static PREPROCESS: StageKind = StageKind {
    word: "preprocess",
    parameters: declaration::PARAMETERS,
    phase: Phase::Solving,
    methods: BOUND_METHODS,
    class: |method| {
        Some(if method == Method::TwoBit { StageClass::PreprocessTwoBit } else { StageClass::PreprocessOneBit })
    },
    files: Some(&PLANES),
    declare: |kind, build| {
        declaration::of_bounds(kind, build, |stones, bound| {
            let seeds = [WinSeeds, CandidateSeeds].into_iter();
            (seeds.chain(declaration::decided_above(stones, bound)).collect(), vec![Seed(bound)])
        })
    },
    run: |build, parameters, context| {
        let (stones, bound) = declaration::stones_and_bound(parameters);
        match ranks::job(build, stones) {
            Some(_) => ranks::preprocess(build, stones, bound, context),
            None => run(build, stones, bound, context),
        }
    },
    ..StageKind::OF_DATABASES
};

/// Runs the stage.
fn run(build: &BuildContext, stones: u32, bound: u32, context: &StageContext) -> Result<StageReport> {
    let index = Index::new(stones, build.settings().set);
    let start = Instant::now();
    let mut state = BoundState::done_above(build, &index, bound, context)?;
    let report =
        find_wins(build, &index, bound, context, |wins, new| state.seed(build, &index, bound, context, wins, new))?;
    slot(build).note(stones, bound, 0, start.elapsed());
    slot(build).put(state);
    Ok(report)
}
