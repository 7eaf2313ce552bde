//! Plan of a sweep on disk: the tasks that are computed at a time, and their inputs.
//!
//! Slabs are processed in pairs, as in memory: in the *high* slab the mover has at least half of the stones, in the
//! *low* slab the opponent has as many. Moves that stay in the mover's half lead from one to the other and raise the
//! rank of that half, so whole lines of such moves settle at once if both are in memory. A pair takes two kinds of
//! tasks:
//!
//! * the *bases* of rows of the high slab: the values of crossing moves and captures. Bases have a slab of their own in
//!   the file;
//! * a *block*: the positions of both slabs in which the player with more stones has one of a range of halves, that is
//!   rows of the low slab and columns of the high one. It is derived from the bases of both, and from rows of the low
//!   slab outside of the block, of higher rank. There are no cycles within a block.
//!
//! If both players have half of the stones, the high slab is a second copy of the low one.
//!
//! Positions whose opponent has one of a range of halves are whole rows of a slab. Moves with c crossing stones lead
//! from them to all rows of the child slab, but only to the columns of the same halves with c stones more. Sowing
//! starts with the pits that order halves, so these columns are close to each other, too.

use super::cells::{BUFFERS_BYTES, CELL_STATE_BYTES};
use super::layout::{CellLayout, CellSlab};
use crate::huge_pages::PAD;
use game::sow::{self, Ends, SowClass};
use game::{HALF_PITS, Half, Halves, Index, PositionSet};
use std::ops::Range;

/// Plan of the tasks of a database within a memory budget.
#[derive(Clone, Debug)]
pub struct DiskPlan {
    pub(crate) layout: CellLayout,
    pub(crate) tasks: Vec<SweepTask>,
    /// Bytes of the largest task.
    pub(crate) arena_bytes: usize,
    file_bytes: u64,
}

/// Task: whole rows of a slab.
#[derive(Clone, Debug)]
pub(crate) struct SweepTask {
    /// The mover's stones.
    pub(crate) slab: usize,
    pub(crate) groups: Range<usize>,
    pub(crate) rows: Range<usize>,
    pub(crate) strips: Vec<ColumnStrip>,
    /// Offset of its best captures in the arena.
    pub(crate) captures: usize,
    pub(crate) kind: TaskKind,
    /// Position of its best captures in the file.
    pub(crate) captures_place: u64,
    pub(crate) bytes: usize,
}

/// Result of a task.
#[derive(Clone, Debug)]
pub(crate) enum TaskKind {
    /// The bases of the rows, stored in this slab of the file.
    Base(usize),
    /// The scores of the rows, and of the columns of the block.
    TaskBlock(TaskBlock),
}

/// The columns of a block.
#[derive(Clone, Debug)]
pub(crate) struct TaskBlock {
    /// High slab of its columns.
    pub(crate) high: usize,
    /// Slab of their bases.
    pub(crate) base: usize,
    pub(crate) columns: Range<usize>,
    /// Rows outside of the block that moves lead to from its columns, ascending. In the arena they follow its own rows.
    pub(crate) outside: Vec<usize>,
    /// Offset of its columns in the arena, row by row: at first their bases, followed by strips; these are overwritten
    /// by the bases column by column.
    pub(crate) columns_offset: usize,
    pub(crate) bases_offset: usize,
}

/// Strip: the columns of all rows of a slab that moves of a task lead to.
#[derive(Clone, Debug)]
pub(crate) struct ColumnStrip {
    pub(crate) crossing: u32,
    /// The mover's stones.
    pub(crate) slab: usize,
    /// Groups of these columns, in runs.
    pub(crate) column_groups: Vec<Range<usize>>,
    /// Offset in the arena.
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

/// Error of a memory budget that is too small for any plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSmall {
    /// Bytes of the smallest possible arena.
    pub needed: usize,
}

/// Bytes moved in a full pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassBytes {
    /// Bytes read.
    pub read: u64,
    /// Bytes written, if everything changes.
    pub written: u64,
}

