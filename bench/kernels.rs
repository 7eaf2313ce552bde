//! Kernels of a build on one thread: captures, and the sweep by each kernel that the processor has. The bench `codecs`
//! measures the store.
//!
//! Each is called several times, and the fastest call counts. Scores and captures are compared with those of the build.

use bench::{Largest, captures, timed};
use clap::Parser;
use engines::{Kernel, ScoreRows, sweep};
use game::PositionSet;

/// Measures captures and sweep of one database.
#[derive(Parser)]
struct KernelArguments {
    /// Stones: a database that fits in the third-level cache of most machines.
    #[arg(long, default_value_t = 14)]
    stones: u32,
    /// Calls of each.
    #[arg(long, default_value_t = 10)]
    calls: usize,
}

fn main() {
    let arguments = bench::arguments(|tiny: &mut KernelArguments| (tiny.stones, tiny.calls) = (6, 1));
    bench::pool(1).install(|| measure(&arguments));
}

fn measure(arguments: &KernelArguments) {
    let Largest { tables, index, captures: best, scores, smaller } = Largest::new(PositionSet::All, arguments.stones);
    let mut table = bench::table("kernel|ms of CPU|M/s of CPU", 1);
    let mut add_row = |name: String, call: &mut dyn FnMut() -> f64| {
        let cpu = (0..arguments.calls).map(|_| call()).fold(f64::INFINITY, f64::min);
        let speed = index.positions() as f64 / cpu / 1e6;
        table.add_row([name, format!("{:.2}", cpu * 1e3), format!("{speed:.1}")]);
    };
    add_row("capture".to_owned(), &mut || {
        let (found, _, cpu) = timed(|| captures(&tables, &index, &smaller));
        assert!(found[..] == best[..]);
        cpu
    });
    for kernel in Kernel::available() {
        add_row(format!("sweep {kernel:?}"), &mut || {
            let mut values = ScoreRows::zeroed(&index).expect("there is memory for the scores");
            let sweep = || sweep::sweep(&tables, &index, &best, &mut values, kernel, &(), &mut |_| {});
            let (report, _, cpu) = timed(sweep);
            report.expect("no observer stops it");
            assert!(values.to_vec() == scores, "{kernel:?}");
            cpu
        });
    }
    println!("one thread, {} stones, {} positions", arguments.stones, index.positions());
    println!("{table}");
}
