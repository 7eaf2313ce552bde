//! Checksums of the parts of a file, see the module `format`: the first 8 bytes of keyed BLAKE3, or XXH3.
//!
//! Key or seed contain a number that identifies the part, so that a block in the place of another is detected.

use crate::error::DecodeError;
use crate::hasher::HashFunction;
use crate::little_endian::u64_at;
use twox_hash::XxHash3_64;

/// Numbers of the parts that are not blocks.
const HEADER_NUMBER: u64 = u64::MAX;
const INDEX_NUMBER: u64 = u64::MAX - 1;
const FOOTER_NUMBER: u64 = u64::MAX - 2;

/// The lower bits of the number of a strip are its block: a file has fewer than 2^40 blocks.
const STRIP_SHIFT: u32 = 40;

/// The checksum of the header.
pub(crate) fn of_header(bytes: &[u8]) -> u64 {
    checksum(HEADER_NUMBER, bytes)
}

/// The checksum of the stored bytes of a block, or of its head.
pub(crate) fn of_block(hash: HashFunction, block: usize, bytes: &[u8]) -> u64 {
    match hash {
        HashFunction::Blake3 => checksum(block as u64, bytes),
        HashFunction::Xxh3 => XxHash3_64::oneshot_with_seed(block as u64, bytes),
    }
}

/// The checksum of a strip of a block.
pub(crate) fn of_strip(block: usize, strip: usize, bytes: &[u8]) -> u64 {
    checksum((strip as u64 + 1) << STRIP_SHIFT | block as u64, bytes)
}

/// The checksum of the index.
pub(crate) fn of_index(bytes: &[u8]) -> u64 {
    checksum(INDEX_NUMBER, bytes)
}

/// The checksum of the footer.
pub(crate) fn of_footer(bytes: &[u8]) -> u64 {
    checksum(FOOTER_NUMBER, bytes)
}

fn checksum(number: u64, bytes: &[u8]) -> u64 {
    let mut key = *b"awari-store-checksum-v1\0........";
    key[24..].copy_from_slice(&number.to_le_bytes());
    u64_at(blake3::keyed_hash(&key, bytes).as_bytes(), 0)
}

/// Compares a checksum with the stored one.
pub(crate) fn compare(computed: u64, stored: u64) -> Result<(), DecodeError> {
    if computed == stored {
        return Ok(());
    }
    Err(DecodeError::new(format!("checksum {stored:016x}"), format!("{computed:016x}")))
}
