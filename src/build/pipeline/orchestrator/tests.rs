//! Runs that build, resume and stop.

mod damage;
mod faults;
mod garbage;
mod side_by_side;
mod single;
mod stage_counts;

use crate::directory::{Directory, MANIFEST_MARK, journal_path};
use crate::exit::Exit;
use crate::journal::RunEnd;
use crate::observer::{Event, Observer};
use crate::orchestrator::single::ScratchDirectory;
use crate::orchestrator::{Orchestrator, RunOptions};
use crate::plan::Keep;
use crate::status::{RunState, StageState, status};
use crate::toy::{Bench, DIRECTORY, Design, Toy};
use disk::{Disk, RealDisk};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn toy() -> Toy {
    Design::default().toy()
}

fn reference() -> BTreeMap<String, Vec<u8>> {
    Bench::built().files()
}

const ALL: [&str; 16] = [
    "capture:0",
    "solve:0",
    "verify:0",
    "stats:0",
    "capture:1",
    "solve:1",
    "verify:1",
    "stats:1",
    "capture:2",
    "solve:2",
    "verify:2",
    "stats:2",
    "capture:3",
    "solve:3",
    "verify:3",
    "stats:3",
];

#[test]
fn a_run_builds_everything_once_and_then_nothing() {
    let bench = Bench::default();
    let toy = toy();
    let summary = bench.run(&toy).unwrap();
    assert_eq!((summary.how.clone(), summary.exit()), (RunEnd::Done, Exit::Done));
    assert_eq!(toy.take_log(), ALL);
    assert_eq!(summary.ran.len(), 16);
    assert!(summary.plan.steps.is_empty());
    for ran in &summary.ran {
        // What a stage publishes it has written; a marker of a snapshot may come to it.
        let made: u64 = ran.artifacts.iter().map(|artifact| artifact.bytes).sum();
        let written = ran.measured.written_bytes;
        assert!(written.is_some_and(|written| written >= made), "{}: {written:?} of {made}", ran.stage);
        assert!(ran.measured.read_bytes.is_some());
    }
    let all = bench.disk.traffic();
    let staged: u64 = summary.ran.iter().filter_map(|ran| ran.measured.written_bytes).sum();
    assert!(0 < staged && staged < all.written_bytes, "{staged} bytes by stages, {all:?} with the journal");
    let names: Vec<String> = bench.files().into_keys().collect();
    let expect =
        ["databases/0", "databases/1", "databases/2", "databases/3", "stats/0", "stats/1", "stats/2", "stats/3"];
    assert_eq!(names, expect);

    let journal = bench.disk.peek(&journal_path(Path::new(DIRECTORY)));
    let summary = bench.run(&toy).unwrap();
    assert!(toy.take_log().is_empty() && summary.ran.is_empty());
    assert_eq!(bench.disk.peek(&journal_path(Path::new(DIRECTORY))), journal, "it left a trace");
}

#[test]
fn the_next_run_resumes_at_the_failed_stage() {
    let expect = reference();
    for (at, name) in ALL.iter().enumerate() {
        let bench = Bench::default();
        let mut broken = toy();
        broken.fail.insert((*name).to_owned());
        let error = bench.run(&broken).unwrap_err();
        assert_eq!(error.exit(), Exit::StageFailed);
        assert_eq!(
            error.to_string(),
            format!("{name} failed: the toy broke; finished work is kept, and the same command resumes")
        );
        let toy = toy();
        bench.run(&toy).unwrap();
        assert_eq!(toy.take_log(), ALL[at..]);
        assert_eq!(bench.files(), expect);
    }
}

#[test]
fn a_second_run_is_locked_out() {
    let bench = Bench::default();
    let _held = Directory::open(&bench.disk, Path::new(DIRECTORY), "the first", &|| Ok(true)).unwrap();
    let error = bench.run(&toy()).unwrap_err();
    assert_eq!(error.exit(), Exit::Locked);
    assert!(error.to_string().contains("the first"), "{error}");
    // Reading is allowed.
    assert_eq!(bench.plan(&toy()).unwrap().steps.len(), 16);
}

