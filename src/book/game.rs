//! The game of a book, as the graph sees it: keys of positions, moves and values.

/// A value or a number of stones, in hundredths of a stone. Values are seen from the player to move.
pub type Hundredths = i16;

/// A game whose positions a book holds. A position is a key, seen from the player to move, who changes with each move.
pub trait BookGame {
    /// Appends the legal moves of a position, always in the same order. A position without moves is the end of a game.
    fn moves(&self, position: u64, found: &mut Vec<BookMove>);

    /// Returns the level of a position. A move never leads to a higher level, and a move that gains something leads to
    /// a lower one: so repetitions occur within a level, and no move of a cycle gains anything.
    fn level(&self, position: u64) -> u16;

    /// Returns the largest value that a position can have for either player.
    fn value_max(&self, position: u64) -> Hundredths;

    /// Returns the possible value of a position that is nearest to an estimate. By default every number is possible.
    fn nearest_value(&self, position: u64, estimate: Hundredths) -> Hundredths {
        let _ = position;
        estimate
    }

    /// Returns the text of a position.
    fn text(&self, position: u64) -> String;

    /// Returns the text of a move, seen from the player who makes it.
    fn move_text(&self, number: u8) -> String;
}

/// A move of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookMove {
    /// The number of the move; for awari the pit sown from.
    pub number: u8,
    /// The gain: for awari the captured stones.
    pub gain: Hundredths,
    /// The position after the move.
    pub successor: u64,
}

/// What is known of a position without the book: proved bounds, and an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// Proved lower bound of the value.
    pub low: Hundredths,
    /// Proved upper bound of the value.
    pub high: Hundredths,
    /// The estimate, between the bounds.
    pub estimate: Hundredths,
}

impl Assessment {
    /// Makes the assessment of a position with a known value.
    pub fn exact(value: Hundredths) -> Assessment {
        Assessment { low: value, high: value, estimate: value }
    }

    /// Makes the assessment of a position of which nothing is known but the largest value.
    pub fn unknown(most: Hundredths) -> Assessment {
        Assessment { low: -most, high: most, estimate: 0 }
    }

    /// Whether the value is known.
    pub fn is_exact(self) -> bool {
        self.low == self.high
    }

    /// Whether the estimate is between the bounds, and the bounds within those of all values: -`most` to `most`.
    pub fn is_possible(self, most: Hundredths) -> bool {
        let Assessment { low, high, estimate } = self;
        -most <= low && low <= estimate && estimate <= high && high <= most
    }
}
