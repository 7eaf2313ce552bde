//! `awari plan`: what `run` would do.

use crate::args::{PlanArgs, PlanFormat};
use crate::builds::codecs;
use crate::builds::doctor::nearest;
use crate::builds::idle_changes::idle_changes;
use crate::builds::job_plan::{JobPlan, JsonJobPlan};
use crate::builds::job_table::{JobTable, job_heading};
use crate::builds::method_table::{JsonMachine, JsonPrediction, MethodTable, heading, refusals};
use crate::builds::plan_lines::lines;
use crate::builds::request::{ResolvedBuild, refuse_job};
use crate::builds::stage_graph;
use crate::error::Result;
use crate::files::databases::solved;
use crate::output::{print, print_json, print_text};
use crate::text::quantity;
use crate::text::screen::Width;
use crate::text::table::TextTable;
use crate::text::terminal::say;
use disk::{Disk, RealDisk};
use pipeline::preflight::Resources;
use pipeline::status::status;
use pipeline::{Budget, Exit, Orchestrator, Plan, SchedulePrediction, StageCounts, Work};
use planner::{BuildPlan, ByMethod, DatabasePlan, Method, MethodPrediction};
use serde::Serialize;
use std::path::Path;

/// Name of this machine.
const THIS: &str = "this";

pub(crate) fn run(args: &PlanArgs) -> Result<Exit> {
    let disk = RealDisk::default();
    let request = ResolvedBuild::read_to_plan(&disk, args)?;
    let (settings, dir) = (request.settings(), request.dir());
    let machine = args.hardware.as_deref().unwrap_or(THIS);
    if settings.ranks > 1 {
        refuse_job(settings)?;
    }
    let is_json = args.format() == PlanFormat::Json;
    if let Some(stones) = args.databases() {
        // The free disk space of this machine is that of the run directory.
        let mut hardware = settings.hardware;
        if machine == THIS {
            hardware.disk_bytes = disk.free_bytes(&nearest(&dir)).ok();
        }
        let settings = settings.clone().for_machine(hardware, settings.memory_bytes, settings.threads);
        match args.ranks {
            Some(_) => JobTable::new(&settings, stones).show(machine, is_json)?,
            None => MethodTable::new(&settings, stones).show(machine, is_json)?,
        }
        return Ok(Exit::Done);
    }
    let orchestrator = Orchestrator::new(&disk, &dir, request.work(), request.options(Some(&args.selection)));
    let plan = orchestrator.plan()?;
    if args.format() == PlanFormat::Dot {
        print(&stage_graph::dot(request.work().graph(), &plan))?;
        return Ok(if args.check && !plan.steps.is_empty() { Exit::WorkPending } else { Exit::Done });
    }
    let hardware = &settings.hardware;
    let schedule = if settings.stages_at_a_time == 1 {
        None
    } else {
        let disk_free = match hardware.disk_bytes.filter(|_| machine != THIS) {
            Some(bytes) => bytes,
            None => orchestrator.free_bytes()?,
        };
        Some(orchestrator.schedule(&plan, disk_free))
    };
    let job = args.ranks.is_some().then(|| JobPlan::new(request.work().plan()));
    if is_json {
        let methods =
            solved(&plan).into_iter().map(|stones| MethodChoice::new(request.work().plan(), stones)).collect();
        print_json(&JsonPlan {
            plan: &plan,
            counts: plan.stage_counts(),
            hardware: JsonMachine::new(&settings.hardware),
            methods,
            schedule: schedule.as_ref(),
            job: job.as_ref().map(|job| job.json(&plan.steps)),
        })?;
    } else if let Some(job) = &job {
        print_text(&job_heading(machine, settings))?;
        print_text(&format!("{}{}", job.text(&lines(&plan, args.all)), remarks(&plan)))?;
    } else {
        if args.hardware.is_some() {
            print_text(&heading(machine, settings))?;
        }
        print_text(&text(&plan, schedule.as_ref(), args.all))?;
        print_text(&methods(request.work().plan(), &solved(&plan), args.all))?;
    }
    if plan.steps.is_empty() {
        let before = ResolvedBuild::of_directory(&disk, &dir).ok().flatten();
        let status = status(&disk, &dir, Some(request.work()), settings.keep)?;
        idle_changes(before.as_ref(), settings, &status, &dir).into_iter().for_each(say);
    }
    if let Some(kept) = codecs::kept(&disk, settings, &dir, &plan) {
        say(kept);
    }
    if let Err(error) = orchestrator.check_directory() {
        say(format_args!("`run` would refuse to start: {error}"));
    }
    if let Err(error) = orchestrator.allows(&plan) {
        say(format_args!("`run` would refuse to start: {error}"));
    }
    if !plan.steps.is_empty() {
        let of_all = || hardware.disk_bytes.map(|bytes| bytes * settings.ranks as u64);
        let refusal = match hardware.shared.bytes.filter(|_| job.is_some()).or_else(of_all).filter(|_| machine != THIS)
        {
            None => orchestrator.preflight(&plan.prediction).err().map(|error| error.to_string()),
            Some(disk_free) => {
                let room = Resources { memory: Budget::new(settings.memory_bytes), memory_available: None, disk_free };
                room.check(&plan.prediction, Path::new(machine)).err().map(|error| error.to_string())
            }
        };
        if let Some(error) = refusal {
            say(format_args!("`run` would refuse to start: {error}"));
        }
    }
    Ok(if args.check && !plan.steps.is_empty() { Exit::WorkPending } else { Exit::Done })
}

