//! One run of a directory: plans, adopts, removes and executes.

use crate::artifact::{ArtifactKind, ArtifactName, Inspection};
use crate::directory::{
    Heartbeat, Inspections, MANIFEST_MARK, Space, inspect_artifact, is_leftover_of, keep_manifest, manifest_path,
    snapshots_path, survey,
};
use crate::error::{PipelineError, Result, unusable};
use crate::exit::Exit;
use crate::graph::Graph;
use crate::journal::{
    ArtifactRecord, FenceGuard, Journal, JournalError, LastHeartbeat, Measured, Record, RunEnd, clip,
};
use crate::observer::Event;
use crate::orchestrator::Orchestrator;
use crate::orchestrator::execution::{ExecutedStage, Fingerprints, execute, fingerprints_of};
use crate::plan::{AdoptedArtifact, Plan, PlanPrediction, PlannedStage, Reason, SettledReason};
use crate::planning::{FreshnessTable, evaluate, plan_of};
use crate::preflight::PreflightError;
use crate::progress::StageProgress;
use crate::report::{StageError, StageResult};
use crate::schedule::needs;
use crate::snapshots::Snapshots;
use crate::stage::{StageName, StageSpec};
use crate::stop_signal::StopSignal;
use crate::work::{Company, StageContext};
use disk::{Digest, DiskError, GuardedDisk, Staged, clock};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// [`RunEnd::Done`] or [`RunEnd::Stopped`].
    pub how: RunEnd,
    /// The completed stages, in order.
    pub ran: Vec<CompletedStage>,
    /// The plan at the end.
    pub plan: Plan,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Peak resident memory of the process up to the end of the run, where known.
    pub memory_peak_bytes: Option<u64>,
}

impl RunSummary {
    /// Returns the exit code: done or stopped.
    pub fn exit(&self) -> Exit {
        match self.how {
            RunEnd::Done => Exit::Done,
            RunEnd::Stopped => Exit::Stopped,
            RunEnd::Failed(_) => Exit::StageFailed,
        }
    }
}

/// A completed stage.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletedStage {
    /// The stage.
    pub stage: StageName,
    /// The reason why it ran.
    pub reason: Reason,
    /// Its measured cost.
    pub measured: Measured,
    /// Its outputs.
    pub artifacts: Vec<ArtifactRecord>,
}

/// Stages that need less disk space than this are not probed: the probe at the start of the run suffices.
const PROBED_BYTES_MIN: u64 = 64 << 20;

/// Debug builds evaluate graphs of up to this many stages anew for each plan: of larger ones this takes most of a test.
const STAGES_EVALUATED_AGAIN_MAX: usize = 400;

