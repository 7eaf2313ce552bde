//! Builds that are killed, stopped, or whose disk and messages fail.

#![allow(clippy::unwrap_used)]

mod failing_disk;
mod kills;
mod simulated_jobs;
