//! An observer that writes the heartbeat file of a run.
//!
//! With each heartbeat the run looks for a request to stop, and for a later run in the journal: either makes it stop.

use crate::directory::{Heartbeat, StageHeartbeat, StopRequest, heartbeat_path, journal_path};
use crate::journal::{Contents, JOURNAL_BYTES_MAX};
use crate::observer::{Event, Observer};
use crate::progress::{Forecast, PassReading, ProgressReading};
use crate::stage::StageName;
use disk::{Disk, Stopwatch, clock};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Time between heartbeats.
const INTERVAL: Duration = Duration::from_secs(1);

/// An observer that writes heartbeats, obeys stop requests, and forwards all events to another observer.
pub struct HeartbeatObserver<'a> {
    disk: &'a dyn Disk,
    directory: PathBuf,
    inner: &'a dyn Observer,
    stop: &'a AtomicBool,
    state: Mutex<HeartbeatState<'a>>,
}

/// The state of the run.
struct HeartbeatState<'a> {
    begun: Stopwatch<'a>,
    forecast: Forecast,
    /// The current stages, in the order in which they began. Between stages it holds the last one.
    stages: Vec<BeatingStage<'a>>,
    /// Whether the only stage has ended.
    is_between: bool,
    steps: usize,
    run: u64,
    /// Bytes of the journal that are known to belong to no later run.
    journal_bytes: u64,
    written: Option<Stopwatch<'a>>,
}

/// A current stage.
struct BeatingStage<'a> {
    heartbeat: StageHeartbeat,
    /// Its latest reading.
    reading: ProgressReading,
    /// Time since the other observer last received its progress.
    forwarded: Stopwatch<'a>,
}

impl HeartbeatState<'_> {
    /// Removes a stage that has ended, unless it is the only one.
    fn end(&mut self, stage: &StageName) {
        self.is_between = self.stages.len() == 1;
        if !self.is_between {
            self.stages.retain(|beating| beating.heartbeat.stage != *stage);
        }
    }
}

impl<'a> HeartbeatObserver<'a> {
    /// Writes heartbeats into `directory`, and raises `stop` when a stop is requested there.
    pub fn new(disk: &'a dyn Disk, directory: &Path, inner: &'a dyn Observer, stop: &'a AtomicBool) -> Self {
        let now = Stopwatch::start(disk.clock());
        let state = HeartbeatState {
            begun: now,
            forecast: Forecast::default(),
            stages: Vec::new(),
            is_between: false,
            steps: 0,
            run: 0,
            journal_bytes: 0,
            written: None,
        };
        HeartbeatObserver { disk, directory: directory.to_path_buf(), inner, stop, state: Mutex::new(state) }
    }

    /// Starts a stopwatch.
    fn stopwatch(&self) -> Stopwatch<'a> {
        Stopwatch::start(self.disk.clock())
    }

    /// Returns the seconds since 1970.
    fn now_seconds(&self) -> u64 {
        self.disk.clock().utc().as_secs()
    }

    fn beat(&self, state: &mut HeartbeatState<'a>) {
        if state.written.is_some_and(|at| at.elapsed() < INTERVAL) {
            return;
        }
        let heartbeat_of = |beating: &BeatingStage| StageHeartbeat {
            stage_left_seconds: beating.reading.left_seconds(beating.heartbeat.seconds),
            ..beating.heartbeat.clone()
        };
        let mut stages = state.stages.iter().map(heartbeat_of);
        let Some(first) = stages.next() else { return };
        let heartbeat = &Heartbeat {
            run: state.run,
            at: self.now_seconds(),
            steps: state.steps,
            run_left_seconds: state.forecast.left(state.begun.elapsed().as_secs_f64()),
            memory_bytes: clock::resident_bytes(),
            first,
            beside: stages.collect(),
        };
        // A failure only delays observers; the stages detect a failing disk.
        if let Ok(text) = serde_json::to_vec(heartbeat) {
            let _ = self.disk.post(&heartbeat_path(&self.directory), &text);
        }
        state.written = Some(self.stopwatch());
        if StopRequest::read(self.disk, &self.directory) == Some(StopRequest { run: state.run }) {
            self.stop.store(true, Ordering::Relaxed);
            StopRequest::remove(self.disk, &self.directory);
            tracing::warn!("stop requested; finishing the current step");
        }
        if let Some(run) = self.later_run(state) {
            self.stop.store(true, Ordering::Relaxed);
            tracing::warn!("run {run} has taken over the directory, so this run ({}) ends", state.run);
        }
    }

    /// Returns a later run in the journal. The fence keeps this run from writing; here it notices early.
    fn later_run(&self, state: &mut HeartbeatState) -> Option<u64> {
        let path = journal_path(&self.directory);
        let journal = self.disk.open(&path).ok()?;
        let found = journal.bytes().min(JOURNAL_BYTES_MAX);
        let mut more = vec![0; found.checked_sub(state.journal_bytes).filter(|&more| more > 0)? as usize];
        journal.read_at(state.journal_bytes, &mut more).ok()?;
        let contents = Contents::decode(&more);
        state.journal_bytes += contents.valid_bytes;
        contents.entries.iter().map(|entry| entry.run).find(|&run| run > state.run)
    }
}

