//! `awari analyze`: compares every move of games with the best one.
//!
//! What a move loses is proved where databases or a search give exact values. Elsewhere it is estimated, and counted apart.

mod book_comparison;

use crate::args::AnalyzeArgs;
use crate::error::{CliError, Result};
use crate::files::databases::oracle;
use crate::games::analysis::{self, Analyst, proved};
use crate::games::opening_book::opening_book;
use crate::games::probe::pit_name;
use crate::text::output::{print_json, print_json_line, print_text};
use crate::text::quantity;
use crate::text::screen::Width;
use crate::text::table::TextTable;
use crate::text::terminal::say;
use book::OpeningBook;
use book_comparison::{BookComparison, ComparedMove};
use disk::{Disk, RealDisk};
use game::notation::Side;
use game::play::Game;
use game::transcript::{Transcript, is_moves, side_name};
use oracle::{Bounds, JudgedMove, Player};
use pipeline::Exit;
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::Read;
use std::iter;
use std::path::Path;
use std::time::Duration;

/// The longest text of games: some twenty thousand.
const GAMES_BYTES_MAX: u64 = 16 << 20;

/// The time to search a position, if no limit is given.
const TIME_DEFAULT: Duration = Duration::from_millis(100);

/// An estimated loss of this many hundredths of a stone counts as an error: it is nearer to a stone than to nothing.
const ERROR_HUNDREDTHS: i32 = 50;

/// A move of a game with what is proved and what is estimated about it.
struct AnalyzedMove {
    judged: JudgedMove,
    /// If its loss is not proved.
    estimate: Option<EstimatedMove>,
    /// If the book has it.
    book: Option<ComparedMove>,
}

/// Estimates about a move, for the player, in hundredths of a stone.
struct EstimatedMove {
    value: i32,
    best: i32,
}

impl EstimatedMove {
    fn loss(&self) -> i32 {
        (self.best - self.value).max(0)
    }
}

/// The moves of a player.
#[derive(Default)]
struct PlayerRecord {
    /// The moves whose loss is proved are judged.
    proved: Player,
    /// The moves whose loss is estimated.
    estimated: u32,
    /// Of these, the errors.
    errors: u32,
    /// Of these, the losses in hundredths of a stone.
    lost: i32,
}

impl PlayerRecord {
    fn add(&mut self, one: &AnalyzedMove) {
        self.proved.moves += 1;
        if let Some(loss) = one.judged.loss {
            self.proved.judged += 1;
            self.proved.errors += u32::from(loss > 0);
            self.proved.lost += u32::from(loss);
        } else if let Some(estimate) = &one.estimate {
            self.estimated += 1;
            self.errors += u32::from(estimate.loss() >= ERROR_HUNDREDTHS);
            self.lost += estimate.loss();
        }
    }

    /// Returns the estimated stones lost.
    fn estimated_lost(&self) -> f64 {
        f64::from(self.lost) / 100.0
    }

    /// Returns the estimated stones lost per move with an estimate.
    fn estimated_average(&self) -> Option<f64> {
        (self.estimated > 0).then(|| self.estimated_lost() / f64::from(self.estimated))
    }
}

/// Returns the share of right moves.
fn right(moves: u32, errors: u32) -> Option<f64> {
    (moves > 0).then(|| f64::from(moves - errors) / f64::from(moves))
}

pub(crate) fn run(args: &AnalyzeArgs) -> Result<Exit> {
    let disk = RealDisk::default();
    let oracle = oracle(&disk, args.dir.as_deref(), args.rules)?;
    let rules = *oracle.rules();
    let games = read(&disk, &args.text)?;
    // The last one may be invalid: better said before the first one is analyzed.
    let count = Transcript::games(rules, &games).try_fold(0, |count, game| game.map(|_| count + 1))?;
    let chosen = match args.game {
        None => 0..count.max(1),
        Some(number) if (1..=count).contains(&(number as usize)) => number as usize - 1..number as usize,
        Some(number) => return Err(CliError::NoSuchGame { number, games: count }),
    };
    let book = opening_book(args.dir.as_deref(), &args.book, &rules)?;
    let analyst = Analyst::new(oracle, args.dir.as_deref(), &args.search, TIME_DEFAULT)?;
    let is_one = chosen.len() == 1;
    let mut has_moves = false;
    let all = Transcript::games(rules, &games).chain(iter::repeat_with(|| Ok(Transcript::empty(rules))));
    for (number, transcript) in (1..).zip(all).take(chosen.end).skip(chosen.start) {
        let transcript = transcript?;
        let place = GameInText { number, count };
        let subject = if count > 1 { format!("game {number}") } else { "the game".to_owned() };
        if let Some(variant) = transcript.variant().filter(|variant| *variant != rules) {
            say(format_args!(
                "{subject} is of the variant {}, and is analyzed by the rules {}",
                variant.name, rules.name
            ));
        }
        let moves = analyze(&analyst, book.as_ref(), &transcript.game)?;
        has_moves |= !moves.is_empty();
        let comparison = book.is_some().then(|| BookComparison::new(&moves));
        let mut players = [PlayerRecord::default(), PlayerRecord::default()];
        for one in &moves {
            players[usize::from(one.judged.turn.side == Side::North)].add(one);
        }
        if args.json {
            let value = json(&place, &transcript, &moves, &players, comparison.as_ref());
            if is_one { print_json(&value)? } else { print_json_line(&value)? }
        } else {
            let space = if number > chosen.start + 1 { "\n" } else { "" };
            let text = text(&place, &transcript, &moves, &players, comparison.as_ref());
            print_text(&format!("{space}{text}"))?;
        }
    }
    Ok(if has_moves { analyst.exit() } else { Exit::NoAnswer })
}