#[test]
fn a_stop_request_saves_and_the_next_run_resumes() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let bench = Bench::default();
    let mut toy = toy();
    toy.stop_in = Some(("solve:2".to_owned(), &STOP));
    let summary = bench.orchestrator(&toy).stop(&STOP).run().unwrap();
    assert_eq!((summary.how.clone(), summary.exit()), (RunEnd::Stopped, Exit::Stopped));
    assert_eq!(summary.ran.len(), 9);
    assert_eq!(summary.plan.steps[0].stage.to_string(), "solve:2");
    assert!(bench.files().contains_key("snapshots/solve-2/half"));
    let now = status(&bench.disk, Path::new(DIRECTORY), Some(&toy), Keep::Targets).unwrap();
    assert_eq!(now.run.unwrap().state, RunState::Stopped);
    assert_eq!(now.stages[9].state, StageState::Interrupted);

    STOP.store(false, Ordering::Relaxed);
    toy.stop_in = None;
    let summary = bench.run(&toy).unwrap();
    assert_eq!(summary.ran[0].stage.to_string(), "solve:2");
    let resumed = summary.ran[0].measured.report.counters["resumed"];
    assert_eq!(resumed.as_f64(), 1.0);
    assert_eq!(bench.files(), reference());
}

#[test]
fn a_stop_request_between_stages_runs_no_more() {
    static STOP: AtomicBool = AtomicBool::new(false);
    for name in ["capture:1", "verify:1", "stats:3"] {
        let bench = Bench::default();
        let mut toy = toy();
        toy.stop_in = Some((name.to_owned(), &STOP));
        let summary = bench.orchestrator(&toy).stop(&STOP).run().unwrap();
        STOP.store(false, Ordering::Relaxed);
        assert_eq!(toy.take_log().last().unwrap(), name);
        let how = if name == "stats:3" { RunEnd::Done } else { RunEnd::Stopped };
        assert_eq!(summary.how, how);
    }
}

#[test]
fn snapshots_of_another_result_are_not_used() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let bench = Bench::default();
    let mut toy = toy();
    toy.stop_in = Some(("solve:1".to_owned(), &STOP));
    bench.orchestrator(&toy).stop(&STOP).run().unwrap();
    STOP.store(false, Ordering::Relaxed);
    let newer = Design { versions: BTreeMap::from([(1, 2)]), ..Design::default() };
    let summary = bench.run(&newer.toy()).unwrap();
    let ran = summary.ran.iter().find(|ran| ran.stage.to_string() == "solve:1").unwrap();
    assert_eq!(ran.measured.report.counters["resumed"].as_f64(), 0.0);
}

#[test]
fn an_unchanged_output_stops_the_rebuild() {
    let bench = Bench::default();
    bench.run(&toy()).unwrap();
    let newer = Design { versions: BTreeMap::from([(1, 2)]), ..Design::default() };
    let toy = newer.toy();
    assert_eq!(bench.plan(&toy).unwrap().steps.len(), 12);
    bench.run(&toy).unwrap();
    assert_eq!(toy.take_log(), ["capture:1", "solve:1"]);
    assert_eq!(bench.files(), reference());
}

#[test]
fn a_changed_output_continues_the_rebuild() {
    let mut bench = Bench::default();
    bench.run(&toy()).unwrap();
    let mut salted = toy();
    salted.salted.insert(2);
    bench.options.force = vec!["solve:2".to_owned()];
    bench.run(&salted).unwrap();
    let expect = ["capture:2", "solve:2", "verify:2", "stats:2", "capture:3", "solve:3", "verify:3", "stats:3"];
    assert_eq!(salted.take_log(), expect);
}

#[test]
fn force_runs_that_stage_and_ends() {
    let mut bench = Bench::default();
    let toy = toy();
    bench.run(&toy).unwrap();
    toy.take_log();
    bench.options.force = vec!["solve:1".to_owned(), "stats:3".to_owned()];
    bench.run(&toy).unwrap();
    assert_eq!(toy.take_log(), ["capture:1", "solve:1", "stats:3"]);
    assert_eq!(bench.files(), reference());
}

