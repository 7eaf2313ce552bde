//! Shows a run while it goes on: which way, and what all ways have in common.

use crate::args::ProgressMode;
use crate::bar::Bar;
use crate::output::print;
use crate::plain::Plain;
use crate::quantity;
use pipeline::forecast::Forecast;
use pipeline::{Event, Observer, Silent};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Whoever shows a run in this way.
pub(crate) fn observer(mode: ProgressMode) -> Box<dyn Observer> {
    match mode {
        ProgressMode::Auto if std::io::stderr().is_terminal() => Box::new(Bar::new()),
        ProgressMode::Bar => Box::new(Bar::new()),
        ProgressMode::Auto | ProgressMode::Plain => Box::new(Plain::new()),
        ProgressMode::Json => Box::new(Json),
        ProgressMode::None => Box::new(Silent),
    }
}

/// Prints each event on stdout, as a JSON object on a line of its own.
struct Json;

impl Observer for Json {
    fn notice(&self, event: &Event) {
        // Events are numbers and strings, which JSON can say; and a run does not end because nobody watches.
        if let Ok(line) = serde_json::to_string(event) {
            let _ = print(&(line + "\n"));
        }
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// Where a run is.
pub(crate) struct Place {
    begun: Instant,
    forecast: Forecast,
    number: usize,
    steps: usize,
}

impl Place {
    /// Before the start.
    pub(crate) fn new() -> Place {
        Place { begun: Instant::now(), forecast: Forecast::default(), number: 0, steps: 0 }
    }

    /// Takes notice of an event.
    pub(crate) fn follow(&mut self, event: &Event) {
        match event {
            Event::RunStarted { seconds, .. } => {
                *self = Place { forecast: Forecast::new(*seconds), ..Place::new() };
            }
            Event::StageStarted { number, steps, cost, .. } => {
                (self.number, self.steps) = (*number, *steps);
                self.forecast.begin(cost.seconds);
            }
            Event::StageDone { .. } => self.forecast.end(),
            _ => {}
        }
    }

    /// The stage at hand among all: `stage 12 of 52`.
    pub(crate) fn count(&self) -> String {
        format!("stage {} of {}", self.number, self.steps)
    }

    /// The time left for all stages, if so much of the one at hand is done: `12 s left`.
    pub(crate) fn left(&self, share: f64) -> String {
        let seconds = self.forecast.left(share, self.begun.elapsed().as_secs_f64());
        format!("{} left", quantity::about(seconds))
    }
}

/// The speed of a stage, once it can be told: `24.1 M/s`.
pub(crate) fn rate(done: u64, unit: &str, seconds: f64) -> Option<String> {
    let rate = done as f64 / seconds.max(1e-3);
    (done > 0).then(|| match unit {
        "" | "positions" => quantity::rate(rate),
        unit => format!("{} {unit}", quantity::rate(rate)),
    })
}

/// The share of a stage that is done.
pub(crate) fn share(done: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { done as f64 / total as f64 }
}

/// What a person wants to know of an event however progress is shown, if anything.
pub(crate) fn remark(event: &Event) -> Option<String> {
    match event {
        Event::Adopted { artifacts } => Some(match artifacts.as_slice() {
            [one] => format!("{one} was not in the journal: taken over on the word of its header"),
            many => format!("{} files were not in the journal: taken over on the word of their headers", many.len()),
        }),
        Event::JournalCut { bytes } => {
            Some(format!("a crash has torn the end of the journal: {bytes} bytes cut off, nothing is lost but time"))
        }
        Event::DamageFound { artifact, what } => Some(format!("damage in {artifact}: {what}")),
        Event::RunStarted { .. }
        | Event::StageStarted { .. }
        | Event::Progress { .. }
        | Event::StageDone { .. }
        | Event::StageStopped { .. }
        | Event::StageFailed { .. }
        | Event::Removed { .. }
        | Event::RunEnded { .. } => None,
    }
}
