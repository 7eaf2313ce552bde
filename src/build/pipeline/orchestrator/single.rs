//! Reruns a single stage from its recorded inputs in a scratch directory.
//!
//! Intermediates that were not kept are rebuilt there first. The run directory is only read: it may be read-only, or in
//! use by a run. The outputs are compared with the recorded ones by content digest.

use crate::artifact::{ArtifactName, Inspection};
use crate::directory::{Claim, Inspections, claim, holds_artifacts, journal_path, snapshots_path, survey};
use crate::error::{MissingInput, PipelineError, Result, unusable};
use crate::graph::Graph;
use crate::journal::{ArtifactRecord, Contents, JournalState, Measured};
use crate::observer::Event;
use crate::orchestrator::Orchestrator;
use crate::orchestrator::execution::{execute, fingerprints_of};
use crate::plan::{PlanPrediction, Reason, StageCounts};
use crate::planning::find;
use crate::preflight::Resources;
use crate::progress::StageProgress;
use crate::report::StageError;
use crate::snapshots::Snapshots;
use crate::stage::StageName;
use crate::stop_signal::StopSignal;
use crate::work::{Company, ScratchArtifacts, StageContext};
use disk::{Digest, Disk, clock};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The directory in which a single stage works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScratchDirectory {
    /// This directory, where the outputs stay.
    Directory(PathBuf),
    /// A new directory in this one, removed afterwards.
    Temporary(PathBuf),
}

/// The result of rerunning a single stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageRerun {
    /// The stage.
    pub stage: StageName,
    /// Stages that ran before it, to rebuild its inputs.
    pub rebuilt: Vec<StageName>,
    /// Its outputs.
    pub outputs: Vec<StageOutput>,
    /// Its measured cost.
    pub measured: Measured,
    /// The directory of its outputs, if they were kept.
    #[serde(serialize_with = "crate::path_text::optional")]
    pub directory: Option<PathBuf>,
}

/// An output of a single stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StageOutput {
    /// The output.
    pub artifact: ArtifactName,
    /// The digest of its content.
    pub digest: Digest,
    /// How it compares with the recorded one.
    pub comparison: OutputComparison,
}

/// How a result compares with the recorded one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputComparison {
    /// The same content.
    Identical,
    /// Different content; this is the recorded digest.
    Different(Digest),
    /// Nothing was recorded.
    NothingRecorded,
    /// A verification, which has no content: it passed.
    Passed,
}

impl StageRerun {
    /// Whether no output differs from the recorded one.
    pub fn is_identical(&self) -> bool {
        let differs = |output: &StageOutput| matches!(output.comparison, OutputComparison::Different(_));
        !self.outputs.iter().any(differs)
    }
}

/// A scratch directory, removed on drop if it is temporary.
struct ScratchGuard<'d> {
    disk: &'d dyn Disk,
    path: PathBuf,
    temporary: bool,
}

impl Drop for ScratchGuard<'_> {
    fn drop(&mut self) {
        if self.temporary
            && let Err(error) = self.disk.remove_dir_all(&self.path)
        {
            tracing::warn!("cannot remove the scratch directory: {error}");
        }
    }
}

impl<'d> ScratchGuard<'d> {
    fn new(disk: &'d dyn Disk, scratch: &ScratchDirectory) -> Result<Self> {
        let made = match scratch {
            ScratchDirectory::Directory(path) => disk.create_dir(path).map(|()| path.clone()),
            ScratchDirectory::Temporary(parent) => disk.create_private_dir(parent, "awari-stage-"),
        };
        let (ScratchDirectory::Directory(place) | ScratchDirectory::Temporary(place)) = scratch;
        let path = made.map_err(|source| unusable(place, source))?;
        Ok(ScratchGuard { disk, path, temporary: matches!(scratch, ScratchDirectory::Temporary(_)) })
    }
}

