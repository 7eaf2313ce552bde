//! The graph of a build: the stages of all databases.
//!
//! For each number of stones: capture, solve, verify, statistics; the next number waits for the verification. After all
//! databases, the evaluation and the book.

use crate::{book, bounds, capture, database_file, evaluation, stats, verify};
use pipeline::Graph;
use planner::{BuildPlan, Method, Verify};

/// Returns all stages and artifacts of a build.
pub(crate) fn graph(build: &BuildPlan) -> Graph {
    let settings = build.settings();
    let (mut stages, mut artifacts) = (Vec::new(), Vec::new());
    for plan in build.databases() {
        let mut declare = |(stage, artifact)| {
            stages.push(stage);
            artifacts.extend(artifact);
        };
        declare(capture::declare(settings, plan));
        match plan.method() {
            Method::Counting => declare(database_file::declare_solver(settings, plan, "counting")),
            Method::Sweep => declare(database_file::declare_solver(settings, plan, "sweep")),
            Method::TwoBit | Method::OneBit | Method::OneBitDual => {
                bounds::declare(settings, plan).into_iter().for_each(&mut declare);
            }
        }
        if settings.verify != Verify::None {
            declare(verify::declare(settings, plan));
        }
        declare(stats::declare(settings, plan));
    }
    if let (Some(fit), Some(largest)) = (settings.evaluation, build.databases().last()) {
        let (stage, made) = evaluation::declare(settings, largest, fit);
        stages.push(stage);
        artifacts.extend(made);
    }
    for (stage, reports) in settings.book().into_iter().flat_map(|request| book::declare(build, request)) {
        stages.push(stage);
        artifacts.extend(reports);
    }
    Graph::new(stages, artifacts).expect("stages are declared in the order in which they read each other")
}
