//! All modes of [`Io`] in the same cases: what was written is read, for any offsets, threads, and short reads and
//! writes.

use crate::real::direct;
use crate::real::pool::Pool;
use crate::{Disk, DiskError, Io, RealDisk, Staged, Traffic};
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Reports that a part of a test is skipped. Bypasses the capture of libtest, which hides the output of tests
/// that pass.
fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: src/base/disk/real/tests/io_modes.rs: {why}");
}

/// The disks that this machine has: a ring is not allowed everywhere.
fn disks() -> Vec<RealDisk> {
    let all = [Io::Plain, Io::Auto, Io::Uring].map(RealDisk::new);
    let there = all.into_iter().filter_map(|disk| match disk {
        Err(DiskError::RingRefused { source }) => {
            skipped(&format!("io_uring is refused: {source}"));
            None
        }
        other => Some(other.unwrap()),
    });
    there.collect()
}

/// Bytes that differ from block to block.
fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// A plan counts on this: files that are open together share what is free.
#[test]
fn an_open_output_takes_little_more_than_its_bytes() {
    const WRITTEN: u64 = 3 << 20;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    for disk in disks() {
        let mut output = disk.create(&path).unwrap();
        (0..WRITTEN >> 20).for_each(|seed| output.write(&pattern(seed, 1 << 20)).unwrap());
        let taken = fs::metadata(&path).unwrap().blocks() * 512;
        assert!(taken <= 2 * WRITTEN + (1 << 20), "{disk:?}: {taken} bytes");
        output.sync().unwrap();
        let taken = fs::metadata(&path).unwrap().blocks() * 512;
        assert!(taken <= WRITTEN + (64 << 10), "{disk:?}: {taken} bytes at the end");
    }
}

#[test]
fn an_output_holds_what_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    let cases: [&[usize]; 8] = [
        &[],
        &[0, 1],
        &[4096],
        &[1, 4095, 1, 4096, 4097],
        &[65_536; 40],
        &[3_000_001, 5, 2_097_152],
        &[1 << 20, 1 << 20, 1],
        &[100_000; 70],
    ];
    for disk in disks() {
        for (at, lengths) in cases.into_iter().enumerate() {
            for reserved in [0, 1 << 22] {
                let mut output = disk.create(&path).unwrap();
                output.reserve(reserved).unwrap();
                let mut expected = Vec::new();
                for (number, &length) in lengths.iter().enumerate() {
                    let bytes = pattern(number as u64, length);
                    output.write(&bytes).unwrap();
                    expected.extend(bytes);
                    if number == 2 && at % 2 == 0 {
                        output.sync().unwrap();
                        assert!(fs::read(&path).unwrap() == expected, "{disk:?}, case {at}, synced within");
                    }
                }
                match reserved {
                    0 => drop(output),
                    _ => output.sync().unwrap(),
                }
                assert!(fs::read(&path).unwrap() == expected, "{disk:?}, case {at}");
                let mut output = disk.append(&path).unwrap();
                output.write(b"more").unwrap();
                output.sync().unwrap();
                expected.extend(b"more");
                assert!(fs::read(&path).unwrap() == expected, "{disk:?}, case {at}, appended");
            }
        }
    }
}

#[test]
fn many_outputs_share_few_queues() {
    let directory = tempfile::tempdir().unwrap();
    for disk in disks() {
        let path = |number: u64| directory.path().join(number.to_string());
        let mut outputs: Vec<_> = (0..7).map(|number| disk.create(&path(number)).unwrap()).collect();
        for part in 0..20 {
            for (number, output) in outputs.iter_mut().enumerate() {
                output.write(&pattern(number as u64 * 100 + part, 70_001)).unwrap();
            }
        }
        for (number, mut output) in outputs.into_iter().enumerate() {
            output.sync().unwrap();
            let parts = (0..20).map(|part| pattern(number as u64 * 100 + part, 70_001));
            assert!(fs::read(path(number as u64)).unwrap() == parts.collect::<Vec<_>>().concat(), "{disk:?}");
        }
    }
}

/// The kernel takes back what a thread has asked for when it ends.
#[test]
fn an_output_outlives_the_thread_that_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    let bytes = pattern(11, 900_001);
    for disk in disks() {
        let mut output = disk.create(&path).unwrap();
        for _ in 0..20 {
            std::thread::scope(|scope| scope.spawn(|| output.write(&bytes)).join().unwrap()).unwrap();
        }
        output.sync().unwrap();
        assert!(fs::read(&path).unwrap() == bytes.repeat(20), "{disk:?}");
    }
}

