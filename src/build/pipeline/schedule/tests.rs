//! The decision as a table, and the paths of a graph.

use super::*;
use crate::toy::Design;

const MEMORY: u64 = 100;
const DISK: u64 = 1000;

fn ready(position: usize, path_seconds: f64, memory_bytes: u64) -> ReadyStage {
    ReadyStage { position, path_seconds, needs: Reservation { memory_bytes, disk_bytes: 10 } }
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
