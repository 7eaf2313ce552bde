//! `awari engine`: the UCI dialect of oware programs, on stdin and stdout.
//!
//! The dialect is that of Aualé and its engine Aalina: moves are pits without separators, `A` to `F` for
//! South and `a` to `f` for North, positions have the long form, white is South. No line that is printed is
//! empty, since Aualé takes an empty line for the end of the engine.
//!
//! A thread reads stdin, another one searches, and the main thread executes commands in order. While a search
//! is under way, `stop`, `ponderhit`, `isready` and `uci` are executed at once; all other commands follow the
//! search.

mod go;
mod info;
mod options;
mod own_book;
mod time;

use crate::args::EngineArgs;
use crate::error::{CliError, Result};
use crate::files::databases::{UsedEvaluation, evaluation, oracle};
use crate::games::analysis::{self, check_table_fits, searcher};
use crate::games::opening_book::opening_book;
use crate::games::play::RandomChoices;
use crate::games::probe::board;
use crate::output::print;
use crate::signals;
use crate::text::lines::{Lines, RejectedLine};
use disk::{RealDisk, clock, threads};
use game::notation::{MoveText, PositionText, Side};
use game::play::Game;
use game::transcript::{Transcript, TranscriptError, side_name};
use game::{HALF_PITS, Pit, Rules};
use go::GoCommand;
use info::SearchInfo;
use options::EngineOptions;
use oracle::{AnswerSource, Level, Library, Oracle};
use own_book::EngineBook;
use pipeline::{Budget, Exit};
use search::{NoScores, SearchLimits, SearchReport, SearchRequest, SearchStop, Searcher};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// The most lines that were read and not executed. With as many, stdin is not read, and the program that
/// writes it waits.
const UNEXECUTED_MAX: usize = 1000;

/// The most events that have not been looked at; a faster program waits.
const EVENTS_MAX: usize = 16;

/// The longest time of a search that no command can stop any more, since stdin has ended or only `quit` follows.
const LAST_SEARCH_MAX: Duration = Duration::from_secs(60);

/// The depth of `bench`, unless it names another, the largest, and the table of its searches.
const BENCH_DEPTH: u32 = 12;
const BENCH_DEPTH_MAX: u32 = 30;
const BENCH_TABLE_BYTES: u64 = 16 << 20;

/// The games whose last positions `bench` searches: legal by all rules.
const BENCH_GAMES: [&str; 4] = ["", "Ff", "FfBd", "EeDdCc"];

/// The answer to `help`.
const HELP: &str = "\
uci, ugi        name the engine and its options
isready         answer readyok
ucinewgame      begin another game
setoption name NAME value VALUE
position startpos|fen POSITION [moves FfBd]
go [depth N] [nodes N] [movetime MS] [infinite] [ponder] [wtime MS btime MS winc MS binc MS movestogo N]
stop, ponderhit end or go on with a search
d               draw the position
eval            value of the position without a search, and what is proved
bench [DEPTH]   search fixed positions, and count nodes a second
help, quit
";

/// Work of the thread that searches.
type SearchJob = Box<dyn FnOnce() + Send>;

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
    let oracle = oracle(&RealDisk::default(), &args.library)?;
    let evaluation = evaluation(&RealDisk::default(), args.library.dir.as_deref())?;
    let book = EngineBook::new(opening_book(args.library.dir.as_deref(), &args.book, oracle.rules())?);
    check_table_fits(args.table.hash.bytes(), 0)?;
    let are_rules_fixed = oracle.stones().next().is_some() || book.is_open();
    let options = EngineOptions::new(args, *oracle.rules(), are_rules_fixed);
    let searcher = Arc::new(searcher(options.rules, options.hash << 20, &evaluation)?);
    let (sender, events) = sync_channel(EVENTS_MAX);
    let lines = sender.clone();
    let (permits, taken) = sync_channel(UNEXECUTED_MAX);
    (0..UNEXECUTED_MAX).for_each(|_| permits.send(()).expect("the receiver is kept"));
    // Started in advance, so that no `go` fails for want of a thread.
    let (searches, jobs) = sync_channel::<SearchJob>(1);
    threads::room_for_threads(2).map_err(CliError::Thread)?;
    signals::thread("stdin", move || read(&lines, &taken))?;
    signals::thread("search", move || jobs.iter().for_each(|job| job()))?;
    EngineSession {
        game: Game::new(*oracle.rules()),
        oracle: Arc::new(oracle),
        searcher,
        is_committed: false,
        evaluation,
        options,
        book,
        chance: RandomChoices(clock::now_seconds()),
        events: sender,
        permits,
        searches,
        running: None,
        deadline: None,
        deferred: VecDeque::new(),
        has_ended: None,
        has_quit: false,
    }
    .run(&events)
}

