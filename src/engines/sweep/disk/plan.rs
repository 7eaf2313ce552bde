//! What is done at a time: some rows of a slab, and what they are recomputed from.
//!
//! Slabs are taken in pairs, as in memory: in the *high* one the mover has at least half of the stones, in the *low* one
//! the opponent has as many. Moves that stay in the mover's half lead from the one to the other and raise the rank of
//! that half, so whole lines of them settle at once where what they lead to is at hand. A pair is taken in two steps:
//!
//! * what crosses from some rows of the high slab, and captures: their *base*, which has a slab of its own in the file;
//! * a *block*: the positions of both slabs in which some consecutive halves are those of the player with more stones:
//!   rows of the low slab, columns of the high one. From the bases of both, and from rows of the low slab where moves
//!   lead to other halves, of higher rank, the block is derived as if there were no cycles in it: there are none.
//!
//! Where both players have half of the stones the high slab is a second copy of the low one.
//!
//! Positions whose opponent has one of some consecutive halves are some whole rows of a slab. Where a move lets c stones
//! cross, they lead to all rows of the slab of those children, but of its columns only to those of the same halves with
//! c stones more. Sowing begins with the pits that order halves, so these are close to each other, too.

use super::cells::{BUFFERS_BYTES, CELL_STATE_BYTES};
use super::layout::{CellLayout, CellSlab};
use crate::huge_pages::PAD;
use game::sow::{self, Ends, SowClass};
use game::{HALF_PITS, Half, Halves, Index, PositionSet};
use std::ops::Range;

/// How a database is recomputed within some memory.
#[derive(Clone, Debug)]
pub struct DiskPlan {
    pub(crate) layout: CellLayout,
    pub(crate) tasks: Vec<SweepTask>,
    /// Memory of a task.
    pub(crate) arena_bytes: usize,
    file_bytes: u64,
}

/// Some whole rows of a slab.
#[derive(Clone, Debug)]
pub(crate) struct SweepTask {
    /// The mover's stones.
    pub(crate) slab: usize,
    pub(crate) groups: Range<usize>,
    pub(crate) rows: Range<usize>,
    pub(crate) strips: Vec<ColumnStrip>,
    /// Where in its memory the best captures are.
    pub(crate) captures: usize,
    pub(crate) kind: TaskKind,
    /// And where in the file.
    pub(crate) captures_place: u64,
    pub(crate) bytes: usize,
}

/// What is made of the rows of a task.
#[derive(Clone, Debug)]
pub(crate) enum TaskKind {
    /// What crosses and captures, which goes to this slab of the file.
    Base(usize),
    /// Their scores, and those of the block's columns.
    TaskBlock(TaskBlock),
}

/// What a block has besides its rows.
#[derive(Clone, Debug)]
pub(crate) struct TaskBlock {
    /// The slab of the file whose columns it has.
    pub(crate) high: usize,
    /// Where their bases are.
    pub(crate) base: usize,
    pub(crate) columns: Range<usize>,
    /// Rows that moves lead to from its columns and that are not its own, ascending. They stand behind its own.
    pub(crate) outside: Vec<usize>,
    /// Where in the memory of the task its columns are, row by row, at first their bases; then strips, which give way
    /// to these bases column by column.
    pub(crate) columns_offset: usize,
    pub(crate) bases_offset: usize,
}

/// Of all rows of a slab, the columns where moves take those of a task, as many of them.
#[derive(Clone, Debug)]
pub(crate) struct ColumnStrip {
    pub(crate) crossing: u32,
    /// The mover's stones.
    pub(crate) slab: usize,
    /// The groups that have these columns, in runs.
    pub(crate) column_groups: Vec<Range<usize>>,
    /// Where in the memory of the task.
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

/// There is no plan for so little memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSmall {
    /// Bytes of an arena that are needed.
    pub needed: usize,
}

/// Bytes moved in a pass over everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassBytes {
    /// Read.
    pub read: u64,
    /// Written, if everything changes.
    pub written: u64,
}

/// Direct I/O wants whole blocks; captures of a task begin at one.
const PLACE_BYTES: u64 = 4096;

/// Memory for each half of a slab: its moves, its rank, its pits, where they lead from a block, and that it is read; and
/// for those of a task, while it is read, some more.
const HALF_BYTES: usize = 72;

/// Strips begin at a line of the cache.
const LINE: usize = 64;

/// Rows outside of the smallest block, by its own: no more than this.
const OUTSIDE_MAX: usize = 3;

