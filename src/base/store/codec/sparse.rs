//! Blocks of planes: their nonzero bytes, and masks that locate them.
//!
//! A block is divided into groups of [`GROUP`] bytes, the last one shorter.
//!
//! | bytes | field |
//! |---|---|
//! | 1 for 8 groups | one bit per group, lowest bit first: set if the group has nonzero bytes |
//! | 8 | of each group with nonzero bytes: one bit per byte, set if the byte is not zero |
//! | up to 64 | the nonzero bytes, followed by the next group with nonzero bytes |
//!
//! Planes are written once and read once or twice, so encoding must take no longer than hashing. At 20 stones Zstandard
//! makes them a third as long, but took a quarter of the processor time of `two-bit` to write and a tenth to read.

use crate::error::DecodeError;
use std::cell::Cell;

mod avx512;
mod bmi2;

/// Bytes in a group.
pub(crate) const GROUP: usize = 64;

/// Encodes a block.
pub(crate) fn encode(values: &[u8]) -> Vec<u8> {
    thread_local! {
        /// Reused from block to block: most of the worst-case buffer is never touched, and would be cleared each time.
        static ENCODE_BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    let mut buffer = ENCODE_BUFFER.take();
    buffer.resize(buffer.len().max(bytes_max(values.len())), 0);
    let bytes = avx512::encode(values, &mut buffer)
        .or_else(|| bmi2::encode(values, &mut buffer))
        .unwrap_or_else(|| encode_with(values, &mut buffer, compress));
    let block = buffer[..bytes].to_vec();
    ENCODE_BUFFER.set(buffer);
    block
}

/// Bytes of an encoded block of `values` zeros.
pub(crate) const fn zeros_bytes(values: usize) -> usize {
    values.div_ceil(GROUP).div_ceil(8)
}

/// The most bytes of an encoded block of `values` bytes.
pub(crate) fn bytes_max(values: usize) -> usize {
    zeros_bytes(values) + values.div_ceil(GROUP) * (size_of::<u64>() + GROUP)
}

/// Decodes the values `first ..` of a block of `values` until `out` is full.
pub(crate) fn decode(block: &[u8], values: usize, first: usize, out: &mut [u8]) -> Result<(), DecodeError> {
    if out.len() == values {
        return decode_whole(block, out);
    }
    let mut whole = vec![0; values];
    decode_whole(block, &mut whole)?;
    out.copy_from_slice(&whole[first..first + out.len()]);
    Ok(())
}

fn decode_whole(block: &[u8], out: &mut [u8]) -> Result<(), DecodeError> {
    avx512::decode(block, out).or_else(|| bmi2::decode(block, out)).unwrap_or_else(|| decode_with(block, out, expand))
}

/// Encodes into `block` and returns the length. `compress` moves the nonzero bytes of a group to the front of the
/// destination and returns their mask; for a group of zeros it may leave the destination as it is.
#[inline(always)]
fn encode_with(values: &[u8], block: &mut [u8], compress: impl Fn(&[u8; GROUP], &mut [u8; GROUP]) -> u64) -> usize {
    let mut end = zeros_bytes(values.len());
    block[..end].fill(0);
    let mut append = |number: usize, group: &[u8; GROUP]| {
        let place = block[end + size_of::<u64>()..].first_chunk_mut().expect("each group has this buffer");
        let mask = compress(group, place);
        if mask != 0 {
            block[end..end + size_of::<u64>()].copy_from_slice(&mask.to_le_bytes());
            block[number / 8] |= 1 << (number % 8);
            end += size_of::<u64>() + mask.count_ones() as usize;
        }
    };
    let (whole, rest) = values.as_chunks::<GROUP>();
    whole.iter().enumerate().for_each(|(number, group)| append(number, group));
    if !rest.is_empty() {
        let mut group = [0; GROUP];
        group[..rest.len()].copy_from_slice(rest);
        append(whole.len(), &group);
    }
    end
}

/// Decodes a block. `expand` moves bytes to the set bits of the mask; there is one byte a bit.
#[inline(always)]
fn decode_with(block: &[u8], out: &mut [u8], expand: impl Fn(u64, &[u8], &mut [u8; GROUP])) -> Result<(), DecodeError> {
    let (head, mut rest) = block.split_at_checked(zeros_bytes(out.len())).ok_or_else(|| short(block.len()))?;
    let has = |number: usize| head[number / 8] >> (number % 8) & 1 == 1;
    let mut next = |group: &mut [u8; GROUP]| {
        let (mask, after) = rest.split_first_chunk().ok_or_else(|| short(block.len()))?;
        let mask = u64::from_le_bytes(*mask);
        let (bytes, after) = after.split_at_checked(mask.count_ones() as usize).ok_or_else(|| short(block.len()))?;
        rest = after;
        expand(mask, bytes, group);
        Ok(())
    };
    let (whole, last) = out.as_chunks_mut::<GROUP>();
    for (number, group) in whole.iter_mut().enumerate() {
        if has(number) {
            next(group)?;
        } else {
            *group = [0; GROUP];
        }
    }
    if !last.is_empty() {
        let mut group = [0; GROUP];
        if has(whole.len()) {
            next(&mut group)?;
        }
        last.copy_from_slice(&group[..last.len()]);
    }
    match rest.len() {
        0 => Ok(()),
        more => Err(DecodeError {
            expected: "a block of as many bytes as its masks say".to_owned(),
            found: format!("{more} more"),
        }),
    }
}

fn short(bytes: usize) -> DecodeError {
    DecodeError { expected: "a block of as many bytes as its masks say".to_owned(), found: format!("only {bytes}") }
}

/// Whether a group has no nonzero byte. Comparing with an array of zeros would call `memcmp`.
#[inline(always)]
fn is_zero(group: &[u8; GROUP]) -> bool {
    group.iter().fold(0, |any, byte| any | byte) == 0
}

fn compress(group: &[u8; GROUP], to: &mut [u8; GROUP]) -> u64 {
    if is_zero(group) {
        return 0;
    }
    let (mut mask, mut count) = (0, 0);
    for (at, &byte) in group.iter().enumerate() {
        if byte != 0 {
            to[count] = byte;
            count += 1;
            mask |= 1 << at;
        }
    }
    mask
}

fn expand(mut mask: u64, bytes: &[u8], group: &mut [u8; GROUP]) {
    *group = [0; GROUP];
    for &byte in bytes {
        group[mask.trailing_zeros() as usize] = byte;
        mask &= mask - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes of which about one in `rarity` is not zero.
    fn sparse(len: usize, rarity: u64) -> Vec<u8> {
        let hash = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (0..len).map(|at| if hash(at) % rarity == 0 { hash(at + len) as u8 | 1 } else { 0 }).collect()
    }

    fn portable_encode(values: &[u8], block: &mut [u8]) -> Option<usize> {
        Some(encode_with(values, block, compress))
    }

    fn portable_decode(block: &[u8], out: &mut [u8]) -> Option<Result<(), DecodeError>> {
        Some(decode_with(block, out, expand))
    }

    #[test]
    fn blocks_round_trip_by_each_kernel() {
        for len in [1, 7, 63, 64, 65, 511, 512, 513, 5000, 1 << 16] {
            for rarity in [1, 2, 10, 100, 100_000] {
                let values = sparse(len, rarity);
                let block = encode(&values);
                for encode in [avx512::encode, bmi2::encode, portable_encode] {
                    let mut buffer = vec![9; bytes_max(len)];
                    let bytes = encode(&values, &mut buffer);
                    assert!(bytes.is_none_or(|bytes| block == buffer[..bytes]), "{len}, {rarity}");
                }
                for decode in [avx512::decode, bmi2::decode, portable_decode] {
                    let mut out = vec![9; len];
                    assert!(
                        decode(&block, &mut out).is_none_or(|result| result.is_ok() && out == values),
                        "{len}, {rarity}"
                    );
                }
                let mut some = vec![9; len / 3];
                decode(&block, len, len / 2, &mut some).unwrap();
                assert_eq!(some, values[len / 2..len / 2 + len / 3]);
            }
        }
    }

    #[test]
    fn zeros_take_a_bit_a_group() {
        assert_eq!(encode(&[0; 1 << 16]), [0; 128]);
        let mut values = [0; 100];
        values[99] = 5;
        let mask = 1u64 << 35;
        assert_eq!(encode(&values), [&[2][..], &mask.to_le_bytes(), &[5]].concat());
    }

    #[test]
    fn other_lengths_are_refused() {
        let values = sparse(1000, 3);
        let block = encode(&values);
        let mut out = vec![0; 1000];
        for length in 0..block.len() {
            assert!(decode(&block[..length], 1000, 0, &mut out).is_err());
        }
        assert!(decode(&[&block[..], &[0]].concat(), 1000, 0, &mut out).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_decode_alike_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), len in 1usize..300) {
            let mut expected = vec![0; len];
            let is_ok = decode_with(&bytes, &mut expected, expand).is_ok();
            for decode in [avx512::decode, bmi2::decode] {
                let mut out = vec![0; len];
                if let Some(result) = decode(&bytes, &mut out) {
                    prop_assert_eq!(result.is_ok(), is_ok);
                    prop_assert!(!is_ok || out == expected);
                }
            }
        }
    }
}
