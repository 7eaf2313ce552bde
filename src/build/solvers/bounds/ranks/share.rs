//! What each rank owns and keeps of a database, without planes: for the planner.

use super::partition::RowPartition;
use super::wins::{RowKeepers, mask_bytes};
use crate::bounds::PlaneLayout;
use crate::kernels::tables::Tables;
use game::{Orientation, PositionSet};

/// Bytes of a word of a plane.
const WORD_BYTES: u64 = 8;

/// Sizes of the planes of one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaneShare {
    /// Positions of the candidates that the rank owns.
    pub positions: u64,
    /// Bytes of their plane.
    pub candidates_bytes: u64,
    /// Bytes of the wins that the rank keeps.
    pub wins_bytes: u64,
}

/// Computes the shares of all ranks of a job, by rank.
///
/// # Panics
/// If `ranks` is 0, or the tables serve fewer stones or another position set.
pub fn plane_shares(tables: &Tables, set: PositionSet, stones: u32, ranks: usize) -> Vec<PlaneShare> {
    assert!(tables.set() == set && tables.stones_max() >= stones);
    tables.prepare_rows(stones);
    let partition = RowPartition::new(stones, set, ranks);
    let keepers = RowKeepers::new(tables, &partition);
    let [candidates, wins] = [Orientation::MoverMajor, Orientation::OpponentMajor]
        .map(|orientation| PlaneLayout::of_slabs(partition.slabs(), orientation));
    // By rank, the words that it keeps.
    let mut kept_words = vec![0; ranks];
    for slab in wins.slabs() {
        for row in 0..slab.rows {
            keepers.keep(slab.first_row + row).for_each(|rank| kept_words[rank] += slab.row_words as u64);
        }
    }
    let share = |rank: usize| {
        let owned = candidates.slabs().iter().zip(partition.slabs());
        let owned = owned.map(|(plane, slab)| partition.row_count(rank, slab.mover_stones) * plane.row_words as u64);
        PlaneShare {
            positions: partition.positions(rank),
            candidates_bytes: owned.sum::<u64>() * WORD_BYTES,
            wins_bytes: kept_words[rank] * WORD_BYTES,
        }
    };
    (0..ranks).map(share).collect()
}

/// Returns the bytes with which every rank remembers which ranks keep each row, and which rows it keeps and reports.
pub fn keepers_bytes(layout: &PlaneLayout, ranks: usize) -> u64 {
    // A mask a row, and two sets: each a bit a row, and half as much again for counts.
    let chunks: u64 = layout.slabs().iter().map(|slab| slab.rows.div_ceil(64) as u64).sum();
    (layout.rows() * mask_bytes(ranks)) as u64 + chunks * 2 * (8 + 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::Rules;

    #[test]
    fn shares_cover_the_planes() {
        for (set, stones) in [(PositionSet::All, 12), (PositionSet::REACHABLE, 13)] {
            let tables = Tables::new(Rules::AWARI, set, stones + 1);
            let bytes =
                |orientation| PlaneLayout::of_slabs(&set.slabs(stones), orientation).words() as u64 * WORD_BYTES;
            let mut kept_before = 0;
            for ranks in [1, 2, 4, 9] {
                let shares = plane_shares(&tables, set, stones, ranks);
                let sum = |figure: fn(&PlaneShare) -> u64| shares.iter().map(figure).sum::<u64>();
                assert_eq!(sum(|share| share.positions), set.slab_positions(stones));
                assert_eq!(sum(|share| share.candidates_bytes), bytes(Orientation::MoverMajor));
                // Every row of wins is kept at least once, and the more often the more ranks there are.
                let kept = sum(|share| share.wins_bytes);
                assert!(kept > kept_before && kept >= bytes(Orientation::OpponentMajor), "{ranks} ranks");
                assert!(ranks > 1 || kept == bytes(Orientation::OpponentMajor));
                kept_before = kept;
            }
        }
    }
}
