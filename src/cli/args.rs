//! The command line: stable, so nothing here changes its meaning.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use disk::Io;
use engines::Kernel;
use oracle::Level;
use pipeline::Budget;
use stages::Method;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use store::Codec;
use tracing_subscriber::filter::LevelFilter;

/// Builds endgame databases of awari from a manifest, and answers questions from them.
#[derive(Debug, Parser)]
#[command(
    name = "awari",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  awari run manifests/quickstart.toml          build what the manifest says; the same command resumes
  awari plan manifests/small.toml              what would be done, why, and what it takes
  awari status --dir runs/small                how far a run is
  awari verify --dir runs/small                check every score and every checksum
  awari probe --dir runs/small 0 0 0 0 0 2  1 0 0 0 0 0

Exit codes:
  0 done, 1 internal error, 2 usage, 3 no database answers, 10 work pending, 11 manifest invalid,
  12 preflight failed, 13 locked, 14 stage failed, 15 stale but --frozen, 16 damaged or wrong,
  75 stopped and resumable, 130 second signal"
)]
pub(crate) struct Arguments {
    /// Which vector instructions to use: portable (none), avx2 or avx512; changes no byte of any file [default: the
    /// fastest that `awari doctor` lists]
    #[arg(long, global = true, value_name = "NAME", value_parser = kernel)]
    pub(crate) kernel: Option<Kernel>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Build what a manifest says, resuming what an earlier run has begun
    Run(RunArgs),
    /// Show what `run` would do, why, and what it takes
    Plan(PlanArgs),
    /// Show how far a run is
    Status(StatusArgs),
    /// Ask the run that works in a directory to stop, from any machine that sees it
    Stop(StopArgs),
    /// Print a script that Slurm runs as a job of several machines
    SlurmScript(SlurmScriptArgs),
    /// Rerun one stage aside, and compare its result with the recorded one
    Stage(StageArgs),
    /// Check databases: checksums, every score by the plain rules, published counts
    Verify(VerifyArgs),
    /// Show the distribution of scores
    Stats(StatsArgs),
    /// Ask for the score and the moves of a position
    Probe(ProbeArgs),
    /// Write databases in layouts that other programs read
    Export(ExportArgs),
    /// Write databases in their smallest form, for keeping
    Archive(ArchiveArgs),
    /// Bring databases back from archives
    Restore(RestoreArgs),
    /// Answer questions over HTTP, for programs and with a page for people
    Serve(ServeArgs),
    /// Say field by field why a stage is or is not up to date
    Explain(ExplainArgs),
    /// Write a page with what the runs of a directory did and found
    Report(ReportArgs),
    /// Show what nothing needs any more, and remove it if told to
    Gc(GcArgs),
    /// Show what the machine and a directory offer, and what stands in the way of a run
    Doctor(DoctorArgs),
    /// Judge every move of a game, once the databases know
    Analyze(AnalyzeArgs),
    /// Play against the databases in the terminal
    Play(PlayArgs),
    /// Speak the protocol of oware programs on stdin and stdout
    Engine(EngineArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
}

/// A manifest, and what the command line changes in it.
#[derive(Clone, Debug, Args)]
pub(crate) struct ManifestArgs {
    /// The manifest
    #[arg(value_name = "MANIFEST")]
    pub(crate) manifest: PathBuf,
    #[command(flatten)]
    pub(crate) changes: ChangeArgs,
}

/// What the command line changes in a manifest.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChangeArgs {
    /// The run directory, relative to the current one [default: run.dir of the manifest]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Threads; 0 is one for each core [default: build.threads of the manifest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: Option<u16>,
    /// The most memory to use, as "512 MiB" or 2GiB [default: build.memory of the manifest]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Budget>,
    /// Give a key of the manifest another value: TOML, or else a plain string; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
}

