//! `awari report`: one page with what the runs of a directory did and found.

mod chart;
mod page;
mod timeline;

use crate::args::ReportArgs;
use crate::error::CliError;
use crate::output::{print, say};
use crate::status::{Seen, look};
use check::Statistics;
use disk::{Disk, RealDisk, Staged};
use pipeline::Exit;
use pipeline::directory::journal_path;
use pipeline::history::History;
use pipeline::journal::Contents;
use std::path::Path;

/// Statistics are some hundred numbers.
const STATISTICS_BYTES_MAX: u64 = 1 << 20;

pub(crate) fn run(args: &ReportArgs) -> Result<Exit, CliError> {
    let disk = RealDisk::default();
    let seen = look(&disk, &args.dir)?;
    let journal = Contents::read(&disk, &journal_path(&args.dir)).map_err(pipeline::PipelineError::from)?;
    let history = History::of(&journal.entries);
    let statistics = statistics(&disk, &args.dir, &seen);
    let page = page::page(&seen, &history, &journal, &statistics).into_string();
    if args.output == Path::new("-") {
        print(&page)?;
    } else {
        let mut staged = Staged::create(&disk, &args.output, page.len() as u64)?;
        staged.write(page.as_bytes())?;
        staged.publish()?;
        say(format_args!("{} written", args.output.display()));
    }
    Ok(Exit::Done)
}

/// The statistics that are there, by stones. What cannot be read is left out: the page shows what is known.
fn statistics(disk: &RealDisk, dir: &Path, seen: &Seen) -> Vec<Statistics> {
    let names = seen.status.artifacts.iter().map(|artifact| &artifact.artifact);
    let names = names.filter(|name| name.as_str().starts_with("stats/"));
    let texts =
        names.filter_map(|name| String::from_utf8(disk.read(&name.below(dir), STATISTICS_BYTES_MAX).ok()?).ok());
    let mut all: Vec<Statistics> = texts.filter_map(|text| Statistics::of_json(&text).ok()).collect();
    all.sort_by_key(Statistics::stones);
    all
}
