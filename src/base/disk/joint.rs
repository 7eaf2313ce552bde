//! A file written by several processes, one region each, and published by one of them.
//!
//! Like all artifacts it is written under a temporary name. Regions may meet at any offset, but each block of the disk
//! is written by one process only: two processes that read, change and write the same block would lose each other's
//! bytes. So a process writes the whole blocks of its region and returns the bytes at its ends as *edges*; the
//! publishing process writes these.

use crate::disk::{Disk, ScratchFile};
use crate::error::DiskError;
use crate::file_names::temporary_of_many;
use crate::real::direct::BLOCK_BYTES_MAX;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The largest block of a disk.
const BLOCK_BYTES: u64 = BLOCK_BYTES_MAX as u64;

/// Bytes of a region that are written at a time.
const PIECE_BYTES: usize = 4 << 20;

/// A file being written under a temporary name by several processes. Dropped unpublished, it is removed.
pub struct Joint<'d> {
    disk: &'d dyn Disk,
    /// `None` once published.
    file: Option<Box<dyn ScratchFile + 'd>>,
    temporary: PathBuf,
    path: PathBuf,
    bytes: u64,
}

impl<'d> Joint<'d> {
    /// Makes the temporary file for `path`, of `bytes` bytes.
    ///
    /// # Errors
    /// [`DiskError::NoSpace`] with what is needed and free, or what the operating system says.
    pub fn create(disk: &'d dyn Disk, path: &Path, bytes: u64) -> Result<Self, DiskError> {
        let temporary = temporary_of_many(path)?;
        let opened = disk.working(&temporary, bytes);
        let file = opened.inspect_err(|_| drop(disk.remove(&temporary)))?;
        Ok(Joint { disk, file: Some(file), temporary, path: path.to_path_buf(), bytes })
    }

    /// The path where processes open their [`Region`].
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Writes the edges of all regions, makes them durable, and publishes the file under its final name. The regions
    /// must be durable: see [`Region::finish`]. Returns the length in bytes.
    ///
    /// # Errors
    /// What the operating system says. The final name then shows either what it showed before or the complete new file.
    pub fn publish(mut self, edges: Vec<Edge>) -> Result<u64, DiskError> {
        let written = self.complete(edges);
        // Closed before it is renamed; nothing may write to a published file.
        self.file = None;
        // The file may be longer, up to a block boundary.
        let published = written
            .and_then(|()| self.disk.truncate(&self.temporary, self.bytes))
            .and_then(|()| self.disk.rename(&self.temporary, &self.path));
        if published.is_err() {
            let _ = self.disk.remove(&self.temporary);
        }
        published.map(|()| self.bytes)
    }

    fn complete(&self, mut edges: Vec<Edge>) -> Result<(), DiskError> {
        let file = self.file.as_deref().expect("the file is only taken by publish and drop");
        edges.sort_by_key(|edge| edge.offset);
        let mut run = Edge { offset: 0, bytes: Vec::new() };
        for edge in edges {
            // Adjacent edges form whole blocks.
            if edge.offset != run.end() {
                file.write_at(run.offset, &run.bytes)?;
                run = Edge { offset: edge.offset, bytes: Vec::new() };
            }
            run.bytes.extend(edge.bytes);
        }
        file.write_at(run.offset, &run.bytes)?;
        file.sync()
    }
}

impl Drop for Joint<'_> {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // A leftover file is harmless, and another error may already be propagating.
            let _ = self.disk.remove(&self.temporary);
        }
    }
}

/// Bytes of a file that the publishing process writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The offset of the first byte.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Edge {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// The ranges of a region that [`Region::finish`] returns as edges: before its first whole block, and after the last.
pub fn edges_of(place: &Range<u64>) -> [Range<u64>; 2] {
    let first = place.start.next_multiple_of(BLOCK_BYTES).min(place.end);
    let last = (place.end - place.end % BLOCK_BYTES).max(first);
    [place.start..first, last..place.end]
}

/// The region of a file that one process writes, from its first byte to its last.
pub struct Region<'d> {
    file: Box<dyn ScratchFile + 'd>,
    place: Range<u64>,
    /// Where the next byte goes.
    offset: u64,
    /// The bytes before the first whole block.
    head: Vec<u8>,
    /// Bytes not yet written, and their offset.
    pending: Vec<u8>,
    pending_offset: u64,
}

impl<'d> Region<'d> {
    /// Opens a region of a [`Joint`] file of `bytes` bytes, by its temporary name.
    pub fn open(disk: &'d dyn Disk, temporary: &Path, bytes: u64, place: Range<u64>) -> Result<Self, DiskError> {
        Ok(Region::of(disk.working(temporary, bytes)?, place))
    }

    /// A region of an open file.
    pub fn of(file: Box<dyn ScratchFile + 'd>, place: Range<u64>) -> Self {
        let pending_offset = edges_of(&place)[0].end;
        Region { file, offset: place.start, place, head: Vec::new(), pending: Vec::new(), pending_offset }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// What the operating system says; the region can then only be dropped.
    ///
    /// # Panics
    /// If the bytes reach beyond the end of the region.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        assert!(bytes.len() as u64 <= self.place.end - self.offset, "no more than the region has");
        self.offset += bytes.len() as u64;
        let head = edges_of(&self.place)[0].clone();
        let missing = (head.end - head.start) as usize - self.head.len();
        let (head, bytes) = bytes.split_at(bytes.len().min(missing));
        self.head.extend_from_slice(head);
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= PIECE_BYTES { self.write_blocks() } else { Ok(()) }
    }

