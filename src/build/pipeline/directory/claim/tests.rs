//! Directories that hold foreign files.

use crate::Exit;
use crate::directory::claim::MANIFEST_MARK;
use crate::error::PipelineError;
use crate::orchestrator::{Orchestrator, RunOptions, ScratchDirectory};
use crate::toy::{Bench, DIRECTORY, Design};
use disk::{Disk, MemoryDisk, RealDisk};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

fn everything(disk: &MemoryDisk) -> BTreeMap<PathBuf, Vec<u8>> {
    disk.paths().into_iter().map(|path| (path.clone(), disk.peek(&path).unwrap())).collect()
}

fn bench_with(files: &[(&str, &[u8])]) -> Bench {
    let mut bench = Bench::default();
    bench.options.manifest = "a = 1\n".to_owned();
    files.iter().for_each(|(name, bytes)| bench.disk.put(&path(name), bytes));
    bench
}

#[test]
fn directories_of_others_are_refused_untouched() {
    let foreign: [&[(&str, &[u8])]; 13] = [
        &[("lock", b"process list: mine")],
        &[("databases/2", b"my diary")],
        &[("manifest.toml", b"[package]")],
        &[("manifest.toml", MANIFEST_MARK.as_bytes())],
        &[("journal", b"Dear diary,")],
        &[("journal", b"\0\0Dear diary")],
        &[("lock", b"my notes")],
        &[("lock", b""), ("a.txt", b"a")],
        &[("journal", b""), ("stop", b"#!/bin/sh")],
        &[("heartbeat", b"72 a minute")],
        &[("src/main.rs", b"fn main() {}")],
        &[("databases/customers.sql", b"create table")],
        &[(".bashrc", b"export PATH")],
    ];
    for files in foreign {
        let bench = bench_with(files);
        let before = everything(&bench.disk);
        let toy = Design::default().toy();
        let error = bench.run(&toy).unwrap_err();
        assert_eq!(error.exit(), Exit::PreflightFailed, "{error}");
        let (name, _) = files[files.len() - 1];
        let first = name.split('/').next().unwrap();
        let expect = format!("/run holds files that are not awari's ({first}); choose an empty directory");
        assert!(error.to_string().contains(&expect), "{error}");
        let error = bench.orchestrator(&toy).remove_garbage(&Default::default()).unwrap_err();
        assert_eq!(error.exit(), Exit::PreflightFailed, "{error}");
        let scratch = Bench::built();
        files.iter().for_each(|(name, bytes)| scratch.disk.put(&Path::new("/scratch").join(name), bytes));
        let single = scratch.orchestrator(&toy).single("solve:1", &ScratchDirectory::Directory("/scratch".into()));
        assert!(matches!(single, Err(PipelineError::Preflight(_))), "{single:?}");
        assert_eq!(everything(&bench.disk), before);
    }
}

#[test]
fn what_a_crash_leaves_of_a_first_run_is_no_reason_to_refuse() {
    let note: &[u8] = b"process 7 on here since then: awari run";
    let left: [&[(&str, &[u8])]; 9] = [
        &[("lock", b"")],
        &[("lock", &[0; 40]), (".probe.tmp-7", b"half")],
        &[("lock", note), ("logs/run.log", b"begun"), ("journal", b"")],
        &[("lock", note), ("journal", &[0xFF, b'J'])],
        &[("journal", &[0; 700]), ("databases/.0.tmp-7", b"half")],
        &[("journal", &[0xFF, b'J', b'R', 1, 9, 9])],
        &[
            ("journal", &[0xFF, b'J', b'R', 1, 9, 9]),
            ("manifest.toml", MANIFEST_MARK.as_bytes()),
            ("logs/run.log", b"begun"),
        ],
        &[("manifest.toml", MANIFEST_MARK.as_bytes()), ("logs/run.log", b"begun"), ("databases/0", b"dat")],
        &[("run.log", b"")],
    ];
    for files in left {
        let bench = bench_with(files);
        bench.run(&Design::default().toy()).unwrap();
        assert!(!everything(&bench.disk).keys().any(|path| path.to_string_lossy().contains("kept")), "{files:?}");
    }
}

