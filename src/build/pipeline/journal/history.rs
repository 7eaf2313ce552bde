//! The history of a run directory: every run and stage in order.
//!
//! [`JournalState`](crate::journal::JournalState) keeps the latest state of each artifact and stage; the history keeps
//! every event: restarts, repeated stages, failures.

use crate::journal::record::{Entry, Measured, Record, RunEnd};
use crate::stage::StageName;
use serde::Serialize;

/// A run, from its start to its end or last sign of life.
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
    pub began_at: f64,
    /// The time of its end or last sign of life, in seconds since 1970.
    pub last_at: f64,
    /// How it ended; `None` if it was killed, or is active.
    pub end: Option<RunEnd>,
    /// The attempts at stages, in order.
    pub stages: Vec<StageSpan>,
}

/// One attempt at a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageSpan {
    /// The stage.
    pub stage: StageName,
    /// Why it ran.
    pub reason: String,
    /// Seconds from the start of the run; if no other stage ran beside it, no earlier than the end of the previous one,
    /// although older journals count whole seconds.
    pub begin_seconds: f64,
    /// Seconds from the start of the run; for an attempt without an end, until the last sign of life.
    pub end_seconds: f64,
    /// Its outcome.
    pub outcome: StageOutcome,
}

/// The outcome of an attempt at a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageOutcome {
    /// The stage was completed, at this cost.
    Done(Box<Measured>),
    /// It failed, with this error.
    Failed(String),
    /// It was stopped or killed, or is active.
    Unfinished,
}

/// A noteworthy event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// The time of the event, in seconds since 1970.
    pub at: u64,
    /// The event, in words.
    pub what: String,
    /// Whether it is a failure or damage.
    pub is_bad: bool,
}

/// The runs of a directory, and noteworthy events.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct History {
    /// The runs, in order.
    pub runs: Vec<RunSpan>,
    /// The events, in order.
    pub remarks: Vec<Remark>,
}

impl History {
    /// Replays the records of a journal.
    pub fn of(entries: &[Entry]) -> History {
        let mut history = History::default();
        for entry in entries {
            history.add(entry);
        }
        history
    }

    /// Adds a sign of life of a run, in seconds since 1970. Ignored if the run has ended.
    pub fn add_heartbeat(&mut self, run: u64, at: f64) {
        if let Some(run) = self.runs.iter_mut().find(|span| span.number == run && span.end.is_none()) {
            run.add_heartbeat(at);
        }
    }

    fn add(&mut self, entry: &Entry) {
        let run = self.runs.last_mut().filter(|run| run.number == entry.run);
        let remark = |what: String, is_bad| Some(Remark { at: entry.at, what, is_bad });
        let remark = match (&entry.record, run) {
            (Record::RunStarted { command, program, host, threads, memory_bytes, killed, .. }, _) => {
                if let Some(sign) = killed {
                    self.add_heartbeat(sign.run, (sign.at as f64).min(entry.seconds()));
                }
                self.runs.push(RunSpan {
                    number: entry.run,
                    command: command.clone(),
                    program: program.clone(),
                    host: host.clone(),
                    threads: *threads,
                    memory_bytes: *memory_bytes,
                    began_at: entry.seconds(),
                    last_at: entry.seconds(),
                    end: None,
                    stages: Vec::new(),
                });
                None
            }
            (record, run) => {
                if let Some(run) = run {
                    run.add_heartbeat(entry.seconds());
                    run.take(record);
                }
                match record {
                    Record::DamageFound { artifact, what, .. } => {
                        remark(format!("{artifact} is damaged: {what}"), true)
                    }
                    Record::StageFailed { stage, message } => remark(format!("{stage} failed: {message}"), true),
                    Record::Verified { artifact, how, .. } => remark(format!("{artifact} checked: {how}"), false),
                    Record::Adopted { artifact } => {
                        remark(format!("{} was adopted (header checked)", artifact.name), false)
                    }
                    _ => None,
                }
            }
        };
        self.remarks.extend(remark);
    }
}

impl RunSpan {
    /// Returns the seconds from its start to its end or last sign of life.
    pub fn seconds(&self) -> f64 {
        let ends = self.stages.iter().map(|stage| stage.end_seconds);
        ends.fold(self.last_at - self.began_at, f64::max)
    }

    /// Extends the run and its current attempts to a time in seconds since 1970.
    fn add_heartbeat(&mut self, at: f64) {
        self.last_at = self.last_at.max(at);
        let now = self.last_at - self.began_at;
        for span in self.stages.iter_mut().filter(|span| span.outcome == StageOutcome::Unfinished) {
            span.end_seconds = span.end_seconds.max(now);
        }
    }

    /// Returns the current attempt at a stage.
    fn current(&mut self, stage: &StageName) -> Option<&mut StageSpan> {
        let is_current = |span: &&mut StageSpan| span.stage == *stage && span.outcome == StageOutcome::Unfinished;
        self.stages.iter_mut().rev().find(is_current)
    }

