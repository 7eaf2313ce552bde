//! Games as people and programs write them down.
//!
//! ```text
//! [White "..."]                      tags of the Oware Game Notation; FEN is the position to begin with
//! [FEN "4-4-4-4-4-4-4-4-4-4-4-4-0-0-S"]
//!
//! 1. F f 2. B d                      moves by their pits, A to F for South, a to f for North
//! F4 f4 B5 d5 E7x2                   with the stones sown, and what they capture
//! 1. F4 f4 {a comment} (2. A a) 1-0  numbers, comments, variations and results are passed over
//! ```
//!
//! What is written of stones and captures is compared with the board, so a slip is found where it was made.

use crate::notation::{MoveText, NotationError, PositionText, Side};
use crate::play::Game;
use crate::{Illegal, Rules};
use std::fmt::Write;
use thiserror::Error;

/// A longer text is no game: no game goes on for so long without a repetition that anybody plays on to.
pub const MOVES_MAX: usize = 10_000;

/// A game, and what stands above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// Tags with their values, in order; without FEN.
    pub tags: Vec<(String, String)>,
    /// The game.
    pub game: Game,
}

/// Why a text is no game.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TranscriptError {
    /// The position to begin with makes no sense.
    #[error("the tag FEN: {0}")]
    Start(NotationError),
    /// Something that is no move stands where one should.
    #[error("after {after} moves: expected a move, as F, f4 or B5x2, found `{found}`")]
    NoMove {
        /// Moves before it.
        after: usize,
        /// What stands there.
        found: String,
    },
    /// The other player is to move.
    #[error("move {number}, `{found}`: {} is to move, whose pits are {}", side_name(*side), pits(*side))]
    Side {
        /// The move, from 1.
        number: usize,
        /// As written.
        found: String,
        /// Who is to move.
        side: Side,
    },
    /// The rules forbid it.
    #[error("move {number}, `{found}`: {reason}")]
    Forbidden {
        /// The move, from 1.
        number: usize,
        /// As written.
        found: String,
        /// Why.
        reason: Illegal,
    },
    /// The board is another one than whoever wrote it saw.
    #[error("move {number}, `{found}`: expected {expected} stones {what}, by the board it is {is}")]
    Differs {
        /// The move, from 1.
        number: usize,
        /// As written.
        found: String,
        /// `sown` or `captured`.
        what: &'static str,
        /// What is written.
        expected: u32,
        /// What the board says.
        is: u8,
    },
    /// More moves than any game has.
    #[error("more than {MOVES_MAX} moves; this is no game")]
    TooLong,
}

/// The name of a player.
pub fn side_name(side: Side) -> &'static str {
    match side {
        Side::South => "South",
        Side::North => "North",
    }
}

fn pits(side: Side) -> &'static str {
    match side {
        Side::South => "A to F",
        Side::North => "a to f",
    }
}

impl Transcript {
    /// Reads a game.
    ///
    /// # Errors
    /// The first thing that is wrong, and after how many moves.
    pub fn parse(rules: Rules, text: &str) -> Result<Transcript, TranscriptError> {
        let mut reader = Reader { text: text.trim_start_matches('\u{feff}') };
        let mut tags = Vec::new();
        let mut start = None;
        while let Some((name, value)) = reader.tag() {
            if name == "FEN" {
                start = Some(value.parse::<PositionText>().map_err(TranscriptError::Start)?);
            } else {
                tags.push((name, value));
            }
        }
        let mut game = start.map_or_else(|| Game::new(rules), |start| Game::from(rules, &start));
        while let Some(word) = reader.word() {
            if is_result(word) {
                break;
            }
            play_all(&mut game, word)?;
        }
        Ok(Transcript { tags, game })
    }

