//! Measurements of builds, compared with the predictions of the cost model of `planner`.
//!
//! Builds by each method in its predicted memory, and fits two numbers to all databases but the largest: the
//! speed of a core, and, if counting is among the methods, that of memory. With these it predicts time,
//! memory and disk space of the largest databases, which are left out of the fit. Jobs of several ranks, run
//! as threads, are fitted to two smaller databases and predicted for a larger one. The bench fails if such a
//! prediction is wrong by more than 25 %.
//!
//! It also prints predicted and measured figures a position for each part of each build, and the cost line of
//! the part scaled to the measurements. With `--dir` it reads measurements from the journal of a run
//! directory. The fitted speeds belong into a file for `awari plan --hardware`.

use bench::room::most_taken;
use bench::{Solved, build, captures, manifest, solve};
use clap::Parser;
use comfy_table::Table;
use disk::{Disk, RealDisk};
use game::{Index, PositionSet, Rules, Score};
use messaging::{Communicator, NetworkFaults, ThreadCommunicator};
use pipeline::journal::{Contents, JournalState, Measured};
use pipeline::{Budget, Manifest, StageName, directory};
use planner::{
    CostModel, DatabasePlan, Hardware, JobPlanner, Load, Method, MethodPrediction, Network, Ramp, Rates, Settings,
    StageClass, SweepJob, schema,
};
use solvers::sweep::ranks::{RankScores, ScorePartition, sweep};
use solvers::{Bytes, Kernel, Tables};
use stages::Awari;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use std::{env, fmt, fs};

