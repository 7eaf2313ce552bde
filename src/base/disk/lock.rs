//! Locks that the kernel releases: at drop, at exit, and at `kill -9`.
//!
//! The lock is `flock` on a small file. The file stays when the lock is released; its content is only the note of the
//! last holder, so it never needs to be removed.

use crate::clock;
use crate::error::{DiskError, Operation};
use crate::file_names::kept_names;
use crate::folder::Folder;
use crate::open::{ReadableKind, open_to_read};
use rustix::fs::OFlags;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// A held lock, released on drop.
pub struct Lock {
    /// Releases the lock when it is dropped.
    _release: Box<dyn Send + Sync>,
}

/// The longest note; a longer one is foreign and is cut in messages.
const NOTE_BYTES_MAX: u64 = 4096;

/// The number of attempts to lock the file that currently has the name.
const TRIES: usize = 8;

impl Lock {
    pub(crate) fn new(release: impl Send + Sync + 'static) -> Self {
        Lock { _release: Box::new(release) }
    }

    /// Takes the lock on a real file, and makes its parent directories.
    ///
    /// A file of that name that is no lock is kept under another name. A new lock is durable, because it marks a
    /// directory as one of awari before anything else is written there.
    pub(crate) fn take(path: &Path, note: &str) -> Result<Self, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Lock, path, source);
        let (folder, name) = Folder::make_of(path).map_err(failed)?;
        for _ in 0..TRIES {
            let (file, _) = folder.open_or_create(name, OFlags::RDWR).map_err(failed)?;
            let held = LockedFile::of(file, path)?;
            let identity = held.0.metadata().map(|ours| (ours.dev(), ours.ino())).map_err(failed)?;
            // Between opening and locking, another process may have removed the file, and a third locked a new one.
            if folder.identity(name).ok() != Some(identity) {
                continue;
            }
            let found = read(&held.0).map_err(failed)?;
            if !is_lock_note(&found) {
                set_aside(&folder, name).map_err(failed)?;
                continue;
            }
            held.write(note, !has_note(&found), &folder).map_err(failed)?;
            return Ok(Lock::new(held));
        }
        Err(failed(io::Error::other(
            "another process keeps removing the file; do not remove it, the lock ends with its process",
        )))
    }

    /// The note of the process that holds the lock on a real file, if one does. Writes nothing.
    pub(crate) fn holder(path: &Path) -> Result<Option<String>, DiskError> {
        let failed = |source: io::Error| DiskError::from_io(Operation::Lock, path, source);
        let file = match open_to_read(path, ReadableKind::File) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => Ok(Some(read_note(&file))),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}

/// Renames a file to the first free name `NAME.kept-N`.
fn set_aside(folder: &Folder, name: &OsStr) -> io::Result<()> {
    for kept in kept_names(Path::new(name)) {
        let kept = kept.file_name().unwrap_or_default();
        if folder.identity(kept).is_err() {
            folder.rename(name, folder, kept)?;
            return folder.sync();
        }
    }
    Err(io::Error::other("it is not a lock of awari, and all names to keep it under are taken; move it away"))
}

/// A locked file.
pub(crate) struct LockedFile(File);

impl LockedFile {
    /// Locks an open file.
    pub(crate) fn of(file: File, path: &Path) -> Result<LockedFile, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Lock, path, source);
        match file.try_lock() {
            Ok(()) => Ok(LockedFile(file)),
            Err(TryLockError::WouldBlock) => {
                Err(DiskError::Locked { path: path.to_path_buf(), holder: read_note(&file) })
            }
            Err(TryLockError::Error(source)) if source.kind() == io::ErrorKind::Unsupported => {
                let what = "this file system does not support locks, so a second run could not be kept out; choose another \
                     directory";
                Err(failed(io::Error::other(what)))
            }
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// Writes the note of this process. The file is not truncated first: after a crash it is still recognized as a
    /// lock.
    fn write(&self, note: &str, is_new: bool, folder: &Folder) -> io::Result<()> {
        let note = holder_note(note);
        self.0.write_all_at(note.as_bytes(), 0)?;
        self.0.set_len(note.len() as u64)?;
        if is_new {
            self.0.sync_all()?;
            folder.sync()?;
        }
        Ok(())
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing is not enough: a child that another thread has just forked holds a copy of the descriptor until
        // it calls `exec`.
        let _ = self.0.unlock();
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lock")
    }
}

/// The start of each note.
const NOTE_BEGIN: &[u8] = b"process ";

/// The text after the number of the process.
const NOTE_HOST: &[u8] = b" on ";

/// The note of this process, for processes that find the lock taken.
pub(crate) fn holder_note(note: &str) -> String {
    format!("process {} on {} since {}: {note}\n", std::process::id(), clock::host(), clock::utc(clock::now_seconds()))
}

