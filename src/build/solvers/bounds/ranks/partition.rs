//! Partition of rows among ranks: the rows of candidates that each rank owns, and the rows of wins that it holds.
//!
//! A *unit* is the set of all halves, of any number of stones, with the same four leading pits. Units are
//! ordered as their halves, and cut into runs of about the same expected work. Each rank owns [`RUNS`] of
//! them: in every slab ranges of `MoverMajor` rows, which it solves. It holds the `OpponentMajor` rows that
//! their moves lead to. Since halves are ordered by their leading pits, and moves from other pits leave these
//! alone, few rows are held by several ranks: at 24 stones 2 ranks together hold 1.6 times the database, 4
//! ranks 2.1, 8 ranks 2.5 and 64 ranks 3.9 times.
//!
//! Where the work is differs from bound to bound: at high bounds it is in units with few stones, which come
//! last, at low ones more in the middle. The two runs of a rank are half of all work apart, which evens this
//! out. With one run of as many positions, 8 ranks would hold 2.2 times the database, but the busiest rank
//! would do 1.38 times the mean of a bound instead of 1.19.

use crate::kernels::tables::{CHUNK, PackedMove, Tables, chunks};
use game::{PositionSet, Slab};
use std::ops::Range;

/// Partition of the rows of one database. A function of the database and the number of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPartition {
    ranks: usize,
    /// By run and the mover's stones, the first row; plus the end of all rows.
    first: Vec<Vec<u32>>,
    slabs: Vec<Slab>,
}