/// Block size of direct I/O; the captures of a task start at a block.
const PLACE_BYTES: u64 = 4096;

/// Bytes of memory per half of a slab: moves, rank, pits, children from a block, and state, with a reserve for the
/// halves of a task while it is read.
const HALF_BYTES: usize = 72;

/// Alignment of strips: a cache line.
const LINE: usize = 64;

/// Most rows outside of the smallest block, as a multiple of its own.
const OUTSIDE_MAX: usize = 3;

impl DiskPlan {
    /// Computes the plan for two arenas of at most `arena_bytes` bytes each.
    ///
    /// # Errors
    /// [`TooSmall`] with the size of the smallest possible arena.
    pub fn new(index: &Index, arena_bytes: usize) -> Result<DiskPlan, TooSmall> {
        let layout = CellLayout::new(index.stones(), index.set());
        let needed = least(&layout);
        if needed > arena_bytes {
            return Err(TooSmall { needed });
        }
        let mut tasks = Vec::new();
        let mut place = layout.bytes();
        for pair in pairs(index.stones()) {
            let moves = straight_of(index, pair.mover as u32);
            for (slab, is_block) in [(pair.mover, false), (pair.opponent, true)] {
                let new = |groups| {
                    if is_block {
                        SweepTask::block(&layout, &pair, groups, index, &moves)
                    } else {
                        SweepTask::base(&layout, &pair, groups)
                    }
                };
                let mut end = layout.slabs[slab].row_groups;
                while end > 0 {
                    let fits = |start: &usize| new(*start..end).bytes <= arena_bytes;
                    let start = (0..end).rev().take_while(fits).last().unwrap_or(end - 1);
                    let mut task = new(start..end);
                    if task.bytes > arena_bytes {
                        return Err(TooSmall { needed: task.bytes });
                    }
                    task.find_columns(&layout, index);
                    task.captures_place = place;
                    place += (task.bytes_of_rows(&layout) as u64).next_multiple_of(PLACE_BYTES);
                    tasks.push(task);
                    end = start;
                }
            }
        }
        let arena_bytes = tasks.iter().map(|task| task.bytes).max().unwrap_or(0);
        Ok(DiskPlan { layout, tasks, arena_bytes, file_bytes: place })
    }

    /// Returns the bytes of the smallest arena for which there is a plan.
    pub fn arena_bytes_min(stones: u32, set: PositionSet) -> usize {
        least(&CellLayout::new(stones, set))
    }

    /// Bytes of an arena, within the budget.
    pub fn arena_bytes(&self) -> usize {
        self.arena_bytes
    }

    /// Bytes of the working file.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Most changes of a pass, in the unit of [`EndedPass::changed`](crate::EndedPass): the largest cells.
    pub fn changes_max(&self) -> u64 {
        self.changes(self.layout.bytes())
    }

    /// Converts bytes written to changes.
    pub(super) fn changes(&self, written: u64) -> u64 {
        written.div_ceil(self.layout.cell_bytes_max() as u64)
    }

    /// Bytes that a sweep takes besides its two arenas: state of cells, I/O buffers, the moves of a slab, and the
    /// columns of a task.
    pub fn other_bytes(stones: u32, set: PositionSet) -> u64 {
        let halves = Halves::count(stones) as usize;
        (CellLayout::new(stones, set).cells * CELL_STATE_BYTES + BUFFERS_BYTES + halves * HALF_BYTES) as u64
    }

    /// Most bytes of the working file, for any memory budget.
    pub fn file_bytes_max(stones: u32, set: PositionSet) -> u64 {
        let layout = CellLayout::new(stones, set);
        let tasks: usize = layout.slabs.iter().map(|slab| slab.row_groups).sum();
        // In the slab with equal halves two tasks have the captures of a position.
        let slabs = set.slabs(stones);
        let twice = if stones.is_multiple_of(2) { slabs[stones as usize / 2].positions() } else { 0 };
        layout.bytes() + set.slab_positions(stones) + twice + tasks as u64 * PLACE_BYTES
    }

