//! A line of progress that fits the width of a terminal.

use crate::text::quantity;
use console::{Alignment, measure_text_width, pad_str, truncate_str};
use std::ops::RangeInclusive;

/// The width of a name, such as `postprocess:36`.
const NAME: usize = 14;

/// The width of a percentage.
const PERCENT: usize = 5;

/// The width of a rate, and of one with its unit.
const RATE: usize = 8;
const RATE_WITH_UNIT: usize = 14;

/// The width of a time left, such as `59 min 59 s left`.
const LEFT: usize = 16;

/// The least and the largest width of a bar.
const BAR: RangeInclusive<usize> = 6..=30;

/// The least and the largest width of an activity: all that is known of a pass.
const ACTIVITY: RangeInclusive<usize> = 8..=62;

/// The least columns for a rate, and for one with its unit.
const COLUMNS_WITH_RATE: usize = 64;
const COLUMNS_WITH_UNIT: usize = 100;

/// The progress of a stage, or of a whole run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProgressLine {
    pub(crate) name: String,
    /// What is being done, the most important words first.
    pub(crate) activity: Vec<String>,
    /// The finished share, if known.
    pub(crate) share: Option<f64>,
    /// Positions a second, or other units with their name.
    pub(crate) rate: Option<String>,
    pub(crate) left_seconds: Option<f64>,
}

impl ProgressLine {
    /// Renders name, activity, bar, percentage, rate and time left, in less than `columns` columns. Parts are
    /// at the same place in all lines. What does not fit is left out as a whole.
    pub(crate) fn fit(&self, columns: usize) -> String {
        // A terminal may wrap a line that takes the last column.
        let columns = columns.saturating_sub(1);
        let rate_columns = match columns {
            0..COLUMNS_WITH_RATE => 0,
            COLUMNS_WITH_RATE..COLUMNS_WITH_UNIT => RATE + 1,
            _ => RATE_WITH_UNIT + 1,
        };
        let room = columns.saturating_sub(NAME + 1 + PERCENT + 1 + rate_columns + LEFT + 1);
        // Of a wide line, three columns of five are for the activity.
        let activity_columns = room.saturating_sub(BAR.start() + 1).min((room * 3 / 5).max(23)).min(*ACTIVITY.end());
        let activity_columns = if activity_columns < *ACTIVITY.start() { 0 } else { activity_columns };
        let bar_columns = room.saturating_sub(activity_columns + 1).min(*BAR.end());
        let bar = match self.share {
            Some(share) if bar_columns > 0 => bar(share, bar_columns) + " ",
            _ => " ".repeat(bar_columns + usize::from(bar_columns > 0)),
        };
        let percent = self.share.map_or(String::new(), |share| format!("{:.0} %", (share * 100.0).floor()));
        let rate = self.rate.as_deref().unwrap_or_default();
        let without_unit = rate.find("/s").map_or(rate, |at| &rate[..at + 2]);
        let rate = if measure_text_width(rate) < rate_columns { rate } else { without_unit };
        let left = self.left_seconds.map_or(String::new(), |seconds| quantity::about(seconds) + " left");
        let right = |text: &str, columns| pad_str(text, columns, Alignment::Right, Some("")).into_owned();
        let line = format!(
            "{:NAME$} {:activity_columns$}{}{bar}{}{} {}",
            self.name,
            joined(&self.activity, activity_columns),
            if activity_columns > 0 { " " } else { "" },
            right(&percent, PERCENT),
            right(rate, rate_columns),
            right(&left, LEFT),
        );
        line.trim_end().chars().take(columns).collect()
    }
}

/// Joins as many of the first words as fit. Only the first is cut.
fn joined(words: &[String], columns: usize) -> String {
    let mut text = String::new();
    for word in words {
        let longer = if text.is_empty() { word.clone() } else { format!("{text}, {word}") };
        if measure_text_width(&longer) > columns {
            if text.is_empty() {
                text = truncate_str(word, columns, "…").into_owned();
            }
            break;
        }
        text = longer;
    }
    text
}

fn bar(share: f64, columns: usize) -> String {
    let filled = (share.clamp(0.0, 1.0) * columns as f64).round() as usize;
    "━".repeat(filled) + &"─".repeat(columns - filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(activity: &[&str], share: Option<f64>, rate: Option<&str>, left_seconds: Option<f64>) -> ProgressLine {
        let activity = activity.iter().map(|&word| word.to_owned()).collect();
        ProgressLine { name: "process:36:12".into(), activity, share, rate: rate.map(str::to_owned), left_seconds }
    }

    #[test]
    fn lines_fit_and_show_percentage_and_time() {
        let activity = ["bound 18 of 36", "pass 4", "expected to be the last", "0.31 % changed in the last"];
        let line = line(&activity, Some(0.637), Some("24.1 M/s"), Some(3599.0));
        for columns in 40..250 {
            let text = line.fit(columns);
            assert!(measure_text_width(&text) < columns, "{columns}: {text}");
            let (name, ends) = ("process:36:12 ", " 63 % ");
            assert!(text.starts_with(name) && text.ends_with("59 min 59 s left"), "{columns}: {text}");
            assert!(text.contains(ends), "{columns}: {text}");
            assert_eq!(text.contains(" 24.1 M/s "), columns > COLUMNS_WITH_RATE, "{columns}: {text}");
        }
        let expected = [
            (80, "process:36:12  bound 18 of 36, pass 4  ━━━━━───  63 % 24.1 M/s 59 min 59 s left"),
            (
                120,
                "process:36:12  bound 18 of 36, pass 4                  ━━━━━━━━━━━━━━━━━─────────  63 %       24.1 M/s \
                 59 min 59 s left",
            ),
        ];
        for (columns, text) in expected {
            assert_eq!(line.fit(columns), text);
        }
        (0..40).for_each(|columns| assert!(measure_text_width(&line.fit(columns)) <= columns));
    }

    #[test]
    fn parts_are_at_the_same_place_in_all_lines() {
        for columns in [80, 120] {
            let full = line(&["writing the scores"], Some(1.0), Some("5 /s games"), Some(70.0)).fit(columns);
            let bare = line(&["solving", "pass 2"], None, None, Some(3.0)).fit(columns);
            assert_eq!(full.find("left"), bare.find("left").map(|at| at + full.len() - full.chars().count()));
            assert!(full.contains("100 %") && full.contains("5 /s"), "{full}");
            assert_eq!(full.contains("5 /s games"), columns == 120, "{full}");
        }
    }

    #[test]
    fn only_whole_words_are_left_out() {
        let words = ["solving", "pass 12", "expected to be the last"].map(str::to_owned);
        for (columns, text) in
            [(100, "solving, pass 12, expected to be the last"), (20, "solving, pass 12"), (5, "solv…")]
        {
            assert_eq!(joined(&words, columns), text);
        }
    }

    #[test]
    fn bars_have_a_fixed_length() {
        assert_eq!(bar(-1.0, 4), "────");
        assert_eq!(bar(0.5, 4), "━━──");
        assert_eq!(bar(f64::INFINITY, 4), "━━━━");
    }
}
