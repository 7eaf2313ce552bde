//! The twin keeps what a disk promises, and no more.

use super::*;
use crate::{Staged, is_leftover, remove_leftovers};

const OLD: &[u8] = b"the old file";
const NEW: &[u8] = b"the new file, which is longer";

fn publish(disk: &MemoryDisk) -> Result<(), DiskError> {
    let mut staged = Staged::create(disk, Path::new("d/x"), NEW.len() as u64)?;
    let (first, second) = NEW.split_at(7);
    staged.write(first)?;
    staged.write(second)?;
    staged.publish()?;
    Ok(())
}

/// Publishes with operation `k` failing for every `k`, and hands each result to `check`.
fn each_failure(old: bool, once: bool, check: impl Fn(&MemoryDisk, bool)) {
    for k in 0.. {
        let disk = MemoryDisk::new();
        if old {
            disk.put(Path::new("d/x"), OLD);
        }
        if once {
            disk.fail_at(k, Fault::NoSpace);
        } else {
            disk.fail_from(k, Fault::Io);
        }
        let published = publish(&disk).is_ok();
        assert_eq!(published, disk.operations() <= k, "operation {k}");
        check(&disk, published);
        if published {
            assert!(k >= 6, "create, reserve, write, write, sync, rename, sync");
            return;
        }
    }
}

#[test]
fn failures_leave_the_old_file_or_the_new() {
    for old in [false, true] {
        each_failure(old, true, |disk, published| {
            let found = disk.peek(Path::new("d/x"));
            let before = old.then(|| OLD.to_vec());
            assert!(found.as_deref() == Some(NEW) || (!published && found == before));
            assert!(!disk.paths().iter().any(|path| is_leftover(path)));
        });
    }
}

#[test]
fn crashes_leave_the_old_file_or_the_new() {
    for old in [false, true] {
        for torn in [None, Some(0), Some(5), Some(100)] {
            each_failure(old, false, |disk, published| {
                match torn {
                    None => disk.crash(),
                    Some(bytes) => disk.crash_torn(bytes),
                }
                let found = disk.peek(Path::new("d/x"));
                let before = old.then(|| OLD.to_vec());
                assert!(found.as_deref() == Some(NEW) || (!published && found == before));
                remove_leftovers(disk, Path::new("d")).unwrap();
                assert!(!disk.paths().iter().any(|path| is_leftover(path)));
            });
        }
    }
}

#[test]
fn appended_records_survive_once_synced() {
    let disk = MemoryDisk::new();
    let path = Path::new("journal");
    let mut journal = disk.append(path).unwrap();
    journal.write(b"one").unwrap();
    journal.sync().unwrap();
    journal.write(b"two").unwrap();
    disk.crash();
    assert_eq!(disk.peek(path).unwrap(), b"one");
    assert!(journal.write(b"three").is_err(), "its process is dead");
    let mut journal = disk.append(path).unwrap();
    journal.write(b"two").unwrap();
    disk.crash_torn(2);
    assert_eq!(disk.peek(path).unwrap(), b"onetw");
    disk.truncate(path, 3).unwrap();
    disk.crash();
    assert_eq!(disk.peek(path).unwrap(), b"one");
    assert!(disk.truncate(path, 4).is_err());
}

#[test]
fn a_name_needs_its_directory_synced() {
    let disk = MemoryDisk::new();
    disk.create(Path::new("a")).unwrap().write(b"x").unwrap();
    disk.crash();
    assert!(disk.paths().is_empty());
    // A rename of unsynced bytes keeps the name and loses the bytes, as real disks do.
    disk.create(Path::new("a")).unwrap().write(b"x").unwrap();
    disk.rename(Path::new("a"), Path::new("b")).unwrap();
    disk.crash();
    assert_eq!(disk.peek(Path::new("b")).unwrap(), b"");
    // A removal that nothing synced comes back.
    disk.remove(Path::new("b")).unwrap();
    disk.crash();
    assert!(disk.peek(Path::new("b")).is_some());
}

#[test]
fn space_is_limited() {
    let disk = MemoryDisk::new();
    disk.set_bytes_max(20);
    disk.put(Path::new("d/old"), &[0; 10]);
    let mut staged = Staged::create(&disk, Path::new("d/x"), 8).unwrap();
    assert_eq!(disk.free_bytes(Path::new("d")).unwrap(), 2);
    staged.write(&[1; 10]).unwrap();
    let error = staged.write(&[1; 4]).unwrap_err();
    assert_eq!(
        error.to_string().split(';').next().unwrap(),
        format!("no space left to write d/.x.tmp-{}: 4 bytes needed, 0 free", std::process::id())
    );
    drop(staged);
    let Err(error) = Staged::create(&disk, Path::new("d/x"), 11) else {
        panic!("11 of 10 bytes were reserved");
    };
    assert!(error.is_no_space());
    assert_eq!(disk.paths(), [Path::new("d/old")]);
}

