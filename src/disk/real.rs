//! The disk of the operating system.

use std::fmt;
use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::deliver::check_replaceable;
use crate::error::{DiskError, Operation};
use crate::file::RealFile;
use crate::folder::{Folder, not_a_file};
use crate::io::Io;
use crate::machine::{TMPFS_MAGIC, file_system};
use crate::output::RealOutput;
use crate::pool::Pool;
use crate::staged::{probe, temporary_of};
use crate::{Disk, Input, Lock, Mapping, Output, Scratch, Traffic};

/// The real file system. Clones share buffers and traffic; a process needs one.
///
/// Large reads and writes leave the page cache aside where the file system allows it, and go through `io_uring` where
/// [`Io`] and the kernel allow it. Buffers take at most [`POOL_BYTES_MAX`](crate::POOL_BYTES_MAX), once they are used.
#[derive(Clone, Default)]
pub struct RealDisk {
    pub(crate) pool: Arc<Pool>,
}

impl RealDisk {
    /// The file system, reached in this way.
    ///
    /// # Errors
    /// [`DiskError::RingRefused`] if a ring is asked for and the kernel refuses it.
    pub fn new(io: Io) -> Result<Self, DiskError> {
        let disk = RealDisk { pool: Arc::new(Pool::new(io)) };
        if io == Io::Uring {
            disk.pool.share().map_err(|source| DiskError::RingRefused { source })?;
        }
        Ok(disk)
    }
}

impl fmt::Debug for RealDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RealDisk({})", self.pool.io)
    }
}

