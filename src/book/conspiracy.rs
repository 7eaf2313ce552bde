//! Conspiracy numbers (McAllester 1988; Lincke 2002, sections 3.4.3 and 4.2.1).
//!
//! To raise the estimate of a position, one of its moves must become better: the estimate of one successor
//! must fall. To lower it, all best moves must become worse. The numbers count the leaves whose estimates
//! must change. They are infinite if the proved bounds forbid the change, so a position with two infinite
//! numbers is proved. Leaves with several parents are counted several times: the numbers rank the leaves, but
//! prove nothing.

use crate::fixpoint::{EquationSystem, Inconsistent};
use crate::game::Hundredths;
use crate::graph::{BookEdge, BookGraph, NodeId};

/// A number of leaves, and the moves to the farthest of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Conspirators {
    pub(crate) leaves: u32,
    rank: u32,
}

impl Conspirators {
    pub(crate) const ONE: Conspirators = Conspirators { leaves: 1, rank: 0 };
    pub(crate) const INFINITE: Conspirators = Conspirators { leaves: u32::MAX, rank: u32::MAX };

    fn after(self) -> Conspirators {
        match self {
            Conspirators::INFINITE => self,
            _ => Conspirators { rank: self.rank.saturating_add(1), ..self },
        }
    }
}

/// The conspiracy numbers of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConspiracyNumbers {
    /// To raise the estimate.
    pub(crate) up: Conspirators,
    /// To lower it.
    pub(crate) down: Conspirators,
}

impl ConspiracyNumbers {
    pub(crate) const INFINITE: ConspiracyNumbers =
        ConspiracyNumbers { up: Conspirators::INFINITE, down: Conspirators::INFINITE };
}

const DIRECTIONS: u32 = 2;

struct Conspiracies<'a> {
    graph: &'a BookGraph,
    found: &'a mut [ConspiracyNumbers],
    is_waiting: &'a dyn Fn(NodeId) -> bool,
}

impl EquationSystem for Conspiracies<'_> {
    type Solution = Conspirators;
    type Key = Conspirators;

    fn solution(&self, variable: u32) -> Conspirators {
        let both = &self.found[(variable / DIRECTIONS) as usize];
        if variable.is_multiple_of(DIRECTIONS) { both.up } else { both.down }
    }

    fn set(&mut self, variable: u32, solution: Conspirators) {
        let both = &mut self.found[(variable / DIRECTIONS) as usize];
        if variable.is_multiple_of(DIRECTIONS) {
            both.up = solution;
        } else {
            both.down = solution;
        }
    }

    fn formula(&self, variable: u32) -> Conspirators {
        let (id, graph) = (NodeId(variable / DIRECTIONS), self.graph);
        let is_up = variable.is_multiple_of(DIRECTIONS);
        let value = graph.value(id);
        if value.estimate == if is_up { value.high } else { value.low } {
            return Conspirators::INFINITE;
        }
        let Some(best) = graph.best(id) else {
            return if (self.is_waiting)(id) { Conspirators::INFINITE } else { Conspirators::ONE };
        };
        if is_up {
            let downs = graph.moves(id).iter().map(|edge| self.found[edge.child.index()].down);
            return downs.min().unwrap_or(Conspirators::INFINITE).after();
        }
        let mut sum = Conspirators { leaves: 0, rank: 0 };
        for edge in supports(graph, id, best) {
            let up = self.found[edge.child.index()].up;
            if up == Conspirators::INFINITE {
                return up;
            }
            let leaves = sum.leaves.saturating_add(up.leaves).min(u32::MAX - 1);
            sum = Conspirators { leaves, rank: sum.rank.max(up.rank) };
        }
        sum.after()
    }

    fn nothing(&self) -> Conspirators {
        Conspirators::INFINITE
    }

    fn key(&self, _: u32, solution: Conspirators) -> Conspirators {
        solution
    }

    fn dependents(&self, variable: u32, found: &mut Vec<u32>) {
        let (id, other) = (NodeId(variable / DIRECTIONS), 1 - variable % DIRECTIONS);
        found.extend(self.graph.moves_to(id).map(|edge| edge.parent.0 * DIRECTIONS + other));
    }
}

/// Repairs the numbers after values of positions changed. `changed` are these positions, and those with new moves.
pub(crate) fn update(
    graph: &BookGraph,
    found: &mut Vec<ConspiracyNumbers>,
    is_waiting: &dyn Fn(NodeId) -> bool,
    changed: impl Iterator<Item = NodeId>,
) {
    found.resize(graph.len(), ConspiracyNumbers::INFINITE);
    let mut conspiracies = Conspiracies { graph, found, is_waiting };
    let mut inconsistent = Inconsistent::<Conspirators>::new();
    for id in changed {
        for at in std::iter::once(id).chain(graph.moves_to(id).map(|edge| edge.parent)) {
            inconsistent.check(&conspiracies, at.0 * DIRECTIONS);
            inconsistent.check(&conspiracies, at.0 * DIRECTIONS + 1);
        }
    }
    inconsistent.solve(&mut conspiracies);
}

/// Returns the best moves of a position, except those that have their value from the position itself, by a cycle.
fn supports(graph: &BookGraph, id: NodeId, best: Hundredths) -> impl Iterator<Item = &BookEdge> {
    let node = graph.node(id);
    let rests_on_it = move |edge: &BookEdge| {
        let child = graph.node(edge.child);
        best > 0 && child.level == node.level && child.estimate.rank >= node.estimate.rank
    };
    let is_best = move |edge: &&BookEdge| graph.estimate(edge) == best;
    let all_rest = graph.moves(id).iter().filter(is_best).all(rests_on_it);
    graph.moves(id).iter().filter(is_best).filter(move |edge| all_rest || !rests_on_it(edge))
}

/// Returns the leaf that is most likely to change the estimate of a position.
pub(crate) fn select(graph: &BookGraph, found: &[ConspiracyNumbers], root: NodeId) -> Option<NodeId> {
    let numbers = found[root.index()];
    if numbers.up.min(numbers.down) == Conspirators::INFINITE {
        return None;
    }
    let (mut id, mut is_up) = (root, numbers.up <= numbers.down);
    while let Some(best) = graph.best(id) {
        let moves = graph.moves(id).iter();
        let next = if is_up {
            moves.min_by_key(|edge| found[edge.child.index()].down)
        } else {
            supports(graph, id, best).min_by_key(|edge| found[edge.child.index()].up)
        };
        id = next?.child;
        is_up = !is_up;
    }
    Some(id)
}
