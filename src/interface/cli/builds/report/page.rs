//! The page: tables and charts without external resources.

use super::chart::{ChartSeries, ChartStyle, ChartUnit, chart};
use super::timeline::timeline;
use crate::books::book_summary::BookSummary;
use crate::builds::observed_run::ObservedRun;
use crate::builds::summary::{DatabaseSummary, HEADINGS, TEXT_HEADINGS};
use crate::text::quantity;
use check::Statistics;
use disk::clock;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use pipeline::Budget;
use pipeline::journal::{Contents, History, Measured, RunEnd, RunSpan, StageOutcome, StageSpan};
use pipeline::status::RunState;
use stages::{Phase, kinds};

const STYLE: &str = include_str!("page.css");

/// The maximum number of messages on the page; older ones are omitted.
const REMARKS_MAX: usize = 50;

/// The data of the page.
pub(super) fn page(seen: &ObservedRun, history: &History, journal: &Contents, statistics: &[Statistics]) -> Markup {
    let dir = seen.status.directory.display().to_string();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "awari: " (dir) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "Endgame databases of awari" }
                    p { code { (dir) } ", as of " (clock::utc(clock::now_seconds())) }
                }
                (figures(seen, history))
                section {
                    h2 { "Runs" }
                    (runs(seen, history))
                    (timeline(history))
                }
                section {
                    h2 { "Databases" }
                    (databases(seen))
                }
                @if let Some(book) = BookSummary::new(&seen.status) {
                    section {
                        h2 { "Opening book" }
                        p { (book) "." }
                    }
                }
                (charts(history))
                @if !statistics.is_empty() {
                    section {
                        h2 { "Scores" }
                        figure.wide.paper { (PreEscaped(inline(&check::svg(statistics)))) }
                        (scores(statistics))
                    }
                }
                (remarks(history, journal))
            }
        }
    }
}

/// Removes the XML namespace, which an inline SVG does not need.
fn inline(svg: &str) -> String {
    svg.replacen(r#" xmlns="http://www.w3.org/2000/svg""#, "", 1)
}

/// Renders the most important numbers.
fn figures(seen: &ObservedRun, history: &History) -> Markup {
    let done: Vec<&Measured> = done(history).map(|(_, measured)| measured).collect();
    let sum = |figure: fn(&Measured) -> f64| done.iter().map(|measured| figure(measured)).sum::<f64>();
    let peak = done.iter().filter_map(|measured| measured.memory_peak_bytes).max();
    let databases =
        seen.status.artifacts.iter().filter(|artifact| artifact.artifact.as_str().starts_with("databases/"));
    let (count, bytes) = databases.fold((0, 0), |(count, bytes), artifact| (count + 1, bytes + artifact.bytes));
    let figures = [
        ("databases", quantity::grouped(count)),
        ("bytes of databases", Budget::show(bytes)),
        ("time of stages", quantity::time(sum(|measured| measured.wall_seconds))),
        ("processor time", quantity::time(sum(|measured| measured.cpu_seconds))),
        ("peak memory", peak.map_or_else(|| "-".to_owned(), quantity::mebibytes)),
        ("read", Budget::show(sum(|measured| measured.read_bytes.unwrap_or(0) as f64) as u64)),
        ("written", Budget::show(sum(|measured| measured.written_bytes.unwrap_or(0) as f64) as u64)),
    ];
    html! {
        dl.figures {
            @for (name, value) in figures {
                div { dt { (name) } dd { (value) } }
            }
        }
    }
}

fn runs(seen: &ObservedRun, history: &History) -> Markup {
    let going_on = seen.status.run.as_ref().filter(|run| run.state == RunState::Running).map(|run| run.number);
    if history.runs.is_empty() {
        return html! { p { "The journal records no run." } };
    }
    let row = |run: &RunSpan| {
        let done = run.stages.iter().filter(|stage| matches!(stage.outcome, StageOutcome::Done(_))).count();
        let end = match &run.end {
            Some(RunEnd::Done) => "done".to_owned(),
            Some(RunEnd::Stopped) => "stopped on request".to_owned(),
            Some(RunEnd::Failed(message)) => format!("failed: {message}"),
            None if going_on == Some(run.number) => "going on".to_owned(),
            None => "killed".to_owned(),
        };
        html! {
            tr {
                td.right { (run.number) }
                td { (clock::utc(run.began_at as u64)) }
                td.right { @if run.end.is_none() { "at least " } (quantity::time(run.seconds())) }
                td.right { (done) }
                td { (end) }
                td.right { (run.threads) }
                td.right { (Budget::show(run.memory_bytes)) }
                td { (run.host) }
                td.command { code { (run.command) } }
            }
        }
    };
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th.right { "run" } th { "began" } th.right { "took" } th.right { "stages" } th { "end" }
                        th.right { "threads" } th.right { "memory" } th { "machine" } th { "command" }
                    }
                }
                tbody { @for run in &history.runs { (row(run)) } }
            }
        }
    }
}

