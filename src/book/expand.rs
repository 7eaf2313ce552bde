//! A book under construction: a graph that grows by expansions.
//!
//! The facts of a book are its roots, the assessments of its positions, and the order of its expansions.
//! Everything else follows from them, and is repaired after each expansion.

use crate::game::{Assessment, BookGame, BookMove};
use crate::graph::{BookGraph, NodeId};
use crate::priorities::Priorities;
use crate::strategy::{BookSides, Selector, Strategy};
use crate::values;
use std::collections::HashSet;

/// A book: a graph, the game, and a strategy.
#[derive(Debug)]
pub struct Book<G> {
    game: G,
    graph: BookGraph,
    roots: Vec<NodeId>,
    sides: BookSides,
    selector: Selector,
    /// Leaves that were chosen, and whose successors are not yet assessed.
    waiting: HashSet<NodeId>,
    chosen: u64,
}

impl<G: BookGame> Book<G> {
    /// Makes an empty book.
    pub fn new(game: G, strategy: Strategy, sides: BookSides) -> Book<G> {
        Book {
            game,
            graph: BookGraph::default(),
            roots: Vec::new(),
            sides,
            selector: Selector::new(strategy),
            waiting: HashSet::new(),
            chosen: 0,
        }
    }

    /// Returns the game.
    pub fn game(&self) -> &G {
        &self.game
    }

    /// Returns the graph.
    pub fn graph(&self) -> &BookGraph {
        &self.graph
    }

    /// Returns the positions in which games begin.
    pub fn roots(&self) -> &[NodeId] {
        &self.roots
    }

    /// Returns the priorities of a position, in a book that is expanded by drop-out.
    pub fn priorities(&self, id: NodeId) -> Option<Priorities> {
        self.selector.priorities(id)
    }

    /// Returns the number of leaves chosen so far.
    pub fn choices(&self) -> u64 {
        self.chosen
    }

    /// Returns the number of positions whose expansion was entered.
    pub fn expansions(&self) -> u64 {
        self.chosen - self.waiting.len() as u64
    }

    /// Marks leaves as chosen whose expansion is not entered yet.
    pub(crate) fn wait_for(&mut self, leaves: impl IntoIterator<Item = NodeId>) {
        for leaf in leaves {
            self.chosen += 1;
            self.waiting.insert(leaf);
        }
    }

    /// Takes back choices of leaves whose expansion is not entered.
    pub(crate) fn release(&mut self, leaves: impl IntoIterator<Item = NodeId>) {
        let released: Vec<NodeId> = leaves.into_iter().filter(|leaf| self.waiting.remove(leaf)).collect();
        self.chosen -= released.len() as u64;
        let waiting = &self.waiting;
        self.selector.update(&self.graph, &self.roots, &|id| waiting.contains(&id), released.into_iter());
    }

    /// Adds a root.
    pub fn add_root(&mut self, key: u64, assessment: Assessment) -> NodeId {
        let id = self.graph.enter(&self.game, key, assessment);
        if !self.roots.contains(&id) {
            self.roots.push(id);
        }
        self.settle(&[id]);
        id
    }

    /// Chooses a leaf, which then counts as closed until it is expanded; `None` if there is nothing to expand.
    pub fn choose(&mut self) -> Option<NodeId> {
        let waiting = &self.waiting;
        let is_waiting = |id: NodeId| waiting.contains(&id);
        let (game, graph) = (&self.game, &self.graph);
        let nearest = |id: NodeId| game.nearest_value(graph.node(id).key, graph.value(id).estimate);
        let found = self.selector.select(graph, &self.roots, self.sides, &nearest, &is_waiting, self.chosen)?;
        self.chosen += 1;
        self.waiting.insert(found);
        let waiting = &self.waiting;
        self.selector.update(&self.graph, &self.roots, &|id| waiting.contains(&id), [found].into_iter());
        Some(found)
    }

    /// Returns the moves of a leaf.
    pub fn moves(&self, leaf: NodeId) -> Vec<BookMove> {
        let mut moves = Vec::new();
        self.game.moves(self.graph.node(leaf).key, &mut moves);
        moves
    }

    /// Expands a leaf: enters its successors together, and derives what follows. `assess` is called for each successor
    /// that the book does not have.
    ///
    /// # Errors
    /// Those of `assess`; nothing is entered then.
    pub fn expand<E>(&mut self, leaf: NodeId, mut assess: impl FnMut(u64) -> Result<Assessment, E>) -> Result<(), E> {
        let moves = self.moves(leaf);
        let mut entered = Vec::with_capacity(moves.len() + 1);
        let assessed: Vec<(u64, Assessment)> = moves
            .iter()
            .filter(|book_move| self.graph.find(book_move.successor).is_none())
            .map(|book_move| Ok((book_move.successor, assess(book_move.successor)?)))
            .collect::<Result<_, E>>()?;
        for (key, assessment) in assessed {
            entered.push(self.graph.enter(&self.game, key, assessment));
        }
        self.waiting.remove(&leaf);
        if !moves.is_empty() {
            self.graph.join(leaf, &moves);
        }
        entered.push(leaf);
        self.settle(&entered);
        Ok(())
    }

    /// Enters a position and its moves without deriving anything; [`Book::derive`] does that for all positions.
    pub(crate) fn restore(&mut self, leaf: NodeId, assessments: impl Fn(u64) -> Option<Assessment>) -> Result<(), u64> {
        let moves = self.moves(leaf);
        for book_move in &moves {
            if self.graph.find(book_move.successor).is_none() {
                let assessment = assessments(book_move.successor).ok_or(book_move.successor)?;
                self.graph.enter(&self.game, book_move.successor, assessment);
            }
        }
        if !moves.is_empty() && !self.graph.is_interior(leaf) {
            self.graph.join(leaf, &moves);
        }
        self.chosen += 1;
        Ok(())
    }

    /// Replaces what was known of a position without the book. An exact value closes it, also if it has moves.
    pub fn reassess(&mut self, id: NodeId, assessment: Assessment) {
        self.graph.node_mut(id).assessment = assessment;
        self.settle(&[id]);
    }

    /// Derives everything from the facts.
    pub fn derive(&mut self) {
        values::derive(&mut self.graph);
        let ids = self.graph.ids();
        let waiting = &self.waiting;
        self.selector.update(&self.graph, &self.roots, &|id| waiting.contains(&id), ids);
    }

    /// Derives what follows from new positions and moves.
    fn settle(&mut self, entered: &[NodeId]) {
        let changed = values::update(&mut self.graph, entered.iter().copied());
        let waiting = &self.waiting;
        let changed = changed.into_iter().chain(entered.iter().copied());
        self.selector.update(&self.graph, &self.roots, &|id| waiting.contains(&id), changed);
    }

    /// Asserts that what was repaired is what deriving everything from nothing gives.
    #[cfg(test)]
    pub(crate) fn assert_derived(&self) {
        let mut again = Selector::new(self.selector.strategy());
        let waiting = &self.waiting;
        again.update(&self.graph, &self.roots, &|id| waiting.contains(&id), self.graph.ids());
        self.selector.assert_same(&again);
    }
}
