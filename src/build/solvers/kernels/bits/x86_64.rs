//! Vector kernels of bits: BMI2 with AVX2, and AVX-512.

use super::{ChildWins, RowBits, WonRow, words};
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
pub(crate) fn push_row_avx2(lost: &[(u32, u64)], push: &Push, won: &mut WonRow) {
    #[target_feature(enable = "bmi1,bmi2,popcnt,avx2")]
    fn enabled(lost: &[(u32, u64)], push: &Push, won: &mut WonRow) {
        let hits = |from: &[u64], bits: u64| {
            let Some(from) = from.first_chunk::<8>() else {
                return from.iter().rev().fold(0, |hits, from| hits << 1 | u8::from(from & bits != 0));
            };
            let bits = _mm256_set1_epi64x(bits as i64);
            // SAFETY: eight words are two vectors.
            let halves = [0, 4].map(|at| unsafe { _mm256_loadu_si256(from.as_ptr().add(at).cast()) });
            let misses = halves.map(|from| {
                let none = _mm256_cmpeq_epi64(_mm256_and_si256(from, bits), _mm256_setzero_si256());
                _mm256_movemask_pd(_mm256_castsi256_pd(none)) as u8
            });
            !(misses[0] | misses[1] << 4)
        };
        let compress = |word, mask| _pext_u64(word, mask);
        super::push_row_by_eights(lost, push, won, hits, compress, |word, mask| _pdep_u64(word, mask));
    }
    // SAFETY: `has_bmi2` and `has_avx2` were true, else this kernel is not chosen.
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

/// The lowest, and the highest, bit of each byte of a word.
const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = LOW_BITS << 7;

/// See [`crate::bounds::BitKernel::encode_words`].
pub(crate) fn encode_words_bmi2(list: &[(u32, u64)], count: usize, bytes: &mut Vec<u8>) {
    #[target_feature(enable = "bmi1,bmi2,popcnt")]
    fn enabled(list: &[(u32, u64)], count: usize, bytes: &mut Vec<u8>) {
        words::encode(list, count, bytes, |word| {
            let nonzero = (((word & !HIGH_BITS) + !HIGH_BITS) | word) & HIGH_BITS;
            (_pext_u64(word, (nonzero >> 7) * 0xff), _pext_u64(nonzero, HIGH_BITS) as u8)
        })
    }
    // SAFETY: `has_bmi2` was true, else this kernel is not chosen.
    unsafe { enabled(list, count, bytes) }
}

/// See [`crate::bounds::BitKernel::decode_words`].
pub(crate) fn decode_words_bmi2(bytes: &[u8], count: usize, list: &mut Vec<(u32, u64)>) -> Option<usize> {
    #[target_feature(enable = "bmi1,bmi2,popcnt")]
    fn enabled(bytes: &[u8], count: usize, list: &mut Vec<(u32, u64)>) -> Option<usize> {
        words::decode(bytes, count, list, |value, mask| _pdep_u64(value, _pdep_u64(mask.into(), LOW_BITS) * 0xff))
    }
    // SAFETY: `has_bmi2` was true, else this kernel is not chosen.
    unsafe { enabled(bytes, count, list) }
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

/// Returns for each of 64 bits a byte: all ones if the bit is set, else 0.
#[target_feature(enable = "avx2")]
fn bytes_of_bits(bits: u64) -> [__m256i; 2] {
    let byte_of_bit =
        _mm256_set_epi64x(0x0303_0303_0303_0303, 0x0202_0202_0202_0202, 0x0101_0101_0101_0101, 0x0000_0000_0000_0000);
    let bit_of_byte = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    [bits, bits >> 32].map(|half| {
        let bits = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(half as i32), byte_of_bit), bit_of_byte);
        _mm256_cmpeq_epi8(bits, bit_of_byte)
    })
}

/// Reads up to 64 bytes, and zeros behind them.
#[target_feature(enable = "avx2")]
fn load(bytes: &[i8]) -> [__m256i; 2] {
    let mut padded = [0; CHUNK];
    let bytes = bytes.first_chunk().unwrap_or_else(|| {
        padded[..bytes.len()].copy_from_slice(bytes);
        &padded
    });
    let halves = bytes.as_chunks::<32>().0;
    // SAFETY: a half has 32 bytes.
    [0, 1].map(|half| unsafe { _mm256_loadu_si256(halves[half].as_ptr().cast()) })
}

