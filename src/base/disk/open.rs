//! Opening of files to read, once their kind is known.
//!
//! To open a device may change its state, and to read it, a pipe or a file such as `/proc/kmsg` may wait for
//! ever or take away what others wait for. So a path is first opened as a name only (`O_PATH`), and what it
//! names is opened to be read if its kind is accepted. Nothing can take its place between the two.

use crate::folder::{PROC_MAGIC, kind_words};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// The kinds of files that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadableKind {
    /// Regular files.
    File,
    /// Regular files, under a name that is no symbolic link.
    UnfollowedFile,
    /// Pipes also, such as `/dev/stdin` or `<(...)` in a shell, and `/dev/null`.
    FileOrPipe,
}

/// The `statfs` numbers of file systems whose regular files are interfaces of the kernel: of `/proc`, of traces and of
/// debugging.
const KERNEL_INTERFACES: [u64; 3] = [PROC_MAGIC, 0x7472_6163, 0x6462_6720];

/// Device numbers of `/dev/null`.
const NULL_DEVICE: (u32, u32) = (1, 3);

/// A pipe without a writer reads as empty instead of blocking. No effect on files.
const TO_READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Opens a file to read it.
pub(crate) fn open_to_read(path: &Path, accepted: ReadableKind) -> io::Result<File> {
    let links = if accepted == ReadableKind::UnfollowedFile { OFlags::NOFOLLOW } else { OFlags::empty() };
    let name = rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC | links, Mode::empty())?;
    let kind = check(&name, accepted)?;
    let link = format!("/proc/self/fd/{}", name.as_raw_fd());
    let file = match rustix::fs::openat(CWD, link, TO_READ, Mode::empty()) {
        // `/proc` is not mounted, or hides this process.
        Err(Errno::NOENT | Errno::ACCESS) => open_again(path, &name)?,
        other => other?,
    };
    if kind == FileType::Fifo {
        // From here on a read waits for the writer.
        rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    }
    Ok(File::from(file))
}

/// Checks that what a descriptor names may be read, and returns its kind.
fn check(name: &OwnedFd, accepted: ReadableKind) -> io::Result<FileType> {
    let status = rustix::fs::fstat(name)?;
    let kind = FileType::from_raw_mode(status.st_mode);
    let device = (rustix::fs::major(status.st_rdev), rustix::fs::minor(status.st_rdev));
    match kind {
        FileType::RegularFile => {
            let file_system = rustix::fs::fstatfs(name)?.f_type as u32 as u64;
            if KERNEL_INTERFACES.contains(&file_system) {
                return Err(io::Error::other("it is an interface of the kernel, not a stored file"));
            }
        }
        FileType::Directory => return Err(Errno::ISDIR.into()),
        // Only where links are not followed.
        FileType::Symlink => {
            return Err(io::Error::other(
                "it is a symbolic link, which is not followed; name the file that it leads to",
            ));
        }
        FileType::Fifo if accepted == ReadableKind::FileOrPipe => {}
        FileType::CharacterDevice if accepted == ReadableKind::FileOrPipe && device == NULL_DEVICE => {}
        kind => return Err(io::Error::other(format!("it is {}, not a regular file", kind_words(kind)))),
    }
    Ok(kind)
}

/// Opens a path that another open descriptor names.
fn open_again(path: &Path, name: &OwnedFd) -> io::Result<OwnedFd> {
    let file = rustix::fs::openat(CWD, path, TO_READ, Mode::empty())?;
    let identity = |file: &OwnedFd| rustix::fs::fstat(file).map(|status| (status.st_dev, status.st_ino));
    if identity(&file)? == identity(name)? {
        Ok(file)
    } else {
        Err(io::Error::other("it was replaced while it was opened; repeat the command"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Disk, RealDisk};
    use std::fs::{self, OpenOptions};
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    #[track_caller]
    fn check_refused(path: &Path, expect: &str) {
        for accepted in [ReadableKind::File, ReadableKind::FileOrPipe] {
            let error = open_to_read(path, accepted).unwrap_err().to_string();
            assert!(error.contains(expect), "{}: {error}", path.display());
        }
    }

    #[test]
    fn special_files_are_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let _socket = UnixListener::bind(path("socket")).unwrap();
        check_refused(&path("socket"), "it is a socket");
        check_refused(Path::new("/dev/zero"), "it is a device");
        check_refused(Path::new("/dev/ptmx"), "it is a device");
        check_refused(place.path(), "Is a directory");
        check_refused(Path::new("/proc/self/status"), "it is an interface of the kernel");
        std::os::unix::fs::symlink("/proc/kmsg", path("link")).unwrap();
        check_refused(&path("link"), "");
        check_refused(&path("absent"), "No such file");
    }

    #[test]
    fn pipes_are_read_where_they_are_meant() {
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, 0o600.into(), 0).unwrap();
        let error = open_to_read(&pipe, ReadableKind::File).unwrap_err();
        assert!(error.to_string().contains("it is a pipe"), "{error}");
        let disk = RealDisk::default();
        assert_eq!(disk.read_given(&pipe, 9).unwrap(), b"", "there is no writer");
        assert_eq!(disk.read_given(Path::new("/dev/null"), 9).unwrap(), b"");
        // The bytes stay in the pipe while it is open somewhere.
        let both = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        let mut writer = OpenOptions::new().write(true).open(&pipe).unwrap();
        writer.write_all(b"0123456789").unwrap();
        let error = disk.read_given(&pipe, 9).unwrap_err();
        assert!(error.to_string().contains("expected at most 9"), "{error}");
        drop(both);
    }

    #[test]
    fn a_path_without_proc_is_compared_with_what_was_checked() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for name in ["one", "two"] {
            fs::write(path(name), name).unwrap();
        }
        let name = rustix::fs::openat(CWD, path("one"), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        assert!(open_again(&path("one"), &name).is_ok());
        assert!(open_again(&path("two"), &name).unwrap_err().to_string().contains("was replaced"));
    }
}
