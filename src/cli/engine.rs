//! `awari engine`: the UCI dialect of oware programs, on stdin and stdout.
//!
//! Moves are pits without separators, `A` to `F` for South and `a` to `f` for North; positions have the long form.
//! Answers are looked up at once, so `stop` does nothing.

use crate::args::EngineArgs;
use crate::databases::library;
use crate::error::{CliError, Result};
use crate::lines::Lines;
use crate::output::print;
use crate::play::RandomChoices;
use disk::{RealDisk, clock};
use game::Rules;
use game::notation::MoveText;
use game::play::Game;
use game::transcript::{Transcript, TranscriptError};
use oracle::{Level, Oracle, OracleError};
use pipeline::Exit;
use std::fmt::Write;

/// The cache of decoded blocks.
const CACHE_BYTES_MAX: u64 = 256 << 20;

/// The most moves of the principal line.
const LINE_MOVES_MAX: usize = 30;

pub(crate) fn run(args: &EngineArgs) -> Result<Exit> {
    let oracle = Oracle::new(library(&RealDisk::default(), &args.dir)?, CACHE_BYTES_MAX);
    let game = Game::new(*oracle.rules());
    let mut engine = Engine { oracle, game, level: Level::Perfect, chance: RandomChoices(clock::now_seconds()) };
    let mut lines = Lines::new(std::io::stdin().lock());
    while let Some(line) = lines.next().map_err(CliError::Stdin)? {
        match line {
            Ok(line) if line == "quit" => break,
            Ok(line) => print(&engine.execute(&line)?)?,
            Err(refused) => print(&format!("info string {refused}\n"))?,
        }
    }
    Ok(Exit::Done)
}

struct Engine {
    oracle: Oracle,
    game: Game,
    level: Level,
    chance: RandomChoices,
}

impl Engine {
    /// Executes a command and returns the reply.
    fn execute(&mut self, line: &str) -> Result<String> {
        let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        Ok(match command {
            "uci" | "ugi" => {
                let levels: Vec<String> = Level::ALL.iter().map(|level| format!("var {level}")).collect();
                format!(
                    "id name awari {}\nid author the awari authors\noption name Level type combo default {} {}\n{command}ok\n",
                    env!("CARGO_PKG_VERSION"),
                    self.level,
                    levels.join(" ")
                )
            }
            "isready" => "readyok\n".to_owned(),
            "ucinewgame" | "uginewgame" => {
                self.game = Game::new(*self.oracle.rules());
                String::new()
            }
            "setoption" => match rest.split_once("value") {
                Some((name, value)) if name.contains("Level") => match value.parse() {
                    Ok(level) => {
                        self.level = level;
                        String::new()
                    }
                    Err(error) => format!("info string {error}\n"),
                },
                _ => format!("info string there is no such option: {rest}\n"),
            },
            "position" => match position(*self.oracle.rules(), rest) {
                Ok(game) => {
                    self.game = game;
                    String::new()
                }
                Err(what) => format!("info string {what}\n"),
            },
            "go" => self.go()?,
            "stop" | "debug" | "ponderhit" | "" => String::new(),
            other => {
                let other: String = other.chars().filter(|c| !c.is_control()).take(40).collect();
                format!("info string unknown command {other}\n")
            }
        })
    }

    fn go(&mut self) -> Result<String> {
        let now = self.game.now();
        let side = now.seats.side;
        let name = |pit| MoveText { pit, side }.to_string();
        if self.game.outcome().is_some() {
            return Ok("info string the game is over\nbestmove 0000\n".to_owned());
        }
        let answer = match self.oracle.answer(&now.board) {
            Ok(answer) => answer,
            Err(error @ OracleError::Missing { .. }) => {
                // The protocol requires a move even without a database: the first legal one.
                let first = self.game.moves().first().map_or_else(|| "0000".to_owned(), |(pit, _)| name(*pit));
                return Ok(format!("info string {error}\nbestmove {first}\n"));
            }
            Err(error) => return Err(error.into()),
        };
        let mut text = String::new();
        let hundredths = |score: i8| i32::from(score) * 100;
        let line = self.oracle.line(&now.board, LINE_MOVES_MAX)?;
        let mut mover = side;
        let mut moves = String::new();
        for one in &line.moves {
            let _ = write!(moves, "{}", MoveText { pit: one.pit, side: mover });
            mover = mover.other();
        }
        let bound = if answer.score.score().is_some() { "" } else { " lowerbound" };
        let _ = write!(text, "info depth {} score cp {}{bound}", moves.len().max(1), hundredths(answer.score.low()));
        if !moves.is_empty() {
            let _ = write!(text, " pv {moves}");
        }
        let pit = self.oracle.choose(&answer, self.level, self.chance.next())?;
        let pit = pit.map_or_else(|| "0000".to_owned(), name);
        let _ = write!(text, "\nbestmove {pit}\n");
        Ok(text)
    }
}

/// Parses the game of `startpos moves FfBd` or `fen 4-4-...-S moves FfBd`.
fn position(rules: Rules, text: &str) -> Result<Game, String> {
    let (start, moves) = text.split_once("moves").unwrap_or((text, ""));
    let start = start.trim();
    let head = match start.strip_prefix("fen") {
        // A quote would end the tag, and no valid position contains one.
        Some(position) => format!("[FEN \"{}\"]\n", position.trim().replace('"', "")),
        None if start == "startpos" => String::new(),
        None => return Err(format!("expected startpos or fen POSITION, found {start}")),
    };
    let transcript = Transcript::parse(rules, &(head + moves));
    transcript.map(|transcript| transcript.game).map_err(|error| match error {
        TranscriptError::Start(error) => format!("fen: {error}"),
        other => other.to_string(),
    })
}
