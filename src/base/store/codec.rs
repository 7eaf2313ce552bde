//! Codecs: encodings of the blocks of a file.
//!
//! A *codec* is chosen for a file. A *form* is how one block is stored: a block that the codec does not shrink is
//! packed. The module `block` encodes and decodes one block in any form, each form by a module of its own.

use std::str::FromStr;

pub(crate) mod block;
pub(crate) mod form;
pub(crate) mod kernels;
pub(crate) mod packed;
pub(crate) mod rans;
mod sparse;
pub(crate) mod zstd;

/// Positions in a block. A multiple of 8, so that packed blocks end on whole bytes and a slab is one stream of bits.
/// Large enough that an index entry is negligible (0.003 bits a position), small enough that a probe of one block takes
/// some 50 us.
pub const BLOCK_POSITIONS: usize = 1 << 16;

const _: () = assert!(BLOCK_POSITIONS.is_multiple_of(8));

/// The encoding of the blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display, strum::FromRepr)]
#[strum(serialize_all = "lowercase")]
#[repr(u8)]
pub enum Codec {
    /// One byte a value.
    Raw = 1,
    /// As many bits a value as its range needs.
    Packed = 2,
    /// Zstandard, or packed where that is no larger.
    Zstd = 3,
    /// Range asymmetric numeral systems, with the neighbours of a value in its row and in the row above as context, or
    /// packed where that is no larger. The smallest codec for scores.
    Rans = 4,
    /// As `Rans`, with a floor for each score as additional context: a value that the score is at least. Only
    /// [`Archive`](crate::Archive) reads it, given the same floors; it has no name for users.
    #[strum(to_string = "rans with floors")]
    Floors = 5,
    /// Zstandard of the nonzero bytes and of masks that locate them. Planes alone have this codec; it has no name for users.
    #[strum(to_string = "zstd of sparse")]
    SparseZstd = 6,
}

/// An unknown name of a codec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the codec raw, packed, zstd or rans, found {found:?}")]
pub struct CodecError {
    /// The text.
    pub found: String,
}

impl Codec {
    /// All codecs that can be decoded without other data.
    pub const ALL: [Codec; 4] = [Codec::Raw, Codec::Packed, Codec::Zstd, Codec::Rans];

    /// Whether blocks must be decoded, rather than read in place.
    pub fn is_compressed(self) -> bool {
        match self {
            Codec::Raw | Codec::Packed => false,
            Codec::Zstd | Codec::Rans | Codec::Floors | Codec::SparseZstd => true,
        }
    }

    /// Whether blocks consist of whole rows.
    pub(crate) fn has_bands(self) -> bool {
        matches!(self, Codec::Rans | Codec::Floors)
    }

    pub(crate) fn tag(self) -> u8 {
        self as u8
    }

    pub(crate) fn of_tag(tag: u8) -> Option<Self> {
        Codec::from_repr(tag)
    }
}

impl FromStr for Codec {
    type Err = CodecError;

    fn from_str(text: &str) -> Result<Self, CodecError> {
        let found = Codec::ALL.into_iter().find(|codec| codec.to_string() == text);
        found.ok_or_else(|| CodecError { found: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for codec in Codec::ALL {
            assert_eq!(codec.to_string().parse(), Ok(codec));
            assert_eq!(Codec::of_tag(codec.tag()), Some(codec));
        }
        assert_eq!(
            "gzip".parse::<Codec>().unwrap_err().to_string(),
            "expected the codec raw, packed, zstd or rans, found \"gzip\""
        );
    }
}
