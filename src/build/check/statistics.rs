//! Statistics of a database: the figures that the papers report.
//!
//! The distribution of scores counts every position. The share of positions in which a capture is the wrong move needs
//! the children of each position, so it is estimated from an extent, usually a sample: at 100,000 positions its
//! standard error is at most a seventh of a per cent.
//!
//! The statistics of a database are a JSON object, whose bytes depend only on the database and the extent:
//!
//! ```text
//! {"stones":2,"positions":78,"mean":-0.3846,"won":0.3205,"drawn":0.1667,"lost":0.5128,
//!  "captures":{"positions":78,"offered":5,"declined":0},
//!  "scores":[{"score":-2,"positions":40},{"score":0,"positions":13},{"score":2,"positions":25}]}
//! ```
//!
//! A database of pairs has besides `"pairs":{"exact":65,"distances":55}`: the positions whose bounds are
//! equal, and the sum of the distances of the bounds of all positions. Its other figures are those of the
//! lower bounds.
//!
//! `captures` counts the positions of the extent, those that offer both kinds of move, and those of these in which no
//! best move captures. Shares and mean follow from the other fields.

use crate::databases::{AnyScores, Database, Databases, ScoreSource};
use crate::error::{CheckError, Result};
use crate::extent::Extent;
use crate::histogram::{Histogram, ScoreShares};
use crate::pairs::{PairStatistics, pairs_of};
use crate::walk::{VisitedPosition, WalkTally, walk_of};
use game::quantity::plural;
use game::{STONES_MAX, Score};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// The statistics of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    stones: u32,
    histogram: Histogram,
    choice: CaptureStatistics,
    pairs: Option<PairStatistics>,
}

/// How often no best move captures (Romein & Bal 2002, "New awari insights": 22 % over the databases up to 48 stones).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureStatistics {
    /// Positions of the extent.
    pub positions: u64,
    /// Those that offer both capturing and non-capturing moves.
    pub offered: u64,
    /// Those of them in which no best move captures.
    pub declined: u64,
}

impl Statistics {
    /// Computes the statistics of the `stones`-stone database, those of captures from the positions of `extent`.
    pub fn of<L: ScoreSource>(databases: &Databases<L>, stones: u32, extent: Extent) -> Result<Statistics> {
        let database = databases.get(stones)?;
        let choice = CaptureStatistics::of(&database.of_any(), &databases.of_any(), extent)?;
        Ok(Statistics::new(stones, Histogram::of(database)?, choice))
    }

    /// Makes the statistics of the `stones`-stone database from counts.
    pub fn new(stones: u32, histogram: Histogram, choice: CaptureStatistics) -> Statistics {
        Statistics { stones, histogram, choice, pairs: None }
    }

    /// Computes the statistics of the bounds of all positions with `stones` stones. Those of scores are of
    /// the lower bounds.
    pub fn of_bounds<L: ScoreSource>(
        low: &Databases<L>,
        high: &Databases<L>,
        stones: u32,
        extent: Extent,
    ) -> Result<Statistics> {
        let choice = CaptureStatistics::of(&low.get(stones)?.of_any(), &high.of_any(), extent)?;
        let statistics = Statistics::new(stones, Histogram::of(low.get(stones)?)?, choice);
        Ok(statistics.with_pairs(pairs_of(low, high, stones)?))
    }

    /// Adds the counts of bounds. Then the other statistics are those of the lower bounds.
    #[must_use]
    pub fn with_pairs(self, pairs: PairStatistics) -> Statistics {
        Statistics { pairs: Some(pairs), ..self }
    }

    /// The counts of bounds, if positions have two.
    pub fn pairs(&self) -> Option<PairStatistics> {
        self.pairs
    }

    /// Parses the output of [`Statistics::json`].
    pub fn of_json(json: &str) -> Result<Statistics> {
        let refused = |found: String| CheckError::Statistics { found };
        let record: StatisticsRecord = serde_json::from_str(json).map_err(|error| refused(error.to_string()))?;
        if record.stones > STONES_MAX {
            return Err(refused(plural(record.stones.into(), "stone")));
        }
        let mut histogram = Histogram::EMPTY;
        let mut total = 0u64;
        for ScoreRecord { score, positions } in record.scores {
            if u32::from(score.unsigned_abs()) > record.stones || histogram.positions(score) > 0 {
                return Err(refused(format!("an impossible score of {score}")));
            }
            total = total
                .checked_add(positions)
                .filter(|&total| total <= record.positions)
                .ok_or_else(|| refused(format!("more than {}", plural(record.positions, "position"))))?;
            histogram.add(score, positions);
        }
        if total != record.positions {
            return Err(refused(format!("scores of {total} of {}", plural(record.positions, "position"))));
        }
        if let Some(PairStatistics { exact, .. }) = record.pairs.filter(|pairs| pairs.exact > record.positions) {
            return Err(refused(format!("{exact} exact of {}", plural(record.positions, "position"))));
        }
        Ok(Statistics { stones: record.stones, histogram, choice: record.captures, pairs: record.pairs })
    }