impl DiskPlan {
    /// The plan for arenas of at most so many bytes, of which two are used at a time.
    ///
    /// # Errors
    /// With what the smallest plan takes.
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
                let new = |groups| match is_block {
                    false => SweepTask::base(&layout, &pair, groups),
                    true => SweepTask::block(&layout, &pair, groups, index, &moves),
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

    /// The bytes of the smallest arena for which there is a plan.
    pub fn arena_bytes_min(stones: u32, set: PositionSet) -> usize {
        least(&CellLayout::new(stones, set))
    }

    /// Bytes of an arena: no more than was allowed.
    pub fn arena_bytes(&self) -> usize {
        self.arena_bytes
    }

    /// Bytes of the working file.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The most that a pass changes, in the unit of [`EndedPass::changed`](crate::EndedPass): the largest cells.
    pub fn changes_max(&self) -> u64 {
        self.changes(self.layout.bytes())
    }

    /// Changes, from the bytes written for them.
    pub(super) fn changes(&self, written: u64) -> u64 {
        written.div_ceil(self.layout.cell_bytes_max() as u64)
    }

    /// Memory that a sweep takes besides its two arenas: what is known of cells, what is on its way to or from the file,
    /// the moves of a slab, and the columns of a task.
    pub fn other_bytes(stones: u32, set: PositionSet) -> u64 {
        let halves = Halves::count(stones) as usize;
        (CellLayout::new(stones, set).cells * CELL_STATE_BYTES + BUFFERS_BYTES + halves * HALF_BYTES) as u64
    }

    /// The bytes of the working file, at most, however much memory there is.
    pub fn file_bytes_max(stones: u32, set: PositionSet) -> u64 {
        let layout = CellLayout::new(stones, set);
        let tasks: usize = layout.slabs.iter().map(|slab| slab.row_groups).sum();
        // Where both players have half of the stones two tasks have the captures of a position.
        let slabs = set.slabs(stones);
        let twice = if stones.is_multiple_of(2) { slabs[stones as usize / 2].positions() } else { 0 };
        layout.bytes() + set.positions(stones) + twice + tasks as u64 * PLACE_BYTES
    }

    /// What a pass over everything moves.
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
    /// The bases of some rows of the high slab of a pair.
    fn base(layout: &CellLayout, pair: &HighAndLow, groups: Range<usize>) -> SweepTask {
        let mut task = SweepTask::of(layout, pair.mover, groups, TaskKind::Base(pair.base));
        let offset = task.place_strips(layout, task.bytes_of_rows(layout).next_multiple_of(LINE));
        task.captures = offset;
        task.bytes = offset + task.bytes_of_rows(layout);
        task
    }

    /// The block with some rows of the low slab of a pair, given where moves lead from the columns of the high one.
    fn block(
        layout: &CellLayout,
        pair: &HighAndLow,
        groups: Range<usize>,
        index: &Index,
        moves: &[Vec<u32>],
    ) -> SweepTask {
        let rows = layout.slabs[pair.opponent].rows_of(&groups);
        let full = |row: usize| Halves::rank(&index.opponent_unrank(pair.mover as u32, row as u32)) as usize;
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
        // Kernels read a little behind each part.
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

    /// Gives all that crosses its place, from an offset on; where it ends.
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

    /// Finds out which columns its strips have.
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
        self.rows.clone().map(|row| index.opponent_unrank(opponent, row as u32)).collect()
    }

    /// Bytes of the rows themselves, and of their best captures.
    pub(crate) fn bytes_of_rows(&self, layout: &CellLayout) -> usize {
        self.rows.len() * layout.slabs[self.slab].columns
    }
}

/// Two slabs in which the players have the same stones, and where they are in the file.
struct HighAndLow {
    /// Stones of the mover of the high slab.
    mover: usize,
    /// And of its opponent: the low slab.
    opponent: usize,
    high: usize,
    base: usize,
}

/// Pairs in the order of a pass: the most unequal players first, for what crosses from few stones leads there. At 12
/// stones that takes 22 passes; the other way round 26, both ways in turn 24, and 83 slab by slab without pairs. Bases,
/// which are much to read, in turn with blocks of the pair before, which are much to compute, would keep cores and drive
/// busy side by side, but take 19 passes of 20 stones instead of 14.
fn pairs(stones: u32) -> impl Iterator<Item = HighAndLow> {
    let stones = stones as usize;
    (stones.div_ceil(2)..=stones).rev().map(move |mover| {
        let (high, base) = CellLayout::pair(stones, mover);
        HighAndLow { mover, opponent: stones - mover, high, base }
    })
}

/// By rank of a mover's half, the ranks of the halves that moves leave which stay in it.
fn straight_of(index: &Index, mover: u32) -> Vec<Vec<u32>> {
    let leaves = |rank| {
        let moves = sow::row_moves(&index.halves().unrank(mover, rank)).filter(|to| to.class.crossing == 0);
        moves.map(|to| index.opponent_rank(&to.half).expect("a half with an empty pit has a rank")).collect()
    };
    (0..Halves::count(mover)).map(leaves).collect()
}

/// Whether a mover with so many stones may have a move that lets so many cross: before each stone more than six, twelve
/// and so on, five remain with the mover.
fn may_cross(mover: u32, crossing: u32) -> bool {
    mover >= 1.max(crossing + 5 * (crossing.saturating_sub(1) / 6))
}

impl ColumnStrip {
    /// The columns of the strip, ascending, for the halves of its task.
    pub(crate) fn columns<'h>(&self, halves: &'h [Half]) -> impl Iterator<Item = usize> + use<'h> {
        let gain = SowClass { crossing: self.crossing as u8, ends: Ends::Opponent }.gain();
        let rank = move |half: &Half| Halves::rank(&std::array::from_fn(|pit| half[pit] + gain[pit])) as usize;
        halves.iter().map(rank)
    }
}

/// The arena of the smallest tasks.
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

/// The rank, as a mover's, of the opponent's half of some rank, without any table.
fn column_of(set: PositionSet, stones: u32, row: u32) -> u32 {
    if set == PositionSet::All || stones < HALF_PITS as u32 {
        return row;
    }
    // Halves without an empty pit are those of six stones fewer with a stone more in each pit, in the same order. One comes
    // before the half asked for if there are no more with an empty pit before it.
    let full = stones - HALF_PITS as u32;
    let rank = |at| Halves::rank(&Halves::unrank_one(full, at).map(|stones| stones + 1));
    row + partition(Halves::count(full), |at| rank(at) - at <= row)
}

/// How many of the first numbers, up to `end`, it holds for; it holds for none behind one that it does not hold for.
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
    fn moves_cross_as_they_may() {
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
        for set in [PositionSet::All, PositionSet::Reachable] {
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
