//! Builds by several ranks, which are threads, compared byte for byte with builds by one.

use disk::{Disk, Fault, MemoryDisk, Operation, OperationSet, PlannedFault};
use messaging::{NetworkFaults, ThreadCommunicator};
use pipeline::{Manifest, Orchestrator, PipelineError, RunOptions};
use planner::{JobPlanner, Settings, StageClass, schema};
use stages::{Awari, follow, kinds};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tests::stored_scores::StoredScores;
use tests::torture::by_ranks;

/// More stones than any build here has.
const STONES_MAX: u32 = 16;

fn settings(positions: &str, stones: u32, method: &str) -> Settings {
    settings_with(positions, stones, method, "")
}

/// With further keys of `[store]` and further tables.
fn settings_with(positions: &str, stones: u32, method: &str, more: &str) -> Settings {
    let text = format!(
        "[game]\npositions = \"{positions}\"\n[build]\nstones = \"0..{stones}\"\nmethod = \"{method}\"\nthreads = 1\n\
         [store]\nkeep = \"all\"\n{more}"
    );
    Settings::new(&Manifest::parse(&text, "test", &schema(), &[]).unwrap())
}

fn options() -> RunOptions {
    RunOptions { keep: pipeline::Keep::All, ..RunOptions::default() }
}

