//! Transposition of planes from one orientation into the other, some rows at a time.

use super::planes::PlanePortion;
use game::{Index, Orientation};
use pipeline::StageResult as Result;
use rayon::prelude::*;
use solvers::WordArray;
use solvers::bounds::{BitKernel, PlaneLayout, PlaneSlab};
use std::mem::swap;
use std::ops::Range;

/// Bytes of a portion of the plane for each thread. Threads meet after each portion.
const PORTION_BYTES_A_THREAD: usize = 128 << 10;

/// Words of a row, and groups of 64 rows, in a tile: each cache line is read and written once.
const TILE: usize = 8;

/// A plane that is read transposed, mostly in order. It keeps rows of a slab; to read a slab it reads the
/// plane's slab once for each portion of rows that it can keep.
pub(super) struct TransposedReader {
    from: PlaneLayout,
    to: PlaneLayout,
    /// The end of the words that are read.
    end: usize,
    slab: Option<usize>,
    rows: TransposedRows,
}

impl TransposedReader {
    /// Creates a reader, in the orientation `to`, of planes of the other one, which keeps rows of this many bytes.
    pub(super) fn new(index: &Index, to: Orientation, bytes: usize) -> TransposedReader {
        let [from, to] = [to.transposed(), to].map(|orientation| PlaneLayout::new(index, orientation));
        let end = to.words();
        TransposedReader { from, to, end, slab: None, rows: TransposedRows::new(bytes) }
    }

    /// Returns the reader, for rows before the word `end`.
    pub(super) fn until(self, end: usize) -> TransposedReader {
        TransposedReader { end, ..self }
    }

    /// Reads rows of a slab, and returns whether any may have a bit. `read` reads words of the plane, always
    /// the same one, and returns the same; `stop` returns an error if the reader must stop.
    pub(super) fn read(
        &mut self,
        slab: usize,
        rows: Range<usize>,
        mut into: &mut [u64],
        stop: impl Fn() -> Result<()>,
        mut read: impl FnMut(Range<usize>, &mut [u64]) -> Result<bool> + Send,
    ) -> Result<bool> {
        let slabs = (&self.from.slabs()[slab], &self.to.slabs()[slab]);
        let (mut row, mut any) = (rows.start, false);
        while row < rows.end {
            if self.slab != Some(slab) || !self.rows.rows().contains(&row) {
                self.slab = None;
                let end = slabs.1.rows_with(&(0..self.end)).end;
                self.rows.fill(slabs, row..end, &stop, &mut read)?;
                self.slab = Some(slab);
            }
            let end = rows.end.min(self.rows.rows().end);
            let (now, rest) = into.split_at_mut((end - row) * slabs.1.row_words);
            match self.rows.words_of(row..end) {
                Some(transposed) => {
                    now.copy_from_slice(transposed);
                    any = true;
                }
                None => now.fill(0),
            }
            (row, into) = (end, rest);
        }
        Ok(any)
    }
}

/// Rows of a slab of a plane, transposed.
pub(super) struct TransposedRows {
    /// Bytes of rows in memory, at least 64 rows.
    bytes: usize,
    rows: Range<usize>,
    row_words: usize,
    /// Words of the rows, and of more rows, which are zero. It is allocated once: if it grew from slab to slab, the
    /// process would have up to three times as much.
    words: WordArray,
    /// By strip of 64 rows, whether any may have a bit.
    has_bits: Vec<bool>,
    /// Portions of the plane: one is transposed while the next one is read.
    read: [Vec<u64>; 2],
}

impl TransposedRows {
    /// Creates an empty set of rows, which keeps this many bytes.
    pub(super) fn new(bytes: usize) -> TransposedRows {
        TransposedRows {
            bytes,
            rows: 0..0,
            row_words: 0,
            words: WordArray::zeroed(bytes / 8),
            has_bits: Vec::new(),
            read: [Vec::new(), Vec::new()],
        }
    }