/// Compares what builds took with what was predicted.
#[derive(Parser)]
struct CostModelArguments {
    /// The most stones.
    #[arg(long, default_value_t = 19)]
    stones: u32,
    /// The largest databases left out of the fit.
    #[arg(long, default_value_t = 2)]
    left_out: u32,
    /// Only these.
    #[arg(long, value_delimiter = ',', default_value = "sweep,counting,two-bit,one-bit,one-bit-dual")]
    methods: Vec<Method>,
    /// Codec of databases.
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
    /// Repetitions, all methods in turn; the least counts.
    #[arg(long, default_value_t = 2)]
    turns: usize,
    /// The stones of the largest database that jobs of ranks sweep; those that are fitted have one and two fewer.
    #[arg(long, default_value_t = 19)]
    ranks_stones: u32,
    /// Numbers of ranks; none to leave them out.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4])]
    ranks: Vec<usize>,
    /// Compare what the journal of this run directory says instead.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Databases with fewer positions are done before anything can be measured.
const POSITIONS_MIN: u64 = 10_000_000;

/// Shorter builds are repeated: the least of many short runs is as accurate as that of a few long ones.
const TURN: Duration = Duration::from_secs(15);

/// Repetitions of a job in a turn.
const JOBS_A_TURN: usize = 3;

/// Tolerance of a prediction, relative to the measurement.
const TOLERANCE: f64 = 0.25;

/// Resources used by a part of the build of a database.
#[derive(Clone, Copy)]
struct PartUsage {
    cpu_seconds: f64,
    wall_seconds: f64,
    read_bytes: f64,
    written_bytes: f64,
    memory_bytes: u64,
}

/// `argv[0]` of a child process of this bench that runs as `awari`.
const AWARI: &str = "awari";

/// By part and stones.
type Run = BTreeMap<(StageClass, u32), PartUsage>;

fn main() -> ExitCode {
    if env::args_os().next().is_some_and(|name| name == AWARI) {
        return awari::main();
    }
    let (mut positions_min, mut is_measuring) = (POSITIONS_MIN, true);
    let arguments = bench::arguments(|tiny: &mut CostModelArguments| {
        (tiny.stones, tiny.turns, tiny.ranks_stones) = (6, 1, 6);
        (positions_min, is_measuring) = (100, false);
    });
    if let Some(dir) = &arguments.dir {
        let (settings, run) = recorded(dir);
        println!("{}, codec {}, {} positions", dir.display(), settings.codec, settings.set);
        compare(&settings, &run, arguments.left_out, positions_min);
        return ExitCode::SUCCESS;
    }
    let mut builds: Vec<_> =
        arguments.methods.iter().map(|&method| MeasuredBuild::planned(&arguments, method)).collect();
    // In turn, so that other load affects all methods alike.
    for _ in 0..arguments.turns {
        for build in &mut builds {
            let begun = Instant::now();
            build.run();
            while is_measuring && begun.elapsed() < TURN {
                build.run();
            }
        }
    }
    builds.iter_mut().for_each(MeasuredBuild::look_at_room);
    for build in &builds {
        let Settings { codec, threads, memory_bytes, .. } = build.settings;
        let budget = Budget::show(memory_bytes);
        println!("{}, codec {codec}, {threads} thread(s), in {budget}, {} turn(s)", build.method, arguments.turns);
        compare(&build.settings, &build.run, arguments.left_out, positions_min);
    }
    let mut verdict = PredictionVerdict::new();
    if !builds.is_empty() {
        let speeds = Speeds::fitted(&builds, arguments.stones - arguments.left_out, positions_min);
        println!("{speeds}, fitted to all but the {} largest", arguments.left_out);
        for build in &builds {
            for stones in arguments.stones - arguments.left_out + 1..=arguments.stones {
                build.left_out(stones, &speeds, &mut verdict);
            }
        }
    }
    if !arguments.ranks.is_empty() {
        jobs(&arguments, &mut verdict);
    }
    println!("{}", verdict.table);
    let FitTally { right, all } = verdict.tally;
    println!("left out of the fits: {right} of {all} predictions within {:.0} % (! are not)", TOLERANCE * 100.0);
    // Runs of milliseconds are too short to be accurate.
    if is_measuring && right < all { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Predictions and measurements of runs that were left out of a fit.
struct PredictionVerdict {
    table: Table,
    tally: FitTally,
}

impl PredictionVerdict {
    fn new() -> PredictionVerdict {
        let table = bench::table("left out|of|predicted|measured|predicted / measured|", 2);
        PredictionVerdict { table, tally: FitTally::default() }
    }

    fn add(&mut self, run: &str, quantity: &str, [predicted, measured]: [f64; 2], show: impl Fn(f64) -> String) {
        let ratio = predicted / measured;
        let mark = self.tally.count(ratio);
        self.table.add_row([run, quantity, &show(predicted), &show(measured), &format!("{ratio:.2}"), mark]);
    }
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.2} s")
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.0} MiB", bytes / f64::from(1 << 20))
}

/// Builds by one method, and their measurements.
struct MeasuredBuild {
    method: Method,
    settings: Settings,
    overrides: Vec<(&'static str, String)>,
    run: Run,
    /// Peak disk usage, with snapshots.
    disk_bytes: u64,
}

impl MeasuredBuild {
    fn planned(arguments: &CostModelArguments, method: Method) -> MeasuredBuild {
        let mut overrides = overrides(arguments, method).to_vec();
        let mut settings = Settings::new(&manifest(&overrides));
        settings.hardware.memory_bytes = settings.hardware.memory_bytes.max(settings.memory_bytes);
        // The prediction falls with the budget: caches are shares of the remaining memory.
        let need = |settings: &Settings| {
            let needs = (0..=arguments.stones).map(|stones| planned(settings, method, stones).memory_bytes);
            needs.max().expect("there is a database").max(48 << 20)
        };
        for _ in 0..8 {
            settings.memory_bytes = need(&settings).min(settings.memory_bytes);
        }
        overrides[1].1 = format!("\"{} B\"", settings.memory_bytes);
        MeasuredBuild { method, settings, overrides, run: Run::new(), disk_bytes: 0 }
    }

    /// Builds once.
    fn run(&mut self) {
        let folder = tempfile::tempdir().expect("there is a temporary directory");
        let [file, directory] = ["m.toml", "run"].map(|name| folder.path().join(name));
        fs::write(&file, manifest(&self.overrides).to_toml()).expect("a file can be written");
        // In a process of its own, whose memory is that of the build.
        let mut command = Command::new(env::current_exe().expect("a process has a program"));
        command.arg0(AWARI).arg("run").arg(&file).arg("--dir").arg(&directory).args(["--progress", "none"]);
        let output = command.stdin(Stdio::null()).output().expect("the build can be started");
        assert!(output.status.success(), "{}: {}", self.method, String::from_utf8_lossy(&output.stderr));
        for (key, taken) in recorded(&directory).1 {
            let least = self.run.entry(key).or_insert(taken);
            least.cpu_seconds = least.cpu_seconds.min(taken.cpu_seconds);
            least.wall_seconds = least.wall_seconds.min(taken.wall_seconds);
            least.memory_bytes = least.memory_bytes.min(taken.memory_bytes);
        }
    }

