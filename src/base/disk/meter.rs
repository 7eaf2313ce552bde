//! The traffic of a disk, which is charged to the work that it serves as well.

use crate::traffic::{Traffic, TrafficCounter};
use crate::usage;

/// Counts the traffic of a disk.
#[derive(Debug, Default)]
pub(crate) struct TrafficMeter(TrafficCounter);

impl TrafficMeter {
    pub(crate) fn add_read(&self, bytes: u64) {
        self.add(Traffic { read_bytes: bytes, written_bytes: 0 });
    }

    pub(crate) fn add_written(&self, bytes: u64) {
        self.add(Traffic { read_bytes: 0, written_bytes: bytes });
    }

    fn add(&self, traffic: Traffic) {
        self.0.add(traffic);
        usage::add(traffic);
    }

    pub(crate) fn read(&self) -> Traffic {
        self.0.read()
    }
}
