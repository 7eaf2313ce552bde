//! What a journal amounts to: the latest word on every artifact, stage and run.

use std::collections::BTreeMap;

use crate::artifact::ArtifactName;
use crate::journal::record::{ArtifactRecord, Entry, Measured, Record, RunEnd};
use crate::stage::StageName;

/// The sum of a journal's records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JournalState {
    built: BTreeMap<ArtifactName, BuiltArtifact>,
    damage: BTreeMap<ArtifactName, Damage>,
    /// When damage was last found, repaired or not, as a sequence number.
    damage_found: BTreeMap<ArtifactName, u64>,
    verified: BTreeMap<ArtifactName, ArtifactCheck>,
    /// When each artifact was known to be good: made, or compared with its digest.
    good: BTreeMap<ArtifactName, Vec<JournalMoment>>,
    /// When each artifact was found to be wrong in a way that stages which read it do not notice.
    silent: BTreeMap<ArtifactName, Vec<JournalMoment>>,
    stages: BTreeMap<StageName, StageHistory>,
    run: Option<RunHistory>,
    last_run: u64,
    sequence: u64,
}

/// A place in the journal, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JournalMoment {
    pub(crate) sequence: u64,
    /// Seconds since 1970.
    pub at: u64,
}

/// The latest making of an artifact.
#[derive(Clone, Debug, PartialEq)]
pub struct BuiltArtifact {
    /// The artifact as it was made.
    pub artifact: ArtifactRecord,
    /// By which stage; `None` if it was taken over on the word of its header.
    pub stage: Option<StageName>,
    /// Seconds since 1970.
    pub at: u64,
    /// Whether we have removed it since.
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

/// The latest check of an artifact outside of a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct ArtifactCheck {
    /// By which check.
    pub how: String,
    /// Whether only a sample was checked.
    pub sampled: bool,
    /// Seconds since 1970.
    pub at: u64,
}

/// What is known of a stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageHistory {
    /// Its latest start: run and seconds since 1970.
    pub started: Option<(u64, u64)>,
    /// How that ended; `None` while it runs, or if it was stopped or killed.
    pub ended: Option<StageEnd>,
    /// Its latest success: what it took, and seconds since 1970.
    pub done: Option<(Measured, u64)>,
}

/// How a stage ended.
#[derive(Clone, Debug, PartialEq)]
pub enum StageEnd {
    /// With success.
    Done,
    /// With this error.
    Failed(String),
}

/// What is known of the latest run.
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
    /// How and when it ended; `None` while it goes on, or if it was killed.
    pub ended: Option<(RunEnd, u64)>,
    began: f64,
}

impl RunHistory {
    /// Seconds from its start to a time in seconds since 1970.
    pub fn seconds_at(&self, at: f64) -> f64 {
        (at - self.began).max(0.0)
    }
}

impl JournalState {
    /// Adds up records.
    pub fn replay(entries: &[Entry]) -> Self {
        let mut state = JournalState::default();
        for entry in entries {
            state.apply(entry);
        }
        state
    }

    /// The latest making of an artifact.
    pub fn built(&self, name: &ArtifactName) -> Option<&BuiltArtifact> {
        self.built.get(name)
    }

    /// The latest making of every artifact, by name.
    pub fn artifacts(&self) -> impl Iterator<Item = (&ArtifactName, &BuiltArtifact)> {
        self.built.iter()
    }

    /// Damage to an artifact that no later making has repaired.
    pub fn damage(&self, name: &ArtifactName) -> Option<&Damage> {
        self.damage.get(name)
    }

    /// Whether damage to an artifact was found after something else was made, repaired since or not:
    /// what was said of it before no longer counts.
    pub fn damaged_after(&self, name: &ArtifactName, built: &BuiltArtifact) -> bool {
        let found = self.damage_found.get(name);
        found.is_some_and(|sequence| *sequence > built.sequence)
    }

    /// When silent damage was found in an artifact, repaired since or not.
    pub fn silent_damage(&self, name: &ArtifactName) -> &[JournalMoment] {
        self.silent.get(name).map_or(&[], Vec::as_slice)
    }

    /// The artifacts in which silent damage was found, repaired since or not.
    pub(crate) fn silently_damaged(&self) -> impl Iterator<Item = &ArtifactName> {
        self.silent.keys()
    }

    /// The last time before a moment at which an artifact was made or compared with its digest.
    pub(crate) fn last_good(&self, name: &ArtifactName, before: JournalMoment) -> Option<JournalMoment> {
        let moments = self.good.get(name)?;
        moments.iter().rev().find(|moment| **moment < before).copied()
    }

    /// The latest check of an artifact outside of a stage.
    pub fn checked(&self, name: &ArtifactName) -> Option<&ArtifactCheck> {
        self.verified.get(name)
    }

    /// What is known of a stage.
    pub fn stage(&self, name: &StageName) -> Option<&StageHistory> {
        self.stages.get(name)
    }

    /// The stages of which anything is known.
    pub fn stages(&self) -> impl Iterator<Item = (&StageName, &StageHistory)> {
        self.stages.iter()
    }

    /// The latest run.
    pub fn run(&self) -> Option<&RunHistory> {
        self.run.as_ref()
    }

    /// The highest number under which anybody wrote; 0 if nobody did.
    pub fn last_run(&self) -> u64 {
        self.last_run
    }

    /// Adds one record.
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
            Record::Verified { artifact, digest, how, sampled } => {
                let checked = ArtifactCheck { how: how.clone(), sampled: *sampled, at: entry.at };
                self.verified.insert(artifact.clone(), checked);
                let is_same = self.built.get(artifact).is_none_or(|built| built.artifact.digest == *digest);
                // The digest is compared whatever the sample.
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