/// Which stages of a build.
#[derive(Clone, Debug, Args)]
pub(crate) struct SelectionArgs {
    /// The last stage to run, as sweep:14
    #[arg(long, value_name = "STAGE")]
    pub(crate) until: Option<String>,
    /// Redo this stage, though it is up to date, and nothing after it; may be repeated
    #[arg(long, value_name = "STAGE")]
    pub(crate) force: Vec<String>,
    /// Refuse to rebuild anything that is there but stale
    #[arg(long)]
    pub(crate) frozen: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari run manifests/quickstart.toml
  awari run manifests/small.toml --until sweep:14 --dir runs/other
  awari run manifests/small.toml --set store.codec=zstd --set 'build.methods.\"13..14\"=sweep'
  awari run manifests/small.toml --force verify:12 --progress json > events.jsonl

Ctrl-C finishes the unit of work at hand, keeps all that is done, and exits with 75; the same command resumes.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) manifest: ManifestArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// How to show progress: a bar or plain lines on stderr, or events as JSON lines on stdout
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) progress: ProgressMode,
    /// How to reach the disk: uring, plain, or auto, which is uring where the kernel allows it
    #[arg(long, value_name = "HOW", default_value_t = Io::Auto)]
    pub(crate) io: Io,
    /// How much to write to logs/STAGE.log in the run directory
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log: LogLevel,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// Nothing
    Off,
    /// What is not as it should be
    Warn,
    /// Each stage: why it ran, what it took, its snapshots
    Info,
    /// Progress and passes too
    Debug,
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> LevelFilter {
        match level {
            LogLevel::Off => LevelFilter::OFF,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
        }
    }
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressMode {
    /// A bar on a terminal, plain lines elsewhere
    Auto,
    /// A bar
    Bar,
    /// A line every few seconds, and one for each stage
    Plain,
    /// One JSON object an event, on stdout
    Json,
    /// Not at all
    None,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari plan manifests/small.toml
  awari plan manifests/small.toml --check || echo there is work to do
  awari plan manifests/small.toml --json | jq '.steps[].stage'
  awari plan manifests/workstation.toml --hardware manifests/hardware/server.toml
  awari plan --up-to 48 --hardware manifests/hardware/server.toml
  awari plan --up-to 48 --ranks 64 --hardware manifests/hardware/server.toml

With --hardware, threads and memory are those of that machine, unless the command line says otherwise.")]
pub(crate) struct PlanArgs {
    /// The manifest
    #[arg(value_name = "MANIFEST", required_unless_present = "up_to")]
    pub(crate) manifest: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) changes: ChangeArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Predict for a machine: a file that describes it, `this`, or `reference`
    #[arg(long, value_name = "FILE")]
    pub(crate) hardware: Option<String>,
    /// Show what each method takes for every database of up to so many stones, whatever is built already
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(game::STONES_MAX)),
        conflicts_with_all = ["until", "force", "frozen", "check", "all"])]
    pub(crate) up_to: Option<u32>,
    /// Show besides what a job of so many ranks takes to sweep each database, every rank on such a machine
    #[arg(long, value_name = "N", requires = "up_to", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) ranks: Option<u16>,
    /// Exit with 10 if there is anything to do
    #[arg(long)]
    pub(crate) check: bool,
    /// List every stage, also those that repeat for each bound
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the plan as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari status --dir runs/small
  awari status --dir runs/small --watch
  awari status --dir runs/small --watch --json | jq -c '.run.heartbeat'

Reads only, so it may be asked from another terminal, or from another machine that shares the directory.")]
pub(crate) struct StatusArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Show it again every second until the run ends; waits for one to begin if none goes on
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  awari stop --dir runs/small && awari status --dir runs/small --watch

As Ctrl-C does where the run was started: it finishes the unit of work at hand, keeps all that is done, and exits with 75;
the same command resumes. Exits with 12 if nothing runs there, with 13 if what works there is no run.")]
pub(crate) struct StopArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari slurm-script manifests/cluster.toml --nodes 8 --time 1-00:00:00 > job.sh && sbatch job.sh
  awari slurm-script manifests/cluster.toml --nodes 8 --threads 32 --memory 60GiB | sbatch --partition=long

