//! `awari book expand`: makes and expands books.

use super::databases::DirectoryDatabases;
use super::path;
use super::progress::ProgressLines;
use crate::args::{BookExpandArgs, BookSide, BookStrategy};
use crate::error::Result;
use crate::quantity::{grouped, plural};
use crate::signals;
use crate::terminal::say;
use book::{
    AssessmentLimits, AwariGame, Book, BookBuilder, BookEngine, BookFile, BookSettings, BookSides, BuildError, DropOut,
    Strategy, drop_out_depths, engine_version, stones,
};
use disk::{RealDisk, clock};
use game::Board;
use game::notation::PositionText;
use pipeline::Exit;
use search::SearchStop;
use std::sync::atomic::Ordering;

/// The number of positions that a search visits if nothing else is asked.
const NODES: u64 = 20_000;

pub(crate) fn run(args: &BookExpandArgs) -> Result<Exit> {
    let DirectoryDatabases { scores: databases, rules, opening } =
        DirectoryDatabases::open(&args.file, &args.databases)?;
    let roots = args.root.iter().map(|text| Ok(text.parse::<PositionText>()?.board()));
    let roots = roots.collect::<Result<Vec<Board>>>()?;
    let settings = settings(args);
    let limits = settings.limits.to_string();
    let version = engine_version(&rules).map_err(BuildError::Memory)?;
    let engine = BookEngine { version, limits, databases: databases.text() };
    let file = BookFile::create(&RealDisk::default(), &path(&args.file), &rules, &engine)?;
    if !file.has_settings(&settings.text())? {
        // A manifest refuses to go on with a book of several settings: its digests would depend on how it was made.
        file.set_settings(None)?;
    }
    let stop = signals::stop_flag()?;
    let search_stop = SearchStop::new();
    let mut builder = BookBuilder::new(file, roots.first().unwrap_or(&opening), &settings, &databases, &search_stop)?;
    builder.add_roots(&roots)?;
    if args.plies > 0 {
        let graph = builder.book().graph();
        let first = AwariGame::board(graph.node(builder.book().roots()[0]).key);
        let begun = if roots.is_empty() { vec![first] } else { roots };
        let openings = begun.iter().flat_map(|root| AwariGame::new(rules).openings(root, args.plies));
        builder.add_roots(&openings.collect::<Vec<Board>>())?;
    }
    let closed = builder.look_up()?;
    databases.failure()?;
    if closed > 0 {
        say(format_args!("{} found in databases that the book did not have", plural(closed as u64, "position")));
    }
    let mut lines = ProgressLines::new();
    let exit = loop {
        if builder.book().graph().len() >= args.positions as usize {
            break Exit::Done;
        }
        if stop.load(Ordering::Relaxed) {
            break Exit::Stopped;
        }
        let is_expanded = builder.expand()?;
        databases.failure()?;
        if !is_expanded {
            say("nothing is left to expand");
            break Exit::Done;
        }
        lines.show(|| line(builder.book()));
    };
    builder.store_values()?;
    say(line(builder.book()));
    Ok(exit)
}

/// Returns the settings of the command line.
fn settings(args: &BookExpandArgs) -> BookSettings {
    let strategy = match args.strategy {
        BookStrategy::DropOut => {
            let forced = args.forced.map(|stones| stones * 100);
            Strategy::DropOut(DropOut { omega: args.omega, forced, solves: false })
        }
        BookStrategy::BestFirst => Strategy::BestFirst,
        BookStrategy::BreadthFirst => Strategy::BreadthFirst,
        BookStrategy::Conspiracy => Strategy::Conspiracy,
        BookStrategy::Proof => Strategy::Proof,
    };
    let sides = match args.sides {
        BookSide::First => BookSides::First,
        BookSide::Second => BookSides::Second,
        BookSide::Both => BookSides::Both,
    };
    let limits = match args.depth {
        Some(depth) => AssessmentLimits::Depth(depth),
        None => AssessmentLimits::Nodes(args.nodes.unwrap_or(NODES)),
    };
    let threads = if args.threads == 0 { clock::cores() } else { usize::from(args.threads) };
    BookSettings { strategy, sides, limits, look_ahead: args.look_ahead.into(), threads }
}

/// Describes what a book knows of its root.
pub(super) fn line(book: &Book<AwariGame>) -> String {
    let graph = book.graph();
    let totals = book.totals();
    let root = book.roots()[0];
    let value = graph.value(root);
    let text = format!(
        "{} positions, {} expanded, {:.1} % closed; ",
        grouped(totals.positions as u64),
        grouped(totals.interior as u64),
        totals.closed as f64 * 100.0 / totals.positions.max(1) as f64
    );
    let root_of =
        if book.roots().len() > 1 { format!("the first of {} roots", book.roots().len()) } else { "root".to_owned() };
    if value.is_exact() {
        return format!("{text}{root_of} {}, proved", stones(value.low));
    }
    let side = |is_book| {
        let depths = drop_out_depths(graph, root, is_book);
        depths.map(|depth| depth.map_or_else(|| "never".to_owned(), |depth| depth.to_string())).join("/")
    };
    format!(
        "{text}{root_of} {} in {}..{}; left at ply {} by the second player, {} by the first, for 0/0.5/1 stones",
        stones(value.estimate),
        stones(value.low),
        stones(value.high),
        side(true),
        side(false)
    )
}
