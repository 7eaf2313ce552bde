//! The state after replaying a journal: the latest facts about every artifact, stage and run.

use crate::artifact::ArtifactName;
use crate::journal::record::{ArtifactRecord, Entry, Measured, Record, RunEnd};
use crate::stage::StageName;
use std::collections::BTreeMap;

/// The state after all records of a journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JournalState {
    built: BTreeMap<ArtifactName, BuiltArtifact>,
    damage: BTreeMap<ArtifactName, Damage>,
    /// The sequence number at which damage was last found, repaired or not.
    damage_found: BTreeMap<ArtifactName, u64>,
    /// The moments at which each artifact was known to be good: made, or compared with its digest.
    good: BTreeMap<ArtifactName, Vec<JournalMoment>>,
    /// The moments at which silent damage was found in each artifact.
    silent: BTreeMap<ArtifactName, Vec<JournalMoment>>,
    stages: BTreeMap<StageName, StageHistory>,
    run: Option<RunHistory>,
    last_run: u64,
    sequence: u64,
}

/// A position in the journal, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JournalMoment {
    pub(crate) sequence: u64,
    /// Seconds since 1970.
    pub at: u64,
}

/// An artifact as last built.
#[derive(Clone, Debug, PartialEq)]
pub struct BuiltArtifact {
    /// The record of the artifact.
    pub artifact: ArtifactRecord,
    /// The stage that made it; `None` if it was adopted.
    pub stage: Option<StageName>,
    /// Seconds since 1970.
    pub at: u64,
    /// Whether a run has removed it since.
    pub removed: bool,
    pub(crate) sequence: u64,
}

/// Damage that was found and not yet repaired.
#[derive(Clone, Debug, PartialEq)]
pub struct Damage {
    /// What is wrong.
    pub what: String,
    /// Seconds since 1970.
    pub at: u64,
}

/// The history of a stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageHistory {
    /// Run and time of its latest start, in seconds since 1970.
    pub started: Option<(u64, u64)>,
    /// The end of that attempt; `None` while it runs, or if it was stopped or killed.
    pub ended: Option<StageEnd>,
    /// The cost of its latest success, and the time in seconds since 1970.
    pub done: Option<(Measured, u64)>,
}

/// The end of an attempt at a stage.
#[derive(Clone, Debug, PartialEq)]
pub enum StageEnd {
    /// It succeeded.
    Done,
    /// It failed with this error.
    Failed(String),
}

/// The latest run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunHistory {
    /// Its number.
    pub number: u64,
    /// The command line.
    pub command: String,
    /// Name and version of the program.
    pub program: String,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// Threads used.
    pub threads: usize,
    /// Memory budget.
    pub memory_bytes: u64,
    /// When it began, in seconds since 1970.
    pub at: u64,
    /// Seconds from its start to its latest record.
    pub seconds: f64,
    /// Its end and the time of it; `None` while it is active, or if it was killed.
    pub ended: Option<(RunEnd, u64)>,
    began: f64,
}

impl RunHistory {
    /// Returns the seconds from its start to `at`, in seconds since 1970.
    pub fn seconds_at(&self, at: f64) -> f64 {
        (at - self.began).max(0.0)
    }
}

impl JournalState {
    /// Replays records.
    pub fn replay(entries: &[Entry]) -> Self {
        let mut state = JournalState::default();
        for entry in entries {
            state.apply(entry);
        }
        state
    }

    /// Returns an artifact as last built.
    pub fn built(&self, name: &ArtifactName) -> Option<&BuiltArtifact> {
        self.built.get(name)
    }

    /// Returns every artifact as last built, by name.
    pub fn artifacts(&self) -> impl Iterator<Item = (&ArtifactName, &BuiltArtifact)> {
        self.built.iter()
    }

    /// Returns unrepaired damage to an artifact.
    pub fn damage(&self, name: &ArtifactName) -> Option<&Damage> {
        self.damage.get(name)
    }

    /// Whether damage to an artifact was found after `built` was made, even if it was repaired since: checks made
    /// before that damage are void.
    pub fn damaged_after(&self, name: &ArtifactName, built: &BuiltArtifact) -> bool {
        let found = self.damage_found.get(name);
        found.is_some_and(|sequence| *sequence > built.sequence)
    }

