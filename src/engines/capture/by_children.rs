//! Captures computed child by child: each smaller database is read once, sequentially.
//!
//! For each row of a smaller database, the scores are propagated to the parents' rows: those whose mover sowed and left
//! this half. No block of a smaller database is kept, whereas going through the parents row by row reads some hundred
//! streams of children, each with a block in memory, and decodes each block of the largest databases seven times. In
//! return all best captures are in memory, and are passed over once for each move and number of captured stones, which
//! costs more where the smaller databases fit a cache.
//!
//! If memory is too small for all captures, they are computed in stripes, and each stripe reads only what it leads to.
//! At 20 stones and 7 million captures a stripe, each block is decoded 5.1 times, compared with 10.2 times through a
//! cache of 8 MiB.
//!
//! Each thread owns groups of neighbouring parent rows, in turn, so no two threads write the same row.

use super::{CaptureError, Receive, batches, improve};
use crate::kernels::tables::Tables;
use crate::{DriverObserver, Stopped};
use game::{Index, Score, Slab};
use rayon::prelude::*;
use std::ops::Range;

/// Positions read at a time: at most this share of a stripe, but at least one row and one decoding unit.
const RUN_POSITIONS: u64 = 1 << 22;
const RUN_SHARE: u64 = 4;

/// Neighbouring rows in a group of one thread.
const OWNED_ROWS: usize = 8;

/// Sequential access to the smaller databases.
pub trait Sequential: Sync {
    /// Error of a read.
    type Error: Send;

    /// Returns the end of the run of positions that is decoded together with `position`.
    fn run_end(&self, stones: u32, position: u64) -> u64;

    /// Reads the scores of consecutive positions, on all threads.
    fn read(&self, stones: u32, positions: Range<u64>, out: &mut [Score]) -> Result<(), Self::Error>;
}

/// As [`capture`](super::capture()), with as many captures at a time as `stripe` has room for, and beside them at most
/// a quarter as many scores: each stripe reads the rows of the smaller databases that it leads to. With room for all
/// captures, the whole database is one stripe.
///
/// # Panics
/// As [`capture`](super::capture()), and when a row does not fit the stripe.
pub fn capture_in_stripes<S: Sequential>(
    tables: &Tables,
    index: &Index,
    smaller: &S,
    progress: &dyn DriverObserver,
    stripe: &mut [Score],
    receive: Receive<S::Error>,
) -> Result<(), CaptureError<S::Error>> {
    assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
    for of in stripes(tables, index, stripe.len() as u64) {
        let best = &mut stripe[..(of.end - of.first) as usize];
        of.capture(smaller, progress, best)?;
        receive(best).map_err(CaptureError::Failed)?;
    }
    Ok(())
}

/// Cuts a database into stripes of at most `positions` positions, but at least a row.
fn stripes<'a>(tables: &'a Tables, index: &'a Index, positions: u64) -> Vec<CaptureStripe<'a>> {
    let mut stripes = Vec::new();
    let mut stripe = CaptureStripe { tables, index, pieces: Vec::new(), first: 0, end: 0 };
    for slab in index.slabs() {
        let columns = u64::from(slab.opponent_halves);
        let mut first = 0;
        while first < slab.mover_halves {
            let room = (stripe.first + positions).saturating_sub(stripe.end) / columns;
            if room == 0 && !stripe.pieces.is_empty() {
                let next = CaptureStripe { pieces: Vec::new(), first: stripe.end, ..stripe };
                stripes.push(std::mem::replace(&mut stripe, next));
                continue;
            }
            let rows = first..first + room.clamp(1, u64::from(slab.mover_halves - first)) as u32;
            first = rows.end;
            stripe.end += rows.len() as u64 * columns;
            stripe.pieces.push((slab, rows));
        }
    }
    stripes.push(stripe);
    stripes
}

/// Rows of some slabs, consecutive in canonical order: all of them but at either end.
struct CaptureStripe<'a> {
    tables: &'a Tables,
    index: &'a Index,
    pieces: Vec<(&'a Slab, Range<u32>)>,
    /// Its first position.
    first: u64,
    end: u64,
}

