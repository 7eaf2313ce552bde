//! The method *sweep* with its scores on disk: any number of stones in little memory, at the speed of the drive.
//!
//! The operator, and why any order and any stale read is right, are those of [`crate::sweep`]. A working file holds the
//! scores in cells (`tiled/layout.rs`). A task (`tiled/plan.rs`) is some whole rows of a slab: all that they are recomputed from, some
//! columns of each slab that their moves lead to, is read in long runs into an arena, where the row kernels find it as
//! they find a database in memory. While one task is computed, in one arena, the result of the task before is written
//! from the other, and what the next one needs is read into it.
//!
//! **Passes.** A task is computed again when a cell that it reads has changed since it read it last; when none has, the
//! scores are the least fixpoint. Results are compared with what the file has by the checksums of cells, so what does
//! not change is not written.
//!
//! **Resuming.** What a former process left in the file, whenever it ended, is a mixture of earlier states, and the sweep
//! goes on from it: everything counts as changed. A cell that is torn or damaged has a wrong checksum, and begins anew
//! from zeros, which is below every state.

mod captures;
#[cfg(test)]
mod cases;
mod cells;
mod layout;
mod plan;

pub use captures::ReadCaptures;
pub use layout::Layout;
pub use plan::{PassBytes, Plan, TooSmall};

use crate::apply::apply;
use crate::kernel::{Child, Kernel, Moves, SlabWork, UNIT_BYTES_MAX, UNIT_CHUNKS, UNIT_ROWS, Unit};
use crate::memory::{Bytes, PAD};
use crate::rows::SlabRows;
use crate::tables::{CHUNK, Gather, RowMove, rows_of};
use crate::{Progress, Stopped};
use captures::Captures;
use cells::{Cells, Pieces};
use game::sow::{Class, Ends, SowMap};
use game::{HALF_PITS, Half, Index, Rules};
use layout::CellSlab;
use plan::{Strip, Task};
use rayon::prelude::*;
use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

/// A file read and written at any place, from several threads; and the checksums of what is in it.
pub trait Working: Sync {
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

    /// A checksum of some bytes, which differs from file to file.
    fn checksum(&self, bytes: &[i8]) -> u64;

    /// What is read is not what was written.
    fn is_damaged(&self, what: &str) -> Self::Error;
}

/// Why there are no scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TiledError<E> {
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
pub struct Report {
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
const USUAL_PASSES: u64 = 50;

/// Passes from what a former process left. What was swept before takes no more than zeros do, which is some tens; what
/// was not may go on for ever.
const PASSES_MAX: u64 = 1000;

/// A drive that gives back so many cells otherwise than they were written does not do.
const DAMAGED_MAX: u64 = 1000;

/// Rows that are read at a time when all are done, in bytes, at least a cell high.
const STREAM_BYTES: usize = 1 << 20;

/// A job reads about so many bytes.
const JOB_BYTES: usize = 2 << 20;

/// What a sweep on disk works on.
pub struct Tiled<'a, W: Working> {
    rules: &'a Rules,
    index: &'a Index,
    plan: &'a Plan,
    kernel: Kernel,
    cells: Cells<'a, W>,
    is_resumed: bool,
    /// For each thread, a staged unit.
    buffers: Vec<Mutex<Vec<i8>>>,
    report: Report,
}

/// The moves of all rows of a slab, made when the slab's turn comes.
#[derive(Default)]
struct Rows(Option<(usize, Vec<[RowMove; HALF_PITS]>)>);