    /// Returns the moments at which silent damage was found in an artifact, repaired since or not.
    pub fn silent_damage(&self, name: &ArtifactName) -> &[JournalMoment] {
        self.silent.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the artifacts in which silent damage was found, repaired since or not.
    pub(crate) fn silently_damaged(&self) -> impl Iterator<Item = &ArtifactName> {
        self.silent.keys()
    }

    /// Returns the last moment before another at which an artifact was made or compared with its digest.
    pub(crate) fn last_good(&self, name: &ArtifactName, before: JournalMoment) -> Option<JournalMoment> {
        let moments = self.good.get(name)?;
        moments.iter().rev().find(|moment| **moment < before).copied()
    }

    /// Returns the history of a stage.
    pub fn stage(&self, name: &StageName) -> Option<&StageHistory> {
        self.stages.get(name)
    }

    /// Returns the stages that the journal names.
    pub fn stages(&self) -> impl Iterator<Item = (&StageName, &StageHistory)> {
        self.stages.iter()
    }

    /// Returns the latest run.
    pub fn run(&self) -> Option<&RunHistory> {
        self.run.as_ref()
    }

    /// Returns the highest number of a run; 0 if the journal is empty.
    pub fn last_run(&self) -> u64 {
        self.last_run
    }

    /// Applies one record.
    pub fn apply(&mut self, entry: &Entry) {
        self.sequence += 1;
        self.last_run = self.last_run.max(entry.run);
        let now = JournalMoment { sequence: self.sequence, at: entry.at };
        if let Some(run) = self.run.as_mut().filter(|run| run.number == entry.run) {
            run.seconds = run.seconds_at(entry.seconds()).max(run.seconds);
        }
        match &entry.record {
            Record::RunStarted { command, program, host, pid, threads, memory_bytes, manifest: _, killed: _ } => {
                self.run = Some(RunHistory {
                    number: entry.run,
                    command: command.clone(),
                    program: program.clone(),
                    host: host.clone(),
                    pid: *pid,
                    threads: *threads,
                    memory_bytes: *memory_bytes,
                    at: entry.at,
                    seconds: 0.0,
                    began: entry.seconds(),
                    ended: None,
                });
            }
            Record::RunEnded { how } => {
                if let Some(run) = self.run.as_mut().filter(|run| run.number == entry.run) {
                    run.ended = Some((how.clone(), entry.at));
                }
            }
            Record::StageStarted { stage, reason: _ } => {
                let history = self.stages.entry(stage.clone()).or_default();
                history.started = Some((entry.run, entry.at));
                history.ended = None;
            }
            Record::StageDone { stage, artifacts, measured } => {
                let history = self.stages.entry(stage.clone()).or_default();
                history.ended = Some(StageEnd::Done);
                history.done = Some((measured.clone(), entry.at));
                for artifact in artifacts {
                    self.build(artifact, Some(stage), entry.at);
                    self.good.entry(artifact.name.clone()).or_default().push(now);
                }
            }
            Record::StageFailed { stage, message } => {
                let history = self.stages.entry(stage.clone()).or_default();
                history.ended = Some(StageEnd::Failed(message.clone()));
            }
            Record::Adopted { artifact } => self.build(artifact, None, entry.at),
            Record::DamageFound { artifact, what, silent } => {
                if *silent {
                    self.silent.entry(artifact.clone()).or_default().push(now);
                }
                let damage = Damage { what: what.clone(), at: entry.at };
                self.damage_found.insert(artifact.clone(), self.sequence);
                self.damage.insert(artifact.clone(), damage);
            }
            Record::Verified { artifact, digest, how: _, sampled } => {
                let is_same = self.built.get(artifact).is_none_or(|built| built.artifact.digest == *digest);
                // The digest covers the whole artifact, even if only a sample of scores was checked.
                if is_same {
                    self.good.entry(artifact.clone()).or_default().push(now);
                }
                if !sampled && is_same {
                    self.damage.remove(artifact);
                    self.damage_found.remove(artifact);
                }
            }
            Record::Removed { artifacts } => {
                for name in artifacts {
                    if let Some(built) = self.built.get_mut(name) {
                        built.removed = true;
                    }
                }
            }
        }
    }

    fn build(&mut self, artifact: &ArtifactRecord, stage: Option<&StageName>, at: u64) {
        self.damage.remove(&artifact.name);
        let built = BuiltArtifact {
            artifact: artifact.clone(),
            stage: stage.cloned(),
            at,
            removed: false,
            sequence: self.sequence,
        };
        self.built.insert(artifact.name.clone(), built);
    }
}
