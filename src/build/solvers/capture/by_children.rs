//! Captures computed child by child: each smaller database is read once, sequentially.
//!
//! For each row of a smaller database, the scores are propagated to the parents' rows: those whose mover sowed and left
//! this half. No block of a smaller database is kept, whereas going through the parents row by row reads some hundred
//! streams of children, each with a block in memory, and decodes each block of the largest databases seven times. In
//! return all best captures are in memory, and are passed over once for each move and number of captured stones, which
//! costs more where the smaller databases fit a cache.
//!
//! If memory is too small for all captures, or a rank of a job computes a part of them, they are computed in
//! stripes, and each stripe reads only what it leads to. At 20 stones and 7 million captures a stripe, each
//! block is decoded 5.1 times, compared with 10.2 times through a cache of 8 MiB.
//!
//! Groups of neighbouring parent rows belong to owners in turn, one for each thread, so no two threads write
//! the same row.

use super::{CaptureError, Receive, batches, improve};
use crate::kernels::tables::Tables;
use crate::observer::{DriverObserver, Stopped};
use game::sow::SowClass;
use game::{Index, Score, Slab};
use rayon::prelude::*;
use std::iter::Peekable;
use std::mem::replace;
use std::ops::Range;

/// Positions of a batch of runs: at most this share of a stripe, but at least one row and one decoding unit.
/// Two batches are in memory: one is decoded while the other is propagated. Threads meet after each batch.
const BATCH_POSITIONS_MIN: u64 = 1 << 22;
const BATCH_POSITIONS_A_THREAD: u64 = 1 << 20;
const BATCH_SHARE: u64 = 8;

/// Neighbouring rows in a group of one owner.
const OWNED_ROWS: usize = 8;

/// Rows of which a thread determines whether they are needed.
const NEEDED_ROWS: usize = 1 << 12;

/// Sequential access to the smaller databases.
pub trait Sequential: Sync {
    /// Error of a read.
    type Error: Send;
    /// Read that was started.
    type Pending: Send;

    /// Returns the end of the run of positions that is decoded together with `position`.
    fn run_end(&self, stones: u32, position: u64) -> u64;

    /// Starts to read the scores of consecutive positions.
    fn start(&self, stones: u32, positions: Range<u64>) -> Self::Pending;

    /// Returns the decoder of a read. `out` has the length of its range.
    fn decoder<'a>(&'a self, pending: Self::Pending, out: &'a mut [Score]) -> impl DecodeRun<Self::Error> + 'a;
}

/// Decoder of a run by several threads.
pub trait DecodeRun<E>: Sync {
    /// Decodes parts of the run until none is left that no thread has taken.
    fn work(&self);

    /// Returns the result, once no thread works any more.
    fn finish(self) -> Result<(), E>;
}

/// As [`capture`](super::capture()) of some positions, with as many captures at a time as `stripe` has room
/// for, and beside them at most a quarter as many scores: each stripe reads the rows of the smaller databases
/// that it leads to. With room for all captures, and a row more at either end, they are one stripe.
///
/// # Panics
/// As [`capture`](super::capture()), and when the index does not have the positions or a row does not fit the stripe.
pub fn capture_in_stripes<S: Sequential>(
    tables: &Tables,
    (index, positions): (&Index, &Range<u64>),
    smaller: &S,
    progress: &dyn DriverObserver,
    stripe: &mut [Score],
    receive: Receive<S::Error>,
) -> Result<(), CaptureError<S::Error>> {
    assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
    assert!(positions.end <= index.slab_positions());
    tables.prepare_captures(index.stones());
    tables.prepare_rows(index.stones());
    for capture_stripe in stripes(tables, index, positions, stripe.len() as u64) {
        let best = &mut stripe[..(capture_stripe.end - capture_stripe.first) as usize];
        capture_stripe.capture(smaller, progress, best)?;
        // Rows at either end may have other positions too.
        let within =
            |position: u64| (position.clamp(capture_stripe.first, capture_stripe.end) - capture_stripe.first) as usize;
        let wanted = within(positions.start)..within(positions.end);
        receive(&best[wanted]).map_err(CaptureError::Failed)?;
    }
    Ok(())
}

