//! Two runs on one directory, the lock of the first one lost: as on a file system that does not carry locks,
//! or after the lock file was removed, or where a process comes back from a suspension into a directory that
//! another run has taken.

use crate::directory::journal_path;
use crate::exit::Exit;
use crate::journal::fence::{Fence, FenceGuard};
use crate::journal::record::{Record, RunEnd};
use crate::journal::{Contents, Journal};
use crate::orchestrator::{Orchestrator, RunOptions};
use crate::toy::{Bench, DIRECTORY, Design, Toy, artifact};
use disk::{Disk, DiskAccess, DiskError, DiskGuard, GuardedDisk, MemoryDisk};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn toy() -> Toy {
    Design::default().toy()
}

/// The first run would publish another database than the second.
#[test]
fn a_run_that_is_overtaken_publishes_nothing() {
    for has_begun_only in [false, true] {
        let bench = Bench::default();
        let mut first = toy();
        first.salted.insert(1);
        let mut second = toy();
        if has_begun_only {
            second.fail.insert("solve:1".to_owned());
        }
        let temporary = format!("/run/databases/.1.tmp-{}", std::process::id());
        let taken = AtomicBool::new(false);
        let is_time = |_, path: &Path| path == Path::new(&temporary) && !taken.swap(true, Ordering::Relaxed);
        let overtaking = Overtaking::new(&bench.disk, &second, &is_time);
        let disk = GuardedDisk::new(&bench.disk, &overtaking);
        let error = Orchestrator::new(&disk, Path::new(DIRECTORY), &first, RunOptions::default()).run().unwrap_err();
        assert_eq!(error.exit(), Exit::Locked, "{error}");
        let expect = format!("was written by run 2, process {} on ", std::process::id());
        assert!(error.to_string().contains(&expect), "{error}");
        assert!(error.to_string().contains("so this run ends"), "{error}");
        assert_eq!(first.take_log().last().unwrap(), "solve:1");
        let found = bench.files();
        assert_eq!(found.get("databases/1"), Bench::built().files().get("databases/1").filter(|_| !has_begun_only));
        assert!(found.contains_key(temporary.trim_start_matches("/run/")), "it was on the way");
        let contents = Contents::read(&bench.disk, &journal_path(Path::new(DIRECTORY))).unwrap();
        assert_eq!((contents.entries.last().unwrap().run, contents.fenced), (2, 0));
        // The next run removes the temporary file of the first.
        bench.run(&toy()).unwrap();
        assert_eq!(bench.files(), Bench::built().files());
    }
}

/// A file that the next run continues is not changed either, from the next second on.
#[test]
fn an_overtaken_run_writes_to_no_working_file() {
    let disk = MemoryDisk::new();
    let (path, working) = (journal_path(Path::new(DIRECTORY)), Path::new("/run/snapshots/sweep-9/cells"));
    let ended = || Record::RunEnded { how: RunEnd::Done };
    let mut first = Journal::open(&disk, &path).unwrap();
    first.append(ended()).unwrap();
    let guard = FenceGuard::new(first.fence());
    let fenced = GuardedDisk::new(&disk, &guard);
    let file = fenced.working(working, 8).unwrap();
    file.write_at(0, b"mine").unwrap();
    Journal::open(&disk, &path).unwrap().append(ended()).unwrap();
    let refused = loop {
        // Until the clock shows another second.
        match file.write_at(0, b"mine") {
            Ok(()) => std::thread::sleep(std::time::Duration::from_millis(10)),
            Err(error) => break error,
        }
    };
    assert!(refused.is_overtaken(), "{refused}");
    assert!(file.write_at(4, b"more").unwrap_err().is_overtaken());
    assert!(fenced.working(working, 8).err().unwrap().is_overtaken());
    let mut found = [0; 8];
    file.read_at(0, &mut found).unwrap();
    assert_eq!(&found, b"mine\0\0\0\0");
}

