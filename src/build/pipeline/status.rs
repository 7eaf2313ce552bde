//! The status of a run directory, from its journal and its files.
//!
//! Only reads, so it works while a run is active. If the journal does not record the end of the last run, the lock
//! decides whether it is active.

use crate::artifact::{ArtifactName, Inspection};
use crate::directory::{Heartbeat, Inspections, inspect_artifact, journal_path, lock_path, survey};
use crate::error::Result;
use crate::graph::Graph;
use crate::journal::{Contents, JournalState, Measured, RunEnd, RunHistory, StageEnd, StageHistory};
use crate::plan::{Keep, Plan, PlanOptions, Reason, SettledReason, StageCounts};
use crate::planning::plan;
use crate::stage::StageName;
use crate::work::Work;
use disk::{Digest, Disk};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The status of a run directory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// The directory.
    #[serde(serialize_with = "crate::path_text::one")]
    pub directory: PathBuf,
    /// The latest run, if there is one.
    pub run: Option<RunStatus>,
    /// The stages, in the order in which they run; by name if the graph is unknown.
    pub stages: Vec<StageStatus>,
    /// The number of stages of each standing, as in a plan; `None` if the graph is unknown.
    pub counts: Option<StageCounts>,
    /// The recorded artifacts that exist.
    pub artifacts: Vec<ArtifactStatus>,
    /// Torn bytes at the end of the journal; the next run truncates them.
    pub journal_torn_bytes: u64,
}

/// The latest run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunStatus {
    /// Its number.
    pub number: u64,
    /// Its command line.
    pub command: String,
    /// Name and version of the program.
    pub program: String,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// When it began, in seconds since 1970.
    pub started_at: u64,
    /// When it ended, in seconds since 1970.
    pub ended_at: Option<u64>,
    /// Seconds from its start to its end; to the present if it is active; to its last heartbeat or record if it was
    /// killed.
    pub seconds: f64,
    /// Its state.
    pub state: RunState,
    /// Its latest heartbeat, if it is active.
    pub heartbeat: Option<Heartbeat>,
}

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// It is active.
    Running,
    /// It is done.
    Done,
    /// It was stopped on request; the same command resumes.
    Stopped,
    /// It failed.
    Failed(String),
    /// It was killed; the same command resumes.
    Interrupted,
}

/// The status of a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageStatus {
    /// Which.
    pub stage: StageName,
    /// Its state.
    pub state: StageState,
    /// The reason why it will run; `None` if it will not.
    pub reason: Option<String>,
    /// When it last began, in seconds since 1970.
    pub started_at: Option<u64>,
    /// When it was last done, in seconds since 1970.
    pub done_at: Option<u64>,
    /// The measured cost of that execution.
    pub measured: Option<Measured>,
    /// Positions per second of wall-clock time of that execution.
    pub rate: Option<f64>,
}

/// The state of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageState {
    /// Its outputs are up to date; without a graph: it was done.
    Done,
    /// It is running.
    Running,
    /// It is running without progress; the text describes for how long.
    Stalled(String),
    /// It was started and not finished.
    Interrupted,
    /// It failed with this error.
    Failed(String),
    /// Its outputs exist, but are out of date.
    Stale,
    /// Its outputs do not exist yet.
    Pending,
    /// It makes intermediates that are not needed.
    NotNeeded,
}

/// The status of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArtifactStatus {
    /// Which.
    pub artifact: ArtifactName,
    /// The digest of its content, as recorded.
    pub digest: Digest,
    /// The length of its file, as recorded.
    pub bytes: u64,
    /// The stage that made it; `None` if it was adopted.
    pub stage: Option<StageName>,
    /// The time when it was made, in seconds since 1970.
    pub at: u64,
    /// Damage found since.
    pub damage: Option<String>,
}

/// Returns the status of a run directory, for a run that keeps `keep`. Without `work`, it is limited to the journal.
pub fn status(disk: &dyn Disk, directory: &Path, work: Option<&dyn Work>, keep: Keep) -> Result<Status> {
    let mut found = work.map(|work| survey(disk, directory, work)).transpose()?.unwrap_or_default();
    let journal = Contents::read(disk, &journal_path(directory))?;
    let state = JournalState::replay(&journal.entries);
    let run = state.run().map(|run| {
        let is_last = run.number == state.last_run();
        let is_running = is_last && run.ended.is_none() && holder(disk, directory).is_some();
        let heartbeat = Heartbeat::read(disk, directory).filter(|heartbeat| heartbeat.run == run.number);
        run_status(run, is_running, heartbeat, disk.clock().utc())
    });
    let running = run.as_ref().filter(|run| run.state == RunState::Running);
    let stalled = running.and_then(|run| run.heartbeat.as_ref()?.stalled(disk.clock().utc().as_secs()));
    let running = running.map(|run| run.number);
    let options = PlanOptions { keep, ..PlanOptions::default() };
    let planned = match work {
        Some(work) => {
            catch_up(disk, directory, work, &state, running.is_some(), &mut found)?;
            Some((work, plan(work.graph(), &state, &found, &options)?))
        }
        None => None,
    };
    let mut stages: Vec<StageStatus> = match &planned {
        Some((work, plan)) => with_graph(work.graph(), &state, running, plan),
        None => {
            let stages = state.stages().map(|(name, history)| {
                let state = ended(history, running).unwrap_or(StageState::Done);
                stage_status(name, Some(history), state, None)
            });
            stages.collect()
        }
    };
    let counts = planned.as_ref().map(|(_, plan)| {
        let mut counts = plan.stage_counts();
        // Forced stages run although their outputs are up to date.
        let is_running = |stage: &&StageStatus| stage.state == StageState::Running;
        stages.iter().filter(is_running).for_each(|stage| counts.run(plan.standing(&stage.stage)));
        counts
    });
    if let Some(what) = stalled {
        for stage in stages.iter_mut().filter(|stage| stage.state == StageState::Running) {
            stage.state = StageState::Stalled(what.clone());
        }
    }
    let artifacts =
        state.artifacts().filter(|(name, built)| !built.removed && found.get(*name) != Some(&Inspection::Absent));
    let artifacts = artifacts.map(|(name, built)| ArtifactStatus {
        artifact: name.clone(),
        digest: built.artifact.digest,
        bytes: built.artifact.bytes,
        stage: built.stage.clone(),
        at: built.at,
        damage: state.damage(name).map(|damage| damage.what.clone()),
    });
    Ok(Status {
        directory: directory.to_path_buf(),
        run,
        stages,
        counts,
        artifacts: artifacts.collect(),
        journal_torn_bytes: journal.torn_bytes,
    })
}