    /// Writes a game in the Oware Game Notation.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.tags {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(text, "[{name} \"{value}\"]");
        }
        let start = self.game.start();
        let opening = Game::new(*self.game.rules()).start();
        if start != opening {
            let _ = writeln!(text, "[FEN \"{}\"]", start.text());
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let mut column = 0;
        // A game that North begins counts South's absent move.
        let absent = usize::from(start.seats.side == Side::North);
        for (at, turn) in self.game.turns().iter().enumerate() {
            let number = match turn.side {
                Side::South => format!("{}. ", (at + absent) / 2 + 1),
                Side::North if at == 0 => "1... ".to_owned(),
                Side::North => String::new(),
            };
            let word = format!("{number}{}", turn.text());
            if column > 0 {
                let fits = column + 1 + word.len() < 80;
                text.push(if fits { ' ' } else { '\n' });
                column = if fits { column + 1 } else { 0 };
            }
            column += word.len();
            text.push_str(&word);
        }
        if column > 0 {
            text.push('\n');
        }
        text
    }
}

/// Takes a text apart.
struct Reader<'a> {
    text: &'a str,
}

impl<'a> Reader<'a> {
    /// A tag, if one comes next.
    fn tag(&mut self) -> Option<(String, String)> {
        let inside = self.text.trim_start().strip_prefix('[')?;
        let (name, rest) = inside.trim_start().split_once(|c: char| c.is_whitespace())?;
        let mut value = String::new();
        let mut characters = rest.trim_start().strip_prefix('"')?.chars();
        loop {
            match characters.next()? {
                '\\' => value.push(characters.next()?),
                '"' => break,
                character => value.push(character),
            }
        }
        self.text = characters.as_str().trim_start().strip_prefix(']')?;
        Some((name.to_owned(), value))
    }

    /// The next word that is no number, comment or variation.
    fn word(&mut self) -> Option<&'a str> {
        loop {
            self.text = self.text.trim_start_matches(|c: char| c.is_whitespace() || c == ',' || c == '.');
            let first = self.text.chars().next()?;
            match first {
                '{' => self.skip_behind('}'),
                ';' => self.skip_behind('\n'),
                '(' => self.skip_variation(),
                _ => {
                    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '{' | '(' | ';');
                    let (word, rest) = self.text.split_at(self.text.find(ends).unwrap_or(self.text.len()));
                    // A bracket that opens a word ends none.
                    let (word, rest) =
                        if word.is_empty() { self.text.split_at(first.len_utf8()) } else { (word, rest) };
                    self.text = rest;
                    let word = unnumbered(word);
                    if !word.is_empty() {
                        return Some(word);
                    }
                }
            }
        }
    }

    fn skip_behind(&mut self, end: char) {
        self.text = self.text.split_once(end).map_or("", |(_, rest)| rest);
    }

    fn skip_variation(&mut self) {
        let mut depth = 0usize;
        for (at, character) in self.text.char_indices() {
            match character {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                self.text = &self.text[at + character.len_utf8()..];
                return;
            }
        }
        self.text = "";
    }
}

/// A word without the number of a move before it: `12.F4` is `F4`, `3...` nothing.
fn unnumbered(word: &str) -> &str {
    let digits = word.trim_start_matches(|c: char| c.is_ascii_digit());
    match digits.strip_prefix('.') {
        Some(rest) if digits.len() < word.len() => rest.trim_start_matches('.'),
        _ => word,
    }
}

fn is_result(word: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '/' | '½'));
    word == "*" || word.split_once('-').is_some_and(|(south, north)| is_number(south) && is_number(north))
}

/// Plays a word, which may be several moves as engines write them: `FfDd`.
fn play_all(game: &mut Game, word: &str) -> Result<(), TranscriptError> {
    let mut rest = word;
    while !rest.is_empty() {
        let no_move = || TranscriptError::NoMove { after: game.turns().len(), found: rest.chars().take(20).collect() };
        let first = rest.chars().next().ok_or_else(no_move)?;
        let named: MoveText = first.to_string().parse().map_err(|_| no_move())?;
        let (sown, after) = number(&rest[first.len_utf8()..]);
        let (captured, after) = match after.strip_prefix(['x', 'X', '+', ':']) {
            Some(after) => number(after),
            None => (None, after),
        };
        let found = rest[..rest.len() - after.len()].to_owned();
        rest = after;
        let number = game.turns().len() + 1;
        if number > MOVES_MAX {
            return Err(TranscriptError::TooLong);
        }
        let side = game.now().seats.side;
        if named.side != side {
            return Err(TranscriptError::Side { number, found, side });
        }
        let turn = game.play(named.pit).map_err(|reason| {
            let found = found.clone();
            TranscriptError::Forbidden { number, found, reason }
        })?;
        for (what, expected, is) in [("sown", sown, turn.sown), ("captured", captured, turn.captured)] {
            if let Some(expected) = expected.filter(|&expected| expected != u32::from(is)) {
                return Err(TranscriptError::Differs { number, found, what, expected, is });
            }
        }
    }
    Ok(())
}

