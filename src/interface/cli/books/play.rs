//! `awari book play`: a game against a book.

use super::opening_book;
use super::show::game_of;
use crate::args::{BookPlayArgs, BookSeat};
use crate::error::{CliError, Result};
use crate::games::play::outcome;
use crate::games::probe::board;
use crate::output::print;
use crate::text::lines::Lines;
use book::stones;
use game::notation::Side;
use game::transcript::{WrittenMove, side_name};
use pipeline::Exit;

pub(crate) fn run(args: &BookPlayArgs) -> Result<Exit> {
    let book = opening_book(&args.file)?;
    let person = match args.side {
        BookSeat::South => Side::South,
        BookSeat::North => Side::North,
    };
    let mut game = game_of(&book);
    let mut lines = Lines::new(std::io::stdin().lock());
    print(&board(&game.now().text()))?;
    loop {
        if let Some(outcome) = outcome(&game) {
            print(&format!("{outcome}\n"))?;
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
        let best = book.best(&now.board)?;
        let Some((best, turn)) = best.and_then(|best| Some((best, game.play(best.pit).ok()?))) else {
            print("the book ends here\n")?;
            return Ok(Exit::Done);
        };
        let value = stones(best.value.estimate);
        print(&format!("{} plays {}, value {value}\n", side_name(side), turn.text()))?;
        print(&board(&game.now().text()))?;
    }
}
