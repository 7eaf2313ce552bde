//! A sweep that goes on with more threads, once another stage has ended, finds the same scores.

use disk::{Disk, DiskError, MemoryDisk};
use pipeline::manifest::Manifest;
use pipeline::{
    ArtifactName, ArtifactSpec, Graph, Inspection, Orchestrator, RunOptions, StageContext, StageError, StageReport,
    StageSpec, Work,
};
use planner::{Settings, schema};
use stages::Awari;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The stage that grows, and the stage beside it, whose end gives it a thread.
const GROWS: &str = "sweep:13";
const BESIDE: &str = "stats:3";

/// Stages of which one begins when all others but one have ended, and that one ends when the first is at work.
struct Staggered {
    awari: Awari,
    ended: AtomicUsize,
    is_at_work: AtomicBool,
    has_grown: AtomicBool,
}

impl Staggered {
    fn new() -> Staggered {
        let text = "[game]\npositions = \"all\"\n[build]\nstones = \"0..13\"\nmethod = \"sweep\"\n[check]\nverify = \
                    \"none\"\n";
        let awari = Awari::new(Settings::new(&Manifest::parse(text, "test", &schema(), &[]).unwrap()));
        Staggered {
            awari,
            ended: AtomicUsize::new(0),
            is_at_work: AtomicBool::new(false),
            has_grown: AtomicBool::new(false),
        }
    }

    /// Whether the stages before the one that grows have ended, but for the one beside it.
    fn is_almost_alone(&self) -> bool {
        let stages = self.awari.graph().stages();
        let before = stages.iter().take_while(|stage| stage.name.to_string() != GROWS).count();
        self.ended.load(Ordering::SeqCst) >= before - 1
    }
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::sleep(Duration::from_micros(100));
    }
}

impl Work for Staggered {
    fn graph(&self) -> &Graph {
        self.awari.graph()
    }

    fn inspect(&self, disk: &dyn Disk, path: &Path, artifact: &ArtifactSpec) -> Result<Inspection, DiskError> {
        self.awari.inspect(disk, path, artifact)
    }

    fn folders(&self) -> Vec<PathBuf> {
        self.awari.folders()
    }

    fn is_name(&self, name: &ArtifactName) -> bool {
        self.awari.is_name(name)
    }

    fn is_ours(&self, disk: &dyn Disk, path: &Path) -> bool {
        self.awari.is_ours(disk, path)
    }

    fn run(&self, stage: &StageSpec, context: &StageContext<'_>) -> Result<StageReport, StageError> {
        let done = match &*stage.name.to_string() {
            GROWS => {
                wait_until(|| self.is_almost_alone());
                thread::scope(|scope| {
                    scope.spawn(|| {
                        let is_at_work = || self.is_at_work.load(Ordering::SeqCst);
                        wait_until(|| is_at_work() || context.progress().read(Duration::ZERO).done > 0);
                        self.is_at_work.store(true, Ordering::SeqCst);
                    });
                    let report = self.awari.run(stage, context);
                    // Also if it failed.
                    self.is_at_work.store(true, Ordering::SeqCst);
                    let report = report?;
                    let threads = report.counters.get("threads at the end").map(|threads| threads.as_f64());
                    assert!(threads.is_none_or(|threads| threads == 2.0));
                    self.has_grown.store(threads.is_some(), Ordering::SeqCst);
                    Ok(report)
                })
            }
            BESIDE => {
                wait_until(|| self.is_at_work.load(Ordering::SeqCst));
                self.awari.run(stage, context)
            }
            _ => self.awari.run(stage, context),
        };
        self.ended.fetch_add(1, Ordering::SeqCst);
        done
    }
}

#[test]
fn a_sweep_that_goes_on_with_more_threads_finds_the_same_scores() {
    let run = |work: &dyn Work, stages_at_a_time| {
        let disk = MemoryDisk::new();
        let options = RunOptions { stages_at_a_time, threads: 2, ..RunOptions::default() };
        Orchestrator::new(&disk, Path::new("run"), work, options).run().unwrap();
        disk.read(Path::new("run/databases/13.awari"), 1 << 30).unwrap()
    };
    let expected = run(&Staggered::new().awari, 1);
    // Where the machine is busy, the passes may be over before the other stage has ended.
    let has_grown = (0..20).any(|_| {
        let staggered = Staggered::new();
        assert!(run(&staggered, 3) == expected);
        staggered.has_grown.into_inner()
    });
    assert!(has_grown);
}
