//! The positions at which two databases differ, for a message after their content digests differed.

use crate::databases::{AnyScores, Database, ScoreSource};
use crate::error::{CheckError, Result};
use crate::verify::MISTAKES_NAMED_MAX;
use crate::wrong_score::WrongScore;
use rayon::prelude::*;

/// Scores compared in one parallel unit; a multiple of a file's block (65,536 positions).
const UNIT_POSITIONS: u64 = 1 << 20;

/// The positions at which two databases differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// The number of positions.
    pub positions: u64,
    /// The first differing positions, in the order of the database, with both scores.
    pub first: Vec<WrongScore>,
}

/// Compares the scores of `found` with those that are `expected`.
///
/// # Panics
/// When the two do not have the same stones and position set.
pub fn differences<L: ScoreSource, M: ScoreSource>(found: &Database<L>, expected: &Database<M>) -> Result<Differences> {
    differences_of_any(&found.of_any(), &expected.of_any())
}

fn differences_of_any(found: &Database<AnyScores<'_>>, expected: &Database<AnyScores<'_>>) -> Result<Differences> {
    let positions = found.positions();
    let is_same = found.index().stones() == expected.index().stones() && positions == expected.positions();
    assert!(is_same, "databases of the same positions are compared");
    let parts: Vec<Differences> = (0..positions.div_ceil(UNIT_POSITIONS))
        .into_par_iter()
        .map_init(Default::default, |buffers: &mut (Vec<_>, Vec<_>), unit| {
            let first = unit * UNIT_POSITIONS;
            let count = UNIT_POSITIONS.min(positions - first) as usize;
            buffers.0.resize(count, 0);
            buffers.1.resize(count, 0);
            found.scores().read(first, &mut buffers.0)?;
            expected.scores().read(first, &mut buffers.1)?;
            let mut here = Differences::default();
            for (position, (&found_score, &expected)) in (first..).zip(buffers.0.iter().zip(&buffers.1)) {
                if found_score == expected {
                    continue;
                }
                here.positions += 1;
                if here.first.len() < MISTAKES_NAMED_MAX {
                    here.first.push(WrongScore { board: found.board(position), expected, found: found_score });
                }
            }
            Ok::<_, CheckError>(here)
        })
        .collect::<Result<_, _>>()?;
    let mut all = Differences::default();
    for part in parts {
        all.positions += part.positions;
        all.first.extend(part.first.into_iter().take(MISTAKES_NAMED_MAX - all.first.len()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solved::solved;
    use game::PositionSet;

    #[test]
    fn the_first_differences_are_listed_in_order() {
        let right = solved(7, PositionSet::All);
        let mut other = solved(7, PositionSet::All);
        let compare = |other: &crate::Databases<_>| differences(other.get(7).unwrap(), right.get(7).unwrap()).unwrap();
        assert_eq!(compare(&other), Differences::default());
        let scores = right.get(7).unwrap().scores();
        let mut changed: Vec<_> = scores.clone();
        let places: Vec<usize> = (0..20).map(|at| at * 1_500 + 7).collect();
        for &place in &places {
            changed[place] = if scores[place] == 7 { -7 } else { 7 };
        }
        other.insert(7, changed.clone()).unwrap();
        let found = compare(&other);
        assert_eq!((found.positions, found.first.len()), (20, MISTAKES_NAMED_MAX));
        for (mistake, place) in found.first.iter().zip(places) {
            let board = right.get(7).unwrap().board(place as u64);
            assert_eq!(*mistake, WrongScore { board, expected: scores[place], found: changed[place] });
        }
    }
}
