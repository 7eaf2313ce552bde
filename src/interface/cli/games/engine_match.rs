//! `awari match`: plays two engines against each other, and says which one is stronger.
//!
//! Workers play pairs of games, each with its own processes; the main thread records the games, counts the
//! results, prints them, and decides when the match ends.

mod game;
mod guard;
mod match_file;
mod openings;
mod process;
mod statistics;

pub(crate) use guard::run_if_asked as run_guard_if_asked;

use crate::args::{MatchArgs, Sprt};
use crate::error::{CliError, Result};
use crate::games::play::RandomChoices;
use crate::output::print_text;
use crate::signals;
use crate::text::quantity::plural;
use crate::text::screen::Width;
use crate::text::shell::command_line;
use crate::text::table::TextTable;
use crate::text::terminal::say;
use ::game::notation::Side;
use ::game::play::Game;
use ::game::transcript::side_name;
use disk::{Digest, Disk, RealDisk, threads};
use game::{FinishedGame, MoveLimits, lost, play};
use match_file::{GamePlace, MatchFile, MatchIdentity};
use pipeline::Exit;
use process::{EngineFault, EngineProcess, NamedRules, NoReply, Patience};
use statistics::{EloEstimate, PairCounts, SprtState};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// The longest file of openings.
const OPENINGS_BYTES_MAX: u64 = 16 << 20;

/// The time within which a signal that ends an engine reaches the match too, if it is sent to both.
const SIGNAL_TIME: Duration = Duration::from_millis(20);

/// The longest name of an engine, in characters.
const NAME_MAX: usize = 40;

pub(crate) fn run(args: &MatchArgs) -> Result<Exit> {
    // Processes of an engine whose guard was killed become children of the match, and end with it.
    let _ = disk::process::guard_descendants();
    let ended = run_match(args);
    disk::process::kill_descendants();
    ended
}

fn run_match(args: &MatchArgs) -> Result<Exit> {
    let [first, second] = &args.engines[..] else { return Err(CliError::TwoEngines { found: args.engines.len() }) };
    if args.names.len() > 2 {
        return Err(CliError::TwoEngines { found: args.names.len() });
    }
    let disk = RealDisk::default();
    let commands = [words(first)?, words(second)?];
    let limits = [limits(args, 0)?, limits(args, 1)?];
    let openings = openings(&disk, args)?;
    let out = args.out.as_ref().map(|path| Ok::<_, CliError>((disk.records(path)?, path))).transpose()?;
    // A match that is complete needs no room for more games.
    let room = match &out {
        Some((file, _)) if file.is_empty() => Ok(file.check_room()?),
        Some((file, _)) => file.check_room(),
        None => Ok(()),
    };
    let stop = signals::quiet_stop_flag()?;
    threads::room_for_threads(3 * args.concurrency).map_err(CliError::Thread)?;
    // Set when the test is decided, or a game cannot be recorded.
    let is_over = AtomicBool::new(false);
    let patience = Patience { margin: args.margin, stall: args.stall, stop: &stop, is_over: &is_over };
    let Some(engines) = engine_names(args, &commands, patience)? else { return Ok(Exit::Stopped) };
    let pairs = args.games.map_or(openings.len(), |games| games.div_ceil(2) as usize);
    let mut score = OngoingScore::new(args.sprt);
    let mut done = HashSet::new();
    let tags = record(args, &commands, &limits, &engines, &openings, pairs);
    let names = engines.map(|engine| engine.shown);
    let mut file = match out {
        Some((file, path)) => {
            let identity = MatchIdentity { rules: args.rules, names: names.clone(), pairs, tags };
            let resumed = MatchFile::resume(file, path, identity, |place, game| {
                let is_new = done.insert(place);
                if is_new {
                    score.add(place, game);
                }
                is_new
            })?;
            Some(resumed)
        }
        None => None,
    };
    if let (Some(path), false) = (&args.out, done.is_empty()) {
        say(format_args!("{}: the match goes on after {}", path.display(), plural(done.len() as u64, "game")));
    }
    if done.len() < 2 * pairs && !score.is_decided() {
        room?;
    }
    let openings = shuffled(openings, args.seed);
    let work = MatchWork {
        openings: &openings,
        commands: &commands,
        limits,
        pairs,
        next: AtomicUsize::new(0),
        done: &done,
        patience,
    };
    is_over.store(score.is_decided(), Ordering::SeqCst);
    let mut count = done.len();
    // The table is printed also after an error.
    let played = work.play(args.concurrency, |results| {
        for (place, game) in results {
            // Games that end after the decision would change its result.
            if is_over.load(Ordering::SeqCst) {
                continue;
            }
            if let Some(file) = &mut file {
                file.append(place, &game).inspect_err(|_| is_over.store(true, Ordering::SeqCst))?;
            }
            say(game_line(place, &game, &names));
            count += 1;
            score.add(place, game);
            if score.is_decided() {
                is_over.store(true, Ordering::SeqCst);
            }
        }
        Ok(())
    });
    let is_decided = score.is_decided();
    print_text(&score.end().text(&names, args.sprt))?;
    played?;
    if count == 2 * pairs || is_decided {
        return Ok(Exit::Done);
    }
    if args.out.is_some() {
        say(format_args!("stopped after {count} of {} games; to go on, repeat the command", 2 * pairs));
    }
    Ok(Exit::Stopped)
}