/// Artifacts that were copied, or restored without a journal, to a directory with foreign files under our names.
#[test]
fn files_of_others_beside_artifacts_are_kept() {
    let built = Bench::built();
    let foreign: [(&str, &[u8]); 7] = [
        ("journal", b"Dear diary,"),
        ("lock", b"my notes"),
        ("heartbeat", b"72 a minute"),
        ("stop", b"#!/bin/sh"),
        ("manifest.toml", b"# mine"),
        ("a.txt", b"a"),
        ("journal.kept-1", b"older"),
    ];
    let bench = bench_with(&foreign);
    for n in 0..=3 {
        let name = path(&format!("databases/{n}"));
        bench.disk.put(&name, &built.disk.peek(&name).unwrap());
    }
    let toy = Design::default().toy();
    bench.run(&toy).unwrap();
    assert!(toy.take_log().iter().all(|stage| !stage.starts_with("solve")), "the databases were adopted");
    for (name, bytes) in foreign {
        let kept = match name {
            "a.txt" | "journal.kept-1" => name.to_owned(),
            "journal" => "journal.kept-2".to_owned(),
            _ => format!("{name}.kept-1"),
        };
        assert_eq!(bench.disk.peek(&path(&kept)).as_deref(), Some(bytes), "{kept}");
    }
    let names = bench.disk.paths();
    bench.run(&toy).unwrap();
    assert_eq!(bench.disk.paths(), names, "nothing is kept twice");
}

#[test]
fn a_manifest_that_no_run_wrote_is_kept() {
    let bench = bench_with(&[]);
    let toy = Design::default().toy();
    bench.run(&toy).unwrap();
    let resolved = format!("{MANIFEST_MARK}a = 1\n").into_bytes();
    // As earlier versions wrote it.
    bench.disk.put(&path("manifest.toml"), b"a = 1\n");
    bench.run(&toy).unwrap();
    assert_eq!(bench.disk.peek(&path("manifest.toml")).unwrap(), resolved);
    assert_eq!(bench.disk.peek(&path("manifest.toml.kept-1")), None);
    bench.disk.put(&path("manifest.toml"), b"# by hand\na = 2\n");
    bench.run(&toy).unwrap();
    assert_eq!(bench.disk.peek(&path("manifest.toml")).unwrap(), resolved);
    assert_eq!(bench.disk.peek(&path("manifest.toml.kept-1")).unwrap(), b"# by hand\na = 2\n");
}

#[test]
fn a_run_directory_is_no_scratch_directory() {
    let bench = Bench::built();
    let toy = Design::default().toy();
    for (name, bytes) in everything(&bench.disk) {
        bench.disk.put(&Path::new("/other").join(name.strip_prefix(DIRECTORY).unwrap()), &bytes);
    }
    let before = everything(&bench.disk);
    let scratch = ScratchDirectory::Directory("/other".into());
    let error = bench.orchestrator(&toy).single("solve:1", &scratch).unwrap_err();
    assert_eq!(error.exit(), Exit::Usage);
    assert!(error.to_string().contains("/other is a run directory"), "{error}");
    assert_eq!(everything(&bench.disk), before);
    // What a stage left there is no reason to refuse.
    let scratch = ScratchDirectory::Directory("/scratch".into());
    bench.disk.put(Path::new("/scratch/snapshots/solve-1/fingerprint"), b"another");
    for _ in 0..2 {
        bench.orchestrator(&toy).single("solve:1", &scratch).unwrap();
    }
}

/// Directories count too, and what a file system puts into an empty one does not.
#[test]
fn a_real_directory_is_looked_at() {
    let place = tempfile::tempdir().unwrap();
    let toy = Design::default().toy();
    let disk = RealDisk::default();
    let run = |directory: &Path| Orchestrator::new(&disk, directory, &toy, RunOptions::default()).run();
    let fresh = place.path().join("fresh");
    disk.create_dir_all(&fresh.join("lost+found/#12")).unwrap();
    disk.create_dir_all(&fresh.join("databases")).unwrap();
    run(&fresh).unwrap();
    let taken = place.path().join("taken");
    disk.create_dir_all(&taken.join("a/b")).unwrap();
    std::os::unix::fs::symlink("/dev/null", taken.join("a/b/link")).unwrap();
    let error = run(&taken).unwrap_err();
    assert!(error.to_string().contains("taken holds files that are not awari's (a)"), "{error}");
    assert_eq!(std::fs::read_dir(&taken).unwrap().count(), 1);
}
