//! Read-only maps of files, and views of bytes as other types.
//!
//! A map shows the file as it is. Were somebody else to change or cut a mapped file, reads would see
//! the change or the process would get `SIGBUS`; we never do that to an artifact (see the crate's
//! invariants), and its readers check every block they read against a checksum.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

/// The bytes of a file, mapped for reading. Cheap to clone; clones share the map.
#[derive(Clone)]
pub struct Mapping {
    memory: Arc<Memory>,
}

enum Memory {
    File(memmap2::Mmap),
    Owned(Vec<u8>),
}

impl Mapping {
    /// Maps an open file. An empty file gives an empty slice.
    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Mapping::from(Vec::new()));
        }
        // SAFETY: the map is private to this type and read-only. That nobody changes the file while
        // it is mapped is the crate's invariant on artifacts (published once by rename, never
        // rewritten in place), under the lock of the run's directory. It buys probes without
        // system calls and without copies.
        let map = unsafe { memmap2::Mmap::map(file)? };
        Ok(Mapping { memory: Arc::new(Memory::File(map)) })
    }
}

impl From<Vec<u8>> for Mapping {
    fn from(bytes: Vec<u8>) -> Self {
        Mapping { memory: Arc::new(Memory::Owned(bytes)) }
    }
}

impl Deref for Mapping {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &*self.memory {
            Memory::File(map) => map,
            Memory::Owned(bytes) => bytes,
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

/// Bytes seen as signed bytes, to be changed, without a copy.
pub fn signed_of_mut(bytes: &mut [u8]) -> &mut [i8] {
    // SAFETY: as in `bytes_of`; the result keeps the exclusive borrow. It lets scores be taken from where they were read.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len()) }
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