impl<'a, W: Working> Tiled<'a, W> {
    /// A sweep of the positions of `index` over a working file, which holds what a former process left, or else anything.
    ///
    /// # Panics
    /// When the plan is of other positions.
    pub fn new(
        rules: &'a Rules,
        index: &'a Index,
        plan: &'a Plan,
        kernel: Kernel,
        file: &'a W,
        is_resumed: bool,
    ) -> Tiled<'a, W> {
        assert!(plan.layout.stones == index.stones() && plan.layout.set == index.set());
        assert!(Kernel::available().any(|available| available == kernel), "this processor has no {kernel:?}");
        let buffers = (0..rayon::current_num_threads()).map(|_| Mutex::new(vec![0; UNIT_BYTES_MAX])).collect();
        let cells = Cells::new(file, &plan.layout, is_resumed);
        Tiled { rules, index, plan, kernel, cells, is_resumed, buffers, report: Report::default() }
    }

    /// Sweeps until nothing changes, from the best captures of all positions.
    ///
    /// # Errors
    /// See [`TiledError`]; an arena that there is no memory for is given by `failed`.
    pub fn solve(
        &mut self,
        captures: ReadCaptures<W::Error>,
        failed: impl Fn(io::Error) -> W::Error,
        progress: &dyn Progress,
    ) -> Result<Report, TiledError<W::Error>> {
        let arena = || Bytes::zeroed(self.plan.arena_bytes()).map_err(|error| TiledError::Failed(failed(error)));
        let (mut this, mut other) = (arena()?, arena()?);
        let captures = Captures::deal(&self.cells, self.plan, &mut this, captures).map_err(TiledError::Failed)?;
        let tasks = &self.plan.tasks;
        // When each task was read last.
        let mut read: Vec<Option<u32>> = vec![None; tasks.len()];
        let mut rows = Rows::default();
        let mut time = 1;
        // What is in `this`, to be computed, and what is in `other`, to be written.
        let (mut loaded, mut computed) = (None, None);
        let mut at = 0;
        let expected = self.index.positions() * USUAL_PASSES;
        loop {
            time += 1;
            let (cells, index) = (&self.cells, self.index);
            let (next, done) = std::thread::scope(|scope| {
                let other = &mut other;
                let (captures, read, tasks) = (&captures, &mut read, tasks);
                let moves = scope.spawn(move || -> Result<Option<usize>, W::Error> {
                    if let Some(task) = computed {
                        write(cells, &tasks[task], other, time)?;
                    }
                    let Some(task) = stale(cells, tasks, read, at, loaded) else { return Ok(None) };
                    read[task] = Some(time);
                    load(cells, index, captures, task, &tasks[task], other)?;
                    Ok(Some(task))
                });
                let done = loaded.map(|task: usize| self.recompute(&tasks[task], &mut rows, &mut this));
                (moves.join(), done)
            });
            // A panic of the thread is one of ours.
            let next = next.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(TiledError::Failed)?;
            self.report.recomputed += done.unwrap_or(0);
            if self.cells.is_lost.swap(false, Relaxed) {
                read.fill(None);
            }
            if self.cells.counts.damaged.load(Relaxed) > DAMAGED_MAX + self.plan.layout.cells as u64 {
                let what = "scores read back are again and again not what was written";
                return Err(TiledError::Failed(self.cells.file().is_damaged(what)));
            }
            if next.is_none() && loaded.is_none() {
                break;
            }
            (computed, loaded) = (loaded, next);
            std::mem::swap(&mut this, &mut other);
            if let Some(next) = next {
                // The first after the last one is a pass.
                if next <= at || self.report.passes == 0 {
                    self.report.passes += 1;
                    let Report { read_bytes: read, written_bytes: written, .. } = self.report();
                    self.report.begun.push(PassBytes { read, written });
                }
                at = next;
            }
            if self.is_resumed && self.report.passes > PASSES_MAX {
                return Err(TiledError::Endless);
            }
            if progress.advance(self.report.recomputed, expected.max(self.report.recomputed)).is_break() {
                return Err(TiledError::Stopped(Stopped));
            }
        }
        Ok(self.report())
    }

    /// What was done so far.
    pub fn report(&self) -> Report {
        let counts = &self.cells.counts;
        Report {
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
        for slab in &self.plan.layout.slabs {
            let columns = Pieces::new(slab, 0..slab.columns);
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
                self.cells.each(jobs, |(group, mine), buffer| self.cells.read(slab, &columns, &group, mine, buffer))?;
                if self.cells.is_lost.load(Relaxed) {
                    return Err(self.cells.file().is_damaged("scores read back are not what was written"));
                }
                receive(&rows)?;
            }
        }
        Ok(())
    }

    /// Recomputes the rows of a task from what is in its arena; how many positions.
    fn recompute(&self, task: &Task, rows: &mut Rows, arena: &mut Bytes) -> u64 {
        let layout = &self.plan.layout;
        let slab = &layout.slabs[task.slab];
        let moves = rows.of(self.index, task.slab);
        let opponent = layout.stones - task.slab as u32;
        let halves: Vec<Half> = task.rows.clone().map(|row| self.index.opponent_unrank(opponent, row as u32)).collect();
        let classes: Vec<(&Strip, Class)> = task.strips.iter().flat_map(classes_of).collect();
        let gathers: Vec<Gather> = classes.par_iter().map(|&(_, class)| gather(self.rules, &halves, class)).collect();
        let inputs = task.strips.first().map_or(task.captures, |strip| strip.offset);
        let (out, values) = arena.split_padded_at_mut(inputs);
        let to = SlabRows { offset: 0, stride: slab.columns, rows: task.rows.len(), columns: slab.columns };
        let mut work = SlabWork {
            slab: self.index.slab(task.slab as u32),
            to,
            rows: moves,
            columns: halves.len(),
            children: SlabWork::no_children(),
            captures: &values[task.captures - inputs..][..task.bytes_of_rows(layout) + PAD],
        };
        for ((strip, class), gather) in classes.iter().zip(&gathers) {
            let (offset, stride) = (strip.offset - inputs, halves.len());
            work.children[class.number()] = Some(Child { gather, offset, bytes: strip.bytes, stride });
        }
        let chunks = halves.len().div_ceil(CHUNK).div_ceil(2 * rayon::current_num_threads()).min(UNIT_CHUNKS);
        let all = Moves::all_but(0..0);
        out[..task.bytes_of_rows(layout)].par_chunks_mut(chunks * CHUNK * slab.columns).enumerate().for_each(
            |(at, out)| {
                let rows = out.len() / slab.columns;
                // As if its columns were all.
                let alone = SlabWork { to: SlabRows { rows, ..to }, children: Vec::new(), ..work };
                let thread = rayon::current_thread_index().unwrap_or(0);
                let mut staged = self.buffers[thread].lock().unwrap_or_else(PoisonError::into_inner);
                for row in (0..slab.columns).step_by(UNIT_ROWS) {
                    let unit = Unit::whole(row, slab.columns, at * chunks..at * chunks + rows.div_ceil(CHUNK));
                    self.kernel.recompute(&work, &unit, values, &all, work.floor(&unit), &mut staged);
                    apply(self.kernel, &alone, &Unit { chunk: 0, ..unit }, &staged, out, 0, |_| {});
                }
            },
        );
        task.bytes_of_rows(layout) as u64
    }
}

