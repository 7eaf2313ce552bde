//! Answers about positions: from the databases where they hold the position, by a search elsewhere.

use crate::args::{SearchArgs, TableArgs};
use crate::error::{CliError, Result};
use disk::{clock, heap};
use game::play::Game;
use game::{Board, HALF_PITS};
use oracle::{Bounds, Oracle};
use search::{Evaluation, MoveEstimate, SearchLimits, SearchReport, SearchRequest, SearchStop, SearchedMove, Searcher};
use std::cell::OnceCell;
use std::time::Duration;

/// An oracle with a search for the positions that it does not hold.
pub(crate) struct Analyst {
    pub(crate) oracle: Oracle,
    /// Made when the first position is searched: most questions need none.
    searcher: OnceCell<Searcher>,
    table: TableArgs,
    limits: SearchLimits,
}

impl Analyst {
    /// Makes an analyst; `otherwise` is the time of a search if the arguments limit nothing.
    pub(crate) fn new(oracle: Oracle, args: &SearchArgs, otherwise: Duration) -> Analyst {
        Analyst { oracle, searcher: OnceCell::new(), table: args.table.clone(), limits: args.limits(otherwise) }
    }

    /// Whether the databases answer for a position, so that nothing is searched.
    pub(crate) fn holds(&self, board: &Board) -> bool {
        board.mover_starves() || self.oracle.stones().any(|stones| stones == board.stones())
    }

    /// Analyzes a position that comes after others of a game, with estimates of the best `lines` moves.
    pub(crate) fn analyze(&self, board: Board, before: &[Board], lines: usize) -> Result<SearchReport> {
        let searcher = match self.searcher.get() {
            Some(searcher) => searcher,
            None => {
                let made = searcher(&self.table)?;
                self.searcher.get_or_init(|| made)
            }
        };
        let request =
            SearchRequest { before, lines, threads: self.table.threads(), ..SearchRequest::new(board, self.limits) };
        heap::room_for_threads(request.threads).map_err(CliError::Thread)?;
        let mut completed = None;
        let stop = SearchStop::new();
        let report = self.oracle.analyze(searcher, &request, &stop, &mut |report| completed = Some(report.clone()))?;
        Ok(match completed {
            Some(completed) if lines > 1 => comparable(completed, report),
            _ => report,
        })
    }

    /// Analyzes the position of a game, with estimates of all moves.
    pub(crate) fn analyze_all(&self, game: &Game) -> Result<SearchReport> {
        self.analyze(game.now().board, &positions_since_capture(game), HALF_PITS)
    }
}

/// Returns the estimates of the last completed iteration with the bounds of the whole search: the estimates of an iteration
/// that was stopped are of different depths, and cannot be compared.
fn comparable(completed: SearchReport, last: SearchReport) -> SearchReport {
    let bounds = |one: &SearchedMove| last.moves.iter().find(|other| other.pit == one.pit).map(|at| (at.low, at.high));
    let mut moves = completed.moves;
    for one in &mut moves {
        if let Some((low, high)) = bounds(one) {
            let within = |hundredths: i32| hundredths.clamp(i32::from(low) * 100, i32::from(high) * 100);
            (one.low, one.high) = (low, high);
            one.estimate = match one.estimate {
                MoveEstimate::About(estimate) => MoveEstimate::About(within(estimate)),
                MoveEstimate::AtMost(estimate) => MoveEstimate::AtMost(within(estimate)),
            };
        }
    }
    moves.sort_by_key(|one| std::cmp::Reverse(one.estimate.hundredths()));
    let (low, high) = (i32::from(last.low) * 100, i32::from(last.high) * 100);
    let estimate = moves.first().map_or(last.estimate, |best| best.estimate.hundredths()).clamp(low, high);
    SearchReport { moves, estimate, ..last }
}

/// Makes a searcher with an empty table.
pub(crate) fn searcher(args: &TableArgs) -> Result<Searcher> {
    let bytes = args.hash.bytes();
    let refused = |error| CliError::SearchTable { bytes, error };
    // The system may promise more memory than it has.
    if clock::available_bytes().is_some_and(|available| bytes > available) {
        return Err(refused(std::io::ErrorKind::OutOfMemory.into()));
    }
    Searcher::new(bytes, Evaluation::default()).map_err(refused)
}

/// Returns the positions since the last capture of a game, without the present one. A move back to one of them ends the
/// game.
pub(crate) fn positions_since_capture(game: &Game) -> Vec<Board> {
    let turns = game.turns();
    let last_capture = turns.iter().rposition(|turn| turn.captured > 0);
    let kept = &turns[last_capture.map_or(0, |at| at + 1)..];
    let first = match last_capture {
        Some(at) => turns[at].after,
        None => game.start(),
    };
    let after = kept.iter().map(|turn| turn.after);
    std::iter::once(first).chain(after).take(kept.len()).map(|situation| situation.board).collect()
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
    use game::transcript::Transcript;
    use game::{Pit, Rules};

    fn before(text: &str) -> usize {
        let game = Transcript::parse(Rules::AWARI, text).unwrap().game;
        let found = positions_since_capture(&game);
        let all: Vec<Board> = std::iter::once(game.start())
            .chain(game.turns().iter().map(|turn| turn.after))
            .map(|at| at.board)
            .collect();
        assert_eq!(found, all[all.len() - 1 - found.len()..all.len() - 1], "the positions before the present one");
        found.len()
    }

    #[test]
    fn positions_before_a_capture_do_not_count() {
        assert_eq!(before(""), 0);
        assert_eq!(before("F f"), 2);
        // The second move captures.
        assert_eq!(before("[FEN \"0-1-0-2-0-1-1-0-2-0-1-0-20-20-S\"] D a F2x2"), 0);
        assert_eq!(before("[FEN \"0-1-0-2-0-1-1-0-2-0-1-0-20-20-S\"] D a F2x2 c"), 1);
    }

    #[test]
    fn estimates_of_one_iteration_are_compared() {
        let one = |pit: usize, low, high, estimate| SearchedMove {
            pit: Pit::ALL[pit],
            captured: 0,
            low,
            high,
            estimate: MoveEstimate::About(estimate),
            line: vec![Pit::ALL[pit]],
        };
        let report = |moves: Vec<SearchedMove>, low, high, depth| SearchReport {
            low,
            high,
            estimate: moves[0].estimate.hundredths(),
            moves,
            depth,
            nodes: 0,
            probes: 0,
            time: Duration::ZERO,
            contradiction: None,
            table_permille: 0,
        };
        let completed = report(vec![one(0, -9, 9, 200), one(1, -9, 9, 100), one(2, -9, 9, -300)], -9, 9, 7);
        // The first move turned out to be bad, and the others were not searched again.
        let last = report(vec![one(0, -9, 0, -150), one(1, -9, 9, 100), one(2, -1, 9, -300)], -1, 9, 7);
        let found = comparable(completed, last);
        let moves: Vec<(usize, i8, i8, i32)> =
            found.moves.iter().map(|one| (one.pit.number(), one.low, one.high, one.estimate.hundredths())).collect();
        assert_eq!(moves, [(1, -9, 9, 100), (0, -9, 0, 0), (2, -1, 9, -100)]);
        assert_eq!((found.low, found.high, found.estimate), (-1, 9, 100));
    }

    #[test]
    fn estimates_have_a_sign() {
        assert_eq!([135, 0, -5, -480].map(stones), ["+1.35", "0.00", "-0.05", "-4.80"]);
    }
}
