//! The two bounds of positions, compared with each other.

use crate::databases::{AnyScores, Databases, ScoreSource};
use crate::error::{CheckError, Result};
use game::Score;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Positions whose bounds are compared at a time: a block of a file.
const PAIRED_POSITIONS: u64 = 1 << 16;

/// How far the two bounds of boards are apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairStatistics {
    /// Positions whose bounds are equal.
    pub exact: u64,
    /// The sum of the distances of the bounds over all positions.
    pub distances: u64,
}

impl PairStatistics {
    /// Counts positions from their lower and upper bounds.
    pub fn of_bounds(low: &[Score], high: &[Score]) -> PairStatistics {
        let of_position = |(&low, &high): (&Score, &Score)| PairStatistics {
            exact: u64::from(low == high),
            distances: (i64::from(high) - i64::from(low)).unsigned_abs(),
        };
        low.iter().zip(high).map(of_position).fold(PairStatistics::default(), PairStatistics::plus)
    }

    /// Adds the counts of other positions.
    #[must_use]
    pub fn plus(self, other: PairStatistics) -> PairStatistics {
        PairStatistics { exact: self.exact + other.exact, distances: self.distances + other.distances }
    }
}

/// Counts the bounds of all positions with `stones` stones.
///
/// # Errors
/// [`CheckError::Crossed`] where the lower bound exceeds the upper one.
pub(crate) fn pairs_of<L: ScoreSource>(low: &Databases<L>, high: &Databases<L>, stones: u32) -> Result<PairStatistics> {
    pairs_of_any(&low.of_any(), &high.of_any(), stones)
}

fn pairs_of_any(
    low: &Databases<AnyScores<'_>>,
    high: &Databases<AnyScores<'_>>,
    stones: u32,
) -> Result<PairStatistics> {
    let (lows, highs) = (low.get(stones)?, high.get(stones)?);
    let positions = lows.positions();
    let of_unit = |[low, high]: &mut [Vec<Score>; 2], unit: u64| {
        let first = unit * PAIRED_POSITIONS;
        for (database, bounds) in [(lows, &mut *low), (highs, &mut *high)] {
            bounds.resize(PAIRED_POSITIONS.min(positions - first) as usize, 0);
            database.scores().read(first, bounds)?;
        }
        match low.iter().zip(&*high).position(|(low, high)| low > high) {
            Some(at) => {
                let board = lows.board(first + at as u64);
                Err(CheckError::Crossed { stones, board, low: low[at], high: high[at] })
            }
            None => Ok(PairStatistics::of_bounds(low, high)),
        }
    };
    let units = (0..positions.div_ceil(PAIRED_POSITIONS)).into_par_iter();
    units.map_init(Default::default, of_unit).try_reduce(PairStatistics::default, |a, b| Ok(a.plus(b)))
}
