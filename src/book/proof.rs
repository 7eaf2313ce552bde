//! A strategy that proves the value of a position.
//!
//! The estimate of the root gives the value that is to be proved: the possible value nearest to it. Two
//! claims prove it: the player to move gets at least that much, and the opponent keeps it from getting more.
//! They are worked on in turn.
//!
//! Each claim has a defender. A proof has one move of the defender and all moves of the attacker, so the search follows
//! the defender's best move, and of the attacker's moves the most dangerous one whose claim is still open. It enters no
//! position twice: where a line repeats one, another move of the attacker has to be refuted. So a claim that rests on
//! repetitions needs no special treatment: the proved bounds follow from the book, in which cycles are worth 0.

use crate::game::Hundredths;
use crate::graph::{BookEdge, BookGraph, NodeId};
use std::cmp::Reverse;
use std::collections::HashSet;

/// What is claimed of a position, for the player to move there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ValueClaim {
    /// The value is at least this. The player to move defends the claim.
    AtLeast(Hundredths),
    /// The value is at most this. The opponent defends the claim.
    AtMost(Hundredths),
}

impl ValueClaim {
    /// Returns the claim of the position after a move, from that of the position before it.
    fn after(self, edge: &BookEdge) -> ValueClaim {
        match self {
            ValueClaim::AtLeast(value) => ValueClaim::AtMost(edge.gain - value),
            ValueClaim::AtMost(value) => ValueClaim::AtLeast(edge.gain - value),
        }
    }

    /// Whether the bounds of a position neither prove nor refute the claim.
    fn is_open(self, graph: &BookGraph, id: NodeId) -> bool {
        let bounds = graph.value(id);
        match self {
            ValueClaim::AtLeast(value) => bounds.low < value && value <= bounds.high,
            ValueClaim::AtMost(value) => value < bounds.high && bounds.low <= value,
        }
    }
}

/// Returns a leaf whose value matters for the proof that a position has a value; `None` if both claims are settled.
/// `round` counts the choices.
pub(crate) fn select(
    graph: &BookGraph,
    root: NodeId,
    value: Hundredths,
    is_waiting: &dyn Fn(NodeId) -> bool,
    round: u64,
) -> Option<NodeId> {
    let mut claims = [ValueClaim::AtLeast(value), ValueClaim::AtMost(value)];
    if !round.is_multiple_of(2) {
        claims.reverse();
    }
    // Where the best moves of the defender lead to nothing that can be expanded, all its moves are followed.
    let widths = [Defence::BestMove, Defence::AllMoves];
    widths
        .into_iter()
        .flat_map(|defence| claims.map(|claim| (claim, defence)))
        .find_map(|(claim, defence)| open_leaf(graph, root, claim, defence, is_waiting))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Defence {
    BestMove,
    AllMoves,
}

/// Returns the first open leaf of a claim, the most dangerous moves of the attacker first.
fn open_leaf(
    graph: &BookGraph,
    root: NodeId,
    claim: ValueClaim,
    defence: Defence,
    is_waiting: &dyn Fn(NodeId) -> bool,
) -> Option<NodeId> {
    let mut seen = HashSet::new();
    let mut path = vec![(root, claim)];
    while let Some((id, claim)) = path.pop() {
        if !claim.is_open(graph, id) || !seen.insert((id, claim)) {
            continue;
        }
        if !graph.is_interior(id) {
            if is_waiting(id) {
                continue;
            }
            return Some(id);
        }
        let is_possible = |edge: &&BookEdge| claim.after(edge).is_open(graph, edge.child);
        let moves = graph.moves(id).iter().filter(is_possible);
        // Both players prefer the move with the best estimate. The last of the path is taken first.
        match (claim, defence) {
            (ValueClaim::AtLeast(_), Defence::BestMove) => {
                let best = moves.min_by_key(|edge| Reverse(graph.estimate(edge)));
                path.extend(best.map(|edge| (edge.child, claim.after(edge))));
            }
            _ => {
                let mut moves: Vec<&BookEdge> = moves.collect();
                moves.sort_by_key(|edge| graph.estimate(edge));
                path.extend(moves.into_iter().map(|edge| (edge.child, claim.after(edge))));
            }
        }
    }
    None
}
