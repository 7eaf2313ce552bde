//! Text notation of games.
//!
//! ```text
//! [White "..."]                      tags of the Oware Game Notation; FEN is the position to begin with
//! [FEN "4-4-4-4-4-4-4-4-4-4-4-4-0-0-S"]
//!
//! 1. F f 2. B d                      moves by their pits, A to F for South, a to f for North
//! [Variant "oware"]                  the name of the rules; it is written unless they are those of awari
//! F4 f4 B5 d5 E7x2                   with the stones sown, and what they capture
//! 1. F4! f4 $2 {a comment} (2. A a)  numbers, marks, comments and variations are passed over
//! 1-0                                the result, after which another game may follow
//! ```
//!
//! Written numbers of stones and captures are compared with the board, so that a mistake is found where it was made.

use crate::board::Illegal;
use crate::notation::{MoveText, NotationError, PositionText, Side};
use crate::play::{Game, GameTurn};
use crate::rules::Rules;
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
    /// A comment or a variation does not end.
    #[error("the {what} that begins here does not end")]
    Unclosed { what: &'static str },
    /// The rules are unknown.
    #[error("the tag Variant: there are no rules \"{found}\"; known are {}", variants())]
    Variant { found: String },
    /// Another game follows.
    #[error("another game follows its result, and one is expected")]
    Another,
    /// The text has too many moves.
    #[error("the game has more than {MOVES_MAX} moves, which is not supported")]
    TooLong,
}

/// A mistake in a text of games.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("game {number}{}: {error}", line.map_or_else(String::new, |line| format!(", line {line}")))]
pub struct BadTranscript {
    /// The game, from 1.
    pub number: usize,
    /// The line, from 1, of a text of several lines.
    pub line: Option<usize>,
    /// The mistake.
    pub error: TranscriptError,
}

/// Another name of the rules of oware.
const ABAPA: &str = "abapa";

/// The names that a tag Variant may have.
fn variants() -> String {
    Rules::KNOWN.map(|rules| rules.name).join(", ") + " and " + ABAPA
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
    /// Reads the only game of a text; one without moves if the text is empty.
    ///
    /// # Errors
    /// The first mistake, with the number of moves before it; a second game is one.
    pub fn parse(rules: Rules, text: &str) -> Result<Transcript, TranscriptError> {
        let mut games = Transcript::games(rules, text);
        let first = games.next().unwrap_or_else(|| Ok(Transcript::empty(rules))).map_err(|bad| bad.error)?;
        match games.next() {
            None => Ok(first),
            Some(Ok(_)) => Err(TranscriptError::Another),
            Some(Err(bad)) => Err(bad.error),
        }
    }

    /// Returns the games of a text, one after the other, up to the first mistake. Each ends with its result,
    /// or before the tags of the next.
    pub fn games(rules: Rules, text: &str) -> Transcripts<'_> {
        Transcripts { reader: TranscriptReader::new(text), rules: Some(rules), number: 0 }
    }

    /// As [`games`](Self::games), each by the rules that its tag Variant names, or else by those of awari.
    pub fn games_by_variant(text: &str) -> Transcripts<'_> {
        Transcripts { reader: TranscriptReader::new(text), rules: None, number: 0 }
    }

    /// Returns a game without tags and moves.
    pub fn empty(rules: Rules) -> Transcript {
        Transcript { tags: Vec::new(), game: Game::new(rules) }
    }

    /// Returns the rules that the tag Variant names. Abapa is another name of oware.
    pub fn variant(&self) -> Option<Rules> {
        let (_, name) = self.tags.iter().find(|(tag, _)| tag == VARIANT)?;
        variant(name)
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

/// Returns the rules of a name, as in a tag Variant. Abapa is another name of oware.
pub fn variant(name: &str) -> Option<Rules> {
    let name = name.to_lowercase();
    Rules::by_name(if name == ABAPA { Rules::OWARE.name } else { &name })
}

/// The games of a text, read one at a time.
#[derive(Clone, Debug)]
pub struct Transcripts<'a> {
    reader: TranscriptReader<'a>,
    /// Those of the tag Variant if there are none.
    rules: Option<Rules>,
    /// The games so far.
    number: usize,
}

impl Iterator for Transcripts<'_> {
    type Item = Result<Transcript, BadTranscript>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.reader.text.is_empty() {
            match self.reader.game(self.rules) {
                // What follows the last result may be a comment.
                Ok(None) => {}
                Ok(Some(game)) => {
                    self.number += 1;
                    return Some(Ok(game));
                }
                Err(error) => {
                    let line = self.reader.line();
                    self.reader.text = "";
                    return Some(Err(BadTranscript { number: self.number + 1, line, error }));
                }
            }
        }
        None
    }
}

