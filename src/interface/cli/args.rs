//! The command line. It is stable: options keep their meaning.

mod book;
mod build;
mod engine_match;
mod read;
mod search;
mod values;

use crate::candidates;
use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::engine::ArgValueCandidates;
use pipeline::Budget;
use solvers::Kernel;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

pub(crate) use book::{
    BookArgs, BookCommand, BookDatabasesArgs, BookDiagramArgs, BookExpandArgs, BookFileArgs, BookPicture, BookPlayArgs,
    BookProveArgs, BookSeat, BookShowArgs, BookSide, BookStrategy, BookUseArgs, BookVerifyArgs, DiagramFormat,
};
pub(crate) use build::{
    DoctorArgs, ExplainArgs, GcArgs, PlanArgs, PlanFormat, ProgressMode, ReportArgs, RunArgs, SelectionArgs,
    SlurmScriptArgs, StageArgs, StatusArgs, StopArgs,
};
pub(crate) use engine_match::MatchArgs;
pub(crate) use read::{
    AnalysisView, AnalyzeArgs, ArchiveArgs, CompareArgs, DatabasesArgs, EngineArgs, ExportArgs, ExportFormat,
    LibraryArgs, PlayArgs, PlaySide, ProbeArgs, RestoreArgs, ServeArgs, StatsArgs, StatsFormat, VerifyArgs,
};
pub(crate) use search::{SearchArgs, TableArgs};
pub(crate) use values::{ClockControl, Listen, Sprt, TABLE_MIB_MIN};

/// The environment variable with the default of `--dir`.
pub(crate) const DIR_VARIABLE: &str = "AWARI_DIR";

/// Builds endgame databases of awari from a manifest, and answers questions from them.
#[derive(Debug, Parser)]
#[command(
    name = "awari",
    version = env!("AWARI_VERSION"),
    max_term_width = 100,
    after_help = "\
Examples:
  awari run manifests/quickstart.toml  # build, or resume
  awari plan manifests/small.toml      # what would run
  awari status --dir runs/quickstart   # progress of a run
  awari verify --dir runs/quickstart   # check all scores
  awari probe --dir runs/quickstart 0 0 0 0 0 2  1 0 0 0 0 0

The variable AWARI_DIR stands for --dir.

