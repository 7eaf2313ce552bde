//! `awari completions`: what a shell needs to complete our arguments.

use crate::args::{Arguments, CompletionsArgs};
use crate::error::CliError;
use crate::output::print;
use clap::CommandFactory;
use pipeline::Exit;

pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "awari", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
