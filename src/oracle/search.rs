//! Positions beyond the databases: a short search for bounds of their score.
//!
//! A move that captures may lead into a database, and then its value is known; of what is not reached, only that nobody
//! wins more stones than there are. So every result is sound, at whatever depth the search ends, also where the right
//! score comes from a repetition.

use crate::answer::ReadEditions;
use crate::{Bounds, Oracle, OracleError};
use game::Board;

/// Positions that a search may look at: about a millisecond.
const POSITIONS_MAX: u32 = 2_000;

/// Moves that a search looks ahead.
const DEPTH_MAX: u32 = 12;

impl Oracle {
    /// Bounds of a position of which there is no database.
    ///
    /// # Errors
    /// [`OracleError::Missing`] if the search finds nothing out; otherwise as for any question.
    pub(crate) fn searched(&self, board: &Board, read: &ReadEditions) -> Result<Bounds, OracleError> {
        let stones = board.stones();
        let anything = Bounds::anything(stones);
        let mut known = anything;
        let mut left = POSITIONS_MAX;
        for depth in 1..=DEPTH_MAX {
            known = known.and(self.search(board, depth, &mut left, read)?);
            if known.score().is_some() || left == 0 {
                break;
            }
        }
        if known == anything { Err(self.missing(stones)) } else { Ok(known) }
    }

    fn search(&self, board: &Board, depth: u32, left: &mut u32, read: &ReadEditions) -> Result<Bounds, OracleError> {
        let stones = board.stones();
        if board.mover_starves() {
            return Ok(Bounds::exact(self.rules().terminal_score(board.stones())));
        }
        if self.has(stones) {
            return self.checked(board, read);
        }
        if depth == 0 || *left == 0 {
            return Ok(Bounds::anything(stones));
        }
        *left -= 1;
        let mut best: Option<Bounds> = None;
        for (_, played) in board.moves(self.rules()) {
            let value = self.search(&played.child, depth - 1, left, read)?.after_capture(played.captured);
            best = Some(best.map_or(value, |best| best.max(value)));
        }
        Ok(best.unwrap_or_else(|| Bounds::exact(self.rules().terminal_score(board.stones()))))
    }
}
