//! Partition of rows among ranks: the rows of candidates that each rank owns, and the rows of wins that it holds.
//!
//! A *unit* is the set of all halves, of any number of stones, with the same four leading pits. Units are ordered as
//! their halves. Each rank owns a run of units with about as many positions as any other: in every slab a range of
//! `MoverMajor` rows, which it solves. It holds the `OpponentMajor` rows that their moves lead to. Since halves are
//! ordered by their leading pits, and moves from other pits leave these alone, few rows are held by several ranks: at
//! 24 stones 2 ranks together hold 1.2 times the database, 4 ranks 1.7, 8 ranks 2.2 and 64 ranks 3.5 times. Cut by the
//! last pits, it would be 1.4, 2.2, 3.0 and 5.3 times.

use crate::kernels::tables::{CHUNK, PackedMove, Tables, chunks};
use game::{PositionSet, Slab};
use rayon::prelude::*;
use std::ops::Range;

/// Partition of the rows of one database. A function of the database and the number of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPartition {
    /// By rank and the mover's stones, the first row; plus the end of all rows.
    first: Vec<Vec<u32>>,
    slabs: Vec<Slab>,
}

/// Set of `OpponentMajor` rows of a slab.
#[derive(Clone, Debug)]
pub(crate) struct RowSet {
    /// Bit mask of the rows.
    words: Vec<u64>,
    /// Number of rows of the set before each word.
    before: Vec<u32>,
    pub(crate) count: u32,
}

impl RowPartition {
    /// Partitions the positions with `stones` stones among `ranks` ranks.
    ///
    /// # Panics
    /// If `ranks` is 0.
    pub fn new(stones: u32, set: PositionSet, ranks: usize) -> RowPartition {
        assert!(ranks > 0, "a job has a rank");
        let slabs = set.slabs(stones);
        // A unit with `leading` stones in its leading pits has one half more for each further stone.
        let halves = |leading: u32, mover: u32| mover - leading + 1;
        let weight = |leading: u32| {
            let slabs = &slabs[leading as usize..];
            slabs.iter().map(|slab| u64::from(halves(leading, slab.mover_stones) * slab.opponent_halves)).sum::<u64>()
        };
        let weights: Vec<_> = (0..=stones).map(weight).collect();
        let total: u64 = slabs.iter().map(Slab::positions).sum();
        let mut end = vec![0; slabs.len()];
        let mut first = vec![end.clone()];
        let mut taken = 0;
        for one in (0..=stones).rev() {
            for two in (one..=stones).rev() {
                for three in (two..=stones).rev() {
                    for leading in (three..=stones).rev() {
                        // The run of a rank ends before the first unit with its middle beyond the share of the rank.
                        let middle = u128::from(2 * taken + weights[leading as usize]) * ranks as u128;
                        while first.len() < ranks && middle >= 2 * first.len() as u128 * u128::from(total) {
                            first.push(end.clone());
                        }
                        taken += weights[leading as usize];
                        for mover in leading..=stones {
                            end[mover as usize] += halves(leading, mover);
                        }
                    }
                }
            }
        }
        first.resize(ranks, end.clone());
        first.push(end);
        RowPartition { first, slabs }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.first.len() - 1
    }

    /// The slabs of the database.
    pub fn slabs(&self) -> &[Slab] {
        &self.slabs
    }

    /// The `MoverMajor` rows that a rank owns of a slab.
    pub fn rows(&self, rank: usize, mover_stones: u32) -> Range<u32> {
        self.first[rank][mover_stones as usize]..self.first[rank + 1][mover_stones as usize]
    }

    /// Positions that a rank owns.
    pub fn positions(&self, rank: usize) -> u64 {
        let owned = |slab: &Slab| self.rows(rank, slab.mover_stones).len() as u64 * u64::from(slab.opponent_halves);
        self.slabs.iter().map(owned).sum()
    }

    /// Returns, by slab, the rows that moves from the rows of a rank lead to.
    fn held(&self, tables: &Tables, rank: usize) -> Vec<RowSet> {
        let stones = self.slabs.len() as u32 - 1;
        let mut words: Vec<_> = self.slabs.iter().map(|slab| vec![0u64; chunks(slab.opponent_halves)]).collect();
        for mover in 0..=stones {
            for moves in &tables.rows(mover)[as_usize(&self.rows(rank, mover))] {
                for to in moves.iter().take_while(|&&to| to != PackedMove::NONE) {
                    let slab = stones - mover + to.crossing();
                    words[slab as usize][to.rank() as usize / CHUNK] |= 1 << (to.rank() as usize % CHUNK);
                }
            }
        }
        words.into_iter().map(RowSet::new).collect()
    }

