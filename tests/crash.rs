//! Runs killed with SIGKILL, resumed, and compared byte for byte with one that nobody interrupted.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tests::Random;

const AWARI: &str = env!("CARGO_BIN_EXE_awari");

/// The folders whose bytes depend on the manifest alone.
const FOLDERS: [&str; 4] = ["databases", "captures", "planes", "stats"];

struct Build {
    directory: tempfile::TempDir,
    stones: u32,
    method: &'static str,
}

impl Build {
    fn new(stones: u32) -> Build {
        Build::by("auto", stones)
    }

    fn by(method: &'static str, stones: u32) -> Build {
        let directory = tempfile::tempdir().unwrap();
        let manifest = format!(
            "[build]\nstones = \"0..{stones}\"\nmethod = \"{method}\"\nsnapshot = \"0 s\"\n[store]\ncodec = \"zstd\"\nkeep = \"all\"\n[check]\nverify = \"full\"\n"
        );
        fs::write(directory.path().join("manifest"), manifest).unwrap();
        Build { directory, stones, method }
    }

    fn run(&self) -> PathBuf {
        self.directory.path().join("run")
    }

    fn start(&self, threads: usize) -> Child {
        Command::new(AWARI)
            .arg("run")
            .arg(self.directory.path().join("manifest"))
            .arg("--dir")
            .arg(self.run())
            .args(["--threads", &threads.to_string(), "--progress", "json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
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

#[test]
fn threads_change_no_byte() {
    let one = Build::new(10).finish(1);
    for threads in [2, 3] {
        assert!(Build::new(10).finish(threads) == one, "{threads} threads");
    }
}

/// Each run is killed at its first event of a kind, when a stage has begun or is done and in the journal.
#[test]
fn killed_at_every_stage_boundary() {
    for (method, stages) in [("sweep", 16), ("counting", 16), ("two-bit", 37), ("one-bit", 37), ("one-bit-dual", 37)] {
        let kills = killed_at_boundaries(method);
        // A run that is killed when its first stage begins repeats it.
        assert!(kills >= stages, "{method}: {kills} kills");
    }
}

fn killed_at_boundaries(method: &'static str) -> u32 {
    let undisturbed = Build::by(method, 3).finish(2);
    let build = Build::by(method, 3);
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
fn killed_at_random_moments() {
    for method in ["sweep", "counting", "two-bit", "one-bit", "one-bit-dual"] {
        let stones = if method == "sweep" { 9 } else { 7 };
        killed(method, stones);
    }
}

fn killed(method: &'static str, stones: u32) {
    let undisturbed = Build::by(method, stones).finish(2);
    let mut random = Random::new(2);
    for _ in 0..2 {
        let build = Build::by(method, stones);
        for _ in 0..12 {
            let mut child = build.start(2);
            std::thread::sleep(Duration::from_millis(random.below(120)));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(build.finish(2) == undisturbed, "{method}");
    }
}
