//! The decision as a table, and the paths of a graph.

use super::*;
use crate::plan::Plan;
use crate::toy::{Bench, Design};

const MEMORY: u64 = 100;
const DISK: u64 = 1000;

fn ready(position: usize, path_seconds: f64, memory_bytes: u64) -> ReadyStage {
    ReadyStage { position, path_seconds, core_seconds: 1.0, needs: Reservation { memory_bytes, disk_bytes: 10 } }
}

fn running(stages: usize, threads: usize, memory_bytes: u64) -> TakenResources {
    TakenResources { stages, threads, reserved: Reservation { memory_bytes, disk_bytes: 10 * stages as u64 } }
}

#[test]
fn the_decision_is_a_table() {
    let limits =
        |stages, threads| Limits { stages, threads, reserved: Reservation { memory_bytes: MEMORY, disk_bytes: DISK } };
    let check = |what: &str, ready: &[ReadyStage], running: TakenResources, limits: Limits, expected| {
        let start = next_stage(ready, &running, &limits).map(|start| (start.position, start.threads));
        assert_eq!(start, expected, "{what}");
    };
    let [short, long, large] = [ready(3, 1.0, 20), ready(7, 5.0, 30), ready(5, 9.0, 90)];
    let idle = running(0, 0, 0);
    check("nothing is ready", &[], idle, limits(3, 4), None);
    check("one stage takes all threads", &[short], idle, limits(3, 4), Some((3, 4)));
    check("the longest path comes first, and leaves threads", &[short, long], idle, limits(3, 4), Some((7, 2)));
    check("the first gets the odd thread", &[short, long], idle, limits(3, 5), Some((7, 3)));
    let brief = ReadyStage { core_seconds: 0.1, ..short };
    check("a brief one beside it has a thread of its own", &[brief, long], idle, limits(3, 4), Some((7, 4)));
    check("it is not brief for many threads", &[brief, long], idle, limits(3, 8), Some((7, 4)));
    check("equal paths: in order", &[ready(9, 5.0, 1), long], idle, limits(3, 4), Some((7, 2)));
    check("no more at a time", &[short], running(3, 3, 30), limits(3, 4), None);
    check("the last place is not shared", &[short, long], running(2, 2, 30), limits(3, 4), Some((7, 2)));
    check("one thread at least", &[short], running(2, 4, 30), limits(3, 4), Some((3, 1)));
    check("no memory", &[large], running(1, 1, 30), limits(3, 4), None);
    check("a smaller one fits", &[large, short], running(1, 1, 30), limits(3, 4), Some((3, 3)));
    check("one that does not fit beside it has no share", &[large, long], idle, limits(3, 4), Some((5, 4)));
    check("nothing to share memory with", &[ready(5, 9.0, MEMORY)], idle, limits(3, 4), Some((5, 4)));
    let oversized = ready(5, 9.0, MEMORY + 1);
    check("alone although it does not fit", &[ready(6, 1.0, MEMORY + 1), oversized], idle, limits(3, 4), Some((5, 4)));
    check("not beside others", &[oversized], running(1, 1, 0), limits(3, 4), None);
    let wide = ReadyStage { needs: Reservation { memory_bytes: 1, disk_bytes: DISK }, ..short };
    check("no disk space", &[wide], running(1, 1, 0), limits(3, 4), None);
    check("disk space alone", &[wide], idle, limits(3, 4), Some((3, 4)));
    let unlimited = Reservation { memory_bytes: u64::MAX, disk_bytes: u64::MAX };
    let huge = ReadyStage { needs: unlimited, ..short };
    let endless = Limits { reserved: unlimited, ..limits(3, 4) };
    check("sums do not overflow", &[huge], running(1, 1, 5), endless, Some((3, 3)));
}

#[test]
fn free_threads_go_to_the_stages_with_the_fewest() {
    let check = |free, mut growing: Vec<usize>, expected: &[usize]| {
        share_out(free, &mut growing);
        assert_eq!(growing, expected, "{free} free");
    };
    check(0, vec![1, 2], &[1, 2]);
    check(1, vec![2, 1, 1], &[2, 2, 1]);
    check(4, vec![3, 1], &[4, 4]);
    check(3, vec![], &[]);
}

#[test]
fn a_path_ends_with_the_last_stage_that_waits() {
    // Of each database: capture, solve, verify, stats. A capture reads all smaller databases.
    let graph = Design { last: 2, ..Design::default() }.toy().graph;
    let paths = path_seconds(&graph, &vec![Some(1.0); graph.stages().len()]);
    assert_eq!(paths, [7.0, 6.0, 1.0, 1.0, 5.0, 4.0, 1.0, 1.0, 3.0, 2.0, 1.0, 1.0]);
    let mut seconds = vec![Some(1.0); graph.stages().len()];
    (seconds[4], seconds[11]) = (None, Some(3.0));
    assert_eq!(path_seconds(&graph, &seconds), [8.0, 7.0, 1.0, 1.0, 6.0, 6.0, 1.0, 1.0, 5.0, 4.0, 1.0, 3.0]);
}

