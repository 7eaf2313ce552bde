//! The limits of the machine, and the stages of a build as shares of them.
//!
//! Limits: memory bandwidth for reads and writes, of one core and of all; rate at which a core computes
//! minima of scores in windows at any offset in its first and second cache, as row kernels do; sequential
//! disk bandwidth by each back end, and by a plain loop of direct requests.
//!
//! Shares: time of a stage at the limit, given the bytes that it must move (see [`unavoidable`]), over its
//! processor time.

use bench::{build, keys};
use clap::Parser;
use disk::{Io, RealDisk, clock, machine::StreamSpeed};
use game::PositionSet;
use rayon::prelude::*;
use std::fs::OpenOptions;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

/// Compares a build with the limits of the machine.
#[derive(Parser)]
struct RooflineArguments {
    /// The most stones of the build.
    #[arg(long, default_value_t = 20)]
    stones: u32,
    /// Threads of the build.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// all or reachable.
    #[arg(long, default_value = "all")]
    positions: PositionSet,
    /// How the databases are stored.
    #[arg(long, default_value = "zstd")]
    codec: String,
    /// MiB of memory and of disk to measure with.
    #[arg(long, default_value_t = 1024)]
    mebibytes: usize,
}

fn main() {
    let arguments = bench::arguments(|tiny: &mut RooflineArguments| (tiny.stones, tiny.mebibytes) = (5, 1));
    let directory = tempfile::tempdir().expect("there is a temporary directory");
    let limits = MachineLimits::measure(arguments.mebibytes << 20);
    limits.print();
    disks(directory.path(), (arguments.mebibytes << 20) as u64);
    stages(&arguments, directory.path(), &limits);
}

/// Bytes a second.
struct MachineLimits {
    read_one: f64,
    read_all: f64,
    write_one: f64,
    write_all: f64,
    /// Scores a second from windows in 16 KiB, and in 512 KiB.
    windows: [f64; 2],
}

/// Returns the best rate of several runs: other processes use the machine too.
fn best(bytes: usize, mut work: impl FnMut()) -> f64 {
    let once = |_| {
        let begun = Instant::now();
        work();
        bytes as f64 / begun.elapsed().as_secs_f64().max(1e-9)
    };
    (0..7).map(once).fold(0.0, f64::max)
}

fn sum(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, &word| sum ^ word)
}

impl MachineLimits {
    fn measure(bytes: usize) -> MachineLimits {
        let mut words = vec![1u64; bytes / 8];
        let part = words.len().div_ceil(4 * clock::cores());
        MachineLimits {
            read_one: best(bytes, || {
                black_box(sum(&words));
            }),
            read_all: best(bytes, || {
                black_box(words.par_chunks(part).map(sum).reduce(|| 0, |a, b| a ^ b));
            }),
            write_one: best(bytes, || black_box(&mut words[..]).fill(2)),
            write_all: best(bytes, || black_box(&mut words[..]).par_chunks_mut(part).for_each(|part| part.fill(3))),
            windows: [16 << 10, 512 << 10].map(|window| windows(window, bytes / 16)),
        }
    }

    fn print(&self) {
        let mut table = bench::table("memory|one core|all cores", 1);
        let rate = |bytes: f64| format!("{:.1} GB/s", bytes / 1e9);
        table.add_row(["read".to_owned(), rate(self.read_one), rate(self.read_all)]);
        table.add_row(["written".to_owned(), rate(self.write_one), rate(self.write_all)]);
        println!("{table}");
        let [first, second] = self.windows.map(|scores| scores / 1e9);
        println!("windows, one core: {first:.1} thousand million scores a second in 16 KiB, {second:.1} in 512 KiB\n");
    }
}

/// Measures the minimum of a row and a shifted row, as a row kernel computes it for one move, until about
/// `all` scores are processed.
fn windows(bytes: usize, all: usize) -> f64 {
    let scores: Vec<i8> = (0..bytes + 64).map(|at| (at % 23) as i8).collect();
    let mut least = vec![i8::MAX; bytes];
    let times = (all / bytes).max(1);
    best(bytes * times, || {
        for time in 0..times {
            let from = &scores[time % 64..];
            least.iter_mut().zip(from).for_each(|(least, &score)| *least = (*least).min(score));
            black_box(&mut least);
        }
    })
}

/// Rounds in which back ends take turns; the best of each counts, for other processes use the drive too.
const ROUNDS: usize = 5;

/// Bytes of a request of the plain loop.
const REQUEST_BYTES: usize = 1 << 20;

/// Alignment of the buffer of the plain loop, which direct requests need.
const PAGE_BYTES: usize = 4096;

