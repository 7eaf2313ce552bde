//! What ends a command early, as text and exit code.

use crate::args::Listen;
use crate::diagnostics;
use crate::quantity::plural;
use crate::shell::building;
use crate::terminal::say;
use check::CheckError;
use disk::{DiskError, reason};
use exchange::ExchangeError;
use game::notation::NotationError;
use game::transcript::TranscriptError;
use messaging::CommunicationError;
use oracle::OracleError;
use pipeline::manifest::{DIAGNOSTICS_MAX, Diagnostic, Origin};
use pipeline::{Exit, PipelineError, StageError};
use std::path::{Path, PathBuf};

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// A manifest or a description of hardware cannot be read.
    #[error("{0}; nothing was done")]
    Unreadable(DiskError),
    /// The path of a manifest on the command line leads to none.
    #[error("{what}; nothing was done ({help})")]
    NoManifestThere {
        /// What there is instead.
        what: String,
        /// What to write.
        help: String,
    },
    /// A file stands where the run directory should be.
    #[error("{} is a file; --dir wants a directory", .0.display())]
    NotADirectory(PathBuf),
    /// No machine has the name, and the file that would describe one cannot be read.
    #[error(
        "the hardware {name} is neither a known name ({}) nor a readable file: {error}; nothing was done \
         (such a file needs cores and memory in the table [machine], and free, read, write and operations in [disk])",
        planner::Hardware::NAMES.join(", ")
    )]
    NoHardware {
        /// What was asked for.
        name: String,
        /// Why there is no such file.
        error: DiskError,
    },
    /// The manifest is no text.
    #[error("{} is not UTF-8 text; nothing was done", path.display())]
    NotText {
        /// The manifest.
        path: PathBuf,
    },
    /// The manifest has mistakes, all of them.
    #[error("{} {}; nothing was done", mistakes(diagnostics.len()), place(name, diagnostics))]
    Manifest {
        /// The name of the manifest.
        name: String,
        /// Its text.
        text: String,
        /// What is wrong with it.
        diagnostics: Vec<Diagnostic>,
    },
    /// The command line asks for what no manifest may say, and there is no manifest.
    #[error("{} on the command line; nothing was done", mistakes(diagnostics.len()))]
    CommandLine {
        /// What is wrong with it.
        diagnostics: Vec<Diagnostic>,
    },
    /// A path that is no text cannot stand in a manifest, nor in a script.
    #[error("the path {} is not UTF-8 and cannot be written to a manifest or a script; choose another", .0.display())]
    PathNotText(PathBuf),
    /// Nobody knows where paths begin.
    #[error("cannot find the current directory: {}; change to an existing one", reason(.0))]
    CurrentDirectory(std::io::Error),
    /// A launcher of MPI started this program, which has none.
    #[cfg_attr(feature = "mpi", expect(dead_code, reason = "it has one"))]
    #[error(
        "built without MPI: cannot join an MPI job; nothing was done (build with `cargo build --release --features \
         mpi`, or start the program without the MPI launcher)"
    )]
    NoMpi,
    /// The ranks of a job lost each other.
    #[error(transparent)]
    Ranks(#[from] CommunicationError),
    /// A rank of a job had to give up.
    #[error("rank {rank}: {error}")]
    Rank {
        /// Which.
        rank: usize,
        /// Why.
        error: Box<StageError>,
    },
    /// The pipeline.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// A run ended early.
    #[error("{error}{}", lines(next))]
    Run {
        /// Why, and what it means for what was done.
        error: Box<PipelineError>,
        /// What to do next.
        next: Vec<String>,
    },
    /// There is nothing to look at.
    #[error("{} is not a run directory: it has neither a journal nor databases; `awari run MANIFEST --dir {}` creates \
        one",
        .0.display(), .0.display())]
    NoRunDirectory(PathBuf),
    /// There is nothing to stop.
    #[error("no run is active in {}; `awari status --dir {}` shows how the last one ended",
        .0.display(), .0.display())]
    NothingRuns(PathBuf),
    /// What works in the directory is no run, or not yet.
    #[error(
        "{holder} holds {}, but is not a run, or has just started; nothing was done (try again, or stop it where it \
         was started)", dir.display()
    )]
    NoRun {
        /// The run directory.
        dir: PathBuf,
        /// Who holds its lock.
        holder: String,
    },
    /// Without a manifest nobody knows what is needed.
    #[error(
        "there is no manifest.toml in {}, so the files that are needed are not known; nothing was removed (`awari run \
         MANIFEST --dir {}` writes it)",
        .0.display(), .0.display()
    )]
    NoManifest(PathBuf),
    /// There are no databases to look at.
    #[error("no databases{} in {}; to build them: {build}", of_stones(stones), dir.join("databases").display())]
    NoDatabases {
        /// The run directory.
        dir: PathBuf,
        /// The stones that were asked for.
        stones: Option<std::ops::RangeInclusive<u32>>,
        /// The command that builds them.
        build: String,
    },
    /// One database that is needed does not exist.
    #[error("no database of {} in {}{}; to build it: {build}", plural(u64::from(*stones), "stone"),
        dir.join("databases").display(), of_largest(*largest))]
    NoDatabase {
        /// The run directory.
        dir: PathBuf,
        /// Its stones.
        stones: u32,
        /// The stones of the largest database, where known.
        largest: Option<u32>,
        /// The command that builds it.
        build: String,
    },
    /// A database that an archive needs does not exist.
    #[error("{} needs {}, which does not exist; to restore it too: {restore}", archive.display(), needed.display())]
    NoSmaller {
        /// The archive.
        archive: PathBuf,
        /// The database.
        needed: PathBuf,
        /// The command that restores both.
        restore: String,
    },
    /// There are no archives to restore.
    #[error("no archives{} in {}; `awari archive` writes them", of_stones(stones), dir.display())]
    NoArchives {
        /// The directory.
        dir: PathBuf,
        /// The stones that were asked for.
        stones: Option<std::ops::RangeInclusive<u32>>,
    },
    /// Another database has the name already.
    #[error(
        "{} exists and differs from the archive, or is damaged (see `awari verify`); restore into another directory, \
         or remove it", path.display()
    )]
    OtherDatabase {
        /// The database.
        path: PathBuf,
    },
    /// A database that is needed is damaged.
    #[error("{what}")]
    Damaged {
        /// What is wrong with it, with the remedy.
        what: String,
    },
    /// A file operation failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The position makes no sense.
    #[error("invalid position: {0}")]
    Position(#[from] NotationError),
    /// The game makes no sense.
    #[error("invalid game: {0}")]
    Game(#[from] TranscriptError),
    /// Neither a file nor moves.
    #[error("{} is neither a file nor a game; a game is moves such as F4 f4 B5", .0.display())]
    NoGame(PathBuf),
    /// What a person or a program was to say could not be read.
    #[error("cannot read stdin: {}", reason(.0))]
    Stdin(std::io::Error),
    /// The oracle.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// A check.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// An exchange with other programs.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// A thread cannot be had.
    #[error("a thread cannot be started: {}; allow more (ulimit -u, ulimit -v, or the pids control group)", reason(.0))]
    Thread(std::io::Error),
    /// The stack of the first thread is too small for the program.
    #[error(
        "the stack limit (ulimit -s) is {}, which is too little; nothing was done (raise it to {} or more)",
        pipeline::Budget::show(*limit), pipeline::Budget::show(*least)
    )]
    Stack {
        /// Bytes that are allowed.
        limit: u64,
        /// Bytes that are needed.
        least: u64,
    },
    /// Threads cannot be had.
    #[error(
        "cannot start threads: {}; allow more (ulimit -u, ulimit -v, or the pids control group), or choose fewer with \
         --threads",
        reason(.0)
    )]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// Nothing can be served there.
    #[error("cannot listen at {address}: {}; choose another address with --listen", reason(error))]
    Serve {
        /// Where.
        address: Listen,
        /// Why not.
        error: std::io::Error,
    },
    /// Signals cannot be caught.
    #[error("cannot install signal handlers: {}", reason(.0))]
    Signals(std::io::Error),
    /// A result could not be written.
    #[error("cannot write the result to stdout: {}", reason(.0))]
    Stdout(std::io::Error),
    /// A result could not be said in JSON.
    #[error("cannot write the result as JSON: {0}")]
    Json(serde_json::Error),
}

