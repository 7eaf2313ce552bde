//! The method *sweep* with its scores on disk: any number of stones in little memory, at the speed of the drive.
//!
//! The operator, and why any order and any stale read is right, are those of [`crate::sweep`]. A working file holds the
//! scores in cells (`layout.rs`). A task (`plan.rs`) is some whole rows of a slab, or these and some columns of another:
//! all that they are recomputed from, some columns of each slab that their moves lead to, is read in long runs into an
//! arena, where the row kernels find it as they find a database in memory. While one task is computed, in one arena, the
//! result of the task before is written from the other, and what the next one needs is read into it; what that is of the
//! task at hand it is then given from memory.
//!
//! **Passes.** A task is computed again when a cell that it reads has changed since it read it last; when none has, the
//! scores are the least fixpoint. Results are compared with what the file has by the checksums of cells, so what does
//! not change is not written.
//!
//! **Resuming.** What a former process left in the file, whenever it ended, is a mixture of earlier states, and the sweep
//! goes on from it: everything counts as changed. A cell that is torn or damaged has a wrong checksum, and begins anew
//! from zeros, which is below every state.

mod captures;
mod cells;
mod layout;
mod plan;
mod settle;
#[cfg(test)]
mod tests;

pub use captures::ReadCaptures;
pub use layout::CellLayout;
pub use plan::{DiskPlan, PassBytes, TooSmall};

use crate::huge_pages::{Bytes, PAD};
use crate::kernels::scores::{Kernel, UNIT_BYTES_MAX};
use crate::kernels::tables::{PackedMove, rows_of};
use crate::{DriverObserver, EndedPass, Stopped};
use captures::TaskCaptures;
use cells::{Cells, ColumnPieces, SlabPart};
use game::{HALF_PITS, Index, Rules};
use layout::CellSlab;
use plan::{ColumnStrip, SweepTask, TaskBlock, TaskKind};
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

/// A file read and written at any place, from several threads; and the checksums of what is in it.
pub trait CellFile: Sync {
    /// Why it could not.
    type Error: Send;

    /// Fills `into` from `place` on.
    fn read(&self, place: u64, into: &mut [i8]) -> Result<(), Self::Error>;

    /// Writes at `place`.
    fn write(&self, place: u64, bytes: &[i8]) -> Result<(), Self::Error>;

    /// Writes several runs, each at its place, many at once if it can.
    fn write_runs(&self, runs: &[(u64, &[i8])]) -> Result<(), Self::Error> {
        runs.iter().try_for_each(|&(place, bytes)| self.write(place, bytes))
    }

    /// Reads several runs, each of whole cells and of [`RUN_BYTES`] at most, given by their places and lengths, and gives
    /// each with its number to `each`, in any order: many at once if it can.
    fn read_runs(&self, runs: &[(u64, usize)], each: &mut dyn FnMut(usize, &mut [i8])) -> Result<(), Self::Error> {
        let mut found = Vec::new();
        for (run, &(place, bytes)) in runs.iter().enumerate() {
            found.resize(bytes, 0);
            self.read(place, &mut found)?;
            each(run, &mut found);
        }
        Ok(())
    }

    /// A checksum of some bytes, which differs from file to file.
    fn checksum(&self, bytes: &[i8]) -> u64;

    /// What is read is not what was written.
    fn is_damaged(&self, what: &str) -> Self::Error;
}

/// Why there are no scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiskSweepError<E> {
    /// Progress said so. The file is as good as any to resume from.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// What was kept of a former process comes to no end, so it is no state of a sweep.
    #[error("the sweep comes to no end")]
    Endless,
    /// The file failed.
    #[error("{0}")]
    Failed(E),
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskSweepReport {
    /// Passes over the tasks, the last without a change.
    pub passes: u64,
    /// Positions recomputed.
    pub recomputed: u64,
    /// Bytes read from the working file.
    pub read_bytes: u64,
    /// Bytes written to it.
    pub written_bytes: u64,
    /// Cells that were not what had been written.
    pub damaged: u64,
    /// By pass, what was read and written in all when it began.
    pub begun: Vec<PassBytes>,
}

