//! Positions.

use crate::error::Error;
use game::notation::PositionText;
use game::{Board, Illegal, Pit, Played, Rules, STONES_MAX};
use std::fmt;
use std::str::FromStr;

/// A position: the stones in the twelve pits, seen from the player to move.
///
/// It is parsed from and printed as twelve numbers, the pits A to F of the player to move and then a to f of
/// the opponent, in the direction of play. It is also parsed from the notation of oware programs, such as
/// `4-4-4-4-4-4-4-4-4-4-4-4-0-0-S`, whose stores are ignored. The alternate form `{:#}` is a board, the
/// player to move below.
///
/// ```
/// use awari_db::Position;
///
/// let position = Position::new([0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0])?;
/// assert_eq!(position.stones(), 3);
/// assert_eq!(position, "0 0 0 0 0 1 1 1 0 0 0 0".parse()?);
/// assert_eq!(
///     format!("{position:#}"),
///     "  f  e  d  c  b  a\n  0  0  0  0  1  1\n  0  0  0  0  0  1\n  A  B  C  D  E  F"
/// );
/// # Ok::<(), awari_db::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position(pub(crate) Board);

/// A legal move by some rules, without its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SownMove {
    /// The pit sown from, `A` to `F`.
    pub pit: char,
    /// The captured stones.
    pub captured: u8,
    /// The position after the move, seen from the opponent, who moves next.
    pub child: Position,
}

impl Position {
    /// Returns the position in which games begin: four stones in every pit.
    pub fn opening() -> Position {
        Position(Board::OPENING)
    }

    /// Returns the legal moves by some rules, `A` to `F`; no database is needed.
    ///
    /// ```
    /// use awari_db::{Position, Rules};
    ///
    /// let position: Position = "0 0 0 0 0 2 1 1 0 0 0 1".parse()?;
    /// let moves = position.moves(&Rules::AWARI);
    /// assert_eq!((moves.len(), moves[0].pit, moves[0].captured), (1, 'F', 4));
    /// assert_eq!(position.play(&Rules::AWARI, 'F')?, moves[0]);
    /// assert!(position.play(&Rules::AWARI, 'A').is_err());
    /// # Ok::<(), awari_db::Error>(())
    /// ```
    pub fn moves(&self, rules: &Rules) -> Vec<SownMove> {
        self.0.moves(rules).map(|(pit, played)| SownMove::new(pit, played)).collect()
    }

    /// Plays a move by some rules: a pit, `A` to `F`.
    ///
    /// # Errors
    /// [`Error::Move`] if the move is not legal, or `pit` is no pit.
    pub fn play(&self, rules: &Rules, pit: char) -> Result<SownMove, Error> {
        let number =
            "ABCDEF".find(pit).ok_or_else(|| Error::Move(format!("expected a pit from A to F, found {pit:?}")))?;
        let pit = Pit::ALL[number];
        let illegal = |error: Illegal| Error::Move(error.to_string());
        Ok(SownMove::new(pit, self.0.play(rules, pit).map_err(illegal)?))
    }

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

impl SownMove {
    fn new(pit: Pit, played: Played) -> SownMove {
        SownMove { pit: pit_letter(pit), captured: played.captured, child: Position(played.child) }
    }
}

/// Returns the name of a pit of the player to move.
pub(crate) fn pit_letter(pit: Pit) -> char {
    (b'A' + pit.number() as u8) as char
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
        if !f.alternate() {
            return PositionText::of_board(self.0).fmt(f);
        }
        let [mut above, below] = [self.0.opponent(), self.0.mover()];
        above.reverse();
        let row =
            |f: &mut fmt::Formatter<'_>, stones: [u8; 6]| stones.iter().try_for_each(|held| write!(f, "{held:>3}"));
        writeln!(f, "  f  e  d  c  b  a")?;
        row(f, above)?;
        writeln!(f)?;
        row(f, below)?;
        write!(f, "\n  A  B  C  D  E  F")
    }
}
