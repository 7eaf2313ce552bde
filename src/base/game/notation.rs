//! Text notation of positions and moves.
//!
//! A position has two forms:
//!
//! ```text
//! 4 4 4 4 4 4 4 4 4 4 4 4            twelve numbers, A to F of the mover, then a to f;
//!                                    separated by spaces, commas, or both
//! 4-4-4-4-4-4-4-4-4-4-4-4-0-0-S      as oware programs write it: South's houses A..F, North's a..f,
//!                                    South's store, North's store, and the side to move, S or N
//! ```
//!
//! The second form names the pits from South's seat, for either side to move; a [`Board`] has the mover's half first,
//! so with N to move the halves are exchanged. Stores are no part of a database, but are kept, so that text survives a
//! round trip. A move is named by its pit: `A` to `F` for the mover or South, `a` to `f` for North.

use crate::board::{Board, Pit};
use crate::half::{HALF_PITS, STONES_MAX};
use std::{fmt, str::FromStr};
use thiserror::Error;

/// A position in text form: a board, and in the long form stores and side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PositionText {
    board: Board,
    seats: Option<Seats>,
}

/// The fields that only the long form of a position has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seats {
    /// Stones that South has captured.
    pub south_store: u8,
    /// Stones that North has captured.
    pub north_store: u8,
    /// The side to move.
    pub side: Side,
}

/// A move in text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MoveText {
    /// The pit of the move, from the seat of the moving side.
    pub pit: Pit,
    /// The moving side.
    pub side: Side,
}

/// One of the two players.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Has the pits A to F, and is to move by default.
    South,
    /// Has the pits a to f.
    North,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Side::South => "S",
            Side::North => "N",
        })
    }
}

/// An error in the text of a position or a move.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message of a variant explains its fields")]
pub enum NotationError {
    /// A field is not a number, or too large for the board.
    #[error("{place} (column {column}): expected a number of stones from 0 to {STONES_MAX}, found `{found}`")]
    Number {
        place: PositionField,
        /// Its first character, counted from 1.
        column: usize,
        found: String,
    },
    /// Too few numbers or too many.
    #[error(
        "expected 12 numbers from A round to f, or 15 parts as in \
         `4-4-4-4-4-4-4-4-4-4-4-4-0-0-S`, found {found} {separated}"
    )]
    Parts { found: usize, separated: &'static str },
    /// The side to move is neither S nor N.
    #[error("side to move (column {column}): expected `S` or `N`, found `{found}`")]
    Side {
        /// Its first character, counted from 1.
        column: usize,
        found: String,
    },
    /// More stones than the game has.
    #[error("whole position: expected at most {STONES_MAX} stones, found {found}")]
    Stones {
        /// The number of stones, including the stores.
        found: u32,
    },
    /// The text is not the name of a pit.
    #[error("move: expected a pit, `A` to `F` for South or `a` to `f` for North, found `{found}`")]
    Move { found: String },
}

/// A place in a position's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PositionField {
    /// One of the twelve pits: A to F, then a to f.
    Pit(usize),
    /// South's store.
    SouthStore,
    /// North's store.
    NorthStore,
}

/// Parts of the long form: the pits, two stores, the side.
const LONG_PARTS: usize = 15;

impl PositionText {
    /// A bare board, to be written as twelve numbers.
    pub fn of_board(board: Board) -> PositionText {
        PositionText { board, seats: None }
    }

    /// A board with stores and a side to move, to be written in the long form.
    pub fn of_game(board: Board, seats: Seats) -> PositionText {
        PositionText { board, seats: Some(seats) }
    }

    /// The board, the mover's pits first.
    pub fn board(&self) -> Board {
        self.board
    }

    /// Stores and side to move, if the text contains them.
    pub fn seats(&self) -> Option<Seats> {
        self.seats
    }

    /// The side to move, by default South.
    pub fn side(&self) -> Side {
        self.seats.map_or(Side::South, |seats| seats.side)
    }
}