/// How often a position is recomputed in a database of more than a few stones.
const USUAL_PASSES: u64 = 60;

/// Passes from what a former process left. What was swept before takes no more than zeros do, which is some tens; what
/// was not may go on for ever.
const PASSES_MAX: u64 = 1000;

/// A drive that gives back so many cells otherwise than they were written does not do.
const DAMAGED_MAX: u64 = 1000;

/// Rows that are read at a time when all are done, in bytes, at least a cell high.
const STREAM_BYTES: usize = 1 << 20;

/// A job reads about so many bytes.
const JOB_BYTES: usize = 2 << 20;

/// Bytes of the longest run of cells.
pub const RUN_BYTES: usize = 256 << 10;

/// What a sweep on disk works on.
pub struct DiskSweep<'a, W: CellFile> {
    rules: &'a Rules,
    index: &'a Index,
    plan: &'a DiskPlan,
    kernel: Kernel,
    cells: Cells<'a, W>,
    is_resumed: bool,
    /// For each thread, a staged unit, and its floor.
    buffers: Vec<Mutex<Vec<i8>>>,
    report: DiskSweepReport,
}

/// The moves of all rows of a slab, made when the slab's turn comes.
#[derive(Default)]
struct SlabMoves(Option<(usize, Vec<[PackedMove; HALF_PITS]>)>);

