//! How much of the disk a build takes at most: what its files have, those without a name among them.

use disk::{Disk, DiskError, Input, Lock, Mapping, Output, Scratch, Traffic};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Runs something on a disk whose files it keeps in a folder, and tells the most bytes that they took: looked at every few
/// milliseconds, and before anything is removed or replaced.
pub fn most_taken<T>(disk: &dyn Disk, folder: &Path, run: impl FnOnce(&dyn Disk) -> T) -> (T, u64) {
    let watched = Watched { disk, folder, most: AtomicU64::new(0) };
    let is_over = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                watched.look();
                thread::sleep(LOOKS);
            }
        });
        let done = run(&watched);
        is_over.store(true, Relaxed);
        done
    });
    (done, watched.most.into_inner())
}

/// How often it is looked, whatever happens.
const LOOKS: Duration = Duration::from_millis(3);

/// A disk where it is looked how much files take before they become fewer.
struct Watched<'a> {
    disk: &'a dyn Disk,
    folder: &'a Path,
    most: AtomicU64,
}

impl Watched<'_> {
    fn look(&self) {
        self.most.fetch_max(file_bytes(self.folder) + nameless_bytes(), Relaxed);
    }
}

/// What the files of a folder take, and those below. Files come and go meanwhile.
fn file_bytes(folder: &Path) -> u64 {
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => file_bytes(&entry.path()),
        Ok(data) => data.blocks() * 512,
        Err(_) => 0,
    };
    fs::read_dir(folder).map_or(0, |entries| entries.flatten().map(of).sum())
}

/// What the open files of this process take that have no name.
fn nameless_bytes() -> u64 {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let files =
        open.filter_map(|entry| fs::metadata(entry.path()).ok()).filter(|data| data.is_file() && data.nlink() == 0);
    files.map(|data| data.blocks() * 512).sum()
}

impl Disk for Watched<'_> {
    fn truncate(&self, path: &Path, bytes: u64) -> Result<(), DiskError> {
        self.look();
        self.disk.truncate(path, bytes)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.look();
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        self.look();
        self.disk.remove(path)
    }

    fn remove_dir_all(&self, directory: &Path) -> Result<(), DiskError> {
        self.look();
        self.disk.remove_dir_all(directory)
    }

    fn read(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, DiskError> {
        self.disk.read(path, bytes_max)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Output>, DiskError> {
        self.disk.create(path)
    }

    fn append(&self, path: &Path) -> Result<Box<dyn Output>, DiskError> {
        self.disk.append(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Input>, DiskError> {
        self.disk.open(path)
    }

    fn open_scattered(&self, path: &Path) -> Result<Box<dyn Input>, DiskError> {
        self.disk.open_scattered(path)
    }

    fn scratch(&self, path: &Path, bytes: u64) -> Result<Box<dyn Scratch>, DiskError> {
        self.disk.scratch(path, bytes)
    }

    fn working(&self, path: &Path, bytes: u64) -> Result<Box<dyn Scratch + '_>, DiskError> {
        self.disk.working(path, bytes)
    }

    fn map(&self, path: &Path) -> Result<Mapping, DiskError> {
        self.disk.map(path)
    }

    fn bytes(&self, path: &Path) -> Result<Option<u64>, DiskError> {
        self.disk.bytes(path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, DiskError> {
        self.disk.list(directory)
    }

    fn create_dir_all(&self, directory: &Path) -> Result<(), DiskError> {
        self.disk.create_dir_all(directory)
    }

    fn canonical(&self, path: &Path) -> PathBuf {
        self.disk.canonical(path)
    }

    fn create_dir(&self, directory: &Path) -> Result<(), DiskError> {
        self.disk.create_dir(directory)
    }

    fn create_private_dir(&self, parent: &Path, prefix: &str) -> Result<PathBuf, DiskError> {
        self.disk.create_private_dir(parent, prefix)
    }

    fn list_directories(&self, directory: &Path) -> Result<Vec<PathBuf>, DiskError> {
        self.disk.list_directories(directory)
    }

    fn lock_holder(&self, path: &Path) -> Result<Option<String>, DiskError> {
        self.disk.lock_holder(path)
    }

    fn free_bytes(&self, directory: &Path) -> Result<u64, DiskError> {
        self.disk.free_bytes(directory)
    }

    fn probe(&self, directory: &Path, bytes: u64) -> Result<(), DiskError> {
        self.disk.probe(directory, bytes)
    }

    fn post(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.disk.post(path, bytes)
    }

    fn traffic(&self) -> Traffic {
        self.disk.traffic()
    }

    fn lock(&self, path: &Path, note: &str) -> Result<Lock, DiskError> {
        self.disk.lock(path, note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::RealDisk;

    #[test]
    fn what_is_removed_at_once_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        let disk = RealDisk::default();
        let ((), most) = most_taken(&disk, folder.path(), |disk| {
            for path in [&one, &other] {
                fs::write(path, vec![1; 1 << 20]).unwrap();
            }
            disk.remove(&one).unwrap();
            let unnamed = disk.scratch(&one, 2 << 20).unwrap();
            unnamed.write_at(0, &[1; 2 << 20]).unwrap();
            disk.rename(&other, &one).unwrap();
        });
        // Other tests have files without names too.
        assert!(most >= 3 << 20, "{most}");
    }
}
