//! One database solved by 1 to 8 ranks that are threads of this process, and by a sweep in one process.
//!
//! Printed for each number of ranks: time and processor time of the sweep; time to collect the scores in
//! canonical order (each rank receives the same number of positions); supersteps; recomputations and changes
//! a position; bytes sent a position, messages, and bytes a message; bytes sent by the busiest rank relative
//! to the mean; share of the time spent waiting; memory of all ranks, in bytes a position. The table follows
//! table 1 of Bal & Allis 1995, whose algorithm sends an update for every move. Scores are compared with
//! those of the sweep.
//!
//! A second table shows counting, the algorithm of the paper: updates a position, those sent between ranks,
//! and updates a message, votes not counted. A third shows two-bit: supersteps of all bounds, and traffic
//! including votes.

use bench::{Largest, pool, ratio, swept, timed};
use clap::Parser;
use comfy_table::Table;
use disk::clock;
use game::{Index, PositionSet, Score};
use messaging::{Communicator, MessageTraffic, NetworkFaults, ThreadCommunicator};
use solvers::bounds::BitKernel;
use solvers::bounds::ranks as by_ranks;
use solvers::counting::Distribution;
use solvers::counting::ranks::{RankValues, counting};
use solvers::ranks::{ScoreShare, collect};
use solvers::sweep::ranks::{RankScores, ScorePartition, SweepReport, sweep};
use solvers::{Bytes, Kernel, Tables};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Sweeps one database on several numbers of ranks.
#[derive(Parser)]
struct ClusterArguments {
    /// Stones.
    #[arg(long, default_value_t = 18)]
    stones: u32,
    /// Threads of each rank.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Numbers of ranks.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8])]
    ranks: Vec<usize>,
    /// all or reachable.
    #[arg(long, default_value = "all")]
    positions: PositionSet,
    /// Minimal latency of a message, in milliseconds; the maximum is 1.5 times that.
    #[arg(long, default_value_t = 0.0)]
    delay: f64,
    /// sweep, counting, two-bit.
    #[arg(long, value_delimiter = ',', default_values_t = ["sweep", "counting", "two-bit"].map(str::to_owned))]
    methods: Vec<String>,
}

/// Measurements and scores of a rank.
struct RankResult {
    report: SweepReport,
    sweep_seconds: f64,
    scores: Vec<Score>,
    held: u64,
}

fn main() {
    let arguments = bench::arguments(|tiny: &mut ClusterArguments| tiny.stones = 6);
    let ClusterArguments { stones, threads, positions: set, delay, .. } = arguments;
    let Largest { tables, index, captures: best, scores: expected, .. } = Largest::new(set, stones);
    let faults = NetworkFaults { delay: milliseconds(delay)..milliseconds(1.5 * delay), ..NetworkFaults::none() };
    let mut table = bench::table(
        "ranks|seconds|ns of CPU|collected|supersteps|recomputed|changed|bytes/position|messages|\
         KB/message|balance|waited|held",
        0,
    );
    let ((_, alone), seconds, cpu) = timed(|| pool(threads).install(|| swept(&tables, &index, &best)));
    let positions = index.positions() as f64;
    table.add_row([
        "alone".to_owned(),
        format!("{seconds:.2}"),
        format!("{:.1}", cpu / positions * 1e9),
        "-".to_owned(),
        alone.passes.to_string(),
        format!("{:.1}", alone.recomputed as f64 / positions),
        format!("{:.2}", alone.changed as f64 / positions),
    ]);
    for &ranks in &arguments.ranks {
        let ready = std::sync::Barrier::new(ranks + 1);
        let run = |end: &mut dyn Communicator| {
            let partition = Arc::new(ScorePartition::new(&tables, index.slabs(), ranks));
            let mut part = RankScores::zeroed(&tables, partition, end.rank()).expect("there is memory for the scores");
            let read = |positions: Range<u64>, out: &mut [Score]| {
                out.copy_from_slice(&best[positions.start as usize..positions.end as usize]);
                Ok::<_, std::io::Error>(())
            };
            let best = part.captures(read).expect("there is memory for the captures");
            ready.wait();
            let start = Instant::now();
            let report =
                sweep(&tables, &index, &best, &mut part, Kernel::detect(), end, &()).expect("no observer stops it");
            let sweep_seconds = start.elapsed().as_secs_f64();
            let scores = collected(&part, &index, end);
            RankResult { report, sweep_seconds, scores, held: part.memory_layout().memory_bytes() }
        };
        let (taken, (cpu, start)) = job(ranks, threads, &faults, run, || {
            ready.wait();
            (clock::cpu_seconds(), Instant::now())
        });
        let (cpu, seconds) = (clock::cpu_seconds() - cpu, start.elapsed().as_secs_f64());
        assert!(taken.iter().flat_map(|result| &result.scores).eq(&expected), "{ranks} ranks");
        let traffic: Vec<MessageTraffic> = taken.iter().map(|result| result.report.traffic).collect();
        let sent = traffic.iter().map(|rank| rank.bytes_sent).sum::<u64>() as f64;
        let messages = traffic.iter().map(|rank| rank.messages_sent).sum::<u64>() as f64;
        let RankResult { report, sweep_seconds: swept, .. } = &taken[0];
        let [balance, waited] = balance(*swept, &traffic);
        table.add_row([
            ranks.to_string(),
            format!("{swept:.2}"),
            format!("{:.1}", cpu / positions * 1e9),
            format!("{:.2}", seconds - swept),
            report.passes.to_string(),
            format!("{:.1}", report.recomputed as f64 / positions),
            format!("{:.2}", report.changed as f64 / positions),
            format!("{:.2}", sent / positions),
            messages.to_string(),
            ratio(sent / 1e3, messages, 1),
            balance,
            waited,
            format!("{:.2}", taken.iter().map(|result| result.held).sum::<u64>() as f64 / positions),
        ]);
    }
    println!("{stones} stones, {set}: {} positions; {threads} thread(s) a rank", index.positions());
    println!("{table}");
    if arguments.methods.iter().any(|method| method == "counting") {
        println!("{}", counted(&arguments, &faults, (&tables, &index), &best, &expected));
    }
    if arguments.methods.iter().any(|method| method == "two-bit") {
        println!("{}", bound_by_bound(&arguments, &faults, &tables, (&index, &best), &expected));
    }
}