    /// Builds once more, and measures the peak disk usage. Snapshots are written at every opportunity, for
    /// the prediction includes their space.
    fn look_at_room(&mut self) {
        let directory = tempfile::tempdir().expect("there is a temporary directory");
        let snapshots = ("build.snapshot", "\"0 s\"".to_owned());
        let overrides: Vec<_> = self.overrides.iter().cloned().chain([snapshots]).collect();
        let run = |disk: &dyn Disk| build(disk, directory.path(), self.settings.threads, &overrides);
        (_, self.disk_bytes) = most_taken(&RealDisk::default(), directory.path(), run);
    }

    /// All stages of a database.
    fn of(&self, stones: u32) -> impl Iterator<Item = (StageClass, &PartUsage)> {
        self.run
            .iter()
            .filter(move |((_, database_stones), _)| *database_stones == stones)
            .map(|(&(part, _), taken)| (part, taken))
    }

    /// Adds the predictions for a database on a machine of these speeds.
    fn left_out(&self, stones: u32, speeds: &Speeds, verdict: &mut PredictionVerdict) {
        let mut settings = self.settings.clone();
        (settings.hardware.core_speed, settings.hardware.memory_speed) = (speeds.core, speeds.memory);
        let predicted = planned(&settings, self.method, stones);
        let run = format!("{}, {stones} stones", self.method);
        let took = self.of(stones).map(|(_, taken)| taken.wall_seconds).sum();
        verdict.add(&run, "time", [predicted.seconds, took], seconds);
        let memory = self.of(stones).map(|(_, taken)| taken.memory_bytes).max().unwrap_or(0);
        verdict.add(&run, "memory", [predicted.memory_bytes as f64, memory as f64], mebibytes);
        if self.run.keys().all(|&(_, database_stones)| database_stones <= stones) {
            verdict.add(&run, "disk", [predicted.disk_bytes as f64, self.disk_bytes as f64], mebibytes);
        }
    }
}

/// The prediction for all stages of a database by a method.
fn planned(settings: &Settings, method: Method, stones: u32) -> MethodPrediction {
    *DatabasePlan::by(settings, stones, method).all_stages()
}

/// The highest memory speed to fit, relative to the reference.
const SPEED_MAX: f64 = 10.0;

/// Speeds of this machine, relative to the reference.
struct Speeds {
    core: f64,
    memory: f64,
}

impl Speeds {
    /// Fits the speeds to the processor time of databases of up to `stones_max` stones.
    fn fitted(builds: &[MeasuredBuild], stones_max: u32, positions_min: u64) -> Speeds {
        let model = CostModel::default();
        let loads = builds.iter().flat_map(|build| {
            let settings = &build.settings;
            let fitted = |stones: u32| settings.set.positions(stones) >= positions_min && stones <= stones_max;
            let run = build.run.iter().filter(move |((_, stones), _)| fitted(*stones));
            run.map(|(&(class, stones), taken)| {
                let plan = DatabasePlan::by(settings, stones, build.method);
                (model.load(settings, plan.memory(), class), taken.cpu_seconds)
            })
        });
        let sum = |all: Vec<(Load, f64)>| {
            all.into_iter().fold((Load::default(), 0.0), |sum, term| (sum.0 + term.0, sum.1 + term.1))
        };
        let (waiting, busy): (Vec<_>, Vec<_>) = loads.partition(|(load, _)| load.memory_seconds > 0.0);
        let ((busy, busy_seconds), (waiting, waiting_seconds)) = (sum(busy), sum(waiting));
        // The runs of counting alone do not separate the two speeds.
        let core = if busy.cpu_seconds > 0.0 {
            busy.cpu_seconds / busy_seconds
        } else {
            core_seconds(&waiting) / waiting_seconds
        };
        // The remaining time: little, where caches are large.
        let waited = waiting_seconds - waiting.cpu_seconds / core;
        let memory = waiting.memory_seconds / waited.max(waiting.memory_seconds / SPEED_MAX);
        Speeds { core, memory: if memory > 0.0 { memory } else { core } }
    }
}

impl fmt::Display for Speeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "core_speed = {:.0}, memory_speed = {:.0}", self.core * 100.0, self.memory * 100.0)
    }
}

/// A database to be swept by jobs.
struct JobInput {
    stones: u32,
    tables: Tables,
    index: Index,
    best: Bytes,
}

impl JobInput {
    fn new(set: PositionSet, stones: u32, solved: &Solved) -> JobInput {
        let (tables, index) = (Tables::new(Rules::AWARI, set, stones), Index::new(stones, set));
        let best = captures(&tables, &index, &solved[..stones as usize].to_vec());
        JobInput { stones, tables, index, best }
    }

