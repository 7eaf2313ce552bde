//! The stage `sweep:n` for scores that do not fit in memory: they are swept in a working file.
//!
//! The file is always a valid snapshot: the next run resumes from any state that a kill or a power loss leaves. Its
//! cells have checksums; see `solvers::sweep::disk`.

use crate::build_context::BuildContext;
use crate::files;
use crate::solver::DatabaseWriter;
use crate::solver_progress::SolverProgress;
use disk::{Digest, RUN_BYTES_MAX, ScratchFile, bytes_of, bytes_of_mut, signed_of_mut};
use game::Index;
use pipeline::StageResult as Result;
use pipeline::{StageContext, StageError, StageReport};
use planner::Settings;
use solvers::Kernel;
use solvers::sweep::disk::{CellFile, DiskPlan, DiskSweep, DiskSweepError, DiskSweepReport, RUN_BYTES};
use std::path::PathBuf;
use std::time::Instant;
use store::FileKind;

/// Name of the working file in the snapshot directory of the stage.
const WORKING_FILE: &str = "cells";

/// Version of the layout of the file. In a file of another version no checksum matches.
const VERSION: u32 = 3;

const _: () = assert!(RUN_BYTES <= RUN_BYTES_MAX, "runs of cells are read many at once");

/// Runs the stage.
pub(super) fn run(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    let settings = build.settings();
    // Drops the shared tables: this stage builds the tables of one slab at a time.
    build.forget_tables();
    let index = Index::new(stones, settings.set);
    let allowed = build.plan(stones).memory().arena_bytes.expect("the plan is to sweep on disk") as usize;
    let plan = DiskPlan::new(&index, allowed).map_err(|least| {
        StageError::failed(format!("a task needs {} bytes of memory, {allowed} are allowed", least.needed))
    })?;
    let was_saved = context.snapshots().saved().is_some();
    let path = context.snapshots().prepare()?.join(WORKING_FILE);
    let mut resumed = was_saved && context.disk().bytes(&path)?.is_some();
    let file = WorkingFile::open(settings, stones, path, plan.file_bytes(), context)?;
    let mut sweep = SweepOnDisk { settings, index: &index, plan: &plan, file: &file, context };
    let started = Instant::now();
    let solved = match sweep.solve(resumed) {
        Err(DiskSweepError::Endless) => {
            tracing::warn!("ignoring the snapshot of sweep:{stones}, which does not converge");
            resumed = false;
            sweep.solve(resumed)
        }
        solved => solved,
    };
    let (solver, report) = solved.map_err(|error| match error {
        DiskSweepError::Stopped(_) => StageError::Stopped,
        DiskSweepError::Failed(error) => error,
        DiskSweepError::Endless => StageError::failed("the sweep does not converge: this is a bug in awari"),
    })?;
    tracing::info!(passes = report.passes, "solved after {:.3} s", started.elapsed().as_secs_f64());
    sweep.publish(&solver)?;
    Ok(StageReport::new(index.positions())
        .with("passes", report.passes)
        .with("recomputed", report.recomputed)
        .with("working_read", report.read_bytes)
        .with("working_written", report.written_bytes)
        .with("damaged", report.damaged)
        .with("resumed", u64::from(resumed)))
}

/// Sweep of one database in a working file.
struct SweepOnDisk<'a> {
    settings: &'a Settings,
    index: &'a Index,
    plan: &'a DiskPlan,
    file: &'a WorkingFile<'a>,
    context: &'a StageContext<'a>,
}

impl<'a> SweepOnDisk<'a> {
    fn solve(
        &mut self,
        resumed: bool,
    ) -> Result<(DiskSweep<'a, WorkingFile<'a>>, DiskSweepReport), DiskSweepError<StageError>> {
        let SweepOnDisk { settings, index, plan, file, context } = *self;
        let name = files::capture(index.stones());
        let damaged = |error| files::unreadable(&name, error);
        let path = context.input(&name);
        let captures = files::open_windowed(context.disk(), &path, settings, FileKind::Capture, index);
        let captures = captures.map_err(|error| DiskSweepError::Failed(damaged(error)))?;
        let mut read =
            |first: u64, into: &mut [i8]| captures.read_range(first..first + into.len() as u64, into).map_err(damaged);
        let mut solver = DiskSweep::new(&settings.rules, index, plan, Kernel::detect(), file, resumed);
        let watch = SolverProgress::passes(context, index.slab_positions(), plan.changes_max());
        let report = solver.solve(&mut read, StageError::failed, &watch)?;
        watch.end();
        Ok((solver, report))
    }

    fn publish(&self, solver: &DiskSweep<WorkingFile<'_>>) -> Result<()> {
        let SweepOnDisk { settings, index, context, .. } = self;
        let mut writer = DatabaseWriter::create(context, settings, index)?;
        solver.scores(|rows| writer.append(rows))?;
        writer.finish().map(drop)
    }
}

/// Working file of the stage.
struct WorkingFile<'a> {
    file: Box<dyn ScratchFile + 'a>,
    path: PathBuf,
    /// Seed of the checksums: layout, rules and database.
    key: Digest,
}

impl<'a> WorkingFile<'a> {
    fn open(settings: &Settings, stones: u32, path: PathBuf, bytes: u64, context: &StageContext<'a>) -> Result<Self> {
        let of = format!("cells {VERSION} {} {} {stones}", settings.rules.name, settings.set);
        let file = context.disk().working(&path, bytes)?;
        Ok(WorkingFile { file, path, key: Digest::of(of.as_bytes()) })
    }
}

impl CellFile for WorkingFile<'_> {
    type Error = StageError;

    fn read(&self, offset: u64, into: &mut [i8]) -> Result<()> {
        Ok(self.file.read_at(offset, bytes_of_mut(into))?)
    }

    fn write(&self, offset: u64, bytes: &[i8]) -> Result<()> {
        Ok(self.file.write_at(offset, bytes_of(bytes))?)
    }

    fn write_runs(&self, runs: &[(u64, &[i8])]) -> Result<()> {
        let runs: Vec<_> = runs.iter().map(|&(offset, bytes)| (offset, bytes_of(bytes))).collect();
        Ok(self.file.write_runs(&runs)?)
    }

    fn read_runs(&self, runs: &[(u64, usize)], each: &mut dyn FnMut(usize, &mut [i8])) -> Result<()> {
        Ok(self.file.read_runs(runs, &mut |run, bytes| each(run, signed_of_mut(bytes)))?)
    }

    fn checksum(&self, bytes: &[i8]) -> u64 {
        self.key.checksum(bytes_of(bytes))
    }

    fn is_damaged(&self, what: &str) -> StageError {
        let path = self.path.display();
        StageError::failed(format!(
            "{path}: {what}; check the drive, then repeat the command, which resumes from there"
        ))
    }
}