/// Runs a job of ranks on threads, and `meanwhile` on this one. Returns the results of both.
fn job<T: Send, U>(
    ranks: usize,
    threads: usize,
    faults: &NetworkFaults,
    run: impl Fn(&mut dyn Communicator) -> T + Sync,
    meanwhile: impl FnOnce() -> U,
) -> (Vec<T>, U) {
    let run = &run;
    std::thread::scope(|scope| {
        let ends = ThreadCommunicator::job(ranks, faults.clone()).into_iter();
        let running: Vec<_> =
            ends.map(|mut end| scope.spawn(move || pool(threads).install(move || run(&mut end)))).collect();
        let other = meanwhile();
        (running.into_iter().map(|rank| rank.join().expect("no rank panics")).collect(), other)
    })
}

/// Collects the scores of a rank: as many for each.
fn collected(share: &dyn ScoreShare, index: &Index, end: &mut dyn Communicator) -> Vec<Score> {
    let ranks = end.size() as u64;
    let cut = |rank: u64| index.positions() * rank / ranks;
    let ranges: Vec<_> = (0..ranks).map(|rank| cut(rank)..cut(rank + 1)).collect();
    let mut scores = Vec::new();
    let mut sink = |run: &[Score]| {
        scores.extend_from_slice(run);
        ControlFlow::Continue(())
    };
    assert!(collect(share, &ranges, end, &mut sink).expect("all ranks are there"));
    scores
}

/// Returns the bytes that the busiest rank sent relative to the mean, and the share of the time that ranks waited.
fn balance(seconds: f64, traffic: &[MessageTraffic]) -> [String; 2] {
    let ranks = traffic.len() as f64;
    let most = traffic.iter().map(|rank| rank.bytes_sent).max().unwrap_or(0) as f64;
    let sent = traffic.iter().map(|rank| rank.bytes_sent).sum::<u64>() as f64;
    let waited = traffic.iter().map(|rank| rank.seconds_waited).sum::<f64>();
    [ratio(most * ranks, sent, 2), format!("{:.0} %", 100.0 * waited / (seconds * ranks))]
}

