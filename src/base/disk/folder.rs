//! Open directories, and safe access to the names in them.
//!
//! Every file that is created, changed in place, renamed or removed is reached through a [`Folder`], the open directory
//! that contains its name. This prevents other users who may write to a directory from redirecting changes elsewhere:
//!
//! * A symbolic link on the way to a directory is followed only if it belongs to the user or to root, like in the
//!   kernel's `fs.protected_symlinks`: a user may keep `databases` on another drive, and no other user can choose the
//!   drive.
//! * The name itself is never followed, and a file that has a second name (a hard link) is not changed in place.
//! * A new file is created under a name that did not exist (`O_EXCL`), never opened under one that did.
//!
//! Reads follow any link, unless their caller refuses links.

use crate::error::{DiskError, Operation};
use crate::file_names::temporary_of;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::fs::File;
use std::hash::BuildHasher;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// An open directory.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

/// Flags to open a directory for access to its names, without permission to read it.
const REACH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Flags to open a file without following links. Non-blocking, because opening a pipe would wait for the other end.
const OWN_NAME: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Flags to create a file under a new name.
const NEW_NAME: OFlags = OWN_NAME.union(OFlags::CREATE).union(OFlags::EXCL);

/// Permissions of new files and directories, before the umask.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);

/// The `statfs` number of `/proc`, whose links refer to open files and are not paths.
pub(crate) const PROC_MAGIC: u64 = 0x9FA0;

/// Attempts when another process creates and removes the same name.
const TRIES: usize = 8;

impl Folder {
    /// Opens a directory.
    pub(crate) fn open(path: &Path) -> io::Result<Folder> {
        reach(path, false).map(Folder)
    }

    /// Opens a directory, and first makes what is missing on the way to it, durably.
    pub(crate) fn make(path: &Path) -> io::Result<Folder> {
        reach(path, true).map(Folder)
    }

    /// Opens the directory that holds a path, and gives the name in it.
    pub(crate) fn of(path: &Path) -> io::Result<(Folder, &OsStr)> {
        Ok((Folder::open(parent(path))?, name_of(path)?))
    }

    /// As [`of`](Self::of), and first makes what is missing on the way to the directory.
    pub(crate) fn make_of(path: &Path) -> io::Result<(Folder, &OsStr)> {
        let name = name_of(path)?;
        Ok((Folder::make(parent(path))?, name))
    }

