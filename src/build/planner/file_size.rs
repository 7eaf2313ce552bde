//! Sizes of files of scores before they are written.

use crate::codec::CodecRates;
use crate::ramp::Saturation;
use crate::settings::{Intermediates, Settings};
use store::Codec;

/// Bits a position of compressed captures.
const CAPTURE_BITS: Saturation = Saturation::new(2.4, 18, 3.2, 12.0);

/// Bits a position of the seeds of all bounds: 4.24 at 15 stones, 4.81 at 20, 5.02 at 22, 5.20 at 24, 5.6 at 28.
const SEEDS_BITS: Saturation = Saturation::new(4.4, 15, 7.2, 20.0);

/// Bits a position of the planes of all bounds that remain until the merge (`won`, `plane`): 6.24 at 15
/// stones, 6.53 at 20, 6.69 at 22, 6.90 at 24.
const PLANES_BITS: Saturation = Saturation::new(6.4, 15, 8.6, 26.0);

/// Bits a position of the planes of one bound that are removed with it (`seed`, `lost`), and of a snapshot of
/// its state.
const BOUND_BITS: f64 = 1.2;
const BOUND_SNAPSHOT_BITS: f64 = 2.0;

/// Length of small planes compared with fast ones, at 24 stones: seeds, and planes of bounds.
const SMALL_SEEDS: f64 = 0.56;
const SMALL_PLANES: f64 = 0.71;

/// Header, index and padding of a file, at most.
const OVERHEAD_BYTES: u64 = 4096;

/// The same of a plane.
const PLANE_OVERHEAD_BYTES: u64 = 8 << 10;

/// Returns the expected size in bytes of the database of `stones`, from the compression of databases that
/// were measured.
pub fn database_bytes(settings: &Settings, stones: u32) -> u64 {
    bytes_of_bits(settings, stones, expected_bits(settings.codec, stones)) + OVERHEAD_BYTES
}

/// Returns the expected bits of a stored capture.
pub(crate) fn captures_bits(settings: &Settings, stones: u32) -> f64 {
    let packed = f64::from(packed_bits(stones));
    if settings.intermediates == Intermediates::Small { CAPTURE_BITS.at(stones).min(packed) } else { packed }
}

/// Returns the expected size in bytes of the captures of `stones`.
pub(crate) fn captures_bytes(settings: &Settings, stones: u32) -> u64 {
    bytes_of_bits(settings, stones, captures_bits(settings, stones)) + OVERHEAD_BYTES
}

/// Returns the expected size in bytes of the seeds of `stones`.
pub(crate) fn seeds_bytes(settings: &Settings, stones: u32) -> u64 {
    bytes_of_bits(settings, stones, SEEDS_BITS.at(stones) * of_small(settings, SMALL_SEEDS))
        + 2 * PLANE_OVERHEAD_BYTES * u64::from(stones)
}

/// Returns the expected size in bytes of the planes of all bounds of `stones` that remain until the merge.
pub(crate) fn planes_bytes(settings: &Settings, stones: u32) -> u64 {
    bytes_of_bits(settings, stones, PLANES_BITS.at(stones) * of_small(settings, SMALL_PLANES))
        + 2 * PLANE_OVERHEAD_BYTES * u64::from(stones)
}

/// Returns the expected size in bytes of the other files of planes while a bound of `stones` is solved,
/// snapshots and scratch files left out.
pub(crate) fn bound_bytes(settings: &Settings, stones: u32) -> u64 {
    bytes_of_bits(settings, stones, BOUND_BITS * of_small(settings, SMALL_PLANES)) + 6 * PLANE_OVERHEAD_BYTES
}

/// Returns the expected size in bytes of snapshots of the state of a bound of `stones`.
pub(crate) fn bound_snapshot_bytes(settings: &Settings, stones: u32) -> u64 {
    bytes_of_bits(settings, stones, BOUND_SNAPSHOT_BITS)
}

/// Returns the length of planes compared with fast ones, given that of small ones.
fn of_small(settings: &Settings, small: f64) -> f64 {
    match settings.intermediates {
        Intermediates::Fast => 1.0,
        Intermediates::Small => small,
    }
}

fn bytes_of_bits(settings: &Settings, stones: u32, bits: f64) -> u64 {
    (settings.set.positions(stones) as f64 * settings.values() as f64 * bits / 8.0) as u64
}

/// Returns an upper bound on the bytes of a file with a score for each position of `stones`.
pub(crate) fn file_bytes_max(settings: &Settings, codec: Codec, stones: u32) -> u64 {
    let bits = u64::from(codec.bits_max(packed_bits(stones)));
    settings.set.positions(stones) * settings.values() * bits / 8 + OVERHEAD_BYTES
}

/// Returns the bits of a packed score or capture.
pub(crate) fn packed_bits(stones: u32) -> u32 {
    (2 * stones + 2).next_power_of_two().ilog2().max(1)
}

/// Returns the expected bits of a stored score.
pub(crate) fn expected_bits(codec: Codec, stones: u32) -> f64 {
    let most = f64::from(codec.bits_max(packed_bits(stones)));
    CodecRates::of(codec).bits.map_or(most, |bits| bits.at(stones).min(most))
}
