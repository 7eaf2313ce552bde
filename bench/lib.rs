//! Support of the benches: arguments, tables, and databases built in memory with their times.
//!
//! `cargo bench -p bench` measures kernels and a whole build; `cargo bench -p bench --bench whole -- --help` lists
//! the options of one.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod room;

use check::{Databases, Histogram, Published};
use clap::Parser;
use comfy_table::{CellAlignment, Table, presets::NOTHING};
use disk::{Disk, RealDisk, clock};
use game::{Board, Index, PositionSet, Rules, Score, reference};
use oracle::{Library, Oracle};
use pipeline::{Budget, Manifest, Orchestrator, RunOptions, RunSummary};
use planner::{Settings, schema};
use rayon::{ThreadPool, ThreadPoolBuilder};
use search::ExactScores;
use solvers::capture::InMemory;
use solvers::{Bytes, Kernel, ScoreRows, Tables, capture, sweep};
use stages::Awari;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use store::Scores;

/// Parses the arguments of a bench. `cargo test` runs it without `--bench`, on a tiny input: `shrink` then
/// changes them.
pub fn arguments<T: Parser>(shrink: impl FnOnce(&mut T)) -> T {
    let mut words: Vec<_> = std::env::args_os().collect();
    let all = words.len();
    words.retain(|word| word != "--bench");
    let mut arguments = T::parse_from(&words);
    if words.len() == all {
        shrink(&mut arguments);
    }
    arguments
}

/// A pool of threads.
///
/// # Panics
/// When the system refuses a thread.
pub fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started")
}

/// A table whose columns are aligned to the right from the column `right_from`; `|` separates the titles.
pub fn table(header: &str, right_from: usize) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header.split('|'));
    table.column_iter_mut().skip(right_from).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
}

/// Formats a quotient, or a dash where the divisor is 0.
pub fn ratio(dividend: f64, to: f64, decimals: usize) -> String {
    if to > 0.0 { format!("{:.decimals$}", dividend / to) } else { "-".to_owned() }
}

/// Times of one database.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Stones.
    pub stones: u32,
    /// Positions.
    pub positions: u64,
    /// Processor seconds of the capture stage.
    pub capture_cpu: f64,
    /// Processor seconds of the sweep.
    pub sweep_cpu: f64,
    /// Seconds of both.
    pub wall: f64,
    /// Counters of the sweep.
    pub report: sweep::SweepReport,
}

/// Databases in memory, the smallest first.
pub type Solved = Vec<Vec<Score>>;

/// The best captures of one database from all smaller ones.
///
/// # Panics
/// When there is not enough memory.
pub fn captures(tables: &Tables, index: &Index, smaller: &Solved) -> Bytes {
    let mut best = Bytes::zeroed(index.positions() as usize).expect("there is memory for the captures");
    let smaller = InMemory::new(tables.set(), smaller.iter().map(|scores| &scores[..]));
    capture::capture_into(tables, index, &smaller, &(), &mut best, &mut |_| Ok(())).expect("no observer stops it");
    best
}

/// Sweeps a database in memory with the fastest kernel.
///
/// # Panics
/// When there is not enough memory.
pub fn swept(tables: &Tables, index: &Index, captures: &Bytes) -> (ScoreRows, sweep::SweepReport) {
    sweep::solve(tables, index, captures, Kernel::detect()).expect("there is memory for the scores")
}

/// Builds the databases of 0 to `stones` stones in memory on the threads of the current pool.
///
/// # Panics
/// When a database does not have the published counts, or there is not enough memory.
pub fn solve(set: PositionSet, stones: u32, mut each: impl FnMut(Times)) -> Solved {
    let tables = Tables::new(Rules::AWARI, set, stones);
    let mut solved = Solved::new();
    for stones in 0..=stones {
        let index = Index::new(stones, set);
        let positions = index.positions();
        let (best, capture_wall, capture_cpu) = timed(|| captures(&tables, &index, &solved));
        let ((scores, report), sweep_wall, sweep_cpu) = timed(|| swept(&tables, &index, &best));
        each(Times { stones, positions, capture_cpu, sweep_cpu, wall: capture_wall + sweep_wall, report });
        let scores = scores.to_vec();
        assert_published(stones, set, &scores);
        solved.push(scores);
    }
    solved
}