    /// Opens a file that exists, to change it in place.
    pub(crate) fn open_file(&self, name: &OsStr, how: OFlags) -> io::Result<File> {
        let file = match rustix::fs::openat(&self.0, name, how | OWN_NAME, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::LOOP) => {
                return Err(io::Error::other("it is a symbolic link, which is not followed to write; remove the link"));
            }
            // ENXIO: a pipe without a reader, or a socket.
            Err(Errno::NXIO) => return Err(not_a_file()),
            Err(errno) => return Err(errno.into()),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(not_a_file());
        }
        if metadata.nlink() > 1 {
            return Err(io::Error::other(
                "it has a second name (a hard link), and writing would change both; put a copy in its place",
            ));
        }
        Ok(file)
    }

    /// Opens a file to change it in place, or creates it. Says whether its name is new.
    pub(crate) fn open_or_create(&self, name: &OsStr, how: OFlags) -> io::Result<(File, bool)> {
        for _ in 0..TRIES {
            match self.open_file(name, how) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => return Ok((other?, false)),
            }
            match rustix::fs::openat(&self.0, name, how | NEW_NAME, FILE_MODE) {
                Err(Errno::EXIST) => {}
                other => return Ok((File::from(other?), true)),
            }
        }
        Err(contended())
    }

    /// Creates a file, replacing any of that name.
    pub(crate) fn create(&self, name: &OsStr, how: OFlags) -> io::Result<File> {
        for _ in 0..TRIES {
            match rustix::fs::openat(&self.0, name, how | NEW_NAME, FILE_MODE) {
                Err(Errno::EXIST) => self.remove(name)?,
                other => return Ok(File::from(other?)),
            }
        }
        Err(contended())
    }

    /// Creates a nameless file, where the file system supports it.
    pub(crate) fn create_nameless(&self) -> rustix::io::Result<File> {
        let how = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        rustix::fs::openat(&self.0, ".", how, Mode::RUSR | Mode::WUSR).map(File::from)
    }

    /// Makes a new directory for this user alone, named `prefix` and a random number.
    pub(crate) fn make_private(&self, prefix: &str) -> io::Result<String> {
        for _ in 0..TRIES {
            let name = format!("{prefix}{:016x}", RandomState::new().hash_one(prefix));
            match rustix::fs::mkdirat(&self.0, &name, Mode::RWXU) {
                Err(Errno::EXIST) => {}
                other => return other.map(|()| name).map_err(io::Error::from),
            }
        }
        Err(contended())
    }

    /// Renames a file, replacing any of the new name.
    pub(crate) fn rename(&self, name: &OsStr, to: &Folder, new: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, name, &to.0, new)?)
    }

    /// Removes a file; no error if it is absent.
    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        absent_is_fine(rustix::fs::unlinkat(&self.0, name, AtFlags::empty()))
    }

    /// Removes a directory with its content, or any other file; no error if it is absent.
    pub(crate) fn remove_all(&self, name: &OsStr) -> io::Result<()> {
        remove_tree(&self.0, name)
    }

    /// The status of a name, without following links.
    pub(crate) fn status(&self, name: &OsStr) -> rustix::io::Result<Stat> {
        rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Device and inode number of a name.
    pub(crate) fn identity(&self, name: &OsStr) -> io::Result<(u64, u64)> {
        let found = self.status(name)?;
        Ok((found.st_dev, found.st_ino))
    }

    /// The target of a symbolic link.
    pub(crate) fn read_link(&self, name: &OsStr) -> io::Result<Vec<u8>> {
        Ok(rustix::fs::readlinkat(&self.0, name, Vec::new())?.into_bytes())
    }

    /// The number of its file system.
    pub(crate) fn file_system(&self) -> io::Result<u64> {
        // The type of the number differs between architectures; no kind needs more than 32 bits.
        Ok(rustix::fs::fstatfs(&self.0)?.f_type as u32 as u64)
    }

    /// Makes the names in it durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        sync(&self.0)
    }
}

/// Makes the names in a directory durable.
fn sync(directory: &OwnedFd) -> io::Result<()> {
    let readable = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let synced = rustix::fs::openat(directory, ".", readable, Mode::empty()).and_then(rustix::fs::fsync);
    match synced {
        // Some network file systems cannot sync a directory and need not.
        Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        other => Ok(other?),
    }
}

/// Opens a directory for access to its names; with `make`, makes missing directories on the way.
fn reach(path: &Path, make: bool) -> io::Result<OwnedFd> {
    match rustix::fs::openat2(CWD, path, REACH, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(directory) => return Ok(directory),
        // A link on the way. Or the kernel has no such call (before Linux 5.6), or a container forbids it.
        Err(Errno::LOOP | Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::OPNOTSUPP) => {}
        Err(Errno::NOENT) if make => {}
        Err(errno) => return Err(errno.into()),
    }
    let start = if path.is_absolute() { "/" } else { "." };
    let mut at = rustix::fs::openat(CWD, start, REACH, Mode::empty())?;
    let mut passed = PathBuf::new();
    for part in path.components() {
        passed.push(part);
        at = match part {
            Component::Normal(name) => step(&at, name, &passed, make)?,
            Component::ParentDir => rustix::fs::openat(&at, "..", REACH, Mode::empty())?,
            Component::CurDir | Component::RootDir | Component::Prefix(_) => at,
        };
    }
    Ok(at)
}

