//! `awari`: arguments to calls, results to text and exit codes.
//!
//! One module a subcommand. What a command was asked to show (`plan`, `status`, `stats`, `probe`, and whatever is JSON)
//! goes to stdout; what a person may want to know while something is done goes to stderr. A reader of stdout that goes
//! away is no error. Nothing is computed here: that is the business of the other crates.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod analyze;
mod archive;
mod args;
mod bar;
mod candidates;
mod completions;
mod databases;
mod diagnostics;
mod doctor;
mod engine;
mod error;
mod explain;
mod export;
mod gc;
mod job_outlook;
mod logs;
mod outlook;
mod output;
mod place;
mod plain;
mod plan;
mod play;
mod probe;
mod progress;
mod quantity;
mod report;
mod request;
mod run;
mod screen;
mod serve;
mod signals;
mod slurm_script;
mod stage;
mod stats;
mod status;
mod stop;
mod summary;
mod table;
mod together;
mod verify;
mod watch;

use args::{Arguments, Command};
use clap::Parser;
use engines::Kernel;
use std::process::ExitCode;
use tracing_subscriber::filter::LevelFilter;

/// The program, with the arguments of this process.
pub fn main() -> ExitCode {
    completions::answer();
    disk::heap::share_arena();
    let arguments = Arguments::parse();
    // A run is work for all ranks of a job, anything else for the first.
    let is_for_all = matches!(arguments.command, Command::Run(_));
    if !is_for_all && ranks::launched_rank().is_some_and(|rank| rank > 0) {
        return ExitCode::SUCCESS;
    }
    if let Some(kernel) = arguments.kernel {
        kernel.choose();
        // Those of the files are for AVX-512.
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
        Command::Completions(args) => completions::run(args),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) => {
            error.show();
            error.exit().into()
        }
    }
}
