//! The file of a match: its games in the Oware Game Notation, each appended when it ends.
//!
//! The tags of a game are `Event`, in the first game of the file those that record the match, `Round` (the
//! pair and the game of the pair, from 1), `South`, `North`, `Result` and `Termination`. Behind the moves
//! stand the result and an empty line. The bytes of a game follow from these, so that a game is accepted only
//! if writing it again gives the same bytes.
//!
//! A match goes on with the games of a file that records the same match. An unfinished game at the end, which
//! a loss of power leaves, is cut off and played again. Any other content is refused and kept.

use super::game::{FinishedGame, recorded};
use super::{result, seats};
use crate::error::{CliError, Result};
use crate::text::terminal::say;
use ::game::Rules;
use ::game::play::Game;
use ::game::transcript::Transcript;
use disk::{DiskError, Operation, RecordFile};
use std::fmt::Write;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The longest text of a game, in bytes: the commands of both engines, and 500 moves.
const GAME_BYTES_MAX: u64 = 1 << 20;

/// The tag of the pair and the game of the pair.
const ROUND: &str = "Round";

/// The tag of the reason why a game ended.
const TERMINATION: &str = "Termination";

/// The tag of the rules.
const VARIANT: &str = "Variant";

/// A tag that every first game has, whatever the options of the match.
const ENGINE: &str = "Engine1";

/// What the games of a match have in common.
pub(super) struct MatchIdentity {
    pub(super) rules: Rules,
    pub(super) names: [String; 2],
    /// The number of pairs.
    pub(super) pairs: usize,
    /// The tags of the first game that record the match: a match goes on only if all are the same.
    pub(super) tags: Vec<(&'static str, String)>,
}

/// The place of a game in its match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct GamePlace {
    pub(super) pair: usize,
    /// The game of the pair, 0 or 1.
    pub(super) number: usize,
}

/// The games of a match in a file.
pub(super) struct MatchFile {
    file: RecordFile,
    path: PathBuf,
    identity: MatchIdentity,
    is_empty: bool,
}

/// The next game of a file.
enum GameText {
    /// Up to the empty line behind its result.
    Whole(Vec<u8>),
    /// A beginning, at the end of the file.
    Cut(Vec<u8>),
}

impl MatchFile {
    /// Takes over the games of a file, and passes them on.
    pub(super) fn resume(
        file: RecordFile,
        path: &Path,
        identity: MatchIdentity,
        mut take: impl FnMut(GamePlace, FinishedGame) -> bool,
    ) -> Result<MatchFile> {
        let mut resumed = MatchFile { file, path: path.to_path_buf(), identity, is_empty: true };
        let (mut kept, mut games) = (0, 0u64);
        let (mut cut, mut unended) = (None, None);
        let mut reader = BufReader::new(resumed.file.reader());
        let failed = |source| DiskError::from_io(Operation::Read, path, source);
        while let Some(text) = next_game(&mut reader).map_err(failed)? {
            match text {
                GameText::Whole(bytes) => {
                    let is_first = games == 0;
                    let read = std::str::from_utf8(&bytes).ok().and_then(|text| resumed.identity.read(text, is_first));
                    if !read.is_some_and(|(place, game)| take(place, game)) {
                        let difference = resumed.identity.difference(&bytes, is_first);
                        let changed = || format!("has a game {} that is not as the match wrote it", games + 1);
                        return Err(resumed.refused(difference.unwrap_or_else(changed)));
                    }
                    kept += bytes.len() as u64;
                    games += 1;
                }
                GameText::Cut(bytes) if resumed.identity.is_beginning(&bytes, games == 0) => {
                    let text = String::from_utf8_lossy(&bytes);
                    match resumed.identity.finished(&text, games == 0) {
                        None => cut = Some(bytes.len()),
                        Some((rest, place, game)) if rest.trim_matches(['\n', '\0']).is_empty() => {
                            if !take(place, game.clone()) {
                                return Err(resumed.refused(format!("has game {} twice", games + 1)));
                            }
                            unended = Some(resumed.identity.text(place, &game, games == 0));
                        }
                        Some(_) => {
                            let what = format!("has something behind game {} that the match did not write", games + 1);
                            return Err(resumed.refused(what));
                        }
                    }
                }
                GameText::Cut(bytes) => {
                    let difference = resumed.identity.difference(&bytes, games == 0);
                    let other = || "holds something else than games of a match".to_owned();
                    return Err(resumed.refused(difference.unwrap_or_else(other)));
                }
            }
        }
        drop(reader);
        resumed.is_empty = games == 0 && unended.is_none();
        if let Some(text) = unended {
            resumed.file.cut(kept)?;
            resumed.file.append(text.as_bytes())?;
        }
        if let Some(bytes) = cut {
            resumed.file.cut(kept)?;
            say(format_args!(
                "{}: an unfinished game of {} at its end is played again",
                path.display(),
                disk::bytes(bytes as u64)
            ));
        }
        Ok(resumed)
    }

    /// Appends a game. When this returns, the game is durable.
    pub(super) fn append(&mut self, place: GamePlace, game: &FinishedGame) -> Result<(), DiskError> {
        let text = self.identity.text(place, game, self.is_empty);
        self.file.append(text.as_bytes())?;
        self.is_empty = false;
        Ok(())
    }

