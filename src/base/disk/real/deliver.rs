//! Output to paths given by the user, such as reports and games.
//!
//! | existing file at the path | action |
//! |---|---|
//! | nothing, a regular file | a complete file takes the name, as [`Staged`] does |
//! | a link of the user's own or of root | the same to what it leads to; the link stays |
//! | a link of another user, or to nothing | refused |
//! | a terminal or another character device, a pipe, `/dev/stdout`, `/dev/fd/N` | written in place, at the end |
//! | a directory, a socket, a block device, a pipe that nothing reads | refused |
//!
//! Missing directories are not made.

use crate::disk::Disk;
use crate::error::{DiskError, Operation};
use crate::folder::{Folder, PROC_MAGIC, is_trusted, kind_words, parent};
use crate::staged::Staged;
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The most links that are followed, as in the kernel.
const LINKS_MAX: usize = 40;

/// What a name refers to.
pub(super) enum DeliveryTarget {
    /// A path that a file may take.
    Path(PathBuf),
    /// A device or pipe to write into.
    Stream(PathBuf),
}

/// Writes a file to a path given by the user.
pub(super) fn deliver(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    match target(path)? {
        DeliveryTarget::Path(path) => {
            let mut staged = Staged::create(disk, &path, bytes.len() as u64)?;
            staged.write(bytes)?;
            staged.publish().map(drop)
        }
        DeliveryTarget::Stream(path) => {
            stream(&path, bytes).map_err(|source| DiskError::from_io(Operation::Write, &path, source))
        }
    }
}

/// Checks that a name is free, or that of a regular file.
pub(crate) fn check_replaceable(path: &Path) -> Result<(), DiskError> {
    let failed = |source| DiskError::from_io(Operation::Create, path, source);
    match kind_of(path).map_err(failed)? {
        None | Some((FileType::RegularFile, ..)) => Ok(()),
        Some((kind, ..)) => Err(failed(not_replaced(kind))),
    }
}

/// Resolves a name.
pub(super) fn target(path: &Path) -> Result<DeliveryTarget, DiskError> {
    let mut at = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let failed = |source| DiskError::from_io(Operation::Create, path, source);
        let found = match kind_of(&at) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(DiskError::NoDirectory { path: parent(&at).to_path_buf() });
            }
            other => other.map_err(failed)?,
        };
        let (kind, user, folder) = match found {
            None if at != path => {
                let what = format!("it is a symbolic link to {}, which is absent", at.display());
                return Err(failed(io::Error::other(what)));
            }
            None => return Ok(DeliveryTarget::Path(at)),
            Some(found) => found,
        };
        match kind {
            FileType::RegularFile => return Ok(DeliveryTarget::Path(at)),
            FileType::CharacterDevice | FileType::Fifo => return Ok(DeliveryTarget::Stream(at)),
            FileType::Symlink if !is_trusted(user) => {
                let what = format!("{} is a symbolic link of another user ({user}); choose another name", at.display());
                return Err(failed(io::Error::other(what)));
            }
            FileType::Symlink if folder.file_system().map_err(failed)? == PROC_MAGIC => {
                return Ok(DeliveryTarget::Stream(at));
            }
            FileType::Symlink => {
                let link = folder.read_link(at.file_name().unwrap_or_default()).map_err(failed)?;
                at = at.with_file_name("").join(OsStr::from_bytes(&link));
            }
            kind => return Err(failed(not_replaced(kind))),
        }
    }
    Err(DiskError::from_io(Operation::Create, path, Errno::LOOP.into()))
}

/// The kind and the owner of a file, and the directory that contains it; `None` if the name is free.
fn kind_of(path: &Path) -> io::Result<Option<(FileType, u32, Folder)>> {
    let (folder, name) = Folder::of(path)?;
    match folder.status(name) {
        Ok(found) => Ok(Some((FileType::from_raw_mode(found.st_mode), found.st_uid, folder))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn not_replaced(kind: FileType) -> io::Error {
    io::Error::other(format!("it is {}, which is not replaced; choose another name", kind_words(kind)))
}

/// Opens a device, a pipe or an open file at its end.
pub(super) fn open_stream(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = OpenOptions::new().append(true).custom_flags(flags.bits() as i32).open(path);
    let file = opened.map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NXIO) => io::Error::other("nothing reads from it; start what reads first"),
        _ => error,
    })?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    if !matches!(kind, FileType::RegularFile | FileType::CharacterDevice | FileType::Fifo) {
        return Err(not_replaced(kind));
    }
    rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file)
}

