//! Sweep with its scores on disk, compared with the limits of cores and drive.
//!
//! Builds the captures of a database in memory, sweeps it in a working file within a share of its size, and compares
//! every score with those of sweep in memory. The time is held against the larger of two: processor time by threads, and
//! bytes moved by the bandwidth of long reads of the same file, measured right afterwards.

use bench::{Largest, timed};
use clap::Parser;
use disk::{Digest, Disk, DiskError, RealDisk, ScratchFile, bytes_of, bytes_of_mut, signed_of_mut};
use game::{PositionSet, Rules};
use solvers::Kernel;
use solvers::sweep::disk::{CellFile, DiskPlan, DiskSweep};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Measures the sweep on disk.
#[derive(Parser)]
struct OnDiskArguments {
    /// Stones.
    #[arg(long, default_value_t = 20)]
    stones: u32,
    /// Memory of both arenas, in per cent of the positions.
    #[arg(long, default_value_t = 10)]
    share: u64,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// all or reachable.
    #[arg(long, default_value = "all")]
    positions: PositionSet,
    /// Directory of the working file; default: a temporary one.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// The working file.
struct BenchCells<'d> {
    file: Box<dyn ScratchFile + 'd>,
    key: Digest,
}

impl CellFile for BenchCells<'_> {
    type Error = DiskError;

    fn read(&self, place: u64, into: &mut [i8]) -> Result<(), DiskError> {
        self.file.read_at(place, bytes_of_mut(into))
    }

    fn write(&self, place: u64, bytes: &[i8]) -> Result<(), DiskError> {
        self.file.write_at(place, bytes_of(bytes))
    }

    fn write_runs(&self, runs: &[(u64, &[i8])]) -> Result<(), DiskError> {
        let runs: Vec<_> = runs.iter().map(|&(place, bytes)| (place, bytes_of(bytes))).collect();
        self.file.write_runs(&runs)
    }

    fn read_runs(&self, runs: &[(u64, usize)], each: &mut dyn FnMut(usize, &mut [i8])) -> Result<(), DiskError> {
        self.file.read_runs(runs, &mut |run, bytes| each(run, signed_of_mut(bytes)))
    }

    fn checksum(&self, bytes: &[i8]) -> u64 {
        self.key.checksum(bytes_of(bytes))
    }

    fn is_damaged(&self, what: &str) -> DiskError {
        panic!("{what}")
    }
}

fn main() {
    let arguments = bench::arguments(|tiny: &mut OnDiskArguments| tiny.stones = tiny.stones.min(7));
    bench::pool(arguments.threads).install(|| run(&arguments));
}

fn run(arguments: &OnDiskArguments) {
    let OnDiskArguments { stones, positions: set, threads, share, .. } = *arguments;
    let Largest { index, captures, scores, .. } = Largest::new(set, stones);
    let positions = index.positions();
    let least = DiskPlan::arena_bytes_min(stones, set);
    let plan = DiskPlan::new(&index, least.max((positions * share / 200) as usize)).expect("the arena is large enough");
    let temporary = tempfile::tempdir().expect("there is a place for temporary files");
    let path = arguments.dir.as_deref().unwrap_or(temporary.path()).join("cells");
    let disk = RealDisk::default();
    let file = disk.working(&path, plan.file_bytes()).expect("there is room for the working file");
    let file = BenchCells { file, key: Digest::of(b"bench") };

    let mut solver = DiskSweep::new(&Rules::AWARI, &index, &plan, Kernel::detect(), &file, false);
    let mut read = |first: u64, into: &mut [i8]| {
        into.copy_from_slice(&captures[first as usize..][..into.len()]);
        Ok(())
    };
    let (report, wall, cpu) = timed(|| solver.solve(&mut read, |error| panic!("no memory: {error}"), &()));
    let report = report.expect("nothing fails");
    let mut first = 0;
    solver
        .scores(|run| {
            assert!(*run == scores[first..first + run.len()], "other scores than in memory");
            first += run.len();
            Ok(())
        })
        .expect("the scores can be read");
    let bandwidth = bandwidth(&file, plan.file_bytes());
    disk.remove(&path).expect("the file can be removed");

    let full = plan.pass_bytes();
    let of = |bytes: u64| bytes as f64 / positions as f64;
    println!(
        "{stones} stones, {set}: {positions} positions, arenas of {} % together, {threads} threads",
        200 * plan.arena_bytes() as u64 / positions
    );
    println!("a pass over all: {:.1} bytes read a position, {:.1} written", of(full.read), of(full.written));
    let ends = report.begun.iter().skip(1).map(|bytes| bytes.read + bytes.written);
    let ends = ends.chain([report.read_bytes + report.written_bytes]);
    let moved: Vec<String> =
        ends.zip(&report.begun).map(|(end, begun)| format!("{:.1}", of(end - begun.read - begun.written))).collect();
    println!("{} passes, bytes a position moved in each: {}", report.passes, moved.join(" "));
    let bytes = report.read_bytes + report.written_bytes;
    println!(
        "{:.1} times recomputed; {:.0} bytes read a position, {:.0} written",
        of(report.recomputed),
        of(report.read_bytes),
        of(report.written_bytes)
    );
    let (cores, drive) = (cpu / threads as f64, bytes as f64 / bandwidth);
    println!(
        "{wall:.1} s; processor {cpu:.1} s, by threads {cores:.1} s; {:.2} GB/s drive, {drive:.1} s; ratio {:.2}",
        bandwidth * 1e-9,
        wall / cores.max(drive)
    );
}

/// Bytes a second in long reads by four threads, of a gigabyte at most.
fn bandwidth(file: &BenchCells, bytes: u64) -> f64 {
    const READ_BYTES: u64 = 1 << 20;
    let reads = (bytes / READ_BYTES).min(1024);
    let next = AtomicU64::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut into = vec![0; READ_BYTES as usize];
                loop {
                    let at = next.fetch_add(1, Relaxed);
                    if at >= reads {
                        break;
                    }
                    file.read(at * READ_BYTES, &mut into).expect("the file can be read");
                }
            });
        }
    });
    (reads.max(1) * READ_BYTES) as f64 / start.elapsed().as_secs_f64()
}