/// Measures sequential streams of both back ends, in turn with a loop of single requests, as
/// `dd bs=1M iflag=direct oflag=direct conv=fsync` does.
fn disks(directory: &Path, bytes: u64) {
    let mut best = [[0f64; 2]; 3];
    let mut refused = [false; 3];
    for _ in 0..ROUNDS {
        for (way, best) in best.iter_mut().enumerate() {
            let rates = match way {
                0 => plain_loop(&directory.join("plain"), bytes).map_err(|error| error.to_string()),
                _ => RealDisk::new([Io::Uring, Io::Plain][way - 1])
                    .and_then(|disk| StreamSpeed::measure(&disk, directory, bytes))
                    .map(|speed| [speed.write, speed.read])
                    .map_err(|error| error.to_string()),
            };
            match rates {
                Ok(rates) => best.iter_mut().zip(rates).for_each(|(best, rate)| *best = best.max(rate)),
                Err(error) if !refused[way] => {
                    println!("{error}");
                    refused[way] = true;
                }
                Err(_) => {}
            }
        }
    }
    let mut table = bench::table("disk, sequential|written|of the loop|read|of the loop", 1);
    for (name, rates) in ["loop, direct".to_owned(), Io::Uring.to_string(), Io::Plain.to_string()].iter().zip(&best) {
        let rate = |at: usize| format!("{:.0} MB/s", rates[at] / 1e6);
        let share = |at: usize| format!("{:.0} %", 100.0 * rates[at] / best[0][at].max(1e-9));
        table.add_row([name.clone(), rate(0), share(0), rate(1), share(1)]);
    }
    println!("{table}\n");
}

/// Writes, syncs and reads a file with direct requests, one at a time. Returns both rates.
fn plain_loop(path: &Path, bytes: u64) -> std::io::Result<[f64; 2]> {
    let mut room = vec![7u8; REQUEST_BYTES + PAGE_BYTES];
    let first = room.as_ptr().align_offset(PAGE_BYTES);
    let piece = &mut room[first..first + REQUEST_BYTES];
    let pieces = bytes.div_ceil(REQUEST_BYTES as u64);
    let rate = |begun: Instant| (pieces * REQUEST_BYTES as u64) as f64 / begun.elapsed().as_secs_f64().max(1e-9);
    let direct = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).expect("a flag of the kernel");
    let open = |options: &mut OpenOptions| {
        // Some file systems have no direct I/O.
        options.clone().custom_flags(direct).open(path).or_else(|_| options.open(path))
    };
    let begun = Instant::now();
    let mut file = open(OpenOptions::new().write(true).create(true).truncate(true))?;
    for _ in 0..pieces {
        file.write_all(piece)?;
    }
    file.sync_all()?;
    let write = rate(begun);
    let begun = Instant::now();
    let mut file = open(OpenOptions::new().read(true))?;
    while file.read(piece)? > 0 {}
    let read = rate(begun);
    std::fs::remove_file(path)?;
    Ok([write, read])
}

/// Bytes of memory a position that a stage must move: in a sweep, the best capture, the score and the
/// children's scores of each recomputation; in the others, input and output.
fn unavoidable(kind: &str, recomputed: f64) -> f64 {
    match kind {
        "sweep" => 3.0 * recomputed + 1.0,
        "capture" => 2.0,
        "stats" => 2.0,
        _ => 1.0,
    }
}

fn stages(arguments: &RooflineArguments, directory: &Path, limits: &MachineLimits) {
    let overrides = keys(arguments.positions, arguments.stones, &arguments.codec);
    let summary = build(&RealDisk::default(), &directory.join("run"), arguments.threads, &overrides);
    let mut table = bench::table("stage|ns of CPU a position|bytes of files|bytes of memory|share of the limit", 1);
    for ran in summary.ran.iter().filter(|ran| ran.stage.to_string().ends_with(&format!(":{}", arguments.stones))) {
        let measured = &ran.measured;
        let positions = measured.report.positions.max(1) as f64;
        let recomputed = measured.report.counters.get("recomputed").map_or(0.0, |counter| counter.as_f64()) / positions;
        let moved = unavoidable(ran.stage.kind(), recomputed);
        let took = measured.cpu_seconds * 1e9 / positions;
        let files = (measured.read_bytes.unwrap_or(0) + measured.written_bytes.unwrap_or(0)) as f64 / positions;
        table.add_row([
            ran.stage.to_string(),
            format!("{took:.2}"),
            format!("{files:.2}"),
            format!("{moved:.1}"),
            format!("{:.0} %", 100.0 * moved / limits.read_one * 1e9 / took.max(1e-9)),
        ]);
    }
    println!("{} stones, {} thread(s), {}", arguments.stones, arguments.threads, arguments.codec);
    println!("{table}");
}
