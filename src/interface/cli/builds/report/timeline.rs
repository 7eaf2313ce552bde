//! The timeline of all runs: a lane for each kind of stage, and more where stages of a kind ran side by side.

use crate::text::quantity;
use chart::Picture;
use maud::{Markup, PreEscaped, html};
use pipeline::journal::{History, RunSpan, StageOutcome, StageSpan};

// Coordinates of the picture, which the page scales.
const WIDTH: f64 = 1300.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 1290.0;
const LANE: f64 = 22.0;
const TOP: f64 = 34.0;

/// The least gap between bars. A run may have thousands of stages; those closer together are drawn as one.
const GAP_MIN: f64 = 0.5;

/// A bar of a lane.
struct TimelineBar {
    begin: f64,
    end: f64,
    stages: u32,
    seconds: f64,
    what: String,
    class: &'static str,
}

/// Draws the timeline, without the time between runs.
pub(super) fn timeline(history: &History) -> Markup {
    let mut kinds: Vec<&str> = Vec::new();
    for stage in history.runs.iter().flat_map(|run| &run.stages) {
        if !kinds.contains(&stage.stage.kind()) {
            kinds.push(stage.stage.kind());
        }
    }
    let seconds: f64 = history.runs.iter().map(RunSpan::seconds).sum();
    if kinds.is_empty() || seconds <= 0.0 {
        return html! {};
    }
    let scale = (RIGHT - LEFT) / seconds;
    let mut starts = Vec::new();
    let mut before = 0.0;
    for run in &history.runs {
        starts.push((before, run));
        before += run.seconds();
    }
    let lanes: Vec<_> = kinds.iter().flat_map(|kind| lanes(&starts, kind)).collect();
    let bottom = TOP + LANE * lanes.len() as f64;
    let step = step(seconds);
    let mut picture = Picture::of_page("Stages over time", WIDTH, bottom + 24.0);
    let mut labelled = None;
    for (lane, stages) in lanes.iter().enumerate() {
        let y = TOP + LANE * lane as f64;
        let kind = stages.first().map(|(_, stage)| stage.stage.kind());
        if kind != labelled {
            picture.text((LEFT - 8.0, y + LANE * 0.68), "class=\"right\"", kind.unwrap_or_default(), "");
            labelled = kind;
        }
        picture.line((LEFT, y + LANE), (RIGHT, y + LANE), "class=\"grid\"");
        for bar in bars(stages, scale) {
            let size = ((bar.end - bar.begin).max(bar.width_min()), LANE - 6.0);
            picture.rect((bar.begin, y + 3.0), size, &format!("class=\"{}\"", bar.class), &bar.label());
        }
    }
    for tick in 0..=(seconds / step) as u32 {
        let x = LEFT + f64::from(tick) * step * scale;
        picture.line((x, TOP), (x, bottom), "class=\"grid\"");
        picture.text((x, bottom + 17.0), "class=\"middle\"", quantity::time(f64::from(tick) * step), "");
    }
    for (start, run) in &starts {
        let x = LEFT + start * scale;
        picture.line((x, TOP - 12.0), (x, bottom), "class=\"run\"");
        picture.text((x + 4.0, TOP - 14.0), "", format!("run {}", run.number), &run.command);
    }
    html! {
        figure.wide {
            figcaption { "Stages over time, run after run" }
            (PreEscaped(picture.finish()))
            p.legend {
                @for (class, name) in [("done", "done"), ("failed", "failed"), ("unfinished", "stopped, killed or running")] {
                    span { svg viewBox="0 0 10 10" { rect class=(class) width="10" height="10" {} } (name) }
                }
            }
        }
    }
}

/// The stages of a lane, each with the start of its run.
type LaneStages<'h> = Vec<(f64, &'h StageSpan)>;

/// Returns the lanes of a kind: as few as keep stages apart that ran side by side.
fn lanes<'h>(starts: &[(f64, &'h RunSpan)], kind: &str) -> Vec<LaneStages<'h>> {
    let mut lanes: Vec<LaneStages> = Vec::new();
    for &(start, run) in starts {
        for stage in run.stages.iter().filter(|stage| stage.stage.kind() == kind) {
            let is_free = |lane: &&mut LaneStages| {
                lane.last().is_none_or(|(before, last)| before + last.end_seconds <= start + stage.begin_seconds)
            };
            match lanes.iter_mut().find(is_free) {
                Some(lane) => lane.push((start, stage)),
                None => lanes.push(vec![(start, stage)]),
            }
        }
    }
    lanes
}

