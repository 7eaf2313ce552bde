//! Runs with several stages at a time.

use super::{ALL, reference, toy};
use crate::budget::Budget;
use crate::exit::Exit;
use crate::journal::{Contents, History, RunEnd, StageOutcome};
use crate::plan::Keep;
use crate::report::StageError;
use crate::status::{StageState, status};
use crate::toy::{Bench, DIRECTORY, Design};
use crate::work::StageContext;
use crate::{directory::journal_path, toy::Toy};
use disk::Fault;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The longest wait for other stages.
const PATIENCE: Duration = Duration::from_secs(60);

/// Stages that wait for each other. None of them reads what another one makes.
const TOGETHER: [&str; 3] = ["verify:1", "stats:1", "capture:2"];

/// A place where stages wait until all of some number have come.
#[derive(Default)]
struct Meeting {
    come: Mutex<usize>,
    is_complete: Condvar,
}

impl Meeting {
    fn wait_for(&self, number: usize) -> Result<(), StageError> {
        let mut come = self.come.lock().unwrap();
        *come += 1;
        self.is_complete.notify_all();
        let waited = self.is_complete.wait_timeout_while(come, PATIENCE, |come| *come < number).unwrap();
        if waited.1.timed_out() { Err(StageError::failed("the others do not run")) } else { Ok(()) }
    }
}

fn wait_for_stop(context: &StageContext<'_>) -> Result<(), StageError> {
    let watch = std::time::Instant::now();
    while watch.elapsed() < PATIENCE {
        if context.stop_requested() {
            return Err(StageError::Stopped);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(StageError::failed("no stop was requested"))
}

/// A toy whose stages of `together` wait for each other before `then` is called.
fn meeting(
    together: &'static [&'static str],
    then: impl Fn(&str, &StageContext<'_>) -> Result<(), StageError> + Sync + 'static,
) -> Toy {
    let meeting = Meeting::default();
    let begins = move |name: &str, context: &StageContext<'_>| {
        if !together.contains(&name) {
            return Ok(());
        }
        meeting.wait_for(together.len())?;
        then(name, context)
    };
    Toy { begins: Some(Box::new(begins)), ..toy() }
}

fn history(bench: &Bench) -> History {
    History::of(&Contents::read(&bench.disk, &journal_path(Path::new(DIRECTORY))).unwrap().entries)
}

#[test]
fn any_number_at_a_time_makes_the_same_files() {
    for stages in [1, 2, 3, 16] {
        let bench = Bench::with_stages(stages);
        let toy = toy();
        let summary = bench.run(&toy).unwrap();
        assert_eq!((summary.how, summary.ran.len()), (RunEnd::Done, 16));
        assert_eq!(bench.files(), reference(), "{stages} at a time");
        let mut ran = toy.take_log();
        ran.sort();
        let mut all = ALL.map(str::to_owned);
        all.sort();
        assert_eq!(ran, all);
        let history = history(&bench);
        assert!(history.runs[0].stages.iter().all(|span| matches!(span.outcome, StageOutcome::Done(_))));
        assert_eq!(bench.steps(&toy), "");
    }
}

#[test]
fn stages_run_at_the_same_time() {
    let bench = Bench::with_stages(3);
    let toy = meeting(&TOGETHER, |_, context| {
        assert!(context.threads() >= 1);
        Ok(())
    });
    bench.run(&toy).unwrap();
    assert_eq!(bench.files(), reference());
    let spans = &history(&bench).runs[0].stages;
    let spans: Vec<_> = spans.iter().filter(|span| TOGETHER.contains(&&*span.stage.to_string())).collect();
    let begin = spans.iter().map(|span| span.begin_seconds).fold(0.0, f64::max);
    assert!(spans.len() == 3 && spans.iter().all(|span| span.end_seconds >= begin - 0.01), "{spans:?}");
}

#[test]
fn a_stage_that_grows_gets_the_threads_of_ended_stages() {
    for (grows, patience) in [(true, PATIENCE), (false, Duration::from_millis(100))] {
        let bench = Bench::with_stages(3);
        let most = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&most);
        // The others end; what they leave ready ends too.
        let together = meeting(&TOGETHER, move |name, context| {
            let watch = std::time::Instant::now();
            while name == "capture:2" && context.threads() < 3 && watch.elapsed() < patience {
                std::thread::sleep(Duration::from_millis(1));
            }
            seen.fetch_max(context.threads(), Ordering::SeqCst);
            Ok(())
        });
        let design = Design { grows, ..Design::default() };
        bench.run(&Toy { begins: together.begins, ..design.toy() }).unwrap();
        assert_eq!(bench.files(), reference());
        assert_eq!(most.load(Ordering::SeqCst), if grows { 3 } else { 1 });
    }
}

