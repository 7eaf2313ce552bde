//! Captures and sweep in memory, database by database. Times of whole builds are in `awari status` and `awari report`.
//!
//! Prints for each database positions a second of processor time, nanoseconds a position, and passes.

use bench::solve;
use clap::Parser;
use game::PositionSet;

/// Solves databases in memory, and prints times.
#[derive(Parser)]
struct SweepArguments {
    /// The most stones.
    #[arg(long, default_value_t = 18)]
    stones: u32,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// all or reachable.
    #[arg(long, default_value = "all")]
    positions: PositionSet,
}

fn main() {
    let arguments = bench::arguments(|tiny: &mut SweepArguments| tiny.stones = 6);
    bench::pool(arguments.threads).install(|| solvers(&arguments));
}

fn solvers(arguments: &SweepArguments) {
    let mut table = bench::table("stones|positions|capture ns|sweep ns|M/s of CPU|M/s|passes|full passes", 0);
    let (mut positions, mut cpu, mut wall) = (0, 0.0, 0.0);
    solve(arguments.positions, arguments.stones, |times| {
        let count = times.positions as f64;
        let database_cpu = times.capture_cpu + times.sweep_cpu;
        table.add_row([
            times.stones.to_string(),
            times.positions.to_string(),
            format!("{:.2}", times.capture_cpu * 1e9 / count),
            format!("{:.2}", times.sweep_cpu * 1e9 / count),
            format!("{:.1}", count / database_cpu / 1e6),
            format!("{:.1}", count / times.wall / 1e6),
            times.report.passes.to_string(),
            format!("{:.1}", times.report.recomputed as f64 / count),
        ]);
        positions += times.positions;
        cpu += database_cpu;
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