impl Orchestrator<'_> {
    /// Reruns one stage in a scratch directory and compares its outputs with the recorded ones.
    ///
    /// # Errors
    /// [`PipelineError::InputMissing`] if a target that it reads is missing; otherwise the error of the stage.
    pub fn single(&self, stage: &str, scratch: &ScratchDirectory) -> Result<StageRerun> {
        let graph = self.work.graph();
        let last = find(graph, stage)?;
        if let ScratchDirectory::Directory(path) = scratch {
            refuse_run_directory(self.disk, &self.directory, path)?;
            if claim(self.disk, path, &|| holds_artifacts(self.disk, path, self.work))? == Claim::Run {
                return Err(PipelineError::ScratchIsRunDirectory { scratch: path.clone() });
            }
        }
        let journal = Contents::read(self.disk, &journal_path(&self.directory))?;
        let state = JournalState::replay(&journal.entries);
        let found = survey(self.disk, &self.directory, self.work)?;
        let chain = chain(graph, &state, &found, last)?;
        let guard = ScratchGuard::new(self.disk, scratch)?;
        let mut aside = StageReruns { orchestrator: self, state, found, scratch: &guard.path, made: BTreeSet::new() };
        aside.preflight(&chain)?;
        let seconds = chain.iter().map(|at| graph.stages()[*at].cost.seconds).sum();
        self.observer.notice(&Event::RunStarted {
            directory: guard.path.clone(),
            run: 0,
            steps: chain.len(),
            counts: StageCounts { to_run: chain.len(), ..StageCounts::default() },
            seconds,
            run_seconds: seconds,
            stages: chain.iter().map(|at| graph.stages()[*at].name.clone()).collect(),
        });
        let before = chain.iter().zip(chain.iter().skip(1));
        for (number, (at, next)) in before.enumerate() {
            let reason = Reason::NeededBy {
                stage: graph.stages()[*next].name.clone(),
                artifact: graph.stages()[*at].outputs[0].clone(),
            };
            aside.run(*at, reason, number + 1, chain.len())?;
        }
        let (outputs, measured) = aside.run(last, Reason::Forced, chain.len(), chain.len())?;
        let name = |at: &usize| graph.stages()[*at].name.clone();
        Ok(StageRerun {
            stage: name(&last),
            rebuilt: chain[..chain.len() - 1].iter().map(name).collect(),
            outputs,
            measured,
            directory: (!guard.temporary).then(|| guard.path.clone()),
        })
    }
}

/// Stages that run in a scratch directory.
struct StageReruns<'a> {
    orchestrator: &'a Orchestrator<'a>,
    state: JournalState,
    found: Inspections,
    scratch: &'a Path,
    made: BTreeSet<ArtifactName>,
}

impl StageReruns<'_> {
    fn preflight(&self, chain: &[usize]) -> Result<()> {
        let orchestrator = self.orchestrator;
        let mut prediction = PlanPrediction::default();
        // Nothing is removed, since the outputs of each stage are compared.
        let mut kept_bytes = 0u64;
        for at in chain {
            let stage = &orchestrator.work.graph().stages()[*at];
            if stage.cost.memory_bytes > prediction.memory_bytes {
                prediction.memory_bytes = stage.cost.memory_bytes;
                prediction.memory_stage = Some(stage.name.clone());
            }
            let peak_bytes = kept_bytes.saturating_add(stage.cost.disk_bytes);
            prediction.disk_bytes = prediction.disk_bytes.max(peak_bytes);
            kept_bytes = kept_bytes.saturating_add(stage.cost.disk_kept_bytes);
        }
        let free = orchestrator.disk.free_bytes(self.scratch);
        let room = Resources {
            memory: orchestrator.options.memory,
            memory_available: clock::attainable_bytes(),
            disk_free: free.map_err(|source| unusable(self.scratch, source))?,
        };
        Ok(room.check(&prediction, self.scratch)?)
    }

    /// Runs one stage and compares its outputs.
    fn run(&mut self, at: usize, reason: Reason, number: usize, steps: usize) -> Result<(Vec<StageOutput>, Measured)> {
        let Orchestrator { disk, directory, work, options, observer, stop, .. } = self.orchestrator;
        let graph = work.graph();
        let stage = &graph.stages()[at];
        let name = &stage.name;
        let digest_of = |name: &ArtifactName| match self.found.get(name) {
            Some(Inspection::Header { digest, .. }) => Some(*digest),
            _ => self.state.built(name).map(|built| built.artifact.digest),
        };
        let fingerprints = fingerprints_of(graph, at, digest_of).ok_or_else(|| {
            let message = "the sources of its inputs neither exist nor are recorded";
            failed(name, StageError::failed(message))
        })?;
        let cost = stage.cost;
        observer.notice(&Event::StageStarted { stage: name.clone(), reason, number, steps, cost });
        let snapshots = snapshots_path(self.scratch).join(name.file_name());
        let progress = StageProgress::new();
        let context = StageContext {
            disk: *disk,
            directory,
            scratch: Some(ScratchArtifacts { directory: self.scratch, made: &self.made }),
            snapshots: Snapshots::open(*disk, snapshots, fingerprints.digest(), options.snapshot_interval)?,
            threads: &options.threads.into(),
            memory: options.memory,
            progress: &progress,
            stop: StopSignal::new(stop),
            company: Company::Alone,
        };
        let done = execute(*work, stage, &context, &fingerprints, *observer);
        let done = done.map_err(|error| failed(name, error))?;
        context.snapshots.remove()?;
        observer.notice(&Event::StageDone {
            stage: name.clone(),
            measured: done.measured.clone(),
            bytes: done.artifacts.iter().map(|artifact| artifact.bytes).sum(),
        });
        self.made.extend(stage.outputs.iter().cloned());
        let outputs = done.artifacts.iter().map(|artifact| self.compare(artifact));
        Ok((outputs.collect(), done.measured))
    }

    fn compare(&self, artifact: &ArtifactRecord) -> StageOutput {
        let name = &artifact.name;
        let header = match self.found.get(name) {
            Some(Inspection::Header { digest, .. }) => Some(*digest),
            _ => None,
        };
        let recorded = self.state.built(name).map(|built| built.artifact.digest).or(header);
        let spec = self.orchestrator.work.graph().artifact(name);
        StageOutput {
            artifact: name.clone(),
            digest: artifact.digest,
            comparison: match recorded {
                _ if spec.is_some_and(|spec| !spec.kind.is_file()) => OutputComparison::Passed,
                None => OutputComparison::NothingRecorded,
                Some(digest) if digest == artifact.digest => OutputComparison::Identical,
                Some(digest) => OutputComparison::Different(digest),
            },
        }
    }
}

