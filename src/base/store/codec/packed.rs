//! Kernels that pack values into bits.
//!
//! Value number i is stored as `value - low` in the bits `i * bits .. (i + 1) * bits` of a stream of bits, which fills
//! bytes from their least significant bit. Bits after the last value are zero.
//!
//! Eight values are one `u64` of eight lanes on one side and `bits` whole bytes on the other. Three steps that join (or
//! separate) neighbouring lanes convert between the two, without tables, in about 1 ns for eight values.

/// Bytes of `values` packed values.
pub(crate) fn packed_bytes(values: usize, bits: u32) -> usize {
    (values * bits as usize).div_ceil(8)
}

/// Packs values, all within `low ..= low + 2^bits - 1`. `out` has [`packed_bytes`] bytes.
pub(crate) fn pack(values: &[u8], low: i8, bits: u32, out: &mut [u8]) {
    assert_eq!(out.len(), packed_bytes(values.len(), bits));
    match bits {
        0 => {}
        1 => pack_bits::<1>(values, low, out),
        2 => pack_bits::<2>(values, low, out),
        3 => pack_bits::<3>(values, low, out),
        4 => pack_bits::<4>(values, low, out),
        5 => pack_bits::<5>(values, low, out),
        6 => pack_bits::<6>(values, low, out),
        7 => pack_bits::<7>(values, low, out),
        8 => pack_bits::<8>(values, low, out),
        _ => unreachable!("a byte has 8 bits, not {bits}"),
    }
}

/// Unpacks the values `first ..` of a stream until `out` is full. The sum of `low` and a code wraps around in a stream
/// that `pack` did not write.
pub(crate) fn unpack(stream: &[u8], first: usize, low: i8, bits: u32, out: &mut [u8]) {
    // Up to 7 values one by one, up to a byte boundary of the stream.
    let head = (first.wrapping_neg() % 8).min(out.len());
    let (ahead, out) = out.split_at_mut(head);
    for (index, value) in ahead.iter_mut().enumerate() {
        *value = value_at(stream, first + index, low, bits) as u8;
    }
    if out.is_empty() {
        return;
    }
    let first = first + head;
    let stream = &stream[first / 8 * bits as usize..];
    let stream = &stream[..packed_bytes(out.len(), bits)];
    match bits {
        0 => out.fill(low as u8),
        1 => unpack_bits::<1>(stream, low, out),
        2 => unpack_bits::<2>(stream, low, out),
        3 => unpack_bits::<3>(stream, low, out),
        4 => unpack_bits::<4>(stream, low, out),
        5 => unpack_bits::<5>(stream, low, out),
        6 => unpack_bits::<6>(stream, low, out),
        7 => unpack_bits::<7>(stream, low, out),
        8 => unpack_bits::<8>(stream, low, out),
        _ => unreachable!("a byte has 8 bits, not {bits}"),
    }
}

/// One value of a stream.
#[inline(always)]
pub(crate) fn value_at(stream: &[u8], index: usize, low: i8, bits: u32) -> i8 {
    let bit = index * bits as usize;
    // At most 8 bits from an offset of at most 7: two bytes contain them. At the end of a stream the second byte may be
    // absent; its bits are then not used.
    let near = stream.get(bit / 8).copied().unwrap_or(0);
    let far = stream.get(bit / 8 + 1).copied().unwrap_or(0);
    let pair = u16::from_le_bytes([near, far]);
    let mask = (1u16 << bits) - 1;
    low.wrapping_add(((pair >> (bit % 8)) & mask) as u8 as i8)
}

/// A byte in all eight lanes.
const fn splat(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}

/// Adds lane by lane without carries between lanes: the sum of the low seven bits, then the top bits without their
/// carry.
#[inline(always)]
fn add_lanes(x: u64, y: u64) -> u64 {
    const TOPS: u64 = splat(0x80);
    ((x & !TOPS) + (y & !TOPS)) ^ ((x ^ y) & TOPS)
}

/// The low `width` bits of each lane of `lane` bits.
const fn lanes(lane: u32, width: u32) -> u64 {
    let mut mask = 0;
    let mut at = 0;
    while at < 64 {
        mask |= (u64::MAX >> (64 - width)) << at;
        at += lane;
    }
    mask
}

fn pack_bits<const BITS: usize>(values: &[u8], low: i8, out: &mut [u8]) {
    let minus_low = splat(low.wrapping_neg() as u8);
    let (eights, rest) = values.as_chunks::<8>();
    let (words, tail) = out.split_at_mut(eights.len() * BITS);
    for (eight, word) in eights.iter().zip(words.as_chunks_mut::<BITS>().0) {
        let lanes = add_lanes(u64::from_le_bytes(*eight), minus_low);
        word.copy_from_slice(&join::<BITS>(lanes).to_le_bytes()[..BITS]);
    }
    if !rest.is_empty() {
        let mut eight = [low as u8; 8];
        eight[..rest.len()].copy_from_slice(rest);
        let lanes = add_lanes(u64::from_le_bytes(eight), minus_low);
        tail.copy_from_slice(&join::<BITS>(lanes).to_le_bytes()[..tail.len()]);
    }
}

