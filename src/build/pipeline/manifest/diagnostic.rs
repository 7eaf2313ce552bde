//! Mistakes in a manifest, each with its location.

use std::fmt;
use std::ops::Range;

/// The largest number of mistakes that are reported. Each costs a search of the text for its line.
pub const DIAGNOSTICS_MAX: usize = 50;

/// A mistake in a manifest or on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The text that contains it.
    pub origin: Origin,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The byte range of the mistake in the text.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

/// The origin of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The manifest of this name.
    File(String),
    /// The argument `KEY=VALUE` of `--set`.
    Set(String),
    /// An option, such as `--memory`, that sets a key.
    Option(&'static str),
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::File(name) => write!(f, "{name}:{}:{}: ", self.line, self.column)?,
            Origin::Set(argument) => write!(f, "--set {}: ", shown(argument))?,
            Origin::Option(name) => write!(f, "{name}: ")?,
        }
        write!(f, "{}", self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// Returns the start of an untrusted text, on one line.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(80).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Returns the line and column, from 1, of a byte of a text, or of the end of the text.
pub(crate) fn position(text: &str, byte: usize) -> (usize, usize) {
    let byte = text.floor_char_boundary(byte.min(text.len()));
    let before = &text[..byte];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::position;

    #[test]
    fn positions_count_characters() {
        let text = "a\näö x\n";
        let check = |byte, expect| assert_eq!(position(text, byte), expect, "{byte}");
        check(0, (1, 1));
        check(1, (1, 2));
        check(2, (2, 1));
        check(3, (2, 1)); // inside of ä
        check(4, (2, 2));
        check(7, (2, 4));
        check(9, (3, 1));
        check(99, (3, 1));
    }
}
