//! Builds on a disk in memory that fails, fills up or loses power at an operation, resumed and compared byte
//! for byte with an undisturbed build; and builds by different settings that make the same files.

use disk::{Disk, Fault, MemoryDisk, Operation, OperationSet, PlannedFault};
use pipeline::{Manifest, Orchestrator, RunOptions};
use planner::{Method, Settings, schema};
use stages::Awari;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::Codec;
use tests::torture::{DisturbedBuild, FaultClass, FaultRuns, artifacts};

const DIRECTORY: &str = "run";

/// A case of every class of faults by every method: what `torture` does with thousands of cases.
fn faults_cost_only_work_since_a_snapshot(seed: u64) {
    let report = FaultRuns::new(seed, 1).run();
    println!("{}", report.table(comfy_table::presets::NOTHING));
    assert!(report.wrong.is_empty(), "{}", report.wrong.join("\n"));
    assert_eq!(report.classes.len(), FaultClass::all().len());
    for (class, tally) in &report.classes {
        assert!(tally.faults * 10 >= tally.cases * 9 && tally.resumed > 0, "{class:?}: {tally:?}");
    }
    // A tenth of the cases go on from a snapshot: so few may miss those of a method, which
    // `an_unreadable_snapshot_is_an_error` seeks out for each, but not all.
    assert!(report.methods.iter().any(|(_, tally)| tally.from_snapshots > 0), "{:?}", report.methods);
}

#[test]
fn some_faults_cost_only_work_since_a_snapshot() {
    faults_cost_only_work_since_a_snapshot(2);
}

#[test]
#[ignore = "slow tier: builds with other faults"]
fn other_faults_cost_only_work_since_a_snapshot() {
    faults_cost_only_work_since_a_snapshot(3);
}

fn undisturbed(build: &DisturbedBuild) -> (BTreeMap<PathBuf, Vec<u8>>, u64) {
    let disk = MemoryDisk::new();
    build.run(&disk).unwrap();
    (artifacts(&disk), disk.operations())
}

/// A failed read of a snapshot ends the run instead of discarding the snapshot; the next run resumes from it.
#[test]
#[ignore = "slow tier: a build for each operation"]
fn an_unreadable_snapshot_is_an_error() {
    for method in Method::ALL.map(Method::word) {
        let build =
            [("build.stones", "0..4"), ("build.snapshot", "0 s"), ("build.threads", "1"), ("build.method", method)];
        let killed = |operation| {
            let disk = MemoryDisk::new();
            disk.die_at(operation);
            let _ = DisturbedBuild::new(&build).run(&disk);
            disk.kill();
            disk
        };
        let (_, operations) = undisturbed(&DisturbedBuild::new(&build));
        let resumes = |disk: &MemoryDisk| {
            let summary = DisturbedBuild::new(&build).run(disk).unwrap();
            summary.ran[0].measured.report.counters.get("resumed").is_some_and(|resumed| resumed.as_f64() == 1.0)
        };
        let at = (operations / 2..operations).step_by(7).find(|&at| resumes(&killed(at))).unwrap();
        let mut failures = 0;
        for first in 0.. {
            let disk = killed(at);
            // Names of snapshots of counting have the time.
            let snapshots = disk.paths();
            disk.fail(PlannedFault {
                among: OperationSet::Below(Operation::Read, "snapshots"),
                first,
                count: 1,
                fault: Fault::Io,
            });
            let run = DisturbedBuild::new(&build).run(&disk);
            // Later stages probe for snapshots that do not exist.
            if disk.injected_faults().iter().all(|strike| !snapshots.contains(&strike.path)) {
                break;
            }
            let error = run.unwrap_err();
            assert_eq!(error.exit(), pipeline::Exit::StageFailed, "{error}");
            assert!(error.to_string().contains("run/snapshots/"), "{error}");
            assert!(resumes(&disk), "{method}, read {first}");
            failures += 1;
        }
        assert!(failures >= 3, "{method}: the fingerprint and a file are read");
    }
}

