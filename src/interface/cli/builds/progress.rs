//! The display of a run: a bar, plain lines, or events as JSON.

mod bar;
mod line;
mod pace;
mod plain;

pub(crate) use pace::{StagePace, run_line};

use crate::args::ProgressMode;
use crate::builds::progress::bar::BarObserver;
use crate::builds::progress::plain::PlainObserver;
use crate::output::print_json_line;
use crate::text::terminal::say;
use pipeline::{Event, Exit, Observer, SilentObserver};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// An observer that displays a run.
pub(crate) struct ProgressDisplay {
    observer: Box<dyn Observer>,
    /// Set when a write to stdout fails.
    is_lost: Arc<AtomicBool>,
}

impl ProgressDisplay {
    pub(crate) fn new(mode: ProgressMode) -> ProgressDisplay {
        let is_lost = Arc::default();
        let observer: Box<dyn Observer> = match mode {
            ProgressMode::Auto if std::io::stderr().is_terminal() => Box::new(BarObserver::new()),
            ProgressMode::Bar => Box::new(BarObserver::new()),
            ProgressMode::Auto | ProgressMode::Plain => Box::new(PlainObserver::new()),
            ProgressMode::Json => Box::new(JsonObserver { is_lost: Arc::clone(&is_lost) }),
            ProgressMode::None => Box::new(SilentObserver),
        };
        ProgressDisplay { observer, is_lost }
    }

    /// Clears the display. Returns whether all output was written.
    pub(crate) fn end(self) -> bool {
        !self.is_lost.load(Ordering::Acquire)
    }
}

impl Observer for ProgressDisplay {
    fn notice(&self, event: &Event) {
        self.observer.notice(event);
    }

    fn interval(&self) -> Duration {
        self.observer.interval()
    }
}

/// Returns the exit code of a command that displayed a run. Lost output is an error, unless `exit` is one already.
pub(crate) fn exit_of(exit: Exit, is_shown: bool) -> Exit {
    match exit {
        Exit::Done if !is_shown => Exit::PreflightFailed,
        exit => exit,
    }
}

/// Prints each event on stdout as one line of JSON.
struct JsonObserver {
    is_lost: Arc<AtomicBool>,
}

impl Observer for JsonObserver {
    fn notice(&self, event: &Event) {
        // After a partial line, another line would not parse.
        if self.is_lost.load(Ordering::Acquire) {
            return;
        }
        // The run continues without events.
        if let Err(error) = print_json_line(event)
            && !self.is_lost.swap(true, Ordering::AcqRel)
        {
            say(format_args!("awari: {error}; the run continues without printing events"));
        }
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(1)
    }
}
