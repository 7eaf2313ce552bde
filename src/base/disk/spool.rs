//! Bytes that are kept until their place in a file is known.

use crate::disk::{Disk, ScratchFile};
use crate::error::DiskError;
use std::path::PathBuf;

/// Bytes in memory before they are written to a segment.
const PIECE_BYTES: usize = 4 << 20;

/// A new segment has this share of the bytes in those before it, and at least a piece. So there are few segments, and
/// little of their space, which is reserved when they are created, is not used.
const SEGMENT_SHARE: u64 = 8;

/// Bytes that one process appends, in unnamed files, and passes on in order when all are there. The first few
/// stay in memory.
pub struct Spool<'d> {
    disk: &'d dyn Disk,
    path: PathBuf,
    segments: Vec<Box<dyn ScratchFile>>,
    /// Bytes in the segments, whole pieces.
    stored: u64,
    pending: Vec<u8>,
}

impl<'d> Spool<'d> {
    /// Creates an empty spool. `path` says where its files are, and names them in errors.
    pub fn new(disk: &'d dyn Disk, path: PathBuf) -> Spool<'d> {
        Spool { disk, path, segments: Vec::new(), stored: 0, pending: Vec::new() }
    }

    /// Number of bytes appended.
    pub fn bytes(&self) -> u64 {
        self.stored + self.pending.len() as u64
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`DiskError::NoSpace`] with what is needed and free, or what the operating system says; the spool can
    /// then only be dropped.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), DiskError> {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(PIECE_BYTES - self.pending.len()));
            self.pending.extend_from_slice(now);
            bytes = rest;
            if self.pending.len() == PIECE_BYTES {
                let mut reserved: u64 = self.segments.iter().map(|segment| segment.bytes()).sum();
                if self.stored == reserved {
                    self.segments.push(self.disk.scratch(&self.path, next_segment(reserved))?);
                    reserved += next_segment(reserved);
                }
                let segment = self.segments.last().expect("there is one from the first piece on");
                segment.write_at(self.stored + segment.bytes() - reserved, &self.pending)?;
                self.stored += PIECE_BYTES as u64;
                self.pending.clear();
            }
        }
        Ok(())
    }

    /// Passes all bytes on, in order and in pieces.
    ///
    /// # Errors
    /// That of a read, or the first one of `take`.
    pub fn pass_on(mut self, mut take: impl FnMut(&[u8]) -> Result<(), DiskError>) -> Result<(), DiskError> {
        let last = std::mem::take(&mut self.pending);
        let mut piece = vec![0; if self.stored > 0 { PIECE_BYTES } else { 0 }];
        for segment in self.segments {
            let bytes = segment.bytes().min(self.stored);
            self.stored -= bytes;
            for offset in (0..bytes).step_by(PIECE_BYTES) {
                segment.read_at(offset, &mut piece)?;
                take(&piece)?;
            }
        }
        take(&last)
    }

    /// Returns the disk space that a spool takes when it holds `bytes` bytes.
    pub fn space(bytes: u64) -> u64 {
        let (stored, mut reserved) = (bytes - bytes % PIECE_BYTES as u64, 0);
        while reserved < stored {
            reserved += next_segment(reserved);
        }
        reserved
    }
}

/// Returns the length of the next segment, given the total length of the segments so far.
fn next_segment(reserved: u64) -> u64 {
    (reserved / SEGMENT_SHARE).max(1).next_multiple_of(PIECE_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fault, MemoryDisk};
    use std::path::Path;

    const PATH: &str = "part";

    fn noise(bytes: usize) -> Vec<u8> {
        (0..bytes as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
    }

    #[test]
    fn bytes_come_back_in_order() {
        let all = noise(21 * PIECE_BYTES + 77);
        for length in [0, 5, PIECE_BYTES, PIECE_BYTES + 1, 16 * PIECE_BYTES, 17 * PIECE_BYTES, all.len()] {
            let disk = MemoryDisk::new();
            let mut spool = Spool::new(&disk, PATH.into());
            let expected = &all[..length];
            expected.chunks(1_000_003).for_each(|bytes| spool.write(bytes).unwrap());
            assert_eq!(spool.bytes(), length as u64);
            assert_eq!(disk.scratch_bytes(Path::new("")), Spool::space(length as u64));
            let mut found = Vec::new();
            let take = |bytes: &[u8]| {
                found.extend_from_slice(bytes);
                Ok(())
            };
            spool.pass_on(take).unwrap();
            assert!(found == expected, "{length} bytes");
            assert!(disk.paths().is_empty(), "no name is left");
        }
    }

    #[test]
    fn an_eighth_of_the_space_is_not_used_at_most() {
        let piece = PIECE_BYTES as u64;
        for pieces in (0..100).chain([1_000, 10_000, 1 << 20]) {
            let (bytes, space) = (pieces * piece, Spool::space(pieces * piece));
            assert!((bytes..=bytes + bytes.div_ceil(8).next_multiple_of(piece)).contains(&space), "{bytes}: {space}");
        }
    }

    /// The first pieces take no file, and a full disk is an error.
    #[test]
    fn a_full_disk_is_an_error() {
        let disk = MemoryDisk::new();
        disk.fail_at(0, Fault::NoSpace);
        let mut spool = Spool::new(&disk, PATH.into());
        spool.write(&noise(PIECE_BYTES - 1)).unwrap();
        let error = spool.write(&[1, 2]).unwrap_err();
        assert!(error.is_no_space() && error.path() == Some(Path::new(PATH)), "{error}");
    }
}