    /// Returns the prediction for ranks that share this machine, and its processor time.
    fn predicted(&self, ranks: usize, speed: f64, network: Network) -> (SweepJob, f64) {
        let overrides =
            [("build.stones", format!("\"0..{}\"", self.stones)), ("build.memory", "\"16 GiB\"".to_owned())];
        let mut settings = Settings::new(&manifest(&overrides));
        let hardware = Hardware { core_speed: speed, network, ..Hardware::this() };
        (settings.threads, settings.hardware) = (1, hardware.shared_by(ranks));
        let predicted = JobPlanner::new(&settings).sweep(self.stones, ranks);
        let load = Load { cpu_seconds: predicted.cpu_seconds, ..Load::default() };
        let share = (hardware.cores as f64 / ranks as f64).min(1.0);
        (predicted, settings.hardware.core_seconds(&load, 1) * share)
    }
}

/// Jobs of ranks that are threads of this process.
fn jobs(arguments: &CostModelArguments, verdict: &mut PredictionVerdict) {
    let stones = arguments.ranks_stones;
    let solved = solve(PositionSet::All, stones, |_| {});
    // Databases of odd numbers of stones take fewer passes.
    let grounds = [2, 1, 0].map(|fewer| JobInput::new(PositionSet::All, stones - fewer, &solved));
    let (larger, smaller) = grounds.split_last().expect("there are three");
    let mut taken = BTreeMap::<_, Swept>::new();
    for _ in 0..arguments.turns * JOBS_A_TURN {
        for ground in &grounds {
            for &ranks in &arguments.ranks {
                let measured = swept(ground, ranks, &NetworkFaults::none());
                match taken.entry((ground.stones, ranks)) {
                    Entry::Occupied(mut least) if measured.seconds < least.get().seconds => {
                        least.insert(measured);
                    }
                    Entry::Occupied(_) => {}
                    Entry::Vacant(none) => drop(none.insert(measured)),
                }
            }
        }
    }
    let fitted = smaller.iter().flat_map(|ground| arguments.ranks.iter().map(move |&ranks| (ground, ranks)));
    let fitted = fitted.map(|(ground, ranks)| {
        let (_, cpu_seconds) = ground.predicted(ranks, 1.0, MEMORY);
        (cpu_seconds, taken[&(ground.stones, ranks)].cpu_seconds)
    });
    let (all, took) = fitted.fold((0.0, 0.0), |(all, took), term| (all + term.0, took + term.1));
    let speed = all / took;
    println!("jobs of ranks: core_speed = {:.0}, fitted to {} and {} stones", speed * 100.0, stones - 2, stones - 1);
    for &ranks in &arguments.ranks {
        let (predicted, cpu_seconds) = larger.predicted(ranks, speed, MEMORY);
        let taken = &taken[&(stones, ranks)];
        let run = format!("{ranks} rank(s), {stones} stones");
        verdict.add(&run, "time", [predicted.seconds, taken.seconds], seconds);
        verdict.add(&run, "processors", [cpu_seconds, taken.cpu_seconds], seconds);
        verdict.add(&run, "scores and captures", [taken.planned_bytes as f64, taken.held_bytes], mebibytes);
        if ranks > 1 {
            verdict.add(&run, "sent", [predicted.sent_bytes, taken.sent_bytes], mebibytes);
            verdict.add(&run, "messages", [predicted.messages, taken.messages], |count| format!("{count:.0}"));
        }
    }
    // With latency, which is not part of the fits.
    for delay in [1.0, 4.0] {
        let delays = Duration::from_secs_f64(0.8e-3 * delay)..Duration::from_secs_f64(1.2e-3 * delay);
        let taken = swept(larger, 2, &NetworkFaults { delay: delays, ..NetworkFaults::none() });
        let (predicted, _) = larger.predicted(2, speed, Network { latency: delay * 1e-3, ..MEMORY });
        let run = format!("2 rank(s), {stones} stones, {delay:.0} ms away");
        verdict.add(&run, "time", [predicted.seconds, taken.seconds], seconds);
    }
}

/// Network of ranks that are threads: memory.
const MEMORY: Network = Network { bandwidth: 1e10, latency: 5e-6 };

