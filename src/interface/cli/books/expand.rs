//! `awari book expand`: makes and expands books.

use super::databases::DirectoryDatabases;
use super::path;
use super::progress::ProgressLines;
use crate::args::{BookExpandArgs, BookSide, BookStrategy};
use crate::error::{CliError, Result};
use crate::signals;
use crate::text::quantity::{grouped, plural};
use crate::text::terminal::say;
use book::{
    AssessmentLimits, AwariGame, Book, BookBuilder, BookEngine, BookFile, BookSettings, BookSides, BuildError, DropOut,
    Strategy, drop_out_depths, engine_version, stones,
};
use disk::{Disk, RealDisk, clock};
use game::notation::PositionText;
use game::play::Game;
use game::transcript::Transcript;
use game::{Board, Rules};
use pipeline::Exit;
use search::SearchStop;
use std::iter;
use std::path::Path;
use std::sync::atomic::Ordering;

/// The longest file of games.
const GAMES_BYTES_MAX: u64 = 32 << 20;

/// The number of positions that a search visits if nothing else is asked.
const NODES: u64 = 20_000;

pub(crate) fn run(args: &BookExpandArgs) -> Result<Exit> {
    let DirectoryDatabases { scores: databases, rules, opening } =
        DirectoryDatabases::open(&args.file, &args.databases)?;
    let roots = args.root.iter().map(|text| Ok(text.parse::<PositionText>()?.board()));
    let roots = roots.collect::<Result<Vec<Board>>>()?;
    let games = args.follow.as_deref().map_or(Ok(Vec::new()), |path| read_games(path, &rules))?;
    let settings = settings(args);
    let limits = settings.limits.to_string();
    let version = engine_version(&rules).map_err(BuildError::Memory)?;
    let engine = BookEngine { version, limits, databases: databases.text() };
    let mut file = BookFile::create(&RealDisk::default(), &path(&args.file), &rules, &engine)?;
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
    let moves_max = args.follow_moves.map_or(usize::MAX, |moves| moves as usize);
    let mut requested = games.iter().flat_map(|game| positions(game).take(moves_max));
    let mut followed = 0u64;
    let mut lines = ProgressLines::new();
    let exit = loop {
        if builder.book().graph().len() >= args.positions as usize {
            break Exit::Done;
        }
        if stop.load(Ordering::Relaxed) {
            break Exit::Stopped;
        }
        match requested.next() {
            Some(board) => followed += u64::from(builder.expand_position(&board)?),
            None if builder.expand()? => {}
            None => {
                say("nothing is left to expand");
                break Exit::Done;
            }
        }
        databases.failure()?;
        lines.show(|| line(builder.book()));
    };
    builder.store_values()?;
    if !games.is_empty() {
        let game_count = plural(games.len() as u64, "game");
        say(format_args!("{} of {game_count} expanded", plural(followed, "position")));
    }
    say(line(builder.book()));
    Ok(exit)
}

fn read_games(path: &Path, rules: &Rules) -> Result<Vec<Game>> {
    let text = RealDisk::default().read_given(path, GAMES_BYTES_MAX)?;
    let refused = |what| CliError::Games { path: path.to_owned(), what };
    // Names of players may have any encoding; moves are ASCII.
    let text = String::from_utf8_lossy(&text);
    let games: Result<Vec<Transcript>, _> = Transcript::games(*rules, &text).collect();
    let games = games.map_err(|error| refused(error.to_string()))?;
    let other = |game: &Transcript| game.variant().filter(|variant| variant != rules);
    if let Some((at, variant)) = games.iter().enumerate().find_map(|(at, game)| Some((at, other(game)?))) {
        let (number, of_game, of_book) = (at + 1, variant.name, rules.name);
        return Err(refused(format!("game {number} has the rules {of_game}, and the book those of {of_book}")));
    }
    Ok(games.into_iter().map(|transcript| transcript.game).collect())
}

/// Returns the positions in which the moves of a game were played.
fn positions(game: &Game) -> impl Iterator<Item = Board> {
    let after = game.turns().iter().map(|turn| turn.after);
    iter::once(game.start()).chain(after).map(|situation| situation.board).take(game.turns().len())
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
