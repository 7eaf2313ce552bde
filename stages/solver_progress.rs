//! Adapter between the progress of a solver and that of the pipeline, and a limit on the passes of a solver.

use pipeline::StageContext;
use solvers::EndedPass;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Upper bound on the passes from a snapshot. A valid one needs no more passes than zeros do, which is some tens; other
/// data may never converge.
const PASSES_MAX: u64 = 1000;

/// Passes that a solver may still make.
pub(crate) struct PassLimit(AtomicU64);

impl PassLimit {
    /// Returns the limit of a solver that may have resumed from a snapshot.
    pub(crate) fn new(resumed: bool) -> PassLimit {
        PassLimit(AtomicU64::new(if resumed { PASSES_MAX } else { u64::MAX }))
    }

    /// Counts a pass.
    pub(crate) fn end_pass(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    /// Whether the passes from a snapshot were too many.
    pub(crate) fn is_over(&self) -> bool {
        self.0.load(Relaxed) == 0
    }

    /// Allows all passes, from zeros.
    pub(crate) fn lift(&self) {
        self.0.store(u64::MAX, Relaxed);
    }
}

/// Reports the progress of one call of a solver to the pipeline, and requests to stop to the solver.
pub(crate) struct SolverProgress<'a> {
    context: &'a StageContext<'a>,
    positions: u64,
    count: CountedUnits,
    /// A pass over it stops the solver.
    pub(crate) limit: PassLimit,
}

/// Unit in which a solver counts its progress.
enum CountedUnits {
    /// A share of the whole, shown as positions.
    Whole,
    /// Positions recomputed, pass after pass.
    Passes(RecomputedPositions),
    /// Units of the current pass.
    Units,
}

/// Positions that passes recomputed.
#[derive(Default)]
struct RecomputedPositions {
    /// In all passes.
    all: AtomicU64,
    /// In the passes that have ended.
    ended: AtomicU64,
    /// Whether the current pass recomputes only positions that may have changed.
    is_partial: AtomicBool,
}

impl<'a> SolverProgress<'a> {
    /// Begins a call of a solver on this many positions.
    pub(crate) fn new(context: &'a StageContext<'a>, positions: u64) -> SolverProgress<'a> {
        context.progress().begin(positions, "positions");
        SolverProgress { context, positions, count: CountedUnits::Whole, limit: PassLimit::new(false) }
    }

    /// Begins passes over this many positions, each of which changes at most `changes_max`.
    pub(crate) fn passes(context: &'a StageContext<'a>, positions: u64, changes_max: u64) -> SolverProgress<'a> {
        let watch = SolverProgress::new(context, positions);
        context.progress().begin_passes(changes_max, context.disk().clock().steady());
        SolverProgress { count: CountedUnits::Passes(RecomputedPositions::default()), ..watch }
    }

    /// Limits the passes if they go on from a snapshot.
    pub(crate) fn limited(self, resumed: bool) -> SolverProgress<'a> {
        SolverProgress { limit: PassLimit::new(resumed), ..self }
    }

    /// Begins passes that solve one of `bounds` bounds.
    pub(crate) fn bound(context: &'a StageContext<'a>, positions: u64, bound: u32, bounds: u32) -> SolverProgress<'a> {
        let watch = SolverProgress::new(context, positions);
        context.progress().begin_passes(positions, context.disk().clock().steady());
        context.progress().begin_bound(bound, bounds);
        SolverProgress { count: CountedUnits::Units, ..watch }
    }

    /// Ends the progress of the solver, before the stage does.
    pub(crate) fn end(self) {
        self.context.progress().begin(0, "");
    }
}

impl solvers::DriverObserver for SolverProgress<'_> {
    fn advance(&self, done: u64, total: u64) -> ControlFlow<()> {
        let progress = self.context.progress();
        match &self.count {
            CountedUnits::Whole => {
                let share = done as f64 / total.max(1) as f64;
                progress.set((share * self.positions as f64) as u64);
            }
            CountedUnits::Passes(recomputed) => {
                recomputed.all.store(done, Relaxed);
                let total = if recomputed.is_partial.load(Relaxed) { 0 } else { self.positions };
                progress.reach(done.saturating_sub(recomputed.ended.load(Relaxed)), total);
            }
            CountedUnits::Units => progress.reach(done, total),
        }
        let is_stopped = self.context.stop_requested() || self.limit.is_over();
        if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn end_pass(&self, pass: EndedPass) {
        let EndedPass { is_full, is_next_full, changed } = pass;
        self.limit.end_pass();
        if let CountedUnits::Passes(recomputed) = &self.count {
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
