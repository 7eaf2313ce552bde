//! Garbage of a run directory.

use crate::directory::Directory;
use crate::exit::Exit;
use crate::orchestrator::garbage::GarbageReason;
use crate::orchestrator::tests::toy;
use crate::toy::{Bench, DIRECTORY, Design};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn garbage_is_listed_and_removed_on_request() {
    let mut bench = Bench::default();
    bench.options.keep = crate::Keep::All;
    bench.run(&toy()).unwrap();
    let put = |name: &str| bench.disk.put(&Path::new(DIRECTORY).join(name), b"12345");
    put("databases/.3.tmp-77");
    put("databases/mine");
    put("snapshots/solve-2/scores");
    put("snapshots/solve-3/fingerprint");
    let smaller = Design { last: 2, ..Design::default() }.toy();
    let before = bench.disk.paths();
    let garbage = bench.orchestrator(&smaller).garbage().unwrap();
    assert_eq!(bench.disk.paths(), before);
    let paths = |why: GarbageReason| -> Vec<String> {
        let items = garbage.items.iter().filter(|item| item.why == why);
        items.map(|item| item.path.strip_prefix(DIRECTORY).unwrap().display().to_string()).collect()
    };
    assert_eq!(paths(GarbageReason::Leftover), ["databases/.3.tmp-77"]);
    assert_eq!(paths(GarbageReason::Snapshot), ["snapshots/solve-2", "snapshots/solve-3"]);
    assert_eq!(paths(GarbageReason::Kept), ["captures/0", "captures/1", "captures/2"]);
    assert_eq!(paths(GarbageReason::Unasked), ["captures/3", "databases/3", "stats/3"]);
    assert_eq!(paths(GarbageReason::Unread), Vec::<String>::new());
    assert_eq!(garbage.strange, [Path::new(DIRECTORY).join("databases/mine")]);

    let reasons = BTreeSet::from([GarbageReason::Leftover, GarbageReason::Snapshot, GarbageReason::Unasked]);
    let removed = bench.orchestrator(&smaller).remove_garbage(&reasons).unwrap();
    assert_eq!(removed.len(), 6);
    let left = bench.orchestrator(&smaller).garbage().unwrap();
    assert!(left.items.iter().all(|item| item.why == GarbageReason::Kept) && left.items.len() == 3);
    assert!(bench.disk.peek(&Path::new(DIRECTORY).join("databases/mine")).is_some());
    // Nothing that is needed has gone.
    assert!(bench.run(&smaller).unwrap().ran.is_empty());
    let held = Directory::open(&bench.disk, Path::new(DIRECTORY), "another command", &|| Ok(true)).unwrap();
    let refused = bench.orchestrator(&smaller).remove_garbage(&reasons).unwrap_err();
    assert_eq!(refused.exit(), Exit::Locked);
    // What the holder is writing is no garbage.
    put("databases/.2.tmp-78");
    let garbage = bench.orchestrator(&smaller).garbage().unwrap();
    assert!(garbage.holder.is_some_and(|holder| holder.contains("another command")));
    assert!(garbage.items.iter().all(|item| item.why == GarbageReason::Kept), "{:?}", garbage.items);
    drop(held);
    let garbage = bench.orchestrator(&smaller).garbage().unwrap();
    assert!(garbage.holder.is_none() && garbage.items.iter().any(|item| item.why == GarbageReason::Leftover));
}

