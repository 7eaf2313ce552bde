//! Charts by number of stones: lines or stacks.

use crate::text::quantity::plural;
use chart::{Frame, Picture, round_step};
use maud::{Markup, PreEscaped, html};

// The picture, which the page scales.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 260.0;
const FRAME: Frame = Frame { left: 78.0, right: 630.0, top: 12.0, bottom: 218.0 };

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
    let column = |stones: usize| (stones as f64 + 0.5) / count as f64;
    let (x, y) = (|stones| FRAME.x(column(stones)), |value| FRAME.y(value / top));
    let width = (FRAME.right - FRAME.left) / count as f64;
    let label_every = (26.0 / width).ceil() as usize;
    let tip = |stones: usize, name: &str, value| format!("{}, {name}: {}", plural(stones as u64, "stone"), show(value));
    let mut picture = Picture::of_page(title, WIDTH, HEIGHT);
    let ticks = (0..=(top / step).round() as u32).map(|tick| f64::from(tick) * step);
    FRAME.grid(&mut picture, ticks.map(|value| (value / top, show(value))));
    FRAME.labels(&mut picture, (0..count).step_by(label_every.max(1)).map(|stones| (column(stones), stones)));
    picture.text((FRAME.right, HEIGHT - 6.0), "class=\"right\"", "stones", "");
    if let Some((name, value)) = limit {
        picture.line((FRAME.left, y(value)), (FRAME.right, y(value)), "class=\"limit\"");
        // Above the line, or below it where there is no room.
        let beside = if y(value) < FRAME.top + 17.0 { y(value) + 14.0 } else { y(value) - 5.0 };
        picture.text((FRAME.left + 6.0, beside), "class=\"limit\"", format!("{name} {}", show(value)), "");
    }
    match style {
        ChartStyle::Stacks => {
            for stones in 0..count {
                let mut from = 0.0;
                for (number, series) in series.iter().enumerate() {
                    let to = from + at(series, stones).unwrap_or(0.0);
                    if to > from {
                        let (corner, size) = ((x(stones) - width * 0.38, y(to)), (width * 0.76, y(from) - y(to)));
                        let tip = tip(stones, series.name, to - from);
                        picture.rect(corner, size, &format!("class=\"fill{number}\""), &tip);
                    }
                    from = to;
                }
            }
        }
        ChartStyle::Lines => {
            for (number, series) in series.iter().enumerate() {
                let points: Vec<_> = (0..count).filter_map(|stones| Some((stones, at(series, stones)?))).collect();
                let curve = points.iter().map(|&(stones, value)| (x(stones), y(value)));
                picture.curve(curve, &format!("class=\"line{number}\""));
                for (stones, value) in points {
                    let look = format!("class=\"fill{number}\"");
                    picture.circle((x(stones), y(value)), 2.6, &look, &tip(stones, series.name, value));
                }
            }
        }
    }
    html! {
        figure {
            figcaption { (title) }
            (PreEscaped(picture.finish()))
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

/// Returns the distance of grid lines: 1, 2 or 5 times a power of ten, or a power of two.
fn step(highest: f64, unit: ChartUnit) -> f64 {
    if unit == ChartUnit::Bytes {
        return 2f64.powf((highest / TICKS).log2().ceil());
    }
    round_step(highest, TICKS)
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

    /// The limit is the highest value, at the top, or in the middle.
    #[test]
    fn the_label_of_a_limit_is_not_on_its_line() {
        let number = |text: &str, key: &str| -> f64 {
            let rest = text.split(key).nth(1).unwrap();
            rest[..rest.find('"').unwrap()].parse().unwrap()
        };
        for (value, limit) in [(2.0, 4.0), (4.0, 2.0)] {
            let series = [ChartSeries { name: "x", values: vec![Some(value)] }];
            let show = |value: f64| format!("{value} B");
            let limit = Some(("limit", limit));
            let text = chart("t", &series, ChartStyle::Stacks, ChartUnit::Bytes, show, limit).into_string();
            let element = |name: &str| {
                let is_limit = |part: &&str| part.starts_with(name) && part.contains("class=\"limit\"");
                text.split('<').find(is_limit).unwrap()
            };
            let (line, label) = (number(element("line"), "y1=\""), number(element("text"), " y=\""));
            // The letters are about 10 high.
            assert!(label < line || label - 10.0 > line, "the label at {label}, the line at {line}");
        }
    }
}
