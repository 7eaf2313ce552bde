//! The stage `sweep:n` by rules that give a board two bounds: what the player to move can force, and to what
//! the opponent can hold that player.
//!
//! All is in memory, two bytes a position for bounds and two for captures. Between passes the stage saves a snapshot of
//! both bounds; any that narrowing has reached are a start.

use crate::build_context::BuildContext;
use crate::files;
use crate::opening::{self, OpeningSolver};
use crate::snapshot_timer::SnapshotTimer;
use crate::solver_progress::SolverProgress;
use game::Index;
use pipeline::{StageContext, StageError, StageReport, StageResult as Result};
use solvers::sweep::{BoundCaptures, Guarantees};
use solvers::{Bytes, Kernel};
use store::{Codec, FileKind, Scores};

const SNAPSHOT: &str = "bounds";

/// Runs the stage.
pub(super) fn run(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    let settings = build.settings();
    let index = Index::new(stones, settings.set);
    let [low, high] = read_captures(build, &index, context)?;
    let snapshot = BoundsSnapshot { build, index: &index, context };
    let (mut bounds, mut resumed) = snapshot.read()?;
    let mut timer = SnapshotTimer::start(context);
    let watch = SolverProgress::passes(context, index.slab_positions(), index.slab_positions()).limited(resumed);
    let captures = BoundCaptures { low: &low, high: &high };
    let mut solve = |bounds: &mut Guarantees| {
        bounds.sweep(&build.tables(), &index, captures, Kernel::detect(), &watch, &mut |bounds| {
            timer.save_if_due(format_args!("sweep:{stones}"), || snapshot.write(bounds));
        })
    };
    let mut solved = solve(&mut bounds);
    if solved.is_err() && watch.limit.is_over() {
        tracing::warn!("ignoring the snapshot of sweep:{stones}, which does not converge");
        bounds = Guarantees::widest(&index).map_err(StageError::failed)?;
        resumed = false;
        watch.limit.lift();
        solved = solve(&mut bounds);
    }
    let Ok(report) = solved else {
        timer.save_at_stop(|| snapshot.write(&bounds))?;
        return Err(StageError::Stopped);
    };
    watch.end();
    write(build, &index, &bounds, context)?;
    for captures in [low, high] {
        build.stage_cache().give_back(captures);
    }
    Ok(StageReport::new(index.positions())
        .with("passes", report.passes)
        .with("recomputed", report.recomputed)
        .with("changed", report.changed)
        .with("resumed", u64::from(resumed)))
}

/// Publishes the database: the lower bounds of all positions, then the upper ones.
fn write(build: &BuildContext, index: &Index, bounds: &Guarantees, context: &StageContext) -> Result<()> {
    let (settings, stones) = (build.settings(), index.stones());
    let failed = |error| files::unwritable_scores(stones, error);
    let path = context.output(&files::database(stones));
    let mut writer = files::create(context.disk(), &path, settings, FileKind::Bounds, index, settings.codec)?;
    let sections = [(&bounds.low, &bounds.high), (&bounds.high, &bounds.low)];
    for (section, (own, children)) in sections.into_iter().enumerate() {
        own.runs().try_for_each(|run| writer.append(run)).map_err(failed)?;
        // A bound of the opening follows from the other bounds of its children.
        let capture = opening::best_capture(settings, stones, context.disk(), |name| context.input(name), 1 - section)?;
        if let Some(mut solver) = OpeningSolver::new(settings.rules, index, capture) {
            let mut first = 0;
            for run in children.runs() {
                solver.see(first, run);
                first += run.len() as u64;
            }
            writer.append(&[solver.score()]).map_err(failed)?;
        }
    }
    writer.finish().map_err(failed)?;
    Ok(())
}

/// Returns the captures by the upper and by the lower bounds of smaller databases.
fn read_captures(build: &BuildContext, index: &Index, context: &StageContext) -> Result<[Bytes; 2]> {
    let name = files::capture(index.stones());
    let damaged = |error| files::unreadable(&name, error);
    let (path, kind) = (context.input(&name), FileKind::BoundCaptures);
    let file = files::open_windowed(context.disk(), &path, build.settings(), kind, index)?;
    let positions = index.slab_positions();
    let read = |section: u64| -> Result<Bytes> {
        let mut captures = build.stage_cache().array(build.plans(), index)?;
        file.read_range(section * positions..(section + 1) * positions, &mut captures).map_err(damaged)?;
        Ok(captures)
    };
    Ok([read(0)?, read(1)?])
}

/// Snapshot of the stage.
struct BoundsSnapshot<'a> {
    build: &'a BuildContext,
    index: &'a Index,
    context: &'a StageContext<'a>,
}

impl BoundsSnapshot<'_> {
    /// Returns the bounds to start from, and whether they come from a snapshot.
    fn read(&self) -> Result<(Guarantees, bool)> {
        let settings = self.build.settings();
        let mut bounds = Guarantees::widest(self.index).map_err(StageError::failed)?;
        let Some(saved) = self.context.snapshots().saved() else { return Ok((bounds, false)) };
        let (path, positions) = (saved.join(SNAPSHOT), self.index.slab_positions());
        let read = Scores::open_windowed(self.context.disk(), &path)
            .and_then(|file| files::expect(file, settings, FileKind::BoundSnapshot, self.index))
            .and_then(|file| {
                bounds.low.fill(|positions, out| file.read_range(positions, out))?;
                bounds.high.fill(|range, out| file.read_range(positions + range.start..positions + range.end, out))
            });
        let Err(error) = read else { return Ok((bounds, true)) };
        files::ignore_snapshot(saved, error)?;
        Ok((Guarantees::widest(self.index).map_err(StageError::failed)?, false))
    }

    fn write(&self, bounds: &Guarantees) -> Result<()> {
        let path = self.context.snapshots().prepare()?.join(SNAPSHOT);
        let (disk, kind) = (self.context.disk(), FileKind::BoundSnapshot);
        let runs = bounds.low.runs().chain(bounds.high.runs());
        files::write(disk, &path, self.build.settings(), kind, self.index, Codec::Packed, runs).map(drop)
    }
}
