//! Awari as a game of a book.
//!
//! The key of a position is its number of stones in the bits from 40 up, and below them its rank among all positions of
//! these stones: the colexicographic combinatorial number of the twelve pits, as for halves in the file formats.

use crate::game::{BookGame, BookMove, Hundredths};
use game::notation::PositionText;
use game::{Board, Pit, Rules, STONES_MAX, binomial};
use std::collections::HashSet;

/// Awari, by its rules.
#[derive(Clone, Copy, Debug)]
pub struct AwariGame {
    rules: Rules,
}

/// Pits of a board.
const PITS: usize = 12;

/// The bits of a rank.
const RANK_BITS: u32 = 40;

const _: () = assert!(binomial(STONES_MAX + 11, 11) < 1 << RANK_BITS);

/// `PLACES[j][t]` is the number of ways to put fewer than t stones into j pits, C(t + j - 1, j).
static PLACES: [[u64; STONES_MAX as usize + 1]; PITS] = {
    let mut places = [[0; STONES_MAX as usize + 1]; PITS];
    let mut pits = 1;
    while pits < PITS {
        let mut stones = 1;
        while stones <= STONES_MAX as usize {
            places[pits][stones] = binomial((stones + pits - 1) as u32, pits as u32);
            stones += 1;
        }
        pits += 1;
    }
    places
};

impl AwariGame {
    /// Makes the game.
    pub fn new(rules: Rules) -> AwariGame {
        AwariGame { rules }
    }

    /// Returns the rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the key of a position.
    pub fn key(board: &Board) -> u64 {
        let (mut after, mut rank) = (0, 0);
        for (pits, &stones) in board.0[1..].iter().rev().enumerate() {
            after += usize::from(stones);
            rank += PLACES[pits + 1][after];
        }
        u64::from(board.stones()) << RANK_BITS | rank
    }

    /// Returns the position of a key.
    pub fn board(key: u64) -> Board {
        let mut left = (key >> RANK_BITS).min(u64::from(STONES_MAX)) as usize;
        let mut rank = key & ((1 << RANK_BITS) - 1);
        let mut pits = [0; PITS];
        for (at, pit) in pits[..PITS - 1].iter_mut().enumerate() {
            let places = &PLACES[PITS - 1 - at];
            let mut after = left;
            while places[after] > rank {
                after -= 1;
            }
            rank -= places[after];
            *pit = (left - after) as u8;
            left = after;
        }
        pits[PITS - 1] = left as u8;
        Board(pits)
    }

    /// Returns the positions in which games begin after a number of moves from a position, without those
    /// where a game is over: the openings of a match, and roots of a book for it.
    pub fn openings(&self, board: &Board, plies: u32) -> Vec<Board> {
        let mut boards = vec![*board];
        for _ in 0..plies {
            let mut seen = HashSet::new();
            let children = boards.iter().flat_map(|board| board.moves(&self.rules).map(|(_, played)| played.child));
            boards = children.filter(|&child| seen.insert(child)).collect();
        }
        boards.retain(|board| board.moves(&self.rules).next().is_some());
        boards
    }

    /// Returns a number of stones in hundredths.
    pub fn hundredths(stones: i32) -> Hundredths {
        const MOST: i32 = STONES_MAX as i32;
        (stones.clamp(-MOST, MOST) * 100) as Hundredths
    }
}

impl BookGame for AwariGame {
    fn moves(&self, position: u64, found: &mut Vec<BookMove>) {
        let moves = AwariGame::board(position).moves(&self.rules);
        found.extend(moves.map(|(pit, played)| BookMove {
            number: pit.number() as u8,
            gain: AwariGame::hundredths(played.captured.into()),
            successor: AwariGame::key(&played.child),
        }));
    }

    fn level(&self, position: u64) -> u16 {
        (position >> RANK_BITS) as u16
    }

    fn value_max(&self, position: u64) -> Hundredths {
        AwariGame::hundredths((position >> RANK_BITS) as i32)
    }

    /// The captured stones of both players add up to the stones on the board, so a score is even if their number is.
    fn nearest_value(&self, position: u64, estimate: Hundredths) -> Hundredths {
        let odd = i32::from(self.level(position) % 2);
        let steps = (f64::from(i32::from(estimate) - 100 * odd) / 200.0).round() as i32;
        AwariGame::hundredths(2 * steps + odd)
    }

    fn text(&self, position: u64) -> String {
        PositionText::of_board(AwariGame::board(position)).to_string()
    }

    fn move_text(&self, number: u8) -> String {
        Pit::new(number).map_or_else(|| "?".to_owned(), |pit| pit.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_number_all_positions() {
        for stones in 0..=5 {
            let boards = game::reference::boards(stones);
            let ranks: HashSet<u64> = boards.iter().map(|&pits| AwariGame::key(&Board(pits))).collect();
            let first = u64::from(stones) << RANK_BITS;
            let expected = first..first + binomial(u32::from(stones) + 11, 11);
            assert_eq!(ranks, expected.collect());
            assert!(boards.iter().all(|&pits| AwariGame::board(AwariGame::key(&Board(pits))) == Board(pits)));
        }
        for board in
            [Board::OPENING, Board([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 48]), Board([48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])]
        {
            assert_eq!(AwariGame::board(AwariGame::key(&board)), board);
        }
        // Any number is the key of some board.
        assert_eq!(AwariGame::board(u64::MAX).stones(), STONES_MAX);
    }
}
