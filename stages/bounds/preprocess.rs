//! The stage `preprocess:n:b`: the positions that a capture wins at bound b and nothing won at higher bounds.

use super::declaration::{self, BOUND_METHODS, PLANES};
use super::planes::PlaneFile::{CandidateSeeds, Seed, WinSeeds};
use super::ranks;
use super::state::{BoundState, slot};
use super::wins_by_capture::find_wins;
use crate::build_context::BuildContext;
use crate::kind::{Declaration, FileFamily, Phase, StageKind};
use game::Index;
use pipeline::{StageContext, StageReport, StageResult as Result};
use planner::{BuildPlan, Method, StageClass};
use std::time::Instant;

/// The kind `preprocess:n:b`.
pub(crate) struct PreprocessStage;

impl StageKind for PreprocessStage {
    fn word(&self) -> &'static str {
        "preprocess"
    }

    fn parameters(&self) -> &'static [&'static str] {
        declaration::PARAMETERS
    }

    fn phase(&self) -> Phase {
        Phase::Solving
    }

    fn methods(&self) -> &'static [Method] {
        BOUND_METHODS
    }

    fn class(&self, method: Method) -> Option<StageClass> {
        Some(if method == Method::TwoBit { StageClass::PreprocessTwoBit } else { StageClass::PreprocessOneBit })
    }

    fn files(&self) -> Option<&'static FileFamily> {
        Some(&PLANES)
    }

    fn declare(&self, build: &BuildPlan) -> Vec<Declaration> {
        declaration::of_bounds(self, build, |stones, bound| {
            let seeds = [WinSeeds, CandidateSeeds].into_iter();
            (seeds.chain(declaration::decided_above(stones, bound)).collect(), vec![Seed(bound)])
        })
    }

    fn run(&self, build: &BuildContext, parameters: &[u32], context: &StageContext) -> Result<StageReport> {
        let (stones, bound) = declaration::stones_and_bound(parameters);
        match ranks::job(build, stones) {
            Some(_) => ranks::preprocess(build, stones, bound, context),
            None => run(build, stones, bound, context),
        }
    }
}

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
