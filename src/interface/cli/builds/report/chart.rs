//! Charts by number of stones: lines or stacks.

use crate::text::quantity::plural;
use maud::{Markup, html};

// Coordinates of the picture, which the page scales.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 630.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 218.0;

/// The most grid lines.
const TICKS: f64 = 5.0;

/// A value for each number of stones, where there is one.
pub(super) struct ChartSeries {
    pub(super) name: &'static str,
    pub(super) values: Vec<Option<f64>>,
}

/// The form of a chart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChartStyle {
    /// A line for each series.
    Lines,
    /// Series stacked on each other.
    Stacks,
}

/// The kind of values, which decides which of them are round.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChartUnit {
    /// Seconds, positions: powers of ten.
    Decimal,
    /// Bytes: powers of two.
    Bytes,
}

/// Draws a chart over the stones 0, 1, 2 and so on. `show` formats a value; `limit` is a horizontal line.
pub(super) fn chart(
    title: &str,
    series: &[ChartSeries],
    style: ChartStyle,
    unit: ChartUnit,
    show: impl Fn(f64) -> String,
    limit: Option<(&str, f64)>,
) -> Markup {
    let count = series.iter().map(|series| series.values.len()).max().unwrap_or(0);
    let at = |series: &ChartSeries, stones: usize| series.values.get(stones).copied().flatten();
    let height = |stones: usize| -> f64 {
        let values = series.iter().filter_map(|series| at(series, stones));
        if style == ChartStyle::Stacks { values.sum() } else { values.fold(0.0, f64::max) }
    };
    let highest = (0..count).map(height).fold(limit.map_or(0.0, |(_, value)| value), f64::max);
    if count == 0 || highest <= 0.0 {
        return html! {};
    }
    let step = step(highest, unit);
    let top = (highest / step).ceil() * step;
    let width = (RIGHT - LEFT) / count as f64;
    let x = |stones: f64| LEFT + width * (stones + 0.5);
    let y = |value: f64| BOTTOM - (BOTTOM - TOP) * value / top;
    let label_every = (count as f64 * 26.0 / (RIGHT - LEFT)).ceil() as usize;
    html! {
        figure {
            figcaption { (title) }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(title) {
                @for tick in 0..=(top / step).round() as u32 {
                    @let value = f64::from(tick) * step;
                    line.grid x1=(LEFT) x2=(RIGHT) y1=(number(y(value))) y2=(number(y(value))) {}
                    text.right x=(LEFT - 6.0) y=(number(y(value) + 4.0)) { (show(value)) }
                }
                @for stones in (0..count).step_by(label_every.max(1)) {
                    text.middle x=(number(x(stones as f64))) y=(BOTTOM + 16.0) { (stones) }
                }
                text.right x=(RIGHT) y=(HEIGHT - 6.0) { "stones" }
                @if let Some((name, value)) = limit {
                    line.limit x1=(LEFT) x2=(RIGHT) y1=(number(y(value))) y2=(number(y(value))) {}
                    text.limit x=(LEFT + 6.0) y=(number((y(value) - 5.0).max(TOP + 10.0))) { (name) " " (show(value)) }
                }
                @match style {
                    ChartStyle::Stacks => {
                        @for stones in 0..count {
                            @let tops = running(series.iter().map(|series| at(series, stones).unwrap_or(0.0)));
                            @for (number_of, (from, to)) in tops.into_iter().enumerate() {
                                @if to > from {
                                    rect class={ "fill" (number_of) } x=(number(x(stones as f64) - width * 0.38)) y=(number(y(to)))
                                        width=(number(width * 0.76)) height=(number(y(from) - y(to))) {
                                        title { (plural(stones as u64, "stone")) ", " (series[number_of].name) ": " (show(to - from)) }
                                    }
                                }
                            }
                        }
                    }
                    ChartStyle::Lines => {
                        @for (number_of, series) in series.iter().enumerate() {
                            @let points: Vec<(usize, f64)> = (0..count).filter_map(|stones| Some((stones, at(series, stones)?))).collect();
                            polyline class={ "line" (number_of) } points=(points.iter().map(|(stones, value)| {
                                format!("{},{}", number(x(*stones as f64)), number(y(*value)))
                            }).collect::<Vec<_>>().join(" ")) {}
                            @for (stones, value) in points {
                                circle class={ "fill" (number_of) } cx=(number(x(stones as f64))) cy=(number(y(value))) r="2.6" {
                                    title { (plural(stones as u64, "stone")) ", " (series.name) ": " (show(value)) }
                                }
                            }
                        }
                    }
                }
            }
            (legend(series.iter().map(|series| series.name)))
        }
    }
}

/// Draws the legend.
pub(super) fn legend<'a>(names: impl Iterator<Item = &'a str>) -> Markup {
    html! {
        p.legend {
            @for (number, name) in names.enumerate() {
                span { svg viewBox="0 0 10 10" { rect class={ "fill" (number) } width="10" height="10" {} } (name) }
            }
        }
    }
}

/// Formats a coordinate, to a hundredth.
pub(super) fn number(value: f64) -> String {
    format!("{value:.2}")
}

/// Returns the begin and end of each value of a stack.
fn running(values: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
    let mut end = 0.0;
    let pair = |value: f64| {
        let begin = end;
        end += value;
        (begin, end)
    };
    values.map(pair).collect()
}

/// Returns the distance of grid lines: 1, 2 or 5 times a power of ten, or a power of two.
fn step(highest: f64, unit: ChartUnit) -> f64 {
    if unit == ChartUnit::Bytes {
        return 2f64.powf((highest / TICKS).log2().ceil());
    }
    let power = 10f64.powf((highest / TICKS).log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| highest / step <= TICKS).unwrap_or(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grid_lines_are_few_and_round() {
        for highest in [0.003, 1.0, 7.0, 12.0, 49.9, 1e9] {
            let step = step(highest, ChartUnit::Decimal);
            let bytes = self::step(highest, ChartUnit::Bytes);
            assert!(highest / bytes <= TICKS && bytes.log2().fract() == 0.0);
            assert!((1.0..=TICKS).contains(&(highest / step)), "{highest} {step}");
        }
    }

    #[test]
    fn a_chart_without_values_is_empty() {
        let series = [ChartSeries { name: "x", values: vec![None, Some(0.0)] }];
        assert_eq!(
            chart("t", &series, ChartStyle::Lines, ChartUnit::Decimal, |value| value.to_string(), None).into_string(),
            ""
        );
        let series = [ChartSeries { name: "<x>", values: vec![None, Some(2.0)] }];
        for style in [ChartStyle::Lines, ChartStyle::Stacks] {
            let text = chart("t", &series, style, ChartUnit::Bytes, |value| format!("{value} B"), Some(("limit", 3.0)))
                .into_string();
            assert!(text.contains("&lt;x&gt;: 2 B") && text.contains("limit 3 B"), "{text}");
        }
    }
}