    /// Returns the bytes that a full pass moves.
    pub fn pass_bytes(&self) -> PassBytes {
        let one = |task: &SweepTask| {
            let strip = |strip: &ColumnStrip| {
                let slab = &self.layout.slabs[strip.slab];
                let groups: usize = strip.column_groups.iter().map(Range::len).sum();
                groups * slab.row_groups * slab.cell_bytes
            };
            let cells = |groups: &CellSlab, count| count * groups.cell_bytes;
            let slab = &self.layout.slabs[task.slab];
            let mut read = task.strips.iter().map(strip).sum::<usize>() + task.bytes_of_rows(&self.layout);
            let mut written = cells(slab, task.groups.len() * slab.column_groups);
            if let TaskKind::TaskBlock(block) = &task.kind {
                let mut groups: Vec<_> = block.outside.iter().map(|row| row / slab.height).collect();
                groups.dedup();
                let high = &self.layout.slabs[block.high];
                let columns = cells(high, high.groups_of(&block.columns).len() * high.row_groups);
                read += cells(slab, groups.len() * slab.column_groups) + columns;
                written += columns;
            }
            (read, written)
        };
        let mut all = PassBytes::default();
        for (read, written) in self.tasks.iter().map(one) {
            all.read += read as u64;
            all.written += written as u64;
        }
        all
    }
}

impl SweepTask {
    /// Creates the task for the bases of rows of the high slab of a pair.
    fn base(layout: &CellLayout, pair: &HighAndLow, groups: Range<usize>) -> SweepTask {
        let mut task = SweepTask::of(layout, pair.mover, groups, TaskKind::Base(pair.base));
        let offset = task.place_strips(layout, task.bytes_of_rows(layout).next_multiple_of(LINE));
        task.captures = offset;
        task.bytes = offset + task.bytes_of_rows(layout);
        task
    }

    /// Creates the task of a block with rows of the low slab of a pair, given the children of the columns of the high
    /// one.
    fn block(layout: &CellLayout, pair: &HighAndLow, groups: Range<usize>, index: &Index, moves: &[Vec<u32>]) -> Self {
        let rows = layout.slabs[pair.opponent].rows_of(&groups);
        let full = |row: usize| Halves::rank(&index.unrank_opponent(pair.mover as u32, row as u32)) as usize;
        let last = layout.slabs[pair.opponent].rows == rows.end;
        let columns = if rows.start == 0 { 0 } else { full(rows.start) }..if last {
            Halves::count(pair.mover as u32) as usize
        } else {
            full(rows.end)
        };
        let mut outside: Vec<_> = moves[columns.clone()].iter().flatten().map(|&row| row as usize).collect();
        outside.retain(|row| !rows.contains(row));
        outside.sort_unstable();
        outside.dedup();
        SweepTask::block_of(layout, pair, groups, columns, outside)
    }

    fn block_of(
        layout: &CellLayout,
        pair: &HighAndLow,
        groups: Range<usize>,
        columns: Range<usize>,
        outside: Vec<usize>,
    ) -> SweepTask {
        let high = layout.slabs[pair.high].rows * columns.len();
        let block =
            TaskBlock { high: pair.high, base: pair.base, columns, outside, columns_offset: 0, bases_offset: 0 };
        let rows = block.outside.len() * layout.slabs[pair.opponent].columns;
        let mut task = SweepTask::of(layout, pair.opponent, groups, TaskKind::Base(0));
        let own = task.bytes_of_rows(layout);
        // Kernels read a little behind the end of each part.
        let columns_offset = (own + rows + PAD).next_multiple_of(LINE);
        task.captures = (columns_offset + high + PAD).next_multiple_of(LINE);
        let bases_offset = (task.captures + own + PAD).next_multiple_of(LINE);
        let strips_end = task.place_strips(layout, bases_offset);
        task.bytes = strips_end.max(bases_offset + high);
        task.kind = TaskKind::TaskBlock(TaskBlock { columns_offset, bases_offset, ..block });
        task
    }

