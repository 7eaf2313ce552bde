//! How positions are cut into blocks.
//!
//! A block is [`BLOCK_POSITIONS`] consecutive positions of one slab; the last of a slab is shorter.
//! Blocks are numbered in canonical order.

use std::ops::Range;

use crate::codec::{Codec, ValueRange};
use crate::shape::Shape;

/// Positions in a block. A multiple of 8, so that packed blocks end on whole bytes and a slab is one
/// stream of bits; large enough that its index entry is nothing (0.003 bits a position), small
/// enough that a probe of one takes some 50 us, and less where a block has restart points.
pub const BLOCK_POSITIONS: usize = 1 << 16;

const _: () = assert!(BLOCK_POSITIONS.is_multiple_of(8));

/// Blocks encoded, or decoded to be hashed, at a time: 2 MiB, which is enough for some thirty threads
/// and little in the smallest budget. Runs of 16 MiB were no faster on two threads.
pub(crate) const BATCH_BLOCKS: usize = 32;

/// The blocks of a shape.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// First position of each slab, and the number of positions.
    slab_positions: Vec<u64>,
    /// First block of each slab, and the number of blocks.
    slab_blocks: Vec<usize>,
}

/// Where a position is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) block: usize,
    pub(crate) index: usize,
}

impl Layout {
    pub(crate) fn new(shape: &Shape) -> Self {
        let mut slab_positions = vec![0];
        let mut slab_blocks = vec![0];
        let (mut positions, mut blocks) = (0, 0);
        for slab in shape.slabs() {
            positions += slab.positions();
            blocks += slab.positions().div_ceil(BLOCK_POSITIONS as u64) as usize;
            slab_positions.push(positions);
            slab_blocks.push(blocks);
        }
        Layout { slab_positions, slab_blocks }
    }

    pub(crate) fn positions(&self) -> u64 {
        self.slab_positions[self.slab_positions.len() - 1]
    }

    pub(crate) fn block_count(&self) -> usize {
        self.slab_blocks[self.slab_blocks.len() - 1]
    }

    /// The blocks of a slab.
    pub(crate) fn slab_blocks(&self, slab: usize) -> Range<usize> {
        self.slab_blocks[slab]..self.slab_blocks[slab + 1]
    }

    /// The slab of a block.
    pub(crate) fn slab_of(&self, block: usize) -> usize {
        assert!(block < self.block_count(), "there is no block {block}");
        self.slab_blocks.partition_point(|&first| first <= block) - 1
    }

    /// The positions of a block.
    pub(crate) fn positions_of(&self, block: usize) -> Range<u64> {
        let slab = self.slab_of(block);
        let inside = (block - self.slab_blocks[slab]) as u64;
        let first = self.slab_positions[slab] + inside * BLOCK_POSITIONS as u64;
        let last = self.slab_positions[slab + 1];
        first..last.min(first + BLOCK_POSITIONS as u64)
    }

    /// How many positions a block has.
    pub(crate) fn len_of(&self, block: usize) -> usize {
        let positions = self.positions_of(block);
        (positions.end - positions.start) as usize
    }

    /// The block of a position and its index in there.
    #[inline]
    pub(crate) fn place(&self, position: u64) -> Place {
        assert!(position < self.positions(), "there is no position {position}");
        let slab = self.slab_positions.partition_point(|&first| first <= position) - 1;
        let inside = (position - self.slab_positions[slab]) as usize;
        Place { block: self.slab_blocks[slab] + inside / BLOCK_POSITIONS, index: inside % BLOCK_POSITIONS }
    }

    /// Bytes of all blocks; for zstd the most they can be.
    pub(crate) fn data_bytes_max(&self, codec: Codec, range: ValueRange) -> u64 {
        let bits = match codec {
            Codec::Raw => 8,
            Codec::Packed | Codec::Zstd => u64::from(range.bits()),
        };
        let slabs = self.slab_positions.windows(2);
        slabs.map(|slab| ((slab[1] - slab[0]) * bits).div_ceil(8)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::SlabShape;

    fn layout() -> Layout {
        let slab = |rows, columns| SlabShape { rows, columns };
        let slabs = vec![slab(1, 1), slab(256, 512), slab(257, 256), slab(3, 1)];
        Layout::new(&Shape::new(slabs).unwrap())
    }

    #[test]
    fn blocks_cover_all_positions_and_stay_in_their_slab() {
        let layout = layout();
        assert_eq!(layout.block_count(), 1 + 2 + 2 + 1);
        let lengths: Vec<_> = (0..6).map(|block| layout.len_of(block)).collect();
        assert_eq!(lengths, [1, 65_536, 65_536, 65_536, 256, 3]);
        assert_eq!(layout.slab_blocks(2), 3..5);
        let mut next = 0;
        for block in 0..layout.block_count() {
            let positions = layout.positions_of(block);
            assert_eq!(positions.start, next);
            next = positions.end;
            for (position, index) in [(positions.start, 0), (positions.end - 1, layout.len_of(block) - 1)] {
                assert_eq!(layout.place(position), Place { block, index });
            }
        }
        assert_eq!(next, layout.positions());
    }

    #[test]
    fn sizes() {
        let layout = layout();
        let range = ValueRange::new(-3, 3);
        assert_eq!(layout.data_bytes_max(Codec::Raw, range), 196_868);
        let packed = 1 + 3 * 131_072 / 8 + 3 * 65_792 / 8 + 2;
        assert_eq!(layout.data_bytes_max(Codec::Packed, range), packed);
        assert_eq!(layout.data_bytes_max(Codec::Zstd, range), packed);
    }

    #[test]
    #[should_panic(expected = "no position 196868")]
    fn positions_end() {
        layout().place(196_868);
    }
}
