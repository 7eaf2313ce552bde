//! The engine, as an object of Python.
//!
//! A search runs on a thread of its own, without the interpreter lock, while the calling thread looks for signals.

use crate::arguments;
use crate::databases::Databases;
use crate::error::exception;
use crate::game::PlayedGame;
use crate::rules::board_html;
use awari_db::{EngineReport, EngineRequest, Position, Rules, SearchLimits, SearchStop};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The bytes of a table, if none are given.
const TABLE_BYTES: u64 = 64 << 20;

/// The time of a search, if nothing limits it.
const TIME_DEFAULT: Duration = Duration::from_secs(1);

/// The time between two looks for signals.
const SIGNALS: Duration = Duration::from_millis(20);

/// The most threads of a search.
const THREADS_MAX: u64 = 1024;

/// Searches for the scores of positions beyond the databases, or without any.
///
/// databases are those that searches look positions up in; their rules are those of the engine. Without
/// databases the rules are given by name. table_bytes is the memory for what searches learn, which the engine
/// keeps from search to search. One object serves all threads. Its estimates come from the evaluation that
/// the program contains, which was fitted to the rules of awari, or from evaluation/network.bin in the run
/// directory of the databases, if a build has fitted one there; evaluation is the path of that file, or None.
/// What an engine proves holds by any rules.
///
/// >>> import awari
/// >>> found = awari.Engine(awari.open("runs/quickstart")).search("0 0 0 0 0 2 1 1 2 1 3 0", nodes=10_000)
/// >>> found.bounds, found.line[0]
/// ((10, 10), 'F')
#[pyclass(frozen, module = "awari")]
pub(crate) struct Engine {
    engine: awari_db::Engine,
    databases: Option<Py<Databases>>,
    table_bytes: u64,
}

/// What a search found out about a position. Made by Engine.search().
///
/// position has the twelve pits; bounds what is proved, the lower and the upper bound of the score for the
/// player to move; score the score if that is proved, else None; estimate what the search expects, a number
/// of stones within the bounds; moves the legal moves as awari.SearchedMove, the best first; line the
/// expected moves, each a pit "A" to "F" of the player who makes it; depth the moves of both players that the
/// last iteration looked ahead; nodes the positions searched; probes those that databases answered; time the
/// seconds taken.
#[pyclass(frozen, get_all, module = "awari")]
pub(crate) struct Search {
    position: Vec<u32>,
    bounds: (i8, i8),
    score: Option<i8>,
    estimate: f64,
    moves: Vec<SearchedMove>,
    line: Vec<char>,
    depth: u32,
    nodes: u64,
    probes: u64,
    time: f64,
}

