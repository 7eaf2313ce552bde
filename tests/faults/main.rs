//! Builds under kills, signals, failing disks and failing networks.

#![allow(clippy::unwrap_used)]

mod evaluation;
mod failing_disk;
mod kills;
mod simulated_jobs;
