//! A chart of the distribution of scores: the stacked histogram of Romein & Bal 2002, figure 3.
//!
//! The x axis is the score of the player to move, the y axis the share of positions of all databases. Each bar is a
//! stack of the databases: those with few stones are light and at the bottom, those with many are dark. The SVG is
//! self-contained.

use crate::histogram::{Histogram, ScoreShares};
use crate::report::{self, total};
use crate::statistics::Statistics;
use chart::{Frame, Picture, round_step};
use game::quantity::plural;

// The picture, in pixels.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 560.0;
const FRAME: Frame = Frame { left: 70.0, right: 850.0, top: 76.0, bottom: 496.0 };

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
    let share_max =
        all.scores().map(|(_, positions_here)| positions_here as f64 / positions).fold(0.01, f64::max) * 1.05;
    let bar = 1.0 / (2.0 * f64::from(score_max) + 1.0);
    let left = |score: i8| bar * f64::from(i16::from(score) + i16::from(score_max));

    let mut picture = begin(databases, &all);
    let step = round_step(share_max, TICKS_MAX);
    let decimals = if step < 0.01 { 1 } else { 0 };
    let ticks = (0..=(share_max / step) as u32).map(|tick| f64::from(tick) * step);
    FRAME.grid(&mut picture, ticks.map(|share| (share / share_max, format!("{:.decimals$} %", share * 100.0))));
    // A name takes about 34 pixels.
    let bar_width = bar * (FRAME.right - FRAME.left);
    let step = [1, 2, 4, 6, 8, 12].into_iter().find(|&step| f64::from(step) * bar_width >= 34.0).unwrap_or(16);
    let named = (-score_max..=score_max).filter(|score| score % step == 0);
    let name = |score: i8| if score > 0 { format!("+{score}") } else { score.to_string() };
    FRAME.labels(&mut picture, named.map(|score| (left(score) + bar / 2.0, name(score))));
    let scores = "score: stones that the player to move will capture, less those of the opponent";
    FRAME.name_axes(&mut picture, scores, "share of positions");
    for score in -score_max..=score_max {
        let mut below = 0;
        for (number, database) in databases.iter().enumerate() {
            let here = database.histogram().positions(score);
            let [bottom, top] = [below, below + here].map(|count| FRAME.y(count as f64 / positions / share_max));
            below += here;
            if bottom - top < SEGMENT_HEIGHT_MIN {
                continue;
            }
            let tip =
                format!("{}, score {score:+}: {}", plural(database.stones().into(), "stone"), plural(here, "position"));
            let (corner, size) = ((FRAME.x(left(score) + bar * 0.06), top), (bar_width * 0.88, bottom - top));
            picture.rect(corner, size, &format!("fill=\"{}\"", shade(number, databases.len())), &tip);
        }
    }
    FRAME.axes(&mut picture);
    legend(&mut picture, databases);
    picture.finish()
}

/// Begins the picture with its title.
fn begin(databases: &[Statistics], all: &Histogram) -> Picture {
    let stones = match databases {
        [] => "no stones".to_owned(),
        [only] => plural(only.stones().into(), "stone"),
        [first, .., last] => format!("{} to {}", first.stones(), plural(last.stones().into(), "stone")),
    };
    let has_pairs = report::has_pairs(databases);
    let what = if has_pairs { "Lower bounds" } else { "Scores" };
    let ScoreShares { won, drawn, lost } = all.shares();
    let [won, drawn, lost] = [won, drawn, lost].map(|share| format!("{:.1} %", share * 100.0));
    let shares = if has_pairs {
        format!("the player to move can force a win in {won}, no more than a draw in {drawn}")
    } else {
        format!("mean score {:+.2}; {won} won, {drawn} drawn, {lost} lost by the player to move", all.mean())
    };
    let title = format!("{what} of the positions with {stones}");
    let mut picture = Picture::new(&title, WIDTH, HEIGHT);
    picture.text((FRAME.left, 30.0), "font-size=\"18\"", title, "");
    let positions = plural(all.total(), "position");
    picture.text((FRAME.left, 52.0), "fill=\"#555\"", format!("{positions}, {shares}"), "");
    picture
}

/// Draws the legend, from many stones down to few like the bars, with names where there is room.
fn legend(picture: &mut Picture, databases: &[Statistics]) {
    let left = FRAME.right + 24.0;
    picture.text((left, FRAME.top - 6.0), "", "stones", "");
    let height = ((FRAME.bottom - FRAME.top) / databases.len().max(1) as f64).min(20.0);
    let step = databases.len().div_ceil(LEGEND_NAMES_MAX).max(1);
    for (row, (number, database)) in databases.iter().enumerate().rev().enumerate() {
        let y = FRAME.top + row as f64 * height;
        let shade = shade(number, databases.len());
        let look = format!("fill=\"{shade}\" stroke=\"#bbb\" stroke-width=\"0.5\"");
        picture.rect((left, y), (22.0, height), &look, "");
        if row % step == 0 {
            picture.text((left + 29.0, y + height / 2.0 + 4.2), "", database.stones(), "");
        }
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
        let statistics = Statistics::of(&databases, 0, Extent::Full).unwrap();
        let picture = svg(&[statistics]);
        assert!(picture.contains("0 stones, score +0: 1 position<"));
        assert!(picture.contains(">1 position, mean"), "{picture}");
        let statistics = Statistics::of(&solved(1, PositionSet::All), 1, Extent::Full).unwrap();
        let picture = svg(&[statistics]);
        assert!(picture.contains("with 1 stone<") && picture.contains("1 stone, score -1: "), "{picture}");
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
    }
}
