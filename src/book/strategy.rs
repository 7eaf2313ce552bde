//! Strategies: which leaf is expanded next.
//!
//! All choices are deterministic: ties go to the first move, or, in best-first expansion, by a generator with a fixed
//! seed, so that equal facts make equal books.

use crate::conspiracy::{self, ConspiracyNumbers};
use crate::game::Hundredths;
use crate::graph::{BookGraph, NodeId};
use crate::priorities::{self, DropOut, Priorities, Priority};
use crate::proof;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::fmt;

/// How a leaf is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The leaf at which an opponent would leave the book soonest and cheapest (Lincke 2002, section 3.4.2).
    DropOut(DropOut),
    /// The leaf that best moves lead to (Buro 1999; Lincke 2002, section 3.4.1).
    BestFirst,
    /// The leaf nearest to a root.
    BreadthFirst,
    /// The leaf most likely to change the estimate of a root (Lincke 2002, section 3.4.3).
    Conspiracy,
    /// A leaf that the proof of a root's value needs.
    Proof,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strategy::DropOut(DropOut { omega, forced, solves }) => {
                write!(f, "drop-out omega={}.{:02}", omega / 100, omega % 100)?;
                if let Some(forced) = forced {
                    write!(f, " forced={}", forced / 100)?;
                }
                if *solves { f.write_str(" solving") } else { Ok(()) }
            }
            Strategy::BestFirst => f.write_str("best-first"),
            Strategy::BreadthFirst => f.write_str("breadth-first"),
            Strategy::Conspiracy => f.write_str("conspiracy"),
            Strategy::Proof => f.write_str("proof"),
        }
    }
}

/// The players that a book serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum BookSides {
    /// The player to move at the root.
    First,
    /// The other player.
    Second,
    /// Both, in turn.
    #[default]
    Both,
}

/// A strategy, with what it derives from the graph.
#[derive(Debug)]
pub(crate) enum Selector {
    DropOut { rule: DropOut, found: Vec<Priorities> },
    BestFirst,
    BreadthFirst { depths: Vec<u32>, queue: BinaryHeap<Reverse<(u32, u32)>> },
    Conspiracy { found: Vec<ConspiracyNumbers> },
    Proof,
}

impl Selector {
    pub(crate) fn new(strategy: Strategy) -> Selector {
        match strategy {
            Strategy::DropOut(rule) => Selector::DropOut { rule, found: Vec::new() },
            Strategy::BestFirst => Selector::BestFirst,
            Strategy::BreadthFirst => Selector::BreadthFirst { depths: Vec::new(), queue: BinaryHeap::new() },
            Strategy::Conspiracy => Selector::Conspiracy { found: Vec::new() },
            Strategy::Proof => Selector::Proof,
        }
    }

    /// Returns the strategy.
    #[cfg(test)]
    pub(crate) fn strategy(&self) -> Strategy {
        match self {
            Selector::DropOut { rule, .. } => Strategy::DropOut(*rule),
            Selector::BestFirst => Strategy::BestFirst,
            Selector::BreadthFirst { .. } => Strategy::BreadthFirst,
            Selector::Conspiracy { .. } => Strategy::Conspiracy,
            Selector::Proof => Strategy::Proof,
        }
    }

    /// Asserts that two selectors derived the same.
    #[cfg(test)]
    pub(crate) fn assert_same(&self, other: &Selector) {
        match (self, other) {
            (Selector::DropOut { found, .. }, Selector::DropOut { found: other, .. }) => assert_eq!(found, other),
            (Selector::BreadthFirst { depths, .. }, Selector::BreadthFirst { depths: other, .. }) => {
                assert_eq!(depths, other);
            }
            (Selector::Conspiracy { found }, Selector::Conspiracy { found: other }) => assert_eq!(found, other),
            _ => assert_eq!(self.strategy(), other.strategy()),
        }
    }

    /// Takes over the changes of the graph. `changed` are positions with new values or new moves.
    pub(crate) fn update(
        &mut self,
        graph: &BookGraph,
        roots: &[NodeId],
        is_waiting: &dyn Fn(NodeId) -> bool,
        changed: impl Iterator<Item = NodeId>,
    ) {
        match self {
            Selector::DropOut { rule, found } => priorities::update(graph, rule, found, is_waiting, changed),
            Selector::BestFirst | Selector::Proof => {}
            Selector::BreadthFirst { depths, queue } => {
                depths.resize(graph.len(), u32::MAX);
                let mut shorter: Vec<(NodeId, u32)> = roots.iter().map(|&root| (root, 0)).collect();
                shorter.extend(changed.map(|id| (id, depths[id.index()])));
                while let Some((id, depth)) = shorter.pop() {
                    if depth < depths[id.index()] {
                        depths[id.index()] = depth;
                    }
                    let next = depths[id.index()].saturating_add(1);
                    match graph.is_interior(id) {
                        false if depth != u32::MAX => queue.push(Reverse((depths[id.index()], id.0))),
                        _ => {}
                    }
                    let moves = graph.moves(id).iter();
                    shorter
                        .extend(moves.filter(|edge| next < depths[edge.child.index()]).map(|edge| (edge.child, next)));
                }
            }
            Selector::Conspiracy { found } => conspiracy::update(graph, found, is_waiting, changed),
        }
    }