/// Runs of units of a rank. More of them would spread the work more evenly, but more rows of wins would be
/// held by several ranks.
const RUNS: usize = 2;

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
        let positions = |leading: u32| {
            let slabs = &slabs[leading as usize..];
            slabs.iter().map(|slab| u64::from(halves(leading, slab.mover_stones) * slab.opponent_halves)).sum::<u64>()
        };
        let positions: Vec<_> = (0..=stones).map(positions).collect();
        let work = |unit: [u32; 4]| positions[unit[3] as usize] * work_of_position(unit);
        let total: u64 = units(stones).map(work).sum();
        let runs = ranks * RUNS;
        let mut end = vec![0; slabs.len()];
        let mut first = vec![end.clone()];
        let mut taken = 0;
        for unit in units(stones) {
            // A run ends before the first unit with its middle beyond the share of the run.
            let middle = u128::from(2 * taken + work(unit)) * runs as u128;
            while first.len() < runs && middle >= 2 * first.len() as u128 * u128::from(total) {
                first.push(end.clone());
            }
            taken += work(unit);
            for mover in unit[3]..=stones {
                end[mover as usize] += halves(unit[3], mover);
            }
        }
        first.resize(runs, end.clone());
        first.push(end);
        RowPartition { ranks, first, slabs }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// The slabs of the database.
    pub fn slabs(&self) -> &[Slab] {
        &self.slabs
    }

    /// The `MoverMajor` rows that a rank owns of a slab: ranges that are not empty, ascending.
    pub fn rows(&self, rank: usize, mover_stones: u32) -> impl Iterator<Item = Range<u32>> + '_ {
        let start = move |run: usize| self.first[run][mover_stones as usize];
        let runs = (rank..RUNS * self.ranks).step_by(self.ranks);
        runs.map(move |run| start(run)..start(run + 1)).filter(|rows| !rows.is_empty())
    }

    /// Number of `MoverMajor` rows that a rank owns of a slab.
    pub fn row_count(&self, rank: usize, mover_stones: u32) -> u64 {
        self.rows(rank, mover_stones).map(|rows| rows.len() as u64).sum()
    }

    /// Positions that a rank owns.
    pub fn positions(&self, rank: usize) -> u64 {
        let owned = |slab: &Slab| self.row_count(rank, slab.mover_stones) * u64::from(slab.opponent_halves);
        self.slabs.iter().map(owned).sum()
    }

    /// Returns, by slab, the rows that moves from the rows of a rank lead to.
    pub(super) fn held(&self, tables: &Tables, rank: usize) -> Vec<RowSet> {
        let stones = self.slabs.len() as u32 - 1;
        let mut words: Vec<_> = self.slabs.iter().map(|slab| vec![0u64; chunks(slab.opponent_halves)]).collect();
        for mover in 0..=stones {
            let rows = self.rows(rank, mover).map(as_usize);
            for moves in rows.flat_map(|rows| &tables.rows(mover)[rows]) {
                for to in moves.iter().take_while(|&&to| to != PackedMove::NONE) {
                    let slab = stones - mover + to.crossing();
                    words[slab as usize][to.rank() as usize / CHUNK] |= 1 << (to.rank() as usize % CHUNK);
                }
            }
        }
        words.into_iter().map(RowSet::new).collect()
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

    /// Creates the set of those of `count` rows that are chosen.
    pub(crate) fn of_rows(count: usize, is_chosen: impl Fn(usize) -> bool) -> RowSet {
        let chunk = |first: usize| {
            let rows = first..count.min(first + CHUNK);
            rows.filter(|&row| is_chosen(row)).fold(0, |mask, row| mask | 1 << (row - first))
        };
        RowSet::new((0..count).step_by(CHUNK).map(chunk).collect())
    }

    /// Iterates over its rows, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let chunks = (0..).step_by(CHUNK).zip(&self.words);
        chunks.flat_map(|(first, &mask)| (0..CHUNK).filter(move |row| mask >> row & 1 == 1).map(move |row| first + row))
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

/// Iterates over the units in their order, each as the stones in its first pit, first two, first three, and
/// all four leading pits.
fn units(stones: u32) -> impl Iterator<Item = [u32; 4]> {
    let more = move |least: u32| (least..=stones).rev();
    let pairs = more(0).flat_map(move |first_pit| more(first_pit).map(move |two| (first_pit, two)));
    let triples = pairs.flat_map(move |(first_pit, two)| more(two).map(move |three| (first_pit, two, three)));
    triples.flat_map(move |(first_pit, two, three)| more(three).map(move |leading| [first_pit, two, three, leading]))
}

/// Expected work for each position of a unit, over all bounds: more if pits are empty. Measured at 18 and 20
/// stones, where rows tested, words tested and positions lost of units with 1 to 4 empty leading pits were
/// 1.2, 1.8, 2.2 and 2.3 times those of units with none.
fn work_of_position([first_pit, two, three, leading]: [u32; 4]) -> u64 {
    3 + [first_pit == 0, two == first_pit, three == two, leading == three].map(u64::from).iter().sum::<u64>()
}

/// Converts a range of rows to indices.
pub(crate) fn as_usize(rows: Range<u32>) -> Range<usize> {
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
                    let mut runs = Vec::new();
                    for rank in 0..ranks {
                        let rows: Vec<_> = partition.rows(rank, mover).collect();
                        assert!(rows.is_sorted_by_key(|rows| rows.start) && rows.len() <= RUNS);
                        assert_eq!(
                            rows.iter().map(|rows| rows.len() as u64).sum::<u64>(),
                            partition.row_count(rank, mover)
                        );
                        runs.extend(rows);
                    }
                    runs.sort_by_key(|rows| rows.start);
                    let mut last = 0;
                    for rows in runs {
                        assert_eq!(rows.start, last);
                        last = rows.end;
                        if rows.start > 0 {
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
    fn ranks_expect_about_the_same_work() {
        let (set, stones) = (PositionSet::All, 20);
        let halves = Halves::new(stones);
        for ranks in [2, 3, 4, 8] {
            let partition = RowPartition::new(stones, set, ranks);
            let mut work = vec![0; ranks];
            for (rank, work) in work.iter_mut().enumerate() {
                for slab in partition.slabs() {
                    for row in partition.rows(rank, slab.mover_stones).flatten() {
                        let empty = halves.unrank(slab.mover_stones, row)[..4].iter().filter(|&&pit| pit == 0).count();
                        *work += (3 + empty as u64) * u64::from(slab.opponent_halves);
                    }
                }
            }
            let fair_work = work.iter().sum::<u64>() as f64 / ranks as f64;
            let fair_positions = set.positions(stones) as f64 / ranks as f64;
            for (rank, work) in work.into_iter().enumerate() {
                let share = work as f64 / fair_work;
                assert!((0.96..1.04).contains(&share), "rank {rank} of {ranks} has {share} of its share of the work");
                let share = partition.positions(rank) as f64 / fair_positions;
                assert!((0.85..1.15).contains(&share), "rank {rank} of {ranks} owns {share} of its share");
            }
        }
    }

    #[test]
    fn moves_lead_to_held_rows() {
        let (set, stones) = (PositionSet::REACHABLE, 10);
        let tables = Tables::new(Rules::AWARI, set, stones);
        let partition = RowPartition::new(stones, set, 3);
        for rank in 0..partition.ranks() {
            let held = partition.held(&tables, rank);
            for mover in 0..=stones {
                let rows = partition.rows(rank, mover).map(as_usize);
                let moves = rows.flat_map(|rows| &tables.rows(mover)[rows]).flatten();
                for to in moves.filter(|&&to| to != PackedMove::NONE) {
                    let held = &held[(stones - mover + to.crossing()) as usize];
                    let before = (0..to.rank()).filter(|&row| held.find(row).is_some()).count() as u32;
                    assert_eq!(held.find(to.rank()), Some(before));
                }
            }
        }
    }
}
