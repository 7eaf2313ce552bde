//! An observer that writes the heartbeat file of a run.
//!
//! With each heartbeat the run looks for a request to stop, and for a later run in the journal: either makes it stop.

use crate::directory::{Heartbeat, StopRequest, heartbeat_path, journal_path};
use crate::journal::{Contents, JOURNAL_BYTES_MAX};
use crate::observer::{Event, Observer};
use crate::progress::{Forecast, PassReading, ProgressReading};
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
    /// `None` before the first stage.
    heartbeat: Option<Heartbeat>,
    /// The latest reading of the current stage.
    reading: ProgressReading,
    run: u64,
    /// Bytes of the journal that are known to belong to no later run.
    journal_bytes: u64,
    written: Option<Stopwatch<'a>>,
    /// Time since the other observer last received progress.
    forwarded: Stopwatch<'a>,
}

impl<'a> HeartbeatObserver<'a> {
    /// Writes heartbeats into `directory`, and raises `stop` when a stop is requested there.
    pub fn new(disk: &'a dyn Disk, directory: &Path, inner: &'a dyn Observer, stop: &'a AtomicBool) -> Self {
        let now = Stopwatch::start(disk.clock());
        let state = HeartbeatState {
            begun: now,
            forecast: Forecast::default(),
            heartbeat: None,
            reading: ProgressReading::default(),
            run: 0,
            journal_bytes: 0,
            written: None,
            forwarded: now,
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
        let Some(heartbeat) = &mut state.heartbeat else { return };
        let Heartbeat { seconds, .. } = *heartbeat;
        heartbeat.at = self.now_seconds();
        heartbeat.stage_left_seconds = state.reading.left_seconds(seconds);
        let elapsed = state.begun.elapsed().as_secs_f64();
        heartbeat.run_left_seconds = state.forecast.left(state.reading.at_hand(), seconds, elapsed);
        heartbeat.memory_bytes = clock::resident_bytes();
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

impl Observer for HeartbeatObserver<'_> {
    fn notice(&self, event: &Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_forwarded = true;
        match event {
            Event::RunStarted { run, seconds, .. } => {
                state.run = *run;
                // This run is not in the journal, so no request can name it.
                StopRequest::remove(self.disk, &self.directory);
                (state.begun, state.forecast) = (self.stopwatch(), Forecast::new(*seconds));
            }
            Event::StageStarted { stage, number, steps, cost, .. } => {
                state.forecast.begin(cost.seconds);
                let now = self.now_seconds();
                state.heartbeat = Some(Heartbeat {
                    run: state.run,
                    at: now,
                    stage: stage.clone(),
                    number: *number,
                    steps: *steps,
                    done: 0,
                    total: 0,
                    unit: String::new(),
                    bound: None,
                    pass: None,
                    seconds: 0.0,
                    advanced_at: now,
                    stage_left_seconds: None,
                    run_left_seconds: None,
                    memory_bytes: None,
                });
                state.reading = ProgressReading::default();
                state.forwarded = self.stopwatch();
                self.beat(&mut state);
            }
            Event::Progress { reading, seconds, .. } => {
                let ProgressReading { done, total, unit, bound, pass } = *reading;
                state.reading = *reading;
                if let Some(heartbeat) = &mut state.heartbeat {
                    let number = |pass: Option<PassReading>| pass.map(|pass| pass.number);
                    let seen = (heartbeat.done, heartbeat.total, heartbeat.bound, number(heartbeat.pass));
                    if seen != (done, total, bound, number(pass)) {
                        heartbeat.advanced_at = self.now_seconds();
                    }
                    (heartbeat.done, heartbeat.total, heartbeat.seconds) = (done, total, *seconds);
                    (heartbeat.bound, heartbeat.pass) = (bound, pass);
                    unit.clone_into(&mut heartbeat.unit);
                }
                self.beat(&mut state);
                is_forwarded = state.forwarded.elapsed() >= self.inner.interval();
                if is_forwarded {
                    state.forwarded = self.stopwatch();
                }
            }
            Event::StageDone { .. } => state.forecast.end(),
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
    use crate::journal::{Journal, Record, RunEnd};
    use crate::plan::{Reason, StageCounts};
    use crate::stage::{Cost, StageName};
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
        });
        let cost = Cost { seconds: 40.0, ..Cost::default() };
        let (number, steps) = (2, 4);
        beating.notice(&Event::StageStarted { stage: stage.clone(), reason: Reason::Forced, number, steps, cost });
        let seen = Heartbeat::read(&disk, directory).unwrap();
        assert_eq!((seen.run, &seen.stage, seen.number, seen.done), (7, &stage, 2, 0));
        assert_eq!(seen.run_left_seconds, Some(100.0));
        beating.state.lock().unwrap().written = None;
        let pass = PassReading { number: 3, changed_share: Some(0.5), is_last: false, left_seconds: None };
        let reading = ProgressReading { done: 30, total: 40, unit: "rows", ..ProgressReading::default() };
        beating.notice(&Event::Progress { stage: stage.clone(), reading, seconds: 6.0 });
        let seen = Heartbeat::read(&disk, directory).unwrap();
        assert_eq!((seen.done, seen.total, seen.stage_left_seconds), (30, 40, Some(2.0)));
        assert_eq!(seen.run_left_seconds, Some(70.0));
        // Passes without an estimate, longer than the predicted time of the stage.
        beating.state.lock().unwrap().written = None;
        let reading = ProgressReading { pass: Some(pass), ..reading };
        beating.notice(&Event::Progress { stage, reading, seconds: 1e6 });
        let seen = Heartbeat::read(&disk, directory).unwrap();
        assert_eq!((seen.pass, seen.stage_left_seconds, seen.run_left_seconds), (Some(pass), None, None));
        // The other observer wants progress once an hour.
        assert_eq!(inner.0.load(Ordering::Relaxed), 2);
        assert_eq!(beating.interval(), Duration::from_secs(1));
        beating.notice(&Event::RunEnded { how: RunEnd::Done, seconds: 6.0 });
        assert_eq!(Heartbeat::read(&disk, directory), None);
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
