//! Capture databases: for each position, the best score that a capturing move reaches, or none.
//!
//! Rows are the mover's halves. All captures of one move and one number of captured stones from one row lead into one
//! row of one slab of one smaller database, so there is no random access. Halves are ordered by their first pits. For
//! each pit that is sown, and each number of stones that cross and are captured, consecutive rows therefore lead into
//! child rows that ascend in runs: smaller databases are read in some hundred streams, which a block cache serves. At
//! 21 stones (2,278 blocks of 64 KiB) a cache of 9 MiB reads each block 8.6 times, one of 40 MiB 5.6 times, which takes
//! 2.5 and 1 ns a position. Tried and lost: one move after the other through a whole batch of rows (15 to 22 times),
//! larger units (17 times at 2^19 positions), units assigned to threads in order (no difference).
//!
//! If the captures are in memory and the smaller databases are not, the direction is reversed: see `by_children`.
//!
//! Results are delivered in batches, so memory does not depend on the size of the database.
//!
//! Terminal positions are included: a mover without stones loses the remaining ones, a mover for whom all moves
//! leave the opponent without stones takes all, and a mover without a legal move gets what the rules say.

mod by_children;
mod choice;

pub use by_children::{DecodeRun, Sequential, capture_in_stripes, capture_parts};
pub use choice::{ChoiceCounts, DatabasePart, choice, choice_of, offered_choices};

use crate::kernels::tables::{PackedMove, Tables};
use crate::observer::{DriverObserver, Stopped};
use game::{HALF_PITS, Index, PositionSet, Score, Slab};
use rayon::prelude::*;
use std::convert::Infallible;
use std::ops::Range;

/// Positions of a unit; at least one row. A unit stays in the cache of a core while each move in turn is made in all of
/// its rows.
const UNIT_POSITIONS: usize = 1 << 15;

/// Units of a batch, for each thread.
const BATCH_UNITS: usize = 16;

/// Positions passed to the receiver at a time if all captures are kept anyway.
const PORTION_POSITIONS: usize = 8 << 20;

/// Value of a position without a capture: less than any score.
pub const fn none(stones: u32) -> Score {
    -(stones as Score) - 1
}

/// A row that captures lead into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildRow {
    /// Stones of the database.
    pub stones: u32,
    /// Stones of its mover: the number of the slab.
    pub mover_stones: u32,
    /// The row of the slab, `OpponentMajor`.
    pub row: u32,
    /// Columns of the slab.
    pub columns: u32,
}

/// Access to the smaller databases, row by row.
pub trait SmallerRows: Sync {
    /// State of a thread, kept from row to row.
    type Window;
    /// Error of a read.
    type Error: Send;

    /// Creates the state of a thread.
    fn window(&self) -> Self::Window;

    /// Returns all scores of a row.
    fn row<'w>(&'w self, window: &'w mut Self::Window, row: ChildRow) -> Result<&'w [Score], Self::Error>;
}

/// Smaller databases in memory.
#[derive(Debug)]
pub struct InMemory<'a> {
    databases: Vec<(Index, &'a [Score])>,
}

impl<'a> InMemory<'a> {
    /// The databases of 0, 1, 2 stones and so on, `OpponentMajor` in the order of their index.
    ///
    /// # Panics
    /// If a database has another size than its index.
    pub fn new(set: PositionSet, databases: impl IntoIterator<Item = &'a [Score]>) -> InMemory<'a> {
        let index = |(stones, scores): (usize, &'a [Score])| {
            let index = Index::new(stones as u32, set);
            assert_eq!(scores.len() as u64, index.slab_positions());
            (index, scores)
        };
        InMemory { databases: databases.into_iter().enumerate().map(index).collect() }
    }
}

impl SmallerRows for InMemory<'_> {
    type Window = ();
    type Error = Infallible;

    fn window(&self) {}

    fn row<'w>(&'w self, _: &'w mut (), row: ChildRow) -> Result<&'w [Score], Infallible> {
        let (index, scores) = &self.databases[row.stones as usize];
        let first = index.slab(row.mover_stones).offset as usize + row.row as usize * row.columns as usize;
        Ok(&scores[first..][..row.columns as usize])
    }
}