/// Appends to a device, a pipe or an open file.
fn stream(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match open_stream(path)?.write_all(bytes) {
        // A reader that has closed the pipe has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RealDisk;
    use std::fs;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{FileTypeExt, lchown, symlink};
    use std::os::unix::net::UnixListener;

    fn deliver(path: &Path) -> Result<(), String> {
        RealDisk::default().deliver(path, b"new").map_err(|error| error.to_string())
    }

    #[test]
    fn files_are_replaced_and_links_followed() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        deliver(&path("fresh")).unwrap();
        fs::write(path("old"), b"older").unwrap();
        fs::create_dir(path("sub")).unwrap();
        symlink("../old", path("sub/link")).unwrap();
        symlink(path("sub/link"), path("link")).unwrap();
        deliver(&path("link")).unwrap();
        assert_eq!(fs::read(path("old")).unwrap(), b"new");
        assert_eq!(fs::read(path("fresh")).unwrap(), b"new");
        for link in ["link", "sub/link"] {
            assert!(fs::symlink_metadata(path(link)).unwrap().is_symlink());
        }
        assert_eq!(fs::read_dir(path("sub")).unwrap().count(), 1);
    }

    #[test]
    fn other_file_types_are_refused_and_kept() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        symlink("absent", path("dangling")).unwrap();
        symlink("itself", path("itself")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), FileType::Fifo, 0o600.into(), 0).unwrap();
        for (name, expect) in [
            ("dangling", "absent, which is absent"),
            ("itself", "ymbolic link"),
            ("folder", "it is a directory"),
            ("socket", "it is a socket"),
            ("pipe", "nothing reads from it"),
            ("no/x", "there is no directory"),
            ("folder/no/x", "create it with: mkdir -p"),
        ] {
            let kind = fs::symlink_metadata(path(name)).map(|found| found.file_type()).ok();
            let error = deliver(&path(name)).unwrap_err();
            assert!(error.contains(expect), "{name}: {error}");
            assert_eq!(fs::symlink_metadata(path(name)).map(|found| found.file_type()).ok(), kind);
        }
        assert!(!path("absent").exists() && !path("no").exists() && !path("folder/no").exists());
        fs::write(path("victim"), b"precious").unwrap();
        symlink("victim", path("link")).unwrap();
        if lchown(path("link"), Some(12_345), None).is_ok() {
            assert!(deliver(&path("link")).unwrap_err().contains("link of another user (12345)"));
            assert_eq!(fs::read(path("victim")).unwrap(), b"precious");
        }
        for name in ["dangling", "link", "pipe", "folder", "socket"] {
            assert!(check_replaceable(&path(name)).is_err(), "{name}");
        }
        check_replaceable(&path("victim")).unwrap();
        check_replaceable(&path("fresh")).unwrap();
    }

    #[test]
    fn streams_are_written_in_place() {
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, 0o600.into(), 0).unwrap();
        let mut reader = fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        deliver(&pipe).unwrap();
        let mut found = [0; 3];
        reader.read_exact(&mut found).unwrap();
        assert_eq!(&found, b"new");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        // An open file, as a shell passes it: written at its end.
        fs::write(place.path().join("file"), b"old").unwrap();
        let file = fs::File::options().append(true).open(place.path().join("file")).unwrap();
        deliver(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd()))).unwrap();
        assert_eq!(fs::read(place.path().join("file")).unwrap(), b"oldnew");
        deliver(Path::new("/dev/null")).unwrap();
        assert!(RealDisk::default().deliver(Path::new("/dev/full"), b"new").unwrap_err().is_no_space());
        assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    }
}