/// Returns the tags that record a match: all that its games depend on, and its end.
fn record(
    args: &MatchArgs,
    commands: &[Vec<String>; 2],
    limits: &[MoveLimits; 2],
    engines: &[EngineName; 2],
    openings: &[Game],
    pairs: usize,
) -> Vec<(&'static str, String)> {
    let lines: String = openings.iter().map(|opening| game::position(opening) + "\n").collect();
    let command = |at: usize| without_controls(&command_line(&commands[at]));
    let mut tags = vec![
        ("Engine1", command(0)),
        ("Engine2", command(1)),
        ("Program1", engines[0].program.clone()),
        ("Program2", engines[1].program.clone()),
        ("Name1", engines[0].shown.clone()),
        ("Name2", engines[1].shown.clone()),
        ("Limits1", limits[0].text()),
        ("Limits2", limits[1].text()),
        ("Patience", format!("margin {:?}, stall {:?}", args.margin, args.stall)),
        ("Openings", format!("{}, {}", openings.len(), Digest::of(lines.as_bytes()))),
        ("Seed", args.seed.to_string()),
        ("Games", (2 * pairs).to_string()),
    ];
    let sprt = args.sprt.map_or_else(|| "none".to_owned(), |Sprt { elo0, elo1 }| format!("{elo0},{elo1}"));
    tags.push(("Test", sprt));
    tags
}