    fn of(layout: &CellLayout, slab: usize, groups: Range<usize>, kind: TaskKind) -> SweepTask {
        let rows = layout.slabs[slab].rows_of(&groups);
        SweepTask { slab, groups, rows, strips: Vec::new(), captures: 0, captures_place: 0, bytes: 0, kind }
    }

    /// Places the strips from an offset on, and returns their end.
    fn place_strips(&mut self, layout: &CellLayout, mut offset: usize) -> usize {
        let slab = self.slab as u32;
        for crossing in (1..=slab).filter(|&crossing| may_cross(slab, crossing)) {
            let child = layout.stones as usize - self.slab + crossing as usize;
            let bytes = layout.slabs[child].rows * self.rows.len();
            self.strips.push(ColumnStrip { crossing, slab: child, column_groups: Vec::new(), offset, bytes });
            offset = (offset + bytes).next_multiple_of(LINE);
        }
        offset
    }

    /// Computes the groups of columns of its strips.
    fn find_columns(&mut self, layout: &CellLayout, index: &Index) {
        let halves = self.halves(index);
        for strip in &mut self.strips {
            let width = layout.slabs[strip.slab].width;
            for column in strip.columns(&halves) {
                let group = column / width;
                match strip.column_groups.last_mut() {
                    Some(run) if group < run.end => {}
                    Some(run) if group == run.end => run.end += 1,
                    _ => strip.column_groups.push(group..group + 1),
                }
            }
        }
    }

    /// The opponent's halves.
    pub(crate) fn halves(&self, index: &Index) -> Vec<Half> {
        let opponent = index.stones() - self.slab as u32;
        self.rows.clone().map(|row| index.unrank_opponent(opponent, row as u32)).collect()
    }

    /// Bytes of the rows, which are also the bytes of their best captures.
    pub(crate) fn bytes_of_rows(&self, layout: &CellLayout) -> usize {
        self.rows.len() * layout.slabs[self.slab].columns
    }
}

/// Pair of slabs, and their locations in the file.
struct HighAndLow {
    /// Stones of the mover in the high slab.
    mover: usize,
    /// Stones of the opponent there, and of the mover in the low slab.
    opponent: usize,
    high: usize,
    base: usize,
}

/// Returns the pairs in the order of a pass: the most unequal players first, since crossing moves from few stones lead
/// there. At 12 stones this takes 22 passes; the reverse order 26, alternating orders 24, and slab by slab without
/// pairs 83.
/// Interleaving bases, which are bound by I/O, with blocks of the previous pair, which are bound by computation,
/// would use cores and drive at the same time, but takes 19 passes at 20 stones instead of 14.
fn pairs(stones: u32) -> impl Iterator<Item = HighAndLow> {
    let stones = stones as usize;
    (stones.div_ceil(2)..=stones).rev().map(move |mover| {
        let (high, base) = CellLayout::pair(stones, mover);
        HighAndLow { mover, opponent: stones - mover, high, base }
    })
}

/// Returns, by the mover's half, the halves after moves that stay in it.
fn straight_of(index: &Index, mover: u32) -> Vec<Vec<u32>> {
    let leaves = |rank| {
        let moves = sow::row_moves(&index.halves().unrank(mover, rank)).filter(|to| to.class.crossing == 0);
        moves.map(|to| index.rank_opponent(&to.half).expect("a half with an empty pit has a rank")).collect()
    };
    (0..Halves::count(mover)).map(leaves).collect()
}

/// Whether a mover with `stones` stones may have a move with `crossing` crossing stones: before each crossing stone
/// beyond six, twelve and so on, five stones stay with the mover.
fn may_cross(mover: u32, crossing: u32) -> bool {
    mover >= 1.max(crossing + 5 * (crossing.saturating_sub(1) / 6))
}

