//! Partition of the rows of a capture database among the ranks of a job.
//!
//! Halves are ordered by their leading pits, and a move of a later pit leaves the leading pits alone. So a rank that
//! computes the rows with some leading pits, in all slabs, reads mostly rows of smaller databases with the same leading
//! pits. The halves of all slabs are cut by their four leading pits into *cells* of about equal size, which are
//! assigned to the ranks in turn. All ranks thus reach the end of each slab at about the same time: rank 0, which
//! writes the captures in canonical order, hardly waits, and no rank buffers more than a few pieces.

use game::{Index, Slab};
use std::ops::Range;

/// Cells a rank, unless a slab needs more. With one cell, ranks wait for each other in some slabs, and the whole takes
/// 1.6 times as long (20 stones, 4 ranks); with four, 1.05 times. More cells cost decoding, since the blocks at either
/// end of a cell are decoded by two ranks: with sixteen cells, each block was decoded 3.3 times.
const CELLS: u64 = 4;

/// Positions of the pieces of all ranks together, one piece a rank.
pub const PIECES_POSITIONS: u64 = 8 << 20;

/// Most positions of a piece; it has at least one row.
const PIECE_POSITIONS_MAX: u64 = 4 << 20;

/// Time to write captures, in percent of the time to compute them.
const WRITING_PERCENT: u64 = 25;

/// Partition of the rows of one database among ranks. A function of the database and the number of ranks.
#[derive(Clone, Debug)]
pub struct CapturePartition {
    slabs: Vec<Slab>,
    /// By cell, the rank that owns it.
    owners: Vec<usize>,
    /// By cell, then by the mover's stones: the first row; plus the end.
    first: Vec<Vec<u32>>,
    piece_positions: u64,
}

/// Consecutive rows of a slab whose captures one rank computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturePiece {
    /// The rank.
    pub rank: usize,
    /// The slab.
    pub mover_stones: u32,
    /// The mover's halves.
    pub rows: Range<u32>,
}

