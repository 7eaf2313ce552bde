//! The disk of the operating system, as its callers see it.

mod io_modes;
mod refused_calls;

use super::*;
use crate::Staged;

#[test]
fn files_are_written_appended_truncated_and_read() {
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

/// Only where they are, and only while they are open.
#[test]
fn scratch_files_take_space() {
    const BYTES: u64 = 3 << 20;
    let directory = tempfile::tempdir().unwrap();
    let disk = RealDisk::default();
    let taken = || disk.clone().scratch_bytes(directory.path());
    let first = disk.scratch(&directory.path().join("one"), BYTES).unwrap();
    let second = disk.scratch(&directory.path().join("two"), BYTES).unwrap();
    let both = taken();
    assert!((2 * BYTES..2 * BYTES + (1 << 20)).contains(&both), "{both}");
    drop(first);
    assert_eq!(taken(), both / 2);
    assert_eq!(disk.scratch_bytes(Path::new("/proc")), 0);
    assert_eq!(disk.scratch_bytes(&directory.path().join("absent")), 0);
    drop(second);
    assert_eq!(taken(), 0);
    assert_eq!(RealDisk::default().scratch_bytes(directory.path()), 0);
}

#[test]
fn a_working_file_is_resumed() {
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
fn absent_files_and_directories_are_reported() {
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
    let file = fs::OpenOptions::new().append(true).open(path).unwrap();
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
fn a_path_has_one_canonical_name() {
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
