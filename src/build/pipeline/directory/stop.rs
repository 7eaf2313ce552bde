//! The stop request: a file in the run directory that asks the active run to stop.
//!
//! `stop` holds the number of the run in decimal digits. A run reads it with each heartbeat, so the request may come
//! from another machine. It is removed when a run starts, stops on request, or ends; the next run has another number
//! and ignores a late request.

use crate::directory::layout::stop_path;
use disk::{Disk, DiskError};
use std::path::Path;

/// The maximum length of a stop request, in bytes.
const BYTES_MAX: u64 = 32;

/// A request that a run stop at the end of the current unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopRequest {
    /// The number of the run.
    pub run: u64,
}

impl StopRequest {
    /// Writes the request into a run directory.
    pub fn post(self, disk: &dyn Disk, directory: &Path) -> Result<(), DiskError> {
        disk.post(&stop_path(directory), format!("{}\n", self.run).as_bytes())
    }

    /// Reads the request of a run directory, if there is a readable one.
    pub fn read(disk: &dyn Disk, directory: &Path) -> Option<StopRequest> {
        let bytes = disk.read(&stop_path(directory), BYTES_MAX).ok()?;
        Some(StopRequest { run: std::str::from_utf8(&bytes).ok()?.trim().parse().ok()? })
    }

    /// Removes the request. A failure is harmless, since the next run ignores requests for other runs.
    pub(crate) fn remove(disk: &dyn Disk, directory: &Path) {
        let _ = disk.remove(&stop_path(directory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::MemoryDisk;

    #[test]
    fn requests_are_posted_read_and_removed() {
        let (disk, directory) = (MemoryDisk::new(), Path::new("/run"));
        assert_eq!(StopRequest::read(&disk, directory), None);
        StopRequest { run: u64::MAX }.post(&disk, directory).unwrap();
        assert_eq!(StopRequest::read(&disk, directory), Some(StopRequest { run: u64::MAX }));
        StopRequest::remove(&disk, directory);
        assert_eq!(StopRequest::read(&disk, directory), None);
    }

    #[test]
    fn other_files_are_not_a_request() {
        let (disk, directory) = (MemoryDisk::new(), Path::new("/run"));
        for text in [&b""[..], b"all", b"-1", b"\xff", b"18446744073709551616", &[b'1'; 33]] {
            disk.put(&stop_path(directory), text);
            assert_eq!(StopRequest::read(&disk, directory), None);
        }
    }
}