impl FromStr for PositionText {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<PositionText, NotationError> {
        let is_space = |c: char| c == ',' || c.is_whitespace();
        if text.trim().contains(is_space) || !text.contains('-') {
            let parts: Vec<_> = parts(text, is_space).into_iter().filter(|part| !part.text.is_empty()).collect();
            if parts.len() != 12 {
                return Err(NotationError::Parts { found: parts.len(), separated: "separated by spaces or commas" });
            }
            let board = Board(pits(&parts)?);
            check_stones(board.stones())?;
            return Ok(PositionText::of_board(board));
        }
        let parts = parts(text, |c| c == '-');
        if parts.len() != LONG_PARTS {
            return Err(NotationError::Parts { found: parts.len(), separated: "separated by hyphens" });
        }
        let absolute = Board(pits(&parts[..12])?);
        let south_store = parts[12].number(PositionField::SouthStore)?;
        let north_store = parts[13].number(PositionField::NorthStore)?;
        let side = match parts[14].text {
            "S" => Side::South,
            "N" => Side::North,
            found => {
                return Err(NotationError::Side { column: parts[14].column, found: found.to_owned() });
            }
        };
        check_stones(absolute.stones() + u32::from(south_store) + u32::from(north_store))?;
        let seats = Seats { south_store, north_store, side };
        Ok(PositionText::of_game(side.seen(absolute), seats))
    }
}

impl fmt::Display for PositionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(seats) = self.seats else {
            return write_pits(f, &self.board, ' ');
        };
        write_pits(f, &seats.side.seen(self.board), '-')?;
        let Seats { south_store, north_store, side } = seats;
        write!(f, "-{south_store}-{north_store}-{side}")
    }
}

impl Side {
    /// Exchanges the halves if this side is North: from South's seat to the mover's, and back.
    fn seen(self, board: Board) -> Board {
        match self {
            Side::South => board,
            Side::North => board.turned(),
        }
    }
}

impl FromStr for MoveText {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<MoveText, NotationError> {
        let named = match *text.as_bytes() {
            [letter @ b'A'..=b'F'] => Pit::new(letter - b'A').map(|pit| (pit, Side::South)),
            [letter @ b'a'..=b'f'] => Pit::new(letter - b'a').map(|pit| (pit, Side::North)),
            _ => None,
        };
        let (pit, side) = named.ok_or_else(|| NotationError::Move { found: text.to_owned() })?;
        Ok(MoveText { pit, side })
    }
}

impl fmt::Display for MoveText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = match self.side {
            Side::South => b'A',
            Side::North => b'a',
        };
        write!(f, "{}", char::from(first + self.pit.number() as u8))
    }
}

impl fmt::Display for PositionField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PositionField::Pit(at) if at < HALF_PITS => write!(f, "pit {}", char::from(b'A' + at as u8)),
            PositionField::Pit(at) => write!(f, "pit {}", char::from(b'a' + (at - HALF_PITS) as u8)),
            PositionField::SouthStore => f.write_str("South's store"),
            PositionField::NorthStore => f.write_str("North's store"),
        }
    }
}

/// A stretch of text between separators, and where it starts.
struct TextPart<'a> {
    text: &'a str,
    column: usize,
}

impl TextPart<'_> {
    fn number(&self, place: PositionField) -> Result<u8, NotationError> {
        // `u8::from_str` takes a leading plus sign; a position has none.
        let digits = self.text.bytes().all(|byte| byte.is_ascii_digit());
        self.text
            .parse()
            .ok()
            .filter(|&stones| digits && u32::from(stones) <= STONES_MAX)
            .ok_or_else(|| NotationError::Number { place, column: self.column, found: self.text.to_owned() })
    }
}

fn parts(text: &str, separates: impl Fn(char) -> bool) -> Vec<TextPart<'_>> {
    let mut column = 1;
    text.split(separates)
        .map(|piece| {
            let leading = piece.len() - piece.trim_start().len();
            let part = TextPart { text: piece.trim(), column: column + piece[..leading].chars().count() };
            column += piece.chars().count() + 1;
            part
        })
        .collect()
}

