//! Builds with several stages at a time, killed, stopped and resumed, and compared byte for byte with builds
//! that run one after the other.

use crate::kills::KilledBuild;
use serde_json::Value;
use tests::directory::{ended_child, signal};

const METHODS: [(&str, u32); 5] = [("sweep", 8), ("counting", 8), ("two-bit", 5), ("one-bit", 5), ("one-bit-dual", 4)];

/// Returns the most stages that ran at a time, by the events of a run.
fn at_a_time(events: impl Iterator<Item = Value>) -> i32 {
    let steps = events.map(|event| match event["event"].as_str() {
        Some("stage-started") => 1,
        Some("stage-done" | "stage-stopped" | "stage-failed") => -1,
        _ => 0,
    });
    let mut running = 0;
    steps
        .map(|step| {
            running += step;
            running
        })
        .fold(0, i32::max)
}

#[test]
fn any_number_of_stages_makes_the_same_bytes() {
    for (method, stones) in METHODS {
        let expected = KilledBuild::by(method, stones).finish(2);
        for stages in [2, 4, 0] {
            let build = KilledBuild::by(method, stones);
            let (child, events) = build.place.start(&format!("--threads 2 --stages-at-a-time {stages}"));
            let most = at_a_time(events);
            ended_child(child).is(0);
            // 0 is the best number by the predicted schedule, of up to one more than threads.
            let most_allowed = if stages == 0 { 3 } else { stages };
            assert!(2 <= most && most <= most_allowed, "{method}: {most} of {stages} stages at a time");
            assert!(build.files() == expected, "{method}, {stages} stages at a time");
            // Nothing is left to do, one stage at a time either.
            build.place.awari("run m.toml").is(0).says(&["nothing to do"]);
        }
    }
}

/// Each run is killed at a later event than the one before, when several stages run.
#[test]
fn killed_with_several_stages() {
    for (method, stones) in [("sweep", 7), ("two-bit", 4)] {
        let expected = KilledBuild::by(method, stones).finish(2);
        let build = KilledBuild::by(method, stones);
        let mut kills = 0;
        for events_seen in (3..8).cycle() {
            let (mut child, mut events) = build.place.start("--threads 2 --stages-at-a-time 3");
            if events.by_ref().take(events_seen).count() < events_seen {
                ended_child(child).is(0);
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
        }
        assert!(kills >= 3, "{method}: {kills} kills");
        assert!(build.finish(1) == expected, "{method}");
    }
}

/// A signal stops all running stages, and the printed command resumes them.
#[test]
fn stopped_with_several_stages() {
    for (method, stones, stage) in [("sweep", 10, "sweep:9"), ("two-bit", 6, "process:5:3")] {
        let expected = KilledBuild::by(method, stones).finish(2);
        let build = KilledBuild::by(method, stones);
        let (child, mut events) = build.place.start("--threads 2 --stages-at-a-time 3");
        assert!(
            events.any(|event| event["event"] == "stage-started" && event["stage"] == stage),
            "{stage} never began"
        );
        signal(&child, "TERM");
        events.for_each(drop);
        let ended = ended_child(child).is(75).says(&["to resume:"]);
        let line = ended.err.lines().last().unwrap().trim();
        assert!(line.contains("--stages-at-a-time 3"), "{ended:?}");
        build.place.shell(line).is(0);
        assert!(build.finish(1) == expected, "{method}");
    }
}
