//! Text for a terminal: stderr, and the removal of control characters.
//!
//! Journals, manifests, file names, headers and games are untrusted. All printed text goes through here or through
//! `output`; characters that move the cursor, colour or reorder text are replaced.

use crate::text::screen::Width;
use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;

/// Replaces control characters.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if text.contains(is_control) {
        text.chars().map(|c| if is_control(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether a character moves the cursor, colours or reorders text.
pub(crate) fn is_control(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Writes a line to stderr, wrapped to the width of the terminal.
pub(crate) fn say(text: impl Display) {
    say_unwrapped(Width::stderr().wrap(&text.to_string()));
}

/// Writes a line to stderr without wrapping, such as a command to copy.
pub(crate) fn say_unwrapped(text: impl Display) {
    say_controls(printable(&text.to_string()));
}

/// As [`say_unwrapped`], for trusted text with control characters.
pub(crate) fn say_controls(text: impl Display) {
    // A failure cannot be reported anywhere.
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        let text = "a\tb\n\u{1b}[31mred\r\u{7}\u{7f}\u{9b}2J\u{202e}cba\u{2066}\u{2028}ä";
        assert_eq!(printable(text), "a\tb\n�[31mred����2J�cba��ä");
        assert!(matches!(printable("plain ä\t\n"), Cow::Borrowed(_)));
    }
}
