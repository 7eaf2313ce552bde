//! How a block's values become bytes.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::OnceLock;

use crate::layout::BLOCK_POSITIONS;
use crate::packed;

/// How the blocks of a file are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// One byte a value.
    Raw,
    /// As many bits a value as its range needs.
    Packed,
    /// Zstandard; a block that it makes no smaller than packing does is packed.
    Zstd,
}

/// The values that a file may hold, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueRange {
    low: i8,
    high: i8,
}

/// Not the name of a codec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the codec raw, packed or zstd, found {found:?}")]
pub struct CodecError {
    /// What was given instead.
    pub found: String,
}

/// The level of compression. Part of what determines a file's bytes, hence a constant. Levels up to
/// 19 save another tenth for a hundred times the work.
const ZSTD_LEVEL: i32 = 1;

impl ValueRange {
    /// The range `low..=high`.
    ///
    /// # Panics
    /// If `low` is above `high`.
    pub fn new(low: i8, high: i8) -> Self {
        assert!(low <= high, "the range {low}..={high} is empty");
        ValueRange { low, high }
    }

    /// The least value.
    pub fn low(self) -> i8 {
        self.low
    }

    /// The greatest value.
    pub fn high(self) -> i8 {
        self.high
    }

    /// Bits that a packed value takes: 0 for a range of one value, 8 for all.
    pub fn bits(self) -> u32 {
        u8::BITS - self.span().leading_zeros()
    }

    /// Whether a value lies in the range.
    #[inline]
    pub fn contains(self, value: i8) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The index of the first of some values (as bytes) that lies outside.
    pub(crate) fn find_outside(self, values: &[u8]) -> Option<usize> {
        let span = self.span();
        let outside = |value: u8| value.wrapping_sub(self.low as u8) > span;
        // Without an early exit this runs at the speed of memory; the search is for the bad case.
        let clean = values.iter().fold(0, |or, &value| or | u8::from(outside(value))) == 0;
        if clean {
            return None;
        }
        values.iter().position(|&value| outside(value))
    }

    fn span(self) -> u8 {
        self.high.wrapping_sub(self.low) as u8
    }
}

impl fmt::Display for ValueRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.low, self.high)
    }
}

impl Codec {
    /// All codecs.
    pub const ALL: [Codec; 3] = [Codec::Raw, Codec::Packed, Codec::Zstd];

    pub(crate) fn tag(self) -> u8 {
        match self {
            Codec::Raw => 1,
            Codec::Packed => 2,
            Codec::Zstd => 3,
        }
    }

    pub(crate) fn of_tag(tag: u8) -> Option<Self> {
        Codec::ALL.into_iter().find(|codec| codec.tag() == tag)
    }

    /// Whether a file of this codec may have blocks of that one.
    pub(crate) fn admits(self, block: Codec) -> bool {
        self == block || (self == Codec::Zstd && block == Codec::Packed)
    }

    /// Whether a block of `values` values may take `bytes` bytes.
    pub(crate) fn admits_bytes(self, bytes: u64, values: usize, range: ValueRange) -> bool {
        let packed_bytes = packed::packed_bytes(values, range.bits()) as u64;
        match self {
            Codec::Raw => bytes == values as u64,
            Codec::Packed => bytes == packed_bytes,
            Codec::Zstd => bytes < packed_bytes,
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Codec::Raw => "raw",
            Codec::Packed => "packed",
            Codec::Zstd => "zstd",
        })
    }
}

impl FromStr for Codec {
    type Err = CodecError;

    fn from_str(text: &str) -> Result<Self, CodecError> {
        match text {
            "raw" => Ok(Codec::Raw),
            "packed" => Ok(Codec::Packed),
            "zstd" => Ok(Codec::Zstd),
            _ => Err(CodecError { found: text.to_owned() }),
        }
    }
}

/// Packs a block of which all values are in range.
pub(crate) fn encode_packed(values: &[u8], range: ValueRange) -> Vec<u8> {
    let mut bytes = vec![0; packed::packed_bytes(values.len(), range.bits())];
    packed::pack(values, range.low(), range.bits(), &mut bytes);
    bytes
}

/// Compresses a block, or `None` if that makes it no smaller than packing does.
pub(crate) fn encode_zstd(values: &[u8], range: ValueRange) -> Option<Vec<u8>> {
    let packed_bytes = packed::packed_bytes(values.len(), range.bits());
    if values.len() == ZEROS.len() && values == ZEROS {
        let compressed = compressed_zeros();
        return (compressed.len() < packed_bytes).then(|| compressed.to_vec());
    }
    Some(compress(values)).filter(|compressed| compressed.len() < packed_bytes)
}

/// A block of zeros: most of a sparse plane.
static ZEROS: [u8; BLOCK_POSITIONS] = [0; BLOCK_POSITIONS];

