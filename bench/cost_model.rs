//! What builds took, beside what the cost model of `stages` predicts.
//!
//! Runs builds by each method, takes the least of what each part of a build took in some repetitions, fits the line of
//! each part to the processor time of all databases but the largest ones, and prints for every database what was predicted
//! (by the model as it is, and for those left out of the fit by the fitted line), what was measured, and whether they agree
//! to 25 %. A fit is one factor a part: the shape of a line, where it bends and how steeply, is the model's. With `--dir` it
//! reads what the journal of a run directory measured instead. Counts are asserted, and that every part of each build has a
//! prediction. The speed of a core that it ends with is what belongs into a file for `awari plan --hardware`.

use bench::{build, manifest};
use clap::Parser;
use comfy_table::{CellAlignment, Table, presets::NOTHING};
use disk::RealDisk;
use pipeline::journal::Contents;
use pipeline::record::Measured;
use pipeline::state::State;
use pipeline::{Budget, Manifest, StageName, directory};
use stages::cost::{Line, Model, Part, Rates};
use stages::{Awari, Method, Settings, schema};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Compares what builds took with what was predicted.
#[derive(Parser)]
struct Arguments {
    /// The most stones.
    #[arg(long, default_value_t = 18)]
    stones: u32,
    /// The largest databases left out of the fit.
    #[arg(long, default_value_t = 2)]
    left_out: u32,
    /// Only these.
    #[arg(long, value_delimiter = ',', default_value = "sweep,counting,two-bit,one-bit,one-bit-dual")]
    methods: Vec<Method>,
    /// raw, packed, zstd or rans.
    #[arg(long, default_value = "zstd")]
    codec: String,
    /// sample, full or none.
    #[arg(long, default_value = "sample")]
    verify: String,
    /// The cache of one-bit-dual.
    #[arg(long, default_value = "1 MiB")]
    cache: Budget,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Repetitions; the least counts.
    #[arg(long, default_value_t = 2)]
    turns: usize,
    /// Compare what the journal of this run directory says instead.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Databases with fewer positions are done before anything can be measured.
const POSITIONS_MIN: u64 = 4_000_000;

/// What counts as a right prediction.
const TOLERANCE: f64 = 0.25;

/// What a part of the build of a database took.
#[derive(Clone, Copy)]
struct Taken {
    cpu_seconds: f64,
    read_bytes: f64,
    written_bytes: f64,
    memory_bytes: u64,
}

/// By part and stones.
type Run = BTreeMap<(Part, u32), Taken>;

fn main() {
    let mut arguments = Arguments::parse();
    let mut positions_min = POSITIONS_MIN;
    if !arguments.bench {
        (arguments.stones, arguments.turns, positions_min) = (6, 1, 100);
    }
    if let Some(dir) = &arguments.dir {
        let (settings, run) = recorded(dir);
        println!("{}, codec {}, {} positions", dir.display(), settings.codec, settings.set);
        return compare(&settings, &run, arguments.left_out, positions_min);
    }
    for &method in &arguments.methods {
        let overrides = overrides(&arguments, method);
        let settings = Settings::new(&manifest(&overrides));
        let mut best = Run::new();
        for _ in 0..arguments.turns {
            for (key, taken) in measured(&settings, &overrides) {
                let least = best.entry(key).or_insert(taken);
                least.cpu_seconds = least.cpu_seconds.min(taken.cpu_seconds);
                least.memory_bytes = least.memory_bytes.min(taken.memory_bytes);
            }
        }
        println!("{method}, codec {}, {} thread(s), {} turn(s)", settings.codec, settings.threads, arguments.turns);
        compare(&settings, &best, arguments.left_out, positions_min);
    }
}

fn overrides(arguments: &Arguments, method: Method) -> [(&'static str, String); 7] {
    [
        ("build.stones", format!("\"0..{}\"", arguments.stones)),
        ("build.memory", "\"4 GiB\"".to_owned()),
        ("build.method", method.to_string()),
        ("build.threads", arguments.threads.to_string()),
        ("dual.cache", format!("\"{}\"", arguments.cache)),
        ("store.codec", arguments.codec.clone()),
        ("check.verify", arguments.verify.clone()),
    ]
}

/// Builds.
fn measured(settings: &Settings, overrides: &[(&str, String)]) -> Run {
    let directory = tempfile::tempdir().expect("there is a temporary directory");
    let summary = build(&RealDisk::default(), directory.path(), settings.threads, overrides);
    let mut run = Run::new();
    for ran in &summary.ran {
        add(&mut run, settings, &ran.stage, &ran.measured);
    }
    run
}

/// Reads what was measured in a run directory.
fn recorded(dir: &Path) -> (Settings, Run) {
    let disk = RealDisk::default();
    let manifest = directory::manifest_path(dir);
    let text = std::fs::read_to_string(&manifest)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}; name a run directory", manifest.display()));
    let manifest = Manifest::parse(&text, "manifest.toml", &schema(), &[]).expect("a run leaves a whole manifest");
    let settings = Settings::new(&manifest);
    let journal = Contents::read(&disk, &directory::journal_path(dir)).expect("the journal can be read");
    let state = State::replay(&journal.entries);
    let mut run = Run::new();
    for (stage, history) in state.stages() {
        if let Some((measured, _)) = &history.done {
            add(&mut run, &settings, stage, measured);
        }
    }
    (settings, run)
}

fn add(run: &mut Run, settings: &Settings, stage: &StageName, measured: &Measured) {
    let stones = stage.parameters()[0];
    let part = Part::of(stage.kind(), settings.method(stones)).expect("each kind of stage is part of a build");
    let none = Taken { cpu_seconds: 0.0, read_bytes: 0.0, written_bytes: 0.0, memory_bytes: 0 };
    let taken = run.entry((part, stones)).or_insert(none);
    taken.cpu_seconds += measured.cpu_seconds;
    taken.read_bytes += measured.read_bytes.unwrap_or(0) as f64;
    taken.written_bytes += measured.written_bytes.unwrap_or(0) as f64;
    taken.memory_bytes = taken.memory_bytes.max(measured.memory_peak_bytes.unwrap_or(0));
}

/// The memory that the plan foresees for a part.
fn memory_bytes(awari: &Awari, part: Part, stones: u32) -> u64 {
    let method = awari.settings().method(stones);
    let stages = pipeline::Work::graph(awari).stages().iter();
    let of = stages
        .filter(|stage| stage.name.parameters()[0] == stones && Part::of(stage.name.kind(), method) == Some(part));
    of.map(|stage| stage.cost.memory_bytes).max().unwrap_or(0)
}

/// The line of the model, made as much higher or lower as what was measured: seconds of the line, and of the model's.
fn fitted(line: Line, seconds: impl Iterator<Item = (f64, f64)>) -> Option<Line> {
    let (measured, model) = seconds.fold((0.0, 0.0), |sum, seconds| (sum.0 + seconds.0, sum.1 + seconds.1));
    let factor = measured / model;
    (model > 0.0 && factor > 0.0).then(|| Line::growing(line.level * factor, line.from, line.a_stone * factor))
}

/// How many predictions were right.
#[derive(Default)]
struct Score {
    right: usize,
    all: usize,
}

impl Score {
    fn count(&mut self, ratio: f64) -> &'static str {
        let is_right = (1.0 - TOLERANCE..=1.0 + TOLERANCE).contains(&ratio);
        self.right += usize::from(is_right);
        self.all += 1;
        if is_right { "" } else { "!" }
    }
}

