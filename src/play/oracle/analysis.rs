//! Positions beyond the databases: the engine of the crate `search` with the databases as exact scores.

use crate::answer::{Answer, Oracle, ValuedMove};
use crate::bounds::Bounds;
use crate::error::OracleError;
use crate::level::{Level, choose_weighted};
use game::{Board, Orientation, Pit, Played, Score};
use search::{
    BoundsMemo, ExactScores, MoveEstimate, OpenEstimates, SearchLimits, SearchReport, SearchRequest, SearchStop,
    SearchedMove, Searcher,
};
use std::sync::{OnceLock, PoisonError};
use std::time::{Duration, Instant};
use store::{CachedScores, StoreError};

/// The most moves of the line of a position in a database.
const LINE_MOVES_MAX: usize = 30;

/// The part of the time for a position with known bounds that its search takes; the rest is for the proof of
/// a guarantee.
const SEARCH_EIGHTHS: u32 = 7;

/// The databases of an oracle, as a search reads them.
///
/// A database that cannot be read is as one that does not exist: the search goes on without it, and
/// [`error`](Self::error) returns the reason.
#[derive(Debug)]
pub struct SearchProbes<'a> {
    oracle: &'a Oracle,
    stones_max: u32,
    is_repeatable: bool,
    error: OnceLock<OracleError>,
}

impl<'a> SearchProbes<'a> {
    /// Reads the databases of `oracle` of at most `stones_max` stones.
    pub fn new(oracle: &'a Oracle, stones_max: u32) -> SearchProbes<'a> {
        SearchProbes { oracle, stones_max, is_repeatable: false, error: OnceLock::new() }
    }

    /// Looks up no compressed score that is wanted only if it is ready, since the content of the cache
    /// decides which ones are.
    #[must_use]
    pub fn repeatable(self) -> SearchProbes<'a> {
        SearchProbes { is_repeatable: true, ..self }
    }

    /// Whether a database could not be read.
    pub fn has_error(&self) -> bool {
        self.error.get().is_some()
    }

    fn read(
        &self,
        board: &Board,
        read: impl Fn(&CachedScores, u64) -> Option<Result<Score, StoreError>>,
    ) -> Option<(Score, Score)> {
        let (index, scores) = self.oracle.indexed(board.stones()).ok()?;
        if !self.oracle.set().contains(board) {
            return None;
        }
        let position = index.rank(board, Orientation::OpponentMajor)?;
        let note = |error: StoreError| {
            self.oracle.note_failed(board.stones(), position);
            self.error.set(error.into())
        };
        let score = |scores| read(scores, position)?.map_err(note).ok();
        let low = score(scores)?;
        match self.oracle.upper(board.stones()) {
            Some(high) => {
                let high = score(high)?;
                if low > high {
                    let _ = self.error.set(OracleError::Crossed { board: *board, low, high });
                    return None;
                }
                Some((low, high))
            }
            None => Some((low, low)),
        }
    }

    /// Returns the first error of a database, if there was one.
    pub fn error(self) -> Option<OracleError> {
        self.error.into_inner()
    }
}

impl ExactScores for SearchProbes<'_> {
    fn score(&self, board: &Board) -> Option<Score> {
        self.bounds(board).filter(|(low, high)| low == high).map(|(low, _)| low)
    }

    fn ready_score(&self, board: &Board) -> Option<Score> {
        self.ready_bounds(board).filter(|(low, high)| low == high).map(|(low, _)| low)
    }

    fn knows(&self, stones: u32) -> bool {
        stones <= self.stones_max && self.oracle.has_sound(stones)
    }

    fn bounds(&self, board: &Board) -> Option<(Score, Score)> {
        self.read(board, |scores, position| Some(scores.get(position)))
    }

    fn ready_bounds(&self, board: &Board) -> Option<(Score, Score)> {
        self.read(board, |scores, position| {
            if self.is_repeatable {
                scores.scores().is_in_place().then(|| scores.get(position))
            } else {
                scores.get_decoded(position)
            }
        })
    }

    fn memo(&self) -> Option<&BoundsMemo> {
        (!self.is_repeatable).then_some(&self.oracle.memo)
    }

    fn open_estimates(&self) -> Option<&OpenEstimates> {
        self.oracle.open_estimates.get()
    }
}

