//! What the codecs of databases take.

use crate::ramp::Saturation;
use store::Codec;

/// Size and cost of a codec, for each position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodecRates {
    /// Bits of a stored score; `None` for as many as there can be at most.
    pub(crate) bits: Option<Saturation>,
    /// Nanoseconds to encode, above those of packing.
    pub(crate) encode: f64,
    /// The same to decode.
    pub(crate) decode: f64,
    /// The same to decode long runs, which no cache holds.
    pub(crate) decode_runs: f64,
    /// Times that captures read a block that fits the cache: the larger a block, the more ranges share it.
    pub(crate) capture_reads: f64,
}

impl CodecRates {
    /// Returns the rates of a codec.
    pub(crate) const fn of(codec: Codec) -> CodecRates {
        match codec {
            Codec::Raw | Codec::Packed => {
                CodecRates { bits: None, encode: 0.0, decode: 0.0, decode_runs: 0.0, capture_reads: 1.15 }
            }
            Codec::Zstd => CodecRates {
                // 3.42 at 15 stones, 3.65 at 20, 3.81 at 24, 3.9 at 27, 3.92 on average up to 34.
                bits: Some(Saturation::new(3.42, 15, 4.05, 9.0)),
                encode: 2.5,
                decode: 1.4,
                decode_runs: 0.8,
                capture_reads: 1.15,
            },
            Codec::Rans => CodecRates {
                bits: Some(Saturation::new(3.1, 18, 3.5, 9.0)),
                encode: 6.0,
                decode: 6.3,
                decode_runs: 6.3,
                capture_reads: 2.2,
            },
            // The codecs of archives and planes: scores that a build reads or writes do not have them.
            Codec::Floors => CodecRates {
                // 2.1 at 20 stones.
                bits: Some(Saturation::new(2.06, 20, 2.3, 9.0)),
                encode: 14.0,
                decode: 12.0,
                decode_runs: 12.0,
                capture_reads: 2.2,
            },
            Codec::SparseZstd => {
                CodecRates { bits: None, encode: 14.0, decode: 12.0, decode_runs: 12.0, capture_reads: 2.2 }
            }
        }
    }
}
