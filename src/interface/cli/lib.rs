//! The command line of `awari`: parses arguments, calls the other crates, and turns results into text and exit codes.
//!
//! Each subcommand has a module. Results go to stdout, progress and remarks to stderr; a closed pipe on stdout is not
//! an error.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod analysis;
mod analyze;
mod archive;
mod args;
mod book_summary;
mod books;
mod candidates;
mod codecs;
mod compare;
mod completions;
mod databases;
mod diagnostics;
mod doctor;
mod engine;
mod engine_match;
mod error;
mod explain;
mod export;
mod gc;
mod job_role;
mod job_table;
mod lines;
mod logs;
mod method_table;
mod observed_run;
mod opening_book;
mod output;
mod plan;
mod play;
mod probe;
mod progress;
mod quantity;
mod rank_traffic;
mod report;
mod request;
mod run;
mod screen;
mod serve;
mod shell;
mod signals;
mod slurm_script;
mod stage;
mod stats;
mod status;
mod stop;
mod summary;
mod table;
mod terminal;
mod verify;
mod watch;

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
            error.show();
            error.exit().into()
        }
    }
}

fn run() -> Result<Exit> {
    signals::unblock();
    engine_match::run_guard_if_asked();
    signals::catch_file_size_limit()?;
    completions::answer();
    let arguments = match CommandLine::of_process() {
        Ok(arguments) => arguments,
        Err(error) => {
            error.print().or_else(output::ignore_closed_pipe).map_err(CliError::Stdout)?;
            return Ok(if error.use_stderr() { Exit::Usage } else { Exit::Done });
        }
    };
    // All ranks of a job take part in a run; rank 0 alone executes the other commands.
    let is_for_all = matches!(arguments.command, Command::Run(_));
    if let Some(rank) = messaging::launched_rank().filter(|&rank| rank > 0 && !is_for_all) {
        terminal::say(format_args!(
            "awari: rank {rank} is idle: only `awari run` uses all ranks, rank 0 alone executes other commands"
        ));
        return Ok(Exit::Done);
    }
    if is_for_all || matches!(arguments.command, Command::Stage(_)) {
        heap::exit_with(Exit::StageFailed.code());
    }
    if let Some(kernel) = arguments.kernel {
        kernel.choose();
        // The vector kernels of `store` need AVX-512.
        if kernel < Kernel::Avx512 {
            store::use_portable_kernels();
        }
    }
    logs::begin(match &arguments.command {
        Command::Run(args) => args.log.into(),
        _ => LevelFilter::OFF,
    });
    let done = match &arguments.command {
        Command::Run(args) => run::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Status(args) => status::run(args),
        Command::Stop(args) => stop::run(args),
        Command::SlurmScript(args) => slurm_script::run(args),
        Command::Stage(args) => stage::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Stats(args) => stats::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Probe(args) => probe::run(args),
        Command::Export(args) => export::run(args),
        Command::Archive(args) => archive::archive(args),
        Command::Restore(args) => archive::restore(args),
        Command::Serve(args) => serve::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Report(args) => report::run(args),
        Command::Gc(args) => gc::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Analyze(args) => analyze::run(args),
        Command::Play(args) => play::run(args),
        Command::Engine(args) => engine::run(args),
        Command::Book(args) => books::run(args),
        Command::Match(args) => engine_match::run(args),
        Command::Completions(args) => completions::run(args),
    };
    match arguments.command.databases_dir() {
        Some(dir) => done.map_err(|error| error.of_directory(dir)),
        None => done,
    }
}
