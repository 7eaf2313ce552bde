//! The principal line: best moves of both players, to the end of the game or to where it repeats.
//!
//! Scores carry no distance, so a best move may lead nowhere: two positions can be best for each other for ever. While a
//! score is not 0 there is a way out, since no such score rests on a repetition; so among the best moves that capture
//! nothing, breadth first, the nearest position is sought from which a best move captures or ends the game. Where there
//! is none, the score is 0, and the line says from where it repeats.

use crate::answer::{Answer, ValuedMove};
use crate::{Oracle, OracleError};
use game::Board;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Positions that the search for the next capture may look at.
const POSITIONS_MAX: usize = 20_000;

/// Best moves, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrincipalLine {
    /// The moves, of both players in turn.
    pub moves: Vec<ValuedMove>,
    /// How it ends.
    pub end: LineEnd,
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
    /// Who is to move cannot; the opponent takes what remains.
    Over,
    /// The position after the last move is the one before this move, counted from 0: what remains is shared out.
    Repeats {
        /// The move.
        from: usize,
    },
    /// At the number of moves asked for, or since the search for a capture became too long.
    CutOff,
    /// The score of the next position is not known exactly, so nor are its best moves.
    Unknown,
}

impl Oracle {
    /// The principal line of a position, of at most `moves_max` moves.
    ///
    /// # Errors
    /// As [`answer`](Oracle::answer).
    pub fn line(&self, board: &Board, moves_max: usize) -> Result<PrincipalLine, OracleError> {
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
            match self.way_out(answer)? {
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

    /// The shortest way along best moves that ends with a capture or the end of the game.
    fn way_out(&self, start: Answer) -> Result<WayOut, OracleError> {
        let mut seen: HashMap<Board, Option<(usize, ValuedMove)>> = HashMap::from([(start.board, None)]);
        let mut queue = vec![start];
        let mut next = 0;
        while next < queue.len() {
            let best = || queue[next].moves.iter().filter(|one| one.is_best);
            let leaves = |one: &&ValuedMove| one.captured > 0 || one.child.mover_starves();
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
            if queue.len() >= POSITIONS_MAX {
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

    /// Follows first best moves, none of which leads out, until a position comes again.
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

/// Where best moves lead.
enum WayOut {
    /// By these moves to a capture or the end.
    Found(Vec<ValuedMove>),
    /// Round and round.
    None,
    /// Further than was looked.
    TooFar,
}
