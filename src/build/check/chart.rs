//! A chart of the distribution of scores: the stacked histogram of Romein & Bal 2002, figure 3.
//!
//! The x axis is the score of the player to move, the y axis the share of positions of all databases. Each bar is a
//! stack of the databases: those with few stones are light and at the bottom, those with many are dark. The SVG is
//! self-contained.

use crate::report::{self, total};
use crate::{Histogram, ScoreShares, Statistics};
use game::quantity::plural;
use std::fmt::Write;

// The picture, in pixels.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 850.0;
const TOP: f64 = 76.0;
const BOTTOM: f64 = 496.0;

/// Lower segments are invisible, and omitted.
const SEGMENT_HEIGHT_MIN: f64 = 0.02;

/// The largest number of names in the legend.
const LEGEND_NAMES_MAX: usize = 25;

/// The largest number of grid lines.
const TICKS_MAX: f64 = 8.0;

/// Draws the distribution of scores of all databases.
pub fn svg(databases: &[Statistics]) -> String {
    let all = total(databases);
    let positions = all.total().max(1) as f64;
    let score_max = databases.iter().map(Statistics::stones).max().unwrap_or(0);
    let score_max = i8::try_from(score_max.max(1)).unwrap_or(i8::MAX);
    let scale = Scale {
        bar: (RIGHT - LEFT) / (2.0 * f64::from(score_max) + 1.0),
        score_max,
        share_max: all.scores().map(|(_, positions_here)| positions_here as f64 / positions).fold(0.01, f64::max)
            * 1.05,
    };
    let mut text = String::new();
    head(&mut text, databases, &all);
    axes(&mut text, &scale);
    for score in -score_max..=score_max {
        bar(&mut text, &scale, databases, score, positions);
    }
    legend(&mut text, databases);
    text.push_str("</svg>\n");
    text
}

/// The scales of the axes.
struct Scale {
    bar: f64,
    score_max: i8,
    share_max: f64,
}

impl Scale {
    fn x(&self, score: i8) -> f64 {
        LEFT + self.bar * f64::from(i16::from(score) + i16::from(self.score_max))
    }

    fn y(&self, share: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * share / self.share_max
    }

    /// Returns the shares of the grid lines: steps of 1, 2 or 5 times a power of ten.
    fn ticks(&self) -> Vec<f64> {
        let step = (-5..=0)
            .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)))
            .find(|step| self.share_max / step <= TICKS_MAX)
            .unwrap_or(1.0);
        (0..=(self.share_max / step) as u32).map(|at| f64::from(at) * step).collect()
    }
}

fn head(text: &mut String, databases: &[Statistics], all: &Histogram) {
    let stones = match databases {
        [] => "no stones".to_owned(),
        [one] => plural(one.stones().into(), "stone"),
        [first, .., last] => format!("{} to {}", first.stones(), plural(last.stones().into(), "stone")),
    };
    let has_pairs = report::has_pairs(databases);
    let what = if has_pairs { "Lower bounds" } else { "Scores" };
    let ScoreShares { won, drawn, lost } = all.shares();
    let [won, drawn, lost] = [won, drawn, lost].map(|share| format!("{:.1} %", share * 100.0));
    let shares = match has_pairs {
        true => format!("the player to move can force a win in {won}, no more than a draw in {drawn}"),
        false => format!("mean score {:+.2}; {won} won, {drawn} drawn, {lost} lost by the player to move", all.mean()),
    };
    let _ = writeln!(
        text,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="13" fill="#222">
<title>{what} of the positions with {stones}</title>
<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>
<text x="{LEFT}" y="30" font-size="18">{what} of the positions with {stones}</text>
<text x="{LEFT}" y="52" fill="#555">{}, {shares}</text>"##,
        plural(all.total(), "position"),
    );
}

fn axes(text: &mut String, scale: &Scale) {
    let ticks = scale.ticks();
    let decimals = if ticks.get(1).is_some_and(|&step| step < 0.01) { 1 } else { 0 };
    for share in ticks {
        let y = scale.y(share);
        let _ = writeln!(
            text,
            r##"<line x1="{LEFT}" y1="{y:.2}" x2="{RIGHT}" y2="{y:.2}" stroke="#ddd"/><text x="{:.2}" y="{:.2}" text-anchor="end">{:.decimals$} %</text>"##,
            LEFT - 8.0,
            y + 4.5,
            share * 100.0,
        );
    }
    // A name takes about 34 pixels.
    let step = [1, 2, 4, 6, 8, 12].into_iter().find(|&step| f64::from(step) * scale.bar >= 34.0).unwrap_or(16);
    for score in (-scale.score_max..=scale.score_max).filter(|score| score % step == 0) {
        let x = scale.x(score) + scale.bar / 2.0;
        let sign = if score > 0 { "+" } else { "" };
        let _ = writeln!(
            text,
            r##"<line x1="{x:.2}" y1="{BOTTOM}" x2="{x:.2}" y2="{:.2}" stroke="#222"/><text x="{x:.2}" y="{:.2}" text-anchor="middle">{sign}{score}</text>"##,
            BOTTOM + 5.0,
            BOTTOM + 20.0,
        );
    }
    let (middle_x, middle_y) = ((LEFT + RIGHT) / 2.0, (TOP + BOTTOM) / 2.0);
    let _ = writeln!(
        text,
        r##"<line x1="{LEFT}" y1="{BOTTOM}" x2="{RIGHT}" y2="{BOTTOM}" stroke="#222"/>
<text x="{middle_x}" y="{}" text-anchor="middle">score: stones that the player to move will capture, less those of the opponent</text>
<text x="18" y="{middle_y}" text-anchor="middle" transform="rotate(-90 18 {middle_y})">share of positions</text>"##,
        BOTTOM + 46.0,
    );
}

