//! The command line of `awari`: parses arguments, calls the other crates, and turns results into text and exit codes.
//!
//! Each subcommand is a module of one of `builds`, `files`, `games` and `books`; `text` words and lays out
//! what all of them show. Results go to stdout, progress and remarks to stderr; a closed pipe on stdout is
//! not an error.
//!
//! # Overview of types
//!
//! * **Arguments.** `CommandLine` has a `Command` for each subcommand, with a struct of its options
//!   (`RunArgs`) in `args`.
//! * **Builds.** A `ResolvedBuild` is a manifest with all changes of the command line, as the pipeline runs
//!   it. With many machines this process has a `JobRole`; rank 0 has a `LedJob`. A `ProgressDisplay` draws
//!   events, and a `LogObserver` records them.
//! * **Answers.** `OpenedDatabases` are the databases of a directory that can be read, with its evaluation;
//!   an `Analyst` searches beyond them.
//! * **Text.** A `TextTable` fits a `Width`; `quantity` words numbers, `output` and `terminal` print.
//! * **Ends.** A `CliError` has a message, the next steps, and an exit code.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod books;
mod builds;
mod candidates;
mod completions;
mod error;
mod files;
mod games;
mod output;
mod signals;
mod text;

pub use crate::completions::completion_script;
pub use clap_complete::Shell;

use crate::error::Result;
use args::{Command, CommandLine};
use clap::CommandFactory;
use disk::{heap, machine};
use error::CliError;
use pipeline::Exit;
use solvers::Kernel;
use std::process::ExitCode;
use tracing_subscriber::filter::LevelFilter;

/// The smallest stack limit that the program accepts.
const STACK_BYTES_MIN: u64 = 512 << 10;

/// Returns the commands and options of the program.
pub fn command() -> clap::Command {
    CommandLine::command()
}

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    heap::share_arena();
    heap::exit_with(Exit::PreflightFailed.code());
    let limit = machine::stack_bytes_max().filter(|&limit| limit < STACK_BYTES_MIN);
    let done = match limit {
        Some(limit) => Err(CliError::Stack { limit, least: STACK_BYTES_MIN }),
        // The panic hook has printed the message.
        None => std::panic::catch_unwind(run).unwrap_or(Ok(Exit::Internal)),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) => {
            if !error.is_common_to_ranks() || messaging::launched_rank().unwrap_or(0) == 0 {
                error.show();
            }
            error.exit().into()
        }
    }
}

fn run() -> Result<Exit> {
    signals::unblock();
    games::engine_match::run_guard_if_asked();
    signals::catch_file_size_limit()?;
    completions::answer();
    let arguments = match CommandLine::of_process() {
        Ok(arguments) => arguments,
        Err(error) => {
            error.print().or_else(output::ignore_closed_pipe).map_err(CliError::Stdout)?;
            return Ok(if error.use_stderr() { Exit::Usage } else { Exit::Done });
        }
    };
    // All ranks of a job take part in a run or a stage; rank 0 alone executes the other commands.
    let is_for_all = matches!(arguments.command, Command::Run(_) | Command::Stage(_));
    if let Some(rank) = messaging::launched_rank().filter(|&rank| rank > 0 && !is_for_all) {
        text::terminal::say(format_args!(
            "awari: rank {rank} is idle: only `awari run` and `awari stage` use all ranks, rank 0 alone executes other commands"
        ));
        return Ok(Exit::Done);
    }
    if is_for_all {
        heap::exit_with(Exit::StageFailed.code());
    }
    if let Some(kernel) = arguments.kernel {
        kernel.choose();
        // The vector kernels of `store` need AVX-512.
        if kernel < Kernel::Avx512 {
            store::use_portable_kernels();
        }
    }
    builds::logs::begin(match &arguments.command {
        Command::Run(args) => args.log.into(),
        _ => LevelFilter::OFF,
    });
    let done = match &arguments.command {
        Command::Run(args) => builds::run::run(args),
        Command::Plan(args) => builds::plan::run(args),
        Command::Status(args) => builds::status::run(args),
        Command::Stop(args) => builds::stop::run(args),
        Command::SlurmScript(args) => builds::slurm_script::run(args),
        Command::Stage(args) => builds::stage::run(args),
        Command::Verify(args) => builds::verify::run(args),
        Command::Stats(args) => files::stats::run(args),
        Command::Compare(args) => files::compare::run(args),
        Command::Probe(args) => games::probe::run(args),
        Command::Export(args) => files::export::run(args),
        Command::Archive(args) => files::archive::archive(args),
        Command::Restore(args) => files::archive::restore(args),
        Command::Serve(args) => games::serve::run(args),
        Command::Explain(args) => builds::explain::run(args),
        Command::Report(args) => builds::report::run(args),
        Command::Gc(args) => builds::gc::run(args),
        Command::Doctor(args) => builds::doctor::run(args),
        Command::Analyze(args) => games::analyze::run(args),
        Command::Play(args) => games::play::run(args),
        Command::Engine(args) => games::engine::run(args),
        Command::Book(args) => books::run(args),
        Command::Match(args) => games::engine_match::run(args),
        Command::Completions(args) => completions::run(args),
    };
    match arguments.command.databases_dir() {
        Some(dir) => done.map_err(|error| error.of_directory(dir)),
        None => done,
    }
}
