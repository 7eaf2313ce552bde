//! Errors of file operations, with the file and the remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A number of bytes in a message: `1 byte`, `2 bytes`.
pub fn bytes(number: u64) -> String {
    if number == 1 { "1 byte".to_owned() } else { format!("{number} bytes") }
}

/// The text of an error of the operating system without the number that the standard library adds: `Is a directory`.
pub fn reason(error: &impl fmt::Display) -> String {
    const NUMBER: &str = " (os error ";
    let text = error.to_string();
    match text.rsplit_once(NUMBER) {
        Some((words, rest)) if rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-') == ")" => {
            words.to_owned()
        }
        _ => text,
    }
}

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reading a whole file.
    Read,
    /// Creating or opening a file for writing.
    Create,
    /// Writing at the end of a file.
    Write,
    /// Reserving space.
    Reserve,
    /// Making a file or a directory durable.
    Sync,
    /// Truncating a file.
    Truncate,
    /// Mapping a file.
    Map,
    /// Determining the length of a file.
    Measure,
    /// Listing a directory.
    List,
    /// Renaming a file.
    Rename,
    /// Removing a file or a directory.
    Remove,
    /// Making a directory.
    MakeDirectory,
    /// Determining the free space.
    FreeSpace,
    /// Taking a lock.
    Lock,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Operation::Read => "read",
            Operation::Create => "create",
            Operation::Write => "write",
            Operation::Reserve => "reserve space for",
            Operation::Sync => "sync",
            Operation::Truncate => "truncate",
            Operation::Map => "map",
            Operation::Measure => "find the length of",
            Operation::List => "list",
            Operation::Rename => "rename",
            Operation::Remove => "remove",
            Operation::MakeDirectory => "make directory",
            Operation::FreeSpace => "ask for the free space of",
            Operation::Lock => "lock",
        })
    }
}

/// An operation on a file that failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant explains its fields")]
pub enum DiskError {
    /// The disk or the user's quota is full.
    #[error(
        "no space left to {operation} {}{}; free some space or choose another directory, then repeat the command",
        path.display(),
        Shortage { needed: *needed, free: *free }
    )]
    NoSpace {
        operation: Operation,
        path: PathBuf,
        /// Bytes that this operation asked for, where known.
        needed: Option<u64>,
        /// Bytes that were free, where known.
        free: Option<u64>,
    },
    /// The file system has space, but no inode for another file.
    #[error(
        "no inode left to {operation} {}: the file system holds as many files as it can, whatever their size; remove some files or \
         choose another directory, then repeat the command",
        path.display()
    )]
    NoInode { operation: Operation, path: PathBuf },
    /// The permissions of a file or directory forbid it.
    #[error("cannot {operation} {}: permission denied; check the permissions and the owner of the file and of its directory", path.display())]
    PermissionDenied { operation: Operation, path: PathBuf },
    /// A directory that must exist is absent.
    #[error("there is no directory {path}; create it with: mkdir -p {path}", path = path.display())]
    NoDirectory { path: PathBuf },
    /// The file is larger than its reader accepts.
    #[error("{} has {}, expected at most {bytes_max}; it is not the expected file: check the path", path.display(), self::bytes(*bytes))]
    TooLarge { path: PathBuf, bytes: u64, bytes_max: u64 },
    /// Another process holds the lock.
    #[error(
        "{} is locked by {holder}; wait for that process to end, or stop it",
        path.display()
    )]
    Locked {
        path: PathBuf,
        /// The note of the holder.
        holder: String,
    },
    /// Another run has taken the directory of a file.
    #[error("{} now belongs to another run: {why}", path.display())]
    Overtaken {
        path: PathBuf,
        /// The evidence, and the remedy.
        why: String,
    },
    /// The kernel does not allow `io_uring`.
    #[error(
        "io_uring cannot be used here: {}; the kernel, a container or a limit forbids it; use --io plain",
        reason(source)
    )]
    RingRefused { source: Arc<io::Error> },
    /// Any other error.
    #[error("cannot {operation} {}: {}", path.display(), why(source))]
    Io { operation: Operation, path: PathBuf, source: Arc<io::Error> },
}

