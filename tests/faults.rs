//! Whole builds on a disk in memory that fails, fills up or loses power at every single operation, resumed and compared
//! byte for byte with an undisturbed build; and builds that must come out alike.

#![allow(clippy::unwrap_used)]

use disk::{Among, Disk, Fault, MemoryDisk, Operation, PlannedFault};
use pipeline::manifest::Manifest;
use pipeline::{Orchestrator, PipelineError, RunOptions, Summary};
use stages::{Awari, Settings, schema};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "run";

struct Build {
    awari: Awari,
    options: RunOptions,
}

impl Build {
    fn new(overrides: &[(&str, &str)]) -> Build {
        let overrides: Vec<_> = overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let manifest = Manifest::parse("", "test", &schema(), &overrides).unwrap();
        let settings = Settings::new(&manifest);
        let options = RunOptions {
            keep: settings.keep,
            snapshot_interval: settings.snapshot,
            threads: settings.threads,
            manifest: manifest.to_toml(),
            ..RunOptions::default()
        };
        Build { awari: Awari::new(settings), options }
    }

    fn run(&self, disk: &dyn Disk) -> Result<Summary, PipelineError> {
        Orchestrator::new(disk, Path::new(DIRECTORY), &self.awari, self.options.clone()).run()
    }
}

/// Databases, captures and statistics.
fn artifacts(disk: &MemoryDisk) -> BTreeMap<PathBuf, Vec<u8>> {
    let folders = ["databases", "captures", "planes", "stats"].map(|folder| Path::new(DIRECTORY).join(folder));
    let temporary = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let inside = |path: &PathBuf| folders.iter().any(|folder| path.starts_with(folder)) && !temporary(path);
    disk.paths().into_iter().filter(inside).map(|path| (path.clone(), disk.peek(&path).unwrap())).collect()
}

fn undisturbed(build: &Build) -> (BTreeMap<PathBuf, Vec<u8>>, u64) {
    let disk = MemoryDisk::new();
    build.run(&disk).unwrap();
    (artifacts(&disk), disk.operations())
}

/// At every k-th operation of a build.
fn disturbed(overrides: &[(&str, &str)], disturb: impl Fn(&MemoryDisk, u64), then: impl Fn(&MemoryDisk)) {
    disturbed_every(1, overrides, disturb, then);
}

fn disturbed_every(
    step: usize,
    overrides: &[(&str, &str)],
    disturb: impl Fn(&MemoryDisk, u64),
    then: impl Fn(&MemoryDisk),
) {
    let build = Build::new(overrides);
    let (expected, operations) = undisturbed(&build);
    for operation in (1..=operations).step_by(step) {
        let disk = MemoryDisk::new();
        disturb(&disk, operation);
        // Each run is a process of its own: what the other had in memory is gone.
        let _ = Build::new(overrides).run(&disk);
        disk.fail_never();
        then(&disk);
        // Whatever has a final name is complete. (Captures that will not be kept may still be there.)
        for (path, bytes) in artifacts(&disk) {
            assert!(
                expected.get(&path).is_none_or(|expected| *expected == bytes),
                "{} after operation {operation}",
                path.display()
            );
        }
        let again = Build::new(overrides).run(&disk);
        again.unwrap_or_else(|error| panic!("after operation {operation}: {error}"));
        assert!(artifacts(&disk) == expected, "after operation {operation}");
        let snapshots = Path::new(DIRECTORY).join("snapshots");
        assert!(!disk.paths().iter().any(|path| path.starts_with(&snapshots)), "after operation {operation}");
    }
}

const SMALL: [(&str, &str); 3] = [("build.stones", "0..3"), ("store.keep", "all"), ("build.threads", "1")];

#[test]
fn power_lost_at_every_operation() {
    disturbed(&SMALL, |disk, operation| disk.fail_from(operation, Fault::Io), MemoryDisk::crash);
}

#[test]
fn killed_at_every_operation() {
    disturbed(&SMALL, |disk, operation| disk.fail_from(operation, Fault::Io), |_| {});
}

#[test]
fn one_failure_at_every_operation() {
    disturbed(&SMALL, |disk, operation| disk.fail_at(operation, Fault::Io), |_| {});
}

/// With a snapshot after every pass, most runs go on from one.
#[test]
fn killed_at_every_operation_among_snapshots() {
    let snapshots = [SMALL[0], SMALL[1], SMALL[2], ("build.snapshot", "0 s")];
    disturbed(&snapshots, |disk, operation| disk.fail_from(operation, Fault::Io), |_| {});
}

/// A snapshot that cannot be written costs nothing but itself; another failure, and the run after it goes on.
#[test]
fn one_failure_among_snapshots() {
    let snapshots = [SMALL[0], SMALL[1], SMALL[2], ("build.snapshot", "0 s")];
    disturbed(&snapshots, |disk, operation| disk.fail_at(operation, Fault::NoSpace), |_| {});
}