#[test]
fn locks_go_with_drop_and_crash() {
    let disk = MemoryDisk::new();
    let path = Path::new("d/lock");
    let lock = disk.lock(path, "first").unwrap();
    let error = disk.lock(path, "second").unwrap_err().to_string();
    assert!(error.contains("first"), "{error}");
    drop(lock);
    let dead = disk.lock(path, "second").unwrap();
    disk.crash();
    let _alive = disk.lock(path, "third").unwrap();
    drop(dead);
    assert!(matches!(disk.lock(path, "fourth"), Err(DiskError::Locked { .. })));
}

#[test]
fn leftovers_are_distinguished_from_artifacts() {
    let check = |name: &str, expect| assert_eq!(is_leftover(Path::new(name)), expect, "{name}");
    check("d/.03.awari.tmp-12", true);
    check("d/03.awari", false);
    check("d/.03.awari", false);
    check("d/03.awari.tmp-12", false);
    check("d/.03.awari.tmp-", false);
    check("d/.03.awari.tmp-x", false);
    check(".tmp-12", false);
    check("/", false);
}

/// The content after a loss of power, of a file with `synced` and `appended` bytes, by seed.
fn left(seeds: u64, synced: &[u8], appended: &[u8]) -> Vec<Vec<u8>> {
    let path = Path::new("x");
    let after_crash = |seed| {
        let disk = MemoryDisk::new();
        disk.put(path, synced);
        disk.append(path).unwrap().write(appended).unwrap();
        disk.crash_anyhow(seed);
        disk.peek(path).unwrap()
    };
    (0..seeds).map(after_crash).collect()
}

#[test]
fn a_loss_of_power_keeps_any_part_and_all_that_was_synced() {
    let (synced, appended) = (vec![1; 700], vec![2; 9000]);
    let all = left(200, &synced, &appended);
    let is = |found: &dyn Fn(&[u8]) -> bool| all.iter().filter(|bytes| found(bytes)).count();
    assert_eq!(is(&|bytes| bytes.starts_with(&synced) && bytes.len() <= 9700), 200);
    assert!(is(&|bytes| bytes.len() == 700) > 10, "nothing");
    assert!(is(&|bytes| bytes.len() == 9700 && !bytes.contains(&0)) > 10, "everything");
    assert!(is(&|bytes| bytes.len() < 9700 && !bytes.contains(&0)) > 10, "the first part");
    // Later sectors without earlier ones.
    assert!(is(&|bytes| bytes.windows(2).any(|pair| pair == [0, 2])) > 10, "out of order");
    assert_eq!(left(20, &synced, &appended), all[..20], "by the seed alone");
}

#[test]
fn a_loss_of_power_keeps_names_in_any_order() {
    let kept: BTreeSet<Vec<PathBuf>> = (0..100)
        .map(|seed| {
            let disk = MemoryDisk::new();
            disk.put(Path::new("old"), OLD);
            disk.remove(Path::new("old")).unwrap();
            for name in ["d/a", "d/b"] {
                disk.create(Path::new(name)).unwrap();
            }
            disk.put(Path::new("synced"), NEW);
            disk.crash_anyhow(seed);
            assert_eq!(disk.peek(Path::new("synced")).as_deref(), Some(NEW));
            disk.paths()
        })
        .collect();
    assert_eq!(kept.len(), 8, "{kept:?}");
}

/// A sync that succeeds after one that failed promises nothing of what that one should have written.
#[test]
fn what_a_failed_sync_gave_up_stays_lost() {
    let path = Path::new("x");
    let (mut lost, mut shown) = (0, 0);
    for seed in 0..100 {
        let disk = MemoryDisk::new();
        disk.seed(seed);
        let mut output = disk.append(path).unwrap();
        output.write(&[1; 2048]).unwrap();
        disk.fail(PlannedFault { among: OperationSet::Kind(Operation::Sync), first: 0, count: 1, fault: Fault::Io });
        output.sync().unwrap_err();
        shown += u32::from(disk.peek(path).unwrap() == [1; 2048]);
        output.sync().unwrap();
        disk.crash();
        let found = disk.peek(path).unwrap();
        assert_eq!(found.len(), 2048);
        lost += u32::from(found != [1; 2048]);
        // Written again, it is synced again.
        disk.truncate(path, 0).unwrap();
        let mut output = disk.append(path).unwrap();
        output.write(&[3; 2048]).unwrap();
        output.sync().unwrap();
        disk.crash();
        assert_eq!(disk.peek(path).unwrap(), [3; 2048]);
    }
    assert!(lost > 80 && shown > 30 && shown < 70, "{lost} lost, {shown} shown");
}

/// A file that is created takes the name of what had it, which is still there after a crash.
#[test]
fn a_created_file_is_a_new_one() {
    let (disk, path) = (MemoryDisk::new(), Path::new("x"));
    disk.put(path, b"old");
    let mut output = disk.create(path).unwrap();
    output.write(b"new").unwrap();
    assert_eq!(disk.peek(path).unwrap(), b"new");
    disk.crash();
    assert_eq!(disk.peek(path).unwrap(), b"old");
}