    /// Returns [`held`](Self::held) of every rank.
    pub(crate) fn held_by_all(&self, tables: &Tables) -> Vec<Vec<RowSet>> {
        (0..self.ranks()).into_par_iter().map(|rank| self.held(tables, rank)).collect()
    }
}

impl RowSet {
    /// Creates a set from its bit mask.
    pub(crate) fn new(words: Vec<u64>) -> RowSet {
        let mut count = 0;
        let before = words.iter().map(|word| {
            let before = count;
            count += word.count_ones();
            before
        });
        let before = before.collect();
        RowSet { words, before, count }
    }

    /// Returns the bit mask of the rows of a chunk.
    pub(crate) fn of(&self, chunk: usize) -> u64 {
        self.words[chunk]
    }

    /// Whether a row is in the set.
    #[inline]
    pub(crate) fn contains(&self, row: u32) -> bool {
        self.words[row as usize / CHUNK] >> (row as usize % CHUNK) & 1 == 1
    }

    /// Returns the number of rows of the set before `row`, or `None` if `row` is not in the set.
    #[inline]
    pub(crate) fn find(&self, row: u32) -> Option<u32> {
        let (word, bit) = (row as usize / CHUNK, row as usize % CHUNK);
        let before = || self.before[word] + (self.words[word] & ((1 << bit) - 1)).count_ones();
        self.contains(row).then(before)
    }
}

/// Converts a range of rows to indices.
pub(crate) fn as_usize(rows: &Range<u32>) -> Range<usize> {
    rows.start as usize..rows.end as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::{Halves, Rules};

    #[test]
    fn every_row_has_one_owner_and_units_stay_whole() {
        for (set, stones) in [(PositionSet::All, 9), (PositionSet::REACHABLE, 12), (PositionSet::All, 0)] {
            let halves = Halves::new(stones);
            for ranks in [1, 2, 3, 4, 7, 40] {
                let partition = RowPartition::new(stones, set, ranks);
                assert_eq!((0..ranks).map(|rank| partition.positions(rank)).sum::<u64>(), set.slab_positions(stones));
                for mover in 0..=stones {
                    let mut last = 0;
                    for rank in 0..ranks {
                        let rows = partition.rows(rank, mover);
                        assert_eq!(rows.start, last);
                        last = rows.end;
                        if rank > 0 && rows.start > 0 && rows.start < Halves::count(mover) {
                            let leading = |row| halves.unrank(mover, row)[..4].to_vec();
                            assert!(leading(rows.start - 1) != leading(rows.start), "{ranks} ranks cut a unit");
                        }
                    }
                    assert_eq!(last, Halves::count(mover));
                }
            }
        }
    }

    #[test]
    fn ranks_own_about_the_same() {
        for ranks in [2, 3, 4, 8] {
            let partition = RowPartition::new(20, PositionSet::All, ranks);
            let fair = PositionSet::All.positions(20) as f64 / ranks as f64;
            for rank in 0..ranks {
                let share = partition.positions(rank) as f64 / fair;
                assert!((0.97..1.03).contains(&share), "rank {rank} of {ranks} owns {share} of its share");
            }
        }
    }

    #[test]
    fn moves_lead_to_held_rows() {
        let (set, stones) = (PositionSet::REACHABLE, 10);
        let tables = Tables::new(Rules::AWARI, set, stones);
        let partition = RowPartition::new(stones, set, 3);
        for (rank, held) in partition.held_by_all(&tables).iter().enumerate() {
            for mover in 0..=stones {
                let moves = tables.rows(mover)[as_usize(&partition.rows(rank, mover))].iter().flatten();
                for to in moves.filter(|&&to| to != PackedMove::NONE) {
                    let held = &held[(stones - mover + to.crossing()) as usize];
                    let before = (0..to.rank()).filter(|&row| held.find(row).is_some()).count() as u32;
                    assert_eq!(held.find(to.rank()), Some(before));
                }
            }
        }
    }
}