    fn refused(&self, what: String) -> CliError {
        CliError::OtherGames { path: self.path.clone(), what }
    }
}

impl MatchIdentity {
    /// Returns the tags before the round.
    fn first_tags(&self, is_first: bool) -> Vec<(String, String)> {
        let record = if is_first { &self.tags[..] } else { &[] };
        let event = ("Event".to_owned(), "awari match".to_owned());
        let record = record.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        std::iter::once(event).chain(record).collect()
    }

    /// Formats a game.
    fn text(&self, GamePlace { pair, number }: GamePlace, game: &FinishedGame, is_first: bool) -> String {
        let [south, north] = seats(number).map(|at| self.names[at].clone());
        let mut tags = self.first_tags(is_first);
        let mut tag = |name: &str, value: String| tags.push((name.to_owned(), value));
        tag(ROUND, format!("{}.{}", pair + 1, number + 1));
        tag("South", south);
        tag("North", north);
        tag("Result", result(game).to_owned());
        tag(TERMINATION, game.reason.clone());
        let mut text = Transcript { tags, game: game.game.clone() }.text();
        let _ = write!(text, "{}\n\n", result(game));
        text
    }

    /// Reads a game that [`text`](Self::text) has written.
    fn read(&self, text: &str, is_first: bool) -> Option<(GamePlace, FinishedGame)> {
        let transcript = Transcript::parse(self.rules, text).ok()?;
        let tag = |name: &str| transcript.tags.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
        let (round, reason) = (tag(ROUND)?, tag(TERMINATION)?);
        let (pair, number) = round.split_once('.')?;
        let index = |from_one: &str| from_one.parse::<usize>().ok()?.checked_sub(1);
        let place = GamePlace { pair: index(pair)?, number: index(number)? };
        let is_place = place.pair < self.pairs && place.number < 2;
        let game = recorded(transcript.game, &reason).filter(|_| is_place)?;
        (self.text(place, &game, is_first) == text).then_some((place, game))
    }

    /// Reads the finished game with which a text begins, if it lacks at most the empty line at its end.
    /// Returns it with the text behind it.
    fn finished<'t>(&self, text: &'t str, is_first: bool) -> Option<(&'t str, GamePlace, FinishedGame)> {
        let ends = text.match_indices(['\n', '\0']).map(|(end, _)| end).chain([text.len()]);
        let finished = |end: usize| {
            let (place, game) = self.read(&format!("{}\n\n", &text[..end]), is_first)?;
            Some((&text[end..], place, game))
        };
        ends.into_iter().find_map(finished)
    }

    /// Whether bytes are the beginning of a game of this match, whatever stands behind the tags that games
    /// have in common.
    fn is_beginning(&self, bytes: &[u8], is_first: bool) -> bool {
        let tags = Transcript { tags: self.first_tags(is_first), game: Game::new(self.rules) }.text();
        let expected = tags.trim_end().as_bytes();
        // After a loss of power the end of a file may be zeros.
        let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
        let found = &bytes[..bytes.len() - zeros];
        let common = expected.len().min(found.len());
        found[..common] == expected[..common]
    }

    /// Returns the first tag of a game that differs from those of this match.
    fn difference(&self, bytes: &[u8], is_first: bool) -> Option<String> {
        let text = String::from_utf8_lossy(bytes);
        // Other rules may forbid the moves.
        let tags = text.split_once("\n\n").map_or(&*text, |(tags, _)| tags);
        let found = Transcript::parse(self.rules, tags).ok()?;
        let tag = |name: &str| found.tags.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        if is_first && tag(ENGINE).is_none() {
            return Some("holds games that are not of a match with a record".to_owned());
        }
        let rules = Some(found.variant().unwrap_or(Rules::AWARI).name);
        let ours = self.tags.iter().filter(|_| is_first).map(|(name, value)| (*name, tag(name), value.as_str()));
        let ours = std::iter::once((VARIANT, rules, self.rules.name)).chain(ours);
        let differs = ours.into_iter().find(|(_, found, expected)| *found != Some(*expected));
        differs.map(|(name, found, expected)| {
            let found = found.unwrap_or("absent");
            format!("is of another match: its tag {name} is `{found}`, and that of this match `{expected}`")
        })
    }
}

/// Reads the next game.
fn next_game(reader: &mut impl BufRead) -> io::Result<Option<GameText>> {
    let (mut text, mut is_behind_result) = (Vec::new(), false);
    loop {
        let start = text.len();
        let left = GAME_BYTES_MAX.saturating_sub(start as u64);
        reader.by_ref().take(left).read_until(b'\n', &mut text)?;
        let line = &text[start..];
        if line.is_empty() && left == 0 {
            // No game, and not the unfinished end of a file.
            return Ok(Some(GameText::Whole(text)));
        } else if line.is_empty() {
            return Ok((!text.is_empty()).then_some(GameText::Cut(text)));
        }
        if line == b"\n" && is_behind_result {
            return Ok(Some(GameText::Whole(text)));
        }
        is_behind_result = [&b"1-0\n"[..], b"0-1\n", b"1/2-1/2\n"].contains(&line);
    }
}
