//! The solver of bounds in memory, side by side with sweep: passes, positions tested, time.

use bench::{captures, solve};
use clap::Parser;
use disk::clock;
use engines::bounds::{BitKernel, solve_in_memory};
use engines::{Kernel, ScoreRows, Tables, sweep};
use game::{Index, PositionSet, Rules};
use std::sync::Arc;
use std::time::Instant;

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
    let smaller = solve(arguments.positions, arguments.stones - 1, |_| {});
    let tables = Arc::new(Tables::new(Rules::AWARI, arguments.positions, arguments.stones));
    let index = Index::new(arguments.stones, arguments.positions);
    let captures = captures(&tables, &index, &smaller);
    let (cpu, wall) = (clock::cpu_seconds(), Instant::now());
    let mut values = ScoreRows::zeroed(&index).expect("there is memory");
    sweep::sweep(&tables, &index, &captures, &mut values, Kernel::detect(), &(), &mut |_| {})
        .expect("no observer stops it");
    let sweep = (clock::cpu_seconds() - cpu, wall.elapsed().as_secs_f64());
    println!("sweep: {:.2} s of CPU, {:.2} s", sweep.0, sweep.1);
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
        assert!(found == values.to_vec(), "both methods give the same scores");
    }
}