impl BeatingStage<'_> {
    fn advance(&mut self, reading: &ProgressReading, seconds: f64, now: u64) {
        let ProgressReading { done, total, unit, bound, pass, writing_seconds } = *reading;
        let number = |pass: Option<PassReading>| pass.map(|pass| pass.number);
        let heartbeat = &mut self.heartbeat;
        let seen = (heartbeat.done, heartbeat.total, heartbeat.bound, number(heartbeat.pass));
        if seen != (done, total, bound, number(pass)) {
            heartbeat.advanced_at = now;
        }
        (heartbeat.done, heartbeat.total, heartbeat.seconds) = (done, total, seconds);
        (heartbeat.bound, heartbeat.pass, heartbeat.writing_seconds) = (bound, pass, writing_seconds);
        unit.clone_into(&mut heartbeat.unit);
        self.reading = *reading;
    }
}

impl Observer for HeartbeatObserver<'_> {
    fn notice(&self, event: &Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_forwarded = true;
        match event {
            Event::RunStarted { run, seconds, run_seconds, .. } => {
                state.run = *run;
                // This run is not in the journal, so no request can name it.
                StopRequest::remove(self.disk, &self.directory);
                (state.begun, state.forecast) = (self.stopwatch(), Forecast::new(*seconds, *run_seconds));
            }
            Event::StageStarted { stage, number, steps, cost, .. } => {
                state.forecast.begin(stage, cost.seconds);
                if std::mem::take(&mut state.is_between) {
                    state.stages.clear();
                }
                let heartbeat = StageHeartbeat {
                    stage: stage.clone(),
                    number: *number,
                    done: 0,
                    total: 0,
                    unit: String::new(),
                    bound: None,
                    pass: None,
                    writing_seconds: None,
                    seconds: 0.0,
                    advanced_at: self.now_seconds(),
                    stage_left_seconds: None,
                };
                let (reading, forwarded) = (ProgressReading::default(), self.stopwatch());
                state.stages.push(BeatingStage { heartbeat, reading, forwarded });
                state.steps = *steps;
                self.beat(&mut state);
            }
            Event::Progress { stage, reading, seconds } => {
                state.forecast.advance(stage, reading.at_hand(), *seconds);
                let mut stages = state.stages.iter_mut();
                if let Some(beating) = stages.find(|beating| beating.heartbeat.stage == *stage) {
                    beating.advance(reading, *seconds, self.now_seconds());
                    is_forwarded = beating.forwarded.elapsed() >= self.inner.interval();
                    if is_forwarded {
                        beating.forwarded = self.stopwatch();
                    }
                }
                self.beat(&mut state);
            }
            Event::StageDone { stage, .. } => {
                state.forecast.end(stage);
                state.end(stage);
            }
            Event::StageStopped { stage } | Event::StageFailed { stage, .. } => state.end(stage),
            Event::RunEnded { .. } => {
                // The heartbeat and stop request of a later run are not removed.
                if Heartbeat::read(self.disk, &self.directory).is_none_or(|found| found.run <= state.run) {
                    let _ = self.disk.remove(&heartbeat_path(&self.directory));
                }
                if StopRequest::read(self.disk, &self.directory).is_none_or(|found| found.run <= state.run) {
                    StopRequest::remove(self.disk, &self.directory);
                }
            }
            _ => {}
        }
        drop(state);
        if is_forwarded {
            self.inner.notice(event);
        }
    }

    fn interval(&self) -> Duration {
        self.inner.interval().min(INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Journal, Measured, Record, RunEnd};
    use crate::plan::{Reason, StageCounts};
    use crate::stage::Cost;
    use disk::MemoryDisk;
    use std::sync::atomic::AtomicU32;

    #[derive(Default)]
    struct EventCounter(AtomicU32);

    impl Observer for EventCounter {
        fn notice(&self, _: &Event) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn interval(&self) -> Duration {
            Duration::from_secs(3600)
        }
    }

    #[test]
    fn a_run_can_be_watched_from_outside_until_it_ends() {
        let disk = MemoryDisk::new();
        let directory = Path::new("/run");
        let inner = EventCounter::default();
        let stop = AtomicBool::new(false);
        let beating = HeartbeatObserver::new(&disk, directory, &inner, &stop);
        assert_eq!(Heartbeat::read(&disk, directory), None);
        let stage: StageName = "sweep:9".parse().unwrap();
        beating.notice(&Event::RunStarted {
            directory: directory.into(),
            run: 7,
            steps: 4,
            counts: StageCounts::default(),
            seconds: 100.0,
            run_seconds: 100.0,
            stages: Vec::new(),
        });
        let cost = Cost { seconds: 40.0, ..Cost::default() };
        let (number, steps) = (2, 4);
        beating.notice(&Event::StageStarted { stage: stage.clone(), reason: Reason::Forced, number, steps, cost });
        let seen = Heartbeat::read(&disk, directory).unwrap();
        let first = &seen.first;
        assert_eq!((seen.run, &first.stage, first.number, first.done), (7, &stage, 2, 0));
        assert_eq!(seen.run_left_seconds, Some(100.0));
        beating.state.lock().unwrap().written = None;
        let pass =
            PassReading { number: 3, changed_share: Some(0.5), is_last: false, left_seconds: None, seconds: 1.0 };
        let reading = ProgressReading { done: 30, total: 40, unit: "rows", ..ProgressReading::default() };
        beating.notice(&Event::Progress { stage: stage.clone(), reading, seconds: 6.0 });
        let seen = Heartbeat::read(&disk, directory).unwrap();
        let first = &seen.first;
        assert_eq!((first.done, first.total, first.stage_left_seconds), (30, 40, Some(2.0)));
        assert_eq!(seen.run_left_seconds, Some(70.0));
        // Passes without an estimate, longer than the predicted time of the stage.
        beating.state.lock().unwrap().written = None;
        let reading = ProgressReading { pass: Some(pass), ..reading };
        beating.notice(&Event::Progress { stage, reading, seconds: 1e6 });
        let seen = Heartbeat::read(&disk, directory).unwrap();
        assert_eq!((seen.first.pass, seen.first.stage_left_seconds, seen.run_left_seconds), (Some(pass), None, None));
        // The other observer wants progress once an hour.
        assert_eq!(inner.0.load(Ordering::Relaxed), 2);
        assert_eq!(beating.interval(), Duration::from_secs(1));
        beating.notice(&Event::RunEnded { how: RunEnd::Done, seconds: 6.0 });
        assert_eq!(Heartbeat::read(&disk, directory), None);
    }

    #[test]
    fn stages_side_by_side_share_the_heartbeat() {
        let (disk, directory) = (MemoryDisk::new(), Path::new("/run"));
        let (inner, stop) = (EventCounter::default(), AtomicBool::new(false));
        let beating = HeartbeatObserver::new(&disk, directory, &inner, &stop);
        let started = |name: &str, number| {
            let (stage, reason, cost) = (name.parse().unwrap(), Reason::Forced, Cost::default());
            beating.state.lock().unwrap().written = None;
            beating.notice(&Event::StageStarted { stage, reason, number, steps: 9, cost });
        };
        let done = |name: &str| {
            let (stage, measured) = (name.parse().unwrap(), Measured::default());
            beating.notice(&Event::StageDone { stage, measured, bytes: 1 });
        };
        let check = |expected: &[&str]| {
            let seen = Heartbeat::read(&disk, directory).unwrap();
            assert_eq!(seen.stages().map(|stage| stage.stage.to_string()).collect::<Vec<_>>(), expected);
        };
        started("sweep:9", 1);
        started("verify:8", 2);
        check(&["sweep:9", "verify:8"]);
        beating.state.lock().unwrap().written = None;
        let reading = ProgressReading { done: 3, total: 4, unit: "rows", ..ProgressReading::default() };
        beating.notice(&Event::Progress { stage: "verify:8".parse().unwrap(), reading, seconds: 3.0 });
        let seen = Heartbeat::read(&disk, directory).unwrap();
        assert_eq!((seen.first.done, seen.beside[0].done, seen.beside[0].stage_left_seconds), (0, 3, Some(1.0)));
        done("sweep:9");
        started("capture:10", 3);
        check(&["verify:8", "capture:10"]);
        done("verify:8");
        done("capture:10");
        started("sweep:10", 4);
        check(&["sweep:10"]);
    }

    #[test]
    fn a_run_obeys_only_requests_for_itself() {
        let disk = MemoryDisk::new();
        let directory = Path::new("/run");
        let (inner, stop) = (EventCounter::default(), AtomicBool::new(false));
        let beating = HeartbeatObserver::new(&disk, directory, &inner, &stop);
        let ask = |run| StopRequest { run }.post(&disk, directory).unwrap();
        ask(6);
        beating.notice(&Event::RunStarted {
            directory: directory.into(),
            run: 7,
            steps: 1,
            counts: StageCounts::default(),
            seconds: 1.0,
            run_seconds: 1.0,
            stages: Vec::new(),
        });
        assert_eq!(StopRequest::read(&disk, directory), None, "of an old run");
        start_stage(&beating);
        let beat = || beat(&beating, &stop);
        assert!(!beat());
        ask(8);
        assert!(!beat(), "of another run");
        ask(7);
        assert!(beat());
        assert_eq!(StopRequest::read(&disk, directory), None, "obeyed");
        ask(7);
        beating.notice(&Event::RunEnded { how: RunEnd::Stopped, seconds: 6.0 });
        assert_eq!(StopRequest::read(&disk, directory), None, "too late");
    }

    fn start_stage(beating: &HeartbeatObserver) {
        let (stage, reason, cost) = ("sweep:9".parse().unwrap(), Reason::Forced, Cost::default());
        beating.notice(&Event::StageStarted { stage, reason, number: 1, steps: 1, cost });
    }

    /// Makes a heartbeat due. Returns whether the run is to stop.
    fn beat(beating: &HeartbeatObserver, stop: &AtomicBool) -> bool {
        beating.state.lock().unwrap().written = None;
        let stage = "sweep:9".parse().unwrap();
        let reading = ProgressReading { done: 1, total: 2, unit: "rows", ..ProgressReading::default() };
        beating.notice(&Event::Progress { stage, reading, seconds: 1.0 });
        stop.load(Ordering::Relaxed)
    }

    #[test]
    fn a_run_that_has_lost_the_directory_stops_early() {
        let disk = MemoryDisk::new();
        let directory = Path::new("/run");
        let (inner, stop) = (EventCounter::default(), AtomicBool::new(false));
        let open = || Journal::open(&disk, &journal_path(directory)).unwrap();
        let ended = || Record::RunEnded { how: RunEnd::Done };
        let mut first = open();
        first.append(ended()).unwrap();
        let beating = HeartbeatObserver::new(&disk, directory, &inner, &stop);
        let run = first.run();
        beating.notice(&Event::RunStarted {
            directory: directory.into(),
            run,
            steps: 1,
            counts: StageCounts::default(),
            seconds: 1.0,
            run_seconds: 1.0,
            stages: Vec::new(),
        });
        start_stage(&beating);
        let beat = || beat(&beating, &stop);
        first.append(ended()).unwrap();
        assert!(!beat(), "its own records");
        let mut second = open();
        second.append(ended()).unwrap();
        assert!(beat());
        // The files belong to the later run by now.
        let own = Heartbeat { run: second.run(), ..Heartbeat::read(&disk, directory).unwrap() };
        disk.post(&heartbeat_path(directory), &serde_json::to_vec(&own).unwrap()).unwrap();
        StopRequest { run: second.run() }.post(&disk, directory).unwrap();
        beating.notice(&Event::RunEnded { how: RunEnd::Stopped, seconds: 6.0 });
        assert_eq!(Heartbeat::read(&disk, directory), Some(own));
        assert_eq!(StopRequest::read(&disk, directory), Some(StopRequest { run: second.run() }));
    }
}
