//! Errors that end a command, with their messages and exit codes.

use crate::args::Listen;
use crate::text::diagnostics;
use crate::text::quantity::plural;
use crate::text::shell::{building, path_argument};
use crate::text::terminal::say;
use book::{AssessmentError, BookError, BuildError, DrawProofError};
use check::CheckError;
use disk::{DiskError, reason};
use exchange::ExchangeError;
use game::notation::NotationError;
use game::transcript::BadTranscript;
use messaging::CommunicationError;
use oracle::OracleError;
use pipeline::manifest::{DIAGNOSTICS_MAX, Diagnostic, Origin};
use pipeline::{Budget, Exit, PipelineError, StageError};
use std::path::{Path, PathBuf};

/// The result of a command, or of a part of one.
pub(crate) type Result<T, E = CliError> = std::result::Result<T, E>;

/// An error that ends a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// A manifest or a hardware description cannot be read.
    #[error("{0}; nothing was done")]
    Unreadable(DiskError),
    /// The path of a manifest on the command line is not a manifest.
    #[error("{what}; nothing was done ({help})")]
    NoManifestThere {
        what: String,
        /// The correct command line.
        help: String,
    },
    /// The path of the run directory is a file.
    #[error("{} is not a directory, as --dir requires", .0.display())]
    NotADirectory(PathBuf),
    /// The path of the run directory is a link to nothing.
    #[error("{} is a link to {}, which does not exist; create that directory, or remove the link", link.display(), target.display())]
    DanglingLink { link: PathBuf, target: PathBuf },
    /// The hardware is neither a known name nor a readable file.
    #[error(
        "the hardware {name} is neither a known name ({}) nor a readable file: {error}; nothing was done \
         (such a file needs cores and memory in the table [machine], and free, read, write and operations in [disk])",
        planner::Hardware::NAMES.join(", ")
    )]
    NoHardware { name: String, error: DiskError },
    /// The manifest is not UTF-8.
    #[error("{} is not UTF-8 text; nothing was done", path.display())]
    NotText { path: PathBuf },
    /// The manifest has mistakes.
    #[error("{} {}; nothing was done", mistakes(diagnostics.len()), origins(name, diagnostics))]
    Manifest { name: String, text: String, diagnostics: Vec<Diagnostic> },
    /// Options have values that are invalid in a manifest.
    #[error("{} on the command line; nothing was done", mistakes(diagnostics.len()))]
    CommandLine { diagnostics: Vec<Diagnostic> },
    /// A path that would have to be written to a manifest or a script is not UTF-8.
    #[error("the path {} is not UTF-8 and cannot be written to a manifest or a script; choose another", .0.display())]
    PathNotText(PathBuf),
    /// The current directory cannot be found.
    #[error("cannot find the current directory: {}; change to an existing one", reason(.0))]
    CurrentDirectory(std::io::Error),
    /// An MPI launcher started a program built without MPI.
    #[cfg_attr(feature = "mpi", expect(dead_code, reason = "built with MPI"))]
    #[error(
        "built without MPI: cannot join an MPI job; nothing was done (build with `cargo build --release --features \
         mpi`, or start the program without the MPI launcher)"
    )]
    NoMpi,
    /// The ranks of a job do not find each other.
    #[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "there is no job without MPI"))]
    #[error(
        "the launcher started {started} processes, but MPI has {}: they do not find each other, and each would build \
         everything alone; nothing was done (use the launcher of {library}; with Slurm, say how ranks find each other: \
         `srun --mpi=pmi2` or `--mpi=pmix`; `srun --mpi=list` lists those of the site)",
        plural(*ranks, "rank")
    )]
    StrangerRanks { started: u64, ranks: u64, library: String },
    /// The ranks of a job run different programs.
    #[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "there is no job without MPI"))]
    #[error("mixed releases in one job: {0}; nothing was done")]
    MixedReleases(CommunicationError),
    /// Ranks of a job cannot share a temporary directory.
    #[error("a stage by several ranks needs a directory that all of them see: give --scratch DIR")]
    NoSharedScratch,
    /// The communication of a job failed.
    #[error(transparent)]
    Ranks(#[from] CommunicationError),
    /// A rank of a job failed.
    #[error("rank {rank}: {error}")]
    Rank {
        rank: usize,
        #[source]
        error: Box<StageError>,
    },
    /// An error of the pipeline.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// A run ended early.
    #[error("{error}{}", lines(next))]
    Run {
        #[source]
        error: Box<PipelineError>,
        /// Advice on what to do next.
        next: Vec<String>,
    },
    /// The directory is not a run directory.
    #[error("{} is not a run directory: it has neither a journal nor databases; `awari run MANIFEST --dir {}` creates \
        one",
        .0.display(), path_argument(.0).display())]
    NoRunDirectory(PathBuf),
    /// A hardware file needs the speed of the disk.
    #[error(
        "the speed of the disk was not measured, so no hardware file was written; choose another directory, or more --bytes"
    )]
    DiskNotMeasured,
    /// No run directory is known.
    #[error("no run directory in runs; name one with --dir, or create one with `awari run MANIFEST`")]
    NoRuns,
    /// No run is active.
    #[error("no run is active in {}; `awari status --dir {}` shows how the last one ended",
        .0.display(), path_argument(.0).display())]
    NothingRuns(PathBuf),
    /// The directory is locked by something other than a run, or by a run that is starting.
    #[error(
        "{holder} holds {}, but is not a run, or is a run that is starting; nothing was done (try again, or stop it where it \
         was started)", dir.display()
    )]
    NoRun { dir: PathBuf, holder: String },
    /// Without a manifest, the set of needed files is unknown.
    #[error(
        "there is no manifest.toml in {}, so the files that are needed are not known; nothing was removed (`awari run \
         MANIFEST --dir {}` writes it)",
        .0.display(), path_argument(.0).display()
    )]
    NoManifest(PathBuf),
    /// A command that compares two directories got another number of them.
    #[error("expected two directories to compare, found {0}; give --dir twice")]
    TwoDirectories(usize),
    /// A job of several ranks by rules that one rank alone can solve.
    #[error("databases by the rules {rules} have two bounds, which one rank solves in its memory; run without mpirun")]
    OneRank { rules: &'static str },
    /// Databases of different position sets.
    #[error("the directories have different positions: {first} and {second}; build both with the same game.positions")]
    OtherPositions { first: String, second: String },
    /// Two directories have no database of the same number of stones.
    #[error("the directories have no databases of the same number of stones; build some with the same build.stones")]
    NothingInCommon,
    /// There are no databases.
    #[error("no databases{} in {}; to build them: {build}", of_stones(stones), dir.join("databases").display())]
    NoDatabases { dir: PathBuf, stones: Option<std::ops::RangeInclusive<u32>>, build: String },
    /// A directory holds databases itself, not in a folder `databases`.
    #[error("{} holds databases itself, but expected is the directory of their folder `databases`; {remedy}", dir.display())]
    DatabasesFolder { dir: PathBuf, remedy: String },
    /// The databases of a directory are by other rules than those that are asked for.
    #[error("the databases in {} are by the rules {found}, not {wanted}; leave --rules out, or --dir (and AWARI_DIR)",
        dir.join("databases").display())]
    OtherRules { dir: PathBuf, found: &'static str, wanted: &'static str },
    /// An engine of a match plays by other rules.
    #[error("the engine `{command}` plays by the rules {found}, and the match is by {wanted}; see --rules")]
    EngineRules { command: String, found: String, wanted: &'static str },
    /// A required database does not exist.
    #[error("no database of {} in {}{}; to build it: {build}", plural(u64::from(*stones), "stone"),
        dir.join("databases").display(), of_largest(*largest))]
    NoDatabase {
        dir: PathBuf,
        stones: u32,
        /// The stones of the largest database, if known.
        largest: Option<u32>,
        build: String,
    },
    /// A database required by an archive does not exist.
    #[error("{} needs {}, which does not exist; to restore it too: {restore}", archive.display(), needed.display())]
    NoSmaller { archive: PathBuf, needed: PathBuf, restore: String },
    /// There are no archives.
    #[error("no archives{} in {}; `awari archive` writes them", of_stones(stones), dir.display())]
    NoArchives { dir: PathBuf, stones: Option<std::ops::RangeInclusive<u32>> },
    /// Restoring would replace a different database.
    #[error(
        "{} exists and differs from the archive, or is damaged (see `awari verify`); restore into another directory, \
         or remove it", path.display()
    )]
    OtherDatabase { path: PathBuf },
    /// A required database is damaged.
    #[error("{what}")]
    Damaged { what: String },
    /// A file operation failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The position is invalid.
    #[error("invalid position: {0}")]
    Position(#[from] NotationError),
    /// The game is invalid.
    #[error("invalid {0}")]
    Game(#[from] BadTranscript),
    /// The text has fewer games.
    #[error("there is no game {number}: {}", if *games == 0 { "the text has none".to_owned() } else { format!("the text has {}", plural(*games as u64, "game")) })]
    NoSuchGame { number: u32, games: usize },
    /// Too many bytes of games.
    #[error("the games have more than {}; analyze them in parts", Budget::show(*.0))]
    GamesTooLong(u64),
    /// The argument is neither a file nor moves.
    #[error("{} is neither a file nor a game; a game is moves such as F4 f4 B5", .0.display())]
    NoGame(PathBuf),
    /// A move of a line of a book is invalid.
    #[error("invalid move {found}: {}", why.as_deref().unwrap_or("expected a pit, A to F for South or a to f for North"))]
    BookMove {
        found: String,
        /// The rule that forbids it.
        why: Option<String>,
    },
    /// A position is not in the book.
    #[error("this position is not in the book; `awari book expand` makes it larger")]
    NotInBook,
    /// Positions of a book are wrong.
    #[error("{}: {what}; restore the book from a copy, or remove it and expand it again", plural(*count, "wrong position"))]
    WrongBook { what: String, count: u64 },
    /// A new book would replace one.
    #[error("there is another book {}; choose another --name", .path.display())]
    BookExists { path: PathBuf },
    /// A proof of a draw needs databases that are missing.
    #[error(
        "a proof needs the databases of up to {most} stones, all that a capture can leave; that of {missing} is missing: build it, \
        or choose a --root of fewer stones"
    )]
    ProofDatabases { most: u32, missing: u32 },
    /// A proof of a draw failed.
    #[error(transparent)]
    Proof(#[from] book::DrawProofError),
    /// A check of a proof failed.
    #[error("the proof does not hold: {what}; check the databases with `awari verify`")]
    WrongProof { what: String },
    /// A position is no draw.
    #[error(
        "no draw: {winner} wins, by databases and searches; `awari book expand --strategy proof` proves values other than 0"
    )]
    NoDraw { winner: &'static str },
    /// A proof was given up.
    #[error("no proof with {}; choose more with --positions, or longer searches with --nodes", plural(*positions, "position"))]
    OpenProof { positions: u64 },
    /// The file of a book failed.
    #[error(transparent)]
    Book(#[from] book::BookError),
    /// The expansion of a book failed.
    #[error("{0}; what was entered before is kept")]
    BookBuild(#[from] book::BuildError),
    /// Stdin cannot be read.
    #[error("cannot read stdin: {}", reason(.0))]
    Stdin(std::io::Error),
    /// A match is one of two engines.
    #[error(
        "a match needs two engines, with at most one name and one limit of a kind each; found {found}; give --engine CMD twice"
    )]
    TwoEngines { found: usize },
    /// The command of an engine has no words, or a quote is not closed.
    #[error(
        "the command of an engine is not valid: `{command}`; expected a program and its arguments, quoted as in a shell"
    )]
    EngineCommand { command: String },
    /// A line of a file of openings is invalid.
    #[error("{}, line {}: {}; an opening is moves such as FfBd, or a position", path.display(), line, what)]
    Opening {
        path: PathBuf,
        /// From 1.
        line: usize,
        what: String,
    },
    /// A file of games is invalid.
    #[error("{}: {what}", path.display())]
    Games { path: PathBuf, what: String },
    /// The file for the games of a match has other content.
    #[error("{} {what}; to go on with a match, repeat its command; otherwise choose another --out, or move the file away", path.display())]
    OtherGames { path: PathBuf, what: String },
    /// An engine does not start.
    #[error("the engine `{command}` {what} before the match; it must answer `uci` with `uciok`")]
    Engine { command: String, what: String },
    /// An error of the oracle.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// A failed check.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// An error of an export, archive or restore.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// A thread cannot be started.
    #[error("a thread cannot be started: {}; allow more (ulimit -u, ulimit -v, or the pids control group)", reason(.0))]
    Thread(std::io::Error),
    /// The stack limit is too small.
    #[error(
        "the stack limit (ulimit -s) is {}, which is too low; nothing was done (raise it to {} or more)",
        pipeline::Budget::show(*limit), pipeline::Budget::show(*least)
    )]
    Stack { limit: u64, least: u64 },
    /// A thread pool cannot be started.
    #[error(
        "cannot start threads: {}; allow more (ulimit -u, ulimit -v, or the pids control group), or choose fewer with \
         --threads",
        reason(.0)
    )]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The server cannot listen.
    #[error("cannot listen on {address}: {}; choose another address with --listen", reason(error))]
    Serve { address: Listen, error: std::io::Error },
    /// The table of a search cannot be allocated.
    #[error(
        "cannot allocate {} for the table of searched positions: {}; choose less with --hash",
        Budget::show(*.bytes), reason(.error)
    )]
    SearchTable { bytes: u64, error: std::io::Error },
    /// The evaluation of a run directory cannot be read.
    #[error("{}: {error} (`awari run` makes it again if it is damaged; without the file, the program uses its own)", path.display())]
    Evaluation { path: PathBuf, error: String },
    /// Signals cannot be caught.
    #[error("cannot install signal handlers: {}", reason(.0))]
    Signals(std::io::Error),
    /// Stdout cannot be written.
    #[error("cannot write the result to stdout: {}", reason(.0))]
    Stdout(std::io::Error),
    /// A result cannot be written as JSON.
    #[error("cannot write the result as JSON: {0}")]
    Json(serde_json::Error),
}

