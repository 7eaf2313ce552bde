//! Hex on boards of up to 4 x 4 cells, as a game of a book: no draws and no cycles.
//!
//! The first player connects top and bottom, the second left and right. A key has the cells of the player to
//! move in its lowest 16 bits, those of the other player in the next 16, and bit 32 if the second player is
//! to move.

use crate::game::{Assessment, BookGame, BookMove, Hundredths};

/// Hex.
#[derive(Clone, Copy, Debug)]
pub struct HexGame {
    size: u32,
}

/// The value of a won game.
const WON: Hundredths = 100;

const SECOND: u64 = 1 << 32;

impl HexGame {
    /// Makes the game on a board of `size` x `size` cells, 1 to 4.
    pub fn new(size: u32) -> Option<HexGame> {
        (1..=4).contains(&size).then_some(HexGame { size })
    }

    /// Returns the key of the empty board.
    pub fn empty(&self) -> u64 {
        0
    }

    /// Returns what the rules say of a position: a loss if the opponent has connected its sides.
    pub fn assess(&self, key: u64) -> Assessment {
        if self.is_lost(key) { Assessment::exact(-WON) } else { Assessment { low: -WON, high: WON, estimate: 0 } }
    }

    fn is_lost(&self, key: u64) -> bool {
        let cells = (key >> 16) as u16;
        // The player who has just moved.
        let is_first = key & SECOND != 0;
        let at = |row: u32, column: u32| 1u16 << (row * self.size + column);
        let line = |end: u32| {
            let cells = (0..self.size).map(|along| if is_first { at(end, along) } else { at(along, end) });
            cells.fold(0, |all, cell| all | cell)
        };
        let mut reached = cells & line(0);
        loop {
            let before = reached;
            for row in 0..self.size {
                for column in 0..self.size {
                    let neighbours = [(0, -1), (0, 1), (-1, 0), (1, 0), (-1, 1), (1, -1)];
                    let is_reached = neighbours.into_iter().any(|(down, right)| {
                        let near = (row.checked_add_signed(down), column.checked_add_signed(right));
                        matches!(near, (Some(row), Some(column))
                            if row < self.size && column < self.size && before & at(row, column) != 0)
                    });
                    if is_reached {
                        reached |= cells & at(row, column);
                    }
                }
            }
            if reached & line(self.size - 1) != 0 {
                return true;
            }
            if reached == before {
                return false;
            }
        }
    }
}

impl BookGame for HexGame {
    fn moves(&self, position: u64, found: &mut Vec<BookMove>) {
        if self.is_lost(position) {
            return;
        }
        let (own, other) = (position & 0xFFFF, position >> 16 & 0xFFFF);
        for cell in 0..self.size * self.size {
            if (own | other) >> cell & 1 == 0 {
                let successor = other | (own | 1 << cell) << 16 | (position ^ SECOND) & SECOND;
                found.push(BookMove { number: cell as u8, gain: 0, successor });
            }
        }
    }

    fn level(&self, position: u64) -> u16 {
        (self.size * self.size - (position as u32).count_ones()) as u16
    }

    fn value_max(&self, _: u64) -> Hundredths {
        WON
    }

    fn nearest_value(&self, _: u64, estimate: Hundredths) -> Hundredths {
        if estimate > 0 { WON } else { -WON }
    }

    fn text(&self, position: u64) -> String {
        let is_second = position & SECOND != 0;
        let cell = |at: u32| match (position >> at & 1, position >> (at + 16) & 1) {
            (0, 0) => '.',
            (1, _) => {
                if is_second {
                    'o'
                } else {
                    'x'
                }
            }
            _ => {
                if is_second {
                    'x'
                } else {
                    'o'
                }
            }
        };
        let rows = (0..self.size).map(|row| (0..self.size).map(|column| cell(row * self.size + column)).collect());
        rows.collect::<Vec<String>>().join("/")
    }

    fn move_text(&self, number: u8) -> String {
        let (row, column) = (u32::from(number) / self.size, u32::from(number) % self.size);
        format!("{}{}", (b'a' + column as u8) as char, row + 1)
    }
}
