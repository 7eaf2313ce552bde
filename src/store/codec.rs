//! How the blocks of a file are encoded.
//!
//! A *codec* is chosen for a file; a *form* is how one of its blocks is stored, for a block that a codec does not shrink is
//! packed. The module `block` encodes and decodes one block in any form, with the module of that form.

use std::fmt;
use std::str::FromStr;

pub(crate) mod block;
pub(crate) mod form;
pub(crate) mod kernels;
pub(crate) mod packed;
pub(crate) mod rans;
mod sparse;
pub(crate) mod zstd;

/// Positions in a block. A multiple of 8, so that packed blocks end on whole bytes and a slab is one stream of bits; so
/// large that its index entry is negligible (0.003 bits a position), so small that a probe of one takes some 50 us, and
/// less where a block has restart points.
pub const BLOCK_POSITIONS: usize = 1 << 16;

const _: () = assert!(BLOCK_POSITIONS.is_multiple_of(8));

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

/// Not the name of a codec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the codec raw, packed, zstd or rans, found {found:?}")]
pub struct CodecError {
    /// What was given instead.
    pub found: String,
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
}