/// Whether these are the bytes of a lock file, with its note or with a note lost in a crash.
pub fn is_lock_note(bytes: &[u8]) -> bool {
    has_note(bytes) || bytes.iter().all(|&byte| byte == 0)
}

/// Whether the bytes of a lock file contain a note.
pub(crate) fn has_note(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.strip_prefix(NOTE_BEGIN) else { return false };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && rest[digits..].starts_with(NOTE_HOST)
}

/// The beginning of a lock file.
fn read(mut file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(NOTE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The note in a lock file, on one line and fit for printing.
fn read_note(file: &File) -> String {
    // The lock is reported as taken even if its note cannot be read.
    let bytes = read(file).unwrap_or_default();
    let note = String::from_utf8_lossy(&bytes);
    let printable: String = note.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if printable.is_empty() { "an unknown process".to_owned() } else { printable }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_taker_learns_who_holds_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let lock = Lock::take(&path, "awari run small.toml").unwrap();
        let error = Lock::take(&path, "awari run again").unwrap_err();
        assert!(matches!(error, DiskError::Locked { .. }));
        let text = error.to_string();
        let process = format!("process {}", std::process::id());
        assert!(text.contains(&process), "{text}");
        assert!(text.contains("awari run small.toml"), "{text}");
        drop(lock);
        Lock::take(&path, "awari run again").unwrap();
    }

    /// A lock on a removed file excludes no process, so it must not be granted.
    #[test]
    fn a_removed_file_is_locked_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let first = Lock::take(&path, "first").unwrap();
        std::fs::remove_file(&path).unwrap();
        let second = Lock::take(&path, "second").unwrap();
        assert!(Lock::take(&path, "third").unwrap_err().to_string().contains("second"));
        drop((first, second));
    }

    #[test]
    fn strange_notes_stay_printable() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let lock = Lock::take(&path, "x").unwrap();
        std::fs::write(&path, b"\x1b[31m\xff\nred").unwrap();
        let text = Lock::take(&path, "y").unwrap_err().to_string();
        assert!(!text.contains(char::is_control), "{text:?}");
        std::fs::write(&path, b"").unwrap();
        let text = Lock::take(&path, "y").unwrap_err().to_string();
        assert!(text.contains("an unknown process"), "{text:?}");
        drop(lock);
    }

    #[test]
    fn a_file_that_is_no_lock_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let content = |name: &str| std::fs::read(directory.path().join(name)).unwrap();
        for (number, foreign) in [&b"my notes"[..], b"\0my notes", b"process list: mine"].into_iter().enumerate() {
            std::fs::write(&path, foreign).unwrap();
            assert_eq!(Lock::holder(&path).unwrap(), None);
            let lock = Lock::take(&path, "first").unwrap();
            assert!(matches!(Lock::take(&path, "second"), Err(DiskError::Locked { .. })));
            assert_eq!(content(&format!("lock.kept-{}", number + 1)), foreign);
            assert!(content("lock").starts_with(NOTE_BEGIN));
            drop(lock);
        }
        // Without a note, as after a loss of power, and with an old and longer one.
        for ours in [vec![], vec![0; 100], [b"process 7 on ", &[b'x'; 2000][..]].concat()] {
            std::fs::write(&path, ours).unwrap();
            drop(Lock::take(&path, "third").unwrap());
            assert!(content("lock").ends_with(b": third\n") && content("lock").len() < 200);
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 4);
    }

    #[test]
    fn finding_the_holder_writes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        assert_eq!(Lock::holder(&path).unwrap(), None);
        assert!(!path.exists());
        let lock = Lock::take(&path, "the run").unwrap();
        let note = std::fs::read_to_string(&path).unwrap();
        assert_eq!(Lock::holder(&path).unwrap().as_deref(), Some(note.trim()));
        drop(lock);
        assert_eq!(Lock::holder(&path).unwrap(), None);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), note);
    }

    /// A child process holds the lock and is killed with SIGKILL; the lock is free at once.
    #[test]
    fn death_of_the_holder_releases_it() {
        const CHILD: &str = "DISK_LOCK_TEST_CHILD";
        if let Some(path) = std::env::var_os(CHILD) {
            let _lock = Lock::take(Path::new(&path), "child").unwrap();
            println!("held");
            std::thread::sleep(std::time::Duration::from_secs(60));
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "lock::tests::death_of_the_holder_releases_it"])
            .arg("--nocapture")
            .env(CHILD, &path)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("held") {
            line.clear();
            let read = std::io::BufRead::read_line(&mut output, &mut line).unwrap();
            assert_ne!(read, 0, "the child ended before it held the lock");
        }
        assert!(matches!(Lock::take(&path, "parent"), Err(DiskError::Locked { .. })));
        child.kill().unwrap();
        child.wait().unwrap();
        Lock::take(&path, "parent").unwrap();
    }
}
