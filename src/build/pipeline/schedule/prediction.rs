//! The prediction of a run with several stages at a time: its schedule, with the predicted costs of the stages.
//!
//! A stage with some threads takes its work divided by them, but no less than it takes alone with all
//! threads. Where the running stages together want more cores or more of the drive than there is, all slow
//! down alike.

use super::{
    Limits, ReadyStage, Reservation, TakenResources, needs, next_stage, path_seconds, predecessors, share_out,
};
use crate::graph::Graph;
use crate::plan::{Plan, PlannedStage};
use crate::stage::{Cost, StageName};
use serde::Serialize;
use std::collections::BTreeMap;

/// The predicted course of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SchedulePrediction {
    /// The most stages that run at the same time.
    pub stages_at_a_time: usize,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Seconds of the longest path of stages that wait for each other, each with all threads: no schedule is faster.
    pub path_seconds: f64,
    /// Busy cores, on average.
    pub cores_busy: f64,
    /// Peak memory of the stages that run together.
    pub memory_bytes: u64,
    /// The stages with the peak.
    pub memory_stages: Vec<StageName>,
    /// Peak disk space, in addition to the space that is already taken.
    pub disk_bytes: u64,
}

/// A running stage.
struct RunningStep {
    /// Its index among the steps.
    step: usize,
    threads: usize,
    /// Seconds that it takes if nothing slows it down.
    seconds: f64,
    /// The share of it that is left.
    left: f64,
}

/// What is left of a chain of steps with a common folder.
#[derive(Default)]
struct ChainLeft {
    /// The steps that are still to end, the first one last.
    steps: Vec<usize>,
    /// What the largest of all its steps takes.
    most: Reservation,
    has_begun: bool,
}

/// The state of a simulated run.
struct SimulatedRun<'a> {
    graph: &'a Graph,
    steps: &'a [PlannedStage],
    /// The position of each step in the graph.
    positions: Vec<usize>,
    /// By position in the graph, the step there.
    step_at: Vec<Option<usize>>,
    paths: Vec<f64>,
    /// By step, the steps that wait for it.
    followers: Vec<Vec<usize>>,
    /// By step, how many steps it waits for.
    waits_for: Vec<usize>,
    has_started: Vec<bool>,
    has_ended: Vec<bool>,
    running: Vec<RunningStep>,
    /// By folder.
    chains: BTreeMap<&'a str, ChainLeft>,
    /// What the ended steps have left on the disk.
    held_bytes: i64,
    /// Steps up to this one have ended: the intermediates that only they needed are removed.
    ended: usize,
}

/// The gain that is worth another stage at a time.
const GAIN_MIN: f64 = 0.01;

/// Returns the prediction of the number of stages at a time that takes the least time, up to that of
/// `limits`. Of numbers that take about the same time, the least.
pub(crate) fn fastest(graph: &Graph, plan: &Plan, limits: &Limits) -> SchedulePrediction {
    let mut fastest = predict(graph, plan, &Limits { stages: 1, ..*limits });
    for stages in 2..=limits.stages {
        let prediction = predict(graph, plan, &Limits { stages, ..*limits });
        if prediction.seconds < fastest.seconds * (1.0 - GAIN_MIN) {
            fastest = prediction;
        }
    }
    fastest
}

/// Predicts a run of all steps of a plan.
pub(crate) fn predict(graph: &Graph, plan: &Plan, limits: &Limits) -> SchedulePrediction {
    let mut run = SimulatedRun::new(graph, plan);
    let (stages_at_a_time, path_seconds) = (limits.stages, run.path_seconds());
    let mut prediction = SchedulePrediction { stages_at_a_time, path_seconds, ..SchedulePrediction::default() };
    loop {
        run.start(limits);
        run.share_out(limits.threads);
        if run.running.is_empty() {
            break;
        }
        run.note_peaks(&mut prediction);
        prediction.seconds += run.advance(limits.threads);
    }
    if prediction.seconds > 0.0 {
        prediction.cores_busy = plan.steps.iter().map(|step| step.cost.core_seconds).sum::<f64>() / prediction.seconds;
    }
    prediction
}

