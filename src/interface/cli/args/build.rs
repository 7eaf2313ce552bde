//! The arguments of commands that build and maintain databases.

use super::{ChangeArgs, DIR_VARIABLE, ManifestArgs, values};
use crate::candidates;
use clap::{Args, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCandidates;
use disk::Io;
use pipeline::Budget;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use tracing_subscriber::filter::LevelFilter;

/// A selection of stages.
#[derive(Clone, Debug, Args)]
pub(crate) struct SelectionArgs {
    /// Last stage to run, such as sweep:14
    #[arg(long, value_name = "STAGE", add = ArgValueCandidates::new(candidates::stages))]
    pub(crate) until: Option<String>,
    /// Rerun this stage, although it is up to date, but none after it; may be repeated
    #[arg(long, value_name = "STAGE", add = ArgValueCandidates::new(candidates::stages))]
    pub(crate) force: Vec<String>,
    /// Exit with 15 instead of rebuilding a file that exists but is stale
    #[arg(long)]
    pub(crate) frozen: bool,
    /// Replace finished databases in the directory that are for other rules or positions
    #[arg(long, conflicts_with = "frozen")]
    pub(crate) replace: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari run manifests/quickstart.toml
  awari run manifests/quickstart.toml --until sweep:8 \\
    --dir runs/other
  awari run manifests/quickstart.toml --dir runs/zstd \\
    --set store.codec=zstd
  awari run manifests/quickstart.toml --dir runs/third \\
    --set 'build.methods.\"9..10\"=two-bit'
  awari run manifests/quickstart.toml --force verify:12 \\
    --progress json > events.jsonl

Ctrl-C finishes the current step, keeps all finished work, and exits with 75; the same command resumes.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) manifest: ManifestArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Fail if the last N runs were stopped or killed before they completed a stage or a snapshot; for scripts that start a
    /// run again
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = values::number::<u32>(1..=1000))]
    pub(crate) attempts: Option<u32>,
    /// Progress: a bar or plain lines on stderr, or events as JSON lines on stdout
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) progress: ProgressMode,
    /// Disk access: io_uring, positioned reads and writes, or auto: the faster in the run directory, measured before
    /// builds of a minute or more on one machine; else uring where the kernel allows it
    #[arg(long, value_name = "HOW", default_value_t = Io::Auto, value_parser = values::io())]
    pub(crate) io: Io,
    /// Level of detail of logs/STAGE.log in the run directory
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log: LogLevel,
}

/// The level of detail of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// No log
    Off,
    /// Warnings and errors
    Warn,
    /// Each stage: reason, time, memory and snapshots
    Info,
    /// As info, with progress and passes
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

/// The display of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressMode {
    /// A bar on a terminal, plain lines elsewhere
    Auto,
    /// A bar
    Bar,
    /// A line every few seconds, and one for each stage
    Plain,
    /// A JSON object for each event, on stdout
    Json,
    /// No progress
    None,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari plan manifests/small.toml
  awari plan manifests/small.toml --check || echo pending
  awari plan manifests/small.toml --json > plan.json
  awari plan manifests/small.toml --format dot > stages.dot
  awari plan manifests/workstation.toml \\
    --hardware manifests/hardware/server.toml
  awari plan --stones 0..48 \\
    --hardware manifests/hardware/server.toml
  awari plan --stones 0..48 --ranks 64 \\
    --hardware manifests/hardware/server.toml
  awari plan manifests/awari.toml --ranks 72 \\
    --hardware manifests/hardware/das2.toml

