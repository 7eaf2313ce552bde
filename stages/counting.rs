//! The stage `counting:n`: the scores of all n-stone positions, propagated from children to parents, see [`solving`].
//!
//! The output does not depend on the number of threads or ranks, nor on those that wrote the snapshot it resumes from.

use crate::kind::{Phase, StageKind};
use crate::solver::{self, DATABASES};
use crate::solving::{self, SolvingMethod};
use crate::stage_cache::CacheUse;
use planner::StageClass;

const KIND: &str = "counting";

/// The kind `counting:n`.
pub(crate) static COUNTING: StageKind = StageKind {
    word: KIND,
    phase: Phase::Solving,
    classes: &[StageClass::Counting],
    cache_use: CacheUse { captures: true, databases: true, arrays: false },
    files: Some(&DATABASES),
    declare: |kind, build| solver::declare(kind, build),
    run: |build, parameters, context| {
        let by = SolvingMethod::Counting { processors: context.threads() };
        solving::run(KIND, by, build, parameters[0], context)
    },
    follow: solving::follow,
    ..StageKind::OF_DATABASES
};