impl DiskError {
    /// Maps an error of the operating system to a variant.
    pub fn from_io(operation: Operation, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull if has_no_inode(&path) => DiskError::NoInode { operation, path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                DiskError::NoSpace { operation, path, needed: None, free: None }
            }
            // `EPERM` is not about the permissions of the file or its directory.
            io::ErrorKind::PermissionDenied if source.raw_os_error() != Some(libc::EPERM) => {
                DiskError::PermissionDenied { operation, path }
            }
            _ => DiskError::Io { operation, path, source: Arc::new(source) },
        }
    }

    /// The same error with the bytes needed and free filled in, if it is [`DiskError::NoSpace`].
    #[must_use]
    pub fn with_shortage(mut self, bytes_needed: u64, bytes_free: Option<u64>) -> Self {
        if let DiskError::NoSpace { needed, free, .. } = &mut self {
            *needed = Some(bytes_needed);
            *free = bytes_free;
        }
        self
    }

    /// Whether the disk is full (`ENOSPC`, `EDQUOT`).
    pub fn is_no_space(&self) -> bool {
        matches!(self, DiskError::NoSpace { .. } | DiskError::NoInode { .. })
    }

    /// Whether the file system is read-only (`EROFS`).
    pub fn is_read_only(&self) -> bool {
        self.is_kind(io::ErrorKind::ReadOnlyFilesystem)
    }

    /// Whether the file is absent (`ENOENT`).
    pub fn is_not_found(&self) -> bool {
        self.is_kind(io::ErrorKind::NotFound)
    }

    /// Whether the medium cannot be read (`EIO` and similar codes), as opposed to a file that is absent or must not be
    /// read.
    pub fn is_unreadable(&self) -> bool {
        match self {
            DiskError::Io { operation: Operation::Read | Operation::Map, source, .. } => is_of_medium(source),
            _ => false,
        }
    }

    /// Whether the cause is a limit of the process or of the system, not of the file: too many open files, no memory.
    pub fn is_of_limits(&self) -> bool {
        const CODES: [i32; 4] = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EAGAIN];
        match self {
            DiskError::Io { source, .. } => source.raw_os_error().is_some_and(|code| CODES.contains(&code)),
            _ => false,
        }
    }

    /// Whether the file may be as expected, but this process cannot read it: for want of permission, by a
    /// limit, or because the medium fails.
    pub fn is_of_system(&self) -> bool {
        let is_refused = match self {
            DiskError::PermissionDenied { .. } => true,
            DiskError::Io { source, .. } => source.raw_os_error() == Some(libc::EPERM),
            _ => false,
        };
        is_refused || self.is_of_limits() || self.is_unreadable()
    }

    /// The file or directory that the error is about.
    pub fn path(&self) -> Option<&Path> {
        match self {
            DiskError::NoSpace { path, .. }
            | DiskError::NoInode { path, .. }
            | DiskError::PermissionDenied { path, .. }
            | DiskError::TooLarge { path, .. }
            | DiskError::NoDirectory { path, .. }
            | DiskError::Locked { path, .. }
            | DiskError::Overtaken { path, .. }
            | DiskError::Io { path, .. } => Some(path),
            DiskError::RingRefused { .. } => None,
        }
    }

    /// Whether the file ends before the requested range.
    pub fn is_cut_short(&self) -> bool {
        self.is_kind(io::ErrorKind::UnexpectedEof)
    }

    /// Whether a limit on the size of files is reached (`EFBIG`).
    pub fn is_file_size_limit(&self) -> bool {
        self.is_kind(io::ErrorKind::FileTooLarge)
    }

    fn is_kind(&self, kind: io::ErrorKind) -> bool {
        matches!(self, DiskError::Io { source, .. } if source.kind() == kind)
    }

    /// Whether another run has taken the directory.
    pub fn is_overtaken(&self) -> bool {
        matches!(self, DiskError::Overtaken { .. })
    }
}

/// Whether the file system of a path, which may not exist itself, counts its inodes and has none left, but
/// space. The file that failed, or the directory that was made for it, may have given one back.
fn has_no_inode(path: &Path) -> bool {
    let folders =
        path.ancestors().skip(1).map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    let found = folders.map(rustix::fs::statvfs).find_map(Result::ok);
    found.is_some_and(|found| found.f_files > 0 && found.f_favail <= 1 && found.f_bavail > 0)
}

/// Whether an error code is one of the medium.
fn is_of_medium(source: &io::Error) -> bool {
    const CODES: [i32; 5] = [libc::EIO, libc::ENODATA, libc::EREMOTEIO, libc::EUCLEAN, libc::EBADMSG];
    source.raw_os_error().is_some_and(|code| CODES.contains(&code))
}

/// The cause of an error, and the remedy where there is one.
fn why(source: &io::Error) -> String {
    let why = match source.kind() {
        io::ErrorKind::FileTooLarge => {
            "the file size limit of this process (ulimit -f) or of the file system is reached; raise the limit, then \
             repeat the command"
        }
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only; choose another directory",
        io::ErrorKind::NotFound => "no such file or directory",
        _ if source.raw_os_error() == Some(libc::EPERM) => {
            "the system does not permit it; check the filter of the container (seccomp), the security policy, and the \
             attributes of the file (lsattr)"
        }
        _ if source.raw_os_error() == Some(libc::EMFILE) => {
            "this process has too many open files (ulimit -n); allow more, then repeat the command"
        }
        _ if source.raw_os_error() == Some(libc::ENFILE) => {
            "the system has too many open files (sysctl fs.file-max); close some, then repeat the command"
        }
        _ if source.raw_os_error() == Some(libc::ENOMEM) => {
            "there is not enough memory; free some or raise the limit, then repeat the command"
        }
        _ if is_of_medium(source) => {
            let reason = reason(source);
            return format!("{reason}; the disk or the connection to it is failing, see the kernel log (dmesg)");
        }
        _ => return reason(source),
    };
    why.to_owned()
}

