//! The division of positions into blocks.
//!
//! A block is [`BLOCK_POSITIONS`] consecutive positions of one slab; the last one of a slab is shorter. In files of the
//! codec rans a block is a band of whole rows: about a million positions, and at least 16 rows unless these exceed
//! [`BAND_POSITIONS_MAX`]. With floors it is four million positions and 40 rows. Blocks are numbered in canonical
//! order.

use crate::codec::rans::Band;
use crate::codec::{BLOCK_POSITIONS, BandSize, Codec};
use crate::shape::{Shape, SlabShape};
use crate::threads;
use crate::value_range::ValueRange;
use std::ops::Range;

const BLOCK_POSITIONS_64: u64 = BLOCK_POSITIONS as u64;

/// The most positions in a band, which bounds buffers. Rows of 48 stones have 2,869,685 columns.
pub(crate) const BAND_POSITIONS_MAX: u64 = 1 << 23;

/// The most columns in a file of the codec rans.
pub(crate) const BAND_COLUMNS_MAX: u32 = 1 << 22;

/// Positions encoded, or decoded and hashed, at a time: 2 MiB, enough for some thirty threads and little in the
/// smallest budget. Batches of 16 MiB were no faster on two threads. A longer block is a batch of its own.
pub(crate) const BATCH_POSITIONS: u64 = 32 * BLOCK_POSITIONS as u64;

/// As [`BATCH_POSITIONS`], with some blocks for each thread of the current rayon pool.
pub(crate) fn batch_positions() -> u64 {
    BATCH_POSITIONS.max(threads::count() as u64 * THREAD_BLOCKS * BLOCK_POSITIONS as u64)
}

/// Blocks for each thread in a batch of many threads.
const THREAD_BLOCKS: u64 = 8;

/// The blocks of a shape under a codec.
#[derive(Clone, Debug)]
pub(crate) struct BlockLayout {
    /// First position of each slab, and the number of positions.
    slab_positions: Vec<u64>,
    /// First block of each slab, and the number of blocks.
    slab_blocks: Vec<usize>,
    /// Positions in the blocks of each slab but its last.
    block_positions: Vec<u64>,
    /// Columns of each slab.
    columns: Vec<u32>,
    /// The slab of the first position of each run of `1 << guess_shift` positions; few slabs begin within a run.
    guesses: [u8; GUESSES],
    guess_shift: u32,
}

/// Runs of positions with a guessed slab. A binary search among some twenty slabs costs more than the rest of a probe
/// in memory.
const GUESSES: usize = 256;
const _: () = assert!(crate::shape::SLABS_MAX <= 256);

/// The location of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockLocation {
    pub(crate) block: usize,
    pub(crate) index: usize,
    /// Positions from this one to the end of the block.
    pub(crate) ahead: usize,
}

impl BlockLayout {
    pub(crate) fn new(shape: &Shape, codec: Codec) -> Self {
        let mut slab_positions = vec![0];
        let mut slab_blocks = vec![0];
        let mut block_positions = Vec::new();
        let (mut positions, mut blocks) = (0, 0);
        for slab in shape.slabs() {
            positions += slab.positions();
            let in_block = positions_in_block(slab, codec);
            blocks += slab.positions().div_ceil(in_block) as usize;
            block_positions.push(in_block);
            slab_positions.push(positions);
            slab_blocks.push(blocks);
        }
        let columns = shape.slabs().iter().map(|slab| slab.columns).collect();
        let guess_shift = (u64::BITS - positions.leading_zeros()).saturating_sub(GUESSES.ilog2());
        let guesses = std::array::from_fn(|run| {
            let first = (run as u64) << guess_shift;
            (slab_positions.partition_point(|&start| start <= first) - 1).min(shape.slabs().len() - 1) as u8
        });
        BlockLayout { slab_positions, slab_blocks, block_positions, columns, guesses, guess_shift }
    }

    pub(crate) fn positions(&self) -> u64 {
        self.slab_positions[self.slab_positions.len() - 1]
    }

    pub(crate) fn block_count(&self) -> usize {
        self.slab_blocks[self.slab_blocks.len() - 1]
    }

    /// The positions of a slab.
    pub(crate) fn slab_positions(&self, slab: usize) -> Range<u64> {
        self.slab_positions[slab]..self.slab_positions[slab + 1]
    }

    /// The blocks of a slab.
    #[cfg(test)]
    fn slab_blocks(&self, slab: usize) -> Range<usize> {
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
        let first = self.slab_positions[slab] + inside * self.block_positions[slab];
        let last = self.slab_positions[slab + 1];
        first..last.min(first + self.block_positions[slab])
    }

    /// The first position of a block; behind the last block, the number of positions.
    pub(crate) fn first_position(&self, block: usize) -> u64 {
        if block == self.block_count() { self.positions() } else { self.positions_of(block).start }
    }

    /// How many positions a block has.
    pub(crate) fn len_of(&self, block: usize) -> usize {
        let positions = self.positions_of(block);
        (positions.end - positions.start) as usize
    }

