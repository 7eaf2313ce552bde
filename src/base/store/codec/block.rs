//! Encoding and decoding of one block, in any form.

use super::Form;
use super::rans::{self, Band, Context};
use super::{BLOCK_POSITIONS, Codec, packed, sparse, zstd};
use crate::checksum;
use crate::error::DecodeError;
use crate::hasher::HashFunction;
use crate::identity::FileKind;
use crate::value_range::ValueRange;
use std::borrow::Cow;

/// The values of a block to be encoded, all in range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values<'a> {
    pub(crate) block: usize,
    pub(crate) values: &'a [u8],
    /// For the codec rans.
    pub(crate) band: Band,
    pub(crate) range: ValueRange,
    /// Used by the codec with floors: one floor a value.
    pub(crate) floors: &'a [u8],
}

/// Whether a block of `values` values may take `bytes` bytes in this form.
pub(crate) fn admits_bytes(
    form: Form,
    bytes: u64,
    values: usize,
    band: impl FnOnce() -> Band,
    range: ValueRange,
) -> bool {
    let packed_bytes = packed::packed_bytes(values, range.bits()) as u64;
    match form {
        Form::Raw => bytes == values as u64,
        Form::Packed => bytes == packed_bytes,
        Form::Zstd | Form::Frames | Form::Sparse | Form::SparseFrame => bytes < packed_bytes,
        Form::Strips => bytes < packed_bytes && bytes >= Context::Neighbours.bytes_min(band()) as u64,
        Form::Floors => bytes < packed_bytes && bytes >= Context::Floors.bytes_min(band()) as u64,
    }
}

/// Encodes a block for a file of this codec and kind. Returns its bytes and their form.
pub(crate) fn encode<'a>(codec: Codec, kind: FileKind, block: Values<'a>) -> (Cow<'a, [u8]>, Form) {
    let Values { values, range, .. } = block;
    let packed_bytes = packed::packed_bytes(values.len(), range.bits());
    let compressed = match (codec, kind) {
        (Codec::Raw, _) => return (Cow::Borrowed(values), Form::Raw),
        (Codec::Packed, _) => None,
        (Codec::Zstd, FileKind::Plane { .. }) => Some((Cow::Owned(sparse::encode(values)), Form::Sparse)),
        (Codec::Zstd, _) => Some(zstd::encode(values)),
        (Codec::SparseZstd, _) => Some(encode_sparse_frame(values)),
        (Codec::Rans, _) => {
            rans::encode(block.block, values, block.band, range).map(|bytes| (Cow::Owned(bytes), Form::Strips))
        }
        (Codec::Floors, _) => rans::encode_floored(block.block, values, block.floors, block.band, range)
            .map(|bytes| (Cow::Owned(bytes), Form::Floors)),
    };
    match compressed.filter(|(bytes, _)| bytes.len() < packed_bytes) {
        Some((bytes, form)) => (bytes, form),
        None => {
            let mut bytes = vec![0; packed_bytes];
            packed::pack(values, range.low(), range.bits(), &mut bytes);
            (Cow::Owned(bytes), Form::Packed)
        }
    }
}

/// Compresses the sparse form of a block where that makes it shorter, unless all values are zero.
fn encode_sparse_frame(values: &[u8]) -> (Cow<'static, [u8]>, Form) {
    let sparse = sparse::encode(values);
    if sparse.len() == sparse::zeros_bytes(values.len()) {
        return (Cow::Owned(sparse), Form::Sparse);
    }
    let frame = zstd::compress(&sparse);
    if frame.len() < sparse.len() { (Cow::Owned(frame), Form::SparseFrame) } else { (Cow::Owned(sparse), Form::Sparse) }
}

/// Encodes a block of zeros, in files that have a short form of it.
pub(crate) fn zeros(codec: Codec, kind: FileKind, values: usize) -> Option<(Vec<u8>, Form)> {
    let is_sparse = matches!(codec, Codec::Zstd | Codec::SparseZstd) && matches!(kind, FileKind::Plane { .. });
    is_sparse.then(|| (vec![0; sparse::zeros_bytes(values)], Form::Sparse))
}

/// Whether an index entry is that of a block of `values` zeros in that form.
pub(crate) fn is_zeros(
    hash: HashFunction,
    form: Form,
    block: usize,
    values: usize,
    bytes: usize,
    checksum: u64,
) -> bool {
    const ZEROS: [u8; sparse::zeros_bytes(BLOCK_POSITIONS)] = [0; sparse::zeros_bytes(BLOCK_POSITIONS)];
    let zeros = ZEROS.get(..bytes).filter(|_| form == Form::Sparse && bytes == sparse::zeros_bytes(values));
    zeros.is_some_and(|zeros| checksum::of_block(hash, block, zeros) == checksum)
}

/// The checksum of a block for its index entry.
pub(crate) fn checksum(hash: HashFunction, form: Form, block: usize, bytes: &[u8]) -> Result<u64, DecodeError> {
    let covered = match form {
        Form::Strips | Form::Floors => &bytes[..rans::head_bytes(bytes, bytes.len())?],
        Form::Raw | Form::Packed | Form::Zstd | Form::Frames | Form::Sparse | Form::SparseFrame => bytes,
    };
    Ok(checksum::of_block(hash, block, covered))
}

