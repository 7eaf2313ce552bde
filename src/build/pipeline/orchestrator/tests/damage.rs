//! Damaged, wrong and exchanged artifacts: what is rebuilt, and what is not.

use crate::exit::Exit;
use crate::journal::Record;
use crate::orchestrator::tests::{reference, toy};
use crate::orchestrator::{Orchestrator, RunOptions};
use crate::toy::{Bench, DIRECTORY, Design, Toy, artifact};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

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
fn recorded_damage_is_rebuilt_unless_a_full_check_clears_it() {
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

/// Wrong content under right checksums, found after other databases were built from it.
#[test]
fn artifacts_of_a_wrong_source_are_rebuilt() {
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

/// Artifacts made before the source was last known to be good stay, and all of them where readers notice the damage.
#[test]
fn artifacts_of_a_good_source_stay() {
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

/// Snapshots, kept intermediates and unrecorded files of a wrong source are not used.
#[test]
fn snapshots_and_intermediates_of_a_wrong_source_are_not_used() {
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

/// Returns a file of a build in which database `n` has other content.
fn salted_file(n: u32, name: &str) -> Vec<u8> {
    let mut salted = toy();
    salted.salted.insert(n);
    let bench = Bench::default();
    bench.run(&salted).unwrap();
    bench.files().remove(name).unwrap()
}

/// Nothing is built on a file that is exchanged while a run is active.
#[test]
fn an_input_exchanged_during_a_run_is_noticed() {
    let other = salted_file(1, "databases/1");
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

/// A file without a checksum of its own changes between its last write and its record.
#[test]
fn an_output_exchanged_before_it_is_recorded_is_noticed() {
    let other = salted_file(2, "stats/2");
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
fn a_failed_verification_rebuilds_the_database_and_its_capture() {
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

/// An artifact that is wrong again after it was made again names the inputs, in one of which the error is.
#[test]
fn a_wrong_input_is_suspected_when_its_output_is_wrong_again() {
    let bench = Bench::default();
    let mut wrong = toy();
    // The same error in each attempt, as that of a wrong input.
    wrong.salted.insert(2);
    let mut messages = Vec::new();
    for _ in 0..3 {
        bench.options_until(&wrong, "solve:2");
        let error = bench.run(&toy()).unwrap_err();
        assert_eq!(error.exit(), Exit::Integrity);
        messages.push(error.to_string());
    }
    assert!(messages[0].ends_with("; the next run rebuilds it"), "{}", messages[0]);
    for message in &messages[1..] {
        let expect = "verify:2 stopped: databases/2 is damaged: ";
        assert!(message.starts_with(expect), "{message}");
        assert!(message.ends_with("so the cause is probably in databases/0, databases/1"), "{message}");
    }
    // An input that was made again since is no suspect.
    bench.record(Record::DamageFound { artifact: artifact("databases/1"), what: "x".to_owned(), silent: true });
    bench.options_until(&wrong, "solve:2");
    let message = bench.run(&toy()).unwrap_err().to_string();
    assert!(message.ends_with("so the cause is probably in databases/0"), "{message}");
}

impl Bench {
    fn options_until(&self, toy: &Toy, until: &str) {
        let options = RunOptions { until: Some(until.to_owned()), ..RunOptions::default() };
        let orchestrator = Orchestrator::new(&self.disk, Path::new(DIRECTORY), toy, options);
        orchestrator.run().unwrap();
    }
}
