//! A run with several stages at a time.
//!
//! Stages run on a thread each; the thread of the run plans, decides what starts next (module `schedule`),
//! and alone writes the journal and removes files. Stages with a common folder are a *chain*: they share
//! state in memory from one to the next, so they run one after the other, in the order of the graph, and what the
//! largest of them takes is reserved until the last one ends.
//!
//! Threads on which no stage starts go to the running stages that grow.
//!
//! A failure, an error of the run, and a request to stop end it alike: no stage starts any more, the running
//! ones save what is worth it, and what they complete is recorded. The error of the run is the first one.

use crate::artifact::ArtifactName;
use crate::directory::RUN_LOG;
use crate::error::Result;
use crate::graph::Graph;
use crate::journal::RunEnd;
use crate::orchestrator::Orchestrator;
use crate::orchestrator::execution::ExecutedStage;
use crate::orchestrator::run::{ActiveRun, PreparedStage, StagePlace};
use crate::plan::{Plan, PlannedStage};
use crate::report::{StageError, StageResult};
use crate::schedule::{self, Limits, ReadyStage, Reservation, Start, TakenResources, needs};
use crate::stage::StageSpec;
use crate::stop_signal::StopSignal;
use crate::thread_label::labelled;
use crate::work::Company;
use disk::{clock, threads};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, Builder, Scope};

/// The running stages, each on a thread of its own.
struct StageLanes<'scope, 'env, 'a> {
    scope: &'scope Scope<'scope, 'env>,
    running: Vec<RunningStage>,
    /// The unfinished chains of stages, by folder: what the largest of the stages takes.
    chains: BTreeMap<String, Reservation>,
    sender: Sender<EndedStage<'a>>,
    receiver: Receiver<EndedStage<'a>>,
    /// Set when the running stages are to stop although no stop was requested.
    halt: &'env AtomicBool,
    /// Stages that started.
    started: usize,
    /// The most stages at a time.
    stages_max: usize,
}

/// A stage that runs.
struct RunningStage {
    /// Its position in the graph.
    position: usize,
    threads: usize,
    /// Tells the stage its threads, if it grows.
    told_threads: Arc<AtomicUsize>,
    /// What is reserved for it alone: nothing if it belongs to a chain.
    reserved: Reservation,
}

/// A stage whose thread has ended.
struct EndedStage<'a> {
    prepared: PreparedStage<'a>,
    /// Its outcome, or the panic that ended it.
    outcome: thread::Result<StageResult<ExecutedStage>>,
}

impl<'a> StageLanes<'_, '_, 'a> {
    fn is_running(&self, position: usize) -> bool {
        self.running.iter().any(|running| running.position == position)
    }

    /// Waits for the end of a stage.
    fn wait(&mut self, orchestrator: &Orchestrator, graph: &Graph) -> EndedStage<'a> {
        if let Some(turns) = orchestrator.turns {
            let names = self.running.iter().map(|running| graph.stages()[running.position].name.clone());
            turns.pass(&names.collect::<Vec<_>>());
        }
        let ended = self.receiver.recv().expect("the lanes have a sender");
        self.running.retain(|running| running.position != ended.prepared.position);
        ended
    }

    /// Gives the threads of a run that are left to the running stages that grow.
    fn share_out(&mut self, threads: usize, graph: &Graph) {
        let free = threads.saturating_sub(self.taken().threads);
        let grows = |running: &&mut RunningStage| graph.stages()[running.position].grows;
        schedule::share_out(free, self.running.iter_mut().filter(grows).map(|running| &mut running.threads));
        for running in &self.running {
            running.told_threads.store(running.threads, Ordering::Relaxed);
        }
    }

    /// Returns what the running stages and the unfinished chains take.
    fn taken(&self) -> TakenResources {
        let reserved = self.running.iter().map(|running| running.reserved);
        let of_chains = self.chains.values().copied();
        TakenResources {
            stages: self.running.len(),
            threads: self.running.iter().map(|running| running.threads).sum(),
            reserved: reserved.chain(of_chains).fold(Reservation::default(), Reservation::plus),
        }
    }
}