/// A capture database that is sound as a file and wrong as to its content makes a wrong database. The verification
/// finds that, and the next run makes both anew.
#[test]
fn a_wrong_capture_is_made_anew() {
    let all = [("build.stones", "0..5"), ("store.keep", "all"), ("check.verify", "full")];
    let (expected, _) = undisturbed(&Build::new(&all));
    let disk = MemoryDisk::new();
    Build::new(&all).run(&disk).unwrap();
    let path = Path::new(DIRECTORY).join("captures/05.cap");
    let file = store::Scores::open(&disk, &path).unwrap();
    let (identity, shape, range) = (file.identity().clone(), file.shape().clone(), file.range());
    let file = file.expect(&identity, &shape).unwrap();
    let mut scores = vec![0; shape.positions() as usize];
    file.read_into(&mut scores).unwrap();
    let none = scores.iter().position(|&score| score == -6).unwrap();
    scores[none] = 5;
    store::write(&disk, &path, &identity, &shape, range, store::Codec::Packed, &scores).unwrap();
    // As after the loss of the journal: the file is believed on the word of its header.
    disk.remove(&Path::new(DIRECTORY).join("journal")).unwrap();
    disk.remove(&Path::new(DIRECTORY).join("databases/05.awari")).unwrap();
    let error = Build::new(&all).run(&disk).unwrap_err();
    assert_eq!(error.exit(), pipeline::Exit::Integrity, "{error}");
    Build::new(&all).run(&disk).unwrap();
    assert!(artifacts(&disk) == expected);
}

/// A run that goes on from a snapshot says so, and comes to the same scores.
#[test]
fn a_snapshot_is_gone_on_from() {
    for method in ["sweep", "counting", "two-bit", "one-bit", "one-bit-dual"] {
        let build = [
            ("build.stones", "0..6"),
            ("build.snapshot", "0 s"),
            ("build.threads", "1"),
            ("store.keep", "all"),
            ("build.method", method),
        ];
        let (expected, operations) = undisturbed(&Build::new(&build));
        let mut resumed = 0;
        for operation in (operations / 2..operations).step_by(41) {
            let disk = MemoryDisk::new();
            disk.fail_from(operation, Fault::Io);
            let _ = Build::new(&build).run(&disk);
            disk.fail_never();
            let summary = Build::new(&build).run(&disk).unwrap();
            let counts = summary.ran.iter().filter_map(|ran| ran.measured.report.counters.get("resumed"));
            resumed += counts.map(|count| count.as_f64() as u32).sum::<u32>();
            assert!(artifacts(&disk) == expected, "{method}");
        }
        assert!(resumed > 0, "{method}");
    }
}

/// A snapshot may be days of work: where it cannot be read for once, the run ends, and the next goes on from it.
#[test]
fn a_snapshot_that_cannot_be_read_is_not_passed_over() {
    for method in ["sweep", "counting", "two-bit", "one-bit", "one-bit-dual"] {
        let build =
            [("build.stones", "0..4"), ("build.snapshot", "0 s"), ("build.threads", "1"), ("build.method", method)];
        let killed = |operation| {
            let disk = MemoryDisk::new();
            disk.die_at(operation);
            let _ = Build::new(&build).run(&disk);
            disk.kill();
            disk
        };
        let (_, operations) = undisturbed(&Build::new(&build));
        let resumes = |disk: &MemoryDisk| {
            let summary = Build::new(&build).run(disk).unwrap();
            summary.ran[0].measured.report.counters.get("resumed").is_some_and(|resumed| resumed.as_f64() == 1.0)
        };
        let at = (operations / 2..operations).step_by(7).find(|&at| resumes(&killed(at))).unwrap();
        let snapshots: BTreeSet<_> = killed(at)
            .paths()
            .into_iter()
            .filter(|path| path.starts_with(Path::new(DIRECTORY).join("snapshots")))
            .collect();
        let mut failures = 0;
        for first in 0.. {
            let disk = killed(at);
            disk.fail(PlannedFault {
                among: Among::Below(Operation::Read, "snapshots"),
                first,
                count: 1,
                fault: Fault::Io,
            });
            let run = Build::new(&build).run(&disk);
            // Until it is done with them: later stages look for theirs in vain.
            if disk.strikes().iter().all(|strike| !snapshots.contains(&strike.path)) {
                break;
            }
            let error = run.unwrap_err();
            assert_eq!(error.exit(), pipeline::Exit::StageFailed, "{error}");
            assert!(error.to_string().contains("run/snapshots/"), "{error}");
            assert!(resumes(&disk), "{method}, read {first}");
            failures += 1;
        }
        assert!(failures >= 3, "{method}: the mark and a file at least are read, in pieces");
    }
}

