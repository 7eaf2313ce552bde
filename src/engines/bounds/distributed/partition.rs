//! Which positions are whose: what each rank of a job owns, and what it holds of the others'.
//!
//! A *unit* is the halves whose four leading pits are the same, of whatever stones; units stand in the order of their
//! ranks. Each rank owns a run of them, about as many positions as any other: in every slab a range of `MoverMajor` rows,
//! which it solves. Their moves lead to `OpponentMajor` rows, which it holds, whoever solves the positions there. Ranks
//! of halves are ordered by the leading pits, and moves from all other pits leave these alone: so what several ranks
//! hold is little. Of 24 stones 2 ranks hold 1.2 times the database together, 4 of them 1.7, 8 of them 2.2, 64 of them
//! 3.5 times; cut by the last pits it is 1.4, 2.2, 3.0 and 5.3.

use crate::kernels::tables::{CHUNK, PackedMove, Tables, chunks};
use game::{PositionSet, Slab};
use rayon::prelude::*;
use std::ops::Range;

/// What the ranks of a job own of one database: a function of the database and the number of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPartition {
    /// By rank and by the mover's stones the first of its rows, and behind the last rank the end of all rows.
    first: Vec<Vec<u32>>,
    slabs: Vec<Slab>,
}

/// A set of rows of a slab in `OpponentMajor`.
#[derive(Clone, Debug)]
pub(crate) struct RowSet {
    /// A bit a row.
    words: Vec<u64>,
    /// Rows of the set before each word.
    before: Vec<u32>,
    pub(crate) count: u32,
}

impl RowPartition {
    /// Of the positions with `stones` stones, for so many ranks.
    ///
    /// # Panics
    /// Without ranks.
    pub fn new(stones: u32, set: PositionSet, ranks: usize) -> RowPartition {
        assert!(ranks > 0, "a job has a rank");
        let slabs = set.slabs(stones);
        // A unit with so many stones in its leading pits has a half more for each further stone.
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
                        // A rank ends where the middle of the next unit is beyond its share.
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

    /// Ranks.
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

    /// By slab, the rows that moves lead to from what a rank owns.
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

    /// What [`held`](Self::held) says of every rank.
    pub(crate) fn held_by_all(&self, tables: &Tables) -> Vec<Vec<RowSet>> {
        (0..self.ranks()).into_par_iter().map(|rank| self.held(tables, rank)).collect()
    }
}

impl RowSet {
    /// Of a bit a row.
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

    /// A bit for each row of a chunk.
    pub(crate) fn of(&self, chunk: usize) -> u64 {
        self.words[chunk]
    }

    /// How many rows of the set there are before a row of it; none if it is another.
    pub(crate) fn find(&self, row: u32) -> Option<u32> {
        let (word, bit) = (row as usize / CHUNK, row as usize % CHUNK);
        let before = || self.before[word] + (self.words[word] & ((1 << bit) - 1)).count_ones();
        (self.words[word] >> bit & 1 == 1).then(before)
    }
}

/// The same range for slices.
pub(crate) fn as_usize(rows: &Range<u32>) -> Range<usize> {
    rows.start as usize..rows.end as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::{Halves, Rules};

    #[test]
    fn every_row_has_one_owner_and_units_stay_whole() {
        for (set, stones) in [(PositionSet::All, 9), (PositionSet::Reachable, 12), (PositionSet::All, 0)] {
            let halves = Halves::new(stones);
            for ranks in [1, 2, 3, 4, 7, 40] {
                let partition = RowPartition::new(stones, set, ranks);
                assert_eq!((0..ranks).map(|rank| partition.positions(rank)).sum::<u64>(), set.positions(stones));
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
        let (set, stones) = (PositionSet::Reachable, 10);
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