/// Sends the lines of stdin, each when there is a permit for it.
fn read(events: &SyncSender<EngineEvent>, permits: &Receiver<()>) {
    let mut lines = Lines::new(io::stdin().lock());
    while permits.recv().is_ok() {
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
    searcher: Arc<Searcher>,
    /// Whether the system has committed the memory of the table.
    is_committed: bool,
    evaluation: UsedEvaluation,
    options: EngineOptions,
    book: EngineBook,
    game: Game,
    chance: RandomChoices,
    events: SyncSender<EngineEvent>,
    /// Lets the thread of stdin read a line for each that was executed.
    permits: SyncSender<()>,
    searches: SyncSender<SearchJob>,
    running: Option<RunningSearch>,
    /// When to stop a search that no command can stop any more.
    deadline: Option<Instant>,
    /// The commands that follow the search under way.
    deferred: VecDeque<String>,
    /// How stdin has ended, if it has.
    has_ended: Option<io::Result<()>>,
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
    /// The line `bestmove`, if it is known.
    reply: Option<String>,
}

impl RunningSearch {
    fn new(go: GoCommand, reply: Option<String>) -> RunningSearch {
        let is_due = go.is_due();
        RunningSearch { stop: Arc::new(SearchStop::new()), go, is_due, is_hit: false, reply }
    }

    fn stop(&mut self) {
        self.stop.stop();
        self.is_due = true;
        self.is_hit = false;
    }
}

impl EngineSession {
    fn run(mut self, events: &Receiver<EngineEvent>) -> Result<Exit> {
        while !self.is_done() {
            // The session holds a sender, so that the channel stays open.
            let event = match self.deadline {
                None => events.recv().map_err(RecvTimeoutError::from),
                Some(deadline) => events.recv_timeout(deadline.saturating_duration_since(Instant::now())),
            };
            match event {
                Ok(event) => self.react(event)?,
                Err(_) => self.stop(),
            }
        }
        match self.has_ended {
            Some(Err(error)) => Err(CliError::Stdin(error)),
            _ => Ok(Exit::Done),
        }
    }

    fn is_done(&self) -> bool {
        self.running.is_none() && (self.has_quit || self.has_ended.is_some() && self.deferred.is_empty())
    }

    fn react(&mut self, event: EngineEvent) -> Result<()> {
        match event {
            EngineEvent::Line(line) => {
                let deferred = self.deferred.len();
                match line {
                    Ok(line) => self.receive(line)?,
                    Err(refused) => print(&format!("info string {refused}\n"))?,
                }
                if self.deferred.len() == deferred {
                    self.permit_line();
                }
            }
            EngineEvent::End(error) => self.has_ended = Some(error.map_or(Ok(()), Err)),
            EngineEvent::Found(found) => {
                let reply = self.reply(&found?);
                if let Some(running) = &mut self.running {
                    running.reply = Some(reply);
                }
            }
        }
        self.advance()
    }

    /// Replies if the search has ended, and executes the commands that follow it.
    fn advance(&mut self) -> Result<()> {
        loop {
            self.limit_last_search();
            if let Some(running) = &mut self.running {
                if !running.is_due {
                    return Ok(());
                }
                let Some(reply) = running.reply.take() else { return Ok(()) };
                let Some(RunningSearch { go, is_hit, .. }) = self.running.take() else { return Ok(()) };
                self.deadline = None;
                if is_hit {
                    self.search(go.after_hit())?;
                } else {
                    print(&reply)?;
                }
                continue;
            }
            if self.has_quit {
                self.deferred.clear();
            }
            let Some(line) = self.deferred.pop_front() else { return Ok(()) };
            self.permit_line();
            self.execute(&line)?;
            self.apply_deferred();
        }
    }

    /// Lets the thread of stdin read another line.
    fn permit_line(&self) {
        // It has ended if stdin has.
        let _ = self.permits.try_send(());
    }

    /// Limits a search after the end of stdin, or before a deferred `quit`, when nothing else ends it. While
    /// no line is read because too many wait, only a search without an end of its own is stopped.
    fn limit_last_search(&mut self) {
        let is_last = self.has_ended.is_some() || self.quits_at_last();
        let is_full = self.deferred.len() >= UNEXECUTED_MAX;
        let Some(running) = self.running.as_ref().filter(|_| is_last || is_full) else { return };
        if !running.is_due || !running.go.has_end(self.game.now().seats.side) {
            self.stop();
        } else if is_last && self.deadline.is_none() {
            self.deadline = Some(Instant::now() + LAST_SEARCH_MAX);
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
            _ => self.deferred.push_back(line),
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
                if self.running.is_none() {
                    self.oracle.prepare_search();
                    if !self.is_committed {
                        self.clear_table()?;
                    }
                }
                "readyok\n".to_owned()
            }
            "ucinewgame" | "uginewgame" => {
                self.game = Game::new(*self.oracle.rules());
                self.book.begin_game();
                self.clear_table()?;
                String::new()
            }
            "setoption" => {
                let before = self.options.clone();
                let mut said = self.options.set(rest).err();
                if self.options.book_file != before.book_file {
                    let changed = self.book.change(&self.options.book_file, self.oracle.rules());
                    said = changed.map_or_else(Some, |said| said.map(str::to_owned));
                    self.options.are_rules_fixed = self.oracle.stones().next().is_some() || self.book.is_open();
                }
                if self.options.rules != before.rules
                    && let Err(why) = self.change_rules()
                {
                    self.options.rules = before.rules;
                    said = Some(format!("Rules: {why}; the engine plays {}", before.rules.name));
                }
                if self.options.hash != before.hash
                    && let Err(why) = self.resize_table()
                {
                    self.options.hash = before.hash;
                    said = Some(format!("Hash: {why}; the table keeps {} MiB", before.hash));
                }
                if self.options.threads > before.threads
                    && let Err(error) = threads::room_for_threads(self.options.threads)
                {
                    self.options.threads = before.threads;
                    said = Some(format!("Threads: {}; the search keeps {}", disk::reason(&error), before.threads));
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
            "d" => self.shown_position(),
            "eval" => self.shown_evaluation(),
            "help" => HELP.to_owned(),
            "bench" => return self.bench(rest),
            other => remark(format!(
                "unknown command {}; help lists the commands",
                other.chars().take(40).collect::<String>()
            )),
        };
        print(&reply)
    }

    /// Draws the position. No line is empty.
    fn shown_position(&self) -> String {
        let now = self.game.now();
        let seen = if now.seats.side == Side::South { now.board } else { now.board.turned() };
        let end = self
            .game
            .outcome()
            .map_or(String::new(), |_| format!("The game is over: {}\n", self.game.result_text().unwrap_or_default()));
        format!(
            "{}stores   South {}, North {}\nto move  {}\nfen      {}\n{end}",
            board(&PositionText::of_board(seen)),
            now.seats.south_store,
            now.seats.north_store,
            side_name(now.seats.side),
            now.text(),
        )
    }

    /// Says what the position is worth without a search, and what is proved by a database.
    fn shown_evaluation(&self) -> String {
        let now = self.game.now();
        let side = side_name(now.seats.side);
        let hundredths = self.evaluation.evaluation.hundredths(&now.board);
        let proved = match self.oracle.answer(&now.board) {
            Ok(answer) if answer.source != AnswerSource::Search => format!("proved     {} for {side}\n", answer.score),
            _ => String::new(),
        };
        format!("{proved}evaluation {} stones for {side}, without a search\n", analysis::stones(hundredths))
    }

    /// Searches the same positions as always to a depth, and says how many nodes a second it took. One thread
    /// with a table of its own counts the same number of nodes each time.
    fn bench(&mut self, rest: &str) -> Result<()> {
        let depth = match rest.trim() {
            "" => BENCH_DEPTH,
            text => match text.parse() {
                Ok(depth) if (1..=BENCH_DEPTH_MAX).contains(&depth) => depth,
                _ => return print(&remark(format!("bench: expected a depth from 1 to {BENCH_DEPTH_MAX}"))),
            },
        };
        let rules = self.options.rules;
        let searcher = searcher(rules, BENCH_TABLE_BYTES, &self.evaluation)?;
        let (mut nodes, started) = (0, Instant::now());
        for moves in BENCH_GAMES {
            let game = position(rules, &format!("startpos moves {moves}"))
                .expect("the games of the bench are legal by all rules");
            searcher.table().clear();
            let request = SearchRequest {
                board: game.now().board,
                before: &game.positions_since_capture(),
                limits: SearchLimits { depth: Some(depth), ..SearchLimits::default() },
                lines: 1,
                threads: 1,
            };
            let report = searcher.search(&request, &NoScores, &SearchStop::new(), &mut |_| {});
            nodes += report.nodes;
            print(&format!("bench depth {depth} nodes {} moves {moves}\n", report.nodes))?;
        }
        let seconds = started.elapsed().as_secs_f64();
        let a_second = if seconds > 0.0 { (nodes as f64 / seconds) as u64 } else { 0 };
        print(&format!("bench nodes {nodes} nps {a_second} time {:.0}\n", 1000.0 * seconds))
    }

    /// Begins a search.
    fn search(&mut self, go: GoCommand) -> Result<()> {
        if self.game.outcome().is_some() {
            print("info string the game is over\n")?;
            self.running = Some(RunningSearch::new(go, Some("bestmove 0000\n".to_owned())));
            return Ok(());
        }
        if self.options.own_book && self.options.level == Level::Perfect && go.is_due() {
            let is_known = self.oracle.stones().any(|stones| stones == self.game.now().board.stones());
            let reply = self.book.reply(&self.game, is_known, self.options.ponders);
            print(&reply.text)?;
            if reply.is_move {
                return Ok(());
            }
        }
        let now = self.game.now();
        // Levels weigh all moves.
        let lines = if self.options.level == Level::Perfect { self.options.lines } else { HALF_PITS };
        let threads = self.threads()?;
        let mut info = SearchInfo::new(now.seats.side, self.options.lines);
        let (before, limits) = (self.game.positions_since_capture(), go.limits(now.seats.side));
        let running = RunningSearch::new(go, None);
        let (oracle, searcher, events) = (Arc::clone(&self.oracle), Arc::clone(&self.searcher), self.events.clone());
        let stop = Arc::clone(&running.stop);
        let job = move || {
            let request = SearchRequest { board: now.board, before: &before, limits, lines, threads };
            let search = || {
                let failed = RefCell::new(None);
                let print_text = |text: String| {
                    let error = print(&text).err();
                    failed.replace_with(|failed| failed.take().or(error));
                };
                let found = oracle.analyze_without_damaged(
                    &searcher,
                    &request,
                    &stop,
                    &mut |report| print_text(info.text(report)),
                    &mut |error| print_text(remark(format!("{error}; the engine goes on without it"))),
                );
                match (found, failed.into_inner()) {
                    (Ok(report), None) => print(&info.text(&report)).map(|()| report),
                    (_, Some(error)) => Err(error),
                    (Err(error), None) => Err(error.into()),
                }
            };
            // The panic hook has printed the message; the main thread would wait for ever.
            let found = catch_unwind(AssertUnwindSafe(search))
                .unwrap_or_else(|_| std::process::exit(Exit::Internal.code().into()));
            // The main thread may replace it as soon as it has the report.
            drop(searcher);
            // The engine may have ended.
            let _ = events.send(EngineEvent::Found(found));
        };
        self.searches.send(Box::new(job)).expect("the thread ends with the session");
        self.running = Some(running);
        Ok(())
    }

    /// Returns the number of threads of a search: one if there is no room for others, with a remark.
    fn threads(&self) -> Result<usize> {
        let threads = self.options.threads;
        if threads == 1 {
            return Ok(1);
        }
        match threads::room_for_threads(threads - 1) {
            Ok(()) => Ok(threads),
            Err(error) => {
                print(&remark(format!("Threads: {}; one thread searches", disk::reason(&error))))?;
                Ok(1)
            }
        }
    }

    /// Begins a game by the rules of the options. There are no databases, nor a book.
    ///
    /// # Errors
    /// If there is no memory for a new table; nothing has changed then.
    fn change_rules(&mut self) -> Result<(), String> {
        self.resize_table()?;
        self.oracle = Arc::new(Oracle::new(Library::empty(self.options.rules), 0));
        self.game = Game::new(self.options.rules);
        Ok(())
    }

    /// Makes a table of the size and by the rules of the options.
    ///
    /// # Errors
    /// If there is no memory for it; the old table stays.
    fn resize_table(&mut self) -> Result<(), String> {
        let bytes = self.options.hash << 20;
        let freed = if self.is_committed { self.searcher.table().bytes() } else { 0 };
        let made = check_table_fits(bytes, freed)
            .and_then(|()| searcher(self.options.rules, bytes, &self.evaluation))
            .map_err(|error| match error {
                CliError::SearchTable { bytes, error } => {
                    format!("cannot allocate {}: {}", Budget::show(bytes), disk::reason(&error))
                }
                other => other.to_string(),
            })?;
        // The old table is freed before the memory of the new one is committed.
        self.searcher = Arc::new(made);
        self.searcher.table().clear();
        self.is_committed = true;
        Ok(())
    }

    /// Empties the table and commits its memory, which would else cost time of the first move.
    ///
    /// # Errors
    /// If other programs have taken the memory since the engine began.
    fn clear_table(&mut self) -> Result<()> {
        if !self.is_committed {
            check_table_fits(self.searcher.table().bytes(), 0)?;
        }
        self.searcher.table().clear();
        self.is_committed = true;
        Ok(())
    }

    /// Chooses a move of a report, and returns the line `bestmove`.
    fn reply(&mut self, report: &SearchReport) -> String {
        let side = self.game.now().seats.side;
        let Some(pit) = self.options.level.choose(report, self.chance.next()) else {
            return "bestmove 0000\n".to_owned();
        };
        let line: &[Pit] =
            report.moves.iter().find(|searched| searched.pit == pit).map_or(&[], |searched| &searched.line);
        let expected = match line.get(1).filter(|_| self.options.ponders) {
            Some(&reply) => format!(" ponder {}", MoveText { pit: reply, side: side.other() }),
            None => String::new(),
        };
        format!("bestmove {}{expected}\n", MoveText { pit, side })
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