    /// The block of a position and its index in there.
    #[inline]
    pub(crate) fn locate(&self, position: u64) -> BlockLocation {
        assert!(position < self.positions(), "there is no position {position}");
        let mut slab = usize::from(self.guesses[(position >> self.guess_shift) as usize]);
        while self.slab_positions[slab + 1] <= position {
            slab += 1;
        }
        let inside = position - self.slab_positions[slab];
        let in_block = self.block_positions[slab];
        // Division by the usual size is a shift.
        let (number, index) = match in_block {
            BLOCK_POSITIONS_64 => (inside / BLOCK_POSITIONS_64, inside % BLOCK_POSITIONS_64),
            _ => (inside / in_block, inside % in_block),
        };
        let ahead = (in_block - index).min(self.slab_positions[slab + 1] - position);
        BlockLocation { block: self.slab_blocks[slab] + number as usize, index: index as usize, ahead: ahead as usize }
    }

    /// The rows of a block, in files of the codec rans.
    pub(crate) fn band_of(&self, block: usize) -> Band {
        let columns = self.columns[self.slab_of(block)] as usize;
        Band { rows: self.len_of(block) / columns, columns }
    }

    /// The end of the batch that begins at a block: at most `positions_max` positions, or one block.
    pub(crate) fn batch_end(&self, block: usize, positions_max: u64) -> usize {
        let first = self.positions_of(block).start;
        let fits = |next: &usize| self.positions_of(*next).end - first <= positions_max;
        block + 1 + (block + 1..self.block_count()).take_while(fits).count()
    }

    /// Bytes of all blocks; for compressed ones an upper bound.
    pub(crate) fn data_bytes_max(&self, codec: Codec, range: ValueRange) -> u64 {
        let bits = u64::from(codec.bits_max(range.bits()));
        let slabs = self.slab_positions.windows(2).map(|slab| ((slab[1] - slab[0]) * bits).div_ceil(8));
        // Bands end within a byte.
        slabs.sum::<u64>() + if codec.has_bands() { self.block_count() as u64 } else { 0 }
    }
}

fn positions_in_block(slab: &SlabShape, codec: Codec) -> u64 {
    let Some(BandSize { positions, rows }) = codec.bands() else { return BLOCK_POSITIONS as u64 };
    let columns = u64::from(slab.columns);
    let rows = (positions / columns).max(rows.min(BAND_POSITIONS_MAX / columns)).max(1);
    rows * columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::SlabShape;

    fn layout(codec: Codec) -> BlockLayout {
        let slab = |rows, columns| SlabShape { rows, columns };
        let slabs = vec![slab(1, 1), slab(256, 512), slab(257, 256), slab(3, 1)];
        BlockLayout::new(&Shape::new(slabs).unwrap(), codec)
    }

    #[test]
    fn blocks_cover_all_positions_and_stay_in_their_slab() {
        let layout = layout(Codec::Packed);
        assert_eq!(layout.block_count(), 1 + 2 + 2 + 1);
        let lengths: Vec<_> = (0..6).map(|block| layout.len_of(block)).collect();
        assert_eq!(lengths, [1, 65_536, 65_536, 65_536, 256, 3]);
        assert_eq!(layout.slab_blocks(2), 3..5);
        check(&layout);
    }

    fn check(layout: &BlockLayout) {
        let mut next = 0;
        for block in 0..layout.block_count() {
            let positions = layout.positions_of(block);
            assert_eq!(positions.start, next);
            next = positions.end;
            for (position, index) in [(positions.start, 0), (positions.end - 1, layout.len_of(block) - 1)] {
                let ahead = layout.len_of(block) - index;
                assert_eq!(layout.locate(position), BlockLocation { block, index, ahead });
            }
        }
        assert_eq!(next, layout.positions());
    }

    #[test]
    fn bands_are_whole_rows() {
        let slab = |rows, columns| SlabShape { rows, columns };
        let slabs =
            vec![slab(1, 1), slab(3_000_000, 1), slab(100, 60_000), slab(20, 300_000), slab(3, 2_869_685), slab(7, 9)];
        let layout = BlockLayout::new(&Shape::new(slabs.clone()).unwrap(), Codec::Rans);
        check(&layout);
        let mut bands = Vec::new();
        for (number, slab) in slabs.iter().enumerate() {
            for block in layout.slab_blocks(number) {
                let band = layout.band_of(block);
                assert_eq!((band.columns, band.values()), (slab.columns as usize, layout.len_of(block)));
                assert!(band.values() as u64 <= BAND_POSITIONS_MAX);
                bands.push(band.rows);
            }
        }
        let rows = [1, 1 << 20, 1 << 20, 902_848, 17, 17, 17, 17, 17, 15, 16, 4, 2, 1, 7];
        assert_eq!(bands, rows);
        assert_eq!(layout.batch_end(1, BATCH_POSITIONS), 3);
        assert_eq!(layout.batch_end(10, BATCH_POSITIONS), 11);
        assert_eq!(layout.batch_end(14, BATCH_POSITIONS), 15);
    }

    #[test]
    fn sizes() {
        let layout = layout(Codec::Raw);
        let range = ValueRange::new(-3, 3);
        assert_eq!(layout.data_bytes_max(Codec::Raw, range), 196_868);
        let packed = 1 + 3 * 131_072 / 8 + 3 * 65_792 / 8 + 2;
        assert_eq!(layout.data_bytes_max(Codec::Packed, range), packed);
        assert_eq!(layout.data_bytes_max(Codec::Zstd, range), packed);
    }

    #[test]
    #[should_panic(expected = "no position 196868")]
    fn positions_end() {
        layout(Codec::Raw).locate(196_868);
    }
}
