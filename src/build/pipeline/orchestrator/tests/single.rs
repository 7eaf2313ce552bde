//! Single stages in a scratch directory.

use crate::directory::Directory;
use crate::exit::Exit;
use crate::orchestrator::single::{OutputComparison, ScratchDirectory};
use crate::orchestrator::tests::toy;
use crate::toy::{Bench, DIRECTORY, Design};
use std::path::Path;

#[test]
fn a_single_stage_is_compared_and_changes_nothing() {
    let bench = Bench::default();
    let toy = toy();
    bench.run(&toy).unwrap();
    toy.take_log();
    let paths = bench.disk.paths();
    let before = bench.files();
    // A run holds the directory meanwhile.
    let held = Directory::open(&bench.disk, Path::new(DIRECTORY), "run", &|| Ok(true)).unwrap();
    let single = bench.single(&toy, "solve:3").unwrap();
    drop(held);
    assert_eq!(toy.take_log(), ["capture:3", "solve:3"]);
    assert!(single.is_identical());
    assert_eq!(single.outputs[0].comparison, OutputComparison::Identical);
    assert_eq!(single.rebuilt.len(), 1);
    assert_eq!((bench.disk.paths(), bench.files()), (paths, before));

    let single = bench.single(&toy, "verify:2").unwrap();
    assert_eq!(single.outputs[0].comparison, OutputComparison::Passed);
    assert_eq!(bench.single(&toy, "capture:1").unwrap().outputs[0].comparison, OutputComparison::Identical);

    let mut salted = Design::default().toy();
    salted.salted.insert(3);
    let single = bench.single(&salted, "solve:3").unwrap();
    assert!(!single.is_identical());

    // Without a journal the header tells.
    bench.remove("journal");
    assert!(bench.single(&toy, "solve:3").unwrap().is_identical());
}

#[test]
fn a_single_stage_leaves_its_outputs_in_a_given_scratch_directory() {
    let bench = Bench::default();
    let toy = toy();
    bench.run(&toy).unwrap();
    let scratch = ScratchDirectory::Directory(Path::new("/scratch").to_path_buf());
    let single = bench.orchestrator(&toy).single("solve:1", &scratch).unwrap();
    assert_eq!(single.directory.as_deref(), Some(Path::new("/scratch")));
    let made = bench.disk.peek(Path::new("/scratch/databases/1"));
    assert_eq!(made, bench.disk.peek(Path::new("/run/databases/1")));

    let inside = ScratchDirectory::Directory(Path::new("/run/x").to_path_buf());
    let error = bench.orchestrator(&toy).single("solve:1", &inside).unwrap_err();
    assert_eq!(error.exit(), Exit::Usage);
    bench.remove("databases/0");
    let error = bench.single(&toy, "solve:1").unwrap_err();
    assert_eq!(error.exit(), Exit::PreflightFailed);
    assert_eq!(error.to_string(), "capture:1 reads databases/0, which is absent; solve:0 makes it");
}

#[test]
fn a_single_stage_that_fails_cleans_up() {
    let bench = Bench::default();
    bench.run(&toy()).unwrap();
    let paths = bench.disk.paths();
    let mut broken = toy();
    broken.fail.insert("solve:2".to_owned());
    let error = bench.single(&broken, "solve:2").unwrap_err();
    assert_eq!(error.exit(), Exit::StageFailed);
    assert_eq!(bench.disk.paths(), paths);
}