/// The files of a run directory, by path.
fn files(disk: &dyn Disk) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let planes = (0..=STONES_MAX).map(|stones| format!("planes/{stones:02}"));
    for folder in kinds::folders().into_iter().map(str::to_owned).chain(planes) {
        for path in disk.list(&Path::new("run").join(folder)).unwrap() {
            let bytes = disk.read(&path, 1 << 24).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

fn alone(settings: &Settings) -> BTreeMap<PathBuf, Vec<u8>> {
    let disk = MemoryDisk::new();
    Orchestrator::new(&disk, Path::new("run"), &Awari::new(settings.clone()), options()).run().unwrap();
    files(&disk)
}

/// Builds on a disk that all ranks share; the first rank leads, and the others follow until it has ended.
fn led(
    settings: &Settings,
    disk: &MemoryDisk,
    ranks: usize,
    of_others: impl Fn(usize) -> Result<Settings, String> + Sync,
) -> Result<pipeline::RunSummary, PipelineError> {
    // Write a snapshot at every opportunity.
    let options = RunOptions { snapshot_interval: Duration::ZERO, ..options() };
    led_with(NetworkFaults::none(), options, settings, disk, ranks, of_others)
}

fn led_with(
    faults: NetworkFaults,
    options: RunOptions,
    settings: &Settings,
    disk: &MemoryDisk,
    ranks: usize,
    of_others: impl Fn(usize) -> Result<Settings, String> + Sync,
) -> Result<pipeline::RunSummary, PipelineError> {
    let (done, others) = by_ranks(
        ThreadCommunicator::job(ranks, faults),
        |job| Orchestrator::new(disk, Path::new("run"), &Awari::led(settings.clone(), job), options).run(),
        |rank, end| {
            let settings = of_others(rank);
            follow(settings.as_ref().map_err(Clone::clone), disk, end, &AtomicBool::new(false), &|_| ())
        },
    );
    others.into_iter().for_each(|other| other.unwrap().unwrap());
    done.unwrap()
}

/// The report of a book that ranks build together in a real directory, with the number of ranks that were
/// there at the end.
fn book_by(ranks: usize, faults: NetworkFaults) -> (Vec<u8>, f64) {
    let place = tests::directory::TestDirectory::new(0);
    let (disk, run) = (disk::RealDisk::default(), place.path("run"));
    let databases = settings_with("all", 6, "sweep", "");
    Orchestrator::new(&disk, &run, &Awari::new(databases), options()).run().unwrap();
    // The first capture of the second player is six plies away.
    let book = "[book]\npositions = 300\nsearch = \"nodes=100\"\nlook-ahead = 6\nroot = \"1 1 1 1 1 0 1 1 1 1 1 0\"\n";
    let settings = settings_with("all", 6, "sweep", book);
    let lost = faults.lost.map(|(rank, _)| rank);
    let is_whole = lost.is_none() && faults.muted.is_none();
    let (done, others) = by_ranks(
        ThreadCommunicator::job(ranks, faults),
        |job| Orchestrator::new(&disk, &run, &Awari::led(settings.clone(), job), options()).run(),
        |_, end| follow(Ok(&settings), &disk, end, &AtomicBool::new(false), &|_| ()),
    );
    for (number, other) in others.into_iter().enumerate() {
        // Without a rank, the end of the job does not reach all others.
        let ended = other.unwrap();
        assert!(ended.is_ok() || !is_whole, "rank {}: {ended:?}", number + 1);
        assert!(ended.is_err() || lost != Some(number + 1), "rank {} was not lost", number + 1);
    }
    let ran = done.unwrap().unwrap().ran;
    assert_eq!(ran.len(), 1);
    let ranks = ran[0].measured.report.counters["ranks"].as_f64();
    (disk.read(&run.join("books/300.json"), 1 << 16).unwrap(), ranks)
}

/// A book is the same by 1, 2 and 4 ranks, with a slow network, and if a rank leaves: its positions go to others.
#[test]
fn ranks_build_the_book_of_one_machine() {
    let (alone, ranks) = book_by(1, NetworkFaults::none());
    assert_eq!(ranks, 1.0);
    assert!(String::from_utf8_lossy(&alone).contains("\"digest\""));
    for ranks in [2, 4] {
        assert!(book_by(ranks, NetworkFaults::none()) == (alone.clone(), ranks as f64));
    }
    assert!(book_by(3, NetworkFaults::jitter(5)) == (alone.clone(), 3.0));
    // The calls of a rank: its first ones agree, and each lease is a few.
    for call in [12, 25, 60] {
        let faults = NetworkFaults { lost: Some((2, call)), ..NetworkFaults::none() };
        assert!(book_by(4, faults) == (alone.clone(), 3.0), "lost at call {call}");
    }
}

/// A rank whose answers are lost does not hold up the book, which is the same.
#[test]
#[ignore = "slow tier: waits 10 s for a rank that does not answer, and 10 s more at the end"]
fn a_rank_that_does_not_answer_changes_nothing() {
    let (alone, _) = book_by(1, NetworkFaults::none());
    // Its first calls agree.
    let faults = NetworkFaults { muted: Some((2, 25)), ..NetworkFaults::none() };
    assert!(book_by(4, faults) == (alone, 3.0));
}

#[test]
fn ranks_build_the_files_of_one_machine() {
    for (positions, stones, method) in
        [("all", 9, "sweep"), ("reachable", 9, "sweep"), ("all", 8, "counting"), ("reachable", 9, "counting")]
    {
        let settings = settings(positions, stones, method);
        let expected = alone(&settings);
        assert!(expected.len() as u32 > 3 * stones);
        for ranks in [2, 3] {
            let disk = MemoryDisk::new();
            let done = led(&settings, &disk, ranks, |_| Ok(settings.clone()));
            let ran = done.unwrap().ran;
            assert_eq!(ran.len() as u32, 4 * (stones + 1));
            let solved = ran.iter().find(|ran| ran.stage.to_string() == format!("{method}:{stones}")).unwrap();
            let counters = &solved.measured.report.counters;
            let of_all = |name: &str| counters[name].as_f64();
            assert_eq!(of_all("ranks"), ranks as f64);
            // Votes alone are two messages for all ranks but one.
            let votes = of_all(if method == "sweep" { "passes" } else { "supersteps" });
            assert!(of_all("messages_sent") >= 2.0 * votes * (ranks - 1) as f64, "{counters:?}");
            assert!(of_all("bytes_sent") >= 8.0 * votes, "{counters:?}");
            assert!((0.0..=1.0).contains(&of_all("waited_share")), "{counters:?}");
            for most in ["work_most_by_mean", "bytes_most_by_mean"] {
                assert!((1.0 - 1e-9..=ranks as f64 + 1e-9).contains(&of_all(most)), "{counters:?}");
            }
            for kind in ["capture", "verify", "stats"] {
                let shared = ran.iter().find(|ran| ran.stage.to_string() == format!("{kind}:{stones}")).unwrap();
                let counters = &shared.measured.report.counters;
                assert_eq!(counters["ranks"].as_f64(), ranks as f64, "{kind}");
                assert!(counters["bytes_sent"].as_f64() > 0.0, "{kind}");
            }
            if method == "counting" {
                assert_eq!(counters["processors"].as_f64(), ranks as f64);
                let updates = counters["combining"].as_f64() * counters["messages"].as_f64();
                assert!(updates > 0.0 && (updates * 4.0 - counters["volume"].as_f64()).abs() < 1.0, "{counters:?}");
                assert!(updates < counters["updates"].as_f64());
            }
            same(&files(&disk), &expected, &format!("{ranks} ranks, {method}"));
        }
    }
}

#[test]
#[ignore = "slow tier: solves a game of twelve stones eight times"]
fn ranks_solve_the_opening_alike() {
    for (method, codec) in [("sweep", "packed"), ("counting", "zstd"), ("two-bit", "packed")] {
        let text = format!(
            "[game]\npositions = \"reachable\"\nopening = 1\n[build]\nstones = \"0..10, 12\"\nmethod = \"{method}\"\nthreads = 1\n\
             [store]\nkeep = \"all\"\ncodec = \"{codec}\"\n"
        );
        let settings = Settings::new(&Manifest::parse(&text, "test", &schema(), &[]).unwrap());
        let expected = alone(&settings);
        assert!(expected.contains_key(Path::new("run/databases/12.awari")));
        for ranks in [2, 3] {
            let disk = MemoryDisk::new();
            led_with(NetworkFaults::none(), options(), &settings, &disk, ranks, |_| Ok(settings.clone())).unwrap();
            same(&files(&disk), &expected, &format!("{ranks} ranks, {method}, {codec}"));
        }
    }
}

#[test]
fn ranks_write_shared_files() {
    for (codec, positions, method, faults) in [
        ("raw", "all", "sweep", NetworkFaults::none()),
        ("packed", "reachable", "counting", NetworkFaults::none()),
        ("zstd", "all", "sweep", NetworkFaults::jitter(3)),
        ("rans", "reachable", "sweep", NetworkFaults::none()),
        ("zstd", "reachable", "counting", NetworkFaults::none()),
    ] {
        let settings = settings_with(positions, 8, method, &format!("codec = \"{codec}\"\n"));
        let expected = alone(&settings);
        for ranks in [2, 3] {
            let disk = MemoryDisk::new();
            led_with(faults.clone(), options(), &settings, &disk, ranks, |_| Ok(settings.clone())).unwrap();
            same(&files(&disk), &expected, &format!("{codec}, {positions}, {method}, {ranks} ranks"));
        }
    }
}

#[test]
fn ranks_build_the_bounds_of_one_machine() {
    for (positions, method, verify, all_ranks) in [
        ("all", "two-bit", "sample", [2, 3]),
        ("reachable", "two-bit", "none", [2, 5]),
        ("all", "one-bit", "none", [3, 4]),
        ("reachable", "one-bit-dual", "sample", [2, 3]),
    ] {
        let stones = 8;
        let settings = settings_with(positions, stones, method, &format!("[check]\nverify = \"{verify}\"\n"));
        let expected = alone(&settings);
        assert!(expected.keys().any(|path| path.ends_with("planes/08/03.won")));
        for ranks in all_ranks {
            let disk = MemoryDisk::new();
            let ran = led(&settings, &disk, ranks, |_| Ok(settings.clone())).unwrap().ran;
            let solved = ran.iter().find(|ran| ran.stage.to_string() == format!("process:{stones}:3")).unwrap();
            let counters = &solved.measured.report.counters;
            assert_eq!(counters["ranks"].as_f64(), ranks as f64);
            assert!(counters["bytes_sent"].as_f64() > 0.0 && counters["work_most_by_mean"].as_f64() >= 1.0);
            // Choices are counted while the bounds are solved, and scores while they are verified, else by all ranks.
            let counted = ran.iter().find(|ran| ran.stage.to_string() == format!("stats:{stones}")).unwrap();
            assert_eq!(counted.measured.report.counters.contains_key("ranks"), verify == "none");
            same(&files(&disk), &expected, &format!("{method}, {positions}, {ranks} ranks"));
        }
    }
}

/// The plan of a job says how many bytes its ranks send: within a third for scores of so few positions.
/// Captures are not sent. Planes of so few are mostly edges of parts; the planner compares those of more
/// stones with recorded counters.
#[test]
fn ranks_send_what_is_planned() {
    const STONES: u32 = 11;
    for (method, ranks) in [("sweep", 3), ("counting", 3)] {
        let settings = settings("all", STONES, method);
        let disk = MemoryDisk::new();
        let ran =
            led_with(NetworkFaults::none(), options(), &settings, &disk, ranks, |_| Ok(settings.clone())).unwrap().ran;
        let mut sent: BTreeMap<StageClass, f64> = BTreeMap::new();
        for ran in ran.iter().filter(|ran| ran.stage.parameters()[0] == STONES) {
            let class = kinds::class(&ran.stage, method.parse().unwrap()).unwrap();
            let bytes = ran.measured.report.counters.get("bytes_sent").map_or(0.0, |sent| sent.as_f64());
            *sent.entry(class).or_default() += bytes;
        }
        let planned = settings.clone().with_ranks(ranks);
        let jobs = JobPlanner::new(&planned).by_each_method(STONES);
        let job = jobs.iter().find(|job| job.method.word() == method).unwrap();
        for (class, measured) in sent {
            let predicted = job.stage(class).unwrap().sent_bytes;
            println!("{method}, {ranks} ranks, {class}: {predicted:.0} bytes for {measured:.0}");
            let is_sent = class != StageClass::Capture;
            // Parts of a file meet within a block of the disk, which rank 0 writes.
            assert!(is_sent || measured < 350_000.0, "{method}: {measured} bytes for captures");
            if is_sent && measured > 500_000.0 {
                assert!((0.67..1.5).contains(&(predicted / measured)), "{method}, {class}: {predicted} for {measured}");
            }
        }
    }
}

/// A finished run directory with one file changed and the journal removed.
fn spoilt(settings: &Settings, name: &str, spoil: impl Fn(&MemoryDisk, &Path)) -> MemoryDisk {
    let disk = MemoryDisk::new();
    Orchestrator::new(&disk, Path::new("run"), &Awari::new(settings.clone()), options()).run().unwrap();
    spoil(&disk, &Path::new("run").join(name));
    // Without a journal, a run accepts files by their headers.
    disk.remove(Path::new("run/journal")).unwrap();
    disk
}

#[test]
fn errors_of_any_rank_read_as_on_one_machine() {
    /// Makes the last captures wrong, in a file with right checksums.
    fn other_captures(disk: &MemoryDisk, path: &Path) {
        let mut file = StoredScores::read(disk, path).unwrap();
        let none = file.range.low();
        file.scores.iter_mut().rev().take(20_000).filter(|score| **score == none).for_each(|score| *score = 5);
        file.write(disk, path);
        disk.remove(Path::new("run/databases/09.awari")).unwrap();
    }
    fn flipped(disk: &MemoryDisk, path: &Path) {
        let mut bytes = disk.peek(path).unwrap();
        let last_block = bytes.len() / 4 * 3;
        bytes[last_block] ^= 1;
        disk.put(path, &bytes);
    }
    type Spoil = fn(&MemoryDisk, &Path);
    let cases: [(&str, &str, Spoil, &str); 3] = [
        ("full", "captures/09.cap", other_captures, "positions checked in the 9-stone database"),
        ("sample", "captures/09.cap", other_captures, "positions checked in the 9-stone database"),
        ("full", "databases/09.awari", flipped, "checksum"),
    ];
    for (verify, name, spoil, what) in cases {
        let settings = settings_with("all", 9, "sweep", &format!("[check]\nverify = \"{verify}\"\n"));
        let disk = spoilt(&settings, name, spoil);
        let alone = Orchestrator::new(&disk, Path::new("run"), &Awari::new(settings.clone()), options()).run();
        let expected = alone.unwrap_err();
        assert_eq!(expected.exit(), pipeline::Exit::Integrity);
        assert!(expected.to_string().contains(what), "{expected}");
        for ranks in [2, 3] {
            let disk = spoilt(&settings, name, spoil);
            let found = led(&settings, &disk, ranks, |_| Ok(settings.clone())).unwrap_err();
            assert_eq!(found.to_string(), expected.to_string(), "{ranks} ranks");
            assert_eq!(found.exit(), expected.exit());
        }
    }
}

/// Planes on disk are the checkpoint, for any number of ranks.
#[test]
fn bounds_resume_with_other_numbers_of_ranks() {
    let settings = settings("all", 8, "two-bit");
    let expected = alone(&settings);
    let disk = MemoryDisk::new();
    let last = ["process:7:2", "preprocess:8:8", "process:8:5", "postprocess:8:5", "preprocess:8:3", "process:8:1"];
    for (ranks, until) in [3, 2, 4, 2, 3, 2].into_iter().zip(last.map(Some)).chain([(4, None)]) {
        let options = RunOptions { until: until.map(str::to_owned), ..options() };
        led_with(NetworkFaults::none(), options, &settings, &disk, ranks, |_| Ok(settings.clone())).unwrap();
    }
    same(&files(&disk), &expected, "with other ranks each time");
    let force = ["process:8:7", "process:8:6", "process:8:2"].map(str::to_owned).to_vec();
    let options = RunOptions { force, ..options() };
    let ran = led_with(NetworkFaults::none(), options, &settings, &disk, 3, |_| Ok(settings.clone())).unwrap().ran;
    assert!(ran.len() >= 3, "{} stages", ran.len());
    same(&files(&disk), &expected, "once more");
}

/// Asserts the same files, byte for byte.
fn same(found: &BTreeMap<PathBuf, Vec<u8>>, expected: &BTreeMap<PathBuf, Vec<u8>>, by: &str) {
    assert!(found.keys().eq(expected.keys()), "{by}");
    for (path, bytes) in expected {
        assert!(found[path] == *bytes, "{}: {by}", path.display());
    }
}

#[test]
fn a_rank_that_cannot_start_stops_all() {
    // Rank 0 alone solves the bounds of the smallest databases.
    for (method, stones) in [("sweep", 4), ("two-bit", 8)] {
        let settings = settings("all", stones, method);
        let disk = MemoryDisk::new();
        let done = led(&settings, &disk, 3, |rank| match rank {
            2 => Err("there is no such manifest".to_owned()),
            _ => Ok(settings.clone()),
        });
        let error = done.unwrap_err().to_string();
        assert!(error.contains("rank 2: there is no such manifest"), "{error}");
        // With all ranks, the build continues.
        led(&settings, &disk, 2, |_| Ok(settings.clone())).unwrap();
        assert_eq!(files(&disk), alone(&settings));
    }
}

/// A job dies in an operation of the disk, and a job with another number of ranks resumes it.
#[test]
#[ignore = "slow tier: a job for each cut"]
fn other_ranks_resume_counting_after_a_job_died() {
    const CUTS: u64 = 16;
    let settings = settings("all", 8, "counting");
    let expected = alone(&settings);
    let disk = MemoryDisk::new();
    led(&settings, &disk, 3, |_| Ok(settings.clone())).unwrap();
    let operations = disk.operations();
    let mut resumed = 0;
    for cut in 0..CUTS {
        let disk = MemoryDisk::new();
        // The largest database is built in the last quarter.
        disk.die_at(operations - operations / 4 * (cut + 1) / CUTS);
        led(&settings, &disk, 3, |_| Ok(settings.clone())).unwrap_err();
        if cut % 2 == 0 {
            disk.kill()
        } else {
            disk.crash_anyhow(cut)
        }
        let ranks = [2, 3, 4][cut as usize % 3];
        let ran = led(&settings, &disk, ranks, |_| Ok(settings.clone())).unwrap().ran;
        let counted = ran.iter().filter_map(|ran| ran.measured.report.counters.get("resumed"));
        resumed += counted.filter(|resumed| resumed.as_f64() == 1.0).count();
        same(&files(&disk), &expected, &format!("cut {cut}, {ranks} ranks"));
        let left = |path: &PathBuf| path.starts_with("run/snapshots");
        assert!(!disk.paths().iter().any(left), "{:?}", disk.paths());
    }
    assert!(resumed >= 2, "{resumed} of {CUTS} cuts left a snapshot that was used");
}

/// A machine alone resumes what several ranks began, and the other way round.
#[test]
fn one_machine_and_several_resume_each_other() {
    const CUTS: u64 = 5;
    for method in ["sweep", "counting"] {
        let settings = settings("all", 8, method);
        let expected = alone(&settings);
        let build = |ranks: usize, disk: &MemoryDisk| match ranks {
            1 => {
                let options = RunOptions { snapshot_interval: Duration::ZERO, ..options() };
                Orchestrator::new(disk, Path::new("run"), &Awari::new(settings.clone()), options).run()
            }
            _ => led(&settings, disk, ranks, |_| Ok(settings.clone())),
        };
        for (before, after) in [(1, 3), (3, 1)] {
            let disk = MemoryDisk::new();
            build(before, &disk).unwrap();
            let operations = disk.operations();
            let mut resumed = 0;
            for cut in 0..CUTS {
                let disk = MemoryDisk::new();
                disk.die_at(operations - operations / 5 * (cut + 1) / CUTS);
                build(before, &disk).unwrap_err();
                disk.kill();
                let ran = build(after, &disk).unwrap().ran;
                let counted = ran.iter().filter_map(|ran| ran.measured.report.counters.get("resumed"));
                resumed += counted.filter(|resumed| resumed.as_f64() == 1.0).count();
                same(&files(&disk), &expected, &format!("{method} by {before} and {after}, cut {cut}"));
            }
            assert!(resumed > 0, "{method} by {before} and {after}: no snapshot was used");
        }
    }
}

/// Scratch files of ranks on disks of their own are used by a job of the same number of ranks, and on one
/// machine by any number. None is left at the end.
#[test]
fn ranks_resume_from_directories_of_their_own() {
    const CUTS: u64 = 6;
    for method in ["sweep", "counting"] {
        let settings = settings_with("all", 8, method, "codec = \"zstd\"\n[cluster]\nscratch = \"scratch\"\n");
        let expected = alone(&settings);
        for is_one_machine in [true, false] {
            let settings_of = |rank: usize| {
                let mut own = settings.clone();
                if !is_one_machine {
                    own.scratch = Some(format!("scratch/{rank}").into());
                }
                own
            };
            let disk = MemoryDisk::new();
            led(&settings_of(0), &disk, 3, |rank| Ok(settings_of(rank))).unwrap();
            same(&files(&disk), &expected, method);
            let is_left = |path: &PathBuf| path.starts_with("scratch") || path.starts_with("run/snapshots");
            assert!(!disk.paths().iter().any(is_left), "{:?}", disk.paths());
            let operations = disk.operations();
            let (mut left, mut resumed) = (0, 0);
            for cut in 0..CUTS {
                let disk = MemoryDisk::new();
                disk.die_at(operations - operations / 4 * (cut + 1) / CUTS);
                led(&settings_of(0), &disk, 3, |rank| Ok(settings_of(rank))).unwrap_err();
                if cut % 2 == 0 {
                    disk.kill()
                } else {
                    disk.crash_anyhow(cut)
                }
                assert!(!disk.paths().iter().any(|path| path.starts_with("run/snapshots")));
                left += usize::from(disk.paths().iter().any(is_left));
                let ranks = if cut % 4 == 3 { 2 } else { 3 };
                let ran = led(&settings_of(0), &disk, ranks, |rank| Ok(settings_of(rank))).unwrap().ran;
                let counted = ran.iter().filter_map(|ran| ran.measured.report.counters.get("resumed"));
                resumed += counted.filter(|resumed| resumed.as_f64() == 1.0).count();
                same(&files(&disk), &expected, &format!("{method}, cut {cut}, {ranks} ranks"));
                let is_of_rank = |path: &PathBuf| is_left(path) && !(ranks == 2 && path.starts_with("scratch/2"));
                // A power loss may restore removed files; the next database would remove them again.
                let is_solved = ran.iter().any(|ran| ran.stage.to_string() == format!("{method}:8"));
                assert!(!is_solved || !disk.paths().iter().any(is_of_rank), "{:?}", disk.paths());
            }
            assert!(left >= 2, "{left} of {CUTS} cuts left anything");
            assert!(method == "sweep" || resumed >= 1, "{resumed} of {CUTS} cuts left a snapshot that was used");
        }
    }
}

#[test]
fn an_unusable_directory_is_reported_before_work() {
    let settings = settings_with("all", 4, "sweep", "[cluster]\nscratch = \"scratch\"\n");
    let with = |scratch: Option<String>| {
        let mut settings = settings.clone();
        settings.scratch = scratch.map(PathBuf::from);
        settings
    };
    let settings_of = |rank: usize| with(Some(format!("scratch-{rank}")));
    let disk = MemoryDisk::new();
    let among = OperationSet::Below(Operation::Create, "scratch-1");
    disk.fail(PlannedFault { among, first: 0, count: u64::MAX, fault: Fault::PermissionDenied });
    let error = led(&settings_of(0), &disk, 3, |rank| Ok(settings_of(rank))).unwrap_err().to_string();
    assert!(error.contains("rank 1: cannot use the directory [cluster] scratch: "), "{error}");
    assert!(!disk.paths().iter().any(|path| path.starts_with("run/databases")));
    // One rank has no scratch directory.
    let settings_of = |rank: usize| with((rank != 2).then(|| "scratch".to_owned()));
    let error = led(&settings_of(0), &MemoryDisk::new(), 3, |rank| Ok(settings_of(rank))).unwrap_err().to_string();
    assert!(error.contains("rank 2: this rank has no [cluster] scratch in its manifest"), "{error}");
}
