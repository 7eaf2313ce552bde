//! Runs killed with SIGKILL or stopped by signals, resumed, and compared byte for byte with an uninterrupted one.

use planner::Method;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;
use tests::awari;
use tests::directory::{CommandResult, TestDirectory, ended_child, signal};
use tests::torture::{Kills, Storms};

pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

pub(crate) struct KilledBuild {
    pub(crate) place: TestDirectory,
    stones: u32,
    method: &'static str,
}

impl KilledBuild {
    pub(crate) fn by(method: &'static str, stones: u32) -> KilledBuild {
        let place = TestDirectory::new(stones);
        place.manifest(&format!(
            "[build]\nstones = \"0..{stones}\"\nmethod = \"{method}\"\nsnapshot = \"0 s\"\n\
             [store]\ncodec = \"zstd\"\nkeep = \"all\"\n[check]\nverify = \"full\"\n[run]\ndir = \"run\"\n"
        ));
        KilledBuild { place, stones, method }
    }

    pub(crate) fn finish(&self, threads: usize) -> Files {
        self.place.awari(&format!("run m.toml --threads {threads}")).is(0);
        let files = self.files();
        let planes = match self.method {
            // Four a bound, and the seeds.
            "two-bit" | "one-bit" | "one-bit-dual" => (1..=self.stones).map(|stones| 4 * stones + 2).sum(),
            _ => 0,
        };
        assert_eq!(files.len() as u32, 3 * (self.stones + 1) + planes, "databases, captures, statistics, planes");
        files
    }

    /// Files by their paths below the run directory.
    pub(crate) fn files(&self) -> Files {
        let run = self.place.path("run");
        let all = stages::kinds::folders().into_iter().flat_map(|folder| self.place.files(&format!("run/{folder}")));
        all.map(|(path, bytes)| (path.strip_prefix(&run).unwrap().to_owned(), bytes)).collect()
    }
}

/// A suspended run loses its lock, and continues after another run has used the directory.
#[test]
fn a_suspended_run_that_lost_its_lock_ends() {
    const LOCKED: i32 = 13;
    let build = KilledBuild::by("auto", 10);
    let (child, mut events) = build.place.start("--threads 1");
    assert!(events.any(|event| event["event"] == "stage-started" && event["stage"] == "sweep:7"), "it ended early");
    signal(&child, "STOP");
    fs::remove_file(build.place.path("run/lock")).unwrap();
    let files_of_other = build.finish(2);
    let journal = fs::read(build.place.path("run/journal")).unwrap();
    signal(&child, "CONT");
    events.for_each(drop);
    ended_child(child).is(LOCKED).says(&["was written by run 2, process "]);
    assert!(build.files() == files_of_other);
    assert!(fs::read(build.place.path("run/journal")).unwrap() == journal);
    assert!(files_of_other == KilledBuild::by("auto", 10).finish(1));
}

#[test]
fn killed_books_go_on() {
    kill_books(8);
}

#[test]
#[ignore = "slow tier: two hundred kills"]
fn killed_books_go_on_200_times() {
    kill_books(200);
}

/// Kills a build of a book at evenly spread moments, until it has been killed a number of times. Its reports,
/// which hold digests of the book, are those of an undisturbed build.
fn kill_books(kills: u32) {
    const BOOK: &str = "[build]\nstones = \"0..7\"\n[book]\npositions = 1200\nsearch = \"nodes=500\"\nlook-ahead = 3\n";
    let undisturbed = TestDirectory::new(7);
    undisturbed.manifest(&format!("{BOOK}[run]\ndir = \"run\"\n"));
    undisturbed.awari("run m.toml --threads 1").is(0);
    let reports = |place: &TestDirectory| -> Vec<Vec<u8>> {
        ["1000", "1200"].map(|name| fs::read(place.path(&format!("run/books/{name}.json"))).unwrap()).into()
    };
    let expected = reports(&undisturbed);
    let killed = TestDirectory::new(7);
    killed.manifest(&format!("{BOOK}[run]\ndir = \"run\"\n"));
    killed.awari("run m.toml --threads 1 --until stats:7").is(0);
    let mut done = 0;
    let mut delay = 0;
    while done < kills {
        let (mut child, events) = killed.start("--threads 2");
        // Moments of the start, of a stage, and of the journal.
        delay = (delay + 37) % 400;
        std::thread::sleep(Duration::from_millis(delay));
        if child.try_wait().unwrap().is_some() {
            drop(events);
            assert!(reports(&killed) == expected, "after {done} kills");
            fs::remove_dir_all(killed.path("run/books")).unwrap();
            continue;
        }
        signal(&child, "KILL");
        events.for_each(drop);
        child.wait().unwrap();
        done += 1;
    }
    killed.awari("run m.toml --threads 1").is(0);
    assert!(reports(&killed) == expected);
    killed.awari("book verify --dir run").is(0);
}

