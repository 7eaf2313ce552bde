//! Iterative deepening from a position, by one or several threads.

use crate::board::PackedBoard;
use crate::busy::BusyPositions;
use crate::evaluation::Evaluation;
use crate::exact_scores::ExactScores;
use crate::limits::{SearchLimits, SearchStop};
use crate::outcome::Outcome;
use crate::report::{MoveEstimate, SearchReport, SearchedMove};
use crate::table::{STONE, TranspositionTable};
use crate::worker::{AlphaBeta, PLY_MAX, SharedSearch, Worker};
use game::{Board, Pit, Rules, STONES_MAX};
use std::cmp::Reverse;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// The first half-width of the window around the estimate of the previous iteration.
const ASPIRATION: i32 = STONE / 2;

/// A bound outside the estimates of all positions.
const INFINITE: i32 = (STONES_MAX as i32 + 1) * STONE;

/// Searches positions. Knowledge about positions is kept from search to search.
#[derive(Debug)]
pub struct Searcher {
    table: TranspositionTable,
    evaluation: Evaluation,
    rules: Rules,
}

/// What to search.
#[derive(Clone, Debug)]
pub struct SearchRequest<'a> {
    /// The position.
    pub board: Board,
    /// The positions of the game before it, since the last capture. A move back to one of them ends the game.
    pub before: &'a [Board],
    /// When to stop.
    pub limits: SearchLimits,
    /// The number of best moves whose estimates are wanted, at least 1.
    pub lines: usize,
    /// The number of threads, at least 1.
    pub threads: usize,
}

impl<'a> SearchRequest<'a> {
    /// A request for the best move of a position, by one thread.
    pub fn new(board: Board, limits: SearchLimits) -> SearchRequest<'a> {
        SearchRequest { board, before: &[], limits, lines: 1, threads: 1 }
    }
}

/// A move of the root.
#[derive(Clone, Debug)]
struct RootMove {
    pit: u8,
    captured: u8,
    child: PackedBoard,
    low: i32,
    high: i32,
    /// An upper bound of its value if repetitions of the root are worth 0. The largest one is an upper bound
    /// of the root.
    assumed_high: i32,
    estimate: MoveEstimate,
    line: Vec<u8>,
}

impl RootMove {
    fn is_exact(&self) -> bool {
        self.low == self.high
    }
}

impl Searcher {
    /// Makes a searcher with a table of about this size, by the rules of awari.
    ///
    /// # Errors
    /// If the system refuses the memory.
    pub fn new(table_bytes: u64, evaluation: Evaluation) -> io::Result<Searcher> {
        Searcher::by(Rules::AWARI, table_bytes, evaluation)
    }

    /// Makes a searcher with a table of about this size, by some rules. By others than those of awari it is
    /// several times slower; and the evaluation that the program contains was fitted to awari.
    ///
    /// # Errors
    /// If the system refuses the memory.
    ///
    /// Where a repetition does not share the stones out, a position has no score. The search then proves bounds that no
    /// repetition changes, and estimates a repetition by what it yields.
    pub fn by(rules: Rules, table_bytes: u64, evaluation: Evaluation) -> io::Result<Searcher> {
        Ok(Searcher { table: TranspositionTable::new(table_bytes)?, evaluation, rules })
    }

    /// Returns the rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the table.
    pub fn table(&self) -> &TranspositionTable {
        &self.table
    }

    /// Searches a position. `progress` receives the report of each iteration.
    pub fn search(
        &self,
        request: &SearchRequest<'_>,
        scores: &dyn ExactScores,
        stop: &SearchStop,
        progress: &mut dyn FnMut(&SearchReport),
    ) -> SearchReport {
        let start = Instant::now();
        self.table.next_generation();
        let (done, nodes, probes) = (SearchStop::new(), AtomicU64::new(0), AtomicU64::new(0));
        let limits = request.limits;
        let busy = (request.threads > 1).then(BusyPositions::new);
        let shared = SharedSearch {
            table: &self.table,
            scores,
            evaluation: &self.evaluation,
            busy: busy.as_ref(),
            rules: &self.rules,
            stop,
            done: &done,
            nodes: &nodes,
            probes: &probes,
            nodes_max: limits.nodes.unwrap_or(u64::MAX),
            deadline: limits.time.and_then(|time| start.checked_add(time)),
        };
        let before: Vec<u64> = request.before.iter().map(|board| PackedBoard::new(board).number()).collect();
        let board = PackedBoard::new(&request.board);
        thread::scope(|scope| {
            for helper in 1..request.threads.max(1) {
                let (shared, before) = (&shared, &before);
                let spawned = thread::Builder::new().name(format!("search-{helper}")).spawn_scoped(scope, move || {
                    Deepening::new(shared, before, board).run_helper(helper);
                });
                // Without a thread the search is only slower.
                if spawned.is_err() {
                    break;
                }
            }
            let mut deepening = Deepening::new(&shared, &before, board);
            deepening.run(request, start, progress);
            done.stop();
            deepening.worker.poll();
            deepening.report(start)
        })
    }
}