impl Orchestrator<'_> {
    /// Runs the plan to its end, or until a stop is requested.
    ///
    /// # Errors
    /// The error that ended the run early; finished work is kept.
    pub fn run(&self) -> Result<RunSummary> {
        let start = Instant::now();
        let mut directory = match self.open() {
            // A finished build may be mounted read-only, or lie on a medium that is.
            Err(error) if error.is_read_only() => return self.run_of_nothing(start).ok_or(error),
            opened => opened?,
        };
        let journal = directory.journal();
        if journal.cut_bytes() > 0 {
            let bytes = journal.cut_bytes();
            self.observer.notice(&Event::JournalCut { bytes });
        }
        self.remove_leftovers().map_err(|source| unusable(&self.directory, source))?;
        let guard = FenceGuard::new(journal.fence());
        let disk = GuardedDisk::new(self.disk, &guard);
        let fenced =
            Orchestrator { disk: &disk, directory: self.directory.clone(), options: self.options.clone(), ..*self };
        let found = survey(self.disk, &self.directory, self.work)?;
        let mut run = ActiveRun {
            orchestrator: &fenced,
            graph: self.work.graph(),
            space: self.space(&found)?,
            found,
            freshness: FreshnessTable::none(self.work.graph()),
            touched: 0,
            forced: self.options.force.iter().cloned().collect(),
            journal,
            scheduled_seconds: None,
            started: false,
            ran: Vec::new(),
        };
        let outcome = run.steps();
        let how = match &outcome {
            Ok((how, _)) => how.clone(),
            Err(error) => RunEnd::Failed(clip(&error.to_string())),
        };
        if run.started {
            let ended = run.journal.append(Record::RunEnded { how: how.clone() });
            // If the run failed, that is the error to report.
            if outcome.is_ok() {
                ended?;
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        let event = Event::RunEnded { how: how.clone(), seconds };
        self.observer.notice(&event);
        let (how, plan) = outcome?;
        Ok(RunSummary { how, ran: run.ran, plan, seconds, memory_peak_bytes: clock::peak_resident_bytes() })
    }

    /// Returns the summary of a run that has nothing to write, if there is nothing to do.
    fn run_of_nothing(&self, start: Instant) -> Option<RunSummary> {
        let plan = self.plan().ok()?;
        let is_idle = plan.steps.is_empty() && plan.adopted.is_empty() && plan.removable.is_empty();
        let seconds = start.elapsed().as_secs_f64();
        let memory_peak_bytes = clock::peak_resident_bytes();
        is_idle.then_some(RunSummary { how: RunEnd::Done, ran: Vec::new(), plan, seconds, memory_peak_bytes })
    }

    /// Checks that bytes can be reserved: a quota may forbid this process to use free space.
    pub(super) fn probe(&self, bytes: u64) -> Result<()> {
        let directory = &self.directory;
        let probed = self.disk.probe(directory, bytes);
        // The probe is one file, and may exceed a size limit that no real file reaches.
        if probed.as_ref().is_err_and(DiskError::is_file_size_limit) {
            return Ok(());
        }
        probed.map_err(|source| match self.disk.free_bytes(directory) {
            Ok(free) if matches!(source, DiskError::NoSpace { .. }) && free >= bytes => {
                PreflightError::Quota { directory: directory.clone(), needed: bytes, free, source }.into()
            }
            _ => unusable(directory, source),
        })
    }

    /// Executes a stage.
    pub(super) fn execute(
        &self,
        prepared: &PreparedStage<'_>,
        threads: &AtomicUsize,
        stop: StopSignal<'_>,
        company: Company,
    ) -> StageResult<ExecutedStage> {
        let progress = StageProgress::new();
        let context = StageContext {
            disk: self.disk,
            directory: &self.directory,
            scratch: None,
            snapshots: prepared.snapshots.clone(),
            threads,
            memory: self.options.memory,
            progress: &progress,
            stop,
            company,
        };
        let stage = &self.work.graph().stages()[prepared.position];
        execute(self.work, stage, &context, &prepared.fingerprints, self.observer)
    }

    fn remove_leftovers(&self) -> Result<(), DiskError> {
        for directory in &self.directories() {
            for path in self.disk.list(directory)? {
                if is_leftover_of(&self.directory, &path, self.work) {
                    self.disk.remove(&path)?;
                }
            }
        }
        Ok(())
    }

    fn write_manifest(&self) -> Result<(), DiskError> {
        const BYTES_MAX: u64 = 1 << 20;
        let path = manifest_path(&self.directory);
        let text = format!("{MANIFEST_MARK}{}", self.options.manifest);
        let same = self.disk.read(&path, BYTES_MAX).is_ok_and(|old| old == text.as_bytes());
        if same || self.options.manifest.is_empty() {
            return Ok(());
        }
        keep_manifest(self.disk, &self.directory, &self.options.manifest)?;
        let mut staged = Staged::create(self.disk, &path, 0)?;
        staged.write(text.as_bytes())?;
        staged.publish()?;
        Ok(())
    }
}

/// A stage that is recorded as started.
pub(super) struct PreparedStage<'a> {
    pub(super) step: PlannedStage,
    /// Its position in the graph.
    pub(super) position: usize,
    fingerprints: Fingerprints,
    snapshots: Snapshots<'a>,
}

/// The place of a stage among the steps of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct StagePlace {
    /// Its number, from 1.
    pub(super) number: usize,
    /// The steps of the run, as currently planned.
    pub(super) steps: usize,
}

