//! Names of the files in a run directory.

use std::path::{Path, PathBuf};

/// The lock of a run directory.
pub(crate) fn lock_path(directory: &Path) -> PathBuf {
    directory.join("lock")
}

/// The journal of a run directory.
pub fn journal_path(directory: &Path) -> PathBuf {
    directory.join("journal")
}

/// The resolved manifest of a run directory.
pub fn manifest_path(directory: &Path) -> PathBuf {
    directory.join("manifest.toml")
}

/// The sign of life of the run that goes on in a directory.
pub(crate) fn heartbeat_path(directory: &Path) -> PathBuf {
    directory.join("heartbeat")
}

/// The request that the run which goes on in a directory stop.
pub(crate) fn stop_path(directory: &Path) -> PathBuf {
    directory.join("stop")
}

/// The snapshots of a run directory.
pub(crate) fn snapshots_path(directory: &Path) -> PathBuf {
    directory.join("snapshots")
}
