//! `awari analyze`: compares every move of a game with the best one.

use crate::args::AnalyzeArgs;
use crate::databases::library;
use crate::error::{CliError, Result};
use crate::output::{print_json, print_text};
use crate::probe::pit_name;
use crate::quantity;
use crate::screen::Width;
use crate::table::TextTable;
use disk::{Disk, RealDisk};
use game::notation::Side;
use game::transcript::{Transcript, is_moves, side_name};
use oracle::{Bounds, JudgedMove, Oracle, Player, Review};
use pipeline::Exit;
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::Read;
use std::path::Path;

/// The longest text of a game.
const GAME_BYTES_MAX: u64 = 1 << 20;

/// The memory limit of the cache of decoded blocks; a game reads some hundred blocks.
const CACHE_BYTES_MAX: u64 = 64 << 20;

pub(crate) fn run(args: &AnalyzeArgs) -> Result<Exit> {
    let disk = RealDisk::default();
    let oracle = Oracle::new(library(&disk, &args.dir)?, CACHE_BYTES_MAX);
    let transcript = Transcript::parse(*oracle.rules(), &read(&disk, &args.game)?)?;
    let review = oracle.review(&transcript.game)?;
    if args.json {
        print_json(&json(&transcript, &review))?;
    } else {
        print_text(&text(&transcript, &review, oracle.stones_max()))?;
    }
    Ok(if review.turns.iter().any(|one| one.best.is_some()) { Exit::Done } else { Exit::NoAnswer })
}

/// Reads a game from a file, from stdin, or from the command line.
fn read(disk: &RealDisk, words: &[String]) -> Result<String> {
    let text = match words {
        [dash] if dash == "-" => {
            let mut text = Vec::new();
            std::io::stdin().take(GAME_BYTES_MAX).read_to_end(&mut text).map_err(CliError::Stdin)?;
            text
        }
        [word] if !word.contains(char::is_whitespace) && !is_moves(word) => {
            // The path may be a pipe, such as `<(...)` in a shell.
            disk.read(Path::new(word), GAME_BYTES_MAX).map_err(|error| match error.is_not_found() {
                true => CliError::NoGame(word.into()),
                false => error.into(),
            })?
        }
        [path] if disk.bytes(Path::new(path)).is_ok_and(|bytes| bytes.is_some()) => {
            disk.read(Path::new(path), GAME_BYTES_MAX)?
        }
        words => words.join(" ").into_bytes(),
    };
    // Names of players may have any encoding; moves are ASCII.
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn text(transcript: &Transcript, review: &Review, largest: Option<u32>) -> String {
    let mut text = String::new();
    for (name, value) in &transcript.tags {
        let value: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = writeln!(text, "{name}: {value}");
    }
    if review.turns.is_empty() {
        text.push_str("the game has no moves to analyze\n");
        return text;
    }
    let known = review.turns.iter().filter(|one| one.best.is_some()).count();
    let unknown = review.turns.len() - known;
    if unknown > 0 {
        let why = largest
            .map_or_else(String::new, |largest| format!(" (more than {})", quantity::plural(largest.into(), "stone")));
        let _ = writeln!(text, "{unknown} of {} not judged{why}", quantity::plural(review.turns.len() as u64, "move"));
    }
    if known > 0 {
        let mut table =
            TextTable::new(&["", "move", "stones", "value", "best", "loss", "better"]).numbers([0, 2, 3, 4, 5]);
        for (number, one) in review.turns.iter().enumerate().filter(|(_, one)| one.best.is_some()) {
            let JudgedMove { turn, before, value, best, loss, better } = one;
            let captured = if turn.captured > 0 { format!("x{}", turn.captured) } else { String::new() };
            let better: Vec<String> = better.iter().map(|pit| pit_name(*pit, turn.side)).collect();
            let cell = |value: &Option<Bounds>| value.map_or_else(String::new, |value| value.to_string());
            table.add_row([
                format!("{}.", number + 1),
                format!("{}{}{captured}", turn.text(), turn.sown),
                before.board.stones().to_string(),
                cell(value),
                cell(best),
                loss.filter(|&loss| loss > 0).map_or_else(String::new, |loss| loss.to_string()),
                better.join(" "),
            ]);
        }
        let _ = writeln!(text, "{}", table.fit(Width::stdout()));
    }
    for (side, player) in [Side::South, Side::North].into_iter().zip(&review.players) {
        let Player { moves, judged, errors, lost } = *player;
        let average = player.average_loss().map_or_else(String::new, |loss| format!(", {loss:.2} a move"));
        let _ = writeln!(
            text,
            "{}: {}, {judged} judged, {errors} wrong, {} lost{average}",
            side_name(side),
            quantity::plural(moves as u64, "move"),
            quantity::plural(lost as u64, "stone"),
        );
    }
    if let Some(outcome) = transcript.game.outcome() {
        let _ = writeln!(text, "{}", crate::play::outcome(&outcome));
    }
    text
}

fn json(transcript: &Transcript, review: &Review) -> Value {
    let value = |bounds: Option<Bounds>| match bounds {
        None => Value::Null,
        Some(bounds) => match bounds.score() {
            Some(score) => json!(score),
            None => json!({ "lo": bounds.low(), "hi": bounds.high() }),
        },
    };
    let turns = review.turns.iter().map(|one| {
        let better: Vec<String> = one.better.iter().map(|pit| pit_name(*pit, one.turn.side)).collect();
        json!({
            "move": one.turn.text().to_string(),
            "sown": one.turn.sown,
            "captured": one.turn.captured,
            "before": one.before.text().to_string(),
            "value": value(one.value),
            "best": value(one.best),
            "loss": one.loss,
            "better": better,
        })
    });
    let players = review.players.iter().map(|player| {
        json!({
            "moves": player.moves,
            "judged": player.judged,
            "errors": player.errors,
            "lost": player.lost,
            "average_loss": player.average_loss(),
        })
    });
    let players: Vec<Value> = players.collect();
    json!({
        "tags": transcript.tags.iter().cloned().collect::<std::collections::BTreeMap<String, String>>(),
        "moves": turns.collect::<Vec<Value>>(),
        "south": players[0],
        "north": players[1],
    })
}
