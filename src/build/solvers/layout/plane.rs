//! Bit planes: one bit a position, row by row; each row starts at a word boundary.

use game::{Index, Orientation, Slab};
use std::ops::Range;

/// Most parts of a row: pending tests are recorded by part.
pub(crate) const PARTS: usize = 8;

/// Bits in a word.
pub(crate) const WORD: usize = 64;

/// Locations of the rows of a bit plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaneLayout {
    slabs: Vec<PlaneSlab>,
}

/// The rows of one slab in a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneSlab {
    /// Number of its first row, counted over all slabs.
    pub first_row: usize,
    /// Its first word.
    pub first_word: usize,
    /// Its rows.
    pub rows: usize,
    /// Bits of a row.
    pub columns: usize,
    /// Words of a row; bits behind the last column are 0.
    pub row_words: usize,
}

impl PlaneSlab {
    /// The first word of a row.
    #[inline]
    pub fn word(&self, row: usize) -> usize {
        self.first_word + row * self.row_words
    }

    /// The rows that have some of the words.
    pub fn rows_with(&self, words: &Range<usize>) -> Range<usize> {
        if words.is_empty() {
            return 0..0;
        }
        let within = |word: usize| word.clamp(self.first_word, self.first_word + self.words()) - self.first_word;
        within(words.start) / self.row_words..within(words.end).div_ceil(self.row_words)
    }

    /// Words of all its rows.
    pub fn words(&self) -> usize {
        self.rows * self.row_words
    }

    /// Whether its rows have all these bits, of words whose numbers do not descend.
    pub(crate) fn has_bits(&self, bits: &[(u32, u64)]) -> bool {
        let Some(&(most, _)) = bits.last() else { return true };
        let before = most as usize * WORD;
        let of_last = bits.iter().rev().take_while(|&&(word, _)| word == most);
        before < self.columns
            && (self.columns - before >= WORD
                || of_last.fold(0, |all, (_, bits)| all | bits) >> (self.columns - before) == 0)
    }

    /// Log2 of the words of a row that share a bit in a change mask: a row has at most 64 such groups.
    #[inline]
    pub(crate) fn share_shift(&self) -> u32 {
        share_shift(self.row_words)
    }

    /// Log2 of the words of a part of a row.
    #[inline]
    pub(crate) fn part_shift(&self) -> u32 {
        part_shift(self.row_words)
    }
}

/// See [`PlaneSlab::share_shift`].
#[inline]
pub(crate) fn share_shift(row_words: usize) -> u32 {
    row_words.div_ceil(WORD).next_power_of_two().trailing_zeros()
}

/// See [`PlaneSlab::part_shift`].
#[inline]
pub(crate) fn part_shift(row_words: usize) -> u32 {
    row_words.div_ceil(PARTS).next_power_of_two().trailing_zeros()
}

impl PlaneLayout {
    /// The plane of an index in an orientation.
    pub fn new(index: &Index, orientation: Orientation) -> PlaneLayout {
        PlaneLayout::of_slabs(index.slabs(), orientation)
    }

    /// The plane of slabs in an orientation.
    pub fn of_slabs(slabs: &[Slab], orientation: Orientation) -> PlaneLayout {
        let (mut first_row, mut first_word) = (0, 0);
        let slabs = slabs.iter().map(|slab| {
            let (rows, columns) = slab.rows_columns(orientation);
            let (rows, columns) = (rows as usize, columns as usize);
            let slab = PlaneSlab { first_row, first_word, rows, columns, row_words: columns.div_ceil(WORD) };
            first_row += rows;
            first_word += slab.words();
            slab
        });
        PlaneLayout { slabs: slabs.collect() }
    }

    /// The slabs, by the mover's stones.
    #[inline]
    pub fn slabs(&self) -> &[PlaneSlab] {
        &self.slabs
    }

    /// Words of the plane.
    pub fn words(&self) -> usize {
        self.slabs.last().map_or(0, |slab| slab.first_word + slab.words())
    }

    /// Rows of the plane.
    pub fn rows(&self) -> usize {
        self.slabs.last().map_or(0, |slab| slab.first_row + slab.rows)
    }
}

/// Words of a unit, unless a single row has more: 128 KiB, large enough for a disk and small enough for a cache.
const UNIT_WORDS: usize = 16 << 10;

/// Range of rows of one slab: the unit in which planes are visited. It depends on the layout alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaneUnit {
    /// The slab.
    pub slab: usize,
    /// Its rows.
    pub rows: Range<usize>,
    /// Their words in the plane.
    pub words: Range<usize>,
}

impl PlaneLayout {
    /// Cuts the plane into units.
    pub fn units(&self) -> Vec<PlaneUnit> {
        let mut units = Vec::new();
        for (number, slab) in self.slabs.iter().enumerate() {
            for first in (0..slab.rows).step_by(slab.unit_rows()) {
                let rows = first..slab.rows.min(first + slab.unit_rows());
                units.push(PlaneUnit { slab: number, words: slab.word(rows.start)..slab.word(rows.end), rows });
            }
        }
        units
    }
}

impl PlaneSlab {
    /// Rows of a unit.
    #[inline]
    pub(crate) fn unit_rows(&self) -> usize {
        (UNIT_WORDS / self.row_words).max(1)
    }
}
