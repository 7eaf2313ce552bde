//! Positions.

use crate::Error;
use game::notation::PositionText;
use game::{Board, STONES_MAX};
use std::fmt;
use std::str::FromStr;

/// A position: the stones in the twelve pits, seen from the player to move.
///
/// It is parsed from and printed as twelve numbers, the pits A to F of the player to move and then a to f of the
/// opponent, in the direction of play. It is also parsed from the notation of oware programs, such as
/// `4-4-4-4-4-4-4-4-4-4-4-4-0-0-S`, whose stores are ignored.
///
/// ```
/// use awari_db::Position;
///
/// let position = Position::new([0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0])?;
/// assert_eq!(position.stones(), 3);
/// assert_eq!(position, "0 0 0 0 0 1 1 1 0 0 0 0".parse()?);
/// # Ok::<(), awari_db::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position(pub(crate) Board);

impl Position {
    /// Makes a position of the stones in the pits A to F of the player to move, then a to f of the opponent.
    ///
    /// # Errors
    /// [`Error::Position`] if there are more than 48 stones.
    pub fn new(pits: [u8; 12]) -> Result<Position, Error> {
        let stones: u32 = pits.iter().map(|&stones| u32::from(stones)).sum();
        if stones > STONES_MAX {
            return Err(Error::Position(format!("expected at most {STONES_MAX} stones, found {stones}")));
        }
        Ok(Position(Board(pits)))
    }

    /// Returns the stones in the pits A to F of the player to move, then a to f of the opponent.
    pub fn pits(&self) -> [u8; 12] {
        self.0.0
    }

    /// Returns the number of stones on the board.
    pub fn stones(&self) -> u32 {
        self.0.stones()
    }
}

impl FromStr for Position {
    type Err = Error;

    fn from_str(text: &str) -> Result<Position, Error> {
        let parsed: PositionText = text.parse().map_err(|error| Error::Position(format!("{error}")))?;
        Ok(Position(parsed.board()))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        PositionText::of_board(self.0).fmt(f)
    }
}
