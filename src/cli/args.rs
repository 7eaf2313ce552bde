//! The command line: stable, so nothing here changes its meaning.

mod build;
mod read;
mod values;

use crate::candidates;
use clap::{Args, Parser, Subcommand};
use clap_complete::engine::ArgValueCandidates;
use engines::Kernel;
use pipeline::Budget;
use std::path::{Path, PathBuf};

pub(crate) use build::{
    DoctorArgs, ExplainArgs, GcArgs, PlanArgs, ProgressMode, ReportArgs, RunArgs, SelectionArgs, SlurmScriptArgs,
    StageArgs, StatusArgs, StopArgs,
};
pub(crate) use read::{
    AnalyzeArgs, ArchiveArgs, DatabasesArgs, EngineArgs, ExportArgs, ExportFormat, PlayArgs, PlaySide, ProbeArgs,
    RestoreArgs, ServeArgs, StatsArgs, StatsFormat, VerifyArgs,
};
pub(crate) use values::Listen;

/// The variable that stands for `--dir`.
pub(crate) const DIR_VARIABLE: &str = "AWARI_DIR";

/// Builds endgame databases of awari from a manifest, and answers questions from them.
#[derive(Debug, Parser)]
#[command(
    name = "awari",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  awari run manifests/quickstart.toml          # build databases; the same command resumes
  awari plan manifests/small.toml              # what would run, why, and what it takes
  awari status --dir runs/quickstart           # the progress of a run
  awari verify --dir runs/quickstart           # check every score and every checksum
  awari probe --dir runs/quickstart 0 0 0 0 0 2  1 0 0 0 0 0

The variable AWARI_DIR stands for --dir.

Exit codes:
  0 done, 1 internal error, 2 usage, 3 no database has the answer, 10 work pending, 11 invalid manifest,
  12 preflight failed, 13 locked, 14 stage failed, 15 stale but --frozen, 16 damaged or wrong,
  75 stopped on request and resumable, 130 stopped by a second signal"
)]
pub(crate) struct Arguments {
    /// Vector instructions to use: portable (none), avx2 or avx512; changes no byte of any file [default: the fastest that
    /// `awari doctor` lists]
    #[arg(long, global = true, value_name = "NAME", value_parser = values::kernel, help_heading = "Global options",
        add = ArgValueCandidates::new(candidates::kernels))]
    pub(crate) kernel: Option<Kernel>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Build the databases of a manifest, or resume building them
    Run(RunArgs),
    /// Show what `run` would do, why, and how much time, memory and disk it takes
    Plan(PlanArgs),
    /// Show the progress of a run, and the databases built so far
    Status(StatusArgs),
    /// Stop the run that is active in a directory, from any machine that shares the directory
    Stop(StopArgs),
    /// Print a job script for Slurm that builds on several machines
    SlurmScript(SlurmScriptArgs),
    /// Rerun one stage in a scratch directory, and compare its result with the recorded one
    Stage(StageArgs),
    /// Check databases: checksums, every score by the plain rules, published counts
    Verify(VerifyArgs),
    /// Show the distribution of scores
    Stats(StatsArgs),
    /// Show the score of a position and the value of each move
    Probe(ProbeArgs),
    /// Write databases in formats that other programs read
    Export(ExportArgs),
    /// Write databases in their smallest form, for long-term storage
    Archive(ArchiveArgs),
    /// Restore databases from archives
    Restore(RestoreArgs),
    /// Serve an HTTP API and a web page to play on
    Serve(ServeArgs),
    /// Explain field by field why a stage is or is not up to date
    Explain(ExplainArgs),
    /// Write an HTML report on the runs of a directory
    Report(ReportArgs),
    /// List files that are not needed any more, and delete them with --delete
    Gc(GcArgs),
    /// Check whether the machine and a directory are fit for a run
    Doctor(DoctorArgs),
    /// Compare every move of a game with the best one
    Analyze(AnalyzeArgs),
    /// Play against the databases in the terminal
    Play(PlayArgs),
    /// Run as an engine under an oware program: UCI on stdin and stdout
    Engine(EngineArgs),
    /// Print the script that completes commands in a shell
    Completions(CompletionsArgs),
}

impl Command {
    /// The run directory of a command that reads databases.
    pub(crate) fn databases_dir(&self) -> Option<&Path> {
        match self {
            Command::Verify(args) => Some(&args.databases.dir),
            Command::Stats(args) => Some(&args.databases.dir),
            Command::Export(args) => Some(&args.databases.dir),
            Command::Archive(args) => Some(&args.databases.dir),
            Command::Probe(args) => Some(&args.dir),
            Command::Serve(args) => Some(&args.dir),
            Command::Analyze(args) => Some(&args.dir),
            Command::Play(args) => Some(&args.dir),
            Command::Engine(args) => Some(&args.dir),
            _ => None,
        }
    }
}

/// A manifest, and what the command line changes in it.
#[derive(Clone, Debug, Args)]
pub(crate) struct ManifestArgs {
    /// Path of the manifest
    #[arg(value_name = "MANIFEST")]
    pub(crate) manifest: PathBuf,
    #[command(flatten)]
    pub(crate) changes: ChangeArgs,
}

/// What the command line changes in a manifest.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChangeArgs {
    /// The run directory, relative to the current one [default: run.dir of the manifest]
    #[arg(long, value_name = "DIR", env = DIR_VARIABLE, hide_env_values = true)]
    pub(crate) dir: Option<PathBuf>,
    /// Number of threads; 0 is one a core [default: build.threads of the manifest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: Option<u16>,
    /// Memory limit, such as "512 MiB" or 2GiB [default: build.memory of the manifest]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Budget>,
    /// Override a key of the manifest; the value is TOML or a plain string; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::setting, add = ArgValueCandidates::new(candidates::keys))]
    pub(crate) set: Vec<(String, String)>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  source <(awari completions bash)

Put the line into ~/.bashrc. Completes commands, options and their values: methods, levels, kernels, keys of manifests, and
the stages of the manifest on the command line.")]
pub(crate) struct CompletionsArgs {
    /// Name of the shell
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

    /// The words of a command, without what the shell does with its output.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quote = None;
        for character in line.chars() {
            match (quote, character) {
                (None, '#' | '|' | '>' | '<' | '&' | ';') => break,
                (None, ' ') => words.push(String::new()),
                (None, '\'' | '"') => quote = Some(character),
                (Some(open), character) if character == open => quote = None,
                (_, character) => words.last_mut().unwrap().push(character),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn every_command_of_the_readme_can_be_parsed() {
        let mut count = 0;
        let mut is_shell = false;
        let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
        for line in std::fs::read_to_string(readme).unwrap().lines() {
            is_shell = if line.starts_with("```") { line == "```sh" } else { is_shell };
            let line = line.replace("cargo run --release -- ", "awari ");
            if is_shell && line.starts_with("awari ") && !line.ends_with('\\') {
                if let Err(error) = Arguments::try_parse_from(words(&line)) {
                    panic!("{line}\n{error}");
                }
                count += 1;
            }
        }
        assert!(count > 20, "{count} commands were found");
    }
}
