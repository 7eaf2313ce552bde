//! Bytes as bits and back, up to sixty-four at a time: which have a value, and a value for those marked.

use super::plane::WORD;
use super::row::BitKernel;
use crate::simd;

impl BitKernel {
    /// Tells of each value that some bytes have, and which of them, the lowest bit for the first.
    ///
    /// # Panics
    /// When there are more than 64.
    pub fn by_value(self, bytes: &[i8], each: impl FnMut(i8, u64)) {
        assert!(bytes.len() <= WORD, "a bit of a word for each");
        match self {
            BitKernel::Portable | BitKernel::Bmi2 => {
                let equal =
                    |value| bytes.iter().enumerate().fold(0, |mask, (at, &byte)| mask | u64::from(byte == value) << at);
                by_value(bytes, equal, each);
            }
            BitKernel::Avx512 => simd::by_value_avx512(bytes, each),
        }
    }

    /// Gives bytes values: 0, or the last of the values whose mark has the byte's bit.
    ///
    /// # Panics
    /// When there are more than 64.
    pub fn mark(self, bytes: &mut [i8], marks: impl Iterator<Item = (i8, u64)>) {
        assert!(bytes.len() <= WORD, "a bit of a word for each");
        match self {
            BitKernel::Portable | BitKernel::Bmi2 => {
                bytes.fill(0);
                for (value, mut mask) in marks {
                    while mask != 0 {
                        // A mark may have bits behind the last byte, which mean nothing.
                        if let Some(byte) = bytes.get_mut(mask.trailing_zeros() as usize) {
                            *byte = value;
                        }
                        mask &= mask - 1;
                    }
                }
            }
            BitKernel::Avx512 => simd::mark_avx512(bytes, marks),
        }
    }
}

/// See [`BitKernel::by_value`]; `equal` tells which bytes have a value.
#[inline(always)]
pub(crate) fn by_value(bytes: &[i8], equal: impl Fn(i8) -> u64, mut each: impl FnMut(i8, u64)) {
    let mut left = u64::MAX.checked_shr((WORD - bytes.len()) as u32).unwrap_or(0);
    while left != 0 {
        let value = bytes[left.trailing_zeros() as usize];
        let these = equal(value) & left;
        each(value, these);
        left &= !these;
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
    fn bytes_come_back_by_every_kernel() {
        for (len, values) in (0..=64).flat_map(|len| [1, 2, 7, 90].map(|values| (len, values))) {
            let bytes = bytes(len, values);
            for kernel in BitKernel::available() {
                let mut marks = Vec::new();
                kernel.by_value(&bytes, |value, mask| marks.push((value, mask)));
                let all = marks.iter().fold(0, |all, (_, mask)| all ^ mask);
                assert_eq!(all.count_ones() as usize, len, "each byte has one value");
                let mut again = vec![9; len];
                kernel.mark(&mut again, marks.iter().copied());
                assert_eq!(again, bytes, "{kernel:?}, {len}, {values}");
            }
        }
    }

    #[test]
    fn the_last_mark_counts_and_bits_behind_the_end_do_not() {
        for kernel in BitKernel::available() {
            let mut bytes = [7; 10];
            kernel.mark(&mut bytes, [(1, u64::MAX), (-2, 1 << 3 | 1 << 10), (5, 0)].into_iter());
            assert_eq!(bytes, [1, 1, 1, -2, 1, 1, 1, 1, 1, 1]);
        }
    }
}
