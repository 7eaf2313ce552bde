//! Runs killed with SIGKILL or stopped by signals, resumed, and compared byte for byte with an uninterrupted one.

use planner::Method;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tests::awari;
use tests::torture::{Kills, Storms};

/// The folders whose bytes depend on the manifest alone.
const FOLDERS: [&str; 4] = ["databases", "captures", "planes", "stats"];

struct KilledBuild {
    directory: tempfile::TempDir,
    stones: u32,
    method: &'static str,
}

impl KilledBuild {
    fn new(stones: u32) -> KilledBuild {
        KilledBuild::by("auto", stones)
    }

    fn by(method: &'static str, stones: u32) -> KilledBuild {
        let directory = tempfile::tempdir().unwrap();
        let manifest = format!(
            "[build]\nstones = \"0..{stones}\"\nmethod = \"{method}\"\nsnapshot = \"0 s\"\n[store]\ncodec = \"zstd\"\nkeep = \"all\"\n[check]\nverify = \"full\"\n"
        );
        fs::write(directory.path().join("manifest"), manifest).unwrap();
        KilledBuild { directory, stones, method }
    }

    fn run(&self) -> PathBuf {
        self.directory.path().join("run")
    }

    fn command(&self, threads: usize) -> Command {
        let mut command = Command::new(awari());
        command.arg("run").arg(self.directory.path().join("manifest")).arg("--dir").arg(self.run());
        command.args(["--threads", &threads.to_string(), "--progress", "json"]).stdout(Stdio::piped());
        command
    }

    fn start(&self, threads: usize) -> Child {
        self.command(threads).stderr(Stdio::null()).spawn().unwrap()
    }

    fn finish(&self, threads: usize) -> BTreeMap<PathBuf, Vec<u8>> {
        let output = self.start(threads).wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let files = files(&self.run());
        let planes = match self.method {
            // Four a bound, and the seeds.
            "two-bit" | "one-bit" | "one-bit-dual" => (1..=self.stones).map(|stones| 4 * stones + 2).sum(),
            _ => 0,
        };
        assert_eq!(files.len() as u32, 3 * (self.stones + 1) + planes, "databases, captures, statistics, planes");
        files
    }
}

fn files(run: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for folder in FOLDERS {
        let mut left = vec![run.join(folder)];
        while let Some(path) = left.pop() {
            match fs::read_dir(&path) {
                Ok(entries) => left.extend(entries.map(|entry| entry.unwrap().path())),
                Err(_) if path.is_file() => {
                    files.insert(path.strip_prefix(run).unwrap().to_path_buf(), fs::read(&path).unwrap());
                }
                Err(_) => {}
            }
        }
    }
    files
}

/// A suspended run loses its lock, and continues after another run has used the directory.
#[test]
fn a_suspended_run_that_lost_its_lock_ends() {
    const LOCKED: i32 = 13;
    let signal = |process: u32, name: &str| {
        assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
    };
    let build = KilledBuild::new(10);
    let mut child = build.command(1).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("stage-started") && line.contains("sweep:7")), "the run ended early");
    signal(child.id(), "-STOP");
    fs::remove_file(build.run().join("lock")).unwrap();
    let files_of_other = build.finish(2);
    let journal = fs::read(build.run().join("journal")).unwrap();
    signal(child.id(), "-CONT");
    lines.for_each(drop);
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(LOCKED), "{told}");
    assert!(told.contains("was written by run 2, process "), "{told}");
    assert!(files(&build.run()) == files_of_other);
    assert!(fs::read(build.run().join("journal")).unwrap() == journal);
    assert!(files_of_other == KilledBuild::new(10).finish(1));
}

#[test]
fn bytes_do_not_depend_on_threads() {
    let one = KilledBuild::new(10).finish(1);
    for threads in [2, 3] {
        assert!(KilledBuild::new(10).finish(threads) == one, "{threads} threads");
    }
}