    /// Returns the next leaf. `nearest_value` returns the possible value of a position that is nearest to its estimate,
    /// and `round` counts the choices.
    pub(crate) fn select(
        &mut self,
        graph: &BookGraph,
        roots: &[NodeId],
        sides: BookSides,
        nearest_value: &dyn Fn(NodeId) -> Hundredths,
        is_waiting: &dyn Fn(NodeId) -> bool,
        round: u64,
    ) -> Option<NodeId> {
        match self {
            Selector::DropOut { rule, found } => {
                let wanted = match sides {
                    BookSides::First => [true, true],
                    BookSides::Second => [false, false],
                    BookSides::Both => [round.is_multiple_of(2), !round.is_multiple_of(2)],
                };
                wanted.into_iter().find_map(|is_book| select_drop_out(graph, rule, found, roots, is_book))
            }
            Selector::BestFirst => select_best_of(graph, roots, is_waiting, round),
            Selector::BreadthFirst { depths, queue } => {
                let mut found = None;
                let mut skipped = Vec::new();
                while let Some(Reverse((depth, id))) = queue.pop() {
                    let at = NodeId(id);
                    let is_current = depths[at.index()] == depth && !graph.is_interior(at);
                    if is_current && is_waiting(at) {
                        skipped.push(Reverse((depth, id)));
                    } else if is_current && !graph.is_closed(at) {
                        found = Some(at);
                        skipped.push(Reverse((depth, id)));
                        break;
                    }
                }
                queue.extend(skipped);
                found
            }
            Selector::Conspiracy { found } => {
                let counted = roots.iter().find_map(|&root| conspiracy::select(graph, found, root));
                // Values that rest on a cycle may have no number although they are not proved.
                counted.or_else(|| select_best_of(graph, roots, is_waiting, round))
            }
            Selector::Proof => {
                let open = |&root: &NodeId| proof::select(graph, root, nearest_value(root), is_waiting, round);
                // A refuted claim leaves a root with bounds that exclude its estimate's nearest value.
                roots.iter().find_map(open).or_else(|| select_best_of(graph, roots, is_waiting, round))
            }
        }
    }

    /// Returns the priorities of a position, if the strategy has any.
    pub(crate) fn priorities(&self, id: NodeId) -> Option<Priorities> {
        match self {
            Selector::DropOut { found, .. } => found.get(id.index()).copied(),
            _ => None,
        }
    }
}

/// Follows the least priorities from the root with the least one (Lincke 2002, figure 3.9).
fn select_drop_out(
    graph: &BookGraph,
    rule: &DropOut,
    found: &[Priorities],
    roots: &[NodeId],
    is_book: bool,
) -> Option<NodeId> {
    let priority_of = |id: NodeId, is_book: bool| {
        let both = found[id.index()];
        if is_book { both.book } else { both.opponent }
    };
    let root = roots.iter().copied().min_by_key(|&root| priority_of(root, is_book))?;
    if priority_of(root, is_book) == Priority::INFINITE {
        return None;
    }
    let (mut id, mut is_book) = (root, is_book);
    while let Some(best) = graph.best(id) {
        let cost = |price| rule.cost(price);
        let moves = graph.moves(id).iter().map(|edge| (edge.child, best - graph.estimate(edge)));
        let is_solving = is_book && rule.is_settled(graph, id);
        let next = if is_book && !is_solving {
            moves.filter(|&(_, price)| price == 0).min_by_key(|&(child, _)| priority_of(child, false))
        } else {
            moves.min_by_key(|&(child, price)| priority_of(child, !is_book).plus(cost(price)))
        };
        id = next?.0;
        is_book = !is_book;
    }
    Some(id)
}

/// Follows best moves from the first root below which something can be expanded.
fn select_best_of(
    graph: &BookGraph,
    roots: &[NodeId],
    is_waiting: &dyn Fn(NodeId) -> bool,
    round: u64,
) -> Option<NodeId> {
    let mut random = round.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut seen = HashSet::new();
    roots.iter().find_map(|&root| select_best(graph, root, is_waiting, &mut random, &mut seen))
}

/// Follows best moves to a leaf. Where they lead to nothing that can be expanded, the next best moves follow.
fn select_best(
    graph: &BookGraph,
    root: NodeId,
    is_waiting: &dyn Fn(NodeId) -> bool,
    random: &mut u64,
    seen: &mut HashSet<NodeId>,
) -> Option<NodeId> {
    let mut path = vec![root];
    while let Some(id) = path.pop() {
        if graph.is_closed(id) || !seen.insert(id) {
            continue;
        }
        if !graph.is_interior(id) {
            if is_waiting(id) {
                continue;
            }
            return Some(id);
        }
        let mut moves: Vec<_> = graph
            .moves(id)
            .iter()
            .map(|edge| {
                // A step of a 64-bit linear congruential generator (Knuth).
                *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (graph.estimate(edge), *random >> 33, edge.child)
            })
            .collect();
        // The best one last, so that it is taken first.
        moves.sort_by_key(|&(estimate, tie, _)| (estimate, tie));
        path.extend(moves.into_iter().map(|(.., child)| child));
    }
    None
}
