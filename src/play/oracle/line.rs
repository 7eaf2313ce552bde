//! The principal line: best moves of both players, to the end of the game or to where it repeats.
//!
//! Scores hold no distance, so best moves alone may repeat forever. If the score is not 0, some sequence of best moves
//! leads to a capture or the end of the game. A breadth-first search over best moves that capture nothing finds the
//! nearest position from which a best move captures or ends the game. If there is none, the score is 0, and the line
//! ends with the repetition.
//!
//! Beyond the databases a position is searched for its best moves. What one search proves, that of the next
//! position may not: if nothing else ends the line, it ends at the nearest position without a proved best
//! move.

use crate::answer::{Answer, AnswerSource, Oracle, ValuedMove};
use crate::error::OracleError;
use game::Board;
use std::collections::HashMap;

/// The largest number of positions in the search for the next capture.
const POSITIONS_MAX: usize = 20_000;

/// The most searches for one line, of positions without a database. Each takes less than a millisecond, and a
/// person does not notice a tenth of a second beside the search of the position itself.
const SEARCHES_MAX: usize = 100;

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
    /// The line has the requested length, or the search for the next moves was too long or stopped.
    CutOff,
    /// The score of the next position is not known exactly, or no move is proved to be the best.
    Unknown,
}

impl Oracle {
    /// Returns the principal line of a position, of at most `moves_max` moves.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
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
        let mut search = LineSearch { oracle: self, is_over, searches: 0 };
        let mut moves: Vec<ValuedMove> = Vec::new();
        let mut at = *board;
        let end = loop {
            if moves.len() >= moves_max {
                break search.end(&at)?;
            }
            match search.way_out(&at)? {
                WayOut::Over => break LineEnd::Over,
                WayOut::Found(way) => {
                    at = way.last().map_or(at, |last| last.child);
                    moves.extend(way);
                }
                WayOut::None(best) => break repeat(&best, at, &mut moves, moves_max),
                WayOut::Unknown(way) => {
                    moves.extend(way);
                    break LineEnd::Unknown;
                }
                WayOut::TooFar => break LineEnd::CutOff,
            }
        };
        if moves.len() > moves_max {
            moves.truncate(moves_max);
            return Ok(PrincipalLine { moves, end: LineEnd::CutOff });
        }
        Ok(PrincipalLine { moves, end })
    }
}

/// The search for a line.
struct LineSearch<'a> {
    oracle: &'a Oracle,
    is_over: &'a dyn Fn() -> bool,
    /// The searches so far.
    searches: usize,
}

/// What is known of a position of a line.
enum LinePosition {
    /// The player to move cannot move.
    Over,
    /// Its score is known, and at least one move is proved to be the best.
    Known(Answer),
    /// Its score or its best moves are not known.
    Unknown,
    /// There were too many searches already.
    NotSearched,
}