impl Rows {
    fn of(&mut self, index: &Index, slab: usize) -> &[[RowMove; HALF_PITS]] {
        if self.0.as_ref().is_none_or(|(of, _)| *of != slab) {
            // The memory of one at a time.
            self.0 = None;
        }
        let (_, rows) = self.0.get_or_insert_with(|| (slab, rows_of(index, slab as u32)));
        rows
    }
}

/// The classes of moves that lead to a strip.
fn classes_of(strip: &Strip) -> impl Iterator<Item = (&Strip, Class)> {
    let class = |ends| Class { crossing: strip.crossing as u8, ends };
    [class(Ends::Mover), class(Ends::Opponent)]
        .into_iter()
        .filter(|class| class.occurs())
        .map(move |class| (strip, class))
}

/// Which columns of a task are quiet; strips have them in the order of the task.
fn gather(rules: &Rules, halves: &[Half], class: Class) -> Gather {
    Gather::in_place(&SowMap::of_columns(rules, halves.len(), halves.iter().copied(), class))
}

/// The first task after `at`, from the end on to the begin again, that has read what changed since; not `except`, which
/// is being computed.
fn stale<W: Working>(
    cells: &Cells<W>,
    tasks: &[Task],
    read: &[Option<u32>],
    at: usize,
    except: Option<usize>,
) -> Option<usize> {
    let layout = cells.layout();
    let is_stale = |task: usize| {
        let Some(time) = read[task] else { return true };
        let changed = |strip: &Strip| {
            let slab = &layout.slabs[strip.slab];
            strip.column_groups.iter().any(|groups| cells.changed_after(slab, groups, time))
        };
        tasks[task].strips.iter().any(changed)
    };
    let first = if except.is_some() { at + 1 } else { at };
    (first..tasks.len()).chain(0..first).filter(|&task| Some(task) != except).find(|&task| is_stale(task))
}