fn databases(seen: &ObservedRun) -> Markup {
    let Some(request) = &seen.request else {
        return html! { p { "There is no manifest.toml, so the databases of the build are unknown." } };
    };
    let summary = DatabaseSummary::new(request.settings(), &seen.status);
    if summary.is_empty() {
        return html! { p { "No database is finished." } };
    }
    html! {
        (table(&HEADINGS, &TEXT_HEADINGS, summary.rows()))
        p { (summary.published()) "." }
    }
}

/// Renders the distributions of scores.
fn scores(statistics: &[Statistics]) -> Markup {
    let mut rows = check::table_rows(statistics).into_iter();
    let headings = rows.next().unwrap_or_default();
    table(&headings.each_ref().map(String::as_str), &[], rows)
}

/// Renders a table. Columns hold numbers, except those of the headings in `texts`.
fn table<R: IntoIterator<Item = String>>(
    headings: &[&str],
    texts: &[&str],
    rows: impl IntoIterator<Item = R>,
) -> Markup {
    let is_number: Vec<bool> = headings.iter().map(|heading| !texts.contains(heading)).collect();
    html! {
        div.scroll {
            table {
                thead {
                    tr { @for (heading, &is_number) in headings.iter().zip(&is_number) { th.right[is_number] { (heading) } } }
                }
                tbody {
                    @for row in rows {
                        tr { @for (cell, &is_number) in row.into_iter().zip(&is_number) { td.right[is_number] { (cell) } } }
                    }
                }
            }
        }
    }
}

/// Returns every finished execution of a stage.
fn done(history: &History) -> impl Iterator<Item = (&StageSpan, &Measured)> {
    let stages = history.runs.iter().flat_map(|run| &run.stages);
    stages.filter_map(|stage| match &stage.outcome {
        StageOutcome::Done(measured) => Some((stage, &**measured)),
        _ => None,
    })
}

