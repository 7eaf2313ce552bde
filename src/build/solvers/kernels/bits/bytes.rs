//! Conversion between bytes and bit masks, 64 at a time.

use super::{BitKernel, by_value, x86_64};
use crate::layout::plane::WORD;

impl BitKernel {
    /// Calls `each` with every value among the bytes and the mask of the bytes that have it, lowest bit first.
    ///
    /// # Panics
    /// If there are more than 64.
    pub fn by_value(self, bytes: &[i8], each: impl FnMut(i8, u64)) {
        assert!(bytes.len() <= WORD, "a bit of a word for each");
        match self {
            BitKernel::Portable => {
                let equal =
                    |value| bytes.iter().enumerate().fold(0, |mask, (at, &byte)| mask | u64::from(byte == value) << at);
                by_value(bytes, equal, each);
            }
            BitKernel::Avx2 => x86_64::by_value_avx2(bytes, each),
            BitKernel::Avx512 => x86_64::by_value_avx512(bytes, each),
        }
    }

    /// Sets each byte of some rows to the last value whose mark has its bit, or to 0. A row has `columns` bytes, and
    /// whole words of a mark.
    ///
    /// # Panics
    /// If a mark has fewer words than the rows.
    pub fn mark(self, rows: &mut [i8], columns: usize, marks: &[(i8, &[u64])]) {
        let words = rows.len() / columns * columns.div_ceil(WORD);
        assert!(marks.iter().all(|(_, mark)| mark.len() >= words), "words for each row");
        match self {
            BitKernel::Portable => mark(rows, columns, marks),
            BitKernel::Avx2 => x86_64::mark_avx2(rows, columns, marks),
            BitKernel::Avx512 => x86_64::mark_avx512(rows, columns, marks),
        }
    }

    /// Sets each byte of some rows whose mark has its bit to a value. A row has `columns` bytes, and whole
    /// words of the mark.
    ///
    /// # Panics
    /// If the mark has fewer words than the rows.
    pub fn set(self, rows: &mut [i8], columns: usize, value: i8, mark: &[u64]) {
        assert!(mark.len() >= rows.len() / columns * columns.div_ceil(WORD), "words for each row");
        match self {
            BitKernel::Portable => set(rows, columns, value, mark),
            BitKernel::Avx2 => x86_64::set_avx2(rows, columns, value, mark),
            BitKernel::Avx512 => x86_64::set_avx512(rows, columns, value, mark),
        }
    }
}

fn set(rows: &mut [i8], columns: usize, value: i8, mark: &[u64]) {
    let words = rows.chunks_mut(columns).flat_map(|row| row.chunks_mut(WORD));
    for (bytes, &mask) in words.zip(mark) {
        let mut mask = mask;
        while mask != 0 {
            // A mark may have bits behind the last byte, which mean nothing.
            if let Some(byte) = bytes.get_mut(mask.trailing_zeros() as usize) {
                *byte = value;
            }
            mask &= mask - 1;
        }
    }
}

fn mark(rows: &mut [i8], columns: usize, marks: &[(i8, &[u64])]) {
    rows.fill(0);
    for &(value, mark) in marks {
        set(rows, columns, value, mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize, values: u64) -> Vec<i8> {
        let hash = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        (0..len).map(|at| (hash(at + len) % values) as i8 - 3).collect()
    }

    #[test]
    fn every_kernel_converts_bytes_to_bits_and_back() {
        for (len, values) in (0..=64).flat_map(|len| [1, 2, 7, 90].map(|values| (len, values))) {
            let bytes = bytes(len, values);
            for kernel in BitKernel::available() {
                let mut marks = Vec::new();
                kernel.by_value(&bytes, |value, mask| marks.push((value, [mask])));
                let all = marks.iter().fold(0, |all, (_, [mask])| all ^ mask);
                assert_eq!(all.count_ones() as usize, len, "each byte has one value");
                let mut again = vec![9; len];
                let marks: Vec<_> = marks.iter().map(|(value, mask)| (*value, &mask[..])).collect();
                kernel.mark(&mut again, len.max(1), &marks);
                assert_eq!(again, bytes, "{kernel:?}, {len}, {values}");
            }
        }
    }

    #[test]
    fn rows_are_marked_alike_by_every_kernel() {
        let noise = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(at as u32 % 64);
        for (rows, columns) in [(1, 1usize), (3, 5), (9, 64), (7, 65), (4, 300), (2, 1000), (30, 70)] {
            let words: Vec<Vec<u64>> = (0..9)
                .map(|plane| {
                    let word =
                        |at| if at % 20 < 10 && plane % 2 == 1 { 0 } else { noise(at + plane) & noise(at * 3 + plane) };
                    (0..rows * columns.div_ceil(WORD)).map(word).collect()
                })
                .collect();
            let marks: Vec<_> = (-4..).zip(words.iter().map(|words| &words[..])).collect();
            let marked = BitKernel::available().map(|kernel| {
                let mut bytes = vec![7; rows * columns];
                kernel.mark(&mut bytes, columns, &marks);
                bytes
            });
            let expected = |at: usize| {
                let (row, column) = (at / columns, at % columns);
                let has = |mark: &[u64]| mark[row * columns.div_ceil(WORD) + column / WORD] >> (column % WORD) & 1 == 1;
                marks.iter().rev().find(|(_, mark)| has(mark)).map_or(0, |&(value, _)| value)
            };
            let expected: Vec<i8> = (0..rows * columns).map(expected).collect();
            marked.for_each(|bytes| assert_eq!(bytes, expected, "{rows} rows of {columns}"));
            for kernel in BitKernel::available() {
                let mut bytes = vec![0; rows * columns];
                marks.iter().for_each(|&(value, mark)| kernel.set(&mut bytes, columns, value, mark));
                assert_eq!(bytes, expected, "{kernel:?}, {rows} rows of {columns}");
            }
        }
    }

    #[test]
    fn the_last_mark_counts_and_bits_behind_the_end_do_not() {
        for kernel in BitKernel::available() {
            let mut bytes = [7; 10];
            kernel.mark(&mut bytes, 10, &[(1, &[u64::MAX]), (-2, &[1 << 3 | 1 << 10]), (5, &[0])]);
            assert_eq!(bytes, [1, 1, 1, -2, 1, 1, 1, 1, 1, 1]);
        }
    }
}