/// A new lock is durable; a file that is no lock is kept.
#[test]
fn locks_are_durable_and_foreign_files_kept() {
    let disk = MemoryDisk::new();
    let path = Path::new("d/lock");
    disk.put(path, b"my notes");
    drop(disk.lock(path, "run").unwrap());
    disk.crash();
    assert_eq!(disk.peek(Path::new("d/lock.kept-1")).unwrap(), b"my notes");
    assert!(disk.peek(path).unwrap().ends_with(b": run\n"));
    let held = disk.lock(path, "again").unwrap();
    assert!(disk.lock_holder(path).unwrap().unwrap().ends_with(": again"));
    drop(held);
    assert_eq!(disk.lock_holder(path).unwrap(), None);
    assert_eq!(disk.paths().len(), 2);
}

#[test]
fn scratch_files_take_space() {
    let disk = MemoryDisk::new();
    let root = Path::new("/");
    disk.set_bytes_max(100);
    let scratch = disk.scratch(Path::new("/x"), 60).unwrap();
    assert_eq!((disk.free_bytes(root).unwrap(), disk.scratch_bytes(root)), (40, 60));
    assert!(disk.scratch(Path::new("/y"), 41).map(drop).unwrap_err().is_no_space());
    let crashed = disk.scratch(Path::new("/y"), 40).unwrap();
    drop(scratch);
    assert_eq!((disk.free_bytes(root).unwrap(), disk.scratch_bytes(root)), (60, 40));
    disk.crash();
    assert_eq!((disk.free_bytes(root).unwrap(), disk.scratch_bytes(root)), (100, 0));
    drop(crashed);
    assert_eq!(disk.free_bytes(root).unwrap(), 100);
}

#[test]
fn faults_are_picked_by_kind_and_ordinal() {
    let disk = MemoryDisk::new();
    let path = Path::new("x");
    let scratch = disk.scratch(path, 8).unwrap();
    let mut output = disk.create(path).unwrap();
    let plan = |among, first, fault| disk.fail(PlannedFault { among, first, count: 1, fault });
    plan(OperationSet::Kind(Operation::Write), 1, Fault::Quota);
    plan(OperationSet::Scratch(Operation::Write), 0, Fault::Io);
    plan(OperationSet::Scratch(Operation::Read), 1, Fault::Io);
    output.write(b"one").unwrap();
    scratch.write_at(0, b"scratch").unwrap_err();
    scratch.read_at(0, &mut [0; 4]).unwrap();
    let error = output.write(b"two").unwrap_err();
    assert!(error.is_no_space(), "{error}");
    scratch.read_at(0, &mut [0; 4]).unwrap_err();
    output.write(b"three").unwrap();
    scratch.write_at(0, b"scratch").unwrap();
    let struck: Vec<_> = disk.injected_faults().into_iter().map(|strike| (strike.operation, strike.fault)).collect();
    assert_eq!(struck, [(Operation::Write, Fault::Io), (Operation::Write, Fault::Quota), (Operation::Read, Fault::Io)]);
    assert_eq!(disk.operations_among(OperationSet::Kind(Operation::Write)), 3);
    assert_eq!(disk.operations_among(OperationSet::Scratch(Operation::Write)), 2);
    assert_eq!(disk.operations_among(OperationSet::All), disk.operations());
    plan(OperationSet::Changes, 0, Fault::ReadOnly);
    assert_eq!(disk.bytes(path).unwrap(), Some(9), "of a failed write half is there");
    assert!(
        disk.remove(path).unwrap_err().to_string().ends_with("the file system is read-only; choose another directory")
    );
}

#[test]
fn a_dead_process_does_nothing() {
    let disk = MemoryDisk::new();
    let path = Path::new("x");
    let mut output = disk.create(path).unwrap();
    let lock = disk.lock(Path::new("lock"), "dies").unwrap();
    disk.die_at(disk.operations() + 1);
    output.write(b"1234").unwrap();
    output.write(b"5678").unwrap_err();
    output.write(b"9").unwrap_err();
    disk.remove(path).unwrap_err();
    disk.kill();
    assert_eq!(disk.peek(path).unwrap(), b"123456");
    output.write(b"9").unwrap_err();
    let _next = disk.lock(Path::new("lock"), "lives").unwrap();
    drop(lock);
    assert!(disk.injected_faults().is_empty());
}

#[test]
fn a_disk_fills_up_on_the_way() {
    let disk = MemoryDisk::new();
    let mut output = disk.create(Path::new("x")).unwrap();
    disk.fill_at(disk.operations() + 1, 3);
    output.write(&[1; 10]).unwrap();
    assert!(output.write(&[2; 4]).unwrap_err().is_no_space());
    assert_eq!(disk.free_bytes(Path::new("")).unwrap(), 1);
    disk.crash();
    disk.make_room();
    disk.append(Path::new("x")).unwrap().write(&[3; 100]).unwrap();
}
