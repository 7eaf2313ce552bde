//! The engine: what a search finds out about a position, beyond the databases or without any.

use crate::databases::Databases;
use crate::error::Error;
use crate::position::{Position, pit_letter};
use disk::{Disk, RealDisk};
use game::{Board, Rules};
use oracle::Bounds;
use oracle::OracleError;
use search::{Evaluation, MoveEstimate, NoScores, SearchReport, SearchRequest, Searcher};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use search::{SearchLimits, SearchStop};

/// Searches positions by some rules. What it learns stays in its table, from search to search.
///
/// ```
/// use awari_db::{Engine, EngineRequest, Position, Rules, SearchLimits, SearchStop};
///
/// let engine = Engine::new(Rules::AWARI, 1 << 20)?;
/// let limits = SearchLimits { nodes: Some(10_000), ..SearchLimits::default() };
/// let report = engine.search(&EngineRequest::new(Position::opening(), limits), &SearchStop::new())?;
/// assert!(report.bounds.low() <= 0 && report.bounds.high() >= 0);
/// assert_eq!(report.moves.len(), 6);
/// assert_eq!(report.line()[0], report.moves[0].pit);
/// # Ok::<(), awari_db::Error>(())
/// ```
pub struct Engine {
    searcher: Searcher,
    databases: Option<Arc<Databases>>,
    /// The file of the evaluation; none if it is the one that the library contains.
    evaluation_path: Option<PathBuf>,
}

/// What to search.
#[derive(Clone, Debug)]
pub struct EngineRequest<'a> {
    /// The position.
    pub position: Position,
    /// The positions of the game since the last capture, each seen from its player to move. A move back to
    /// one of them ends the game.
    pub before: &'a [Position],
    /// When to stop.
    pub limits: SearchLimits,
    /// The number of best moves whose estimates are wanted, at least 1.
    pub lines: usize,
    /// The number of threads, at least 1.
    pub threads: usize,
}

impl EngineRequest<'_> {
    /// A request for the best move of a position, by one thread.
    pub fn new(position: Position, limits: SearchLimits) -> EngineRequest<'static> {
        EngineRequest { position, before: &[], limits, lines: 1, threads: 1 }
    }
}

/// What a search found out about a position.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EngineReport {
    /// The proved bounds of the score, for the player to move.
    pub bounds: Bounds,
    /// The estimate of the score, in hundredths of a stone, within the bounds.
    pub estimate: i32,
    /// The legal moves, the best first. None if the player to move cannot move.
    pub moves: Vec<EngineMove>,
    /// The depth of the last iteration, in moves of both players.
    pub depth: u32,
    /// The number of positions searched.
    pub nodes: u64,
    /// The number of positions that databases answered.
    pub probes: u64,
    /// The time taken.
    pub time: Duration,
}

/// What a search found out about a move.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EngineMove {
    /// The pit sown from, `A` to `F`.
    pub pit: char,
    /// The captured stones.
    pub captured: u8,
    /// The proved bounds of its value for the player to move, captured stones included.
    pub bounds: Bounds,
    /// The estimate of its value, in hundredths of a stone, within the bounds.
    pub estimate: i32,
    /// Whether the estimate only bounds the value from above: the search found the move worse than better
    /// ones, and did not find out how much.
    pub is_at_most: bool,
    /// The expected moves from this one on, each `A` to `F` of the player who makes it.
    pub line: Vec<char>,
}

impl EngineReport {
    /// Returns the line of the best move, each move `A` to `F` of the player who makes it; empty if there is no move.
    pub fn line(&self) -> &[char] {
        self.moves.first().map_or(&[], |best| &best.line)
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("rules", &self.rules().name).finish_non_exhaustive()
    }
}