/// Inspects again what a run has made or removed between the survey of the files and the later look into the
/// journal. What an active run has made and not yet recorded counts as not made: it is no file from
/// elsewhere.
fn catch_up(
    disk: &dyn Disk,
    directory: &Path,
    work: &dyn Work,
    state: &JournalState,
    is_running: bool,
    found: &mut Inspections,
) -> Result<()> {
    for artifact in work.graph().artifacts().filter(|artifact| artifact.kind.is_file()) {
        let is_recorded = state.built(&artifact.name).is_some_and(|built| !built.removed);
        let is_there = found.get(&artifact.name).is_some_and(|found| *found != Inspection::Absent);
        if is_there != is_recorded {
            let now = if is_running && !is_recorded {
                Inspection::Absent
            } else {
                inspect_artifact(disk, directory, work, artifact)?
            };
            found.insert(artifact.name.clone(), now);
        }
    }
    Ok(())
}

/// Returns a description of the holder of the lock; `None` if the lock is free or cannot be tried.
pub fn holder(disk: &dyn Disk, directory: &Path) -> Option<String> {
    disk.lock_holder(&lock_path(directory)).ok()?
}

fn run_status(run: &RunHistory, is_running: bool, heartbeat: Option<Heartbeat>, now: Duration) -> RunStatus {
    let last_sign = match (&run.ended, is_running) {
        (Some(_), _) => None,
        (None, true) => Some(now.as_secs_f64()),
        (None, false) => heartbeat.as_ref().map(|heartbeat| heartbeat.at as f64),
    };
    RunStatus {
        seconds: last_sign.map_or(0.0, |at| run.seconds_at(at)).max(run.seconds),
        number: run.number,
        command: run.command.clone(),
        program: run.program.clone(),
        host: run.host.clone(),
        pid: run.pid,
        started_at: run.at,
        ended_at: run.ended.as_ref().map(|(_, at)| *at),
        state: match &run.ended {
            Some((RunEnd::Done, _)) => RunState::Done,
            Some((RunEnd::Stopped, _)) => RunState::Stopped,
            Some((RunEnd::Failed(message), _)) => RunState::Failed(message.clone()),
            None if is_running => RunState::Running,
            None => RunState::Interrupted,
        },
        heartbeat: heartbeat.filter(|_| is_running),
    }
}

fn with_graph(graph: &Graph, state: &JournalState, running: Option<u64>, plan: &Plan) -> Vec<StageStatus> {
    let steps: BTreeMap<&StageName, &Reason> = plan.steps.iter().map(|step| (&step.stage, &step.reason)).collect();
    let settled: BTreeMap<&StageName, SettledReason> =
        plan.fresh.iter().map(|settled| (&settled.stage, settled.why)).collect();
    let stages = graph.stages().iter().map(|stage| {
        let name = &stage.name;
        let history = state.stage(name);
        let reason = steps.get(name);
        let unfinished = history.and_then(|history| ended(history, running));
        let state = match (reason, unfinished) {
            (_, Some(StageState::Running)) => StageState::Running,
            (None, _) if settled.get(name) == Some(&SettledReason::NotNeeded) => StageState::NotNeeded,
            (None, _) => StageState::Done,
            (Some(_), Some(unfinished)) => unfinished,
            (Some(reason), None) if reason.is_stale() => StageState::Stale,
            (Some(_), None) => StageState::Pending,
        };
        let reason = reason.filter(|_| state != StageState::Running);
        stage_status(name, history, state, reason.map(|reason| reason.to_string()))
    });
    stages.collect()
}

/// Returns the state of the latest start of a stage, unless it was done.
fn ended(history: &StageHistory, running: Option<u64>) -> Option<StageState> {
    match (&history.ended, history.started) {
        (Some(StageEnd::Done), _) => None,
        (Some(StageEnd::Failed(message)), _) => Some(StageState::Failed(message.clone())),
        (None, Some((run, _))) if running == Some(run) => Some(StageState::Running),
        (None, Some(_)) => Some(StageState::Interrupted),
        (None, None) => None,
    }
}

fn stage_status(
    name: &StageName,
    history: Option<&StageHistory>,
    state: StageState,
    reason: Option<String>,
) -> StageStatus {
    let done = history.and_then(|history| history.done.as_ref());
    StageStatus {
        stage: name.clone(),
        state,
        reason,
        started_at: history.and_then(|history| history.started).map(|(_, at)| at),
        done_at: done.map(|(_, at)| *at),
        measured: done.map(|(measured, _)| measured.clone()),
        rate: done.and_then(|(measured, _)| measured.rate()),
    }
}