/// Iterative deepening of one thread.
struct Deepening<'a> {
    worker: Worker<'a>,
    shared: &'a SharedSearch<'a>,
    board: PackedBoard,
    moves: Vec<RootMove>,
    depth: i32,
}

impl<'a> Deepening<'a> {
    fn new(shared: &'a SharedSearch<'a>, before: &[u64], board: PackedBoard) -> Deepening<'a> {
        let stones = board.stones() as i32;
        let root_move = |legal: &crate::board::SearchMove| RootMove {
            pit: legal.pit,
            captured: legal.captured,
            child: legal.child,
            low: 2 * i32::from(legal.captured) - stones,
            high: stones,
            assumed_high: stones,
            estimate: MoveEstimate::AtMost(stones * 100),
            line: vec![legal.pit],
        };
        let moves = board.moves(shared.rules).iter().map(root_move).collect();
        Deepening { worker: Worker::new(shared, before), shared, board, moves, depth: 0 }
    }

    /// Deepens until a limit is reached or everything that is wanted is proved.
    fn run(&mut self, request: &SearchRequest<'_>, start: Instant, progress: &mut dyn FnMut(&SearchReport)) {
        let lines = request.lines.max(1).min(self.moves.len());
        let limits = request.limits;
        let depth_max = limits.depth.map_or(PLY_MAX as i32 - 1, |depth| depth.clamp(1, PLY_MAX as u32 - 1) as i32);
        for depth in 1..=depth_max {
            self.deepen(depth, lines);
            if self.worker.is_stopped {
                break;
            }
            self.depth = depth;
            self.worker.poll();
            progress(&self.report(start));
            let is_late = limits.iteration_time.is_some_and(|time| start.elapsed() >= time);
            if self.worker.is_stopped || is_late || self.is_settled(lines) {
                break;
            }
        }
    }

    /// Deepens until the main thread is done, at other depths than other threads.
    fn run_helper(&mut self, helper: usize) {
        for depth in 1..PLY_MAX as i32 {
            let skips = depth > 3 && (depth as usize + helper).is_multiple_of(3);
            if !skips {
                self.deepen(depth, 1.min(self.moves.len()));
            }
            if self.worker.is_stopped {
                break;
            }
        }
        self.worker.poll();
    }

    /// Whether deeper searches cannot change the best moves.
    fn is_settled(&self, lines: usize) -> bool {
        let Some(best) = self.moves.first() else { return true };
        best.low >= self.high() && (lines == 1 || self.moves[..lines].iter().all(RootMove::is_exact))
    }

    /// Returns the score of the root if it has no moves.
    fn terminal(&self) -> i32 {
        self.shared.rules.terminal_score(&self.board.board()).into()
    }

    /// Returns the proved lower bound of the root.
    fn low(&self) -> i32 {
        self.moves.iter().map(|candidate| candidate.low).max().unwrap_or(self.terminal())
    }

    /// Returns the proved upper bound of the root.
    fn high(&self) -> i32 {
        self.moves.iter().map(|candidate| candidate.assumed_high).max().unwrap_or(self.terminal())
    }

    /// Searches the root to a depth: the estimates of the best `lines` moves, and bounds of those of the others.
    fn deepen(&mut self, depth: i32, lines: usize) {
        let earlier = self.moves.clone();
        self.worker.root_depth = depth;
        for line in 0..lines {
            let mut delta = ASPIRATION;
            let center = match self.moves[line].estimate {
                MoveEstimate::About(estimate) if depth > 2 => Some(estimate * STONE / 100),
                _ => None,
            };
            let mut window = match center {
                Some(center) => AlphaBeta { alpha: center - delta, beta: center + delta },
                None => AlphaBeta { alpha: -INFINITE, beta: INFINITE },
            };
            loop {
                let best = self.pass(depth, window, line);
                if self.worker.is_stopped {
                    self.restore(earlier, lines);
                    return;
                }
                delta *= 3;
                if best <= window.alpha && window.alpha > -INFINITE {
                    window.alpha = (best - delta).max(-INFINITE);
                } else if best >= window.beta && window.beta < INFINITE {
                    window.beta = (best + delta).min(INFINITE);
                } else {
                    break;
                }
            }
        }
        self.sort(lines);
    }

    /// Sorts the best moves. The sort is stable: moves of equal estimates stay in their order.
    fn sort(&mut self, lines: usize) {
        self.moves[..lines].sort_by_key(|candidate| Reverse(candidate.estimate.hundredths()));
    }

    /// Goes back to the moves of the previous iteration after one that was stopped, since estimates of different depths
    /// cannot be compared. What was proved stays, and so does a best move that was searched to the end.
    fn restore(&mut self, earlier: Vec<RootMove>, lines: usize) {
        let is_found = matches!(self.moves.first(), Some(best) if matches!(best.estimate, MoveEstimate::About(_)));
        if lines == 1 && is_found {
            return;
        }
        let stopped = std::mem::replace(&mut self.moves, earlier);
        for candidate in &mut self.moves {
            if let Some(found) = stopped.iter().find(|found| found.pit == candidate.pit) {
                (candidate.low, candidate.high, candidate.assumed_high) = (found.low, found.high, found.assumed_high);
                candidate.estimate = candidate.estimate.within(candidate.low * 100, candidate.high * 100);
            }
        }
        self.sort(lines);
    }

    /// Searches the moves from `first` on, and moves the best of them to this place. Returns its estimate.
    fn pass(&mut self, depth: i32, window: AlphaBeta, first: usize) -> i32 {
        let place = self.worker.root(self.board);
        let (mut alpha, mut best) = (window.alpha, i32::MIN);
        for index in first..self.moves.len() {
            let candidate = &self.moves[index];
            let (child, captured, pit) = (candidate.child, candidate.captured, candidate.pit);
            let stones = i32::from(captured);
            let next = place.next(captured);
            let shifted = |estimate: i32| stones * STONE - estimate;
            let full = AlphaBeta { alpha: shifted(window.beta), beta: shifted(alpha) };
            let null = AlphaBeta { alpha: shifted(alpha + 1), beta: shifted(alpha) };
            let repeats = captured == 0 && self.worker.is_in_game(child);
            let rules = self.shared.rules;
            let mut look = |window| match repeats {
                true if rules.has_scores() => Outcome::repetition(rules, child),
                // The game ends, and the players get what the rules say.
                true => Outcome::exact(rules.repetition_score(&child.board()).into()),
                false => self.worker.search(child, window, depth - 1, next),
            };
            let mut found = look(if best == i32::MIN { full } else { null });
            let is_better = |estimate: i32| estimate > alpha && estimate < window.beta;
            if best != i32::MIN && is_better(shifted(found.estimate)) {
                found = look(full);
            }
            if self.worker.is_stopped {
                return best;
            }
            let estimate = shifted(found.estimate);
            let candidate = &mut self.moves[index];
            let bounds = self.worker.root_bounds(&found);
            let (low, high) = (stones - bounds.high, stones - bounds.low);
            if candidate.low > high || low > candidate.high {
                self.worker.contradicted(child);
                return best;
            }
            (candidate.low, candidate.high) = (candidate.low.max(low), candidate.high.min(high));
            candidate.assumed_high = candidate.assumed_high.min(stones - bounds.assumed_low).min(candidate.high);
            let hundredths = estimate * 100 / STONE;
            let is_full = estimate > alpha && estimate < window.beta || candidate.is_exact();
            candidate.estimate =
                if is_full { MoveEstimate::About(hundredths) } else { MoveEstimate::AtMost(hundredths) };
            if estimate >= window.beta {
                // A lower bound; the window will be widened.
                candidate.estimate = MoveEstimate::About(hundredths);
            }
            if estimate > alpha {
                candidate.line.clear();
                candidate.line.push(pit);
                candidate.line.extend_from_slice(self.worker.line().pits());
            }
            if estimate > best {
                best = estimate;
                if estimate > alpha || index == first {
                    self.moves[first..=index].rotate_right(1);
                }
            }
            alpha = alpha.max(estimate);
            if alpha >= window.beta {
                break;
            }
        }
        best
    }

    /// Returns what is known so far.
    fn report(&self, start: Instant) -> SearchReport {
        let pit = |pit: u8| Pit::new(pit).unwrap_or(Pit::ALL[0]);
        let moves = self.moves.iter().map(|candidate| SearchedMove {
            pit: pit(candidate.pit),
            captured: candidate.captured,
            low: candidate.low as i8,
            high: candidate.high as i8,
            estimate: candidate.estimate,
            line: candidate.line.iter().map(|&at| pit(at)).collect(),
        });
        let moves: Vec<SearchedMove> = moves.collect();
        let (low, high) = (self.low(), self.high());
        let estimate = moves.first().map_or(low * 100, |best| best.estimate.hundredths());
        SearchReport {
            low: low as i8,
            high: high as i8,
            estimate: estimate.clamp(low * 100, high * 100),
            moves,
            depth: self.depth as u32,
            nodes: self.shared.nodes.load(Ordering::Relaxed),
            probes: self.shared.probes.load(Ordering::Relaxed),
            contradiction: self.worker.contradiction,
            time: start.elapsed(),
            table_permille: self.shared.table.permille_used(),
        }
    }
}
