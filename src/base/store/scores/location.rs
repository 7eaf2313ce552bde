//! The location of a score, and the part of its block that is decoded with it: the unit of caches.

use super::Scores;
use crate::codec::Form;
use crate::codec::rans::Head;
use crate::codec::rans::tiling::Tiling;
use crate::codec::{BLOCK_POSITIONS, zstd};
use crate::error::Result;
use crate::layout::BlockLocation;
use std::sync::Arc;

/// The location of a score.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScoreLocation {
    pub(crate) block: usize,
    /// The part of the block that is decoded together.
    pub(crate) part: BlockPart,
    /// Its index in the part.
    pub(crate) at: usize,
    /// Consecutive positions from this one on in the part.
    pub(crate) ahead: usize,
}

/// A part of a block that is decoded together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BlockPart {
    /// All.
    Whole,
    /// Some values.
    Values { first: u32, end: u32 },
    /// A strip, row by row.
    Strip(u32),
    /// No part is decoded: the value is read in place.
    InPlace,
    /// The head of a block of strips, without values.
    Head,
}

/// The access pattern of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessPattern {
    /// Single scores.
    Single,
    /// Rows or longer ranges.
    Range,
}

impl Scores {
    /// Locates a score, in the part of its block that is worth decoding for the access pattern.
    #[inline]
    pub(crate) fn locate(&self, position: u64, reading: AccessPattern) -> ScoreLocation {
        let BlockLocation { block, index, ahead } = self.layout.locate(position);
        let whole = || ScoreLocation { block, part: BlockPart::Whole, at: index, ahead };
        if self.codec().has_bands() {
            return self.locate_in_band(block, index);
        }
        match (reading, self.source.is_mapped()) {
            // Without a map the whole block is read and verified anyway.
            (AccessPattern::Range, _) | (_, false) => whole(),
            (AccessPattern::Single, true) => match self.entry(block).form {
                Form::Frames => self.locate_in_piece(block, index, zstd::FRAME_VALUES),
                Form::Raw | Form::Packed => ScoreLocation { block, part: BlockPart::InPlace, at: 0, ahead: 1 },
                _ => whole(),
            },
        }
    }

    fn locate_in_piece(&self, block: usize, index: usize, values: usize) -> ScoreLocation {
        let first = index - index % values;
        let end = self.layout.len_of(block).min(first + values);
        let part = BlockPart::Values { first: first as u32, end: end as u32 };
        ScoreLocation { block, part, at: index - first, ahead: end - index }
    }

    fn locate_in_band(&self, block: usize, index: usize) -> ScoreLocation {
        if self.entry(block).form != Form::Strips {
            return self.locate_in_piece(block, index, BLOCK_POSITIONS);
        }
        let band = self.layout.band_of(block);
        let tiling = Tiling::new(band.rows, band.columns);
        let (row, column) = (index / band.columns, index % band.columns);
        let number = tiling.strip_of(row, column);
        let strip = tiling.strip(number);
        ScoreLocation {
            block,
            part: BlockPart::Strip(number as u32),
            at: (row - strip.rows.start) * strip.columns.len() + column - strip.columns.start,
            ahead: strip.columns.end - column,
        }
    }

    /// The head of a block of strips.
    pub(crate) fn head_of_block(&self, block: usize) -> Result<Head> {
        self.settled(|| self.head(block, &self.entry(block)))
    }

    /// Decodes a part of a block. `head` returns the head of a block of strips.
    pub(crate) fn decode_part(
        &self,
        block: usize,
        part: BlockPart,
        head: impl FnOnce() -> Result<Arc<Head>>,
    ) -> Result<Vec<i8>> {
        let values = match part {
            BlockPart::Whole => 0..self.layout.len_of(block),
            BlockPart::Values { first, end } => first as usize..end as usize,
            BlockPart::Strip(strip) => {
                let (head, strip) = (head()?, strip as usize);
                return self.settled(|| {
                    let bytes = self.strip_bytes(block, &self.entry(block), head.bytes_of(strip))?;
                    let decoded = head.decode_strip(block, strip, &bytes);
                    decoded.map_err(|error| self.damaged(block, error))
                });
            }
            BlockPart::InPlace | BlockPart::Head => unreachable!("there is nothing to decode"),
        };
        let mut decoded = vec![0; values.len()];
        self.settled(|| self.decode_stored(block, values.start, &mut decoded))?;
        Ok(decoded)
    }
}