/// Replaces control characters, line ends among them.
fn without_controls(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns the limits of an engine: of two values of an option the second one is for the second engine.
fn limits(args: &MatchArgs, engine: usize) -> Result<MoveLimits> {
    fn of<T: Copy>(values: &[T], engine: usize) -> Result<Option<T>> {
        if values.len() > 2 {
            return Err(CliError::TwoEngines { found: values.len() });
        }
        Ok(values.get(engine).or(values.first()).copied())
    }
    Ok(MoveLimits {
        clock: of(&args.time, engine)?,
        move_time: of(&args.movetime, engine)?,
        nodes: of(&args.nodes, engine)?,
        depth: of(&args.depth, engine)?,
    })
}

/// Returns the openings of a match.
fn openings(disk: &RealDisk, args: &MatchArgs) -> Result<Vec<Game>> {
    let Some(path) = &args.openings else { return Ok(openings::all(args.rules, args.plies)) };
    let text = disk.read_given(path, OPENINGS_BYTES_MAX)?;
    let found = openings::parse(args.rules, &String::from_utf8_lossy(&text));
    let refused = |line, what| CliError::Opening { path: path.clone(), line, what };
    let found = found.map_err(|bad| refused(bad.line, bad.what))?;
    if found.is_empty() {
        return Err(refused(1, "there is no opening".to_owned()));
    }
    Ok(found)
}

/// Brings openings into a random order.
fn shuffled(mut openings: Vec<Game>, seed: u64) -> Vec<Game> {
    let mut chance = RandomChoices(seed);
    for end in (1..openings.len()).rev() {
        let at = (chance.next() * (end + 1) as f64) as usize;
        openings.swap(at.min(end), end);
    }
    openings
}

/// Splits a command into words, as a shell does.
fn words(command: &str) -> Result<Vec<String>> {
    let words = shlex::split(command).filter(|words| !words.is_empty());
    words.ok_or_else(|| CliError::EngineCommand { command: command.to_owned() })
}

/// The names of an engine.
struct EngineName {
    /// That of the command line, or that which it gives itself.
    shown: String,
    /// The name that it gives itself, with its version.
    program: String,
}

/// Starts each engine once, prints what it remarks, and returns the names of the two; `None` if the match is to end.
fn engine_names(
    args: &MatchArgs,
    commands: &[Vec<String>; 2],
    patience: Patience<'_>,
) -> Result<Option<[EngineName; 2]>> {
    let mut found = Vec::new();
    for (at, words) in commands.iter().enumerate() {
        let started = EngineProcess::start(words, args.rules, patience).and_then(|mut engine| {
            // Allocates its memory.
            engine.begin_game(patience)?;
            Ok(engine)
        });
        let engine = match started {
            Ok(engine) => engine,
            Err(NoReply::Stopped) => return Ok(None),
            Err(NoReply::Fault(fault)) => {
                let command = args.engines[at].clone();
                return Err(CliError::Engine { command, what: fault.to_string() });
            }
        };
        match &engine.rules {
            NamedRules::OfMatch => {}
            NamedRules::Unknown => say(format_args!(
                "the engine `{}` does not say by which rules it plays; the match is by {}",
                args.engines[at], args.rules.name
            )),
            NamedRules::Others(found) => {
                let (command, found) = (args.engines[at].clone(), without_controls(found));
                return Err(CliError::EngineRules { command, found, wanted: args.rules.name });
            }
        }
        for remark in &engine.remarks {
            say(format_args!("the engine `{}` says: {remark}", args.engines[at]));
        }
        let program = engine.name.clone().unwrap_or_else(|| format!("engine {}", at + 1));
        let shown = args.names.get(at).unwrap_or(&program);
        let [shown, program] = [shown, &program].map(|name| without_controls(name).chars().take(NAME_MAX).collect());
        found.push(EngineName { shown, program });
    }
    let Ok([mut first, mut second]) = <[EngineName; 2]>::try_from(found) else { return Ok(None) };
    if first.shown == second.shown {
        // Two of one program differ by their options.
        for (at, engine) in [&mut first, &mut second].into_iter().enumerate().skip(args.names.len()) {
            engine.shown = without_controls(&command_name(&commands[at])).chars().take(NAME_MAX).collect();
        }
    }
    if first.shown == second.shown {
        first.shown += " (1)";
        second.shown += " (2)";
    }
    Ok(Some([first, second]))
}

/// Returns a command as a name: the program without its folder, and its options.
fn command_name(words: &[String]) -> String {
    let program = words.first().map(Path::new).and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let options = words.iter().skip(1).map(String::as_str);
    std::iter::once(&*program).chain(options).collect::<Vec<_>>().join(" ")
}

/// Returns the engines of South and North in the first or second game of a pair.
fn seats(number: usize) -> [usize; 2] {
    if number.is_multiple_of(2) { [0, 1] } else { [1, 0] }
}

/// The pairs to play.
struct MatchWork<'a> {
    openings: &'a [Game],
    commands: &'a [Vec<String>; 2],
    limits: [MoveLimits; 2],
    pairs: usize,
    /// The next pair.
    next: AtomicUsize,
    /// The games that were played before.
    done: &'a HashSet<GamePlace>,
    patience: Patience<'a>,
}