Exit codes:
    0  done
    1  internal error
    2  the command line is invalid
    3  no database has the answer
   10  work is pending (`plan --check`)
   11  the manifest has mistakes
   12  disk, memory, a limit or the directory forbids it
   13  another process holds the directory
   14  a stage failed; finished work is kept
   15  --frozen forbids rebuilding, or --replace is needed
   16  something is damaged or wrong
   75  stopped, or a rank was lost; the same command resumes
  130  stopped at once by a second signal"
)]
pub(crate) struct CommandLine {
    /// Vector instructions to use: portable (none), avx2 or avx512; changes no byte of any file [default: the fastest
    /// that `awari doctor` lists]
    #[arg(long, global = true, value_name = "NAME", value_parser = values::kernel, help_heading = "Global options",
        add = ArgValueCandidates::new(candidates::kernels))]
    pub(crate) kernel: Option<Kernel>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl CommandLine {
    /// Parses the arguments of this process.
    ///
    /// # Errors
    /// The mistakes, or the requested help or version.
    pub(crate) fn of_process() -> Result<CommandLine, clap::Error> {
        let variable = std::env::var_os(DIR_VARIABLE);
        let mut program = without_empty_variable(CommandLine::command(), variable.as_deref());
        CommandLine::read(&mut program, std::env::args_os())
    }

    fn read(
        program: &mut clap::Command,
        words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<CommandLine, clap::Error> {
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        let matches = program.try_get_matches_from_mut(&words);
        let mut matches = matches.map_err(|error| with_remedy(program, &words, error))?;
        CommandLine::from_arg_matches_mut(&mut matches).map_err(|error| error.format(program))
    }
}

/// Returns the parser. An empty environment variable counts as unset.
fn without_empty_variable(program: clap::Command, variable: Option<&OsStr>) -> clap::Command {
    if variable.is_none_or(|value| !value.is_empty()) {
        return program;
    }
    let is_it = |option: &clap::Arg| option.get_env() == Some(OsStr::new(DIR_VARIABLE));
    program.mut_subcommands(|command| {
        command.mut_args(|option| if is_it(&option) { option.env(Resettable::Reset) } else { option })
    })
}

/// Adds a hint if an argument is a directory without the option for it, or an option of other programs.
fn with_remedy(program: &clap::Command, words: &[OsString], mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return error };
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let command = words.iter().skip(1).find_map(|word| program.find_subcommand(word));
    let has =
        |option: &str| command.is_some_and(|command| command.get_opts().any(|known| known.get_long() == Some(option)));
    let name = command.map_or("", clap::Command::get_name);
    let tip = match word.as_str() {
        "-n" | "--dry-run" if name == "run" => "'awari plan' shows what 'awari run' would do, and changes nothing",
        "-n" | "--dry-run" if name == "gc" => "without '--delete', nothing is removed",
        "-j" | "--jobs" if has("threads") => "'--threads N' sets the number of threads",
        word if !word.starts_with('-') && has("dir") => &format!("a run directory is named with '--dir {word}'"),
        _ => return error,
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.to_owned().into()]));
    error
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
    /// Count the positions that change their score from one set of rules to another
    Compare(CompareArgs),
    /// Show the score of a position, and the value of each move
    Probe(ProbeArgs),
    /// Write databases in formats that other programs read
    Export(ExportArgs),
    /// Write databases in their smallest form, for long-term storage
    Archive(ArchiveArgs),
    /// Restore databases from archives
    Restore(RestoreArgs),
    /// Serve an HTTP API and a web page to play on
    Serve(ServeArgs),
    /// List the stages of a build with their state, or explain why one is or is not up to date
    Explain(ExplainArgs),
    /// Write an HTML report on the runs of a directory
    Report(ReportArgs),
    /// List files that are not needed; delete them with --delete
    Gc(GcArgs),
    /// Check whether the machine and a directory are fit for a run
    Doctor(DoctorArgs),
    /// Compare every move of a game with the best one
    Analyze(AnalyzeArgs),
    /// Play against the program in the terminal
    Play(PlayArgs),
    /// Run as an engine for an oware program: UCI on stdin and stdout
    Engine(EngineArgs),
    /// Build opening books, and answer questions from them
    Book(BookArgs),
    /// Play two engines against each other, and say which one is stronger
    Match(MatchArgs),
    /// Print the script that completes commands in a shell
    Completions(CompletionsArgs),
}

impl Command {
    /// Returns the run directory of a command that reads databases.
    pub(crate) fn databases_dir(&self) -> Option<&Path> {
        match self {
            Command::Verify(args) => Some(&args.databases.dir),
            Command::Stats(args) => Some(&args.databases.dir),
            Command::Export(args) => Some(&args.databases.dir),
            Command::Archive(args) => Some(&args.databases.dir),
            Command::Probe(args) => args.library.dir.as_deref(),
            Command::Serve(args) => args.library.dir.as_deref(),
            Command::Analyze(args) => args.library.dir.as_deref(),
            Command::Play(args) => args.library.dir.as_deref(),
            Command::Engine(args) => args.library.dir.as_deref(),
            Command::Book(args) => Some(&args.command.file().dir),
            Command::Run(_)
            | Command::Plan(_)
            | Command::Status(_)
            | Command::Stop(_)
            | Command::SlurmScript(_)
            | Command::Stage(_)
            | Command::Compare(_)
            | Command::Restore(_)
            | Command::Explain(_)
            | Command::Report(_)
            | Command::Gc(_)
            | Command::Doctor(_)
            | Command::Match(_)
            | Command::Completions(_) => None,
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

/// Overrides of a manifest.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChangeArgs {
    /// The run directory, relative to the current one [default: run.dir of the manifest]
    #[arg(long, value_name = "DIR", env = DIR_VARIABLE, hide_env_values = true)]
    pub(crate) dir: Option<PathBuf>,
    /// Number of threads; 0 is one a core [default: build.threads of the manifest]
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = values::number::<u16>(0..=1024))]
    pub(crate) threads: Option<u16>,
    /// The most stages to run at the same time; 0 is as many as are best [default: build.stages-at-a-time of the manifest]
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = values::number::<u16>(0..=64))]
    pub(crate) stages_at_a_time: Option<u16>,
    /// Memory limit, such as "512 MiB" or 2GiB [default: build.memory of the manifest]
    #[arg(long, allow_hyphen_values = true, value_name = "SIZE")]
    pub(crate) memory: Option<Budget>,
    /// Override a key of the manifest; the value is TOML or a plain string; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::setting, add = ArgValueCandidates::new(candidates::keys))]
    pub(crate) set: Vec<(String, String)>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  source <(awari completions bash)