impl CapturePiece {
    /// Positions of the rows.
    pub fn positions(&self, index: &Index) -> u64 {
        self.rows.len() as u64 * u64::from(index.slab(self.mover_stones).opponent_halves)
    }
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
        let piece_positions = (PIECES_POSITIONS / ranks as u64).min(PIECE_POSITIONS_MAX);
        let cells = (CELLS * ranks as u64).max(largest / piece_positions);
        let first = cells_of(slabs, total, cells);
        let weight = |cell: usize| -> u64 {
            let rows =
                |slab: &Slab| first[cell + 1][slab.mover_stones as usize] - first[cell][slab.mover_stones as usize];
            slabs.iter().map(|slab| u64::from(rows(slab)) * u64::from(slab.opponent_halves)).sum()
        };
        let owners = assign_cells(&(0..first.len() - 1).map(weight).collect::<Vec<_>>(), ranks);
        CapturePartition { slabs: slabs.to_vec(), owners, first, piece_positions }
    }

    /// Returns the most positions of a piece, unless it has one row.
    pub fn piece_positions(&self) -> u64 {
        self.piece_positions
    }

    /// Iterates over the pieces of all ranks in canonical order.
    pub fn pieces(&self) -> impl Iterator<Item = CapturePiece> + '_ {
        self.slabs.iter().flat_map(move |slab| {
            let at = slab.mover_stones as usize;
            let most = (self.piece_positions / u64::from(slab.opponent_halves)).max(1);
            self.owners.iter().zip(self.first.windows(2)).flat_map(move |(&rank, cells)| {
                let rows = cells[0][at]..cells[1][at];
                let starts = rows.clone().step_by(most as usize);
                starts.map(move |start| {
                    let rows = start..rows.end.min(start.saturating_add(most as u32));
                    CapturePiece { rank, mover_stones: slab.mover_stones, rows }
                })
            })
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

/// Assigns cells with weights to ranks, in turn. Rank 0, which also writes, gets accordingly less.
fn assign_cells(weights: &[u64], ranks: usize) -> Vec<usize> {
    let (ranks_all, percent) = (ranks as u64, WRITING_PERCENT);
    // Shares with which all ranks take equally long: 100 * own + percent * all = 100 * other.
    let leader = 100u64.saturating_sub((ranks_all - 1) * percent);
    let other = if ranks == 1 || leader == 0 { 100 } else { 100 + percent };
    let shares: Vec<u64> = (0..ranks).map(|rank| if rank == 0 { leader } else { other }).collect();
    let mut assigned = vec![0u64; ranks];
    let next = |&weight: &u64| {
        let after = |rank: usize| u128::from(assigned[rank] + weight);
        // Selects the rank with the smallest fraction of its share; shares are at least 1 here.
        let mut least = ranks - 1;
        for rank in (0..ranks).rev().filter(|&rank| shares[rank] > 0) {
            if after(rank) * u128::from(shares[least]) <= after(least) * u128::from(shares[rank]) {
                least = rank;
            }
        }
        assigned[least] += weight;
        least
    };
    weights.iter().map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tables;
    use crate::capture::{ChildRow, InMemory, SmallerRows, capture_into, capture_piece};
    use game::{PositionSet, Rules, Score};
    use std::collections::BTreeSet;
    use std::convert::Infallible;
    use std::sync::Mutex;

    #[test]
    fn pieces_are_all_rows_in_order() {
        for set in [PositionSet::All, PositionSet::REACHABLE] {
            for stones in [0, 1, 7, 16, 20] {
                let index = Index::new(stones, set);
                for ranks in [1, 2, 3, 8] {
                    let (mut slab, mut row) = (0, 0);
                    for piece in CapturePartition::new(index.slabs(), ranks).pieces() {
                        while row == index.slab(slab).mover_halves {
                            (slab, row) = (slab + 1, 0);
                        }
                        assert!(piece.rank < ranks && !piece.rows.is_empty());
                        assert_eq!((piece.mover_stones, piece.rows.start), (slab, row));
                        row = piece.rows.end;
                        let positions = piece.positions(&index);
                        assert!(positions <= PIECES_POSITIONS / ranks as u64 || piece.rows.len() == 1);
                    }
                    assert_eq!((slab, row), (stones, index.slab(stones).mover_halves));
                }
            }
        }
    }

    #[test]
    fn ranks_have_their_shares_of_each_slab() {
        let index = Index::new(20, PositionSet::All);
        for ranks in [2, 4, 8] {
            let mut of_rank = vec![0; ranks];
            let mut behind = 0.0f64;
            let leader = 1.0 - (ranks - 1) as f64 * WRITING_PERCENT as f64 / 100.0;
            let share =
                |rank| if rank == 0 { leader.max(0.0) } else { (ranks as f64 - leader.max(0.0)) / (ranks - 1) as f64 };
            let mut before = 0;
            for piece in CapturePartition::new(index.slabs(), ranks).pieces() {
                if piece.rows.start == 0 && piece.mover_stones > 0 {
                    let due = |rank: usize| share(rank) / ranks as f64 * before as f64;
                    let most = (0..ranks).map(|rank| due(rank) - of_rank[rank] as f64).fold(0.0, f64::max);
                    behind = behind.max(most / index.slab_positions() as f64 * ranks as f64);
                }
                of_rank[piece.rank] += piece.positions(&index);
                before += piece.positions(&index);
            }
            assert!(behind < 0.2, "{ranks} ranks: {behind} of a share");
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
    fn pieces_add_up_and_read_little_twice() {
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
                let (mut found, mut best) = (Vec::new(), Vec::new());
                for piece in CapturePartition::new(index.slabs(), ranks).pieces() {
                    capture_piece(&tables, &index, &piece, &read[piece.rank], &mut best).unwrap();
                    found.extend_from_slice(&best);
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
