//! Writing to stdout and stderr without minding that nobody reads, and without a character that commands a terminal.
//!
//! Journals, manifests, file names, headers and games were written by anyone. Whatever is printed goes through here, and
//! characters of theirs that move a cursor, colour or reorder what a person sees are replaced.

use crate::error::CliError;
use crate::screen::Width;
use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::{self, ErrorKind, Write};

/// Writes a result to stdout. A reader that has gone away has read enough.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    print_commands(&printable(text))
}

/// As [`print`], with characters that command the terminal: those of the program itself, and no text of anyone else.
pub(crate) fn print_commands(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).or_else(gone).map_err(CliError::Stdout)
}

/// No error, if it is that the reader has gone away.
pub(crate) fn gone(error: io::Error) -> io::Result<()> {
    if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}

/// Writes text for a person to stdout, wrapped to the terminal if there is one.
pub(crate) fn print_text(text: &str) -> Result<(), CliError> {
    print(&Width::stdout().wrap(text))
}

/// Writes a value to stdout as JSON, on lines of their own.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), CliError> {
    print_escaped(serde_json::to_string_pretty(value))
}

/// Writes a value to stdout as JSON on one line.
pub(crate) fn print_json_line(value: &impl serde::Serialize) -> Result<(), CliError> {
    print_escaped(serde_json::to_string(value))
}

fn print_escaped(json: serde_json::Result<String>) -> Result<(), CliError> {
    let json = json.map_err(CliError::Json)?;
    if json.contains(is_command) {
        // They stand in strings, all of them: JSON has the same string in other characters.
        let mut escaped = String::with_capacity(json.len());
        for c in json.chars() {
            match is_command(c) {
                true => _ = write!(escaped, "\\u{:04x}", u32::from(c)),
                false => escaped.push(c),
            }
        }
        return print_commands(&(escaped + "\n"));
    }
    print_commands(&(json + "\n"))
}

/// Text without characters that command a terminal.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    match text.contains(is_command) {
        true => text.chars().map(|c| if is_command(c) { char::REPLACEMENT_CHARACTER } else { c }).collect(),
        false => Cow::Borrowed(text),
    }
}

/// Whether a character moves a cursor, colours, or changes the order in which others are seen.
pub(crate) fn is_command(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Writes a line for a person to stderr, wrapped to the terminal if there is one.
pub(crate) fn say(text: impl Display) {
    say_unwrapped(Width::stderr().wrap(&text.to_string()));
}

/// Writes a line to stderr as it is, such as a command to be copied.
pub(crate) fn say_unwrapped(text: impl Display) {
    say_commands(printable(&text.to_string()));
}

/// As [`say_unwrapped`], with characters that command the terminal: those of the program itself, and no text of anyone else.
pub(crate) fn say_commands(text: impl Display) {
    // There is nowhere left to complain.
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_to_a_terminal_are_replaced() {
        let text = "a\tb\n\u{1b}[31mred\r\u{7}\u{7f}\u{9b}2J\u{202e}cba\u{2066}\u{2028}ä";
        assert_eq!(printable(text), "a\tb\n�[31mred����2J�cba��ä");
        assert!(matches!(printable("plain ä\t\n"), Cow::Borrowed(_)));
    }
}
