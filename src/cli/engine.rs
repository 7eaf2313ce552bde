//! `awari engine`: the UCI dialect of oware programs, on stdin and stdout.
//!
//! The dialect is that of Aualé and its engine Aalina: moves are pits without separators, `A` to `F` for South and `a` to
//! `f` for North, positions have the long form, white is South. No line that is printed is empty, since Aualé takes an empty
//! line for the end of the engine.
//!
//! A thread reads stdin, another one searches, and the main thread executes commands in order. While a search is under way,
//! `stop`, `ponderhit`, `isready` and `uci` are executed at once; all other commands follow the search.

mod go;
mod info;
mod options;
mod own_book;
mod time;

use crate::analysis::{positions_since_capture, searcher};
use crate::args::{EngineArgs, TableArgs};
use crate::databases::{UsedEvaluation, evaluation, oracle};
use crate::error::{CliError, Result};
use crate::lines::{Lines, RejectedLine};
use crate::opening_book::opening_book;
use crate::output::print;
use crate::play::RandomChoices;
use crate::signals;
use disk::{RealDisk, clock, threads};
use game::notation::MoveText;
use game::play::Game;
use game::transcript::{Transcript, TranscriptError};
use game::{HALF_PITS, Pit, Rules};
use go::GoCommand;
use info::SearchInfo;
use options::EngineOptions;
use oracle::{Level, Oracle};
use own_book::EngineBook;
use pipeline::{Budget, Exit};
use search::{SearchReport, SearchRequest, SearchStop, Searcher};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

/// The most commands that follow a search.
const DEFERRED_MAX: usize = 1000;

/// The most events that have not been looked at; a faster program waits.
const EVENTS_MAX: usize = 16;

/// What the main thread reacts to.
enum EngineEvent {
    /// A line of stdin, or the reason for skipping it.
    Line(Result<String, RejectedLine>),
    /// Stdin ended.
    End(Option<io::Error>),
    /// A search ended.
    Found(Result<SearchReport>),
}

pub(crate) fn run(args: &EngineArgs) -> Result<Exit> {
    let oracle = oracle(&RealDisk::default(), args.dir.as_deref())?;
    let evaluation = evaluation(&RealDisk::default(), args.dir.as_deref())?;
    let book = EngineBook::new(opening_book(args.dir.as_deref(), &args.book, oracle.rules())?);
    let (sender, events) = sync_channel(EVENTS_MAX);
    let lines = sender.clone();
    threads::room_for_threads(2).map_err(CliError::Thread)?;
    signals::thread("stdin", move || read(&lines))?;
    let mut engine = EngineSession {
        game: Game::new(*oracle.rules()),
        oracle: Arc::new(oracle),
        searcher: None,
        evaluation,
        options: EngineOptions::new(args),
        book,
        chance: RandomChoices(clock::now_seconds()),
        events: sender,
        running: None,
        deferred: VecDeque::new(),
        has_ended: false,
        has_quit: false,
    };
    // The engine holds a sender, so that there is always a next event.
    while let Ok(event) = events.recv() {
        engine.react(event)?;
        if engine.is_done() {
            break;
        }
    }
    Ok(Exit::Done)
}

/// Sends the lines of stdin.
fn read(events: &SyncSender<EngineEvent>) {
    let mut lines = Lines::new(io::stdin().lock());
    loop {
        let (event, is_last) = match lines.next() {
            Ok(Some(line)) => (EngineEvent::Line(line), false),
            Ok(None) => (EngineEvent::End(None), true),
            Err(error) => (EngineEvent::End(Some(error)), true),
        };
        if events.send(event).is_err() || is_last {
            break;
        }
    }
}

