//! The stage `preprocess:n:b`: the positions that a capture wins at bound b and nothing won at higher bounds.

use super::capture_counts::CaptureCounts;
use super::declaration::{self, PLANES};
use super::planes::PlaneFile::{CandidateSeeds, Seed, WinSeeds};
use super::ranks;
use super::state::{BoundState, slot};
use super::team::PlaneTask;
use super::wins_by_capture::find_wins;
use crate::build_context::BuildContext;
use crate::kind::{KindOptions, Phase, StageKind};
use crate::team;
use game::Index;
use pipeline::{StageContext, StageReport, StageResult as Result};
use planner::StageClass;
use std::time::Instant;

const KIND: &str = "preprocess";

/// The kind `preprocess:n:b`.
pub(crate) static PREPROCESS: StageKind = StageKind {
    word: KIND,
    phase: Phase::Solving,
    files: Some(&PLANES),
    declare: |kind, build| {
        declaration::of_bounds(kind, build, |stones, bound| {
            let seeds = [WinSeeds, CandidateSeeds].into_iter();
            (seeds.chain(declaration::decided_above(stones, bound)).collect(), vec![Seed(bound)])
        })
    },
    run: |build, parameters, context| {
        let (stones, bound) = declaration::stones_and_bound(parameters);
        run(build, stones, bound, context)
    },
    options: KindOptions {
        parameters: declaration::PARAMETERS,
        classes: &[StageClass::PreprocessTwoBit, StageClass::PreprocessOneBit],
        follow: |follower, order, communicator| team::follow(follower, order, communicator, ranks::find_wins),
        ..KindOptions::OF_DATABASES
    },
};

/// Runs the stage.
fn run(build: &BuildContext, stones: u32, bound: u32, context: &StageContext) -> Result<StageReport> {
    let index = Index::new(stones, build.settings().set);
    let start = Instant::now();
    let inputs = [WinSeeds, CandidateSeeds].into_iter().chain(declaration::decided_above(stones, bound));
    let inputs = inputs.map(|plane| plane.name(stones));
    let task = PlaneTask::new(context, (stones, bound), inputs, [Seed(bound).name(stones)]);
    let (seeded, loads) = match ranks::job(build, stones) {
        Some(job) => team::lead(KIND, build, Some(job), &task, context, ranks::find_wins)?,
        None => {
            let mut state = BoundState::done_above(build, &index, bound, context)?;
            if bound == stones && declaration::planes_in_memory(build.plan(stones)).has_wins() {
                state.captures = Some(CaptureCounts::default());
            }
            let found = team::lead(KIND, build, None, &task, context, |member, communicator| {
                find_wins(member, communicator, |_, wins, new| state.seed(build, &index, bound, context, wins, new))
            })?;
            if let Some(captures) = &mut state.captures {
                captures.add_best_captures(found.0);
            }
            slot(build).put(state);
            found
        }
    };
    slot(build).note(stones, bound, 0, start.elapsed());
    Ok(team::report(StageReport::new(index.positions()), loads).with("won by captures", seeded))
}
