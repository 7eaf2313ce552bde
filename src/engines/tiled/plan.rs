//! What is done at a time: some rows of a slab, and what they are recomputed from.
//!
//! Positions whose opponent has one of some consecutive halves are some whole rows of a slab. Where a move lets c stones
//! cross, they lead to all rows of the slab of those children, but of its columns only to those of the same halves with
//! c stones more. Sowing begins with the pits that order halves, so these are close to each other, too.

use super::cells::{BUFFERS_BYTES, CELL_STATE_BYTES};
use super::layout::Layout;
use game::sow::{Class, Ends};
use game::{Half, Halves, Index, PositionSet};
use std::ops::Range;

/// How a database is recomputed within some memory.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) layout: Layout,
    pub(crate) tasks: Vec<Task>,
    /// Memory of a task.
    pub(crate) arena_bytes: usize,
    file_bytes: u64,
}

/// Some whole rows of a slab.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// The mover's stones.
    pub(crate) slab: usize,
    pub(crate) groups: Range<usize>,
    pub(crate) rows: Range<usize>,
    pub(crate) strips: Vec<Strip>,
    /// Where in its memory the best captures are, behind the rows themselves and the strips.
    pub(crate) captures: usize,
    /// And where in the file.
    pub(crate) captures_place: u64,
    pub(crate) bytes: usize,
}

/// Of all rows of a slab, the columns where moves take those of a task, as many of them.
#[derive(Clone, Debug)]
pub(crate) struct Strip {
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

/// Memory for each half of a slab: its moves, its rank, its pits; and for those of a task, while it is read, some more.
const HALF_BYTES: usize = 48;

/// Strips begin at a line of the cache.
const LINE: usize = 64;

impl Plan {
    /// The plan for arenas of at most so many bytes, of which two are used at a time.
    ///
    /// # Errors
    /// With what the smallest plan takes.
    pub fn new(index: &Index, arena_bytes: usize) -> Result<Plan, TooSmall> {
        let layout = Layout::new(index.stones(), index.set());
        let needed = least(&layout);
        if needed > arena_bytes {
            return Err(TooSmall { needed });
        }
        let mut tasks = Vec::new();
        let mut place = layout.bytes();
        for slab in order(index.stones()) {
            let mut end = layout.slabs[slab].row_groups;
            while end > 0 {
                let fits = |start: &usize| Task::new(&layout, slab, *start..end).bytes <= arena_bytes;
                let start = (0..end).rev().take_while(fits).last().unwrap_or(end - 1);
                let mut task = Task::new(&layout, slab, start..end);
                task.find_columns(&layout, index);
                task.captures_place = place;
                place += (task.bytes_of_rows(&layout) as u64).next_multiple_of(PLACE_BYTES);
                tasks.push(task);
                end = start;
            }
        }
        let arena_bytes = tasks.iter().map(|task| task.bytes).max().unwrap_or(0);
        Ok(Plan { layout, tasks, arena_bytes, file_bytes: place })
    }

    /// The bytes of the smallest arena for which there is a plan.
    pub fn arena_bytes_min(stones: u32, set: PositionSet) -> usize {
        least(&Layout::new(stones, set))
    }

    /// Bytes of an arena: no more than was allowed.
    pub fn arena_bytes(&self) -> usize {
        self.arena_bytes
    }

    /// Bytes of the working file.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Memory that a sweep takes besides its two arenas: what is known of cells, what is on its way to or from the file,
    /// the moves of a slab, and the columns of a task.
    pub fn other_bytes(stones: u32, set: PositionSet) -> u64 {
        let halves = Halves::count(stones) as usize;
        (Layout::new(stones, set).cells * CELL_STATE_BYTES + BUFFERS_BYTES + halves * HALF_BYTES) as u64
    }

    /// The bytes of the working file, at most, however much memory there is.
    pub fn file_bytes_max(stones: u32, set: PositionSet) -> u64 {
        let layout = Layout::new(stones, set);
        let tasks: usize = layout.slabs.iter().map(|slab| slab.row_groups).sum();
        layout.bytes() + set.positions(stones) + tasks as u64 * PLACE_BYTES
    }

