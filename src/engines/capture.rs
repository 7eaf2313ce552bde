//! The capture database: for each position the best score that a capturing move reaches, or none.
//!
//! Rows are the mover's halves. All captures of one move and one number of captured stones from one row lead into one
//! row of one slab of one smaller database, so nothing is read at random. Positions that end here are included: with no
//! stones the mover has lost what remains, and where every move leaves the opponent without stones the mover takes all.

use crate::tables::{RowMove, Tables};
use crate::{Bytes, Progress, Stopped};
use game::{Index, Score, Slab};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Rows handled between two looks at the progress.
const ROWS: usize = 64;

/// The value of a position that offers no capture: less than any score.
pub const fn none(stones: u32) -> Score {
    -(stones as Score) - 1
}

/// One slab of a smaller database, `OpponentMajor`, row by row.
#[derive(Clone, Copy, Debug)]
pub enum SlabScores<'a> {
    /// A signed byte a position.
    Raw(&'a [Score]),
    /// `bits` bits a position, lowest first, holding the score minus `low`; one byte more is readable at the end.
    Packed {
        /// The bit stream.
        bytes: &'a [u8],
        /// Bits a position, at most 8.
        bits: u32,
        /// The score that is stored as 0.
        low: Score,
    },
}

/// A smaller database as the capture stage reads it: its slabs by the mover's stones.
pub type Smaller<'a> = Vec<SlabScores<'a>>;

/// A smaller database in memory, `OpponentMajor` in the order of its index.
pub fn in_memory<'a>(index: &Index, scores: &'a [Score]) -> Smaller<'a> {
    let slab = |slab: &Slab| SlabScores::Raw(&scores[slab.offset as usize..][..slab.positions() as usize]);
    index.slabs().iter().map(slab).collect()
}

/// Writes the best captures of every position, `MoverMajor`, for captures into the databases given.
///
/// `smaller` has the database of k stones at k, where there is one. A call adds to what `best` holds; the first must
/// find it filled with [`none`], and together the calls must be given all databases.
///
/// # Panics
/// When sizes disagree.
pub fn capture(
    tables: &Tables,
    index: &Index,
    smaller: &[Option<Smaller>],
    best: &mut Bytes,
    progress: &dyn Progress,
) -> Result<(), Stopped> {
    assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
    assert_eq!(best.len() as u64, index.positions());
    let done = AtomicU64::new(0);
    let mut rest = &mut best[..];
    for slab in index.slabs() {
        let (scores, after) = rest.split_at_mut(slab.positions() as usize);
        rest = after;
        let columns = slab.opponent_halves as usize;
        let moves = tables.rows(slab.mover_stones);
        scores.par_chunks_mut(columns * ROWS).zip(moves.par_chunks(ROWS)).try_for_each(|(scores, moves)| {
            for (row, moves) in scores.chunks_exact_mut(columns).zip(moves) {
                capture_row(tables, index, slab, moves, smaller, row);
            }
            let before = done.fetch_add(scores.len() as u64, Relaxed);
            match progress.advance(before + scores.len() as u64, index.positions()) {
                std::ops::ControlFlow::Continue(()) => Ok(()),
                std::ops::ControlFlow::Break(()) => Err(Stopped),
            }
        })?;
    }
    Ok(())
}

fn capture_row(
    tables: &Tables,
    index: &Index,
    slab: &Slab,
    moves: &[RowMove],
    smaller: &[Option<Smaller>],
    best: &mut [Score],
) {
    let stones = index.stones();
    if slab.mover_stones == 0 {
        best.fill(-(stones as Score));
        return;
    }
    let moves = || moves.iter().take_while(|&&to| to != RowMove::NONE);
    for to in moves() {
        let captures = tables.captures(slab.opponent_stones, to.class());
        let left = slab.mover_stones - to.crossing();
        let mut from = 0;
        for &(captured, end) in &captures.groups {
            let entries = &captures.entries[from..end as usize];
            from = end as usize;
            let Some(database) = smaller.get((stones - u32::from(captured)) as usize).and_then(Option::as_ref) else {
                continue;
            };
            // The child's mover has what was left to the opponent.
            let mover = (slab.opponent_stones + to.crossing() - u32::from(captured)) as usize;
            debug_assert_eq!(mover as u32 + left, stones - u32::from(captured));
            let columns = game::Halves::count(mover as u32) as usize;
            let row = to.rank() as usize * columns;
            match database[mover] {
                SlabScores::Raw(scores) => {
                    let scores = &scores[row..row + columns];
                    for &(column, child) in entries {
                        let best = &mut best[column as usize];
                        *best = (*best).max(captured as Score - scores[child as usize]);
                    }
                }
                SlabScores::Packed { bytes, bits, low } => {
                    let start = row * bits as usize;
                    let bytes = &bytes[start / 8..((row + columns) * bits as usize).div_ceil(8) + 1];
                    let (start, mask) = (start as u32 % 8, (1u32 << bits) - 1);
                    let zero = captured as Score - low;
                    for &(column, child) in entries {
                        let bit = start + child * bits;
                        let at = bit as usize / 8;
                        let word = u32::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
                        let best = &mut best[column as usize];
                        *best = (*best).max(zero - (word >> (bit % 8) & mask) as Score);
                    }
                }
            }
        }
    }
    // Where every move leaves the opponent without stones the mover takes all: columns in the lists of all moves.
    let lists = || moves().map(|to| &tables.captures(slab.opponent_stones, to.class()).starves);
    if lists().all(|list| !list.is_empty()) {
        let mut lists = lists();
        let first = lists.next().expect("a row with stones has a move");
        for &column in first {
            if lists.clone().all(|list| list.binary_search(&column).is_ok()) {
                best[column as usize] = stones as Score;
            }
        }
    }
}