/// A game that ended, and its place.
type PlacedGame = (GamePlace, FinishedGame);

impl MatchWork<'_> {
    /// Plays some games at a time, while the results are taken.
    fn play(&self, concurrency: usize, take: impl FnOnce(Receiver<PlacedGame>) -> Result<()>) -> Result<()> {
        let (sender, results) = channel();
        thread::scope(|scope| {
            for worker in 0..concurrency.min(self.pairs) {
                let sender = sender.clone();
                let spawned = thread::Builder::new().name(format!("games-{worker}"));
                let begun = threads::spawn_scoped(scope, spawned, move || self.play_pairs(&sender));
                if let Err(error) = begun {
                    self.patience.is_over.store(true, Ordering::SeqCst);
                    return Err(CliError::Thread(error));
                }
            }
            drop(sender);
            take(results)
        })
    }

    /// Plays pairs until none is left.
    fn play_pairs(&self, results: &Sender<PlacedGame>) {
        let mut engines: [Option<EngineProcess>; 2] = [None, None];
        while !self.patience.is_at_end() {
            let pair = self.next.fetch_add(1, Ordering::SeqCst);
            if pair >= self.pairs {
                break;
            }
            let opening = &self.openings[pair % self.openings.len()];
            for place in [0, 1].map(|number| GamePlace { pair, number }) {
                if self.done.contains(&place) {
                    continue;
                }
                let played = self.play_game(opening, seats(place.number), &mut engines, self.patience);
                if let Some((_, EngineFault::Crash(_))) = played.as_ref().and_then(|game| game.fault.as_ref()) {
                    thread::sleep(SIGNAL_TIME);
                }
                // Engines that a signal ended together with the match have not lost.
                let played = played.filter(|game| game.fault.is_none() || !self.patience.is_at_end());
                if played.is_none_or(|game| results.send((place, game)).is_err()) {
                    return;
                }
            }
        }
    }

    /// Plays a game, with new processes where there are none. Returns `None` if the match is to end.
    fn play_game(
        &self,
        opening: &Game,
        seats: [usize; 2],
        engines: &mut [Option<EngineProcess>; 2],
        patience: Patience<'_>,
    ) -> Option<FinishedGame> {
        for (seat, &at) in seats.iter().enumerate() {
            if engines[at].is_some() {
                continue;
            }
            match EngineProcess::start(&self.commands[at], *opening.rules(), patience) {
                Ok(engine) => engines[at] = Some(engine),
                Err(NoReply::Stopped) => return None,
                Err(NoReply::Fault(fault)) => {
                    let side = if seat == 0 { Side::South } else { Side::North };
                    return Some(lost(opening.clone(), side, fault));
                }
            }
        }
        let [Some(first), Some(second)] = engines else { return None };
        let mut seated = if seats[0] == 0 { [first, second] } else { [second, first] };
        let limits = seats.map(|at| self.limits[at]);
        let finished = play(opening, &mut seated, &limits, patience);
        // An engine that crashed or stalled is not asked again.
        if let Some((side, EngineFault::Crash(_) | EngineFault::Stall)) = finished.as_ref()?.fault {
            engines[seats[usize::from(side == Side::North)]] = None;
        }
        finished
    }
}

/// What an engine achieved.
#[derive(Clone, Debug, Default)]
struct EngineRecord {
    won: u32,
    drawn: u32,
    lost: u32,
    /// Stones more than the other engine.
    lead: i64,
    /// The number of games lost by each kind of fault.
    faults: BTreeMap<&'static str, u32>,
}

