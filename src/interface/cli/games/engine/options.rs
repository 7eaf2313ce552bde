//! The options of the engine, `setoption name NAME value VALUE`.

use crate::args::{EngineArgs, TABLE_MIB_MIN};
use game::{HALF_PITS, Rules};
use oracle::Level;
use std::fmt::Write;

/// The largest size of the table, in mebibytes.
const HASH_MAX: u64 = 1 << 20;

/// The most threads.
const THREADS_MAX: usize = 256;

/// An empty string, as the protocol writes it.
const EMPTY: &str = "<empty>";

/// The values of the options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EngineOptions {
    pub(super) rules: Rules,
    /// Whether databases or a book are by these rules, so that no others can be set.
    pub(super) are_rules_fixed: bool,
    /// The size of the table, in mebibytes.
    pub(super) hash: u64,
    pub(super) threads: usize,
    /// The number of best moves that are shown.
    pub(super) lines: usize,
    pub(super) level: Level,
    /// Whether the reply names the expected move of the opponent.
    pub(super) ponders: bool,
    /// Whether positions that the book has are answered from it.
    pub(super) own_book: bool,
    /// The file of the book; empty if there is none, or if it is that of the command line.
    pub(super) book_file: String,
}

impl EngineOptions {
    pub(super) fn new(args: &EngineArgs, rules: Rules, are_rules_fixed: bool) -> EngineOptions {
        EngineOptions {
            rules,
            are_rules_fixed,
            hash: (args.table.hash.bytes() >> 20).clamp(TABLE_MIB_MIN, HASH_MAX),
            threads: args.table.threads().clamp(1, THREADS_MAX),
            lines: 1,
            level: args.level,
            ponders: false,
            own_book: true,
            book_file: String::new(),
        }
    }

    /// Describes the options, a line for each.
    pub(super) fn text(&self) -> String {
        let EngineOptions { rules, are_rules_fixed, hash, threads, lines, level, ponders, own_book, book_file } = self;
        let mut text = String::new();
        let choices = Rules::KNOWN.iter().filter(|known| !are_rules_fixed || *known == rules);
        let choices: Vec<String> = choices.map(|known| format!("var {}", known.name)).collect();
        let _ = writeln!(text, "option name Rules type combo default {} {}", rules.name, choices.join(" "));
        let _ = writeln!(text, "option name Hash type spin default {hash} min {TABLE_MIB_MIN} max {HASH_MAX}");
        let _ = writeln!(text, "option name Threads type spin default {threads} min 1 max {THREADS_MAX}");
        let _ = writeln!(text, "option name MultiPV type spin default {lines} min 1 max {HALF_PITS}");
        let levels: Vec<String> = Level::ALL.iter().map(|level| format!("var {level}")).collect();
        let _ = writeln!(text, "option name Level type combo default {level} {}", levels.join(" "));
        let _ = writeln!(text, "option name Ponder type check default {ponders}");
        let _ = writeln!(text, "option name OwnBook type check default {own_book}");
        let shown = if book_file.is_empty() { EMPTY } else { book_file };
        let _ = writeln!(text, "option name BookFile type string default {shown}");
        text
    }

    /// Sets the option of `name NAME value VALUE`.
    ///
    /// # Errors
    /// Why nothing was set.
    pub(super) fn set(&mut self, text: &str) -> Result<(), String> {
        let unknown = || {
            let text: String = text.chars().take(60).collect();
            format!(
                "there is no such option, or it has no value: {text}; expected name Rules, Hash, Threads, MultiPV, Level, Ponder, OwnBook or BookFile, and value VALUE"
            )
        };
        let (name, value) =
            text.trim().strip_prefix("name").and_then(|rest| rest.split_once(" value")).ok_or_else(unknown)?;
        let value = value.trim();
        match name.trim().to_lowercase().as_str() {
            "rules" => self.rules = self.chosen_rules(value)?,
            "hash" => self.hash = number("Hash", value, TABLE_MIB_MIN, HASH_MAX)?,
            "threads" => self.threads = number("Threads", value, 1, THREADS_MAX as u64)? as usize,
            "multipv" => self.lines = number("MultiPV", value, 1, HALF_PITS as u64)? as usize,
            "level" => self.level = value.parse().map_err(|error: oracle::LevelError| error.to_string())?,
            "ponder" => self.ponders = switch("Ponder", value)?,
            "ownbook" => self.own_book = switch("OwnBook", value)?,
            "bookfile" => self.book_file = if value == EMPTY { String::new() } else { value.to_owned() },
            _ => return Err(unknown()),
        }
        Ok(())
    }
}