One rank a node, with the threads and the memory of the manifest. Ten minutes before its time is over the job stops as
with Ctrl-C, and puts itself into the queue again until all is built. It works in the current directory of now.")]
pub(crate) struct SlurmScriptArgs {
    #[command(flatten)]
    pub(crate) manifest: ManifestArgs,
    /// Nodes, each a rank
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) nodes: u32,
    /// The time limit of the job as Slurm writes it: minutes, H:M:S, or D-H:M:S [default: that of the partition]
    #[arg(long, value_name = "TIME", value_parser = time_limit)]
    pub(crate) time: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  awari stage manifests/small.toml sweep:14 --scratch /tmp/again

The run directory is only read. What the stage reads and was not kept is rebuilt in the scratch directory first.
A line of stdout for each output: its name, identical, different, passed or nothing-recorded, and its digest.
Exits with 16 if anything differs from what was recorded.")]
pub(crate) struct StageArgs {
    #[command(flatten)]
    pub(crate) manifest: ManifestArgs,
    /// The stage, as sweep:14; the manifest comes first
    #[arg(value_name = "STAGE")]
    pub(crate) stage: String,
    /// Where to work, and to leave the result [default: a temporary directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,
    /// How to show progress
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) progress: ProgressMode,
    /// How to reach the disk: uring, plain, or auto, which is uring where the kernel allows it
    #[arg(long, value_name = "HOW", default_value_t = Io::Auto)]
    pub(crate) io: Io,
}

/// A directory with databases, and which of them.
#[derive(Clone, Debug, Args)]
pub(crate) struct DatabasesArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Only databases of so many stones: a range, both ends included, or one number
    #[arg(long, value_name = "A..B", value_parser = stones)]
    pub(crate) stones: Option<RangeInclusive<u32>>,
    /// Threads; 0 is one for each core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: u16,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari verify --dir runs/small
  awari verify --dir runs/small --stones 15..18 --sample 1000
  awari verify --dir runs/quickstart --certify
  awari verify --dir runs/small --stones 0..14 --against counting
  awari verify --dir runs/small --against-files scores

Needs nothing but the databases. Damage is recorded in the journal, so that the next `awari run`
rebuilds it.

Always compared are every checksum, every score (or a sample) with those of its children, and the
published counts, where there are some. That alone proves no score: positions can rest their claims
on each other. --certify proves them, in databases from 0 stones up without a gap; so do published
counts, for all positions of up to 16 stones. --against trusts nothing in the directory: it rebuilds
from 0 stones on, in a new directory inside the run directory (or inside --scratch), and compares
content digests; where they differ, positions are named with the rebuilt score as the expected one.
The new directory is removed at the end, and on Ctrl-C; a second one at once and kill -9 leave it,
as against-PID-TIME, which may be removed.
--against-files compares every entry of files scores.N, as the Vrije Universiteit published those of 2002 and
`awari export --format vu` writes them, of reachable positions.
Options add up: whatever is asked for must pass.

A line of stdout for each database, `stones,status`; of what was shown the strongest:
  certified   proved: consistent, and every win and loss derived, as in all that captures lead to
  rebuilt     another method makes the same scores
  verified    every score follows from those of the children
  sampled     the scores of a sample do
  unchecked   smaller databases are missing, damaged or wrong
  missing     there is no such database
  damaged     the file is not what was written
  wrong       it is, but scores are wrong; exit code 16, as for damaged
  differs     the file of --against-files has other scores; exit code 16, though either may be right")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) databases: DatabasesArgs,
    /// Derive the score of one position in N only, of at least 100,000 a database
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) sample: Option<u64>,
    /// Choose other positions for the sample; those of 0 are what runs sample too
    #[arg(long, value_name = "N", default_value_t = 0, requires = "sample")]
    pub(crate) seed: u64,
    /// Prove the scores besides: derive every win and loss that the databases claim from nothing
    #[arg(long)]
    pub(crate) certify: bool,
    /// Rebuild the databases by this method, from nothing, and compare
    #[arg(long, value_name = "METHOD", value_parser = methods())]
    pub(crate) against: Option<Method>,
    /// Compare with the files scores.N in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) against_files: Option<PathBuf>,
    /// Where to rebuild: in a new directory inside this one, removed afterwards [default: the run directory]
    #[arg(long, value_name = "DIR", requires = "against")]
    pub(crate) scratch: Option<PathBuf>,
    /// The most memory to rebuild with [default: 2 GiB]
    #[arg(long, value_name = "SIZE", requires = "against")]
    pub(crate) memory: Option<Budget>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari stats --dir runs/small
  awari stats --dir runs/small --stones 0..12 --format csv > scores.csv
  awari stats --dir runs/small --format svg > scores.svg")]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) databases: DatabasesArgs,
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: StatsFormat,
}

