//! Codecs: encodings of the blocks of a file.
//!
//! A *codec* is chosen for a file. A *form* is how one block is stored: a block that the codec does not shrink is
//! packed. The module `block` encodes and decodes one block in any form, each form by a module of its own.
//!
//! A new codec is a module here, a variant of [`Codec`] with its [`CodecFacts`] and those of [`Form`] that it
//! adds, their arms in `block`, and its rates in `codec.rs` of the planner. The compiler finds what is
//! missing; all else asks the facts.

use std::fmt;
use std::str::FromStr;

pub(crate) mod block;
pub(crate) mod kernels;
pub(crate) mod packed;
pub(crate) mod rans;
mod sparse;
pub(crate) mod zstd;
#[cfg_attr(not(feature = "zstd"), path = "codec/no_zstd_library.rs")]
mod zstd_library;

/// Positions in a block. A multiple of 8, so that packed blocks end on whole bytes and a slab is one stream of bits.
/// Large enough that an index entry is negligible (0.003 bits a position), small enough that a probe of one block takes
/// some 50 us.
pub const BLOCK_POSITIONS: usize = 1 << 16;

const _: () = assert!(BLOCK_POSITIONS.is_multiple_of(8));

/// Declares an enumeration whose numbers are tags in files, with the list of its values.
macro_rules! tagged {
    ($(#[$of_type:meta])* $visibility:vis enum $name:ident {
        $($(#[$of_value:meta])* $value:ident = $tag:literal,)*
    }) => {
        $(#[$of_type])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        $visibility enum $name {
            $($(#[$of_value])* $value = $tag,)*
        }

        impl $name {
            /// All values, in the order of their tags.
            pub(crate) const EVERY: &[$name] = &[$($name::$value),*];

            pub(crate) const fn tag(self) -> u8 {
                self as u8
            }

            pub(crate) fn of_tag(tag: u8) -> Option<$name> {
                $name::EVERY.iter().copied().find(|value| value.tag() == tag)
            }
        }
    };
}

tagged! {
    /// The encoding of the blocks of a file. Its number is its tag in the header.
    pub enum Codec {
        /// One byte a value.
        Raw = 1,
        /// As many bits a value as its range needs.
        Packed = 2,
        /// Zstandard, or packed where that is no larger.
        Zstd = 3,
        /// Range asymmetric numeral systems, with the neighbours of a value in its row and in the row above
        /// as context, or packed where that is no larger. The smallest codec for scores.
        Rans = 4,
        /// As `Rans`, with a floor for each score as additional context: a value that the score is at least. Only
        /// [`Archive`](crate::Archive) reads it, given the same floors; it has no name for users.
        Floors = 5,
        /// Zstandard of the nonzero bytes and of masks that locate them. Planes alone have this codec; it has
        /// no name for users.
        SparseZstd = 6,
    }
}

tagged! {
    /// How one block is stored. Its number is its tag in the index entry. In any form its values are the next
    /// ones of the file in canonical order.
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
}

/// What all but the module `block` need to know about a codec.
struct CodecFacts {
    name: &'static str,
    /// How it stores a score, for users; `None` if they cannot choose it.
    summary: Option<&'static str>,
    /// The forms that its blocks may have.
    forms: &'static [Form],
    /// The forms that blocks of planes may have besides.
    plane_forms: &'static [Form],
    /// The bands that its blocks are; `None` for blocks of [`BLOCK_POSITIONS`].
    bands: Option<BandSize>,
    /// Whether it takes the library of the feature `zstd`.
    needs_zstd: bool,
}

/// Size of a band of whole rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BandSize {
    /// Positions in a band, so that its model is a hundredth of it.
    pub(crate) positions: u64,
    /// Rows of a band of long rows.
    pub(crate) rows: u64,
}

/// An unknown name of a codec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the codec {}, found {found:?}", Codec::names())]
pub struct CodecError {
    /// The text.
    pub found: String,
}

impl Codec {
    /// The codecs that users choose from. All can be decoded without other data.
    pub const ALL: [Codec; 4] = [Codec::Raw, Codec::Packed, Codec::Zstd, Codec::Rans];

    const fn facts(self) -> CodecFacts {
        const PLAIN: CodecFacts = CodecFacts {
            name: "raw",
            summary: Some("a byte a position"),
            forms: &[Form::Raw],
            plane_forms: &[],
            bands: None,
            needs_zstd: false,
        };
        match self {
            Codec::Raw => PLAIN,
            Codec::Packed => CodecFacts {
                name: "packed",
                summary: Some("as few bits as the scores need"),
                forms: &[Form::Packed],
                ..PLAIN
            },
            Codec::Zstd => CodecFacts {
                name: "zstd",
                summary: Some("Zstandard"),
                forms: &[Form::Packed, Form::Zstd, Form::Frames],
                plane_forms: &[Form::Sparse],
                needs_zstd: true,
                ..PLAIN
            },
            Codec::Rans => CodecFacts {
                name: "rans",
                summary: Some("the smallest, by a coder made for scores"),
                forms: &[Form::Packed, Form::Strips],
                // Strips are 16 rows high, and their first rows have no neighbours above.
                bands: Some(BandSize { positions: 1 << 20, rows: 16 }),
                ..PLAIN
            },
            Codec::Floors => CodecFacts {
                name: "rans with floors",
                summary: None,
                forms: &[Form::Packed, Form::Floors],
                // Models and strips are larger.
                bands: Some(BandSize { positions: 1 << 22, rows: 40 }),
                ..PLAIN
            },
            Codec::SparseZstd => CodecFacts {
                name: "zstd of sparse",
                summary: None,
                forms: &[Form::Packed, Form::Sparse, Form::SparseFrame],
                needs_zstd: true,
                ..PLAIN
            },
        }
    }

    /// The names of [`ALL`](Self::ALL), for people: `raw, packed, zstd or rans`.
    fn names() -> String {
        let [others @ .., last] = Codec::ALL.map(Codec::name);
        format!("{} or {last}", others.join(", "))
    }

    /// How the codec stores a score, for those that users choose from.
    pub const fn summary(self) -> Option<&'static str> {
        self.facts().summary
    }

    /// The name: for [`ALL`](Self::ALL) that of manifests and options.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// Whether blocks must be decoded, rather than read in place.
    pub const fn is_compressed(self) -> bool {
        !matches!(self, Codec::Raw | Codec::Packed)
    }

    /// Whether blocks consist of whole rows, and parts of them can be decoded.
    pub const fn has_bands(self) -> bool {
        self.facts().bands.is_some()
    }

    /// The most bits of a stored value, if a packed one has `packed_bits`: blocks that a codec does not
    /// shrink are packed.
    pub const fn bits_max(self, packed_bits: u32) -> u32 {
        if matches!(self, Codec::Raw) { 8 } else { packed_bits }
    }

    pub(crate) const fn bands(self) -> Option<BandSize> {
        self.facts().bands
    }

    /// Whether a file of this codec may contain blocks of a form.
    pub(crate) fn has_form(self, form: Form) -> bool {
        let CodecFacts { forms, plane_forms, .. } = self.facts();
        forms.contains(&form) || plane_forms.contains(&form)
    }

    /// The version of the format of new files, of planes or of scores: the first one with all forms of their blocks.
    pub(crate) fn version(self, is_plane: bool) -> u32 {
        let CodecFacts { forms, plane_forms, .. } = self.facts();
        let plane_forms = if is_plane { plane_forms } else { &[] };
        forms.iter().chain(plane_forms).map(|form| form.version()).max().expect("a codec has forms")
    }

    /// Whether this program was built with what the codec needs.
    pub(crate) const fn is_built(self) -> bool {
        cfg!(feature = "zstd") || !self.facts().needs_zstd
    }
}

const _: () = assert!(Codec::ALL.len() == choices(Codec::EVERY), "each codec with a summary is in `Codec::ALL`");

const fn choices(codecs: &[Codec]) -> usize {
    match codecs {
        [] => 0,
        [codec, others @ ..] => codec.summary().is_some() as usize + choices(others),
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Codec {
    type Err = CodecError;

    fn from_str(text: &str) -> Result<Self, CodecError> {
        let found = Codec::ALL.into_iter().find(|codec| codec.name() == text);
        found.ok_or_else(|| CodecError { found: text.to_owned() })
    }
}

impl Form {
    /// The first version of the format with this form.
    pub(crate) const fn version(self) -> u32 {
        match self {
            Form::Raw | Form::Packed | Form::Zstd => 1,
            Form::Frames | Form::Strips | Form::Floors => 2,
            Form::Sparse => 3,
            Form::SparseFrame => 4,
        }
    }

    /// The first version of the format with all these forms, or `version` if that is later.
    pub(crate) const fn latest_version(forms: &[Form], version: u32) -> u32 {
        match forms {
            [] => version,
            [form, others @ ..] if form.version() > version => Form::latest_version(others, form.version()),
            [_, others @ ..] => Form::latest_version(others, version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scores::tests::Example;
    use disk::Digest;

    #[test]
    fn names_round_trip() {
        for codec in Codec::ALL {
            assert_eq!(codec.to_string().parse(), Ok(codec));
            assert_eq!(Codec::of_tag(codec.tag()), Some(codec));
            assert!(codec.summary().is_some());
        }
        let error = "gzip".parse::<Codec>().unwrap_err().to_string();
        assert_eq!(error, "expected the codec raw, packed, zstd or rans, found \"gzip\"");
    }

    /// Pins the format: these change only with a new version of it. (Those of zstd change also with a zstd
    /// that compresses differently, which makes files of old and new runs differ, and must be a decision.)
    #[test]
    fn golden_files() {
        let check = |example: Example, codec, expected| {
            assert_eq!(format!("{:.16}", Digest::of(&example.file(codec))), expected, "{codec}");
        };
        for codec in Codec::ALL {
            let expected = match codec {
                Codec::Raw => "32afee2208e638fe",
                Codec::Packed => "627942f2337c0188",
                Codec::Zstd => "e3c1f1b18c224abc",
                Codec::Rans => "3217a3555f36f7d5",
                Codec::Floors | Codec::SparseZstd => unreachable!("users cannot choose it"),
            };
            check(Example::small(), codec, expected);
        }
        check(Example::large(), Codec::Zstd, "9aabe2bc0f720cf7");
        check(Example::strips(), Codec::Rans, "32f73dcd9d526fc9");
    }

    #[test]
    fn each_codec_and_version_has_its_forms() {
        let forms = || (1..=8).map(|tag| Form::of_tag(tag).unwrap());
        let tags = |codec: Codec| forms().filter(|&form| codec.has_form(form)).map(Form::tag).collect::<Vec<_>>();
        assert_eq!(tags(Codec::Raw), [1]);
        assert_eq!(tags(Codec::Packed), [2]);
        assert_eq!(tags(Codec::Zstd), [2, 3, 4, 7]);
        assert_eq!(tags(Codec::Rans), [2, 5]);
        assert_eq!(tags(Codec::Floors), [2, 6]);
        assert_eq!(tags(Codec::SparseZstd), [2, 7, 8]);
        assert_eq!(forms().map(Form::version).collect::<Vec<_>>(), [1, 1, 1, 2, 2, 2, 3, 4]);
        let codecs = (1..=6).map(|tag| Codec::of_tag(tag).unwrap());
        let versions: Vec<_> = codecs.map(|codec| [codec.version(false), codec.version(true)]).collect();
        assert_eq!(versions, [[1, 1], [1, 1], [2, 3], [2, 2], [2, 2], [4, 4]]);
        assert!((1..=6).filter_map(Codec::of_tag).all(|codec| {
            codec.is_compressed()
                == forms().any(|form| codec.has_form(form) && !matches!(form, Form::Raw | Form::Packed))
        }));
    }
}
