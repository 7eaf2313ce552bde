//! The graph of a book: positions with their assessments, and the moves between them.
//!
//! A position is a leaf, or interior with all its moves. Positions are shared by all lines that lead to them. The
//! graph knows nothing of strategies.

use crate::game::{Assessment, BookGame, BookMove, Hundredths};
use rustc_hash::FxHashMap;

/// A position of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// The number of the position, in the order of entry.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A number derived from others of the same kind, and the length of the derivation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DerivedValue {
    pub(crate) value: Hundredths,
    /// The number of moves to what forces the value; 0 if the value is 0 or given.
    pub(crate) rank: u32,
}

/// What the graph holds of a position.
#[derive(Clone, Debug)]
pub struct BookNode {
    /// The key of the position.
    pub key: u64,
    /// What was known of it without the book.
    pub assessment: Assessment,
    pub(crate) low: DerivedValue,
    pub(crate) high: DerivedValue,
    pub(crate) estimate: DerivedValue,
    pub(crate) level: u16,
    degree: u8,
    first_out: u32,
    first_in: u32,
}

/// A move between two positions of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookEdge {
    /// The position of the move.
    pub parent: NodeId,
    /// The position after it.
    pub child: NodeId,
    /// The number of the move.
    pub number: u8,
    /// The gain of the move.
    pub gain: Hundredths,
    /// The next edge into the child.
    next_in: u32,
}

/// The end of a list of edges.
const NO_EDGE: u32 = u32::MAX;

/// Positions and moves.
#[derive(Debug, Default)]
pub struct BookGraph {
    nodes: Vec<BookNode>,
    edges: Vec<BookEdge>,
    by_key: FxHashMap<u64, u32>,
    interior: usize,
}

impl BookGraph {
    /// Returns the number of positions.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no positions.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the number of moves.
    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// Returns the number of interior positions.
    pub fn interior_count(&self) -> usize {
        self.interior
    }

    /// Returns all positions, in the order of entry.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// Returns the position of a key.
    pub fn find(&self, key: u64) -> Option<NodeId> {
        self.by_key.get(&key).copied().map(NodeId)
    }

    /// Returns what is held of a position.
    #[inline]
    pub fn node(&self, id: NodeId) -> &BookNode {
        &self.nodes[id.0 as usize]
    }

    #[inline]
    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut BookNode {
        &mut self.nodes[id.0 as usize]
    }

    /// Returns the moves of a position; none of a leaf.
    #[inline]
    pub fn moves(&self, id: NodeId) -> &[BookEdge] {
        let node = self.node(id);
        let first = node.first_out as usize;
        &self.edges[first..first + usize::from(node.degree)]
    }

    /// Whether the moves of a position are in the book.
    #[inline]
    pub fn is_interior(&self, id: NodeId) -> bool {
        self.node(id).degree > 0
    }

    /// Returns the moves that lead to a position.
    pub fn moves_to(&self, id: NodeId) -> impl Iterator<Item = &BookEdge> {
        let mut next = self.node(id).first_in;
        std::iter::from_fn(move || {
            let edge = self.edges.get(next as usize)?;
            next = edge.next_in;
            Some(edge)
        })
    }

    /// Adds a leaf, or returns the position if the book has it.
    pub(crate) fn enter(&mut self, game: &impl BookGame, key: u64, assessment: Assessment) -> NodeId {
        let new = self.nodes.len() as u32;
        let id = *self.by_key.entry(key).or_insert(new);
        if id == new {
            let exact = |value| DerivedValue { value, rank: 0 };
            self.nodes.push(BookNode {
                key,
                assessment,
                low: exact(assessment.low),
                high: exact(assessment.high),
                estimate: exact(assessment.estimate.clamp(assessment.low, assessment.high)),
                level: game.level(key),
                degree: 0,
                first_out: 0,
                first_in: NO_EDGE,
            });
        }
        NodeId(id)
    }

    /// Gives a leaf its moves. All successors are in the book.
    pub(crate) fn join(&mut self, leaf: NodeId, moves: &[BookMove]) {
        debug_assert!(!self.is_interior(leaf));
        let first = self.edges.len() as u32;
        for book_move in moves {
            let child = NodeId(self.by_key[&book_move.successor]);
            let edge = self.edges.len() as u32;
            let next_in = std::mem::replace(&mut self.node_mut(child).first_in, edge);
            self.edges.push(BookEdge { parent: leaf, child, number: book_move.number, gain: book_move.gain, next_in });
        }
        let node = self.node_mut(leaf);
        (node.first_out, node.degree) = (first, moves.len() as u8);
        self.interior += 1;
    }

    /// Returns what the book knows of a position.
    #[inline]
    pub fn value(&self, id: NodeId) -> Assessment {
        let node = self.node(id);
        Assessment { low: node.low.value, high: node.high.value, estimate: node.estimate.value }
    }

    /// Whether the value of a position is proved.
    #[inline]
    pub fn is_closed(&self, id: NodeId) -> bool {
        let node = self.node(id);
        node.low.value == node.high.value
    }

    /// Returns the estimate of a move.
    #[inline]
    pub fn estimate(&self, edge: &BookEdge) -> Hundredths {
        edge.gain - self.node(edge.child).estimate.value
    }

    /// Returns the largest estimate of a move; `None` for a leaf. A move that has it is a *best move*.
    #[inline]
    pub fn best(&self, id: NodeId) -> Option<Hundredths> {
        self.moves(id).iter().map(|edge| self.estimate(edge)).max()
    }
}