#[test]
fn an_overtaken_run_changes_no_name() {
    let disk = MemoryDisk::new();
    let path = journal_path(Path::new(DIRECTORY));
    let [from, to] = ["/run/a", "/run/b"].map(Path::new);
    disk.put(from, b"a");
    let mut first = Journal::open(&disk, &path).unwrap();
    first.append(Record::RunEnded { how: RunEnd::Done }).unwrap();
    let guard = FenceGuard::new(first.fence());
    let fenced = GuardedDisk::new(&disk, &guard);
    fenced.rename(from, to).unwrap();
    fenced.rename(to, from).unwrap();
    Journal::open(&disk, &path).unwrap().append(Record::RunEnded { how: RunEnd::Done }).unwrap();
    let before = disk.paths();
    for refused in [
        fenced.rename(from, to),
        fenced.remove(from),
        fenced.remove_dir_all(Path::new("/run")),
        fenced.truncate(from, 0),
        fenced.create(to).map(drop),
        fenced.append(to).map(drop),
    ] {
        assert!(refused.unwrap_err().is_overtaken());
    }
    assert_eq!(disk.paths(), before);
    // To look at it is no harm.
    assert_eq!(fenced.read(from, 1).unwrap(), b"a");
    assert_eq!(fenced.list(Path::new("/run")).unwrap().len(), 2);
}

/// Lets another run have the directory to itself before one of the operations of a run.
struct Overtaking<'a> {
    disk: &'a MemoryDisk,
    other: &'a Toy,
    operations: AtomicU64,
    is_time: &'a (dyn Fn(u64, &Path) -> bool + Sync),
}

impl<'a> Overtaking<'a> {
    fn new(disk: &'a MemoryDisk, other: &'a Toy, is_time: &'a (dyn Fn(u64, &Path) -> bool + Sync)) -> Self {
        Overtaking { disk, other, operations: AtomicU64::new(0), is_time }
    }
}

impl DiskGuard for Overtaking<'_> {
    fn check_access(&self, _: &dyn Disk, access: DiskAccess, path: &Path) -> Result<(), DiskError> {
        if access == DiskAccess::InPlace {
            return Ok(());
        }
        let operation = self.operations.fetch_add(1, Ordering::Relaxed);
        if (self.is_time)(operation, path) {
            self.disk.remove(&Path::new(DIRECTORY).join("lock")).unwrap();
            let _ = Orchestrator::new(self.disk, Path::new(DIRECTORY), self.other, RunOptions::default()).run();
        }
        Ok(())
    }
}

#[test]
fn another_run_may_take_the_directory_at_some_operations() {
    another_run_may_take_the_directory(9);
}

#[test]
#[ignore = "slow tier: runs of hundreds of operations, hundreds of times"]
fn another_run_may_take_the_directory_at_any_operation() {
    another_run_may_take_the_directory(1);
}

/// Before every `step`-th operation of a run another one may begin and end: the first one then ends with an
/// error, unless nothing was left for it to do, and whatever either left is complete and right.
fn another_run_may_take_the_directory(step: usize) {
    let reference = Bench::built().files();
    let mut ended = [0; 2];
    for at in (0..).step_by(step) {
        let bench = Bench::default();
        let other = toy();
        let is_time = |operation, _: &Path| operation == at;
        let overtaking = Overtaking::new(&bench.disk, &other, &is_time);
        let disk = GuardedDisk::new(&bench.disk, &overtaking);
        let done = Orchestrator::new(&disk, Path::new(DIRECTORY), &toy(), RunOptions::default()).run();
        if overtaking.operations.into_inner() <= at {
            done.unwrap();
            break;
        }
        match &done {
            Ok(_) => ended[0] += 1,
            // Something that the other run has removed, or replaced, may be missed before the journal is looked at.
            Err(error) => {
                let missed = matches!(error.exit(), Exit::Locked | Exit::StageFailed | Exit::PreflightFailed);
                assert!(missed, "at operation {at}: {error}");
                ended[1] += 1;
            }
        }
        let left = bench.files();
        for (path, bytes) in reference.iter() {
            assert!(left.get(path) == Some(bytes), "at operation {at}: {path}");
        }
        bench.run(&toy()).unwrap();
        let contents = Contents::read(&bench.disk, &journal_path(Path::new(DIRECTORY))).unwrap();
        assert_eq!((contents.torn_bytes, contents.damaged_bytes), (0, 0), "at operation {at}");
    }
    assert!(ended[0] > 0 && ended[1] > 100 / step, "{ended:?}");
}

#[test]
fn a_fence_check_takes_one_operation() {
    let disk = MemoryDisk::new();
    let path = journal_path(Path::new(DIRECTORY));
    let mut journal = Journal::open(&disk, &path).unwrap();
    for _ in 0..9 {
        journal.append(Record::Removed { artifacts: vec![artifact("captures/1")] }).unwrap();
    }
    let (before, read) = (disk.operations(), disk.traffic().read_bytes);
    let fence: &Fence = &journal.fence();
    assert!(fence.beyond(&disk).unwrap().is_empty());
    assert_eq!((disk.operations() - before, disk.traffic().read_bytes - read), (1, 0));
}