    /// What a pass over everything moves.
    pub fn pass_bytes(&self) -> PassBytes {
        let one = |task: &Task| {
            let strip = |strip: &Strip| {
                let slab = &self.layout.slabs[strip.slab];
                let groups: usize = strip.column_groups.iter().map(Range::len).sum();
                groups * slab.row_groups * slab.cell_bytes
            };
            let slab = &self.layout.slabs[task.slab];
            let read = task.strips.iter().map(strip).sum::<usize>() + task.bytes_of_rows(&self.layout);
            (read, task.groups.len() * slab.column_groups * slab.cell_bytes)
        };
        let mut all = PassBytes::default();
        for (read, written) in self.tasks.iter().map(one) {
            all.read += read as u64;
            all.written += written as u64;
        }
        all
    }
}

impl Task {
    fn new(layout: &Layout, slab: usize, groups: Range<usize>) -> Task {
        let rows = layout.slabs[slab].rows_of(&groups);
        let mut task = Task { slab, groups, rows, strips: Vec::new(), captures: 0, captures_place: 0, bytes: 0 };
        let mut offset = task.bytes_of_rows(layout).next_multiple_of(LINE);
        for crossing in (0..=slab as u32).filter(|&crossing| may_cross(slab as u32, crossing)) {
            let child = layout.stones as usize - slab + crossing as usize;
            let bytes = layout.slabs[child].rows * task.rows.len();
            task.strips.push(Strip { crossing, slab: child, column_groups: Vec::new(), offset, bytes });
            offset = (offset + bytes).next_multiple_of(LINE);
        }
        task.captures = offset;
        task.bytes = offset + task.bytes_of_rows(layout);
        task
    }

    /// Finds out which columns its strips have.
    fn find_columns(&mut self, layout: &Layout, index: &Index) {
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
    pub(crate) fn bytes_of_rows(&self, layout: &Layout) -> usize {
        self.rows.len() * layout.slabs[self.slab].columns
    }
}

/// Slabs in the order of a pass: the mover's stones descending. At 16 stones that takes 50 passes; pairs of slabs whose
/// players have m and n - m stones one after the other 59, taken in turns rank by rank 74, all slabs in turns 67.
fn order(stones: u32) -> impl Iterator<Item = usize> {
    (0..=stones as usize).rev()
}

/// Whether a mover with so many stones may have a move that lets so many cross: before each stone more than six, twelve
/// and so on, five remain with the mover.
fn may_cross(mover: u32, crossing: u32) -> bool {
    mover >= 1.max(crossing + 5 * (crossing.saturating_sub(1) / 6))
}

impl Strip {
    /// The columns of the strip, ascending, for the halves of its task.
    pub(crate) fn columns<'h>(&self, halves: &'h [Half]) -> impl Iterator<Item = usize> + use<'h> {
        let gain = Class { crossing: self.crossing as u8, ends: Ends::Opponent }.gain();
        let rank = move |half: &Half| Halves::rank(&std::array::from_fn(|pit| half[pit] + gain[pit])) as usize;
        halves.iter().map(rank)
    }
}

/// The arena of the smallest tasks.
fn least(layout: &Layout) -> usize {
    let task = |slab| Task::new(layout, slab, 0..1).bytes;
    (0..layout.slabs.len()).map(task).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::sow;

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
                let least = Plan::arena_bytes_min(stones, set);
                assert!(Plan::new(&index, least - 1).is_err());
                for arena_bytes in [least, least * 3, usize::MAX] {
                    let plan = Plan::new(&index, arena_bytes).unwrap();
                    assert!(plan.arena_bytes() <= arena_bytes);
                    for (slab, of) in plan.layout.slabs.iter().enumerate() {
                        let mut groups: Vec<_> = plan
                            .tasks
                            .iter()
                            .filter(|task| task.slab == slab)
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
