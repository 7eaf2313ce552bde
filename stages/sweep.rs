//! The stage `sweep:n`: the scores of all n-stone positions from their best captures.
//!
//! Between passes the stage saves a snapshot of the scores at the interval of the manifest, and when it is asked to stop.
//! Any mixture of passes converges to the same scores.

mod guarantees;
mod on_disk;

use crate::build_context::BuildContext;
use crate::distributed::{self};
use crate::files;
use crate::kind::{Phase, StageKind};
use crate::snapshot_timer::SnapshotTimer;
use crate::solver::{self, DATABASES, DatabaseWriter, read_captures};
use crate::solver_progress::SolverProgress;
use crate::stage_cache::CacheUse;
use game::Index;
use pipeline::{StageContext, StageError, StageReport, StageResult as Result};
use planner::{Method, StageClass};
use solvers::{DriverObserver, EndedPass, Kernel, ScoreRows, sweep};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{Codec, FileKind};

/// Upper bound on the passes from a snapshot. A valid one needs no more passes than zeros do, which is some tens; other
/// data may never converge.
const PASSES_MAX: u64 = 1000;

const KIND: &str = "sweep";

/// The kind `sweep:n`.
pub(crate) static SWEEP: StageKind = StageKind {
    word: KIND,
    phase: Phase::Solving,
    methods: &[Method::Sweep],
    class: |_| Some(StageClass::Sweep),
    cache_use: |plan| CacheUse { captures: true, databases: true, arrays: plan.memory().arena_bytes.is_none() },
    files: Some(&DATABASES),
    declare: |kind, build| solver::declare(kind, build),
    run: |build, parameters, context| {
        let stones = parameters[0];
        match build.job() {
            Some(job) => distributed::solve(KIND, build, job, stones, context),
            None if !build.settings().rules.has_scores() => guarantees::run(build, stones, context),
            None if build.plan(stones).memory().arena_bytes.is_some() => on_disk::run(build, stones, context),
            None => run(build, stones, context),
        }
    },
    follow: distributed::follow_solver,
    ..StageKind::OF_DATABASES
};

/// Runs the stage, with all scores in memory.
fn run(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    let settings = build.settings();
    let index = Index::new(stones, settings.set);
    let (captures, captures_digest) = read_captures(build, &index, context)?;
    let snapshot = SweepSnapshot { build, index: &index, context };
    let (mut values, mut resumed) = snapshot.read()?;
    tracing::info!(resumed, threads = context.threads(), "captures read");
    let mut timer = SnapshotTimer::start(context);
    let watch = SolverProgress::passes(context, index.slab_positions(), index.slab_positions());
    let mut solve = |values: &mut ScoreRows, limited: &PassLimit| {
        sweep::sweep(&build.tables(), &index, &captures, values, Kernel::detect(), limited, &mut |values| {
            limited.passes.fetch_sub(1, Ordering::Relaxed);
            timer.save_if_due(format_args!("sweep:{stones}"), || snapshot.write(values));
        })
    };
    let passes = if resumed { PASSES_MAX } else { u64::MAX };
    let limited = PassLimit { watch: &watch, passes: AtomicU64::new(passes) };
    let mut report = solve(&mut values, &limited);
    if report.is_err() && limited.is_over() {
        tracing::warn!("ignoring the snapshot of sweep:{stones}, which does not converge");
        values.clear();
        resumed = false;
        report = solve(&mut values, &PassLimit { watch: &watch, passes: AtomicU64::new(u64::MAX) });
    }
    let Ok(report) = report else {
        timer.save_at_stop(|| snapshot.write(&values))?;
        return Err(StageError::Stopped);
    };
    tracing::info!(passes = report.passes, "solved after {:.3} s", timer.elapsed().as_secs_f64());
    watch.end();
    let choice = solvers::choice_of(&build.tables(), &index, &captures, &values);
    build.stage_cache().give_back(captures);
    let mut writer = DatabaseWriter::create(context, settings, &index)?;
    values.runs().try_for_each(|run| writer.append(run))?;
    let digest = writer.finish()?;
    build.stage_cache().keep_choice(captures_digest, digest, choice);
    build.stage_cache().keep_database(build.plans(), stones, digest, &values);
    build.stage_cache().give_back(values.into_bytes());
    Ok(StageReport::new(index.positions())
        .with("passes", report.passes)
        .with("recomputed", report.recomputed)
        .with("changed", report.changed)
        .with("resumed", u64::from(resumed)))
}

/// Progress that also stops a solver after a number of passes.
struct PassLimit<'a> {
    watch: &'a SolverProgress<'a>,
    passes: AtomicU64,
}

impl PassLimit<'_> {
    fn is_over(&self) -> bool {
        self.passes.load(Ordering::Relaxed) == 0
    }
}

impl DriverObserver for PassLimit<'_> {
    fn advance(&self, done: u64, total: u64) -> ControlFlow<()> {
        if self.is_over() { ControlFlow::Break(()) } else { self.watch.advance(done, total) }
    }

    fn end_pass(&self, pass: EndedPass) {
        self.watch.end_pass(pass);
    }
}

/// Snapshot of the stage.
struct SweepSnapshot<'a> {
    build: &'a BuildContext,
    index: &'a Index,
    context: &'a StageContext<'a>,
}

const SNAPSHOT: &str = "scores";

impl SweepSnapshot<'_> {
    /// Returns the scores to start from, and whether they come from a snapshot.
    fn read(&self) -> Result<(ScoreRows, bool)> {
        let settings = self.build.settings();
        let mut values = self.build.stage_cache().rows(self.build.plans(), self.index)?;
        let Some(saved) = self.context.snapshots().saved() else { return Ok((values, false)) };
        let path = saved.join(SNAPSHOT);
        let read = files::open_windowed(self.context.disk(), &path, settings, FileKind::Snapshot, self.index)
            .and_then(|file| values.fill(|positions, out| file.read_range(positions, out)));
        let Err(error) = read else { return Ok((values, true)) };
        files::ignore_snapshot(saved, error)?;
        values.clear();
        Ok((values, false))
    }

    fn write(&self, values: &ScoreRows) -> Result<()> {
        let path = self.context.snapshots().prepare()?.join(SNAPSHOT);
        let (disk, kind) = (self.context.disk(), FileKind::Snapshot);
        files::write(disk, &path, self.build.settings(), kind, self.index, Codec::Packed, values.runs()).map(drop)
    }
}
