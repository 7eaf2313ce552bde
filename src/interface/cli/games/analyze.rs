//! `awari analyze`: compares every move of games with the best one.
//!
//! What a move loses is proved where databases or a search give exact values. Elsewhere it is estimated, and
//! counted apart.

mod book_comparison;

use crate::args::{AnalysisView, AnalyzeArgs};
use crate::error::{CliError, Result};
use crate::files::databases::oracle;
use crate::games::analysis::{self, Analyst, proved};
use crate::games::opening_book::opening_book;
use crate::games::probe::pit_name;
use crate::output::{print, print_json, print_json_line, print_text};
use crate::text::quantity;
use crate::text::screen::Width;
use crate::text::table::TextTable;
use crate::text::terminal::say;
use book::OpeningBook;
use book_comparison::{BookComparison, ComparedMove};
use disk::{Disk, RealDisk};
use game::Rules;
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

/// A move that gives away this many hundredths of a stone is marked with `?`, and one that gives away more with `??`.
const MISTAKE_HUNDREDTHS: i32 = 200;
const BLUNDER_HUNDREDTHS: i32 = 500;

/// The columns of a game in the Oware Game Notation.
const OGN_COLUMNS: usize = 80;

/// What is said of a move in a transcript: `?`, `??` or nothing, and a comment, which may be empty.
struct MoveNote {
    mark: &'static str,
    comment: String,
}

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
    /// The depth of the search.
    depth: u32,
}

impl EstimatedMove {
    fn loss(&self) -> i32 {
        (self.best - self.value).max(0)
    }
}

impl AnalyzedMove {
    /// Returns the hundredths of a stone that the move gives away, if they are proved or estimated.
    fn loss(&self) -> Option<i32> {
        let proved = self.judged.loss.map(|loss| 100 * i32::from(loss));
        proved.or(self.estimate.as_ref().map(EstimatedMove::loss))
    }

    /// Returns a value from a point of view.
    fn seen(&self, value: Bounds, view: AnalysisView) -> Bounds {
        if self.is_turned(view) { Bounds::new(-value.high(), -value.low()) } else { value }
    }

    /// As [`seen`](Self::seen), of an estimate.
    fn seen_estimate(&self, hundredths: i32, view: AnalysisView) -> i32 {
        if self.is_turned(view) { -hundredths } else { hundredths }
    }

    fn is_turned(&self, view: AnalysisView) -> bool {
        view == AnalysisView::South && self.judged.turn.side == Side::North
    }

