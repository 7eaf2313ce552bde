//! The form of a block: how its bytes are stored, as its index entry says.

use super::Codec;

/// How one block is stored. In any form its values are the next ones of the file in canonical order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One byte a value.
    Raw,
    /// Packed bits, see the module `packed`.
    Packed,
    /// One Zstandard frame.
    Zstd,
    /// Several Zstandard frames, see the module `zstd`.
    Frames,
    /// Strips, see the module `rans`.
    Strips,
    /// Strips coded with floors.
    Floors,
    /// Nonzero bytes and masks, see the module `sparse`.
    Sparse,
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

    /// Whether a file of this codec may contain such blocks.
    pub(crate) fn is_of(self, codec: Codec) -> bool {
        match self {
            Form::Raw => codec == Codec::Raw,
            Form::Packed => codec != Codec::Raw,
            Form::Zstd | Form::Frames | Form::Sparse => codec == Codec::Zstd,
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_round_trip() {
        for form in Form::ALL {
            assert_eq!(Form::of_tag(form.tag()), Some(form));
        }
        assert_eq!(Form::of_tag(0), None);
    }
}