Put the line into ~/.bashrc. Completes commands, options and their values: methods, levels, kernels, keys of manifests, \
and the stages of the manifest on the command line.")]
pub(crate) struct CompletionsArgs {
    /// Name of the shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value such as -5 is refused as a value of its option.
    #[test]
    fn numbers_and_sizes_may_begin_with_a_hyphen() {
        let program = CommandLine::command();
        let options = program.get_subcommands().flat_map(clap::Command::get_opts);
        let is_number = |option: &&clap::Arg| {
            let name = option.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
            ["N", "SIZE", "A..B"].contains(&name)
        };
        let numbers: Vec<_> = options.filter(is_number).collect();
        assert!(numbers.len() > 15);
        for option in numbers {
            assert!(option.is_allow_hyphen_values_set(), "{option}");
        }
        for (line, expected) in [
            ("run m.toml --memory -5", "\"-5\" is not a size"),
            ("run m.toml --memory -5MiB", "\"-5MiB\" is not a size"),
            ("run m.toml --threads -1", "expected a whole number within 0..1024"),
            ("run m.toml --threads 1.5", "expected a whole number within 0..1024"),
            ("run m.toml --threads 1025", "expected a whole number within 0..1024"),
            ("run m.toml --stages-at-a-time 65", "expected a whole number within 0..64"),
            ("run m.toml --threads=", "expected a whole number within 0..1024"),
            ("slurm-script m.toml --nodes 0", "expected a whole number within 1..65536"),
            ("verify --dir d --sample 0", "expected a whole number, 1 or more"),
            ("verify --dir d --sample 5 --seed -1", "expected a whole number, 0 or more"),
            ("play --dir d --seed x", "expected a whole number, 0 or more"),
            ("plan --stones 3 --ranks 5000", "expected a whole number within 1..4096"),
            ("stats --dir d --stones -3", "expected A..B, both ends included, or one number, within 0..48"),
        ] {
            let error = CommandLine::try_parse_from(words(&format!("awari {line}"))).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("use '-- "), "{line}: {error}");
        }
    }

    #[test]
    fn a_likely_mistake_gets_a_hint() {
        let said = |line: &str| {
            let words = words(&format!("awari {line}"));
            CommandLine::read(&mut CommandLine::command(), words).unwrap_err().to_string()
        };
        for line in ["status runs/m", "verify runs/m", "gc runs/m --delete", "--kernel portable stats runs/m"] {
            assert!(said(line).contains("tip: a run directory is named with '--dir runs/m'"), "{line}: {}", said(line));
        }
        for (line, tip) in [
            ("run --dry-run m.toml", "tip: 'awari plan' shows what"),
            ("run -n m.toml", "tip: 'awari plan' shows what"),
            ("run m.toml -j2", "tip: '--threads N' sets"),
            ("verify --dir d --jobs=2", "tip: '--threads N' sets"),
            ("gc --dir d --dry-run", "tip: without '--delete'"),
        ] {
            assert!(said(line).contains(tip) && !said(line).contains("use '-- "), "{line}: {}", said(line));
        }
        for line in ["completions bash runs/m", "status --nosuch"] {
            assert!(!said(line).contains("tip: a run directory"), "{line}: {}", said(line));
        }
    }

    /// An empty variable counts as unset.
    #[test]
    fn an_empty_variable_sets_no_directory() {
        let program = without_empty_variable(CommandLine::command(), Some(OsStr::new("")));
        assert!(program.try_get_matches_from(["awari", "run", "m.toml"]).is_ok());
        let program = || CommandLine::command();
        let variables = |program: &clap::Command| {
            program
                .get_subcommands()
                .flat_map(clap::Command::get_opts)
                .filter(|option| option.get_env().is_some())
                .count()
        };
        assert!(variables(&program()) > 15);
        assert_eq!(variables(&without_empty_variable(program(), Some(OsStr::new("")))), 0);
        for kept in [None, Some(OsStr::new("d"))] {
            assert_eq!(variables(&without_empty_variable(program(), kept)), variables(&program()));
        }
    }

    #[test]
    fn the_parser_is_consistent() {
        CommandLine::command().debug_assert();
    }

    /// Returns the help texts of the program and of every command, with their names.
    fn helps(width: usize) -> Vec<(String, String)> {
        let mut program = CommandLine::command().term_width(width);
        program.build();
        let names: Vec<String> = program.get_subcommands().map(|command| command.get_name().to_owned()).collect();
        let help = |name: &String| {
            let mut program = program.clone();
            let command = program.find_subcommand_mut(name).unwrap();
            (name.clone(), command.render_long_help().to_string())
        };
        let commands: Vec<_> = names.iter().filter(|name| *name != "help").map(help).collect();
        [("awari".to_owned(), program.clone().render_long_help().to_string())].into_iter().chain(commands).collect()
    }

    /// A paragraph is one line of the source, so that only clap breaks it.
    #[test]
    fn paragraphs_of_help_are_broken_at_the_width_of_the_terminal_alone() {
        let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
        for (name, help) in helps(10_000) {
            let lines: Vec<&str> = help.lines().collect();
            for pair in lines.windows(2) {
                assert!(!(is_text(pair[0]) && is_text(pair[1])), "awari {name}: a paragraph of two lines: {pair:?}");
            }
        }
        for width in [60, 80, 100] {
            for (name, help) in helps(width) {
                // Clap does not wrap the usage.
                let is_too_long = |line: &&str| line.chars().count() > width && !line.starts_with("Usage: ");
                let too_long = help.lines().find(is_too_long);
                assert!(too_long.is_none(), "awari {name} at {width} columns: {too_long:?}");
                let lines: Vec<&str> = help.lines().collect();
                for pair in lines.windows(2).filter(|pair| is_text(pair[0]) && is_text(pair[1])) {
                    let first = pair[1].split(' ').next().unwrap();
                    let fits = pair[0].chars().count() + 1 + first.chars().count() <= width;
                    assert!(!fits, "awari {name} at {width} columns: broken early: {pair:?}");
                }
            }
        }
    }

    /// Examples and tables must not be wrapped.
    #[test]
    fn examples_and_tables_of_help_fit_a_terminal_of_60_columns() {
        let texts = |command: &clap::Command| command.get_after_help().map(ToString::to_string);
        let program = CommandLine::command();
        let all: Vec<String> = program.get_subcommands().chain([&program]).filter_map(texts).collect();
        assert!(all.len() > 20);
        for line in all.iter().flat_map(|text| text.lines()).filter(|line| line.starts_with(' ')) {
            assert!(line.chars().count() <= 60, "{line}");
        }
    }

    /// Splits a command into words, without redirections and pipes.
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
    fn every_command_of_the_guide_can_be_parsed() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../");
        let chapters = std::fs::read_dir(format!("{root}docs")).unwrap().map(|entry| entry.unwrap().path());
        let readme = std::path::PathBuf::from(format!("{root}README.md"));
        let mut count = 0;
        for path in chapters.chain([readme]).filter(|path| path.extension() == Some("md".as_ref())) {
            let mut is_shell = false;
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                is_shell = if line.starts_with("```") { line == "```sh" } else { is_shell };
                let line = line.replace("cargo run --release -- ", "awari ");
                if is_shell && line.starts_with("awari ") && !line.ends_with('\\') {
                    if let Err(error) = CommandLine::try_parse_from(words(&line)) {
                        panic!("{}: {line}\n{error}", path.display());
                    }
                    count += 1;
                }
            }
        }
        assert!(count > 20, "{count} commands were found");
    }
}
