//! Cases for plans: what runs after what happened, and why.

use crate::exit::Exit;
use crate::plan::{Keep, SettledReason};
use crate::toy::{Bench, DIRECTORY, Design, Toy};
use std::collections::BTreeMap;
use std::path::Path;

fn toy() -> Toy {
    Design::default().toy()
}

/// A bench where the default design has been built.
fn built() -> Bench {
    let bench = Bench::default();
    bench.run(&toy()).unwrap();
    bench
}

#[track_caller]
fn check(bench: &Bench, toy: &Toy, expect: &str) {
    let expect: String = expect.trim().lines().map(|line| format!("{}\n", line.trim())).collect();
    assert_eq!(bench.steps(toy), expect);
}

#[test]
fn an_empty_directory_needs_every_stage() {
    let design = Design { last: 1, ..Design::default() };
    check(
        &Bench::default(),
        &design.toy(),
        "capture:0: solve:0 needs captures/0, which was not kept
         solve:0: databases/0 is absent
         verify:0: databases/0 is not verified yet
         stats:0: stats/0 is absent
         capture:1: solve:1 needs captures/1, which was not kept
         solve:1: databases/1 is absent
         verify:1: databases/1 is not verified yet
         stats:1: stats/1 is absent",
    );
}

#[test]
fn a_complete_directory_needs_no_stage() {
    let bench = built();
    check(&bench, &toy(), "");
    let plan = bench.plan(&toy()).unwrap();
    let why = |at: usize| (plan.fresh[at].stage.to_string(), plan.fresh[at].why);
    assert_eq!(why(0), ("capture:0".to_owned(), SettledReason::NotNeeded));
    assert_eq!(why(1), ("solve:0".to_owned(), SettledReason::Recorded));
    assert_eq!(plan.fresh.len(), 16);
}

#[test]
fn a_lost_file_brings_back_only_itself() {
    let bench = built();
    bench.remove("databases/2");
    check(
        &bench,
        &toy(),
        "capture:2: solve:2 needs captures/2, which was not kept
         solve:2: databases/2 is absent",
    );
    bench.run(&toy()).unwrap();
    bench.remove("stats/1");
    check(&bench, &toy(), "stats:1: stats/1 is absent");
}

#[test]
fn a_changed_parameter_names_both_values() {
    let bench = built();
    let other = Design { last: 0, rules: "other", ..Design::default() };
    check(
        &bench,
        &other.toy(),
        "capture:0: solve:0 needs captures/0, which was not kept
         solve:0: databases/0 is out of date: rules recorded: toy; the manifest asks for other
         verify:0: verified/0 is out of date: rules recorded: toy; the manifest asks for other
         stats:0: stats/0 is out of date: rules recorded: toy; the manifest asks for other",
    );
}

#[test]
fn a_new_version_may_change_what_comes_after() {
    let bench = built();
    let newer = Design { versions: BTreeMap::from([(2, 2)]), ..Design::default() };
    check(
        &bench,
        &newer.toy(),
        "capture:2: solve:2 needs captures/2, which was not kept
         solve:2: databases/2 is out of date: version recorded: 1; this program makes 2
         verify:2: after solve:2, if databases/2 changes
         stats:2: after solve:2, if databases/2 changes
         capture:3: solve:3 needs captures/3, which was not kept
         solve:3: after solve:2, if databases/2 changes
         verify:3: after solve:2, if databases/2 changes
         stats:3: after solve:3, if databases/3 changes",
    );
}

#[test]
fn a_method_makes_nothing_stale() {
    let bench = built();
    let counting = Design { method: "counting", ..Design::default() };
    check(&bench, &counting.toy(), "");
}

#[test]
fn force_redoes_that_stage_only() {
    let mut bench = built();
    bench.options.force = vec!["solve:1".to_owned()];
    check(
        &bench,
        &toy(),
        "capture:1: solve:1 needs captures/1, which was not kept
         solve:1: forced",
    );
    bench.options.force = vec!["capture:1".to_owned()];
    check(&bench, &toy(), "capture:1: forced");
    bench.options.force = vec!["verify:1".to_owned(), "stats:0".to_owned()];
    check(&bench, &toy(), "stats:0: forced\nverify:1: forced");
}

#[test]
fn until_includes_the_stage_named() {
    let mut bench = Bench::default();
    bench.options.until = Some("solve:1".to_owned());
    let plan = bench.plan(&toy()).unwrap();
    let names: Vec<String> = plan.steps.iter().map(|step| step.stage.to_string()).collect();
    let expect = ["capture:0", "solve:0", "verify:0", "stats:0", "capture:1", "solve:1"];
    assert_eq!(names, expect);
    assert!(plan.fresh.iter().all(|settled| settled.why == SettledReason::NotRequested));
    bench.run(&toy()).unwrap();
    // The capture is kept: the database it belongs to is not verified yet.
    assert!(bench.files().contains_key("captures/1"));
    bench.options.until = None;
    bench.run(&toy()).unwrap();
    assert!(!bench.files().contains_key("captures/1"));
}