/// Reads all that a task is computed from into its arena.
fn load<W: Working>(
    cells: &Cells<W>,
    index: &Index,
    captures: &Captures,
    at: usize,
    task: &Task,
    arena: &mut [i8],
) -> Result<(), W::Error> {
    enum Job<'t, 'm> {
        Strip(&'t CellSlab, &'t Pieces, Range<usize>, &'m mut [i8]),
        Piece((u64, u64, &'m mut [i8])),
    }
    let layout = cells.layout();
    let mut jobs = Vec::new();
    let (mut rest, mut end) = (arena, 0);
    let halves = task.halves(index);
    let pieces_of = |strip: &Strip| Pieces::new(&layout.slabs[strip.slab], strip.columns(&halves));
    let strips: Vec<_> = task.strips.iter().map(pieces_of).collect();
    for (strip, columns) in task.strips.iter().zip(&strips) {
        let slab = &layout.slabs[strip.slab];
        let (_, from) = std::mem::take(&mut rest).split_at_mut(strip.offset - end);
        let (mut strip_rows, after) = from.split_at_mut(strip.bytes);
        (rest, end) = (after, strip.offset + strip.bytes);
        let group_bytes = slab.height * halves.len();
        let at_once = (JOB_BYTES / group_bytes).max(1);
        for start in (0..slab.row_groups).step_by(at_once) {
            let groups = start..slab.row_groups.min(start + at_once);
            let bytes = slab.rows_of(&groups).len() * halves.len();
            let (mine, others) = std::mem::take(&mut strip_rows).split_at_mut(bytes);
            strip_rows = others;
            jobs.push(Job::Strip(slab, columns, groups, mine));
        }
    }
    let (_, from) = rest.split_at_mut(task.captures - end);
    let pieces = captures.pieces(at, task, &mut from[..task.bytes_of_rows(layout)]);
    jobs.extend(pieces.into_iter().map(Job::Piece));
    cells.each(jobs, |job, buffer| match job {
        Job::Strip(slab, columns, groups, into) => cells.read(slab, columns, &groups, into, buffer),
        Job::Piece(piece) => Captures::read(cells, piece),
    })
}

/// Writes what changed of the rows of a task.
fn write<W: Working>(cells: &Cells<W>, task: &Task, arena: &[i8], time: u32) -> Result<(), W::Error> {
    let slab = &cells.layout().slabs[task.slab];
    let at_once = (JOB_BYTES / (task.groups.len() * slab.cell_bytes)).max(1);
    let jobs = (0..slab.column_groups).step_by(at_once).map(|start| start..slab.column_groups.min(start + at_once));
    cells.each(jobs.collect(), |groups, buffer| cells.write(slab, &task.groups, groups, arena, time, buffer))
}
