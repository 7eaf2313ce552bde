//! The stage `evaluation` killed, without power, and on a failing or full disk: the next run makes the same bytes.

use disk::{Fault, MemoryDisk, Operation, OperationSet, PlannedFault, is_leftover};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use tests::directory::{TestDirectory, signal};
use tests::torture::{DisturbedBuild, artifacts};

const DATABASES: [(&str, &str); 3] = [("build.stones", "0..6"), ("build.threads", "1"), ("check.verify", "none")];
const FIT: [(&str, &str); 2] = [("evaluation.games", "90"), ("evaluation.rounds", "1")];

/// A disk with finished databases, a build that adds an evaluation, the evaluation, and the operations that this takes.
struct DisturbedFit {
    databases: Vec<(PathBuf, Vec<u8>)>,
    build: DisturbedBuild,
    expected: BTreeMap<PathBuf, Vec<u8>>,
    operations: u64,
}

impl DisturbedFit {
    fn new() -> DisturbedFit {
        let disk = MemoryDisk::new();
        DisturbedBuild::new(&DATABASES).run(&disk).unwrap();
        let databases = disk.paths().into_iter().map(|path| (path.clone(), disk.peek(&path).unwrap())).collect();
        let build = DisturbedBuild::new(&[&DATABASES[..], &FIT].concat());
        let mut fit = DisturbedFit { databases, build, expected: BTreeMap::new(), operations: 0 };
        let disk = fit.disk();
        let before = disk.operations();
        let summary = fit.build.run(&disk).unwrap();
        assert_eq!(summary.ran.iter().map(|ran| ran.stage.kind()).collect::<Vec<_>>(), ["evaluation"]);
        (fit.expected, fit.operations) = (evaluation(&disk), disk.operations() - before);
        assert_eq!(fit.expected.len(), 2, "{:?}", fit.expected.keys());
        fit
    }

    fn disk(&self) -> MemoryDisk {
        let disk = MemoryDisk::new();
        self.databases.iter().for_each(|(path, bytes)| disk.put(path, bytes));
        disk
    }

