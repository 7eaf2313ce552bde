//! Message combining: the method counting on 1 to 8 logical processors, after table 1 of Bal & Allis 1995.
//!
//! For each number of processors the time of the largest database, positions a second of processor time, the updates
//! that decided positions send their parents, the messages they travel in, updates to a message, messages a second, and
//! the volume. As in the paper, updates of a processor to itself are no messages. Scores are compared with those of the
//! sweep.

use bench::{Largest, timed};
use clap::Parser;
use game::{PositionSet, Score};
use messaging::Alone;
use solvers::counting::{BATCH, Distribution, RankValues, counting};
use solvers::ranks::collect;
use std::ops::ControlFlow;

/// Counts one database on several numbers of processors.
#[derive(Parser)]
struct CombiningArguments {
    /// Stones.
    #[arg(long, default_value_t = 15)]
    stones: u32,
    /// Threads that run the processors.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// all or reachable.
    #[arg(long, default_value = "all")]
    positions: PositionSet,
    /// Updates in a message, at most.
    #[arg(long, default_value_t = BATCH)]
    batch: usize,
}

fn main() {
    let arguments = bench::arguments(|tiny: &mut CombiningArguments| tiny.stones = 6);
    bench::pool(arguments.threads).install(|| table(&arguments));
}

fn table(arguments: &CombiningArguments) {
    let CombiningArguments { stones, threads, positions: set, batch, .. } = *arguments;
    let Largest { tables, index, captures, scores, .. } = Largest::new(set, stones);
    let mut table =
        bench::table("processors|seconds|M/s of CPU|updates|messages|combining|messages/s|MB|supersteps", 0);
    for processors in [1, 2, 4, 8] {
        let distribution = Distribution { batch, ..Distribution::new(processors) };
        let values = RankValues::zeroed(&index, 1, 0, distribution);
        let mut values = values.expect("there is memory for the scores");
        let (report, seconds, cpu) = timed(|| counting(&tables, &index, &captures, &mut values, &mut Alone, &()));
        let report = report.expect("no observer stops it");
        let mut counted = Vec::new();
        let mut sink = |run: &[Score]| {
            counted.extend_from_slice(run);
            ControlFlow::Continue(())
        };
        let all = 0..index.slab_positions();
        collect(&values, std::slice::from_ref(&all), &mut Alone, &mut sink).expect("there is no other rank");
        assert!(counted == scores, "{processors} processors");
        let total = report.total;
        table.add_row([
            processors.to_string(),
            format!("{seconds:.3}"),
            format!("{:.1}", index.positions() as f64 / cpu / 1e6),
            total.updates().to_string(),
            total.messages.to_string(),
            total.combining().map_or("-".to_owned(), |factor| format!("{factor:.1}")),
            format!("{:.0}", total.messages as f64 / seconds),
            format!("{:.1}", total.volume_bytes() as f64 / 1e6),
            report.supersteps.to_string(),
        ]);
    }
    println!(
        "{stones} stones, {set}: {} positions; {threads} thread(s), messages of at most {batch} updates",
        index.positions()
    );
    println!("{table}");
}
