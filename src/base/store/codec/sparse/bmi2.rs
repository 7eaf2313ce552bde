//! The kernels of sparse blocks for processors with BMI2 and without AVX-512: eight bytes at a time. Their
//! portable twins are `compress` and `expand` in the parent module.

use crate::codec::kernels::is_portable;
use crate::codec::sparse::{self, GROUP};
use crate::error::DecodeError;
use std::arch::x86_64::{_pdep_u64, _pext_u64};

const WORD: usize = size_of::<u64>();

/// The lowest bit of each byte.
const LOWEST: u64 = u64::MAX / 0xff;

/// The highest bit of each byte.
const HIGHEST: u64 = LOWEST << 7;

/// Whether the processor supports the kernels of this module, and their use is allowed.
fn has_bit_compression() -> bool {
    !is_portable() && is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt")
}

/// Version of [`sparse::encode_with`] for BMI2. Returns `None` if the processor lacks it.
pub(in crate::codec::sparse) fn encode(values: &[u8], block: &mut [u8]) -> Option<usize> {
    #[target_feature(enable = "bmi2,popcnt")]
    fn enabled(values: &[u8], block: &mut [u8]) -> usize {
        sparse::encode_with(values, block, |group, to| {
            if sparse::is_zero(group) {
                return 0;
            }
            let (mut mask, mut count) = (0, 0);
            for (number, word) in group.as_chunks().0.iter().enumerate() {
                let word = u64::from_le_bytes(*word);
                // The highest bit of a byte is set if the byte is not zero.
                let nonzero = (((word & !HIGHEST) + !HIGHEST) | word) & HIGHEST;
                let bytes = _pext_u64(word, (nonzero >> 7) * 0xff);
                // At most eight bytes for each preceding word are there.
                to[count..count + WORD].copy_from_slice(&bytes.to_le_bytes());
                count += nonzero.count_ones() as usize;
                mask |= _pext_u64(nonzero, HIGHEST) << (WORD * number);
            }
            mask
        })
    }
    // SAFETY: the processor has what the function enables, as was found out just now.
    has_bit_compression().then(|| unsafe { enabled(values, block) })
}

/// Version of [`sparse::decode_with`] for BMI2. Returns `None` if the processor lacks it.
pub(in crate::codec::sparse) fn decode(block: &[u8], out: &mut [u8]) -> Option<Result<(), DecodeError>> {
    #[target_feature(enable = "bmi2,popcnt")]
    fn enabled(block: &[u8], out: &mut [u8]) -> Result<(), DecodeError> {
        sparse::decode_with(block, out, |mask, bytes, group| {
            let mut padded = [0; GROUP + WORD];
            padded[..bytes.len()].copy_from_slice(bytes);
            let mut start = 0;
            for (word, present) in group.as_chunks_mut().0.iter_mut().zip(mask.to_le_bytes()) {
                let next = padded[start..].first_chunk().expect("at most eight bytes for each preceding word are used");
                let bytes = _pdep_u64(u64::from(present), LOWEST) * 0xff;
                *word = _pdep_u64(u64::from_le_bytes(*next), bytes).to_le_bytes();
                start += present.count_ones() as usize;
            }
        })
    }
    // SAFETY: the processor has what the function enables, as was found out just now.
    has_bit_compression().then(|| unsafe { enabled(block, out) })
}