#[test]
fn short_results_advance_a_request() {
    use crate::real::request::{Advance, BlockRequest, Direction};
    use std::io::{Error, ErrorKind};
    let check = |direction, done: usize, result: Result<usize, Error>, expect: Option<Result<(), ErrorKind>>| {
        let file = std::sync::Arc::new(fs::File::open("/dev/null").unwrap());
        let (bytes, needed) = (3 * 4096, 2 * 4096 + 5);
        let mut request = BlockRequest { file, direction, offset: 0, bytes, needed, block: 4096, done };
        let found = match request.advance(result) {
            Advance::Again => None,
            Advance::Done(result) => Some(result.map_err(|error| error.kind())),
        };
        assert_eq!(found, expect);
        request.rest().0
    };
    let [read, write] = [Direction::Read, Direction::Write];
    check(read, 0, Ok(3 * 4096), Some(Ok(())));
    check(read, 0, Ok(2 * 4096 + 5), Some(Ok(())));
    assert_eq!(check(read, 0, Ok(4096 + 7), None), 4096, "a rest begins with a block");
    check(read, 4096, Ok(4096 + 5), Some(Ok(())));
    check(read, 4096, Ok(0), Some(Err(ErrorKind::UnexpectedEof)));
    check(read, 0, Ok(100), Some(Err(ErrorKind::UnexpectedEof)));
    check(write, 4096, Ok(0), Some(Err(ErrorKind::WriteZero)));
    for code in [libc::EINTR, libc::EAGAIN, libc::ECANCELED] {
        assert_eq!(check(write, 4096, Err(Error::from_raw_os_error(code)), None), 4096);
    }
    check(write, 4096, Err(Error::from_raw_os_error(libc::ENOSPC)), Some(Err(ErrorKind::StorageFull)));
}

#[test]
fn any_range_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    let bytes = pattern(7, 3_333_333);
    fs::write(&path, &bytes).unwrap();
    for disk in disks() {
        let input = disk.open(&path).unwrap();
        assert_eq!(input.bytes(), bytes.len() as u64);
        let check = |offset: usize, length: usize| {
            let mut into = vec![0; length];
            input.read_at(offset as u64, &mut into).unwrap();
            assert!(into == bytes[offset..offset + length], "{disk:?}: {length} at {offset}");
        };
        for offset in [0, 1, 511, 4095, 4096, 65_535, 1 << 20] {
            for length in [0, 1, 4095, 4096, 4097, 65_536, 1 << 20, (2 << 20) + 3] {
                check(offset, length);
            }
        }
        check(0, bytes.len());
        check(bytes.len() - 1, 1);
        check(bytes.len(), 0);
        for (offset, length) in [(bytes.len(), 1), (bytes.len() - 5, 6), (usize::MAX, 2), (1 << 30, 0)] {
            let error = input.read_at(offset as u64, &mut vec![0; length]).unwrap_err();
            assert!(matches!(&error, DiskError::Io { path: found, .. } if *found == path), "{disk:?}: {error}");
        }
        // Cut behind our back: an error, and the queue stays fit for use.
        let cut = directory.path().join("cut");
        fs::write(&cut, &bytes).unwrap();
        let shorter = disk.open(&cut).unwrap();
        fs::OpenOptions::new().write(true).open(&cut).unwrap().set_len(100_000).unwrap();
        assert!(shorter.read_at(50_000, &mut vec![0; 1 << 20]).is_err(), "{disk:?}");
        check(5, 1 << 20);
    }
}

/// Eight threads write neighbouring ranges that meet within blocks, and read others back meanwhile.
#[test]
fn threads_share_a_scratch_file() {
    let directory = tempfile::tempdir().unwrap();
    const RANGE: usize = 40_961;
    const ROUNDS: usize = 12;
    const THREADS: usize = 8;
    for disk in disks() {
        let scratch = disk.scratch(&directory.path().join("x"), (THREADS * ROUNDS * RANGE) as u64).unwrap();
        let seed = |round: usize, thread: usize| (round * THREADS + thread) as u64;
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (scratch, disk) = (&scratch, &disk);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let offset = |round: usize| (seed(round, thread) * RANGE as u64, seed(round, thread));
                        let (at, seed) = offset(round);
                        scratch.write_at(at, &pattern(seed, RANGE)).unwrap();
                        let (at, seed) = offset(round / 2);
                        let mut found = vec![0; RANGE];
                        scratch.read_at(at, &mut found).unwrap();
                        assert!(found == pattern(seed, RANGE), "{disk:?}: thread {thread}, round {round}");
                    }
                });
            }
        });
        let mut all = vec![0; THREADS * ROUNDS * RANGE];
        scratch.read_at(0, &mut all).unwrap();
        for (number, range) in all.chunks(RANGE).enumerate() {
            assert!(range == pattern(number as u64, RANGE), "{disk:?}: range {number}");
        }
        assert!(scratch.read_at(all.len() as u64 - 1, &mut [0; 2]).is_err());
    }
}

