//! Where the bytes of an open file come from: a map of all of it, or reads on demand.
//!
//! A map makes every page that is touched count as memory of the process for as long as the system likes; reads on
//! demand take what is asked for and no more, at the price of a copy.
//!
//! A file in a map may be changed by others, or become unreadable, at any time. Each time that is noticed the file has
//! another *edition*, and what was read before is no longer known to be right. A map with a page that could not be provided
//! is lost: from then on the file is read on demand.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use disk::{DiskError, InputFile, Mapping};

/// An open file.
pub(crate) enum FileSource {
    /// All of it, mapped.
    Mapped(Mapped),
    /// Read piece by piece.
    Windowed(Box<dyn InputFile>),
}

/// A mapped file.
pub(crate) struct Mapped {
    mapping: Mapping,
    /// The stamp that the file had when it was last looked at.
    stamp: AtomicU64,
    edition: AtomicU64,
}

/// The bit that says, in the number of an edition, that the map is lost. Low enough that editions can be summed.
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

    /// Whether bytes are read where they lie.
    #[inline]
    pub(crate) fn is_mapped(&self) -> bool {
        self.edition().is_some_and(|edition| edition & LOST == 0)
    }

    /// The edition of a mapped file as far as is known, without asking the operating system.
    #[inline]
    pub(crate) fn edition(&self) -> Option<u64> {
        let FileSource::Mapped(mapped) = self else { return None };
        let lost = if mapped.mapping.is_whole() { 0 } else { LOST };
        Some(mapped.edition.load(Ordering::SeqCst) | lost)
    }

    /// Asks the operating system whether a mapped file was changed. If so, it has another edition, and `forget` is called
    /// before any other thread learns of it from [`edition`](Self::edition) alone.
    pub(crate) fn latest_edition(&self, forget: impl FnOnce()) -> Option<u64> {
        let FileSource::Mapped(mapped) = self else { return None };
        // What is read on demand is checked each time.
        if mapped.mapping.is_whole() {
            let stamp = mapped.mapping.stamp();
            if stamp != mapped.stamp.load(Ordering::SeqCst) {
                // The stamp comes last: a thread that finds it finds the edition and what was forgotten.
                mapped.edition.fetch_add(1, Ordering::SeqCst);
                forget();
                mapped.stamp.store(stamp, Ordering::SeqCst);
            }
        }
        self.edition()
    }

    /// Bytes that lie within the file, as far as was known when it was opened: the caller compared with
    /// [`bytes`](FileSource::bytes), so that no more is allocated than the file is long.
    ///
    /// # Errors
    /// [`DiskError::Io`] if the file has become shorter, or what the operating system says; never for a map.
    #[inline]
    pub(crate) fn read(&self, offset: u64, bytes: usize) -> Result<Cow<'_, [u8]>, DiskError> {
        match self {
            FileSource::Mapped(mapped) if self.is_mapped() => {
                Ok(Cow::Borrowed(&mapped.mapping[offset as usize..][..bytes]))
            }
            _ => Ok(Cow::Owned(self.copy(offset, bytes)?)),
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
}