impl ColumnStrip {
    /// Iterates over the columns of the strip, ascending, for the halves of its task.
    pub(crate) fn columns<'h>(&self, halves: &'h [Half]) -> impl Iterator<Item = usize> + use<'h> {
        let gain = SowClass { crossing: self.crossing as u8, ends: Ends::Opponent }.gain();
        let rank = move |half: &Half| Halves::rank(&std::array::from_fn(|pit| half[pit] + gain[pit])) as usize;
        halves.iter().map(rank)
    }
}

/// Returns the arena size, in bytes, of the smallest possible tasks.
fn least(layout: &CellLayout) -> usize {
    let of_pair = |pair: HighAndLow| {
        let low = &layout.slabs[pair.opponent];
        let columns_max = layout.slabs[pair.high].columns;
        let start = |group: usize| match group * low.height {
            0 => 0,
            row if row >= low.rows => columns_max,
            row => column_of(layout.set, pair.mover as u32, row as u32) as usize,
        };
        let starts: Vec<usize> = (0..=low.row_groups).map(start).collect();
        let columns = starts.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        let outside = (OUTSIDE_MAX * low.height).min(low.rows - low.height);
        let block = SweepTask::block_of(layout, &pair, 0..1, 0..columns, vec![0; outside]);
        block.bytes.max(SweepTask::base(layout, &pair, 0..1).bytes)
    };
    pairs(layout.stones).map(of_pair).max().unwrap_or(0)
}

/// Converts the rank of an opponent's half to its rank as a mover's half, without tables.
fn column_of(set: PositionSet, stones: u32, row: u32) -> u32 {
    if set == PositionSet::All || stones < HALF_PITS as u32 {
        return row;
    }
    // Halves without an empty pit are the halves with six stones fewer, plus a stone in each pit, in the same order.
    // Such a half precedes the wanted one if at most `rank` halves with an empty pit precede it.
    let full = stones - HALF_PITS as u32;
    let rank = |at| Halves::rank(&Halves::unrank_one(full, at).map(|stones| stones + 1));
    row + partition(Halves::count(full), |at| rank(at) - at <= row)
}

/// Returns the partition point of a monotone predicate on `0..end`.
fn partition(end: u32, holds: impl Fn(u32) -> bool) -> u32 {
    let (mut from, mut to) = (0, end);
    while from < to {
        let middle = from + (to - from) / 2;
        if holds(middle) { from = middle + 1 } else { to = middle }
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossing_moves_are_predicted() {
        let index = Index::new(24, PositionSet::All);
        for mover in 0..=24 {
            let mut crosses = vec![false; mover as usize + 1];
            for rank in 0..Halves::count(mover) {
                for to in sow::row_moves(&index.halves().unrank(mover, rank)) {
                    crosses[to.class.crossing as usize] = true;
                }
            }
            for (crossing, crosses) in crosses.into_iter().enumerate() {
                assert_eq!(may_cross(mover, crossing as u32), crosses, "{crossing} of {mover}");
            }
        }
    }

    #[test]
    fn tasks_cover_every_row_once_and_fit() {
        for set in [PositionSet::All, PositionSet::REACHABLE] {
            for stones in (0..14).chain([24]) {
                let index = Index::new(stones, set);
                let least = DiskPlan::arena_bytes_min(stones, set);
                assert!(DiskPlan::new(&index, least - 1).is_err());
                for arena_bytes in [least, least * 3, usize::MAX] {
                    let plan = DiskPlan::new(&index, arena_bytes).unwrap();
                    assert!(plan.arena_bytes() <= arena_bytes);
                    for (slab, of) in plan.layout.slabs.iter().take(stones as usize + 1).enumerate() {
                        let mut groups: Vec<_> = plan
                            .tasks
                            .iter()
                            .filter(|task| {
                                task.slab == slab
                                    && matches!(task.kind, TaskKind::Base(_)) == (2 * slab > stones as usize)
                            })
                            .map(|task| task.groups.clone())
                            .collect();
                        groups.reverse();
                        assert_eq!((groups[0].start, groups.last().unwrap().end), (0, of.row_groups));
                        assert!(groups.windows(2).all(|two| two[0].end == two[1].start));
                    }
                }
            }
        }
    }
}
