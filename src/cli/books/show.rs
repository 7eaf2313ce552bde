//! `awari book show`: a position of a book.

use super::open;
use crate::args::BookShowArgs;
use crate::error::{CliError, Result};
use crate::output::print;
use crate::probe::{board, pit_name};
use crate::screen::Width;
use crate::table::TextTable;
use book::{AwariGame, Book, NodeId, stones};
use game::Pit;
use game::notation::{PositionText, Seats, Side};
use game::play::Game;
use game::transcript::WrittenMove;
use pipeline::Exit;
use std::cmp::Reverse;
use std::fmt::Write;

pub(crate) fn run(args: &BookShowArgs) -> Result<Exit> {
    let (_, book) = open(&args.file)?;
    let mut game = game_of(&book);
    for word in args.moves.iter().flat_map(|word| word.split_whitespace()) {
        let written =
            WrittenMove::read(word).ok_or_else(|| CliError::BookMove { found: word.to_owned(), why: None })?;
        let played = written.play(&mut game);
        played.map_err(|error| CliError::BookMove { found: word.to_owned(), why: Some(error.to_string()) })?;
    }
    let now = game.now().text();
    match book.graph().find(AwariGame::key(&now.board())) {
        Some(id) => print(&text(&book, id, &now))?,
        None => {
            print(&board(&now))?;
            return Err(CliError::NotInBook);
        }
    }
    Ok(Exit::Done)
}

/// Begins a game at the root of a book.
pub(super) fn game_of(book: &Book<AwariGame>) -> Game {
    let board = AwariGame::board(book.graph().node(book.roots()[0]).key);
    let seats = Seats { south_store: 0, north_store: 0, side: Side::South };
    Game::from(*book.game().rules(), &PositionText::of_game(board, seats))
}

/// Returns the moves of a position, the best first.
pub(super) fn best_moves(book: &Book<AwariGame>, id: NodeId) -> Vec<book::BookEdge> {
    let graph = book.graph();
    let mut moves = graph.moves(id).to_vec();
    // Of moves with the same estimate, proved ones first.
    moves.sort_by_key(|edge| (Reverse(graph.estimate(edge)), !graph.is_closed(edge.child)));
    moves
}

/// Describes a position of a book.
pub(super) fn text(book: &Book<AwariGame>, id: NodeId, position: &PositionText) -> String {
    let graph = book.graph();
    let value = graph.value(id);
    let mut text = board(position);
    let _ = match value.is_exact() {
        true => writeln!(text, "\nvalue {}, proved", stones(value.low)),
        false => writeln!(
            text,
            "\nvalue {}, proved within {}..{}",
            stones(value.estimate),
            stones(value.low),
            stones(value.high)
        ),
    };
    if !graph.is_interior(id) {
        return text + "the book ends here\n";
    }
    let mut table = TextTable::new(&["move", "captures", "value", "at least", "at most", "book"]).numbers([1, 2, 3, 4]);
    for edge in best_moves(book, id) {
        let child = graph.value(edge.child);
        let name = Pit::new(edge.number).map_or_else(String::new, |pit| pit_name(pit, position.side()));
        table.add_row([
            name,
            (edge.gain / 100).to_string(),
            stones(edge.gain - child.estimate),
            stones(edge.gain - child.high),
            stones(edge.gain - child.low),
            match () {
                () if child.is_exact() => "proved",
                () if graph.is_interior(edge.child) => "goes on",
                () => "ends",
            }
            .to_owned(),
        ]);
    }
    let _ = writeln!(text, "\n{}", table.fit(Width::stdout()));
    text
}
