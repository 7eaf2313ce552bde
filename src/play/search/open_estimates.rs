//! Estimates of boards whose two bounds differ, by rules that give a board two bounds.
//!
//! What such a board yields depends on how play repeats, far beyond the moves that a search can look ahead. Databases
//! hold all boards, so that all moves of all of them can be looked at together: an estimate is what a board is worth
//! if play stops before every move with a probability of 1/32, and the board is then judged by
//! [`open_estimate`](crate::evaluation::open_estimate):
//!
//! ```text
//! estimate = 31/32 of the best (captured - estimate of the child) + 1/32 of the judgement, within the bounds
//! ```
//!
//! This is a game with stop probabilities (Shapley 1953, Stochastic games): each move takes a 32nd of every error
//! away, so there is one solution, whatever one starts from. It is approached by passes over the boards of a number of
//! stones. Those with fewer stones come first, since no capture leads back.

use crate::board::{PackedBoard, SearchMove};
use crate::evaluation::{Evaluation, open_estimate};
use crate::outcome::Outcome;
use crate::table::STONE;
use game::{Board, Rules, Score, binomial};

/// The number of units of an estimate in a stone.
const UNIT: i32 = 256;

/// One move in this many is the last one.
const MOVES_TO_STOP: i32 = 32;

/// Passes end when no estimate changes by more than this, or after this many.
const SETTLED_CHANGE: i32 = UNIT / 16;
const PASSES_MAX: usize = 64;

/// The stones of a child's capture are above the bits of its number.
const CHILD_BITS: u32 = 26;

const _: () = assert!(places(OpenEstimates::STONES_MAX) < 1 << CHILD_BITS && OpenEstimates::STONES_MAX < 1 << 6);

/// Estimates and bounds of all boards of few stones, those with equal bounds included.
pub struct OpenEstimates {
    /// By number of the board.
    boards: Vec<EstimatedBoard>,
}

#[derive(Clone, Copy)]
struct EstimatedBoard {
    /// In 1/[`UNIT`] stone.
    estimate: i16,
    low: Score,
    high: Score,
}

/// Returns how many boards have at most this number of stones.
const fn places(stones_max: u32) -> usize {
    binomial(stones_max + 12, 12) as usize
}

/// A board whose bounds differ.
struct OpenBoard {
    place: u32,
    /// The first of its moves.
    moves: u32,
    judgement: i16,
    low: Score,
    high: Score,
}

impl OpenEstimates {
    /// The most stones of a board that is estimated. More would take seconds.
    pub const STONES_MAX: u32 = 12;

    /// Estimates all boards of at most `stones_max` stones: up to 12 stones in about a second. `bounds` returns those
    /// of a board, if they are known; those that contradict each other are not believed.
    ///
    /// # Panics
    /// If `stones_max` exceeds [`STONES_MAX`](Self::STONES_MAX).
    pub fn new(
        rules: &Rules,
        evaluation: &Evaluation,
        stones_max: u32,
        bounds: impl Fn(&Board) -> Option<(Score, Score)>,
    ) -> OpenEstimates {
        assert!(stones_max <= OpenEstimates::STONES_MAX, "estimates of at most {} stones", OpenEstimates::STONES_MAX);
        // Apart from the bounds, so that more of them fit into a cache.
        let mut estimates = Vec::with_capacity(places(stones_max));
        let mut all_bounds = Vec::with_capacity(places(stones_max));
        for stones in 0..=stones_max {
            let (mut open, mut moves) = (Vec::new(), Vec::new());
            let mut board = Board([0; 12]);
            board.0[11] = stones as u8;
            for place in estimates.len()..places(stones) {
                let packed = PackedBoard::new(&board);
                let children = packed.moves(rules);
                let known = bounds(&board).filter(|(low, high)| low <= high);
                let (low, high) = match known {
                    Some(known) => known,
                    None if children.is_empty() => [rules.terminal_score(&board); 2].into(),
                    None => (-(stones as Score), stones as Score),
                };
                let judgement = open_estimate(evaluation.estimate(packed), low.into(), high.into()) * UNIT / STONE;
                if low < high {
                    let [place, first] = [place, moves.len()].map(|number| number as u32);
                    open.push(OpenBoard { place, moves: first, judgement: judgement as i16, low, high });
                    let child = |to: &SearchMove| to.child.number() as u32 | u32::from(to.captured) << CHILD_BITS;
                    moves.extend(children.iter().map(child));
                }
                estimates.push(judgement as i16);
                all_bounds.push((low, high));
                advance(&mut board);
            }
            for _ in 0..PASSES_MAX {
                if improve(&open, &moves, &mut estimates) <= SETTLED_CHANGE {
                    break;
                }
            }
        }
        let estimated = |(estimate, (low, high))| EstimatedBoard { estimate, low, high };
        OpenEstimates { boards: estimates.into_iter().zip(all_bounds).map(estimated).collect() }
    }

    /// Returns the estimate and the bounds of the board of this number; `None` if it has too many stones.
    #[inline]
    pub(crate) fn get(&self, number: u64) -> Option<Outcome> {
        let EstimatedBoard { estimate, low, high } = *self.boards.get(number as usize)?;
        let (low, high) = (low.into(), high.into());
        let estimate = i32::from(estimate) * STONE / UNIT;
        Some(Outcome::bounded(estimate.clamp(low * STONE, high * STONE), low, high))
    }
}

/// Goes on to the board with the next number, if another one has as many stones.
fn advance(board: &mut Board) {
    let [first, rest @ ..] = &mut board.0;
    if let Some(at) = rest.iter().position(|&stones| stones > 0) {
        let stones = std::mem::take(first) + 1;
        rest[at] -= 1;
        board.0[at] = stones;
    }
}