impl Disk for RealDisk {
    fn read(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Read, path, source);
        // A manifest may come through a pipe. What nobody writes into is at its end then, and not waited for.
        let file = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path).map_err(failed)?;
        rustix::fs::fcntl_setfl(&file, OFlags::empty()).map_err(|errno| failed(errno.into()))?;
        let expected = file.metadata().map_err(failed)?.len();
        let mut bytes = Vec::with_capacity(expected.min(bytes_max) as usize);
        // One byte more than allowed tells "too large" also for a file that grows meanwhile.
        file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
        let found = bytes.len() as u64;
        self.pool.meter.add_read(found);
        if found > bytes_max {
            return Err(DiskError::TooLarge { path: path.to_path_buf(), bytes: expected.max(found), bytes_max });
        }
        Ok(bytes)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Output>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Create, path, source);
        let (folder, name) = Folder::make_of(path).map_err(failed)?;
        let file = folder.create(name, OFlags::WRONLY).map_err(failed)?;
        Ok(Box::new(RealOutput::create(file, path, true, self.pool.clone())))
    }

    fn append(&self, path: &Path) -> Result<Box<dyn Output>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Create, path, source);
        let (folder, name) = Folder::make_of(path).map_err(failed)?;
        let how = OFlags::WRONLY | OFlags::APPEND;
        let (file, name_is_new) = folder.open_or_create(name, how).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok(Box::new(RealOutput::append(file, path, bytes, name_is_new, self.pool.clone())))
    }

    fn truncate(&self, path: &Path, bytes: u64) -> Result<(), DiskError> {
        let failed = |source| DiskError::from_io(Operation::Truncate, path, source);
        let opened = Folder::of(path).and_then(|(folder, name)| folder.open_file(name, OFlags::WRONLY));
        let file = opened.map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        if found < bytes {
            return Err(failed(too_short(found, bytes)));
        }
        file.set_len(bytes).map_err(failed)?;
        file.sync_all().map_err(failed)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Input>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Read, path, source);
        let file = open_file(path, OpenOptions::new().read(true)).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok(Box::new(RealFile::input(file, path, bytes, self.pool.clone())))
    }

    fn open_scattered(&self, path: &Path) -> Result<Box<dyn Input>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Read, path, source);
        let file = open_file(path, OpenOptions::new().read(true)).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok(Box::new(RealFile::scattered(file, path, bytes, self.pool.clone())))
    }

    fn scratch(&self, path: &Path, bytes: u64) -> Result<Box<dyn Scratch>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Create, path, source);
        let file = nameless(path)?;
        let file = RealFile::scratch(file, path, bytes, self.pool.clone());
        let file = file.map_err(|source| failed(source).with_shortage(bytes, free_bytes(parent(path)).ok()))?;
        Ok(Box::new(file))
    }

    fn working(&self, path: &Path, bytes: u64) -> Result<Box<dyn Scratch>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Create, path, source);
        let (folder, name) = Folder::make_of(path).map_err(failed)?;
        let (file, _) = folder.open_or_create(name, OFlags::RDWR).map_err(failed)?;
        let file = RealFile::working(file, path, bytes, self.pool.clone());
        let file = file.map_err(|source| failed(source).with_shortage(bytes, free_bytes(parent(path)).ok()))?;
        folder.sync().map_err(|source| DiskError::from_io(Operation::Sync, parent(path), source))?;
        Ok(Box::new(file))
    }

    fn map(&self, path: &Path) -> Result<Mapping, DiskError> {
        open_file(path, OpenOptions::new().read(true))
            .and_then(|file| Mapping::of_file(file, path))
            .map_err(|source| DiskError::from_io(Operation::Map, path, source))
    }

    fn bytes(&self, path: &Path) -> Result<Option<u64>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Measure, path, source);
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
            Ok(_) => Err(failed(io::Error::other("it is not a regular file"))),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(failed(source)),
        }
    }

    fn allocated_bytes(&self, path: &Path) -> Result<u64, DiskError> {
        const SECTOR_BYTES: u64 = 512;
        match fs::symlink_metadata(path) {
            Ok(metadata) => Ok(metadata.blocks() * SECTOR_BYTES),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(source) => Err(DiskError::from_io(Operation::Measure, path, source)),
        }
    }

    fn check_replaceable(&self, path: &Path) -> Result<(), DiskError> {
        check_replaceable(path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, DiskError> {
        list(directory, |kind| !kind.is_dir())
    }

    fn list_directories(&self, directory: &Path) -> Result<Vec<PathBuf>, DiskError> {
        list(directory, FileType::is_dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        let failed = |source| DiskError::from_io(Operation::Rename, from, source);
        let unsynced = |of: &Path, source| DiskError::from_io(Operation::Sync, parent(of), source);
        let (old_folder, old_name) = Folder::of(from).map_err(failed)?;
        let (folder, name) = Folder::of(to).map_err(failed)?;
        old_folder.rename(old_name, &folder, name).map_err(failed)?;
        folder.sync().map_err(|source| unsynced(to, source))?;
        if parent(from) != parent(to) {
            old_folder.sync().map_err(|source| unsynced(from, source))?;
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        absent_is_fine(Folder::of(path).and_then(|(folder, name)| folder.remove(name)))
            .map_err(|source| DiskError::from_io(Operation::Remove, path, source))
    }

    fn remove_dir_all(&self, directory: &Path) -> Result<(), DiskError> {
        absent_is_fine(Folder::of(directory).and_then(|(folder, name)| folder.remove_all(name)))
            .map_err(|source| DiskError::from_io(Operation::Remove, directory, source))
    }

    fn create_dir_all(&self, directory: &Path) -> Result<(), DiskError> {
        let made = Folder::make(directory).map(drop);
        made.map_err(|source| DiskError::from_io(Operation::MakeDirectory, directory, source))
    }

    fn create_dir(&self, directory: &Path) -> Result<(), DiskError> {
        match Folder::open(parent(directory)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(DiskError::NoDirectory { path: parent(directory).to_path_buf() })
            }
            Err(source) => Err(DiskError::from_io(Operation::MakeDirectory, directory, source)),
            Ok(_) => self.create_dir_all(directory),
        }
    }

    fn create_private_dir(&self, parent: &Path, prefix: &str) -> Result<PathBuf, DiskError> {
        let made = Folder::open(parent).and_then(|folder| folder.make_private(prefix));
        made.map(|name| parent.join(name))
            .map_err(|source| DiskError::from_io(Operation::MakeDirectory, parent, source))
    }

    fn canonical(&self, path: &Path) -> PathBuf {
        let mut behind = Vec::new();
        for existing in path.ancestors() {
            let existing_or_here = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
            if let Ok(canonical) = fs::canonicalize(existing_or_here) {
                return behind.into_iter().rev().fold(canonical, |at, name| at.join(name));
            }
            behind.extend(existing.file_name());
        }
        path.to_path_buf()
    }

    fn free_bytes(&self, directory: &Path) -> Result<u64, DiskError> {
        free_bytes(directory)
    }

    fn probe(&self, directory: &Path, bytes: u64) -> Result<(), DiskError> {
        self.create_dir_all(directory)?;
        // Where files are memory, what is set aside is taken.
        let is_memory = file_system(directory).is_ok_and(|kind| kind == TMPFS_MAGIC);
        probe(self, directory, if is_memory { 0 } else { bytes })
    }

    fn post(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        let temporary = temporary_of(path)?;
        let written = || {
            let (folder, name) = Folder::of(path)?;
            let temporary = temporary.file_name().unwrap_or_default();
            folder.create(temporary, OFlags::WRONLY)?.write_all(bytes)?;
            folder.rename(temporary, &folder, name)
        };
        written().map_err(|source| DiskError::from_io(Operation::Write, path, source))
    }

    fn traffic(&self) -> Traffic {
        self.pool.meter.read()
    }

    fn lock(&self, path: &Path, note: &str) -> Result<Lock, DiskError> {
        Lock::take(path, note)
    }

    fn lock_holder(&self, path: &Path) -> Result<Option<String>, DiskError> {
        Lock::holder(path)
    }
}

/// Paths of the entries of some kinds in a directory, sorted.
fn list(directory: &Path, is_listed: impl Fn(&FileType) -> bool) -> Result<Vec<PathBuf>, DiskError> {
    let failed = |source| DiskError::from_io(Operation::List, directory, source);
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(source)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if is_listed(&entry.file_type().map_err(failed)?) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// A new file without a name in the directory of `path`: it cannot outlive the process, whenever that is killed.
pub(crate) fn nameless(path: &Path) -> Result<File, DiskError> {
    let failed = |source| DiskError::from_io(Operation::Create, path, source);
    let folder = Folder::make(parent(path)).map_err(failed)?;
    match folder.create_nameless() {
        Ok(file) => Ok(file),
        // Not every file system can. Killed before it loses its name, the file is a leftover, which the next run removes.
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

/// The bytes that may still be written below a directory, which need not exist yet.
pub(crate) fn free_bytes(directory: &Path) -> Result<u64, DiskError> {
    let mut at = directory;
    loop {
        match rustix::fs::statvfs(here_if_empty(at)) {
            Ok(found) => return Ok(found.f_bavail.saturating_mul(found.f_frsize)),
            // Not made yet: its parent will hold it.
            Err(Errno::NOENT) if at.parent().is_some() => at = parent(at),
            Err(errno) => {
                let source = errno.into();
                return Err(DiskError::from_io(Operation::FreeSpace, directory, source));
            }
        }
    }
}

/// Keeps who opens a pipe from waiting for the other end. For files it means nothing.
const NONBLOCK: i32 = OFlags::NONBLOCK.bits() as i32;

/// Opens a file to read it, and nothing else that may have its name. To open a pipe would wait for whoever writes into it.
pub(crate) fn open_file(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    let file = how.custom_flags(NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_a_file()) }
}

/// The directory that holds a path; `.` for a bare name.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().map_or(Path::new("/"), here_if_empty)
}

fn here_if_empty(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Why a file cannot be cut to a length it does not have.
pub(crate) fn too_short(found: u64, expected: u64) -> io::Error {
    io::Error::other(format!("it has {}, expected at least {expected}", crate::error::bytes(found)))
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
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
    use crate::Staged;

    #[test]
    fn write_append_cut_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/c");
        assert_eq!(RealDisk::default().bytes(&path).unwrap(), None);
        let mut output = RealDisk::default().create(&path).unwrap();
        output.reserve(1 << 20).unwrap();
        output.write(b"one").unwrap();
        output.sync().unwrap();
        drop(output);
        let mut output = RealDisk::default().append(&path).unwrap();
        output.write(b"two").unwrap();
        output.sync().unwrap();
        assert_eq!(RealDisk::default().read(&path, 6).unwrap(), b"onetwo");
        let error = RealDisk::default().read(&path, 5).unwrap_err();
        assert!(matches!(error, DiskError::TooLarge { bytes: 6, bytes_max: 5, .. }), "{error}");
        RealDisk::default().truncate(&path, 4).unwrap();
        assert!(RealDisk::default().truncate(&path, 5).is_err());
        assert_eq!(&RealDisk::default().map(&path).unwrap()[..], b"onet");
        RealDisk::default().truncate(&path, 0).unwrap();
        assert!(RealDisk::default().map(&path).unwrap().is_empty());
        assert!(RealDisk::default().bytes(directory.path()).is_err());
    }

    #[test]
    fn a_scratch_file_has_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b");
        let scratch = RealDisk::default().scratch(&path, 10).unwrap();
        assert!(!path.exists());
        scratch.write_at(7, b"xyz").unwrap();
        let mut found = [1; 10];
        scratch.read_at(0, &mut found).unwrap();
        assert_eq!(&found, b"\0\0\0\0\0\0\0xyz");
        assert!(scratch.read_at(8, &mut found[..3]).is_err());
        RealDisk::default().create(&path).unwrap().write(b"named").unwrap();
        let input = RealDisk::default().open(&path).unwrap();
        input.read_at(2, &mut found[..3]).unwrap();
        assert_eq!((input.bytes(), &found[..3]), (5, &b"med"[..]));
        assert!(RealDisk::default().open(&directory.path().join("none")).err().unwrap().is_not_found());
    }

    #[test]
    fn a_working_file_is_taken_up() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b");
        let memory = crate::MemoryDisk::new();
        for disk in [&RealDisk::default() as &dyn Disk, &memory] {
            let working = disk.working(&path, 10_000).unwrap();
            working.write_at(5_000, b"abc").unwrap();
            working.write_at(9_997, b"xyz").unwrap();
            drop(working);
            let mut found = [1; 5];
            for (bytes, at, expected) in
                [(20_000, 9_996, b"\0xyz\0"), (8_192, 4_999, b"\0abc\0"), (10_000, 9_995, b"\0\0\0\0\0")]
            {
                let working = disk.working(&path, bytes).unwrap();
                assert_eq!(working.bytes(), bytes);
                working.read_at(at, &mut found).unwrap();
                assert_eq!(&found, expected, "{bytes}");
            }
        }
    }

    #[test]
    fn runs_are_written_like_one_after_the_other() {
        let directory = tempfile::tempdir().unwrap();
        for io in [Io::Auto, Io::Plain] {
            let disk = RealDisk::new(io).unwrap();
            let working = disk.working(&directory.path().join("runs"), 4 << 20).unwrap();
            let of = |at: usize, bytes: usize| vec![at as u8 + 1; bytes];
            for bytes in [4096, 8192, 100] {
                let runs: Vec<_> = (0..40).map(|at| (at as u64 * 16_384, of(at, bytes))).collect();
                let runs: Vec<_> =
                    runs.iter().map(|(at, bytes)| (*at, &bytes[..])).chain([(1 << 20, &[9; 1 << 20][..])]).collect();
                working.write_runs(&runs).unwrap();
                for (at, bytes) in runs {
                    let mut found = vec![0; bytes.len()];
                    working.read_at(at, &mut found).unwrap();
                    assert!(found == bytes, "{io} {at}");
                }
            }
        }
    }

    #[test]
    fn runs_are_each_given_once() {
        let directory = tempfile::tempdir().unwrap();
        let memory = crate::MemoryDisk::new();
        let [ring, plain] = [Io::Auto, Io::Plain].map(|io| RealDisk::new(io).unwrap());
        for (number, disk) in [&ring as &dyn Disk, &plain, &memory].into_iter().enumerate() {
            let bytes: Vec<u8> = (0..3_u32 << 20).map(|at| (at / 512) as u8 ^ (at >> 17) as u8).collect();
            let working = disk.working(&directory.path().join("given"), bytes.len() as u64).unwrap();
            working.write_at(0, &bytes).unwrap();
            // In blocks, out of order; then across blocks, and longer than what is read together.
            let blocks: Vec<_> = (0..60).map(|at| (at * 37 % 60 * 49_152, 4096 << (at % 4))).collect();
            let others = vec![(5, 100), (1 << 20, crate::RUN_BYTES_MAX + 4096), (0, 0), (4095, 4097)];
            for runs in [blocks, others, Vec::new()] {
                let mut given = vec![0; runs.len()];
                let mut each = |run: usize, found: &mut [u8]| {
                    let (offset, length) = runs[run];
                    assert!(found == &bytes[offset as usize..][..length], "{number} {offset} {length}");
                    // It is the receiver's to change.
                    found.fill(0);
                    given[run] += 1;
                };
                working.read_runs(&runs, &mut each).unwrap();
                assert!(given.iter().all(|&times| times == 1), "{number} {given:?}");
            }
            let beyond = [(0, 4096), (bytes.len() as u64, 4096)];
            assert!(working.read_runs(&beyond, &mut |run, _| assert_eq!(run, 0)).is_err());
        }
    }

    #[test]
    fn sync_gives_reserved_space_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let mut output = RealDisk::default().create(&path).unwrap();
        output.reserve(4 << 20).unwrap();
        output.write(b"small").unwrap();
        output.sync().unwrap();
        assert!(fs::metadata(&path).unwrap().blocks() * 512 < 1 << 20);
    }

    #[test]
    fn absent_things() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("none/at/all");
        assert!(RealDisk::default().read(&path, 1).unwrap_err().is_not_found());
        assert!(RealDisk::default().map(&path).unwrap_err().is_not_found());
        assert!(RealDisk::default().truncate(&path, 0).unwrap_err().is_not_found());
        assert!(RealDisk::default().rename(&path, &path).unwrap_err().is_not_found());
        RealDisk::default().remove(&path).unwrap();
        RealDisk::default().remove_dir_all(&path).unwrap();
        assert!(RealDisk::default().list(&path).unwrap().is_empty());
        assert!(RealDisk::default().free_bytes(&path).unwrap() > 0);
        assert!(RealDisk::default().free_bytes(Path::new("no-such-directory/x")).unwrap() > 0);
    }

    #[test]
    fn lists_files_sorted() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["b", "a", ".c"] {
            RealDisk::default().create(&directory.path().join(name)).unwrap();
        }
        RealDisk::default().create_dir_all(&directory.path().join("d/e")).unwrap();
        let names: Vec<_> = RealDisk::default()
            .list(directory.path())
            .unwrap()
            .iter()
            .map(|path| path.file_name().unwrap().to_owned())
            .collect();
        assert_eq!(names, [".c", "a", "b"]);
        RealDisk::default().remove_dir_all(directory.path()).unwrap();
        assert!(!directory.path().exists());
    }

    #[test]
    fn a_full_disk_is_reported_with_numbers() {
        let path = Path::new("/dev/full");
        let file = OpenOptions::new().append(true).open(path).unwrap();
        let mut output = RealOutput::append(file, path, 0, false, RealDisk::default().pool);
        let error = output.write(&[0; 4096]).unwrap_err();
        assert!(error.is_no_space(), "{error}");
        assert!(error.to_string().contains("4096 bytes needed"), "{error}");

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("huge");
        let Err(error) = Staged::create(&RealDisk::default(), &path, 1 << 60) else {
            panic!("an exbibyte was free");
        };
        // Some file systems call this "file too large" rather than "no space".
        assert!(error.to_string().contains("reserve"), "{error}");
        assert!(RealDisk::default().list(directory.path()).unwrap().is_empty());
    }

    #[test]
    fn an_old_map_outlives_a_new_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let disk = RealDisk::default();
        for text in [b"old", b"new"] {
            let before = RealDisk::default().bytes(&path).unwrap().map(|_| RealDisk::default().map(&path).unwrap());
            let mut staged = Staged::create(&disk, &path, 3).unwrap();
            staged.write(text).unwrap();
            assert_eq!(staged.publish().unwrap(), 3);
            assert_eq!(&RealDisk::default().map(&path).unwrap()[..], text);
            if let Some(before) = before {
                assert_eq!(&before[..], b"old");
            }
        }
    }

    #[test]
    fn a_place_has_one_canonical_name() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| RealDisk::default().canonical(&directory.path().join(path));
        fs::create_dir(directory.path().join("run")).unwrap();
        fs::create_dir(directory.path().join("other")).unwrap();
        std::os::unix::fs::symlink(directory.path().join("run"), directory.path().join("link")).unwrap();
        for same in ["run", "link", "other/../run", "run/.", "link/../link"] {
            assert_eq!(at(same), at("run"), "{same}");
        }
        assert_eq!(at("link/new/place"), at("run").join("new/place"));
    }
}
