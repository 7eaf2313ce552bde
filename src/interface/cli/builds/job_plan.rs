//! `awari plan MANIFEST --ranks R`: predictions for the stages that a job of several ranks would run.

use crate::builds::job_table::{JsonBusy, verdict};
use crate::builds::plan_lines::PlanLine;
use crate::text::quantity;
use crate::text::screen::Width;
use crate::text::table::TextTable;
use pipeline::Budget;
use pipeline::plan::PlannedStage;
use planner::{BuildPlan, BusySeconds, DatabaseJob, JobPlanner, StageJob};
use serde::Serialize;
use stages::kinds;

/// Predictions for the databases of a build.
pub(crate) struct JobPlan<'a> {
    build: &'a BuildPlan,
    jobs: Vec<DatabaseJob>,
}

/// The predictions for a job, as JSON.
#[derive(Serialize)]
pub(crate) struct JsonJobPlan {
    ranks: usize,
    /// Of the stages that would run.
    seconds: f64,
    busy: JsonBusy,
    sent_bytes: f64,
    /// Of the fullest rank.
    memory_bytes: u64,
    scratch_bytes: u64,
    /// The largest database such that it and all smaller ones fit; none if not even the smallest does.
    fits_up_to: Option<u32>,
    stages: Vec<JsonStageJob>,
}

/// The prediction for a stage, as JSON.
#[derive(Serialize)]
struct JsonStageJob {
    stage: String,
    seconds: f64,
    busy: JsonBusy,
    cpu_seconds: f64,
    memory_bytes: u64,
    scratch_bytes: u64,
    disk_bytes: u64,
    sent_bytes: f64,
    file_bytes: f64,
    limit: String,
}

/// What a number of stages of one kind take.
struct PredictedStages {
    seconds: f64,
    busy: BusySeconds,
    cpu_seconds: f64,
    sent_bytes: f64,
    file_bytes: f64,
    memory_bytes: u64,
    scratch_bytes: u64,
    disk_bytes: u64,
}

impl PredictedStages {
    /// Returns the prediction for some of the stages of a class.
    fn of(job: &StageJob, stages: usize) -> PredictedStages {
        let share = stages as f64 / f64::from(job.stages.max(1));
        PredictedStages {
            seconds: job.seconds * share,
            busy: job.busy.share(share),
            cpu_seconds: job.cpu_seconds * share,
            sent_bytes: job.sent_bytes * share,
            file_bytes: job.disk_bytes * share,
            memory_bytes: job.memory_bytes,
            scratch_bytes: job.local_bytes,
            disk_bytes: job.shared_bytes,
        }
    }

    /// Returns the prediction for these stages and others after them.
    fn followed_by(self, next: PredictedStages) -> PredictedStages {
        PredictedStages {
            seconds: self.seconds + next.seconds,
            busy: self.busy + next.busy,
            cpu_seconds: self.cpu_seconds + next.cpu_seconds,
            sent_bytes: self.sent_bytes + next.sent_bytes,
            file_bytes: self.file_bytes + next.file_bytes,
            memory_bytes: self.memory_bytes.max(next.memory_bytes),
            scratch_bytes: self.scratch_bytes.max(next.scratch_bytes),
            disk_bytes: self.disk_bytes.max(next.disk_bytes),
        }
    }

    /// Returns the prediction for stages that belong to no database, which rank 0 runs alone.
    fn of_rank_0(steps: &[&PlannedStage]) -> PredictedStages {
        let seconds = steps.iter().map(|step| step.cost.seconds).sum();
        PredictedStages {
            seconds,
            busy: BusySeconds { cores: seconds, ..BusySeconds::default() },
            cpu_seconds: seconds,
            sent_bytes: 0.0,
            file_bytes: 0.0,
            memory_bytes: steps.iter().map(|step| step.cost.memory_bytes).max().unwrap_or(0),
            scratch_bytes: 0,
            disk_bytes: steps.iter().map(|step| step.cost.disk_bytes).max().unwrap_or(0),
        }
    }
}