/// The score of a match that goes on.
///
/// A sequential test counts pairs in the order of their numbers, whatever the order in which they end: so the
/// decision does not depend on the number of games at a time, or on interruptions.
struct OngoingScore {
    sprt: Option<Sprt>,
    score: MatchScore,
    /// The pairs that are not counted yet.
    waiting: BTreeMap<usize, [Option<FinishedGame>; 2]>,
    /// The next pair to count.
    next: usize,
}

impl OngoingScore {
    fn new(sprt: Option<Sprt>) -> OngoingScore {
        OngoingScore { sprt, score: MatchScore::default(), waiting: BTreeMap::new(), next: 0 }
    }

    fn add(&mut self, GamePlace { pair, number }: GamePlace, game: FinishedGame) {
        self.waiting.entry(pair).or_default()[number] = Some(game);
        while !self.is_decided()
            && let Some([Some(_), Some(_)]) = self.waiting.get(&self.next)
        {
            self.count(self.next);
            self.next += 1;
        }
    }

    /// Counts a pair if both of its games have ended.
    fn count(&mut self, pair: usize) {
        if let Some([Some(first), Some(second)]) = self.waiting.remove(&pair) {
            self.score.add(&[first, second]);
        }
    }

    fn is_decided(&self) -> bool {
        self.sprt.is_some_and(|sprt| sprt.state(&self.score.counts) != SprtState::Undecided)
    }

    /// Returns the score at the end. Without a test, pairs behind one that has not ended count too.
    fn end(mut self) -> MatchScore {
        if self.sprt.is_none() {
            let waiting: Vec<usize> = self.waiting.keys().copied().collect();
            waiting.into_iter().for_each(|pair| self.count(pair));
        }
        self.score
    }
}

/// The results of the counted pairs of a match.
#[derive(Default)]
struct MatchScore {
    engines: [EngineRecord; 2],
    counts: PairCounts,
}

impl MatchScore {
    fn add(&mut self, games: &[FinishedGame; 2]) {
        let mut half_points = 0;
        for (number, game) in games.iter().enumerate() {
            let [south, north] = seats(number);
            let winner = game.winner.map(|side| if side == Side::South { south } else { north });
            for (at, record) in self.engines.iter_mut().enumerate() {
                match winner {
                    None => record.drawn += 1,
                    Some(winner) if winner == at => record.won += 1,
                    Some(_) => record.lost += 1,
                }
                record.lead += i64::from(game.lead) * if at == south { 1 } else { -1 };
            }
            half_points += winner.map_or(1, |winner| if winner == 0 { 2 } else { 0 });
            if let Some((side, fault)) = &game.fault {
                let kind = match fault {
                    EngineFault::Crash(_) => "by a crash",
                    EngineFault::Stall => "by a stall",
                    EngineFault::Illegal(_) => "by an illegal move",
                    EngineFault::Time(_) => "on time",
                };
                let loser = if *side == Side::South { south } else { north };
                *self.engines[loser].faults.entry(kind).or_default() += 1;
            }
        }
        self.counts.add(half_points);
    }