impl<'a> SimulatedRun<'a> {
    fn new(graph: &'a Graph, plan: &'a Plan) -> SimulatedRun<'a> {
        let steps = &plan.steps[..];
        let positions: Vec<usize> = steps.iter().filter_map(|step| graph.position(&step.stage)).collect();
        let mut step_at = vec![None; graph.stages().len()];
        let mut seconds = vec![None; graph.stages().len()];
        for (step, &position) in positions.iter().enumerate() {
            (step_at[position], seconds[position]) = (Some(step), Some(steps[step].cost.seconds));
        }
        let (mut followers, mut waits_for) = (vec![Vec::new(); steps.len()], vec![0; steps.len()]);
        let mut chains: BTreeMap<&str, ChainLeft> = BTreeMap::new();
        for (step, &position) in positions.iter().enumerate().rev() {
            for before in predecessors(graph, position).filter_map(|before| step_at[before]) {
                followers[before].push(step);
                waits_for[step] += 1;
            }
            if let Some(folder) = &graph.stages()[position].folder {
                let chain = chains.entry(folder).or_default();
                chain.steps.push(step);
                chain.most = chain.most.max(needs(&steps[step]));
            }
        }
        SimulatedRun {
            graph,
            steps,
            paths: path_seconds(graph, &seconds),
            followers,
            waits_for,
            positions,
            step_at,
            has_started: vec![false; steps.len()],
            has_ended: vec![false; steps.len()],
            running: Vec::new(),
            chains,
            held_bytes: 0,
            ended: 0,
        }
    }

    fn path_seconds(&self) -> f64 {
        self.positions.iter().map(|&position| self.paths[position]).fold(0.0, f64::max)
    }

    fn folder(&self, step: usize) -> Option<&'a str> {
        self.graph.stages()[self.positions[step]].folder.as_deref()
    }

    /// Starts the stages that the schedule starts now.
    fn start(&mut self, limits: &Limits) {
        while let Some(start) = next_stage(&self.ready(), &self.taken(), limits) {
            let step = self.step_at[start.position].expect("the schedule starts steps");
            let seconds = self.seconds(step, start.threads);
            self.has_started[step] = true;
            if let Some(folder) = self.folder(step) {
                self.chains.entry(folder).or_default().has_begun = true;
            }
            self.running.push(RunningStep { step, threads: start.threads, seconds, left: 1.0 });
        }
    }

    /// Seconds that a step takes with some threads, if nothing slows it down.
    fn seconds(&self, step: usize, threads: usize) -> f64 {
        let Cost { seconds, core_seconds, .. } = self.steps[step].cost;
        seconds.max(core_seconds / threads as f64).max(f64::MIN_POSITIVE)
    }

    /// Gives the threads that are left to the running stages that grow.
    fn share_out(&mut self, threads: usize) {
        let free = threads.saturating_sub(self.taken().threads);
        let (graph, positions) = (self.graph, &self.positions);
        let grows = |running: &&mut RunningStep| graph.stages()[positions[running.step]].grows;
        share_out(free, self.running.iter_mut().filter(grows).map(|running| &mut running.threads));
        for at in 0..self.running.len() {
            self.running[at].seconds = self.seconds(self.running[at].step, self.running[at].threads);
        }
    }

    fn ready(&self) -> Vec<ReadyStage> {
        let mut ready = Vec::new();
        for (step, &position) in self.positions.iter().enumerate().skip(self.ended) {
            if self.has_started[step] || self.waits_for[step] > 0 {
                continue;
            }
            let needs = match self.folder(step).map(|folder| &self.chains[folder]) {
                None => needs(&self.steps[step]),
                Some(chain) if chain.steps.last() != Some(&step) => continue,
                Some(chain) if chain.has_begun => Reservation::default(),
                Some(chain) => chain.most,
            };
            let core_seconds = self.steps[step].cost.core_seconds;
            ready.push(ReadyStage { position, path_seconds: self.paths[position], core_seconds, needs });
        }
        ready
    }

    fn taken(&self) -> TakenResources {
        let alone = self.running.iter().filter(|running| self.folder(running.step).is_none());
        let of_stages = alone.map(|running| needs(&self.steps[running.step]));
        let open = self.chains.values().filter(|chain| chain.has_begun && !chain.steps.is_empty());
        let of_chains = open.map(|chain| chain.most);
        TakenResources {
            stages: self.running.len(),
            threads: self.running.iter().map(|running| running.threads).sum(),
            reserved: of_stages.chain(of_chains).fold(Reservation::default(), Reservation::plus),
        }
    }

    fn note_peaks(&self, prediction: &mut SchedulePrediction) {
        let costs = || self.running.iter().map(|running| &self.steps[running.step]);
        let memory_bytes = costs().map(|step| step.cost.memory_bytes).fold(0, u64::saturating_add);
        if memory_bytes > prediction.memory_bytes {
            prediction.memory_bytes = memory_bytes;
            prediction.memory_stages = costs().map(|step| step.stage.clone()).collect();
        }
        let disk_bytes = costs().map(|step| needs(step).disk_bytes).fold(0, u64::saturating_add);
        let disk_bytes = self.held_bytes.saturating_add(i64::try_from(disk_bytes).unwrap_or(i64::MAX));
        prediction.disk_bytes = prediction.disk_bytes.max(u64::try_from(disk_bytes).unwrap_or(0));
    }

    /// Lets the time pass until the next stage ends. Returns the seconds.
    fn advance(&mut self, threads: usize) -> f64 {
        let sum = |part: fn(&Cost) -> f64| -> f64 {
            self.running.iter().map(|running| part(&self.steps[running.step].cost) / running.seconds).sum()
        };
        let cores_wanted = sum(|cost| cost.core_seconds) / threads as f64;
        let slowdown = cores_wanted.max(sum(|cost| cost.disk_seconds)).max(1.0);
        let next = self.running.iter().map(|running| running.left * running.seconds).fold(f64::INFINITY, f64::min);
        for running in &mut self.running {
            running.left -= next / running.seconds;
        }
        // Those that end within a millionth of their time end together.
        let ended: Vec<usize> =
            self.running.extract_if(.., |running| running.left < 1e-6).map(|ended| ended.step).collect();
        ended.into_iter().for_each(|step| self.end(step));
        next * slowdown
    }

    fn end(&mut self, step: usize) {
        self.has_ended[step] = true;
        if let Some(folder) = self.folder(step) {
            self.chains.entry(folder).or_default().steps.pop();
        }
        for &after in &self.followers[step] {
            self.waits_for[after] -= 1;
        }
        self.held_bytes = self.held_bytes.saturating_add(self.steps[step].disk_kept_bytes);
        while self.has_ended.get(self.ended) == Some(&true) {
            let released = i64::try_from(self.steps[self.ended].disk_released_bytes).unwrap_or(i64::MAX);
            self.held_bytes = self.held_bytes.saturating_sub(released);
            self.ended += 1;
        }
    }
}