impl Engine {
    /// Makes an engine without databases, whose table takes about `table_bytes`. Its estimates were fitted to
    /// the rules of awari; what it proves holds by any.
    ///
    /// # Errors
    /// [`Error::Io`] if the system refuses the memory.
    pub fn new(rules: Rules, table_bytes: u64) -> Result<Engine, Error> {
        let searcher = searcher(rules, table_bytes, Evaluation::default())?;
        Ok(Engine { searcher, databases: None, evaluation_path: None })
    }

    /// Makes an engine that looks positions up in databases, and has their rules. Its estimates come from the
    /// evaluation of their run directory, `evaluation/network.bin`, if a build has fitted one there.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Error::Damaged`] or [`Error::Io`] if there is such a file that cannot be read.
    pub fn with_databases(databases: Arc<Databases>, table_bytes: u64) -> Result<Engine, Error> {
        let fitted = databases.directory().map(fitted_evaluation).transpose()?.flatten();
        let (evaluation_path, evaluation) = fitted.map_or_else(Default::default, |(path, fitted)| (Some(path), fitted));
        let searcher = searcher(*databases.rule_set(), table_bytes, evaluation)?;
        Ok(Engine { searcher, databases: Some(databases), evaluation_path })
    }

    /// Returns the file of the evaluation that estimates come from; `None` if it is the one that the library contains.
    pub fn evaluation_path(&self) -> Option<&Path> {
        self.evaluation_path.as_deref()
    }

    /// Returns the rules.
    pub fn rules(&self) -> &Rules {
        self.searcher.rules()
    }

    /// Searches a position until a limit is reached, what is asked for is proved, or `stop` is set.
    ///
    /// # Errors
    /// [`Error::Damaged`] or [`Error::Io`] if the database that holds the position cannot be read, or
    /// databases contradict each other. A search goes on without another database that it cannot read.
    pub fn search(&self, request: &EngineRequest<'_>, stop: &SearchStop) -> Result<EngineReport, Error> {
        let &EngineRequest { position, before, limits, lines, threads } = request;
        let before: Vec<Board> = before.iter().map(|earlier| earlier.0).collect();
        let request = SearchRequest { board: position.0, before: &before, limits, lines, threads };
        let report = match &self.databases {
            Some(databases) => databases.oracle().analyze(&self.searcher, &request, stop, &mut |_| {})?,
            None => self.searcher.search(&request, &NoScores, stop, &mut |_| {}),
        };
        Ok(EngineReport::from(report))
    }
}

fn searcher(rules: Rules, table_bytes: u64, evaluation: Evaluation) -> Result<Searcher, Error> {
    Searcher::by(rules, table_bytes, evaluation).map_err(|error| Error::from(OracleError::SearchTable { error }))
}

/// Reads the evaluation of a run directory; `None` if there is none.
fn fitted_evaluation(directory: &Path) -> Result<Option<(PathBuf, Evaluation)>, Error> {
    let path = Evaluation::path(directory);
    let bytes = match RealDisk::default().read(&path, Evaluation::FILE_BYTES + 1) {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(Error::from(&error)),
    };
    match Evaluation::from_bytes(&bytes) {
        Ok(evaluation) => Ok(Some((path, evaluation))),
        Err(error) => Err(Error::of_evaluation(path, &error)),
    }
}

impl From<SearchReport> for EngineReport {
    fn from(report: SearchReport) -> EngineReport {
        let moves = report.moves.iter().map(|candidate| EngineMove {
            pit: pit_letter(candidate.pit),
            captured: candidate.captured,
            bounds: Bounds::new(candidate.low, candidate.high),
            estimate: candidate.estimated_hundredths(),
            is_at_most: matches!(candidate.estimate, MoveEstimate::AtMost(_)) && candidate.low < candidate.high,
            line: candidate.line.iter().map(|&pit| pit_letter(pit)).collect(),
        });
        EngineReport {
            bounds: Bounds::new(report.low, report.high),
            estimate: report.estimate,
            moves: moves.collect(),
            depth: report.depth,
            nodes: report.nodes,
            probes: report.probes,
            time: report.time,
        }
    }
}
