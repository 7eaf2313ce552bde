//! `awari explain`: lists the stages of a build, or explains why one is or is not up to date.

use crate::args::ExplainArgs;
use crate::builds::request::ResolvedBuild;
use crate::error::Result;
use crate::output::{print_json, print_text};
use crate::text::quantity;
use crate::text::screen::Width;
use crate::text::table::TextTable;
use disk::{RealDisk, clock};
use pipeline::orchestrator::{ComparedField, ExplainedArtifact, Explanation};
use pipeline::{Exit, Orchestrator, Plan, StageName, Standing, Work};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt::Write;

pub(crate) fn run(args: &ExplainArgs) -> Result<Exit> {
    let disk = RealDisk::default();
    let request = ResolvedBuild::read(&disk, &args.manifest)?;
    let dir = request.dir();
    let options = request.options(Some(&args.selection));
    let orchestrator = Orchestrator::new(&disk, &dir, request.work(), options);
    let Some(stage) = &args.stage else {
        let plan = orchestrator.plan()?;
        let stages = listed(&plan, request.work());
        if args.json {
            print_json(&stages)?;
        } else {
            print_text(&list(&stages, &plan))?;
        }
        return Ok(Exit::Done);
    };
    let explanation = orchestrator.explain(stage)?;
    if args.json {
        print_json(&explanation)?;
    } else {
        print_text(&text(&explanation))?;
    }
    Ok(Exit::Done)
}

/// A stage of a build, and its state.
#[derive(Serialize)]
struct ListedStage {
    stage: StageName,
    standing: Standing,
    /// Why it has this state.
    why: String,
}

/// Lists all stages in the order in which they run.
fn listed(plan: &Plan, work: &dyn Work) -> Vec<ListedStage> {
    let to_run = plan.steps.iter().map(|step| (&step.stage, step.reason.to_string()));
    let why: HashMap<_, _> =
        to_run.chain(plan.fresh.iter().map(|fresh| (&fresh.stage, fresh.why.to_string()))).collect();
    let stages = work.graph().stages().iter().map(|stage| &stage.name);
    let state = |stage: &StageName| {
        let why = why.get(stage).cloned().unwrap_or_default();
        ListedStage { stage: stage.clone(), standing: plan.standing(stage), why }
    };
    stages.map(state).collect()
}

fn list(stages: &[ListedStage], plan: &Plan) -> String {
    let mut table = TextTable::new(&["stage", "state", "why"]);
    for ListedStage { stage, standing, why } in stages {
        table.add_row([stage.to_string(), standing.to_string(), why.clone()]);
    }
    let counts = plan.stage_counts();
    format!("{}\n{}: {counts}\n", table.fit(Width::stdout()), quantity::plural(counts.stages() as u64, "stage"))
}

fn text(explanation: &Explanation) -> String {
    let Explanation { stage, standing, counts, why, outputs, .. } = explanation;
    let mut text = format!("{stage} is {standing}: {why}\n");
    for output in outputs {
        let _ = write!(text, "\n{}", artifact(output));
    }
    let _ = write!(text, "\n{}: {counts}\n", quantity::plural(counts.stages() as u64, "stage"));
    text
}

fn artifact(output: &ExplainedArtifact) -> String {
    let ExplainedArtifact { artifact, made_by, made_at, fields, .. } = output;
    let made = match (made_by, made_at) {
        (Some(stage), Some(at)) => format!("made by {stage} at {}", clock::utc(*at)),
        (None, Some(at)) => format!("adopted (header checked) at {}", clock::utc(*at)),
        _ => "not in the journal".to_owned(),
    };
    let mut table = TextTable::new(&["", "recorded", "on disk", "requested", ""]);
    for ComparedField { field, recorded, on_disk, asked, agrees } in fields {
        let cell = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let mark = if *agrees { "" } else { "<- differs" };
        table.add_row([field.clone(), cell(recorded), cell(on_disk), cell(asked), mark.to_owned()]);
    }
    format!("{artifact}: {made}\n{}\n", table.fit(Width::stdout()))
}