#[test]
fn unknown_stages_are_answered_with_known_ones() {
    let mut bench = Bench::default();
    let mut check = |name: &str, expect: &str| {
        bench.options.until = Some(name.to_owned());
        let error = bench.plan(&toy()).unwrap_err();
        assert_eq!(error.to_string(), expect);
        assert_eq!(error.exit(), Exit::Usage);
    };
    let examples = "stages of this manifest include";
    check("solve:9", &format!("there is no stage solve:9; {examples} solve:0, solve:3"));
    check("slove:1", &format!("there is no stage slove:1; {examples} solve:1"));
    check("what?", &format!("there is no stage what?; {examples} capture:3, solve:3, verify:3, stats:3"));
    check("", &format!("the name of a stage is empty; {examples} capture:3, solve:3, verify:3, stats:3"));
}

#[test]
fn a_stage_after_the_last_one_cannot_be_forced() {
    let mut bench = built();
    bench.options.force = vec!["solve:2".to_owned()];
    bench.options.until = Some("solve:2".to_owned());
    assert_eq!(bench.plan(&toy()).unwrap().stage_counts().to_run, 2);
    bench.options.until = Some("solve:1".to_owned());
    let error = bench.plan(&toy()).unwrap_err();
    let expected = "--force solve:2 contradicts --until solve:1: solve:2 comes after solve:1; leave out one of the two";
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.exit(), Exit::Usage);
}

#[test]
fn what_a_run_removes_is_not_needed() {
    let mut bench = Bench::default();
    bench.options.keep = Keep::All;
    bench.run(&toy()).unwrap();
    let kept = bench.plan(&toy()).unwrap().stage_counts();
    bench.options.keep = Keep::Targets;
    let plan = bench.plan(&toy()).unwrap();
    assert_eq!(plan.removable.len(), 4);
    assert_eq!((kept.not_needed, plan.stage_counts().not_needed), (0, 4));
    assert_eq!(plan.stage_counts(), bench.run(&toy()).unwrap().plan.stage_counts());
}

#[test]
fn frozen_rebuilds_nothing_but_builds_what_is_new() {
    let mut bench = built();
    bench.options.frozen = true;
    let more = Design { last: 4, ..Design::default() };
    assert_eq!(bench.plan(&more.toy()).unwrap().steps.len(), 4);
    let newer = Design { versions: BTreeMap::from([(3, 2)]), ..Design::default() };
    let error = bench.plan(&newer.toy()).unwrap_err();
    assert_eq!(error.exit(), Exit::Frozen);
    assert_eq!(
        error.to_string(),
        "--frozen: solve:3 would be rebuilt (databases/3 is out of date: version recorded: 1; this program makes 2); \
         verify:3 would be rebuilt (after solve:3, if databases/3 changes); \
         stats:3 would be rebuilt (after solve:3, if databases/3 changes); leave out --frozen to rebuild"
    );
    let other = Design { rules: "other", ..Design::default() };
    let error = bench.plan(&other.toy()).unwrap_err().to_string();
    assert!(error.ends_with("with --replace instead of --frozen"), "{error}");
}

#[test]
fn a_lost_journal_costs_checks_and_reports() {
    let bench = built();
    bench.remove("journal");
    let design = Design { last: 1, ..Design::default() };
    check(
        &bench,
        &design.toy(),
        "verify:0: databases/0 is not verified yet
         stats:0: stats/0 is not in the journal
         verify:1: databases/1 is not verified yet
         stats:1: stats/1 is not in the journal",
    );
    assert_eq!(bench.plan(&toy()).unwrap().adopted.len(), 4);
}

#[test]
fn a_foreign_file_is_not_adopted() {
    let bench = Bench::default();
    let other = Design { last: 0, rules: "other", ..Design::default() };
    bench.run(&other.toy()).unwrap();
    bench.remove("journal");
    let design = Design { last: 0, ..Design::default() };
    check(
        &bench,
        &design.toy(),
        "capture:0: solve:0 needs captures/0, which was not kept
         solve:0: databases/0 is out of date: rules recorded: other; the manifest asks for toy
         verify:0: databases/0 is not verified yet
         stats:0: stats/0 is out of date: rules recorded: other; the manifest asks for toy",
    );
}

#[test]
fn broken_files_are_rebuilt_and_checked_again() {
    let bench = built();
    bench.edit("databases/1", |bytes| bytes.truncate(bytes.len() - 1));
    check(
        &bench,
        &toy(),
        "capture:1: solve:1 needs captures/1, which was not kept
         solve:1: databases/1 is damaged: 31 bytes, expected 32
         verify:1: databases/1 is not verified yet",
    );
    bench.edit("databases/1", |bytes| bytes.truncate(3));
    check(
        &bench,
        &toy(),
        "capture:1: solve:1 needs captures/1, which was not kept
         solve:1: databases/1 cannot be read: it is not a toy
         verify:1: databases/1 is not verified yet",
    );
}

