//! Whole builds: the solvers alone in memory, then everything from a manifest, in a temporary directory.
//!
//! Prints for each database positions a second of processor time, nanoseconds a position, passes; for the whole run
//! also the share of each kind of stage, peak memory and bytes a position on disk. Counts are asserted.

use bench::{build, keys, solve, timed};
use clap::Parser;
use disk::{RealDisk, clock};
use game::PositionSet;
use std::collections::BTreeMap;

/// Builds databases, and prints times, memory and disk space.
#[derive(Parser)]
struct WholeArguments {
    /// The most stones.
    #[arg(long, default_value_t = 18)]
    stones: u32,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Codec of databases.
    #[arg(long, default_value = "zstd")]
    codec: String,
    /// all or reachable.
    #[arg(long, default_value = "all")]
    positions: PositionSet,
    /// Leave out the whole run.
    #[arg(long)]
    solvers_only: bool,
}

fn main() {
    let arguments = bench::arguments(|tiny: &mut WholeArguments| tiny.stones = 6);
    bench::pool(arguments.threads).install(|| solvers(&arguments));
    if !arguments.solvers_only {
        whole_run(&arguments);
    }
}

fn solvers(arguments: &WholeArguments) {
    let mut table = bench::table("stones|positions|capture ns|sweep ns|M/s of CPU|M/s|passes|full passes", 0);
    let (mut positions, mut cpu, mut wall) = (0, 0.0, 0.0);
    solve(arguments.positions, arguments.stones, |times| {
        let count = times.positions as f64;
        let one = times.capture_cpu + times.sweep_cpu;
        table.add_row([
            times.stones.to_string(),
            times.positions.to_string(),
            format!("{:.2}", times.capture_cpu * 1e9 / count),
            format!("{:.2}", times.sweep_cpu * 1e9 / count),
            format!("{:.1}", count / one / 1e6),
            format!("{:.1}", count / times.wall / 1e6),
            times.report.passes.to_string(),
            format!("{:.1}", times.report.recomputed as f64 / count),
        ]);
        positions += times.positions;
        cpu += one;
        wall += times.wall;
    });
    println!("solvers in memory, {} thread(s), {} positions", arguments.threads, arguments.positions);
    println!("{table}");
    println!(
        "all: {positions} positions, {:.1} M/s of CPU, {:.1} ns of CPU a position, {:.1} M/s\n",
        positions as f64 / cpu / 1e6,
        cpu * 1e9 / positions as f64,
        positions as f64 / wall / 1e6
    );
}

fn whole_run(arguments: &WholeArguments) {
    let directory = tempfile::tempdir().expect("there is a temporary directory");
    let overrides = keys(arguments.positions, arguments.stones, &arguments.codec);
    let (summary, wall, cpu) = timed(|| build(&RealDisk::default(), directory.path(), arguments.threads, &overrides));
    let (mut positions, mut bytes) = (0, 0);
    let mut kinds: BTreeMap<String, f64> = BTreeMap::new();
    for ran in &summary.ran {
        *kinds.entry(ran.stage.kind().to_owned()).or_default() += ran.measured.cpu_seconds;
        if ran.stage.kind() == "sweep" {
            positions += ran.measured.report.positions;
            bytes += ran.artifacts.iter().map(|artifact| artifact.bytes).sum::<u64>();
        }
    }
    println!("whole run, {} thread(s), {}, codec {}, sampled", arguments.threads, arguments.positions, arguments.codec);
    for (kind, seconds) in kinds {
        println!("  {kind:8} {:6.2} ns of CPU a position", seconds * 1e9 / positions as f64);
    }
    println!(
        "all: {positions} positions in {wall:.2} s, {:.1} M/s of CPU, {:.1} ns of CPU a position, {:.1} M/s",
        positions as f64 / cpu / 1e6,
        cpu * 1e9 / positions as f64,
        positions as f64 / wall / 1e6
    );
    println!(
        "{:.2} bits a position on disk, peak memory {} MiB",
        bytes as f64 * 8.0 / positions as f64,
        clock::peak_resident_bytes().unwrap_or(0) >> 20
    );
}