#[test]
fn a_stage_is_ready_when_its_inputs_are_made() {
    let graph = Design { last: 1, ..Design::default() }.toy().graph;
    let mut is_pending = vec![true; graph.stages().len()];
    let ready = |is_pending: &[bool]| -> Vec<usize> {
        (0..is_pending.len()).filter(|&at| is_pending[at] && is_ready(&graph, at, is_pending)).collect()
    };
    assert_eq!(ready(&is_pending), [0]);
    is_pending[0] = false;
    assert_eq!(ready(&is_pending), [1]);
    is_pending[1] = false;
    assert_eq!(ready(&is_pending), [2, 3, 4]);
}

/// A plan of all stages of a toy with two databases: of each capture, solve, verify, stats. Each takes a
/// second, 100 bytes of memory and 1000 of disk, of which it keeps 100.
fn planned(design: &Design) -> (Graph, Plan) {
    let toy = design.toy();
    let plan = Bench::default().orchestrator(&toy).plan().unwrap();
    assert_eq!(plan.steps.len(), 8);
    (toy.graph, plan)
}

fn limits(stages: usize, threads: usize, memory_bytes: u64) -> Limits {
    Limits { stages, threads, reserved: Reservation { memory_bytes, disk_bytes: u64::MAX } }
}

#[test]
fn a_schedule_is_predicted() {
    let (graph, plan) = planned(&Design { last: 1, ..Design::default() });
    let check = |limits: Limits, seconds: f64, memory_bytes, disk_bytes| {
        let predicted = predict(&graph, &plan, &limits);
        assert!((predicted.seconds - seconds).abs() < 1e-9, "{limits:?}: {predicted:?}");
        assert!((predicted.cores_busy - 8.0 / seconds).abs() < 1e-9, "{predicted:?}");
        assert_eq!((predicted.memory_bytes, predicted.disk_bytes), (memory_bytes, disk_bytes), "{limits:?}");
        assert_eq!((predicted.stages_at_a_time, predicted.path_seconds), (limits.stages, 5.0));
        assert_eq!(predicted.memory_stages.len() as u64 * 100, memory_bytes);
    };
    check(limits(1, 1, 1000), 8.0, 100, plan.prediction.disk_bytes);
    check(limits(2, 2, 1000), 5.0, 200, 2500);
    check(limits(3, 3, 1000), 5.0, 300, 3200);
    // One core does the work of all.
    check(limits(3, 1, 1000), 8.0, 300, 3200);
    // Two fit.
    check(limits(3, 3, 250), 5.0, 200, 2500);
    // None fits.
    check(limits(3, 3, 10), 8.0, 100, plan.prediction.disk_bytes);
}

#[test]
fn a_stage_that_grows_is_predicted_to_take_free_threads() {
    let seconds = |grows| {
        let (graph, mut plan) = planned(&Design { last: 1, grows, ..Design::default() });
        // Of each database capture, solve, verify, stats.
        let number = |step: &PlannedStage| graph.position(&step.stage).unwrap() % 4;
        plan.steps.retain(|step| number(step) != 3);
        // With all four threads each takes a second. With two a capture takes two, a verification still one.
        for step in &mut plan.steps {
            step.cost.core_seconds = if number(step) == 2 { 1.0 } else { 4.0 };
        }
        predict(&graph, &plan, &limits(2, 4, 1000)).seconds
    };
    // The second capture is half done when the verification beside it ends.
    assert!((seconds(false) - 6.0).abs() < 1e-9 && (seconds(true) - 5.5).abs() < 1e-9);
}

#[test]
fn stages_share_the_drive() {
    let (graph, mut plan) = planned(&Design { last: 1, ..Design::default() });
    plan.steps.iter_mut().for_each(|step| step.cost.disk_seconds = 0.75);
    let predicted = predict(&graph, &plan, &limits(3, 3, 1000));
    // Three together take 2.25 seconds, two 1.5.
    assert!((predicted.seconds - (1.0 + 1.0 + 2.25 + 1.0 + 1.5)).abs() < 1e-9, "{predicted:?}");
}

#[test]
fn a_chain_keeps_its_reservation_in_the_prediction() {
    let (graph, plan) = planned(&Design { last: 1, has_chains: true, ..Design::default() });
    let predicted = predict(&graph, &plan, &limits(3, 3, 250));
    assert!(predicted.seconds == 5.0 && predicted.memory_bytes == 200, "{predicted:?}");
    let alone = predict(&graph, &plan, &limits(3, 3, 100));
    assert!(alone.seconds == 8.0 && alone.memory_bytes == 100, "{alone:?}");
}

#[test]
fn no_more_stages_at_a_time_than_are_worth_it() {
    let (graph, plan) = planned(&Design { last: 1, ..Design::default() });
    let best = |limits| fastest(&graph, &plan, &limits).stages_at_a_time;
    assert_eq!(best(limits(4, 4, 1000)), 2);
    assert_eq!(best(limits(4, 1, 1000)), 1);
    assert_eq!(best(limits(4, 4, 100)), 1);
}