/// Decodes the values `first ..` of a block until `out` is full. The block has `values` values; its length was compared
/// with them when the file was opened. Strips are decoded by [`Head`](rans::Head).
///
/// # Panics
/// If the block is one of strips.
pub(crate) fn decode(
    form: Form,
    block: &[u8],
    values: usize,
    range: ValueRange,
    first: usize,
    out: &mut [u8],
) -> Result<(), DecodeError> {
    match form {
        Form::Raw => out.copy_from_slice(&block[first..first + out.len()]),
        Form::Packed => packed::unpack(block, first, range.low(), range.bits(), out),
        Form::Zstd => zstd::decode_one(block, values, first, out)?,
        Form::Frames => zstd::decode(block, values, first, out)?,
        Form::Sparse => sparse::decode(block, values, first, out)?,
        Form::SparseFrame => {
            let bytes_max = sparse::bytes_max(values);
            zstd::decompress_up_to(block, bytes_max, |sparse| sparse::decode(sparse, values, first, out))?;
        }
        Form::Strips | Form::Floors => unreachable!("strips have a head"),
    }
    match range.find_outside(out) {
        None => Ok(()),
        Some(index) => Err(DecodeError {
            expected: format!("values in {range}"),
            found: format!("{} at {}", out[index] as i8, first + index),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Role;
    use proptest::prelude::*;

    /// A block of 8,192 values that pack to 4,096 bytes: one strip with 126 classes, or 558 with floors.
    #[test]
    fn each_form_has_its_lengths() {
        let band = Band { rows: 16, columns: 512 };
        let lengths = [
            (Form::Raw, 8192..8193),
            (Form::Packed, 4096..4097),
            (Form::Zstd, 0..4096),
            (Form::Frames, 0..4096),
            (Form::Sparse, 0..4096),
            (Form::SparseFrame, 0..4096),
            (Form::Strips, 8 + (10 + 64) + 2 * 126..4096),
            (Form::Floors, 8 + (10 + 64) + 2 * 558..4096),
        ];
        for (form, expected) in lengths {
            let admits = |&bytes: &u64| admits_bytes(form, bytes, band.values(), || band, ValueRange::new(-5, 5));
            assert!((0..9000).filter(admits).eq(expected), "{form:?}");
        }
    }

    /// Blocks of planes: zeros, a one in 200 bytes, a random byte in 200, and random bytes, which pack to themselves.
    #[test]
    fn planes_take_their_shortest_form() {
        const VALUES: usize = 10_000;
        let plane = FileKind::Plane { role: Role::Won, bound: 1 };
        let (range, band) = (ValueRange::new(i8::MIN, i8::MAX), Band { rows: 1, columns: VALUES });
        let random = |at: usize| blake3::hash(&at.to_le_bytes()).as_bytes()[0].max(1);
        let rare =
            |value: fn(u8) -> u8| (0..VALUES).map(|at| if at % 200 == 7 { value(random(at)) } else { 0 }).collect();
        let cases: [(Vec<u8>, [Form; 2]); 4] = [
            (vec![0; VALUES], [Form::Sparse, Form::Sparse]),
            (rare(|_| 1), [Form::Sparse, Form::SparseFrame]),
            (rare(|random| random), [Form::Sparse, Form::SparseFrame]),
            ((0..VALUES).map(random).collect(), [Form::Packed, Form::Packed]),
        ];
        for (values, forms) in cases {
            let is_zero = values.iter().all(|&value| value == 0);
            for (codec, expected) in [Codec::Zstd, Codec::SparseZstd].into_iter().zip(forms) {
                let block = Values { block: 3, values: &values, band, range, floors: &[] };
                let (bytes, form) = encode(codec, plane, block);
                assert_eq!(form, expected, "{codec}, {} bytes", bytes.len());
                let mut out = vec![9; VALUES];
                decode(form, &bytes, VALUES, range, 0, &mut out).unwrap();
                assert_eq!(out, values);
                assert_eq!(zeros(codec, plane, VALUES) == Some((bytes.to_vec(), form)), is_zero);
                for hash in [HashFunction::Blake3, HashFunction::Xxh3] {
                    let sum = checksum(hash, form, 3, &bytes).unwrap();
                    let is_zeros = |block, values| is_zeros(hash, form, block, values, bytes.len(), sum);
                    assert_eq!(is_zeros(3, VALUES), is_zero);
                    assert!(!is_zeros(4, VALUES) && !is_zeros(3, VALUES + 512));
                }
                assert_eq!(zeros(codec, FileKind::Database, VALUES), None);
            }
        }
        assert_eq!(zeros(Codec::Packed, plane, VALUES), None);
    }

    proptest! {
        #[test]
        fn any_block_decodes_or_is_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            values in 1usize..100,
        ) {
            let range = ValueRange::new(-5, 5);
            let mut out = vec![0; values];
            let of_strips = [Form::Strips, Form::Floors];
            for &form in Form::EVERY.iter().filter(|form| !of_strips.contains(form)) {
                let band = || Band { rows: 1, columns: values };
                let length = bytes.len() as u64;
                if !matches!(form, Form::Raw | Form::Packed) || admits_bytes(form, length, values, band, range) {
                    let decoded = decode(form, &bytes, values, range, 0, &mut out);
                    prop_assert!(decoded.is_err() || range.find_outside(&out).is_none());
                }
            }
        }
    }
}