/// A failed write-back from the page cache while a snapshot is written ends the stage: the bits are lost.
#[test]
#[ignore = "slow tier: a build for each operation"]
fn bits_lost_while_a_snapshot_is_written_stop_the_stage() {
    let build = [
        ("build.stones", "0..7"),
        ("build.method", "sweep"),
        ("build.methods.\"7..7\"", "one-bit-dual"),
        ("build.snapshot", "0 s"),
        ("build.threads", "1"),
        ("check.verify", "none"),
        ("dual.cache", "4 KiB"),
        ("dual.block", "4 KiB"),
    ];
    for operation in [Operation::Write, Operation::Read] {
        let among = OperationSet::Scratch(operation);
        let disk = MemoryDisk::new();
        DisturbedBuild::new(&build).run(&disk).unwrap();
        let (expected, operations) = (artifacts(&disk), disk.operations_among(among));
        assert!(operations > 500, "{operations} {operation}s: the bits fit the cache");
        for number in 0..16 {
            let first = (2 * number + 1) * operations / 32;
            let disk = MemoryDisk::new();
            disk.fail(PlannedFault { among, first, count: 1, fault: Fault::Io });
            match DisturbedBuild::new(&build).run(&disk) {
                Err(error) => assert_eq!(error.exit(), pipeline::Exit::StageFailed, "{error}"),
                Ok(_) => assert!(artifacts(&disk) == expected, "{operation} {first} of {operations}: other bytes"),
            }
            DisturbedBuild::new(&build).run(&disk).unwrap();
            assert!(artifacts(&disk) == expected, "{operation} {first} of {operations}");
        }
    }
}

/// The method, the cache and the number of threads change no byte.
#[test]
fn methods_build_the_same_files() {
    any_method_builds_the_same_files(&[("all", "0..8"), ("reachable", "0..7")]);
}

#[test]
#[ignore = "slow tier: 9 stones by eleven builds"]
fn methods_build_the_same_files_of_9_stones() {
    any_method_builds_the_same_files(&[("all", "0..9")]);
}

fn any_method_builds_the_same_files(builds: &[(&str, &str)]) {
    for &(set, stones) in builds {
        let built_with = |more: &[(&str, &str)]| {
            let disk = MemoryDisk::new();
            let build = [("build.stones", stones), ("store.keep", "all"), ("game.positions", set)];
            let summary = DisturbedBuild::new(&[&build[..], more].concat()).run(&disk).unwrap();
            (artifacts(&disk), summary.ran.iter().map(|ran| ran.stage.kind().to_owned()).collect::<Vec<_>>())
        };
        let (sweep, _) = built_with(&[("build.method", "sweep"), ("build.threads", "2")]);
        for (method, threads) in
            ["sweep", "counting"].into_iter().flat_map(|method| ["1", "3"].map(|threads| (method, threads)))
        {
            let (files, kinds) = built_with(&[("build.method", method), ("build.threads", threads)]);
            assert!(kinds.iter().any(|kind| kind == method) && files == sweep, "{method}, {threads} threads, {set}");
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
            let (mut files, kinds) = built_with(more);
            assert!(kinds.iter().any(|kind| kind == "postprocess"), "{kinds:?}");
            let expected = planes.get_or_insert_with(|| files.clone());
            assert!(files == *expected, "{more:?}, {set}: the planes differ");
            files.retain(|path, _| !path.starts_with(Path::new(DIRECTORY).join("planes")));
            assert!(files == sweep, "{more:?}, {set}");
        }
    }
}

#[test]
fn codec_and_threads_leave_files_fresh() {
    let disk = MemoryDisk::new();
    DisturbedBuild::new(&[("build.stones", "0..6"), ("store.codec", "raw")]).run(&disk).unwrap();
    let before = artifacts(&disk);
    let changes = [
        ("store.codec", "zstd"),
        ("build.threads", "3"),
        ("build.memory", "1 GiB"),
        ("build.method", "sweep"),
        ("build.method", "counting"),
    ];
    for change in changes {
        let summary = DisturbedBuild::new(&[("build.stones", "0..6"), change]).run(&disk).unwrap();
        assert!(summary.ran.is_empty(), "{change:?}");
    }
    assert!(artifacts(&disk) == before);
}