impl<'a, W: CellFile> DiskSweep<'a, W> {
    /// A sweep of the positions of `index` over a working file, which holds what a former process left, or else anything.
    ///
    /// # Panics
    /// When the plan is of other positions.
    pub fn new(
        rules: &'a Rules,
        index: &'a Index,
        plan: &'a DiskPlan,
        kernel: Kernel,
        file: &'a W,
        is_resumed: bool,
    ) -> DiskSweep<'a, W> {
        assert!(plan.layout.stones == index.stones() && plan.layout.set == index.set());
        assert!(Kernel::available().any(|available| available == kernel), "this processor has no {kernel:?}");
        let buffers =
            (0..rayon::current_num_threads()).map(|_| Mutex::new(vec![0; 2 * UNIT_BYTES_MAX + PAD])).collect();
        let cells = Cells::new(file, &plan.layout, is_resumed);
        DiskSweep { rules, index, plan, kernel, cells, is_resumed, buffers, report: DiskSweepReport::default() }
    }

    /// Sweeps until nothing changes, from the best captures of all positions.
    ///
    /// # Errors
    /// See [`DiskSweepError`]; an arena or a thread that cannot be had is given by `failed`.
    pub fn solve(
        &mut self,
        captures: ReadCaptures<W::Error>,
        failed: impl Fn(io::Error) -> W::Error,
        progress: &dyn DriverObserver,
    ) -> Result<DiskSweepReport, DiskSweepError<W::Error>> {
        let arena = || Bytes::zeroed(self.plan.arena_bytes()).map_err(|error| DiskSweepError::Failed(failed(error)));
        let (mut this, mut other) = (arena()?, arena()?);
        let captures =
            TaskCaptures::distribute(&self.cells, self.plan, &mut this, captures).map_err(DiskSweepError::Failed)?;
        let tasks = &self.plan.tasks;
        // When each task was read last.
        let mut read: Vec<Option<u32>> = vec![None; tasks.len()];
        let mut rows = SlabMoves::default();
        let mut time = 1;
        // What is in `this`, to be computed, and what is in `other`, to be written.
        let (mut loaded, mut computed) = (None, None);
        let mut at = 0;
        let expected = self.index.positions() * USUAL_PASSES;
        loop {
            time += 1;
            let (cells, index) = (&self.cells, self.index);
            let (next, done) = thread::scope(|scope| {
                let other = &mut other;
                let (captures, read, tasks) = (&captures, &mut read, tasks);
                let moves = move || -> Result<Option<usize>, W::Error> {
                    if let Some(task) = computed {
                        write(cells, &tasks[task], other, time)?;
                    }
                    let Some(task) = stale(cells, tasks, read, at, loaded) else { return Ok(None) };
                    read[task] = Some(time);
                    load(cells, index, captures, task, &tasks[task], other)?;
                    Ok(Some(task))
                };
                let moves = thread::Builder::new().spawn_scoped(scope, moves).map_err(&failed)?;
                let done = loaded.map(|task: usize| self.recompute(&tasks[task], &mut rows, &mut this));
                Ok((moves.join(), done))
            })
            .map_err(DiskSweepError::Failed)?;
            // A panic of the thread is one of ours.
            let next = next.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(DiskSweepError::Failed)?;
            self.report.recomputed += done.unwrap_or(0);
            if self.cells.is_lost.swap(false, Relaxed) {
                read.fill(None);
            }
            if self.cells.counts.damaged.load(Relaxed) > DAMAGED_MAX + self.plan.layout.cells as u64 {
                let what = "scores read back are again and again not what was written";
                return Err(DiskSweepError::Failed(self.cells.file().is_damaged(what)));
            }
            if next.is_none() && loaded.is_none() {
                break;
            }
            if let (Some(next), Some(loaded)) = (next, loaded) {
                forward(&self.plan.layout, &tasks[loaded], &this, &tasks[next], &mut other);
            }
            (computed, loaded) = (loaded, next);
            std::mem::swap(&mut this, &mut other);
            if let Some(next) = next {
                // The first after the last one is a pass.
                if next <= at || self.report.passes == 0 {
                    let DiskSweepReport { read_bytes: read, written_bytes: written, .. } = self.report();
                    if let Some(begun) = self.report.begun.last() {
                        let is_full = self.report.passes == 1;
                        let changed = self.plan.changes(written - begun.written);
                        progress.end_pass(EndedPass { is_full, is_next_full: false, changed });
                    }
                    self.report.passes += 1;
                    self.report.begun.push(PassBytes { read, written });
                }
                at = next;
            }
            if self.is_resumed && self.report.passes > PASSES_MAX {
                return Err(DiskSweepError::Endless);
            }
            if progress.advance(self.report.recomputed, expected.max(self.report.recomputed)).is_break() {
                return Err(DiskSweepError::Stopped(Stopped));
            }
        }
        Ok(self.report())
    }

    /// What was done so far.
    pub fn report(&self) -> DiskSweepReport {
        let counts = &self.cells.counts;
        DiskSweepReport {
            read_bytes: counts.read_bytes.load(Relaxed),
            written_bytes: counts.written_bytes.load(Relaxed),
            damaged: counts.damaged.load(Relaxed),
            ..self.report.clone()
        }
    }

    /// Gives all scores in canonical order, in portions of whole rows.
    ///
    /// # Errors
    /// Those of `receive`, and of the file.
    pub fn scores(&self, mut receive: impl FnMut(&[i8]) -> Result<(), W::Error>) -> Result<(), W::Error> {
        let mut rows = Vec::new();
        for slab in &self.plan.layout.slabs[..=self.plan.layout.stones as usize] {
            let columns = ColumnPieces::new(slab, 0..slab.columns);
            let at_once = (STREAM_BYTES / (slab.height * slab.columns)).max(1);
            for start in (0..slab.row_groups).step_by(at_once) {
                let groups = start..slab.row_groups.min(start + at_once);
                rows.resize(slab.rows_of(&groups).len() * slab.columns, 0);
                let mut rest = &mut rows[..];
                let mut jobs = Vec::new();
                for group in groups {
                    let group = group..group + 1;
                    let (mine, others) = rest.split_at_mut(slab.rows_of(&group).len() * slab.columns);
                    jobs.push((group, mine));
                    rest = others;
                }
                self.cells.each(jobs, |(group, mine), _| self.cells.read(slab, &columns, &group, mine))?;
                if self.cells.is_lost.load(Relaxed) {
                    return Err(self.cells.file().is_damaged("scores read back are not what was written"));
                }
                receive(&rows)?;
            }
        }
        Ok(())
    }
}

