//! Partition of the rows of a capture database among the ranks of a job.
//!
//! Halves are ordered by their leading pits, and a move of a later pit leaves the leading pits alone. So a rank that
//! computes the rows with some leading pits, in all slabs, reads mostly rows of smaller databases with the same leading
//! pits. The halves of all slabs are cut by their four leading pits into *cells* of about equal size, which are
//! assigned to the ranks in turn, so that each rank has about its share of any part of the database.

use game::Slab;
use std::ops::Range;

/// Cells a rank, unless a slab needs more. With one cell, ranks wait for each other in some slabs, and the whole takes
/// 1.6 times as long (20 stones, 4 ranks); with four, 1.05 times. More cells cost decoding, since the blocks at either
/// end of a cell are decoded by two ranks: with sixteen cells, each block was decoded 3.3 times.
const CELLS: u64 = 4;

/// Most positions that a cell has in a slab, about.
const CELL_POSITIONS_MAX: u64 = 8 << 20;

/// Partition of the rows of one database among ranks. A function of the database and the number of ranks.
#[derive(Clone, Debug)]
pub struct CapturePartition {
    /// By cell, the rank that owns it.
    owners: Vec<usize>,
    /// By cell, then by the mover's stones: the first row; plus the end.
    first: Vec<Vec<u32>>,
}

impl CapturePartition {
    /// Partitions the rows of all slabs of a database among `ranks` ranks.
    ///
    /// # Panics
    /// If `ranks` is 0.
    pub fn new(slabs: &[Slab], ranks: usize) -> CapturePartition {
        assert!(ranks > 0, "a job has a rank");
        let total: u64 = slabs.iter().map(Slab::positions).sum();
        let largest = slabs.iter().map(Slab::positions).max().unwrap_or(0);
        let cells = CELLS.max(largest / CELL_POSITIONS_MAX) * ranks as u64;
        let first = cells_of(slabs, total, cells);
        let weight = |cell: usize| -> u64 {
            let rows =
                |slab: &Slab| first[cell + 1][slab.mover_stones as usize] - first[cell][slab.mover_stones as usize];
            slabs.iter().map(|slab| u64::from(rows(slab)) * u64::from(slab.opponent_halves)).sum()
        };
        let owners = assign_cells(&(0..first.len() - 1).map(weight).collect::<Vec<_>>(), ranks);
        CapturePartition { owners, first }
    }

    /// Iterates over the runs of `rows` of a slab, in ascending order, with the rank that computes each.
    pub fn runs(&self, mover_stones: usize, rows: Range<u32>) -> impl Iterator<Item = (usize, Range<u32>)> + '_ {
        let cells = self.owners.iter().zip(self.first.windows(2));
        cells.filter_map(move |(&rank, cells)| {
            let run = cells[0][mover_stones].max(rows.start)..cells[1][mover_stones].min(rows.end);
            (!run.is_empty()).then_some((rank, run))
        })
    }
}

/// Cuts the halves of all slabs by their four leading pits.
fn cells_of(slabs: &[Slab], total: u64, cells: u64) -> Vec<Vec<u32>> {
    let stones = slabs.len() as u32 - 1;
    let mut end = vec![0; slabs.len()];
    let mut first = vec![end.clone()];
    let (mut taken, mut next) = (0, 1);
    for one in (0..=stones).rev() {
        for two in (one..=stones).rev() {
            for three in (two..=stones).rev() {
                for leading in (three..=stones).rev() {
                    // The number of halves with these leading pits: the ways to distribute the remaining stones.
                    for slab in &slabs[leading as usize..] {
                        let rows = slab.mover_stones - leading + 1;
                        end[slab.mover_stones as usize] += rows;
                        taken += u64::from(rows) * u64::from(slab.opponent_halves);
                    }
                    let whole = u128::from(taken) * u128::from(cells) / u128::from(total);
                    if whole >= next && taken < total {
                        first.push(end.clone());
                        next = whole + 1;
                    }
                }
            }
        }
    }
    first.push(end);
    first
}

