//! Computation of a task from the inputs in its arena.
//!
//! First the crossing moves are derived from strips, which completes a base. In a block, the remaining moves stay
//! within the pair of slabs. So the block is derived from the highest of the other halves down, a range at a time: the
//! rows of its low slab, then the columns of the high one, in turns while anything changes. These lead only to each
//! other and to higher halves. Previous scores do not matter, and are not read.

use super::plan::{ColumnStrip, SweepTask, TaskBlock, TaskKind};
use super::{CellFile, DiskSweep, SlabMoves};
use crate::huge_pages::{Bytes, PAD};
use crate::kernels::apply::apply;
use crate::kernels::scores::{
    ChildScores, Floor, Kernel, Moves, RowUnit, STRAIGHT, SlabWork, UNIT_BYTES_MAX, UNIT_CHUNKS, UNIT_ROWS,
};
use crate::kernels::tables::{CHUNK, Gather, PackedMove, chunks};
use crate::layout::rows::SlabRows;
use game::sow::{Ends, SowClass, SowMap};
use game::{HALF_PITS, Half, Halves};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Positions of the low slab that are settled together, about: with those of the high slab they fit the cache.
const SETTLED_TOGETHER: usize = 1 << 18;

/// Least rows whose moves a thread examines, so that the work outweighs the cost of starting it.
const ROWS_AT_ONCE: usize = 1 << 12;

/// Selects all moves but those that stay in the mover's half.
fn crossing() -> Moves {
    Moves::all_but(0..u32::MAX)
}

/// Selects the moves that stay in the mover's half.
fn straight() -> Moves {
    Moves::only(0..u32::MAX)
}

/// View of a slab for a task, alone in an array: inputs and destination.
struct TaskSlab<'a> {
    kernel: Kernel,
    buffers: &'a [Mutex<Vec<i8>>],
    work: SlabWork<'a>,
    moves: Moves,
}

impl TaskSlab<'_> {
    /// Recomputes rows (of the mover's halves) by chunks of columns: all, or the chunks of each row in the mask
    /// `wanted`, counted from the first chunk. For each column with changes it sets the marks that `marks` returns for
    /// 64 rows from a row on. Returns the number of positions recomputed.
    #[expect(clippy::too_many_arguments, reason = "what to recompute, from what, to where, and what changed")]
    fn take(
        &self,
        rows: Range<usize>,
        columns: Range<usize>,
        wanted: Option<&[u64]>,
        values: &[i8],
        out: &mut [i8],
        changed: &mut [u64],
        marks: impl Fn(usize) -> u64 + Sync,
    ) -> u64 {
        let to = self.work.to;
        let chunks = columns.len().div_ceil(2 * rayon::current_num_threads()).clamp(1, UNIT_CHUNKS);
        let (first, end) = (columns.start * CHUNK, (columns.end * CHUNK).min(to.rows));
        let recomputed = AtomicU64::new(0);
        let jobs = out[first * to.stride..end * to.stride].par_chunks_mut(chunks * CHUNK * to.stride);
        jobs.zip(changed[..end - first].par_chunks_mut(chunks * CHUNK)).enumerate().for_each(|(at, (out, changed))| {
            let count = out.len() / to.stride;
            // A view in which these are all columns of the slab.
            let alone = SlabWork { to: SlabRows { rows: count, ..to }, children: Vec::new(), ..self.work };
            let first_chunk = at * chunks;
            let mut staged = staged(self.buffers);
            changed.fill(0);
            for row in rows.clone().step_by(UNIT_ROWS) {
                let chunk = columns.start + first_chunk;
                let mut unit = RowUnit::whole(row, rows.end, chunk..chunk + count.div_ceil(CHUNK));
                if let Some(wanted) = wanted {
                    let wanted = &wanted[row - rows.start..];
                    unit.wanted[..unit.rows].iter_mut().zip(wanted).for_each(|(unit, &wanted)| {
                        *unit &= of_chunks(wanted, first_chunk);
                    });
                    if unit.wanted_chunks() == 0 {
                        continue;
                    }
                }
                self.kernel.recompute(&self.work, &unit, values, &self.moves, self.work.floor(&unit), &mut staged);
                let mark = marks(row);
                apply(self.kernel, &alone, &RowUnit { chunk: 0, ..unit }, &staged, out, 0, |chunk| {
                    chunk.mark(changed, 0, mark);
                });
                recomputed.fetch_add(u64::from(unit.wanted_chunks()) * CHUNK.min(count) as u64, Relaxed);
            }
        });
        recomputed.into_inner()
    }
}

