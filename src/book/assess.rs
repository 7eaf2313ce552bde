//! The engine that assesses positions of awari: the rules, databases, and a search.

use crate::awari::AwariGame;
use crate::game::{Assessment, Hundredths};
use game::Board;
use search::{Evaluation, ExactScores, SearchLimits, SearchRequest, SearchStop, Searcher, TranspositionTable};
use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Duration;

/// Positions that a search of depth 0 visits, and their growth with each move: of the opening, 6,600 at depth
/// 10 and 2.1 million at depth 30.
const NODES_OF_DEPTH: [f64; 2] = [370.0, 1.334];

/// Positions that a search visits in a millisecond.
const NODES_PER_MILLISECOND: f64 = 6_000.0;

/// The largest table of a search.
const TABLE_BYTES_MAX: u64 = 64 << 20;

/// Assesses positions, each with an empty table: so the result depends on the position, the limits, the databases and
/// the version of the engine alone.
pub struct Assessor<'a> {
    game: AwariGame,
    databases: &'a dyn ExactScores,
    searcher: Searcher,
    limits: AssessmentLimits,
}

/// Limit of a search. Only the result of a search by time depends on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssessmentLimits {
    /// The depth in moves.
    Depth(u32),
    /// The number of positions.
    Nodes(u64),
    /// The time in milliseconds.
    Milliseconds(u64),
}

impl AssessmentLimits {
    /// Returns about how many positions a search visits.
    pub fn nodes(self) -> f64 {
        match self {
            AssessmentLimits::Depth(depth) => NODES_OF_DEPTH[0] * NODES_OF_DEPTH[1].powi(depth as i32),
            AssessmentLimits::Nodes(nodes) => nodes as f64,
            AssessmentLimits::Milliseconds(milliseconds) => milliseconds as f64 * NODES_PER_MILLISECOND,
        }
    }

    /// Returns the size of the table of a search, in bytes: an entry for every two positions that it visits,
    /// within limits. At 4.5 million positions, four times as much changes nothing, and a quarter adds a
    /// third to the error of the estimate.
    pub fn table_bytes(self) -> u64 {
        let bytes = self.nodes() / 2.0 * TranspositionTable::BYTES_PER_POSITION as f64;
        (bytes as u64).clamp(TranspositionTable::BYTES_MIN, TABLE_BYTES_MAX)
    }

    /// Whether equal searches give equal results.
    pub fn is_deterministic(self) -> bool {
        !matches!(self, AssessmentLimits::Milliseconds(_))
    }
}

impl fmt::Display for AssessmentLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AssessmentLimits::Depth(depth) => write!(f, "depth={depth}"),
            AssessmentLimits::Nodes(nodes) => write!(f, "nodes={nodes}"),
            AssessmentLimits::Milliseconds(milliseconds) => write!(f, "time={milliseconds} ms"),
        }
    }
}

/// Reads what `Display` writes.
impl FromStr for AssessmentLimits {
    type Err = String;

    fn from_str(text: &str) -> Result<AssessmentLimits, String> {
        let wrong = || {
            format!(
                "must be \"nodes=N\", \"depth=N\" with at most 60 moves, or \"time=N ms\", N at least 1; found {text:?}"
            )
        };
        let (key, number) = text.split_once('=').ok_or_else(wrong)?;
        let milliseconds = number.strip_suffix("ms").map(str::trim_end);
        let digits = if key == "time" { milliseconds.ok_or_else(wrong)? } else { number };
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse().ok().filter(|&number: &u64| is_number && number > 0).ok_or_else(wrong)?;
        match key {
            "depth" if number <= 60 => Ok(AssessmentLimits::Depth(number as u32)),
            "nodes" => Ok(AssessmentLimits::Nodes(number)),
            "time" => Ok(AssessmentLimits::Milliseconds(number)),
            _ => Err(wrong()),
        }
    }
}

/// The assessment of a position, and what it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assessed {
    /// The assessment.
    pub assessment: Assessment,
    /// The depth of the search; 0 if none was needed.
    pub depth: u32,
    /// The number of positions searched.
    pub nodes: u64,
}

impl Assessed {
    /// Whether a search found it. Otherwise it comes from the rules or a database, or says nothing.
    pub fn is_searched(&self) -> bool {
        self.depth > 0 || self.nodes > 0
    }
}

/// An error of an assessment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssessmentError {
    /// Proved bounds contradict each other.
    #[error(
        "proved bounds of the position {position} contradict each other: a database is wrong; check them with `awari verify`"
    )]
    Contradiction {
        /// The position.
        position: String,
    },
    /// The search was stopped.
    #[error("stopped")]
    Stopped,
}

impl<'a> Assessor<'a> {
    /// Makes an assessor.
    ///
    /// # Errors
    /// If the system refuses the memory of the table.
    pub fn new(game: AwariGame, databases: &'a dyn ExactScores, limits: AssessmentLimits) -> io::Result<Assessor<'a>> {
        let searcher = Searcher::by(*game.rules(), limits.table_bytes(), Evaluation::default())?;
        Ok(Assessor { game, databases, searcher, limits })
    }

    /// Assesses a position.
    ///
    /// # Errors
    /// [`AssessmentError`] if the databases contradict each other, or the flag is set.
    pub fn assess(&self, key: u64, stop: &SearchStop) -> Result<Assessed, AssessmentError> {
        let board = AwariGame::board(key);
        let known = |value| Ok(Assessed { assessment: Assessment::exact(value), depth: 0, nodes: 0 });
        if let Some(value) = self.known(&board) {
            return known(value);
        }
        let limits = match self.limits {
            AssessmentLimits::Depth(depth) => SearchLimits { depth: Some(depth), ..SearchLimits::default() },
            AssessmentLimits::Nodes(nodes) => SearchLimits { nodes: Some(nodes), ..SearchLimits::default() },
            AssessmentLimits::Milliseconds(milliseconds) => {
                SearchLimits { time: Some(Duration::from_millis(milliseconds)), ..SearchLimits::default() }
            }
        };
        self.searcher.table().clear();
        let report = self.searcher.search(&SearchRequest::new(board, limits), self.databases, stop, &mut |_| {});
        if let Some(wrong) = report.contradiction {
            let position = game::notation::PositionText::of_board(wrong).to_string();
            return Err(AssessmentError::Contradiction { position });
        }
        if stop.is_set() {
            return Err(AssessmentError::Stopped);
        }
        let (low, high) = (AwariGame::hundredths(report.low.into()), AwariGame::hundredths(report.high.into()));
        let estimate = report.estimate.clamp(low.into(), high.into()) as Hundredths;
        Ok(Assessed { assessment: Assessment { low, high, estimate }, depth: report.depth, nodes: report.nodes })
    }

    /// Returns the value of a position that the rules or a database give.
    pub fn known(&self, board: &Board) -> Option<Hundredths> {
        if board.moves(self.game.rules()).next().is_none() {
            return Some(AwariGame::hundredths(self.game.rules().terminal_score(board).into()));
        }
        let is_known = self.databases.knows(board.stones());
        let score = if is_known { self.databases.score(board) } else { None };
        score.map(|score| AwariGame::hundredths(score.into()))
    }
}