    /// Asserts that a run without faults makes the evaluation and leaves nothing to do, and that the
    /// databases are whole.
    fn assert_made(&self, disk: &MemoryDisk, what: &str) {
        self.build.run(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(evaluation(disk) == self.expected, "{what}: other bytes");
        let mut whole = artifacts(&self.disk());
        whole.extend(self.expected.clone());
        assert!(artifacts(disk) == whole, "{what}: other databases");
        assert!(self.build.run(disk).unwrap().ran.is_empty(), "{what}: a stage runs again");
    }

    /// Dies in every `step`-th operation, with writes lost or not.
    fn die_at_operations(&self, step: usize) {
        let mut done = 0;
        for (case, operation) in (0..self.operations).step_by(step).enumerate() {
            let disk = self.disk();
            let before = disk.operations();
            disk.die_at(before + operation);
            let died = self.build.run(&disk);
            assert!(died.is_err(), "operation {operation} of {}", self.operations);
            match case % 3 {
                0 => disk.kill(),
                _ => disk.crash_anyhow(case as u64),
            }
            // A file under its final name is whole.
            let found = evaluation(&disk);
            done += u64::from(found == self.expected);
            let is_whole = |(path, bytes): (&PathBuf, &Vec<u8>)| self.expected[path] == *bytes;
            assert!(found.iter().all(is_whole), "operation {operation}: a part of a file");
            self.assert_made(&disk, &format!("dead in operation {operation}"));
        }
        assert!(done < self.operations / step as u64 / 2, "{done} of {}: most faults came too late", self.operations);
    }
}

/// The files of the evaluation.
fn evaluation(disk: &MemoryDisk) -> BTreeMap<PathBuf, Vec<u8>> {
    let inside = |path: &PathBuf| path.starts_with(Path::new("run/evaluation")) && !is_leftover(path);
    let found = disk.paths().into_iter().filter(inside);
    found.filter_map(|path| disk.peek(&path).map(|bytes| (path, bytes))).collect()
}

#[test]
fn an_evaluation_survives_some_deaths() {
    let fit = DisturbedFit::new();
    fit.die_at_operations((fit.operations / 12) as usize);
}

#[test]
#[ignore = "slow tier: a fit for every sixth operation"]
fn an_evaluation_survives_many_deaths() {
    DisturbedFit::new().die_at_operations(6);
}

/// Each operation that changes a file of the evaluation fails once. The error names the file, and the next
/// run mends it.
#[test]
fn an_evaluation_names_what_fails() {
    let fit = DisturbedFit::new();
    let mut failures = BTreeMap::new();
    for (operation, fault) in [
        (Operation::Create, Fault::Io),
        (Operation::Reserve, Fault::NoSpace),
        (Operation::Write, Fault::Io),
        (Operation::Write, Fault::NoSpace),
        (Operation::Sync, Fault::Io),
        (Operation::Rename, Fault::Io),
    ] {
        for first in 0.. {
            let disk = fit.disk();
            disk.fail(PlannedFault { among: OperationSet::Below(operation, "evaluation"), first, count: 1, fault });
            let run = fit.build.run(&disk);
            if disk.injected_faults().is_empty() {
                run.unwrap();
                break;
            }
            let what = format!("{operation} {first}, {fault:?}");
            let error = run.unwrap_err();
            assert_eq!(error.exit(), pipeline::Exit::StageFailed, "{what}: {error}");
            assert!(error.to_string().contains("run/evaluation"), "{what}: {error}");
            disk.fail_never();
            fit.assert_made(&disk, &what);
            *failures.entry(operation.to_string()).or_insert(0) += 1;
        }
    }
    assert!(failures["write"] >= 4, "two files, two faults: {failures:?}");
    println!("{failures:?}");
}

#[test]
fn killed_evaluations_are_made_again() {
    kill_evaluations(3);
}

#[test]
#[ignore = "slow tier: dozens of killed processes"]
fn killed_evaluations_are_made_again_15_times() {
    kill_evaluations(15);
}

/// Kills processes at spread moments after the stage has begun, until that many were killed.
fn kill_evaluations(kills: u32) {
    let manifest = "[build]\nstones = \"0..7\"\n[evaluation]\ngames = 300\nrounds = 2\n[run]\ndir = \"run\"\n";
    let built = || {
        let place = TestDirectory::new(7);
        place.manifest(manifest);
        place.awari("run m.toml --threads 1 --until stats:7").is(0);
        place
    };
    let (undisturbed, killed) = (built(), built());
    undisturbed.awari("run m.toml --threads 1").is(0);
    let expected = undisturbed.files("run/evaluation");
    let mut delay = 0;
    let mut done = 0;
    while done < kills {
        let (mut child, mut events) = killed.start("--threads 2");
        if !events.any(|event| event["event"] == "stage-started" && event["stage"] == "evaluation:7") {
            // The kill before came after the end of the stage.
            assert!(child.wait().unwrap().success());
            assert!(killed.files("run/evaluation").values().eq(expected.values()), "after {done} kills");
            fs::remove_dir_all(killed.path("run/evaluation")).unwrap();
            continue;
        }
        delay = (delay + 97) % 700;
        thread::sleep(Duration::from_millis(delay));
        let has_ended = child.try_wait().unwrap().is_some();
        if !has_ended {
            signal(&child, "KILL");
        }
        events.for_each(drop);
        child.wait().unwrap();
        done += u32::from(!has_ended);
        if !killed.path("run/evaluation").exists() {
            continue;
        }
        let found = killed.files("run/evaluation");
        let is_whole = |(path, bytes): (&PathBuf, &Vec<u8>)| {
            let same = undisturbed.path(&format!("run/evaluation/{}", path.file_name().unwrap().to_str().unwrap()));
            is_leftover(path) || expected[&same] == *bytes
        };
        assert!(found.iter().all(is_whole), "after {done} kills");
        if has_ended {
            fs::remove_dir_all(killed.path("run/evaluation")).unwrap();
        }
    }
    killed.awari("run m.toml --threads 1").is(0);
    assert!(killed.files("run/evaluation").values().eq(expected.values()), "other bytes after {done} kills");
}
