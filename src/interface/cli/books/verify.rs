//! `awari book verify`: derives values again, compares them with databases, and repeats searches.

use super::databases::DirectoryDatabases;
use super::open;
use super::progress::ProgressLines;
use crate::args::BookVerifyArgs;
use crate::error::{CliError, Result};
use crate::output::print;
use crate::signals;
use crate::text::quantity::{grouped, plural};
use crate::text::terminal::say;
use book::{
    Assessed, AssessmentLimits, AssessorPool, AwariGame, Book, BookCheck, BookEngine, BookFile, BuildError,
    EngineResults, check_book, check_results, engine_version, stones,
};
use disk::clock;
use game::notation::PositionText;
use pipeline::Exit;
use search::SearchStop;
use stages::BookDatabases;
use std::sync::atomic::{AtomicBool, Ordering};

/// The searches that each thread makes between two looks at the clock and the stop flag.
const SEARCHES_AT_ONCE: usize = 4;

pub(crate) fn run(args: &BookVerifyArgs) -> Result<Exit> {
    let (file, book) = open(&args.file)?;
    let stored = file.check_values(&book)?;
    let databases = DirectoryDatabases::open(&args.file, &args.databases)?.scores;
    let BookCheck { mut wrong, looked_up, certificate } = check_book(&book, &databases, args.certify);
    databases.failure()?;
    let is_stored = stored.is_some();
    wrong.extend(stored.into_iter().flat_map(|(_, wrong)| wrong));
    refuse(&wrong)?;
    let positions = plural(book.graph().len() as u64, "position");
    print(&format!("{positions} verified, {} against databases\n", grouped(looked_up)))?;
    if !is_stored {
        print("values are not stored, or are those of fewer facts; `awari book expand` stores them when it ends\n")?;
    }
    if let Some(found) = certificate {
        let position = PositionText::of_board(AwariGame::board(book.graph().node(book.roots()[0]).key));
        let (low, high) = (found.root.low, found.root.high);
        let value = if low == high {
            format!("is {}", stones(low))
        } else {
            format!("is within {}..{}", stones(low), stones(high))
        };
        let (closed, total) = (grouped(found.closed), grouped(book.totals().closed as u64));
        print(&format!(
            "the value of {position} {value}, by databases and rules alone, which give {closed} of {total} closed \
             positions\n"
        ))?;
    }
    match args.searches {
        0 => Ok(Exit::Done),
        wanted => repeat(&file, &book, &databases, wanted),
    }
}

/// Reports the first of wrong positions.
fn refuse(wrong: &[String]) -> Result<()> {
    match wrong.first() {
        None => Ok(()),
        Some(what) => Err(CliError::WrongBook { what: what.clone(), count: wrong.len() as u64 }),
    }
}

/// Repeats searches, at most a number of them, and looks up again what no search found.
fn repeat(file: &BookFile, book: &Book<AwariGame>, databases: &BookDatabases, wanted: u64) -> Result<Exit> {
    let results = file.results()?;
    let all: u64 = results.iter().map(|EngineResults { results, .. }| searches(results)).sum();
    let wanted = wanted.min(all);
    let stop = signals::stop_flag()?;
    let version = engine_version(book.game().rules()).map_err(BuildError::Memory)?;
    let mut progress = RepeatProgress { version, wanted, repeated: 0, skipped: 0 };
    let mut number = 0u64;
    for EngineResults { engine, results } in &results {
        // Evenly spaced ones of all searches of the book.
        let mut is_chosen = |assessed: &Assessed| {
            if !assessed.is_searched() {
                return true;
            }
            number += 1;
            number * wanted / all > (number - 1) * wanted / all
        };
        let chosen: Vec<(u64, Assessed)> =
            results.iter().copied().filter(|(_, assessed)| is_chosen(assessed)).collect();
        if !progress.repeat(book, databases, engine, &chosen, &stop)? {
            say(progress.line("stopped: "));
            return Ok(Exit::Stopped);
        }
    }
    let repeated = plural(progress.repeated, "position");
    print(&format!("{repeated} of {} searched again, with the same results\n", grouped(all)))?;
    if progress.skipped > 0 {
        print(&format!(
            "{} could not be searched again: their searches were by another program, by time, or with databases that are \
             missing\n",
            plural(progress.skipped, "position")
        ))?;
    }
    Ok(Exit::Done)
}

fn searches(results: &[(u64, Assessed)]) -> u64 {
    results.iter().filter(|(_, assessed)| assessed.is_searched()).count() as u64
}

/// How far the repetition of searches is.
struct RepeatProgress {
    /// The version of this program as an engine: searches of others cannot be repeated.
    version: String,
    /// The number of searches to repeat.
    wanted: u64,
    repeated: u64,
    /// Searches that cannot be repeated.
    skipped: u64,
}

impl RepeatProgress {
    fn line(&self, before: &str) -> String {
        format!("{before}{} of {} searched again", grouped(self.repeated), plural(self.wanted, "position"))
    }

    /// Repeats searches of an engine. Returns whether it was not stopped.
    fn repeat(
        &mut self,
        book: &Book<AwariGame>,
        databases: &BookDatabases,
        engine: &BookEngine,
        results: &[(u64, Assessed)],
        stop: &AtomicBool,
    ) -> Result<bool> {
        let limits = engine.limits.parse::<AssessmentLimits>().ok().filter(|limits| limits.is_deterministic());
        let is_same = engine.version == self.version;
        let (Some(limits), Some(named), true) = (limits, databases.named(&engine.databases), is_same) else {
            self.skipped += searches(results);
            return Ok(true);
        };
        let pool = AssessorPool::new(*book.game(), &named, limits, clock::cores()).map_err(BuildError::Memory)?;
        let mut lines = ProgressLines::new();
        for some in results.chunks(pool.threads() * SEARCHES_AT_ONCE) {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let wrong = check_results(book.game(), some, &pool, &SearchStop::new()).map_err(BuildError::Assessment)?;
            databases.failure()?;
            refuse(&wrong)?;
            self.repeated += searches(some);
            lines.show(|| self.line(""));
        }
        Ok(true)
    }
}