impl Oracle {
    /// Makes what the first search would wait for: by rules that give a board two bounds, the estimates of all boards
    /// of up to 12 stones, which takes about a second. A search says which database cannot be read, if one cannot.
    pub fn prepare_search(&self) {
        let _ = self.make_open_estimates();
    }

    /// Estimates the small boards of all databases from 0 stones up, if their bounds may differ. Nothing is made if a
    /// database cannot be read: once it is given up, those with fewer stones are estimated.
    fn make_open_estimates(&self) -> Result<(), OracleError> {
        if self.rules().has_scores() || self.open_estimates.get().is_some() {
            return Ok(());
        }
        let _making = self.making_estimates.lock().unwrap_or_else(PoisonError::into_inner);
        if self.open_estimates.get().is_some() {
            return Ok(());
        }
        let known = (0..=OpenEstimates::STONES_MAX).take_while(|&stones| self.has_sound(stones)).count() as u32;
        let Some(stones_max) = known.checked_sub(1) else { return Ok(()) };
        let probes = SearchProbes::new(self, stones_max);
        let bounds = |board: &Board| probes.bounds(board);
        let made = OpenEstimates::new(self.rules(), self.searchers.evaluation(), stones_max, bounds);
        match probes.error() {
            Some(error) => Err(error),
            None => {
                self.open_estimates.get_or_init(|| made);
                Ok(())
            }
        }
    }

    /// Analyzes a position: by the databases alone if they hold it, else by a search.
    ///
    /// `progress` receives the report of each iteration of a search. In the report of a position in a
    /// database everything is proved, and its depth is the length of the line.
    ///
    /// # Errors
    /// As [`answer`](Oracle::answer) if a database holds the position; [`OracleError::Contradiction`] if a
    /// search proves that a database is wrong. A database that cannot be read is an error only if the
    /// position itself is in it.
    ///
    /// # Panics
    /// If the searcher has other rules than the databases.
    pub fn analyze(
        &self,
        searcher: &Searcher,
        request: &SearchRequest<'_>,
        stop: &SearchStop,
        progress: &mut dyn FnMut(&SearchReport),
    ) -> Result<SearchReport, OracleError> {
        let probes = SearchProbes::new(self, self.stones_max().unwrap_or(0));
        self.analyze_through(&probes, searcher, request, stop, progress)
    }

    /// Analyzes a position as [`analyze`](Self::analyze), but goes on without databases that turn out to be
    /// damaged: they are [given up](Self::drop_databases). `dropped` receives the errors.
    ///
    /// # Errors
    /// Errors that are not those of databases.
    pub fn analyze_without_damaged(
        &self,
        searcher: &Searcher,
        request: &SearchRequest<'_>,
        stop: &SearchStop,
        progress: &mut dyn FnMut(&SearchReport),
        dropped: &mut dyn FnMut(&OracleError),
    ) -> Result<SearchReport, OracleError> {
        self.prepare_search();
        let start = Instant::now();
        let mut remaining = request.clone();
        loop {
            let probes = SearchProbes::new(self, self.stones_max().unwrap_or(0));
            let result = self.analyze_through(&probes, searcher, &remaining, stop, progress);
            let (report, error) = match (result, probes.error()) {
                (Ok(report), None) => return Ok(report),
                // The search has gone on without it.
                (Ok(report), Some(error)) => (Some(report), error),
                (Err(error), _) => (None, error),
            };
            let is_dropped = self.drop_databases(&error);
            if is_dropped {
                dropped(&error);
                // Bounds of the table may rest on wrong scores.
                searcher.table().clear();
            }
            match report {
                Some(report) => return Ok(report),
                None if !is_dropped => return Err(error),
                None => {}
            }
            let left = |limit: Option<Duration>| limit.map(|limit| limit.saturating_sub(start.elapsed()));
            remaining.limits.time = left(request.limits.time);
            remaining.limits.iteration_time = left(request.limits.iteration_time);
        }
    }

