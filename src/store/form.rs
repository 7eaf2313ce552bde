//! How one block is stored: what its bytes mean, as its index entry says.

use std::borrow::Cow;

use crate::codec::{Codec, ValueRange};
use crate::format::block_checksum;
use crate::frames;
use crate::identity::Kind;
use crate::layout::BLOCK_POSITIONS;
use crate::packed;
use crate::sparse;
use crate::strips::{self, Band, Context};

/// How one block is stored. Its values are the file's next ones in canonical order, whatever the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One byte a value.
    Raw,
    /// See the module `packed`.
    Packed,
    /// One Zstandard frame.
    Zstd,
    /// Several, see the module `frames`.
    Frames,
    /// See the module `strips`.
    Strips,
    /// The same, given floors.
    Floors,
    /// See the module `sparse`.
    Sparse,
}

/// The bytes of a block mean nothing, although their checksum is right.
#[derive(Debug)]
pub(crate) struct DecodeError {
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl Form {
    const ALL: [Form; 7] =
        [Form::Raw, Form::Packed, Form::Zstd, Form::Frames, Form::Strips, Form::Floors, Form::Sparse];

    pub(crate) fn tag(self) -> u8 {
        match self {
            Form::Raw => 1,
            Form::Packed => 2,
            Form::Zstd => 3,
            Form::Frames => 4,
            Form::Strips => 5,
            Form::Floors => 6,
            Form::Sparse => 7,
        }
    }

    pub(crate) fn of_tag(tag: u8) -> Option<Self> {
        Form::ALL.into_iter().find(|form| form.tag() == tag)
    }

    /// Whether a file of this codec may have such blocks.
    pub(crate) fn is_of(self, codec: Codec) -> bool {
        match self {
            Form::Raw => codec == Codec::Raw,
            Form::Packed => codec != Codec::Raw,
            Form::Zstd | Form::Frames | Form::Sparse => codec == Codec::Zstd,
            Form::Strips => codec == Codec::Rans,
            Form::Floors => codec == Codec::Floors,
        }
    }

    /// The version of the format that has it first.
    pub(crate) fn version(self) -> u32 {
        match self {
            Form::Raw | Form::Packed | Form::Zstd => 1,
            Form::Frames | Form::Strips | Form::Floors => 2,
            Form::Sparse => 3,
        }
    }

    /// Whether a block of `values` values may take `bytes` bytes.
    pub(crate) fn admits_bytes(
        self,
        bytes: u64,
        values: usize,
        band: impl FnOnce() -> Band,
        range: ValueRange,
    ) -> bool {
        let packed_bytes = packed::packed_bytes(values, range.bits()) as u64;
        match self {
            Form::Raw => bytes == values as u64,
            Form::Packed => bytes == packed_bytes,
            Form::Zstd | Form::Frames | Form::Sparse => bytes < packed_bytes,
            Form::Strips => bytes < packed_bytes && bytes >= Context::Neighbours.bytes_min(band()) as u64,
            Form::Floors => bytes < packed_bytes && bytes >= Context::Floors.bytes_min(band()) as u64,
        }
    }
}

/// A block to be encoded, all of its values in range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values<'a> {
    /// The number of the block.
    pub(crate) block: usize,
    pub(crate) values: &'a [u8],
    /// For the codec rans.
    pub(crate) band: Band,
    pub(crate) range: ValueRange,
    /// For the codec with floors: as many as values.
    pub(crate) floors: &'a [u8],
}

/// The bytes of a block in a file of this codec and kind, and their form.
pub(crate) fn encode<'a>(codec: Codec, kind: Kind, block: Values<'a>) -> (Cow<'a, [u8]>, Form) {
    let Values { values, range, .. } = block;
    let packed_bytes = packed::packed_bytes(values.len(), range.bits());
    let compressed = match (codec, kind) {
        (Codec::Raw, _) => return (Cow::Borrowed(values), Form::Raw),
        (Codec::Packed, _) => None,
        (Codec::Zstd, Kind::Plane { .. }) => Some((Cow::Owned(sparse::encode(values)), Form::Sparse)),
        (Codec::Zstd, _) => Some(frames::encode(values)),
        (Codec::Rans, _) => {
            strips::encode(block.block, values, block.band, range).map(|bytes| (Cow::Owned(bytes), Form::Strips))
        }
        (Codec::Floors, _) => strips::encode_floored(block.block, values, block.floors, block.band, range)
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

/// A block of zeros in a file that has such forms: its bytes and their form.
pub(crate) fn zeros(codec: Codec, kind: Kind, values: usize) -> Option<(Vec<u8>, Form)> {
    let is_sparse = codec == Codec::Zstd && matches!(kind, Kind::Plane { .. });
    is_sparse.then(|| (vec![0; sparse::zeros_bytes(values)], Form::Sparse))
}

/// Whether a block of so many values is such a one, as its index entry tells.
pub(crate) fn is_zeros(form: Form, block: usize, values: usize, bytes: usize, checksum: u64) -> bool {
    const ZEROS: [u8; sparse::zeros_bytes(BLOCK_POSITIONS)] = [0; sparse::zeros_bytes(BLOCK_POSITIONS)];
    let zeros = ZEROS.get(..bytes).filter(|_| form == Form::Sparse && bytes == sparse::zeros_bytes(values));
    zeros.is_some_and(|zeros| block_checksum(block, zeros) == checksum)
}

/// The checksum that the index has of a block of these bytes.
pub(crate) fn checksum(form: Form, block: usize, bytes: &[u8]) -> Result<u64, DecodeError> {
    let covered = match form {
        Form::Strips | Form::Floors => &bytes[..strips::head_bytes(bytes, bytes.len())?],
        Form::Raw | Form::Packed | Form::Zstd | Form::Frames | Form::Sparse => bytes,
    };
    Ok(block_checksum(block, covered))
}

/// Decodes the values `first ..` of a block until `out` is full. `values` is how many the block has; its length was found
/// to fit them when the file was opened. Strips are decoded with their [`Head`](strips::Head).
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
        Form::Zstd => frames::decode_one(block, values, first, out)?,
        Form::Frames => frames::decode(block, values, first, out)?,
        Form::Sparse => sparse::decode(block, values, first, out)?,
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
    use proptest::prelude::*;

    #[test]
    fn tags_come_back() {
        for form in Form::ALL {
            assert_eq!(Form::of_tag(form.tag()), Some(form));
        }
        assert_eq!(Form::of_tag(0), None);
    }

    proptest! {
        #[test]
        fn any_block_decodes_or_is_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            values in 1usize..100,
        ) {
            let range = ValueRange::new(-5, 5);
            let mut out = vec![0; values];
            for form in [Form::Raw, Form::Packed, Form::Zstd, Form::Frames, Form::Sparse] {
                let band = || Band { rows: 1, columns: values };
                let length = bytes.len() as u64;
                if matches!(form, Form::Zstd | Form::Frames | Form::Sparse) || form.admits_bytes(length, values, band, range) {
                    let decoded = decode(form, &bytes, values, range, 0, &mut out);
                    prop_assert!(decoded.is_err() || range.find_outside(&out).is_none());
                }
            }
        }
    }
}