/// Computes the estimates of open boards once from each other, and returns the largest change.
fn improve(open: &[OpenBoard], moves: &[u32], estimates: &mut [i16]) -> i32 {
    let mut change = 0;
    for (at, board) in open.iter().enumerate() {
        let end = open.get(at + 1).map_or(moves.len(), |next| next.moves as usize);
        let value = |&to: &u32| {
            let child = estimates[(to & ((1 << CHILD_BITS) - 1)) as usize];
            (to >> CHILD_BITS) as i32 * UNIT - i32::from(child)
        };
        let before = i32::from(estimates[board.place as usize]);
        // Without a move only a wrong database has two bounds.
        let best = moves[board.moves as usize..end].iter().map(value).max().unwrap_or(before);
        let value = best + (i32::from(board.judgement) - best) / MOVES_TO_STOP;
        let value = value.clamp(i32::from(board.low) * UNIT, i32::from(board.high) * UNIT);
        change = change.max((value - before).abs());
        estimates[board.place as usize] = value as i16;
    }
    change
}

impl std::fmt::Debug for OpenEstimates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenEstimates").field("boards", &self.boards.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::reference::{ReferenceBounds, boards, solve_bounds};
    use std::collections::HashMap;

    const STONES: u8 = 6;

    fn solved() -> Vec<ReferenceBounds> {
        let mut solved = Vec::new();
        for stones in 0..=STONES {
            let bounds = solve_bounds(&Rules::OWARE, stones, &solved);
            solved.push(bounds);
        }
        solved
    }

    fn number(board: &Board) -> u64 {
        PackedBoard::new(board).number()
    }

    #[test]
    fn boards_advance_by_number() {
        for stones in 0..=7 {
            let mut board = Board([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, stones]);
            let first = if stones == 0 { 0 } else { places(u32::from(stones) - 1) };
            for place in first..places(stones.into()) {
                assert_eq!(number(&board), place as u64);
                advance(&mut board);
            }
            assert_eq!(board.0[0], stones, "the last board");
        }
    }

    /// Solves the equation of the module by the plain rules and in floating point, all boards from the ones before.
    #[test]
    fn estimates_solve_the_equation() {
        let (rules, evaluation, solved) = (Rules::OWARE, Evaluation::default(), solved());
        let bounds = |board: &Board| {
            let ReferenceBounds { low, high } = &solved[board.stones() as usize];
            (low[&board.0], high[&board.0])
        };
        let all: Vec<Board> = (0..=STONES).flat_map(boards).map(Board).collect();
        let judged = |board: &Board| {
            let (low, high) = bounds(board);
            let estimate = open_estimate(evaluation.estimate(PackedBoard::new(board)), low.into(), high.into());
            f64::from(estimate) / f64::from(STONE)
        };
        let mut expected: HashMap<[u8; 12], f64> = all.iter().map(|board| (board.0, judged(board))).collect();
        for _ in 0..600 {
            let improved = all.iter().map(|board| {
                let values =
                    board.moves(&rules).map(|(_, played)| f64::from(played.captured) - expected[&played.child.0]);
                let best = values.fold(f64::NEG_INFINITY, f64::max);
                let best = if best.is_finite() { best } else { rules.terminal_score(board).into() };
                let (low, high) = bounds(board);
                let value = (31.0 * best + judged(board)) / 32.0;
                (board.0, value.clamp(low.into(), high.into()))
            });
            expected = improved.collect();
        }
        let estimates = OpenEstimates::new(&rules, &evaluation, STONES.into(), |board| Some(bounds(board)));
        let (mut open, mut moved) = (0, 0);
        for board in &all {
            let found = estimates.get(number(board)).unwrap();
            let estimate = f64::from(found.estimate) / f64::from(STONE);
            let (low, high) = bounds(board);
            assert_eq!((found.low, found.high), (low, high), "{board:?}");
            assert!((estimate - expected[&board.0]).abs() < 0.3, "{board:?}: {estimate}, {}", expected[&board.0]);
            assert!((f64::from(low)..=f64::from(high)).contains(&estimate), "{board:?}: {estimate}");
            open += u32::from(low < high);
            moved += u32::from((estimate - judged(board)).abs() > 0.5);
        }
        assert!(open > 1000 && moved > open / 10, "{moved} of {open} boards differ from their judgement");
        let beyond = Board([1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]);
        assert!(estimates.get(number(&beyond)).is_none());
    }

    /// A board whose bounds cannot be read, or are crossed, has the widest ones; the others are estimated all the same.
    #[test]
    fn unknown_bounds_are_the_widest() {
        let (evaluation, solved) = (Evaluation::default(), solved());
        let bounds = |board: &Board| {
            let ReferenceBounds { low, high } = &solved[board.stones() as usize];
            match number(board) % 4 {
                0 => None,
                // Believed no more than none.
                1 => Some((1, -1)),
                _ => Some((low[&board.0], high[&board.0])),
            }
        };
        let estimates = OpenEstimates::new(&Rules::OWARE, &evaluation, STONES.into(), bounds);
        for board in (0..=STONES).flat_map(boards).map(Board) {
            let most = Score::try_from(board.stones()).unwrap();
            let end = Rules::OWARE.terminal_score(&board);
            let widest = if board.moves(&Rules::OWARE).next().is_none() { (end, end) } else { (-most, most) };
            let found = estimates.get(number(&board)).unwrap();
            let known = bounds(&board).filter(|(low, high)| low <= high);
            assert_eq!((found.low, found.high), known.unwrap_or(widest), "{board:?}");
        }
    }
}