    /// Where the next byte goes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Makes the region durable, and returns the bytes at its [ends](edges_of) for the publishing process.
    pub fn finish(mut self) -> Result<Vec<Edge>, DiskError> {
        self.write_blocks()?;
        self.file.sync()?;
        let head = Edge { offset: self.place.start, bytes: self.head };
        let tail = Edge { offset: self.pending_offset, bytes: self.pending };
        Ok([head, tail].into_iter().filter(|edge| !edge.bytes.is_empty()).collect())
    }

    /// Writes all whole blocks that are pending.
    fn write_blocks(&mut self) -> Result<(), DiskError> {
        let whole = self.pending.len() - self.pending.len() % BLOCK_BYTES as usize;
        if whole > 0 {
            self.file.write_at(self.pending_offset, &self.pending[..whole])?;
            self.pending.drain(..whole);
            self.pending_offset += whole as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fault, MemoryDisk, RealDisk, is_leftover};

    /// Content in which every byte depends on its offset.
    fn content(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at ^ at >> 8 ^ at >> 16) as u8).collect()
    }

    /// Writes a file by several regions; the publishing process writes the first and the last bytes.
    fn written(disk: &dyn Disk, path: &Path, content: &[u8], cuts: &[usize]) -> Result<u64, DiskError> {
        let bytes = content.len() as u64;
        let joint = Joint::create(disk, path, bytes)?;
        let [first, .., last] = *cuts else { panic!("two cuts at least") };
        let mut edges = vec![
            Edge { offset: 0, bytes: content[..first].to_vec() },
            Edge { offset: last as u64, bytes: content[last..].to_vec() },
        ];
        let regions = cuts.windows(2).map(|cut| {
            let region = Region::open(disk, joint.temporary(), bytes, cut[0] as u64..cut[1] as u64)?;
            Ok((region, &content[cut[0]..cut[1]]))
        });
        let mut regions = regions.collect::<Result<Vec<_>, DiskError>>()?;
        // All at once, in portions of any length.
        for portion in 0.. {
            let mut is_any = false;
            for (region, bytes) in &mut regions {
                let (now, later) = bytes.split_at(bytes.len().min(70_000 + portion * 999));
                region.write(now)?;
                is_any |= !now.is_empty();
                *bytes = later;
            }
            if !is_any {
                break;
            }
        }
        for ((region, _), cut) in regions.into_iter().zip(cuts.windows(2)) {
            assert_eq!(region.offset(), cut[1] as u64);
            edges.extend(region.finish()?);
        }
        joint.publish(edges)
    }

    const CUTS: [&[usize]; 4] = [
        &[10, 200_000],
        &[100, 100, 65_535, 65_536, 131_072, 140_000, 140_000, 300_001],
        &[0, 1, 6_000_000, 6_000_001],
        &[65_536, 4_390_000, 8_000_000],
    ];

    #[test]
    fn regions_make_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sub/file");
        for cuts in CUTS {
            for more in [0, 5, 65_536] {
                let content = content(cuts[cuts.len() - 1] + more);
                for disk in [&RealDisk::default() as &dyn Disk, &MemoryDisk::new()] {
                    assert_eq!(written(disk, &path, &content, cuts).unwrap(), content.len() as u64);
                    assert!(disk.read(&path, 1 << 24).unwrap() == content, "{cuts:?}");
                    assert_eq!(disk.list(path.parent().unwrap()).unwrap(), std::slice::from_ref(&path));
                }
            }
        }
    }

    #[test]
    fn failure_at_every_operation_leaves_the_old_file_or_the_new() {
        let (path, new) = (Path::new("d/file"), content(300_100));
        for crash in [false, true] {
            for k in 0.. {
                let disk = MemoryDisk::new();
                disk.put(path, b"old");
                if crash {
                    disk.fail_from(k, Fault::Io)
                } else {
                    disk.fail_at(k, Fault::NoSpace)
                }
                let done = written(&disk, path, &new, CUTS[1]);
                if crash {
                    disk.crash();
                } else if done.is_err() {
                    assert!(!disk.paths().iter().any(|path| is_leftover(path)), "operation {k}");
                }
                let found = disk.peek(path).unwrap();
                assert!(found == new || (done.is_err() && found == b"old"), "operation {k}");
                if done.is_ok() {
                    assert!(k > 10, "{k} operations are too few to be all");
                    break;
                }
            }
        }
    }

    #[test]
    fn no_block_is_written_by_two() {
        let disk = MemoryDisk::new();
        let joint = Joint::create(&disk, Path::new("d/file"), 400_000).unwrap();
        let edges: Vec<_> = [1000..100_000, 100_000..200_000, 200_000..400_000u64]
            .into_iter()
            .flat_map(|place| {
                let mut region = Region::open(&disk, joint.temporary(), 400_000, place.clone()).unwrap();
                region.write(&vec![7; (place.end - place.start) as usize]).unwrap();
                region.finish().unwrap()
            })
            .map(|edge| edge.offset..edge.end())
            .collect();
        let places = [1000..100_000, 100_000..200_000, 200_000..400_000].iter().flat_map(edges_of);
        assert_eq!(edges, places.collect::<Vec<_>>());
        assert_eq!(
            edges,
            [1000..65_536, 65_536..100_000, 100_000..131_072, 196_608..200_000, 200_000..262_144, 393_216..400_000]
        );
        let found = disk.peek(joint.temporary()).unwrap();
        let whole = [131_072..196_608, 262_144..393_216];
        let is_whole = |at| whole.iter().any(|whole| whole.contains(&at));
        assert!(found.iter().enumerate().all(|(at, &byte)| (byte == 7) == is_whole(at)));
        let temporary = joint.temporary().to_path_buf();
        assert!(is_leftover(&temporary));
        drop(joint);
        assert_eq!(disk.peek(&temporary), None);
    }
}
