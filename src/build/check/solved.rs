//! Databases for tests, from the slow reference solver.

use crate::databases::{Databases, ORIENTATION};
use game::reference::{self, ReferenceScores};
use game::{Index, PositionSet, Rules, Score};
use std::sync::LazyLock;

const STONES_MAX: u8 = 7;

static SOLVED: LazyLock<Vec<ReferenceScores>> = LazyLock::new(|| reference::solve_up_to(STONES_MAX));

/// The databases of 0 to `stones` stones (at most 7).
pub(crate) fn solved(stones: u32, set: PositionSet) -> Databases<Vec<Score>> {
    let mut databases = Databases::new(Rules::AWARI, set);
    for (stones, solved) in (0..=stones).zip(SOLVED.iter()) {
        let index = Index::new(stones, set);
        let scores = (0..index.positions()).map(|position| solved[&index.unrank(position, ORIENTATION).0]).collect();
        databases.insert(stones, scores).unwrap();
    }
    databases
}
