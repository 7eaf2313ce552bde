//! The drop-out view of a book (Lincke 2002, sections 3.3 and 3.4): where an opponent can leave it, how soon,
//! and at what price.

use crate::game::Hundredths;
use crate::graph::{BookEdge, BookGraph, NodeId};
use crate::priorities::{DropOut, Priority};
use std::collections::{HashMap, VecDeque};

/// An end of the book that play reaches in which the book player plays best moves only, and the opponent any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BookEnd {
    /// The least number of moves from the root.
    pub depth: u32,
    /// What the opponent loses on the way: the estimate of the position and the gains so far, less the estimate of the
    /// root, seen from the book player.
    pub price: Hundredths,
    /// The position.
    pub id: NodeId,
    /// Whether its value is proved. Otherwise it is a leaf.
    pub is_closed: bool,
}

/// Returns the ends of a book, for the book player at the move or the opponent, by depth. A position with several
/// prices, by different captures on the way, is an end for each.
pub fn book_ends(graph: &BookGraph, root: NodeId, is_book: bool) -> Vec<BookEnd> {
    let value = |id: NodeId, is_book: bool, gained: i32| {
        let estimate = i32::from(graph.node(id).estimate.value);
        gained + if is_book { estimate } else { -estimate }
    };
    let start = (root, is_book, 0);
    let mut depths = HashMap::from([(start, 0)]);
    let mut queue = VecDeque::from([start]);
    let mut ends = Vec::new();
    while let Some(state) = queue.pop_front() {
        let (id, is_book_move, gained) = state;
        let depth: u32 = depths[&state];
        let is_closed = graph.is_closed(id);
        let Some(best) = graph.best(id).filter(|_| !is_closed) else {
            let price = value(id, is_book_move, gained) - value(root, is_book, 0);
            ends.push(BookEnd { depth, price: price as Hundredths, id, is_closed });
            continue;
        };
        let is_best = |edge: &&BookEdge| graph.estimate(edge) == best;
        let is_settled = is_book_move && graph.moves(id).iter().filter(is_best).any(|edge| graph.is_closed(edge.child));
        for edge in graph.moves(id) {
            // A best move of proved value is preferred.
            if is_book_move && (!is_best(&edge) || is_settled && !graph.is_closed(edge.child)) {
                continue;
            }
            let gain = i32::from(edge.gain);
            let next = (edge.child, !is_book_move, gained + if is_book_move { gain } else { -gain });
            depths.entry(next).or_insert_with(|| {
                queue.push_back(next);
                depth + 1
            });
        }
    }
    ends.sort_unstable();
    ends
}

/// Returns how early an opponent who loses at most `price` can leave the book: the least depth of a leaf.
pub fn drop_out_depth(ends: &[BookEnd], price: Hundredths) -> Option<u32> {
    ends.iter().filter(|end| !end.is_closed && end.price <= price).map(|end| end.depth).min()
}

/// Returns the least cost of a leaf: its depth, and the price at `omega` hundredths of a ply a stone. It is
/// the priority of the root, by another way (see the [priorities](crate::Priorities)).
pub fn least_cost(ends: &[BookEnd], omega: u64) -> Priority {
    let rule = DropOut { omega, forced: None, solves: false };
    let cost = |end: &BookEnd| Priority(u64::from(end.depth) * Priority::PLY.0).plus(rule.cost(end.price));
    ends.iter().filter(|end| !end.is_closed).map(cost).min().unwrap_or(Priority::INFINITE)
}
