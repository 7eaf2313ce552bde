//! Progress of an engine, passed on to the pipeline; requests to stop, passed on to the engine.

use engines::EndedPass;
use pipeline::StageContext;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Passes on the progress of one engine call.
pub(crate) struct Watch<'a> {
    context: &'a StageContext<'a>,
    positions: u64,
    count: Count,
}

/// What an engine counts.
enum Count {
    /// A share of all that there is to do, shown as positions.
    Whole,
    /// What it recomputed, pass after pass.
    Passes(Recomputed),
    /// Units of each pass, from 0.
    Units,
}

/// What passes recomputed.
#[derive(Default)]
struct Recomputed {
    /// By all so far.
    all: AtomicU64,
    /// By those that have ended.
    ended: AtomicU64,
    /// Whether the pass at hand recomputes what may have changed only.
    is_partial: AtomicBool,
}

impl<'a> Watch<'a> {
    /// The only call of a stage on so many positions.
    pub(crate) fn new(context: &'a StageContext<'a>, positions: u64) -> Watch<'a> {
        context.progress().begin(positions, "positions");
        Watch { context, positions, count: Count::Whole }
    }

    /// Passes over so many positions, each of which changes at most `changes_max`.
    pub(crate) fn passes(context: &'a StageContext<'a>, positions: u64, changes_max: u64) -> Watch<'a> {
        let watch = Watch::new(context, positions);
        context.progress().begin_passes(changes_max, context.disk().clock().steady());
        Watch { count: Count::Passes(Recomputed::default()), ..watch }
    }

    /// Passes over the units of so many positions, to solve a bound of `of`.
    pub(crate) fn bound(context: &'a StageContext<'a>, positions: u64, bound: u32, of: u32) -> Watch<'a> {
        let watch = Watch::new(context, positions);
        context.progress().begin_passes(positions, context.disk().clock().steady());
        context.progress().begin_bound(bound, of);
        Watch { count: Count::Units, ..watch }
    }

    /// The engine is done; the stage goes on.
    pub(crate) fn end(self) {
        self.context.progress().begin(0, "");
    }
}

impl engines::DriverObserver for Watch<'_> {
    fn advance(&self, done: u64, total: u64) -> ControlFlow<()> {
        let progress = self.context.progress();
        match &self.count {
            Count::Whole => {
                let share = done as f64 / total.max(1) as f64;
                progress.set((share * self.positions as f64) as u64);
            }
            Count::Passes(recomputed) => {
                recomputed.all.store(done, Relaxed);
                let total = if recomputed.is_partial.load(Relaxed) { 0 } else { self.positions };
                progress.reach(done.saturating_sub(recomputed.ended.load(Relaxed)), total);
            }
            Count::Units => progress.reach(done, total),
        }
        match self.context.stop_requested() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn end_pass(&self, pass: EndedPass) {
        let EndedPass { is_full, is_next_full, changed } = pass;
        if let Count::Passes(recomputed) = &self.count {
            recomputed.ended.store(recomputed.all.load(Relaxed), Relaxed);
            recomputed.is_partial.store(!is_next_full, Relaxed);
        }
        let now = self.context.disk().clock().steady();
        self.context.progress().end_pass(is_full, is_next_full, changed, now);
        tracing::debug!(is_full, changed, "a pass ends");
    }

    fn begin_bound(&self, bound: u32, bounds: u32) {
        self.context.progress().begin_bound(bound, bounds);
    }
}
