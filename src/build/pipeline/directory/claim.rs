//! The ownership of a directory: keeps a run from overwriting foreign files.
//!
//! The first file of a new run directory is `lock`. It is durable before anything else is written, and begins unlike
//! any foreign file. So a directory belongs to a run if its `lock` or its `journal` does, if it holds artifacts, which
//! may have been copied or restored without either, or if it holds a manifest that a run has written, and logs. Any
//! other directory is used only if it holds nothing that a run could replace: a crash before the lock is durable leaves
//! empty files, zeros and temporary files.
//!
//! In a directory that belongs to a run, a foreign file under one of the names that a run uses (such as `journal`) is
//! renamed and keeps its content.

#[cfg(test)]
mod tests;

use crate::artifact::{ArtifactKind, ArtifactName, ArtifactSpec, Inspection};
use crate::directory::heartbeat::Heartbeat;
use crate::directory::layout::{
    RUN_LOG, heartbeat_path, journal_path, lock_path, log_path, manifest_path, ranks_path, snapshots_path, stop_path,
};
use crate::directory::survey::survey;
use crate::error::{Result, unusable};
use crate::journal::{JOURNAL_BYTES_MAX, could_be_journal, holds_record};
use crate::preflight::PreflightError;
use crate::work::Work;
use disk::{Disk, DiskError, is_leftover, is_lock_note, set_aside, staged_path};
use std::path::{Path, PathBuf};

/// Longer lock notes are not read.
const NOTE_BYTES_MAX: u64 = 4096;

/// The largest file that is read whole: the resolved manifest.
const SMALL_BYTES_MAX: u64 = 1 << 20;

/// Depth below a directory at which temporary files are expected.
const DEPTH_MAX: usize = 3;

/// Entries that file systems and file managers create in empty directories.
const OF_THE_SYSTEM: [&str; 5] = ["lost+found", ".snapshot", ".zfs", ".DS_Store", ".Trash-1000"];

/// The first line of every `manifest.toml` that a run writes.
pub(crate) const MANIFEST_MARK: &str =
    "# The manifest of the latest run, written by awari: each run replaces this file.\n";

/// The relation of a directory to runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// A run directory.
    Run,
    /// A directory with artifacts, but without a sign of a run.
    Artifacts,
    /// An absent directory, or one that holds nothing that a run could replace.
    Free,
}

/// Determines the relation of a directory to runs. Writes nothing.
///
/// # Errors
/// [`PreflightError::Foreign`] if it holds foreign files and no sign of a run; if the operating system fails.
pub(crate) fn claim(disk: &dyn Disk, directory: &Path, holds_artifacts: &dyn Fn() -> Result<bool>) -> Result<Claim> {
    let unusable = |source| unusable(directory, source);
    let has_lock = || -> Result<bool> {
        let lock = beginning(disk, &lock_path(directory), NOTE_BYTES_MAX).map_err(unusable)?;
        Ok(lock.is_some_and(|lock| !is_blank(&lock) && is_lock_note(&lock)))
    };
    if has_lock()? {
        return Ok(Claim::Run);
    }
    match disk.read(&journal_path(directory), JOURNAL_BYTES_MAX) {
        // One damaged record is sign enough.
        Ok(bytes) if holds_record(&bytes) => return Ok(Claim::Run),
        // Opening a journal that is too large reports the error again, if the directory belongs to a run.
        Ok(_) | Err(DiskError::TooLarge { .. }) => {}
        Err(source) if source.is_not_found() => {}
        Err(source) => return Err(unusable(source)),
    }
    if holds_artifacts()? {
        return Ok(Claim::Artifacts);
    }
    // Lock, journal and artifacts may all be damaged.
    let manifest = beginning(disk, &manifest_path(directory), SMALL_BYTES_MAX).map_err(unusable)?;
    let is_resolved = manifest.is_some_and(|text| text.starts_with(MANIFEST_MARK.as_bytes()));
    if is_resolved && disk.bytes(&log_path(directory, RUN_LOG)).map_err(unusable)?.is_some() {
        return Ok(Claim::Run);
    }
    let mut foreign = Vec::new();
    others(disk, directory, DEPTH_MAX, &mut foreign).map_err(unusable)?;
    let kept = [snapshots_path(directory), ranks_path(directory)];
    foreign.retain(|path| !kept.contains(path));
    if foreign.is_empty() {
        return Ok(Claim::Free);
    }
    // Another run may have begun meanwhile.
    if has_lock()? {
        return Ok(Claim::Run);
    }
    let names = foreign.iter().filter_map(|path| path.file_name()).map(|name| name.display().to_string());
    Err(PreflightError::Foreign { directory: directory.to_path_buf(), names: names.collect() }.into())
}

/// Whether a directory holds any artifact of `work`.
pub(crate) fn holds_artifacts(disk: &dyn Disk, directory: &Path, work: &dyn Work) -> Result<bool> {
    let found = survey(disk, directory, work)?;
    let is_there = |spec: &&ArtifactSpec| match found.get(&spec.name) {
        _ if spec.kind == ArtifactKind::Report => false,
        Some(Inspection::Header { .. }) => true,
        Some(Inspection::Damaged(_)) => work.is_ours(disk, &spec.name.below(directory)),
        _ => false,
    };
    Ok(work.graph().artifacts().any(|spec| is_there(&spec)))
}

