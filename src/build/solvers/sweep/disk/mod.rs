//! The method *sweep* with its scores on disk: any number of stones in little memory, at the speed of the drive.
//!
//! The operator, and the proof that any order and stale reads are correct, are those of [`crate::sweep`]. A working
//! file has the scores in cells (`layout.rs`). A task (`plan.rs`) recomputes whole rows of a slab, or these and columns
//! of another. Its inputs, columns of each slab that its moves lead to, are read in long runs into an arena, where the
//! row kernels use them like a database in memory. There are two arenas: while one task is computed, the result of the
//! previous task is written from the other arena, and the inputs of the next task are read into it. Inputs that the
//! current task computes are then copied in memory.
//!
//! **Passes.** A task is repeated when a cell that it reads has changed since its last read. When there is no such
//! task, the scores are the least fixpoint. Results are compared with the file by the checksums of cells, so unchanged
//! cells are not written.
//!
//! **Resuming.** The file of a process that ended at any time is a mixture of intermediate states, from which a sweep
//! may resume: everything counts as changed. A torn or damaged cell has a wrong checksum and counts as zeros, which are
//! below every state.

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

/// Working file: random access from several threads, and checksums.
pub trait CellFile: Sync {
    /// Error of the file.
    type Error: Send;

    /// Fills `into` from position `place` on.
    fn read(&self, place: u64, into: &mut [i8]) -> Result<(), Self::Error>;

    /// Writes at position `place`.
    fn write(&self, place: u64, bytes: &[i8]) -> Result<(), Self::Error>;

    /// Writes several runs, each at its position; in parallel if possible.
    fn write_runs(&self, runs: &[(u64, &[i8])]) -> Result<(), Self::Error> {
        runs.iter().try_for_each(|&(place, bytes)| self.write(place, bytes))
    }

    /// Reads several runs, given by position and length, and passes each with its number to `each`, in any order; in
    /// parallel if possible. A run has whole cells and at most [`RUN_BYTES`].
    fn read_runs(&self, runs: &[(u64, usize)], each: &mut dyn FnMut(usize, &mut [i8])) -> Result<(), Self::Error> {
        let mut found = Vec::new();
        for (run, &(place, bytes)) in runs.iter().enumerate() {
            found.resize(bytes, 0);
            self.read(place, &mut found)?;
            each(run, &mut found);
        }
        Ok(())
    }

    /// Computes a checksum, which depends on the file too.
    fn checksum(&self, bytes: &[i8]) -> u64;

    /// Creates the error of data that read back differently.
    fn is_damaged(&self, what: &str) -> Self::Error;
}

/// Reason why a sweep on disk did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiskSweepError<E> {
    /// The observer stopped it. The sweep may resume from the file.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The sweep does not converge, so the file of the previous process was not a state of a sweep.
    #[error("the sweep does not converge")]
    Endless,
    /// The file failed.
    #[error("{0}")]
    Failed(E),
}

/// Work done by a sweep on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskSweepReport {
    /// Passes over the tasks; the last one changes nothing.
    pub passes: u64,
    /// Positions recomputed.
    pub recomputed: u64,
    /// Bytes read from the working file.
    pub read_bytes: u64,
    /// Bytes written to the working file.
    pub written_bytes: u64,
    /// Cells that read back differently.
    pub damaged: u64,
    /// By pass, the bytes read and written before it.
    pub begun: Vec<PassBytes>,
}

/// Times that a position is recomputed, in databases of more than a few stones.
const USUAL_PASSES: u64 = 60;

/// Most passes of a resumed sweep. From a state of a sweep it takes some tens, as from zeros; from anything else it may
/// not end.
const PASSES_MAX: u64 = 1000;

/// Damaged cells, beyond the number of all cells, at which the drive is given up.
const DAMAGED_MAX: u64 = 1000;

/// Bytes of rows read at a time at the end; at least one cell high.
const STREAM_BYTES: usize = 1 << 20;

/// Bytes of an I/O job, about.
const JOB_BYTES: usize = 2 << 20;

/// Bytes of the longest run of cells.
pub const RUN_BYTES: usize = 256 << 10;

/// A sweep on disk.
pub struct DiskSweep<'a, W: CellFile> {
    rules: &'a Rules,
    index: &'a Index,
    plan: &'a DiskPlan,
    kernel: Kernel,
    cells: Cells<'a, W>,
    is_resumed: bool,
    /// By thread, the buffer for a staged unit and its floor.
    buffers: Vec<Mutex<Vec<i8>>>,
    report: DiskSweepReport,
}

/// The moves of all rows of one slab, computed on demand.
#[derive(Default)]
struct SlabMoves(Option<(usize, Vec<[PackedMove; HALF_PITS]>)>);

impl<'a, W: CellFile> DiskSweep<'a, W> {
    /// Creates a sweep of the positions of `index`. If `is_resumed`, the file is that of a previous process.
    ///
    /// # Panics
    /// If the plan is of other positions.
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
    /// See [`DiskSweepError`]. `failed` converts the failure to allocate an arena or start a thread.
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
        // By task, the time of its last read.
        let mut read: Vec<Option<u32>> = vec![None; tasks.len()];
        let mut rows = SlabMoves::default();
        let mut time = 1;
        // The task in `this`, to be computed, and the task in `other`, to be written.
        let (mut loaded, mut computed) = (None, None);
        let mut at = 0;
        let expected = self.index.slab_positions() * USUAL_PASSES;
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
            // Propagates a panic of the thread.
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
                // A pass begins when the tasks wrap around.
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

    /// Returns the work done so far.
    pub fn report(&self) -> DiskSweepReport {
        let counts = &self.cells.counts;
        DiskSweepReport {
            read_bytes: counts.read_bytes.load(Relaxed),
            written_bytes: counts.written_bytes.load(Relaxed),
            damaged: counts.damaged.load(Relaxed),
            ..self.report.clone()
        }
    }

    /// Passes all scores to `receive`, in canonical order and portions of whole rows.
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
            // Frees the previous one first.
            self.0 = None;
        }
        let (_, rows) = self.0.get_or_insert_with(|| (slab, rows_of(index, slab as u32)));
        rows
    }
}

/// Returns the first task from `at` on, cyclically, with inputs that changed after its last read; except the task
/// `except`, which is being computed.
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

/// Reads all inputs of a task into its arena.
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
    // Slab, columns, rows if not all, and offset in the arena.
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
    // The captures of a block precede its strips.
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
            // Consecutive groups, each with a wanted row.
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

/// Writes the changed cells of a task.
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

/// Copies the results of a computed task, which are not in the file yet, to the inputs of a loaded task.
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
