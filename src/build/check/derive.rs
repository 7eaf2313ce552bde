//! Derives the score of a position from the scores of its children, by the plain rules.
//!
//! The checks use nothing else of the game: [`Board::moves`], a look-up for each child, and the score of a player who
//! cannot move.

use crate::databases::{Databases, ScoreSource};
use crate::error::Result;
use game::{Board, Rules, Score};

/// The best scores of the moves of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Derived {
    /// The best score of a capturing move, if there is one.
    pub(crate) capture: Option<Score>,
    /// The best score of a non-capturing move, if there is one.
    pub(crate) quiet: Option<Score>,
}

impl Derived {
    /// The state before any move is added.
    pub(crate) const NONE: Derived = Derived { capture: None, quiet: None };

    /// Looks up the children of a position.
    pub(crate) fn of<L: ScoreSource>(databases: &Databases<L>, board: &Board) -> Result<Derived> {
        let stones = board.stones();
        let mut derived = Derived::NONE;
        for (_, played) in board.moves(databases.rules()) {
            let database = databases.get(stones - u32::from(played.captured))?;
            let position = database.position(&played.child)?;
            derived.offer(played.captured, database.scores().score(position)?);
        }
        Ok(derived)
    }

    /// Adds a move.
    pub(crate) fn offer(&mut self, captured: u8, child: Score) {
        let best = match captured {
            0 => &mut self.quiet,
            _ => &mut self.capture,
        };
        // A damaged child can score -128.
        let score = child.saturating_neg().saturating_add(captured as Score);
        *best = (*best).max(Some(score));
    }

    /// Returns the score of the position.
    pub(crate) fn score(&self, board: &Board, rules: &Rules) -> Score {
        self.capture.max(self.quiet).unwrap_or_else(|| rules.terminal_score(board))
    }
}