/// Captures read smaller databases in place, or decode them, in one group or several: the scores are the same.
#[test]
fn codecs_give_the_same_scores() {
    let digests = Codec::ALL.map(Codec::name).map(|codec| {
        let disk = MemoryDisk::new();
        let build = DisturbedBuild::new(&[("build.stones", "0..11"), ("store.codec", codec), ("check.verify", "none")]);
        let summary = build.run(&disk).unwrap();
        let outputs = summary.ran.into_iter().flat_map(|ran| ran.artifacts);
        outputs.map(|artifact| (artifact.name, artifact.digest)).collect::<BTreeMap<_, _>>()
    });
    assert!(digests.iter().all(|digest| *digest == digests[0]));
}

/// A build of the largest database by a method, the smaller ones by sweep.
fn largest(method: &str, stones: u32) -> (Awari, RunOptions) {
    let (stones_given, key) = (format!("0..{stones}"), format!("build.methods.\"{stones}..{stones}\""));
    let overrides = [
        ("build.stones", &*stones_given),
        ("build.method", "sweep"),
        (&*key, method),
        ("build.snapshot", "0 s"),
        ("build.threads", "1"),
        ("check.verify", "none"),
    ];
    let overrides = overrides.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let manifest = Manifest::parse("", "test", &schema(), &overrides).unwrap();
    (Awari::new(Settings::new(&manifest)), RunOptions { snapshot_interval: Duration::ZERO, ..RunOptions::default() })
}

/// Disk space that suffices for a build suffices to resume it: the prediction does not count existing files again.
#[test]
#[ignore = "slow tier: a build for each operation"]
fn space_for_a_build_suffices_to_resume_it() {
    const STONES: u32 = 9;
    let smaller = MemoryDisk::new();
    DisturbedBuild::new(&[("build.stones", "0..8"), ("build.method", "sweep"), ("check.verify", "none")])
        .run(&smaller)
        .unwrap();
    let copy = || {
        let disk = MemoryDisk::new();
        smaller.paths().iter().for_each(|path| disk.put(path, &smaller.peek(path).unwrap()));
        disk
    };
    let taken =
        |disk: &MemoryDisk| -> u64 { disk.paths().iter().map(|path| disk.allocated_bytes(path).unwrap()).sum() };
    let directory = Path::new(DIRECTORY);
    let at_root = |disk: &MemoryDisk| -> u64 {
        let files = disk.list(directory).unwrap();
        files.iter().map(|path| disk.allocated_bytes(path).unwrap()).sum()
    };
    for method in Method::ALL.map(Method::word) {
        let run = |disk: &MemoryDisk| {
            let (awari, options) = largest(method, STONES);
            Orchestrator::new(disk, directory, &awari, options).run()
        };
        let needed = |disk: &MemoryDisk| {
            let (awari, options) = largest(method, STONES);
            Orchestrator::new(disk, directory, &awari, options).plan().unwrap().prediction.disk_bytes
        };
        let disk = copy();
        let (start, before) = (disk.operations(), at_root(&disk));
        run(&disk).unwrap();
        let (operations, expected) = (disk.operations() - start, artifacts(&disk));
        // The journal is not part of the prediction.
        let full = needed(&copy());
        let limit = taken(&smaller) + full + 2 * (at_root(&disk) - before) + 4096;
        let mut spared = 0;
        for at in (1..12).map(|part| part * operations / 12) {
            let disk = copy();
            disk.set_bytes_max(limit);
            disk.die_at(disk.operations() + at);
            let _ = run(&disk);
            disk.kill();
            let there: u64 = (disk.paths().iter())
                .filter(|path| ["snapshots", "planes"].iter().any(|folder| path.starts_with(directory.join(folder))))
                .map(|path| disk.allocated_bytes(path).unwrap())
                .sum();
            let left = needed(&disk);
            spared += u64::from(there > 16 << 10 && left < full);
            run(&disk).unwrap_or_else(|error| panic!("{method}, killed at {at} of {operations}: {error}"));
            assert!(artifacts(&disk) == expected, "{method}, killed at {at} of {operations}: other bytes");
        }
        assert!(spared > 2, "{method}: {spared} kills left files to resume from");
    }
}