fn bar(text: &mut String, scale: &Scale, databases: &[Statistics], score: i8, positions: f64) {
    let mut below = 0;
    for (at, database) in databases.iter().enumerate() {
        let here = database.histogram().positions(score);
        let bottom = scale.y(below as f64 / positions);
        below += here;
        let top = scale.y(below as f64 / positions);
        if bottom - top < SEGMENT_HEIGHT_MIN {
            continue;
        }
        let _ = writeln!(
            text,
            r##"<rect x="{:.2}" y="{top:.2}" width="{:.2}" height="{:.2}" fill="{}"><title>{}, score {score:+}: {}</title></rect>"##,
            scale.x(score) + scale.bar * 0.06,
            scale.bar * 0.88,
            bottom - top,
            shade(at, databases.len()),
            plural(database.stones().into(), "stone"),
            plural(here, "position"),
        );
    }
}

/// Draws the legend, from many stones down to few like the bars, with names where there is room.
fn legend(text: &mut String, databases: &[Statistics]) {
    let left = RIGHT + 24.0;
    let _ = writeln!(text, r#"<text x="{left}" y="{}">stones</text>"#, TOP - 6.0);
    let room = BOTTOM - TOP;
    let height = (room / databases.len().max(1) as f64).min(20.0);
    let step = databases.len().div_ceil(LEGEND_NAMES_MAX).max(1);
    for (row, (at, database)) in databases.iter().enumerate().rev().enumerate() {
        let y = TOP + row as f64 * height;
        let _ = write!(
            text,
            r##"<rect x="{left}" y="{y:.2}" width="22" height="{height:.2}" fill="{}" stroke="#bbb" stroke-width="0.5"/>"##,
            shade(at, databases.len()),
        );
        if row % step == 0 {
            let _ = write!(
                text,
                r#"<text x="{:.2}" y="{:.2}" font-size="12">{}</text>"#,
                left + 29.0,
                y + height / 2.0 + 4.2,
                database.stones(),
            );
        }
        text.push('\n');
    }
}

/// Returns the gray of a database: light for the first, dark for the last. The last databases have most positions, so
/// their shades differ most.
fn shade(at: usize, count: usize) -> String {
    const LIGHT: f64 = 228.0;
    const DARK: f64 = 28.0;
    let share = ((at + 1) as f64 / count as f64).powi(3);
    let gray = (LIGHT + (DARK - LIGHT) * share).round() as u8;
    format!("#{gray:02x}{gray:02x}{gray:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Extent;
    use crate::solved::solved;
    use game::PositionSet;

    /// `AWARI_GOLDEN=write cargo test -p check chart` writes the picture anew, to be looked at.
    #[test]
    fn the_picture_is_the_recorded_one() {
        let databases = solved(7, PositionSet::All);
        let statistics: Vec<Statistics> =
            [0, 1, 3, 7].map(|stones| Statistics::of(&databases, stones, Extent::Full).unwrap()).into();
        let picture = svg(&statistics);
        let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/chart.svg");
        if std::env::var_os("AWARI_GOLDEN").is_some_and(|value| value == "write") {
            std::fs::write(recorded, &picture).unwrap();
        }
        assert_eq!(picture, std::fs::read_to_string(recorded).unwrap());
        assert!(picture.contains("7 stones, score -7: 8,948 positions"));
    }

    #[test]
    fn no_databases_and_one_draw_too() {
        assert!(svg(&[]).ends_with("</svg>\n"));
        let databases = solved(0, PositionSet::All);
        let one = Statistics::of(&databases, 0, Extent::Full).unwrap();
        let picture = svg(&[one]);
        assert!(picture.contains("0 stones, score +0: 1 position<"));
        assert!(picture.contains(">1 position, mean"), "{picture}");
        let one = Statistics::of(&solved(1, PositionSet::All), 1, Extent::Full).unwrap();
        let picture = svg(&[one]);
        assert!(picture.contains("with 1 stone<") && picture.contains("1 stone, score -1: "), "{picture}");
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
    }
}
