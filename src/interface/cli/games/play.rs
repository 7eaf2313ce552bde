//! `awari play`: a game in the terminal.

use crate::args::{PlayArgs, PlaySide};
use crate::error::{CliError, Result};
use crate::files::databases::oracle;
use crate::games::analysis::{self, Analyst, is_something_proved, proved};
use crate::games::opening_book::{book_worth, opening_book, position_text};
use crate::games::probe::{board, line, searched_line, searched_text, text};
use crate::output::{print, print_text};
use crate::text::lines::Lines;
use book::OpeningBook;
use disk::{RealDisk, clock};
use game::notation::{MoveText, PositionText, Side};
use game::play::{Game, GameEnd, GameTurn};
use game::transcript::{Transcript, WrittenMove, side_name};
use game::{HALF_PITS, Index, Orientation, Pit, PositionSet, Rules};
use oracle::{Bounds, Level};
use pipeline::Exit;
use search::SearchReport;
use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

/// The time to search a position, if no limit is given.
const TIME_DEFAULT: Duration = Duration::from_secs(1);

/// The reply to `help` and to unknown commands.
const HELP: &str = "\
moves: 1 to 6, or A to F for South and a to f for North, as F or F4
commands: values, best, line, book, undo, board, save FILE, help, quit
";

/// The longest part of an unknown command that is repeated, in characters.
const UNKNOWN_MAX: usize = 40;

pub(crate) fn run(args: &PlayArgs) -> Result<Exit> {
    let oracle = oracle(&RealDisk::default(), &args.library)?;
    let mut chance = RandomChoices(args.seed.unwrap_or_else(clock::now_seconds));
    let start = match &args.position {
        None => Game::from(*oracle.rules(), &PositionText::of_board(oracle.set().start().board())).start().text(),
        Some(text) => position(text, &mut chance)?,
    };
    let game = Game::from(*oracle.rules(), &start);
    let book = opening_book(args.library.dir.as_deref(), &args.book, oracle.rules())?;
    let analyst = Analyst::new(oracle, args.library.dir.as_deref(), &args.search, TIME_DEFAULT)?;
    let mut table = PlayedGame { game, analyst, book, is_book_followed: false, args, chance };
    if *table.game.rules() != Rules::AWARI {
        print_text(&format!("{}: {}\n", table.game.rules().name, table.game.rules().text()))?;
    }
    table.show()?;
    let mut lines = Lines::new(std::io::stdin().lock());
    loop {
        if let Some(outcome) = outcome(&table.game) {
            print(&format!("{outcome}\n"))?;
            return Ok(Exit::Done);
        }
        if !table.is_persons_turn() {
            table.reply()?;
            continue;
        }
        print(&format!("{}> ", side_name(table.game.now().seats.side)))?;
        match lines.next().map_err(CliError::Stdin)? {
            None => {
                print("\n")?;
                return Ok(Exit::Done);
            }
            Some(Err(refused)) => print(&format!("{refused}\n"))?,
            Some(Ok(said)) if !table.execute(&said)? => return Ok(Exit::Done),
            Some(Ok(_)) => {}
        }
    }
}

/// A game between a person and the program.
struct PlayedGame<'a> {
    game: Game,
    analyst: Analyst,
    book: Option<OpeningBook>,
    /// Whether the last move of the program came from the book.
    is_book_followed: bool,
    args: &'a PlayArgs,
    chance: RandomChoices,
}

