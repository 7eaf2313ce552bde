//! The schedule of a run with several stages at a time: the decision which stage starts next, with how many
//! threads, and which stages get the threads that are left.
//!
//! A pure function of what runs, what is ready, and the limits. It knows no files and no journal.

mod prediction;
#[cfg(test)]
mod tests;

pub use prediction::SchedulePrediction;
pub(crate) use prediction::{fastest, predict};

use crate::graph::Graph;
use crate::plan::PlannedStage;

/// A stage that may start: no stage that is still to run makes any of its inputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ReadyStage {
    /// Its position in the graph.
    pub(crate) position: usize,
    /// Predicted seconds from its start to the end of the last stage that waits for it, directly or not.
    pub(crate) path_seconds: f64,
    /// Its predicted processor time.
    pub(crate) core_seconds: f64,
    /// Resources that it takes beyond those reserved already.
    pub(crate) needs: Reservation,
}

/// Memory and disk space that are set apart for a stage, or for a chain of stages with common state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub(crate) memory_bytes: u64,
    pub(crate) disk_bytes: u64,
}

impl Reservation {
    /// Returns the sum of two reservations.
    #[must_use]
    pub(crate) fn plus(self, other: Reservation) -> Reservation {
        Reservation {
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
            disk_bytes: self.disk_bytes.saturating_add(other.disk_bytes),
        }
    }

    /// Returns the larger of two reservations, each resource by itself.
    #[must_use]
    pub(crate) fn max(self, other: Reservation) -> Reservation {
        Reservation {
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
            disk_bytes: self.disk_bytes.max(other.disk_bytes),
        }
    }

    fn fits(self, limit: Reservation) -> bool {
        self.memory_bytes <= limit.memory_bytes && self.disk_bytes <= limit.disk_bytes
    }
}

/// What the running stages take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TakenResources {
    /// Their number.
    pub(crate) stages: usize,
    /// Their threads, all together.
    pub(crate) threads: usize,
    /// Their reservations, and those of unfinished chains, all together.
    pub(crate) reserved: Reservation,
}

/// The limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The most stages at a time.
    pub(crate) stages: usize,
    /// Threads of all stages together; each stage has at least one.
    pub(crate) threads: usize,
    /// What all reservations together may take.
    pub(crate) reserved: Reservation,
}

/// The decision to start a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// Its position in the graph.
    pub(crate) position: usize,
    /// Its threads.
    pub(crate) threads: usize,
}

/// Decides which of the ready stages starts next, if any: of those that fit beside the running ones, that
/// with the longest path, and the first in the graph among equals. Free threads are divided evenly among the
/// stages that can start now, except brief ones: those that one thread ends before all threads have done half of the
/// first stage. If nothing runs and nothing fits, the first stage in the graph starts alone, as it would with one stage
/// at a time.
pub(crate) fn next_stage(ready: &[ReadyStage], running: &TakenResources, limits: &Limits) -> Option<Start> {
    if running.stages >= limits.stages {
        return None;
    }
    let mut sorted: Vec<&ReadyStage> = ready.iter().collect();
    sorted.sort_by(|stage, other| {
        other.path_seconds.total_cmp(&stage.path_seconds).then(stage.position.cmp(&other.position))
    });
    // The stages that would start one after the other if nothing ended meanwhile.
    let mut reserved = running.reserved;
    let mut starting = sorted.into_iter().filter(|stage| {
        let fits = reserved.plus(stage.needs).fits(limits.reserved);
        if fits {
            reserved = reserved.plus(stage.needs);
        }
        fits
    });
    let free_threads = limits.threads.saturating_sub(running.threads);
    let Some(first) = starting.next() else {
        let first = ready.iter().map(|stage| stage.position).min().filter(|_| running.stages == 0)?;
        return Some(Start { position: first, threads: limits.threads.max(1) });
    };
    let brief_seconds = first.core_seconds / limits.threads.max(1) as f64 / 2.0;
    let beside = starting.take(limits.stages - running.stages - 1);
    let count = 1 + beside.filter(|stage| stage.core_seconds >= brief_seconds).count();
    Some(Start { position: first.position, threads: free_threads.div_ceil(count).max(1) })
}

/// Divides free threads among running stages that grow, whose threads are given: each to the one with the fewest, the
/// first of equals.
pub(crate) fn share_out<'t>(free: usize, growing: impl IntoIterator<Item = &'t mut usize>) {
    let mut growing: Vec<_> = growing.into_iter().collect();
    for _ in 0..free {
        if let Some(fewest) = growing.iter_mut().min() {
            **fewest += 1;
        }
    }
}

/// Returns whether all stages that come before a stage have ended, given which stages of the graph are still to end.
pub(crate) fn is_ready(graph: &Graph, position: usize, is_pending: &[bool]) -> bool {
    predecessors(graph, position).all(|before| !is_pending[before])
}

/// Returns the positions of the stages that make the inputs of a stage, and of those that come first if they run.
fn predecessors(graph: &Graph, position: usize) -> impl Iterator<Item = usize> {
    let makers = graph.numbers(position).inputs.iter().filter_map(|&input| graph.uses(input).maker);
    makers.chain(graph.stages()[position].after.iter().filter_map(|name| graph.position(name)))
}

/// Returns what a step takes beyond what is there.
pub(crate) fn needs(step: &PlannedStage) -> Reservation {
    Reservation {
        memory_bytes: step.cost.memory_bytes,
        disk_bytes: step.cost.disk_bytes.saturating_sub(step.disk_there_bytes),
    }
}

/// Returns, for each stage of the graph, the predicted seconds from its start to the end of the last stage
/// that waits for it. Stages that do not run, those without seconds, take no time.
pub(crate) fn path_seconds(graph: &Graph, seconds: &[Option<f64>]) -> Vec<f64> {
    // At first the longest path of the stages that wait for each stage.
    let mut paths = vec![0.0f64; seconds.len()];
    for position in (0..seconds.len()).rev() {
        paths[position] += seconds[position].unwrap_or(0.0);
        for before in predecessors(graph, position) {
            paths[before] = paths[before].max(paths[position]);
        }
    }
    paths
}
