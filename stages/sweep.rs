//! The stage `sweep:n`: the scores of all n-stone positions from their best captures.
//!
//! Between passes the scores so far are snapshot on a timer, and when the run is asked to stop; whatever mixture of
//! passes a snapshot holds, sweeping it on ends in the same scores.

use crate::{Shared, files, watch::Watch};
use disk::Digest;
use engines::{Bytes, DriverObserver, EndedPass, Kernel, ScoreRows, sweep};
use game::Index;
use pipeline::{StageContext, StageError, StageReport};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::{Codec, FileKind};

/// A stage that ran for less than this when it was asked to stop is sooner repeated than snapshot.
const WORTH_A_SNAPSHOT: Duration = Duration::from_secs(10);

/// Passes from a snapshot. What was swept before takes no more of them than zeros do, which is some tens; what
/// was not may go on for ever.
const PASSES_MAX: u64 = 1000;

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let (captures, captures_digest) = read_captures(shared, &index, context)?;
    let snapshot = Snapshot { shared, index: &index, context };
    let (mut values, mut resumed) = snapshot.read()?;
    tracing::info!(resumed, threads = context.threads(), "captures read");
    let started = context.stopwatch();
    let mut last = started;
    let watch = Watch::passes(context, index.positions(), index.positions());
    let mut solve = |values: &mut ScoreRows, limited: &Limited| {
        sweep::sweep(&shared.tables(), &index, &captures, values, Kernel::detect(), limited, &mut |values| {
            limited.passes.fetch_sub(1, Ordering::Relaxed);
            if last.elapsed() >= context.snapshots().interval() {
                // Without a snapshot a crash costs more time, and that is all: no reason to give up the work.
                match snapshot.write(values) {
                    Ok(()) => tracing::info!("snapshot after {:.1} s", started.elapsed().as_secs_f64()),
                    Err(error) => tracing::warn!("cannot save a snapshot of sweep:{stones}: {error}"),
                }
                last.restart();
            }
        })
    };
    let passes = if resumed { PASSES_MAX } else { u64::MAX };
    let limited = Limited { watch: &watch, passes: AtomicU64::new(passes) };
    let mut report = solve(&mut values, &limited);
    if report.is_err() && limited.is_over() {
        tracing::warn!("ignoring the snapshot of sweep:{stones}, which does not converge");
        values.clear();
        resumed = false;
        report = solve(&mut values, &Limited { watch: &watch, passes: AtomicU64::new(u64::MAX) });
    }
    let Ok(report) = report else {
        if started.elapsed() >= WORTH_A_SNAPSHOT {
            snapshot.write(&values)?;
        }
        return Err(StageError::Stopped);
    };
    tracing::info!(passes = report.passes, "solved after {:.3} s", started.elapsed().as_secs_f64());
    watch.end();
    let choice = engines::choice_of(&shared.tables(), &index, &captures, &values);
    shared.handed().give_back(captures);
    let path = context.output(&files::database(stones));
    let runs = values.runs();
    let digest = files::write(context.disk(), &path, settings, FileKind::Database, &index, settings.codec, runs)?;
    shared.handed().keep_choice(captures_digest, digest, choice);
    shared.handed().keep_database(shared.build_plan(), stones, digest, &values);
    shared.handed().give_back(values.into_bytes());
    Ok(StageReport::new(index.positions())
        .with("passes", report.passes)
        .with("recomputed", report.recomputed)
        .with("changed", report.changed)
        .with("resumed", u64::from(resumed)))
}

/// The capture database of an index and its digest: what the stage before has left, or read, every block checked. Not
/// through a map: its pages would be memory too.
pub(crate) fn read_captures(
    shared: &Shared,
    index: &Index,
    context: &StageContext,
) -> Result<(Bytes, Digest), StageError> {
    let (settings, handed) = (shared.settings(), shared.handed());
    let name = files::capture(index.stones());
    let damaged = |error| files::unreadable(&name, error);
    let path = context.input(&name);
    let file = files::open_windowed(context.disk(), &path, settings, FileKind::Capture, index).map_err(damaged)?;
    if let Some(captures) = handed.captures(file.digest()) {
        return Ok((captures, file.digest()));
    }
    let mut captures = handed.array(shared.build_plan(), index)?;
    file.read_into(&mut captures).map_err(damaged)?;
    Ok((captures, file.digest()))
}

/// Stops after so many passes, too.
struct Limited<'a> {
    watch: &'a Watch<'a>,
    passes: AtomicU64,
}

impl Limited<'_> {
    fn is_over(&self) -> bool {
        self.passes.load(Ordering::Relaxed) == 0
    }
}

impl DriverObserver for Limited<'_> {
    fn advance(&self, done: u64, total: u64) -> ControlFlow<()> {
        if self.is_over() { ControlFlow::Break(()) } else { self.watch.advance(done, total) }
    }

    fn end_pass(&self, pass: EndedPass) {
        self.watch.end_pass(pass);
    }
}

/// The snapshot of a stage that is under way.
struct Snapshot<'a> {
    shared: &'a Shared,
    index: &'a Index,
    context: &'a StageContext<'a>,
}

const SNAPSHOT: &str = "scores";

impl Snapshot<'_> {
    /// The scores to start from, and whether they come from a snapshot.
    fn read(&self) -> Result<(ScoreRows, bool), StageError> {
        let settings = self.shared.settings();
        let mut values = self.shared.handed().rows(self.shared.build_plan(), self.index)?;
        let Some(saved) = self.context.snapshots().saved() else { return Ok((values, false)) };
        let path = saved.join(SNAPSHOT);
        let read = files::open_windowed(self.context.disk(), &path, settings, FileKind::Snapshot, self.index)
            .and_then(|file| values.fill(|positions, out| file.read_range(positions, out)));
        let Err(error) = read else { return Ok((values, true)) };
        files::begin_anew(saved, error)?;
        values.clear();
        Ok((values, false))
    }

    fn write(&self, values: &ScoreRows) -> Result<(), StageError> {
        let path = self.context.snapshots().prepare()?.join(SNAPSHOT);
        let (disk, kind) = (self.context.disk(), FileKind::Snapshot);
        files::write(disk, &path, self.shared.settings(), kind, self.index, Codec::Packed, values.runs()).map(drop)
    }
}
