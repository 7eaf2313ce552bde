//! The opening position.

use crate::board::Board;
use crate::half::STONES_MAX;
use std::fmt;

/// Pits of the board.
const PITS: u32 = 12;

/// An opening position: the same number of stones in every pit. Awari begins with four; games with fewer are small
/// enough to be solved in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Opening {
    pit_stones: u8,
}

impl Opening {
    /// The opening of awari.
    pub const AWARI: Opening = Opening { pit_stones: Opening::PIT_STONES_MAX };

    /// The most stones in a pit.
    pub const PIT_STONES_MAX: u8 = (STONES_MAX / PITS) as u8;

    /// The opening with `pit_stones` stones in every pit, 1 to 4.
    pub const fn new(pit_stones: u8) -> Option<Opening> {
        if 0 < pit_stones && pit_stones <= Opening::PIT_STONES_MAX { Some(Opening { pit_stones }) } else { None }
    }

    /// The opening with `stones` stones on the board, if there is one.
    pub const fn with_stones(stones: u32) -> Option<Opening> {
        if stones.is_multiple_of(PITS) && stones <= STONES_MAX { Opening::new((stones / PITS) as u8) } else { None }
    }

    /// Stones in every pit.
    pub const fn pit_stones(self) -> u8 {
        self.pit_stones
    }

    /// Stones on the board: all stones of the game.
    pub const fn stones(self) -> u32 {
        PITS * self.pit_stones as u32
    }

    /// The position.
    pub const fn board(self) -> Board {
        Board([self.pit_stones; PITS as usize])
    }
}

impl fmt::Display for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in each pit", crate::quantity::plural(self.pit_stones.into(), "stone"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openings_fill_every_pit_alike() {
        assert_eq!(Opening::AWARI.board(), Board::OPENING);
        assert_eq!([0, 1, 4, 5].map(|stones| Opening::new(stones).is_some()), [false, true, true, false]);
        let found: Vec<u32> = (0..=60).filter(|&stones| Opening::with_stones(stones).is_some()).collect();
        assert_eq!(found, [12, 24, 36, 48]);
        for stones in found {
            let opening = Opening::with_stones(stones).unwrap();
            assert_eq!((opening.stones(), opening.board().stones()), (stones, stones));
            assert_eq!(u32::from(opening.pit_stones()) * 12, stones);
        }
        assert_eq!(Opening::AWARI.to_string(), "4 stones in each pit");
    }
}
