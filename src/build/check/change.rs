//! How many positions change their score from one set of rules to another.

use crate::databases::{AnyScores, Database, Databases, ScoreSource};
use crate::error::Result;
use rayon::prelude::*;

/// Positions of one parallel unit: a block of a file.
const UNIT_POSITIONS: u64 = 1 << 16;

/// Counts of positions by how their score depends on the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScoreChanges {
    /// All positions.
    pub positions: u64,
    /// Positions with a move that would capture all of the opponent's stones, if slams were allowed.
    pub slams: u64,
    /// Positions with different scores.
    pub changed: u64,
    /// Those of them that also change between won, drawn and lost.
    pub decided_otherwise: u64,
    /// Positions with a higher score by the other rules.
    pub raised: u64,
    /// Positions whose bounds differ by either rules, so that they may change or not.
    pub open: u64,
}

impl ScoreChanges {
    /// Compares the databases of `stones` stones.
    ///
    /// # Panics
    /// When the databases are of different position sets.
    pub fn between<L: ScoreSource, M: ScoreSource>(
        databases: &Databases<L>,
        others: &Databases<M>,
        stones: u32,
    ) -> Result<ScoreChanges> {
        ScoreChanges::of_bounds([databases, databases], [others, others], stones)
    }

    /// As [`between`](Self::between), of lower and upper bounds. A position counts as changed, raised, or
    /// decided otherwise if it is so whichever scores within the bounds are compared.
    ///
    /// # Panics
    /// As [`between`](Self::between).
    pub fn of_bounds<L: ScoreSource, M: ScoreSource>(
        databases: [&Databases<L>; 2],
        others: [&Databases<M>; 2],
        stones: u32,
    ) -> Result<ScoreChanges> {
        ScoreChanges::of_any(databases.map(Databases::of_any), others.map(Databases::of_any), stones)
    }

    fn of_any(
        databases: [Databases<AnyScores<'_>>; 2],
        others: [Databases<AnyScores<'_>>; 2],
        stones: u32,
    ) -> Result<ScoreChanges> {
        assert_eq!(databases[0].set(), others[0].set(), "the same positions");
        let (lows, highs) = (databases[0].get(stones)?, databases[1].get(stones)?);
        let (other_lows, other_highs) = (others[0].get(stones)?, others[1].get(stones)?);
        let units = 0..lows.positions().div_ceil(UNIT_POSITIONS);
        let of_unit = |[low, high, other_low, other_high]: &mut [Vec<i8>; 4], unit: u64| {
            let first = unit * UNIT_POSITIONS;
            read(lows, first, low)?;
            read(highs, first, high)?;
            read(other_lows, first, other_low)?;
            read(other_highs, first, other_high)?;
            let mut changes = ScoreChanges::default();
            for (at, position) in (0..low.len()).zip(first..) {
                let (before, after) = ((low[at], high[at]), (other_low[at], other_high[at]));
                let (raised, lowered) = (before.1 < after.0, after.1 < before.0);
                let (sign, other_sign) = (signs(before), signs(after));
                changes.positions += 1;
                changes.slams += u64::from(lows.board(position).offers_slam(databases[0].rules()));
                changes.changed += u64::from(raised || lowered);
                changes.decided_otherwise += u64::from(sign.1 < other_sign.0 || other_sign.1 < sign.0);
                changes.raised += u64::from(raised);
                changes.open += u64::from(before.0 < before.1 || after.0 < after.1);
            }
            Ok(changes)
        };
        units
            .into_par_iter()
            .map_init(Default::default, of_unit)
            .try_reduce(ScoreChanges::default, |a, b| Ok(a.plus(b)))
    }

    fn plus(self, other: ScoreChanges) -> ScoreChanges {
        ScoreChanges {
            positions: self.positions + other.positions,
            slams: self.slams + other.slams,
            changed: self.changed + other.changed,
            decided_otherwise: self.decided_otherwise + other.decided_otherwise,
            raised: self.raised + other.raised,
            open: self.open + other.open,
        }
    }
}

/// Returns the signs of bounds.
fn signs((low, high): (i8, i8)) -> (i8, i8) {
    (low.signum(), high.signum())
}

fn read(database: &Database<AnyScores<'_>>, first: u64, scores: &mut Vec<i8>) -> Result<()> {
    scores.resize(UNIT_POSITIONS.min(database.positions() - first) as usize, 0);
    database.scores().read(first, scores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::reference::{self, Pits, boards};
    use game::{Index, PositionSet, Rules};

    fn solved_by(rules: Rules, stones: u8) -> Databases<Vec<i8>> {
        let mut databases = Databases::new(rules, PositionSet::All);
        for (stones, solved) in (0..).zip(reference::solve_up_to_by(&rules, stones)) {
            let index = Index::new(stones, PositionSet::All);
            let board = |position| index.unrank(position, crate::databases::ORIENTATION);
            databases.insert(stones, (0..index.positions()).map(|at| solved[&board(at).0]).collect()).unwrap();
        }
        databases
    }

    #[test]
    fn changes_are_those_of_the_reference() {
        let rules = [Rules::AWARI, Rules::WARI];
        let [awari, wari] = rules.map(|rules| solved_by(rules, 6));
        let solved = rules.map(|rules| reference::solve_up_to_by(&rules, 6));
        let takes_all = |pits: Pits| {
            (0..6).any(|pit| {
                let sown = reference::sow_by(&Rules::SLAM_CAPTURE, pits, pit);
                sown.is_some_and(|(captured, child)| captured > 0 && child[..6] == [0; 6])
            })
        };
        let mut any = 0;
        for stones in 0..=6u8 {
            let found = ScoreChanges::between(&awari, &wari, stones.into()).unwrap();
            let scores = |pits: &Pits| [0, 1].map(|rules: usize| solved[rules][usize::from(stones)][pits]);
            let count = |is: &dyn Fn(i8, i8) -> bool| {
                boards(stones).iter().map(scores).filter(|&[before, after]| is(before, after)).count() as u64
            };
            assert_eq!(found.positions, boards(stones).len() as u64);
            assert_eq!(found.slams, boards(stones).into_iter().filter(|&pits| takes_all(pits)).count() as u64);
            assert_eq!(found.changed, count(&|before, after| before != after));
            assert_eq!(found.decided_otherwise, count(&|before, after| before.signum() != after.signum()));
            assert_eq!(found.raised, count(&|before, after| before < after));
            any += found.changed;
        }
        assert!(any > 0);
    }
}