fn charts(history: &History) -> Markup {
    let stones_of = |stage: &StageSpan| stage.stage.parameters().first().map(|&stones| stones as usize);
    let phases: Vec<Phase> = Phase::ALL.iter().copied().filter(|phase| phase.is_of_databases()).collect();
    let is_of = |stage: &StageSpan, phase| kinds::phase(&stage.stage) == Some(phase);
    let done = |history| done(history).filter(|(stage, _)| !is_of(stage, Phase::Book));
    let count = done(history).filter_map(|(stage, _)| stones_of(stage)).max().map_or(0, |stones| stones + 1);
    // Sums over the stages of a phase, including repeated ones.
    let sums = |phase: Phase, figure: &dyn Fn(&Measured) -> f64| {
        let mut sums = vec![None; count];
        for (stage, measured) in done(history).filter(|(stage, _)| is_of(stage, phase)) {
            if let Some(stones) = stones_of(stage) {
                *sums[stones].get_or_insert(0.0) += figure(measured);
            }
        }
        sums
    };
    let series = |figure: &dyn Fn(&Measured) -> f64| -> Vec<ChartSeries> {
        phases.iter().map(|&phase| ChartSeries { name: phase.word(), values: sums(phase, figure) }).collect()
    };
    // The positions of a database count once, however many passes its stages make.
    let rate = |phase: Phase| -> Vec<Option<f64>> {
        let mut most = vec![0u64; count];
        for (stage, measured) in done(history).filter(|(stage, _)| is_of(stage, phase)) {
            if let Some(stones) = stones_of(stage) {
                most[stones] = most[stones].max(measured.report.positions);
            }
        }
        let seconds = sums(phase, &|measured| measured.wall_seconds);
        let rate = |(most, seconds): (u64, Option<f64>)| seconds.filter(|s| *s > 0.0).map(|s| most as f64 / s);
        most.into_iter().zip(seconds).map(rate).collect()
    };
    let mut peaks = vec![None; count];
    for (stage, measured) in done(history) {
        if let (Some(stones), Some(peak)) = (stones_of(stage), measured.memory_peak_bytes) {
            peaks[stones] = Some(f64::max(peaks[stones].unwrap_or(0.0), peak as f64));
        }
    }
    let budget = history.runs.last().map(|run| run.memory_bytes as f64);
    // A memory limit far above the measured use would flatten the bars.
    let highest = peaks.iter().flatten().copied().fold(0.0, f64::max);
    let budget = budget.filter(|budget| *budget <= 4.0 * highest);
    let bytes = |value: f64| Budget::show(value as u64);
    let rated = phases.iter().filter(|&&phase| phase != Phase::Statistics);
    let rates: Vec<ChartSeries> = rated.map(|&phase| ChartSeries { name: phase.word(), values: rate(phase) }).collect();
    let traffic = |name, figure: fn(&Measured) -> Option<u64>| {
        let mut values = vec![None; count];
        for (stage, measured) in done(history) {
            if let (Some(stones), Some(bytes)) = (stones_of(stage), figure(measured)) {
                *values[stones].get_or_insert(0.0) += bytes as f64;
            }
        }
        ChartSeries { name, values }
    };
    let traffic =
        [traffic("read", |measured| measured.read_bytes), traffic("written", |measured| measured.written_bytes)];
    html! {
        section {
            h2 { "Time, memory and disk" }
            div.charts {
                (chart("Wall-clock time", &series(&|measured| measured.wall_seconds), ChartStyle::Stacks, ChartUnit::Decimal, quantity::time, None))
                (chart("Positions a second", &rates, ChartStyle::Lines, ChartUnit::Decimal, quantity::rate, None))
                (chart("Peak of memory", &[ChartSeries { name: "resident", values: peaks }], ChartStyle::Stacks, ChartUnit::Bytes, bytes,
                    budget.map(|budget| ("budget", budget))))
                (chart("Bytes read and written, without mapped files", &traffic, ChartStyle::Stacks, ChartUnit::Bytes, bytes, None))
            }
        }
    }
}

fn remarks(history: &History, journal: &Contents) -> Markup {
    let mut lines = Vec::new();
    for (bytes, what) in [
        (journal.torn_bytes, "at the end of the journal torn by a crash; the next run removes them"),
        (journal.damaged_bytes, "inside the journal damaged, and skipped"),
    ] {
        if bytes > 0 {
            lines.push(format!("{} {what}", quantity::plural(bytes, "byte")));
        }
    }
    if journal.fenced > 0 {
        lines.push(format!(
            "{} records of a run that had lost the directory to another run are ignored",
            journal.fenced
        ));
    }
    let skipped = history.remarks.len().saturating_sub(REMARKS_MAX);
    html! {
        section {
            h2 { "Failures and damage" }
            @if lines.is_empty() && history.remarks.is_empty() {
                p { "No stage failed, and no file was found damaged." }
            }
            ul {
                @for line in &lines { li { (line) } }
                @if skipped > 0 { li { (skipped) " earlier messages are omitted" } }
                @for remark in &history.remarks[skipped..] {
                    li.bad[remark.is_bad] { (clock::utc(remark.at)) " " (remark.what) }
                }
            }
        }
    }
}