impl SlabMoves {
    fn of(&mut self, index: &Index, slab: usize) -> &[[PackedMove; HALF_PITS]] {
        if self.0.as_ref().is_none_or(|(of, _)| *of != slab) {
            // The memory of one at a time.
            self.0 = None;
        }
        let (_, rows) = self.0.get_or_insert_with(|| (slab, rows_of(index, slab as u32)));
        rows
    }
}

/// The first task after `at`, from the end on to the begin again, that has read what changed since; not `except`, which
/// is being computed.
fn stale<W: CellFile>(
    cells: &Cells<W>,
    tasks: &[SweepTask],
    read: &[Option<u32>],
    at: usize,
    except: Option<usize>,
) -> Option<usize> {
    let layout = cells.layout();
    let is_stale = |task: usize| {
        let Some(time) = read[task] else { return true };
        let changed = |strip: &ColumnStrip| {
            let slab = &layout.slabs[strip.slab];
            strip.column_groups.iter().any(|groups| cells.changed_after(slab, groups, time))
        };
        let changed_besides = |block: &TaskBlock| {
            let slab = &layout.slabs[tasks[task].slab];
            let mut groups: Vec<_> = block.outside.iter().map(|row| row / slab.height).collect();
            groups.dedup();
            let base = &layout.slabs[block.base];
            cells.changed_after(base, &base.groups_of(&block.columns), time)
                || groups.into_iter().any(|group| cells.rows_changed_after(slab, group, time))
        };
        tasks[task].strips.iter().any(changed)
            || matches!(&tasks[task].kind, TaskKind::TaskBlock(block) if changed_besides(block))
    };
    let first = if except.is_some() { at + 1 } else { at };
    (first..tasks.len()).chain(0..first).filter(|&task| Some(task) != except).find(|&task| is_stale(task))
}

