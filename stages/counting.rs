//! The stage `counting:n`: the scores of all n-stone positions, propagated from children to parents.
//!
//! Between bounds the stage saves a snapshot at the interval of the manifest, and on a stop request. The output does
//! not depend on the number of threads of this process or of the one that wrote the snapshot.

use crate::build_context::BuildContext;
use crate::distributed::{self};
use crate::files;
use crate::files::CountsFormat;
use crate::kind::{Phase, StageKind};
use crate::snapshot_timer::SnapshotTimer;
use crate::solver::{self, DATABASES, DatabaseWriter};
use crate::solver_progress::SolverProgress;
use crate::stage_cache::CacheUse;
use game::Index;
use pipeline::{StageContext, StageError, StageReport, StageResult as Result};
use planner::{Method, StageClass};
use solvers::Bytes;
use solvers::counting::{CountingError, Distribution, counting};
use store::{FileKind, Shape};

const KIND: &str = "counting";

/// The kind `counting:n`.
pub(crate) static COUNTING: StageKind = StageKind {
    word: KIND,
    phase: Phase::Solving,
    methods: &[Method::Counting],
    class: |_| Some(StageClass::Counting),
    cache_use: |_| CacheUse { captures: true, databases: true, arrays: false },
    files: Some(&DATABASES),
    declare: |kind, build| solver::declare(kind, build),
    run: |build, parameters, context| {
        let stones = parameters[0];
        match build.job() {
            Some(job) => distributed::solve(KIND, build, job, stones, context),
            None => run(build, stones, context),
        }
    },
    follow: distributed::follow_solver,
    ..StageKind::OF_DATABASES
};

/// Runs the stage on this machine.
fn run(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    let settings = build.settings();
    let index = Index::new(stones, settings.set);
    let (captures, _) = solver::read_captures(build, &index, context)?;
    let format = CountsFormat::new(settings.rules.name, &index);
    // Counts are in the order of captures.
    let shape = files::shape(&index, FileKind::Capture);
    let snapshot = CountingSnapshot { index: &index, format, shape, context };
    let (mut values, mut resumed) = snapshot.read()?;
    tracing::info!(resumed, threads = context.threads(), "captures read");
    let mut timer = SnapshotTimer::start(context);
    let watch = SolverProgress::new(context, index.slab_positions());
    let distribution = Distribution::new(context.threads());
    let mut solve = |values: &mut Bytes| {
        counting(&build.tables(), &index, &captures, values, distribution, &watch, &mut |values| {
            timer.save_if_due(format_args!("counting:{stones}"), || snapshot.write(values));
        })
    };
    let mut report = solve(&mut values);
    if resumed && report == Err(CountingError::Inconsistent) {
        tracing::warn!("ignoring the snapshot of counting:{stones}, which does not hold its counts");
        values.fill(0);
        resumed = false;
        report = solve(&mut values);
    }
    let report = match report {
        Ok(report) => report,
        Err(CountingError::Stopped(_)) => {
            timer.save_at_stop(|| snapshot.write(&values))?;
            return Err(StageError::Stopped);
        }
        Err(error @ CountingError::Inconsistent) => return Err(StageError::failed(error)),
    };
    watch.end();
    build.stage_cache().give_back(captures);
    tracing::info!(supersteps = report.supersteps, "solved after {:.3} s", timer.elapsed().as_secs_f64());
    let mut writer = DatabaseWriter::create(context, settings, &index)?;
    writer.append(&values)?;
    writer.finish()?;
    let total = report.total();
    Ok(StageReport::new(index.positions())
        .with("processors", report.processors.len() as u64)
        .with("supersteps", report.supersteps)
        .with("updates", total.updates())
        .with("messages", total.messages)
        .with("combining", total.combining().unwrap_or(0.0))
        .with("volume", total.volume_bytes())
        .with("resumed", u64::from(resumed)))
}

/// Snapshot of the stage.
struct CountingSnapshot<'a> {
    index: &'a Index,
    format: CountsFormat,
    shape: Shape,
    context: &'a StageContext<'a>,
}

const SNAPSHOT: &str = "counts";

impl CountingSnapshot<'_> {
    /// Returns the array to start from, and whether it comes from a snapshot.
    fn read(&self) -> Result<(Bytes, bool)> {
        let mut values = Bytes::zeroed(self.index.slab_positions() as usize).map_err(StageError::failed)?;
        let Some(saved) = self.context.snapshots().saved() else { return Ok((values, false)) };
        let file = self.format.open(self.context.disk(), &saved.join(SNAPSHOT), &self.shape);
        let Err(error) = file.and_then(|file| file.read_into(&mut values)) else { return Ok((values, true)) };
        files::ignore_snapshot(saved, error)?;
        values.fill(0);
        Ok((values, false))
    }

    fn write(&self, values: &[i8]) -> Result<()> {
        let path = self.context.snapshots().prepare()?.join(SNAPSHOT);
        self.format.write(self.context.disk(), &path, &self.shape, values).map_err(files::unwritable)
    }
}