impl<'r, 'a> ActiveRun<'r, 'a, '_> {
    /// Runs the plan to its end, several stages at a time.
    pub(super) fn side_by_side(&mut self, stages_max: usize) -> Result<(RunEnd, Plan)> {
        let halt = AtomicBool::new(false);
        let run = || {
            thread::scope(|scope| {
                let (sender, receiver) = mpsc::channel();
                let (running, chains, halt) = (Vec::new(), BTreeMap::new(), &halt);
                let mut lanes = StageLanes { scope, running, chains, sender, receiver, halt, started: 0, stages_max };
                let outcome = self.run_lanes(&mut lanes);
                if outcome.is_err() {
                    halt.store(true, Ordering::Relaxed);
                    while !lanes.running.is_empty() {
                        let ended = lanes.wait(self.orchestrator, self.graph);
                        // The first error is that of the run; a stage that fails too is recorded.
                        if let Err(error) = self.end_stage(ended, &mut lanes) {
                            tracing::warn!("{error}");
                        }
                    }
                }
                outcome
            })
        };
        // Not that of a stage which runs alone.
        labelled(Some(RUN_LOG.into()), run)
    }

    fn run_lanes<'scope>(&mut self, lanes: &mut StageLanes<'scope, '_, 'a>) -> Result<(RunEnd, Plan)>
    where
        'r: 'scope,
        'a: 'scope,
    {
        let stop = self.orchestrator.stop;
        loop {
            let plan = self.plan_beside(lanes)?;
            if lanes.running.is_empty() {
                if plan.steps.is_empty() {
                    return self.done(plan);
                }
                if lanes.halt.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed) {
                    return Ok((RunEnd::Stopped, plan));
                }
            }
            let goes_on = || !lanes.halt.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed);
            while goes_on()
                && let Some(start) = self.next_start(&plan, lanes)?
            {
                self.start_stage(&plan, start, lanes)?;
            }
            if goes_on() {
                lanes.share_out(self.orchestrator.options.threads, self.graph);
            }
            let ended = lanes.wait(self.orchestrator, self.graph);
            if !self.end_stage(ended, lanes)? {
                lanes.halt.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Returns a plan after which nothing is to adopt, and nothing to remove that no running stage uses.
    fn plan_beside(&mut self, lanes: &mut StageLanes) -> Result<Plan> {
        let plan = if lanes.running.is_empty() {
            self.settled_plan()?
        } else {
            loop {
                let plan = self.plan()?;
                self.orchestrator.allows(&plan)?;
                if !plan.adopted.is_empty() {
                    self.adopt(&plan.adopted)?;
                    continue;
                }
                let stages = self.graph.stages();
                let is_used = |name: &ArtifactName| {
                    let mut running = lanes.running.iter().map(|running| &stages[running.position]);
                    running.any(|stage| stage.inputs.contains(name) || stage.outputs.contains(name))
                };
                let removable: Vec<_> = plan.removable.iter().filter(|name| !is_used(name)).cloned().collect();
                if !removable.is_empty() {
                    self.remove(&removable)?;
                }
                break plan;
            }
        };
        let folders: Vec<&str> = plan.steps.iter().filter_map(|step| self.spec(step).folder.as_deref()).collect();
        lanes.chains.retain(|folder, _| folders.contains(&folder.as_str()));
        Ok(plan)
    }

    fn spec(&self, step: &PlannedStage) -> &'r StageSpec {
        self.graph.stage(&step.stage).expect("steps are stages of the graph")
    }

    /// Whether a running stage reads what a stage makes: that was up to date when it started.
    fn is_read(&self, position: usize, lanes: &StageLanes) -> bool {
        let stages = self.graph.stages();
        let mut inputs = lanes.running.iter().flat_map(|running| &stages[running.position].inputs);
        inputs.any(|input| stages[position].outputs.contains(input))
    }

    /// Decides which step starts next.
    fn next_start(&self, plan: &Plan, lanes: &StageLanes) -> Result<Option<Start>> {
        let (graph, options) = (self.graph, &self.orchestrator.options);
        let positions: Vec<usize> = plan.steps.iter().filter_map(|step| graph.position(&step.stage)).collect();
        let mut seconds = vec![None; graph.stages().len()];
        let mut is_pending = vec![false; graph.stages().len()];
        for (step, &position) in plan.steps.iter().zip(&positions) {
            (seconds[position], is_pending[position]) = (Some(step.cost.seconds), true);
        }
        let ready = plan.steps.iter().zip(&positions).filter(|(_, position)| {
            let is_ready = schedule::is_ready(graph, **position, &is_pending) && !self.is_read(**position, lanes);
            is_ready && !lanes.is_running(**position)
        });
        let ready: Vec<_> = ready.collect();
        if ready.is_empty() || lanes.running.len() >= lanes.stages_max {
            return Ok(None);
        }
        let paths = schedule::path_seconds(graph, &seconds);
        // The first pending stage of each folder, and what the largest one takes.
        let mut chains: BTreeMap<&str, (usize, Reservation)> = BTreeMap::new();
        for (step, &position) in plan.steps.iter().zip(&positions) {
            if let Some(folder) = &graph.stages()[position].folder {
                let (_, most) = chains.entry(folder).or_insert((position, Reservation::default()));
                *most = most.max(needs(step));
            }
        }
        let ready = ready.into_iter().filter_map(|(step, &position)| {
            let needs = match &graph.stages()[position].folder {
                None => needs(step),
                Some(folder) => match chains[folder.as_str()] {
                    (first, _) if first != position => return None,
                    _ if lanes.chains.contains_key(folder) => Reservation::default(),
                    (_, most) => most,
                },
            };
            let (path_seconds, core_seconds) = (paths[position], step.cost.core_seconds);
            Some(ReadyStage { position, path_seconds, core_seconds, needs })
        });
        let ready: Vec<_> = ready.collect();
        let free_bytes = self.orchestrator.free_bytes()?;
        let memory_bytes = options.memory.bytes();
        let limits = Limits {
            stages: lanes.stages_max,
            threads: options.threads,
            reserved: Reservation {
                memory_bytes: clock::attainable_bytes().map_or(memory_bytes, |bytes| bytes.min(memory_bytes)),
                // Room stays for all that is left, one stage after the other.
                disk_bytes: free_bytes.saturating_sub(plan.prediction.disk_bytes),
            },
        };
        Ok(schedule::next_stage(&ready, &lanes.taken(), &limits))
    }

    /// Starts a stage on a thread of its own.
    fn start_stage<'scope>(&mut self, plan: &Plan, start: Start, lanes: &mut StageLanes<'scope, '_, 'a>) -> Result<()>
    where
        'r: 'scope,
        'a: 'scope,
    {
        let orchestrator = self.orchestrator;
        let Start { position, threads } = start;
        let stage = &self.graph.stages()[position];
        let step = plan.steps.iter().find(|step| step.stage == stage.name).expect("the schedule starts steps");
        let ended = lanes.started - lanes.running.len();
        let place = StagePlace { number: lanes.started + 1, steps: ended + plan.steps.len() };
        // Beside others a stage starts only where its files fit.
        if lanes.running.is_empty() {
            self.check_room(step, plan)?;
        }
        let prepared = self.prepare(step, place)?;
        lanes.started += 1;
        let mut reserved = needs(step);
        if let Some(folder) = &stage.folder {
            let of_chain = plan.steps.iter().filter(|step| self.spec(step).folder.as_ref() == Some(folder));
            let most = of_chain.map(needs).fold(reserved, Reservation::max);
            lanes.chains.entry(folder.clone()).or_insert(most);
            reserved = Reservation::default();
        }
        let told_threads = Arc::new(threads.into());
        lanes.running.push(RunningStage { position, threads, told_threads: Arc::clone(&told_threads), reserved });
        let (sender, halt) = (lanes.sender.clone(), lanes.halt);
        let run = move || {
            if let Some(turns) = orchestrator.turns {
                turns.wait(&stage.name);
            }
            let stop = StopSignal::either(orchestrator.stop, halt);
            let execute = || orchestrator.execute(&prepared, &told_threads, stop, Company::Others);
            let label = stage.name.to_string().into();
            let outcome = catch_unwind(AssertUnwindSafe(|| labelled(Some(label), execute)));
            // The run receives until no stage runs.
            let _ = sender.send(EndedStage { prepared, outcome });
        };
        let started = threads::spawn_scoped(lanes.scope, Builder::new().name(stage.name.to_string()), run);
        started.map(drop).map_err(|error| {
            lanes.running.retain(|running| running.position != position);
            self.fail(&stage.name, StageError::no_threads(error))
        })
    }

    /// Records the outcome of a stage. Returns `false` if it was stopped.
    fn end_stage(&mut self, ended: EndedStage<'a>, lanes: &mut StageLanes<'_, '_, 'a>) -> Result<bool> {
        match ended.outcome {
            Ok(outcome) => self.complete(ended.prepared, outcome),
            Err(panic) => {
                lanes.halt.store(true, Ordering::Relaxed);
                while !lanes.running.is_empty() {
                    lanes.wait(self.orchestrator, self.graph);
                }
                resume_unwind(panic)
            }
        }
    }
}
