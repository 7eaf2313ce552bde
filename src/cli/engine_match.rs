//! `awari match`: plays two engines against each other, and says which one is stronger.
//!
//! Workers play pairs of games, each with its own processes; the main thread counts the results, prints them, and decides
//! when the match ends.

mod game;
mod openings;
mod process;
mod statistics;

use crate::args::{MatchArgs, Sprt};
use crate::error::{CliError, Result};
use crate::output::print_text;
use crate::play::RandomChoices;
use crate::screen::Width;
use crate::signals;
use crate::table::TextTable;
use crate::terminal::say;
use ::game::notation::Side;
use ::game::play::Game;
use ::game::transcript::{Transcript, side_name};
use disk::{Disk, RealDisk, threads};
use game::{FinishedGame, MoveLimits, lost, play};
use pipeline::Exit;
use process::{EngineFault, EngineProcess, NoReply, Patience};
use statistics::{EloEstimate, PairCounts, SprtState};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// The longest file of openings.
const OPENINGS_BYTES_MAX: u64 = 16 << 20;

/// The longest name of an engine, in characters.
const NAME_MAX: usize = 40;

pub(crate) fn run(args: &MatchArgs) -> Result<Exit> {
    let [first, second] = &args.engines[..] else { return Err(CliError::TwoEngines { found: args.engines.len() }) };
    if args.names.len() > 2 {
        return Err(CliError::TwoEngines { found: args.names.len() });
    }
    let disk = RealDisk::default();
    let openings = shuffled(openings(&disk, args)?, args.seed);
    let commands = [words(first)?, words(second)?];
    let stop = signals::quiet_stop_flag()?;
    threads::room_for_threads(3 * args.concurrency).map_err(CliError::Thread)?;
    let patience = Patience { margin: args.margin, stall: args.stall, stop: &stop };
    let Some(names) = names(args, &commands, patience)? else { return Ok(Exit::Stopped) };
    let pairs = args.games.map_or(openings.len(), |games| games.div_ceil(2) as usize);
    let limits = [limits(args, 0)?, limits(args, 1)?];
    // Set when the test is decided.
    let decided = AtomicBool::new(false);
    let work = MatchWork {
        openings: &openings,
        commands: &commands,
        limits,
        pairs,
        next: AtomicUsize::new(0),
        decided: &decided,
    };
    let mut score = MatchScore::default();
    let (sender, results) = channel();
    thread::scope(|scope| -> Result<()> {
        for worker in 0..args.concurrency.min(pairs) {
            let (sender, work) = (sender.clone(), &work);
            let spawned = thread::Builder::new().name(format!("games-{worker}"));
            let begun = threads::spawn_scoped(scope, spawned, move || work.play_pairs(patience, &sender));
            begun.map_err(CliError::Thread).inspect_err(|_| decided.store(true, Ordering::SeqCst))?;
        }
        drop(sender);
        for FinishedPair { pair, games } in results {
            // Pairs that were under way when the test was decided would change its result.
            if decided.load(Ordering::SeqCst) {
                continue;
            }
            for (number, one) in games.iter().enumerate() {
                say(game_line(2 * pair + number + 1, seats(number), one, &names));
            }
            score.add(pair, games);
            if args.sprt.is_some_and(|sprt| sprt.state(&score.counts) != SprtState::Undecided) {
                decided.store(true, Ordering::SeqCst);
            }
        }
        Ok(())
    })?;
    if let Some(path) = &args.out {
        disk.deliver(path, score.transcripts(&names).as_bytes())?;
    }
    print_text(&score.text(&names, args.sprt))?;
    Ok(if stop.load(Ordering::SeqCst) { Exit::Stopped } else { Exit::Done })
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

/// Starts each engine once, and returns the names of the two; `None` if the match is to end.
fn names(args: &MatchArgs, commands: &[Vec<String>; 2], patience: Patience<'_>) -> Result<Option<[String; 2]>> {
    let mut names = [String::new(), String::new()];
    for (at, words) in commands.iter().enumerate() {
        let given = match EngineProcess::start(words, patience) {
            Ok((_, given)) => given,
            Err(NoReply::Stopped) => return Ok(None),
            Err(NoReply::Fault(fault)) => {
                let command = args.engines[at].clone();
                return Err(CliError::Engine { command, what: fault.to_string() });
            }
        };
        let name = args.names.get(at).cloned().or(given).unwrap_or_else(|| format!("engine {}", at + 1));
        names[at] = name.chars().map(|c| if c.is_control() { ' ' } else { c }).take(NAME_MAX).collect();
    }
    if names[0] == names[1] {
        names = [format!("{} (1)", names[0]), format!("{} (2)", names[1])];
    }
    Ok(Some(names))
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
    decided: &'a AtomicBool,
}

/// A pair of games with exchanged sides.
struct FinishedPair {
    pair: usize,
    games: [FinishedGame; 2],
}

impl MatchWork<'_> {
    /// Plays pairs until none is left.
    fn play_pairs(&self, patience: Patience<'_>, results: &Sender<FinishedPair>) {
        let mut engines: [Option<EngineProcess>; 2] = [None, None];
        while !self.decided.load(Ordering::SeqCst) {
            let pair = self.next.fetch_add(1, Ordering::SeqCst);
            if pair >= self.pairs {
                break;
            }
            let opening = &self.openings[pair % self.openings.len()];
            let mut play = |number| self.play_game(opening, seats(number), &mut engines, patience);
            let (Some(first), Some(second)) = (play(0), play(1)) else { break };
            if results.send(FinishedPair { pair, games: [first, second] }).is_err() {
                break;
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
            match EngineProcess::start(&self.commands[at], patience) {
                Ok((engine, _)) => engines[at] = Some(engine),
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

/// The results of a match so far.
#[derive(Default)]
struct MatchScore {
    engines: [EngineRecord; 2],
    counts: PairCounts,
    games: BTreeMap<usize, [FinishedGame; 2]>,
}

impl MatchScore {
    fn add(&mut self, pair: usize, games: [FinishedGame; 2]) {
        let mut half_points = 0;
        for (number, one) in games.iter().enumerate() {
            let [south, north] = seats(number);
            let winner = one.winner.map(|side| if side == Side::South { south } else { north });
            for (at, record) in self.engines.iter_mut().enumerate() {
                match winner {
                    None => record.drawn += 1,
                    Some(winner) if winner == at => record.won += 1,
                    Some(_) => record.lost += 1,
                }
                record.lead += i64::from(one.lead) * if at == south { 1 } else { -1 };
            }
            half_points += winner.map_or(1, |winner| if winner == 0 { 2 } else { 0 });
            if let Some((side, fault)) = &one.fault {
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
        self.games.insert(pair, games);
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
        let _ = match elo.is_finite() {
            // Not -0.0.
            true => writeln!(
                text,
                "{}: Elo {:+.1} ({:+.1} to {:+.1} with 95 %)",
                names[0],
                elo + 0.0,
                low + 0.0,
                high + 0.0
            ),
            false => {
                let all = if elo > 0.0 { "won" } else { "lost" };
                writeln!(text, "{}: no Elo, since it {all} all games", names[0])
            }
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

    /// Formats the games in the Oware Game Notation.
    fn transcripts(&self, names: &[String; 2]) -> String {
        let mut text = String::new();
        for (pair, games) in &self.games {
            for (number, one) in games.iter().enumerate() {
                let [south, north] = seats(number).map(|at| names[at].clone());
                let tag = |name: &str, value: String| (name.to_owned(), value);
                let tags = vec![
                    tag("Event", "awari match".to_owned()),
                    tag("Round", format!("{}.{}", pair + 1, number + 1)),
                    tag("South", south),
                    tag("North", north),
                    tag("Result", result(one).to_owned()),
                    tag("Termination", one.reason.clone()),
                ];
                let _ = writeln!(text, "{}{}\n", Transcript { tags, game: one.game.clone() }.text(), result(one));
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
fn game_line(number: usize, seats: [usize; 2], game: &FinishedGame, names: &[String; 2]) -> String {
    let [south, north] = seats.map(|at| &names[at]);
    let who = match &game.fault {
        Some((side, fault)) => {
            let name = if *side == Side::South { south } else { north };
            format!("{name}, {}, {fault}", side_name(*side))
        }
        None => game.reason.clone(),
    };
    format!("game {number}: {south} - {north} {}, {} moves: {who}", result(game), game.game.turns().len())
}
