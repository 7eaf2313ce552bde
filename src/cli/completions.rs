//! `awari completions`: the script with which a shell asks this program for completions, and the answers.

use crate::args::{CommandLine, CompletionsArgs};
use crate::error::CliError;
use crate::output::print_controls;
use clap::CommandFactory;
use clap_complete::env::{CompleteEnv, Shells};
use pipeline::Exit;

/// The variable with which a shell asks.
const VARIABLE: &str = "AWARI_COMPLETE";

/// In bash a colon ends a word, and `sweep:14` would be completed as three.
const BASH_WORDS: &str = "COMP_WORDBREAKS=${COMP_WORDBREAKS//:/}\n";

/// Answers a shell that asks for completions, and ends the process. Returns if none asks.
pub(crate) fn answer() {
    CompleteEnv::with_factory(CommandLine::command).var(VARIABLE).bin("awari").completer("awari").complete();
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit, CliError> {
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
