//! All scores of a raw file, in its map.

use super::Scores;
use crate::codec::Codec;
use crate::error::{DecodeError, Result};
use crate::threads;
use disk::{Mapping, signed_of};
use std::fmt;
use std::ops::Deref;

/// All scores of a file of the codec raw, in canonical order, where they lie in the map of the file. Cheap to clone;
/// clones share the map.
///
/// The scores were verified when this value was made. A file of a run directory is replaced and never written in place,
/// and the map then keeps the replaced file. If another program writes to the file nevertheless, the scores change;
/// scores that it cuts off become zeros.
#[derive(Clone)]
pub struct MappedScores {
    mapping: Mapping,
    first: usize,
    end: usize,
}

impl Scores {
    /// Verifies all blocks that were not verified before, on all threads, and returns the scores in the map
    /// of the file. Returns `None` for codecs other than raw, and without a map.
    ///
    /// # Errors
    /// [`StoreError::Damaged`](crate::StoreError::Damaged) with a block that is.
    pub fn mapped(&self) -> Result<Option<MappedScores>> {
        if self.codec() != Codec::Raw {
            return Ok(None);
        }
        self.settled(|| threads::try_for_each(0..self.block_count(), |block| self.verify_raw(block)))?;
        let first = self.entry(0).offset as usize;
        let end = first + self.shape().positions() as usize;
        Ok(self.source.mapping().map(|mapping| MappedScores { mapping: mapping.clone(), first, end }))
    }

    fn verify_raw(&self, block: usize) -> Result<()> {
        let (stored, _) = self.stored(block)?;
        let range = self.header.range;
        match signed_of(&stored).iter().find(|&&score| !range.contains(score)) {
            None => Ok(()),
            Some(score) => Err(self.damaged(block, DecodeError::new(format!("values in {range}"), score))),
        }
    }
}

impl Deref for MappedScores {
    type Target = [i8];

    fn deref(&self) -> &[i8] {
        signed_of(&self.mapping[self.first..self.end])
    }
}

impl fmt::Debug for MappedScores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MappedScores({})", self.len())
    }
}
