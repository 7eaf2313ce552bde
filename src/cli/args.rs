//! The command line: stable, so nothing here changes its meaning.

mod build;
mod read;
mod values;

use clap::{Args, Parser, Subcommand};
use engines::Kernel;
use pipeline::Budget;
use std::path::PathBuf;

pub(crate) use build::{
    DoctorArgs, ExplainArgs, GcArgs, PlanArgs, ProgressMode, ReportArgs, RunArgs, SelectionArgs, SlurmScriptArgs,
    StageArgs, StatusArgs, StopArgs,
};
pub(crate) use read::{
    AnalyzeArgs, ArchiveArgs, DatabasesArgs, EngineArgs, ExportArgs, ExportFormat, PlayArgs, PlaySide, ProbeArgs,
    RestoreArgs, ServeArgs, StatsArgs, StatsFormat, VerifyArgs,
};
pub(crate) use values::Listen;

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
    #[arg(long, global = true, value_name = "NAME", value_parser = values::kernel)]
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
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::setting)]
    pub(crate) set: Vec<(String, String)>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }
}