/// Reason why captures were not computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError<E> {
    /// The observer stopped it.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A smaller database could not be read, or the receiver failed.
    #[error("{0}")]
    Failed(E),
}

/// Receiver of the captures of consecutive positions.
pub type Receive<'a, E> = &'a mut dyn FnMut(&[Score]) -> Result<(), E>;

/// Computes the best captures of all positions, `MoverMajor`, and passes them to `receive` in canonical order, in
/// portions of whole rows.
///
/// # Panics
/// If the tables are of other positions.
pub fn capture<S: SmallerRows>(
    tables: &Tables,
    index: &Index,
    smaller: &S,
    progress: &dyn DriverObserver,
    receive: Receive<S::Error>,
) -> Result<(), CaptureError<S::Error>> {
    assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
    tables.prepare_captures(index.stones());
    let mut best = Vec::new();
    for batch in batches(tables, index, all_rows) {
        best.resize(batch.positions, 0);
        batch.capture(smaller, &mut best).and_then(|()| receive(&best)).map_err(CaptureError::Failed)?;
        batch.report(progress)?;
    }
    Ok(())
}

/// As [`capture()`], into an array of all positions with any content; `receive` gets larger portions of it.
///
/// # Panics
/// As [`capture()`], and when the array has another length.
pub fn capture_into<S: SmallerRows>(
    tables: &Tables,
    index: &Index,
    smaller: &S,
    progress: &dyn DriverObserver,
    best: &mut [Score],
    receive: Receive<S::Error>,
) -> Result<(), CaptureError<S::Error>> {
    assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
    assert_eq!(best.len() as u64, index.slab_positions(), "a place for each position");
    tables.prepare_captures(index.stones());
    let (mut received, mut end) = (0, 0);
    for batch in batches(tables, index, all_rows) {
        let to = &mut best[end..][..batch.positions];
        end += batch.positions;
        batch.capture(smaller, to).map_err(CaptureError::Failed)?;
        if end - received >= PORTION_POSITIONS {
            receive(&best[received..end]).map_err(CaptureError::Failed)?;
            received = end;
        }
        batch.report(progress)?;
    }
    receive(&best[received..]).map_err(CaptureError::Failed)
}

fn all_rows(slab: &Slab) -> Range<u32> {
    0..slab.mover_halves
}

/// Consecutive rows of a slab, computed on all threads.
struct CaptureBatch<'a> {
    tables: &'a Tables,
    index: &'a Index,
    slab: &'a Slab,
    moves: &'a [[PackedMove; HALF_PITS]],
    unit_rows: usize,
    positions: usize,
    /// Positions up to its end.
    end: u64,
}

/// Cuts the given rows of each slab into batches, in canonical order.
fn batches<'a>(
    tables: &'a Tables,
    index: &'a Index,
    rows: impl Fn(&Slab) -> Range<u32>,
) -> impl Iterator<Item = CaptureBatch<'a>> {
    index.slabs().iter().flat_map(move |slab| {
        let columns = slab.opponent_halves as usize;
        let moves = tables.rows(slab.mover_stones);
        let unit_rows = (UNIT_POSITIONS / columns).max(1);
        let batch_rows = unit_rows * BATCH_UNITS * rayon::current_num_threads();
        let rows = rows(slab);
        let (first, end) = (rows.start as usize, rows.end as usize);
        (first..end).step_by(batch_rows).map(move |first| {
            let rows = first..end.min(first + batch_rows);
            let end = slab.offset + (rows.end * columns) as u64;
            let positions = rows.len() * columns;
            CaptureBatch { tables, index, slab, moves: &moves[rows], unit_rows, positions, end }
        })
    })
}

