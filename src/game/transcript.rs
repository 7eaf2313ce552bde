//! Text notation of games.
//!
//! ```text
//! [White "..."]                      tags of the Oware Game Notation; FEN is the position to begin with
//! [FEN "4-4-4-4-4-4-4-4-4-4-4-4-0-0-S"]
//!
//! 1. F f 2. B d                      moves by their pits, A to F for South, a to f for North
//! [Variant "oware"]                  the name of the rules; it is written unless they are those of awari
//! F4 f4 B5 d5 E7x2                   with the stones sown, and what they capture
//! 1. F4 f4 {a comment} (2. A a) 1-0  numbers, comments, variations and results are passed over
//! ```
//!
//! Written numbers of stones and captures are compared with the board, so that a mistake is found where it was made.

use crate::notation::{MoveText, NotationError, PositionText, Side};
use crate::play::{Game, GameTurn};
use crate::{Illegal, Rules};
use std::fmt::Write;
use thiserror::Error;

/// The maximum number of moves of a game: a longer game must contain a repeated position.
pub const MOVES_MAX: usize = 10_000;

/// The tag with the name of the rules.
const VARIANT: &str = "Variant";

/// The longest part of a text that an error quotes, in characters.
const FOUND_CHARACTERS_MAX: usize = 20;

/// A game with its tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// Tags with their values in order, without FEN.
    pub tags: Vec<(String, String)>,
    /// The game.
    pub game: Game,
}

/// An error in the text of a game.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message of a variant explains its fields")]
pub enum TranscriptError {
    /// The initial position is invalid.
    #[error("the tag FEN: {0}")]
    Start(NotationError),
    /// The text is not a move.
    #[error("move {}: expected a move such as F, f4 or B5x2, found `{found}`", after + 1)]
    NoMove {
        /// Moves before it.
        after: usize,
        found: String,
    },
    /// The other player is to move.
    #[error("move {number}, `{found}`: {} is to move, with pits {}", side_name(*side), pits(*side))]
    Side {
        /// The move, from 1.
        number: usize,
        found: String,
        side: Side,
    },
    /// The move is illegal.
    #[error("move {number}, `{found}`: {reason}")]
    Forbidden {
        /// The move, from 1.
        number: usize,
        found: String,
        reason: Illegal,
    },
    /// The written number of stones sown differs from the stones in the pit.
    #[error("move {number}: {found} says {expected} {}, pit {pit} holds {is}", if expected == "1" { "stone" } else { "stones" })]
    Sown {
        /// The move, from 1.
        number: usize,
        found: String,
        pit: MoveText,
        expected: String,
        is: u8,
    },
    /// The written number of captured stones differs from that on the board.
    #[error("move {number}: {found} says that {expected} {} captured, the move captures {is}", if expected == "1" { "stone is" } else { "stones are" })]
    Captured {
        /// The move, from 1.
        number: usize,
        found: String,
        expected: String,
        is: u8,
    },
    /// The text has too many moves.
    #[error("the game has more than {MOVES_MAX} moves, which is not supported")]
    TooLong,
}

/// A mistake in one of several games.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("game {number}: {error}")]
pub struct BadTranscript {
    /// The game, from 1.
    pub number: usize,
    /// The mistake.
    pub error: TranscriptError,
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
    /// Reads a game: the first one of the text, up to its result.
    ///
    /// # Errors
    /// The first mistake, with the number of moves before it.
    pub fn parse(rules: Rules, text: &str) -> Result<Transcript, TranscriptError> {
        TranscriptReader::new(text).game(rules)
    }

    /// Reads the games of a text, one after the other. Each ends with its result, or before the tags of the next.
    ///
    /// # Errors
    /// The first mistake, with the games before it.
    pub fn parse_all(rules: Rules, text: &str) -> Result<Vec<Transcript>, BadTranscript> {
        let mut reader = TranscriptReader::new(text);
        let mut all = Vec::new();
        while !reader.text.is_empty() {
            let game = reader.game(rules).map_err(|error| BadTranscript { number: all.len() + 1, error })?;
            // What follows the last result may be a comment.
            if !game.tags.is_empty() || !game.game.turns().is_empty() {
                all.push(game);
            }
        }
        Ok(all)
    }

    /// Returns the rules that the tag Variant names. Abapa is another name of oware.
    pub fn variant(&self) -> Option<Rules> {
        let (_, name) = self.tags.iter().find(|(tag, _)| tag == VARIANT)?;
        let name = name.to_lowercase();
        Rules::by_name(if name == "abapa" { Rules::OWARE.name } else { &name })
    }

    /// Writes a game in the Oware Game Notation.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let rules = self.game.rules();
        if *rules != Rules::AWARI && self.tags.iter().all(|(tag, _)| tag != VARIANT) {
            let _ = writeln!(text, "[{VARIANT} \"{}\"]", rules.name);
        }
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
        // If North begins the game, South's first move is missing.
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

/// A tokenizer of transcripts.
struct TranscriptReader<'a> {
    text: &'a str,
}

