//! `awari completions`: the shell script for completions, and the answers to its requests.

use crate::args::{CommandLine, CompletionsArgs};
use crate::error::Result;
use crate::output::print_controls;
use clap::CommandFactory;
use clap_complete::Shell;
use clap_complete::env::{CompleteEnv, Shells};
use pipeline::Exit;

/// The variable with which a shell requests completions.
const VARIABLE: &str = "AWARI_COMPLETE";

/// Bash code that keeps colons in words, as in `sweep:14`.
const BASH_WORDS: &str = "COMP_WORDBREAKS=${COMP_WORDBREAKS//:/}\n";

/// Zsh code for a script that is the file `_awari` of `fpath`: zsh runs it as a function for the first
/// completion, which it would leave empty.
const ZSH_FIRST_CALL: &str = "if [[ ${funcstack[1]} = _awari ]]; then\n    _clap_dynamic_completer_awari \"$@\"\nfi\n";

/// Answers a request of a shell and ends the process. Returns if there is none.
pub(crate) fn answer() {
    CompleteEnv::with_factory(CommandLine::command).var(VARIABLE).bin("awari").completer("awari").complete();
}

/// Returns the script of a shell that requests completions from `awari`.
pub fn completion_script(shell: Shell) -> String {
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string()).expect("every shell of the command line has a completer");
    let mut script = Vec::new();
    let written = completer.write_registration(VARIABLE, "awari", "awari", "awari", &mut script);
    written.expect("writing to memory cannot fail");
    let mut script = String::from_utf8(script).expect("the script is text");
    match shell {
        Shell::Bash => script.push_str(BASH_WORDS),
        Shell::Zsh => script.push_str(ZSH_FIRST_CALL),
        _ => {}
    }
    script
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit> {
    print_controls(&completion_script(args.shell))?;
    Ok(Exit::Done)
}
