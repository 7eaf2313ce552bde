//! In place of `searched` without the feature `search`: for positions without a database, the bounds that
//! follow from the rules and from the databases of fewer stones.

use crate::answer::{Answer, AnswerSource, IllegalMove, Oracle, ReadEditions};
use crate::bounds::Bounds;
use crate::error::OracleError;
use game::{Board, Pit, Played};

impl Oracle {
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
        let moves = self.valued_moves(moves, read)?;
        let best = moves.iter().map(|valued| valued.value).reduce(Bounds::max);
        let score = best.unwrap_or_else(|| Bounds::anything(board.stones()));
        Ok(Answer { board: *board, score, estimate: None, source: AnswerSource::Search, moves, illegal })
    }

    /// Returns the proved bounds of a position without a database.
    pub(crate) fn searched(&self, board: &Board, _: &ReadEditions) -> Result<Bounds, OracleError> {
        Ok(Bounds::anything(board.stones()))
    }
}
