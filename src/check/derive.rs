//! A position's score from the scores of its children, by the plain rules.
//!
//! This is all that the checks know of playing: [`Board::moves`], a look-up for each child, and the score of a player
//! who cannot move. No kernel, no sow map, no capture database.

use crate::CheckError;
use crate::databases::{Databases, ScoreSource};
use game::{Board, Rules, Score};

/// The best scores that a position's moves lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Derived {
    /// By a move that captures, if there is one.
    pub(crate) capture: Option<Score>,
    /// By a move that captures nothing, if there is one.
    pub(crate) quiet: Option<Score>,
}

impl Derived {
    /// No move.
    pub(crate) const NONE: Derived = Derived { capture: None, quiet: None };

    /// Looks up the children of a position.
    pub(crate) fn of<L: ScoreSource>(databases: &Databases<L>, board: &Board) -> Result<Derived, CheckError> {
        let stones = board.stones();
        let mut derived = Derived::NONE;
        for (_, played) in board.moves(databases.rules()) {
            let database = databases.get(stones - u32::from(played.captured))?;
            let position = database.position(&played.child)?;
            derived.offer(played.captured, database.scores().score(position)?);
        }
        Ok(derived)
    }

    /// Takes one move into account.
    pub(crate) fn offer(&mut self, captured: u8, child: Score) {
        let best = match captured {
            0 => &mut self.quiet,
            _ => &mut self.capture,
        };
        // A damaged child can say -128.
        let score = child.saturating_neg().saturating_add(captured as Score);
        *best = (*best).max(Some(score));
    }

    /// What the position scores.
    pub(crate) fn score(&self, board: &Board, rules: &Rules) -> Score {
        self.capture.max(self.quiet).unwrap_or_else(|| rules.terminal_score(board.stones()))
    }
}
