//! Cases for runs: resumed, stopped, failed, damaged, full, killed at every operation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use disk::{Among, Disk, Fault, MemoryDisk, Operation, PlannedFault, RealDisk};

use crate::budget::Budget;
use crate::directory::{Directory, MANIFEST_MARK, journal_path};
use crate::exit::Exit;
use crate::journal::{Record, RunEnd};
use crate::observer::{Event, Observer};
use crate::orchestrator::garbage::GarbageReason;
use crate::orchestrator::single::{OutputComparison, ScratchDirectory};
use crate::orchestrator::{Orchestrator, RunOptions};
use crate::plan::{Keep, StageCounts, Standing};
use crate::status::{RunState, StageState, status};
use crate::toy::{Bench, DIRECTORY, Design, Toy, artifact};
use crate::work::Work;

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
fn a_failed_stage_ends_the_run_and_the_next_goes_on_there() {
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

/// Runs with a fault at an operation, and without it until done.
fn interrupt(inject: impl Fn(&MemoryDisk, u64), recover: impl Fn(&MemoryDisk)) {
    let expect = reference();
    let bench = Bench::default();
    bench.run(&toy()).unwrap();
    let operations = bench.disk.operations();
    assert!(operations > 200);
    for k in 0..operations {
        let bench = Bench::default();
        inject(&bench.disk, k);
        let failed = bench.run(&toy());
        if let Err(error) = failed {
            let exit = error.exit();
            assert!(matches!(exit, Exit::StageFailed | Exit::PreflightFailed), "{k}: {error}");
        }
        recover(&bench.disk);
        let half = bench.files();
        for (name, bytes) in &half {
            let is_whole = expect.get(name).is_none_or(|expect| expect == bytes);
            assert!(is_whole || name.contains("/."), "{name} is half written after {k}");
        }
        bench.disk.fail_never();
        bench.run(&toy()).unwrap();
        assert_eq!(bench.files(), expect, "operation {k}");
        assert_eq!(bench.steps(&toy()), "");
    }
}

#[test]
fn one_failed_operation_anywhere() {
    interrupt(|disk, k| disk.fail_at(k, Fault::Io), |_| {});
}

#[test]
fn power_lost_at_every_operation() {
    interrupt(|disk, k| disk.fail_from(k, Fault::Io), MemoryDisk::crash);
    interrupt(|disk, k| disk.fail_from(k, Fault::Io), |disk| disk.crash_torn(7));
}

#[test]
fn killed_at_every_operation() {
    // What was written stays, durable or not.
    interrupt(|disk, k| disk.fail_from(k, Fault::Io), |_| {});
}

#[test]
fn a_full_disk_is_told_and_leaves_nothing_half_written() {
    interrupt(|disk, k| disk.fail_from(k, Fault::NoSpace), |_| {});
    let mut small = Bench::default();
    small.options.until = Some("capture:1".to_owned());
    small.run(&toy()).unwrap();
    let operations = small.disk.operations();
    let bench = Bench::default();
    bench.disk.fail_from(operations + 3, Fault::NoSpace);
    let error = bench.run(&toy()).unwrap_err();
    assert_eq!(error.exit(), Exit::StageFailed);
    assert!(error.to_string().contains("no space left"), "{error}");
    assert!(error.to_string().contains("the same command resumes"), "{error}");
}

/// From some read of a database on, that database and all others cannot be read: a run says which, and the next one, with
/// a disk that works again, makes anew what was recorded as damaged. A read that fails once costs no database.
#[test]
fn what_cannot_be_read_twice_is_damaged() {
    let expect = reference();
    let mut damaged = 0;
    for first in 0..30 {
        for count in [1, u64::MAX] {
            let bench = Bench::default();
            let among = Among::Below(Operation::Read, "databases");
            bench.disk.fail(PlannedFault { among, first, count, fault: Fault::Unreadable });
            let ended = bench.run(&toy());
            bench.disk.fail_never();
            let text = ended.as_ref().err().map(ToString::to_string).unwrap_or_default();
            match ended.as_ref().map_or_else(|error| error.exit(), |summary| summary.exit()) {
                Exit::Done => {}
                Exit::StageFailed => assert!(count == 1 && text.contains("cannot read"), "{first}: {text}"),
                Exit::Integrity => {
                    assert!(
                        count > 1 && text.contains("cannot read") && text.contains("next run rebuilds it"),
                        "{text}"
                    );
                    damaged += 1;
                }
                other => panic!("{first}, {count}: {other:?}, {text}"),
            }
            let toy = toy();
            bench.run(&toy).unwrap();
            let again = toy.take_log();
            assert!(!text.contains("next run rebuilds it") || again.iter().any(|stage| stage.starts_with("solve")));
            assert_eq!(bench.files(), expect);
        }
    }
    assert!(damaged > 3, "{damaged}");
}

#[test]
fn a_read_only_directory_is_told() {
    let bench = Bench::default();
    bench.disk.fail_from(0, Fault::ReadOnly);
    let error = bench.run(&toy()).unwrap_err();
    assert_eq!(error.exit(), Exit::PreflightFailed);
    assert!(error.to_string().contains("read-only"), "{error}");
    assert!(bench.disk.paths().is_empty());
}

#[test]
fn preflight_refuses_before_anything_is_written() {
    let mut bench = Bench::default();
    bench.options.memory = Budget::new(99);
    let error = bench.run(&toy()).unwrap_err();
    assert_eq!(error.exit(), Exit::PreflightFailed);
    let expect = "capture:0 needs 100 B of memory, the budget is 99 B";
    assert!(error.to_string().starts_with(expect), "{error}");
    assert!(bench.files().is_empty());

    let bench = Bench::default();
    bench.disk.set_bytes_max(2000);
    let error = bench.run(&toy()).unwrap_err();
    assert_eq!(error.exit(), Exit::PreflightFailed);
    assert!(error.to_string().contains("need 2.05 KiB of disk space"), "{error}");
}

/// There is room, but not for us: found out before anything runs, and nothing of the attempt is left.
#[test]
fn a_quota_is_found_before_the_first_stage() {
    let toy = toy();
    let undisturbed = MemoryDisk::new();
    Orchestrator::new(&undisturbed, Path::new(DIRECTORY), &toy, RunOptions::default()).run().unwrap();
    let mut refused = 0;
    for operation in 0..undisturbed.operations() {
        let disk = MemoryDisk::new();
        disk.fail_at(operation, Fault::NoSpace);
        let orchestrator = Orchestrator::new(&disk, Path::new(DIRECTORY), &toy, RunOptions::default());
        if let Err(error) = orchestrator.run()
            && error.to_string().contains("of disk space in /run, although")
        {
            refused += 1;
            assert_eq!(error.exit(), Exit::PreflightFailed);
            // Where even the removal fails, the next run removes it.
            let left: Vec<_> = disk.paths().into_iter().filter(|path| !disk::is_leftover(path)).collect();
            assert_eq!(left, [Path::new(DIRECTORY).join("lock")]);
        }
    }
    // Making the file, reserving, writing and syncing it.
    assert!(refused >= 3, "{refused}");
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
fn what_comes_out_as_it_was_stops_the_change() {
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
fn what_comes_out_changed_goes_on_changing() {
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

#[test]
fn damage_found_by_a_stage_is_rebuilt_by_the_next_run() {
    let bench = Bench::default();
    bench.run(&toy()).unwrap();
    // The header stays whole, so that only who reads the content notices.
    bench.edit("databases/1", |bytes| *bytes.last_mut().unwrap() ^= 1);
    assert_eq!(bench.steps(&toy()), "");
    let more = Design { last: 4, ..Design::default() };
    let error = bench.run(&more.toy()).unwrap_err();
    assert_eq!(error.exit(), Exit::Integrity);
    assert_eq!(
        error.to_string(),
        "capture:4 stopped: databases/1 is damaged: its checksum differs; the next run rebuilds it"
    );
    let toy = more.toy();
    bench.run(&toy).unwrap();
    let expect = ["capture:1", "solve:1", "verify:1", "capture:4", "solve:4", "verify:4", "stats:4"];
    assert_eq!(toy.take_log(), expect);
}

#[test]
fn damage_recorded_from_outside_is_rebuilt_and_a_clean_check_takes_it_back() {
    let bench = Bench::default();
    let toy = toy();
    let summary = bench.run(&toy).unwrap();
    let record = |record| bench.record(record);
    let damage =
        || Record::DamageFound { artifact: artifact("databases/2"), what: "block 7".to_owned(), silent: false };
    record(damage());
    let expect = "capture:2: solve:2 needs captures/2, which was not kept\n\
                  solve:2: databases/2 is damaged: block 7\n\
                  verify:2: databases/2 is not verified yet\n";
    assert_eq!(bench.steps(&toy), expect);
    let database = summary.ran.iter().find(|ran| ran.stage.to_string() == "solve:2").unwrap();
    let verified = |sampled| Record::Verified {
        artifact: artifact("databases/2"),
        digest: database.artifacts[0].digest,
        how: "full".to_owned(),
        sampled,
    };
    record(verified(true));
    assert_eq!(bench.steps(&toy), expect);
    record(verified(false));
    assert_eq!(bench.steps(&toy), "");
    record(damage());
    toy.take_log();
    bench.run(&toy).unwrap();
    assert_eq!(toy.take_log(), ["capture:2", "solve:2", "verify:2"]);
    assert_eq!(bench.steps(&toy), "");
}

/// Wrong content under right checksums, and what was built on it before that was found.
#[test]
fn what_was_built_on_something_wrong_is_rebuilt() {
    let bench = Bench::default();
    bench.run(&toy()).unwrap();
    bench.forge("databases/1");
    let more = Design { last: 5, check: "full", ..Design::default() };
    assert_eq!(bench.run(&more.toy()).unwrap().ran.len(), 8, "nothing is noticed");
    let expect = {
        let bench = Bench::default();
        bench.run(&more.toy()).unwrap();
        bench.files()
    };
    assert_ne!(bench.files()["databases/4"], expect["databases/4"]);
    bench.record(Record::DamageFound {
        artifact: artifact("databases/1"),
        what: "it is wrong".to_owned(),
        silent: true,
    });

    let steps = bench.steps(&more.toy());
    let doubtful = |stage: &str, made: &str| {
        assert!(
            steps.contains(&format!("{stage}: {made} was made from databases/1, which was found wrong 20")),
            "{steps}"
        );
    };
    for (stage, made) in [("solve:4", "databases/4"), ("verify:4", "verified/4"), ("solve:5", "databases/5")] {
        doubtful(stage, made);
    }
    assert!(steps.contains("Z (last good 20"), "{steps}");
    let frozen = Bench { options: RunOptions { frozen: true, ..RunOptions::default() }, ..bench };
    assert_eq!(frozen.run(&more.toy()).unwrap_err().exit(), Exit::Frozen);
    let bench = Bench { options: RunOptions::default(), ..frozen };
    bench.run(&more.toy()).unwrap();
    assert_eq!(bench.files(), expect);
    assert_eq!(bench.steps(&more.toy()), "");
}

/// What was built before the file was last known to be good stays, and so does all of it where readers notice the damage.
#[test]
fn what_was_built_on_something_good_stays() {
    let bench = Bench::default();
    let toy = toy();
    bench.run(&toy).unwrap();
    let summary = bench.run(&Design { versions: BTreeMap::from([(1, 2)]), ..Design::default() }.toy()).unwrap();
    let made = summary.ran.iter().find(|ran| ran.stage.to_string() == "solve:1").unwrap();
    let toy = Design { versions: BTreeMap::from([(1, 2)]), ..Design::default() }.toy();
    let damage =
        |silent| bench.record(Record::DamageFound { artifact: artifact("databases/1"), what: "x".to_owned(), silent });
    let digest = made.artifacts[0].digest;
    bench.record(Record::Verified { artifact: artifact("databases/1"), digest, how: "all".to_owned(), sampled: true });
    damage(true);
    let steps = |toy: &Toy| -> Vec<String> {
        bench.plan(toy).unwrap().steps.iter().map(|step| step.stage.to_string()).collect()
    };
    let only = ["capture:1", "solve:1", "verify:1"];
    assert_eq!(steps(&toy), only);
    bench.run(&toy).unwrap();
    damage(false);
    assert_eq!(steps(&toy), only);
    // The last word was its making: all that came after is older, but for what follows.
    bench.run(&toy).unwrap();
    let more = Design { last: 4, versions: BTreeMap::from([(1, 2)]), ..Design::default() }.toy();
    bench.run(&more).unwrap();
    damage(true);
    assert_eq!(steps(&more), [&only[..], &["capture:4", "solve:4", "verify:4", "stats:4"]].concat());
}

/// Neither what a stage saved of its work, nor intermediates that were kept, nor files that the journal lost, outlive
/// what they were made from.
#[test]
fn nothing_else_made_from_something_wrong_is_used() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let wrong = |n: u32| Record::DamageFound {
        artifact: artifact(&format!("databases/{n}")),
        what: "x".to_owned(),
        silent: true,
    };
    let bench = Bench::default();
    bench.run(&toy()).unwrap();
    bench.forge("databases/1");
    let more = Design { last: 4, ..Design::default() };
    let mut stopped = more.toy();
    stopped.stop_in = Some(("solve:4".to_owned(), &STOP));
    bench.orchestrator(&stopped).stop(&STOP).run().unwrap();
    STOP.store(false, Ordering::Relaxed);
    assert!(bench.files().contains_key("snapshots/solve-4/half") && bench.files().contains_key("captures/4"));
    bench.record(wrong(1));
    let summary = bench.run(&more.toy()).unwrap();
    let ran = |name: &str| summary.ran.iter().find(|ran| ran.stage.to_string() == name);
    assert!(ran("capture:4").is_some());
    assert_eq!(ran("solve:4").unwrap().measured.report.counters["resumed"].as_f64(), 0.0);

    // The capture that a wrong database was made from.
    let mut bench = Bench::default();
    bench.options.keep = crate::Keep::All;
    bench.run(&toy()).unwrap();
    bench.record(wrong(2));
    let steps = bench.steps(&toy());
    assert!(steps.starts_with("capture:2: captures/2 is damaged: databases/2, made from it, is wrong\n"), "{steps}");

    // A journal that knows only of the damage.
    let bench = Bench::built();
    bench.remove("journal");
    bench.record(wrong(2));
    let toy = toy();
    bench.run(&toy).unwrap();
    let solved: Vec<String> = toy.take_log().into_iter().filter(|name| name.starts_with("solve")).collect();
    assert_eq!(solved, ["solve:2", "solve:3"]);
}

/// A file that is exchanged while a run goes on: nothing is built on it.
#[test]
fn an_input_exchanged_under_a_run_is_noticed() {
    let other = {
        let mut salted = toy();
        salted.salted.insert(1);
        let bench = Bench::default();
        bench.run(&salted).unwrap();
        bench.files().remove("databases/1").unwrap()
    };
    for (stage, exit) in [
        ("verify:2", Exit::Integrity),
        ("stats:2", Exit::Integrity),
        ("solve:3", Exit::Integrity),
        ("stats:3", Exit::Done),
    ] {
        let bench = Bench::default();
        let disk = bench.disk.clone();
        let mut exchanging = toy();
        let other = other.clone();
        exchanging.exchange_in =
            Some((stage.to_owned(), Box::new(move || disk.put(Path::new("/run/databases/1"), &other))));
        let outcome = bench.run(&exchanging);
        let found = outcome.map_or_else(|error| error.exit(), |summary| summary.exit());
        assert_eq!(found, exit, "{stage}");
        bench.run(&toy()).unwrap();
        assert_eq!(bench.files(), reference(), "{stage}");
        assert_eq!(bench.steps(&toy()), "");
    }
}

/// A file without a checksum of its own that changes between its last byte and its record.
#[test]
fn an_output_exchanged_before_it_is_recorded_is_noticed() {
    let other = {
        let mut salted = toy();
        salted.salted.insert(2);
        let bench = Bench::default();
        bench.run(&salted).unwrap();
        bench.files().remove("stats/2").unwrap()
    };
    assert_ne!(other, reference()["stats/2"]);
    let bench = Bench::default();
    let disk = bench.disk.clone();
    let mut exchanging = toy();
    exchanging.exchange_after =
        Some(("stats:2".to_owned(), Box::new(move || disk.put(Path::new("/run/stats/2"), &other))));
    assert_eq!(bench.run(&exchanging).unwrap_err().exit(), Exit::Integrity);
    bench.run(&toy()).unwrap();
    assert_eq!(bench.files(), reference());
}

#[test]
fn a_verification_that_fails_condemns_the_database_and_its_capture() {
    let bench = Bench::default();
    let mut wrong = toy();
    wrong.salted.insert(1);
    bench.options_until(&wrong, "solve:1");
    let error = bench.run(&toy()).unwrap_err();
    assert_eq!(error.exit(), Exit::Integrity);
    assert!(error.to_string().starts_with("verify:1 stopped: databases/1 is damaged: a score is wrong"));
    // The capture is still there, but the error may be in it: it is made again as well.
    let toy = toy();
    bench.run(&toy).unwrap();
    assert_eq!(toy.take_log()[..3], ["capture:1", "solve:1", "verify:1"]);
    assert_eq!(bench.files(), reference());
}

impl Bench {
    fn options_until(&self, toy: &Toy, until: &str) {
        let options = RunOptions { until: Some(until.to_owned()), ..RunOptions::default() };
        let orchestrator = Orchestrator::new(&self.disk, Path::new(DIRECTORY), toy, options);
        orchestrator.run().unwrap();
    }
}

#[test]
fn a_single_stage_is_compared_and_changes_nothing() {
    let bench = Bench::default();
    let toy = toy();
    bench.run(&toy).unwrap();
    toy.take_log();
    let paths = bench.disk.paths();
    let before = bench.files();
    // A run holds the directory meanwhile.
    let held = Directory::open(&bench.disk, Path::new(DIRECTORY), "run", &|| Ok(true)).unwrap();
    let single = bench.single(&toy, "solve:3").unwrap();
    drop(held);
    assert_eq!(toy.take_log(), ["capture:3", "solve:3"]);
    assert!(single.is_identical());
    assert_eq!(single.outputs[0].comparison, OutputComparison::Identical);
    assert_eq!(single.rebuilt.len(), 1);
    assert_eq!((bench.disk.paths(), bench.files()), (paths, before));

    let single = bench.single(&toy, "verify:2").unwrap();
    assert_eq!(single.outputs[0].comparison, OutputComparison::Passed);
    assert_eq!(bench.single(&toy, "capture:1").unwrap().outputs[0].comparison, OutputComparison::Identical);

    let mut salted = Design::default().toy();
    salted.salted.insert(3);
    let single = bench.single(&salted, "solve:3").unwrap();
    assert!(!single.is_identical());

    // Without a journal the header tells.
    bench.remove("journal");
    assert!(bench.single(&toy, "solve:3").unwrap().is_identical());
}

#[test]
fn a_single_stage_leaves_its_outputs_in_a_scratch_directory_of_the_users() {
    let bench = Bench::default();
    let toy = toy();
    bench.run(&toy).unwrap();
    let scratch = ScratchDirectory::Directory(Path::new("/scratch").to_path_buf());
    let single = bench.orchestrator(&toy).single("solve:1", &scratch).unwrap();
    assert_eq!(single.directory.as_deref(), Some(Path::new("/scratch")));
    let made = bench.disk.peek(Path::new("/scratch/databases/1"));
    assert_eq!(made, bench.disk.peek(Path::new("/run/databases/1")));

    let inside = ScratchDirectory::Directory(Path::new("/run/x").to_path_buf());
    let error = bench.orchestrator(&toy).single("solve:1", &inside).unwrap_err();
    assert_eq!(error.exit(), Exit::Usage);
    bench.remove("databases/0");
    let error = bench.single(&toy, "solve:1").unwrap_err();
    assert_eq!(error.exit(), Exit::PreflightFailed);
    assert_eq!(error.to_string(), "capture:1 reads databases/0, which is absent; solve:0 makes it");
}

#[test]
fn a_single_stage_that_fails_cleans_up() {
    let bench = Bench::default();
    bench.run(&toy()).unwrap();
    let paths = bench.disk.paths();
    let mut broken = toy();
    broken.fail.insert("solve:2".to_owned());
    let error = bench.single(&broken, "solve:2").unwrap_err();
    assert_eq!(error.exit(), Exit::StageFailed);
    assert_eq!(bench.disk.paths(), paths);
}

#[test]
fn status_tells_with_and_without_the_graph() {
    let bench = Bench::default();
    let nothing = status(&bench.disk, Path::new(DIRECTORY), Some(&toy()), Keep::Targets).unwrap();
    assert!(nothing.run.is_none());
    let states: BTreeSet<String> = nothing.stages.iter().map(|s| format!("{:?}", s.state)).collect();
    assert_eq!(states, BTreeSet::from(["Pending".to_owned()]));

    let mut broken = toy();
    broken.fail.insert("stats:1".to_owned());
    bench.run(&broken).unwrap_err();
    let now = status(&bench.disk, Path::new(DIRECTORY), Some(&toy()), Keep::Targets).unwrap();
    let state = |name: &str| {
        let stage = now.stages.iter().find(|stage| stage.stage.to_string() == name);
        stage.unwrap().state.clone()
    };
    assert_eq!(state("capture:0"), StageState::NotNeeded);
    assert_eq!(state("solve:1"), StageState::Done);
    assert_eq!(state("stats:1"), StageState::Failed("the toy broke".to_owned()));
    assert_eq!(state("solve:2"), StageState::Pending);
    assert!(matches!(now.run.as_ref().unwrap().state, RunState::Failed(_)));
    let without = status(&bench.disk, Path::new(DIRECTORY), None, Keep::Targets).unwrap();
    assert_eq!(without.stages.len(), 8);
    let json = serde_json::to_value(&now).unwrap();
    assert_eq!(json["stages"][1]["state"], "done");
    assert_eq!(json["stages"][1]["measured"]["positions"], 10);
}

#[test]
fn status_sees_a_run_that_goes_on_and_one_that_was_killed() {
    let bench = Bench::default();
    let directory = Path::new(DIRECTORY);
    let mut held = Directory::open(&bench.disk, directory, "run", &|| Ok(true)).unwrap();
    let journal = held.journal();
    journal
        .append(Record::RunStarted {
            command: "run".to_owned(),
            program: "toy 1".to_owned(),
            host: "here".to_owned(),
            pid: 1,
            threads: 1,
            memory_bytes: 1,
            manifest: disk::Digest::of(b""),
            killed: None,
        })
        .unwrap();
    journal.append(Record::StageStarted { stage: "capture:0".parse().unwrap(), reason: "why not".to_owned() }).unwrap();
    let now = status(&bench.disk, directory, Some(&toy()), Keep::Targets).unwrap();
    assert_eq!(now.run.unwrap().state, RunState::Running);
    assert_eq!(now.stages[0].state, StageState::Running);
    drop(held);
    let now = status(&bench.disk, directory, Some(&toy()), Keep::Targets).unwrap();
    assert_eq!(now.run.unwrap().state, RunState::Interrupted);
    assert_eq!(now.stages[0].state, StageState::Interrupted);
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
fn garbage_is_told_of_and_goes_when_asked() {
    let mut bench = Bench::default();
    bench.options.keep = crate::Keep::All;
    bench.run(&toy()).unwrap();
    let put = |name: &str| bench.disk.put(&Path::new(DIRECTORY).join(name), b"12345");
    put("databases/.3.tmp-77");
    put("databases/mine");
    put("snapshots/solve-2/scores");
    put("snapshots/solve-3/fingerprint");
    let smaller = Design { last: 2, ..Design::default() }.toy();
    let before = bench.disk.paths();
    let garbage = bench.orchestrator(&smaller).garbage().unwrap();
    assert_eq!(bench.disk.paths(), before);
    let of = |why: GarbageReason| -> Vec<String> {
        let items = garbage.items.iter().filter(|item| item.why == why);
        items.map(|item| item.path.strip_prefix(DIRECTORY).unwrap().display().to_string()).collect()
    };
    assert_eq!(of(GarbageReason::Leftover), ["databases/.3.tmp-77"]);
    assert_eq!(of(GarbageReason::Snapshot), ["snapshots/solve-2", "snapshots/solve-3"]);
    assert_eq!(of(GarbageReason::Kept), ["captures/0", "captures/1", "captures/2"]);
    assert_eq!(of(GarbageReason::Unasked), ["captures/3", "databases/3", "stats/3"]);
    assert_eq!(of(GarbageReason::Unread), Vec::<String>::new());
    assert_eq!(garbage.strange, [Path::new(DIRECTORY).join("databases/mine")]);

    let reasons = BTreeSet::from([GarbageReason::Leftover, GarbageReason::Snapshot, GarbageReason::Unasked]);
    let removed = bench.orchestrator(&smaller).remove_garbage(&reasons).unwrap();
    assert_eq!(removed.len(), 6);
    let left = bench.orchestrator(&smaller).garbage().unwrap();
    assert!(left.items.iter().all(|item| item.why == GarbageReason::Kept) && left.items.len() == 3);
    assert!(bench.disk.peek(&Path::new(DIRECTORY).join("databases/mine")).is_some());
    // Nothing that is needed has gone.
    assert!(bench.run(&smaller).unwrap().ran.is_empty());
    let held = Directory::open(&bench.disk, Path::new(DIRECTORY), "somebody", &|| Ok(true)).unwrap();
    let refused = bench.orchestrator(&smaller).remove_garbage(&reasons).unwrap_err();
    assert_eq!(refused.exit(), Exit::Locked);
    // What the holder is writing is no garbage.
    put("databases/.2.tmp-78");
    let garbage = bench.orchestrator(&smaller).garbage().unwrap();
    assert!(garbage.holder.is_some_and(|holder| holder.contains("somebody")));
    assert!(garbage.items.iter().all(|item| item.why == GarbageReason::Kept), "{:?}", garbage.items);
    drop(held);
    let garbage = bench.orchestrator(&smaller).garbage().unwrap();
    assert!(garbage.holder.is_none() && garbage.items.iter().any(|item| item.why == GarbageReason::Leftover));
}

/// What nothing declares and nothing recorded: each file is garbage for a reason, or strange.
#[test]
fn every_file_of_a_run_directory_is_accounted_for() {
    let bench = Bench::built();
    let whole = bench.files()["databases/2"].clone();
    let put = |name: &str, bytes: &[u8]| bench.disk.put(&Path::new(DIRECTORY).join(name), bytes);
    for name in [".manifest.toml.tmp-1", "logs/.run.log.tmp-2", "planes/2/.1.won.tmp-3"] {
        put(name, b"half");
    }
    for name in ["heartbeat", "stop", "logs/run.log"] {
        put(name, b"ours");
    }
    for name in ["notes.txt", "planes/2/mine", "mine/x", "snapshots/mine/x"] {
        put(name, b"mine");
    }
    for name in ["snapshots/counting-2/fingerprint", "snapshots/counting-2/rank-1/counts"] {
        put(name, b"saved by a method that is not used any more");
    }
    put("planes/2/1.won", &whole);
    put("databases/9", &whole);
    bench.disk.put(Path::new("/scratch/toy/fingerprint"), b"saved by a rank");
    bench.disk.put(Path::new("/scratch/other/fingerprint"), b"saved by another run");
    let before = bench.disk.paths();
    let garbage = bench.orchestrator(&toy()).garbage().unwrap();
    assert_eq!(bench.disk.paths(), before);
    let of = |why: GarbageReason| -> Vec<String> {
        let items = garbage.items.iter().filter(|item| item.why == why);
        items.map(|item| item.path.strip_prefix(DIRECTORY).unwrap_or(&item.path).display().to_string()).collect()
    };
    assert_eq!(of(GarbageReason::Leftover), [".manifest.toml.tmp-1", "logs/.run.log.tmp-2", "planes/2/.1.won.tmp-3"]);
    assert_eq!(of(GarbageReason::Snapshot), ["snapshots/counting-2", "/scratch/toy"]);
    assert_eq!(of(GarbageReason::Unasked), ["databases/9", "planes/2/1.won"]);
    let mut strange: Vec<String> =
        garbage.strange.iter().map(|path| path.strip_prefix(DIRECTORY).unwrap().display().to_string()).collect();
    strange.sort();
    assert_eq!(strange, ["mine", "notes.txt", "planes/2/mine", "snapshots/mine/x"]);
    assert_eq!(garbage.items.len(), 7);

    let reasons = BTreeSet::from([GarbageReason::Leftover, GarbageReason::Snapshot, GarbageReason::Unasked]);
    bench.orchestrator(&toy()).remove_garbage(&reasons).unwrap();
    assert!(bench.orchestrator(&toy()).garbage().unwrap().items.is_empty());
    for name in ["notes.txt", "planes/2/mine", "mine/x", "snapshots/mine/x", "logs/run.log"] {
        assert!(bench.disk.peek(&Path::new(DIRECTORY).join(name)).is_some(), "{name}");
    }
    assert!(bench.disk.peek(Path::new("/scratch/other/fingerprint")).is_some());
    assert!(bench.run(&toy()).unwrap().ran.is_empty());
}

/// Snapshots that a stage to run will go on from stay, wherever they are; what is half written beside them goes.
#[test]
fn snapshots_that_serve_are_no_garbage() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let bench = Bench::default();
    let mut stopped = toy();
    stopped.stop_in = Some(("solve:2".to_owned(), &STOP));
    bench.orchestrator(&stopped).stop(&STOP).run().unwrap();
    STOP.store(false, Ordering::Relaxed);
    bench.disk.put(Path::new("/run/snapshots/solve-2/.half.tmp-9"), b"ha");
    bench.disk.put(Path::new("/scratch/toy/fingerprint"), b"saved by a rank");
    let reasons = BTreeSet::from([
        GarbageReason::Leftover,
        GarbageReason::Snapshot,
        GarbageReason::Unasked,
        GarbageReason::Unread,
    ]);
    let removed = bench.orchestrator(&toy()).remove_garbage(&reasons).unwrap();
    let paths: Vec<&Path> = removed.iter().map(|item| item.path.as_path()).collect();
    assert_eq!(paths, [Path::new("/run/snapshots/solve-2/.half.tmp-9")]);
    let summary = bench.run(&toy()).unwrap();
    assert_eq!(summary.ran[0].measured.report.counters["resumed"].as_f64(), 1.0);
}

#[test]
fn explanations_tell_which_field_differs() {
    let bench = Bench::default();
    bench.run(&toy()).unwrap();
    let differing = |toy: &Toy, stage: &str| -> (bool, Vec<String>) {
        let explained = bench.orchestrator(toy).explain(stage).unwrap();
        let fields = explained.outputs.into_iter().flat_map(|output| output.fields);
        (explained.runs, fields.filter(|field| !field.agrees).map(|field| field.field).collect())
    };
    for stage in ALL {
        // Captures were removed, and are not needed.
        assert_eq!(differing(&toy(), stage), (false, Vec::new()), "{stage}");
    }
    let newer = Design { versions: BTreeMap::from([(1, 2)]), ..Design::default() }.toy();
    assert_eq!(differing(&newer, "solve:1"), (true, vec!["version".to_owned()]));
    let (runs, fields) = differing(&newer, "solve:2");
    assert!(runs && fields == ["reads databases/1"], "{fields:?}");
    let other = Design { rules: "others", ..Design::default() }.toy();
    assert_eq!(differing(&other, "solve:0"), (true, vec!["rules".to_owned()]));
    bench.edit("databases/2", |bytes| bytes.truncate(3));
    let (runs, fields) = differing(&toy(), "solve:2");
    assert!(runs && fields == ["file"], "{fields:?}");
    assert!(bench.orchestrator(&toy()).explain("sovle:2").unwrap_err().to_string().contains("solve:2"));
}

/// What plan, explain, status and run say of a directory, in that order; they all say the same. The run comes last, as it
/// changes the directory.
#[track_caller]
fn counted(bench: &Bench, toy: &Toy) -> StageCounts {
    let orchestrator = bench.orchestrator(toy);
    let counts = orchestrator.plan().unwrap().counts();
    let mut tally = StageCounts { adopted: counts.adopted, ..StageCounts::default() };
    let stages: Vec<String> = toy.graph().stages().iter().map(|stage| stage.name.to_string()).collect();
    for stage in &stages {
        let explained = orchestrator.explain(stage).unwrap();
        assert_eq!(explained.counts, counts, "{stage}");
        assert_eq!(explained.runs, explained.standing == Standing::ToRun, "{stage}");
        let fields = || explained.outputs.iter().flat_map(|output| &output.fields);
        let may_differ = matches!(explained.standing, Standing::ToRun | Standing::NotRequested);
        assert!(may_differ || fields().all(|field| field.agrees), "{explained:?}");
        match explained.standing {
            Standing::ToRun => tally.to_run += 1,
            Standing::UpToDate => tally.up_to_date += 1,
            Standing::NotNeeded => tally.not_needed += 1,
            Standing::NotRequested => tally.not_requested += 1,
        }
    }
    assert_eq!(tally, counts);
    assert_eq!(counts.stages(), stages.len());
    // Status asks for all stages and forces none.
    let options = RunOptions { until: None, force: Vec::new(), ..bench.options.clone() };
    let whole = Orchestrator::new(&bench.disk, Path::new(DIRECTORY), toy, options).plan().unwrap().counts();
    let now = status(&bench.disk, Path::new(DIRECTORY), Some(toy), bench.options.keep).unwrap();
    assert_eq!(now.counts, Some(whole));
    let of = |is: fn(&StageState) -> bool| now.stages.iter().filter(|stage| is(&stage.state)).count();
    assert_eq!(of(|state| *state == StageState::Done), whole.up_to_date);
    assert_eq!(of(|state| *state == StageState::NotNeeded), whole.not_needed);
    let recorder = Recorder::default();
    let summary = bench.orchestrator(toy).observer(&recorder).run().unwrap();
    let events = recorder.0.into_inner().unwrap();
    let started = events.iter().find_map(|event| match event {
        Event::RunStarted { counts, .. } => Some(*counts),
        _ => None,
    });
    assert!(started.is_none_or(|started| started == counts), "{started:?} {counts:?}");
    assert!(started.is_some() || counts.to_run == 0);
    // In the end it says what the next plan will.
    let options = RunOptions { force: Vec::new(), ..bench.options.clone() };
    let next = Orchestrator::new(&bench.disk, Path::new(DIRECTORY), toy, options).plan().unwrap();
    assert_eq!((summary.plan.counts(), summary.plan.counts().to_run), (next.counts(), 0));
    counts
}

#[test]
fn every_command_counts_alike() {
    let check = |bench: &Bench, toy: &Toy, [to_run, up_to_date, not_needed, not_requested, adopted]: [usize; 5]| {
        let expected = StageCounts { to_run, up_to_date, not_needed, not_requested, adopted };
        assert_eq!(counted(bench, toy), expected);
    };
    let mut bench = Bench::default();
    bench.options.until = Some("solve:1".to_owned());
    check(&bench, &toy(), [6, 0, 0, 10, 0]);
    // Of the first database the capture was removed; that of the second waits for its verification.
    check(&bench, &toy(), [0, 5, 1, 10, 0]);
    bench.options.until = None;
    check(&bench, &toy(), [10, 5, 1, 0, 0]);
    check(&bench, &toy(), [0, 12, 4, 0, 0]);
    check(&bench, &Design { method: "counting", ..Design::default() }.toy(), [0, 12, 4, 0, 0]);
    bench.options.force = vec!["stats:1".to_owned()];
    check(&bench, &toy(), [1, 11, 4, 0, 0]);
    bench.options.force.clear();
    bench.edit("databases/2", |bytes| bytes.truncate(3));
    bench.options.until = Some("solve:2".to_owned());
    check(&bench, &toy(), [2, 10, 3, 1, 0]);
    bench.options.until = None;
    // A capture waits for the verification again.
    check(&bench, &toy(), [1, 12, 3, 0, 0]);
    bench.options.keep = Keep::All;
    check(&bench, &toy(), [4, 12, 0, 0, 0]);
    check(&bench, &toy(), [0, 16, 0, 0, 0]);
    bench.options.keep = Keep::Targets;
    // The run that removes the captures counts them as the next one does.
    check(&bench, &toy(), [0, 12, 4, 0, 0]);
    check(&bench, &toy(), [0, 12, 4, 0, 0]);
    bench.remove("journal");
    check(&bench, &toy(), [8, 4, 4, 0, 4]);
}

#[test]
fn observers_are_told_in_order() {
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
fn leftovers_of_dead_runs_go() {
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
fn a_real_directory_does_as_well() {
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
