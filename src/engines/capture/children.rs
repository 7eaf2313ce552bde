//! Captures told by the children: each smaller database is read once, from one end to the other.
//!
//! A row of a smaller database is what some rows were before a capture: those whose mover sowed and left this half. Each
//! is told what its columns that capture so reach. So nothing of what is read is kept, where going from row to row of
//! parents asks for some hundred streams of children, a block for each of them at hand, and decodes each block of the
//! largest databases seven times. The best captures are all in memory instead, and are gone through as often as there are
//! moves and numbers of captured stones: where the smaller databases fit a cache, that is what costs more.
//!
//! Threads share out the rows that are told, a few neighbours each in turn, so no two write the same.

use super::{CaptureError, all_rows, batches, improve};
use crate::tables::Tables;
use crate::{Progress, Stopped};
use game::{Index, Score, Slab};
use rayon::prelude::*;
use std::ops::Range;

/// Positions read at a time, though at least what is decoded together, and a row.
const RUN_POSITIONS: u64 = 1 << 22;

/// Neighbouring rows that one thread is told of.
const OWNED_ROWS: usize = 8;

/// The smaller databases, from one end to the other.
pub trait Sequential: Sync {
    /// Why positions cannot be read.
    type Error: Send;

    /// Behind the positions that are decoded together with one.
    fn run_end(&self, stones: u32, position: u64) -> u64;

    /// The scores of consecutive positions, on all threads.
    fn read(&self, stones: u32, positions: Range<u64>, out: &mut [Score]) -> Result<(), Self::Error>;
}

/// As [`capture_into`](super::capture_into), but without a receiver.
///
/// # Panics
/// As that.
pub fn capture_by_children<S: Sequential>(
    tables: &Tables,
    index: &Index,
    smaller: &S,
    progress: &dyn Progress,
    best: &mut [Score],
) -> Result<(), CaptureError<S::Error>> {
    assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
    assert_eq!(best.len() as u64, index.positions(), "a place for each position");
    let mut rest = &mut best[..];
    for batch in batches(tables, index, all_rows) {
        let (now, later) = rest.split_at_mut(batch.positions);
        batch.begin(now);
        rest = later;
    }
    let mut told = Told::new(index, best);
    let stones = tables.rules().smaller(index.stones());
    let total: u64 = stones.clone().map(|stones| index.set().positions(stones)).sum();
    let mut done = 0;
    let mut buffer = Vec::new();
    for stones in stones {
        for slab in index.set().slabs(stones) {
            let child = Child { tables, captured: index.stones() - stones, slab: &slab };
            let end = slab.offset + slab.positions();
            let columns = u64::from(slab.mover_halves);
            let (mut first_row, mut next) = (0, slab.offset);
            buffer.clear();
            while next < end {
                let mut run_end = next;
                while run_end < end && run_end - next < RUN_POSITIONS.max(columns) {
                    run_end = smaller.run_end(stones, run_end).min(end);
                }
                let kept = buffer.len();
                buffer.resize(kept + (run_end - next) as usize, 0);
                smaller.read(stones, next..run_end, &mut buffer[kept..]).map_err(CaptureError::Failed)?;
                next = run_end;
                let rows = buffer.len() / columns as usize;
                told.hear(&child, first_row, &buffer[..rows * columns as usize]);
                buffer.drain(..rows * columns as usize);
                first_row += rows;
                let share = (done + next - slab.offset) as f64 / total as f64;
                if progress.advance((share * index.positions() as f64) as u64, index.positions()).is_break() {
                    return Err(Stopped.into());
                }
            }
            done += slab.positions();
        }
    }
    Ok(())
}

/// A slab that captures lead into.
struct Child<'a> {
    tables: &'a Tables,
    captured: u32,
    slab: &'a Slab,
}

impl Child<'_> {
    /// Columns that capture so many stones by a move of a class, and where they lead.
    fn entries(&self, opponent: u32, class: usize) -> Option<&[(u32, u32)]> {
        let captures = self.tables.captures(opponent, class);
        let mut from = 0;
        for &(captured, end) in &captures.groups {
            if u32::from(captured) == self.captured {
                return Some(&captures.entries[from..end as usize]);
            }
            from = end as usize;
        }
        None
    }
}

/// The best captures so far: for each thread and slab, the rows it is told of, some neighbours at a time.
struct Told<'a> {
    stones: u32,
    owners: Vec<Vec<Vec<&'a mut [Score]>>>,
    /// Columns of each slab.
    columns: Vec<usize>,
}

impl<'a> Told<'a> {
    fn new(index: &Index, best: &'a mut [Score]) -> Told<'a> {
        let threads = rayon::current_num_threads();
        let slabs = index.slabs();
        let columns: Vec<_> = slabs.iter().map(|slab| slab.opponent_halves as usize).collect();
        let mut owners: Vec<Vec<Vec<_>>> = (0..threads).map(|_| slabs.iter().map(|_| Vec::new()).collect()).collect();
        let mut rest = best;
        for (number, slab) in slabs.iter().enumerate() {
            let (rows, after) = rest.split_at_mut(slab.positions() as usize);
            rest = after;
            for (at, rows) in rows.chunks_mut(OWNED_ROWS * columns[number]).enumerate() {
                owners[at % threads][number].push(rows);
            }
        }
        Told { stones: index.stones(), owners, columns }
    }

    /// Takes rows of a slab into account.
    fn hear(&mut self, child: &Child, first_row: usize, scores: &[Score]) {
        let (threads, all_columns, stones) = (self.owners.len(), &self.columns, self.stones);
        let left = child.slab.opponent_stones;
        let parents = child.tables.parents(left);
        self.owners.par_iter_mut().enumerate().for_each(|(thread, owned)| {
            for (row, scores) in (first_row as u32..).zip(scores.chunks_exact(child.slab.mover_halves as usize)) {
                for parent in parents.of(row) {
                    let mover = left + parent.crossing();
                    if mover > stones {
                        break;
                    }
                    let (at, inside) = (parent.rank() as usize / OWNED_ROWS, parent.rank() as usize % OWNED_ROWS);
                    if at % threads == thread
                        && let Some(entries) = child.entries(stones - mover, parent.class())
                    {
                        let columns = all_columns[mover as usize];
                        let rows = &mut owned[mover as usize][at / threads];
                        improve(&mut rows[inside * columns..][..columns], entries, child.captured as u8, scores);
                    }
                }
            }
        });
    }
}