impl CaptureBatch<'_> {
    /// See [`CaptureUnit::begin`].
    fn begin(&self, best: &mut [Score]) {
        let &CaptureBatch { tables, index, slab, .. } = self;
        let unit = self.unit_rows * slab.opponent_halves as usize;
        let units = best.par_chunks_mut(unit).zip(self.moves.par_chunks(self.unit_rows));
        units.for_each(|(best, moves)| CaptureUnit { tables, index, slab, moves }.begin(best));
    }

    fn capture<S: SmallerRows>(&self, smaller: &S, best: &mut [Score]) -> Result<(), S::Error> {
        let &CaptureBatch { tables, index, slab, .. } = self;
        let unit = self.unit_rows * slab.opponent_halves as usize;
        best.par_chunks_mut(unit).zip(self.moves.par_chunks(self.unit_rows)).try_for_each_init(
            || smaller.window(),
            |window, (best, moves)| CaptureUnit { tables, index, slab, moves }.capture(smaller, window, best),
        )
    }

    fn report(&self, progress: &dyn DriverObserver) -> Result<(), Stopped> {
        if progress.advance(self.end, self.index.slab_positions()).is_break() { Err(Stopped) } else { Ok(()) }
    }
}

/// Raises `best` by the captures of `captured` stones, given the scores of the child row.
fn improve(best: &mut [Score], entries: &[(u32, u32)], captured: u8, scores: &[Score]) {
    for &(column, child) in entries {
        let best = &mut best[column as usize];
        *best = (*best).max(captured as Score - scores[child as usize]);
    }
}

/// Consecutive rows, computed by one thread.
struct CaptureUnit<'a> {
    tables: &'a Tables,
    index: &'a Index,
    slab: &'a Slab,
    moves: &'a [[PackedMove; HALF_PITS]],
}

impl CaptureUnit<'_> {
    fn capture<S: SmallerRows>(&self, smaller: &S, window: &mut S::Window, best: &mut [Score]) -> Result<(), S::Error> {
        self.begin(best);
        let columns = self.slab.opponent_halves as usize;
        // Move by move through all rows, so that few streams are read at a time.
        for at in 0..HALF_PITS {
            for (best, moves) in best.chunks_exact_mut(columns).zip(self.moves) {
                if moves[at] != PackedMove::NONE {
                    self.capture_move(smaller, window, moves[at], best)?;
                }
            }
        }
        Ok(())
    }

    /// Initializes the captures that need no smaller database.
    fn begin(&self, best: &mut [Score]) {
        if self.slab.mover_stones == 0 {
            best.fill(self.tables.terminal_score(self.slab));
            return;
        }
        best.fill(none(self.index.stones()));
        for (best, moves) in best.chunks_exact_mut(self.slab.opponent_halves as usize).zip(self.moves) {
            self.bar(moves, best);
        }
    }

    fn capture_move<S: SmallerRows>(
        &self,
        smaller: &S,
        window: &mut S::Window,
        to: PackedMove,
        best: &mut [Score],
    ) -> Result<(), S::Error> {
        let captures = self.tables.captures(self.slab.opponent_stones, to.class());
        let mut from = 0;
        for &(captured, end) in &captures.groups {
            let entries = &captures.entries[from..end as usize];
            from = end as usize;
            // The mover of the child has the stones that the capture left to the opponent.
            let mover_stones = self.slab.opponent_stones + to.crossing() - u32::from(captured);
            let child = ChildRow {
                stones: self.index.stones() - u32::from(captured),
                mover_stones,
                row: to.rank(),
                columns: game::Halves::count(mover_stones),
            };
            let scores = smaller.row(window, child)?;
            improve(best, entries, captured, scores);
        }
        Ok(())
    }

    /// Sets the positions in which no move leaves the opponent stones: there the mover takes all, by a move
    /// that is legal for want of another, or cannot move because all moves are illegal.
    fn bar(&self, moves: &[PackedMove], best: &mut [Score]) {
        let moves = || moves.iter().take_while(|&&to| to != PackedMove::NONE);
        let lists = || moves().map(|to| self.tables.captures(self.slab.opponent_stones, to.class()));
        if lists().all(|list| !list.barred.is_empty()) {
            let has = |columns: &[u32], column| columns.binary_search(&column).is_ok();
            let first = lists().next().expect("a row with stones has a move");
            for &column in &first.barred {
                if lists().skip(1).all(|list| has(&list.barred, column)) {
                    let cannot_move = lists().all(|list| has(&list.forbidden, column));
                    best[column as usize] =
                        if cannot_move { self.tables.terminal_score(self.slab) } else { self.index.stones() as Score };
                }
            }
        }
    }
}