/// Names of staged files at the top of a run directory.
const STAGED: [&str; 7] = ["journal", "manifest.toml", "heartbeat", "stop", "lock", "probe", "speed"];

/// Whether a file is the temporary file of a dead run, for an artifact or for a file of its own.
pub(crate) fn is_leftover_of(directory: &Path, path: &Path, work: &dyn Work) -> bool {
    let Some(path) = staged_path(path) else { return false };
    let Some(name) = path.strip_prefix(directory).ok().and_then(Path::to_str) else { return false };
    let is_log = || name.starts_with("logs/") && name.ends_with(".log");
    STAGED.contains(&name) || is_log() || ArtifactName::new(name).is_ok_and(|name| work.is_name(&name))
}

/// Collects the entries of a directory that no run could have left before its lock was durable. A directory counts if
/// anything in it does.
fn others(disk: &dyn Disk, directory: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), DiskError> {
    let of_the_system =
        |path: &Path| path.file_name().is_some_and(|name| OF_THE_SYSTEM.iter().any(|known| name == *known));
    let own = [lock_path(directory), journal_path(directory)];
    for path in disk.list(directory)? {
        let is_blank_own =
            || own.contains(&path) && disk.read(&path, SMALL_BYTES_MAX).is_ok_and(|bytes| is_blank(&bytes));
        let is_torn_journal =
            || path == own[1] && disk.read(&path, JOURNAL_BYTES_MAX).is_ok_and(|bytes| could_be_journal(&bytes));
        let is_empty = || disk.bytes(&path).is_ok_and(|bytes| bytes == Some(0));
        let is_ours = is_leftover(&path) || of_the_system(&path) || is_empty() || is_blank_own() || is_torn_journal();
        if !is_ours {
            found.push(path);
        }
    }
    for path in disk.list_directories(directory)? {
        let mut below = Vec::new();
        match depth.checked_sub(1) {
            _ if of_the_system(&path) => {}
            Some(depth) => others(disk, &path, depth, &mut below)?,
            None => below.push(path.clone()),
        }
        if !below.is_empty() {
            found.push(path);
        }
    }
    Ok(())
}

/// Whether a foreign file has the name of the lock. Taking the lock renames it.
pub(crate) fn lock_is_of_others(disk: &dyn Disk, directory: &Path) -> bool {
    disk.read(&lock_path(directory), SMALL_BYTES_MAX).is_ok_and(|bytes| !is_lock_note(&bytes))
}

/// Renames foreign files that have the name of a file of runs. Only for the holder of the lock.
pub(crate) fn keep_others(disk: &dyn Disk, directory: &Path) -> Result<(), DiskError> {
    let is_heartbeat = |bytes: &[u8]| serde_json::from_slice::<Heartbeat>(bytes).is_ok();
    let is_request = |bytes: &[u8]| bytes.trim_ascii().iter().all(u8::is_ascii_digit);
    type IsOurs<'a> = &'a dyn Fn(&[u8]) -> bool;
    let ours: [(PathBuf, u64, IsOurs); 3] = [
        (journal_path(directory), JOURNAL_BYTES_MAX, &could_be_journal),
        (heartbeat_path(directory), SMALL_BYTES_MAX, &is_heartbeat),
        (stop_path(directory), SMALL_BYTES_MAX, &is_request),
    ];
    for (path, bytes_max, is_ours) in ours {
        match disk.read(&path, bytes_max) {
            Ok(bytes) if !is_blank(&bytes) && !is_ours(&bytes) => keep(disk, &path)?,
            Err(DiskError::TooLarge { .. }) if bytes_max == SMALL_BYTES_MAX => keep(disk, &path)?,
            // Opening the file reports the error.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Renames a foreign `manifest.toml`. Manifests of older versions have no [`MANIFEST_MARK`]; they are recognised by
/// `text`.
pub(crate) fn keep_manifest(disk: &dyn Disk, directory: &Path, text: &str) -> Result<(), DiskError> {
    let path = manifest_path(directory);
    let is_ours = |bytes: &[u8]| bytes.starts_with(MANIFEST_MARK.as_bytes()) || bytes == text.as_bytes();
    match disk.read(&path, SMALL_BYTES_MAX) {
        Ok(bytes) if is_ours(&bytes) || is_blank(&bytes) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Ok(_) | Err(_) => keep(disk, &path),
    }
}

fn keep(disk: &dyn Disk, path: &Path) -> Result<(), DiskError> {
    let kept = set_aside(disk, path)?;
    tracing::warn!("{} was not written by awari: it is kept as {}", path.display(), kept.display());
    Ok(())
}

/// Returns the bytes of a file; `None` if it is absent, longer, or not a file.
fn beginning(disk: &dyn Disk, path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, DiskError> {
    match disk.read(path, bytes_max) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(DiskError::TooLarge { .. } | DiskError::Io { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a file was never written, or lost its content in a crash.
fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}