/// What a search found out about a move.
///
/// pit is the pit sown from; captured the number of captured stones; bounds the proved bounds of its value
/// for the player to move, captured stones included; value the value if it is proved, else None; estimate the
/// expected value in stones; at_most whether the estimate is only an upper bound, because better moves were
/// found; line the expected moves from this one on.
#[pyclass(frozen, get_all, eq, module = "awari")]
#[derive(Clone, PartialEq)]
pub(crate) struct SearchedMove {
    pit: char,
    captured: u8,
    bounds: (i8, i8),
    value: Option<i8>,
    estimate: f64,
    at_most: bool,
    line: Vec<char>,
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (databases=None, rules=None, table_bytes=None))]
    fn new(
        py: Python<'_>,
        databases: Option<&Bound<'_, PyAny>>,
        rules: Option<&str>,
        table_bytes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Engine> {
        let table_bytes = table_bytes.map_or(Ok(TABLE_BYTES), |bytes| arguments::natural(bytes, "table_bytes"))?;
        let rules = rules.map(arguments::rules).transpose()?;
        let Some(databases) = databases else {
            let rules = rules.unwrap_or(Rules::AWARI);
            let engine = py.detach(|| awari_db::Engine::new(rules, table_bytes)).map_err(exception)?;
            return Ok(Engine { engine, databases: None, table_bytes });
        };
        let Ok(databases) = databases.cast::<Databases>() else {
            return Err(PyTypeError::new_err(format!(
                "databases: expected what awari.open() returns, found {}",
                databases.get_type().name()?
            )));
        };
        let handle = databases.get().handle();
        if let Some(rules) = rules.filter(|rules| rules != handle.rule_set()) {
            return Err(PyValueError::new_err(format!(
                "rules: the databases have the rules {}, not {}; leave them out",
                handle.rules(),
                rules.name
            )));
        }
        let shared = handle.share();
        let engine = py.detach(|| awari_db::Engine::with_databases(shared, table_bytes)).map_err(exception)?;
        Ok(Engine { engine, databases: Some(databases.clone().unbind()), table_bytes })
    }

    /// The name of the rules.
    #[getter]
    fn rules(&self) -> &'static str {
        self.engine.rules().name
    }

    /// The file of the evaluation; None if it is the one that the program contains.
    #[getter]
    fn evaluation(&self) -> Option<&OsStr> {
        self.engine.evaluation_path().map(Path::as_os_str)
    }

    /// Searches a position, or the position that a game has come to, and returns an awari.Search.
    ///
    /// The search ends after some seconds of time, after some nodes, which are positions, at some depth, or
    /// once the score is proved; it takes one second if none of these is given. In a game, a move back to an
    /// earlier position ends it. lines is the number of best moves whose estimates are wanted; threads how
    /// many search. Ctrl-C ends a search.
    ///
    /// >>> found = awari.Engine().search(awari.Position(), nodes=20_000, lines=2)
    /// >>> found.bounds[0] <= found.estimate <= found.bounds[1]
    /// True
    /// >>> len(found.moves), [move.at_most for move in found.moves[:2]]
    /// (6, [False, False])
    #[pyo3(signature = (position, /, *, time=None, nodes=None, depth=None, lines=None, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn search(
        &self,
        py: Python<'_>,
        position: &Bound<'_, PyAny>,
        time: Option<&Bound<'_, PyAny>>,
        nodes: Option<&Bound<'_, PyAny>>,
        depth: Option<&Bound<'_, PyAny>>,
        lines: Option<&Bound<'_, PyAny>>,
        threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Search> {
        let (position, before) = match position.cast::<PlayedGame>() {
            Ok(game) => game.borrow().searched(self.engine.rules())?,
            Err(_) => (arguments::position_by(position, self.engine.rules())?, Vec::new()),
        };
        let count = |argument: Option<&Bound<'_, PyAny>>, name, most| {
            argument.map(|argument| arguments::count(argument, name, most)).transpose()
        };
        let mut limits = SearchLimits {
            depth: count(depth, "depth", u32::MAX.into())?.map(|depth| depth as u32),
            nodes: count(nodes, "nodes", u64::MAX)?,
            time: time.map(arguments::seconds).transpose()?,
            iteration_time: None,
        };
        if limits == SearchLimits::default() {
            limits.time = Some(TIME_DEFAULT);
        }
        let lines = count(lines, "lines", u64::MAX)?.unwrap_or(1) as usize;
        let threads = count(threads, "threads", THREADS_MAX)?.unwrap_or(1) as usize;
        let request = EngineRequest { before: &before, lines, threads, ..EngineRequest::new(position, limits) };
        let report = py.detach(|| self.search_until_signal(&request))?;
        Ok(Search::new(&position, report))
    }

    fn __repr__(&self) -> String {
        let databases = if self.databases.is_some() { ", with databases" } else { "" };
        format!("<awari.Engine by the rules {}{databases}, table of {} MiB>", self.rules(), self.table_bytes >> 20)
    }

    /// Pickles how it was made: another process makes an engine with an empty table.
    #[expect(clippy::type_complexity, reason = "the arguments of the constructor")]
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (Option<Py<Databases>>, &'static str, u64)) {
        let engine = slf.get();
        let databases = engine.databases.as_ref().map(|databases| databases.clone_ref(slf.py()));
        (slf.get_type().into_any(), (databases, engine.rules(), engine.table_bytes))
    }
}