impl CliError {
    /// Returns the exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            CliError::Unreadable(error) if error.is_of_system() => Exit::PreflightFailed,
            CliError::Unreadable(_)
            | CliError::NoManifestThere { .. }
            | CliError::NoHardware { .. }
            | CliError::NotText { .. }
            | CliError::Manifest { .. } => Exit::ManifestInvalid,
            CliError::CommandLine { .. }
            | CliError::PathNotText(_)
            | CliError::Position(_)
            | CliError::Game(_)
            | CliError::GamesTooLong(_)
            | CliError::TwoDirectories(_)
            | CliError::OneRank { .. }
            | CliError::NoSharedScratch
            | CliError::OtherPositions { .. }
            | CliError::OtherRules { .. }
            | CliError::EngineRules { .. }
            | CliError::NoGame(_)
            | CliError::TwoEngines { .. }
            | CliError::EngineCommand { .. }
            | CliError::Opening { .. }
            | CliError::Games { .. } => Exit::Usage,
            CliError::Pipeline(error) => error.exit(),
            CliError::NoMpi | CliError::StrangerRanks { .. } | CliError::MixedReleases(_) => Exit::Usage,
            CliError::Ranks(_) | CliError::Rank { .. } => Exit::StageFailed,
            CliError::Run { error, .. } => error.exit(),
            CliError::NoRun { .. } | CliError::Disk(DiskError::Locked { .. }) => Exit::Locked,
            CliError::NoRunDirectory(_)
            | CliError::NoRuns
            | CliError::DiskNotMeasured
            | CliError::NotADirectory(_)
            | CliError::DanglingLink { .. }
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
            | CliError::Engine { .. }
            | CliError::Serve { .. }
            | CliError::SearchTable { .. } => Exit::PreflightFailed,
            CliError::NoDatabases { .. }
            | CliError::DatabasesFolder { .. }
            | CliError::NothingInCommon
            | CliError::NoDatabase { .. }
            | CliError::NoSuchGame { .. }
            | CliError::NoSmaller { .. }
            | CliError::NoArchives { .. } => Exit::NoAnswer,
            CliError::OtherDatabase { .. } | CliError::OtherGames { .. } => Exit::PreflightFailed,
            CliError::Damaged { .. } | CliError::Evaluation { .. } => Exit::Integrity,
            CliError::Oracle(error) if error.is_damage() => Exit::Integrity,
            CliError::Oracle(OracleError::Missing { .. }) => Exit::NoAnswer,
            CliError::Oracle(_) => Exit::PreflightFailed,
            CliError::Check(CheckError::Missing { .. }) => Exit::NoAnswer,
            CliError::Check(CheckError::Store(error)) if matches!(**error, store::StoreError::Disk(_)) => {
                Exit::PreflightFailed
            }
            CliError::Check(CheckError::Memory { .. }) => Exit::PreflightFailed,
            CliError::Check(_) => Exit::Integrity,
            CliError::Exchange(error) => match error {
                ExchangeError::Stopped => Exit::Stopped,
                ExchangeError::TooLarge { .. } | ExchangeError::Unsupported { .. } => Exit::Usage,
                ExchangeError::NoParquet => Exit::Usage,
                ExchangeError::Missing { .. } => Exit::NoAnswer,
                ExchangeError::Length { .. } | ExchangeError::Restored { .. } => Exit::Integrity,
                ExchangeError::Store(error) if error.is_damage() => Exit::Integrity,
                _ => Exit::PreflightFailed,
            },
            CliError::BookMove { .. } => Exit::Usage,
            CliError::NotInBook => Exit::NoAnswer,
            CliError::WrongBook { .. } => Exit::Integrity,
            CliError::BookExists { .. } => Exit::PreflightFailed,
            CliError::ProofDatabases { .. } | CliError::NoDraw { .. } | CliError::OpenProof { .. } => Exit::NoAnswer,
            CliError::Proof(DrawProofError::Missing { .. }) => Exit::NoAnswer,
            CliError::Proof(DrawProofError::Search(_)) | CliError::WrongProof { .. } => Exit::Integrity,
            CliError::Book(error) => of_book(error),
            CliError::BookBuild(error) => match error {
                BuildError::File(error) => of_book(error),
                BuildError::Assessment(AssessmentError::Contradiction { .. }) => Exit::Integrity,
                BuildError::Assessment(AssessmentError::Stopped) => Exit::Stopped,
                BuildError::Memory(_) => Exit::PreflightFailed,
            },
            CliError::Json(_) => Exit::Internal,
        }
    }

    /// Whether all processes of a launcher find the same error, so that one message is enough.
    pub(crate) fn is_common_to_ranks(&self) -> bool {
        matches!(self, CliError::NoMpi | CliError::StrangerRanks { .. } | CliError::MixedReleases(_))
    }

    /// Adds the directory to errors about missing databases.
    pub(crate) fn of_directory(self, dir: &Path) -> CliError {
        let (stones, largest) = match self {
            CliError::Oracle(OracleError::Missing { stones, largest }) => (stones, largest),
            CliError::Check(CheckError::Missing { stones }) => (stones, None),
            other => return other,
        };
        CliError::NoDatabase { dir: dir.to_path_buf(), stones, largest, build: building(dir, Some(stones)) }
    }

    /// Prints the message on stderr.
    pub(crate) fn show(&self) {
        match self {
            CliError::Manifest { name, text, diagnostics } => diagnostics::show(name, text, diagnostics),
            CliError::CommandLine { diagnostics } => diagnostics::show("", "", diagnostics),
            _ => {}
        }
        say(format_args!("awari: {self}"));
    }
}

/// Returns the exit code of an error of the file of a book.
fn of_book(error: &BookError) -> Exit {
    match error {
        BookError::Missing(_) => Exit::NoAnswer,
        BookError::Disk(DiskError::Locked { .. }) => Exit::Locked,
        error if error.is_damage() => Exit::Integrity,
        _ => Exit::PreflightFailed,
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

/// Returns the sources of the mistakes.
fn origins(name: &str, diagnostics: &[Diagnostic]) -> String {
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