/// A number at the start of a text, if there is one, and what follows it.
fn number(text: &str) -> (Option<u32>, &str) {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &text[..text.len() - rest.len()];
    // More digits than a number has are no number of stones either.
    ((!digits.is_empty()).then(|| digits.parse().unwrap_or(u32::MAX)), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Transcript, TranscriptError> {
        Transcript::parse(Rules::AWARI, text)
    }

    fn moves(transcript: &Transcript) -> String {
        transcript.game.turns().iter().map(|turn| turn.text().to_string()).collect()
    }

    #[test]
    fn one_game_in_many_forms() {
        let forms = [
            "F4 f4 B5 d5",
            "1. F f 2. B d",
            "FfBd",
            "1.F4 f4 2.B5 d5 *",
            "1. F4 {the first (of many) moves} f4 (1... a4 (a) b) 2. B5 ; a remark\n d5 25-23",
            "[Event \"a \\\"b\\\" c\"]\n[Site \"?\"]\n\n1. F f\n2. B d\n1/2-1/2 Z9",
            "\u{feff}F4x0, f4, B5+0, d5:0",
        ];
        for form in forms {
            assert_eq!(moves(&parse(form).unwrap()), "FfBd", "{form}");
        }
        let tagged = parse(forms[5]).unwrap();
        assert_eq!(tagged.tags[0], ("Event".to_owned(), "a \"b\" c".to_owned()));
        assert_eq!(parse(&tagged.text()).unwrap(), tagged);
        assert_eq!(moves(&parse("").unwrap()), "");
    }

    #[test]
    fn games_begin_anywhere_and_come_back() {
        let text = "[FEN \"0-0-0-0-0-2-1-1-0-0-0-1-20-23-S\"]\n\n1. F\n";
        let transcript = parse(text).unwrap();
        assert_eq!(transcript.game.now().seats.south_store, 24);
        assert_eq!(transcript.text(), text);
        let north = "[FEN \"0-1-0-0-0-2-1-1-0-0-0-1-20-22-N\"]\n\n1... a 2. B b\n";
        assert_eq!(parse(north).unwrap().text(), north);
        let mut long = parse("").unwrap();
        while long.game.turns().len() < 200 {
            let Some((pit, _)) = long.game.now().board.moves(&Rules::AWARI).last() else { break };
            long.game.play(pit).unwrap();
        }
        let text = long.text();
        assert!(text.lines().all(|line| line.len() < 80) && text.lines().count() > 2);
        assert_eq!(parse(&text).unwrap(), long);
    }

    #[test]
    fn slips_are_found_where_they_were_made() {
        let check = |text: &str, expect: &str| assert_eq!(parse(text).unwrap_err().to_string(), expect, "{text}");
        check("F4 F4", "move 2, `F4`: North is to move, whose pits are a to f");
        check("F4 f4 B4", "move 3, `B4`: expected 4 stones sown, by the board it is 5");
        check("F4 f4x2", "move 2, `f4x2`: expected 2 stones captured, by the board it is 0");
        check("F4 e4 F", "move 3, `F`: pit F is empty");
        check("F4 what", "after 1 moves: expected a move, as F, f4 or B5x2, found `what`");
        check(
            "[FEN \"4-4\"] F4",
            "the tag FEN: expected 12 numbers from A round to f, or 15 parts as in \
            `4-4-4-4-4-4-4-4-4-4-4-4-0-0-S`, found 2 separated by hyphens",
        );
        check("F99999999999999", "move 1, `F99999999999999`: expected 4294967295 stones sown, by the board it is 4");
        for strange in ["[", "[a", "[a \"", "{", "(", "((", "é", "F4 é", "\\", ")", "1.", "....", "[FEN \"\"]"] {
            let _ = parse(strange);
        }
    }
}
