//! A request to stop, left in the run directory for the run that works there.
//!
//! `stop` in the run directory holds the number of the run that is meant, in decimal digits. A run looks for it with each
//! sign of life, and so also finds what was left from another machine. It is removed when a run begins, heeds it, or
//! ends; one that came too late is not heeded by the next run, which has another number.

use std::path::Path;

use disk::{Disk, DiskError};

use crate::directory::layout::stop_path;

/// A longer file was not written by us.
const BYTES_MAX: u64 = 32;

/// A request that a run stop at the end of the unit at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopRequest {
    /// The number of the run.
    pub run: u64,
}

impl StopRequest {
    /// Leaves it in a run directory.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub fn post(self, disk: &dyn Disk, directory: &Path) -> Result<(), DiskError> {
        disk.post(&stop_path(directory), format!("{}\n", self.run).as_bytes())
    }

    /// The one in a run directory, if there is one that can be read.
    pub fn read(disk: &dyn Disk, directory: &Path) -> Option<StopRequest> {
        let bytes = disk.read(&stop_path(directory), BYTES_MAX).ok()?;
        Some(StopRequest { run: std::str::from_utf8(&bytes).ok()?.trim().parse().ok()? })
    }

    /// Removes whatever there is. What cannot be removed is of an old run soon, and not heeded.
    pub(crate) fn remove(disk: &dyn Disk, directory: &Path) {
        let _ = disk.remove(&stop_path(directory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::MemoryDisk;

    #[test]
    fn requests_are_left_read_and_removed() {
        let (disk, directory) = (MemoryDisk::new(), Path::new("/run"));
        assert_eq!(StopRequest::read(&disk, directory), None);
        StopRequest { run: u64::MAX }.post(&disk, directory).unwrap();
        assert_eq!(StopRequest::read(&disk, directory), Some(StopRequest { run: u64::MAX }));
        StopRequest::remove(&disk, directory);
        assert_eq!(StopRequest::read(&disk, directory), None);
    }

    #[test]
    fn strange_files_ask_for_nothing() {
        let (disk, directory) = (MemoryDisk::new(), Path::new("/run"));
        for text in [&b""[..], b"all", b"-1", b"\xff", b"18446744073709551616", &[b'1'; 33]] {
            disk.put(&stop_path(directory), text);
            assert_eq!(StopRequest::read(&disk, directory), None);
        }
    }
}