/// Returns the first positions of `parts` parts of about as much work each, at least one. With each stone of
/// the mover there are more captures: a position where he has all stones took four times as long as one where
/// he has none (8 ranks, 28 stones).
pub fn capture_parts(slabs: &[Slab], parts: usize) -> Vec<u64> {
    let stones = slabs.len() as u32 - 1;
    let weight = |slab: &Slab| u128::from(stones + 3 * slab.mover_stones).max(1);
    let total: u128 = slabs.iter().map(|slab| u128::from(slab.positions()) * weight(slab)).sum();
    let (mut starts, mut before) = (Vec::new(), 0);
    for slab in slabs {
        let after = before + u128::from(slab.positions()) * weight(slab);
        while starts.len() < parts && total * (starts.len() as u128) < after * parts as u128 {
            let wanted = total * starts.len() as u128 / parts as u128;
            starts.push(slab.offset + ((wanted.max(before) - before) / weight(slab)) as u64);
        }
        before = after;
    }
    starts
}

/// Cuts the rows that have some of the positions `wanted` into stripes of at most `positions` positions, but at
/// least a row.
fn stripes<'a>(tables: &'a Tables, index: &'a Index, wanted: &Range<u64>, positions: u64) -> Vec<CaptureStripe<'a>> {
    let mut stripes = Vec::new();
    let mut stripe = CaptureStripe { tables, index, pieces: Vec::new(), first: 0, end: 0 };
    for slab in index.slabs().iter().filter(|_| !wanted.is_empty()) {
        let columns = u64::from(slab.opponent_halves);
        let within = |position: u64| position.clamp(slab.offset, slab.offset + slab.positions()) - slab.offset;
        let mut first = (within(wanted.start) / columns) as u32;
        let end = within(wanted.end).div_ceil(columns) as u32;
        while first < end {
            if stripes.is_empty() && stripe.pieces.is_empty() {
                stripe.first = slab.offset + u64::from(first) * columns;
                stripe.end = stripe.first;
            }
            let room = (stripe.first + positions).saturating_sub(stripe.end) / columns;
            if room == 0 && !stripe.pieces.is_empty() {
                let next = CaptureStripe { pieces: Vec::new(), first: stripe.end, ..stripe };
                stripes.push(std::mem::replace(&mut stripe, next));
                continue;
            }
            let rows = first..first + room.clamp(1, u64::from(end - first)) as u32;
            first = rows.end;
            stripe.end += rows.len() as u64 * columns;
            stripe.pieces.push((slab, rows));
        }
    }
    if !stripe.pieces.is_empty() {
        stripes.push(stripe);
    }
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
        let total: u64 = tables.smaller(index.stones()).map(|stones| index.set().slab_positions(stones)).sum();
        let advance = |run: &ChildRun| {
            let share = run.done as f64 / total as f64;
            let positions = self.first + (share * (self.end - self.first) as f64) as u64;
            if progress.advance(positions, index.slab_positions()).is_break() { Err(Stopped) } else { Ok(()) }
        };
        let most = self.batch_positions();
        let mut runs = self.runs(smaller, most).peekable();
        let mut start = || -> (Vec<_>, Vec<_>) {
            let started = next_batch(&mut runs, most).into_iter();
            started.map(|run| (smaller.start(run.child.stones, run.positions.clone()), run)).unzip()
        };
        let mut started = start();
        let (mut now, mut buffer) = (RunBatch::default(), Vec::new());
        while !now.runs.is_empty() || !started.1.is_empty() {
            // The batch after that which is decoded now.
            let (pending, runs) = replace(&mut started, start());
            let mut next = RunBatch::new(runs, &now, buffer);
            let reads = pending.into_iter().zip(next.unread());
            let decoders: Vec<_> = reads.map(|(pending, out)| smaller.decoder(pending, out)).collect();
            stripe_rows.improve_rows(&now, || decoders.iter().for_each(DecodeRun::work));
            let read = decoders.into_iter().try_for_each(DecodeRun::finish);
            now.runs.last().map_or(Ok(()), |decoded| advance(&decoded.run))?;
            read.map_err(CaptureError::Failed)?;
            buffer = replace(&mut now, next).scores;
        }
        Ok(())
    }

    /// Returns the most positions of a batch, unless they are of one row.
    fn batch_positions(&self) -> u64 {
        let most = BATCH_POSITIONS_MIN.max(rayon::current_num_threads() as u64 * BATCH_POSITIONS_A_THREAD);
        most.min((self.end - self.first) / BATCH_SHARE)
    }

    /// Returns the runs of all smaller databases that captures of the stripe lead to. A run has at most
    /// `most` positions, unless they are of one row.
    fn runs<'a, S: Sequential>(&'a self, smaller: &'a S, most: u64) -> impl Iterator<Item = ChildRun<'a>> {
        let &CaptureStripe { tables, index, .. } = self;
        let slabs = tables.smaller(index.stones()).flat_map(move |stones| {
            index.set().slabs(stones).into_iter().map(move |slab| ChildSlab {
                tables,
                stones,
                captured: index.stones() - stones,
                slab,
            })
        });
        let mut before = 0;
        slabs.flat_map(move |child| {
            let first = before;
            before += child.slab.positions();
            let mut runs = Vec::new();
            for needed in self.needed(smaller, &child) {
                let mut next = needed.start;
                while next < needed.end {
                    let mut end = next;
                    while end < needed.end && end - next < most.max(u64::from(child.slab.mover_halves)) {
                        end = smaller.run_end(child.stones, end).min(needed.end);
                    }
                    let done = first + end - child.slab.offset;
                    runs.push(ChildRun { child, positions: next..end, continues: next > needed.start, done });
                    next = end;
                }
            }
            runs
        })
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
        let columns = u64::from(child.slab.mover_halves);
        let (parents, targets) = (child.tables.parents(child.slab.opponent_stones), self.targets(child));
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let is_needed = |row: u32| {
            parents.of(row).iter().any(|&parent| {
                let target = targets[parent.class()].as_ref();
                target.is_some_and(|target| target.rows.contains(&parent.rank()))
            })
        };
        let rows = (0..child.slab.opponent_halves).into_par_iter().with_min_len(NEEDED_ROWS);
        let needed: Vec<bool> = rows.map(is_needed).collect();
        for (row, is_needed) in (0u32..).zip(needed) {
            if is_needed {
                let start = child.slab.offset + u64::from(row) * columns;
                match ranges.last_mut() {
                    Some(last) if start == last.end || start < smaller.run_end(child.stones, last.end - 1) => {
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

    /// Returns the targets of captures into a child slab, by class of moves.
    fn targets<'t>(&'t self, child: &ChildSlab<'t>) -> Vec<Option<CaptureTarget<'t>>> {
        let target = |number| {
            let class = SowClass::from_number(number);
            let mover = child.slab.opponent_stones + u32::from(class.crossing);
            if class.stones_min().is_none_or(|least| mover < least) {
                return None;
            }
            let opponent = self.index.stones().checked_sub(mover)?;
            let entries = child.entries(opponent, number)?;
            let number = self.piece(mover)?;
            let (slab, rows) = &self.pieces[number];
            Some(CaptureTarget { number, rows: rows.clone(), columns: slab.opponent_halves as usize, entries })
        };
        (0..SowClass::COUNT).map(target).collect()
    }
}

/// Rows that captures by a class of moves from a child slab lead back to.
struct CaptureTarget<'a> {
    /// Number of the piece of the stripe, and its rows.
    number: usize,
    rows: Range<u32>,
    columns: usize,
    /// Columns with such captures, and the child columns.
    entries: &'a [(u32, u32)],
}

/// A slab of a smaller database that captures lead into.
#[derive(Clone, Copy)]
struct ChildSlab<'a> {
    tables: &'a Tables,
    stones: u32,
    captured: u32,
    slab: Slab,
}

/// Consecutive positions of a child slab that are read together.
struct ChildRun<'a> {
    child: ChildSlab<'a>,
    positions: Range<u64>,
    /// Whether the previous run ends where this one begins, perhaps within a row.
    continues: bool,
    /// Positions of the smaller databases up to its end.
    done: u64,
}

impl ChildRun<'_> {
    /// The number of its positions.
    fn len(&self) -> usize {
        (self.positions.end - self.positions.start) as usize
    }
}