impl CaptureStripe<'_> {
    fn capture<S: Sequential>(
        &self,
        smaller: &S,
        progress: &dyn DriverObserver,
        best: &mut [Score],
    ) -> Result<(), CaptureError<S::Error>> {
        let &CaptureStripe { tables, index, .. } = self;
        self.begin(best);
        let mut stripe_rows = StripeRows::new(self, best);
        let numbers = tables.smaller(index.stones());
        let total: u64 = numbers.clone().map(|stones| index.set().slab_positions(stones)).sum();
        let mut done = 0;
        let mut buffer = Vec::new();
        for stones in numbers {
            for slab in index.set().slabs(stones) {
                let child = ChildSlab { tables, captured: index.stones() - stones, slab: &slab };
                let mut advance = |end: u64| {
                    let share = (done + end - slab.offset) as f64 / total as f64;
                    let positions = self.first + (share * (self.end - self.first) as f64) as u64;
                    if progress.advance(positions, index.slab_positions()).is_break() { Err(Stopped) } else { Ok(()) }
                };
                for needed in self.needed(smaller, &child) {
                    self.read_rows(smaller, &child, needed, &mut stripe_rows, &mut buffer, &mut advance)?;
                }
                done += slab.positions();
            }
        }
        Ok(())
    }

    fn begin(&self, best: &mut [Score]) {
        let mut rest = best;
        let rows = |slab: &Slab| self.piece(slab.mover_stones).map_or(0..0, |number| self.pieces[number].1.clone());
        for batch in batches(self.tables, self.index, rows) {
            let (now, later) = rest.split_at_mut(batch.positions);
            batch.begin(now);
            rest = later;
        }
    }

    /// Returns the positions of a child slab that captures of the stripe lead to, in whole rows. Between two ranges a
    /// block ends, so that none is decoded twice.
    fn needed<S: Sequential>(&self, smaller: &S, child: &ChildSlab) -> Vec<Range<u64>> {
        let (stones, columns) = (self.index.stones() - child.captured, u64::from(child.slab.mover_halves));
        let parents = child.tables.parents(child.slab.opponent_stones);
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for row in 0..child.slab.opponent_halves {
            let is_needed = parents.of(row).iter().any(|&parent| {
                let mover = child.slab.opponent_stones + parent.crossing();
                self.piece_with(mover, parent.rank()).is_some()
                    && child.entries(self.index.stones() - mover, parent.class()).is_some()
            });
            if is_needed {
                let start = child.slab.offset + u64::from(row) * columns;
                match ranges.last_mut() {
                    Some(last) if start == last.end || start < smaller.run_end(stones, last.end - 1) => {
                        last.end = start + columns;
                    }
                    _ => ranges.push(start..start + columns),
                }
            }
        }
        ranges
    }

    /// Returns the number of the piece of a slab.
    fn piece(&self, mover_stones: u32) -> Option<usize> {
        let number = mover_stones.checked_sub(self.pieces.first()?.0.mover_stones)? as usize;
        (number < self.pieces.len()).then_some(number)
    }

    /// Returns the number of the piece that has a row of a slab.
    fn piece_with(&self, mover_stones: u32, row: u32) -> Option<usize> {
        self.piece(mover_stones).filter(|&number| self.pieces[number].1.contains(&row))
    }

    /// Reads rows of a child slab, propagates them to the stripe, and calls `advance` with the end of each run.
    fn read_rows<S: Sequential>(
        &self,
        smaller: &S,
        child: &ChildSlab,
        needed: Range<u64>,
        stripe_rows: &mut StripeRows,
        buffer: &mut Vec<Score>,
        advance: &mut dyn FnMut(u64) -> Result<(), Stopped>,
    ) -> Result<(), CaptureError<S::Error>> {
        let (stones, columns) = (self.index.stones() - child.captured, u64::from(child.slab.mover_halves));
        let most = RUN_POSITIONS.min((self.end - self.first) / RUN_SHARE).max(columns);
        let mut row = ((needed.start - child.slab.offset) / columns) as usize;
        let mut next = needed.start;
        buffer.clear();
        while next < needed.end {
            let mut run_end = next;
            while run_end < needed.end && run_end - next < most {
                run_end = smaller.run_end(stones, run_end).min(needed.end);
            }
            let kept = buffer.len();
            buffer.reserve_exact((run_end - next) as usize);
            buffer.resize(kept + (run_end - next) as usize, 0);
            smaller.read(stones, next..run_end, &mut buffer[kept..]).map_err(CaptureError::Failed)?;
            next = run_end;
            let rows = buffer.len() / columns as usize;
            stripe_rows.improve_rows(child, row, &buffer[..rows * columns as usize]);
            buffer.drain(..rows * columns as usize);
            row += rows;
            advance(next)?;
        }
        Ok(())
    }
}

