//! `awari plan`: what `run` would do.

use crate::args::PlanArgs;
use crate::error::CliError;
use crate::output::{print, print_json, say};
use crate::quantity;
use crate::request::Request;
use crate::summary::{align, columns};
use disk::RealDisk;
use pipeline::plan::Why;
use pipeline::{Budget, Exit, Orchestrator, Plan};

pub(crate) fn run(args: &PlanArgs) -> Result<Exit, CliError> {
    let disk = RealDisk::default();
    let request = Request::read(&disk, &args.manifest)?;
    let dir = request.dir();
    let orchestrator = Orchestrator::new(&disk, &dir, request.work(), request.options(Some(&args.selection)));
    let plan = orchestrator.plan()?;
    if args.json {
        print_json(&plan)?;
    } else {
        print(&text(&plan))?;
    }
    if !plan.steps.is_empty()
        && let Err(error) = orchestrator.preflight(&plan)
    {
        say(format_args!("`run` would refuse to start: {error}"));
    }
    Ok(if args.check && !plan.steps.is_empty() { Exit::WorkPending } else { Exit::Done })
}

fn text(plan: &Plan) -> String {
    let settled = plan.fresh.iter().filter(|settled| settled.why != Why::NotAsked).count();
    let mut text = String::new();
    if plan.steps.is_empty() {
        text.push_str(&format!("nothing to do: {settled} stages are up to date\n"));
    } else {
        let mut table = columns(&["stage", "positions", "time", "memory", "disk", "why"]);
        for step in &plan.steps {
            table.add_row([
                step.stage.to_string(),
                quantity::grouped(step.cost.positions),
                quantity::time(step.cost.seconds),
                Budget::show(step.cost.memory_bytes),
                Budget::show(step.cost.disk_bytes),
                step.reason.to_string(),
            ]);
        }
        align(&mut table, 1..5);
        let prediction = &plan.prediction;
        let memory_stage = prediction.memory_stage.as_ref().map_or(String::new(), |stage| format!(" ({stage})"));
        text.push_str(&format!(
            "{}\n{} stages to run, {settled} up to date: about {}, at most {} of memory{memory_stage} and {} of disk\n",
            table.trim_fmt(),
            plan.steps.len(),
            quantity::about(prediction.seconds),
            Budget::show(prediction.memory_bytes),
            Budget::show(prediction.disk_bytes),
        ));
    }
    if !plan.adopted.is_empty() {
        text.push_str(&format!(
            "{} files that the journal does not know are taken over on the word of their headers\n",
            plan.adopted.len()
        ));
    }
    if !plan.removable.is_empty() {
        text.push_str(&format!("{} files that are no longer needed are removed\n", plan.removable.len()));
    }
    text
}