#[test]
fn another_method_solves_nothing_again() {
    let bench = Bench::default();
    bench.run(&toy()).unwrap();
    let counting = Design { method: "counting", last: 4, ..Design::default() };
    let toy = counting.toy();
    bench.run(&toy).unwrap();
    assert_eq!(toy.take_log(), ["capture:4", "counting:4", "verify:4", "stats:4"]);
}

#[test]
fn a_lost_journal_solves_nothing_again() {
    let bench = Bench::default();
    bench.run(&toy()).unwrap();
    bench.remove("journal");
    let toy = toy();
    bench.run(&toy).unwrap();
    let expect: Vec<&str> =
        ALL.into_iter().filter(|name| name.starts_with("verify") || name.starts_with("stats")).collect();
    assert_eq!(toy.take_log(), expect);
    assert_eq!(bench.files(), reference());
    // Adopted files have fingerprints again: a new version is noticed.
    let newer = Design { versions: BTreeMap::from([(3, 2)]), ..Design::default() };
    assert!(bench.steps(&newer.toy()).contains("version recorded: 1; this program makes 2"));
}

#[derive(Default)]
struct Recorder(Mutex<Vec<Event>>);

impl Observer for Recorder {
    fn notice(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }

    fn interval(&self) -> Duration {
        Duration::from_millis(1)
    }
}

#[test]
fn observers_receive_events_in_order() {
    let bench = Bench::default();
    let recorder = Recorder::default();
    let design = Design { last: 0, ..Design::default() };
    bench.orchestrator(&design.toy()).observer(&recorder).run().unwrap();
    let events = recorder.0.into_inner().unwrap();
    let names: Vec<String> = events
        .iter()
        .filter(|event| !matches!(event, Event::Progress { .. }))
        .map(|event| serde_json::to_value(event).unwrap()["event"].as_str().unwrap().to_owned())
        .collect();
    let expect = [
        "run-started",
        "stage-started",
        "stage-done",
        "stage-started",
        "stage-done",
        "stage-started",
        "stage-done",
        "removed",
        "stage-started",
        "stage-done",
        "run-ended",
    ];
    assert_eq!(names, expect);
}

#[test]
fn the_resolved_manifest_is_written() {
    let mut bench = Bench::default();
    bench.options.manifest = "a = 1\n".to_owned();
    bench.run(&toy()).unwrap();
    let path = Path::new("/run/manifest.toml");
    let resolved = |text: &str| format!("{MANIFEST_MARK}{text}").into_bytes();
    assert_eq!(bench.disk.peek(path).unwrap(), resolved("a = 1\n"));
    bench.options.manifest = "a = 2\n".to_owned();
    bench.run(&toy()).unwrap();
    assert_eq!(bench.disk.peek(path).unwrap(), resolved("a = 2\n"));
}

#[test]
fn leftovers_of_dead_runs_are_removed() {
    let bench = Bench::default();
    for name in ["/run/.manifest.toml.tmp-9", "/run/databases/.7.tmp-9", "/run/captures/.7.tmp-1"] {
        bench.disk.put(Path::new(name), b"half");
    }
    // Of others, though they look alike.
    let foreign = ["/run/.thesis.tmp-2024", "/run/databases/.thesis.tmp-2024"];
    foreign.iter().for_each(|name| bench.disk.put(Path::new(name), b"mine"));
    bench.run(&toy()).unwrap();
    for name in foreign {
        assert!(bench.disk.peek(Path::new(name)).is_some(), "{name}");
        bench.disk.remove(Path::new(name)).unwrap();
    }
    assert_eq!(bench.files(), reference());
}

#[test]
fn a_run_works_on_a_real_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs/small");
    let toy = toy();
    let disk = RealDisk::default();
    let run = || Orchestrator::new(&disk, &path, &toy, RunOptions::default()).run().unwrap();
    assert_eq!(run().ran.len(), 16);
    assert_eq!(run().ran.len(), 0);
    for (name, bytes) in reference() {
        assert_eq!(disk.read(&path.join(&name), 1 << 20).unwrap(), bytes, "{name}");
    }
    let orchestrator = Orchestrator::new(&disk, &path, &toy, RunOptions::default());
    let scratch = ScratchDirectory::Temporary(directory.path().to_path_buf());
    assert!(orchestrator.single("solve:2", &scratch).unwrap().is_identical());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}
