//! Writing a file: header, blocks, index and footer, published atomically.

use crate::blocks::{BlockSink, BlockWriter, FileContent, FinishedBlocks};
use crate::codec::Codec;
use crate::error::Result;
use crate::format::{FOOTER_BYTES, Footer, Header, INDEX_ENTRY_BYTES};
use crate::identity::Identity;
use crate::layout::BlockLayout;
use crate::shape::Shape;
use crate::value_range::ValueRange;
use disk::{Digest, Disk, DiskError, Staged};
use std::ops::Range;
use std::path::Path;

/// A written file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The length of the file.
    pub bytes: u64,
    /// The content digest.
    pub digest: Digest,
}

/// A file being written. Scores are appended in canonical order and in portions of any length, on which the bytes do
/// not depend.
///
/// Holds at most three batches (scores that are not yet a batch, a batch being encoded, and one being
/// written) of 512 KiB for each thread, or of 1 MiB while a long portion is appended; for the codec rans
/// three blocks (of at most 8 MiB) and twice a block while it is encoded. Dropped before
/// [`finish`](Self::finish) it leaves nothing.
pub struct Writer<'d> {
    blocks: BlockWriter<Staged<'d>>,
    header: Vec<u8>,
    bytes_max: u64,
}

impl BlockSink for Staged<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        Staged::write(self, bytes)
    }

    fn offset(&self) -> u64 {
        self.bytes()
    }
}

impl<'d> Writer<'d> {
    /// Begins a file, which [`finish`](Self::finish) publishes under `path`. Until then `path` keeps its content.
    ///
    /// # Errors
    /// [`StoreError::Disk`](crate::StoreError::Disk) if there is no space or the disk fails;
    /// [`StoreError::Unsupported`](crate::StoreError::Unsupported) if the names in `identity` do not fit.
    pub fn create(
        disk: &'d dyn Disk,
        path: &Path,
        identity: &Identity,
        shape: &Shape,
        range: ValueRange,
        codec: Codec,
    ) -> Result<Self> {
        let layout = BlockLayout::new(shape, codec);
        let header = Header::new(identity.clone(), shape.clone(), range, codec);
        let hash = header.hash();
        let header = header.encode()?;
        let index_bytes = layout.block_count() * INDEX_ENTRY_BYTES;
        let bytes_max = (header.len() + index_bytes + FOOTER_BYTES) as u64 + layout.data_bytes_max(codec, range);
        // How much compressed blocks take is known only when they are written: a plane may take a hundredth
        // of the bound.
        let reserved_bytes = if codec.is_compressed() { 0 } else { bytes_max };
        let mut staged = Staged::create(disk, path, reserved_bytes)?;
        staged.write(&header)?;
        let all = 0..layout.block_count();
        let content = FileContent { path: path.to_path_buf(), kind: identity.kind, hash, layout, range, codec };
        Ok(Writer { blocks: BlockWriter::new(staged, content, all), header, bytes_max })
    }

    /// Appends the scores of the next positions. Encodes on all threads of the current rayon pool, a batch at a time.
    ///
    /// # Errors
    /// [`StoreError::Disk`](crate::StoreError::Disk) if the disk fails;
    /// [`StoreError::OutOfRange`](crate::StoreError::OutOfRange) if a score is not in the range. Either may be reported
    /// by a later call. The file can then only be dropped.
    ///
    /// # Panics
    /// If there are more scores than positions left.
    pub fn append(&mut self, scores: &[i8]) -> Result<()> {
        self.blocks.append(scores)
    }

    /// Appends zeros. In files of planes this takes almost no time.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    ///
    /// # Panics
    /// If there are more than positions left.
    pub fn append_zeros(&mut self, zeros: u64) -> Result<()> {
        self.blocks.append_zeros(zeros)
    }

    /// The positions of the next band, in a file of the codec [`Floors`](Codec::Floors); `None` after the last.
    pub fn next_band(&self) -> Option<Range<u64>> {
        self.blocks.next_band()
    }

    /// Appends the scores of the next band to a file of the codec [`Floors`](Codec::Floors), each with a floor: a lower
    /// bound of the score, or a value below the range for no floor. Floors that equal many scores compress best. The
    /// reader must provide the same floors. Encodes on all threads of the current rayon pool.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    ///
    /// # Panics
    /// If the file is of another codec, or there are not as many scores and floors as positions in the band.
    pub fn append_band(&mut self, scores: &[i8], floors: &[i8]) -> Result<()> {
        self.blocks.append_band(scores, floors)
    }