/// Opens a directory in another, by its name or by a link of the user's own. `shown` is its path, for errors.
fn step(at: &OwnedFd, name: &OsStr, shown: &Path, make: bool) -> io::Result<OwnedFd> {
    let own_name = || rustix::fs::openat(at, name, REACH | OFlags::NOFOLLOW, Mode::empty());
    let found = match own_name() {
        Err(Errno::NOENT) if make => {
            match rustix::fs::mkdirat(at, name, DIRECTORY_MODE) {
                // Another thread or process made it.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            sync(at)?;
            own_name()
        }
        other => other,
    };
    match found {
        Err(Errno::NOTDIR | Errno::LOOP) => {}
        other => return Ok(other?),
    }
    // The link itself is open: the link that is checked is the one that is followed.
    let link = rustix::fs::openat(at, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let status = rustix::fs::fstat(&link)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::Symlink {
        return Err(Errno::NOTDIR.into());
    }
    if !is_trusted(status.st_uid) {
        return Err(io::Error::other(format!(
            "{} is a symbolic link of another user ({}), which is not followed to write; name the directory that it \
             leads to, or put a link of your own in its place",
            shown.display(),
            status.st_uid
        )));
    }
    let target = rustix::fs::readlinkat(&link, "", Vec::new())?;
    Ok(rustix::fs::openat(at, OsStr::from_bytes(target.as_bytes()), REACH, Mode::empty())?)
}

/// Whether links of a user are followed: those of this user, and those of root.
pub(crate) fn is_trusted(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

fn remove_tree(at: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match rustix::fs::unlinkat(at, name, AtFlags::empty()) {
        // The errors for a directory, of POSIX and of Linux.
        Err(Errno::PERM | Errno::ISDIR) => {}
        other => return absent_is_fine(other),
    }
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match rustix::fs::openat(at, name, how, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => return Err(Errno::PERM.into()),
        other => other?,
    };
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        if ![&b"."[..], b".."].contains(&entry.file_name().to_bytes()) {
            remove_tree(&directory, OsStr::from_bytes(entry.file_name().to_bytes()))?;
        }
    }
    absent_is_fine(rustix::fs::unlinkat(at, name, AtFlags::REMOVEDIR))
}

fn absent_is_fine(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        other => Ok(other?),
    }
}

fn name_of(path: &Path) -> io::Result<&OsStr> {
    path.file_name().ok_or_else(|| io::Error::other("the path has no file name"))
}

/// The error of opening anything but a regular file.
fn not_a_file() -> io::Error {
    io::Error::other("it is not a regular file")
}

fn contended() -> io::Error {
    io::Error::other("another process makes and removes a file of that name again and again")
}

/// Creates a nameless file in the directory of `path`: it never outlives the process.
pub(crate) fn nameless(path: &Path) -> Result<File, DiskError> {
    let failed = |source| DiskError::from_io(Operation::Create, path, source);
    let folder = Folder::make(parent(path)).map_err(failed)?;
    match folder.create_nameless() {
        Ok(file) => Ok(file),
        // Not every file system supports it. If the process is killed before the name is removed, the file is a
        // leftover that the next run removes.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
            let named = temporary_of(path)?;
            let name = named.file_name().unwrap_or_default();
            let file = folder.create(name, OFlags::RDWR).map_err(failed)?;
            folder.remove(name).map_err(failed)?;
            Ok(file)
        }
        Err(errno) => Err(failed(errno.into())),
    }
}

/// The kind of a file that is not a regular one, in words.
pub(crate) fn kind_words(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Socket => "a socket",
        FileType::Fifo => "a pipe",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "a special file",
    }
}

/// The directory that holds a path; `.` for a bare name.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().map_or(Path::new("/"), here_if_empty)
}

