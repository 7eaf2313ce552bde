//! Statistics of several databases as text: a table for people, csv and JSON for programs.
//!
//! The csv is `stones,score,positions`, a line for each score that occurs, ascending; `stones,low,positions`
//! of databases of pairs, whose lower bounds are counted. The JSON is a list of the objects that
//! [`Statistics::json`] writes. Both end with a line feed.

use crate::histogram::{Histogram, ScoreShares};
use crate::statistics::{CaptureStatistics, Statistics};
use game::quantity::grouped;
use std::fmt::Write;

/// The headings of the table.
const HEADINGS: [&str; 8] =
    ["stones", "positions", "mean score", "won", "drawn", "lost", "capture or not", "better not"];

/// `stones,score,positions`, or `stones,low,positions` with the lower bounds of databases of pairs.
pub fn csv(databases: &[Statistics]) -> String {
    let mut text = format!("stones,{},positions\n", if has_pairs(databases) { "low" } else { "score" });
    for database in databases {
        for (score, positions) in database.histogram().scores() {
            let stones = database.stones();
            let _ = writeln!(text, "{stones},{score},{positions}");
        }
    }
    text
}

/// A list of objects.
pub fn json(databases: &[Statistics]) -> String {
    let objects: Vec<String> = databases.iter().map(Statistics::json).collect();
    format!("[{}]\n", objects.join(",\n "))
}

/// Formats the [rows](table_rows) of a table as lines. The last columns are omitted if a line would exceed `columns`.
pub fn table(databases: &[Statistics], columns: usize) -> String {
    let rows = table_rows(databases);
    let widths: [usize; HEADINGS.len()] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    });
    let mut shown = widths.len();
    while shown > 1 && widths[..shown].iter().sum::<usize>() + 2 * (shown - 1) > columns {
        shown -= 1;
    }
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).take(shown);
        let cells: Vec<String> = cells.map(|(cell, width)| format!("{cell:>width$}")).collect();
        let _ = writeln!(text, "{}", cells.join("  "));
    }
    text
}

/// Returns the headings of a table, a row for each database, and one for all if there are several.
///
/// `capture or not` is the share of positions that offer both capturing and non-capturing moves, `better not`
/// the share of those in which no best move captures; `~` marks estimates from a sample. The row of all
/// databases weighs each by its positions. Of databases of pairs the figures are those of the lower bounds.
pub fn table_rows(databases: &[Statistics]) -> Vec<[String; HEADINGS.len()]> {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    if has_pairs(databases) {
        rows[0][2] = "mean low".to_owned();
    }
    for database in databases {
        let figures = Figures {
            offered: offered_share(database.choice()),
            declined: database.choice().declined_share(),
            is_sampled: database.choice().positions < database.histogram().total(),
        };
        rows.push(row(database.stones().to_string(), database.histogram(), figures));
    }
    if databases.len() > 1 {
        let histogram = total(databases);
        let mut offered = 0.0;
        let mut declined = 0.0;
        for database in databases {
            let share = offered_share(database.choice()) * database.histogram().total() as f64;
            offered += share;
            declined += share * database.choice().declined_share().unwrap_or(0.0);
        }
        let figures = Figures {
            offered: offered / histogram.total().max(1) as f64,
            declined: (offered > 0.0).then_some(declined / offered),
            is_sampled: databases.iter().any(|database| database.choice().positions < database.histogram().total()),
        };
        rows.push(row("all".to_owned(), &histogram, figures));
    }
    rows
}

/// Formats a table of the shares of positions whose bounds are equal, and of the mean distances of bounds. Empty if no
/// database has pairs.
pub fn pairs_table(databases: &[Statistics]) -> String {
    let mut text = String::new();
    for (database, pairs) in databases.iter().filter_map(|database| Some((database, database.pairs()?))) {
        if text.is_empty() {
            let _ = writeln!(text, "stones    exact  mean distance");
        }
        let positions = database.histogram().total().max(1) as f64;
        let (exact, distance) = (100.0 * pairs.exact as f64 / positions, pairs.distances as f64 / positions);
        let _ = writeln!(text, "{:>6}  {exact:>5.1} %  {distance:>13.2}", database.stones());
    }
    text
}

/// The capture statistics in a row of the table.
struct Figures {
    offered: f64,
    declined: Option<f64>,
    is_sampled: bool,
}

/// Whether the figures are those of lower bounds.
pub(crate) fn has_pairs(databases: &[Statistics]) -> bool {
    databases.iter().any(|database| database.pairs().is_some())
}