/// By whichever method, with whatever cache, on however many threads: the same bytes.
#[test]
fn methods_make_the_same_files() {
    for (set, stones) in [("all", "0..10"), ("reachable", "0..9")] {
        let of = |more: &[(&str, &str)]| {
            let disk = MemoryDisk::new();
            let build = [("build.stones", stones), ("store.keep", "all"), ("game.positions", set)];
            let summary = Build::new(&[&build[..], more].concat()).run(&disk).unwrap();
            (artifacts(&disk), summary.ran.iter().map(|ran| ran.stage.kind().to_owned()).collect::<Vec<_>>())
        };
        let (sweep, _) = of(&[("build.method", "sweep"), ("build.threads", "2")]);
        for threads in ["1", "2", "3"] {
            let (counting, kinds) = of(&[("build.method", "counting"), ("build.threads", threads)]);
            assert!(kinds.iter().any(|kind| kind == "counting") && counting == sweep, "{threads} threads, {set}");
        }
        let small_cache = [("build.method", "one-bit-dual"), ("dual.cache", "16 KiB"), ("dual.block", "4 KiB")];
        let bounds = [
            &[("build.method", "two-bit"), ("build.threads", "1")][..],
            &[("build.method", "two-bit"), ("build.threads", "3")],
            &[("build.method", "one-bit"), ("build.threads", "2")],
            &[("build.method", "one-bit-dual"), ("build.threads", "2")],
            &small_cache,
            &[&small_cache[..], &[("dual.index", "single")]].concat(),
        ];
        let mut planes: Option<BTreeMap<_, _>> = None;
        for more in bounds {
            let (mut files, kinds) = of(more);
            assert!(kinds.iter().any(|kind| kind == "postprocess"), "{kinds:?}");
            let expected = planes.get_or_insert_with(|| files.clone());
            assert!(files == *expected, "{more:?}, {set}: the planes differ");
            files.retain(|path, _| !path.starts_with(Path::new(DIRECTORY).join("planes")));
            assert!(files == sweep, "{more:?}, {set}");
        }
    }
}

/// Operations of planes and of state on disk, too. With strides, since there are thousands.
#[test]
fn killed_among_the_bounds() {
    for method in ["two-bit", "one-bit-dual"] {
        let build = [SMALL[0], SMALL[1], SMALL[2], ("build.snapshot", "0 s"), ("build.method", method)];
        disturbed_every(7, &build, |disk, operation| disk.fail_from(operation, Fault::Io), |_| {});
        disturbed_every(11, &build, |disk, operation| disk.fail_at(operation, Fault::NoSpace), MemoryDisk::crash);
    }
}

#[test]
fn disk_full_from_every_operation() {
    let small = [SMALL[0], ("store.codec", "zstd"), ("store.keep", "databases"), SMALL[2]];
    disturbed(&small, |disk, operation| disk.fail_from(operation, Fault::NoSpace), |_| {});
}

#[test]
fn codec_and_threads_make_nothing_stale() {
    let disk = MemoryDisk::new();
    Build::new(&[("build.stones", "0..6"), ("store.codec", "raw")]).run(&disk).unwrap();
    let before = artifacts(&disk);
    let changes = [
        ("store.codec", "zstd"),
        ("build.threads", "3"),
        ("build.memory", "1 GiB"),
        ("build.method", "sweep"),
        ("build.method", "counting"),
    ];
    for change in changes {
        let summary = Build::new(&[("build.stones", "0..6"), change]).run(&disk).unwrap();
        assert!(summary.ran.is_empty(), "{change:?}");
    }
    assert!(artifacts(&disk) == before);
}

/// Captures read smaller databases in place, or decode them, in one group or several: the scores are the same.
#[test]
fn codecs_give_the_same_scores() {
    let digests = ["raw", "packed", "zstd"].map(|codec| {
        let disk = MemoryDisk::new();
        let build = Build::new(&[("build.stones", "0..11"), ("store.codec", codec), ("check.verify", "none")]);
        let summary = build.run(&disk).unwrap();
        let outputs = summary.ran.into_iter().flat_map(|ran| ran.artifacts);
        outputs.map(|artifact| (artifact.name, artifact.digest)).collect::<BTreeMap<_, _>>()
    });
    assert!(digests[0] == digests[1] && digests[1] == digests[2]);
}

#[test]
fn other_rules_or_positions_never_mix() {
    let disk = MemoryDisk::new();
    Build::new(&[("build.stones", "0..7")]).run(&disk).unwrap();
    let all = artifacts(&disk);
    let reachable = Build::new(&[("build.stones", "0..7"), ("game.positions", "reachable")]);
    let (expected, _) = undisturbed(&reachable);
    reachable.run(&disk).unwrap();
    assert!(artifacts(&disk) == expected && expected != all);
}
