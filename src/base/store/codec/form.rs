//! The form of a block: the encoding of its bytes, recorded in its index entry.

use super::Codec;

/// How one block is stored. In any form its values are the next ones of the file in canonical order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::FromRepr)]
#[repr(u8)]
pub(crate) enum Form {
    /// One byte a value.
    Raw = 1,
    /// Packed bits, see the module `packed`.
    Packed = 2,
    /// One Zstandard frame.
    Zstd = 3,
    /// Several Zstandard frames, see the module `zstd`.
    Frames = 4,
    /// Strips, see the module `rans`.
    Strips = 5,
    /// Strips coded with floors.
    Floors = 6,
    /// Nonzero bytes and masks, see the module `sparse`.
    Sparse = 7,
    /// One Zstandard frame of a block of the form `Sparse`.
    SparseFrame = 8,
}

impl Form {
    pub(crate) fn tag(self) -> u8 {
        self as u8
    }

    pub(crate) fn of_tag(tag: u8) -> Option<Self> {
        Form::from_repr(tag)
    }

    /// Whether a file of this codec may contain such blocks.
    pub(crate) fn is_of(self, codec: Codec) -> bool {
        match self {
            Form::Raw => codec == Codec::Raw,
            Form::Packed => codec != Codec::Raw,
            Form::Zstd | Form::Frames => codec == Codec::Zstd,
            Form::Sparse => matches!(codec, Codec::Zstd | Codec::SparseZstd),
            Form::SparseFrame => codec == Codec::SparseZstd,
            Form::Strips => codec == Codec::Rans,
            Form::Floors => codec == Codec::Floors,
        }
    }

    /// The first version of the format with this form.
    pub(crate) fn version(self) -> u32 {
        match self {
            Form::Raw | Form::Packed | Form::Zstd => 1,
            Form::Frames | Form::Strips | Form::Floors => 2,
            Form::Sparse => 3,
            Form::SparseFrame => 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_codec_and_version_has_its_forms() {
        let forms = || (1..=8).map(|tag| Form::of_tag(tag).unwrap());
        let of = |codec| forms().filter(|form| form.is_of(codec)).map(Form::tag).collect::<Vec<_>>();
        assert_eq!(of(Codec::Raw), [1]);
        assert_eq!(of(Codec::Packed), [2]);
        assert_eq!(of(Codec::Zstd), [2, 3, 4, 7]);
        assert_eq!(of(Codec::Rans), [2, 5]);
        assert_eq!(of(Codec::Floors), [2, 6]);
        assert_eq!(of(Codec::SparseZstd), [2, 7, 8]);
        assert_eq!(forms().map(Form::version).collect::<Vec<_>>(), [1, 1, 1, 2, 2, 2, 3, 4]);
    }
}
