//! Writing a file: encode blocks in parallel, write them in order, publish.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use disk::{Digest, Disk, Staged, bytes_of};
use rayon::prelude::*;

use crate::codec::{self, Codec, ValueRange};
use crate::error::StoreError;
use crate::format::{self, FOOTER_BYTES, Footer, Header, INDEX_ENTRY_BYTES, IndexEntry, block_checksum};
use crate::identity::Identity;
use crate::layout::{BLOCK_POSITIONS, Layout};
use crate::shape::Shape;

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Length of the file.
    pub bytes: u64,
    /// BLAKE3 of the scores, one byte each, in canonical order.
    pub digest: Digest,
}

/// Blocks encoded at a time. While one batch is written the next is encoded, so this bounds the
/// workspace to 2 x 16 MiB; it is enough to feed some hundred cores.
const BATCH_BLOCKS: usize = 256;

/// Writes scores in canonical order to a file and publishes it atomically: under `path` there is
/// what was there before, or the complete new file. Its bytes depend only on the arguments.
///
/// # Errors
/// [`StoreError::Disk`] if there is no space or the disk fails; [`StoreError::OutOfRange`] if a score
/// is not in `range`; [`StoreError::Unsupported`] if the names in `identity` do not fit.
///
/// # Panics
/// If there are not as many scores as `shape` has positions.
pub fn write(
    disk: &dyn Disk,
    path: &Path,
    identity: &Identity,
    shape: &Shape,
    range: ValueRange,
    codec: Codec,
    scores: &[i8],
) -> Result<Written, StoreError> {
    assert_eq!(scores.len() as u64, shape.positions(), "as many scores as positions");
    let layout = Layout::new(shape);
    let header = Header { identity: identity.clone(), shape: shape.clone(), range, codec }.encode()?;
    let index_bytes = layout.block_count() * INDEX_ENTRY_BYTES;
    let bytes_max = (header.len() + index_bytes + FOOTER_BYTES) as u64 + layout.data_bytes_max(codec, range);

    let mut staged = Staged::create(disk, path, bytes_max)?;
    staged.write(&header)?;
    let mut hasher = blake3::Hasher::new();
    let mut index = Vec::with_capacity(index_bytes);
    let mut ready = Vec::new();
    for first in (0..layout.block_count()).step_by(BATCH_BLOCKS) {
        let blocks = first..layout.block_count().min(first + BATCH_BLOCKS);
        let batch = Batch { path, layout: &layout, range, codec, scores: bytes_of(scores), blocks };
        let (appended, encoded) = rayon::join(|| append(&mut staged, &mut index, &ready), || batch.encode(&mut hasher));
        appended?;
        ready = encoded?;
    }
    append(&mut staged, &mut index, &ready)?;

    let digest = Digest(*hasher.finalize().as_bytes());
    let footer = Footer {
        digest,
        index_offset: staged.bytes(),
        index_bytes: index.len() as u64,
        index_checksum: format::index_checksum(&index),
    };
    staged.write(&index)?;
    staged.write(&footer.encode(&header))?;
    assert!(staged.bytes() <= bytes_max, "no more was written than reserved");
    let bytes = staged.publish()?;
    Ok(Written { bytes, digest })
}

/// A block ready to be written.
struct Encoded<'a> {
    bytes: Cow<'a, [u8]>,
    codec: Codec,
    checksum: u64,
}

/// Some blocks to be encoded, of a file to be written.
struct Batch<'a> {
    path: &'a Path,
    layout: &'a Layout,
    range: ValueRange,
    codec: Codec,
    /// All values of the file.
    scores: &'a [u8],
    blocks: Range<usize>,
}

impl<'a> Batch<'a> {
    fn encode(self, hasher: &mut blake3::Hasher) -> Result<Vec<Encoded<'a>>, StoreError> {
        let first = self.layout.positions_of(self.blocks.start).start;
        let end = self.layout.positions_of(self.blocks.end - 1).end;
        hasher.update_rayon(&self.scores[first as usize..end as usize]);
        let encoded: Vec<_> = self.blocks.clone().into_par_iter().map(|block| self.encode_block(block)).collect();
        encoded.into_iter().collect()
    }

    fn encode_block(&self, block: usize) -> Result<Encoded<'a>, StoreError> {
        let positions = self.layout.positions_of(block);
        let values = &self.scores[positions.start as usize..positions.end as usize];
        debug_assert!(values.len() <= BLOCK_POSITIONS);
        if let Some(index) = self.range.find_outside(values) {
            return Err(StoreError::OutOfRange {
                path: self.path.to_path_buf(),
                position: positions.start + index as u64,
                value: values[index] as i8,
                range: self.range,
            });
        }
        let compressed = match self.codec {
            Codec::Zstd => codec::encode_zstd(values, self.range),
            Codec::Raw | Codec::Packed => None,
        };
        let (bytes, codec) = match (self.codec, compressed) {
            (Codec::Raw, _) => (Cow::Borrowed(values), Codec::Raw),
            (_, Some(compressed)) => (Cow::Owned(compressed), Codec::Zstd),
            (_, None) => {
                let packed = codec::encode_packed(values, self.range);
                (Cow::Owned(packed), Codec::Packed)
            }
        };
        Ok(Encoded { checksum: block_checksum(block, &bytes), bytes, codec })
    }
}

fn append(staged: &mut Staged<'_>, index: &mut Vec<u8>, blocks: &[Encoded<'_>]) -> Result<(), StoreError> {
    for block in blocks {
        let entry = IndexEntry {
            offset: staged.bytes(),
            bytes: block.bytes.len() as u32, // at most BLOCK_POSITIONS
            codec: block.codec,
            checksum: block.checksum,
        };
        index.extend(entry.encode());
        staged.write(&block.bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use disk::{DiskError, MemoryDisk};

    use super::*;
    use crate::example::Example;

    #[test]
    fn failure_at_every_operation_leaves_the_old_file_or_the_new() {
        let example = Example::large();
        let path = Example::path();
        let new = example.file(Codec::Packed);
        for old in [None, Some(Example::small().file(Codec::Raw))] {
            for crash in [false, true] {
                for k in 0.. {
                    let disk = MemoryDisk::new();
                    if let Some(old) = &old {
                        disk.put(&path, old);
                    }
                    if crash {
                        disk.fail_from(k, disk::Fault::Io);
                    } else {
                        disk.fail_at(k, disk::Fault::NoSpace);
                    }
                    let written = example.write(&disk, Codec::Packed);
                    if crash {
                        disk.crash();
                    } else if let Err(error) = &written {
                        assert!(matches!(error, StoreError::Disk(e) if e.is_no_space()));
                        let names: Vec<_> = disk.paths().iter().map(|path| disk::is_leftover(path)).collect();
                        assert!(!names.contains(&true), "operation {k}");
                    }
                    let found = disk.peek(&path);
                    let whole = found.as_ref() == Some(&new);
                    assert!(whole || (written.is_err() && found == old), "operation {k}");
                    if written.is_ok() {
                        assert!(k > 5, "{k} operations are too few to be all");
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn a_disk_too_small_is_noticed_before_writing() {
        let example = Example::large();
        for codec in Codec::ALL {
            let disk = MemoryDisk::new();
            disk.set_bytes_max(100_000);
            let error = example.write(&disk, codec).unwrap_err();
            let StoreError::Disk(DiskError::NoSpace { needed, free, .. }) = error else {
                panic!("{error}");
            };
            assert!(needed.unwrap() > 200_000);
            assert_eq!(free, Some(100_000));
            assert!(disk.paths().is_empty());
        }
    }
}