/// Assigns cells with weights to ranks, each to the one that has least.
fn assign_cells(weights: &[u64], ranks: usize) -> Vec<usize> {
    let mut assigned = vec![0u64; ranks];
    let next = |&weight: &u64| {
        let least = (0..ranks).min_by_key(|&rank| assigned[rank]).expect("a job has a rank");
        assigned[least] += weight;
        least
    };
    weights.iter().map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tables;
    use crate::capture::{ChildRow, InMemory, SmallerRows, capture_into, capture_rows};
    use game::{Index, PositionSet, Rules, Score};
    use std::collections::BTreeSet;
    use std::convert::Infallible;
    use std::sync::Mutex;

    #[test]
    fn runs_are_all_rows_in_order() {
        for set in [PositionSet::All, PositionSet::REACHABLE] {
            for stones in [0, 1, 7, 16, 20] {
                let index = Index::new(stones, set);
                for ranks in [1, 2, 3, 8] {
                    let partition = CapturePartition::new(index.slabs(), ranks);
                    for (at, slab) in index.slabs().iter().enumerate() {
                        for rows in [0..slab.mover_halves, slab.mover_halves / 3..slab.mover_halves / 2] {
                            let mut row = rows.start;
                            for (rank, run) in partition.runs(at, rows.clone()) {
                                assert!(rank < ranks && !run.is_empty() && run.start == row);
                                row = run.end;
                            }
                            assert_eq!(row, rows.end);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn ranks_have_their_shares_of_each_part() {
        let index = Index::new(20, PositionSet::All);
        for ranks in [2, 4, 8] {
            let partition = CapturePartition::new(index.slabs(), ranks);
            let (mut of_rank, mut before, mut off) = (vec![0.0f64; ranks], 0.0, 0.0f64);
            for (at, slab) in index.slabs().iter().enumerate() {
                for (rank, run) in partition.runs(at, 0..slab.mover_halves) {
                    let positions = run.len() as f64 * f64::from(slab.opponent_halves);
                    of_rank[rank] += positions;
                    before += positions;
                }
                let share = before / ranks as f64;
                off = of_rank.iter().map(|of| (of - share).abs()).fold(off, f64::max);
            }
            let share = before / ranks as f64;
            assert!(off < 0.2 * share, "{ranks} ranks: {} of a share", off / share);
            assert!(of_rank.iter().all(|of| (of / share - 1.0).abs() < 0.05), "{ranks} ranks: {of_rank:?} of {share}");
        }
    }

    /// Smaller databases that tell which of their rows were read.
    struct Noted<'a> {
        inner: InMemory<'a>,
        read: Mutex<BTreeSet<(u32, u32, u32)>>,
    }

    impl SmallerRows for Noted<'_> {
        type Window = ();
        type Error = Infallible;

        fn window(&self) {}

        fn row<'w>(&'w self, window: &'w mut (), row: ChildRow) -> Result<&'w [Score], Infallible> {
            self.read.lock().unwrap().insert((row.stones, row.mover_stones, row.row));
            self.inner.row(window, row)
        }
    }

    #[test]
    fn runs_add_up_and_read_little_twice() {
        const STONES: u32 = 12;
        for set in [PositionSet::All, PositionSet::REACHABLE] {
            let tables = Tables::new(Rules::AWARI, set, STONES);
            let index = Index::new(STONES, set);
            // Any scores will do.
            let scores = |stones: u32| {
                let positions = set.slab_positions(stones);
                (0..positions).map(|at| (at * 7 % (2 * u64::from(stones) + 1)) as i8 - stones as i8).collect()
            };
            let databases: Vec<Vec<Score>> = (0..STONES).map(scores).collect();
            let smaller = || InMemory::new(set, databases.iter().map(Vec::as_slice));
            let mut expected = vec![0; index.slab_positions() as usize];
            capture_into(&tables, &index, &smaller(), &(), &mut expected, &mut |_| Ok(())).unwrap();
            for ranks in [1, 2, 4] {
                let noted = |_| Noted { inner: smaller(), read: Mutex::default() };
                let read: Vec<Noted> = (0..ranks).map(noted).collect();
                let partition = CapturePartition::new(index.slabs(), ranks);
                let (mut found, mut best) = (Vec::new(), Vec::new());
                for (at, slab) in index.slabs().iter().enumerate() {
                    for (rank, run) in partition.runs(at, 0..slab.mover_halves) {
                        best.resize(run.len() * slab.opponent_halves as usize, 0);
                        capture_rows(&tables, &index, at, &run, &read[rank], &mut best).unwrap();
                        found.extend_from_slice(&best);
                    }
                }
                assert!(found == expected, "{set}, {ranks} ranks");
                let rows: Vec<_> = read.iter().map(|of| of.read.lock().unwrap().clone()).collect();
                let union = rows.iter().fold(BTreeSet::new(), |all, rows| &all | rows);
                let sum: usize = rows.iter().map(BTreeSet::len).sum();
                assert!(sum as f64 <= 1.6 * union.len() as f64, "{set}, {ranks} ranks: {sum} of {}", union.len());
            }
        }
    }
}
