//! A directory to run the binary in, and how it ended there.

// Not every test that works in one needs all of it.
#![allow(dead_code)]

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const AWARI: &str = env!("CARGO_BIN_EXE_awari");

/// A directory to work in, with a manifest `m.toml` that builds into `run`.
pub(crate) struct Place(tempfile::TempDir);

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new(stones: u32) -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        place.manifest(&format!(
            "[build]\nstones = \"0..{stones}\"\nmemory = \"256 MiB\"\nthreads = 2\n\n\
             [check]\nverify = \"full\"\n\n[run]\ndir = \"run\"\n"
        ));
        place
    }

    /// With the databases built.
    pub(crate) fn built(stones: u32) -> Place {
        let place = Place::new(stones);
        place.awari(&["run", "m.toml"]).is(0);
        place
    }

    pub(crate) fn manifest(&self, text: &str) {
        fs::write(self.path("m.toml"), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(AWARI);
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null()).env_remove("AWARI_DIR");
        command
    }

    pub(crate) fn awari(&self, args: &[&str]) -> Ended {
        ended(self.command(args))
    }

    pub(crate) fn shell(&self, script: &str) -> Ended {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("AWARI", AWARI).current_dir(self.0.path());
        ended(command)
    }

    /// A run under way, whose events can be read.
    pub(crate) fn start(&self, args: &[&str]) -> (Child, impl Iterator<Item = Value> + use<>) {
        let mut command = self.command(&["run", "m.toml", "--progress", "json"]);
        let mut child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (child, lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()))
    }

    /// All files below a directory with their bytes.
    pub(crate) fn files(&self, directory: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        fn walk(directory: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => walk(&path, files),
                    false => {
                        files.insert(path.clone(), fs::read(&path).unwrap());
                    }
                }
            }
        }
        let mut files = BTreeMap::new();
        walk(&self.path(directory), &mut files);
        files
    }

    pub(crate) fn flip(&self, file: &str, byte: usize) {
        let mut bytes = fs::read(self.path(file)).unwrap();
        bytes[byte] ^= 1;
        fs::write(self.path(file), bytes).unwrap();
    }
}

pub(crate) fn ended(mut command: Command) -> Ended {
    Ended::of(command.output().unwrap())
}

/// How a child ended, with what it has printed and nobody has read yet.
pub(crate) fn ended_child(child: Child) -> Ended {
    Ended::of(child.wait_with_output().unwrap())
}

impl Ended {
    fn of(output: Output) -> Ended {
        Ended {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn is(self, code: i32) -> Ended {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// What was told a person holds all of these.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Ended {
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is not in {}", self.err);
        }
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}
