//! Quiet un-moves: the parents of a position, row by row.
//!
//! The opponent of a position has the half that the parent's move left behind; the tables list the rows and classes of
//! moves that leave it. The mover of the position has the half of the parent's opponent plus the stones that crossed;
//! taking those back is the same for a whole row. So the columns of the parents are computed once a row, by class,
//! without those that a capture or the rule against starving excludes.

use crate::kernels::tables::{CHUNK, Parents, Tables};
use game::sow::{Ends, SowClass};
use game::{Halves, Index, STONES_MAX, Slab};

/// No parent of this class.
const NONE: u64 = u64::MAX;

/// The un-moves of one row.
pub(crate) struct Unmoves<'a> {
    tables: &'a Tables,
    index: &'a Index,
    slab: Option<&'a Slab>,
    parents: Option<&'a Parents>,
    /// Positions of the row.
    start: u64,
    end: u64,
    /// Most stones that can be taken back.
    crossing_max: u32,
    /// By class number: the parent of row 0 of the parent slab.
    bases: [u64; SowClass::COUNT],
    /// By crossing stones: positions of a row of the parent slab.
    columns: [u64; STONES_MAX as usize + 1],
}

impl<'a> Unmoves<'a> {
    /// Creates the state, without a row.
    pub(crate) fn new(tables: &'a Tables, index: &'a Index) -> Unmoves<'a> {
        Unmoves {
            tables,
            index,
            slab: None,
            parents: None,
            start: 0,
            end: 0,
            crossing_max: 0,
            bases: [NONE; SowClass::COUNT],
            columns: [0; STONES_MAX as usize + 1],
        }
    }

    /// Visits the parents of a position; all `MoverMajor`.
    #[inline(always)]
    pub(crate) fn each_parent(&mut self, position: u64, mut visit: impl FnMut(u64)) {
        if position < self.start || position >= self.end {
            self.enter(position);
        }
        let Some(parents) = self.parents else { return };
        for to in parents.of((position - self.start) as u32) {
            let crossing = to.crossing();
            if crossing > self.crossing_max {
                break;
            }
            let base = self.bases[to.class()];
            if base != NONE {
                visit(base + u64::from(to.rank()) * self.columns[crossing as usize]);
            }
        }
    }

    /// Moves to the row of a position, and computes the columns of its parents.
    fn enter(&mut self, position: u64) {
        let slab = match self.slab {
            Some(slab) if slab.offset <= position && position < slab.offset + slab.positions() => slab,
            _ => {
                let slabs = self.index.slabs();
                &slabs[slabs.partition_point(|slab| slab.offset <= position) - 1]
            }
        };
        self.slab = Some(slab);
        self.parents = Some(self.tables.parents(slab.opponent_stones));
        let columns = u64::from(slab.opponent_halves);
        let row = (position - slab.offset) / columns;
        self.start = slab.offset + row * columns;
        self.end = self.start + columns;
        debug_assert!(row < u64::from(Halves::count(slab.mover_stones)));
        let half = self.index.halves().unrank(slab.mover_stones, row as u32);
        for crossing in 0..=slab.mover_stones {
            let gain = SowClass { crossing: crossing as u8, ends: Ends::Opponent }.gain();
            // Each further crossing stone adds to a pit.
            if half.iter().zip(&gain).any(|(stones, gain)| stones < gain) {
                break;
            }
            self.crossing_max = crossing;
            let before = std::array::from_fn(|pit| half[pit] - gain[pit]);
            let column = self.index.rank_opponent(&before);
            let parent = self.index.slab(slab.opponent_stones + crossing);
            self.columns[crossing as usize] = u64::from(parent.opponent_halves);
            for ends in [Ends::Mover, Ends::Opponent] {
                let class = SowClass { crossing: crossing as u8, ends };
                let quiet = column.filter(|&column| {
                    class.occurs() && {
                        let quiet = &self.tables.columns(parent.opponent_stones, class.number()).quiet;
                        quiet[column as usize / CHUNK] >> (column as usize % CHUNK) & 1 == 1
                    }
                });
                self.bases[class.number()] = quiet.map_or(NONE, |column| parent.offset + u64::from(column));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::{Orientation, PositionSet, Rules};

    /// Compares with the un-moves of single boards.
    #[test]
    fn parents_are_those_of_boards() {
        for (rules, set) in
            Rules::KNOWN.iter().flat_map(|rules| [PositionSet::All, PositionSet::REACHABLE].map(|set| (rules, set)))
        {
            let stones_max = if *rules == Rules::AWARI { 9 } else { 6 };
            let tables = Tables::new(*rules, set, stones_max);
            for stones in 0..=stones_max {
                let index = Index::new(stones, set);
                let mut unmoves = Unmoves::new(&tables, &index);
                for position in 0..index.slab_positions() {
                    let board = index.unrank(position, Orientation::MoverMajor);
                    let mut expected: Vec<u64> = board
                        .unmoves(rules)
                        .iter()
                        // A move that leaves nothing to the opponent has no child in this database.
                        .filter(|_| !board.mover_starves())
                        .filter_map(|(_, parent)| index.rank(parent, Orientation::MoverMajor))
                        .collect();
                    let mut found = Vec::new();
                    unmoves.each_parent(position, |parent| found.push(parent));
                    expected.sort_unstable();
                    found.sort_unstable();
                    assert_eq!(found, expected, "{board:?} {}", rules.name);
                }
            }
        }
    }
}