/// Takes the next runs: at least one, and further ones while all have at most `most` positions together.
fn next_batch<'a>(runs: &mut Peekable<impl Iterator<Item = ChildRun<'a>>>, most: u64) -> Vec<ChildRun<'a>> {
    let (mut batch, mut positions) = (Vec::new(), 0);
    let mut fits = |run: &ChildRun| {
        let is_first = positions == 0;
        positions += run.len() as u64;
        is_first || !run.continues && positions <= most
    };
    while let Some(run) = runs.next_if(&mut fits) {
        batch.push(run);
    }
    batch
}

/// Runs that are decoded together, and their scores.
#[derive(Default)]
struct RunBatch<'a> {
    runs: Vec<PlacedRun<'a>>,
    /// Those of the runs, perhaps followed by anything.
    scores: Vec<Score>,
}

/// A run, and where its scores are, from the beginning of a row on.
struct PlacedRun<'a> {
    run: ChildRun<'a>,
    first_row: usize,
    scores: Range<usize>,
}

impl<'a> RunBatch<'a> {
    /// Makes a batch with any scores in `buffer`, but for those that the batch before has of the first row.
    fn new(runs: Vec<ChildRun<'a>>, before: &RunBatch, buffer: Vec<Score>) -> RunBatch<'a> {
        let mut batch = RunBatch { runs: Vec::with_capacity(runs.len()), scores: buffer };
        let mut end = 0;
        for run in runs {
            let columns = run.child.slab.mover_halves as usize;
            let mut first_row = (run.positions.start - run.child.slab.offset) as usize / columns;
            let start = end;
            if run.continues {
                let last = before.runs.last().expect("the run that it continues");
                let rows = last.scores.len() / columns;
                let rest = &before.scores[last.scores.start + rows * columns..last.scores.end];
                first_row = last.first_row + rows;
                end += rest.len();
                batch.grow(end);
                batch.scores[start..end].copy_from_slice(rest);
            }
            end += run.len();
            batch.runs.push(PlacedRun { run, first_row, scores: start..end });
        }
        batch.grow(end);
        batch
    }

    /// Makes room for this many scores, without clearing those that are there.
    fn grow(&mut self, count: usize) {
        if self.scores.len() < count {
            self.scores.reserve_exact(count - self.scores.len());
            self.scores.resize(count, 0);
        }
    }

    /// Returns the places of the scores of each run that are read.
    fn unread(&mut self) -> impl Iterator<Item = &mut [Score]> {
        let mut rest = &mut self.scores[..];
        self.runs.iter().map(move |placed| {
            let (scores, after) = std::mem::take(&mut rest).split_at_mut(placed.scores.len());
            rest = after;
            &mut scores[placed.scores.len() - placed.run.len()..]
        })
    }
}

impl<'a> ChildSlab<'a> {
    fn is_of_slab(&self, other: &ChildSlab) -> bool {
        (self.stones, self.slab.mover_stones) == (other.stones, other.slab.mover_stones)
    }