fn compare(settings: &Settings, run: &Run, left_out: u32, positions_min: u64) {
    let model = Model::default();
    let awari = Awari::new(settings.clone());
    let positions = |stones| settings.set.positions(stones);
    let is_large = |stones: u32| positions(stones) >= positions_min;
    let last = run.keys().map(|&(_, stones)| stones).max().expect("something was measured");
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header([
        "part",
        "stones",
        "ns predicted",
        "measured",
        "ratio",
        "",
        "fitted",
        "ratio",
        "",
        "B read predicted",
        "measured",
        "B written predicted",
        "measured",
        "MiB predicted",
        "measured",
    ]);
    let (mut predicted, mut measured) = (0.0, 0.0);
    let (mut known, mut unknown, mut lines) = (Score::default(), Score::default(), Vec::new());
    for part in Part::ALL {
        let points = run.iter().filter(|((of, stones), _)| *of == part && is_large(*stones));
        let points: Vec<(u32, &Taken)> = points.map(|(&(_, stones), taken)| (stones, taken)).collect();
        // What is no line is taken as the model has it.
        let besides = model.clone().with(part, Rates::default());
        let cpu_of = |model: &Model, stones| model.load(settings, part, stones).cpu_seconds;
        let fit = points.iter().filter(|(stones, _)| stones + left_out <= last);
        let fit = fit.map(|&(stones, taken)| {
            let rest = cpu_of(&besides, stones);
            (taken.cpu_seconds - rest, cpu_of(&model, stones) - rest)
        });
        let rates = model.rates(part);
        let line = fitted(rates.cpu, fit);
        if let Some(Line { level, from, a_stone }) = line {
            lines.push(format!("  {:<22} cpu: Line::growing({level:.2}, {from}, {a_stone:.2})", part.word()));
        }
        for &(stones, taken) in &points {
            let count = positions(stones) as f64;
            let load = model.load(settings, part, stones);
            assert!(load.cpu_seconds > 0.0 && load.cpu_seconds.is_finite(), "{} has a prediction", part.word());
            let ns = |seconds: f64| seconds * 1e9 / count;
            let ratio = load.cpu_seconds / taken.cpu_seconds;
            (predicted, measured) = (predicted + load.cpu_seconds, measured + taken.cpu_seconds);
            let mut cells = vec![
                part.word().to_owned(),
                stones.to_string(),
                format!("{:.2}", ns(load.cpu_seconds)),
                format!("{:.2}", ns(taken.cpu_seconds)),
                format!("{ratio:.2}"),
                known.count(ratio).to_owned(),
            ];
            match line.filter(|_| stones + left_out > last) {
                Some(line) => {
                    let cpu = cpu_of(&model.clone().with(part, Rates { cpu: line, ..rates }), stones);
                    let ratio = cpu / taken.cpu_seconds;
                    let mark = unknown.count(ratio).to_owned();
                    cells.extend([format!("{:.2}", ns(cpu)), format!("{ratio:.2}"), mark]);
                }
                None => cells.extend([String::new(), String::new(), String::new()]),
            }
            // The counters of files do not tell blocks that a cache misses from what is read in sequence.
            let blocks = |count: f64| count * settings.dual.block_bytes as f64;
            let read_bytes = load.read_bytes + load.scratch_read_bytes + blocks(load.random_reads);
            let written_bytes = load.written_bytes + load.scratch_written_bytes + blocks(load.random_writes);
            let a_position = |bytes: f64| format!("{:.2}", bytes / count);
            let mebibytes = |bytes: u64| (bytes >> 20).to_string();
            cells.extend([
                a_position(read_bytes),
                a_position(taken.read_bytes),
                a_position(written_bytes),
                a_position(taken.written_bytes),
                mebibytes(memory_bytes(&awari, part, stones)),
                mebibytes(taken.memory_bytes),
            ]);
            table.add_row(cells);
        }
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    assert!(known.all > 0, "databases of {positions_min} positions were built");
    println!("the model: {} of {} predictions within {:.0} % (! are not)", known.right, known.all, TOLERANCE * 100.0);
    println!(
        "fitted without the {left_out} largest databases: {} of {} predictions for them within {:.0} %",
        unknown.right,
        unknown.all,
        TOLERANCE * 100.0
    );
    println!("core_speed = {:.0} (all parts together, {measured:.1} s of CPU)", predicted / measured * 100.0);
    println!("{}\n", lines.join("\n"));
}