impl Engine {
    /// Searches, and stops when a signal handler of Python raises an exception.
    fn search_until_signal(&self, request: &EngineRequest<'_>) -> PyResult<EngineReport> {
        let stop = SearchStop::new();
        thread::scope(|scope| {
            let (sender, receiver) = channel();
            let stop = &stop;
            let search = move || {
                // The receiver waits for the answer.
                let _ = sender.send(self.engine.search(request, stop));
            };
            thread::Builder::new().name("search".to_owned()).spawn_scoped(scope, search)?;
            loop {
                match receiver.recv_timeout(SIGNALS) {
                    Ok(report) => return report.map_err(exception),
                    Err(RecvTimeoutError::Timeout) => {
                        Python::attach(|py| py.check_signals()).inspect_err(|_| stop.stop())?
                    }
                    Err(RecvTimeoutError::Disconnected) => unreachable!("a search sends its answer"),
                }
            }
        })
    }
}

/// Returns stones of hundredths.
fn stones(hundredths: i32) -> f64 {
    f64::from(hundredths) / 100.0
}

impl Search {
    fn new(position: &Position, report: EngineReport) -> Search {
        let line = report.line().to_vec();
        let moves = report.moves.into_iter().map(|candidate| SearchedMove {
            pit: candidate.pit,
            captured: candidate.captured,
            bounds: (candidate.bounds.low(), candidate.bounds.high()),
            value: candidate.bounds.score(),
            estimate: stones(candidate.estimate),
            at_most: candidate.is_at_most,
            line: candidate.line,
        });
        Search {
            position: position.pits().map(u32::from).to_vec(),
            bounds: (report.bounds.low(), report.bounds.high()),
            score: report.bounds.score(),
            estimate: stones(report.estimate),
            moves: moves.collect(),
            line,
            depth: report.depth,
            nodes: report.nodes,
            probes: report.probes,
            time: report.time.as_secs_f64(),
        }
    }
}

impl SearchedMove {
    /// Formats the value, or the estimate with the bounds.
    fn worth(&self) -> String {
        let about = if self.at_most { "at most " } else { "about " };
        let (low, high) = self.bounds;
        self.value.map_or_else(|| format!("{about}{:+.2}, {low} to {high}", self.estimate), |value| value.to_string())
    }
}

#[pymethods]
impl SearchedMove {
    fn __repr__(&self) -> String {
        let SearchedMove { pit, captured, bounds, estimate, line, .. } = self;
        let (line, at_most) = (String::from_iter(line), if self.at_most { ", at_most=True" } else { "" });
        format!(
            "SearchedMove(pit='{pit}', captured={captured}, bounds={bounds:?}, estimate={estimate}{at_most}, line='{line}')"
        )
    }
}

#[pymethods]
impl Search {
    fn __repr__(&self) -> String {
        let Search { bounds, estimate, line, depth, nodes, .. } = self;
        let moves: Vec<String> = self.moves.iter().map(|candidate| format!("\n  {}", candidate.__repr__())).collect();
        format!(
            "Search(bounds={bounds:?}, estimate={estimate}, line='{}', depth={depth}, nodes={nodes}, moves=[{}])",
            String::from_iter(line),
            moves.join(","),
        )
    }

    fn _repr_html_(&self) -> PyResult<String> {
        let rows = self.moves.iter().map(|candidate| {
            let line: Vec<String> = candidate.line.iter().map(char::to_string).collect();
            format!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                candidate.pit,
                candidate.captured,
                candidate.worth(),
                line.join(" ")
            )
        });
        Ok(format!(
            "{}<p>estimate {:+.2}, proved {} to {}, depth {}</p><table><tr><th>pit</th><th>captures</th><th>value</th>\
             <th>line</th></tr>{}</table>",
            board_html(&arguments::of_pits(&self.position)?),
            self.estimate,
            self.bounds.0,
            self.bounds.1,
            self.depth,
            rows.collect::<String>(),
        ))
    }
}
