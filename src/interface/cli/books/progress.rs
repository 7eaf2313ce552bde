//! Lines of progress of long commands.

use crate::text::terminal::say;
use disk::{Stopwatch, SystemClock};

/// The time between two lines.
const SECONDS_BETWEEN_LINES: f64 = 10.0;

/// Prints lines of progress at most every ten seconds.
pub(super) struct ProgressLines {
    watch: Stopwatch<'static>,
    /// The time of the last line, in seconds.
    shown: f64,
}

impl ProgressLines {
    pub(super) fn new() -> ProgressLines {
        ProgressLines { watch: Stopwatch::start(&SystemClock), shown: 0.0 }
    }

    /// Prints a line, unless the last one was printed less than ten seconds ago.
    pub(super) fn show(&mut self, line: impl FnOnce() -> String) {
        let seconds = self.watch.elapsed().as_secs_f64();
        if seconds - self.shown >= SECONDS_BETWEEN_LINES {
            self.shown = seconds;
            say(line());
        }
    }
}
