//! Whether a file holds what was written: every checksum of every block, then the digest of all scores.
//!
//! Header and block index were compared when the file was opened. This reads everything, in parallel, and goes on after
//! the first damage, so that all of it is known.

use crate::CheckError;
use store::{Scores, StoreError};

/// The most damaged blocks that an error describes.
const BLOCKS_DESCRIBED_MAX: usize = 8;

/// Compares all checksums of a file and its digest.
pub fn check_integrity(scores: &Scores) -> Result<(), CheckError> {
    let damaged = scores.damaged_blocks();
    if damaged.is_empty() {
        return Ok(scores.verify_digest()?);
    }
    let described = damaged.iter().take(BLOCKS_DESCRIBED_MAX);
    let first: Vec<StoreError> = described.map(|&block| scores.block_damage(block)).collect();
    Err(CheckError::Damaged { path: scores.path().to_owned(), blocks: damaged, first })
}