    /// Transposes the slab `from` into some rows of `to`, as many as fit, from the first on (rounded down to
    /// a multiple of 64). `read` reads words of the plane, and returns whether any may have a bit; `stop`
    /// returns an error if it must stop.
    pub(super) fn fill(
        &mut self,
        (from, to): (&PlaneSlab, &PlaneSlab),
        rows: Range<usize>,
        stop: impl Fn() -> Result<()>,
        mut read: impl FnMut(Range<usize>, &mut [u64]) -> Result<bool> + Send,
    ) -> Result<()> {
        let first = rows.start / 64;
        let words = (self.bytes / 8 / to.row_words / 64).max(1);
        // Strips without a bit are clear.
        let strips = self.words.par_chunks_mut(64 * self.row_words.max(1)).zip(&self.has_bits);
        strips.filter(|(_, has_bits)| **has_bits).for_each(|(strip, _)| strip.fill(0));
        self.rows = first * 64..rows.end.min((first + words) * 64);
        self.row_words = to.row_words;
        let words = self.rows.len() * to.row_words;
        if words > self.words.len() {
            self.words = WordArray::zeroed(words);
        }
        self.has_bits.clear();
        self.has_bits.resize(self.rows.len().div_ceil(64), false);
        let kernel = BitKernel::detect();
        let portion_bytes = PORTION_BYTES_A_THREAD * rayon::current_num_threads();
        let batch = (portion_bytes / 8 / from.row_words).next_multiple_of(64);
        let mut portion = |row: usize, words: &mut Vec<u64>| {
            let rows = row..from.rows.min(row + batch);
            words.resize(rows.len() * from.row_words, 0);
            read(from.word(rows.start)..from.word(rows.end), words)
        };
        let TransposedRows { words: transposed, has_bits, read: [now, next], .. } = self;
        let transposed = &mut transposed[..words];
        let mut any = portion(0, now)?;
        for row in (0..from.rows).step_by(batch) {
            stop()?;
            let mut transpose_now = || {
                let strips = transposed.par_chunks_mut(TILE * 64 * to.row_words);
                strips.zip(has_bits.par_chunks_mut(TILE)).enumerate().for_each(|(at, (transposed, has_bits))| {
                    let word = first + at * TILE;
                    for (tile, rows) in now.chunks(TILE * 64 * from.row_words).enumerate() {
                        let words = word..word + has_bits.len();
                        let to_word = row / 64 + tile * TILE;
                        let from = (rows, from.row_words, words);
                        transpose(kernel, from, (&mut *transposed, to.row_words, to_word), has_bits);
                    }
                });
            };
            let read_next = || if row + batch < from.rows { portion(row + batch, next) } else { Ok(false) };
            let ((), read) = rayon::join(
                || {
                    if any {
                        transpose_now()
                    }
                },
                read_next,
            );
            any = read?;
            swap(now, next);
        }
        Ok(())
    }

    /// Returns the rows.
    pub(super) fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Returns the words of all rows.
    pub(super) fn words_mut(&mut self) -> PlanePortion<'_> {
        let words = self.rows.len() * self.row_words;
        if self.has_bits.contains(&true) {
            PlanePortion::Words(&mut self.words[..words])
        } else {
            PlanePortion::Zeros(words)
        }
    }

    /// Returns the words of some rows, or `None` if they have no bit.
    pub(super) fn words_of(&self, rows: Range<usize>) -> Option<&[u64]> {
        let rows = rows.start - self.rows.start..rows.end - self.rows.start;
        let strips = rows.start / 64..rows.end.div_ceil(64);
        let words = || &self.words[rows.start * self.row_words..rows.end * self.row_words];
        self.has_bits[strips].contains(&true).then(words)
    }
}

