//! The engine that assesses positions of awari: the rules, databases, and a search.

use crate::{Assessment, AwariGame, Hundredths};
use game::Board;
use search::{Evaluation, ExactScores, SearchLimits, SearchRequest, SearchStop, Searcher};
use std::io;

/// Assesses positions, each with an empty table: so the result depends on the position, the limits, the databases and
/// the version of the engine alone.
pub struct Assessor<'a> {
    game: AwariGame,
    databases: &'a dyn ExactScores,
    searcher: Searcher,
    limits: AssessmentLimits,
}

/// Limits of a search by which its result does not depend on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssessmentLimits {
    /// The depth in moves.
    Depth(u32),
    /// The number of positions.
    Nodes(u64),
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
    /// The size of the table, cleared for every position.
    pub const TABLE_BYTES: u64 = 1 << 20;

    /// Makes an assessor.
    ///
    /// # Errors
    /// If the system refuses the memory of the table.
    pub fn new(game: AwariGame, databases: &'a dyn ExactScores, limits: AssessmentLimits) -> io::Result<Assessor<'a>> {
        let searcher = Searcher::by(*game.rules(), Assessor::TABLE_BYTES, Evaluation::default())?;
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
