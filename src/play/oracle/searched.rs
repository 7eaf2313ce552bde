//! Answers for positions without a database, by a short search with the databases as scores.

use crate::answer::{Answer, AnswerSource, IllegalMove, Oracle, ReadEditions, ValuedMove};
use crate::bounds::Bounds;
use crate::error::OracleError;
use crate::searcher_pool::SearcherPool;
use game::{Board, Pit, Played, Score};
use search::{Evaluation, ExactScores, MoveEstimate, SearchReport};
use std::sync::OnceLock;

/// The databases of an oracle, as the search of an answer reads them: every score is compared with the values
/// of the moves.
struct CheckedScores<'a> {
    oracle: &'a Oracle,
    read: &'a ReadEditions,
    /// The first error, which is that of the answer.
    error: OnceLock<OracleError>,
}

impl ExactScores for CheckedScores<'_> {
    fn knows(&self, stones: u32) -> bool {
        self.oracle.has(stones)
    }

    fn score(&self, board: &Board) -> Option<Score> {
        self.bounds(board).filter(|(low, high)| low == high).map(|(low, _)| low)
    }

    fn ready_score(&self, board: &Board) -> Option<Score> {
        self.ready_bounds(board).filter(|(low, high)| low == high).map(|(low, _)| low)
    }

    fn bounds(&self, board: &Board) -> Option<(Score, Score)> {
        // Every position after a move is in the set. The root has been looked up.
        if !self.oracle.set().contains(board) {
            return None;
        }
        match self.oracle.checked(board, self.read) {
            Ok(bounds) => Some((bounds.low(), bounds.high())),
            Err(error) => {
                let _ = self.error.set(error);
                None
            }
        }
    }

    fn ready_bounds(&self, board: &Board) -> Option<(Score, Score)> {
        // What the cache holds must not change an answer.
        let (_, scores) = self.oracle.indexed(board.stones()).ok()?;
        if scores.scores().is_in_place() { self.bounds(board) } else { None }
    }
}

impl Oracle {
    /// Makes short searches use an evaluation, instead of the one that the program contains.
    #[must_use]
    pub fn with_evaluation(mut self, evaluation: Evaluation) -> Oracle {
        self.searchers = SearcherPool::new(*self.rules(), evaluation);
        self.open_estimates = OnceLock::new();
        self
    }

    /// Returns the number of short searches so far, of positions without a database.
    pub fn searches(&self) -> u64 {
        self.searchers.searches()
    }

    /// Answers a question about a position without a database. `moves` are its legal moves.
    ///
    /// # Errors
    /// As [`answer`](Oracle::answer).
    pub(crate) fn searched_answer(
        &self,
        board: &Board,
        moves: Vec<(Pit, Played)>,
        illegal: Vec<IllegalMove>,
        read: &ReadEditions,
    ) -> Result<Answer, OracleError> {
        let report = self.short_search(board, read)?;
        let mut score = Bounds::new(report.low, report.high);
        let mut valued = Vec::with_capacity(moves.len());
        for (pit, played) in moves {
            let found =
                report.moves.iter().find(|candidate| candidate.pit == pit).expect("a report has all legal moves");
            let mut value = Bounds::new(found.low, found.high);
            if self.has(played.child.stones()) && !played.child.mover_starves() {
                let known = self.checked(&played.child, read)?.after_capture(played.captured);
                value = joined(value, known, &played.child)?;
            }
            let expected = match found.estimate {
                MoveEstimate::About(expected) => Some(expected),
                _ => None,
            };
            valued.push(ValuedMove::new(pit, &played, value, expected));
        }
        if let Some(best) = valued.iter().map(|candidate| candidate.value).reduce(Bounds::max) {
            score = joined(score, best, board)?;
        }
        let estimate = score.estimate(report.estimate);
        Ok(Answer { board: *board, score, estimate, source: AnswerSource::Search, moves: valued, illegal })
    }

    /// Returns the proved bounds of a position without a database.
    ///
    /// # Errors
    /// As [`answer`](Oracle::answer).
    pub(crate) fn searched(&self, board: &Board, read: &ReadEditions) -> Result<Bounds, OracleError> {
        self.short_search(board, read).map(|report| Bounds::new(report.low, report.high))
    }

    fn short_search(&self, board: &Board, read: &ReadEditions) -> Result<SearchReport, OracleError> {
        let scores = CheckedScores { oracle: self, read, error: OnceLock::new() };
        let report = self.searchers.search(board, &scores);
        scores.error.into_inner().map_or(report, Err)
    }
}

/// Returns the intersection of proved bounds of a position.
fn joined(bounds: Bounds, other: Bounds, board: &Board) -> Result<Bounds, OracleError> {
    let (low, high) = (bounds.low().max(other.low()), bounds.high().min(other.high()));
    if low > high { Err(OracleError::Contradiction { board: *board }) } else { Ok(Bounds::new(low, high)) }
}
