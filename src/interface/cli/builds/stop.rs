//! `awari stop`: requests a run to stop, from any machine that shares its directory.

use crate::args::StopArgs;
use crate::builds::observed_run::observe;
use crate::error::{CliError, Result};
use crate::text::shell::{command_line, path_argument};
use crate::text::terminal::say;
use disk::RealDisk;
use pipeline::status::{RunState, holder};
use pipeline::{Exit, StopRequest};
use std::ffi::OsStr;

pub(crate) fn run(args: &StopArgs) -> Result<Exit> {
    let disk = RealDisk::default();
    let dir = &args.dir;
    let run = observe(&disk, dir)?.status.run.filter(|run| run.state == RunState::Running);
    let Some(holder) = holder(&disk, dir) else { return Err(CliError::NothingRuns(dir.clone())) };
    // After a killed run, another command may hold the lock, which ignores requests.
    let process = |pid: u32, host: &str| format!("process {pid} on {host} ");
    let Some(run) = run.filter(|run| holder.starts_with(&process(run.pid, &run.host))) else {
        return Err(CliError::NoRun { dir: dir.clone(), holder });
    };
    StopRequest { run: run.number }.post(&disk, dir)?;
    let watched = path_argument(dir);
    let watch =
        ["awari", "status", "--dir"].map(OsStr::new).into_iter().chain([watched.as_os_str(), OsStr::new("--watch")]);
    say(format_args!(
        "run {} (process {} on {}) was asked to stop: it finishes the current step and exits with 75; to watch it:\n  {}",
        run.number,
        run.pid,
        run.host,
        command_line(watch)
    ));
    Ok(Exit::Done)
}
