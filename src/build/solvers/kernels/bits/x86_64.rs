//! Vector kernels of bits: BMI2 and AVX-512.

use super::{ChildWins, RowBits, WonRow};
use crate::kernels::bit_maps::Push;
use crate::kernels::tables::CHUNK;
use std::arch::x86_64::*;

/// See [`crate::bounds::BitKernel::pull`].
pub(crate) fn pull_row_bmi2<R: RowBits>(left: &mut [u64], first: usize, child: &ChildWins<R>, shift: u32) -> u64 {
    #[target_feature(enable = "bmi1,bmi2,popcnt")]
    fn enabled<R: RowBits>(left: &mut [u64], first: usize, child: &ChildWins<R>, shift: u32) -> u64 {
        super::pull_row(left, first, child, shift, |word, mask| _pext_u64(word, mask))
    }
    // SAFETY: `has_bmi2` was true, else this kernel is not chosen.
    unsafe { enabled(left, first, child, shift) }
}

/// See [`crate::bounds::BitKernel::push`].
pub(crate) fn push_row_bmi2(lost: &[(u32, u64)], push: &Push, won: &mut WonRow) {
    #[target_feature(enable = "bmi1,bmi2,popcnt")]
    fn enabled(lost: &[(u32, u64)], push: &Push, won: &mut WonRow) {
        let compress = |word, mask| _pext_u64(word, mask);
        super::push_row(lost, push, won, compress, |word, mask| _pdep_u64(word, mask));
    }
    // SAFETY: `has_bmi2` was true, else this kernel is not chosen.
    unsafe { enabled(lost, push, won) }
}

/// See [`crate::bounds::BitKernel::push`].
pub(crate) fn push_row_avx512(lost: &[(u32, u64)], push: &Push, won: &mut WonRow) {
    #[target_feature(enable = "bmi1,bmi2,popcnt,avx512f,avx512bw")]
    fn enabled(lost: &[(u32, u64)], push: &Push, won: &mut WonRow) {
        let hits = |from: &[u64], bits: u64| {
            let these = 0xff >> (8 - from.len().min(8));
            // SAFETY: lanes outside the mask are not read; the others are in the slice.
            let from = unsafe { _mm512_maskz_loadu_epi64(these, from.as_ptr().cast()) };
            _mm512_test_epi64_mask(from, _mm512_set1_epi64(bits as i64))
        };
        let compress = |word, mask| _pext_u64(word, mask);
        super::push_row_by_eights(lost, push, won, hits, compress, |word, mask| _pdep_u64(word, mask));
    }
    // SAFETY: `has_bmi2` and `has_avx512` were true, else this kernel is not chosen.
    unsafe { enabled(lost, push, won) }
}

/// See [`crate::bounds::BitKernel::count`].
pub(crate) fn count_bmi2(words: &[u64]) -> u64 {
    #[target_feature(enable = "popcnt")]
    fn enabled(words: &[u64]) -> u64 {
        words.iter().map(|word| u64::from(word.count_ones())).sum()
    }
    // SAFETY: `has_bmi2` was true, else this kernel is not chosen.
    unsafe { enabled(words) }
}

/// See [`crate::bounds::BitKernel::transpose`].
pub(crate) fn transpose_gfni(block: &mut [u64; CHUNK]) {
    /// By byte of a vector, its source: eight by eight bytes, transposed.
    const TURNED: [u8; CHUNK] = {
        let (mut turned, mut at) = ([0; CHUNK], 0);
        while at < CHUNK {
            turned[at] = (at % 8 * 8 + at / 8) as u8;
            at += 1;
        }
        turned
    };
    /// As [`TURNED`], with each group of eight bytes reversed: the first row of a matrix is its highest byte.
    const TURNED_UP: [u8; CHUNK] = {
        let (mut turned, mut at) = ([0; CHUNK], 0);
        while at < CHUNK {
            turned[at] = TURNED[at ^ 7];
            at += 1;
        }
        turned
    };
    /// Byte i has bit i: multiplied by a matrix, its columns.
    const ONES: i64 = 0x8040_2010_0804_0201_u64 as i64;
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
    fn enabled(block: &mut [u64; CHUNK]) {
        // SAFETY: both are of sixty-four bytes.
        let (turned, turned_up) =
            unsafe { (_mm512_loadu_si512(TURNED.as_ptr().cast()), _mm512_loadu_si512(TURNED_UP.as_ptr().cast())) };
        let mut a = [_mm512_setzero_si512(); 8];
        for (number, rows) in a.iter_mut().enumerate() {
            // SAFETY: eight times eight words are the block.
            let eight = unsafe { _mm512_loadu_si512(block.as_ptr().add(8 * number).cast()) };
            // Eight by eight bits of eight rows, each transposed.
            let matrices = _mm512_permutexvar_epi8(turned_up, eight);
            *rows = _mm512_gf2p8affine_epi64_epi8::<0>(_mm512_set1_epi64(ONES), matrices);
        }
        // Then transposes the 8 by 8 blocks, in pairs and then in groups of four pairs.
        let mut b = [_mm512_setzero_si512(); 8];
        for pair in 0..4 {
            b[2 * pair] = _mm512_unpacklo_epi64(a[2 * pair], a[2 * pair + 1]);
            b[2 * pair + 1] = _mm512_unpackhi_epi64(a[2 * pair], a[2 * pair + 1]);
        }
        for odd in 0..2 {
            let low = _mm512_shuffle_i64x2::<0x44>(b[odd], b[2 + odd]);
            let high = _mm512_shuffle_i64x2::<0xee>(b[odd], b[2 + odd]);
            let low_after = _mm512_shuffle_i64x2::<0x44>(b[4 + odd], b[6 + odd]);
            let high_after = _mm512_shuffle_i64x2::<0xee>(b[4 + odd], b[6 + odd]);
            a[odd] = _mm512_shuffle_i64x2::<0x88>(low, low_after);
            a[2 + odd] = _mm512_shuffle_i64x2::<0xdd>(low, low_after);
            a[4 + odd] = _mm512_shuffle_i64x2::<0x88>(high, high_after);
            a[6 + odd] = _mm512_shuffle_i64x2::<0xdd>(high, high_after);
        }
        for (number, columns) in a.iter().enumerate() {
            // SAFETY: as above.
            unsafe {
                let to = block.as_mut_ptr().add(8 * number).cast();
                _mm512_storeu_si512(to, _mm512_permutexvar_epi8(turned, *columns));
            }
        }
    }
    // SAFETY: `has_gfni` was true, else this kernel is not chosen.
    unsafe { enabled(block) }
}

