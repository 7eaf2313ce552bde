//! Where the bytes of an open file come from: a map of all of it, or reads on demand.
//!
//! A map makes every page that is touched count as memory of the process for as long as the system likes; reads on
//! demand take what is asked for and no more, at the price of a copy.

use std::borrow::Cow;

use disk::{DiskError, Input, Mapping};

/// An open file.
pub(crate) enum Source {
    /// All of it, mapped.
    Mapped(Mapping),
    /// Read piece by piece.
    Windowed(Box<dyn Input>),
}

impl Source {
    /// The length of the file.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Source::Mapped(mapping) => mapping.len() as u64,
            Source::Windowed(input) => input.bytes(),
        }
    }

    /// Bytes that lie within the file, as far as was known when it was opened: the caller compared with
    /// [`bytes`](Source::bytes), so that no more is allocated than the file is long.
    ///
    /// # Errors
    /// [`DiskError::Io`] if the file has become shorter, or what the operating system says; never for a map.
    #[inline]
    pub(crate) fn read(&self, offset: u64, bytes: usize) -> Result<Cow<'_, [u8]>, DiskError> {
        assert!(offset.checked_add(bytes as u64).is_some_and(|end| end <= self.bytes()), "a read within the file");
        match self {
            Source::Mapped(mapping) => Ok(Cow::Borrowed(&mapping[offset as usize..][..bytes])),
            Source::Windowed(input) => {
                let mut read = vec![0; bytes];
                input.read_at(offset, &mut read)?;
                Ok(Cow::Owned(read))
            }
        }
    }

    /// The whole file, where it is mapped.
    pub(crate) fn mapping(&self) -> Option<&Mapping> {
        match self {
            Source::Mapped(mapping) => Some(mapping),
            Source::Windowed(_) => None,
        }
    }
}
