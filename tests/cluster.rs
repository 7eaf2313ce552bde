//! Whole builds by the ranks of a job, which are threads here: the files of one machine, byte for byte.

#![allow(clippy::unwrap_used)]

use disk::{Disk, MemoryDisk};
use pipeline::{Manifest, Orchestrator, PipelineError, RunOptions};
use ranks::{Communicator, Threads, Weather};
use stages::cluster::{Job, follow};
use stages::{Awari, Settings, schema};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const FOLDERS: [&str; 4] = ["captures", "databases", "planes", "stats"];

fn settings(positions: &str, stones: u32, method: &str) -> Settings {
    let text = format!(
        "[game]\npositions = \"{positions}\"\n[build]\nstones = \"0..{stones}\"\nmethod = \"{method}\"\nthreads = 1\n\
         [store]\nkeep = \"all\"\n"
    );
    Settings::new(&Manifest::parse(&text, "test", &schema(), &[]).unwrap())
}

fn options() -> RunOptions {
    RunOptions { keep: pipeline::Keep::All, ..RunOptions::default() }
}

/// What a run leaves, by path.
fn files(disk: &dyn Disk) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for folder in FOLDERS {
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

/// A build on one disk that all ranks see; all others leave when it is over.
fn led(
    settings: &Settings,
    disk: &MemoryDisk,
    ranks: usize,
    of_others: impl Fn(usize) -> Result<Settings, String> + Sync,
) -> Result<pipeline::Summary, PipelineError> {
    let mut ends = Threads::new(ranks, Weather::calm()).into_iter();
    let first = ends.next().unwrap();
    std::thread::scope(|scope| {
        let of_others = &of_others;
        let run = |mut end: Threads| {
            scope.spawn(move || {
                let settings = of_others(end.rank());
                follow(settings.as_ref().map_err(Clone::clone), disk, &mut end, &AtomicBool::new(false)).unwrap()
            })
        };
        ends.for_each(|end| drop(run(end)));
        let job = Arc::new(Job::lead(Box::new(first)));
        let work = Awari::led(settings.clone(), Arc::clone(&job));
        let done = Orchestrator::new(disk, Path::new("run"), &work, options()).run();
        job.dismiss();
        done
    })
}

#[test]
fn ranks_leave_the_files_of_one_machine() {
    for (positions, stones, method) in
        [("all", 9, "sweep"), ("reachable", 10, "sweep"), ("all", 8, "counting"), ("reachable", 10, "counting")]
    {
        let settings = settings(positions, stones, method);
        let expected = alone(&settings);
        assert!(expected.len() as u32 > 3 * stones);
        for ranks in [2, 3, 4] {
            let disk = MemoryDisk::new();
            let done = led(&settings, &disk, ranks, |_| Ok(settings.clone()));
            let ran = done.unwrap().ran;
            assert_eq!(ran.len() as u32, 4 * (stones + 1));
            let solved = ran.iter().find(|ran| ran.stage.to_string() == format!("{method}:{stones}")).unwrap();
            let counters = &solved.measured.report.counters;
            assert_eq!(counters["ranks"].as_f64(), ranks as f64);
            if method == "counting" {
                assert_eq!(counters["processors"].as_f64(), ranks as f64);
                let updates = counters["combining"].as_f64() * counters["messages"].as_f64();
                assert!(updates > 0.0 && (updates * 4.0 - counters["volume"].as_f64()).abs() < 1.0, "{counters:?}");
                assert!(updates < counters["updates"].as_f64());
            }
            let found = files(&disk);
            assert!(found.keys().eq(expected.keys()));
            for (path, bytes) in &expected {
                assert!(found[path] == *bytes, "{} by {ranks} ranks, {method}", path.display());
            }
        }
    }
}

#[test]
fn a_rank_that_cannot_take_part_stops_all() {
    let settings = settings("all", 4, "sweep");
    let disk = MemoryDisk::new();
    let done = led(&settings, &disk, 3, |rank| match rank {
        2 => Err("there is no such manifest".to_owned()),
        _ => Ok(settings.clone()),
    });
    let error = done.unwrap_err().to_string();
    assert!(error.contains("rank 2: there is no such manifest"), "{error}");
    // All ranks are there now, and go on.
    let done = led(&settings, &disk, 2, |_| Ok(settings.clone()));
    done.unwrap();
    assert_eq!(files(&disk), alone(&settings));
}
