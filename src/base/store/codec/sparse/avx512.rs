//! The vector kernels of sparse blocks. Their portable twins are `compress` and `expand` in the parent module.

use crate::codec::kernels::is_portable;
use crate::codec::sparse::{self, GROUP};
use crate::error::DecodeError;
use std::arch::x86_64::*;

/// Whether the processor and the system support the vector kernels of this module, and their use is allowed.
fn has_byte_compression() -> bool {
    !is_portable()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

/// Vector version of [`sparse::encode_with`]. Returns `None` if the processor lacks the required instructions.
pub(in crate::codec::sparse) fn encode(values: &[u8], block: &mut [u8]) -> Option<usize> {
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2,popcnt")]
    fn enabled(values: &[u8], block: &mut [u8]) -> usize {
        sparse::encode_with(values, block, |group, to| {
            // SAFETY: source and destination have 64 bytes each.
            unsafe {
                let bytes = _mm512_loadu_si512(group.as_ptr().cast());
                let mask = _mm512_test_epi8_mask(bytes, bytes);
                if mask != 0 {
                    _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_maskz_compress_epi8(mask, bytes));
                }
                mask
            }
        })
    }
    // SAFETY: the processor and the system have what the function enables, as was found out just now.
    has_byte_compression().then(|| unsafe { enabled(values, block) })
}

/// Vector version of [`sparse::decode_with`]. Returns `None` if the processor lacks the required instructions.
pub(in crate::codec::sparse) fn decode(block: &[u8], out: &mut [u8]) -> Option<Result<(), DecodeError>> {
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2,popcnt")]
    fn enabled(block: &[u8], out: &mut [u8]) -> Result<(), DecodeError> {
        sparse::decode_with(block, out, |mask, bytes, group| {
            let these = _bzhi_u64(u64::MAX, bytes.len().min(GROUP) as u32);
            // SAFETY: bytes outside the mask are not read; the slice holds the bytes inside it, and the group has 64
            // bytes.
            unsafe {
                let bytes = _mm512_maskz_loadu_epi8(these, bytes.as_ptr().cast());
                _mm512_storeu_si512(group.as_mut_ptr().cast(), _mm512_maskz_expand_epi8(mask, bytes));
            }
        })
    }
    // SAFETY: the processor and the system have what the function enables, as was found out just now.
    has_byte_compression().then(|| unsafe { enabled(block, out) })
}
