//! The commands that build, and those that look after what is built.

use clap::{Args, ValueEnum};
use disk::Io;
use pipeline::Budget;
use std::path::PathBuf;
use tracing_subscriber::filter::LevelFilter;

use super::{ChangeArgs, ManifestArgs, values};

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
    #[arg(long, value_name = "TIME", value_parser = values::time_limit)]
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