/// What they are compressed to.
fn compressed_zeros() -> &'static [u8] {
    static COMPRESSED: OnceLock<Vec<u8>> = OnceLock::new();
    COMPRESSED.get_or_init(|| compress(&ZEROS))
}

fn compress(values: &[u8]) -> Vec<u8> {
    // Zstandard's output depends on input and level alone, also when a context is used again.
    let compressed = COMPRESSOR.with_borrow_mut(|slot| -> io::Result<Vec<u8>> {
        let compressor = match slot {
            Some(compressor) => compressor,
            None => slot.insert(zstd::bulk::Compressor::new(ZSTD_LEVEL)?),
        };
        compressor.compress(values)
    });
    let mut compressed = compressed.expect("zstd fails only without memory: its buffer is large enough");
    // It was made for the worst case, and may be kept for a while.
    compressed.shrink_to_fit();
    compressed
}

/// Decodes the values `first ..` of a block until `out` is full. `values` is how many the block
/// has; its length was found to fit them when the file was opened.
pub(crate) fn decode(
    codec: Codec,
    block: &[u8],
    values: usize,
    range: ValueRange,
    first: usize,
    out: &mut [u8],
) -> Result<(), DecodeError> {
    match codec {
        Codec::Raw => out.copy_from_slice(&block[first..first + out.len()]),
        Codec::Packed => packed::unpack(block, first, range.low(), range.bits(), out),
        Codec::Zstd if out.len() == values => decode_zstd(block, out)?,
        Codec::Zstd => {
            let mut whole = vec![0; values];
            decode_zstd(block, &mut whole)?;
            out.copy_from_slice(&whole[first..first + out.len()]);
        }
    }
    match range.find_outside(out) {
        None => Ok(()),
        Some(index) => Err(DecodeError {
            expected: format!("values in {range}"),
            found: format!("{} at {}", out[index] as i8, first + index),
        }),
    }
}

/// The bytes of a block mean nothing, although their checksum is right.
#[derive(Debug)]
pub(crate) struct DecodeError {
    pub(crate) expected: String,
    pub(crate) found: String,
}

fn decode_zstd(block: &[u8], out: &mut [u8]) -> Result<(), DecodeError> {
    let values = out.len();
    if values == ZEROS.len() && block == compressed_zeros() {
        out.fill(0);
        return Ok(());
    }
    let decoded = DECOMPRESSOR.with_borrow_mut(|slot| -> io::Result<usize> {
        let decompressor = match slot {
            Some(decompressor) => decompressor,
            None => slot.insert(zstd::bulk::Decompressor::new()?),
        };
        // Writes at most `out`, and needs no window of its own for a frame decoded in one go.
        decompressor.decompress_to_buffer(block, out)
    });
    let found = match decoded {
        Ok(decoded) if decoded == values => return Ok(()),
        Ok(decoded) => format!("{decoded} values"),
        Err(error) => error.to_string(),
    };
    Err(DecodeError { expected: format!("a zstd frame of {values} values"), found })
}

// Contexts are a few hundred kilobytes; making one takes about as long as decoding a block.
thread_local! {
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> =
        const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
        const { RefCell::new(None) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bits_of_ranges() {
        let check = |low, high, bits| assert_eq!(ValueRange::new(low, high).bits(), bits);
        check(0, 0, 0);
        check(-128, -128, 0);
        check(0, 1, 1);
        check(-1, 1, 2);
        check(-24, 24, 6);
        check(-48, 48, 7);
        check(-128, 127, 8);
        check(0, 127, 7);
    }

    #[test]
    fn names_come_back() {
        for codec in Codec::ALL {
            assert_eq!(codec.to_string().parse(), Ok(codec));
            assert_eq!(Codec::of_tag(codec.tag()), Some(codec));
        }
        assert_eq!(
            "gzip".parse::<Codec>().unwrap_err().to_string(),
            "expected the codec raw, packed or zstd, found \"gzip\""
        );
    }

    proptest! {
        #[test]
        fn outside_is_found(low: i8, high: i8, values in prop::collection::vec(any::<i8>(), 0..20)) {
            let range = ValueRange::new(low.min(high), low.max(high));
            let expect = values.iter().position(|&value| !range.contains(value));
            prop_assert_eq!(range.find_outside(disk::bytes_of(&values)), expect);
        }

        #[test]
        fn any_block_decodes_or_is_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            values in 1usize..100,
        ) {
            let range = ValueRange::new(-5, 5);
            let mut out = vec![0; values];
            for codec in Codec::ALL {
                if codec == Codec::Zstd
                    || codec.admits_bytes(bytes.len() as u64, values, range)
                {
                    let decoded = decode(codec, &bytes, values, range, 0, &mut out);
                    prop_assert!(decoded.is_err() || range.find_outside(&out).is_none());
                }
            }
        }
    }
}
