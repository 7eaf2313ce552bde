//! `awari completions`: the shell script for completions, and the answers to its requests.

use crate::args::{CommandLine, CompletionsArgs};
use crate::error::{CliError, Result};
use crate::output::print_controls;
use clap::CommandFactory;
use clap_complete::env::{CompleteEnv, Shells};
use pipeline::Exit;

/// The variable with which a shell requests completions.
const VARIABLE: &str = "AWARI_COMPLETE";

/// Bash code that keeps colons in words, as in `sweep:14`.
const BASH_WORDS: &str = "COMP_WORDBREAKS=${COMP_WORDBREAKS//:/}\n";

/// Answers a request of a shell and ends the process. Returns if there is none.
pub(crate) fn answer() {
    CompleteEnv::with_factory(CommandLine::command).var(VARIABLE).bin("awari").completer("awari").complete();
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit> {
    let shell = args.shell.to_string();
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let completer = shells.completer(&shell).expect("every shell of the command line has a completer");
    completer.write_registration(VARIABLE, "awari", "awari", "awari", &mut script).map_err(CliError::Stdout)?;
    if shell == "bash" {
        script.extend_from_slice(BASH_WORDS.as_bytes());
    }
    print_controls(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
