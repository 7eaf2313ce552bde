//! Small run directories with one hostile file.

use super::{seal_journal, seal_scores};
use crate::stored_scores::accepted;
use crate::torture::asked;
use disk::{Disk, Fault, MemoryDisk};
use pipeline::journal::{Journal, Record};
use pipeline::status::{Status, status};
use pipeline::{ArtifactName, Exit, Orchestrator, PipelineError, Plan, RunOptions, RunSummary, StageSpec, Work};
use planner::Settings;
use stages::{Awari, kinds};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use store::Scores;

const DIRECTORY: &str = "run";

/// The bit of the first byte that asks for right checksums.
const SEAL: u8 = 0x80;

/// Bound on runs: a damaged file may be read by several stages, and each run ends at the first of these.
const RUNS_MAX: usize = 6;

/// A small run directory, finished or interrupted, with the files of the finished build.
pub struct SmallBuild {
    name: String,
    settings: Settings,
    options: RunOptions,
    files: BTreeMap<PathBuf, Vec<u8>>,
    done: BTreeMap<PathBuf, Vec<u8>>,
}

impl SmallBuild {
    /// A finished build; a later override of a key replaces an earlier one.
    pub fn new(name: &str, overrides: &[(&str, &str)]) -> SmallBuild {
        let usual = [("build.stones", "0..3"), ("build.threads", "1"), ("store.keep", "all"), ("check.verify", "full")];
        let (settings, options) = asked(&[&usual, overrides].concat());
        let (files, done) = (BTreeMap::new(), BTreeMap::new());
        let mut build = SmallBuild { name: name.to_owned(), settings, options, files, done };
        let disk = MemoryDisk::new();
        build.run(&disk).expect("an undisturbed build is done");
        build.files = all_files(&disk);
        build.done = build.files.clone();
        build
    }

    /// A build that failed after it had written a snapshot.
    pub fn interrupted(method: &str, stones: &str) -> SmallBuild {
        let mut build =
            SmallBuild::new(method, &[("build.method", method), ("build.snapshot", "0 s"), ("build.stones", stones)]);
        let disk = MemoryDisk::new();
        build.run(&disk).expect("an undisturbed build is done");
        let snapshots = SmallBuild::path("snapshots");
        // Snapshots exist during a few operations of each stage.
        let (operations, step) = (disk.operations(), (disk.operations() / 60) as usize);
        let coarse = (0..operations).rev().step_by(step.max(1));
        for operation in coarse.chain((0..operations).rev()) {
            let disk = MemoryDisk::new();
            disk.fail_from(operation, Fault::Io);
            let _ = build.run(&disk);
            disk.fail_never();
            let files = all_files(&disk);
            let saved = files.keys().filter(|path| path.starts_with(&snapshots) && !is_temporary(path));
            // The fingerprint and what is saved.
            if saved.count() >= 2 && build.resumes(&disk) {
                build.files = files;
                build.name = format!("{method} killed");
                return build;
            }
        }
        panic!("no snapshot of {method} at any operation");
    }

    /// Whether a run resumes from a snapshot instead of ignoring it.
    fn resumes(&self, disk: &dyn Disk) -> bool {
        let summary = self.run(disk).expect("what was killed can go on");
        let counts = summary.ran.iter().filter_map(|ran| ran.measured.report.counters.get("resumed"));
        counts.map(|count| count.as_f64()).sum::<f64>() > 0.0
    }

