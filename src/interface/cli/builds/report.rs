//! `awari report`: writes a page about the runs of a directory and their results.

mod chart;
mod page;
mod timeline;

use crate::args::ReportArgs;
use crate::builds::observed_run::observe;
use crate::error::Result;
use crate::files::databases::library;
use crate::files::stats::recorded;
use crate::output::print;
use crate::text::terminal::{printable, say};
use check::Statistics;
use disk::RealDisk;
use pipeline::directory::journal_path;
use pipeline::journal::{Contents, History};
use pipeline::{Exit, Heartbeat};
use std::path::Path;

/// The names of stdout.
const STDOUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

pub(crate) fn run(args: &ReportArgs) -> Result<Exit> {
    let disk = RealDisk::default();
    let seen = observe(&disk, &args.dir)?;
    let journal = Contents::read(&disk, &journal_path(&args.dir)).map_err(pipeline::PipelineError::from)?;
    let mut history = History::of(&journal.entries);
    if let Some(heartbeat) = Heartbeat::read(&disk, &args.dir) {
        history.add_heartbeat(heartbeat.run, heartbeat.at as f64);
    }
    let statistics = statistics(&disk, &args.dir);
    let page = page::page(&seen, &history, &journal, &statistics).into_string();
    let page = printable(&page);
    if STDOUT.iter().any(|name| args.out == Path::new(name)) {
        print(&page)?;
    } else {
        disk.deliver(&args.out, page.as_bytes())?;
        say(format_args!("{} written", args.out.display()));
    }
    Ok(Exit::Done)
}

/// Reads the statistics of the existing databases, by stones. Skips unreadable and outdated files.
fn statistics(disk: &RealDisk, dir: &Path) -> Vec<Statistics> {
    let Ok(library) = library(disk, dir) else { return Vec::new() };
    let all: Vec<u32> = library.files().keys().copied().collect();
    recorded(disk, dir, &library, &all).into_values().collect()
}
