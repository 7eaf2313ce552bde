//! Status, explanations, plans and runs: they agree about every stage.

use crate::directory::Directory;
use crate::journal::Record;
use crate::observer::Event;
use crate::orchestrator::tests::{ALL, Recorder, toy};
use crate::orchestrator::{Orchestrator, RunOptions};
use crate::plan::{Keep, StageCounts, Standing};
use crate::status::{RunState, StageState, status};
use crate::toy::{Bench, DIRECTORY, Design, Toy};
use crate::work::Work;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[test]
fn status_works_with_and_without_the_graph() {
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
fn status_distinguishes_an_active_run_from_a_killed_one() {
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
    // A file that the run has made and not yet recorded is not one from elsewhere.
    let made = directory.join("databases/0");
    bench.disk.put(&made, &Bench::built().disk.peek(&made).unwrap());
    let adopted = || status(&bench.disk, directory, Some(&toy()), Keep::Targets).unwrap().counts.unwrap().adopted;
    let now = status(&bench.disk, directory, Some(&toy()), Keep::Targets).unwrap();
    assert_eq!(now.run.unwrap().state, RunState::Running);
    assert_eq!(now.stages[0].state, StageState::Running);
    assert_eq!(adopted(), 0);
    drop(held);
    assert_eq!(adopted(), 1);
    bench.remove("databases/0");
    let now = status(&bench.disk, directory, Some(&toy()), Keep::Targets).unwrap();
    assert_eq!(now.run.unwrap().state, RunState::Interrupted);
    assert_eq!(now.stages[0].state, StageState::Interrupted);
}

#[test]
fn explanations_name_the_field_that_differs() {
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

/// Checks that plan, explain, status and run count the same stages, and returns the counts. The run comes last, as it
/// changes the directory.
#[track_caller]
fn check_counts(bench: &Bench, toy: &Toy) -> StageCounts {
    let orchestrator = bench.orchestrator(toy);
    let counts = orchestrator.plan().unwrap().stage_counts();
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
    let whole = Orchestrator::new(&bench.disk, Path::new(DIRECTORY), toy, options).plan().unwrap().stage_counts();
    let now = status(&bench.disk, Path::new(DIRECTORY), Some(toy), bench.options.keep).unwrap();
    assert_eq!(now.counts, Some(whole));
    let count = |is: fn(&StageState) -> bool| now.stages.iter().filter(|stage| is(&stage.state)).count();
    assert_eq!(count(|state| *state == StageState::Done), whole.up_to_date);
    assert_eq!(count(|state| *state == StageState::NotNeeded), whole.not_needed);
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
    assert_eq!((summary.plan.stage_counts(), summary.plan.stage_counts().to_run), (next.stage_counts(), 0));
    counts
}

#[test]
fn all_commands_count_the_same_stages() {
    let check = |bench: &Bench, toy: &Toy, [to_run, up_to_date, not_needed, not_requested, adopted]: [usize; 5]| {
        let expected = StageCounts { to_run, up_to_date, not_needed, not_requested, adopted };
        assert_eq!(check_counts(bench, toy), expected);
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
