//! The integrity of a file: the checksum of every block, then the digest of all scores.
//!
//! Header and block index are checked when a file is opened. This check reads all blocks in parallel, and
//! finds all damage.

use crate::error::{CheckError, Result};
use store::{Scores, StoreError};

/// The largest number of damaged blocks that an error describes.
const BLOCKS_DESCRIBED_MAX: usize = 8;

/// Checks all checksums of a file and its digest.
pub fn check_integrity(scores: &Scores) -> Result<()> {
    let damaged = scores.damaged_blocks();
    if damaged.is_empty() {
        return Ok(scores.verify_digest()?);
    }
    let described = damaged.iter().take(BLOCKS_DESCRIBED_MAX);
    let first: Vec<StoreError> = described.map(|&block| scores.block_damage(block)).collect();
    Err(CheckError::Damaged { path: scores.path().to_owned(), blocks: damaged, first })
}