/// Writes up to 64 bytes.
#[target_feature(enable = "avx2")]
fn store(bytes: &mut [i8], values: [__m256i; 2]) {
    let mut padded = [0; CHUNK];
    let whole = bytes.first_chunk_mut::<CHUNK>();
    let is_whole = whole.is_some();
    let halves = whole.unwrap_or(&mut padded).as_chunks_mut::<32>().0;
    for (half, values) in halves.iter_mut().zip(values) {
        // SAFETY: a half has 32 bytes.
        unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), values) }
    }
    if !is_whole {
        bytes.copy_from_slice(&padded[..bytes.len()]);
    }
}

/// See [`crate::bounds::BitKernel::by_value`].
pub(crate) fn by_value_avx2(bytes: &[i8], each: impl FnMut(i8, u64)) {
    #[target_feature(enable = "bmi1,bmi2,popcnt,avx2")]
    fn enabled(bytes: &[i8], each: impl FnMut(i8, u64)) {
        let all = load(bytes);
        let equal = |value| {
            let masks = all.map(|half| _mm256_movemask_epi8(_mm256_cmpeq_epi8(half, _mm256_set1_epi8(value))) as u32);
            u64::from(masks[0]) | u64::from(masks[1]) << 32
        };
        super::by_value(bytes, equal, each);
    }
    assert!(bytes.len() <= CHUNK);
    // SAFETY: `has_bmi2` and `has_avx2` were true, else this kernel is not chosen.
    unsafe { enabled(bytes, each) }
}

/// See [`crate::bounds::BitKernel::set`].
pub(crate) fn set_avx2(rows: &mut [i8], columns: usize, value: i8, mark: &[u64]) {
    #[target_feature(enable = "bmi1,bmi2,popcnt,avx2")]
    fn enabled(rows: &mut [i8], columns: usize, value: i8, mark: &[u64]) {
        let value = _mm256_set1_epi8(value);
        let words = rows.chunks_mut(columns).flat_map(|row| row.chunks_mut(CHUNK));
        for (bytes, &mask) in words.zip(mark).filter(|&(_, &mask)| mask != 0) {
            let (present, marked) = (load(bytes), bytes_of_bits(mask));
            store(bytes, [0, 1].map(|half| _mm256_blendv_epi8(present[half], value, marked[half])));
        }
    }
    // SAFETY: `has_bmi2` and `has_avx2` were true, else this kernel is not chosen.
    unsafe { enabled(rows, columns, value, mark) }
}

/// See [`crate::bounds::BitKernel::mark`].
pub(crate) fn mark_avx2(rows: &mut [i8], columns: usize, marks: &[(i8, &[u64])]) {
    #[target_feature(enable = "bmi1,bmi2,popcnt,avx2")]
    fn enabled(rows: &mut [i8], columns: usize, marks: &[(i8, &[u64])]) {
        let blend = |present: [__m256i; 2], mask, value| {
            let (value, marked) = (_mm256_set1_epi8(value), bytes_of_bits(mask));
            [0, 1].map(|half| _mm256_blendv_epi8(present[half], value, marked[half]))
        };
        let store = |bytes: &mut [i8], values| store(bytes, values);
        super::mark_by_eights(rows, columns, marks, [_mm256_setzero_si256(); 2], blend, store);
    }
    // SAFETY: `has_bmi2` and `has_avx2` were true, else this kernel is not chosen.
    unsafe { enabled(rows, columns, marks) }
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
    #[target_feature(enable = "bmi1,bmi2,popcnt,avx512f,avx512bw")]
    fn enabled(rows: &mut [i8], columns: usize, marks: &[(i8, &[u64])]) {
        let blend = |present, mask, value| _mm512_mask_blend_epi8(mask, present, _mm512_set1_epi8(value));
        let store = |bytes: &mut [i8], values| {
            let these = _bzhi_u64(u64::MAX, bytes.len() as u32);
            // SAFETY: lanes outside the mask are not written; the others are in the slice.
            unsafe { _mm512_mask_storeu_epi8(bytes.as_mut_ptr(), these, values) }
        };
        super::mark_by_eights(rows, columns, marks, _mm512_setzero_si512(), blend, store);
    }
    // SAFETY: `has_bmi2` and `has_avx512` were true, else this kernel is not chosen.
    unsafe { enabled(rows, columns, marks) }
}
