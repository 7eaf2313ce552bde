//! The distribution of scores, or lower bounds, as bars of text, for a terminal.
//!
//! Each bar stands for a few consecutive scores. A score has the parity of the number of stones, unless play
//! repeats and the remaining stones are shared out, so the number of scores of a bar is even. Only the bar of
//! 0 and the outermost ones may have an odd number.

use crate::histogram::ScoreShares;
use crate::statistics::Statistics;
use game::quantity::plural;
use game::{STONES_MAX, Score};
use std::fmt::Write;

/// The largest number of bars of won positions.
const WON_BARS_MAX: u32 = 6;

/// The columns of the longest line, if there is room for it.
const COLUMNS_MAX: usize = 72;

/// The columns of the longest bar, at least.
const BAR_COLUMNS_MIN: usize = 8;

/// Parts of a column: an eighth, two eighths, and so on.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// Draws the distribution of scores of a database, in lines of at most `columns` columns where the labels allow that.
pub fn bars(statistics: &Statistics, columns: usize) -> String {
    let what = if statistics.pairs().is_some() { "lower bounds" } else { "scores" };
    let mut text = format!(
        "{what} of {} with {}:\n",
        plural(statistics.histogram().total(), "position"),
        plural(statistics.stones().into(), "stone"),
    );
    let total = statistics.histogram().total().max(1) as f64;
    let groups = groups(statistics.stones());
    let rows: Vec<(String, f64)> = groups
        .into_iter()
        .map(|(first, last)| {
            let positions: u64 = (first..=last).map(|score| statistics.histogram().positions(score)).sum();
            let label = if first == last { first.to_string() } else { format!("{first}..{last}") };
            (label, positions as f64 / total)
        })
        .collect();
    let label_columns = rows.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    let share_max = rows.iter().map(|(_, share)| *share).fold(f64::MIN_POSITIVE, f64::max);
    let bar_columns = columns.min(COLUMNS_MAX).saturating_sub(label_columns + 12).max(BAR_COLUMNS_MIN);
    for (label, share) in rows {
        let eighths = (share / share_max * (8 * bar_columns) as f64).round() as usize;
        let bar = "█".repeat(eighths / 8);
        let end = (eighths % 8).checked_sub(1).map_or(String::new(), |at| EIGHTHS[at].to_string());
        let line = format!("  {label:>label_columns$} {:>5.1} %  {bar}{end}", share * 100.0);
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let ScoreShares { won, drawn, lost } = statistics.shares();
    let [won, drawn, lost] = [won, drawn, lost].map(|share| format!("{:.1} %", share * 100.0));
    let _ = match statistics.pairs() {
        None => writeln!(text, "won {won}, drawn {drawn}, lost {lost}"),
        Some(pairs) => {
            let exact = 100.0 * pairs.exact as f64 / total;
            writeln!(
                text,
                "can force a win {won}, no more than a draw {drawn}; exact, with two equal bounds {exact:.1} %"
            )
        }
    };
    text
}

/// Returns the first and last score of each bar, from the best scores to the worst.
fn groups(stones: u32) -> Vec<(Score, Score)> {
    let most = Score::try_from(stones.min(STONES_MAX)).expect("a score holds the stones of the game");
    let size = 2 * stones.div_ceil(2 * WON_BARS_MAX).max(1) as usize;
    let won: Vec<(Score, Score)> =
        (1..=most).step_by(size).map(|first| (first, most.min(first + (size - 1) as Score))).collect();
    let lost = won.iter().map(|&(first, last)| (-last, -first));
    won.iter().rev().copied().chain([(0, 0)]).chain(lost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::PairStatistics;
    use crate::solved::solved;
    use crate::{CaptureStatistics, Extent, Histogram};
    use game::PositionSet;

    #[test]
    fn bars_are_as_long_as_their_shares() {
        let databases = solved(7, PositionSet::All);
        let statistics = Statistics::of(&databases, 7, Extent::Full).unwrap();
        let expected = "\
scores of 31,824 positions with 7 stones:
       7  36.9 %  ██████████████████████
    5..6   0.5 %  ▎
    3..4   8.0 %  ████▊
    1..2   1.5 %  ▉
       0  14.1 %  ████████▍
  -2..-1   1.4 %  ▉
  -4..-3   9.5 %  █████▋
  -6..-5   0.0 %
      -7  28.1 %  ████████████████▊
won 46.9 %, drawn 14.1 %, lost 39.0 %
";
        assert_eq!(bars(&statistics, 40), expected);
        let wide = bars(&statistics, 1000);
        assert_eq!(wide.lines().skip(1).map(|line| line.chars().count()).max(), Some(COLUMNS_MAX), "{wide}");
    }

    #[test]
    fn bars_of_pairs_are_not_those_of_scores() {
        let statistics = Statistics::of(&solved(7, PositionSet::All), 7, Extent::Full).unwrap();
        let text = bars(&statistics.with_pairs(PairStatistics { exact: 26_000, distances: 44_872 }), 40);
        assert!(text.starts_with("lower bounds of 31,824 positions with 7 stones:\n"), "{text}");
        let last = "can force a win 46.9 %, no more than a draw 14.1 %; exact, with two equal bounds 81.7 %\n";
        assert!(text.ends_with(last), "{text}");
    }

    #[test]
    fn bars_hold_every_score_once_and_parities_alike() {
        for stones in 0..=STONES_MAX {
            let groups = groups(stones);
            let scores: Vec<Score> = groups.iter().rev().flat_map(|&(first, last)| first..=last).collect();
            let most = stones as Score;
            assert!(scores.iter().copied().eq(-most..=most), "{stones}: {groups:?}");
            assert!(groups.len() <= 13, "{stones}: {groups:?}");
            let inner = groups.iter().filter(|(first, last)| *first > 0 && *last < most);
            assert!(inner.copied().all(|(first, last)| (last - first) % 2 == 1), "{stones}: {groups:?}");
        }
    }

    #[test]
    fn no_positions_have_no_bars() {
        let text = bars(&Statistics::new(3, Histogram::EMPTY, CaptureStatistics::default()), 0);
        assert!(!text.contains('█') && text.lines().count() == 1 + 5 + 1, "{text}");
    }
}
