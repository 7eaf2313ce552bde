//! `awari book play`: a game against a book.

use super::open;
use super::show::{best_moves, game_of};
use crate::args::{BookPlayArgs, BookSeat};
use crate::error::{CliError, Result};
use crate::lines::Lines;
use crate::output::print;
use crate::play::outcome;
use crate::probe::board;
use book::{AwariGame, stones};
use game::Pit;
use game::notation::Side;
use game::transcript::{WrittenMove, side_name};
use pipeline::Exit;

pub(crate) fn run(args: &BookPlayArgs) -> Result<Exit> {
    let (_, book) = open(&args.file)?;
    let graph = book.graph();
    let person = match args.side {
        BookSeat::South => Side::South,
        BookSeat::North => Side::North,
    };
    let mut game = game_of(&book);
    let mut lines = Lines::new(std::io::stdin().lock());
    print(&board(&game.now().text()))?;
    loop {
        if let Some(end) = game.outcome() {
            print(&format!("{}\n", outcome(&end)))?;
            return Ok(Exit::Done);
        }
        let now = game.now();
        let side = now.seats.side;
        if side == person {
            print(&format!("{}> ", side_name(side)))?;
            let said = match lines.next().map_err(CliError::Stdin)? {
                None => {
                    print("\n")?;
                    return Ok(Exit::Done);
                }
                Some(said) => said,
            };
            match said.as_deref().map(str::trim) {
                Ok("quit") => return Ok(Exit::Done),
                Ok(word) => match WrittenMove::read(word) {
                    Some(written) => match written.play(&mut game) {
                        Ok(_) => print(&board(&game.now().text()))?,
                        Err(error) => print(&format!("{error}\n"))?,
                    },
                    None => print("a move (A to F for South, a to f for North), or quit\n")?,
                },
                Err(refused) => print(&format!("{refused}\n"))?,
            }
            continue;
        }
        let found = graph.find(AwariGame::key(&now.board)).filter(|&id| graph.is_interior(id));
        let Some(best) = found.and_then(|id| best_moves(&book, id).into_iter().next()) else {
            print("the book ends here\n")?;
            return Ok(Exit::Done);
        };
        let value = stones(graph.estimate(&best));
        let Some(turn) = Pit::new(best.number).and_then(|pit| game.play(pit).ok()) else {
            print("the book ends here\n")?;
            return Ok(Exit::Done);
        };
        print(&format!("{} plays {}, value {value}\n", side_name(side), turn.text()))?;
        print(&board(&game.now().text()))?;
    }
}