impl PlayedGame<'_> {
    fn is_persons_turn(&self) -> bool {
        match (self.args.side, self.game.now().seats.side) {
            (PlaySide::Both, _) | (PlaySide::South, Side::South) | (PlaySide::North, Side::North) => true,
            (PlaySide::None | PlaySide::South | PlaySide::North, _) => false,
        }
    }

    fn show(&self) -> Result<()> {
        let now = self.game.now();
        let seats = now.seats;
        // South is always below.
        let seen = if seats.side == Side::South { now.board } else { now.board.turned() };
        let stores = format!("\n     North {:>2}   South {:>2}\n", seats.north_store, seats.south_store);
        print(&format!("\n{}{stores}\n", board(&PositionText::of_board(seen))))
    }

    /// Plays the move of the program. Where the program plays both sides, says what the move rests on unless
    /// that is a database; to a person who plays, that would give values away.
    fn reply(&mut self) -> Result<()> {
        let now = self.game.now();
        if let Some(pit) = self.book_move()? {
            let turn = self.game.play(pit);
            return self.played(turn);
        }
        let lines = if self.args.level == Level::Perfect { 1 } else { HALF_PITS };
        let report = self.analyst.analyze(now.board, &self.game.positions_since_capture(), lines)?;
        let Some(pit) = self.args.level.choose(&report, self.chance.next()) else { return Ok(()) };
        if self.args.side == PlaySide::None
            && report.nodes > 0
            && let Some(found) = report.moves.iter().find(|found| found.pit == pit)
        {
            let name = MoveText { pit, side: now.seats.side };
            let said = if found.low == found.high {
                format!("{name} is worth {}, as a search proved\n", Bounds::new(found.low, found.high))
            } else {
                let estimate = analysis::stones(found.estimated_hundredths());
                let proved = proved_remark(Bounds::new(found.low, found.high), now.board.stones());
                format!("{name} rests on an estimate, {estimate}{proved}\n")
            };
            print_text(&said)?;
        }
        let turn = self.game.play(pit);
        self.played(turn)
    }

    /// Returns a best move of the book, if a perfect player has one and no database knows the position. Says
    /// what it is worth, and where the book ends.
    fn book_move(&mut self) -> Result<Option<Pit>> {
        let now = self.game.now();
        let book = self.book.as_ref().filter(|_| self.args.level == Level::Perfect && !self.analyst.holds(&now.board));
        let best = match book.map_or(Ok(None), |book| book.best(&now.board)) {
            Ok(best) => best,
            Err(error) => {
                print(&format!("{error}\n"))?;
                None
            }
        };
        if let Some(best) = best {
            let name = MoveText { pit: best.pit, side: now.seats.side };
            print(&format!("{name} is the book's move, worth {}\n", book_worth(best.value)))?;
        } else if self.is_book_followed {
            print("the book ends here\n")?;
        }
        self.is_book_followed = best.is_some();
        Ok(best.map(|best| best.pit))
    }

    /// Shows what the book has of the position.
    fn show_book(&self) -> Result<()> {
        let now = self.game.now();
        let found = match self.book.as_ref().map(|book| book.position(&now.board)).transpose() {
            Ok(found) => found,
            Err(error) => return print(&format!("{error}\n")),
        };
        match found {
            None => print("there is no book; awari book expand makes one\n"),
            Some(None) => print("the book does not have this position\n"),
            Some(Some(found)) => print_text(&position_text(&found, now.seats.side)),
        }
    }

    /// Shows a played move, or the reason why it is illegal.
    fn played(&self, turn: Result<GameTurn, impl Display>) -> Result<()> {
        match turn {
            Err(reason) => print(&format!("{reason}\n")),
            Ok(turn) => {
                let captured = if turn.captured > 0 { format!(", {} captured", turn.captured) } else { String::new() };
                print(&format!("{} plays {}{}{captured}\n", side_name(turn.side), turn.text(), turn.sown))?;
                self.show()
            }
        }
    }

    /// Executes a command. Returns whether the game continues.
    fn execute(&mut self, said: &str) -> Result<bool> {
        let now = self.game.now();
        let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
        match word {
            "" => {}
            "quit" | "exit" | "q" => return Ok(false),
            "board" => self.show()?,
            "values" | "best" | "line" if !self.analyst.holds(&now.board) => match self.analyst.analyze_all(&self.game)
            {
                Err(error) => print(&format!("{error}\n"))?,
                Ok(report) => print_text(&searched(word, self.game.rules(), &now.text(), &report))?,
            },
            // The game so far decides which move keeps a bound.
            "best" if !self.game.rules().has_scores() => match self.analyst.analyze_all(&self.game) {
                Err(error) => print(&format!("{error}\n"))?,
                Ok(report) => match report.moves.first() {
                    Some(best) => print(&format!("{}\n", MoveText { pit: best.pit, side: now.seats.side }))?,
                    None => print("not known\n")?,
                },
            },
            "values" | "best" | "line" => match self.analyst.oracle.answer(&now.board) {
                Err(error) => print(&format!("{error}\n"))?,
                Ok(_) if word == "line" => match line(&self.analyst.oracle, &now.text()) {
                    Err(error) => print(&format!("{error}\n"))?,
                    Ok(line) => print_text(&format!("{line}\n"))?,
                },
                Ok(answer) if word == "values" => print(&text(&now.text(), &answer, self.game.rules().has_scores()))?,
                Ok(answer) => {
                    let best = answer.moves.iter().filter(|valued| valued.is_best);
                    let names: Vec<String> =
                        best.map(|valued| MoveText { pit: valued.pit, side: now.seats.side }.to_string()).collect();
                    print(&format!("{}\n", if names.is_empty() { "not known".to_owned() } else { names.join(" ") }))?;
                }
            },
            "book" => self.show_book()?,
            "undo" => {
                // Back to the previous turn of the person.
                match self.game.take_back() {
                    None => print("there is no move to undo\n")?,
                    Some(_) => {
                        while !self.is_persons_turn() && self.game.take_back().is_some() {}
                        self.show()?;
                    }
                }
            }
            "save" if rest.is_empty() => print("save needs the name of a file, as in save game.ogn\n")?,
            "save" => self.save(Path::new(rest.trim()))?,
            "help" | "?" => print(HELP)?,
            _ => match (pit_number(said), WrittenMove::read(said)) {
                (Some(pit), _) => {
                    let turn = self.game.play(pit);
                    self.played(turn)?;
                }
                (None, Some(written)) => {
                    let turn = written.play(&mut self.game);
                    self.played(turn)?;
                }
                (None, None) => {
                    let unknown: String = said.chars().take(UNKNOWN_MAX).collect();
                    print(&format!("\"{unknown}\" is not a move or a command\n{HELP}"))?;
                }
            },
        }
        Ok(true)
    }

    fn save(&self, path: &Path) -> Result<()> {
        let text = Transcript { tags: Vec::new(), game: self.game.clone() }.text();
        match RealDisk::default().deliver(path, text.as_bytes()) {
            Ok(()) => print(&format!("saved in {}\n", path.display())),
            Err(error) => print(&format!("{error}\n")),
        }
    }
}