/// Measures counting.
fn counted(
    arguments: &ClusterArguments,
    faults: &NetworkFaults,
    (tables, index): (&Tables, &Index),
    best: &[Score],
    expected: &[Score],
) -> Table {
    let threads = arguments.threads;
    let positions = index.positions() as f64;
    let mut table = bench::table(
        "counting|seconds|supersteps|updates/position|sent/position|bytes/position|messages|updates/message|balance|waited",
        0,
    );
    for &ranks in &arguments.ranks {
        let run = |end: &mut dyn Communicator| {
            let mut values = RankValues::zeroed(index, ranks, end.rank(), Distribution::new(threads))
                .expect("there is memory for the values");
            let mut captures = Bytes::zeroed(values.values().len()).expect("there is memory for the captures");
            let mut rest = &mut captures[..];
            for run in values.runs() {
                let run = &best[run.start as usize..run.end as usize];
                rest.split_off_mut(..run.len()).expect("the values have these runs").copy_from_slice(run);
            }
            end.barrier().expect("all ranks are there");
            let start = Instant::now();
            let report = counting(tables, index, &captures, &mut values, end, &()).expect("no observer stops it");
            let seconds = start.elapsed().as_secs_f64();
            (report, seconds, collected(&values, index, end))
        };
        let taken = job(ranks, threads, faults, run, || {}).0;
        let (report, seconds, _) = &taken[0];
        assert!(taken.iter().flat_map(|(.., scores)| scores).eq(expected), "{ranks} ranks");
        let traffic: Vec<MessageTraffic> = taken.iter().map(|(report, ..)| report.traffic).collect();
        let sent: u64 = traffic.iter().map(|rank| rank.bytes_sent).sum();
        let [balance, waited] = balance(*seconds, &traffic);
        table.add_row([
            ranks.to_string(),
            format!("{seconds:.2}"),
            report.supersteps.to_string(),
            format!("{:.2}", report.total.updates() as f64 / positions),
            format!("{:.2}", report.sent as f64 / positions),
            format!("{:.2}", sent as f64 / positions),
            report.messages.to_string(),
            report.combining().map_or_else(|| "-".to_owned(), |combining| format!("{combining:.0}")),
            balance,
            waited,
        ]);
    }
    table
}

/// Measures two-bit.
fn bound_by_bound(
    arguments: &ClusterArguments,
    faults: &NetworkFaults,
    tables: &Arc<Tables>,
    (index, best): (&Index, &Bytes),
    expected: &[Score],
) -> Table {
    let (threads, positions) = (arguments.threads, index.positions() as f64);
    let mut table =
        bench::table("two-bit|seconds|supersteps|rows tested|bytes/position|messages|KB/message|balance|waited", 0);
    for &ranks in &arguments.ranks {
        let run = |end: &mut dyn Communicator| {
            let (mut reports, mut seconds, mut start) =
                (Vec::<by_ranks::DistributedBoundReport>::new(), 0.0, Instant::now());
            let each = |_, report| match report {
                None => start = Instant::now(),
                Some(report) => {
                    seconds += start.elapsed().as_secs_f64();
                    reports.push(report);
                }
            };
            let kernel = BitKernel::detect();
            let scores =
                by_ranks::solve_in_memory(tables, index, best, kernel, end, &(), each).expect("no observer stops it");
            (reports, seconds, scores)
        };
        let taken = job(ranks, threads, faults, run, || {}).0;
        let (reports, seconds, scores) = &taken[0];
        assert!(*scores == *expected, "{ranks} ranks");
        let sum = |figure: fn(&by_ranks::DistributedBoundReport) -> u64| reports.iter().map(figure).sum::<u64>();
        let (bytes, messages) = (sum(|report| report.bytes) as f64, sum(|report| report.messages) as f64);
        let of_rank = |(reports, ..): &(Vec<by_ranks::DistributedBoundReport>, _, _)| MessageTraffic {
            bytes_sent: reports.iter().map(|report| report.traffic.bytes_sent).sum(),
            seconds_waited: reports.iter().map(|report| report.traffic.seconds_waited).sum(),
            ..MessageTraffic::default()
        };
        let [balance, waited] = balance(*seconds, &taken.iter().map(of_rank).collect::<Vec<_>>());
        table.add_row([
            ranks.to_string(),
            format!("{seconds:.2}"),
            sum(|report| report.supersteps).to_string(),
            sum(|report| report.rows).to_string(),
            format!("{:.2}", bytes / positions),
            messages.to_string(),
            ratio(bytes / 1e3, messages, 1),
            balance,
            waited,
        ]);
    }
    table
}

fn milliseconds(number: f64) -> Duration {
    Duration::from_secs_f64(number / 1e3)
}