#[test]
fn a_new_scratch_file_is_zeros() {
    let directory = tempfile::tempdir().unwrap();
    for disk in disks() {
        let scratch = disk.scratch(&directory.path().join("x"), 100_003).unwrap();
        scratch.write_at(50_000, &[1; 3]).unwrap();
        let mut found = vec![9; 100_003];
        scratch.read_at(0, &mut found).unwrap();
        assert_eq!(found.iter().map(|&byte| u32::from(byte)).sum::<u32>(), 3, "{disk:?}");
        assert_eq!(found[50_000..50_003], [1; 3]);
        assert_eq!(disk.scratch(&directory.path().join("x"), 0).unwrap().bytes(), 0);
    }
}

/// The kernel takes a block at a time, so that each request is asked for again many times.
#[test]
fn short_reads_and_writes_are_completed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    let bytes = pattern(3, 1_300_007);
    for disk in disks() {
        // One queue of each kind, made slow and put back, serves all that this thread asks for.
        disk.pool.share().unwrap().set_ask_bytes_max(4096);
        disk.pool.lend().unwrap().unwrap().set_ask_bytes_max(4096);
        let mut output = disk.create(&path).unwrap();
        output.write(&bytes).unwrap();
        output.sync().unwrap();
        assert!(fs::read(&path).unwrap() == bytes, "{disk:?}");
        let mut found = vec![0; bytes.len() - 9];
        disk.open(&path).unwrap().read_at(9, &mut found).unwrap();
        assert!(found == bytes[9..], "{disk:?}");
        let scratch = disk.scratch(&path, 2 << 20).unwrap();
        scratch.write_at(12_345, &bytes).unwrap();
        scratch.read_at(12_345, &mut found).unwrap();
        assert!(found == bytes[..found.len()], "{disk:?}");
    }
}

/// A descriptor that may only be read fails in the kernel, behind our back.
#[test]
fn errors_of_asynchronous_writes_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    for disk in disks() {
        fs::write(&path, b"").unwrap();
        let file = fs::File::open(&path).unwrap();
        if direct::turn_on(&file).is_none() {
            skipped(&format!("{} has no files off the page cache", directory.path().display()));
            return;
        }
        let mut output = crate::real::output::RealOutput::create(file, &path, false, disk.pool.clone());
        let mut written = Ok(());
        for _ in 0..100 {
            written = written.and_then(|()| crate::OutputFile::write(&mut output, &[1; 100_000]));
        }
        let error = written.unwrap_err();
        assert!(error.to_string().contains("write"), "{disk:?}: {error}");
        for _ in 0..2 {
            assert!(crate::OutputFile::sync(&mut output).is_err(), "{disk:?}: a write was lost");
        }
        drop(output);
        let mut few =
            crate::real::output::RealOutput::create(fs::File::open(&path).unwrap(), &path, false, disk.pool.clone());
        crate::OutputFile::write(&mut few, &[1; 5000]).unwrap();
        assert!(crate::OutputFile::sync(&mut few).is_err(), "{disk:?}: nothing had been started before");

        let path = Path::new("/dev/full");
        let file = fs::OpenOptions::new().append(true).open(path).unwrap();
        let mut full = crate::real::output::RealOutput::append(file, path, 0, false, disk.pool.clone());
        assert!(crate::OutputFile::write(&mut full, &[0; 4096]).unwrap_err().is_no_space(), "{disk:?}");
    }
}

#[test]
fn requests_in_flight_are_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let open = |path: &Path| fs::File::options().read(true).write(true).create(true).truncate(true).open(path);
    for io in [Io::Plain, Io::Uring] {
        let Ok(mut queue) = Pool::new(io).make() else { continue };
        let file = std::sync::Arc::new(open(&directory.path().join("x")).unwrap());
        let mut offset = 0;
        while let Some(piece) = queue.idle() {
            let bytes = queue.piece_bytes();
            queue.bytes_mut(piece).fill(piece as u8 + 1);
            let direction = crate::real::request::Direction::Write;
            let file = file.clone();
            queue.start(
                piece,
                crate::real::request::BlockRequest { file, direction, offset, bytes, needed: bytes, block: 1, done: 0 },
            );
            offset += bytes as u64;
        }
        // Neither submitted nor finished.
        drop(queue);
        let found = fs::read(directory.path().join("x")).unwrap();
        assert_eq!(found.len() as u64, offset);
        assert!(found.iter().all(|&byte| byte > 0));
    }
}