/// Measurements of a job.
struct Swept {
    seconds: f64,
    cpu_seconds: f64,
    sent_bytes: f64,
    messages: f64,
    /// Memory of scores and captures of all ranks.
    held_bytes: f64,
    planned_bytes: u64,
}

fn swept(ground: &JobInput, ranks: usize, faults: &NetworkFaults) -> Swept {
    let JobInput { tables, index, best, .. } = ground;
    let partition = Arc::new(ScorePartition::new(tables, index.slabs(), ranks));
    let (ready, done) = (Barrier::new(ranks + 1), Barrier::new(ranks + 1));
    let before = resident_bytes();
    let run = |end: &mut dyn Communicator| {
        let mut part = RankScores::zeroed(tables, Arc::clone(&partition), end.rank()).expect("there is memory");
        let read = |positions: Range<u64>, out: &mut [Score]| {
            out.copy_from_slice(&best[positions.start as usize..positions.end as usize]);
            Ok::<_, std::io::Error>(())
        };
        let captures = part.captures(read).expect("there is memory for the captures");
        ready.wait();
        let start = Instant::now();
        let report =
            sweep(tables, index, &captures, &mut part, Kernel::detect(), end, &()).expect("no observer stops it");
        let seconds = start.elapsed().as_secs_f64();
        done.wait();
        // The main thread has read the memory usage.
        done.wait();
        let layout = part.memory_layout();
        (report, seconds, layout.scores_bytes + layout.captures_bytes)
    };
    std::thread::scope(|scope| {
        let ends = ThreadCommunicator::job(ranks, faults.clone());
        let running: Vec<_> =
            ends.into_iter().map(|mut end| scope.spawn(|| bench::pool(1).install(move || run(&mut end)))).collect();
        ready.wait();
        let cpu = disk::clock::cpu_seconds();
        done.wait();
        let cpu_seconds = disk::clock::cpu_seconds() - cpu;
        let held_bytes = resident_bytes() - before;
        done.wait();
        let taken: Vec<_> = running.into_iter().map(|rank| rank.join().expect("no rank panics")).collect();
        let sum = |figure: fn(&messaging::MessageTraffic) -> u64| {
            taken.iter().map(|rank| figure(&rank.0.traffic)).sum::<u64>() as f64
        };
        Swept {
            seconds: taken.iter().map(|rank| rank.1).fold(0.0, f64::max),
            cpu_seconds,
            sent_bytes: sum(|traffic| traffic.bytes_sent),
            messages: sum(|traffic| traffic.messages_sent),
            held_bytes,
            planned_bytes: taken.iter().map(|rank| rank.2).sum(),
        }
    })
}

/// Resident memory of this process, in bytes.
fn resident_bytes() -> f64 {
    let text = fs::read_to_string("/proc/self/status").expect("the kernel describes processes");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has memory");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("it is a number") * 1024.0
}

fn overrides(arguments: &CostModelArguments, method: Method) -> [(&'static str, String); 7] {
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

/// Reads the measurements in a run directory.
fn recorded(dir: &Path) -> (Settings, Run) {
    let disk = RealDisk::default();
    let manifest = directory::manifest_path(dir);
    let text = std::fs::read_to_string(&manifest)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}; name a run directory", manifest.display()));
    let manifest = Manifest::parse(&text, "manifest.toml", &schema(), &[]).expect("a run leaves a whole manifest");
    let settings = Settings::new(&manifest);
    let journal = Contents::read(&disk, &directory::journal_path(dir)).expect("the journal can be read");
    let state = JournalState::replay(&journal.entries);
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
    let part = stages::kinds::class(stage, DatabasePlan::new(settings, stones).method());
    let part = part.expect("each kind of stage is part of a build");
    let none = PartUsage { cpu_seconds: 0.0, wall_seconds: 0.0, read_bytes: 0.0, written_bytes: 0.0, memory_bytes: 0 };
    let taken = run.entry((part, stones)).or_insert(none);
    taken.cpu_seconds += measured.cpu_seconds;
    taken.wall_seconds += measured.wall_seconds;
    taken.read_bytes += measured.read_bytes.unwrap_or(0) as f64;
    taken.written_bytes += measured.written_bytes.unwrap_or(0) as f64;
    taken.memory_bytes = taken.memory_bytes.max(measured.memory_peak_bytes.unwrap_or(0));
}

/// Planned memory of a part.
fn memory_bytes(awari: &Awari, part: StageClass, stones: u32) -> u64 {
    let method = awari.plan().database(stones).method();
    let stages = pipeline::Work::graph(awari).stages().iter();
    let stages = stages.filter(|stage| {
        stage.name.parameters()[0] == stones && stages::kinds::class(&stage.name, method) == Some(part)
    });
    stages.map(|stage| stage.cost.memory_bytes).max().unwrap_or(0)
}

/// Scales a line of the model to measurements. `seconds` are pairs of measured and predicted time.
fn fitted(line: Ramp, seconds: impl Iterator<Item = (f64, f64)>) -> Option<Ramp> {
    let (measured, model) = seconds.fold((0.0, 0.0), |sum, seconds| (sum.0 + seconds.0, sum.1 + seconds.1));
    let factor = measured / model;
    (model > 0.0 && factor > 0.0).then(|| Ramp::growing(line.level * factor, line.from, line.a_stone * factor))
}

/// Seconds of one core of the reference.
fn core_seconds(load: &Load) -> f64 {
    Hardware::REFERENCE.core_seconds(load, 1)
}

/// Number of predictions within the tolerance.
#[derive(Default)]
struct FitTally {
    right: usize,
    all: usize,
}

impl FitTally {
    fn count(&mut self, ratio: f64) -> &'static str {
        let is_right = (1.0 - TOLERANCE..=1.0 + TOLERANCE).contains(&ratio);
        self.right += usize::from(is_right);
        self.all += 1;
        if is_right { "" } else { "!" }
    }
}

