//! History: what every run of a directory did, in order, as far as the journal knows.
//!
//! Where [`State`](crate::state::State) keeps the latest word on everything, this keeps all of them: restarts, stages
//! that were made again, what failed.

use serde::Serialize;

use crate::record::{Entry, Measured, Record, RunEnd};
use crate::stage::StageName;

/// A run, from its start to its end or to the last sign of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSpan {
    /// Its number.
    pub number: u64,
    /// The command line.
    pub command: String,
    /// Name and version of the program.
    pub program: String,
    /// The machine.
    pub host: String,
    /// Threads used.
    pub threads: usize,
    /// Memory budget.
    pub memory_bytes: u64,
    /// When it began, in seconds since 1970.
    pub began_at: u64,
    /// When it ended, or was last heard of.
    pub last_at: u64,
    /// How it ended; `None` if it was killed, or goes on.
    pub end: Option<RunEnd>,
    /// What it ran, in order.
    pub stages: Vec<StageSpan>,
}

/// One attempt at a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageSpan {
    /// Which.
    pub stage: StageName,
    /// Why it ran.
    pub reason: String,
    /// Seconds from the start of the run. No earlier than the end of the stage before, though the journal counts in
    /// whole seconds.
    pub begin_seconds: f64,
    /// Seconds from the start of the run; for an attempt without an end, the last sign of the run.
    pub end_seconds: f64,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was done, and took this.
    Done(Box<Measured>),
    /// It failed, with this error.
    Failed(String),
    /// It was stopped, was killed, or goes on.
    Unfinished,
}

/// Something that was noticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// When, in seconds since 1970.
    pub at: u64,
    /// What, in words.
    pub what: String,
    /// Whether something was wrong.
    pub is_bad: bool,
}

/// The runs of a directory, and what was noticed besides.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct History {
    /// The runs, in order.
    pub runs: Vec<RunSpan>,
    /// What was noticed, in order.
    pub remarks: Vec<Remark>,
}

impl History {
    /// Tells the records of a journal as a story.
    pub fn of(entries: &[Entry]) -> History {
        let mut history = History::default();
        for entry in entries {
            history.add(entry);
        }
        history
    }

    fn add(&mut self, entry: &Entry) {
        let run = self.runs.last_mut().filter(|run| run.number == entry.run);
        let remark = |what: String, is_bad| Some(Remark { at: entry.at, what, is_bad });
        let remark = match (&entry.record, run) {
            (Record::RunStarted { command, program, host, threads, memory_bytes, .. }, _) => {
                self.runs.push(RunSpan {
                    number: entry.run,
                    command: command.clone(),
                    program: program.clone(),
                    host: host.clone(),
                    threads: *threads,
                    memory_bytes: *memory_bytes,
                    began_at: entry.at,
                    last_at: entry.at,
                    end: None,
                    stages: Vec::new(),
                });
                None
            }
            (record, run) => {
                if let Some(run) = run {
                    run.last_at = run.last_at.max(entry.at);
                    run.take(record);
                }
                match record {
                    Record::DamageFound { artifact, what, .. } => {
                        remark(format!("{artifact} is damaged: {what}"), true)
                    }
                    Record::StageFailed { stage, message } => remark(format!("{stage} failed: {message}"), true),
                    Record::Verified { artifact, how, .. } => remark(format!("{artifact} checked: {how}"), false),
                    Record::Adopted { artifact } => {
                        remark(format!("{} was taken over on the word of its header", artifact.name), false)
                    }
                    _ => None,
                }
            }
        };
        self.remarks.extend(remark);
    }
}

impl RunSpan {
    /// Seconds from its start to the last sign of it.
    pub fn seconds(&self) -> f64 {
        let last = self.stages.last().map_or(0.0, |stage| stage.end_seconds);
        last.max(self.last_at.saturating_sub(self.began_at) as f64)
    }

    fn take(&mut self, record: &Record) {
        let now = self.last_at.saturating_sub(self.began_at) as f64;
        match record {
            Record::StageStarted { stage, reason } => {
                let before = self.stages.last().map_or(0.0, |stage| stage.end_seconds);
                // Within the second of which the journal speaks.
                let begin_seconds = before.max(now);
                self.stages.push(StageSpan {
                    stage: stage.clone(),
                    reason: reason.clone(),
                    begin_seconds,
                    end_seconds: begin_seconds,
                    outcome: Outcome::Unfinished,
                });
            }
            Record::StageDone { stage, measured, .. } => {
                if let Some(span) = self.stages.last_mut().filter(|span| span.stage == *stage) {
                    span.end_seconds = span.begin_seconds + measured.wall_seconds.max(0.0);
                    span.outcome = Outcome::Done(Box::new(measured.clone()));
                }
            }
            Record::StageFailed { stage, message } => {
                if let Some(span) = self.stages.last_mut().filter(|span| span.stage == *stage) {
                    span.end_seconds = span.begin_seconds.max(now);
                    span.outcome = Outcome::Failed(message.clone());
                }
            }
            Record::RunEnded { how } => {
                self.end = Some(how.clone());
                if let Some(span) = self.stages.last_mut().filter(|span| span.outcome == Outcome::Unfinished) {
                    span.end_seconds = span.begin_seconds.max(now);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::Digest;

    fn entry(run: u64, at: u64, record: Record) -> Entry {
        Entry { run, at, record }
    }

    fn started(run: u64, at: u64) -> Entry {
        let text = String::new;
        let (threads, memory_bytes, manifest) = (2, 7, Digest::of(b""));
        let record = Record::RunStarted {
            command: text(),
            program: text(),
            host: text(),
            pid: 1,
            threads,
            memory_bytes,
            manifest,
        };
        entry(run, at, record)
    }

    #[test]
    fn stages_follow_each_other_across_restarts() {
        let stage: StageName = "sweep:3".parse().unwrap();
        let begins = |run, at| entry(run, at, Record::StageStarted { stage: stage.clone(), reason: "absent".into() });
        let measured = Measured { wall_seconds: 1.5, ..Measured::default() };
        let done = Record::StageDone { stage: stage.clone(), artifacts: Vec::new(), measured };
        let failed = Record::StageFailed { stage: stage.clone(), message: "no".into() };
        let entries = [
            started(1, 100),
            begins(1, 100),
            started(2, 200),
            begins(2, 201),
            entry(2, 202, done.clone()),
            begins(2, 202),
            entry(2, 203, done),
            begins(2, 204),
            entry(2, 209, failed),
            entry(2, 210, Record::RunEnded { how: RunEnd::Failed("no".into()) }),
        ];
        let History { runs, remarks } = History::of(&entries);
        let [killed, failed] = &runs[..] else { panic!("{runs:?}") };
        assert_eq!((killed.end.clone(), killed.stages.len()), (None, 1));
        assert_eq!(killed.stages[0].outcome, Outcome::Unfinished);
        let spans: Vec<(f64, f64)> = failed.stages.iter().map(|span| (span.begin_seconds, span.end_seconds)).collect();
        assert_eq!(spans, [(1.0, 2.5), (2.5, 4.0), (4.0, 9.0)]);
        assert_eq!(failed.seconds(), 10.0);
        assert!(matches!(failed.stages[2].outcome, Outcome::Failed(_)));
        assert_eq!((remarks.len(), remarks[0].is_bad), (1, true));
    }
}