/// Files that are neither declared nor recorded are garbage for a reason, or strange.
#[test]
fn every_file_of_a_run_directory_is_classified() {
    let bench = Bench::built();
    let whole = bench.files()["databases/2"].clone();
    let put = |name: &str, bytes: &[u8]| bench.disk.put(&Path::new(DIRECTORY).join(name), bytes);
    for name in [".manifest.toml.tmp-1", "logs/.run.log.tmp-2", "planes/2/.1.won.tmp-3"] {
        put(name, b"half");
    }
    for name in ["heartbeat", "stop", "logs/run.log"] {
        put(name, b"ours");
    }
    for name in ["notes.txt", "planes/2/mine", "mine/x", "snapshots/mine/x"] {
        put(name, b"mine");
    }
    for name in ["snapshots/counting-2/fingerprint", "snapshots/counting-2/rank-1/counts"] {
        put(name, b"saved by a method that is not used any more");
    }
    put("planes/2/1.won", &whole);
    put("databases/9", &whole);
    bench.disk.put(Path::new("/scratch/toy/fingerprint"), b"saved by a rank");
    bench.disk.put(Path::new("/scratch/other/fingerprint"), b"saved by another run");
    let before = bench.disk.paths();
    let garbage = bench.orchestrator(&toy()).garbage().unwrap();
    assert_eq!(bench.disk.paths(), before);
    let paths = |why: GarbageReason| -> Vec<String> {
        let items = garbage.items.iter().filter(|item| item.why == why);
        items.map(|item| item.path.strip_prefix(DIRECTORY).unwrap_or(&item.path).display().to_string()).collect()
    };
    assert_eq!(
        paths(GarbageReason::Leftover),
        [".manifest.toml.tmp-1", "logs/.run.log.tmp-2", "planes/2/.1.won.tmp-3"]
    );
    assert_eq!(paths(GarbageReason::Snapshot), ["snapshots/counting-2", "/scratch/toy"]);
    assert_eq!(paths(GarbageReason::Unasked), ["databases/9", "planes/2/1.won"]);
    let mut strange: Vec<String> =
        garbage.strange.iter().map(|path| path.strip_prefix(DIRECTORY).unwrap().display().to_string()).collect();
    strange.sort();
    assert_eq!(strange, ["mine", "notes.txt", "planes/2/mine", "snapshots/mine/x"]);
    assert_eq!(garbage.items.len(), 7);

    let reasons = BTreeSet::from([GarbageReason::Leftover, GarbageReason::Snapshot, GarbageReason::Unasked]);
    bench.orchestrator(&toy()).remove_garbage(&reasons).unwrap();
    assert!(bench.orchestrator(&toy()).garbage().unwrap().items.is_empty());
    for name in ["notes.txt", "planes/2/mine", "mine/x", "snapshots/mine/x", "logs/run.log"] {
        assert!(bench.disk.peek(&Path::new(DIRECTORY).join(name)).is_some(), "{name}");
    }
    assert!(bench.disk.peek(Path::new("/scratch/other/fingerprint")).is_some());
    assert!(bench.run(&toy()).unwrap().ran.is_empty());
}

/// Snapshots that a stage will resume from stay; unfinished files beside them are removed.
#[test]
fn usable_snapshots_are_no_garbage() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let bench = Bench::default();
    let mut stopped = toy();
    stopped.stop_in = Some(("solve:2".to_owned(), &STOP));
    bench.orchestrator(&stopped).stop(&STOP).run().unwrap();
    STOP.store(false, Ordering::Relaxed);
    bench.disk.put(Path::new("/run/snapshots/solve-2/.half.tmp-9"), b"ha");
    bench.disk.put(Path::new("/scratch/toy/fingerprint"), b"saved by a rank");
    let reasons = BTreeSet::from([
        GarbageReason::Leftover,
        GarbageReason::Snapshot,
        GarbageReason::Unasked,
        GarbageReason::Unread,
    ]);
    let removed = bench.orchestrator(&toy()).remove_garbage(&reasons).unwrap();
    let paths: Vec<&Path> = removed.iter().map(|item| item.path.as_path()).collect();
    assert_eq!(paths, [Path::new("/run/snapshots/solve-2/.half.tmp-9")]);
    let summary = bench.run(&toy()).unwrap();
    assert_eq!(summary.ran[0].measured.report.counters["resumed"].as_f64(), 1.0);
}
