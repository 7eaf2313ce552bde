//! Builds that are disturbed, resumed, and compared byte for byte with an undisturbed one.
//!
//! A *case* is a small build on a disk in memory and a few runs of it, each with its own faults; a last run
//! without faults must end with the bytes of an undisturbed build. After every run, files with final names
//! are complete; no stage that the journal records as done is repeated; no snapshot is ignored or removed
//! before its stage is done; an error has the right exit code and names a file with a fault. A *kill* sends
//! SIGKILL to the program at a random moment. A *simulation* is a random job of one or several ranks, also
//! with late messages, lost ranks, clock jumps and requests to stop. Everything is derived from a seed, and a
//! failure prints the command that repeats it.

mod build;
mod case;
mod class;
mod conditions;
mod journal;
mod kills;
mod report;
mod simulation;
mod storm;
mod subject;
mod turns;

pub(crate) use build::asked;
pub use build::{DisturbedBuild, Ended, artifacts, by_ranks};
pub use class::FaultClass;
pub use conditions::{ClockPace, Clocks, Conditions, PlannedStop};
pub use kills::{KillReport, Kills};
pub use report::{FaultReport, FaultTally};
pub use simulation::{Simulated, Simulation, Simulations};
pub use storm::{StormReport, Storms};
pub use subject::Subject;

use case::FaultCase;
use planner::Method;
use std::sync::Mutex;

/// Number of cases from which every class of faults strikes every operation of builds by sweep.
pub const EVERY_FROM: u64 = 10_000;

/// Which faults to inject, and how many.
#[derive(Clone, Debug)]
pub struct FaultRuns {
    /// Seed of the pseudo-random generator.
    pub seed: u64,
    /// Cases in all, spread over classes and methods; some more where every operation is struck, see
    /// [`EVERY_FROM`]. One case has one fault or a few.
    pub cases: u64,
    /// Threads to run them on.
    pub threads: usize,
    /// Only these classes.
    pub classes: Vec<FaultClass>,
    /// Only these methods.
    pub methods: Vec<Method>,
    /// Only the case of this number, of each class and method.
    pub only: Option<u64>,
}

impl FaultRuns {
    /// All classes and methods.
    pub fn new(seed: u64, cases: u64) -> FaultRuns {
        let (classes, methods) = (FaultClass::all().to_vec(), Method::ALL.to_vec());
        FaultRuns { seed, cases, threads: disk::clock::cores(), classes, methods, only: None }
    }

    /// Runs the cases and counts how they ended.
    pub fn run(&self) -> FaultReport {
        let subjects: Vec<Vec<Subject>> = self.methods.iter().map(|&method| Subject::all(method)).collect();
        let cells: Vec<(FaultClass, &[Subject])> = (self.classes.iter())
            .flat_map(|&class| subjects.iter().map(move |subjects| (class, &subjects[..])))
            .filter(|(class, subjects)| class.extent(&subjects[0]) > 0)
            .collect();
        let share = self.cases.div_ceil(cells.len().max(1) as u64);
        let cases: Vec<FaultCase> = (cells.iter())
            .flat_map(|&(class, subjects)| {
                let numbers = match self.only {
                    Some(number) => vec![number],
                    None => numbers(subjects[0].method(), class.extent(&subjects[0]), share, self.cases >= EVERY_FROM),
                };
                numbers.into_iter().map(move |number| FaultCase::new(self.seed, class, subjects, number))
            })
            .collect();
        let report = Mutex::new(FaultReport::default());
        each(cases.iter(), self.threads, |case| {
            let outcome = case.run();
            report.lock().expect("a panic while counting ends the harness").add(case, outcome);
        });
        report.into_inner().expect("all threads have ended")
    }
}

/// The numbers of the cases of a class and method. Those below `extent` stand for the operations of one build, one by
/// one; with the method sweep each has its turn, or as many as there is time for, spread evenly. Others are random.
fn numbers(method: Method, extent: u64, share: u64, is_every: bool) -> Vec<u64> {
    match method {
        Method::Sweep if is_every || share >= extent => (0..share.max(extent)).collect(),
        Method::Sweep => (0..share).map(|at| at * extent / share).collect(),
        _ => (extent..extent + share).collect(),
    }
}

/// Runs a function on each item, on `threads` threads. Builds have thread pools of their own, which must not be nested.
fn each<T>(items: impl Iterator<Item = T> + Send, threads: usize, run: impl Fn(T) + Sync) {
    let items = Mutex::new(items);
    let next = || items.lock().expect("the iterator does not panic").next();
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(item) = next() {
                    run(item);
                }
            });
        }
    });
}