/// Transposes up to [`TILE`] words of all rows into strips of 64 rows of `transposed`, from word `to_word`
/// on. Records which strips have a bit.
fn transpose(
    kernel: BitKernel,
    (rows, row_words, words): (&[u64], usize, Range<usize>),
    (transposed, to_words, to_word): (&mut [u64], usize, usize),
    has_bits: &mut [bool],
) {
    for (to, rows) in (to_word..).zip(rows.chunks(64 * row_words)) {
        let of_row = |(at, row): (usize, &[u64])| {
            let any = row[words.clone()].iter().fold(0, |any, word| any | word);
            u64::from(any != 0) << at
        };
        let used = rows.chunks(row_words).enumerate().map(of_row).fold(0, |used, row| used | row);
        if used == 0 {
            continue;
        }
        let strips = transposed.chunks_mut(64 * to_words).zip(&mut *has_bits);
        for (word, (transposed, has_bits)) in words.clone().zip(strips) {
            if used.count_ones() <= FEW_ROWS {
                *has_bits |= transpose_few(rows, row_words, word, used, transposed, to_words, to);
                continue;
            }
            let mut block = [0; 64];
            let mut any = 0;
            for (block, row) in block.iter_mut().zip(rows.chunks(row_words)) {
                *block = row[word];
                any |= row[word];
            }
            if any == 0 {
                continue;
            }
            *has_bits = true;
            kernel.transpose(&mut block);
            for (transposed, &bits) in transposed.chunks_mut(to_words).zip(&block) {
                transposed[to] = bits;
            }
        }
    }
}

/// Transposes a word of the `used` ones of 64 rows bit by bit, and returns whether they have any.
fn transpose_few(
    rows: &[u64],
    row_words: usize,
    word: usize,
    mut used: u64,
    transposed: &mut [u64],
    to_words: usize,
    to: usize,
) -> bool {
    let mut any = 0;
    while used != 0 {
        let at = used.trailing_zeros() as usize;
        used &= used - 1;
        let mut bits = rows[at * row_words + word];
        any |= bits;
        while bits != 0 {
            // Valid planes have no bits beyond the last column.
            if let Some(word) = transposed.get_mut(bits.trailing_zeros() as usize * to_words + to) {
                *word |= 1 << at;
            }
            bits &= bits - 1;
        }
    }
    any != 0
}

/// Number of rows with bits in a block, up to which they are transposed bit by bit.
const FEW_ROWS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Sparse and dense, in more than one block.
    #[test]
    fn tiles_are_transposed() {
        let hash = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (rows, row_words, to_words) = (150, 5, 4);
        for rarity in [1, 4, 60, 900, 5000] {
            let bit = |row: usize, column: usize| hash(row * 1000 + column) >> 40 & 0xffff < 0x10000 / rarity;
            let word = |at: usize| (0..64).map(|b| u64::from(bit(at / row_words, at % row_words * 64 + b)) << b).sum();
            let plane: Vec<u64> = (0..rows * row_words).map(word).collect();
            for (kernel, words) in
                BitKernel::available().flat_map(|kernel| [(kernel, 0..1), (kernel, 1..4), (kernel, 2..5)])
            {
                let mut transposed = vec![0; words.len() * 64 * to_words];
                let mut has_bits = vec![false; words.len()];
                transpose(kernel, (&plane, row_words, words.clone()), (&mut transposed, to_words, 1), &mut has_bits);
                for (strip, has_bits) in transposed.chunks(64 * to_words).zip(has_bits) {
                    assert_eq!(has_bits, strip.iter().any(|&word| word != 0));
                }
                let columns = words.len() * 64;
                for (column, row) in (0..columns).flat_map(|column| (0..rows).map(move |row| (column, row))) {
                    let is_set = transposed[column * to_words + 1 + row / 64] >> (row % 64) & 1 == 1;
                    assert_eq!(is_set, bit(row, words.start * 64 + column), "{rarity}: {row}, {column}");
                }
            }
        }
    }
}
