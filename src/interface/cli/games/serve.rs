//! `awari serve`: the oracle over HTTP.

use crate::args::ServeArgs;
use crate::error::{CliError, Result};
use crate::files::databases::{UsedEvaluation, cache_bytes, evaluation, library_by};
use crate::files::stats;
use crate::games::analysis::check_table_fits;
use crate::games::opening_book::opening_book;
use crate::output::print;
use crate::signals;
use crate::text::terminal::say;
use disk::{RealDisk, clock, machine};
use game::Rules;
use oracle::Oracle;
use pipeline::Exit;
use server::{Catalogue, Server, ServerLimits, ServerStop, Site, SiteEngine, router};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) fn run(args: &ServeArgs) -> Result<Exit> {
    let disk = RealDisk::default();
    let library = library_by(&disk, &args.library)?;
    let all: Vec<u32> = library.files().keys().copied().collect();
    let counted =
        args.library.dir.as_deref().map_or_else(Default::default, |dir| stats::recorded(&disk, dir, &library, &all));
    let catalogue = counted.into_iter().fold(Catalogue::new(&library), |catalogue, (stones, statistics)| {
        catalogue.with_histogram(stones, statistics.histogram().scores())
    });
    let mut limits = ServerLimits::default();
    limits.analyses_max = args.analyses.map_or(limits.analyses_max, usize::from);
    limits.proxy = args.proxy;
    let evaluation = evaluation(&disk, args.library.dir.as_deref())?;
    if evaluation.path.is_some() {
        say(evaluation.text());
    }
    let short_search = evaluation.evaluation.clone();
    let engine = engine(library.rules(), args.hash.bytes(), evaluation)?;
    let book = opening_book(args.library.dir.as_deref(), &args.book, &library.rules())?;
    let oracle = Oracle::new(library, cache_bytes()).with_evaluation(short_search);
    let site = Site::new(oracle, catalogue, engine, book, limits);
    // Threads for reading, for searching, for analyses and moves, and two for the server; checked before
    // clients can connect.
    let threads = clock::cores() + limits.searches_max + 2 * limits.analyses_max + 2;
    machine::probe_threads(threads).map_err(CliError::Thread)?;
    let failed = |error| CliError::Serve { address: args.listen.clone(), error };
    let server = Server::bind((args.listen.host.as_str(), args.listen.port), limits).map_err(failed)?;
    stop_at_signals(server.stop())?;
    let warm = Arc::clone(&site);
    // Until the tables are built, a request blocks only on the tables that it needs.
    signals::thread("warm", move || warm.warm())?;
    print(&format!("http://{}/\n", server.address().map_err(failed)?))?;
    server.run(router(site)).map_err(failed)?;
    Ok(Exit::Done)
}

/// Makes the engine of the server by the rules of the databases, with a table of a number of bytes.
fn engine(rules: Rules, table_bytes: u64, evaluation: UsedEvaluation) -> Result<SiteEngine> {
    check_table_fits(table_bytes, 0)?;
    SiteEngine::new(rules, table_bytes, evaluation.evaluation, machine::lower_thread_priority)
        .map_err(|error| CliError::SearchTable { bytes: table_bytes, error })
}

/// Shuts the server down at the first signal, and ends the process at the second.
fn stop_at_signals(stop: ServerStop) -> Result<()> {
    let stopping = Arc::new(AtomicBool::new(false));
    for signal in signals::stop_signals() {
        // In this order, so that only the second signal finds the flag raised.
        let exit = i32::from(Exit::SecondSignal.code());
        flag::register_conditional_shutdown(signal, exit, Arc::clone(&stopping)).map_err(CliError::Signals)?;
        flag::register(signal, Arc::clone(&stopping)).map_err(CliError::Signals)?;
    }
    let mut signals = Signals::new(signals::stop_signals()).map_err(CliError::Signals)?;
    signals::thread("signals", move || {
        if signals.forever().next().is_some() {
            say("stop requested; finishing the requests under way; Ctrl-C again stops immediately (safe)");
            stop.stop();
        }
    })
}
