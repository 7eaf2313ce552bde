//! Writing to stdout and stderr without minding that nobody reads.

use crate::error::CliError;
use crate::screen::Width;
use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// Writes a result to stdout. A reader that has gone away has read enough.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(CliError::Stdout(error)),
        _ => Ok(()),
    }
}

/// Writes text for a person to stdout, wrapped to the terminal if there is one.
pub(crate) fn print_text(text: &str) -> Result<(), CliError> {
    print(&Width::stdout().wrap(text))
}

/// Writes a value to stdout as JSON, on lines of their own.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(CliError::Json)?;
    print(&(text + "\n"))
}

/// Text without characters that would command a terminal: what stands in a journal was written by whoever.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// Writes a line for a person to stderr, wrapped to the terminal if there is one.
pub(crate) fn say(text: impl Display) {
    say_unwrapped(Width::stderr().wrap(&text.to_string()));
}

/// Writes a line to stderr as it is, such as a command to be copied.
pub(crate) fn say_unwrapped(text: impl Display) {
    // There is nowhere left to complain.
    let _ = writeln!(std::io::stderr(), "{text}");
}
