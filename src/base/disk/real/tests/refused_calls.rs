//! System calls that the filter of a container refuses: the disk does without them.

use crate::{Disk, Io, RealDisk, Staged};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, SeccompRule};
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

/// Runs work in a thread for which the kernel answers some system calls with an error.
fn with_refused(calls: &[i64], errno: i32, work: impl FnOnce() + Send) {
    let rules: BTreeMap<i64, Vec<SeccompRule>> = calls.iter().map(|&call| (call, Vec::new())).collect();
    let refuse = SeccompAction::Errno(errno as u32);
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let filter: BpfProgram =
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture).unwrap().try_into().unwrap();
    thread::scope(|scope| {
        let worked = scope.spawn(|| {
            seccompiler::apply_filter(&filter).unwrap();
            work();
        });
        worked.join().unwrap();
    });
}

/// Writes and reads every kind of file in a directory.
fn use_disk(disk: &RealDisk, directory: &Path) {
    let bytes: Vec<u8> = (0..3_000_001u32).map(|number| (number / 7) as u8).collect();
    let path = directory.join("x");
    let mut staged = Staged::create(disk, &path, bytes.len() as u64).unwrap();
    bytes.chunks(700_000).for_each(|part| staged.write(part).unwrap());
    staged.publish().unwrap();
    let mut found = vec![0; bytes.len()];
    disk.open(&path).unwrap().read_at(0, &mut found).unwrap();
    assert!(found == bytes);
    let scratch = disk.scratch(&directory.join("y"), bytes.len() as u64).unwrap();
    let working = disk.working(&directory.join("z"), bytes.len() as u64).unwrap();
    for file in [&scratch, &working] {
        file.write_at(0, &bytes).unwrap();
        found.fill(0);
        file.read_at(0, &mut found).unwrap();
        assert!(found == bytes);
    }
    disk.probe(directory, 1 << 20).unwrap();
}

#[test]
fn rings_are_done_without() {
    let calls = [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];
    // `io_uring_enter` alone is refused as well; without `io_uring_register` a ring works.
    for (refused, is_needed) in [(&calls[..], true), (&calls[..1], true), (&calls[1..2], true), (&calls[2..], false)] {
        for errno in [libc::EPERM, libc::ENOSYS, libc::EACCES] {
            let directory = tempfile::tempdir().unwrap();
            with_refused(refused, errno, || {
                let disk = RealDisk::new(Io::Auto).unwrap();
                use_disk(&disk, directory.path());
                if is_needed {
                    assert!(disk.ring_refusal().is_some());
                    let error = RealDisk::new(Io::Uring).unwrap_err().to_string();
                    assert!(error.contains("use --io plain"), "{error}");
                }
            });
        }
    }
}

#[test]
fn calls_that_only_help_are_done_without() {
    let calls = [libc::SYS_fallocate, libc::SYS_fadvise64, libc::SYS_madvise, libc::SYS_openat2, libc::SYS_setpriority];
    for io in [Io::Auto, Io::Plain] {
        for errno in [libc::EPERM, libc::ENOSYS, libc::EINVAL, libc::EOPNOTSUPP] {
            for call in calls {
                let directory = tempfile::tempdir().unwrap();
                with_refused(&[call], errno, || use_disk(&RealDisk::new(io).unwrap(), directory.path()));
            }
        }
    }
}
