//! A book of awari as a player reads it: the value of a position, and of each of its moves.
//!
//! Stored values are looked up where they are, so that a book of any size opens at once. Where the file has none that
//! follow from all facts, they are derived in memory.

use crate::awari::AwariGame;
use crate::expand::Book;
use crate::game::{Assessment, BookGame, Hundredths};
use crate::storage::{BookError, BookFile, StoredValue, stored};
use game::{Board, Pit, Rules};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A book that is read, not built.
#[derive(Debug)]
pub struct OpeningBook {
    path: PathBuf,
    rules: Rules,
    root: Board,
    positions: usize,
    values: BookValues,
}

/// Where the values of positions are.
#[derive(Debug)]
enum BookValues {
    /// In the file.
    Stored(Box<Mutex<BookFile>>),
    /// In memory.
    Derived(Box<Book<AwariGame>>),
}

/// What a book says of a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookPosition {
    /// The proved bounds and the estimate, for the player to move.
    pub value: Assessment,
    /// The moves, the best first; none where the book ends.
    pub moves: Vec<BookReply>,
}

/// What a book says of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookReply {
    /// The pit sown from.
    pub pit: Pit,
    /// The captured stones.
    pub captured: u8,
    /// The position after the move.
    pub child: Board,
    /// The proved bounds and the estimate, for the player who makes the move, captures included.
    pub value: Assessment,
    /// Whether no move has a better estimate. A player that plays by the book plays such moves only (Lincke
    /// 2002, section 3.4).
    pub is_best: bool,
    /// Whether the book has the moves of the position after it.
    pub goes_on: bool,
}

impl BookReply {
    /// Returns what the move is worth less than the best one, by estimate.
    pub fn loss(&self, position: &BookPosition) -> Hundredths {
        position.moves.first().map_or(0, |best| best.value.estimate - self.value.estimate)
    }
}

impl BookPosition {
    /// Returns a move.
    pub fn reply(&self, pit: Pit) -> Option<&BookReply> {
        self.moves.iter().find(|reply| reply.pit == pit)
    }
}

impl OpeningBook {
    /// Opens the file of a book.
    ///
    /// # Errors
    /// [`BookError`], also if the process that made the file ended before it entered the root.
    pub fn open(path: &Path, rules: &Rules) -> Result<OpeningBook, BookError> {
        OpeningBook::of(BookFile::open(path, rules)?, path)
    }

    /// Opens the file of a book by any rules.
    ///
    /// # Errors
    /// As [`open`](OpeningBook::open).
    pub fn open_any(path: &Path) -> Result<OpeningBook, BookError> {
        OpeningBook::of(BookFile::open_any(path)?, path)
    }

    fn of(file: BookFile, path: &Path) -> Result<OpeningBook, BookError> {
        let (path, rules) = (path.to_path_buf(), *file.rules());
        if let (Some(positions), Some(root)) = (file.stored_positions(), file.first_root()?) {
            let (root, positions) = (AwariGame::board(root), positions as usize);
            if file.values_of(&[root])?[0].is_none() {
                return Err(file.damaged("the value of the root is missing".to_owned()));
            }
            return Ok(OpeningBook {
                path,
                rules,
                root,
                positions,
                values: BookValues::Stored(Box::new(Mutex::new(file))),
            });
        }
        let book = file.load_values()?;
        let root = book.roots().first().ok_or_else(|| BookError::Missing(path.clone()))?;
        let root = AwariGame::board(book.graph().node(*root).key);
        let positions = book.graph().len();
        Ok(OpeningBook { path, rules, root, positions, values: BookValues::Derived(Box::new(book)) })
    }

    /// Returns the rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the position in which the games of the book begin.
    pub fn root(&self) -> Board {
        self.root
    }

    /// Returns the number of positions when the book was opened.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Whether the values are those stored in the file. Otherwise they were derived when it was opened.
    pub fn is_stored(&self) -> bool {
        matches!(self.values, BookValues::Stored(_))
    }

    /// Returns what the book says of a position; `None` if it does not have it.
    ///
    /// # Errors
    /// [`BookError`] if the file cannot be read, or lacks a move of the position.
    pub fn position(&self, board: &Board) -> Result<Option<BookPosition>, BookError> {
        let played: Vec<(Pit, u8, Board)> =
            board.moves(&self.rules).map(|(pit, played)| (pit, played.captured, played.child)).collect();
        let boards: Vec<Board> = std::iter::once(*board).chain(played.iter().map(|&(.., child)| child)).collect();
        let found = self.values_of(&boards)?;
        let Some(own) = found[0] else { return Ok(None) };
        let mut moves = Vec::new();
        if own.moves > 0 {
            for (&(pit, captured, child), after) in played.iter().zip(&found[1..]) {
                let missing = || self.damaged(format!("the value of {} is missing", self.text(&child)));
                let after = after.ok_or_else(missing)?;
                moves.push(self.reply(pit, captured, child, after));
            }
        }
        let best = moves.iter().map(|reply| reply.value.estimate).max();
        if !follows(own.value, &moves) {
            return Err(self.damaged(format!("the value of {} is not that of its moves", self.text(board))));
        }
        moves.iter_mut().for_each(|reply| reply.is_best = Some(reply.value.estimate) == best);
        // Of moves with the same estimate, those of proved value first.
        moves.sort_by_key(|reply| (Reverse(reply.value.estimate), !reply.value.is_exact()));
        Ok(Some(BookPosition { value: own.value, moves }))
    }

    /// Returns the best move of a position; `None` where the book ends.
    ///
    /// # Errors
    /// As [`position`](OpeningBook::position).
    pub fn best(&self, board: &Board) -> Result<Option<BookReply>, BookError> {
        Ok(self.position(board)?.and_then(|found| found.moves.first().copied()))
    }

    fn reply(&self, pit: Pit, captured: u8, child: Board, after: StoredValue) -> BookReply {
        let gain = AwariGame::hundredths(captured.into());
        let Assessment { low, high, estimate } = after.value;
        let value = Assessment { low: gain - high, high: gain - low, estimate: gain - estimate };
        BookReply { pit, captured, child, value, is_best: false, goes_on: after.moves > 0 }
    }

    /// Returns the values of a position and of those after its moves.
    fn values_of(&self, boards: &[Board]) -> Result<Vec<Option<StoredValue>>, BookError> {
        match &self.values {
            BookValues::Stored(file) => file.lock().unwrap_or_else(PoisonError::into_inner).values_of(boards),
            BookValues::Derived(book) => {
                let find = |board| book.graph().find(AwariGame::key(board));
                Ok(boards.iter().map(|board| Some(stored(book, find(board)?))).collect())
            }
        }
    }

    fn text(&self, board: &Board) -> String {
        AwariGame::new(self.rules).text(AwariGame::key(board))
    }

    fn damaged(&self, what: String) -> BookError {
        BookError::Damaged { path: self.path.clone(), what }
    }
}

/// Whether bounds and estimate of a position are consistent with those of its moves, if it has any. A position may have
/// better bounds, from a database.
fn follows(own: Assessment, moves: &[BookReply]) -> bool {
    let best = |figure: fn(Assessment) -> Hundredths| moves.iter().map(|reply| figure(reply.value)).max();
    let (low, high) = (best(|value| value.low), best(|value| value.high));
    let estimate = best(|value| value.estimate).map(|estimate| estimate.min(own.high).max(own.low));
    own.low <= own.high
        && low.is_none_or(|low| own.low >= low)
        && high.is_none_or(|high| own.high <= high)
        && estimate.is_none_or(|estimate| own.estimate == estimate)
}
