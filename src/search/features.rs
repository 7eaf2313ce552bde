//! The features of a position: what the evaluation sees of it.
//!
//! A feature is one of a fixed number of columns; a position has [`FEATURES`] of them, each of a group of its own: the stones
//! of each pit, and the captures that either player threatens.

use crate::board::PackedBoard;
use game::HALF_PITS;

/// The number of features of a position.
pub(crate) const FEATURES: usize = 18;

/// The number of columns.
pub(crate) const COLUMNS: usize = 2 * HALF_PITS * PIT_COLUMNS + 2 * (BEST_COLUMNS + SECOND_COLUMNS + COUNT_COLUMNS);

/// Columns of a pit: more stones than the last one says are not told apart.
const PIT_COLUMNS: usize = 24;

/// Columns of the stones that the largest capture of a player takes.
const BEST_COLUMNS: usize = 24;

/// Columns of the stones that the second largest capture takes.
const SECOND_COLUMNS: usize = 12;

/// Columns of the number of moves that capture.
const COUNT_COLUMNS: usize = HALF_PITS + 1;

/// Returns the columns of the features of a position.
#[inline]
pub(crate) fn columns(board: PackedBoard) -> [u16; FEATURES] {
    let mut found = [0; FEATURES];
    for pit in 0..HALF_PITS {
        let stones = |half: u64| ((half >> (8 * pit)) & 63).min(PIT_COLUMNS as u64 - 1) as usize;
        found[pit] = (pit * PIT_COLUMNS + stones(board.mover)) as u16;
        found[pit + HALF_PITS] = ((pit + HALF_PITS) * PIT_COLUMNS + stones(board.opponent)) as u16;
    }
    let mut first = 2 * HALF_PITS * PIT_COLUMNS;
    let sides = [board, PackedBoard { mover: board.opponent, opponent: board.mover }];
    for (side, place) in sides.into_iter().zip([12, 15]) {
        let captures = Captures::of(side);
        for (at, (value, columns)) in
            [(captures.best, BEST_COLUMNS), (captures.second, SECOND_COLUMNS), (captures.count, COUNT_COLUMNS)]
                .into_iter()
                .enumerate()
        {
            found[place + at] = (first + usize::from(value).min(columns - 1)) as u16;
            first += columns;
        }
    }
    found
}

/// The captures of the player to move. One that leaves the opponent no stones is not counted: it is hardly ever legal.
struct Captures {
    /// The most stones that a move takes.
    best: u8,
    /// The most stones that another move takes.
    second: u8,
    /// The number of moves that capture.
    count: u8,
}

impl Captures {
    #[inline]
    fn of(board: PackedBoard) -> Captures {
        let mut found = Captures { best: 0, second: 0, count: 0 };
        for pit in 0..HALF_PITS {
            let (child, captured) = board.play(pit);
            let captured = if child.mover == 0 { 0 } else { captured };
            found.count += u8::from(captured > 0);
            found.second = found.second.max(captured.min(found.best));
            found.best = found.best.max(captured);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::Board;
    use game::reference::{self, ReferenceMove};

    /// The features of a position, from the rule text.
    fn slow(pits: [u8; 12]) -> Vec<usize> {
        let mut found: Vec<usize> =
            (0..12).map(|pit| pit * PIT_COLUMNS + usize::from(pits[pit]).min(PIT_COLUMNS - 1)).collect();
        let mut first = 12 * PIT_COLUMNS;
        let turned: [u8; 12] = std::array::from_fn(|pit| pits[(pit + 6) % 12]);
        for side in [pits, turned] {
            let mut captures: Vec<usize> = reference::moves(side)
                .into_iter()
                .filter_map(|one| match one {
                    ReferenceMove::Legal { captured, child } if child[..6].iter().any(|&stones| stones > 0) => {
                        Some(usize::from(captured))
                    }
                    _ => None,
                })
                .filter(|&captured| captured > 0)
                .collect();
            captures.sort_unstable_by(|a, b| b.cmp(a));
            let nth = |at: usize| captures.get(at).copied().unwrap_or(0);
            for (value, columns) in [(nth(0), BEST_COLUMNS), (nth(1), SECOND_COLUMNS), (captures.len(), COUNT_COLUMNS)]
            {
                found.push(first + value.min(columns - 1));
                first += columns;
            }
        }
        assert_eq!(first, COLUMNS);
        found
    }

    #[test]
    fn features_are_those_of_the_slow_twin() {
        let openings = [[4; 12], [0, 0, 0, 0, 0, 36, 2, 1, 2, 1, 2, 4], [1, 2, 1, 2, 1, 17, 1, 2, 1, 2, 1, 2]];
        for pits in (0..=7).flat_map(reference::boards).chain(openings) {
            let found = columns(PackedBoard::new(&Board(pits))).map(usize::from);
            assert_eq!(found.to_vec(), slow(pits), "{pits:?}");
        }
    }
}