/// Returns the error of a single stage. Damage is not recorded: the run directory is only read.
fn failed(stage: &StageName, error: StageError) -> PipelineError {
    let stage = stage.clone();
    match error {
        StageError::Stopped => PipelineError::SingleStopped { stage },
        StageError::Damaged { artifact, what, .. } => PipelineError::Integrity {
            stage,
            artifact,
            what,
            remedy: "once verify has recorded it, the next run rebuilds it",
        },
        source => PipelineError::StageFailed { stage, source },
    }
}

/// Returns the stages to run, in order: the stage itself, and before it those that make its missing intermediates.
fn chain(graph: &Graph, state: &JournalState, found: &Inspections, last: usize) -> Result<Vec<usize>> {
    let mut chain = BTreeSet::from([last]);
    for at in (0..=last).rev() {
        if !chain.contains(&at) {
            continue;
        }
        let stage = &graph.stages()[at];
        for input in &stage.inputs {
            let maker = graph.maker(input);
            let maker = maker.expect("a graph has a maker for every artifact");
            let there = usable(graph, state, found, input);
            if graph.is_intermediate(input) {
                if there.is_err() {
                    chain.insert(maker);
                }
            } else if let Err(what) = there {
                return Err(PipelineError::InputMissing(Box::new(MissingInput {
                    stage: stage.name.clone(),
                    artifact: input.clone(),
                    what,
                    maker: graph.stages()[maker].name.clone(),
                })));
            }
        }
    }
    Ok(chain.into_iter().collect())
}

/// Checks that an input exists and matches its record.
fn usable(graph: &Graph, state: &JournalState, found: &Inspections, name: &ArtifactName) -> Result<(), String> {
    let built = state.built(name);
    if let Some(damage) = state.damage(name) {
        return Err(format!("is damaged: {}", damage.what));
    }
    match (found.get(name), built) {
        (Some(Inspection::Header { digest, identity }), built) => {
            if built.is_some_and(|built| built.artifact.digest != *digest) {
                return Err("differs from the recorded one".to_owned());
            }
            let spec = graph.artifact(name).expect("inputs are artifacts of the graph");
            let other =
                |(key, value): &(&String, &String)| spec.identity.contains_key(*key) && !spec.is_satisfied(key, value);
            match identity.iter().find(other) {
                Some((key, value)) => Err(format!("is for {key} {value}")),
                None => Ok(()),
            }
        }
        (Some(Inspection::Damaged(what)), _) => Err(format!("is damaged: {what}")),
        (Some(Inspection::Unreadable(what)), _) => Err(format!("cannot be read: {what}")),
        (Some(Inspection::Absent), _) => Err("is absent".to_owned()),
        (None, Some(_)) => Ok(()),
        (None, None) => Err("has not been made".to_owned()),
    }
}

/// Refuses a scratch directory that is the run directory, or lies in it: the run directory must not change.
fn refuse_run_directory(disk: &dyn Disk, directory: &Path, scratch: &Path) -> Result<()> {
    if disk.canonical(scratch).starts_with(disk.canonical(directory)) {
        return Err(PipelineError::ScratchInRunDirectory { scratch: scratch.to_path_buf() });
    }
    Ok(())
}
