//! Names of the files in a run directory.

use std::path::{Path, PathBuf};

/// Path of the lock.
pub(crate) fn lock_path(directory: &Path) -> PathBuf {
    directory.join("lock")
}

/// Path of the journal.
pub fn journal_path(directory: &Path) -> PathBuf {
    directory.join("journal")
}

/// Path of the resolved manifest.
pub fn manifest_path(directory: &Path) -> PathBuf {
    directory.join("manifest.toml")
}

/// Path of the heartbeat of the active run.
pub(crate) fn heartbeat_path(directory: &Path) -> PathBuf {
    directory.join("heartbeat")
}

/// Path of the request that the active run stop.
pub(crate) fn stop_path(directory: &Path) -> PathBuf {
    directory.join("stop")
}

/// Path of the folder of snapshots.
pub(crate) fn snapshots_path(directory: &Path) -> PathBuf {
    directory.join("snapshots")
}

/// Path of the folder with the signs of life of the ranks of a job.
pub fn ranks_path(directory: &Path) -> PathBuf {
    directory.join("ranks")
}

/// Name of the log of the events between stages.
pub const RUN_LOG: &str = "run";

/// Path of a log.
pub fn log_path(directory: &Path, name: &str) -> PathBuf {
    directory.join("logs").join(name.to_owned() + ".log")
}
