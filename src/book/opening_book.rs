//! A book of awari as a player reads it: the value of a position, and of each of its moves.

use crate::{Assessment, AwariGame, Book, BookEdge, BookError, BookFile, BookSides, DropOut, Hundredths, Strategy};
use game::{Board, Pit, Rules};
use std::cmp::Reverse;
use std::path::Path;

/// A book that is read, not built.
#[derive(Debug)]
pub struct OpeningBook {
    book: Book<AwariGame>,
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
    /// Whether no move has a better estimate. A player that plays by the book plays such moves only (Lincke 2002, section
    /// 3.4).
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
        self.moves.iter().find(|one| one.pit == pit)
    }
}

impl OpeningBook {
    /// Opens the file of a book.
    ///
    /// # Errors
    /// [`BookError`], also if the process that made the file ended before it entered the root.
    pub fn open(path: &Path, rules: &Rules) -> Result<OpeningBook, BookError> {
        // Values do not depend on the strategy.
        let rule = DropOut { omega: 100, forced: None, solves: false };
        let book = BookFile::open(path, rules)?.load(*rules, Strategy::DropOut(rule), BookSides::Both)?;
        if book.roots().is_empty() {
            return Err(BookError::Missing(path.to_path_buf()));
        }
        Ok(OpeningBook { book })
    }

    /// Returns the position in which the games of the book begin.
    pub fn root(&self) -> Board {
        AwariGame::board(self.book.graph().node(self.book.roots()[0]).key)
    }

    /// Returns the number of positions.
    pub fn positions(&self) -> usize {
        self.book.graph().len()
    }

    /// Returns what the book says of a position; `None` if it does not have it.
    pub fn position(&self, board: &Board) -> Option<BookPosition> {
        let graph = self.book.graph();
        let id = graph.find(AwariGame::key(board))?;
        let mut moves: Vec<BookReply> = graph.moves(id).iter().filter_map(|edge| self.reply(edge)).collect();
        let best = moves.iter().map(|one| one.value.estimate).max();
        moves.iter_mut().for_each(|one| one.is_best = Some(one.value.estimate) == best);
        // Of moves with the same estimate, those of proved value first.
        moves.sort_by_key(|one| (Reverse(one.value.estimate), !one.value.is_exact()));
        Some(BookPosition { value: graph.value(id), moves })
    }

    fn reply(&self, edge: &BookEdge) -> Option<BookReply> {
        let graph = self.book.graph();
        let after = graph.value(edge.child);
        Some(BookReply {
            pit: Pit::new(edge.number)?,
            captured: (edge.gain / 100) as u8,
            child: AwariGame::board(graph.node(edge.child).key),
            value: Assessment {
                low: edge.gain - after.high,
                high: edge.gain - after.low,
                estimate: edge.gain - after.estimate,
            },
            is_best: false,
            goes_on: graph.is_interior(edge.child),
        })
    }
}