impl<'a> JobPlan<'a> {
    /// Plans a job of the ranks of a build.
    pub(crate) fn new(build: &'a BuildPlan) -> JobPlan<'a> {
        JobPlan { build, jobs: JobPlanner::new(build.settings()).databases(build) }
    }

    /// Returns the prediction for stages of one kind of one database.
    fn predicted(&self, steps: &[&PlannedStage]) -> PredictedStages {
        let stage = &steps[0].stage;
        let job = stage.parameters().first().and_then(|&stones| self.jobs.iter().find(|job| job.stones == stones));
        let of_stage = job.and_then(|job| job.stage(kinds::class(stage, job.method)?));
        of_stage.map_or_else(|| PredictedStages::of_rank_0(steps), |job| PredictedStages::of(job, steps.len()))
    }

    /// Returns a table of stages, and what all of them take.
    pub(crate) fn text(&self, lines: &[PlanLine]) -> String {
        let headings = [
            "stage",
            "positions",
            "time",
            "cores",
            "network",
            "local disk",
            "shared disk",
            "memory",
            "scratch",
            "disk",
            "sent",
            "limit",
        ];
        let optional = [
            "positions",
            "scratch",
            "shared disk",
            "local disk",
            "disk",
            "cores",
            "network",
            "sent",
            "limit",
            "memory",
        ];
        let mut table = TextTable::new(&headings).numbers(1..headings.len() - 1).optional(&optional);
        let (mut seconds, mut busy, mut sent) = (0.0, BusySeconds::default(), 0.0);
        for line in lines {
            let predictions = line.groups.iter().map(|group| self.predicted(group));
            let Some(predicted) = predictions.reduce(PredictedStages::followed_by) else { continue };
            let positions = match line.folded() {
                Some(_) => String::new(),
                None => quantity::grouped(line.first().cost.positions),
            };
            (seconds, busy, sent) = (seconds + predicted.seconds, busy + predicted.busy, sent + predicted.sent_bytes);
            table.add_row([
                line.name(),
                positions,
                quantity::time(predicted.seconds),
                quantity::time(predicted.busy.cores),
                quantity::time(predicted.busy.network),
                quantity::time(predicted.busy.local_disk),
                quantity::time(predicted.busy.shared_disk),
                Budget::show(predicted.memory_bytes),
                Budget::show(predicted.scratch_bytes),
                Budget::show(predicted.disk_bytes),
                Budget::show(predicted.sent_bytes as u64),
                predicted.busy.limit().to_string(),
            ]);
        }
        format!(
            "{}\nabout {}: cores of the busiest rank {}, network {}, latency {}, local disk {}, shared disk {}; {} sent\n{}",
            table.fit(Width::stdout()),
            quantity::about(seconds),
            quantity::time(busy.cores),
            quantity::time(busy.network),
            quantity::time(busy.latency),
            quantity::time(busy.local_disk),
            quantity::time(busy.shared_disk),
            Budget::show(sent as u64),
            verdict(self.build.settings(), self.jobs.iter()),
        )
    }

    /// Returns the predictions for steps, each by itself.
    pub(crate) fn json(&self, steps: &[PlannedStage]) -> JsonJobPlan {
        let all: Vec<_> = steps.iter().map(|step| (step, self.predicted(&[step]))).collect();
        let fitting = self.jobs.iter().take_while(|job| job.fits);
        let stage = |(step, predicted): &(&PlannedStage, PredictedStages)| JsonStageJob {
            stage: step.stage.to_string(),
            seconds: predicted.seconds,
            busy: JsonBusy::new(&predicted.busy),
            cpu_seconds: predicted.cpu_seconds,
            memory_bytes: predicted.memory_bytes,
            scratch_bytes: predicted.scratch_bytes,
            disk_bytes: predicted.disk_bytes,
            sent_bytes: predicted.sent_bytes,
            file_bytes: predicted.file_bytes,
            limit: predicted.busy.limit().to_string(),
        };
        let busy = all.iter().map(|(_, predicted)| predicted.busy).fold(BusySeconds::default(), std::ops::Add::add);
        JsonJobPlan {
            ranks: self.build.settings().ranks,
            seconds: all.iter().map(|(_, predicted)| predicted.seconds).sum(),
            busy: JsonBusy::new(&busy),
            sent_bytes: all.iter().map(|(_, predicted)| predicted.sent_bytes).sum(),
            memory_bytes: all.iter().map(|(_, predicted)| predicted.memory_bytes).max().unwrap_or(0),
            scratch_bytes: all.iter().map(|(_, predicted)| predicted.scratch_bytes).max().unwrap_or(0),
            fits_up_to: fitting.last().map(|job| job.stones),
            stages: all.iter().map(stage).collect(),
        }
    }
}
