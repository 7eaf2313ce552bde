//! The limits of this machine, and each stage of a build as a share of them.
//!
//! Limits: bytes a second read and written in memory, by one core and by all; scores a second of which a core takes the
//! lesser, from windows at any offset in its first and second cache, which is what row kernels do; sequential bytes a
//! second of the disk by each back end, beside plain writes and reads of the same file system.
//!
//! Shares: what a stage would take at the limit, by the bytes that it cannot avoid moving, over the processor time that
//! it took. What those bytes are stands in [`unavoidable`].

use bench::build;
use clap::Parser;
use comfy_table::{Table, presets::NOTHING};
use disk::{Io, RealDisk, clock, machine::Speed};
use game::PositionSet;
use rayon::prelude::*;
use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

/// Says how far a build is from what the machine can do.
#[derive(Parser)]
struct Arguments {
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
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let mut arguments = Arguments::parse();
    if !arguments.bench {
        (arguments.stones, arguments.mebibytes) = (5, 1);
    }
    let directory = tempfile::tempdir().expect("there is a temporary directory");
    let limits = Limits::measure(arguments.mebibytes << 20);
    limits.print();
    disks(directory.path(), (arguments.mebibytes << 20) as u64);
    stages(&arguments, directory.path(), &limits);
}

/// Bytes a second.
struct Limits {
    read_one: f64,
    read_all: f64,
    write_one: f64,
    write_all: f64,
    /// Scores a second from windows in 16 KiB, and in 512 KiB.
    windows: [f64; 2],
}

/// The best of several: others use the machine too.
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

impl Limits {
    fn measure(bytes: usize) -> Limits {
        let mut words = vec![1u64; bytes / 8];
        let part = words.len().div_ceil(4 * clock::cores());
        Limits {
            read_one: best(bytes, || {
                black_box(sum(&words));
            }),
            read_all: best(bytes, || {
                black_box(words.par_chunks(part).map(sum).reduce(|| 0, |a, b| a ^ b));
            }),
            write_one: best(bytes, || black_box(&mut words[..]).fill(2)),
            write_all: best(bytes, || black_box(&mut words[..]).par_chunks_mut(part).for_each(|part| part.fill(3))),
            windows: [16 << 10, 512 << 10].map(windows),
        }
    }

    fn print(&self) {
        let mut table = Table::new();
        table.load_style(NOTHING);
        table.set_header(["memory", "one core", "all cores"]);
        let rate = |bytes: f64| format!("{:.1} GB/s", bytes / 1e9);
        table.add_row(["read".to_owned(), rate(self.read_one), rate(self.read_all)]);
        table.add_row(["written".to_owned(), rate(self.write_one), rate(self.write_all)]);
        println!("{table}");
        let [first, second] = self.windows.map(|scores| scores / 1e9);
        println!("windows, one core: {first:.1} thousand million scores a second in 16 KiB, {second:.1} in 512 KiB\n");
    }
}

/// The lesser of each score and one a few places on: what a row kernel does for one move.
fn windows(bytes: usize) -> f64 {
    let scores: Vec<i8> = (0..bytes + 64).map(|at| (at % 23) as i8).collect();
    let mut least = vec![i8::MAX; bytes];
    let times = ((64 << 20) / bytes).max(1);
    best(bytes * times, || {
        for time in 0..times {
            let from = &scores[time % 64..];
            least.iter_mut().zip(from).for_each(|(least, &score)| *least = (*least).min(score));
            black_box(&mut least);
        }
    })
}

/// Sequential streams of both back ends beside plain writes and reads.
fn disks(directory: &Path, bytes: u64) {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(["disk, sequential", "written", "read"]);
    let mut row = |name: &str, [write, read]: [f64; 2]| {
        table.add_row([name.to_owned(), format!("{:.0} MB/s", write / 1e6), format!("{:.0} MB/s", read / 1e6)]);
    };
    for io in [Io::Uring, Io::Plain] {
        let speed = RealDisk::new(io).and_then(|disk| Speed::measure(&disk, directory, bytes));
        match speed {
            Ok(speed) => row(&format!("{io}"), [speed.write, speed.read]),
            Err(error) => println!("{io}: {error}"),
        }
    }
    row("plain, cached", plain(&directory.join("plain"), bytes).expect("the file system takes files"));
    println!("{table}\n");
}

/// A file written and synced by ordinary calls, and read again, which the page cache may answer.
fn plain(path: &Path, bytes: u64) -> std::io::Result<[f64; 2]> {
    let piece = vec![7u8; 1 << 20];
    let pieces = bytes.div_ceil(piece.len() as u64);
    let rate = |begun: Instant| (pieces * piece.len() as u64) as f64 / begun.elapsed().as_secs_f64().max(1e-9);
    let begun = Instant::now();
    let mut file = File::create(path)?;
    for _ in 0..pieces {
        file.write_all(&piece)?;
    }
    file.sync_all()?;
    let write = rate(begun);
    let begun = Instant::now();
    let mut file = File::open(path)?;
    let mut buffer = vec![0; piece.len()];
    while file.read(&mut buffer)? > 0 {}
    let read = rate(begun);
    std::fs::remove_file(path)?;
    Ok([write, read])
}

/// Bytes of memory a position that a stage cannot avoid moving, given what it counted: of a sweep, for each
/// recomputation the best capture, the score itself and each child's score once; of the others, what they read and
/// write.
fn unavoidable(kind: &str, recomputed: f64) -> f64 {
    match kind {
        "sweep" => 3.0 * recomputed + 1.0,
        "capture" => 2.0,
        "stats" => 2.0,
        _ => 1.0,
    }
}

fn stages(arguments: &Arguments, directory: &Path, limits: &Limits) {
    let overrides = [
        ("game.positions", arguments.positions.to_string()),
        ("build.stones", format!("\"0..{}\"", arguments.stones)),
        ("build.memory", "\"64 GiB\"".to_owned()),
        ("store.codec", arguments.codec.clone()),
    ];
    let summary = build(&RealDisk::default(), &directory.join("run"), arguments.threads, &overrides);
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(["stage", "ns of CPU a position", "bytes of files", "bytes of memory", "share of the limit"]);
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
