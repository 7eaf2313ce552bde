//! Digests: the content identity of files.

use crate::map::bytes_of;
use std::fmt;
use std::str::FromStr;

/// A digest, of 32 bytes: BLAKE3, or another of an intermediate file. Prints as 64 lower-case hexadecimal
/// digits, and parses from them; with the feature `build` it serializes so.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

/// A text that is not 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a digest of 64 hexadecimal digits, found {found:?}")]
pub struct DigestError {
    /// The text.
    pub found: String,
}

impl Digest {
    /// Below this size threads cost more than they save (the figure of BLAKE3's documentation).
    #[cfg(feature = "build")]
    const PARALLEL_BYTES_MIN: usize = 128 << 10;

    /// The BLAKE3 digest of some bytes; with the feature `build` on all threads of the current rayon pool if
    /// there are many.
    pub fn of(bytes: &[u8]) -> Self {
        #[cfg(feature = "build")]
        if bytes.len() >= Self::PARALLEL_BYTES_MIN {
            return Digest(*blake3::Hasher::new().update_rayon(bytes).finalize().as_bytes());
        }
        Digest(*blake3::hash(bytes).as_bytes())
    }

    /// A checksum of some bytes, seeded with the digest: XXH3. Detects accidental changes, not deliberate ones, in a
    /// sixth of the time of BLAKE3.
    #[cfg(feature = "build")]
    pub fn checksum(&self, bytes: &[u8]) -> u64 {
        let seed = self.0.first_chunk().expect("a digest has more than eight bytes");
        twox_hash::XxHash3_64::oneshot_with_seed(u64::from_le_bytes(*seed), bytes)
    }

    /// The digest of scores, one byte each in two's complement.
    pub fn of_i8(scores: &[i8]) -> Self {
        Digest::of(bytes_of(scores))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        match blake3::Hash::from_hex(text) {
            Ok(hash) => Ok(Digest(*hash.as_bytes())),
            Err(_) => Err(DigestError { found: text.chars().take(80).collect() }),
        }
    }
}

#[cfg(feature = "build")]
mod serialization {
    use super::Digest;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    impl Serialize for Digest {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.collect_str(self)
        }
    }

    impl<'de> Deserialize<'de> for Digest {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Digest, D::Error> {
            String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_value() {
        // The BLAKE3 digest of no bytes, from its specification.
        assert_eq!(Digest::of(&[]).to_string(), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
    }

    #[test]
    fn text_round_trip_and_refusals() {
        let digest = Digest::of(b"awari");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(format!("{digest:.8}").len(), 8);
        assert!("xyz".parse::<Digest>().is_err());
        assert!("é".repeat(32).parse::<Digest>().is_err());
        assert!("".parse::<Digest>().is_err());
    }

    #[test]
    fn threads_change_nothing() {
        let bytes: Vec<u8> = (0..1_000_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
        assert_eq!(Digest::of(&bytes).0, *blake3::hash(&bytes).as_bytes());
        assert_eq!(Digest::of_i8(crate::signed_of(&bytes)), Digest::of(&bytes));
    }
}
