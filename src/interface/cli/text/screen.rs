//! The width of output.

use console::{Term, measure_text_width};

/// The columns of a terminal of unknown width.
const COLUMNS_USUAL: usize = 80;

/// The target width of tables without a terminal.
const COLUMNS_PIPED: usize = 100;

/// The least width that is assumed for a terminal.
const COLUMNS_MIN: usize = 20;

/// The width of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Width {
    pub(crate) columns: usize,
    /// Whether text is wrapped, as on a terminal but not in files and pipes.
    pub(crate) wraps: bool,
}

impl Width {
    /// Returns the width of stdout.
    pub(crate) fn stdout() -> Width {
        Width::of(&Term::stdout())
    }

    /// Returns the width of stderr.
    pub(crate) fn stderr() -> Width {
        Width::of(&Term::stderr())
    }

    fn of(term: &Term) -> Width {
        if !term.is_term() {
            return Width { columns: COLUMNS_PIPED, wraps: false };
        }
        let columns = term.size_checked().map_or(COLUMNS_USUAL, |(_, columns)| columns.into());
        Width { columns: if columns < COLUMNS_MIN { COLUMNS_USUAL } else { columns }, wraps: true }
    }

    /// Wraps long lines at blanks and indents the continuations. Never breaks words, so that paths can be copied.
    pub(crate) fn wrap(self, text: &str) -> String {
        if !self.wraps {
            return text.to_owned();
        }
        let lines: Vec<String> = text.split('\n').map(|line| self.wrap_line(line)).collect();
        lines.join("\n")
    }

    fn wrap_line(self, line: &str) -> String {
        if measure_text_width(line) <= self.columns {
            return line.to_owned();
        }
        let indent = line.len() - line.trim_start_matches(' ').len();
        let hanging = " ".repeat((indent + 2).min(self.columns / 2));
        let (mut done, mut current) = (String::new(), String::new());
        // Blanks between words stay as they are.
        for word in line.split_inclusive(' ') {
            let is_full = measure_text_width(&current) + measure_text_width(word.trim_end()) > self.columns;
            if is_full && !current.trim().is_empty() {
                done.push_str(current.trim_end());
                done.push('\n');
                current = hanging.clone();
            }
            current.push_str(word);
        }
        done + current.trim_end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_at_blanks() {
        let check = |columns, text: &str, expected: &str| {
            assert_eq!(Width { columns, wraps: true }.wrap(text), expected);
        };
        check(20, "short\n\n  two\n", "short\n\n  two\n");
        check(20, "one two three four five six", "one two three four\n  five six");
        check(20, "  aaaa bbbb cccc dddd eeee", "  aaaa bbbb cccc\n    dddd eeee");
        check(20, "see /a/path/that/is/longer/than/that now", "see\n  /a/path/that/is/longer/than/that\n  now");
        let text = "one two three four five six";
        assert_eq!(Width { columns: 10, wraps: false }.wrap(text), text);
    }
}
