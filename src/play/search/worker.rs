//! The search of one thread: principal-variation search with proved bounds beside the estimates.
//!
//! Every position yields an estimate and proved bounds. The window of alpha-beta is one of estimates; a
//! proved bound outside the window ends the search of a position as well. Bounds come from the ends of lines
//! (positions in databases, and players without a move), and are passed up by the rule of negamax; what is
//! not searched has the widest bounds.
//!
//! # Repetitions
//!
//! A move back to a position on the path is worth 0 on this path, and unknown on another one (the
//! graph-history interaction). So a position below the repeated one has two pairs of bounds: `low` and
//! `high`, for which a repetition is unknown, and `assumed_low` and `assumed_high`, for which it is worth 0.
//! Only the first are entered into the table.
//!
//! At the repeated position, if no repetition below leads further up, the assumed bounds become proved: the
//! moves that gave the lower bound are a strategy that never leaves the searched tree except at its ends.
//! Played again at each repetition, it reaches an end whose value the bound has counted, or goes on for ever,
//! which is worth 0, and the bound has counted this as well. (Where a repetition has no fixed value, nothing
//! is assumed about it.) The same holds for the opponent and the upper bound.

use crate::board::{PackedBoard, SearchMove, SearchMoves};
use crate::busy::{BUSY_DEPTH, BusyKey, BusyPositions};
use crate::evaluation::{Evaluation, open_estimate};
use crate::exact_scores::ExactScores;
use crate::limits::SearchStop;
use crate::memo::{BoundsMemo, MemoPlace};
use crate::open_estimates::OpenEstimates;
use crate::outcome::{FoundMoves, Outcome, PATH_FREE};
use crate::recent::RecentEstimates;
use crate::table::{DEPTH_MAX, EstimateKind, STONE, TableEntry, TablePlace, TranspositionTable};
use game::{Board, HALF_PITS, Rules, STONES_MAX};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The most moves of a line.
pub(crate) const PLY_MAX: usize = DEPTH_MAX as usize + 1;

/// Up to this distance from the root, scores of databases are waited for (8 plies, as in Lincke 2002, section 6.2).
const PROBE_PLIES: usize = 8;

/// From this depth on, scores of databases are waited for anywhere: the tree below is larger than the time to
/// decode a block.
const PROBE_DEPTH: i32 = 5;

/// Late moves, which seldom are the best, are first searched to a smaller depth: from this place in the order
/// on, and from this depth on. What they prove holds at any depth.
const REDUCED_FROM: usize = 1;
const REDUCED_DEPTH: i32 = 3;

/// From this place in the order on, late moves are reduced by one more.
const REDUCED_MORE_FROM: usize = 3;

/// A position with at most this number of legal moves is searched one move deeper.
const EXTENDED_MOVES: usize = 2;

/// Positions are extended up to this multiple of the depth of the iteration, so that forced moves do not
/// lengthen lines without end.
const EXTENDED_PLIES: i32 = 2;

/// Up to this depth, a position outside the line of best play is not searched if its static estimate exceeds
/// the window by a margin (reverse futility pruning): this one, and another one for each move of depth.
const FUTILE_DEPTH: i32 = 5;
const FUTILE_MARGIN: i32 = STONE / 2;
const FUTILE_MARGIN_OF_MOVE: i32 = STONE;

/// From this depth on, a position outside the line of best play is first searched to a depth that is smaller
/// by some moves. If that exceeds the window by a margin, it is not searched further (Buro 1995, ProbCut).
const CUT_DEPTH: i32 = 8;
const CUT_MOVES: i32 = 4;
const CUT_MARGIN: i32 = 3 * STONE / 2;

/// Up to this depth, a board with an estimate of [`OpenEstimates`] is not searched: the estimate has looked further.
/// The search to a smaller depth before one of [`CUT_DEPTH`] moves looks it up.
const OPEN_DEPTH: i32 = 4;

/// Positions between two looks at the limits: some tens of microseconds.
const POLL_NODES: u64 = 256;

/// What the threads of a search share.
pub(crate) struct SharedSearch<'a> {
    pub(crate) table: &'a TranspositionTable,
    pub(crate) scores: &'a dyn ExactScores,
    pub(crate) evaluation: &'a Evaluation,
    /// Present if there are several threads.
    pub(crate) busy: Option<&'a BusyPositions>,
    pub(crate) rules: &'a Rules,
    /// Set by the caller.
    pub(crate) stop: &'a SearchStop,
    /// Set by the main thread when it is done.
    pub(crate) done: &'a SearchStop,
    /// The positions searched by all threads, as of their last polls.
    pub(crate) nodes: &'a AtomicU64,
    /// The scores looked up by all threads, as of their last polls.
    pub(crate) probes: &'a AtomicU64,
    pub(crate) nodes_max: u64,
    pub(crate) deadline: Option<Instant>,
}