    /// Completes the file and publishes it.
    ///
    /// # Errors
    /// As [`append`](Self::append); the path then has its old content, or the complete new file.
    ///
    /// # Panics
    /// If not every position was appended, or after an error.
    pub fn finish(self) -> Result<Written> {
        let FinishedBlocks { sink: mut staged, index, hasher } = self.blocks.finish()?;
        let digest = hasher.finalize();
        let footer = Footer::of(digest, staged.bytes(), &index);
        staged.write(&index)?;
        staged.write(&footer.encode(&self.header))?;
        assert!(staged.bytes() <= self.bytes_max, "no more was written than the bound");
        let bytes = staged.publish()?;
        Ok(Written { bytes, digest })
    }
}

/// Writes scores in canonical order to a file and publishes it atomically: `path` has its old content, or the complete
/// new file. The bytes depend only on the arguments.
///
/// # Errors
/// [`StoreError::Disk`](crate::StoreError::Disk) if there is no space or the disk fails;
/// [`StoreError::OutOfRange`](crate::StoreError::OutOfRange) if a score is not in `range`;
/// [`StoreError::Unsupported`](crate::StoreError::Unsupported) if the names in `identity` do not fit.
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
) -> Result<Written> {
    assert_eq!(scores.len() as u64, shape.positions(), "as many scores as positions");
    let mut writer = Writer::create(disk, path, identity, shape, range, codec)?;
    writer.append(scores)?;
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreError;
    use crate::identity::{FileKind, Role};
    use crate::scores::tests::{Example, Way};
    use disk::{DiskError, MemoryDisk};

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
    fn zeros_make_the_same_file_in_any_call() {
        let kinds = [FileKind::Database, FileKind::Plane { role: Role::Won, bound: 7 }];
        // Runs, every other of zeros; they end within blocks and slabs, and with them.
        let runs = [70_000, 130_003, 0, 9, 10_000, 132_527, 6];
        let is_plane = |kind| matches!(kind, FileKind::Plane { .. });
        let of_all = kinds.into_iter().flat_map(|kind| Codec::ALL.map(|codec| (kind, codec)));
        let of_planes = kinds.into_iter().filter(|&kind| is_plane(kind)).map(|kind| (kind, Codec::SparseZstd));
        for (kind, codec) in of_all.chain(of_planes) {
            let mut example = Example::large();
            example.identity.kind = kind;
            let mut next = 0;
            let mut runs_of = |run: usize| {
                next += run;
                (next - run, next)
            };
            let runs: Vec<_> = runs.iter().map(|&run| runs_of(run)).collect();
            assert_eq!(next, example.scores.len());
            for &(first, end) in runs.iter().skip(1).step_by(2) {
                example.scores[first..end].fill(0);
            }
            for threads in [1, 2] {
                let disk = MemoryDisk::new();
                let path = Example::path();
                let (identity, shape) = (&example.identity, &example.shape);
                let mut writer = Writer::create(&disk, &path, identity, shape, example.range, codec).unwrap();
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let written = pool.install(|| {
                    for (number, &(first, end)) in runs.iter().enumerate() {
                        match number % 2 {
                            0 => writer.append(&example.scores[first..end]).unwrap(),
                            _ => writer.append_zeros((end - first) as u64).unwrap(),
                        }
                    }
                    writer.finish().unwrap()
                });
                assert_eq!(written.digest, example.digest());
                let file = disk.peek(&path).unwrap();
                assert_eq!(file, example.file(codec), "{kind}, {codec:?}");
                let scores = example.open(Way::Windowed, &file).unwrap();
                let is_zeros = |block: usize| {
                    let range = scores.block_range(block);
                    example.scores[range.start as usize..range.end as usize].iter().all(|&score| score == 0)
                };
                for block in 0..scores.block_count() {
                    let is_told = is_plane(kind) && matches!(codec, Codec::Zstd | Codec::SparseZstd);
                    assert_eq!(scores.is_zeros(block), is_told && is_zeros(block), "{kind}, {codec:?}, {block}");
                }
                assert!((0..scores.block_count()).any(is_zeros));
            }
        }
    }

    #[test]
    fn a_disk_too_small_leaves_nothing() {
        let example = Example::large();
        for codec in Codec::ALL {
            let disk = MemoryDisk::new();
            disk.set_bytes_max(20_000);
            let error = example.write(&disk, codec).unwrap_err();
            let StoreError::Disk(DiskError::NoSpace { needed, free, .. }) = error else {
                panic!("{error}");
            };
            // What compressed blocks take is known only when they are written.
            if !codec.is_compressed() {
                assert!(needed.unwrap() > 200_000);
                assert_eq!(free, Some(20_000));
            }
            assert!(disk.paths().is_empty());
        }
    }
}