/// Returns the bars of a lane, with close ones merged.
fn bars(stages: &LaneStages, scale: f64) -> Vec<TimelineBar> {
    let mut bars: Vec<TimelineBar> = Vec::new();
    for &(start, stage) in stages {
        let bar = TimelineBar::new(stage, start, scale);
        match bars.last_mut() {
            Some(last) if last.class == bar.class && bar.begin - last.end < GAP_MIN => last.join(bar),
            _ => bars.push(bar),
        }
    }
    bars
}

impl TimelineBar {
    fn new(stage: &StageSpan, start: f64, scale: f64) -> TimelineBar {
        let (class, what) = match &stage.outcome {
            StageOutcome::Done(_) => ("done", String::new()),
            StageOutcome::Failed(message) => ("failed", format!(", failed: {message}")),
            StageOutcome::Unfinished => ("unfinished", ", not finished".to_owned()),
        };
        TimelineBar {
            begin: LEFT + (start + stage.begin_seconds) * scale,
            end: LEFT + (start + stage.end_seconds) * scale,
            stages: 1,
            seconds: stage.end_seconds - stage.begin_seconds,
            what: format!("{}{what}", stage.stage),
            class,
        }
    }

    fn join(&mut self, other: TimelineBar) {
        self.end = self.end.max(other.end);
        self.seconds += other.seconds;
        self.stages += other.stages;
        let first = self.what.split(" to ").next().unwrap_or_default();
        self.what = format!("{first} to {}", other.what);
    }

    /// Failed stages stay visible, however short.
    fn width_min(&self) -> f64 {
        if self.class == "done" { 0.4 } else { 3.0 }
    }

    fn label(&self) -> String {
        let many = if self.stages > 1 { format!(", {} stages", self.stages) } else { String::new() };
        format!("{}{many}, {}", self.what, quantity::time(self.seconds))
    }
}

/// Returns the time between marks: a round number of seconds, minutes, hours or days, for about eight marks.
fn step(seconds: f64) -> f64 {
    const STEPS: [f64; 19] = [
        0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14_400.0, 43_200.0,
        86_400.0, 259_200.0, 864_000.0,
    ];
    STEPS.into_iter().find(|step| seconds / step <= 10.0).unwrap_or(seconds / 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_of_short_stages_are_a_few_bars() {
        let stage = |number: u32| StageSpan {
            stage: format!("process:20:{}", number % 20 + 1).parse().unwrap(),
            reason: String::new(),
            begin_seconds: f64::from(number) * 0.01,
            end_seconds: f64::from(number + 1) * 0.01,
            outcome: StageOutcome::Unfinished,
        };
        let run = RunSpan {
            number: 1,
            command: "a <b>".into(),
            program: String::new(),
            host: String::new(),
            threads: 1,
            memory_bytes: 1,
            began_at: 0.0,
            last_at: 0.0,
            end: None,
            stages: (0..5000).map(stage).collect(),
        };
        let history = History { runs: vec![run], remarks: Vec::new() };
        let lanes = lanes(&[(0.0, &history.runs[0])], "process");
        assert_eq!(lanes.len(), 1, "one after the other");
        let bars = bars(&lanes[0], 20.0);
        assert_eq!((bars.len(), bars[0].stages), (1, 5000));
        let text = timeline(&history).into_string();
        assert!(text.contains("a &lt;b&gt;") && text.len() < 10_000, "{text}");
        assert_eq!(timeline(&History::default()).into_string(), "");
    }

    #[test]
    fn stages_side_by_side_have_lanes() {
        let span = |stage: &str, begin_seconds, end_seconds| StageSpan {
            stage: stage.parse().unwrap(),
            reason: String::new(),
            begin_seconds,
            end_seconds,
            outcome: StageOutcome::Unfinished,
        };
        let stages = vec![
            span("sweep:3", 0.0, 4.0),
            span("verify:2", 0.0, 1.0),
            span("sweep:4", 1.0, 3.0),
            span("sweep:5", 3.0, 5.0),
            span("verify:3", 4.0, 5.0),
        ];
        let run = RunSpan {
            number: 1,
            command: String::new(),
            program: String::new(),
            host: String::new(),
            threads: 2,
            memory_bytes: 1,
            began_at: 0.0,
            last_at: 5.0,
            end: None,
            stages,
        };
        let of_kind = |kind| {
            let names = |lane: &LaneStages| lane.iter().map(|(_, stage)| stage.stage.to_string()).collect::<Vec<_>>();
            lanes(&[(0.0, &run)], kind).iter().map(names).collect::<Vec<_>>()
        };
        assert_eq!(of_kind("sweep"), [vec!["sweep:3"], vec!["sweep:4", "sweep:5"]]);
        assert_eq!(of_kind("verify"), [["verify:2", "verify:3"]]);
        let text = timeline(&History { runs: vec![run.clone()], remarks: Vec::new() }).into_string();
        assert_eq!(text.matches(">sweep</text>").count(), 1, "{text}");
    }
}