/// The state of the main thread.
struct EngineSession {
    oracle: Arc<Oracle>,
    /// Made at the first search, and again when its size changes or a game begins.
    searcher: Option<Arc<Searcher>>,
    evaluation: UsedEvaluation,
    options: EngineOptions,
    book: EngineBook,
    game: Game,
    chance: RandomChoices,
    events: SyncSender<EngineEvent>,
    running: Option<RunningSearch>,
    /// The commands that follow the search under way.
    deferred: VecDeque<String>,
    /// Whether stdin has ended.
    has_ended: bool,
    has_quit: bool,
}

/// A search under way, or ended before its reply is due.
struct RunningSearch {
    stop: Arc<SearchStop>,
    go: GoCommand,
    /// Whether the reply is due when the search ends, and not later.
    is_due: bool,
    /// Whether the search begins again with the clock running.
    is_hit: bool,
    found: Option<SearchReport>,
}

impl RunningSearch {
    fn stop(&mut self) {
        self.stop.stop();
        self.is_due = true;
        self.is_hit = false;
    }
}

impl EngineSession {
    fn is_done(&self) -> bool {
        self.running.is_none() && (self.has_quit || self.has_ended && self.deferred.is_empty())
    }

    fn react(&mut self, event: EngineEvent) -> Result<()> {
        match event {
            EngineEvent::Line(Ok(line)) => self.receive(line)?,
            EngineEvent::Line(Err(refused)) => print(&format!("info string {refused}\n"))?,
            EngineEvent::End(Some(error)) => return Err(CliError::Stdin(error)),
            EngineEvent::End(None) => self.has_ended = true,
            EngineEvent::Found(found) => {
                if let Some(running) = &mut self.running {
                    running.found = Some(found?);
                }
            }
        }
        self.advance()
    }

    /// Replies if the search has ended, and executes the commands that follow it.
    fn advance(&mut self) -> Result<()> {
        loop {
            // After the end of stdin, and before a deferred `quit`, nothing else ends a search without limits.
            let is_last = self.has_ended || self.quits_at_last();
            if is_last && self.running.as_ref().is_some_and(|running| !running.is_due) {
                self.stop();
            }
            if let Some(running) = &mut self.running {
                if !running.is_due {
                    return Ok(());
                }
                let Some(report) = running.found.take() else { return Ok(()) };
                let Some(RunningSearch { go, is_hit, .. }) = self.running.take() else { return Ok(()) };
                if is_hit {
                    self.search(go.after_hit())?;
                } else {
                    self.reply(&report)?;
                }
                continue;
            }
            if self.has_quit {
                self.deferred.clear();
            }
            let Some(line) = self.deferred.pop_front() else { return Ok(()) };
            self.execute(&line)?;
            self.apply_deferred();
        }
    }

    /// Whether the last deferred command is `quit`.
    fn quits_at_last(&self) -> bool {
        self.deferred.back().is_some_and(|last| last == "quit")
    }

    /// Applies what was said of a deferred search, which now runs, before it began.
    fn apply_deferred(&mut self) {
        let mut is_last = true;
        for at in 0..self.deferred.len() {
            match first_word(&self.deferred[at]) {
                "stop" => return self.stop(),
                "ponderhit" if is_last => self.ponder_hit(),
                "go" => is_last = false,
                _ => {}
            }
        }
    }

    /// Receives a line: executes it, or defers it until the search under way has ended.
    fn receive(&mut self, line: String) -> Result<()> {
        if self.quits_at_last() {
            return Ok(());
        }
        let Some(running) = &self.running else { return self.execute(&line) };
        let follows_deferred_search = self.deferred.iter().any(|line| first_word(line) == "go");
        match first_word(&line) {
            word @ ("stop" | "ponderhit") if follows_deferred_search => {
                if word == "stop" {
                    self.stop();
                }
                // For the deferred search, when it has begun; once is enough.
                if self.deferred.back().is_some_and(|last| first_word(last) != word) {
                    self.deferred.push_back(line);
                }
            }
            "stop" => self.stop(),
            "ponderhit" => self.ponder_hit(),
            "" | "debug" => {}
            "isready" | "uci" | "ugi" => self.execute(&line)?,
            // In a script, `quit` follows the commands before it; else the program that says it wants no reply.
            "quit" if self.deferred.is_empty() || !running.is_due => {
                self.has_quit = true;
                self.stop();
            }
            _ if self.deferred.len() < DEFERRED_MAX => self.deferred.push_back(line),
            _ => print("info string a search is under way and too many commands follow it; this one was ignored\n")?,
        }
        Ok(())
    }