/// Returns the mask of sixteen chunks from `first` on. Chunks beyond the last bit share it.
fn of_chunks(bits: u64, first: usize) -> u16 {
    const LAST: usize = u64::BITS as usize - 1;
    let all = if first + UNIT_CHUNKS > LAST && bits >> LAST == 1 { u16::MAX } else { 0 };
    all | bits.checked_shr(first as u32).unwrap_or(0) as u16
}

/// Returns the mask of a range of chunks, see [`of_chunks`].
fn to_chunks(chunks: Range<usize>) -> u64 {
    const LAST: usize = u64::BITS as usize - 1;
    if chunks.is_empty() {
        return 0;
    }
    let (from, to) = (chunks.start.min(LAST), (chunks.end - 1).min(LAST));
    u64::MAX << from & u64::MAX >> (LAST - to)
}

/// Returns the mask of the chunks of columns, counted from a first one, that lead to 64 columns.
fn leading(gather: &Gather, column: usize, columns: &Range<usize>) -> u64 {
    let chunks = column / CHUNK..(column + CHUNK).div_ceil(CHUNK);
    chunks.filter_map(|chunk| gather.inverse.get(chunk)).fold(0, |bits, &(from, to)| {
        let (from, to) = ((from as usize).max(columns.start), (to as usize).min(columns.end));
        bits | if from < to { to_chunks(from - columns.start..to - columns.start) } else { 0 }
    })
}

fn staged(buffers: &[Mutex<Vec<i8>>]) -> std::sync::MutexGuard<'_, Vec<i8>> {
    let thread = rayon::current_thread_index().unwrap_or(0);
    buffers[thread].lock().unwrap_or_else(PoisonError::into_inner)
}