fn compare(settings: &Settings, run: &Run, left_out: u32, positions_min: u64) {
    let model = CostModel::default();
    let awari = Awari::new(settings.clone());
    let positions = |stones| settings.set.positions(stones);
    let is_large = |stones: u32| positions(stones) >= positions_min;
    let last = run.keys().map(|&(_, stones)| stones).max().expect("something was measured");
    let mut table = bench::table(
        "part|stones|ns predicted|measured|ratio||fitted|ratio||\
         B read predicted|measured|B written predicted|measured|MiB predicted|measured",
        1,
    );
    let (mut predicted, mut measured) = (0.0, 0.0);
    let (mut known, mut unknown, mut lines) = (FitTally::default(), FitTally::default(), Vec::new());
    for part in StageClass::ALL {
        let points = run.iter().filter(|((class, stones), _)| *class == part && is_large(*stones));
        let points: Vec<(u32, &PartUsage)> = points.map(|(&(_, stones), taken)| (stones, taken)).collect();
        // Costs outside the line are those of the model.
        let besides = model.clone().with(part, Rates::default());
        let cpu_of = |model: &CostModel, stones| {
            core_seconds(&model.load(settings, awari.plan().database(stones).memory(), part))
        };
        let fit = points.iter().filter(|(stones, _)| stones + left_out <= last);
        let fit = fit.map(|&(stones, taken)| {
            let rest = cpu_of(&besides, stones);
            (taken.cpu_seconds - rest, cpu_of(&model, stones) - rest)
        });
        let rates = model.rates(part);
        let line = fitted(rates.cpu, fit);
        if let Some(Ramp { level, from, a_stone }) = line {
            lines.push(format!("  {part} cpu: Ramp::growing({level:.2}, {from}, {a_stone:.2})"));
        }
        for &(stones, taken) in &points {
            let count = positions(stones) as f64;
            let load = model.load(settings, awari.plan().database(stones).memory(), part);
            let cpu_seconds = core_seconds(&load);
            assert!(cpu_seconds > 0.0 && cpu_seconds.is_finite(), "{part} has a prediction");
            let ns = |seconds: f64| seconds * 1e9 / count;
            let ratio = cpu_seconds / taken.cpu_seconds;
            (predicted, measured) = (predicted + cpu_seconds, measured + taken.cpu_seconds);
            let mut cells = vec![
                part.to_string(),
                stones.to_string(),
                format!("{:.2}", ns(cpu_seconds)),
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
            // File counters include both cache misses and sequential reads.
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
    println!("{table}");
    assert!(known.all > 0, "databases of {positions_min} positions were built");
    println!("the model: {} of {} predictions within {:.0} % (! are not)", known.right, known.all, TOLERANCE * 100.0);
    println!(
        "fitted without the {left_out} largest databases: {} of {} predictions for them within {:.0} %",
        unknown.right,
        unknown.all,
        TOLERANCE * 100.0
    );
    println!(
        "{:.0} % of the speed of the reference (all parts together, {measured:.1} s of CPU)",
        predicted / measured * 100.0
    );
    println!("{}\n", lines.join("\n"));
}