/// How statistics are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsFormat {
    /// Columns for people
    Table,
    /// `stones,score,positions`, a line for each score that occurs
    Csv,
    /// A list of objects
    Json,
    /// A stacked histogram
    Svg,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari probe --dir runs/small 0 0 0 0 0 2  1 0 0 0 0 0
  awari probe --dir runs/small '0 0 0 0 0 2 1 0 0 0 0 0' --json
  awari probe --dir runs/small 0-0-0-0-0-2-1-0-0-0-0-0-22-23-S

The twelve numbers are the stones from A round to f, those of the player to move first.")]
pub(crate) struct ProbeArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Twelve numbers, or a position string with stores and the side to move
    #[arg(value_name = "PITS", required = true, num_args = 1..)]
    pub(crate) pits: Vec<String>,
    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari export --dir runs/small --format raw --out exported
  awari export --dir runs/small --stones 0..6 --format csv --out exported
  awari export --dir runs/small --format vu --out scores

  raw      NN.raw, a signed byte a position in canonical order, and NN.json, which describes it
  csv      NN.csv, `position,score`, a line for each position; for small databases
  parquet  NN.parquet, a table of twelve pits and the score
  vu       scores.N, as the Vrije Universiteit published those of 2002 (doi:10.48338/vu01-11wjke): a
           signed byte for each reachable position, in lexicographic order of the pits f, e, ... a, F, ... A

A line of stdout for each file: its path, written or identical, and its bytes. A file that is there already stays if it
has the same bytes; if not, that is an error, unless --force is given. Ctrl-C leaves the files that are complete.")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) databases: DatabasesArgs,
    /// The layout
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: ExportFormat,
    /// The directory to write into
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Replace other files of the same name; write csv of any size
    #[arg(long)]
    pub(crate) force: bool,
    /// The most scores held in memory to bring them into another order
    #[arg(long, value_name = "SIZE", default_value = "512 MiB")]
    pub(crate) memory: Budget,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari archive --dir runs/small --out archives
  awari archive --dir runs/small --stones 17..18 --out archives

NN.archive holds the scores of NN.awari in about two thirds of the space: each is coded with the best that a capture
reaches at hand, which follows from the databases of fewer stones. So these are needed here and by `awari restore`.