/// The place of a game in its text.
struct GameInText {
    /// From 1.
    number: usize,
    /// The number of games.
    count: usize,
}

/// Analyzes the moves of a game.
fn analyze(analyst: &Analyst, book: Option<&OpeningBook>, game: &Game) -> Result<Vec<AnalyzedMove>> {
    let review = loop {
        match analyst.oracle.review(game) {
            Ok(review) => break review,
            Err(error) => analyst.drop_databases(error)?,
        }
    };
    let mut played = Game::from(*game.rules(), &game.start().text());
    let mut moves = Vec::new();
    // Until the game is in a position that the book does not have.
    let mut followed = book;
    for mut judged in review.turns {
        let found = followed.map_or(Ok(None), |book| book.position(&judged.before.board))?;
        let compared = found.and_then(|found| ComparedMove::new(&found, judged.turn.pit));
        followed = followed.filter(|_| compared.is_some());
        let mut estimated = None;
        if judged.loss.is_none() {
            let report = analyst.analyze_all(&played)?;
            let turn = judged.turn;
            if let Some(one) = report.moves.iter().find(|one| one.pit == turn.pit) {
                let (value, best) = (Bounds::new(one.low, one.high), proved(&report));
                (judged.value, judged.best) = (Some(value), Some(best));
                let found = EstimatedMove { value: one.estimated_hundredths(), best: report.estimate };
                let best_move = report.moves.first().filter(|first| first.pit != turn.pit && found.loss() > 0);
                judged.better = best_move.map(|first| first.pit).into_iter().collect();
                match (value.score(), best.score()) {
                    (Some(value), Some(best)) => judged.loss = Some(best.saturating_sub(value).unsigned_abs()),
                    _ => estimated = Some(found),
                }
            }
        }
        // A review holds legal moves only.
        let _ = played.play(judged.turn.pit);
        moves.push(AnalyzedMove { judged, estimate: estimated, book: compared });
    }
    Ok(moves)
}