/// The clause ": 10 bytes needed, 3 free", as far as the numbers are known.
struct Shortage {
    needed: Option<u64>,
    free: Option<u64>,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.needed, self.free) {
            (Some(needed), Some(free)) => write!(f, ": {} needed, {free} free", bytes(needed)),
            (Some(needed), None) => write!(f, ": {} needed", bytes(needed)),
            (None, Some(free)) => write!(f, ": {} free", bytes(free)),
            (None, None) => Ok(()),
        }
    }
}

/// The error of truncating a file to more than its length.
pub(crate) fn too_short(found: u64, expected: u64) -> io::Error {
    io::Error::other(format!("it has {}, expected at least {expected}", bytes(found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: io::ErrorKind, expect: &str) {
        let error = DiskError::from_io(Operation::Write, Path::new("/d/x"), kind.into());
        assert_eq!(error.with_shortage(10, Some(3)).to_string(), expect);
    }

    #[test]
    fn the_operating_system_is_quoted_in_its_words() {
        let error = io::Error::from_raw_os_error(libc::EISDIR);
        assert!(error.to_string().contains("(os error 21)"));
        assert_eq!(reason(&error), "Is a directory");
        let error = DiskError::from_io(Operation::Read, Path::new("d"), error);
        assert_eq!(error.to_string(), "cannot read d: Is a directory");
        for text in ["", "it ends early", "x (os error 5) y", "(os error )x"] {
            assert_eq!(reason(&text), text);
        }
    }

    #[test]
    fn messages_name_the_remedy() {
        let no_space = "no space left to write /d/x: 10 bytes needed, 3 free; \
                        free some space or choose another directory, then repeat the command";
        check(io::ErrorKind::StorageFull, no_space);
        check(io::ErrorKind::QuotaExceeded, no_space);
        check(
            io::ErrorKind::ReadOnlyFilesystem,
            "cannot write /d/x: the file system is read-only; choose another directory",
        );
        check(
            io::ErrorKind::PermissionDenied,
            "cannot write /d/x: permission denied; check the permissions and the owner of the file and of its directory",
        );
        check(
            io::ErrorKind::FileTooLarge,
            "cannot write /d/x: the file size limit of this process (ulimit -f) or of the file system is reached; raise the \
             limit, then repeat the command",
        );
        check(io::ErrorKind::NotFound, "cannot write /d/x: no such file or directory");
        check(io::ErrorKind::TimedOut, "cannot write /d/x: timed out");
    }

    #[test]
    fn a_file_system_without_inodes_is_not_called_full() {
        let error = DiskError::NoInode { operation: Operation::Create, path: "/d/x".into() };
        assert!(error.is_no_space() && error.path() == Some(Path::new("/d/x")));
        assert!(
            error.to_string().starts_with("no inode left to create /d/x: the file system holds as many files"),
            "{error}"
        );
        // One with inodes is full, and so is one that does not exist.
        let here = tempfile::tempdir().unwrap();
        for path in [here.path().join("x"), "/nowhere/at/all".into(), "x".into()] {
            let error = DiskError::from_io(Operation::Create, &path, io::ErrorKind::StorageFull.into());
            assert!(matches!(error, DiskError::NoSpace { .. }), "{error}");
        }
    }

    #[test]
    fn errors_of_the_system_are_not_of_the_file() {
        for (code, expect) in [
            (libc::EPERM, "the system does not permit it"),
            (libc::EACCES, "permission denied; check the permissions"),
            (libc::EMFILE, "too many open files (ulimit -n)"),
            (libc::ENFILE, "too many open files (sysctl fs.file-max)"),
            (libc::ENOMEM, "not enough memory"),
            (libc::EIO, "the disk or the connection to it is failing"),
        ] {
            let error = DiskError::from_io(Operation::Read, Path::new("x"), io::Error::from_raw_os_error(code));
            assert!(error.is_of_system() && error.to_string().contains(expect), "{error}");
        }
        for code in [libc::ENOENT, libc::EISDIR, libc::ENOTDIR, libc::ELOOP] {
            let error = DiskError::from_io(Operation::Read, Path::new("x"), io::Error::from_raw_os_error(code));
            assert!(!error.is_of_system(), "{error}");
        }
    }

    #[test]
    fn a_refused_ring_names_the_way_around() {
        let error = DiskError::RingRefused { source: Arc::new(io::ErrorKind::PermissionDenied.into()) };
        let expect = "io_uring cannot be used here: permission denied; the kernel, a container or a limit forbids it; \
            use --io plain";
        assert_eq!(error.to_string(), expect);
    }

    #[test]
    fn predicates_follow_the_kinds() {
        let error = |kind: io::ErrorKind| DiskError::from_io(Operation::Create, Path::new("x"), kind.into());
        assert!(error(io::ErrorKind::StorageFull).is_no_space());
        assert!(error(io::ErrorKind::FileTooLarge).is_file_size_limit());
        assert!(error(io::ErrorKind::NotFound).is_not_found());
        assert!(!error(io::ErrorKind::Other).is_no_space());
    }
}