/// A slab of a smaller database that captures lead into.
struct ChildSlab<'a> {
    tables: &'a Tables,
    captured: u32,
    slab: &'a Slab,
}

impl ChildSlab<'_> {
    /// Returns the columns with captures of `captured` stones by a class of moves, and the child columns.
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

/// The best captures so far: by thread and piece of the stripe, the rows that the thread owns, in groups.
struct StripeRows<'a> {
    stripe: &'a CaptureStripe<'a>,
    owners: Vec<Vec<Vec<&'a mut [Score]>>>,
}

impl<'a> StripeRows<'a> {
    fn new(stripe: &'a CaptureStripe<'a>, best: &'a mut [Score]) -> StripeRows<'a> {
        let threads = rayon::current_num_threads();
        let mut owners: Vec<Vec<Vec<_>>> =
            (0..threads).map(|_| stripe.pieces.iter().map(|_| Vec::new()).collect()).collect();
        let mut rest = best;
        for (number, (slab, rows)) in stripe.pieces.iter().enumerate() {
            let columns = slab.opponent_halves as usize;
            let (rows, after) = rest.split_at_mut(rows.len() * columns);
            rest = after;
            for (at, rows) in rows.chunks_mut(OWNED_ROWS * columns).enumerate() {
                owners[at % threads][number].push(rows);
            }
        }
        StripeRows { stripe, owners }
    }

    /// Takes rows of a slab into account.
    fn improve_rows(&mut self, child: &ChildSlab, first_row: usize, scores: &[Score]) {
        let (threads, stripe) = (self.owners.len(), self.stripe);
        let stones = stripe.index.stones();
        let left = child.slab.opponent_stones;
        let parents = child.tables.parents(left);
        self.owners.par_iter_mut().enumerate().for_each(|(thread, owned)| {
            for (row, scores) in (first_row as u32..).zip(scores.chunks_exact(child.slab.mover_halves as usize)) {
                for parent in parents.of(row) {
                    let mover = left + parent.crossing();
                    if mover > stones {
                        break;
                    }
                    let Some(number) = stripe.piece_with(mover, parent.rank()) else { continue };
                    let (slab, rows) = &stripe.pieces[number];
                    let place = (parent.rank() - rows.start) as usize;
                    let (at, inside) = (place / OWNED_ROWS, place % OWNED_ROWS);
                    if at % threads == thread
                        && let Some(entries) = child.entries(stones - mover, parent.class())
                    {
                        let columns = slab.opponent_halves as usize;
                        let rows = &mut owned[number][at / threads];
                        improve(&mut rows[inside * columns..][..columns], entries, child.captured as u8, scores);
                    }
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::{PositionSet, Rules};

    #[test]
    fn stripes_follow_each_other_and_have_each_slab_once() {
        let (tables, index) = (Tables::new(Rules::AWARI, PositionSet::All, 48), Index::new(48, PositionSet::All));
        for positions in [3_000_000, 1 << 32, (3 << 32) + 5, u64::MAX / 2] {
            let (mut end, mut next) = (0, (0, 0));
            for stripe in stripes(&tables, &index, positions) {
                assert!(stripe.first == end && stripe.end - stripe.first <= positions);
                let pieces = stripe.pieces.iter();
                let positions = pieces.map(|(slab, rows)| rows.len() as u64 * u64::from(slab.opponent_halves));
                assert_eq!(positions.sum::<u64>(), stripe.end - stripe.first);
                for (at, (slab, rows)) in stripe.pieces.iter().enumerate() {
                    assert!(at == 0 || rows.start == 0, "a slab stands once in a stripe");
                    assert_eq!((slab.mover_stones, rows.start), next);
                    next = if rows.end < slab.mover_halves { (next.0, rows.end) } else { (next.0 + 1, 0) };
                }
                end = stripe.end;
            }
            assert_eq!((end, next), (index.slab_positions(), (49, 0)));
        }
    }
}