/// Bounds of the position after a root move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RootBounds {
    pub(crate) low: i32,
    pub(crate) high: i32,
    /// The lower bound if the player who moved at the root makes the same move again whenever the root is repeated.
    pub(crate) assumed_low: i32,
}

/// The window of a search, in units of 1/[`STONE`] stone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AlphaBeta {
    pub(crate) alpha: i32,
    pub(crate) beta: i32,
}

impl AlphaBeta {
    /// Returns the window of the position after a move.
    #[inline]
    fn after(self, captured: u8) -> AlphaBeta {
        let captured = i32::from(captured) * STONE;
        AlphaBeta { alpha: captured - self.beta, beta: captured - self.alpha }
    }

    fn is_open(self) -> bool {
        self.beta - self.alpha > 1
    }
}

/// The place of a position on the path from the start of the game.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathPlace {
    /// The number of positions before it.
    pub(crate) at: usize,
    /// The first position since the last capture.
    pub(crate) from: usize,
}

impl PathPlace {
    #[inline]
    pub(crate) fn next(self, captured: u8) -> PathPlace {
        let at = self.at + 1;
        PathPlace { at, from: if captured > 0 { at } else { self.from } }
    }
}

/// A position whose moves may be searched.
#[derive(Clone, Copy)]
struct SearchNode {
    board: PackedBoard,
    number: u64,
    depth: i32,
    place: PathPlace,
    table: TablePlace,
}

/// A line of play.
#[derive(Clone, Copy)]
pub(crate) struct PlayedLine {
    pits: [u8; PLY_MAX],
    len: usize,
}

impl PlayedLine {
    pub(crate) fn pits(&self) -> &[u8] {
        &self.pits[..self.len]
    }
}

/// The search of one thread.
pub(crate) struct Worker<'a> {
    shared: &'a SharedSearch<'a>,
    /// By stones, whether databases know the scores.
    known: [bool; STONES_MAX as usize + 1],
    memo: Option<&'a BoundsMemo>,
    open_estimates: Option<&'a OpenEstimates>,
    /// The numbers of the positions since the last capture of the game, and from the root on.
    path: Vec<u64>,
    /// The number of positions before the root.
    root: usize,
    /// The depth of the iteration.
    pub(crate) root_depth: i32,
    /// The best lines by plies from the root.
    lines: Vec<PlayedLine>,
    /// How often a pit with this number of stones was a good move.
    history: [[i32; STONES_MAX as usize + 1]; HALF_PITS],
    recent: RecentEstimates,
    nodes: u64,
    probes: u64,
    /// Nodes and probes at the last poll.
    reported: (u64, u64),
    pub(crate) is_stopped: bool,
    /// A position with contradictory bounds.
    pub(crate) contradiction: Option<Board>,
}