/// Parses a pit of the side to move as on the page: 1 to 6.
fn pit_number(said: &str) -> Option<Pit> {
    let number: usize = said.parse().ok()?;
    Pit::ALL.get(number.checked_sub(1)?).copied()
}

/// Answers `values`, `best` or `line` about a position that was searched.
fn searched(word: &str, rules: &Rules, position: &PositionText, report: &SearchReport) -> String {
    let best = report.moves.first();
    match (word, best) {
        ("best", Some(best)) => {
            let name = MoveText { pit: best.pit, side: position.side() };
            let estimate = analysis::stones(report.estimate);
            if report.is_exact() {
                format!("{name}, worth {}\n", proved(report))
            } else {
                let proved = proved_remark(proved(report), position.board().stones());
                format!("{name}, by estimate: {estimate}{proved}\n")
            }
        }
        ("line", Some(_)) => format!("{}\n", searched_line(rules, position, report)),
        _ => searched_text(rules, position, report),
    }
}

/// Returns `; proved is LOW to HIGH`, unless all stones of the board are between them.
fn proved_remark(bounds: Bounds, stones: u32) -> String {
    if is_something_proved(bounds, stones) { format!("; proved is {bounds}") } else { String::new() }
}

/// Describes the end of a game.
pub(crate) fn outcome(game: &Game) -> Option<String> {
    let how = match game.outcome()?.end {
        GameEnd::CannotMove(side) => format!("{} cannot move", side_name(side)),
        GameEnd::Repeats { from } => format!("the position before move {} is repeated", from + 1),
    };
    Some(format!("{how}: {}", game.result_text()?))
}

/// Parses a position, or draws a random one for `random:STONES`.
fn position(text: &str, chance: &mut RandomChoices) -> Result<PositionText> {
    let Some(stones) = text.strip_prefix("random:") else { return Ok(text.parse()?) };
    // For an invalid number of stones, the parser of positions reports what it expects.
    let Some(stones) = stones.trim().parse().ok().filter(|&stones: &u32| stones <= game::STONES_MAX) else {
        return Ok(text.parse()?);
    };
    let set = PositionSet::REACHABLE;
    let index = Index::new(stones, set);
    let positions = set.positions(stones).max(1);
    let number = ((chance.next() * positions as f64) as u64).min(positions - 1);
    Ok(PositionText::of_board(index.unrank(number, Orientation::OpponentMajor)))
}

/// A generator of random numbers, good enough for a game.
pub(crate) struct RandomChoices(pub(crate) u64);

impl RandomChoices {
    /// Returns the next number, from 0 up to 1.
    pub(crate) fn next(&mut self) -> f64 {
        // The increment lets a zero seed work.
        self.0 = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D).wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed ^ (mixed >> 32)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
