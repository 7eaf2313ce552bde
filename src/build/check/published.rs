//! Published histograms of scores.
//!
//! The table of Lincke's thesis (2002) for 0 to 34 stones counts all positions, so it does not apply to `reachable`
//! databases. A test checks that its rows add up to C(n + 11, 11).

use crate::histogram::Histogram;
use game::{PositionSet, Rules, Score};
use std::sync::LazyLock;

/// `stones,score,positions`, ascending, only scores that occur.
const TABLE: &str = include_str!("published/lincke-2002.csv");

static HISTOGRAMS: LazyLock<Vec<Histogram>> = LazyLock::new(|| parse(TABLE));

/// The comparison of a database with the published counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// All counts match.
    Matches,
    /// There is no table for these rules, this number of stones or this position set.
    Absent,
    /// A count differs.
    Differs {
        /// The lowest score with a different count.
        score: Score,
        /// The published count.
        expected: u64,
        /// The count of the database.
        found: u64,
    },
}

impl Published {
    /// Compares the counts of a database of `stones` stones.
    pub fn compare(rules: &Rules, stones: u32, set: PositionSet, found: &Histogram) -> Published {
        let is_of_table = *rules == Rules::AWARI && set == PositionSet::All;
        let Some(expected) = HISTOGRAMS.get(stones as usize).filter(|_| is_of_table) else {
            return Published::Absent;
        };
        let stones = stones as Score;
        (-stones..=stones)
            .map(|score| (score, expected.positions(score), found.positions(score)))
            .find(|&(_, expected, found)| expected != found)
            .map_or(Published::Matches, |(score, expected, found)| Published::Differs { score, expected, found })
    }
}

/// Parses the table; returns the histograms by number of stones.
fn parse(table: &str) -> Vec<Histogram> {
    let mut histograms = Vec::new();
    for line in table.lines().skip(1) {
        let mut fields = line.split(',');
        let mut field = || {
            fields
                .next()
                .and_then(|text| text.parse::<i64>().ok())
                .expect("the table is part of the program, and a test reads it")
        };
        let (stones, score, positions) = (field(), field(), field());
        histograms.resize(stones as usize + 1, Histogram::EMPTY);
        histograms[stones as usize].add(score as Score, positions as u64);
    }
    histograms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_counts_every_position_of_0_to_34_stones() {
        assert_eq!(HISTOGRAMS.len(), 35);
        for (stones, histogram) in (0..).zip(HISTOGRAMS.iter()) {
            assert_eq!(histogram.total(), PositionSet::All.positions(stones));
            for (score, _) in histogram.scores() {
                assert!(u32::from(score.unsigned_abs()) <= stones);
            }
        }
    }

    #[test]
    fn differences_are_named() {
        let mut histogram = HISTOGRAMS[4].clone();
        let compare = |stones, set, histogram: &_| Published::compare(&Rules::AWARI, stones, set, histogram);
        assert_eq!(compare(4, PositionSet::All, &histogram), Published::Matches);
        assert_eq!(compare(4, PositionSet::REACHABLE, &histogram), Published::Absent);
        assert_eq!(Published::compare(&Rules::WARI, 4, PositionSet::All, &histogram), Published::Absent);
        assert_eq!(compare(35, PositionSet::All, &histogram), Published::Absent);
        histogram.add(-1, 1);
        let differs = Published::Differs { score: -1, expected: 0, found: 1 };
        assert_eq!(compare(4, PositionSet::All, &histogram), differs);
    }
}