impl CliError {
    /// The exit code that tells scripts what happened.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            CliError::Unreadable(_)
            | CliError::NoManifestThere { .. }
            | CliError::NoHardware { .. }
            | CliError::NotText { .. }
            | CliError::Manifest { .. } => Exit::ManifestInvalid,
            CliError::CommandLine { .. }
            | CliError::PathNotText(_)
            | CliError::Position(_)
            | CliError::Game(_)
            | CliError::NoGame(_) => Exit::Usage,
            CliError::Pipeline(error) => error.exit(),
            CliError::NoMpi => Exit::Usage,
            CliError::Ranks(_) | CliError::Rank { .. } => Exit::StageFailed,
            CliError::Run { error, .. } => error.exit(),
            CliError::NoRun { .. } => Exit::Locked,
            CliError::NoRunDirectory(_)
            | CliError::NotADirectory(_)
            | CliError::NothingRuns(_)
            | CliError::CurrentDirectory(_)
            | CliError::NoManifest(_)
            | CliError::Disk(_)
            | CliError::Threads(_)
            | CliError::Thread(_)
            | CliError::Stack { .. }
            | CliError::Signals(_)
            | CliError::Stdin(_)
            | CliError::Stdout(_)
            | CliError::Serve { .. } => Exit::PreflightFailed,
            CliError::NoDatabases { .. }
            | CliError::NoDatabase { .. }
            | CliError::NoSmaller { .. }
            | CliError::NoArchives { .. } => Exit::NoAnswer,
            CliError::OtherDatabase { .. } => Exit::PreflightFailed,
            CliError::Damaged { .. } => Exit::Integrity,
            CliError::Oracle(error) if error.is_damage() => Exit::Integrity,
            CliError::Oracle(OracleError::Missing { .. }) => Exit::NoAnswer,
            CliError::Oracle(_) => Exit::PreflightFailed,
            CliError::Check(CheckError::Missing { .. }) => Exit::NoAnswer,
            CliError::Check(CheckError::Store(error)) if matches!(**error, store::StoreError::Disk(_)) => {
                Exit::PreflightFailed
            }
            CliError::Check(_) => Exit::Integrity,
            CliError::Exchange(error) => match error {
                ExchangeError::Stopped => Exit::Stopped,
                ExchangeError::TooLarge { .. } | ExchangeError::Unsupported { .. } => Exit::Usage,
                ExchangeError::Missing { .. } => Exit::NoAnswer,
                ExchangeError::Length { .. } | ExchangeError::Restored { .. } => Exit::Integrity,
                ExchangeError::Store(error) if error.is_damage() => Exit::Integrity,
                _ => Exit::PreflightFailed,
            },
            CliError::Json(_) => Exit::Internal,
        }
    }

    /// The same error with the directory of the databases, if one of them does not exist.
    pub(crate) fn of_directory(self, dir: &Path) -> CliError {
        let (stones, largest) = match self {
            CliError::Oracle(OracleError::Missing { stones, largest }) => (stones, largest),
            CliError::Check(CheckError::Missing { stones }) => (stones, None),
            other => return other,
        };
        CliError::NoDatabase { dir: dir.to_path_buf(), stones, largest, build: building(dir, Some(stones)) }
    }

    /// Tells a person.
    pub(crate) fn show(&self) {
        match self {
            CliError::Manifest { name, text, diagnostics } => diagnostics::show(name, text, diagnostics),
            CliError::CommandLine { diagnostics } => diagnostics::show("", "", diagnostics),
            _ => {}
        }
        say(format_args!("awari: {self}"));
    }
}

fn lines(next: &[String]) -> String {
    next.iter().map(|line| format!("\n  {line}")).collect()
}

fn mistakes(count: usize) -> String {
    match count {
        1 => "a mistake".to_owned(),
        DIAGNOSTICS_MAX => format!("{count} mistakes or more"),
        count => format!("{count} mistakes"),
    }
}

fn of_largest(largest: Option<u32>) -> String {
    largest.map_or_else(String::new, |largest| format!(" (the largest has {largest})"))
}

/// Where the mistakes were made.
fn place(name: &str, diagnostics: &[Diagnostic]) -> String {
    let in_file = diagnostics.iter().filter(|diagnostic| matches!(diagnostic.origin, Origin::File(_))).count();
    match in_file {
        0 => "on the command line".to_owned(),
        count if count == diagnostics.len() => format!("in {name}"),
        _ => format!("in {name} and on the command line"),
    }
}

fn of_stones(stones: &Option<std::ops::RangeInclusive<u32>>) -> String {
    match stones {
        None => String::new(),
        Some(range) if range.start() == range.end() => format!(" of {}", plural((*range.start()).into(), "stone")),
        Some(range) => format!(" of {} to {}", range.start(), plural((*range.end()).into(), "stone")),
    }
}