fn unpack_bits<const BITS: usize>(stream: &[u8], low: i8, out: &mut [u8]) {
    let low = splat(low as u8);
    let (eights, rest) = out.as_chunks_mut::<8>();
    let (words, tail) = stream.split_at(eights.len() * BITS);
    for (eight, word) in eights.iter_mut().zip(words.as_chunks::<BITS>().0) {
        let mut bytes = [0; 8];
        bytes[..BITS].copy_from_slice(word);
        let lanes = part::<BITS>(u64::from_le_bytes(bytes));
        *eight = add_lanes(lanes, low).to_le_bytes();
    }
    if !rest.is_empty() {
        let mut bytes = [0; 8];
        bytes[..tail.len()].copy_from_slice(tail);
        let lanes = part::<BITS>(u64::from_le_bytes(bytes));
        let eight = add_lanes(lanes, low).to_le_bytes();
        rest.copy_from_slice(&eight[..rest.len()]);
    }
}

/// Joins eight lanes of 8 bits, of which the low `BITS` are used, to a run of `8 * BITS` bits.
#[inline(always)]
fn join<const BITS: usize>(lanes_8: u64) -> u64 {
    let bits = BITS as u32;
    let even = const { lanes(16, BITS as u32) };
    let x = (lanes_8 & even) | ((lanes_8 >> (8 - bits)) & (even << bits));
    let even = const { lanes(32, 2 * BITS as u32) };
    let x = (x & even) | ((x >> (16 - 2 * bits)) & (even << (2 * bits)));
    let even = const { lanes(64, 4 * BITS as u32) };
    (x & even) | ((x >> (32 - 4 * bits)) & (even << (4 * bits)))
}

/// The inverse of [`join`].
#[inline(always)]
fn part<const BITS: usize>(run: u64) -> u64 {
    let bits = BITS as u32;
    let even = const { lanes(64, 4 * BITS as u32) };
    let x = (run & even) | ((run & (even << (4 * bits))) << (32 - 4 * bits));
    let even = const { lanes(32, 2 * BITS as u32) };
    let x = (x & even) | ((x & (even << (2 * bits))) << (16 - 2 * bits));
    let even = const { lanes(16, BITS as u32) };
    (x & even) | ((x & (even << bits)) << (8 - bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow twin: bit by bit, from the description at the top.
    fn pack_slowly(values: &[u8], low: i8, bits: u32) -> Vec<u8> {
        let mut out = vec![0; packed_bytes(values.len(), bits)];
        for (index, &value) in values.iter().enumerate() {
            let code = i32::from(value as i8) - i32::from(low);
            for bit in 0..bits as usize {
                let at = index * bits as usize + bit;
                out[at / 8] |= ((code >> bit & 1) as u8) << (at % 8);
            }
        }
        out
    }

    proptest! {
        #[test]
        fn packing_equals_the_slow_twin_and_round_trips(
            bits in 0u32..=8,
            low: i8,
            random in prop::collection::vec(any::<u8>(), 0..100),
            first in 0usize..100,
        ) {
            let span = (1i32 << bits) - 1;
            let low = i32::from(low).min(127 - span) as i8;
            let values: Vec<u8> = random
                .iter()
                .map(|&r| (i32::from(low) + i32::from(r) % (span + 1)) as i8 as u8)
                .collect();
            let mut stream = vec![0xAA; packed_bytes(values.len(), bits)];
            pack(&values, low, bits, &mut stream);
            prop_assert_eq!(&stream, &pack_slowly(&values, low, bits));
            for (index, &value) in values.iter().enumerate() {
                prop_assert_eq!(value_at(&stream, index, low, bits) as u8, value);
            }
            let first = first.min(values.len());
            for last in first..=values.len() {
                let mut out = vec![0x55; last - first];
                unpack(&stream, first, low, bits, &mut out);
                prop_assert_eq!(&out[..], &values[first..last]);
            }
        }

        #[test]
        fn any_stream_unpacks_to_something(
            bits in 0u32..=8,
            low: i8,
            stream in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let values = if bits == 0 { 9 } else { stream.len() * 8 / bits as usize };
            let mut out = vec![0; values];
            unpack(&stream, 0, low, bits, &mut out);
            for (index, &value) in out.iter().enumerate() {
                prop_assert_eq!(value as i8, value_at(&stream, index, low, bits));
            }
        }
    }
}