    /// Begins the search under way again with the clock running, if it ponders.
    fn ponder_hit(&mut self) {
        if let Some(running) = self.running.as_mut().filter(|running| running.go.is_ponder && !running.is_due) {
            running.stop();
            running.is_hit = true;
        }
    }

    /// Stops the search under way; its reply is due.
    fn stop(&mut self) {
        if let Some(running) = &mut self.running {
            running.stop();
        }
    }

    /// Executes a command while nothing is searched, or one that does not depend on the search.
    fn execute(&mut self, line: &str) -> Result<()> {
        let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let reply = match command {
            "uci" | "ugi" => format!(
                "id name awari {}\nid author the awari authors\n{}{}{command}ok\n",
                env!("CARGO_PKG_VERSION"),
                self.options.text(),
                remark(self.evaluation.text())
            ),
            "isready" => {
                self.prepare()?;
                "readyok\n".to_owned()
            }
            "ucinewgame" | "uginewgame" => {
                self.game = Game::new(*self.oracle.rules());
                self.book.begin_game();
                // A new table costs nothing until `isready` or its first use.
                self.searcher = None;
                String::new()
            }
            "setoption" => {
                let (hash, book_file) = (self.options.hash, self.options.book_file.clone());
                let mut said = self.options.set(rest).err();
                if self.options.book_file != book_file {
                    let changed = self.book.change(&self.options.book_file, self.oracle.rules());
                    said = changed.map_or_else(Some, |said| said.map(str::to_owned));
                }
                if self.options.hash != hash {
                    self.searcher = None;
                }
                said.map_or_else(String::new, remark)
            }
            "position" => match position(*self.oracle.rules(), rest) {
                Ok(game) => {
                    self.game = game;
                    String::new()
                }
                Err(what) => remark(what),
            },
            "go" => {
                let (go, remarks) = GoCommand::parse(rest);
                print(&remarks.into_iter().map(remark).collect::<String>())?;
                return self.search(go);
            }
            "quit" => {
                self.has_quit = true;
                String::new()
            }
            "stop" | "debug" | "ponderhit" | "" => String::new(),
            other => remark(format!("unknown command {}", other.chars().take(40).collect::<String>())),
        };
        print(&reply)
    }

    /// Begins a search.
    fn search(&mut self, go: GoCommand) -> Result<()> {
        if self.game.outcome().is_some() {
            return print("info string the game is over\nbestmove 0000\n");
        }
        if self.options.own_book && self.options.level == Level::Perfect && go.is_due() {
            let is_known = self.oracle.stones().any(|stones| stones == self.game.now().board.stones());
            let reply = self.book.reply(&self.game, is_known, self.options.ponders);
            print(&reply.text)?;
            if reply.is_move {
                return Ok(());
            }
        }
        let Some(searcher) = self.searcher()? else { return self.reply_without_search() };
        let now = self.game.now();
        let threads = self.options.threads;
        // Levels weigh all moves.
        let lines = if self.options.level == Level::Perfect { self.options.lines } else { HALF_PITS };
        let mut info = SearchInfo::new(now.seats.side, self.options.lines);
        let (before, limits) = (positions_since_capture(&self.game), go.limits(now.seats.side));
        let stop = Arc::new(SearchStop::new());
        let (oracle, stopped, events) = (Arc::clone(&self.oracle), Arc::clone(&stop), self.events.clone());
        threads::room_for_threads(threads + 1).map_err(CliError::Thread)?;
        signals::thread("search", move || {
            let request = SearchRequest { board: now.board, before: &before, limits, lines, threads };
            let search = || {
                let mut failed = None;
                let found = oracle.analyze(&searcher, &request, &stopped, &mut |report| {
                    failed = failed.take().or(print(&info.text(report)).err());
                });
                match (found, failed) {
                    (Ok(report), None) => print(&info.text(&report)).map(|()| report),
                    (_, Some(error)) => Err(error),
                    (Err(error), None) => Err(error.into()),
                }
            };
            // The panic hook has printed the message; the main thread would wait for ever.
            let found = catch_unwind(AssertUnwindSafe(search))
                .unwrap_or_else(|_| std::process::exit(Exit::Internal.code().into()));
            // The engine may have ended.
            let _ = events.send(EngineEvent::Found(found));
        })?;
        let is_due = go.is_due();
        self.running = Some(RunningSearch { stop, go, is_due, is_hit: false, found: None });
        Ok(())
    }

