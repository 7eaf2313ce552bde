//! How a file may be stored, and what values it may hold.

use std::fmt;
use std::str::FromStr;

/// How the blocks of a file are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// One byte a value.
    Raw,
    /// As many bits a value as its range needs.
    Packed,
    /// Zstandard; a block that it makes no smaller than packing does is packed.
    Zstd,
    /// Range asymmetric numeral systems with a value's neighbours in its row and the row above as context; a block that
    /// it makes no smaller than packing does is packed. The smallest, for scores.
    Rans,
    /// As `Rans`, and besides with a floor a score: a value that it is at least. Only [`Archive`](crate::Archive) reads it,
    /// given the same floors; no name stands for it.
    Floors,
}

/// The values that a file may hold, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueRange {
    low: i8,
    high: i8,
}

/// Not the name of a codec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the codec raw, packed, zstd or rans, found {found:?}")]
pub struct CodecError {
    /// What was given instead.
    pub found: String,
}

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

    /// How many values it has.
    pub(crate) fn values(self) -> usize {
        usize::from(self.span()) + 1
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
        if span == u8::MAX {
            return None;
        }
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
    /// All codecs of files that stand for themselves.
    pub const ALL: [Codec; 4] = [Codec::Raw, Codec::Packed, Codec::Zstd, Codec::Rans];

    /// Whether its blocks are decoded, rather than read where they lie.
    pub fn is_compressed(self) -> bool {
        match self {
            Codec::Raw | Codec::Packed => false,
            Codec::Zstd | Codec::Rans | Codec::Floors => true,
        }
    }

    /// Whether its blocks are whole rows.
    pub(crate) fn has_bands(self) -> bool {
        matches!(self, Codec::Rans | Codec::Floors)
    }

    pub(crate) fn tag(self) -> u8 {
        match self {
            Codec::Raw => 1,
            Codec::Packed => 2,
            Codec::Zstd => 3,
            Codec::Rans => 4,
            Codec::Floors => 5,
        }
    }

    pub(crate) fn of_tag(tag: u8) -> Option<Self> {
        Codec::ALL.into_iter().chain([Codec::Floors]).find(|codec| codec.tag() == tag)
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Codec::Raw => "raw",
            Codec::Packed => "packed",
            Codec::Zstd => "zstd",
            Codec::Rans => "rans",
            Codec::Floors => "rans with floors",
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
            "rans" => Ok(Codec::Rans),
            _ => Err(CodecError { found: text.to_owned() }),
        }
    }
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
            "expected the codec raw, packed, zstd or rans, found \"gzip\""
        );
    }

    proptest! {
        #[test]
        fn outside_is_found(low: i8, high: i8, values in prop::collection::vec(any::<i8>(), 0..20)) {
            let range = ValueRange::new(low.min(high), low.max(high));
            let expect = values.iter().position(|&value| !range.contains(value));
            prop_assert_eq!(range.find_outside(disk::bytes_of(&values)), expect);
        }
    }
}
