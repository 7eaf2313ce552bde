//! `awari book show`: a position of a book.

use super::opening_book;
use crate::args::BookShowArgs;
use crate::error::{CliError, Result};
use crate::games::opening_book::position_text;
use crate::games::probe::board;
use crate::output::print;
use book::OpeningBook;
use game::notation::{PositionText, Seats, Side};
use game::play::Game;
use game::transcript::WrittenMove;
use pipeline::Exit;

pub(crate) fn run(args: &BookShowArgs) -> Result<Exit> {
    let book = opening_book(&args.file)?;
    let mut game = game_of(&book);
    for word in args.moves.iter().flat_map(|word| word.split_whitespace()) {
        let written =
            WrittenMove::read(word).ok_or_else(|| CliError::BookMove { found: word.to_owned(), why: None })?;
        let played = written.play(&mut game);
        played.map_err(|error| CliError::BookMove { found: word.to_owned(), why: Some(error.to_string()) })?;
    }
    let now = game.now().text();
    match book.position(&now.board())? {
        Some(found) => print(&format!("{}\n{}", board(&now), position_text(&found, now.side())))?,
        None => {
            print(&board(&now))?;
            return Err(CliError::NotInBook);
        }
    }
    Ok(Exit::Done)
}

/// Begins a game at the root of a book.
pub(super) fn game_of(book: &OpeningBook) -> Game {
    let seats = Seats { south_store: 0, north_store: 0, side: Side::South };
    Game::from(*book.rules(), &PositionText::of_game(book.root(), seats))
}
