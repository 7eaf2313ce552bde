//! Peak disk usage of a build, unnamed files included.

use disk::{Disk, DiskAccess, DiskError, DiskGuard, GuardedDisk};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Calls `run` with a disk, and returns the peak of the bytes in a folder, measured every few milliseconds
/// and before a file is removed or replaced.
pub fn most_taken<T>(disk: &dyn Disk, folder: &Path, run: impl FnOnce(&dyn Disk) -> T) -> (T, u64) {
    let watched = Watched { folder, most: AtomicU64::new(0) };
    let is_over = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                watched.look();
                thread::sleep(LOOKS);
            }
        });
        let done = run(&GuardedDisk::new(disk, &watched));
        is_over.store(true, Relaxed);
        done
    });
    (done, watched.most.into_inner())
}

/// Time between measurements.
const LOOKS: Duration = Duration::from_millis(3);

/// Measures a folder before a file is removed.
struct Watched<'a> {
    folder: &'a Path,
    most: AtomicU64,
}

impl Watched<'_> {
    fn look(&self) {
        self.most.fetch_max(file_bytes(self.folder) + nameless_bytes(), Relaxed);
    }
}

/// Bytes allocated to files below a folder, which may change meanwhile.
fn file_bytes(folder: &Path) -> u64 {
    let bytes_of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => file_bytes(&entry.path()),
        Ok(data) => data.blocks() * 512,
        Err(_) => 0,
    };
    fs::read_dir(folder).map_or(0, |entries| entries.flatten().map(bytes_of).sum())
}

/// Bytes allocated to open files of this process that have no name.
fn nameless_bytes() -> u64 {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let files =
        open.filter_map(|entry| fs::metadata(entry.path()).ok()).filter(|data| data.is_file() && data.nlink() == 0);
    files.map(|data| data.blocks() * 512).sum()
}

impl DiskGuard for Watched<'_> {
    fn check_access(&self, _: &dyn Disk, access: DiskAccess, _: &Path) -> Result<(), DiskError> {
        if access == DiskAccess::Remove {
            self.look();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::RealDisk;

    #[test]
    fn files_removed_at_once_are_measured() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other] = ["one", "other"].map(|name| folder.path().join(name));
        let disk = RealDisk::default();
        let ((), most) = most_taken(&disk, folder.path(), |disk| {
            for path in [&file, &other] {
                fs::write(path, vec![1; 1 << 20]).unwrap();
            }
            disk.remove(&file).unwrap();
            let unnamed = disk.scratch(&file, 2 << 20).unwrap();
            unnamed.write_at(0, &[1; 2 << 20]).unwrap();
            disk.rename(&other, &file).unwrap();
        });
        // Other tests may have unnamed files too.
        assert!(most >= 3 << 20, "{most}");
    }
}