    /// By the method sweep, packed, all files kept.
    pub fn sweep() -> &'static SmallBuild {
        static BUILD: OnceLock<SmallBuild> = OnceLock::new();
        BUILD.get_or_init(|| SmallBuild::new("sweep", &[("build.method", "sweep")]))
    }

    /// By the method two-bit, compressed, all files kept.
    pub fn two_bit() -> &'static SmallBuild {
        static BUILD: OnceLock<SmallBuild> = OnceLock::new();
        BUILD.get_or_init(|| {
            SmallBuild::new(
                "two-bit",
                &[("build.method", "two-bit"), ("store.codec", "zstd"), ("build.stones", "0..2")],
            )
        })
    }

    /// All builds that hostile files are put into.
    pub fn all() -> Vec<&'static SmallBuild> {
        static MORE: OnceLock<Vec<SmallBuild>> = OnceLock::new();
        let more = MORE.get_or_init(|| {
            let raw = SmallBuild::new("raw", &[("store.codec", "raw"), ("store.keep", "databases")]);
            let methods = ["sweep", "counting", "two-bit", "one-bit", "one-bit-dual"];
            [raw].into_iter().chain(methods.map(|method| SmallBuild::interrupted(method, "0..2"))).collect()
        });
        [SmallBuild::sweep(), SmallBuild::two_bit()].into_iter().chain(more).collect()
    }

    /// Its name in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A file of the run directory.
    pub fn path(name: &str) -> PathBuf {
        Path::new(DIRECTORY).join(name)
    }

    /// The files of the run directory.
    pub fn files(&self) -> &BTreeMap<PathBuf, Vec<u8>> {
        &self.files
    }

    /// Artifacts of the finished build.
    pub fn artifacts(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.done
            .iter()
            .filter(|(path, _)| is_artifact(path))
            .map(|(path, bytes)| (path.clone(), bytes.clone()))
            .collect()
    }

    /// A disk with the run directory.
    pub fn disk(&self) -> MemoryDisk {
        let disk = MemoryDisk::new();
        self.files.iter().for_each(|(path, bytes)| disk.put(path, bytes));
        disk
    }

    /// Runs it, as a process of its own.
    pub fn run(&self, disk: &dyn Disk) -> Result<RunSummary, PipelineError> {
        self.run_forced(disk, &[])
    }

    /// Runs it and these stages again.
    pub fn run_forced(&self, disk: &dyn Disk, stages: &[String]) -> Result<RunSummary, PipelineError> {
        let awari = Awari::new(self.settings.clone());
        let options = RunOptions { force: stages.to_vec(), ..self.options.clone() };
        Orchestrator::new(disk, Path::new(DIRECTORY), &awari, options).run()
    }

    /// The stages that read an artifact.
    pub fn readers(&self, path: &Path) -> Vec<String> {
        let awari = Awari::new(self.settings.clone());
        let stages = awari.graph().stages().iter();
        let reads = |stage: &&StageSpec| stage.inputs.iter().any(|input| input.below(Path::new(DIRECTORY)) == *path);
        stages.filter(reads).map(|stage| stage.name.to_string()).collect()
    }

    /// Plans a run.
    pub fn plan(&self, disk: &dyn Disk) -> Result<Plan, PipelineError> {
        let awari = Awari::new(self.settings.clone());
        Orchestrator::new(disk, Path::new(DIRECTORY), &awari, self.options.clone()).plan()
    }

    /// Reads the status.
    pub fn status(&self, disk: &dyn Disk) -> Result<Status, PipelineError> {
        status(disk, Path::new(DIRECTORY), Some(&Awari::new(self.settings.clone())), self.options.keep)
    }

    /// Runs until the build is done. Returns the number of runs that ended at damage, which the next run repairs.
    ///
    /// # Panics
    /// If a run fails for any other reason, or too often.
    pub fn run_until_done(&self, disk: &dyn Disk) -> usize {
        for refusals in 0..RUNS_MAX {
            match self.run(disk) {
                Ok(_) => return refusals,
                Err(error) => assert_eq!(error.exit(), Exit::Integrity, "{}: {error}", self.name),
            }
        }
        panic!("{}: {RUNS_MAX} runs, and it is not done", self.name);
    }

    /// Checks every block of every database and records damage, as `awari verify` does. Returns the number of
    /// damaged files.
    ///
    /// # Panics
    /// If the journal cannot be written.
    pub fn verify(&self, disk: &MemoryDisk) -> usize {
        let mut journal = None;
        let databases = self.artifacts().into_keys().filter(|path| path.starts_with(SmallBuild::path("databases")));
        databases
            .filter(|path| {
                let Some(what) = damage(disk, path) else { return false };
                let name = path.strip_prefix(DIRECTORY).expect("it lies there").to_string_lossy().into_owned();
                let artifact = ArtifactName::new(name).expect("the name of an artifact");
                let journal = journal.get_or_insert_with(|| {
                    Journal::open(disk, &SmallBuild::path("journal")).expect("it can be written")
                });
                journal.append(Record::DamageFound { artifact, what, silent: true }).expect("it can be written");
                true
            })
            .count()
    }

    /// Returns the artifacts that differ from the finished build, and whether their checksums reveal it.
    pub fn differences(&self, disk: &MemoryDisk) -> BTreeMap<PathBuf, bool> {
        let expected = self.artifacts();
        let differs = |(path, bytes): (PathBuf, Vec<u8>)| {
            let found = disk.peek(&path);
            (found.as_ref() != Some(&bytes)).then(|| {
                let is_damaged = damage(disk, &path).is_some();
                (path, is_damaged)
            })
        };
        expected.into_iter().filter_map(differs).collect()
    }
}

