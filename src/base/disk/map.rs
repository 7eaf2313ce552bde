//! Read-only maps of files, and views of bytes as other types.
//!
//! A map shows the current content of the file. Artifacts never change (see the invariants of the crate), but another
//! program may change a file, and sectors may fail. A page that cannot be provided reads as zeros and raises a flag
//! (see the module `sigbus`), and a file that was written in place has another stamp. A reader checks both *after* it
//! has used the bytes, with [`Mapping::is_whole`] and [`Mapping::stamp`]. If the flag is raised, [`Mapping::read_at`]
//! reads the remaining bytes.

use crate::error::{DiskError, Operation};
use crate::sigbus::MapWatch;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The bytes of a file, mapped for reading. Cheap to clone; clones share the map.
#[derive(Clone)]
pub struct Mapping {
    memory: Arc<MappedBytes>,
}

enum MappedBytes {
    File(MappedFile),
    Owned(Vec<u8>),
}

/// A file and its map. The watch is dropped first.
struct MappedFile {
    watch: MapWatch,
    map: memmap2::Mmap,
    file: File,
    path: PathBuf,
}

impl Mapping {
    /// Maps an open file. An empty file gives an empty slice.
    pub(crate) fn of_file(file: File, path: &Path) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Mapping::from(Vec::new()));
        }
        // SAFETY: the map is private to this type and read-only. Artifacts are published once by rename and never
        // rewritten in place, so the file does not change while it is mapped. If another program breaks that, readers
        // compare the stamp and read again, and a page that is gone is replaced by zeros. The map saves the system
        // calls and copies of probes.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        let watch = MapWatch::over(map.as_ptr(), map.len())?;
        let path = path.to_path_buf();
        Ok(Mapping { memory: Arc::new(MappedBytes::File(MappedFile { watch, map, file, path })) })
    }

    /// Whether every byte that was read from the map so far is one of the file. Never becomes true again.
    #[inline]
    pub fn is_whole(&self) -> bool {
        match &*self.memory {
            MappedBytes::File(mapped) => mapped.watch.is_whole(),
            MappedBytes::Owned(_) => true,
        }
    }

    /// A number that changes when the file is cut or written in place, as far as its length and times show. It may
    /// change without a change of content.
    pub fn stamp(&self) -> u64 {
        let MappedBytes::File(mapped) = &*self.memory else { return 0 };
        let numbers = match rustix::fs::fstat(&mapped.file) {
            Ok(now) => {
                [now.st_size as u64, now.st_mtime as u64, now.st_mtime_nsec, now.st_ctime as u64, now.st_ctime_nsec]
            }
            // An unreachable file counts as changed.
            Err(errno) => [errno.raw_os_error() as u64, 0, 0, 0, 0],
        };
        numbers
            .iter()
            .fold(0, |stamp: u64, number| (stamp.rotate_left(23) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// Fills `into` from `offset` on, from the file and not from the map.
    ///
    /// # Errors
    /// [`DiskError::Io`] where the file ends before, or what the operating system says.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DiskError> {
        match &*self.memory {
            MappedBytes::File(mapped) => mapped
                .file
                .read_exact_at(into, offset)
                .map_err(|source| DiskError::from_io(Operation::Read, &mapped.path, source)),
            MappedBytes::Owned(bytes) => {
                into.copy_from_slice(&bytes[offset as usize..][..into.len()]);
                Ok(())
            }
        }
    }
}

impl From<Vec<u8>> for Mapping {
    fn from(bytes: Vec<u8>) -> Self {
        Mapping { memory: Arc::new(MappedBytes::Owned(bytes)) }
    }
}

impl Deref for Mapping {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &*self.memory {
            MappedBytes::File(mapped) => &mapped.map,
            MappedBytes::Owned(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({} bytes)", self.len())
    }
}

/// Signed bytes seen as bytes (two's complement), without a copy.
pub fn bytes_of(signed: &[i8]) -> &[u8] {
    // SAFETY: `i8` and `u8` have the same size and alignment and every bit pattern is valid in both;
    // pointer and length come from one slice, whose borrow the result keeps. It saves a copy of
    // whole databases when they are hashed or written.
    unsafe { std::slice::from_raw_parts(signed.as_ptr().cast(), signed.len()) }
}

/// Signed bytes seen as bytes for writing, without a copy.
pub fn bytes_of_mut(signed: &mut [i8]) -> &mut [u8] {
    // SAFETY: as in `bytes_of`; the result keeps the exclusive borrow. It lets a decompressor write
    // straight into the caller's scores.
    unsafe { std::slice::from_raw_parts_mut(signed.as_mut_ptr().cast(), signed.len()) }
}

/// Bytes seen as signed bytes, without a copy.
pub fn signed_of(bytes: &[u8]) -> &[i8] {
    // SAFETY: as in `bytes_of`. It lets kernels read the scores of a raw file from its map.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

/// The bytes of words, in the order of this machine.
pub fn bytes_of_words(words: &[u64]) -> &[u8] {
    // SAFETY: the bytes are those of the words, every bit pattern is valid for u8, and u8 has no alignment.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), std::mem::size_of_val(words)) }
}

/// The bytes of words, in the order of this machine, to be written.
pub fn bytes_of_words_mut(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: as in `bytes_of_words`; every bit pattern is valid for u64 too.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), std::mem::size_of_val(words)) }
}

/// The bytes of words as signed bytes, to be written.
pub fn signed_of_words_mut(words: &mut [u64]) -> &mut [i8] {
    // SAFETY: as in `bytes_of_words_mut`. It lets a plane be decoded in place.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), std::mem::size_of_val(words)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_keep_two_s_complement() {
        let mut scores = [-128i8, -1, 0, 1, 127];
        assert_eq!(bytes_of(&scores), [128, 255, 0, 1, 127]);
        assert_eq!(signed_of(&[128, 255, 0, 1, 127]), scores);
        bytes_of_mut(&mut scores)[0] = 254;
        assert_eq!(scores[0], -2);
        assert!(bytes_of(&[]).is_empty());
    }

    #[test]
    fn clones_share_the_bytes() {
        let mapping = Mapping::from(vec![1, 2, 3]);
        let clone = mapping.clone();
        drop(mapping);
        assert_eq!(&clone[..], [1, 2, 3]);
    }
}
