//! A short search for bounds of the score of positions without a database.
//!
//! Captures lead to positions in databases. Other leaves get the widest bounds for their number of stones. So the
//! result is sound at any depth, even if the right score comes from a repetition.

use crate::answer::ReadEditions;
use crate::{Bounds, Oracle, OracleError};
use game::Board;

/// The largest number of positions of a search: about a millisecond.
const POSITIONS_MAX: u32 = 2_000;

/// The largest depth of a search.
const DEPTH_MAX: u32 = 12;

impl Oracle {
    /// Returns the bounds of a position without a database.
    ///
    /// # Errors
    /// [`OracleError::Missing`] if the search finds no bounds; otherwise as [`answer`](Oracle::answer).
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
            return Ok(Bounds::exact(self.rules().terminal_score(board)));
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
        Ok(best.unwrap_or_else(|| Bounds::exact(self.rules().terminal_score(board))))
    }
}
