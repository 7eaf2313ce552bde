//! Warnings that libraries leave with `tracing`, as lines of stderr.

use crate::output::say;
use std::fmt::{self, Write};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Shows warnings from now on.
pub(crate) fn show() {
    // Only fails if somebody else has taken the place, and then they show them.
    let _ = tracing::subscriber::set_global_default(Lines);
}

/// Shows warnings and errors; knows no spans.
struct Lines;

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::from("warning:"));
        event.record(&mut line);
        say(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let name = match field.name() {
            "message" => String::new(),
            name => format!("{name} = "),
        };
        let _ = write!(self.0, " {name}{value:?}");
    }
}
