//! The bytes of an open file: a map of all of it, or reads on demand.
//!
//! Every touched page of a map counts as memory of the process until the system reclaims it. Reads on demand take only
//! the requested bytes, at the price of a copy.
//!
//! A mapped file may be changed by other processes, or become unreadable, at any time. Each time that this is detected,
//! the file gets a new *edition*, and earlier reads may be wrong. A map with a page that could not
//! be provided is lost: from then on the file is read on demand.

use disk::{DiskError, InputFile, Mapping, PendingRead};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

/// An open file.
pub(crate) enum FileSource {
    /// A map of the whole file.
    Mapped(Mapped),
    /// Reads on demand.
    Windowed(Box<dyn InputFile>),
}

/// A mapped file.
pub(crate) struct Mapped {
    mapping: Mapping,
    /// The last known stamp of the file.
    stamp: AtomicU64,
    edition: AtomicU64,
}

/// The bit of an edition that says that the map is lost. Low enough that editions can be summed.
const LOST: u64 = 1 << 48;

impl FileSource {
    /// A mapped file.
    pub(crate) fn mapped(mapping: Mapping) -> FileSource {
        let stamp = AtomicU64::new(mapping.stamp());
        FileSource::Mapped(Mapped { mapping, stamp, edition: AtomicU64::new(0) })
    }

    /// The length of the file.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            FileSource::Mapped(mapped) => mapped.mapping.len() as u64,
            FileSource::Windowed(input) => input.bytes(),
        }
    }

    /// Whether the file is mapped.
    #[inline]
    pub(crate) fn is_mapped(&self) -> bool {
        self.in_place().is_some()
    }

    /// The last known edition of a mapped file, without a system call.
    #[inline]
    pub(crate) fn edition(&self) -> Option<u64> {
        let FileSource::Mapped(mapped) = self else { return None };
        let lost = if mapped.mapping.is_whole() { 0 } else { LOST };
        Some(mapped.edition.load(Ordering::SeqCst) | lost)
    }

    /// The bytes of a map that is not lost, with the last known edition. What was read from them is right if the
    /// edition is the same afterwards.
    #[inline]
    pub(crate) fn in_place(&self) -> Option<(&[u8], u64)> {
        let FileSource::Mapped(mapped) = self else { return None };
        let edition = self.edition().filter(|edition| edition & LOST == 0)?;
        Some((&mapped.mapping, edition))
    }

    /// Returns a map that is not lost.
    pub(crate) fn mapping(&self) -> Option<&Mapping> {
        match self {
            FileSource::Mapped(mapped) => self.in_place().map(|_| &mapped.mapping),
            FileSource::Windowed(_) => None,
        }
    }

    /// Asks the operating system whether a mapped file has changed. If so, the file gets another edition, and `forget`
    /// is called before any other thread can see it in [`edition`](Self::edition).
    pub(crate) fn latest_edition(&self, forget: impl FnOnce()) -> Option<u64> {
        let FileSource::Mapped(mapped) = self else { return None };
        let stamp = mapped.mapping.stamp();
        if stamp != mapped.stamp.load(Ordering::SeqCst) {
            // The stamp is stored last: a thread that sees it also sees the edition and the effects of `forget`.
            mapped.edition.fetch_add(1, Ordering::SeqCst);
            forget();
            mapped.stamp.store(stamp, Ordering::SeqCst);
        }
        self.edition()
    }

    /// Returns bytes of the file. The caller has compared the range with [`bytes`](FileSource::bytes), so that no more
    /// is allocated than the file is long.
    ///
    /// # Errors
    /// [`DiskError::Io`] if the file has become shorter, or what the operating system says; never for a map.
    #[inline]
    pub(crate) fn read(&self, offset: u64, bytes: usize) -> Result<Cow<'_, [u8]>, DiskError> {
        match self.in_place() {
            Some((map, _)) => Ok(Cow::Borrowed(&map[offset as usize..][..bytes])),
            None => Ok(Cow::Owned(self.copy(offset, bytes)?)),
        }
    }

    /// As [`read`](Self::read), but never from the map.
    pub(crate) fn copy(&self, offset: u64, bytes: usize) -> Result<Vec<u8>, DiskError> {
        assert!(offset.checked_add(bytes as u64).is_some_and(|end| end <= self.bytes()), "a read within the file");
        let mut read = vec![0; bytes];
        match self {
            FileSource::Mapped(mapped) => mapped.mapping.read_at(offset, &mut read)?,
            FileSource::Windowed(input) => input.read_at(offset, &mut read)?,
        }
        Ok(read)
    }

    /// Starts to copy bytes of the file, which are read beside the caller where they are not mapped.
    pub(crate) fn start_copy(&self, offset: u64, bytes: usize) -> PendingRead {
        match self {
            FileSource::Mapped(_) => PendingRead::complete(self.copy(offset, bytes)),
            FileSource::Windowed(input) => {
                let end = offset.checked_add(bytes as u64);
                assert!(end.is_some_and(|end| end <= self.bytes()), "a read within the file");
                input.start_read(offset, bytes)
            }
        }
    }
}