#[test]
fn killed_at_every_stage_boundary() {
    ["sweep", "counting"].into_iter().for_each(|method| killed_at_boundaries(method, 16));
}

#[test]
#[ignore = "slow tier: more than a hundred processes"]
fn killed_at_every_stage_boundary_of_a_bound() {
    ["two-bit", "one-bit", "one-bit-dual"].into_iter().for_each(|method| killed_at_boundaries(method, 37));
}

/// Each run is killed at its first event of a kind, when a stage has begun or is done and in the journal. A run that is
/// killed when its first stage begins repeats it, so there are at least as many kills as stages.
fn killed_at_boundaries(method: &'static str, stages: u32) {
    let undisturbed = KilledBuild::by(method, 3).finish(2);
    let build = KilledBuild::by(method, 3);
    let mut kills = 0;
    for kind in ["stage-started", "stage-done"].into_iter().cycle() {
        let (mut child, mut events) = build.place.start("--threads 2");
        if !events.any(|event| event["event"] == kind) {
            ended_child(child).is(0);
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(build.finish(2) == undisturbed, "{method}");
    assert!(kills >= stages, "{method}: {kills} kills");
}

#[test]
fn killed_at_some_random_moments() {
    killed_at_random_moments(10);
}

#[test]
#[ignore = "slow tier: dozens of killed builds"]
fn killed_at_many_random_moments() {
    killed_at_random_moments(50);
}

/// A part of what `torture` does by the hundred.
fn killed_at_random_moments(kills: u64) {
    let runs = Kills {
        awari: awari().into(),
        seed: 1,
        kills,
        builds: 2,
        methods: Method::ALL.to_vec(),
        stones: |method| if method.has_bounds() { 4 } else { 7 },
        only: None,
    };
    let report = runs.run().unwrap();
    assert!(report.wrong.is_empty(), "{}", report.wrong.join("\n"));
    assert_eq!(report.total(), kills);
    assert!(kills < 50 || report.kills.len() == Method::ALL.len(), "{:?}", report.kills);
}

/// A part of what `torture` does by the hundred.
#[test]
#[ignore = "slow tier: hundreds of processes"]
fn storms_of_commands_in_damaged_directories() {
    let storms = Storms {
        awari: awari().into(),
        seed: 1,
        storms: 10,
        threads: 2,
        time_max: Duration::MAX,
        methods: Method::ALL.to_vec(),
        only: None,
    };
    let report = storms.run().unwrap();
    assert!(report.wrong.is_empty(), "{}", report.wrong.join("\n"));
    assert_eq!(report.storms, 10);
}

/// Starts a build, acts on it when a stage begins, and returns how it ended.
fn stopped(build: &KilledBuild, stage: &str, then: impl Fn(&Child)) -> CommandResult {
    let (child, mut events) = build.place.start("--threads 1");
    assert!(events.any(|event| event["event"] == "stage-started" && event["stage"] == stage), "{stage} never began");
    then(&child);
    // So that the child does not block on its output.
    events.for_each(drop);
    ended_child(child)
}

/// The command that a stopped run prints resumes it, and builds the same bytes.
#[test]
fn stopped_within_a_stage() {
    let stages = [("sweep", 9, "sweep:9"), ("counting", 8, "counting:8"), ("one-bit-dual", 5, "process:5:3")];
    for ((method, stones, stage), name) in stages.into_iter().zip(["TERM", "USR1", "INT"]) {
        let undisturbed = KilledBuild::by(method, stones).finish(2);
        let build = KilledBuild::by(method, stones);
        let ended = stopped(&build, stage, |child| signal(child, name)).is(75).says(&["to resume:"]);
        let line = ended.err.lines().last().unwrap().trim();
        assert!(line.contains(" run "), "{ended:?}");
        build.place.shell(line).is(0);
        assert!(build.finish(2) == undisturbed, "{method}, SIG{name}");
    }
}

/// The second signal may arrive while the first is being handled.
#[test]
fn the_second_signal_loses_no_more_than_a_kill() {
    for (method, stones, stage) in [("sweep", 9, "sweep:6"), ("two-bit", 5, "process:4:2")] {
        let undisturbed = KilledBuild::by(method, stones).finish(2);
        let build = KilledBuild::by(method, stones);
        let ended = stopped(&build, stage, |child| {
            // Suspended, the process receives both signals at once on any machine.
            for name in ["STOP", "INT", "TERM", "CONT"] {
                signal(child, name);
            }
        });
        ended.is(130);
        assert!(build.finish(2) == undisturbed, "{method}");
    }
}