    /// Returns the statistics as a JSON object on one line, without a line feed.
    pub fn json(&self) -> String {
        let ScoreShares { won, drawn, lost } = self.shares();
        let scores = self.histogram.scores();
        let record = StatisticsRecord {
            stones: self.stones,
            positions: self.histogram.total(),
            mean: rounded(self.mean()),
            won: rounded(won),
            drawn: rounded(drawn),
            lost: rounded(lost),
            captures: self.choice,
            pairs: self.pairs,
            scores: scores.map(|(score, positions)| ScoreRecord { score, positions }).collect(),
        };
        serde_json::to_string(&record).expect("numbers and lists of them are JSON")
    }

    /// Stones of the database.
    pub fn stones(&self) -> u32 {
        self.stones
    }

    /// All positions by score.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// The counts of positions by whether a best move captures.
    pub fn choice(&self) -> CaptureStatistics {
        self.choice
    }

    /// The mean score of a position.
    pub fn mean(&self) -> f64 {
        self.histogram.mean()
    }

    /// The share of positions that the mover wins, draws and loses.
    pub fn shares(&self) -> ScoreShares {
        self.histogram.shares()
    }
}

/// The JSON object of statistics.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatisticsRecord {
    stones: u32,
    positions: u64,
    mean: f64,
    won: f64,
    drawn: f64,
    lost: f64,
    captures: CaptureStatistics,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pairs: Option<PairStatistics>,
    scores: Vec<ScoreRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScoreRecord {
    score: Score,
    positions: u64,
}

/// Rounds a figure to six decimals.
fn rounded(figure: f64) -> f64 {
    (figure * 1e6).round() / 1e6
}

impl CaptureStatistics {
    fn of(
        database: &Database<AnyScores<'_>>,
        children: &Databases<AnyScores<'_>>,
        extent: Extent,
    ) -> Result<CaptureStatistics> {
        walk_of(database, children, extent, &|_| ControlFlow::Continue(()))
    }

    /// Returns the share of positions offering both kinds of move in which no best move captures, if there are any.
    pub fn declined_share(&self) -> Option<f64> {
        (self.offered > 0).then(|| self.declined as f64 / self.offered as f64)
    }
}

impl WalkTally for CaptureStatistics {
    fn see(&mut self, seen: &VisitedPosition) {
        self.positions += 1;
        if let (Some(capture), Some(quiet)) = (seen.derived.capture, seen.derived.quiet) {
            self.offered += 1;
            self.declined += u64::from(quiet > capture);
        }
    }

    fn merge(&mut self, other: CaptureStatistics) {
        self.positions += other.positions;
        self.offered += other.offered;
        self.declined += other.declined;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solved::solved;
    use game::PositionSet;

    #[test]
    fn json_is_read_back() {
        let databases = solved(6, PositionSet::All);
        for stones in 0..=6 {
            let statistics = Statistics::of(&databases, stones, Extent::Full).unwrap();
            let json = statistics.json();
            assert_eq!(Statistics::of_json(&json).unwrap(), statistics, "{json}");
        }
    }

    #[test]
    fn json_is_as_documented() {
        let databases = solved(2, PositionSet::All);
        let statistics = Statistics::of(&databases, 2, Extent::Full).unwrap();
        assert_eq!(
            statistics.json(),
            "{\"stones\":2,\"positions\":78,\"mean\":-0.384615,\"won\":0.320513,\"drawn\":0.166667,\"lost\":0.512821,\
             \"captures\":{\"positions\":78,\"offered\":0,\"declined\":0},\
             \"scores\":[{\"score\":-2,\"positions\":40},{\"score\":0,\"positions\":13},{\"score\":2,\"positions\":25}]}"
        );
    }

    #[test]
    fn damaged_json_is_refused() {
        let databases = solved(2, PositionSet::All);
        let json = Statistics::of(&databases, 2, Extent::Full).unwrap().json();
        for (from, to) in [
            ("\"stones\":2", "\"stones\":1"),
            ("\"stones\":2", "\"stones\":200"),
            ("\"positions\":40", "\"positions\":41"),
            ("\"positions\":40", "\"positions\":-40"),
            ("\"score\":0", "\"score\":-2"),
            ("{\"score\":0,\"positions\":13},", ""),
            ("}]}", "}]"),
        ] {
            let damaged = json.replacen(from, to, 1);
            assert_ne!(damaged, json);
            let error = Statistics::of_json(&damaged).unwrap_err();
            assert!(matches!(error, CheckError::Statistics { .. }), "{error}");
        }
    }

    /// Against the twin: captures weighed by the reference rules.
    #[test]
    fn choice_agrees_with_the_reference() {
        use game::reference::{ReferenceMove, boards, moves, solve_up_to};
        let solved_scores = solve_up_to(6);
        let mut expected = CaptureStatistics::default();
        for pits in boards(6) {
            let (mut capture, mut quiet) = (None, None);
            for played in moves(pits) {
                if let ReferenceMove::Legal { captured, child } = played {
                    let value = captured as i8 - solved_scores[6 - usize::from(captured)][&child];
                    let best = if captured > 0 { &mut capture } else { &mut quiet };
                    *best = (*best).max(Some(value));
                }
            }
            expected.positions += 1;
            expected.offered += u64::from(capture.is_some() && quiet.is_some());
            expected.declined += u64::from(capture.is_some() && quiet > capture);
        }
        let databases = solved(6, PositionSet::All);
        let statistics = Statistics::of(&databases, 6, Extent::Full).unwrap();
        assert_eq!(statistics.choice(), expected);
        assert!(expected.declined > 0);
    }
}