/// See [`crate::bounds::BitKernel::by_value`].
pub(crate) fn by_value_avx512(bytes: &[i8], each: impl FnMut(i8, u64)) {
    #[target_feature(enable = "bmi1,bmi2,popcnt,avx512f,avx512bw")]
    fn enabled(bytes: &[i8], each: impl FnMut(i8, u64)) {
        // SAFETY: lanes outside the mask are not read; the others are in the slice.
        let all = unsafe { _mm512_maskz_loadu_epi8(_bzhi_u64(u64::MAX, bytes.len() as u32), bytes.as_ptr()) };
        super::by_value(bytes, |value| _mm512_cmpeq_epi8_mask(all, _mm512_set1_epi8(value)), each);
    }
    assert!(bytes.len() <= CHUNK);
    // SAFETY: `has_bmi2` and `has_avx512` were true, else this kernel is not chosen.
    unsafe { enabled(bytes, each) }
}

/// See [`crate::bounds::BitKernel::set`].
pub(crate) fn set_avx512(rows: &mut [i8], columns: usize, value: i8, mark: &[u64]) {
    #[target_feature(enable = "bmi1,bmi2,popcnt,avx512f,avx512bw")]
    fn enabled(rows: &mut [i8], columns: usize, value: i8, mark: &[u64]) {
        let value = _mm512_set1_epi8(value);
        let words = rows.chunks_mut(columns).flat_map(|row| row.chunks_mut(CHUNK));
        for (bytes, &mask) in words.zip(mark).filter(|&(_, &mask)| mask != 0) {
            let these = mask & _bzhi_u64(u64::MAX, bytes.len() as u32);
            // SAFETY: lanes outside the mask are not written; the others are in the slice.
            unsafe { _mm512_mask_storeu_epi8(bytes.as_mut_ptr(), these, value) }
        }
    }
    // SAFETY: `has_bmi2` and `has_avx512` were true, else this kernel is not chosen.
    unsafe { enabled(rows, columns, value, mark) }
}

/// See [`crate::bounds::BitKernel::mark`].
pub(crate) fn mark_avx512(rows: &mut [i8], columns: usize, marks: &[(i8, &[u64])]) {
    /// Words at a time: one cache line of each mark.
    const WORDS: usize = 8;
    #[target_feature(enable = "bmi1,bmi2,popcnt,avx512f,avx512bw")]
    fn enabled(rows: &mut [i8], columns: usize, marks: &[(i8, &[u64])]) {
        let words = rows.len() / columns * columns.div_ceil(CHUNK);
        let mut bytes = rows.chunks_mut(columns).flat_map(|row| row.chunks_mut(CHUNK));
        for first in (0..words).step_by(WORDS) {
            let mut values = [_mm512_setzero_si512(); WORDS];
            for &(value, mark) in marks {
                let mut some = [0; WORDS];
                let mark = &mark[first..];
                let mark = mark.first_chunk().unwrap_or_else(|| {
                    some[..mark.len()].copy_from_slice(mark);
                    &some
                });
                // Most words of high bounds are zeros.
                if mark.iter().fold(0, |any, word| any | word) == 0 {
                    continue;
                }
                let value = _mm512_set1_epi8(value);
                for (values, &mask) in values.iter_mut().zip(mark) {
                    *values = _mm512_mask_blend_epi8(mask, *values, value);
                }
            }
            for (bytes, &values) in bytes.by_ref().take((words - first).min(WORDS)).zip(&values) {
                let these = _bzhi_u64(u64::MAX, bytes.len() as u32);
                // SAFETY: lanes outside the mask are not written; the others are in the slice.
                unsafe { _mm512_mask_storeu_epi8(bytes.as_mut_ptr(), these, values) }
            }
        }
    }
    // SAFETY: `has_bmi2` and `has_avx512` were true, else this kernel is not chosen.
    unsafe { enabled(rows, columns, marks) }
}