    /// Analyzes a position as [`analyze`](Self::analyze), with these databases in the search. Afterwards
    /// [`SearchProbes::error`] returns the error of a database that the search went on without.
    ///
    /// # Errors
    /// As [`analyze`](Self::analyze).
    pub fn analyze_through(
        &self,
        probes: &SearchProbes<'_>,
        searcher: &Searcher,
        request: &SearchRequest<'_>,
        stop: &SearchStop,
        progress: &mut dyn FnMut(&SearchReport),
    ) -> Result<SearchReport, OracleError> {
        // Before the time of the search begins.
        if let Err(error) = self.make_open_estimates() {
            let _ = probes.error.set(error);
        }
        let start = Instant::now();
        let stones = request.board.stones();
        assert!(searcher.rules() == self.rules(), "a search by the rules of the databases");
        if request.board.moves(self.rules()).next().is_none() || stones <= probes.stones_max && self.has(stones) {
            let answer = self.answer(&request.board)?;
            if !self.rules().has_scores() {
                let mut report = self.analyze_open(&answer, probes, searcher, request, stop, progress)?;
                report.time = start.elapsed();
                return Ok(report);
            }
            if answer.score.score().is_some() {
                let is_late = || request.limits.time.is_some_and(|time| start.elapsed() >= time);
                let mut report = self.report(answer, &|| stop.is_set() || is_late())?;
                report.time = start.elapsed();
                return Ok(report);
            }
        }
        let report = searcher.search(request, probes, stop, progress);
        match report.contradiction {
            Some(board) => Err(OracleError::Contradiction { board }),
            None => Ok(report),
        }
    }

    /// Returns what a search finds about a position whose bounds are known, after the positions before it in
    /// the game. Where every move has a known value, nothing is searched.
    ///
    /// If the search expects no more than what the player is guaranteed, the first move is one that keeps the
    /// guarantee, whatever the opponent does. To keep it always would cost more than a stone a game against
    /// an opponent that is as strong.
    fn analyze_open(
        &self,
        answer: &Answer,
        probes: &SearchProbes<'_>,
        searcher: &Searcher,
        request: &SearchRequest<'_>,
        stop: &SearchStop,
        progress: &mut dyn FnMut(&SearchReport),
    ) -> Result<SearchReport, OracleError> {
        let start = Instant::now();
        let before = request.before;
        let mut values = Vec::with_capacity(answer.moves.len());
        for valued in &answer.moves {
            let played = Played { child: valued.child, captured: valued.captured };
            values.push((valued, self.value_in_game(&played, before)?));
        }
        values.sort_by_key(|(_, value)| -value.low());
        let best = values.iter().map(|&(_, value)| value).reduce(Bounds::max).unwrap_or(answer.score);
        let mut report = if values.iter().all(|(_, value)| value.score().is_some()) {
            SearchReport {
                low: best.low(),
                high: best.high(),
                estimate: i32::from(best.low()) * 100,
                moves: values.iter().map(|(valued, value)| known_move(valued, *value)).collect(),
                depth: 1,
                nodes: 0,
                probes: 1,
                time: Duration::ZERO,
                contradiction: None,
                table_permille: 0,
            }
        } else {
            let part = |time: Duration| time * SEARCH_EIGHTHS / 8;
            let limits = SearchLimits { time: request.limits.time.map(part), ..request.limits };
            searcher.search(&SearchRequest { limits, ..request.clone() }, probes, stop, progress)
        };
        if let Some(board) = report.contradiction {
            return Err(OracleError::Contradiction { board });
        }
        for candidate in &mut report.moves {
            let Some((_, value)) = values.iter().find(|(known, _)| known.pit == candidate.pit) else { continue };
            (candidate.low, candidate.high) = (candidate.low.max(value.low()), candidate.high.min(value.high()));
        }
        (report.low, report.high) = (report.low.max(best.low()), report.high.min(best.high()));
        let expected = report.moves.first().map_or(0, SearchedMove::estimated_hundredths);
        let is_guarantee_enough = report.nodes == 0 || expected <= i32::from(best.low()) * 100;
        if is_guarantee_enough && best.low() > -(answer.board.stones() as Score) {
            let is_late = || request.limits.time.is_some_and(|time| start.elapsed() >= time);
            let is_over = || stop.is_set() || is_late();
            let guaranteed = self.guaranteed_move_until(&answer.board, before, best.low(), &is_over)?;
            report.moves.sort_by_key(|candidate| guaranteed != Some(candidate.pit));
        }
        if let Some(first) = report.moves.first() {
            report.estimate =
                first.estimated_hundredths().clamp(i32::from(report.low) * 100, i32::from(report.high) * 100);
        }
        Ok(report)
    }

