//! Answers about positions: from the databases where they hold the position, by a search elsewhere.

use crate::args::{SearchArgs, TableArgs};
use crate::error::{CliError, Result};
use crate::files::databases::{UsedEvaluation, evaluation};
use crate::text::terminal::say;
use disk::{RealDisk, clock, threads};
use game::play::Game;
use game::{Board, HALF_PITS, Rules};
use oracle::{Bounds, Oracle, OracleError};
use pipeline::Exit;
use search::{SearchLimits, SearchReport, SearchRequest, SearchStop, Searcher};
use std::cell::{Cell, OnceCell};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An oracle with a search for the positions that it does not hold.
pub(crate) struct Analyst {
    pub(crate) oracle: Oracle,
    /// Made when the first position is searched: most questions need none.
    searcher: OnceCell<Searcher>,
    table: TableArgs,
    limits: SearchLimits,
    /// The run directory.
    dir: Option<PathBuf>,
    /// Whether a database was damaged, so that answers do without it.
    has_dropped: Cell<bool>,
}

impl Analyst {
    /// Makes an analyst with the databases of a run directory; `otherwise` is the time of a search if the
    /// arguments limit nothing.
    ///
    /// # Errors
    /// If there is no memory for the table of a search, whether one is needed or not.
    pub(crate) fn new(oracle: Oracle, dir: Option<&Path>, args: &SearchArgs, otherwise: Duration) -> Result<Analyst> {
        check_table_fits(args.table.hash.bytes(), 0)?;
        Ok(Analyst {
            oracle,
            searcher: OnceCell::new(),
            table: args.table.clone(),
            limits: args.limits(otherwise),
            dir: dir.map(Path::to_path_buf),
            has_dropped: Cell::new(false),
        })
    }

    /// Whether the rules or a database answer for a position.
    pub(crate) fn holds(&self, board: &Board) -> bool {
        board.moves(self.oracle.rules()).next().is_none() || self.oracle.stones().any(|stones| stones == board.stones())
    }

    /// Analyzes a position that comes after others of a game, with estimates of the best `lines` moves.
    pub(crate) fn analyze(&self, board: Board, before: &[Board], lines: usize) -> Result<SearchReport> {
        let searcher = match self.searcher.get() {
            Some(searcher) => searcher,
            None => {
                let evaluation = evaluation(&RealDisk::default(), self.dir.as_deref())?;
                if evaluation.path.is_some() {
                    say(evaluation.text());
                }
                let made = searcher(*self.oracle.rules(), self.table.hash.bytes(), &evaluation)?;
                self.searcher.get_or_init(|| made)
            }
        };
        let request =
            SearchRequest { before, lines, threads: self.table.threads(), ..SearchRequest::new(board, self.limits) };
        threads::room_for_threads(request.threads).map_err(CliError::Thread)?;
        let mut dropped = |error: &OracleError| self.say_dropped(error);
        let stop = SearchStop::new();
        Ok(self.oracle.analyze_without_damaged(searcher, &request, &stop, &mut |_| {}, &mut dropped)?)
    }

    /// Gives up the databases that an error is about, and says so.
    ///
    /// # Errors
    /// The error, if it is about no database.
    pub(crate) fn drop_databases(&self, error: OracleError) -> Result<()> {
        if !self.oracle.drop_databases(&error) {
            return Err(error.into());
        }
        self.say_dropped(&error);
        Ok(())
    }

    fn say_dropped(&self, error: &OracleError) {
        self.has_dropped.set(true);
        say(format_args!("{error}; the answers do without it"));
    }

    /// Returns the exit code of a command that has answered all questions.
    pub(crate) fn exit(&self) -> Exit {
        if self.has_dropped.get() { Exit::Integrity } else { Exit::Done }
    }

    /// Analyzes the position of a game, with estimates of all moves.
    pub(crate) fn analyze_all(&self, game: &Game) -> Result<SearchReport> {
        self.analyze(game.now().board, &game.positions_since_capture(), HALF_PITS)
    }
}

/// Makes a searcher by some rules, with an empty table of a number of bytes.
pub(crate) fn searcher(rules: Rules, bytes: u64, evaluation: &UsedEvaluation) -> Result<Searcher> {
    Searcher::by(rules, bytes, evaluation.evaluation.clone()).map_err(|error| CliError::SearchTable { bytes, error })
}

/// Checks that a table fits into the memory that is available once `freed` bytes more are.
///
/// The system may promise more memory than it has, and end the process when it is used.
pub(crate) fn check_table_fits(bytes: u64, freed: u64) -> Result<()> {
    match clock::available_bytes() {
        Some(available) if bytes > available.saturating_add(freed) => {
            Err(CliError::SearchTable { bytes, error: std::io::ErrorKind::OutOfMemory.into() })
        }
        _ => Ok(()),
    }
}

/// Whether bounds say more than that no player can win more than all stones of the board.
pub(crate) fn is_something_proved(bounds: Bounds, stones: u32) -> bool {
    let all = i64::from(stones);
    i64::from(bounds.low()) > -all || i64::from(bounds.high()) < all
}

/// Returns the proved bounds of the score of a report.
pub(crate) fn proved(report: &SearchReport) -> Bounds {
    Bounds::new(report.low, report.high)
}

/// Formats an estimate: `+1.35`, `0.00`.
pub(crate) fn stones(hundredths: i32) -> String {
    let text = format!("{:.2}", f64::from(hundredths) / 100.0);
    if hundredths > 0 { format!("+{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_have_a_sign() {
        assert_eq!([135, 0, -5, -480].map(stones), ["+1.35", "0.00", "-0.05", "-4.80"]);
    }
}