impl LineSearch<'_> {
    fn position(&mut self, board: &Board) -> Result<LinePosition, OracleError> {
        if self.searches >= SEARCHES_MAX {
            return Ok(LinePosition::NotSearched);
        }
        let answer = self.oracle.answer(board)?;
        let is_searched = |child: &Board| !self.oracle.has(child.stones()) && !child.mover_starves();
        self.searches += match answer.source {
            AnswerSource::Search => 1,
            // A database may be missing for what captures lead to.
            _ => answer.moves.iter().filter(|valued| is_searched(&valued.child)).count(),
        };
        let is_known = answer.score.score().is_some() && answer.moves.iter().any(|valued| valued.is_best);
        Ok(match (answer.moves.is_empty(), is_known) {
            (true, _) => LinePosition::Over,
            (false, true) => LinePosition::Known(answer),
            (false, false) => LinePosition::Unknown,
        })
    }

    /// Returns the end of a line that is long enough.
    fn end(&mut self, board: &Board) -> Result<LineEnd, OracleError> {
        Ok(match self.position(board)? {
            LinePosition::Over => LineEnd::Over,
            LinePosition::Unknown => LineEnd::Unknown,
            LinePosition::Known(_) | LinePosition::NotSearched => LineEnd::CutOff,
        })
    }

    /// Finds the shortest sequence of best moves that ends with a capture or the end of the game.
    fn way_out(&mut self, start: &Board) -> Result<WayOut, OracleError> {
        let rules = self.oracle.rules();
        let start = match self.position(start)? {
            LinePosition::Over => return Ok(WayOut::Over),
            LinePosition::Known(answer) => answer,
            LinePosition::Unknown => return Ok(WayOut::Unknown(Vec::new())),
            LinePosition::NotSearched => return Ok(WayOut::TooFar),
        };
        let mut seen: HashMap<Board, Option<(usize, ValuedMove)>> = HashMap::from([(start.board, None)]);
        let mut queue = vec![start];
        let mut unknown = None;
        let mut next = 0;
        while next < queue.len() {
            let best = || queue[next].moves.iter().filter(|valued| valued.is_best);
            let leaves = |valued: &&ValuedMove| valued.captured > 0 || valued.child.moves(rules).next().is_none();
            if let Some(last) = best().filter(leaves).max_by_key(|valued| valued.captured) {
                return Ok(WayOut::Found(way(&queue, &seen, next, *last)));
            }
            if queue.len() >= POSITIONS_MAX || (self.is_over)() {
                return Ok(WayOut::TooFar);
            }
            for valued in best().copied().collect::<Vec<ValuedMove>>() {
                if seen.contains_key(&valued.child) {
                    continue;
                }
                match self.position(&valued.child)? {
                    LinePosition::Known(answer) => {
                        seen.insert(valued.child, Some((next, valued)));
                        queue.push(answer);
                    }
                    LinePosition::Over | LinePosition::Unknown => {
                        unknown.get_or_insert_with(|| way(&queue, &seen, next, valued));
                        seen.insert(valued.child, Some((next, valued)));
                    }
                    LinePosition::NotSearched => return Ok(WayOut::TooFar),
                }
            }
            next += 1;
        }
        let first =
            |answer: &Answer| answer.moves.iter().find(|valued| valued.is_best).map(|best| (answer.board, *best));
        Ok(unknown.map_or_else(|| WayOut::None(queue.iter().filter_map(first).collect()), WayOut::Unknown))
    }
}

/// Follows the first best moves of positions until one repeats.
fn repeat(best: &HashMap<Board, ValuedMove>, board: Board, moves: &mut Vec<ValuedMove>, moves_max: usize) -> LineEnd {
    let mut seen = HashMap::from([(board, moves.len())]);
    let mut at = board;
    while moves.len() < moves_max {
        let best = best[&at];
        moves.push(best);
        at = best.child;
        if let Some(&from) = seen.get(&at) {
            return LineEnd::Repeats { from };
        }
        seen.insert(at, moves.len());
    }
    LineEnd::CutOff
}

/// Returns the moves from the first of `queue` to the position `at` of it, and a last move.
fn way(
    queue: &[Answer],
    seen: &HashMap<Board, Option<(usize, ValuedMove)>>,
    at: usize,
    last: ValuedMove,
) -> Vec<ValuedMove> {
    let mut way = vec![last];
    let mut board = queue[at].board;
    while let Some(Some((from, valued))) = seen.get(&board) {
        way.push(*valued);
        board = queue[*from].board;
    }
    way.reverse();
    way
}

/// The result of the search for a capture or the end of the game.
enum WayOut {
    /// The player to move cannot move.
    Over,
    /// The moves.
    Found(Vec<ValuedMove>),
    /// No sequence of best moves leads to a capture or the end of the game: the first best moves of all
    /// positions that they lead to.
    None(HashMap<Board, ValuedMove>),
    /// No known sequence does. The moves lead to the nearest position whose score or best moves are not known.
    Unknown(Vec<ValuedMove>),
    /// The search was cut off.
    TooFar,
}