#[test]
fn publishing_stays_atomic() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/x");
    for disk in disks() {
        for length in [0, 10, 4096, 3_000_000] {
            let bytes = pattern(length as u64, length);
            let mut staged = Staged::create(&disk, &path, 4_000_000).unwrap();
            for part in bytes.chunks(70_000) {
                staged.write(part).unwrap();
            }
            assert_eq!(staged.publish().unwrap(), length as u64);
            assert!(fs::read(&path).unwrap() == bytes, "{disk:?}");
            let mut abandoned = Staged::create(&disk, &path, 0).unwrap();
            abandoned.write(&[1; 300_000]).unwrap();
            drop(abandoned);
            assert!(fs::read(&path).unwrap() == bytes, "{disk:?}");
            assert_eq!(disk.list(path.parent().unwrap()).unwrap(), std::slice::from_ref(&path));
        }
    }
}

/// What we count is what the kernel counts. In a child process, because other tests move bytes meanwhile.
#[test]
fn traffic_agrees_with_the_kernel() {
    const CHILD: &str = "DISK_TRAFFIC_TEST_CHILD";
    if let Some(word) = std::env::var_os(CHILD) {
        return count_traffic(word.to_str().unwrap().parse().unwrap());
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "real::tests::io_modes::traffic_agrees_with_the_kernel", "--nocapture"]);
    for io in [Io::Plain, Io::Auto, Io::Uring] {
        let status = child.env(CHILD, io.to_string()).status().unwrap();
        assert!(status.success(), "{io}");
    }
}

fn count_traffic(io: Io) {
    let Ok(disk) = RealDisk::new(io) else {
        return skipped(&format!("the kernel refuses {io}"));
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    let file_system = rustix::fs::statfs(directory.path()).unwrap().f_type;
    const TMPFS: u64 = 0x0102_1994;
    if direct::turn_on(&fs::File::create(&path).unwrap()).is_none() || file_system as u64 == TMPFS {
        return skipped(&format!("{} has no files off the page cache", path.display()));
    }
    let (before, counted) = (kernel_traffic(), disk.traffic());
    let bytes = pattern(1, 1_000_000);
    let mut output = disk.create(&path).unwrap();
    (0..12).for_each(|_| output.write(&bytes).unwrap());
    output.sync().unwrap();
    // What goes through the page cache may never reach the disk.
    let scratch = (io != Io::Auto).then(|| disk.scratch(&directory.path().join("y"), 8_000_000).unwrap());
    scratch.iter().for_each(|scratch| (0..8).for_each(|at| scratch.write_at(at * 1_000_000, &bytes).unwrap()));
    let mut into = vec![0; 333_333];
    let input = disk.open(&path).unwrap();
    (0..36).for_each(|at| input.read_at(at * 333_333, &mut into).unwrap());
    scratch.iter().for_each(|scratch| (0..24).for_each(|at| scratch.read_at(at * 333_333, &mut into).unwrap()));
    let Traffic { read_bytes, written_bytes } = disk.traffic() - counted;
    let kernel = kernel_traffic() - before;
    let (written_min, read_min) = if io == Io::Auto { (12_000_000, 11_999_000) } else { (20_000_000, 19_999_000) };
    assert!(written_bytes >= written_min && read_bytes >= read_min, "{written_bytes} written, {read_bytes} read");
    for (ours, theirs) in [(read_bytes, kernel.read_bytes), (written_bytes, kernel.written_bytes)] {
        assert!(ours.abs_diff(theirs) * 50 <= theirs, "{io}: {ours} bytes counted, {theirs} by the kernel");
    }
}

fn kernel_traffic() -> Traffic {
    let text = fs::read_to_string("/proc/self/io").unwrap();
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap();
    Traffic { read_bytes: field("read_bytes:"), written_bytes: field("write_bytes:") }
}

/// What is no file has a name in a directory, too. To open a pipe would wait for ever for its other end.
#[test]
fn other_file_types_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let folder = directory.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let disk = RealDisk::default();
    for path in [&pipe, &folder, Path::new("/dev/zero")] {
        assert!(disk.open(path).is_err() && disk.map(path).is_err() && disk.bytes(path).is_err(), "{path:?}");
        assert!(disk.truncate(path, 0).is_err() && disk.lock(path, "").is_err(), "{path:?}");
    }
    let error = disk.open(&pipe).err().unwrap().to_string();
    assert!(error.ends_with("pipe: it is a pipe, not a regular file"), "{error}");
    assert!(disk.append(&pipe).is_err() && disk.working(&pipe, 1).is_err() && disk.create(&folder).is_err());
    assert!(disk.append(Path::new("/dev/null")).is_err() && disk.working(Path::new("/dev/null"), 1).is_err());
    for path in [&pipe, &folder, Path::new("/dev/zero")] {
        assert!(disk.read(path, 100).is_err(), "{path:?}");
    }
}