/// Returns the histogram of all databases.
pub(crate) fn total(databases: &[Statistics]) -> Histogram {
    databases.iter().fold(Histogram::EMPTY, |sum, database| sum.plus(database.histogram()))
}

fn offered_share(choice: CaptureStatistics) -> f64 {
    choice.offered as f64 / choice.positions.max(1) as f64
}

fn row(name: String, histogram: &Histogram, figures: Figures) -> [String; HEADINGS.len()] {
    let ScoreShares { won, drawn, lost } = histogram.shares();
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let about = if figures.is_sampled { "~" } else { "" };
    [
        name,
        grouped(histogram.total()),
        format!("{:+.2}", histogram.mean()),
        percent(won),
        percent(drawn),
        percent(lost),
        format!("{about}{}", percent(figures.offered)),
        figures.declined.map_or("-".to_owned(), |share| format!("{about}{}", percent(share))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solved::solved;
    use crate::{Extent, Sample};
    use game::PositionSet;

    fn statistics(stones: u32) -> Vec<Statistics> {
        let databases = solved(stones, PositionSet::All);
        (0..=stones).map(|stones| Statistics::of(&databases, stones, Extent::Full).unwrap()).collect()
    }

    #[test]
    fn csv_is_the_published_table() {
        let published = include_str!("published/lincke-2002.csv");
        let csv = csv(&statistics(7));
        assert!(published.starts_with(&csv) && csv.lines().count() > 40);
    }

    #[test]
    fn table_has_a_line_for_each_and_one_for_all() {
        let narrow = table(&statistics(3), 60);
        assert!(narrow.lines().all(|line| line.ends_with('%') || line.ends_with("lost")), "{narrow}");
        let databases = solved(7, PositionSet::All);
        let sample = Extent::Sample(Sample { at_least: 10_000, ..Sample::default() });
        let mut statistics = statistics(7);
        statistics[7] = Statistics::of(&databases, 7, sample).unwrap();
        let expected = "\
stones  positions  mean score     won    drawn    lost  capture or not  better not
     0          1       +0.00   0.0 %  100.0 %   0.0 %           0.0 %           -
     1         12       -0.17  41.7 %    0.0 %  58.3 %           0.0 %           -
     2         78       -0.38  32.1 %   16.7 %  51.3 %           0.0 %           -
     3        364       -0.49  33.8 %   17.3 %  48.9 %           0.0 %           -
     4      1,365       -0.26  42.5 %   10.5 %  47.0 %           2.2 %       0.0 %
     5      4,368       -0.03  49.6 %    0.0 %  50.4 %           5.5 %       2.1 %
     6     12,376       +0.30  46.0 %   12.5 %  41.5 %           9.3 %       2.6 %
     7     31,824       +0.60  46.9 %   14.1 %  39.0 %         ~13.8 %      ~6.2 %
   all     50,388       +0.44  46.7 %   12.4 %  40.9 %         ~11.6 %      ~5.3 %
";
        let width = expected.lines().next().unwrap().len();
        assert_eq!(table(&statistics, width), expected);
        assert!(table(&statistics, width - 1).starts_with(expected.split_once("  better not").unwrap().0));
        assert!(table(&statistics, 0).starts_with("stones\n"));
        // Neither database has a position that offers a choice.
        for (databases, lines) in [(1, 2), (2, 4)] {
            let table = table(&statistics[..databases], width);
            assert!(table.lines().count() == lines && table.lines().skip(1).all(|line| line.ends_with('-')), "{table}");
        }
    }

    #[test]
    fn pairs_have_a_table() {
        let plain = statistics(3);
        assert_eq!(pairs_table(&plain), "");
        let pairs = crate::PairStatistics::of_bounds(&[-3, 0, 1, 2], &[-3, 1, 1, 3]);
        let paired = plain[3].clone().with_pairs(pairs);
        assert_eq!((pairs.exact, pairs.distances), (2, 2));
        assert_eq!(Statistics::of_json(&paired.json()).unwrap(), paired);
        let paired = [paired];
        assert_eq!(pairs_table(&paired), "stones    exact  mean distance\n     3    0.5 %           0.01\n");
        // No figure of lower bounds has the name of a score.
        assert!(csv(&plain).starts_with("stones,score,") && csv(&paired).starts_with("stones,low,"));
        assert!(table(&plain, 99).contains(" mean score ") && table(&paired, 99).contains(" mean low "));
        assert!(!table(&paired, 99).contains("score"));
    }

    #[test]
    fn json_is_a_list() {
        let text = json(&statistics(3));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value.as_array().unwrap().len(), 4);
        assert_eq!(value[3]["stones"], 3);
    }
}
