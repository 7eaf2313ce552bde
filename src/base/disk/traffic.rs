//! Counters of bytes read and written.

use std::ops::Sub;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that a disk has read and written so far.
///
/// Requests to the operating system are counted: a read that is widened to whole blocks counts with the blocks. Mapped
/// files, names and lengths are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl Sub for Traffic {
    type Output = Traffic;

    /// The traffic since an earlier reading.
    fn sub(self, earlier: Traffic) -> Traffic {
        Traffic {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
        }
    }
}

/// Counts traffic from any thread.
#[derive(Debug, Default)]
pub(crate) struct TrafficCounter {
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
}

impl TrafficCounter {
    pub(crate) fn add(&self, traffic: Traffic) {
        self.read_bytes.fetch_add(traffic.read_bytes, Ordering::Relaxed);
        self.written_bytes.fetch_add(traffic.written_bytes, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Traffic {
        Traffic {
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
            written_bytes: self.written_bytes.load(Ordering::Relaxed),
        }
    }
}