impl<W: CellFile> DiskSweep<'_, W> {
    /// Recomputes a task from its arena, and returns the number of positions.
    pub(super) fn recompute(&self, task: &SweepTask, rows: &mut SlabMoves, arena: &mut Bytes) -> u64 {
        let opponent = self.plan.layout.stones - task.slab as u32;
        let halves: Vec<Half> = task.rows.clone().map(|row| self.index.unrank_opponent(opponent, row as u32)).collect();
        let classes: Vec<(&ColumnStrip, SowClass)> = task.strips.iter().flat_map(classes_of).collect();
        let gathers: Vec<Gather> = classes
            .par_iter()
            .map(|&(_, class)| Gather::in_place(&self.columns(halves.len(), halves.iter().copied(), class)))
            .collect();
        let mut children = SlabWork::no_children();
        let inputs = task.strips.first().map_or(task.bytes, |strip| strip.offset);
        for ((strip, class), gather) in classes.iter().zip(&gathers) {
            let (offset, stride) = (strip.offset - inputs, halves.len());
            children[class.number()] = Some(ChildScores { gather, offset, bytes: strip.bytes, stride, end: stride });
        }
        match &task.kind {
            TaskKind::Base(_) => self.recompute_bases(task, rows, children, halves.len(), arena, inputs),
            TaskKind::TaskBlock(block) => self.recompute_block(task, block, rows, children, &halves, arena, inputs),
        }
    }

    fn columns(&self, count: usize, halves: impl Iterator<Item = Half>, class: SowClass) -> SowMap {
        SowMap::of_columns(self.rules, count, halves, class)
    }

    fn recompute_bases(
        &self,
        task: &SweepTask,
        rows: &mut SlabMoves,
        children: Vec<Option<ChildScores>>,
        columns: usize,
        arena: &mut Bytes,
        inputs: usize,
    ) -> u64 {
        let layout = &self.plan.layout;
        let slab = &layout.slabs[task.slab];
        let inputs = inputs.min(task.captures);
        let (out, values) = arena.split_padded_at_mut(inputs);
        let work = SlabWork {
            slab: self.index.slab(task.slab as u32),
            to: SlabRows { offset: 0, stride: slab.columns, rows: columns, columns: slab.columns, lead: 0 },
            rows: rows.of(self.index, task.slab),
            columns,
            children,
            captures: &values[task.captures - inputs..][..task.bytes_of_rows(layout) + PAD],
            captures_stride: columns,
        };
        let turn = TaskSlab { kernel: self.kernel, buffers: &self.buffers, work, moves: crossing() };
        turn.take(0..slab.columns, 0..chunks(columns as u32), None, values, out, &mut vec![0; columns], |_| 0)
    }

    #[expect(clippy::too_many_arguments, reason = "a task, what it reads, and where")]
    fn recompute_block(
        &self,
        task: &SweepTask,
        block: &TaskBlock,
        rows: &mut SlabMoves,
        children: Vec<Option<ChildScores>>,
        halves: &[Half],
        arena: &mut Bytes,
        inputs: usize,
    ) -> u64 {
        let layout = &self.plan.layout;
        let (low, high) = (&layout.slabs[task.slab], &layout.slabs[block.high]);
        let (low_stones, high_stones) = (task.slab as u32, layout.stones - task.slab as u32);
        let (width, own) = (block.columns.len(), task.bytes_of_rows(layout));
        let rows = rows.of(self.index, task.slab);

        // The rows without the moves that stay in the mover's half.
        let (front, values) = arena.split_padded_at_mut(inputs);
        let crossing_work = SlabWork {
            slab: self.index.slab(low_stones),
            to: SlabRows { offset: 0, stride: low.columns, rows: halves.len(), columns: low.columns, lead: 0 },
            rows,
            columns: halves.len(),
            children,
            captures: &[],
            captures_stride: 0,
        };
        self.recompute_crossing(&crossing_work, values, &mut front[task.captures..][..own]);

        // Bases of the columns, by the mover's half. Strips are not needed from here on.
        let arena = arena.padded_mut();
        let (front, bases) = arena.split_at_mut(block.bases_offset);
        let (lows, columns) = front.split_at_mut(block.columns_offset);
        let (columns, floors) = columns.split_at_mut(task.captures - block.columns_offset);
        self.transpose(&columns[..high.rows * width], width, &mut bases[..high.rows * width]);
        columns[..high.rows * width].fill(0);
        lows[..own].fill(0);

        let slots = |row: usize| match row.checked_sub(task.rows.start) {
            Some(at) if at < halves.len() => at,
            _ => halves.len() + block.outside.binary_search(&row).expect("a row of other halves was read"),
        };
        let straight_rows: Vec<_> =
            block.columns.clone().into_par_iter().map(|rank| self.straight_of(high_stones, rank, slots)).collect();
        let class = SowClass { crossing: 0, ends: Ends::Mover };
        let others = (0..high.rows).map(|row| self.index.unrank_opponent(low_stones, row as u32));
        let across = Gather::new(&self.columns(high.rows, others, class), Halves::count(low_stones) as usize);
        let mut within = self.columns(halves.len(), halves.iter().copied(), class);
        for target in &mut within.targets {
            *target -= block.columns.start as u32;
        }
        let within = Gather::new(&within, width);
        let work = |slab: u32, to, rows, columns, child, captures| {
            let mut children = SlabWork::no_children();
            children[STRAIGHT] = Some(child);
            let work = SlabWork {
                slab: self.index.slab(slab),
                to,
                rows,
                columns,
                children,
                captures,
                captures_stride: columns,
            };
            TaskSlab { kernel: self.kernel, buffers: &self.buffers, work, moves: straight() }
        };
        let slots_bytes = (halves.len() + block.outside.len()) * low.columns;
        let low_turn = work(
            low_stones,
            crossing_work.to,
            rows,
            halves.len(),
            ChildScores { gather: &within, offset: 0, bytes: high.rows * width, stride: width, end: width },
            &*floors,
        );
        let high_turn = work(
            high_stones,
            SlabRows { offset: 0, stride: width, rows: high.rows, columns: width, lead: 0 },
            &straight_rows,
            high.rows,
            ChildScores { gather: &across, offset: 0, bytes: slots_bytes, stride: low.columns, end: low.columns },
            &*bases,
        );
        let mut recomputed = own as u64;
        let low_chunks = 0..chunks(halves.len() as u32);
        let mut low_changed = vec![0; halves.len()];
        let at_once = (SETTLED_TOGETHER / (CHUNK * width)).clamp(1, u64::BITS as usize);
        let (mut high_changed, mut wanted) = (vec![0; at_once * CHUNK], Vec::new());
        let mut end = chunks(high.rows as u32);
        let mut rows_end = low.columns;
        while end > 0 {
            let some = end.saturating_sub(at_once)..end;
            // The same halves as mover's halves, and those before them that are not among columns.
            let rows_start = match some.start {
                0 => 0,
                chunk => Halves::rank(&self.index.unrank_opponent(low_stones, (chunk * CHUNK) as u32)) as usize,
            };
            let mut is_first = true;
            loop {
                let changed_of =
                    |to: &PackedMove| high_changed.get((to.rank() as usize).wrapping_sub(some.start * CHUNK));
                if !is_first {
                    let rows = rows[rows_start..rows_end].par_iter().with_min_len(ROWS_AT_ONCE);
                    let wanted_of =
                        |row| straight().of(row).filter_map(|to| changed_of(&to)).fold(0, |all, &chunks| all | chunks);
                    rows.map(wanted_of).collect_into_vec(&mut wanted);
                }
                recomputed += low_turn.take(
                    rows_start..rows_end,
                    low_chunks.clone(),
                    (!is_first).then_some(&wanted),
                    columns,
                    lows,
                    &mut low_changed,
                    |row| leading(&across, row, &some),
                );
                if !is_first {
                    let rows = straight_rows.par_iter().with_min_len(ROWS_AT_ONCE);
                    let wanted_of = |row| {
                        let moves = straight();
                        let changed = moves.of(row).filter_map(|to| low_changed.get(to.rank() as usize));
                        changed.fold(0, |all, &chunks| all | chunks)
                    };
                    rows.map(wanted_of).collect_into_vec(&mut wanted);
                }
                recomputed += high_turn.take(
                    0..width,
                    some.clone(),
                    (!is_first).then_some(&wanted),
                    lows,
                    columns,
                    &mut high_changed,
                    |row| leading(&within, row, &low_chunks),
                );
                if high_changed.iter().all(|&chunks| chunks == 0) {
                    break;
                }
                is_first = false;
            }
            (end, rows_end) = (some.start, rows_start);
        }
        recomputed
    }

    /// Returns the moves of a row of a high slab that stay in the mover's half, with the locations of their children.
    fn straight_of(&self, stones: u32, rank: usize, slots: impl Fn(usize) -> usize) -> [PackedMove; HALF_PITS] {
        let mut moves = [PackedMove::NONE; HALF_PITS];
        let half = self.index.halves().unrank(stones, rank as u32);
        let all = game::sow::row_moves(&half).filter(|to| to.class.crossing == 0).enumerate();
        for (slot, to) in all {
            let row = self.index.rank_opponent(&to.half).expect("a half with an empty pit has a rank");
            moves[slot] = PackedMove::new(slots(row as usize) as u32, to.class, slot);
        }
        moves
    }

    /// Raises floors, row by row, by the crossing moves.
    fn recompute_crossing(&self, work: &SlabWork, values: &[i8], floors: &mut [i8]) {
        let columns = work.columns;
        floors.par_chunks_mut(UNIT_ROWS * columns).enumerate().for_each(|(at, floors)| {
            let row = at * UNIT_ROWS;
            let mut staged = staged(&self.buffers);
            let (staged, floor) = staged.split_at_mut(UNIT_BYTES_MAX);
            for chunk in (0..chunks(columns as u32)).step_by(UNIT_CHUNKS) {
                let end = chunks(columns as u32).min(chunk + UNIT_CHUNKS);
                let unit = RowUnit::whole(row, row + floors.len() / columns, chunk..end);
                let (first, stride) = (chunk * CHUNK, unit.stride());
                let count = columns.min(end * CHUNK) - first;
                for (to, from) in floor.chunks_exact_mut(stride).zip(floors.chunks_exact(columns)) {
                    to[..count].copy_from_slice(&from[first..first + count]);
                }
                self.kernel.recompute(work, &unit, values, &crossing(), Floor { scores: floor, stride }, staged);
                for (to, from) in floors.chunks_exact_mut(columns).zip(staged.chunks_exact(stride)) {
                    to[first..first + count].copy_from_slice(&from[..count]);
                }
            }
        });
    }

    /// Transposes rows of `width`.
    fn transpose(&self, from: &[i8], width: usize, into: &mut [i8]) {
        let rows = from.len() / width;
        into.par_chunks_mut(4 * CHUNK * rows).enumerate().for_each(|(at, into)| {
            let first = at * 4 * CHUNK;
            let count = into.len() / rows;
            let alone = SlabWork {
                slab: self.index.slab(0),
                to: SlabRows { offset: 0, stride: rows, rows: count, columns: rows, lead: 0 },
                rows: &[],
                columns: count,
                children: Vec::new(),
                captures: &[],
                captures_stride: 0,
            };
            let mut staged = staged(&self.buffers);
            for row in (0..rows).step_by(UNIT_ROWS) {
                let unit = RowUnit::whole(row, rows, 0..chunks(count as u32));
                for (to, from) in
                    staged.chunks_exact_mut(unit.stride()).zip(from.chunks_exact(width).skip(row)).take(unit.rows)
                {
                    to[..count].copy_from_slice(&from[first..first + count]);
                }
                apply(self.kernel, &alone, &unit, &staged, into, 0, |_| {});
            }
        });
    }
}

/// Iterates over the classes of moves that lead to a strip.
fn classes_of(strip: &ColumnStrip) -> impl Iterator<Item = (&ColumnStrip, SowClass)> {
    let class = |ends| SowClass { crossing: strip.crossing as u8, ends };
    [class(Ends::Mover), class(Ends::Opponent)]
        .into_iter()
        .filter(|class| class.occurs())
        .map(move |class| (strip, class))
}
