//! Expansion priorities of the drop-out strategy (Lincke 2002, equations 3.1 and 3.2).
//!
//! The book player plays best moves only, the opponent any move. The priority of a position is the least cost
//! of a leaf that such play reaches: its depth, plus what the opponent pays, at the rate of omega. A small
//! number is urgent. It is a shortest distance, so after a change it is repaired as one, and no cycle counts
//! up for ever.
//!
//! Every position has two priorities, for either player at the move: the same position occurs with both.

use crate::fixpoint::{EquationSystem, Inconsistent};
use crate::game::Hundredths;
use crate::graph::{BookGraph, NodeId};
use std::fmt;

/// A distance in ten-thousandths of a ply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority(pub(crate) u64);

impl Priority {
    /// The priority of a leaf.
    pub const ZERO: Priority = Priority(0);
    /// The priority of a position below which nothing is to be expanded.
    pub const INFINITE: Priority = Priority(u64::MAX);
    /// The priority of a leaf after one move.
    pub const PLY: Priority = Priority(10_000);

    pub(crate) fn plus(self, other: Priority) -> Priority {
        Priority(self.0.saturating_add(other.0))
    }

    /// Returns the number of plies; infinite if nothing is to be expanded.
    pub fn plies(self) -> f64 {
        if self == Priority::INFINITE { f64::INFINITY } else { self.0 as f64 / Priority::PLY.0 as f64 }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Priority::INFINITE => f.write_str("none"),
            _ => write!(f, "{:.2}", self.plies()),
        }
    }
}

/// The two priorities of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priorities {
    /// If the book player is to move.
    pub book: Priority,
    /// If the opponent is to move.
    pub opponent: Priority,
}

/// The parameters of drop-out expansion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropOut {
    /// Hundredths of a ply that an opponent's loss of a stone counts as.
    pub omega: u64,
    /// The difference between the best and the second best move from which a move counts as forced, and adds
    /// a hundredth of a ply to the depth (fractional depth, Lincke 2002, section 3.4.3). Without it, every
    /// move adds a ply.
    pub forced: Option<Hundredths>,
    /// Whether to go on where the book player has a best move of proved value: to solve the root, not only to play.
    pub solves: bool,
}

impl DropOut {
    /// The largest omega: a million plies a stone.
    pub const OMEGA_MAX: u64 = 100_000_000;

    /// Reads a number of plies a stone, with up to two decimals, as hundredths.
    pub fn read_omega(text: &str) -> Option<u64> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let is_number = !whole.is_empty()
            && decimals.len() <= 2
            && (whole.to_owned() + decimals).bytes().all(|byte| byte.is_ascii_digit());
        let hundredths = format!("{whole}{decimals:0<2}").parse().ok().filter(|_| is_number);
        hundredths.filter(|&omega| omega <= DropOut::OMEGA_MAX)
    }

    /// Returns what the opponent's loss costs.
    pub(crate) fn cost(&self, price: Hundredths) -> Priority {
        Priority(self.omega.saturating_mul(u64::from(price.max(0).unsigned_abs())))
    }

    /// Whether a best move of a position has a proved value.
    pub(crate) fn is_settled(&self, graph: &BookGraph, id: NodeId) -> bool {
        let best = graph.best(id);
        graph.moves(id).iter().any(|edge| graph.is_closed(edge.child) && Some(graph.estimate(edge)) == best)
    }

    /// Returns the depth that a move of a position adds.
    pub(crate) fn step(&self, graph: &BookGraph, id: NodeId) -> Priority {
        const LEAST: u64 = Priority::PLY.0 / 100;
        let Some(forced) = self.forced.filter(|&forced| forced > 0) else { return Priority::PLY };
        let (mut best, mut second) = (Hundredths::MIN, None);
        for edge in graph.moves(id) {
            let estimate = graph.estimate(edge);
            if second.is_none() && best == Hundredths::MIN {
                best = estimate;
            } else {
                let lesser = estimate.min(best);
                best = best.max(estimate);
                second = Some(second.map_or(lesser, |second: Hundredths| second.max(lesser)));
            }
        }
        let Some(second) = second else { return Priority(LEAST) };
        let gap = (i64::from(best) - i64::from(second)).min(i64::from(forced)) as u64;
        Priority((Priority::PLY.0 - Priority::PLY.0 * gap / u64::from(forced.unsigned_abs())).max(LEAST))
    }
}

const SIDES: u32 = 2;

/// The equations of the priorities.
struct PriorityEquations<'a> {
    graph: &'a BookGraph,
    rule: &'a DropOut,
    found: &'a mut [Priorities],
    is_waiting: &'a dyn Fn(NodeId) -> bool,
}

impl EquationSystem for PriorityEquations<'_> {
    type Solution = Priority;
    type Key = Priority;

    fn solution(&self, variable: u32) -> Priority {
        let both = &self.found[(variable / SIDES) as usize];
        if variable.is_multiple_of(SIDES) { both.book } else { both.opponent }
    }

    fn set(&mut self, variable: u32, solution: Priority) {
        let both = &mut self.found[(variable / SIDES) as usize];
        if variable.is_multiple_of(SIDES) {
            both.book = solution;
        } else {
            both.opponent = solution;
        }
    }

    fn formula(&self, variable: u32) -> Priority {
        let (id, graph) = (NodeId(variable / SIDES), self.graph);
        if graph.is_closed(id) {
            return Priority::INFINITE;
        }
        let Some(best) = graph.best(id) else {
            return if (self.is_waiting)(id) { Priority::INFINITE } else { Priority::ZERO };
        };
        let step = self.rule.step(graph, id);
        let is_book = variable.is_multiple_of(SIDES);
        let is_settled = is_book && self.rule.is_settled(graph, id);
        if is_settled && !self.rule.solves {
            return Priority::INFINITE;
        }
        let mut least = Priority::INFINITE;
        for edge in graph.moves(id) {
            let price = best - graph.estimate(edge);
            let child = &self.found[edge.child.index()];
            if !is_book {
                least = least.min(child.book.plus(step).plus(self.rule.cost(price)));
            } else if price == 0 || is_settled {
                least = least.min(child.opponent.plus(step).plus(self.rule.cost(price)));
            }
        }
        least
    }

    fn nothing(&self) -> Priority {
        Priority::INFINITE
    }

    fn key(&self, _: u32, solution: Priority) -> Priority {
        solution
    }

    fn dependents(&self, variable: u32, found: &mut Vec<u32>) {
        let (id, other) = (NodeId(variable / SIDES), 1 - variable % SIDES);
        found.extend(self.graph.moves_to(id).map(|edge| edge.parent.0 * SIDES + other));
    }
}

/// Repairs the priorities after values of positions changed. `changed` are these positions, and those with new moves.
pub(crate) fn update(
    graph: &BookGraph,
    rule: &DropOut,
    found: &mut Vec<Priorities>,
    is_waiting: &dyn Fn(NodeId) -> bool,
    changed: impl Iterator<Item = NodeId>,
) {
    found.resize(graph.len(), Priorities { book: Priority::INFINITE, opponent: Priority::INFINITE });
    let mut distances = PriorityEquations { graph, rule, found, is_waiting };
    let mut inconsistent = Inconsistent::<Priority>::new();
    for id in changed {
        // Prices of a position's moves depend on the values of its successors.
        for at in std::iter::once(id).chain(graph.moves_to(id).map(|edge| edge.parent)) {
            inconsistent.check(&distances, at.0 * SIDES);
            inconsistent.check(&distances, at.0 * SIDES + 1);
        }
    }
    inconsistent.solve(&mut distances);
}