    fn take(&mut self, record: &Record) {
        let now = self.last_at - self.began_at;
        match record {
            Record::StageStarted { stage, reason } => {
                let before = self.stages.last().map_or(0.0, |stage| stage.end_seconds);
                let begin_seconds = before.max(now);
                self.stages.push(StageSpan {
                    stage: stage.clone(),
                    reason: reason.clone(),
                    begin_seconds,
                    end_seconds: begin_seconds,
                    outcome: StageOutcome::Unfinished,
                });
            }
            Record::StageDone { stage, measured, .. } => {
                if let Some(span) = self.current(stage) {
                    span.end_seconds = span.begin_seconds + measured.wall_seconds.max(0.0);
                    span.outcome = StageOutcome::Done(Box::new(measured.clone()));
                }
            }
            Record::StageFailed { stage, message } => {
                if let Some(span) = self.current(stage) {
                    span.end_seconds = span.begin_seconds.max(now);
                    span.outcome = StageOutcome::Failed(message.clone());
                }
            }
            Record::RunEnded { how } => {
                self.end = Some(how.clone());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::record::LastHeartbeat;
    use disk::Digest;

    fn entry(run: u64, at: u64, record: Record) -> Entry {
        Entry { run, at, millis: 0, record }
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
            killed: None,
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
        assert_eq!(killed.stages[0].outcome, StageOutcome::Unfinished);
        let spans: Vec<(f64, f64)> = failed.stages.iter().map(|span| (span.begin_seconds, span.end_seconds)).collect();
        assert_eq!(spans, [(1.0, 2.5), (2.5, 4.0), (4.0, 9.0)]);
        assert_eq!(failed.seconds(), 10.0);
        assert!(matches!(failed.stages[2].outcome, StageOutcome::Failed(_)));
        assert_eq!((remarks.len(), remarks[0].is_bad), (1, true));
    }

    #[test]
    fn stages_side_by_side_overlap() {
        let [sweep, verify]: [StageName; 2] = ["sweep:3", "verify:2"].map(|name| name.parse().unwrap());
        let begins =
            |at, stage: &StageName| entry(1, at, Record::StageStarted { stage: stage.clone(), reason: String::new() });
        let done = |at, stage: &StageName, wall_seconds| {
            let measured = Measured { wall_seconds, ..Measured::default() };
            entry(1, at, Record::StageDone { stage: stage.clone(), artifacts: Vec::new(), measured })
        };
        // The stage that began first ends last; another one does not end.
        let entries = [
            started(1, 100),
            begins(101, &sweep),
            begins(102, &verify),
            done(104, &verify, 2.0),
            begins(105, &verify),
            done(109, &sweep, 8.0),
        ];
        let run = &History::of(&entries).runs[0];
        let spans: Vec<_> = run.stages.iter().map(|span| (span.begin_seconds, span.end_seconds)).collect();
        assert_eq!(spans, [(1.0, 9.0), (2.0, 4.0), (5.0, 9.0)]);
        assert_eq!((run.seconds(), run.stages[2].outcome.clone()), (9.0, StageOutcome::Unfinished));
        assert!(matches!(run.stages[0].outcome, StageOutcome::Done(_)));
    }

    #[test]
    fn short_stages_leave_no_gaps() {
        let names = ["capture:3", "sweep:3", "verify:3"];
        let moment = |millis: u64, record| Entry { at: millis / 1000, millis: (millis % 1000) as u16, run: 1, record };
        let mut entries = vec![Entry { millis: 900, ..started(1, 99) }];
        for (number, name) in names.into_iter().enumerate() {
            let stage: StageName = name.parse().unwrap();
            let begin = 99_900 + 250 * number as u64;
            entries.push(moment(begin, Record::StageStarted { stage: stage.clone(), reason: String::new() }));
            let measured = Measured { wall_seconds: 0.25, ..Measured::default() };
            entries.push(moment(begin + 250, Record::StageDone { stage, artifacts: Vec::new(), measured }));
        }
        let history = History::of(&entries);
        let spans = history.runs[0].stages.iter().map(|span| (span.begin_seconds, span.end_seconds));
        for ((begin, end), expected) in spans.zip([0.0, 0.25, 0.5]) {
            assert!((begin - expected).abs() < 1e-3 && (end - expected - 0.25).abs() < 1e-3, "{begin} {end}");
        }
        assert!((history.runs[0].seconds() - 0.75).abs() < 1e-3);
    }

    #[test]
    fn a_killed_run_lived_until_its_last_sign() {
        let stage: StageName = "sweep:3".parse().unwrap();
        let begins = |run, at| entry(run, at, Record::StageStarted { stage: stage.clone(), reason: String::new() });
        let mut second = started(2, 500);
        let Record::RunStarted { killed, .. } = &mut second.record else { unreachable!() };
        *killed = Some(LastHeartbeat { run: 1, at: 147 });
        let mut history = History::of(&[started(1, 100), begins(1, 101), second, begins(2, 501)]);
        assert_eq!((history.runs[0].seconds(), history.runs[0].stages[0].end_seconds), (47.0, 47.0));
        assert_eq!(history.runs[1].seconds(), 1.0);
        history.add_heartbeat(2, 530.0);
        assert_eq!((history.runs[1].seconds(), history.runs[1].stages[0].end_seconds), (30.0, 30.0));
        // A sign of a run that has ended, of none, or from after the next run began, is none.
        let ended = entry(2, 502, Record::RunEnded { how: RunEnd::Stopped });
        let mut later = started(2, 500);
        let Record::RunStarted { killed, .. } = &mut later.record else { unreachable!() };
        *killed = Some(LastHeartbeat { run: 1, at: u64::MAX });
        let mut history = History::of(&[started(1, 100), later, ended]);
        history.add_heartbeat(2, 600.0);
        history.add_heartbeat(9, 600.0);
        assert_eq!((history.runs[0].seconds(), history.runs[1].seconds()), (400.0, 2.0));
    }
}
