//! The solver of bounds in memory, side by side with sweep: passes, positions tested, time.

use bench::{Largest, swept, timed};
use clap::Parser;
use disk::clock;
use engines::bounds::{BitKernel, solve_in_memory};
use game::PositionSet;

#[derive(Parser)]
struct BoundsArguments {
    #[arg(long, default_value_t = 16)]
    stones: u32,
    #[arg(long, default_value_t = 1)]
    threads: usize,
    #[arg(long, default_value = "all")]
    positions: PositionSet,
}

fn main() {
    let (mut arguments, is_measuring) = bench::arguments::<BoundsArguments>();
    if !is_measuring {
        arguments.stones = 6;
    }
    bench::pool(arguments.threads).install(|| run(&arguments));
}

fn run(arguments: &BoundsArguments) {
    let Largest { tables, index, captures, scores, .. } = Largest::new(arguments.positions, arguments.stones);
    let (_, wall, cpu) = timed(|| swept(&tables, &index, &captures));
    println!("sweep: {cpu:.2} s of CPU, {wall:.2} s");
    for turn in 0..2 {
        let (mut cpu_all, mut passes, mut rows) = (0.0, 0, 0);
        let found = solve_in_memory(
            &tables,
            &index,
            &captures,
            BitKernel::detect(),
            clock::cpu_seconds,
            |bound, report, time| {
                if turn == 1 {
                    println!("{bound:3} {:.3} s, {report:?}", time);
                }
                cpu_all += time;
                passes += report.passes;
                rows += report.rows;
            },
        );
        println!("bounds: {cpu_all:.2} s of CPU, {passes} passes, {rows} rows");
        assert!(found == scores, "both methods give the same scores");
    }
}