/// Another user who may write to a directory replaces files and directories there by links to files that only we may
/// change: nothing behind the links is written, emptied, renamed or removed.
#[test]
fn planted_links_change_nothing_elsewhere() {
    use std::os::unix::fs::{lchown, symlink};
    let directory = tempfile::tempdir().unwrap();
    let (run, victim) = (directory.path().join("run"), directory.path().join("victim"));
    type Write = fn(&RealDisk, &Path) -> Result<(), DiskError>;
    let writes: [(&str, Write); 11] = [
        ("create", |disk, path| disk.create(path)?.write(b"new").and_then(|()| disk.remove(path))),
        ("append", |disk, path| disk.append(path)?.write(b"new")),
        ("truncate", |disk, path| disk.truncate(path, 0)),
        ("working", |disk, path| disk.working(path, 5)?.write_at(0, b"new")),
        ("scratch", |disk, path| disk.scratch(path, 5)?.write_at(0, b"new")),
        ("post", |disk, path| disk.post(path, b"new")),
        ("lock", |disk, path| disk.lock(path, "new").map(drop)),
        ("publish", |disk, path| {
            let mut staged = Staged::create(disk, path, 0)?;
            staged.write(b"new")?;
            staged.publish().map(drop)
        }),
        ("remove", |disk, path| disk.remove(path)),
        ("remove all", |disk, path| disk.remove_dir_all(path)),
        ("probe", |disk, path| disk.probe(path.parent().unwrap(), 100)),
    ];
    let is_root = rustix::process::geteuid().is_root();
    let temporary = |name: &str| format!(".{name}.tmp-{}", std::process::id());
    for disk in disks() {
        for (what, write) in writes {
            // The name itself, that of its temporary file, and the directory that holds it.
            for plant in ["name", "temporary", "directory"] {
                let _ = (fs::remove_dir_all(&run), fs::remove_dir_all(&victim));
                fs::create_dir(&victim).unwrap();
                fs::create_dir(&run).unwrap();
                let names = ["x".to_owned(), temporary("x"), temporary("probe")];
                names.iter().for_each(|name| fs::write(victim.join(name), b"precious").unwrap());
                match plant {
                    "name" => symlink(victim.join("x"), run.join("x")).unwrap(),
                    "temporary" => {
                        names[1..].iter().for_each(|name| symlink(victim.join(name), run.join(name)).unwrap());
                    }
                    // Only root can make a link of another user.
                    _ if is_root => {
                        fs::remove_dir(&run).unwrap();
                        symlink(&victim, &run).unwrap();
                        lchown(&run, Some(12_345), None).unwrap();
                    }
                    _ => continue,
                }
                let written = write(&disk, &run.join("x"));
                if plant == "directory" {
                    let error = written.unwrap_err().to_string();
                    assert!(error.contains("run is a symbolic link of another user (12345)"), "{what}: {error}");
                }
                for name in &names {
                    let found = fs::read(victim.join(name)).unwrap();
                    assert_eq!(found, b"precious", "{disk:?}: {what} through the {plant}");
                }
                assert_eq!(fs::read_dir(&victim).unwrap().count(), 3, "{disk:?}: {what} through the {plant}");
            }
        }
    }
}

/// As the manifest of `awari run <(...)` is.
#[test]
fn a_pipe_that_is_written_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    // Open at both ends, so that neither waits for the other.
    let writer = fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let text = std::thread::spawn({
        let pipe = pipe.clone();
        move || RealDisk::default().read_given(&pipe, 100).map_err(|error| error.to_string())
    });
    std::io::Write::write_all(&mut &writer, b"[build]").unwrap();
    while !text.is_finished() && rustix::io::ioctl_fionread(&writer).unwrap() > 0 {
        std::thread::yield_now();
    }
    drop(writer);
    assert_eq!(text.join().unwrap().unwrap(), b"[build]");
}