    /// Formats the table and what it means.
    fn text(&self, names: &[String; 2], sprt: Option<Sprt>) -> String {
        let Some(elo) = self.counts.elo() else { return "no pair of games was finished\n".to_owned() };
        let mut table =
            TextTable::new(&["engine", "games", "won", "drawn", "lost", "points", "score", "stones a game"]);
        table = table.numbers(1..8);
        let games = 2 * self.counts.pairs();
        for (name, record) in names.iter().zip(&self.engines) {
            let points = f64::from(record.won) + f64::from(record.drawn) / 2.0;
            table.add_row([
                name.clone(),
                games.to_string(),
                record.won.to_string(),
                record.drawn.to_string(),
                record.lost.to_string(),
                format!("{points:.1}"),
                format!("{:.1} %", 100.0 * points / f64::from(games)),
                format!("{:+.2}", record.lead as f64 / f64::from(games)),
            ]);
        }
        let mut text = format!("{}\n", table.fit(Width::stdout()));
        let EloEstimate { elo, low, high } = elo;
        let _ = if elo.is_finite() {
            // Not -0.0.
            writeln!(text, "{}: Elo {:+.1} ({:+.1} to {:+.1} with 95 %)", names[0], elo + 0.0, low + 0.0, high + 0.0)
        } else {
            let all = if elo > 0.0 { "won" } else { "lost" };
            writeln!(text, "{}: no Elo, since it {all} all games", names[0])
        };
        if let Some(sprt) = sprt {
            let Sprt { elo0, elo1 } = sprt;
            let bound = Sprt::bound();
            let state = match sprt.state(&self.counts) {
                SprtState::Undecided => "undecided".to_owned(),
                SprtState::First => format!("decided for Elo {elo0}"),
                SprtState::Second => format!("decided for Elo {elo1}"),
            };
            let ratio = self.counts.log_likelihood_ratio(sprt);
            let _ = writeln!(
                text,
                "test of Elo {elo0} against {elo1}: {state}, log-likelihood ratio {ratio:.2} (-{bound:.2} to {bound:.2})"
            );
        }
        for (name, record) in names.iter().zip(&self.engines) {
            for (kind, count) in &record.faults {
                let games = if *count == 1 { "game" } else { "games" };
                let _ = writeln!(text, "{name}: {count} {games} lost {kind}");
            }
        }
        text
    }
}

/// Formats the result of a game.
fn result(game: &FinishedGame) -> &'static str {
    match game.winner {
        Some(Side::South) => "1-0",
        Some(Side::North) => "0-1",
        None => "1/2-1/2",
    }
}

/// Formats the result of a game for people.
fn game_line(GamePlace { pair, number }: GamePlace, game: &FinishedGame, names: &[String; 2]) -> String {
    let [south, north] = seats(number).map(|at| &names[at]);
    let who = match &game.fault {
        Some((side, fault)) => {
            let name = if *side == Side::South { south } else { north };
            format!("{name}, {}, {fault}", side_name(*side))
        }
        None => game.reason.clone(),
    };
    let number = 2 * pair + number + 1;
    format!("game {number}: {south} - {north} {}, {} moves: {who}", result(game), game.game.turns().len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::game::Rules;

    /// The same pairs are counted, and the same decision is made, in whatever order games end.
    #[test]
    fn a_test_does_not_depend_on_the_order_of_games() {
        let game = |GamePlace { pair, number }: GamePlace| {
            // The first engine loses a game of every third pair.
            let loser = if pair.is_multiple_of(3) && number == 0 { 0 } else { 1 };
            let side = if seats(number)[0] == loser { Side::South } else { Side::North };
            lost(Game::new(Rules::AWARI), side, EngineFault::Stall)
        };
        let places: Vec<GamePlace> = (0..40).flat_map(|pair| [0, 1].map(|number| GamePlace { pair, number })).collect();
        let names = ["one".to_owned(), "two".to_owned()];
        let sprt = Some(Sprt { elo0: 0.0, elo1: 200.0 });
        let score = |places: &[GamePlace], sprt| {
            let mut score = OngoingScore::new(sprt);
            places.iter().for_each(|&place| score.add(place, game(place)));
            (score.is_decided(), score.end().text(&names, sprt))
        };
        let in_order = score(&places, sprt);
        assert!(in_order.0 && !in_order.1.contains(" 80 "), "{}", in_order.1);
        let mut turned = places.clone();
        turned.reverse();
        let mut apart = places.clone();
        apart.sort_by_key(|place| (place.number, place.pair % 4));
        for order in [&turned, &apart] {
            assert_eq!(score(order, sprt), in_order);
            assert_eq!(score(order, None), score(&places, None));
        }
        // The first pair has not ended: a test counts none, a table without a test counts the others.
        assert_eq!(score(&places[1..], sprt).1, "no pair of games was finished\n");
        assert!(score(&places[1..], None).1.contains(" 78 "));
    }
}