impl<'a> TranscriptReader<'a> {
    fn new(text: &'a str) -> TranscriptReader<'a> {
        TranscriptReader { text: text.trim_start_matches('\u{feff}') }
    }

    /// Reads a game, up to its result or the tags of the next one.
    fn game(&mut self, rules: Rules) -> Result<Transcript, TranscriptError> {
        let mut tags = Vec::new();
        let mut start = None;
        while let Some((name, value)) = self.tag() {
            if name == "FEN" {
                start = Some(value.parse::<PositionText>().map_err(TranscriptError::Start)?);
            } else {
                tags.push((name, value));
            }
        }
        let mut game = start.map_or_else(|| Game::new(rules), |start| Game::from(rules, &start));
        while let Some(word) = self.word() {
            if is_result(word) {
                break;
            }
            play_all(&mut game, word)?;
        }
        Ok(Transcript { tags, game })
    }

    /// Reads a tag, if one is next.
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

    /// Reads the next word, skipping numbers, comments and variations; `None` at the end, or if a tag is next.
    fn word(&mut self) -> Option<&'a str> {
        loop {
            self.text = self.text.trim_start_matches(|c: char| c.is_whitespace() || c == ',' || c == '.');
            let first = self.text.chars().next()?;
            match first {
                '[' if TranscriptReader { text: self.text }.tag().is_some() => return None,
                '{' => self.skip_behind('}'),
                ';' => self.skip_behind('\n'),
                '(' => self.skip_variation(),
                _ => {
                    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '{' | '(' | ';');
                    let (word, rest) = self.text.split_at(self.text.find(ends).unwrap_or(self.text.len()));
                    // A bracket at the start is a word of its own.
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

/// Removes the number of a move from a word: `12.F4` becomes `F4`, `3...` becomes empty.
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

/// Plays a word, which may consist of several moves as engines write them: `FfDd`.
fn play_all(game: &mut Game, word: &str) -> Result<(), TranscriptError> {
    let mut rest = word;
    while !rest.is_empty() {
        let (written, after) = WrittenMove::first_of(rest).ok_or_else(|| TranscriptError::NoMove {
            after: game.turns().len(),
            found: rest.chars().take(FOUND_CHARACTERS_MAX).collect(),
        })?;
        written.play(game)?;
        rest = after;
    }
    Ok(())
}

/// Whether a word consists of moves, such as `F4`, `1.F4` or `FfBd`, legal or not.
pub fn is_moves(word: &str) -> bool {
    let mut rest = unnumbered(word);
    while let Some((_, after)) = WrittenMove::first_of(rest) {
        rest = after;
    }
    rest.is_empty()
}

/// A move as written: its pit, and optionally the stones sown and captured, as in `F`, `f4` or `B5x2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenMove<'a> {
    text: &'a str,
    named: MoveText,
    sown: Option<&'a str>,
    captured: Option<&'a str>,
}

impl<'a> WrittenMove<'a> {
    /// Reads a text that is one move.
    pub fn read(text: &'a str) -> Option<WrittenMove<'a>> {
        WrittenMove::first_of(text).filter(|(_, rest)| rest.is_empty()).map(|(written, _)| written)
    }

    /// The move at the start of a text, and what follows it.
    fn first_of(text: &'a str) -> Option<(WrittenMove<'a>, &'a str)> {
        let letter = text.chars().next()?;
        let named = text[..letter.len_utf8()].parse().ok()?;
        let (sown, rest) = number(&text[letter.len_utf8()..]);
        let (captured, rest) = match rest.strip_prefix(['x', 'X', '+', ':']) {
            Some(rest) => number(rest),
            None => (None, rest),
        };
        Some((WrittenMove { text: &text[..text.len() - rest.len()], named, sown, captured }, rest))
    }

    /// Plays the move, unless a number of stones differs from that of the board.
    ///
    /// # Errors
    /// The reason why the move cannot be played.
    pub fn play(&self, game: &mut Game) -> Result<GameTurn, TranscriptError> {
        let number = game.turns().len() + 1;
        let cut = |text: &str| text.chars().take(FOUND_CHARACTERS_MAX).collect::<String>();
        let found = cut(self.text);
        if number > MOVES_MAX {
            return Err(TranscriptError::TooLong);
        }
        let side = game.now().seats.side;
        if self.named.side != side {
            return Err(TranscriptError::Side { number, found, side });
        }
        let turn = game.play(self.named.pit).map_err(|reason| TranscriptError::Forbidden {
            number,
            found: found.clone(),
            reason,
        })?;
        let differs = |said: Option<&str>, is: u8| said.filter(|said| said.parse() != Ok(u32::from(is))).map(cut);
        let error = if let Some(expected) = differs(self.sown, turn.sown) {
            TranscriptError::Sown { number, found, pit: self.named, expected, is: turn.sown }
        } else if let Some(expected) = differs(self.captured, turn.captured) {
            TranscriptError::Captured { number, found, expected, is: turn.captured }
        } else {
            return Ok(turn);
        };
        game.take_back();
        Err(error)
    }
}

/// The digits at the start of a text, if there are any, and what follows them.
fn number(text: &str) -> (Option<&str>, &str) {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &text[..text.len() - rest.len()];
    ((!digits.is_empty()).then_some(digits), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variant_is_written_and_read() {
        for rules in Rules::KNOWN {
            let written = Transcript { tags: Vec::new(), game: Transcript::parse(rules, "F f").unwrap().game }.text();
            let read = Transcript::parse(rules, &written).unwrap();
            assert_eq!(read.variant().unwrap_or(Rules::AWARI), rules, "{written}");
            assert_eq!(read.text(), written);
        }
        let variant = |text| Transcript::parse(Rules::AWARI, text).unwrap().variant();
        assert_eq!(variant("[Variant \"Abapa\"] F"), Some(Rules::OWARE));
        assert_eq!(variant("[Variant \"Grand Slam\"] F"), None);
    }

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
    fn several_games_are_read_in_order() {
        let all = |text: &str| {
            let games = Transcript::parse_all(Rules::AWARI, text);
            games.map(|games| games.iter().map(moves).collect::<Vec<String>>()).map_err(|bad| bad.to_string())
        };
        let cases: [(&str, &[&str]); 7] = [
            ("", &[]),
            (" ; nothing\n{ }", &[]),
            ("F f", &["Ff"]),
            ("F f *\nE4 1-0 ; the end", &["Ff", "E"]),
            ("[Round \"1\"]\n\nF f\n\n[Round \"2\"]\n\n1. E e {x} 1/2-1/2\n\n[Round \"3\"]\n*\n", &["Ff", "Ee", ""]),
            ("\u{feff}[FEN \"4-4-4-4-4-4-4-4-4-4-4-4-0-0-N\"]\nf F [Round \"2\"] A", &["fF", "A"]),
            ("1. F f 2. B d 1... 0-1 [Round \"2\"] [Site \"[]\"] B", &["FfBd", "B"]),
        ];
        for (text, expected) in cases {
            assert_eq!(all(text).unwrap(), expected, "{text}");
        }
        let written = ["F f", "E"].map(|text| parse(text).unwrap().text() + "*\n\n").concat();
        assert_eq!(all(&written).unwrap(), ["Ff", "E"]);
        for (text, expected) in
            [("F f * F A *", "game 2: move 2"), ("[Event \"x\"] F [ f", "game 1: move 2"), ("* Z", "game 1: move 1")]
        {
            assert!(all(text).unwrap_err().starts_with(expected), "{text}");
        }
    }

    #[test]
    fn games_from_any_position_round_trip() {
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
    fn one_move_is_read_as_it_is_printed() {
        for text in ["F", "F4", "F4x0"] {
            let mut game = Game::new(Rules::AWARI);
            assert_eq!(WrittenMove::read(text).unwrap().play(&mut game).unwrap().text().to_string(), "F", "{text}");
        }
        let mut game = Game::new(Rules::AWARI);
        assert!(WrittenMove::read("F5").unwrap().play(&mut game).is_err());
        assert_eq!(game, Game::new(Rules::AWARI), "a refused move is not played");
        for text in ["", "F4f4", "F4 ", "4", "F4x2y", "é"] {
            assert_eq!(WrittenMove::read(text), None, "{text}");
        }
    }

    #[test]
    fn moves_are_distinguished_from_file_names() {
        for moves in ["F4", "FfBd", "F4x2f", "12.F4", "face"] {
            assert!(is_moves(moves), "{moves}");
        }
        for other in ["face.ogn", "game", "./F", "F/f", "F 4", "["] {
            assert!(!is_moves(other), "{other}");
        }
    }

    #[test]
    fn mistakes_are_reported_at_their_move() {
        let check = |text: &str, expect: &str| assert_eq!(parse(text).unwrap_err().to_string(), expect, "{text}");
        check("F4 F4", "move 2, `F4`: North is to move, with pits a to f");
        check("F4 f4 B5 d5 E6", "move 5: E6 says 6 stones, pit E holds 5");
        check("F4 f4x2", "move 2: f4x2 says that 2 stones are captured, the move captures 0");
        check("F1", "move 1: F1 says 1 stone, pit F holds 4");
        check("F4 f4x1", "move 2: f4x1 says that 1 stone is captured, the move captures 0");
        check("F4 e4 F", "move 3, `F`: pit F is empty");
        check("F4 what", "move 2: expected a move such as F, f4 or B5x2, found `what`");
        check(
            "[FEN \"4-4\"] F4",
            "the tag FEN: expected 12 numbers from A round to f, or 15 parts as in \
            `4-4-4-4-4-4-4-4-4-4-4-4-0-0-S`, found 2 separated by hyphens",
        );
        check("F99999999999999", "move 1: F99999999999999 says 99999999999999 stones, pit F holds 4");
        for strange in ["[", "[a", "[a \"", "{", "(", "((", "é", "F4 é", "\\", ")", "1.", "....", "[FEN \"\"]"] {
            let _ = parse(strange);
        }
    }
}
