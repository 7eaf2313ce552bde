//! Builds under kills, signals, failing disks and failing networks.

#![allow(clippy::unwrap_used)]

mod evaluation;
mod failing_disk;
mod kills;
mod side_by_side;
mod simulated_jobs;
