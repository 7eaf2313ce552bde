//! File systems: their properties and free space.

use super::direct;
use crate::error::{DiskError, Operation};
use crate::folder::{here_if_empty, nameless, parent};
use rustix::io::Errno;
use std::path::Path;

/// The file system of a directory.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSystem {
    /// The kind of file system: a name if it is known, else its number.
    pub file_system: String,
    /// Whether other machines may write to it as well.
    pub is_shared: bool,
    /// Whether its files are in memory.
    pub is_memory: bool,
    /// Bytes free for this user.
    pub free_bytes: u64,
    /// Files that may still be created, where there is a limit.
    pub free_files: Option<u64>,
    /// Whether files can bypass the page cache.
    pub direct: bool,
}

/// Kinds of file systems by their `statfs` number, and whether machines share them.
const FILE_SYSTEMS: [(u64, &str, bool); 14] = [
    (0xEF53, "ext4", false),
    (0x5846_5342, "xfs", false),
    (0x9123_683E, "btrfs", false),
    (0x2FC1_2FC1, "zfs", false),
    (0x0102_1994, "tmpfs", false),
    (0x794C_7630, "overlay", false),
    (0x6969, "nfs", true),
    (0xFF53_4D42, "cifs", true),
    (0xFE53_4D42, "smb2", true),
    (0x6573_5546, "fuse", true),
    (0x0BD0_0BD0, "lustre", true),
    (0x4750_4653, "gpfs", true),
    (0x00C3_6400, "ceph", true),
    (0xF2F5_2010, "f2fs", false),
];

/// The `statfs` number of a file system in memory.
pub(crate) const TMPFS_MAGIC: u64 = 0x0102_1994;

/// Whether an error of `fallocate` means that space cannot be reserved ahead: the file system, the kernel, or
/// the filter of a container does not support it. A full disk is another error.
pub(super) fn is_unsupported(errno: Errno) -> bool {
    [Errno::OPNOTSUPP, Errno::NOSYS, Errno::NODEV, Errno::SPIPE, Errno::PERM, Errno::ACCESS, Errno::INVAL]
        .contains(&errno)
}

impl FileSystem {
    /// Inspects the file system of an existing directory.
    pub fn inspect(directory: &Path) -> Result<FileSystem, DiskError> {
        let failed = |source: std::io::Error| DiskError::from_io(Operation::FreeSpace, directory, source);
        let kind = file_system(directory).map_err(failed)?;
        let room = rustix::fs::statvfs(directory).map_err(|errno| failed(errno.into()))?;
        let known = FILE_SYSTEMS.iter().find(|(number, ..)| *number == kind);
        let direct = direct::turn_on(&nameless(&directory.join("probe"))?).is_some();
        Ok(FileSystem {
            file_system: known.map_or_else(|| format!("{kind:#x}"), |(_, name, _)| (*name).to_owned()),
            is_shared: known.is_some_and(|(.., is_shared)| *is_shared),
            is_memory: kind == TMPFS_MAGIC,
            free_bytes: room.f_bavail.saturating_mul(room.f_frsize),
            free_files: (room.f_files > 0).then_some(room.f_favail),
            direct,
        })
    }
}

/// The `statfs` number of the file system of a directory.
pub(crate) fn file_system(directory: &Path) -> std::io::Result<u64> {
    // The type of the number differs between architectures; no kind needs more than 32 bits.
    Ok(rustix::fs::statfs(directory)?.f_type as u32 as u64)
}

/// The bytes free for this user below a directory, which need not exist yet.
pub(crate) fn free_bytes(directory: &Path) -> Result<u64, DiskError> {
    let mut at = directory;
    loop {
        match rustix::fs::statvfs(here_if_empty(at)) {
            Ok(found) => return Ok(found.f_bavail.saturating_mul(found.f_frsize)),
            // Not made yet: its parent decides.
            Err(Errno::NOENT) if at.parent().is_some() => at = parent(at),
            Err(errno) => {
                let source = errno.into();
                return Err(DiskError::from_io(Operation::FreeSpace, directory, source));
            }
        }
    }
}