/// A tokenizer of transcripts.
#[derive(Clone, Debug)]
struct TranscriptReader<'a> {
    all: &'a str,
    /// The end of `all` that has not been read.
    text: &'a str,
    /// The bytes of `all` before the last word, tag, comment or variation.
    begin: usize,
}

impl<'a> TranscriptReader<'a> {
    fn new(text: &'a str) -> TranscriptReader<'a> {
        let all = text.trim_start_matches('\u{feff}');
        TranscriptReader { all, text: all, begin: 0 }
    }

    /// Notes that a word, tag, comment or variation begins here.
    fn begin(&mut self) {
        self.begin = self.all.len() - self.text.len();
    }

    /// Returns the line of the last word, tag, comment or variation, if there are several lines.
    fn line(&self) -> Option<usize> {
        let lines = |text: &str| text.bytes().filter(|&byte| byte == b'\n').count();
        (lines(self.all.trim_end()) > 0).then(|| 1 + lines(&self.all[..self.begin]))
    }

    /// Reads a game, up to its result or the tags of the next one. Returns `None` if it has no tags and no moves.
    fn game(&mut self, rules: Option<Rules>) -> Result<Option<Transcript>, TranscriptError> {
        let mut tags = Vec::new();
        let (mut start, mut named) = (None, None);
        while let Some((name, value)) = self.tag() {
            if name == "FEN" {
                start = Some(value.parse::<PositionText>().map_err(TranscriptError::Start)?);
                continue;
            }
            if name == VARIANT {
                let rules = variant(&value).ok_or_else(|| TranscriptError::Variant {
                    found: value.chars().take(FOUND_CHARACTERS_MAX).collect(),
                })?;
                named.get_or_insert(rules);
            }
            tags.push((name, value));
        }
        let is_tagged = start.is_some() || !tags.is_empty();
        let rules = rules.or(named).unwrap_or(Rules::AWARI);
        let mut game = start.map_or_else(|| Game::new(rules), |start| Game::from(rules, &start));
        while let Some(word) = self.word()? {
            if is_result(word) {
                break;
            }
            play_all(&mut game, word)?;
        }
        Ok((is_tagged || !game.turns().is_empty()).then_some(Transcript { tags, game }))
    }

    /// Reads a tag, if one is next.
    fn tag(&mut self) -> Option<(String, String)> {
        let bracket = self.text.trim_start();
        let inside = bracket.strip_prefix('[')?;
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
        let rest = characters.as_str().trim_start().strip_prefix(']')?;
        self.text = bracket;
        self.begin();
        self.text = rest;
        Some((name.to_owned(), value))
    }

    /// Reads the next word, skipping numbers, marks, comments and variations; `None` at the end, or if a tag is next.
    fn word(&mut self) -> Result<Option<&'a str>, TranscriptError> {
        loop {
            self.text = self.text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | '.' | '!' | '?'));
            let Some(first) = self.text.chars().next() else { return Ok(None) };
            if first == '[' && self.clone().tag().is_some() {
                return Ok(None);
            }
            self.begin();
            match first {
                '{' => self.skip_behind('}').ok_or(TranscriptError::Unclosed { what: "comment" })?,
                ';' => self.skip_behind('\n').unwrap_or_default(),
                '(' => self.skip_variation()?,
                _ => {
                    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '{' | '(' | ';' | '$');
                    let length = first.len_utf8();
                    // A character that ends words is one of its own at their start.
                    let end = self.text[length..].find(ends).map_or(self.text.len(), |end| length + end);
                    let (word, rest) = self.text.split_at(end);
                    self.text = rest;
                    let word = unnumbered(word);
                    if !word.is_empty() && !is_glyph(word) {
                        return Ok(Some(word));
                    }
                }
            }
        }
    }

    /// Skips up to and with a character. Returns `None`, at the end of the text, if there is none.
    fn skip_behind(&mut self, end: char) -> Option<()> {
        let rest = self.text.split_once(end).map(|(_, rest)| rest);
        self.text = rest.unwrap_or("");
        rest.map(drop)
    }

    /// Skips a variation, which may hold comments and other variations.
    fn skip_variation(&mut self) -> Result<(), TranscriptError> {
        let unclosed = TranscriptError::Unclosed { what: "variation" };
        let mut depth = 0usize;
        while let Some(first) = self.text.chars().next() {
            match first {
                '{' => self.skip_behind('}').ok_or_else(|| unclosed.clone())?,
                ';' => self.skip_behind('\n').ok_or_else(|| unclosed.clone())?,
                _ => self.text = &self.text[first.len_utf8()..],
            }
            match first {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
        Err(unclosed)
    }
}

/// Whether a word is a mark of a move by its number, such as `$1`.
fn is_glyph(word: &str) -> bool {
    word.strip_prefix('$').is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
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

/// A move as written: its pit, and optionally the stones sown and captured, as in `F`, `f4` or `B5x2`. Marks
/// such as `!` and `?!` may follow it.
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
        let text = &text[..text.len() - rest.len()];
        Some((WrittenMove { text, named, sown, captured }, rest.trim_start_matches(['!', '?'])))
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
        let variant = |text| Transcript::parse(Rules::AWARI, text).map(|game| game.variant());
        assert_eq!(variant("[Variant \"Abapa\"] F"), Ok(Some(Rules::OWARE)));
        assert_eq!(variant("F"), Ok(None));
        let games = Transcript::games_by_variant("[Variant \"Abapa\"] F 1-0 [Event \"x\"] F");
        let rules: Vec<Rules> = games.map(|game| *game.unwrap().game.rules()).collect();
        assert_eq!(rules, [Rules::OWARE, Rules::AWARI]);
        let refused = variant("[Variant \"Kalah\"] F").unwrap_err().to_string();
        assert!(refused.starts_with("the tag Variant: there are no rules \"Kalah\"; known are awari, "), "{refused}");
        assert!(Rules::KNOWN.iter().all(|rules| refused.contains(rules.name)) && refused.ends_with(" and abapa"));
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
            "[Event \"a \\\"b\\\" c\"]\n[Site \"?\"]\n\n1. F f\n2. B d\n1/2-1/2 ; the end",
            "\u{feff}F4x0, f4, B5+0, d5:0",
            "1. F! f?? 2. B5!?$14 $2 d ?! 25-23 {resigns (}",
            "F!f?B!!d (2... a {:-) (} b $1 ; )\n (c)) $139",
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
            let games: Result<Vec<Transcript>, BadTranscript> = Transcript::games(Rules::AWARI, text).collect();
            games.map(|games| games.iter().map(moves).collect::<Vec<String>>()).map_err(|bad| bad.to_string())
        };
        let cases: [(&str, &[&str]); 8] = [
            ("", &[]),
            (" ; nothing\n{ }", &[]),
            ("F f", &["Ff"]),
            ("F f *\nE4 1-0 ; the end", &["Ff", "E"]),
            ("[Round \"1\"]\n\nF f\n\n[Round \"2\"]\n\n1. E e {x} 1/2-1/2\n\n[Round \"3\"]\n*\n", &["Ff", "Ee", ""]),
            ("\u{feff}[FEN \"4-4-4-4-4-4-4-4-4-4-4-4-0-0-N\"]\nf F [Round \"2\"] A", &["fF", "A"]),
            ("1. F f 2. B d 1... 0-1 [Round \"2\"] [Site \"[]\"] B", &["FfBd", "B"]),
            ("[FEN \"4-4-4-4-4-4-4-4-4-4-4-4-0-0-N\"] * F *", &["", "F"]),
        ];
        for (text, expected) in cases {
            assert_eq!(all(text).unwrap(), expected, "{text}");
            let only = parse(text).map(|game| moves(&game));
            match expected {
                [] => assert_eq!(only, Ok(String::new()), "{text}"),
                [game] => assert_eq!(only, Ok((*game).to_owned()), "{text}"),
                _ => assert_eq!(only, Err(TranscriptError::Another), "{text}"),
            }
        }
        let written = ["F f", "E"].map(|text| parse(text).unwrap().text() + "*\n\n").concat();
        assert_eq!(all(&written).unwrap(), ["Ff", "E"]);
        for (text, expected) in [
            ("F f * F A *", "game 2: move 2, `A`: "),
            ("[Event \"x\"] F [ f", "game 1: move 2: expected a move"),
            ("* Z", "game 1: move 1: "),
            ("F f\n1-0\n\ngarbage", "game 2, line 4: move 1: expected a move such as F, f4 or B5x2, found `garbage`"),
            ("F\r\nf *\r\n[Variant \"x\"]\r\nF", "game 2, line 3: the tag Variant: "),
            ("\n[FEN \"1\"]\n", "game 1, line 2: the tag FEN: "),
            ("F f *\n\nE {no end *\n\nE e *\n", "game 2, line 3: the comment that begins here does not end"),
            ("F\n(f {) } *\n", "game 1, line 2: the variation that begins here does not end"),
            ("F f $", "game 1: move 3: "),
            ("F f $x *", "game 1: move 3: "),
            ("F f )", "game 1: move 3: "),
        ] {
            let bad = all(text).unwrap_err();
            assert!(bad.starts_with(expected), "{text}: {bad}");
            assert!(parse(text).is_err(), "{text}");
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
        for text in ["F", "F4", "F4x0", "F4!?"] {
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
        for moves in ["F4", "FfBd", "F4x2f", "12.F4", "face", "F4!f?!"] {
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