    /// Commits the memory of the table, which would else cost time of the first move.
    fn prepare(&mut self) -> Result<()> {
        if self.running.is_none()
            && self.searcher.is_none()
            && let Some(searcher) = self.searcher()?
        {
            searcher.table().clear();
        }
        Ok(())
    }

    /// Returns the searcher, or `None`, with a remark, if there is no memory for its table.
    fn searcher(&mut self) -> Result<Option<Arc<Searcher>>> {
        if self.searcher.is_none() {
            let table = TableArgs { threads: 1, hash: Budget::new(self.options.hash << 20) };
            match searcher(*self.oracle.rules(), &table, &self.evaluation) {
                Ok(searcher) => self.searcher = Some(Arc::new(searcher)),
                Err(error) => print(&remark(error.to_string()))?,
            }
        }
        Ok(self.searcher.clone())
    }

    /// Replies with the first legal move: the protocol requires one.
    fn reply_without_search(&self) -> Result<()> {
        let side = self.game.now().seats.side;
        let first = self.game.moves().first().map(|(pit, _)| MoveText { pit: *pit, side }.to_string());
        print(&format!("bestmove {}\n", first.as_deref().unwrap_or("0000")))
    }

    fn reply(&mut self, report: &SearchReport) -> Result<()> {
        let side = self.game.now().seats.side;
        let Some(pit) = self.options.level.choose(report, self.chance.next()) else { return print("bestmove 0000\n") };
        let line: &[Pit] = report.moves.iter().find(|one| one.pit == pit).map_or(&[], |one| &one.line);
        let expected = match line.get(1).filter(|_| self.options.ponders) {
            Some(&reply) => format!(" ponder {}", MoveText { pit: reply, side: side.other() }),
            None => String::new(),
        };
        print(&format!("bestmove {}{expected}\n", MoveText { pit, side }))
    }
}

fn first_word(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or("")
}

/// Formats a remark.
fn remark(text: impl AsRef<str>) -> String {
    let text: String = text.as_ref().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("info string {text}\n")
}

/// Parses the game of `startpos moves FfBd` or `fen 4-4-...-S moves FfBd`.
pub(crate) fn position(rules: Rules, text: &str) -> Result<Game, String> {
    let (start, moves) = text.split_once("moves").unwrap_or((text, ""));
    let start = start.trim();
    let head = match start.strip_prefix("fen") {
        // A quote would end the tag, and no valid position contains one.
        Some(position) => format!("[FEN \"{}\"]\n", position.trim().replace('"', "")),
        None if start == "startpos" => String::new(),
        None => {
            return Err(format!(
                "expected startpos or fen POSITION, found {}",
                start.chars().take(60).collect::<String>()
            ));
        }
    };
    let transcript = Transcript::parse(rules, &(head + moves));
    transcript.map(|transcript| transcript.game).map_err(|error| match error {
        TranscriptError::Start(error) => format!("fen: {error}"),
        other => other.to_string(),
    })
}