    /// Returns the columns with captures of `captured` stones by a class of moves, and the child columns.
    fn entries(&self, opponent: u32, class: usize) -> Option<&'a [(u32, u32)]> {
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

/// The best captures so far: by owner and piece of the stripe, the rows that it owns, in groups.
struct StripeRows<'a> {
    stripe: &'a CaptureStripe<'a>,
    /// A power of two, one for each thread or a few more.
    owners: Vec<Vec<Vec<&'a mut [Score]>>>,
}

impl<'a> StripeRows<'a> {
    fn new(stripe: &'a CaptureStripe<'a>, best: &'a mut [Score]) -> StripeRows<'a> {
        let owners = rayon::current_num_threads().next_power_of_two();
        let mut owners: Vec<Vec<Vec<_>>> =
            (0..owners).map(|_| stripe.pieces.iter().map(|_| Vec::new()).collect()).collect();
        let mask = owners.len() - 1;
        let mut rest = best;
        for (number, (slab, rows)) in stripe.pieces.iter().enumerate() {
            let columns = slab.opponent_halves as usize;
            let (rows, after) = rest.split_at_mut(rows.len() * columns);
            rest = after;
            for (at, rows) in rows.chunks_mut(OWNED_ROWS * columns).enumerate() {
                owners[at & mask][number].push(rows);
            }
        }
        StripeRows { stripe, owners }
    }

    /// Takes the whole rows of a batch into account. Threads that are done with that call `then`.
    fn improve_rows(&mut self, batch: &RunBatch, then: impl Fn() + Sync) {
        // The runs of each child slab, and its targets.
        let of_slabs = batch.runs.chunk_by(|placed, next| placed.run.child.is_of_slab(&next.run.child));
        let of_slabs: Vec<_> = of_slabs.map(|runs| (runs, self.stripe.targets(&runs[0].run.child))).collect();
        let mask = self.owners.len() - 1;
        self.owners.par_iter_mut().enumerate().with_max_len(1).for_each(|(owner, owned)| {
            for (runs, targets) in &of_slabs {
                runs.iter().for_each(|placed| placed.improve_rows(&batch.scores, targets, owner, mask, owned));
            }
            then();
        });
    }
}

impl PlacedRun<'_> {
    /// Takes the whole rows into account in the parents' rows of an owner.
    fn improve_rows(
        &self,
        scores: &[Score],
        targets: &[Option<CaptureTarget>],
        owner: usize,
        mask: usize,
        owned: &mut [Vec<&mut [Score]>],
    ) {
        let child = &self.run.child;
        let parents = child.tables.parents(child.slab.opponent_stones);
        let shift = mask.count_ones();
        // Each owner passes over all parents, so this loop rejects those of others first.
        let rows = scores[self.scores.clone()].chunks_exact(child.slab.mover_halves as usize);
        for (row, scores) in (self.first_row as u32..).zip(rows) {
            for parent in parents.of(row) {
                let Some(target) = &targets[parent.class()] else { continue };
                let place = parent.rank().wrapping_sub(target.rows.start) as usize;
                let (at, inside) = (place / OWNED_ROWS, place % OWNED_ROWS);
                if at & mask == owner && place < target.rows.len() {
                    let rows = &mut owned[target.number][at >> shift];
                    let best = &mut rows[inside * target.columns..][..target.columns];
                    improve(best, target.entries, child.captured as u8, scores);
                }
            }
        }
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
            for stripe in stripes(&tables, &index, &(0..index.slab_positions()), positions) {
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

    #[test]
    fn parts_of_captures_are_all_positions() {
        for (stones, set) in [(0, PositionSet::All), (3, PositionSet::All), (20, PositionSet::REACHABLE)] {
            let index = Index::new(stones, set);
            for parts in [1, 2, 7, 64] {
                let starts = capture_parts(index.slabs(), parts);
                assert!(starts.len() == parts && starts[0] == 0 && starts.is_sorted());
                assert!(starts.iter().all(|&start| start <= index.slab_positions()));
                let ends = starts[1..].iter().copied().chain([index.slab_positions()]);
                let positions: Vec<_> = starts.iter().zip(ends).map(|(start, end)| end - start).collect();
                if stones == 20 {
                    // Of the first positions more than of the last.
                    let even = index.slab_positions() / parts as u64;
                    let [first, last] = [positions[0], positions[parts - 1]];
                    assert!(parts == 1 || last < even && even < first && first < 2 * even, "{positions:?}");
                }
            }
        }
    }

    #[test]
    fn stripes_of_some_positions_have_just_their_rows() {
        let (tables, index) = (Tables::new(Rules::AWARI, PositionSet::All, 20), Index::new(20, PositionSet::All));
        let all = index.slab_positions();
        for wanted in [0..0, 5..5, 0..1, all - 1..all, all / 3..all / 2, 12_345_678..12_345_679, 0..all] {
            for positions in [300_000, u64::MAX / 2] {
                let stripes = stripes(&tables, &index, &wanted, positions);
                assert_eq!(stripes.is_empty(), wanted.is_empty());
                let (Some(first), Some(last)) = (stripes.first(), stripes.last()) else { continue };
                assert!(stripes.windows(2).all(|two| two[0].end == two[1].first));
                let columns = |piece: Option<&(&Slab, Range<u32>)>| u64::from(piece.unwrap().0.opponent_halves);
                assert!(first.first <= wanted.start && wanted.start - first.first < columns(first.pieces.first()));
                assert!(last.end >= wanted.end && last.end - wanted.end < columns(last.pieces.last()));
                let (slab, rows) = &first.pieces[0];
                assert_eq!(first.first, slab.offset + u64::from(rows.start) * u64::from(slab.opponent_halves));
            }
        }
    }
}