#[test]
fn the_predicted_schedule_chooses_how_many_run_at_the_same_time() {
    let mut bench = Bench::with_stages(3);
    bench.options.stages_at_a_time = 0;
    let together = meeting(&["verify:1", "capture:2"], |_, _| Ok(()));
    bench.run(&together).unwrap();
    assert_eq!(bench.files(), reference());
    // Each is predicted to take 100 bytes: two do not fit.
    let mut small = Bench::with_stages(3);
    (small.options.stages_at_a_time, small.options.memory) = (0, Budget::new(100));
    let is_alone = |_: &str, context: &StageContext<'_>| {
        assert!(context.is_alone() && context.threads() == 3);
        Ok(())
    };
    small.run(&Toy { begins: Some(Box::new(is_alone)), ..toy() }).unwrap();
    assert_eq!(small.files(), reference());
}

#[test]
fn stages_together_stay_within_the_memory() {
    // Each is predicted to take 100 bytes.
    for (memory, most) in [(100, 1), (250, 2), (u64::MAX, 3)] {
        let mut bench = Bench::with_stages(3);
        bench.options.memory = Budget::new(memory);
        let running = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let seen = Arc::clone(&running);
        let begins = move |_: &str, _: &StageContext<'_>| {
            let now = seen.0.fetch_add(1, Ordering::SeqCst) + 1;
            seen.1.fetch_max(now, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(5));
            seen.0.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        };
        bench.run(&Toy { begins: Some(Box::new(begins)), ..toy() }).unwrap();
        assert_eq!(bench.files(), reference());
        assert!(running.1.load(Ordering::SeqCst) <= most, "{running:?} of {most}");
    }
}

#[test]
fn the_others_stop_when_a_stage_fails() {
    let bench = Bench::with_stages(3);
    let broken = meeting(&TOGETHER, |name, context| match name {
        "verify:1" => Err(StageError::failed("the toy broke")),
        _ => wait_for_stop(context),
    });
    let error = bench.run(&broken).unwrap_err();
    assert_eq!(error.exit(), Exit::StageFailed);
    assert_eq!(
        error.to_string(),
        "verify:1 failed: the toy broke; finished work is kept, and the same command resumes"
    );
    assert!(!broken.take_log().contains(&"solve:2".to_owned()));
    let now = status(&bench.disk, Path::new(DIRECTORY), Some(&toy()), Keep::Targets).unwrap();
    let state = |name: &str| &now.stages.iter().find(|stage| stage.stage.to_string() == name).unwrap().state;
    assert_eq!(state("verify:1"), &StageState::Failed("the toy broke".to_owned()));
    assert_eq!(state("capture:2"), &StageState::Interrupted);
    assert_eq!(state("solve:1"), &StageState::Done);
    let toy = toy();
    bench.run(&toy).unwrap();
    assert!(!toy.take_log().contains(&"solve:1".to_owned()));
    assert_eq!(bench.files(), reference());
}

#[test]
fn the_first_failure_is_that_of_the_run() {
    let bench = Bench::with_stages(3);
    let broken = meeting(&TOGETHER, |name, context| match name {
        "stats:1" => Err(StageError::failed("the first")),
        _ => {
            let _ = wait_for_stop(context);
            Err(StageError::failed("a later one"))
        }
    });
    let error = bench.run(&broken).unwrap_err();
    assert!(error.to_string().starts_with("stats:1 failed: the first"), "{error}");
    let failed = history(&bench).remarks;
    assert_eq!(failed.iter().filter(|remark| remark.is_bad).count(), 3, "{failed:?}");
    bench.run(&toy()).unwrap();
    assert_eq!(bench.files(), reference());
}

#[test]
fn a_stop_request_reaches_all_stages() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let bench = Bench::with_stages(3);
    let stopped = meeting(&TOGETHER, |_, context| {
        STOP.store(true, Ordering::Relaxed);
        wait_for_stop(context)
    });
    let summary = bench.orchestrator(&stopped).stop(&STOP).run().unwrap();
    assert_eq!((summary.how.clone(), summary.exit()), (RunEnd::Stopped, Exit::Stopped));
    assert!(summary.plan.steps.len() >= TOGETHER.len());
    let toy = toy();
    let summary = bench.run(&toy).unwrap();
    assert!(toy.take_log().contains(&"verify:1".to_owned()) && summary.how == RunEnd::Done);
    assert_eq!(bench.files(), reference());
}

