//! The stage `sweep:n`: the scores of all n-stone positions from their best captures.
//!
//! Alone or on many ranks, [`solving`] runs it; the bounds of rules whose positions have no score have a module of their own.

mod guarantees;

use crate::kind::{Phase, StageKind};
use crate::solver::{self, DATABASES};
use crate::solving::{self, SolvingMethod};
use crate::stage_cache::CacheUse;
use planner::StageClass;

const KIND: &str = "sweep";

/// The kind `sweep:n`.
pub(crate) static SWEEP: StageKind = StageKind {
    word: KIND,
    phase: Phase::Solving,
    classes: &[StageClass::Sweep],
    cache_use: CacheUse::ALL,
    files: Some(&DATABASES),
    declare: |kind, build| solver::declare(kind, build),
    run: |build, parameters, context| {
        let stones = parameters[0];
        match build.job() {
            None if !build.settings().rules.has_scores() => guarantees::run(build, stones, context),
            _ => solving::run(KIND, SolvingMethod::Sweep, build, stones, context),
        }
    },
    follow: solving::follow,
    ..StageKind::OF_DATABASES
};
