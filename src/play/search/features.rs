//! The features of a position: what the evaluation sees of it.
//!
//! A feature is one of a fixed number of columns; a position has [`FEATURES`] of them, each of a group of its
//! own: the stones of each pit, and the captures that either player threatens.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;

use crate::board::PackedBoard;
use game::HALF_PITS;

/// The number of features of a position.
pub(crate) const FEATURES: usize = 18;

/// The number of columns.
pub(crate) const COLUMNS: usize = FIRST_CAPTURES + 2 * (BEST_COLUMNS + SECOND_COLUMNS + COUNT_COLUMNS);

/// Columns of a pit: more stones than the last one says are not told apart.
const PIT_COLUMNS: usize = 24;

/// Columns of the stones that the largest capture of a player takes.
const BEST_COLUMNS: usize = 24;

/// Columns of the stones that the second largest capture takes.
const SECOND_COLUMNS: usize = 12;

/// Columns of the number of moves that capture.
const COUNT_COLUMNS: usize = HALF_PITS + 1;

/// The first column of captures.
const FIRST_CAPTURES: usize = 2 * HALF_PITS * PIT_COLUMNS;

/// Returns the columns of the features of a position.
#[inline]
pub(crate) fn columns(board: PackedBoard) -> [u16; FEATURES] {
    let mut found = [0; FEATURES];
    for pit in 0..HALF_PITS {
        let stones = |half: u64| ((half >> (8 * pit)) & 63).min(PIT_COLUMNS as u64 - 1) as usize;
        found[pit] = (pit * PIT_COLUMNS + stones(board.mover)) as u16;
        found[pit + HALF_PITS] = ((pit + HALF_PITS) * PIT_COLUMNS + stones(board.opponent)) as u16;
    }
    let turned = PackedBoard { mover: board.opponent, opponent: board.mover };
    add_captures(&mut found, [board, turned].map(|side| Captures::of(side, (1 << HALF_PITS) - 1)));
    found
}

/// Adds the columns of the captures of the player to move and of the other one.
#[inline]
fn add_captures(found: &mut [u16; FEATURES], captures: [Captures; 2]) {
    let mut first = FIRST_CAPTURES;
    for (captures, place) in captures.into_iter().zip([12, 15]) {
        for (at, (value, columns)) in
            [(captures.best, BEST_COLUMNS), (captures.second, SECOND_COLUMNS), (captures.count, COUNT_COLUMNS)]
                .into_iter()
                .enumerate()
        {
            found[place + at] = (first + usize::from(value).min(columns - 1)) as u16;
            first += columns;
        }
    }
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
    /// Returns the captures from pits of the mover with a bit in `pits`; others than the lowest six are of no account.
    #[inline]
    fn of(board: PackedBoard, pits: u32) -> Captures {
        let mut found = Captures { best: 0, second: 0, count: 0 };
        let mut pits = pits & ((1 << HALF_PITS) - 1);
        while pits != 0 {
            let (child, captured) = board.play(pits.trailing_zeros() as usize);
            pits &= pits - 1;
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
    #[cfg(target_arch = "x86_64")]
    use crate::sampling::SplitMix;
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
                .filter_map(|played| match played {
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
            let packed = PackedBoard::new(&Board(pits));
            let expected = slow(pits);
            assert_eq!(columns(packed).map(usize::from).to_vec(), expected, "{pits:?}");
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2.
                let vectors = unsafe { avx2::columns(packed) };
                assert_eq!(vectors.map(usize::from).to_vec(), expected, "{pits:?}");
            }
        }
    }

    /// Boards of all numbers of stones, some with many in a pit.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn vectors_give_the_features_of_the_portable_kernel() {
        if !is_x86_feature_detected!("avx2") {
            return;
        }
        let mut random = SplitMix::new(3, 0);
        for _ in 0..100_000 {
            let mut pits = [0; 12];
            // The fewer pits receive stones, the more of them do others have.
            let used = 2 + random.below(11);
            for _ in 0..random.below(49) {
                pits[random.below(used) as usize] += 1;
            }
            pits.rotate_left(random.below(12) as usize);
            let board = PackedBoard::new(&Board(pits));
            // SAFETY: the processor has AVX2.
            assert_eq!(unsafe { avx2::columns(board) }, columns(board), "{pits:?}");
        }
    }
}
