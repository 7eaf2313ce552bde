//! The opening book of the engine: replies without a search.

use super::info::moves;
use crate::games::analysis;
use crate::games::opening_book::DERIVED;
use book::{BookError, OpeningBook};
use game::notation::MoveText;
use game::play::Game;
use game::{Pit, Rules};
use std::fmt::Write;
use std::path::Path;

/// The most moves of the line that a reply shows.
const LINE_MOVES_MAX: usize = 40;

/// The book of a session.
pub(super) struct EngineBook {
    /// The book of the command line, which an empty `BookFile` stands for.
    first: Option<OpeningBook>,
    /// The book of the option `BookFile`.
    other: Option<OpeningBook>,
    /// Whether the last reply in this game came from the book.
    is_followed: bool,
}

/// What the engine prints, and whether that is its move.
pub(super) struct BookAnswer {
    pub(super) text: String,
    pub(super) is_move: bool,
}

impl EngineBook {
    pub(super) fn new(first: Option<OpeningBook>) -> EngineBook {
        EngineBook { first, other: None, is_followed: false }
    }

    /// Whether there is a book.
    pub(super) fn is_open(&self) -> bool {
        self.first.is_some() || self.other.is_some()
    }

    pub(super) fn begin_game(&mut self) {
        self.is_followed = false;
    }

    /// Opens another book, or goes back to that of the command line for an empty name. Returns what is to be
    /// said of it.
    ///
    /// # Errors
    /// Why the book cannot be opened; the engine then has that of the command line.
    pub(super) fn change(&mut self, file: &str, rules: &Rules) -> Result<Option<&'static str>, String> {
        self.other = None;
        self.is_followed = false;
        if !file.is_empty() {
            let opened = OpeningBook::open(Path::new(file), rules);
            self.other = Some(opened.map_err(|error| format!("BookFile: {error}"))?);
        }
        Ok(self.other.as_ref().filter(|book| !book.is_stored()).map(|_| DERIVED))
    }

    /// Replies with a best move of the book. `is_known` says whether a database has the position, and answers instead.
    pub(super) fn reply(&mut self, game: &Game, is_known: bool, ponders: bool) -> BookAnswer {
        let Some(book) = self.other.as_ref().or(self.first.as_ref()) else {
            return BookAnswer { text: String::new(), is_move: false };
        };
        let now = game.now();
        let side = now.seats.side;
        // The line is read before the move is made, so that a damaged book gives neither.
        let read = book.best(&now.board).and_then(|best| Ok((best, line(book, game)?)));
        let (best, line) = match read {
            Ok((best, line)) => (best.filter(|_| !is_known), line),
            Err(error) => {
                self.is_followed = false;
                return BookAnswer { text: format!("info string {error}\n"), is_move: false };
            }
        };
        let Some(best) = best else {
            let text = if self.is_followed { "info string the book ends here\n" } else { "" };
            self.is_followed = false;
            return BookAnswer { text: text.to_owned(), is_move: false };
        };
        self.is_followed = true;
        let pv = moves(&line, side);
        let name = MoveText { pit: best.pit, side };
        let (low, high) = (best.value.low / 100, best.value.high / 100);
        let mut text = format!("info depth {} score cp {} pv {pv}\n", line.len(), best.value.estimate);
        let _ = write!(
            text,
            "info string the book plays {name}, value {}\ninfo string proved {low} {high}\nbestmove {name}",
            analysis::stones(best.value.estimate.into())
        );
        if let Some(reply) = line.get(1).filter(|_| ponders) {
            let _ = write!(text, " ponder {}", MoveText { pit: *reply, side: side.other() });
        }
        BookAnswer { text: text + "\n", is_move: true }
    }
}

/// Returns the best moves of both players up to the end of the book.
fn line(book: &OpeningBook, game: &Game) -> Result<Vec<Pit>, BookError> {
    let (mut board, mut line) = (game.now().board, Vec::new());
    while line.len() < LINE_MOVES_MAX
        && let Some(best) = book.best(&board)?
    {
        line.push(best.pit);
        board = best.child;
    }
    Ok(line)
}
