//! Sizes of files of scores before they are written.

use crate::Ramp;
use crate::Settings;
use store::Codec;

/// Bits a position of compressed scores: zstd 3.4 at 15 stones, 3.7 at 20, 3.9 at 27; rans 3.1 at 18;
/// with floors 2.1 at 20.
const ZSTD_BITS: Ramp = Ramp::growing(3.41, 15, 0.043);
const RANS_BITS: Ramp = Ramp::growing(3.1, 18, 0.043);
const FLOORS_BITS: Ramp = Ramp::growing(2.06, 20, 0.03);

/// Header, index and padding of a file, at most.
const OVERHEAD_BYTES: u64 = 4096;

/// Returns the expected size in bytes of the database of `stones`, from the compression of databases that were measured.
pub fn database_bytes(settings: &Settings, stones: u32) -> u64 {
    (settings.set.positions(stones) as f64 * expected_bits(settings.codec, stones) / 8.0) as u64 + OVERHEAD_BYTES
}

/// Returns an upper bound on the bytes of a file with a score for each position of `stones`.
pub(crate) fn file_bytes_max(settings: &Settings, codec: Codec, stones: u32) -> u64 {
    let bits = match codec {
        Codec::Raw => 8,
        // Compressed blocks are stored packed where that is smaller.
        Codec::Packed | Codec::Zstd | Codec::Rans | Codec::Floors | Codec::SparseZstd => u64::from(packed_bits(stones)),
    };
    settings.set.positions(stones) * bits / 8 + OVERHEAD_BYTES
}

/// Returns the bits of a packed score or capture.
pub(crate) fn packed_bits(stones: u32) -> u32 {
    (2 * stones + 2).next_power_of_two().ilog2().max(1)
}

/// Returns the expected bits of a stored score.
pub(crate) fn expected_bits(codec: Codec, stones: u32) -> f64 {
    let packed = f64::from(packed_bits(stones));
    match codec {
        Codec::Raw => 8.0,
        Codec::Packed | Codec::SparseZstd => packed,
        Codec::Zstd => ZSTD_BITS.at(stones).min(packed),
        Codec::Rans => RANS_BITS.at(stones).min(packed),
        Codec::Floors => FLOORS_BITS.at(stones).min(packed),
    }
}