impl<'a> Worker<'a> {
    /// Makes the worker of a search whose root comes after these positions.
    pub(crate) fn new(shared: &'a SharedSearch<'a>, before: &[u64]) -> Worker<'a> {
        let mut path = before.to_vec();
        path.resize(before.len() + PLY_MAX + 1, 0);
        let known = std::array::from_fn(|stones| shared.scores.knows(stones as u32));
        Worker {
            shared,
            known,
            memo: shared.scores.memo(),
            open_estimates: shared.scores.open_estimates(),
            path,
            root: before.len(),
            root_depth: 0,
            lines: vec![PlayedLine { pits: [0; PLY_MAX], len: 0 }; PLY_MAX + 1],
            history: [[0; STONES_MAX as usize + 1]; HALF_PITS],
            recent: RecentEstimates::new(),
            nodes: 0,
            probes: 0,
            reported: (0, 0),
            is_stopped: false,
            contradiction: None,
        }
    }

    /// Puts the root on the path and returns its place.
    pub(crate) fn root(&mut self, board: PackedBoard) -> PathPlace {
        self.path[self.root] = board.number();
        PathPlace { at: self.root, from: 0 }
    }

    /// Whether a position occurred in the game before the root, since the last capture.
    pub(crate) fn is_in_game(&self, board: PackedBoard) -> bool {
        self.repeated(PathPlace { at: self.root + 1, from: 0 }, board.number())
            .is_some_and(|earlier| earlier < self.root)
    }

    /// Returns the last place on the path before `place` of a position.
    ///
    /// Where a repetition shares the stones out, positions with either player to move count: a score is that
    /// of the player to move. By other rules a game ends only where the same player is to move.
    #[inline]
    fn repeated(&self, PathPlace { at, from }: PathPlace, number: u64) -> Option<usize> {
        let found = from + self.path[from..at].iter().rposition(|&earlier| earlier == number)?;
        let is_same_side = |earlier: &usize| (at - earlier).is_multiple_of(2);
        if self.shared.rules.has_scores() || is_same_side(&found) {
            Some(found)
        } else {
            (from..found).rev().filter(is_same_side).find(|&earlier| self.path[earlier] == number)
        }
    }

    /// Returns bounds of the position after a root move, of which repetitions of the root are a part.
    ///
    /// The player who moves at the root can make the same move at each repetition, so that `high` is proved.
    /// The opponent cannot prevent another move there: `assumed_low` holds only together with those of the
    /// other root moves, and `low` does not count repetitions of the root.
    pub(crate) fn root_bounds(&self, found: &Outcome) -> RootBounds {
        let is_closed = found.repeats == PATH_FREE || found.repeats as usize >= self.root;
        let high = if is_closed { found.assumed_high } else { found.high };
        let assumed_low = if is_closed { found.assumed_low } else { found.low };
        RootBounds { low: found.low.into(), high: high.into(), assumed_low: assumed_low.into() }
    }

    /// Returns the best line of the position after a root move.
    pub(crate) fn line(&self) -> &PlayedLine {
        &self.lines[1]
    }

    /// Reports the searched positions, and looks at the limits.
    pub(crate) fn poll(&mut self) {
        let shared = self.shared;
        let nodes = self.nodes - self.reported.0;
        let all = shared.nodes.fetch_add(nodes, Ordering::Relaxed) + nodes;
        shared.probes.fetch_add(self.probes - self.reported.1, Ordering::Relaxed);
        self.reported = (self.nodes, self.probes);
        self.is_stopped |= shared.stop.is_set()
            || shared.done.is_set()
            || all >= shared.nodes_max
            || shared.deadline.is_some_and(|deadline| Instant::now() >= deadline);
    }

    /// Looks a position up in the databases. Near the root and above large trees it is worth waiting for the score.
    #[inline]
    fn probe(&mut self, board: PackedBoard, number: impl FnOnce() -> u64, at: usize, depth: i32) -> Option<(i32, i32)> {
        let stones = board.stones() as usize;
        if !self.known[stones] {
            return None;
        }
        let number = number();
        if let Some(found) = self.estimated(board, || number) {
            return Some((found.low.into(), found.high.into()));
        }
        let place = self.memo.and_then(|memo| memo.place(number));
        let (low, high) = match place.and_then(MemoPlace::get) {
            Some(kept) => kept,
            None => {
                let scores = self.shared.scores;
                let read = if at - self.root <= PROBE_PLIES || depth >= PROBE_DEPTH {
                    scores.bounds(&board.board())?
                } else {
                    scores.ready_bounds(&board.board())?
                };
                if let Some(place) = place {
                    place.put(read);
                }
                read
            }
        };
        self.probes += 1;
        Some((i32::from(low), i32::from(high)))
    }

    /// Searches a position.
    pub(crate) fn search(&mut self, board: PackedBoard, window: AlphaBeta, depth: i32, place: PathPlace) -> Outcome {
        let ply = place.at - self.root;
        self.lines[ply].len = 0;
        if board.mover == 0 {
            return Outcome::exact(-(board.stones() as i32));
        }
        self.nodes += 1;
        if self.nodes.is_multiple_of(POLL_NODES) {
            self.poll();
        }
        if depth <= 0 || ply + 1 >= PLY_MAX {
            return self.leaf(board, window, place);
        }
        let number = board.number();
        let node = SearchNode { board, number, depth, place, table: self.shared.table.place_of(number) };
        self.shared.table.prefetch(node.table);
        if let Some(repeated) = self.repeated(place, number) {
            return Outcome { repeats: repeated as u32, ..Outcome::repetition(self.shared.rules, board) };
        }
        if depth <= OPEN_DEPTH
            && let Some(outcome) = self.estimated(board, || number)
        {
            return outcome;
        }
        self.path[place.at] = number;
        // Before the entry is read, which main memory takes as long for. Where the entry ends the search, the
        // estimate is for nothing.
        let is_fixed = !window.is_open() && depth <= FUTILE_DEPTH;
        let fixed = is_fixed.then(|| self.recent.estimate(self.shared.evaluation, board));
        let (low, high, first) = match self.known(&node, window) {
            ControlFlow::Continue(known) => known,
            ControlFlow::Break(outcome) => return outcome,
        };
        if !window.is_open()
            && let Some(outcome) = self.cut(board, fixed, window, (low, high), depth, place)
        {
            return outcome;
        }
        let window = AlphaBeta { alpha: window.alpha.max(low * STONE), beta: window.beta.min(high * STONE) };
        let mut moves = board.moves(self.shared.rules);
        if moves.is_empty() {
            return Outcome::exact(self.shared.rules.terminal_score(&board.board()).into());
        }
        self.order(board, &mut moves, first);
        match self.search_moves(&node, &moves, window) {
            Some(found) => self.conclude(&node, window, (low, high), &found),
            None => Outcome::bounded(0, low, high),
        }
    }

    /// Returns the bounds that table and databases have for a position, and the move to search first; or its outcome,
    /// where that ends the search.
    #[inline]
    fn known(&mut self, node: &SearchNode, window: AlphaBeta) -> ControlFlow<Outcome, (i32, i32, Option<u8>)> {
        let SearchNode { board, number, depth, place, table } = *node;
        let stones = board.stones() as i32;
        let entry = self.shared.table.get(table);
        let (mut low, mut high) = entry.map_or((-stones, stones), |entry| (entry.low.into(), entry.high.into()));
        if low < high
            && let Some((least, most)) = self.probe(board, || number, place.at, depth)
        {
            if most < low || high < least {
                return ControlFlow::Break(self.contradicted(board));
            }
            (low, high) = (low.max(least), high.min(most));
            if low == high {
                self.put(table, Outcome::exact(low), EstimateKind::Full, DEPTH_MAX, None);
            }
        }
        let end = |estimate: i32| ControlFlow::Break(Outcome::bounded(estimate, low, high));
        if low == high || low * STONE >= window.beta {
            return end(low * STONE);
        }
        if high * STONE <= window.alpha {
            return end(high * STONE);
        }
        if let Some(entry) = entry.filter(|entry| entry.depth >= depth && !window.is_open()) {
            let ends = match entry.kind {
                EstimateKind::None => false,
                EstimateKind::AtLeast => entry.estimate >= window.beta,
                EstimateKind::AtMost => entry.estimate <= window.alpha,
                EstimateKind::Full => true,
            };
            if ends {
                return end(entry.estimate.clamp(low * STONE, high * STONE));
            }
        }
        ControlFlow::Continue((low, high, entry.and_then(|entry| entry.pit)))
    }

    /// Searches moves in their order until one reaches the end of the window. `None` if the search was stopped.
    fn search_moves(&mut self, node: &SearchNode, moves: &SearchMoves, window: AlphaBeta) -> Option<FoundMoves> {
        let (board, place, stones) = (node.board, node.place, node.board.stones() as i32);
        let (ply, count) = (place.at - self.root, moves.len());
        let is_extended = count <= EXTENDED_MOVES && (ply as i32) < EXTENDED_PLIES * self.root_depth;
        let depth = node.depth + i32::from(is_extended);
        let busy = self.shared.busy.filter(|_| node.depth >= BUSY_DEPTH);
        let mut all = FoundMoves::none(stones, window.alpha);
        // Moves that are put off come after all others.
        let mut deferred = [0; HALF_PITS];
        let (mut begun, mut end) = (0, count);
        while begun < end {
            let index = if begun < count { begun } else { deferred[begun - count] };
            let candidate = moves[index];
            begun += 1;
            let busy = busy.map(|busy| (busy, BusyKey::new(candidate.child, depth)));
            if let Some((busy, key)) = busy {
                if index > 0 && begun <= count && busy.contains(key) {
                    deferred[end - count] = index;
                    end += 1;
                    continue;
                }
                busy.begin(key);
            }
            let found = self.search_move(&candidate, index, window, all.alpha, depth, place);
            if let Some((busy, key)) = busy {
                busy.end(key);
            }
            if self.is_stopped {
                return None;
            }
            if !all.add(&candidate, &found) {
                continue;
            }
            if window.is_open() {
                self.extend_line(ply, candidate.pit);
            }
            if all.alpha >= window.beta {
                if begun < end {
                    (all.high, all.assumed_high) = (stones, stones);
                }
                self.reward(board, candidate.pit, depth);
                break;
            }
        }
        Some(all)
    }

    /// Searches a move. All but the first are searched in a closed window above `alpha`, late ones to a smaller depth,
    /// and again where that does not refute them.
    #[inline]
    fn search_move(
        &mut self,
        candidate: &SearchMove,
        index: usize,
        window: AlphaBeta,
        alpha: i32,
        depth: i32,
        place: PathPlace,
    ) -> Outcome {
        let next = place.next(candidate.captured);
        let full = AlphaBeta { alpha, ..window }.after(candidate.captured);
        if index == 0 {
            return self.search(candidate.child, full, depth - 1, next);
        }
        let closed = AlphaBeta { alpha, beta: alpha + 1 }.after(candidate.captured);
        let reduced = if index >= REDUCED_FROM && depth >= REDUCED_DEPTH && candidate.captured == 0 {
            i32::from(index >= REDUCED_MORE_FROM) + depth / 8 + i32::from(!window.is_open())
        } else {
            0
        };
        let mut found = self.search(candidate.child, closed, depth - 1 - reduced, next);
        if reduced > 0 && candidate.estimate(&found) > alpha && !self.is_stopped {
            found = self.search(candidate.child, closed, depth - 1, next);
        }
        let estimate = candidate.estimate(&found);
        if estimate > alpha && window.is_open() && estimate < window.beta && !self.is_stopped {
            found = self.search(candidate.child, full, depth - 1, next);
        }
        found
    }

    /// Returns the outcome of a position whose moves were searched, and enters it into the table.
    #[inline]
    fn conclude(
        &mut self,
        node: &SearchNode,
        window: AlphaBeta,
        (low, high): (i32, i32),
        found: &FoundMoves,
    ) -> Outcome {
        // A repetition of this very position does not depend on how it was reached.
        let repeats = if found.repeats >= node.place.at as u32 { PATH_FREE } else { found.repeats };
        let (assumed_low, assumed_high) = (low.max(found.assumed_low), high.min(found.assumed_high));
        let (low, high) = match repeats {
            PATH_FREE => (assumed_low, assumed_high),
            _ => (low.max(found.low), high.min(found.high)),
        };
        if low > high {
            return self.contradicted(node.board);
        }
        let kind = match found.estimate {
            _ if low == high => EstimateKind::Full,
            best if best >= window.beta => EstimateKind::AtLeast,
            best if best <= window.alpha => EstimateKind::AtMost,
            _ => EstimateKind::Full,
        };
        let repeats = if low == high { PATH_FREE } else { repeats };
        let estimate = found.estimate.clamp(low * STONE, high * STONE);
        let mut outcome = Outcome { repeats, ..Outcome::bounded(estimate, low, high) };
        if repeats != PATH_FREE {
            (outcome.assumed_low, outcome.assumed_high) = (assumed_low as i8, assumed_high as i8);
        }
        let kept = if repeats == PATH_FREE { kind } else { EstimateKind::None };
        self.put(node.table, outcome, kept, node.depth, found.pit);
        outcome
    }

    /// Returns an outcome of a position that is very likely above a closed window, without searching it to its depth.
    ///
    /// `fixed` is the static estimate of a position near the end of its line. Only the estimate rests on
    /// that. Proved bounds are those that are known, or those that a search proves.
    #[inline]
    fn cut(
        &mut self,
        board: PackedBoard,
        fixed: Option<i32>,
        window: AlphaBeta,
        (low, high): (i32, i32),
        depth: i32,
        place: PathPlace,
    ) -> Option<Outcome> {
        if let Some(fixed) = fixed {
            let fixed = fixed.clamp(low * STONE, high * STONE);
            let is_above = fixed - FUTILE_MARGIN - FUTILE_MARGIN_OF_MOVE * depth >= window.beta;
            // Half of what exceeds the window: such estimates are too high on the average.
            return is_above.then(|| Outcome::bounded((fixed + window.beta) / 2, low, high));
        }
        let beta = window.beta + CUT_MARGIN;
        if depth < CUT_DEPTH || beta >= high * STONE {
            return None;
        }
        let found = self.search(board, AlphaBeta { alpha: beta - 1, beta }, depth - CUT_MOVES, place);
        (self.is_stopped || found.estimate >= beta).then_some(found)
    }

    /// Estimates a position at the end of a line. Of the moves, only captures are searched, since the evaluation knows
    /// nothing of what they change; the mover may always make another move instead.
    fn leaf(&mut self, board: PackedBoard, window: AlphaBeta, place: PathPlace) -> Outcome {
        if let Some(outcome) = self.estimated(board, || board.number()) {
            return outcome;
        }
        let stones = board.stones() as i32;
        let known = self.probe(board, || board.number(), place.at, 0);
        let (mut low, high) = match known {
            Some((low, high)) if low == high => return Outcome::exact(low),
            known => known.unwrap_or((-stones, stones)),
        };
        let estimate = self.recent.estimate(self.shared.evaluation, board);
        let mut best = match known {
            Some(_) => open_estimate(estimate, low, high),
            None => estimate.clamp(low * STONE, high * STONE),
        };
        if best < window.beta && place.at - self.root + 1 < PLY_MAX {
            let mut alpha = window.alpha.max(best);
            for candidate in board.captures(self.shared.rules).iter() {
                let captured = i32::from(candidate.captured);
                let next = AlphaBeta { alpha, beta: window.beta }.after(candidate.captured);
                let found = self.search(candidate.child, next, 0, place.next(candidate.captured));
                low = low.max(captured - i32::from(found.high));
                best = best.max(captured * STONE - found.estimate);
                alpha = alpha.max(best);
                if alpha >= window.beta {
                    break;
                }
            }
        }
        // A wrong database may contradict itself here; the moves of the position say so when it is searched.
        let low = low.min(high);
        Outcome::bounded(best.clamp(low * STONE, high * STONE), low, high)
    }

    /// Returns what databases and the estimates of their open boards say about a board, without a search.
    #[inline]
    fn estimated(&mut self, board: PackedBoard, number: impl FnOnce() -> u64) -> Option<Outcome> {
        let estimates = self.open_estimates?;
        let stones = board.stones();
        if stones > OpenEstimates::STONES_MAX || !self.known[stones as usize] {
            return None;
        }
        estimates.get(number()).inspect(|_| self.probes += 1)
    }

    /// Stops the search: bounds of this position contradict each other, so a database is wrong.
    #[cold]
    pub(crate) fn contradicted(&mut self, board: PackedBoard) -> Outcome {
        self.contradiction = Some(board.board());
        self.is_stopped = true;
        Outcome::exact(0)
    }

    fn put(&self, place: TablePlace, outcome: Outcome, kind: EstimateKind, depth: i32, pit: Option<u8>) {
        let Outcome { estimate, low, high, .. } = outcome;
        self.shared.table.put(place, TableEntry { low, high, estimate, kind, depth, pit });
    }

    /// Sorts moves by how likely they end the search of the position.
    #[inline]
    fn order(&self, board: PackedBoard, moves: &mut SearchMoves, first: Option<u8>) {
        for candidate in moves.iter_mut() {
            let stones = (board.mover >> (8 * candidate.pit)) & 63;
            candidate.priority = match first {
                Some(pit) if pit == candidate.pit => i32::MAX,
                _ => {
                    i32::from(candidate.captured) * HISTORY_MAX
                        + self.history[usize::from(candidate.pit)][stones as usize]
                }
            };
        }
        for end in 1..moves.len() {
            let mut at = end;
            while at > 0 && moves[at].priority > moves[at - 1].priority {
                moves.swap(at, at - 1);
                at -= 1;
            }
        }
    }

    /// Notes that a move ended the search of a position.
    fn reward(&mut self, board: PackedBoard, pit: u8, depth: i32) {
        let stones = (board.mover >> (8 * pit)) & 63;
        let entry = &mut self.history[usize::from(pit)][stones as usize];
        *entry += depth * depth;
        if *entry > HISTORY_MAX {
            self.history.iter_mut().flatten().for_each(|entry| *entry /= 2);
        }
    }

    /// Makes a move, followed by the line of the next ply, the best line of this ply.
    fn extend_line(&mut self, ply: usize, pit: u8) {
        let (this, next) = self.lines.split_at_mut(ply + 1);
        let (this, next) = (&mut this[ply], &next[0]);
        this.pits[0] = pit;
        this.len = (next.len + 1).min(PLY_MAX);
        this.pits[1..this.len].copy_from_slice(&next.pits[..this.len - 1]);
    }
}

/// Bound on the entries of the history.
const HISTORY_MAX: i32 = 1 << 14;
