//! One pass over all positions in the order of Lincke's indexing function, with a record of its accesses to pages of wins,
//! under both indexings.
//!
//! Lincke (Exploring the Computational Limits of Large Exhaustive Search Problems, 2002, section 2.5 and figure 2.7)
//! ranks the whole board with one function, unreachable positions included: configurations are visited in sequential
//! order with South to move, and the bits of their successors are read, at the rank of the turned board (single) or of
//! the board as it lies, with North to move (dual). Captures are evaluated once, before, and read none of these bits.
//! The figure shows one pass over 25 stones, in blocks of 16 KiB, with least recently used replacement. The thesis does not
//! specify the accesses of a pass or the weights of pits. Here every move that captures nothing reads the bit of its child,
//! as in a pass with all positions undecided; nothing is set. Pits weigh more the earlier they come in A to F, a to f: the
//! mover's half changes slowest.

use crate::distances::{Access, Distances};
use crate::recording::Use;
use game::{Board, Rules, STONES_MAX, binomial};

/// The positions of one number of stones, by a combinatorial number of all twelve pits.
#[derive(Clone, Debug)]
pub struct WholeBoard {
    stones: u32,
    /// By pit, the first left out, and by stones in it and the pits after: the positions of those with fewer stones
    /// there, and hence more before.
    fewer: [[u64; STONES_MAX as usize + 1]; PITS],
}

const PITS: usize = 12;

impl WholeBoard {
    /// The board with this number of stones.
    ///
    /// # Panics
    /// When they are more than a board has.
    pub fn new(stones: u32) -> WholeBoard {
        assert!(stones <= STONES_MAX, "a board has {STONES_MAX} stones; found {stones}");
        let mut fewer = [[0; STONES_MAX as usize + 1]; PITS];
        for (pit, fewer) in fewer.iter_mut().enumerate().skip(1) {
            let pits = (PITS - pit) as u32;
            for (stones, fewer) in fewer.iter_mut().enumerate().skip(1) {
                *fewer = binomial(stones as u32 - 1 + pits, pits);
            }
        }
        WholeBoard { stones, fewer }
    }

    /// Positions.
    pub fn positions(&self) -> u64 {
        binomial(self.stones + PITS as u32 - 1, PITS as u32 - 1)
    }

    /// Returns the rank of a board: boards with more stones in A come first, then in B, and so on.
    #[inline]
    pub fn rank(&self, board: &Board) -> u64 {
        let (mut rank, mut stones) = (0, 0);
        for pit in (1..PITS).rev() {
            stones += usize::from(board.0[pit]);
            rank += self.fewer[pit][stones];
        }
        rank
    }

    /// All positions by rank.
    pub fn boards(&self) -> impl Iterator<Item = Board> + use<> {
        let mut first = Board([0; PITS]);
        first.0[0] = self.stones as u8;
        std::iter::successors(Some(first), next)
    }

    /// Calls `each` for every read of a pass, in its order, with the rank of the child's bit under the single index and under
    /// the dual: one read for each position and move that captures nothing.
    pub fn reads(&self, mut each: impl FnMut(u64, u64)) {
        for board in self.boards() {
            for (_, played) in board.moves(&Rules::AWARI) {
                if played.captured == 0 {
                    each(self.rank(&played.child), self.rank(&played.child.turned()));
                }
            }
        }
    }

    /// The accesses of a pass to pages of this size, with empty caches at its start.
    ///
    /// # Panics
    /// When a page is no power of two of bytes.
    pub fn record(&self, page_bytes: usize) -> Use {
        assert!(page_bytes.is_power_of_two(), "a page is a power of two of bytes");
        let page_shift = page_bytes.trailing_zeros() + 3;
        let pages = ((self.positions() - 1) >> page_shift) as usize + 1;
        let [mut single, mut dual] = [(); 2].map(|()| Distances::new(pages));
        self.reads(|turned, lying| {
            single.access((turned >> page_shift) as usize, Access::Read, 1);
            dual.access((lying >> page_shift) as usize, Access::Read, 1);
        });
        Use { dual: dual.take(), single: single.take() }
    }
}

/// Returns the board of the next rank: one stone moves on from the last possible pit, with all stones behind it.
fn next(board: &Board) -> Option<Board> {
    let mut pits = board.0;
    let from = (0..PITS - 1).rev().find(|&pit| pits[pit] > 0)?;
    let behind = std::mem::take(&mut pits[PITS - 1]);
    pits[from] -= 1;
    pits[from + 1] = behind + 1;
    Some(Board(pits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::reference::{self, ReferenceMove};
    use std::collections::BTreeSet;

    /// Positions by rank from the definition: in descending order, pit by pit.
    fn sorted(stones: u8) -> Vec<[u8; 12]> {
        let mut boards = reference::boards(stones);
        boards.sort_by(|a, b| b.cmp(a));
        boards
    }

    #[test]
    fn ranks_are_those_of_sorting() {
        for stones in 0..=6 {
            let whole = WholeBoard::new(stones);
            let sorted = sorted(stones as u8);
            assert_eq!(sorted.len() as u64, whole.positions(), "{stones} stones");
            assert!(whole.boards().map(|board| board.0).eq(sorted), "{stones} stones");
            assert!(whole.boards().zip(0..).all(|(board, rank)| whole.rank(&board) == rank), "{stones} stones");
        }
    }

    /// Compares with moves of the slow twin, looked up in the sorted list.
    #[test]
    fn reads_are_those_of_the_rules() {
        for stones in 0..=6 {
            let sorted = sorted(stones);
            let rank = |pits: [u8; 12]| sorted.binary_search_by(|other| pits.cmp(other)).unwrap() as u64;
            let mut expected = Vec::new();
            for &pits in &sorted {
                for played in reference::moves(pits) {
                    if let ReferenceMove::Legal { captured: 0, child } = played {
                        let mut lying = child;
                        lying.rotate_left(6);
                        expected.push((rank(child), rank(lying)));
                    }
                }
            }
            let mut reads = Vec::new();
            WholeBoard::new(stones.into()).reads(|single, dual| reads.push((single, dual)));
            assert_eq!(reads, expected, "{stones} stones");
        }
    }

    /// All reads are counted, and a cache that holds everything misses each page that is read once.
    #[test]
    fn a_whole_cache_misses_each_page_once() {
        const PAGE_BYTES: usize = 16;
        let whole = WholeBoard::new(7);
        let (mut reads, mut single_pages, mut dual_pages) = (0, BTreeSet::new(), BTreeSet::new());
        whole.reads(|single, dual| {
            reads += 1;
            single_pages.insert(single / (8 * PAGE_BYTES as u64));
            dual_pages.insert(dual / (8 * PAGE_BYTES as u64));
        });
        let used = whole.record(PAGE_BYTES);
        for (counts, pages) in [(&used.single, single_pages), (&used.dual, dual_pages)] {
            assert_eq!(counts.pages() as u64, whole.positions().div_ceil(8 * PAGE_BYTES as u64));
            assert_eq!(counts.accesses(Access::Read), reads);
            assert_eq!(counts.all_misses(counts.pages()), pages.len() as u64);
            assert!(counts.all_misses(1) > counts.all_misses(counts.pages()));
        }
    }
}