impl EngineOptions {
    /// Returns the rules of a name, which are the present ones if these are fixed.
    fn chosen_rules(&self, name: &str) -> Result<Rules, String> {
        let rules = Rules::by_name(&name.to_lowercase()).ok_or_else(|| {
            format!(
                "Rules: there are no rules \"{name}\"; known are {}",
                Rules::KNOWN.map(|rules| rules.name).join(", ")
            )
        })?;
        if self.are_rules_fixed && rules != self.rules {
            Err(format!("Rules: the databases, or the book, are by the rules {}", self.rules.name))
        } else {
            Ok(rules)
        }
    }
}

fn switch(name: &str, value: &str) -> Result<bool, String> {
    value.parse().map_err(|_| format!("{name}: expected true or false"))
}

fn number(name: &str, value: &str, min: u64, max: u64) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| format!("{name}: expected a whole number within {min}..{max}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> EngineOptions {
        EngineOptions {
            rules: Rules::AWARI,
            are_rules_fixed: false,
            hash: 64,
            threads: 1,
            lines: 1,
            level: Level::Perfect,
            ponders: false,
            own_book: true,
            book_file: String::new(),
        }
    }

    #[test]
    fn options_are_set_or_refused() {
        let first = options();
        let mut options = first.clone();
        for text in [
            "name Rules value oware",
            "name Hash value 8",
            "name threads value 2",
            "name MultiPV value 6",
            "name Level value beginner",
            "name Ponder value true",
            "name OwnBook value false",
            "name BookFile value a file.sqlite",
        ] {
            options.set(text).unwrap();
        }
        let expected = EngineOptions {
            rules: Rules::OWARE,
            are_rules_fixed: false,
            hash: 8,
            threads: 2,
            lines: 6,
            level: Level::Beginner,
            ponders: true,
            own_book: false,
            book_file: "a file.sqlite".to_owned(),
        };
        assert_eq!(options, expected);
        for (text, part) in [
            ("name Rules value kalah", "there are no rules \"kalah\"; known are awari, "),
            ("name Hash value 3", "within 4.."),
            ("name Hash value 99999999999999999999", "within 4.."),
            ("name Threads value two", "within 1..256"),
            ("name MultiPV value 0", "within 1..6"),
            ("name Level value weak", "there is no level"),
            ("name Ponder value maybe", "true or false"),
            ("name OwnBook value yes", "OwnBook: expected true or false"),
            ("name Book value true", "no such option"),
            ("name Hash", "no such option"),
            ("", "no such option"),
        ] {
            let refused = options.set(text).unwrap_err();
            assert!(refused.contains(part), "{text}: {refused}");
        }
        assert_eq!(options, expected);
        // Every option that is described can be set to its default.
        for line in first.text().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!((words[0], words[1], words[5]), ("option", "name", "default"));
            options.set(&format!("name {} value {}", words[2], words[6])).unwrap();
        }
        assert_eq!(options, first);
    }

    #[test]
    fn rules_of_databases_stay() {
        let mut options = EngineOptions { are_rules_fixed: true, ..options() };
        assert!(options.text().contains("option name Rules type combo default awari var awari\n"));
        assert!(options.set("name Rules value oware").unwrap_err().contains("by the rules awari"));
        assert_eq!(options.set("name Rules value awari"), Ok(()));
        assert_eq!(options.rules, Rules::AWARI);
    }
}