/// Reads all that a task is computed from into its arena.
fn load<W: CellFile>(
    cells: &Cells<W>,
    index: &Index,
    captures: &TaskCaptures,
    at: usize,
    task: &SweepTask,
    arena: &mut [i8],
) -> Result<(), W::Error> {
    enum LoadJob<'t, 'm> {
        Strip(&'t CellSlab, &'t ColumnPieces, Range<usize>, &'t [usize], &'m mut [i8]),
        Captures((u64, u64, &'m mut [i8])),
    }
    let layout = cells.layout();
    let halves = task.halves(index);
    // Slab, columns, its rows if not all, and where they go, in the order of the arena.
    let mut parts = Vec::new();
    let slab = &layout.slabs[task.slab];
    let own = task.bytes_of_rows(layout);
    if let TaskKind::TaskBlock(block) = &task.kind {
        parts.push((slab, ColumnPieces::new(slab, 0..slab.columns), Some(&block.outside), own));
        let base = &layout.slabs[block.base];
        parts.push((base, ColumnPieces::new(base, block.columns.clone()), None, block.columns_offset));
    }
    for strip in &task.strips {
        let slab = &layout.slabs[strip.slab];
        parts.push((slab, ColumnPieces::new(slab, strip.columns(&halves)), None, strip.offset));
    }
    let all_rows: Vec<usize> = (0..parts.iter().map(|(slab, ..)| slab.rows).max().unwrap_or(0)).collect();
    let mut places: Vec<_> = parts.iter().map(Some).collect();
    places.push(None);
    // The captures of a block stand before its strips.
    places.sort_by_key(|part| part.map_or(task.captures, |(.., offset)| *offset));
    let mut jobs = Vec::new();
    let (mut rest, mut end) = (arena, 0);
    for part in places {
        let Some((slab, columns, rows, offset)) = part else {
            let (_, from) = std::mem::take(&mut rest).split_at_mut(task.captures - end);
            let (mine, after) = from.split_at_mut(own);
            (rest, end) = (after, task.captures + own);
            jobs.extend(captures.pieces(at, task, mine).into_iter().map(LoadJob::Captures));
            continue;
        };
        let (_, mut from) = std::mem::take(&mut rest).split_at_mut(offset - end);
        end = *offset;
        let mut rows: &[usize] = rows.map_or(&all_rows[..slab.rows], Vec::as_slice);
        let at_once = (JOB_BYTES / (slab.height * columns.len())).max(1);
        while let Some(&first) = rows.first() {
            // Some groups in which there is a row each, one behind the other.
            let mut groups = first / slab.height..first / slab.height + 1;
            let in_run = |&&row: &&usize| {
                let group = row / slab.height;
                if group == groups.end && groups.len() < at_once {
                    groups.end += 1;
                }
                groups.contains(&group)
            };
            let (now, later) = rows.split_at(rows.iter().take_while(in_run).count());
            let (mine, others) = from.split_at_mut(now.len() * columns.len());
            (rows, from) = (later, others);
            end += mine.len();
            jobs.push(LoadJob::Strip(slab, columns, groups, now, mine));
        }
        rest = from;
    }
    cells.each(jobs, |job, _| match job {
        LoadJob::Strip(slab, columns, groups, rows, into) => cells.read_rows(slab, columns, &groups, rows, into),
        LoadJob::Captures(piece) => TaskCaptures::read(cells, piece),
    })
}

/// Writes what changed of a task.
fn write<W: CellFile>(cells: &Cells<W>, task: &SweepTask, arena: &[i8], time: u32) -> Result<(), W::Error> {
    let layout = cells.layout();
    let slab = &layout.slabs[task.slab];
    let rows = SlabPart { groups: task.groups.clone(), columns: 0..slab.columns, from: arena };
    let parts = match &task.kind {
        TaskKind::Base(base) => vec![(*base, rows)],
        TaskKind::TaskBlock(block) => {
            let groups = 0..layout.slabs[block.high].row_groups;
            let columns = SlabPart { groups, columns: block.columns.clone(), from: &arena[block.columns_offset..] };
            vec![(task.slab, rows), (block.high, columns)]
        }
    };
    let mut jobs = Vec::new();
    for (slab, part) in &parts {
        let slab = &layout.slabs[*slab];
        let groups = slab.groups_of(&part.columns);
        let at_once = (JOB_BYTES / (part.groups.len() * slab.cell_bytes)).max(1);
        for start in groups.clone().step_by(at_once) {
            jobs.push((slab, part, start..groups.end.min(start + at_once)));
        }
    }
    cells.each(jobs, |(slab, part, groups), buffer| cells.write(slab, part, groups, time, buffer))
}

/// Gives a task that was loaded what it needs of one that was computed meanwhile, and that the file does not have yet.
fn forward(layout: &CellLayout, from: &SweepTask, computed: &[i8], to: &SweepTask, loaded: &mut [i8]) {
    let TaskKind::TaskBlock(block) = &to.kind else { return };
    match &from.kind {
        TaskKind::Base(base) if *base == block.base => {
            let (columns, width) = (layout.slabs[*base].columns, block.columns.len());
            for (at, row) in from.rows.clone().enumerate() {
                let row_to = &mut loaded[block.columns_offset + row * width..][..width];
                row_to.copy_from_slice(&computed[at * columns + block.columns.start..][..width]);
            }
        }
        TaskKind::TaskBlock(other) if other.high == block.high => {
            let columns = layout.slabs[to.slab].columns;
            for (at, row) in block.outside.iter().enumerate().filter(|(_, row)| from.rows.contains(row)) {
                let row_to = &mut loaded[(to.rows.len() + at) * columns..][..columns];
                row_to.copy_from_slice(&computed[(row - from.rows.start) * columns..][..columns]);
            }
        }
        _ => {}
    }
}