With --hardware, threads and memory are those of that machine, unless --threads or --memory is given.")]
pub(crate) struct PlanArgs {
    /// Path of the manifest
    #[arg(value_name = "MANIFEST", required_unless_present_any = ["stones", "up_to"])]
    pub(crate) manifest: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) changes: ChangeArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Machine to predict for: a file that describes it, `this`, or `reference`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) hardware: Option<String>,
    /// Show what each method takes for these databases, built or not: a range, both ends included, or one number
    #[arg(long, allow_hyphen_values = true, value_name = "A..B", value_parser = values::stones,
        conflicts_with_all = ["until", "force", "frozen", "replace", "check", "all", "format"])]
    pub(crate) stones: Option<RangeInclusive<u32>>,
    /// Deprecated alias of `--stones 0..N`
    #[arg(long, allow_hyphen_values = true, value_name = "N", hide = true, conflicts_with_all = ["stones", "until", "force", "frozen", "replace", "check", "all", "format"],
        value_parser = values::number::<u32>(0..=game::STONES_MAX.into()))]
    pub(crate) up_to: Option<u32>,
    /// Plan a job of N ranks, with one such machine per rank
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = values::number::<u16>(1..=4096))]
    pub(crate) ranks: Option<u16>,
    /// Exit with 10 if any stage is to run
    #[arg(long)]
    pub(crate) check: bool,
    /// List every stage, including those that repeat for each bound and those of less than a second
    #[arg(long)]
    pub(crate) all: bool,
    /// Format: text, JSON, or all stages as a graph for the program dot of Graphviz
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: PlanFormat,
    /// Print JSON, as --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

/// The format of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
    /// A table
    Text,
    /// JSON
    Json,
    /// The graph of all stages
    Dot,
}

impl PlanArgs {
    /// Returns the requested format.
    pub(crate) fn format(&self) -> PlanFormat {
        if self.json { PlanFormat::Json } else { self.format }
    }