/// A run in progress.
pub(super) struct ActiveRun<'r, 'a, 'd> {
    pub(super) orchestrator: &'r Orchestrator<'a>,
    pub(super) graph: &'r Graph,
    journal: &'r mut Journal<'d>,
    found: Inspections,
    pub(super) space: Space,
    freshness: FreshnessTable<'r>,
    /// The position of the first stage whose artifacts changed since `freshness` was evaluated.
    touched: usize,
    forced: BTreeSet<String>,
    /// Predicted seconds of the run, if several stages run at a time.
    scheduled_seconds: Option<f64>,
    /// Whether the run is in the journal: a run with nothing to do leaves no trace.
    started: bool,
    pub(super) ran: Vec<CompletedStage>,
}

impl<'a> ActiveRun<'_, 'a, '_> {
    fn steps(&mut self) -> Result<(RunEnd, Plan)> {
        let stages_at_a_time = self.stages_at_a_time()?;
        if stages_at_a_time > 1 {
            return self.side_by_side(stages_at_a_time);
        }
        loop {
            let plan = self.settled_plan()?;
            let Some(step) = plan.steps.first() else { return self.done(plan) };
            if self.orchestrator.stop.load(Ordering::Relaxed) {
                return Ok((RunEnd::Stopped, plan));
            }
            self.check_room(step, &plan)?;
            if !self.step(step, plan.steps.len())? {
                return Ok((RunEnd::Stopped, self.plan()?));
            }
        }
    }

    /// Returns the number of stages at a time that the options ask for, or the predicted schedule.
    fn stages_at_a_time(&mut self) -> Result<usize> {
        let orchestrator = self.orchestrator;
        if orchestrator.options.stages_at_a_time == 1 {
            return Ok(1);
        }
        let plan = self.plan()?;
        let schedule = orchestrator.schedule(&plan, orchestrator.free_bytes()?);
        self.scheduled_seconds = Some(schedule.seconds);
        if orchestrator.options.stages_at_a_time == 0 {
            tracing::info!("the predicted schedule is best with {} stages at a time", schedule.stages_at_a_time);
        }
        Ok(schedule.stages_at_a_time)
    }

    /// Returns a plan after which nothing is to adopt or to remove, while no stage runs. First checks that
    /// the run has room for it, and starts the run in the journal.
    pub(super) fn settled_plan(&mut self) -> Result<Plan> {
        let orchestrator = self.orchestrator;
        loop {
            let plan = self.plan()?;
            orchestrator.allows(&plan)?;
            if !self.started {
                if !plan.steps.is_empty() {
                    orchestrator.preflight(&plan.prediction)?;
                    orchestrator.probe(plan.prediction.disk_bytes.saturating_sub(self.scratch_bytes()))?;
                }
                self.start(&plan)?;
                orchestrator.check_progress()?;
            }
            if !plan.adopted.is_empty() {
                self.adopt(&plan.adopted)?;
                continue;
            }
            if !plan.removable.is_empty() {
                self.remove(&plan.removable)?;
                if plan.steps.is_empty() {
                    // Reclassifies the makers of the removed files from up to date to not needed.
                    continue;
                }
            }
            return Ok(plan);
        }
    }

    /// Ends a run whose plan has no steps.
    pub(super) fn done(&mut self, plan: Plan) -> Result<(RunEnd, Plan)> {
        self.remove_snapshots(&plan).map_err(|source| unusable(&self.orchestrator.directory, source))?;
        Ok((RunEnd::Done, plan))
    }

    /// Checks that there is room for the next stage, which starts while no other one runs. A run that has
    /// started goes as far as it can: space may be freed before its later stages.
    pub(super) fn check_room(&self, next: &PlannedStage, plan: &Plan) -> Result<()> {
        let disk_bytes = needs(next).disk_bytes;
        let prediction = PlanPrediction { disk_bytes, ..plan.prediction.clone() };
        let checked = self.orchestrator.resources()?.check(&prediction, &self.orchestrator.directory);
        checked.map_err(|error| error.of_stage(&next.stage))?;
        if disk_bytes >= PROBED_BYTES_MIN {
            self.orchestrator.probe(disk_bytes.saturating_sub(self.scratch_bytes()))?;
        }
        Ok(())
    }

