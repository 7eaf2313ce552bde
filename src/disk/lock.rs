//! Locks that the kernel releases: at drop, at exit, and at `kill -9`.
//!
//! The lock is `flock` on a small file. The file stays behind when the lock goes; its content is only
//! the note of the last holder, so nobody ever needs to remove it.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::clock;
use crate::error::{DiskError, Operation};
use crate::real::open_file;

/// A lock held. Dropping it releases it.
pub struct Lock {
    /// Whatever lets go of the lock when it is dropped.
    _release: Box<dyn Send + Sync>,
}

/// A note longer than this was not written by us and is cut in messages.
const NOTE_BYTES_MAX: u64 = 4096;

/// How often to try to lock the file that has the name.
const TRIES: usize = 8;

impl Lock {
    pub(crate) fn new(release: impl Send + Sync + 'static) -> Self {
        Lock { _release: Box::new(release) }
    }

    /// Takes the lock on a real file; parent directories exist.
    pub(crate) fn take(path: &Path, note: &str) -> Result<Self, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Lock, path, source);
        for _ in 0..TRIES {
            let file = Self::try_take(path, note)?;
            // Between opening and locking, somebody may have removed the file, and a third locked a new one.
            let is_there = std::fs::metadata(path).is_ok_and(|there| {
                file.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
            });
            if is_there {
                return Ok(Lock::new(Held(file)));
            }
        }
        Err(failed(io::Error::other(
            "somebody removes the file again and again; nobody needs to, the lock goes with its process",
        )))
    }

    /// Locks whatever file has the name now.
    fn try_take(path: &Path, note: &str) -> Result<File, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Lock, path, source);
        // Not truncated here: until we hold the lock, the note in it is another's.
        let mut how = OpenOptions::new();
        let mut file = open_file(path, how.read(true).write(true).create(true).truncate(false)).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(DiskError::Locked { path: path.to_path_buf(), holder: read_note(&mut file) });
            }
            Err(TryLockError::Error(source)) if source.kind() == io::ErrorKind::Unsupported => {
                let what =
                    "this file system has no locks, so nothing would keep a second run out; choose another directory";
                return Err(failed(io::Error::other(what)));
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        file.set_len(0).map_err(failed)?;
        file.write_all(holder_note(note).as_bytes()).map_err(failed)?;
        Ok(file)
    }
}

/// A locked file.
struct Held(File);

impl Drop for Held {
    fn drop(&mut self) {
        // Closing is not enough while a child that another thread has just forked still has a copy
        // of the descriptor, as it has until it calls exec.
        let _ = self.0.unlock();
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lock")
    }
}

/// Who we are, for those who find the lock taken.
pub(crate) fn holder_note(note: &str) -> String {
    format!("process {} on {} since {}: {note}\n", std::process::id(), clock::host(), clock::utc(clock::now_seconds()))
}

/// The note in a lock file, on one line and fit for printing.
fn read_note(file: &mut File) -> String {
    let mut bytes = Vec::new();
    // An unreadable note is no reason to hide that the lock is taken.
    let _ = file.take(NOTE_BYTES_MAX).read_to_end(&mut bytes);
    let note = String::from_utf8_lossy(&bytes);
    let printable: String = note.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if printable.is_empty() { "a process that has left no note yet".to_owned() } else { printable }
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
        assert!(error.is_locked());
        let text = error.to_string();
        let process = format!("process {}", std::process::id());
        assert!(text.contains(&process), "{text}");
        assert!(text.contains("awari run small.toml"), "{text}");
        drop(lock);
        Lock::take(&path, "awari run again").unwrap();
    }

    /// A lock on a file without a name keeps nobody out, so nobody is told that he holds it.
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
        assert!(text.contains("no note yet"), "{text:?}");
        drop(lock);
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
        assert!(Lock::take(&path, "parent").unwrap_err().is_locked());
        child.kill().unwrap();
        child.wait().unwrap();
        Lock::take(&path, "parent").unwrap();
    }
}