/// A plan and its predictions, as JSON.
#[derive(Serialize)]
struct JsonPlan<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    counts: StageCounts,
    hardware: JsonMachine,
    methods: Vec<MethodChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<&'a SchedulePrediction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<JsonJobPlan>,
}

/// The method of a database, and the predictions for all methods.
#[derive(Serialize)]
struct MethodChoice {
    stones: u32,
    method: &'static str,
    predictions: Vec<JsonPrediction>,
}

impl MethodChoice {
    fn new(build: &BuildPlan, stones: u32) -> MethodChoice {
        let predicted = predictions(build, stones).map(|prediction| JsonPrediction::new(build.settings(), &prediction));
        MethodChoice { stones, method: build.database(stones).method().word(), predictions: predicted.into() }
    }
}

/// Returns the predictions for solving a database by each method.
fn predictions(build: &BuildPlan, stones: u32) -> ByMethod<MethodPrediction> {
    DatabasePlan::by_each_method(build.settings(), stones).map(|plan| *plan.solving())
}

/// The maximum number of databases for which methods are shown, the largest first.
const DATABASES_LISTED_MAX: usize = 8;

/// Returns a table of the predictions by method, with the chosen one marked.
fn methods(build: &BuildPlan, databases: &[u32], all: bool) -> String {
    let shown = if all { 0 } else { databases.len().saturating_sub(DATABASES_LISTED_MAX) };
    if databases.is_empty() {
        return String::new();
    }
    let headings: Vec<&str> = ["stones"].into_iter().chain(Method::ALL.map(Method::word)).collect();
    let mut table = TextTable::new(&headings).numbers(0..headings.len());
    for &stones in &databases[shown..] {
        let chosen = build.database(stones).method();
        let cells = predictions(build, stones).map(|prediction| {
            if prediction.method.refusal(&build.settings().rules).is_some() {
                return "cannot".to_owned();
            }
            let mark = match prediction.fits {
                _ if prediction.method == chosen => "*",
                true => " ",
                false => "-",
            };
            format!("{}, {} {mark}", Budget::show(prediction.memory_bytes), quantity::time(prediction.seconds))
        });
        table.add_row([stones.to_string()].into_iter().chain(cells));
    }
    format!(
        "methods, by predicted memory and time (* is chosen, - does not fit {}):\n{}\n{}",
        Budget::show(build.settings().memory_bytes),
        table.fit(Width::stdout()),
        refusals(build.settings())
    )
}

fn text(plan: &Plan, schedule: Option<&SchedulePrediction>, all: bool) -> String {
    let counts = plan.stage_counts();
    let mut text = String::new();
    if plan.steps.is_empty() {
        text.push_str(&format!("nothing to do: {counts}\n"));
    } else {
        let headings = ["stage", "positions", "time", "memory", "disk", "why"];
        let mut table = TextTable::new(&headings).numbers(1..5).optional(&["disk", "memory", "positions"]);
        for line in lines(plan, all) {
            let (positions, why) = match line.folded() {
                Some(stages) => {
                    (String::new(), format!("{stages} stages of less than a second each; --all lists them"))
                }
                None => (quantity::grouped(line.first().cost.positions), line.first().reason.to_string()),
            };
            table.add_row([
                line.name(),
                positions,
                quantity::time(line.steps().map(|step| step.cost.seconds).sum()),
                Budget::show(line.steps().map(|step| step.cost.memory_bytes).max().unwrap_or(0)),
                Budget::show(line.steps().map(|step| step.cost.disk_bytes).max().unwrap_or(0)),
                why,
            ]);
        }
        let prediction = &plan.prediction;
        let memory_stage = prediction.memory_stage.as_ref().map_or(String::new(), |stage| format!(" ({stage})"));
        text.push_str(&format!(
            "{}\n{counts}; about {}, at most {} of memory{memory_stage} and {} of disk\n",
            table.fit(Width::stdout()),
            quantity::about(prediction.seconds),
            Budget::show(prediction.memory_bytes),
            Budget::show(prediction.disk_bytes),
        ));
        text.push_str(&schedule.map_or_else(String::new, side_by_side));
    }
    text + &remarks(plan)
}

/// Says what a run with several stages at a time takes; nothing if one at a time is as fast.
fn side_by_side(schedule: &SchedulePrediction) -> String {
    if schedule.stages_at_a_time == 1 {
        return String::new();
    }
    let stages: Vec<String> = schedule.memory_stages.iter().map(ToString::to_string).collect();
    format!(
        "{} stages at a time: about {}, {:.1} cores busy; at most {} of memory ({}) and {} of disk; the longest path of \
         stages takes {}\n",
        schedule.stages_at_a_time,
        quantity::about(schedule.seconds),
        schedule.cores_busy,
        Budget::show(schedule.memory_bytes),
        stages.join(", "),
        Budget::show(schedule.disk_bytes),
        quantity::about(schedule.path_seconds),
    )
}

/// Says what `run` does with files that are there.
fn remarks(plan: &Plan) -> String {
    let mut text = String::new();
    if !plan.adopted.is_empty() {
        let files = quantity::plural(plan.adopted.len() as u64, "file");
        text.push_str(&format!("`run` adopts {files} not in the journal (headers checked)\n"));
    }
    if !plan.removable.is_empty() {
        let files = quantity::plural(plan.removable.len() as u64, "file");
        text.push_str(&format!("`run` removes {files} that no stage needs\n"));
    }
    text
}