A line of stdout for each file, as of `awari export`. Takes a byte of memory a position.")]
pub(crate) struct ArchiveArgs {
    #[command(flatten)]
    pub(crate) databases: DatabasesArgs,
    /// The directory to write into
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Replace other files of the same name
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari restore --from archives --dir runs/again
  awari restore --from archives --dir runs/again --stones 0..12 --codec packed

Writes databases/NN.awari for each NN.archive, from the fewest stones up, once the digest of its scores is right. One
that is there already stays if it has the same scores, else that is an error. Ctrl-C leaves those that are complete;
`awari run --dir` takes them as they are.")]
pub(crate) struct RestoreArgs {
    /// The directory of the archives
    #[arg(long, value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// The run directory, made if it is absent
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Only databases of so many stones: a range, both ends included, or one number
    #[arg(long, value_name = "A..B", value_parser = stones)]
    pub(crate) stones: Option<RangeInclusive<u32>>,
    /// How they are stored: raw, packed, zstd or rans
    #[arg(long, value_name = "CODEC", default_value_t = Codec::Zstd)]
    pub(crate) codec: Codec,
    /// Threads; 0 is one for each core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: u16,
}

/// A layout that other programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Bare bytes
    Raw,
    /// Text
    Csv,
    /// A table
    Parquet,
    /// As the Vrije Universiteit published its scores
    Vu,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari serve --dir runs/small
  curl 'http://127.0.0.1:8080/v1/probe?pos=0+0+0+0+0+2+1+0+0+0+0+0'

Prints the address of the page once it listens; /v1/openapi.json describes the API. Ctrl-C answers what
was asked and ends. Nobody but this machine can ask unless --listen says so, as 0.0.0.0:8080; it speaks
plain HTTP, so put a proxy in front of it for encryption.")]
pub(crate) struct ServeArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Where to listen; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari explain manifests/small.toml sweep:14
  awari explain manifests/small.toml verify:14 --set check.verify=full --json")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) manifest: ManifestArgs,
    /// The stage, as sweep:14; the manifest comes first
    #[arg(value_name = "STAGE")]
    pub(crate) stage: String,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  awari report --dir runs/small -o report.html

One HTML file that needs nothing outside itself: every run and restart, the stages over time, their rates, memory and
bytes moved, the scores. It may be written while a run goes on.")]
pub(crate) struct ReportArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The file to write; - is stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari gc --dir runs/small
  awari gc --dir runs/small --delete
  awari gc --dir runs/small --unasked --delete     also what the manifest no longer asks for

Without --delete nothing is removed. Files that neither the manifest nor the journal knows are never removed.")]
pub(crate) struct GcArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Only show what could be removed, as without --delete
    #[arg(long, conflicts_with = "delete")]
    pub(crate) plan: bool,
    /// Remove it
    #[arg(long)]
    pub(crate) delete: bool,
    /// Also intermediates that the manifest asks to keep; the next run makes them again
    #[arg(long)]
    pub(crate) kept: bool,
    /// Also what the manifest no longer asks for: databases of more stones, planes of another method
    #[arg(long)]
    pub(crate) unasked: bool,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari doctor --dir runs/small
  awari doctor --dir /scratch/awari --bytes 4GiB

Writes a file to tell the speed of the disk, and removes it. Exits with 12 if a run could not work there.")]
pub(crate) struct DoctorArgs {
    /// The directory in which runs are to work; it need not exist yet
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// How much to write and read to tell the speed of the disk; 0 leaves that out
    #[arg(long, value_name = "SIZE", default_value = "256 MiB")]
    pub(crate) bytes: Budget,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari analyze --dir runs/small game.ogn
  awari analyze --dir runs/small 'F4 f4 B5 d5 E6'
  awari analyze --dir runs/small --json - < game.ogn

A game is moves by their pits, A to F for South and a to f for North, with or without move numbers, stones sown (B5) and
captures (B5x2), or a file in the Oware Game Notation. Positions with more stones than the databases have are judged as
far as a search finds out.")]
pub(crate) struct AnalyzeArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// A file, the moves themselves, or - for stdin
    #[arg(value_name = "GAME", required = true, num_args = 1..)]
    pub(crate) game: Vec<String>,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari play --dir runs/small --position '0 1 0 2 0 1  1 0 2 0 1 0'
  awari play --dir runs/small --level strong --side north --position random:12

Moves are pits: A to F for South, a to f for North. Other words: values, best, line, undo, board, save FILE, quit.")]
pub(crate) struct PlayArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// How well the program plays: fair, good, strong, expert or perfect
    #[arg(long, value_name = "LEVEL", default_value_t = Level::Perfect)]
    pub(crate) level: Level,
    /// Which side you play; none is the program against itself
    #[arg(long, value_name = "SIDE", default_value = "south")]
    pub(crate) side: PlaySide,
    /// Where to begin: twelve numbers, the long form, or random:STONES [default: the opening]
    #[arg(long, value_name = "POSITION")]
    pub(crate) position: Option<String>,
    /// The seed of chance [default: the time]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// The side that a person plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlaySide {
    /// A to F, who begins
    South,
    /// a to f
    North,
    /// Both
    Both,
    /// None
    None,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  printf 'uci\\nposition fen 0-0-0-0-0-2-1-1-0-0-0-1-20-23-S\\ngo\\nquit\\n' | awari engine --dir runs/small

Commands: uci, ugi, isready, ucinewgame, uginewgame, setoption name Level value LEVEL, position startpos|fen POS
[moves FfBd], go, stop, quit. Scores are stones for who is to move, in hundredths (cp).")]
pub(crate) struct EngineArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  awari completions bash > ~/.local/share/bash-completion/completions/awari")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

fn methods() -> impl TypedValueParser<Value = Method> {
    PossibleValuesParser::new(Method::ALL.map(Method::word)).try_map(|word| word.parse::<Method>())
}

fn kernel(text: &str) -> Result<Kernel, String> {
    Kernel::available().find(|kernel| kernel.to_string() == text).ok_or_else(|| {
        let names: Vec<_> = Kernel::available().map(|kernel| kernel.to_string()).collect();
        format!("this processor has {}", names.join(", "))
    })
}

fn setting(text: &str) -> Result<(String, String), String> {
    // Quoted parts of a key hold dots, never `=`: ranges are all that is ever quoted.
    match text.split_once('=') {
        Some((key, value)) => Ok((key.trim().to_owned(), value.to_owned())),
        None => Err("expected KEY=VALUE, as build.threads=2".to_owned()),
    }
}

/// A time limit that leaves a job some time before it is asked to stop.
fn time_limit(text: &str) -> Result<String, String> {
    const SECONDS_MIN: u64 = 20 * 60;
    match limit_seconds(text) {
        None => Err("expected minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S, as 24:00:00".to_owned()),
        Some(seconds) if seconds < SECONDS_MIN => {
            Err("the job is asked to stop ten minutes before the end; give it 20 minutes or more".to_owned())
        }
        Some(_) => Ok(text.to_owned()),
    }
}

/// A time as Slurm writes it (sbatch(1), `--time`), in seconds.
fn limit_seconds(text: &str) -> Option<u64> {
    let number = |text: &str| {
        let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| is_number)
    };
    let (days, time) = match text.split_once('-') {
        Some((days, time)) => (Some(number(days)?), time),
        None => (None, text),
    };
    let parts: Vec<u64> = time.split(':').map(number).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match (days, &parts[..]) {
        (None, [minutes]) => (0, *minutes, 0),
        (None, [minutes, seconds]) => (0, *minutes, *seconds),
        (Some(_), [hours]) => (*hours, 0, 0),
        (Some(_), [hours, minutes]) => (*hours, *minutes, 0),
        (_, [hours, minutes, seconds]) => (*hours, *minutes, *seconds),
        _ => return None,
    };
    Some(((days.unwrap_or(0) * 24 + hours) * 60 + minutes) * 60 + seconds)
}

fn stones(text: &str) -> Result<RangeInclusive<u32>, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| {
        let stones: Option<u32> = text.trim().parse().ok();
        stones.filter(|stones| *stones <= game::STONES_MAX)
    };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        (Some(first), Some(last)) => Err(format!("the range is empty; did you mean {last}..{first}?")),
        _ => Err(format!("expected A..B, both ends included, or one number, within 0..{}", game::STONES_MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn ranges() {
        assert_eq!(stones("3..5"), Ok(3..=5));
        assert_eq!(stones("7"), Ok(7..=7));
        assert_eq!(stones("5..3").unwrap_err(), "the range is empty; did you mean 3..5?");
        for bad in ["", "..", "1..", "..1", "-1", "0..49", "a"] {
            assert!(stones(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn time_limits() {
        let times = [("90", 5400), ("90:30", 5430), ("2:00:01", 7201), ("1-2", 93_600), ("1-0:30", 88_200)];
        for (text, seconds) in times.into_iter().chain([("2-01:00:00", 176_400)]) {
            assert_eq!(limit_seconds(text), Some(seconds), "{text}");
            assert_eq!(time_limit(text), Ok(text.to_owned()));
        }
        for bad in ["", "1h", "1:2:3:4", "1-", "-1", "1-2-3", "+5", "99\n#SBATCH", "9999999999", "19", "0-0"] {
            assert!(time_limit(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn settings() {
        let pair = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(setting("build.threads=2"), pair("build.threads", "2"));
        assert_eq!(setting("run.dir=a=b"), pair("run.dir", "a=b"));
        assert!(setting("build.threads").is_err());
    }
}