pub(crate) fn here_if_empty(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

pub(crate) fn sync_directory(directory: &Path) -> Result<(), DiskError> {
    File::open(directory)
        .and_then(|file| file.sync_all())
        .or_else(|source| match source.raw_os_error().map(Errno::from_raw_os_error) {
            // Some network file systems cannot sync a directory and need not.
            Some(Errno::INVAL | Errno::NOTSUP) => Ok(()),
            _ => Err(source),
        })
        .map_err(|source| DiskError::from_io(Operation::Sync, directory, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    /// Gives a link to another user. Only root can.
    fn give_away(link: &Path) -> bool {
        lchown(link, Some(12_345), None).is_ok()
    }

    #[test]
    fn links_of_the_user_lead_to_directories() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::create_dir(path("there")).unwrap();
        symlink("there", path("relative")).unwrap();
        symlink(path("there"), path("absolute")).unwrap();
        for link in ["relative", "absolute", "absolute/../relative"] {
            let file = path(link).join("a/b");
            let (folder, name) = Folder::make_of(&file).unwrap();
            folder.create(name, OFlags::WRONLY).unwrap();
            assert!(path("there/a/b").is_file(), "{link}");
            fs::remove_dir_all(path("there/a")).unwrap();
        }
        assert_eq!(Folder::open(&path("relative/no")).unwrap_err().kind(), io::ErrorKind::NotFound);
        symlink("nowhere", path("dangling")).unwrap();
        assert!(Folder::make(&path("dangling")).is_err() && !path("nowhere").exists());
        fs::write(path("file"), b"").unwrap();
        assert_eq!(Folder::make(&path("file")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert_eq!(Folder::make(&path("file/x")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn links_of_other_users_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::create_dir(path("there")).unwrap();
        symlink(path("there"), path("link")).unwrap();
        if !give_away(&path("link")) {
            return println!("not root: no link can be given to another user");
        }
        for below in ["link", "link/x", "link/x/y"] {
            let error = Folder::make(&path(below)).unwrap_err().to_string();
            assert!(error.contains("link is a symbolic link of another user (12345)"), "{error}");
        }
        assert_eq!(fs::read_dir(path("there")).unwrap().count(), 0);
        // It can be removed, and leaves what it leads to.
        fs::write(path("there/kept"), b"").unwrap();
        Folder::open(place.path()).unwrap().remove_all(OsStr::new("link")).unwrap();
        assert!(!path("link").exists() && path("there/kept").exists());
    }

    #[test]
    fn a_name_is_never_followed() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::write(path("victim"), b"precious").unwrap();
        symlink("victim", path("link")).unwrap();
        fs::hard_link(path("victim"), path("second")).unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let (link, second) = (OsStr::new("link"), OsStr::new("second"));
        let error = folder.open_or_create(link, OFlags::RDWR).unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");
        let error = folder.open_or_create(second, OFlags::RDWR).unwrap_err();
        assert!(error.to_string().contains("hard link"), "{error}");
        for name in [link, second] {
            let mut file = folder.create(name, OFlags::WRONLY).unwrap();
            io::Write::write_all(&mut file, b"new").unwrap();
            assert_eq!(fs::read(place.path().join(name)).unwrap(), b"new");
        }
        assert_eq!(fs::read(path("victim")).unwrap(), b"precious");
        symlink("absent", path("dangling")).unwrap();
        assert!(folder.open_or_create(OsStr::new("dangling"), OFlags::RDWR).is_err());
        assert!(!path("absent").exists());
        let (_, is_new) = folder.open_or_create(OsStr::new("fresh"), OFlags::RDWR).unwrap();
        assert!(is_new && !folder.open_or_create(OsStr::new("fresh"), OFlags::RDWR).unwrap().1);
    }

    #[test]
    fn trees_are_removed_without_following_links() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::create_dir_all(path("tree/a/b")).unwrap();
        fs::create_dir(path("kept")).unwrap();
        for file in ["tree/x", "tree/a/y", "tree/a/b/z", "kept/file"] {
            fs::write(path(file), b"").unwrap();
        }
        symlink(path("kept"), path("tree/a/link")).unwrap();
        let folder = Folder::open(place.path()).unwrap();
        for _ in 0..2 {
            folder.remove_all(OsStr::new("tree")).unwrap();
            assert!(!path("tree").exists() && path("kept/file").exists());
        }
    }

    #[test]
    fn private_directories_are_new_and_closed() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let names: std::collections::BTreeSet<_> = (0..20).map(|_| folder.make_private("x-").unwrap()).collect();
        assert_eq!(names.len(), 20);
        for name in names {
            let mode = fs::metadata(place.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
    }
}