/// Reads games from a file, from stdin, or from the command line.
fn read(disk: &RealDisk, words: &[String]) -> Result<String> {
    let text = match words {
        [dash] if dash == "-" => {
            let mut text = Vec::new();
            std::io::stdin().take(GAMES_BYTES_MAX + 1).read_to_end(&mut text).map_err(CliError::Stdin)?;
            if text.len() as u64 > GAMES_BYTES_MAX {
                return Err(CliError::GamesTooLong(GAMES_BYTES_MAX));
            }
            text
        }
        [word] if !word.contains(char::is_whitespace) && !is_moves(word) => {
            // The path may be a pipe, such as `<(...)` in a shell.
            disk.read_given(Path::new(word), GAMES_BYTES_MAX)
                .map_err(|error| if error.is_not_found() { CliError::NoGame(word.into()) } else { error.into() })?
        }
        [path] if disk.bytes(Path::new(path)).is_ok_and(|bytes| bytes.is_some()) => {
            disk.read_given(Path::new(path), GAMES_BYTES_MAX)?
        }
        words => words.join(" ").into_bytes(),
    };
    // Names of players may have any encoding; moves are ASCII.
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn text(
    place: &GameInText,
    transcript: &Transcript,
    moves: &[AnalyzedMove],
    players: &[PlayerRecord; 2],
    comparison: Option<&BookComparison>,
) -> String {
    let mut text = String::new();
    if place.count > 1 {
        let _ = writeln!(text, "game {} of {}", place.number, place.count);
    }
    for (name, value) in &transcript.tags {
        let value: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = writeln!(text, "{name}: {value}");
    }
    if moves.is_empty() {
        text.push_str("the game has no moves to analyze\n");
        return text;
    }
    let estimated = moves.iter().filter(|one| one.estimate.is_some()).count();
    if estimated > 0 {
        let all = quantity::plural(moves.len() as u64, "move");
        let _ = writeln!(text, "{estimated} of {all} estimated by a search, not proved");
    }
    let mut headings = vec!["", "move", "stones", "value", "best", "loss", "better", ""];
    headings.extend(comparison.map(|_| "book"));
    let mut table = TextTable::new(&headings).numbers([0, 2, 3, 4, 5]);
    for (number, AnalyzedMove { judged, estimate, book }) in moves.iter().enumerate() {
        let JudgedMove { turn, before, value, best, loss, better } = judged;
        let captured = if turn.captured > 0 { format!("x{}", turn.captured) } else { String::new() };
        let better: Vec<String> = better.iter().map(|pit| pit_name(*pit, turn.side)).collect();
        let cell = |value: &Option<Bounds>| value.map_or_else(String::new, |value| value.to_string());
        let (value, best, loss, source) = match estimate {
            None => {
                let loss = loss.filter(|&loss| loss > 0).map_or_else(String::new, |loss| loss.to_string());
                (cell(value), cell(best), loss, "")
            }
            Some(found) => {
                let loss = f64::from(found.loss()) / 100.0;
                let loss = if loss > 0.0 { format!("{loss:.2}") } else { String::new() };
                (analysis::stones(found.value), analysis::stones(found.best), loss, "estimated")
            }
        };
        let mut cells = vec![
            format!("{}.", number + 1),
            format!("{}{}{captured}", turn.text(), turn.sown),
            before.board.stones().to_string(),
            value,
            best,
            loss,
            better.join(" "),
            source.to_owned(),
        ];
        cells.extend(comparison.map(|_| book.as_ref().map_or_else(String::new, ComparedMove::text)));
        table.add_row(cells);
    }
    let _ = writeln!(text, "{}", table.fit(Width::stdout()));
    if let Some(comparison) = comparison {
        text += &comparison.text(moves);
    }
    for (side, player) in [Side::South, Side::North].into_iter().zip(players) {
        let Player { moves, judged, errors, lost } = player.proved;
        let average = player.proved.average_loss().map_or_else(String::new, |loss| format!(", {loss:.2} a move"));
        let _ = writeln!(
            text,
            "{}: {}, {judged} judged, {errors} wrong, {} lost{average}{}",
            side_name(side),
            quantity::plural(moves as u64, "move"),
            quantity::plural(lost as u64, "stone"),
            percent(right(judged, errors)),
        );
        if let Some(average) = player.estimated_average() {
            let _ = writeln!(
                text,
                "  by estimate: {}, {} wrong by half a stone or more, {:.2} stones lost, {average:.2} a move{}",
                quantity::plural(player.estimated.into(), "move"),
                player.errors,
                player.estimated_lost(),
                percent(right(player.estimated, player.errors)),
            );
        }
    }
    if let Some(outcome) = crate::games::play::outcome(&transcript.game) {
        let _ = writeln!(text, "{outcome}");
    }
    text
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| format!(", {:.0} % right", 100.0 * share))
}

fn json(
    place: &GameInText,
    transcript: &Transcript,
    moves: &[AnalyzedMove],
    players: &[PlayerRecord; 2],
    comparison: Option<&BookComparison>,
) -> Value {
    let value = |bounds: Option<Bounds>| match bounds {
        None => Value::Null,
        Some(bounds) => match bounds.score() {
            Some(score) => json!(score),
            None => json!({ "lo": bounds.low(), "hi": bounds.high() }),
        },
    };
    let stones = |hundredths: i32| f64::from(hundredths) / 100.0;
    let turns = moves.iter().map(|AnalyzedMove { judged: one, estimate, book }| {
        let better: Vec<String> = one.better.iter().map(|pit| pit_name(*pit, one.turn.side)).collect();
        let estimate = estimate.as_ref().map(
            |found| json!({ "value": stones(found.value), "best": stones(found.best), "loss": stones(found.loss()) }),
        );
        json!({
            "move": one.turn.text().to_string(),
            "sown": one.turn.sown,
            "captured": one.turn.captured,
            "before": one.before.text().to_string(),
            "value": value(one.value),
            "best": value(one.best),
            "loss": one.loss,
            "better": better,
            "estimate": estimate,
            "book": book.as_ref().map(ComparedMove::json),
        })
    });
    let players = players.iter().map(|player| {
        let Player { moves, judged, errors, lost } = player.proved;
        json!({
            "moves": moves,
            "judged": judged,
            "errors": errors,
            "lost": lost,
            "average_loss": player.proved.average_loss(),
            "right": right(judged, errors),
            "estimated": {
                "judged": player.estimated,
                "errors": player.errors,
                "lost": player.estimated_lost(),
                "average_loss": player.estimated_average(),
                "right": right(player.estimated, player.errors),
            },
        })
    });
    let players: Vec<Value> = players.collect();
    json!({
        "game": place.number,
        "games": place.count.max(1),
        "tags": transcript.tags.iter().cloned().collect::<std::collections::BTreeMap<String, String>>(),
        "moves": turns.collect::<Vec<Value>>(),
        "south": players[0],
        "north": players[1],
        "book": comparison.map(BookComparison::json),
    })
}