/// Methods, with the number of stages of a small build.
const FEW_STAGES: [(&str, u32); 2] = [("sweep", 16), ("counting", 16)];
const MANY_STAGES: [(&str, u32); 3] = [("two-bit", 37), ("one-bit", 37), ("one-bit-dual", 37)];

#[test]
fn killed_at_every_stage_boundary() {
    killed_at_the_boundaries_of(&FEW_STAGES);
}

#[test]
#[ignore = "slow tier: more than a hundred processes"]
fn killed_at_every_stage_boundary_of_a_bound() {
    killed_at_the_boundaries_of(&MANY_STAGES);
}

/// Each run is killed at its first event of a kind, when a stage has begun or is done and in the journal.
fn killed_at_the_boundaries_of(methods: &[(&'static str, u32)]) {
    for &(method, stages) in methods {
        let kills = killed_at_boundaries(method);
        // A run that is killed when its first stage begins repeats it.
        assert!(kills >= stages, "{method}: {kills} kills");
    }
}

fn killed_at_boundaries(method: &'static str) -> u32 {
    let undisturbed = KilledBuild::by(method, 3).finish(2);
    let build = KilledBuild::by(method, 3);
    let mut kills = 0;
    for event in ["stage-started", "stage-done"].into_iter().cycle() {
        let mut child = build.start(2);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = lines.map_while(Result::ok).filter(|line| line.contains(event));
        if seen.next().is_none() {
            assert!(child.wait().unwrap().success());
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(build.finish(2) == undisturbed, "{method}");
    kills
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

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Starts a build, acts on it when a stage begins, and returns its exit code and its messages.
fn stopped(build: &KilledBuild, stage: &str, then: impl Fn(&Child)) -> (Option<i32>, String) {
    let mut child = build.command(1).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let started = format!("\"event\":\"stage-started\",\"stage\":\"{stage}\"");
    let mut lines = lines.map_while(Result::ok);
    assert!(lines.any(|line| line.contains(&started)), "{stage} never began");
    then(&child);
    // So that the child does not block on its output.
    lines.for_each(drop);
    let ended = child.wait_with_output().unwrap();
    (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
}

/// The command that a stopped run prints resumes it, and builds the same bytes.
#[test]
fn stopped_within_a_stage() {
    let stages = [("sweep", 9, "sweep:9"), ("counting", 8, "counting:8"), ("one-bit-dual", 5, "process:5:3")];
    for ((method, stones, stage), name) in stages.into_iter().zip(["TERM", "USR1", "INT"]) {
        let undisturbed = KilledBuild::by(method, stones).finish(2);
        let build = KilledBuild::by(method, stones);
        let (code, told) = stopped(&build, stage, |child| signal(child, name));
        assert_eq!(code, Some(75), "{method}, SIG{name}: {told}");
        let line = told.lines().last().unwrap().trim();
        assert!(told.contains("to resume:") && line.contains(" run "), "{told}");
        let resumed = Command::new("sh").args(["-c", line]).output().unwrap();
        assert!(resumed.status.success(), "{line}: {resumed:?}");
        assert!(build.finish(2) == undisturbed, "{method}, SIG{name}");
    }
}

/// The second signal may arrive while the first is being handled.
#[test]
fn the_second_signal_loses_no_more_than_a_kill() {
    for (method, stones, stage) in [("sweep", 9, "sweep:6"), ("two-bit", 5, "process:4:2")] {
        let undisturbed = KilledBuild::by(method, stones).finish(2);
        let build = KilledBuild::by(method, stones);
        let (code, told) = stopped(&build, stage, |child| {
            // Suspended, the process receives both signals at once on any machine.
            for name in ["STOP", "INT", "TERM", "CONT"] {
                signal(child, name);
            }
        });
        assert_eq!(code, Some(130), "{method}: {told}");
        assert!(build.finish(2) == undisturbed, "{method}");
    }
}