    /// What scratch files take: it is reserved already.
    fn scratch_bytes(&self) -> u64 {
        self.orchestrator.disk.scratch_bytes(&self.orchestrator.directory)
    }

    pub(super) fn plan(&mut self) -> Result<Plan> {
        let options = self.orchestrator.plan_options(self.forced.clone());
        self.freshness.evaluate_from(self.touched, self.journal.state(), &self.found);
        self.touched = self.graph.stages().len();
        let made = plan_of(self.graph, &self.freshness, &self.found, &self.space, &options);
        debug_assert!(
            self.graph.stages().len() > STAGES_EVALUATED_AGAIN_MAX || {
                let anew = evaluate(self.graph, self.journal.state(), &self.found);
                made.as_ref().ok() == plan_of(self.graph, &anew, &self.found, &self.space, &options).as_ref().ok()
            },
            "the plan of a full evaluation"
        );
        made
    }

    /// Appends a record about some artifacts to the journal.
    fn append<'n>(
        &mut self,
        record: Record,
        artifacts: impl IntoIterator<Item = &'n ArtifactName>,
    ) -> Result<(), JournalError> {
        let makers = artifacts.into_iter().filter_map(|artifact| self.graph.maker(artifact));
        self.touched = makers.fold(self.touched, usize::min);
        self.journal.append(record)
    }

    fn start(&mut self, plan: &Plan) -> Result<()> {
        let orchestrator = self.orchestrator;
        let options = &orchestrator.options;
        let unusable = |source| unusable(&orchestrator.directory, source);
        if plan.steps.is_empty() && plan.adopted.is_empty() && plan.removable.is_empty() {
            return orchestrator.write_manifest().map_err(unusable);
        }
        orchestrator.observer.notice(&Event::RunStarted {
            directory: orchestrator.directory.clone(),
            run: self.journal.run(),
            steps: plan.steps.len(),
            counts: plan.stage_counts(),
            seconds: plan.prediction.seconds,
            run_seconds: self.scheduled_seconds.unwrap_or(plan.prediction.seconds),
            stages: plan.steps.iter().map(|step| step.stage.clone()).collect(),
        });
        self.journal.append(Record::RunStarted {
            command: clip(&options.command),
            program: clip(&options.program),
            host: clock::host(),
            pid: std::process::id(),
            threads: options.threads,
            memory_bytes: options.memory.bytes(),
            manifest: Digest::of(options.manifest.as_bytes()),
            // Only a killed run leaves a heartbeat; the next heartbeat of this run replaces it.
            killed: Heartbeat::read(orchestrator.disk, &orchestrator.directory)
                .filter(|heartbeat| heartbeat.run < self.journal.run())
                .map(|heartbeat| LastHeartbeat { run: heartbeat.run, at: heartbeat.at }),
        })?;
        self.started = true;
        orchestrator.write_manifest().map_err(unusable)
    }

    pub(super) fn adopt(&mut self, adopted: &[AdoptedArtifact]) -> Result<()> {
        let orchestrator = self.orchestrator;
        let mut names = Vec::new();
        let mut synced = BTreeSet::new();
        for adopted in adopted {
            let path = adopted.artifact.below(&orchestrator.directory);
            // A run that was killed may have renamed it without a sync of its directory, which this does. What it was
            // made from is removed afterwards.
            if synced.insert(path.parent().map(Path::to_path_buf)) {
                orchestrator.disk.rename(&path, &path)?;
            }
            let artifact = ArtifactRecord {
                name: adopted.artifact.clone(),
                digest: adopted.digest,
                bytes: orchestrator.disk.bytes(&path)?.unwrap_or(0),
                fingerprint: adopted.fingerprint.clone(),
            };
            self.append(Record::Adopted { artifact }, [&adopted.artifact])?;
            names.push(adopted.artifact.clone());
        }
        orchestrator.observer.notice(&Event::Adopted { artifacts: names });
        Ok(())
    }

    pub(super) fn remove(&mut self, names: &[ArtifactName]) -> Result<()> {
        let orchestrator = self.orchestrator;
        let mut bytes = 0;
        for name in names {
            let path = name.below(&orchestrator.directory);
            bytes += orchestrator.disk.bytes(&path)?.unwrap_or(0);
            orchestrator.disk.remove(&path)?;
            self.found.insert(name.clone(), Inspection::Absent);
            self.space.measure(orchestrator.disk, &orchestrator.directory, name)?;
        }
        // The folders at the top stay: every run directory has them.
        let nested = names.iter().filter(|name| name.as_str().matches('/').count() > 1);
        let emptied: BTreeSet<PathBuf> =
            nested.filter_map(|name| name.below(&orchestrator.directory).parent().map(Path::to_path_buf)).collect();
        for directory in emptied {
            if orchestrator.disk.list(&directory)?.is_empty() {
                orchestrator.disk.remove_dir_all(&directory)?;
            }
        }
        let artifacts = names.to_vec();
        self.append(Record::Removed { artifacts: artifacts.clone() }, names)?;
        orchestrator.observer.notice(&Event::Removed { artifacts, bytes });
        Ok(())
    }

    /// Inspects the targets that a stage reads again. Returns the first that changed since the plan was made.
    fn exchanged(&mut self, stage: &StageName) -> Result<Option<ArtifactName>> {
        let orchestrator = self.orchestrator;
        let stage = self.graph.stage(stage).expect("steps are stages of the graph");
        let mut exchanged = None;
        for spec in stage.inputs.iter().filter_map(|name| self.graph.artifact(name)) {
            if spec.kind != ArtifactKind::Target {
                continue;
            }
            let inspection = inspect_artifact(orchestrator.disk, &orchestrator.directory, orchestrator.work, spec)?;
            if self.found.get(&spec.name) != Some(&inspection) {
                self.found.insert(spec.name.clone(), inspection);
                self.touched = self.graph.maker(&spec.name).map_or(0, |maker| maker.min(self.touched));
                exchanged.get_or_insert_with(|| spec.name.clone());
            }
        }
        Ok(exchanged)
    }

    /// Runs one stage. Returns `false` if it was stopped on request.
    fn step(&mut self, step: &PlannedStage, steps_left: usize) -> Result<bool> {
        let orchestrator = self.orchestrator;
        let place = StagePlace { number: self.ran.len() + 1, steps: self.ran.len() + steps_left };
        let prepared = self.prepare(step, place)?;
        let threads = orchestrator.options.threads.into();
        let done = orchestrator.execute(&prepared, &threads, StopSignal::new(orchestrator.stop), Company::Alone);
        self.complete(prepared, done)
    }

    /// Records that a stage starts, and opens its snapshots.
    pub(super) fn prepare(&mut self, step: &PlannedStage, place: StagePlace) -> Result<PreparedStage<'a>> {
        let Orchestrator { disk, directory, options, .. } = self.orchestrator;
        let name = &step.stage;
        let number = self.graph.position(name).expect("steps are stages of the graph");
        let stage = &self.graph.stages()[number];
        let has_run = self.ran.iter().any(|ran| ran.stage == *name);
        let Some(fingerprints) = self.fingerprints(number).filter(|_| !has_run) else {
            let source = StageError::failed(format!("it cannot be brought up to date: {}", step.reason));
            return Err(PipelineError::StageFailed { stage: name.clone(), source });
        };
        self.refuse_exchanged(stage, None)?;
        self.begin(step, stage, place)?;
        let snapshots = Snapshots::open(
            *disk,
            snapshots_path(directory).join(name.file_name()),
            fingerprints.snapshots(self.journal.state()),
            options.snapshot_interval,
        );
        match snapshots {
            Ok(snapshots) => Ok(PreparedStage { step: step.clone(), position: number, fingerprints, snapshots }),
            Err(error) => Err(self.fail(name, error.into())),
        }
    }

    /// Records the outcome of a stage. Returns `false` if it was stopped on request.
    pub(super) fn complete(
        &mut self,
        prepared: PreparedStage<'_>,
        outcome: StageResult<ExecutedStage>,
    ) -> Result<bool> {
        let PreparedStage { step, position, snapshots, .. } = prepared;
        let (name, stage) = (&step.stage, &self.graph.stages()[position]);
        let done = match outcome {
            Ok(done) => done,
            Err(StageError::Stopped) => {
                self.orchestrator.observer.notice(&Event::StageStopped { stage: name.clone() });
                return Ok(false);
            }
            Err(error) => return Err(self.fail(name, error)),
        };
        self.refuse_exchanged(stage, Some(&done.found))?;
        // Before the record: once the stage is recorded as done, its snapshots are not read again.
        snapshots.remove()?;
        self.finish(&step, stage, done)?;
        Ok(true)
    }

    /// Returns the fingerprints of the outputs of a stage, if the digests of its inputs are known.
    fn fingerprints(&self, stage: usize) -> Option<Fingerprints> {
        fingerprints_of(self.graph, stage, |name| match self.found.get(name) {
            Some(Inspection::Header { digest, .. }) => Some(*digest),
            _ => self.journal.state().built(name).map(|built| built.artifact.digest),
        })
    }

    /// Fails if an input of a stage was exchanged: before it runs, or while it has written outputs, which
    /// have their final names already.
    fn refuse_exchanged(&mut self, stage: &StageSpec, written: Option<&Inspections>) -> Result<()> {
        let Some(artifact) = self.exchanged(&stage.name)? else { return Ok(()) };
        let what = match (self.found.get(&artifact), written) {
            (Some(Inspection::Unreadable(what)), _) => what.clone(),
            (_, None) => "the file was exchanged while the run went on".to_owned(),
            (_, Some(_)) => format!("{artifact} was exchanged while {} read it", stage.name),
        };
        for output in stage.outputs.iter().filter(|name| written.is_some_and(|written| written.contains_key(*name))) {
            self.note_damage(output, &what, false)?;
        }
        Err(self.fail(&stage.name, StageError::Damaged { artifact, what, silent: false }))
    }

    /// Records that a stage starts.
    fn begin(&mut self, step: &PlannedStage, stage: &StageSpec, place: StagePlace) -> Result<()> {
        for output in &stage.outputs {
            if let Some(Inspection::Damaged(what) | Inspection::Unreadable(what)) = self.found.get(output) {
                // The verified file is about to be replaced.
                self.note_damage(output, &what.clone(), false)?;
            }
        }
        let (stage, reason) = (step.stage.clone(), clip(&step.reason.to_string()));
        self.journal.append(Record::StageStarted { stage, reason })?;
        self.orchestrator.observer.notice(&Event::StageStarted {
            stage: step.stage.clone(),
            reason: step.reason.clone(),
            number: place.number,
            steps: place.steps,
            cost: step.cost,
        });
        Ok(())
    }

    /// Records that a stage is done.
    fn finish(&mut self, step: &PlannedStage, stage: &StageSpec, done: ExecutedStage) -> Result<()> {
        let orchestrator = self.orchestrator;
        let name = &step.stage;
        let bytes = done.artifacts.iter().map(|artifact| artifact.bytes).sum();
        let (artifacts, measured) = (done.artifacts.clone(), done.measured.clone());
        self.append(Record::StageDone { stage: name.clone(), artifacts, measured }, &stage.outputs)?;
        self.forced.remove(&name.to_string());
        for name in done.found.keys() {
            self.space.measure(orchestrator.disk, &orchestrator.directory, name)?;
        }
        self.space.forget_snapshots(stage);
        self.found.extend(done.found);
        orchestrator.observer.notice(&Event::StageDone { stage: name.clone(), measured: done.measured.clone(), bytes });
        self.ran.push(CompletedStage {
            stage: name.clone(),
            reason: step.reason.clone(),
            measured: done.measured,
            artifacts: done.artifacts,
        });
        Ok(())
    }

    fn note_damage(&mut self, artifact: &ArtifactName, what: &str, silent: bool) -> Result<()> {
        if silent || self.journal.state().damage(artifact).is_none() {
            self.append(Record::DamageFound { artifact: artifact.clone(), what: clip(what), silent }, [artifact])?;
        }
        self.orchestrator.observer.notice(&Event::DamageFound { artifact: artifact.clone(), what: what.to_owned() });
        Ok(())
    }

    /// Removes the snapshots of stages that need not run, which a crash after the end of a stage leaves.
    fn remove_snapshots(&self, plan: &Plan) -> Result<(), DiskError> {
        let Orchestrator { disk, directory, .. } = self.orchestrator;
        for settled in plan.fresh.iter().filter(|settled| settled.why != SettledReason::NotRequested) {
            let snapshots = snapshots_path(directory).join(settled.stage.file_name());
            if !disk.list(&snapshots)?.is_empty() {
                disk.remove_dir_all(&snapshots)?;
            }
        }
        Ok(())
    }

    /// Returns the artifact that a read error names, if reading it fails again: it is damaged.
    fn unreadable(&self, error: &DiskError) -> Option<ArtifactName> {
        const PIECE_BYTES: u64 = 1 << 20;
        let orchestrator = self.orchestrator;
        let path = error.path().filter(|_| error.is_unreadable())?;
        let is_it = |name: &ArtifactName| name.below(&orchestrator.directory) == path;
        let name = self.graph.artifacts().map(|artifact| &artifact.name).find(|&name| is_it(name))?;
        let read = || {
            let input = orchestrator.disk.open(path)?;
            let mut piece = Vec::new();
            for offset in (0..input.bytes()).step_by(PIECE_BYTES as usize) {
                piece.resize((input.bytes() - offset).min(PIECE_BYTES) as usize, 0);
                input.read_at(offset, &mut piece)?;
            }
            Ok::<(), DiskError>(())
        };
        read().is_err_and(|error| error.is_unreadable()).then(|| name.clone())
    }

    /// Returns the inputs from which an artifact in which silent damage is found was made again since it was
    /// last found: those that are older than that. The error is probably in one of them.
    fn suspects(&self, artifact: &ArtifactName) -> Vec<ArtifactName> {
        let state = self.journal.state();
        let (Some(found), Some(built)) = (state.silent_damage(artifact).last(), state.built(artifact)) else {
            return Vec::new();
        };
        let is_older = |name: &&ArtifactName| state.built(name).is_some_and(|input| input.sequence < found.sequence);
        if built.sequence > found.sequence {
            built.artifact.fingerprint.inputs.keys().filter(is_older).cloned().collect()
        } else {
            Vec::new()
        }
    }

    /// Records a failure and returns the error of the run.
    pub(super) fn fail(&mut self, stage: &StageName, error: StageError) -> PipelineError {
        let error = match error {
            StageError::Disk(disk) => match self.unreadable(&disk) {
                Some(artifact) => StageError::Damaged { artifact, what: disk.to_string(), silent: false },
                None => StageError::Disk(disk),
            },
            error => error,
        };
        let suspects = match &error {
            StageError::Damaged { artifact, silent: true, .. } => self.suspects(artifact),
            _ => Vec::new(),
        };
        let message = clip(&error.to_string());
        self.orchestrator.observer.notice(&Event::StageFailed { stage: stage.clone(), message: message.clone() });
        if let StageError::Damaged { artifact, what, silent } = &error
            && let Err(journal) = self.note_damage(artifact, what, *silent)
        {
            tracing::warn!("cannot record the damage to {artifact} in the journal: {journal}");
        }
        let failed = Record::StageFailed { stage: stage.clone(), message };
        // A full disk fails both; the stage's own error is the one to report.
        if let Err(journal) = self.journal.append(failed) {
            if let JournalError::Overtaken { .. } = journal {
                return journal.into();
            }
            tracing::warn!("cannot record the failure of {stage} in the journal: {journal}");
        }
        match error {
            StageError::Damaged { artifact, what, .. } if !suspects.is_empty() => {
                PipelineError::WrongAgain { stage: stage.clone(), artifact, what, suspects }
            }
            StageError::Damaged { artifact, what, .. } => {
                PipelineError::Integrity { stage: stage.clone(), artifact, what, remedy: "the next run rebuilds it" }
            }
            source => PipelineError::StageFailed { stage: stage.clone(), source },
        }
    }
}
