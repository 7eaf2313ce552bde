//! A per-thread, lock-free view of cached files that keeps the blocks read last.

use crate::cache::{CachedScores, PartKey};
use crate::codec::BLOCK_POSITIONS;
use crate::error::Result;
use crate::scores::{AccessPattern, BlockPart, ScoreLocation};
use std::sync::Arc;

/// The blocks that a thread read last and a row buffer, for [`CachedScores::row`].
///
/// A window keeps blocks alive that the cache has evicted: at most [`Window::BYTES_MAX`] and the longest row.
#[derive(Debug, Default)]
pub struct Window {
    slots: [Option<WindowSlot>; SLOTS],
    /// A row that spans several blocks.
    row: Vec<i8>,
}

/// Slots of a window. A block maps to one slot; the streams of a reader rarely collide in this many.
const SLOTS: usize = 32;

#[derive(Debug)]
struct WindowSlot {
    key: PartKey,
    scores: Arc<Vec<i8>>,
}

impl Window {
    /// The most bytes of blocks in a window.
    pub const BYTES_MAX: u64 = (SLOTS * BLOCK_POSITIONS) as u64;

    /// Creates an empty window.
    pub fn new() -> Self {
        Window::default()
    }

    fn hold(&mut self, scores: &CachedScores, location: &ScoreLocation) -> Result<usize> {
        let key = scores.key(location);
        // The top bits of a multiplicative hash (Knuth); files, blocks and strips are all numbered from 0.
        let part = if let BlockPart::Strip(strip) = key.part { u64::from(strip) } else { 0 };
        let hash = (key.file << 40 ^ (key.block as u64) << 8 ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let at = (hash >> (u64::BITS - SLOTS.ilog2())) as usize;
        if self.slots[at].as_ref().is_none_or(|slot| slot.key != key) {
            self.slots[at] = Some(WindowSlot { key, scores: scores.part(key)? });
        }
        Ok(at)
    }

    fn held(&self, at: usize) -> &[i8] {
        self.slots[at].as_ref().map_or(&[], |slot| &slot.scores)
    }
}

impl CachedScores {
    /// Returns a row of a slab of the section, whose first position in the slab is `row * columns`. The
    /// result borrows the window; a row in several blocks or strips is assembled there.
    ///
    /// # Errors
    /// [`StoreError::Damaged`](crate::StoreError::Damaged) if a block is; [`StoreError::Disk`](crate::StoreError::Disk)
    /// if it cannot be read.
    ///
    /// # Panics
    /// If the slab has no such row.
    pub fn row<'w>(&self, slab: usize, row: u32, columns: u32, window: &'w mut Window) -> Result<&'w [i8]> {
        let first_slab = if self.first() == 0 { 0 } else { self.scores().shape().slabs().len() / 2 };
        let positions = self.scores().slab_positions(first_slab + slab);
        let first = positions.start + u64::from(row) * u64::from(columns);
        let columns = columns as usize;
        assert!(first + columns as u64 <= positions.end, "slab {slab} has no row {row}");
        let mut location = self.scores().locate(first, AccessPattern::Range);
        if columns <= location.ahead {
            let at = window.hold(self, &location)?;
            return Ok(&window.held(at)[location.at..location.at + columns]);
        }
        let mut buffer = std::mem::take(&mut window.row);
        buffer.clear();
        loop {
            let at = window.hold(self, &location)?;
            buffer.extend_from_slice(&window.held(at)[location.at..][..location.ahead.min(columns - buffer.len())]);
            if buffer.len() == columns {
                break;
            }
            location = self.scores().locate(first + buffer.len() as u64, AccessPattern::Range);
        }
        window.row = buffer;
        Ok(&window.row)
    }
}