#[test]
fn an_exchanged_file_is_noticed_by_its_digest() {
    let bench = built();
    let mut salted = toy();
    salted.salted.insert(2);
    let other = Bench::default();
    other.run(&salted).unwrap();
    let salted = other.files().remove("databases/2").unwrap();
    bench.edit("databases/2", |bytes| *bytes = salted);
    let steps = bench.steps(&toy());
    assert!(steps.contains("solve:2: databases/2 is out of date: content digest recorded: "), "{steps}");
    assert_eq!(steps.lines().count(), 2, "{steps}");
}

#[test]
fn a_full_check_satisfies_a_sample_but_not_the_reverse() {
    let bench = built();
    let sample = Design { check: "sample", ..Design::default() };
    check(&bench, &sample.toy(), "");
    let bench = Bench::default();
    bench.run(&sample.toy()).unwrap();
    let steps = bench.steps(&toy());
    let expect = "verify:0: verified/0 is out of date: check recorded: sample; the manifest asks for full\n";
    assert!(steps.starts_with(expect), "{steps}");
    assert_eq!(steps.lines().count(), 4);
}

#[test]
fn keeping_all_makes_intermediates_wanted() {
    let mut bench = built();
    bench.options.keep = Keep::All;
    check(
        &bench,
        &toy(),
        "capture:0: captures/0 is absent
         capture:1: captures/1 is absent
         capture:2: captures/2 is absent
         capture:3: captures/3 is absent",
    );
    bench.run(&toy()).unwrap();
    check(&bench, &toy(), "");
    assert!(bench.files().contains_key("captures/2"));
    bench.options.keep = Keep::Targets;
    assert_eq!(bench.plan(&toy()).unwrap().removable.len(), 4);
    bench.run(&toy()).unwrap();
    assert!(!bench.files().contains_key("captures/2"));
}

#[test]
fn prediction_holds_captures_until_verified() {
    let bench = Bench::default();
    let prediction = bench.plan(&toy()).unwrap().prediction;
    assert_eq!((prediction.positions, prediction.memory_bytes), (160, 100));
    assert_eq!(prediction.seconds, 16.0);
    // Before stats:3: databases 0..3, verified 0..3 and stats 0..2 at 100 each, and 1000 for itself.
    assert_eq!(prediction.disk_bytes, 2100);
    let mut all = Bench::default();
    all.options.keep = Keep::All;
    assert_eq!(all.plan(&toy()).unwrap().prediction.disk_bytes, 2500);
}

#[test]
fn what_is_taken_already_is_not_asked_for_again() {
    let mut bench = Bench::default();
    bench.options.until = Some("solve:0".to_owned());
    let predicted = |bench: &Bench| bench.plan(&toy()).unwrap().prediction.disk_bytes;
    assert_eq!(predicted(&bench), 1100);
    let put = |name: &str, bytes: usize| bench.disk.put(&Path::new(DIRECTORY).join(name), &vec![0; bytes]);
    put("snapshots/solve-0/half", 50);
    put("snapshots/solve-0/rank-1/half", 20);
    put("snapshots/solve-7/half", 500);
    let plan = bench.plan(&toy()).unwrap();
    assert_eq!((plan.steps[1].disk_there_bytes, plan.prediction.disk_bytes), (70, 1030));
    // The next run begins with its removal.
    put("databases/.0.tmp-1", 30);
    assert_eq!(predicted(&bench), 1000);

    // A capture that is there takes its room already, and gives it back once its database is verified.
    let mut bench = Bench::default();
    bench.options.until = Some("capture:0".to_owned());
    bench.run(&toy()).unwrap();
    bench.options.until = None;
    let design = Design { last: 0, ..Design::default() };
    let prediction = bench.plan(&design.toy()).unwrap().prediction;
    // That of the stage verify, beside the database: the stage after it has the room of the capture.
    assert_eq!(prediction.disk_bytes, 100 + 1000);

    // What a run removes before its next stage is as good as free.
    let mut bench = built();
    bench.options.keep = Keep::All;
    bench.run(&toy()).unwrap();
    let captures: u64 = bench
        .files()
        .iter()
        .filter(|(name, _)| name.starts_with("captures/"))
        .map(|(_, bytes)| bytes.len() as u64)
        .sum();
    assert!(captures > 0);
    bench.remove("stats/3");
    let kept = bench.plan(&toy()).unwrap();
    bench.options.keep = Keep::Targets;
    let plan = bench.plan(&toy()).unwrap();
    assert_eq!((kept.removable.len(), plan.removable.len()), (0, 4));
    assert_eq!((kept.prediction.disk_bytes, plan.prediction.disk_bytes), (1000, 1000 - captures));
}

#[test]
fn plans_serialise() {
    let plan = Bench::default().plan(&toy()).unwrap();
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(json["steps"][1]["stage"], "solve:0");
    assert_eq!(json["steps"][1]["reason"]["why"], "absent");
    assert_eq!(json["steps"][1]["reason"]["artifact"], "databases/0");
    assert_eq!(json["prediction"]["positions"], 160);
}