    /// Returns the note of the move in a transcript.
    fn note(&self, view: AnalysisView) -> MoveNote {
        let mark = match self.loss() {
            Some(BLUNDER_HUNDREDTHS..) => "??",
            Some(MISTAKE_HUNDREDTHS..) => "?",
            _ => "",
        };
        let value = match (&self.estimate, self.judged.value) {
            (Some(found), _) => format!("estimated {}", analysis::stones(self.seen_estimate(found.value, view))),
            (None, Some(value)) => self.seen(value, view).to_string(),
            (None, None) => String::new(),
        };
        let better: Vec<String> = self.judged.better.iter().map(|pit| pit_name(*pit, self.judged.turn.side)).collect();
        let better =
            if mark.is_empty() || better.is_empty() { String::new() } else { format!("; better {}", better.join(" ")) };
        MoveNote { mark, comment: format!("{value}{better}") }
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
    fn add(&mut self, analyzed: &AnalyzedMove) {
        self.proved.moves += 1;
        if let Some(loss) = analyzed.judged.loss {
            self.proved.judged += 1;
            self.proved.errors += u32::from(loss > 0);
            self.proved.lost += u32::from(loss);
        } else if let Some(estimate) = &analyzed.estimate {
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
    let oracle = oracle(&disk, &args.library)?;
    let rules = *oracle.rules();
    let games = read(&disk, &args.text)?;
    // The last one may be invalid: better said before the first one is analyzed.
    let counted = Transcript::games(rules, &games).try_fold(0, |count, game| game.map(|_| count + 1));
    if counted.is_err() {
        // A move may be wrong by these rules alone.
        let others = Transcript::games_by_variant(&games).flatten().filter_map(|game| warn_of_variant(&game, rules));
        others.take(1).for_each(|warning| say(format_args!("a game {warning}")));
    }
    let count = counted?;
    let chosen = match args.game {
        None => 0..count.max(1),
        Some(number) if (1..=count).contains(&(number as usize)) => number as usize - 1..number as usize,
        Some(number) => return Err(CliError::NoSuchGame { number, games: count }),
    };
    let book = opening_book(args.library.dir.as_deref(), &args.book, &rules)?;
    let analyst = Analyst::new(oracle, args.library.dir.as_deref(), &args.search, TIME_DEFAULT)?;
    let is_one = chosen.len() == 1;
    let mut has_moves = false;
    let all = Transcript::games(rules, &games).chain(iter::repeat_with(|| Ok(Transcript::empty(rules))));
    for (number, transcript) in (1..).zip(all).take(chosen.end).skip(chosen.start) {
        let transcript = transcript?;
        let subject = if count > 1 { format!("game {number}") } else { "the game".to_owned() };
        if let Some(warning) = warn_of_variant(&transcript, rules) {
            say(format_args!("{subject} {warning}"));
        }
        let moves = analyze(&analyst, book.as_ref(), &transcript.game)?;
        has_moves |= !moves.is_empty();
        let comparison = book.is_some().then(|| BookComparison::new(&moves));
        let mut players = [PlayerRecord::default(), PlayerRecord::default()];
        for analyzed in &moves {
            players[usize::from(analyzed.judged.turn.side == Side::North)].add(analyzed);
        }
        let game = AnalyzedGame { number, count, transcript, moves, players, comparison };
        let space = if number > chosen.start + 1 { "\n" } else { "" };
        if args.ogn {
            print(&format!("{space}{}", ogn(&game.transcript, &game.moves, args.view)))?;
        } else if args.json {
            let value = json(&game, args.view);
            if is_one { print_json(&value)? } else { print_json_line(&value)? }
        } else {
            print_text(&format!("{space}{}", text(&game, args.view)))?;
        }
    }
    if !has_moves {
        say("no moves were found, and none is analyzed");
        return Ok(Exit::NoAnswer);
    }
    Ok(analyst.exit())
}

/// Returns a warning if a game is of another variant.
fn warn_of_variant(transcript: &Transcript, rules: Rules) -> Option<String> {
    let variant = transcript.variant().filter(|variant| *variant != rules)?;
    Some(format!("is of the variant {}, and is analyzed by the rules {}", variant.name, rules.name))
}

/// A game of a text, with its analysis.
struct AnalyzedGame {
    /// Its place in the text, from 1.
    number: usize,
    /// The number of games in the text.
    count: usize,
    transcript: Transcript,
    moves: Vec<AnalyzedMove>,
    players: [PlayerRecord; 2],
    comparison: Option<BookComparison>,
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
        let compared = match (found, book) {
            (Some(found), Some(book)) => ComparedMove::new(book, &found, judged.turn)?,
            _ => None,
        };
        followed = followed.filter(|_| compared.is_some());
        let mut estimated = None;
        if judged.loss.is_none() {
            let report = analyst.analyze_all(&played)?;
            let turn = judged.turn;
            if let Some(searched) = report.moves.iter().find(|searched| searched.pit == turn.pit) {
                let (value, best) = (Bounds::new(searched.low, searched.high), proved(&report));
                (judged.value, judged.best) = (Some(value), Some(best));
                let (value_hundredths, depth) = (searched.estimated_hundredths(), report.depth);
                let found = EstimatedMove { value: value_hundredths, best: report.estimate, depth };
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

/// Writes a game with values, marks of errors and the result.
fn ogn(transcript: &Transcript, moves: &[AnalyzedMove], view: AnalysisView) -> String {
    let game = &transcript.game;
    let start = Game::from(*game.rules(), &game.start().text());
    let head = Transcript { tags: transcript.tags.clone(), game: start }.text();
    let space = if head.is_empty() { "\n" } else { "" };
    // If North begins the game, South's first move is missing.
    let absent = usize::from(game.start().seats.side == Side::North);
    let mut words = Vec::new();
    for (at, analyzed) in moves.iter().enumerate() {
        let turn = analyzed.judged.turn;
        let number = match turn.side {
            Side::South => format!("{}. ", (at + absent) / 2 + 1),
            Side::North if at == 0 => "1... ".to_owned(),
            Side::North => String::new(),
        };
        let MoveNote { mark, comment } = analyzed.note(view);
        words.push(format!("{number}{}{mark}", turn.text()));
        if !comment.is_empty() {
            words.push(format!("{{{comment}}}"));
        }
    }
    let player = if view == AnalysisView::South { "South" } else { "the player who moves" };
    words.push(transcript.game.result_mark().to_owned());
    let mut text = format!("[Annotator \"awari {}, values for {player}\"]\n{head}{space}", env!("CARGO_PKG_VERSION"));
    let mut column = 0;
    for word in words {
        if column > 0 {
            let fits = column + 1 + word.len() < OGN_COLUMNS;
            text.push(if fits { ' ' } else { '\n' });
            column = if fits { column + 1 } else { 0 };
        }
        column += word.len();
        text.push_str(&word);
    }
    text.push('\n');
    text
}

fn text(game: &AnalyzedGame, view: AnalysisView) -> String {
    let AnalyzedGame { number, count, transcript, moves, players, comparison } = game;
    let mut text = String::new();
    if *count > 1 {
        let _ = writeln!(text, "game {number} of {count}");
    }
    for (name, value) in &transcript.tags {
        let value: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = writeln!(text, "{name}: {value}");
    }
    if moves.is_empty() {
        text.push_str("the game has no moves to analyze\n");
        return text;
    }
    let estimated = moves.iter().filter(|analyzed| analyzed.estimate.is_some()).count();
    if estimated > 0 {
        let all = quantity::plural(moves.len() as u64, "move");
        let _ = writeln!(text, "{estimated} of {all} estimated by a search, not proved");
    }
    if view == AnalysisView::South {
        text.push_str("values for South\n");
    }
    let mut headings = vec!["", "move", "stones", "value", "best", "loss", "better", ""];
    headings.extend(comparison.as_ref().map(|_| "book"));
    let mut table = TextTable::new(&headings).numbers([0, 2, 3, 4, 5]);
    for (number, analyzed) in moves.iter().enumerate() {
        let AnalyzedMove { judged, estimate, book } = analyzed;
        let JudgedMove { turn, before, value, best, loss, better } = judged;
        let captured = if turn.captured > 0 { format!("x{}", turn.captured) } else { String::new() };
        let better: Vec<String> = better.iter().map(|pit| pit_name(*pit, turn.side)).collect();
        let cell =
            |value: &Option<Bounds>| value.map_or_else(String::new, |value| analyzed.seen(value, view).to_string());
        let (value, best, loss, source) = match estimate {
            None => {
                let loss = loss.filter(|&loss| loss > 0).map_or_else(String::new, |loss| loss.to_string());
                (cell(value), cell(best), loss, "")
            }
            Some(found) => {
                let loss = f64::from(found.loss()) / 100.0;
                let loss = if loss > 0.0 { format!("{loss:.2}") } else { String::new() };
                let seen = |hundredths| analysis::stones(analyzed.seen_estimate(hundredths, view));
                (seen(found.value), seen(found.best), loss, "estimated")
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
        cells.extend(comparison.as_ref().map(|_| book.as_ref().map_or_else(String::new, ComparedMove::text)));
        table.add_row(cells);
    }
    let _ = writeln!(text, "{}", table.fit(Width::stdout()));
    if let Some(comparison) = comparison {
        text += &comparison.text(moves);
        for (number, analyzed) in moves.iter().enumerate() {
            if let (Some(book), Some(found)) = (&analyzed.book, &analyzed.estimate)
                && let Some(disagreement) = book.disagreement(found.loss() >= ERROR_HUNDREDTHS, found.depth)
            {
                let _ = writeln!(text, "move {}, {}: {disagreement}", number + 1, analyzed.judged.turn.text());
            }
        }
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

fn json(game: &AnalyzedGame, view: AnalysisView) -> Value {
    let AnalyzedGame { number, count, transcript, moves, players, comparison } = game;
    let value = |bounds: Option<Bounds>| match bounds {
        None => Value::Null,
        Some(bounds) => match bounds.score() {
            Some(score) => json!(score),
            None => json!({ "lo": bounds.low(), "hi": bounds.high() }),
        },
    };
    let stones = |hundredths: i32| f64::from(hundredths) / 100.0;
    let turns = moves.iter().map(|analyzed| {
        let AnalyzedMove { judged, estimate, book } = analyzed;
        let seen = |value: Option<Bounds>| value.map(|value| analyzed.seen(value, view));
        let estimated = |hundredths| stones(analyzed.seen_estimate(hundredths, view));
        let better: Vec<String> = judged.better.iter().map(|pit| pit_name(*pit, judged.turn.side)).collect();
        let estimate = estimate.as_ref().map(|found| {
            json!({
                "value": estimated(found.value),
                "best": estimated(found.best),
                "loss": stones(found.loss()),
                "depth": found.depth,
            })
        });
        json!({
            "move": judged.turn.text().to_string(),
            "sown": judged.turn.sown,
            "captured": judged.turn.captured,
            "before": judged.before.text().to_string(),
            "value": value(seen(judged.value)),
            "best": value(seen(judged.best)),
            "loss": judged.loss,
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
        "game": number,
        "games": (*count).max(1),
        "tags": transcript.tags.iter().cloned().collect::<std::collections::BTreeMap<String, String>>(),
        "moves": turns.collect::<Vec<Value>>(),
        "south": players[0],
        "north": players[1],
        "book": comparison.as_ref().map(BookComparison::json),
    })
}
