//! Progress as plain lines: one for each stage that is done, and one every few seconds.

use crate::output::say;
use crate::progress::{Pace, Place, remark};
use crate::quantity;
use pipeline::{Budget, Event, Observer};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Says lines.
pub(crate) struct Plain {
    place: Mutex<Place>,
}

impl Plain {
    /// Before the start.
    pub(crate) fn new() -> Plain {
        Plain { place: Mutex::new(Place::new()) }
    }
}

impl Observer for Plain {
    fn notice(&self, event: &Event) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.follow(event);
        if let Some(line) = remark(event).or_else(|| line(event, &place)) {
            say(line);
        }
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(5)
    }
}

fn line(event: &Event, place: &Place) -> Option<String> {
    match event {
        Event::RunStarted { directory, counts, seconds, .. } => Some(format!(
            "{}: {counts}; about {}",
            directory.display(),
            quantity::about(*seconds)
        )),
        Event::Progress { stage, reading, seconds } => {
            let mut parts = Pace::of_event(reading, *seconds).words();
            parts.push(place.count());
            parts.extend(place.left(reading.at_hand(), *seconds));
            Some(format!("{stage}: {}", parts.join(", ")))
        }
        Event::StageDone { stage, measured, bytes } => {
            let mut parts = vec![format!("done in {}", quantity::time(measured.wall_seconds))];
            parts.extend(measured.rate().map(quantity::rate));
            if *bytes > 0 {
                parts.push(Budget::show(*bytes));
            }
            parts.push(place.count());
            Some(format!("{stage}: {}", parts.join(", ")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::{Cost, Counts, Reading, Reason};

    #[test]
    fn lines_say_how_far_it_is() {
        let mut place = Place::new();
        let stage = "sweep:9".parse().unwrap();
        place.follow(&Event::RunStarted {
            directory: "x".into(),
            run: 1,
            steps: 4,
            counts: Counts::default(),
            seconds: 100.0,
        });
        place.follow(&Event::StageStarted {
            stage: "sweep:9".parse().unwrap(),
            reason: Reason::Forced,
            number: 2,
            steps: 4,
            cost: Cost { seconds: 40.0, ..Cost::default() },
        });
        let reading = Reading { done: 1_000_000, total: 4_000_000, unit: "positions", ..Reading::default() };
        let event = Event::Progress { stage, reading, seconds: 0.5 };
        let expected = "sweep:9: 25 %, 2.0 M/s, 2 s left, stage 2 of 4, 1 min 30 s left in all";
        assert_eq!(line(&event, &place).unwrap(), expected);
    }
}