#[test]
fn a_run_that_was_killed_with_several_stages_makes_them_again() {
    for is_durable in [false, true] {
        let bench = Arc::new(Bench::with_stages(3));
        let disk = Arc::clone(&bench);
        let killed = meeting(&TOGETHER, move |_, _| {
            disk.disk.fail_from(disk.disk.operations(), Fault::Io);
            Ok(())
        });
        bench.run(&killed).unwrap_err();
        if is_durable {
            bench.disk.crash();
        }
        bench.disk.fail_never();
        let begun =
            history(&bench).runs[0].stages.iter().filter(|span| span.outcome == StageOutcome::Unfinished).count();
        assert_eq!(begun, 3);
        bench.run(&toy()).unwrap();
        assert_eq!(bench.files(), reference());
    }
}

#[test]
fn damage_beside_other_stages_is_recorded_and_mended() {
    let mut design = Bench::with_stages(3);
    design.run(&toy()).unwrap();
    design.forge("databases/1");
    design.options.force = vec!["verify:1".to_owned(), "stats:3".to_owned()];
    let forced = meeting(&["verify:1", "stats:3"], |_, _| Ok(()));
    let error = design.run(&forced).unwrap_err();
    assert_eq!(error.exit(), Exit::Integrity, "{error}");
    design.options.force.clear();
    design.run(&toy()).unwrap();
    assert_eq!(design.files(), reference());
}

#[test]
fn until_and_force_select_the_same_stages() {
    let mut bench = Bench::with_stages(3);
    bench.options.until = Some("verify:2".to_owned());
    let toy = toy();
    bench.run(&toy).unwrap();
    let mut ran = toy.take_log();
    ran.sort();
    let mut expected = ALL[..11].iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    expected.sort();
    assert_eq!(ran, expected);
    bench.options.until = None;
    bench.run(&toy).unwrap();
    toy.take_log();
    bench.options.force = vec!["solve:1".to_owned(), "stats:3".to_owned()];
    bench.run(&toy).unwrap();
    let mut ran = toy.take_log();
    ran.sort();
    assert_eq!(ran, ["capture:1", "solve:1", "stats:3"]);
    assert_eq!(bench.files(), reference());
}

#[test]
#[should_panic(expected = "the toy panics")]
fn a_panic_ends_the_run() {
    let bench = Bench::with_stages(3);
    let panics = meeting(&TOGETHER, |name, context| match name {
        "verify:1" => panic!("the toy panics"),
        _ => wait_for_stop(context),
    });
    let _ = bench.run(&panics);
}

#[test]
fn a_chain_runs_one_stage_at_a_time_and_keeps_its_memory() {
    // Captures and solvers share a folder, and take 100 bytes each of 250: one chain, and one other stage.
    let mut bench = Bench::with_stages(3);
    bench.options.memory = Budget::new(250);
    let design = Design { has_chains: true, ..Design::default() };
    let running = Arc::new(Mutex::new(Vec::<String>::new()));
    let seen = Arc::clone(&running);
    let begins = move |name: &str, _: &StageContext<'_>| {
        let mut running = seen.lock().unwrap();
        running.push(name.to_owned());
        let chained = running.iter().filter(|name| name.starts_with("capture") || name.starts_with("solve"));
        let is_alone = chained.count() <= 1 && running.len() <= 2;
        drop(running);
        std::thread::sleep(Duration::from_millis(5));
        seen.lock().unwrap().retain(|running| running != name);
        if is_alone { Ok(()) } else { Err(StageError::failed("two of a chain, or too many")) }
    };
    bench.run(&Toy { begins: Some(Box::new(begins)), ..design.toy() }).unwrap();
    assert_eq!(bench.files(), reference());
}

/// What a stage reads and writes does not depend on what runs beside it.
#[test]
fn traffic_is_that_of_the_stage_alone() {
    let traffic = |stages_at_a_time| {
        let ran = Bench::with_stages(stages_at_a_time).run(&toy()).unwrap().ran;
        let of_stages = ran.into_iter().map(|completed| (completed.stage.to_string(), completed.measured));
        of_stages
            .map(|(stage, measured)| (stage, measured.read_bytes.unwrap(), measured.written_bytes.unwrap()))
            .collect::<BTreeSet<_>>()
    };
    let alone = traffic(1);
    assert!(alone.iter().any(|(_, read, written)| *read > 0 && *written > 0), "{alone:?}");
    assert_eq!(traffic(3), alone);
}
