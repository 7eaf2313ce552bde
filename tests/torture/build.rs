//! A build of a small manifest on a disk in memory, each run as a process of its own.

use disk::{Disk, MemoryDisk, is_leftover};
use pipeline::manifest::Manifest;
use pipeline::{Event, Observer, Orchestrator, PipelineError, RunOptions, StageName, Summary};
use stages::{Awari, Settings, schema};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The run directory of all builds.
pub(crate) const DIRECTORY: &str = "run";

/// The folders whose bytes depend on the manifest alone.
pub(crate) const FOLDERS: [&str; 4] = ["databases", "captures", "planes", "stats"];

/// A process about to build what a manifest says. What a run keeps in memory goes with it.
pub struct Build {
    awari: Awari,
    options: RunOptions,
}

/// What an otherwise empty manifest asks for, and how to run it.
///
/// # Panics
/// If that is no manifest.
pub(crate) fn asked(overrides: &[(&str, &str)]) -> (Settings, RunOptions) {
    let overrides: Vec<_> = overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let manifest = Manifest::parse("", "test", &schema(), &overrides);
    let manifest = manifest.unwrap_or_else(|mistakes| panic!("{overrides:?}: {mistakes:?}"));
    let settings = Settings::new(&manifest);
    let options = RunOptions {
        keep: settings.keep,
        snapshot_interval: settings.snapshot,
        threads: settings.threads,
        manifest: manifest.to_toml(),
        ..RunOptions::default()
    };
    (settings, options)
}

/// How a run ended, and what it did before.
pub struct Ended {
    /// The summary, the error, or the words of a panic.
    pub result: Result<Result<Summary, PipelineError>, String>,
    /// Stages that began.
    pub started: Vec<StageName>,
    /// Stages that got done, and whether they went on from a snapshot.
    pub done: Vec<(StageName, bool)>,
}

impl Build {
    /// A build of an otherwise empty manifest.
    ///
    /// # Panics
    /// If that is no manifest.
    pub fn new(overrides: &[(&str, &str)]) -> Build {
        let (settings, options) = asked(overrides);
        Build { awari: Awari::new(settings), options }
    }

    /// Runs it.
    ///
    /// # Errors
    /// As [`Orchestrator::run`].
    pub fn run(&self, disk: &dyn Disk) -> Result<Summary, PipelineError> {
        Orchestrator::new(disk, Path::new(DIRECTORY), &self.awari, self.options.clone()).run()
    }

    /// Runs it and tells what happened, panics included.
    pub fn run_watched(&self, disk: &dyn Disk) -> Ended {
        let diary = Diary::default();
        let orchestrator = Orchestrator::new(disk, Path::new(DIRECTORY), &self.awari, self.options.clone());
        let orchestrator = orchestrator.observer(&diary);
        let result = catch_unwind(AssertUnwindSafe(|| orchestrator.run())).map_err(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            text.unwrap_or("a panic without words").to_owned()
        });
        let Diary { started, done } = diary;
        let (started, done) = (started.into_inner(), done.into_inner());
        Ended {
            result,
            started: started.unwrap_or_else(PoisonError::into_inner),
            done: done.unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Whether all outputs of a stage have their final names.
    pub(crate) fn is_made(&self, stage: &str, disk: &MemoryDisk) -> bool {
        let graph = pipeline::Work::graph(&self.awari);
        let found = graph.stages().iter().find(|known| known.name.to_string() == stage);
        let paths = disk.paths();
        found.is_some_and(|stage| {
            stage.outputs.iter().all(|output| paths.contains(&Path::new(DIRECTORY).join(output.to_string())))
        })
    }
}

/// Writes down which stages began and which got done.
#[derive(Default)]
struct Diary {
    started: Mutex<Vec<StageName>>,
    done: Mutex<Vec<(StageName, bool)>>,
}

impl Observer for Diary {
    fn notice(&self, event: &Event) {
        match event {
            Event::StageStarted { stage, .. } => {
                self.started.lock().unwrap_or_else(PoisonError::into_inner).push(stage.clone());
            }
            Event::StageDone { stage, measured, .. } => {
                let resumed = measured.report.counters.get("resumed").is_some_and(|count| count.as_f64() > 0.0);
                self.done.lock().unwrap_or_else(PoisonError::into_inner).push((stage.clone(), resumed));
            }
            _ => {}
        }
    }

    fn interval(&self) -> Duration {
        // Nobody looks at the progress of a run of milliseconds.
        Duration::from_secs(3600)
    }
}

/// Databases, captures, planes and statistics that have a final name.
pub fn artifacts(disk: &MemoryDisk) -> BTreeMap<PathBuf, Vec<u8>> {
    let folders = FOLDERS.map(|folder| Path::new(DIRECTORY).join(folder));
    let inside = |path: &PathBuf| folders.iter().any(|folder| path.starts_with(folder)) && !is_leftover(path);
    let found = disk.paths().into_iter().filter(inside);
    found.filter_map(|path| disk.peek(&path).map(|bytes| (path, bytes))).collect()
}
