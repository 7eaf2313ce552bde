//! Whose a directory is: what keeps a run from taking over files that are not awari's.
//!
//! The first thing written into a new run directory is `lock`, which is durable before anything else is written and
//! begins as no file of others does. So a directory is ours if its `lock` or its `journal` is, or if there are artifacts,
//! which may have been copied or restored without either. A directory without such a sign is taken only if it holds nothing that a
//! run could replace: a crash before the lock was durable leaves empty files, zeros and temporaries.
//!
//! In a directory that is ours, a file of another kind under one of our names (an artifact may have been copied to
//! where somebody keeps a diary called `journal`) gives up the name and keeps its content.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use disk::{Disk, DiskError, is_leftover, is_lock_note, set_aside, staged_path};

use crate::artifact::{ArtifactKind, ArtifactName, Inspection};
use crate::directory::heartbeat::Heartbeat;
use crate::directory::layout::{heartbeat_path, journal_path, lock_path, manifest_path, snapshots_path, stop_path};
use crate::directory::survey;
use crate::error::{PipelineError, unusable};
use crate::journal::{Contents, JOURNAL_BYTES_MAX, JournalError, could_be_journal, holds_record};
use crate::preflight::PreflightError;
use crate::work::Work;

/// Longer notes are not read.
const NOTE_BYTES_MAX: u64 = 4096;

/// What a file that is read whole may have at most: the resolved manifest, the largest of them.
const SMALL_BYTES_MAX: u64 = 1 << 20;

/// How deep below a directory temporaries are expected.
const DEPTH_MAX: usize = 3;

/// What file systems and file managers put into directories that are empty to their user.
const OF_THE_SYSTEM: [&str; 5] = ["lost+found", ".snapshot", ".zfs", ".DS_Store", ".Trash-1000"];

/// The first line of every `manifest.toml` that a run writes.
pub(crate) const MANIFEST_MARK: &str =
    "# The manifest of the latest run, written by awari: each run replaces this file.\n";

/// What a directory is to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// A run directory.
    Run,
    /// A directory with artifacts that no run is known to have made there.
    Artifacts,
    /// A directory that is absent, or holds nothing that a run could replace.
    Free,
}

/// Finds out what a directory is to a run. Writes nothing. `holds_artifacts` looks for artifacts.
///
/// # Errors
/// [`PreflightError::Foreign`] if it holds files of others and no sign of ours; what the operating system says.
pub(crate) fn claim(
    disk: &dyn Disk,
    directory: &Path,
    holds_artifacts: &dyn Fn() -> Result<bool, PipelineError>,
) -> Result<Claim, PipelineError> {
    let unusable = |source| unusable(directory, source);
    let lock = beginning(disk, &lock_path(directory), NOTE_BYTES_MAX).map_err(unusable)?;
    if lock.is_some_and(|lock| !is_blank(&lock) && is_lock_note(&lock)) {
        return Ok(Claim::Run);
    }
    match Contents::read(disk, &journal_path(directory)) {
        Ok(journal) if journal.valid_bytes > 0 => return Ok(Claim::Run),
        // Its only record is damaged.
        Ok(_) if disk.read(&journal_path(directory), JOURNAL_BYTES_MAX).is_ok_and(|bytes| holds_record(&bytes)) => {
            return Ok(Claim::Run);
        }
        // It may be anything; if the directory is ours, the error comes up again.
        Ok(_) | Err(JournalError::TooLarge { .. }) => {}
        Err(JournalError::Disk(source)) => return Err(unusable(source)),
        Err(other) => return Err(other.into()),
    }
    if holds_artifacts()? {
        return Ok(Claim::Artifacts);
    }
    let mut foreign = Vec::new();
    others(disk, directory, DEPTH_MAX, &mut foreign).map_err(unusable)?;
    foreign.retain(|path| *path != snapshots_path(directory));
    if foreign.is_empty() {
        return Ok(Claim::Free);
    }
    let names = foreign.iter().filter_map(|path| path.file_name()).map(|name| name.display().to_string());
    Err(PreflightError::Foreign { directory: directory.to_path_buf(), names: names.collect() }.into())
}

/// Whether any artifact of some work is in a directory.
pub(crate) fn holds_artifacts(disk: &dyn Disk, directory: &Path, work: &dyn Work) -> Result<bool, PipelineError> {
    let found = survey(disk, directory, work)?;
    let is_there = |spec: &&crate::ArtifactSpec| match found.get(&spec.name) {
        _ if spec.kind == ArtifactKind::Report => false,
        Some(Inspection::Header { .. }) => true,
        Some(Inspection::Damaged(_)) => work.is_ours(disk, &spec.name.below(directory)),
        _ => false,
    };
    Ok(work.graph().artifacts().any(|spec| is_there(&spec)))
}

/// Names at the top of a run directory under which files are written aside first.
const STAGED: [&str; 7] = ["journal", "manifest.toml", "heartbeat", "stop", "lock", "probe", "speed"];

/// Whether a file in a run directory is what a dead run left of a file of its own, or of an artifact.
pub(crate) fn is_leftover_of(directory: &Path, path: &Path, work: &dyn Work) -> bool {
    let Some(path) = staged_path(path) else { return false };
    let Some(name) = path.strip_prefix(directory).ok().and_then(Path::to_str) else { return false };
    let is_log = || name.starts_with("logs/") && name.ends_with(".log");
    STAGED.contains(&name) || is_log() || ArtifactName::new(name).is_ok_and(|name| work.is_name(&name))
}

/// The entries of a directory that are not what a run could have left before its lock was durable. A directory among
/// them counts if anything in it does.
fn others(disk: &dyn Disk, directory: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), DiskError> {
    let of_the_system = |path: &Path| path.file_name().is_some_and(|name| OF_THE_SYSTEM.iter().any(|of| name == *of));
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

/// Whether the name of the lock is that of a file of others, which keeps its content under another name once the lock is
/// taken.
pub(crate) fn lock_is_of_others(disk: &dyn Disk, directory: &Path) -> bool {
    disk.read(&lock_path(directory), SMALL_BYTES_MAX).is_ok_and(|bytes| !is_lock_note(&bytes))
}

/// Lets files of others that have one of our names keep their content under another. For the holder of the lock.
///
/// # Errors
/// What the operating system says.
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
            // Whoever opens it says what is wrong.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Makes room for the resolved manifest `text`, where what has its name was not written by a run. Earlier versions wrote it without
/// [`MANIFEST_MARK`].
///
/// # Errors
/// What the operating system says.
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

/// The bytes of a file; `None` if it is absent, longer, or no file at all.
fn beginning(disk: &dyn Disk, path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, DiskError> {
    match disk.read(path, bytes_max) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(DiskError::TooLarge { .. } | DiskError::NotFound { .. } | DiskError::Io { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a file was not written yet, or lost what was written to a crash.
fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}
