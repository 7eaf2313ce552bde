//! Results on stdout: text and JSON. A closed pipe is not an error.

use crate::error::{CliError, Result};
use crate::text::screen::Width;
use crate::text::terminal::{is_control, printable};
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};

/// Writes text to stdout.
pub(crate) fn print(text: &str) -> Result<()> {
    print_controls(&printable(text))
}

/// As [`print`], for trusted text with control characters.
pub(crate) fn print_controls(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).or_else(ignore_closed_pipe).map_err(CliError::Stdout)
}

/// Writes text to stdout, wrapped to the width of the terminal.
pub(crate) fn print_text(text: &str) -> Result<()> {
    print(&Width::stdout().wrap(text))
}

/// Writes a value to stdout as indented JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<()> {
    print_escaped(serde_json::to_string_pretty(value))
}

/// Writes a value to stdout as JSON on one line.
pub(crate) fn print_json_line(value: &impl serde::Serialize) -> Result<()> {
    print_escaped(serde_json::to_string(value))
}

fn print_escaped(json: serde_json::Result<String>) -> Result<()> {
    let json = json.map_err(CliError::Json)?;
    if json.contains(is_control) {
        // Control characters occur only in strings, where JSON has escapes for them.
        let mut escaped = String::with_capacity(json.len());
        for c in json.chars() {
            if is_control(c) { _ = write!(escaped, "\\u{:04x}", u32::from(c)) } else { escaped.push(c) }
        }
        return print_controls(&(escaped + "\n"));
    }
    print_controls(&(json + "\n"))
}

/// Ignores the error of a closed pipe.
pub(crate) fn ignore_closed_pipe(error: io::Error) -> io::Result<()> {
    if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}