    /// Makes the report of a position whose score is known, from its answer. The line is shorter if `is_over` says so.
    fn report(&self, answer: Answer, is_over: &dyn Fn() -> bool) -> Result<SearchReport, OracleError> {
        let line = self.line_until(&answer.board, LINE_MOVES_MAX, is_over)?.moves;
        let pits: Vec<Pit> = line.iter().map(|valued| valued.pit).collect();
        let searched = |valued: &ValuedMove| SearchedMove {
            pit: valued.pit,
            captured: valued.captured,
            low: valued.value.low(),
            high: valued.value.high(),
            estimate: match valued.value.score() {
                Some(value) => MoveEstimate::About(i32::from(value) * 100),
                None => MoveEstimate::AtMost(i32::from(valued.value.high()) * 100),
            },
            line: if pits.first() == Some(&valued.pit) { pits.clone() } else { vec![valued.pit] },
        };
        let mut moves: Vec<SearchedMove> = answer.moves.iter().map(searched).collect();
        // The move of the line comes first among equals: best moves alone may repeat positions for ever.
        moves.sort_by_key(|candidate| (-candidate.high, pits.first() != Some(&candidate.pit)));
        Ok(SearchReport {
            low: answer.score.low(),
            high: answer.score.high(),
            estimate: i32::from(answer.score.low()) * 100,
            moves,
            depth: pits.len() as u32,
            nodes: 0,
            probes: 1,
            time: Duration::ZERO,
            contradiction: None,
            table_permille: 0,
        })
    }
}

/// Returns a move whose value is known.
fn known_move(valued: &ValuedMove, value: Bounds) -> SearchedMove {
    SearchedMove {
        pit: valued.pit,
        captured: valued.captured,
        low: value.low(),
        high: value.high(),
        estimate: MoveEstimate::About(i32::from(value.low()) * 100),
        line: vec![valued.pit],
    }
}

impl Level {
    /// Chooses a move of a report at this level; `None` if there is none. `random` is between 0 and 1.
    ///
    /// The level `perfect` plays the best move that the search found. Other levels need estimates of all moves: the
    /// request must ask for as many lines as there are moves.
    pub fn choose(self, report: &SearchReport, random: f64) -> Option<Pit> {
        let Some(stones_halving) = self.stones_halving() else {
            return report.moves.first().map(|candidate| candidate.pit);
        };
        let stones = |candidate: &SearchedMove| f64::from(candidate.estimated_hundredths()) / 100.0;
        choose_weighted(report.moves.iter().map(|candidate| (candidate.pit, stones(candidate))), stones_halving, random)
    }
}
