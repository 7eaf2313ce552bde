//! What a database says about the game: the figures that the papers report.
//!
//! The distribution of scores counts every position. How often a capture is the wrong move is told from the same positions that a
//! sampled verification takes: it needs the children of each.

use crate::look::{Databases, Look};
use crate::walk::{Seen, Tally, walk};
use crate::{CheckError, Extent, Histogram};
use serde::{Deserialize, Serialize};

/// The figures of one database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    stones: u32,
    histogram: Histogram,
    choice: Choice,
}

/// Captures against other moves (Romein & Bal 2002, "New awari insights": 22 % over the databases up to 48 stones).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Positions looked at.
    pub positions: u64,
    /// Those that offer both capturing and non-capturing moves.
    pub offered: u64,
    /// Those of them in which every best move captures nothing.
    pub declined: u64,
}

impl Statistics {
    /// The figures of the `stones`-stone database; captures are weighed at the positions of `extent`.
    pub fn of<L: Look>(databases: &Databases<L>, stones: u32, extent: Extent) -> Result<Statistics, CheckError> {
        Ok(Statistics {
            stones,
            histogram: Histogram::of(databases.get(stones)?)?,
            choice: walk(databases, stones, extent)?,
        })
    }

    /// Stones of the database.
    pub fn stones(&self) -> u32 {
        self.stones
    }

    /// All positions by score.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// Captures against other moves.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// The mean score of a position.
    pub fn mean(&self) -> f64 {
        let sum: i64 = self.histogram.scores().map(|(score, positions)| i64::from(score) * positions as i64).sum();
        sum as f64 / self.histogram.total() as f64
    }

    /// The share of positions that the mover wins, draws and loses.
    pub fn shares(&self) -> Shares {
        let share = |of: fn(i8) -> bool| {
            let positions: u64 =
                self.histogram.scores().filter(|&(score, _)| of(score)).map(|(_, positions)| positions).sum();
            positions as f64 / self.histogram.total() as f64
        };
        Shares { won: share(|score| score > 0), drawn: share(|score| score == 0), lost: share(|score| score < 0) }
    }
}

/// Shares of all positions, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// Positive scores.
    pub won: f64,
    /// Scores of 0.
    pub drawn: f64,
    /// Negative scores.
    pub lost: f64,
}

impl Choice {
    /// The share of those offering both in which every best move captures nothing; none where none offers both.
    pub fn declined_share(&self) -> Option<f64> {
        (self.offered > 0).then(|| self.declined as f64 / self.offered as f64)
    }
}

impl Tally for Choice {
    fn see(&mut self, seen: &Seen) {
        self.positions += 1;
        if let (Some(capture), Some(quiet)) = (seen.derived.capture, seen.derived.quiet) {
            self.offered += 1;
            self.declined += u64::from(quiet > capture);
        }
    }

    fn merge(&mut self, other: Choice) {
        self.positions += other.positions;
        self.offered += other.offered;
        self.declined += other.declined;
    }
}