fn pits(parts: &[TextPart<'_>]) -> Result<[u8; 12], NotationError> {
    let mut pits = [0; 12];
    for (at, (pit, part)) in pits.iter_mut().zip(parts).enumerate() {
        *pit = part.number(PositionField::Pit(at))?;
    }
    Ok(pits)
}

fn check_stones(found: u32) -> Result<(), NotationError> {
    if found <= STONES_MAX { Ok(()) } else { Err(NotationError::Stones { found }) }
}

fn write_pits(f: &mut fmt::Formatter<'_>, board: &Board, separator: char) -> fmt::Result {
    for (at, stones) in board.0.iter().enumerate() {
        if at > 0 {
            write!(f, "{separator}")?;
        }
        write!(f, "{stones}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> PositionText {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn refusal(text: &str) -> String {
        text.parse::<PositionText>().expect_err("the text should be refused").to_string()
    }

    #[test]
    fn twelve_numbers_from_a_round_to_f() {
        let board = Board([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 1]);
        for text in ["0 1 2 3 4 5 6 7 8 9 2 1", "0,1,2,3,4,5,6,7,8,9,2,1", "  0, 1, 2, 3, 4, 5,\t6, 7, 8, 9, 2, 1\n"] {
            let position = read(text);
            assert_eq!((position.board(), position.seats()), (board, None));
            assert_eq!(position.side(), Side::South);
        }
        let text = PositionText::of_board(board).to_string();
        assert_eq!(text, "0 1 2 3 4 5 6 7 8 9 2 1");
        assert_eq!(read(&text).board(), board);
    }

    #[test]
    fn long_form_survives_a_round_trip() {
        let opening = "4-4-4-4-4-4-4-4-4-4-4-4-0-0-S";
        assert_eq!(read(opening).board(), Board::OPENING);
        let north = "1-2-3-4-5-6-0-0-0-7-0-0-12-8-N";
        let position = read(north);
        assert_eq!(position.board(), Board([0, 0, 0, 7, 0, 0, 1, 2, 3, 4, 5, 6]));
        let seats = position.seats().expect("the long form has seats");
        assert_eq!((seats.south_store, seats.north_store), (12, 8));
        assert_eq!(position.side(), Side::North);
        for text in [opening, north] {
            assert_eq!(read(text).to_string(), text);
        }
    }

    #[test]
    fn errors_say_place_found_and_expected() {
        let check = |text: &str, expected: &str| assert_eq!(refusal(text), expected);
        check("0 1 2 x 4 5 6 7 8 9 2 1", "pit D (column 7): expected a number of stones from 0 to 48, found `x`");
        check("0 1 2 3 4 5 6 7 -8 9 2 1", "pit c (column 17): expected a number of stones from 0 to 48, found `-8`");
        check("49 0 0 0 0 0 0 0 0 0 0 0", "pit A (column 1): expected a number of stones from 0 to 48, found `49`");
        check("+4 0 0 0 0 0 0 0 0 0 0 0", "pit A (column 1): expected a number of stones from 0 to 48, found `+4`");
        check(
            "1 2 3",
            "expected 12 numbers from A round to f, or 15 parts as in `4-4-4-4-4-4-4-4-4-4-4-4-0-0-S`, \
             found 3 separated by spaces or commas",
        );
        check(
            "",
            "expected 12 numbers from A round to f, or 15 parts as in `4-4-4-4-4-4-4-4-4-4-4-4-0-0-S`, \
             found 0 separated by spaces or commas",
        );
        check(
            "4-4-4-4-4-4-4-4-4-4-4-4",
            "expected 12 numbers from A round to f, or 15 parts as in `4-4-4-4-4-4-4-4-4-4-4-4-0-0-S`, \
             found 12 separated by hyphens",
        );
        check(
            "4-4-4-4-4-4-4-4-4-4-4-4-0--S",
            "North's store (column 27): expected a number of stones from 0 to 48, found ``",
        );
        check("4-4-4-4-4-4-4-4-4-4-4-4-0-0-W", "side to move (column 29): expected `S` or `N`, found `W`");
        check("4-4-4-4-4-4-4-4-4-4-4-4-1-0-S", "whole position: expected at most 48 stones, found 49");
        check("40 40 40 40 40 40 40 40 40 40 40 40", "whole position: expected at most 48 stones, found 480");
    }

    #[test]
    fn moves_are_named_by_pit_and_side() {
        for (text, number, side) in [("A", 0, Side::South), ("F", 5, Side::South), ("c", 2, Side::North)] {
            let named: MoveText = text.parse().expect("the text names a move");
            assert_eq!((named.pit.number(), named.side), (number, side));
            assert_eq!(named.to_string(), text);
        }
        for text in ["", "G", "AB", "1", "é"] {
            let error = text.parse::<MoveText>().expect_err("it names no move").to_string();
            assert!(error.ends_with(&format!("found `{text}`")), "{error}");
        }
    }
}
