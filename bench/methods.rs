//! Comparison of methods: each solves one database in turn, from its capture database to its scores on disk.
//!
//! Prints for each method the seconds by the clock and of processors that its stages took, each kind of stage
//! on a line, and the ratio to sweep, the best of some repetitions. All must make the same bytes.

use bench::build;
use clap::Parser;
use disk::{Io, RealDisk, clock};
use pipeline::RunSummary;
use std::fs;
use std::path::Path;

/// Solves one database by each method.
#[derive(Parser)]
struct MethodsArguments {
    /// The stones.
    #[arg(long, default_value_t = 20)]
    stones: u32,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Turns; the best one of each method counts.
    #[arg(long, default_value_t = 3)]
    turns: usize,
    /// The cache of one-bit-dual, in per cent of its bits.
    #[arg(long, default_value_t = 10)]
    cache: u64,
    /// auto, uring or plain.
    #[arg(long, default_value = "auto")]
    io: Io,
    /// Only these.
    #[arg(long, value_delimiter = ',', default_value = "sweep,two-bit,one-bit,one-bit-dual")]
    methods: Vec<String>,
    /// Where to build.
    #[arg(long)]
    dir: Option<std::path::PathBuf>,
}

/// The kinds of stages that solve a database.
const SOLVING: [&str; 7] = ["counting", "sweep", "seeds", "preprocess", "process", "postprocess", "merge"];

#[derive(Clone)]
struct MethodTimes {
    wall: f64,
    kinds: Vec<(&'static str, f64, f64)>,
}

fn main() {
    let arguments = bench::arguments(|tiny: &mut MethodsArguments| tiny.stones = 7);
    let temporary = tempfile::tempdir().expect("there is a temporary directory");
    let directory = arguments.dir.clone().unwrap_or_else(|| temporary.path().to_path_buf());
    let disk = RealDisk::new(arguments.io).expect("the kernel allows this way to the disk");
    built(&arguments, &disk, &directory, arguments.stones - 1, "sweep");
    let mut best: Vec<Option<MethodTimes>> = vec![None; arguments.methods.len()];
    let mut expected = None;
    for _ in 0..arguments.turns {
        for (method, best) in arguments.methods.iter().zip(&mut best) {
            let summary = built(&arguments, &disk, &directory, arguments.stones, method);
            let turn = turn(&summary);
            if best.as_ref().is_none_or(|best| turn.wall < best.wall) {
                *best = Some(turn);
            }
            let database = format!("databases/{:02}.awari", arguments.stones);
            let bytes = fs::read(directory.join(&database)).expect("the database was built");
            let same = expected.get_or_insert_with(|| bytes.clone());
            assert!(bytes == *same, "{method} makes the same bytes");
            fs::remove_file(directory.join(database)).expect("it was just read");
            let _ = fs::remove_dir_all(directory.join(format!("planes/{:02}", arguments.stones)));
        }
    }
    let reference = best[0].as_ref().map_or(1.0, |turn| turn.wall);
    let mut table = bench::table("method|stages|seconds|of CPU|ratio", 2);
    for (method, turn) in arguments.methods.iter().zip(best.into_iter().flatten()) {
        let cpu: f64 = turn.kinds.iter().map(|(_, _, cpu)| cpu).sum();
        let ratio = format!("{:.2}", turn.wall / reference);
        table.add_row([method.as_str(), "all", &format!("{:.2}", turn.wall), &format!("{cpu:.2}"), &ratio]);
        for (kind, wall, cpu) in &turn.kinds {
            table.add_row(["", kind, &format!("{wall:.2}"), &format!("{cpu:.2}"), ""]);
        }
    }
    println!(
        "{} stones, {} threads, cache {} %, io {}",
        arguments.stones, arguments.threads, arguments.cache, arguments.io
    );
    println!("{table}");
    println!("peak memory {} MiB", clock::peak_resident_bytes().unwrap_or(0) >> 20);
}

fn built(arguments: &MethodsArguments, disk: &RealDisk, directory: &Path, stones: u32, method: &str) -> RunSummary {
    let bits = game::PositionSet::All.positions(stones) / 8;
    let overrides = [
        ("build.stones", format!("\"0..{stones}\"")),
        ("build.memory", "\"4 GiB\"".to_owned()),
        ("build.method", "sweep".to_owned()),
        (&format!("build.methods.{stones}"), method.to_owned()),
        ("dual.cache", format!("{} KiB", (bits * arguments.cache / 100) >> 10)),
        ("store.keep", "all".to_owned()),
        ("check.verify", "none".to_owned()),
    ];
    build(disk, directory, arguments.threads, &overrides)
}

/// Returns the times of the stages of the last database.
fn turn(summary: &RunSummary) -> MethodTimes {
    let kinds = SOLVING.into_iter().filter_map(|kind| {
        let ran = summary.ran.iter().filter(|ran| ran.stage.kind() == kind);
        let (wall, cpu) =
            ran.fold((0.0, 0.0), |(wall, cpu), ran| (wall + ran.measured.wall_seconds, cpu + ran.measured.cpu_seconds));
        (wall > 0.0).then_some((kind, wall, cpu))
    });
    let kinds: Vec<_> = kinds.collect();
    MethodTimes { wall: kinds.iter().map(|(_, wall, _)| wall).sum(), kinds }
}