/// A database in memory, with the inputs of its build.
pub struct Largest {
    /// Tables of the kernels.
    pub tables: Arc<Tables>,
    /// Its positions.
    pub index: Index,
    /// Its best captures.
    pub captures: Bytes,
    /// Its scores.
    pub scores: Vec<Score>,
    /// All smaller databases.
    pub smaller: Solved,
}

impl Largest {
    /// Builds it as [`solve`] does.
    ///
    /// # Panics
    /// As [`solve`].
    pub fn new(set: PositionSet, stones: u32) -> Largest {
        let mut smaller = solve(set, stones, |_| {});
        let scores = smaller.pop().expect("a database was solved");
        let (tables, index) = (Arc::new(Tables::new(Rules::AWARI, set, stones)), Index::new(stones, set));
        let captures = captures(&tables, &index, &smaller);
        Largest { tables, index, captures, scores, smaller }
    }
}

/// Returns the result of a call, its seconds, and its processor seconds.
pub fn timed<T>(call: impl FnOnce() -> T) -> (T, f64, f64) {
    let (cpu, wall) = (clock::cpu_seconds(), Instant::now());
    let result = call();
    (result, wall.elapsed().as_secs_f64(), clock::cpu_seconds() - cpu)
}

/// The keys of a build of 0 to `stones` stones with much memory.
pub fn keys(positions: PositionSet, stones: u32, codec: &str) -> [(&'static str, String); 4] {
    [
        ("game.positions", positions.to_string()),
        ("build.stones", format!("\"0..{stones}\"")),
        ("build.memory", "\"64 GiB\"".to_owned()),
        ("store.codec", codec.to_owned()),
    ]
}

/// Parses a manifest of these keys.
///
/// # Panics
/// When a key or value is invalid.
pub fn manifest(overrides: &[(&str, String)]) -> Manifest {
    let overrides: Vec<_> = overrides.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    Manifest::parse("", "bench", &schema(), &overrides).expect("the keys are those of a manifest")
}

/// Builds a manifest of these keys.
///
/// # Panics
/// When a key or value is invalid, or the build fails.
pub fn build(disk: &dyn Disk, directory: &Path, threads: usize, overrides: &[(&str, String)]) -> RunSummary {
    let manifest = manifest(overrides);
    let settings = Settings::new(&manifest);
    let options = RunOptions {
        threads,
        keep: settings.keep,
        memory: Budget::new(settings.memory_bytes),
        snapshot_interval: settings.snapshot,
        manifest: manifest.to_toml(),
        ..RunOptions::default()
    };
    Orchestrator::new(disk, directory, &Awari::new(settings), options).run().expect("the build succeeds")
}

/// Databases by the rule text, of few stones.
pub struct ReferenceDatabases(Vec<reference::ReferenceScores>);

impl ReferenceDatabases {
    /// Solves all positions of up to a number of stones; of seven in less than a second.
    pub fn up_to(stones: u8) -> ReferenceDatabases {
        ReferenceDatabases(reference::solve_up_to(stones))
    }
}

impl ExactScores for ReferenceDatabases {
    fn knows(&self, stones: u32) -> bool {
        (stones as usize) < self.0.len()
    }

    fn score(&self, board: &Board) -> Option<Score> {
        self.0.get(board.stones() as usize).map(|scores| scores[&board.0])
    }
}

/// Opens the databases of a run directory, with a cache of decoded blocks.
///
/// # Panics
/// When there are none, or they are not of one kind.
pub fn oracle(directory: &Path, cache_bytes: u64) -> Oracle {
    let disk = RealDisk::default();
    let paths = disk.list(&directory.join("databases")).expect("the databases are there");
    let library = Library::new(paths.into_iter().map(|path| (path.clone(), Scores::open(&disk, &path))));
    Oracle::new(library.expect("all are of one kind"), cache_bytes)
}

fn assert_published(stones: u32, set: PositionSet, scores: &[Score]) {
    let mut databases = Databases::new(Rules::AWARI, set);
    databases.insert(stones, scores).expect("a database has the positions of its index");
    let histogram = databases.get(stones).and_then(Histogram::of).expect("scores are in range");
    let published = Published::compare(&Rules::AWARI, stones, set, &histogram);
    assert!(matches!(published, Published::Matches | Published::Absent), "{stones} stones: {published:?}");
}
