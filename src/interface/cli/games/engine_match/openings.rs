//! The openings of a match: all sequences of some moves, or the lines of a file.

use crate::games::engine::position;
use game::Rules;
use game::play::Game;
use game::transcript::is_moves;
use std::collections::HashSet;

/// A line of a file that is no opening.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadOpening {
    /// The line, from 1.
    pub(super) line: usize,
    pub(super) what: String,
}

/// Returns the games of all sequences of `plies` moves from the opening position, without those that lead to a position
/// that another one leads to.
pub(super) fn all(rules: Rules, plies: u32) -> Vec<Game> {
    let mut games = vec![Game::new(rules)];
    for _ in 0..plies {
        let mut seen = HashSet::new();
        let mut next = Vec::new();
        for game in &games {
            for (pit, played) in game.moves() {
                let mut longer = game.clone();
                if seen.insert(played.child) && longer.play(pit).is_ok() && longer.outcome().is_none() {
                    next.push(longer);
                }
            }
        }
        games = next;
    }
    games
}

/// Parses openings, one a line: moves, a position, or the argument of the command `position` of the protocol.
/// Empty lines and lines that begin with `#` are skipped, as is a byte-order mark.
pub(super) fn parse(rules: Rules, text: &str) -> Result<Vec<Game>, BadOpening> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let games = lines.map(|(number, line)| {
        let written = match line.split_whitespace().next() {
            Some("fen" | "startpos") => line.to_owned(),
            Some(_) if line.split_whitespace().all(is_moves) => format!("startpos moves {line}"),
            _ => format!("fen {line}"),
        };
        let game = position(rules, &written).map_err(|what| BadOpening { line: number, what })?;
        match game.outcome() {
            None => Ok(game),
            Some(_) => Err(BadOpening { line: number, what: "the game is over".to_owned() }),
        }
    });
    games.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of positions after each number of moves from the opening position.
    #[test]
    fn all_openings_are_found_once() {
        for (plies, expected) in [(0, 1), (1, 6), (2, 36), (3, 190), (4, 1014)] {
            assert_eq!(all(Rules::AWARI, plies).len(), expected);
        }
    }

    #[test]
    fn openings_have_three_forms() {
        let text = "\u{feff}# comment\n\nFfBd\nF4 f4\n4-4-4-4-4-4-4-4-4-4-4-4-0-0-S\n4 4 4 4 4 0 5 5 5 5 4 4\nstartpos moves F\n\
                    fen 4-4-4-4-4-4-4-4-4-4-4-4-0-0-N moves a\n";
        let games = parse(Rules::AWARI, text).unwrap();
        assert_eq!(games.iter().map(|game| game.turns().len()).collect::<Vec<usize>>(), [4, 2, 0, 0, 1, 1]);
        for (text, line) in [
            ("Ff\nFF", 2),
            ("x", 1),
            ("Ff\n\u{feff}Ff", 2),
            ("4 4", 1),
            ("startpos moves ff", 1),
            ("#\n0-0-0-0-0-0-0-0-0-0-0-1-0-0-S", 2),
        ] {
            assert_eq!(parse(Rules::AWARI, text).unwrap_err().line, line, "{text}");
        }
    }
}