/// Checks a file of scores. Returns the description of its damage.
pub fn damage(disk: &MemoryDisk, path: &Path) -> Option<String> {
    let file = match Scores::open(disk, path) {
        Ok(file) => file,
        Err(error) => return Some(error.to_string()),
    };
    check::check_integrity(&accepted(file)).err().map(|error| error.to_string())
}

fn all_files(disk: &MemoryDisk) -> BTreeMap<PathBuf, Vec<u8>> {
    let file = |path: PathBuf| disk.peek(&path).map(|bytes| (path, bytes));
    disk.paths().into_iter().filter_map(file).collect()
}

pub(super) fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

fn is_artifact(path: &Path) -> bool {
    kinds::folders().into_iter().any(|folder| path.starts_with(SmallBuild::path(folder))) && !is_temporary(path)
}

/// Replaces a file of a run directory. The first bytes choose the build, the file, and whether checksums are
/// put right. A run builds the same files, or names the damage for the next run to repair. With right
/// checksums, runs terminate.
pub fn run(bytes: &[u8]) {
    let Some((&[choice, file], content)) = bytes.split_first_chunk() else { return };
    let builds = SmallBuild::all();
    let build = builds[usize::from(choice & !SEAL) % builds.len()];
    let (path, _) = build.files.iter().nth(usize::from(file) % build.files.len()).expect("it is one of them");
    let disk = build.disk();
    let sealed = choice & SEAL != 0;
    let mut content = content.to_vec();
    if sealed && *path == SmallBuild::path("journal") {
        seal_journal(&mut content);
    } else if sealed {
        seal_scores(&mut content);
    }
    disk.put(path, &content);
    if sealed {
        build.run_until_done(&disk);
        return;
    }
    build.run_until_done(&disk);
    if build.verify(&disk) > 0 {
        build.run_until_done(&disk);
    }
    for (different, is_damaged) in build.differences(&disk) {
        // Damage in files that no stage reads is not found, and does no harm.
        let is_intermediate = !different.starts_with(SmallBuild::path("databases"));
        assert!(is_intermediate && is_damaged, "{}: {}", build.name, different.display());
    }
}

pub(super) fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for (choice, build) in SmallBuild::all().into_iter().enumerate() {
        for (number, (path, bytes)) in build.files.iter().enumerate() {
            let is_told = |name: &str| *path == SmallBuild::path(name);
            // These name the machine and the process.
            if is_told("journal") || is_told("lock") || bytes.len() > 2000 {
                continue;
            }
            let name = format!("{} {}", build.name, path.display()).replace(['/', '.', ' '], "-");
            let choice = choice as u8 | if number % 2 == 0 { SEAL } else { 0 };
            let kept = !is_told("manifest.toml");
            let content = if kept { &bytes[..] } else { b"[game]\n" };
            seeds.push(("run", name, [&[choice, number as u8], content].concat()));
        }
    }
    seeds
}
