//! The principal line: best moves of both players, to the end of the game or to where it repeats.
//!
//! Scores hold no distance, so best moves alone may repeat forever. If the score is not 0, some sequence of best moves
//! leads to a capture or the end of the game. A breadth-first search over best moves that capture nothing finds the
//! nearest position from which a best move captures or ends the game. If there is none, the score is 0, and the line
//! ends with the repetition.

use crate::answer::{Answer, ValuedMove};
use crate::{Oracle, OracleError};
use game::Board;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The largest number of positions in the search for the next capture.
const POSITIONS_MAX: usize = 20_000;

/// A principal line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrincipalLine {
    /// The moves, of both players in turn.
    pub moves: Vec<ValuedMove>,
    /// The end of the line.
    pub end: LineEnd,
}

/// The end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
    /// The player to move cannot move; the rules say who gets the remaining stones.
    Over,
    /// The position after the last move repeats the one before this move; the rules say who gets the remaining stones.
    Repeats {
        /// The move, from 0.
        from: usize,
    },
    /// The line has the requested length, or the search for a capture was too long or stopped.
    CutOff,
    /// The score of the next position is not known exactly.
    Unknown,
}

impl Oracle {
    /// Returns the principal line of a position, of at most `moves_max` moves.
    pub fn line(&self, board: &Board, moves_max: usize) -> Result<PrincipalLine, OracleError> {
        self.line_until(board, moves_max, &|| false)
    }

    /// As [`line`](Self::line), but cut off as soon as `is_over` says so.
    pub(crate) fn line_until(
        &self,
        board: &Board,
        moves_max: usize,
        is_over: &dyn Fn() -> bool,
    ) -> Result<PrincipalLine, OracleError> {
        let mut moves: Vec<ValuedMove> = Vec::new();
        let mut at = *board;
        let end = loop {
            let answer = self.answer(&at)?;
            if answer.moves.is_empty() {
                break LineEnd::Over;
            }
            if answer.score.score().is_none() {
                break LineEnd::Unknown;
            }
            if moves.len() >= moves_max {
                break LineEnd::CutOff;
            }
            match self.way_out(answer, is_over)? {
                WayOut::Found(way) => {
                    at = way.last().map_or(at, |last| last.child);
                    moves.extend(way);
                }
                WayOut::None => break self.repeat(at, &mut moves, moves_max)?,
                WayOut::TooFar => break LineEnd::CutOff,
            }
        };
        if moves.len() > moves_max {
            moves.truncate(moves_max);
            return Ok(PrincipalLine { moves, end: LineEnd::CutOff });
        }
        Ok(PrincipalLine { moves, end })
    }

    /// Finds the shortest sequence of best moves that ends with a capture or the end of the game.
    fn way_out(&self, start: Answer, is_over: &dyn Fn() -> bool) -> Result<WayOut, OracleError> {
        let mut seen: HashMap<Board, Option<(usize, ValuedMove)>> = HashMap::from([(start.board, None)]);
        let mut queue = vec![start];
        let mut next = 0;
        while next < queue.len() {
            let best = || queue[next].moves.iter().filter(|one| one.is_best);
            let leaves = |one: &&ValuedMove| one.captured > 0 || one.child.moves(self.rules()).next().is_none();
            if let Some(last) = best().filter(leaves).max_by_key(|one| one.captured) {
                let mut way = vec![*last];
                let mut at = queue[next].board;
                while let Some(Some((from, one))) = seen.get(&at) {
                    way.push(*one);
                    at = queue[*from].board;
                }
                way.reverse();
                return Ok(WayOut::Found(way));
            }
            if queue.len() >= POSITIONS_MAX || is_over() {
                return Ok(WayOut::TooFar);
            }
            for one in best().copied().collect::<Vec<ValuedMove>>() {
                if let Entry::Vacant(place) = seen.entry(one.child) {
                    place.insert(Some((next, one)));
                    queue.push(self.answer(&one.child)?);
                }
            }
            next += 1;
        }
        Ok(WayOut::None)
    }

    /// Follows the first best moves until a position repeats.
    fn repeat(&self, board: Board, moves: &mut Vec<ValuedMove>, moves_max: usize) -> Result<LineEnd, OracleError> {
        let mut seen = HashMap::from([(board, moves.len())]);
        let mut at = board;
        while moves.len() < moves_max {
            let answer = self.answer(&at)?;
            let Some(best) = answer.moves.iter().find(|one| one.is_best) else { return Ok(LineEnd::Over) };
            moves.push(*best);
            at = best.child;
            if let Some(&from) = seen.get(&at) {
                return Ok(LineEnd::Repeats { from });
            }
            seen.insert(at, moves.len());
        }
        Ok(LineEnd::CutOff)
    }
}

/// The result of the search for a capture or the end of the game.
enum WayOut {
    /// The moves.
    Found(Vec<ValuedMove>),
    /// No sequence of best moves leads to a capture or the end of the game.
    None,
    /// The search was cut off.
    TooFar,
}