    /// Returns the databases to predict, built or not; `None` for the plan of a manifest.
    pub(crate) fn databases(&self) -> Option<RangeInclusive<u32>> {
        self.stones.clone().or(self.up_to.map(|stones| 0..=stones))
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari status
  awari status --dir runs/quickstart
  awari status --dir runs/quickstart --json > status.json
  awari status --dir runs/small --watch
  awari status --dir runs/small --logs | tail -20

Writes nothing, so it can be used while a run is active, also from another machine that shares the directory.")]
pub(crate) struct StatusArgs {
    /// Run directory [default: those in `runs` are listed]
    #[arg(long, value_name = "DIR", env = DIR_VARIABLE, hide_env_values = true)]
    pub(crate) dir: Option<PathBuf>,
    /// Refresh every second until the run ends; if no run is active, wait for one to begin
    #[arg(long, requires = "dir")]
    pub(crate) watch: bool,
    /// Show the logs of all ranks instead, merged by time, each line with its rank and the file
    #[arg(long, requires = "dir", conflicts_with_all = ["watch", "json"])]
    pub(crate) logs: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  awari stop --dir runs/small &&
    awari status --dir runs/small --watch

Works like Ctrl-C in the terminal of the run: the run finishes the current step, keeps all finished work, and exits \
with 75; the same command resumes. Exits with 12 if no run is active, and with 13 if another command holds the directory.")]
pub(crate) struct StopArgs {
    /// Run directory
    #[arg(long, value_name = "DIR", env = DIR_VARIABLE, hide_env_values = true)]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari slurm-script manifests/cluster.toml --nodes 8 \\
    --time 1-00:00:00 > job.sh && sbatch job.sh
  awari slurm-script manifests/cluster.toml --nodes 8 \\
    --threads 32 --memory 60GiB | sbatch -p long

The job has one rank per node, with the threads and memory of the manifest. Ten minutes before its time limit it stops as \
with Ctrl-C and requeues itself, until everything is built; also after a rank was killed, but after three runs in a row without \
progress it fails. It runs in the current directory.")]
pub(crate) struct SlurmScriptArgs {
    #[command(flatten)]
    pub(crate) manifest: ManifestArgs,
    /// Number of nodes, with one rank on each
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value_t = 1, value_parser = values::number::<u32>(1..=65_536))]
    pub(crate) nodes: u32,
    /// How ranks find each other, one of `srun --mpi=list` [default: what the site and the MPI of this program offer]
    #[arg(long, value_name = "TYPE", value_parser = values::mpi_type)]
    pub(crate) mpi: Option<String>,
    /// Time limit of the job, as Slurm writes it: minutes, H:M:S, or D-H:M:S [default: that of the partition]
    #[arg(long, value_name = "TIME", value_parser = values::time_limit)]
    pub(crate) time: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  awari stage manifests/quickstart.toml sweep:12 \\
    --scratch debug

The run directory is only read. Inputs that were not kept are rebuilt in the scratch directory first.

Prints a line for each output: its name, identical, different, passed or nothing-recorded, and its digest. Exits with 16 if an output differs from the recorded one.")]
pub(crate) struct StageArgs {
    #[command(flatten)]
    pub(crate) manifest: ManifestArgs,
    /// Name of the stage, such as sweep:14; the manifest comes first
    #[arg(value_name = "STAGE", add = ArgValueCandidates::new(candidates::stages))]
    pub(crate) stage: String,
    /// Directory to work in, where the result stays [default: a temporary directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,
    /// Progress: a bar or plain lines on stderr, or events as JSON lines on stdout
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) progress: ProgressMode,
    /// Disk access: io_uring, positioned reads and writes, or auto, which is uring where the kernel allows it
    #[arg(long, value_name = "HOW", default_value_t = Io::Auto, value_parser = values::io())]
    pub(crate) io: Io,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari explain manifests/quickstart.toml
  awari explain manifests/quickstart.toml sweep:12
  awari explain manifests/quickstart.toml verify:12 --json \\
    --set check.verify=full")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) manifest: ManifestArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Name of the stage, such as sweep:14; the manifest comes first [default: all stages are listed with their state]
    #[arg(value_name = "STAGE", add = ArgValueCandidates::new(candidates::stages))]
    pub(crate) stage: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  awari report --dir runs/quickstart -o report.html

Writes a self-contained HTML file with every run and restart, the stages over time, their rates, memory and traffic, and the scores. \
Can be used while a run is active.")]
pub(crate) struct ReportArgs {
    /// Run directory
    #[arg(long, value_name = "DIR", env = DIR_VARIABLE, hide_env_values = true)]
    pub(crate) dir: PathBuf,
    /// File to write; - is stdout
    #[arg(short, long, value_name = "FILE", alias = "output")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari gc --dir runs/quickstart
  awari gc --dir runs/quickstart --delete
  awari gc --dir runs/quickstart --unasked --delete

Without --delete nothing is removed. Files that neither the manifest nor the journal names are never removed.")]
pub(crate) struct GcArgs {
    /// Run directory
    #[arg(long, value_name = "DIR", env = DIR_VARIABLE, hide_env_values = true)]
    pub(crate) dir: PathBuf,
    /// Only list the files, as without --delete
    #[arg(long, conflicts_with = "delete")]
    pub(crate) plan: bool,
    /// Delete the files
    #[arg(long)]
    pub(crate) delete: bool,
    /// Include intermediate files that the manifest keeps; the next run rebuilds them
    #[arg(long)]
    pub(crate) kept: bool,
    /// Include files that the manifest does not request: databases of more stones, planes of another method
    #[arg(long)]
    pub(crate) unasked: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari doctor --dir runs/quickstart
  awari doctor --dir runs/new --bytes 64MiB
  awari doctor --dir runs/new --write-hardware this.toml

Measures the speed of the disk with a file that is removed afterwards. Exits with 12 if a run would be refused in the directory.")]
pub(crate) struct DoctorArgs {
    /// Run directory; it need not exist yet [default: only the file system of the current directory is measured]
    #[arg(long, value_name = "DIR", env = DIR_VARIABLE, hide_env_values = true)]
    pub(crate) dir: Option<PathBuf>,
    /// Bytes to write and read to measure the speed of the disk; 0 skips the measurement
    #[arg(long, allow_hyphen_values = true, value_name = "SIZE", default_value = "256 MiB")]
    pub(crate) bytes: Budget,
    /// Write a file that describes this machine for `awari plan --hardware`; also measures the speed of a core
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) write_hardware: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
