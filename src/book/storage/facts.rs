//! Reading the facts of a book.

use super::error::BookError;
use super::rows::{CheckedRows, EXPANSION, ROOT, impossible};
use super::{BookFile, failed, key_of};
use crate::awari::AwariGame;
use crate::expand::Book;
use crate::game::{Assessment, BookGame};
use crate::graph::NodeId;
use crate::priorities::DropOut;
use crate::strategy::{BookSides, Strategy};
use std::collections::{HashMap, VecDeque};

/// Leaves that wait for their expansion, each with the number of expansions before it was chosen.
pub(crate) type ChosenLeaves = Vec<(NodeId, u64)>;

/// The facts of a book, as they are in its file.
struct BookFacts {
    assessments: HashMap<u64, Assessment>,
    roots: Vec<u64>,
    /// Expanded positions in order, each with the number of expansions before it was chosen.
    expansions: Vec<(u64, Option<u64>)>,
}

impl BookFile {
    /// Reads the book, and derives everything from its facts.
    ///
    /// # Errors
    /// [`BookError::Damaged`] if the facts contradict each other, or what SQLite reports.
    pub fn load(&self, strategy: Strategy, sides: BookSides) -> Result<Book<AwariGame>, BookError> {
        let facts = self.facts()?;
        let mut book = self.restored(&facts, strategy, sides, facts.expansions.len(), usize::MAX)?;
        if book.graph().len() != facts.assessments.len() {
            let (all, found) = (facts.assessments.len(), book.graph().len());
            return Err(self.damaged(format!("{all} positions, of which roots and expansions give {found}")));
        }
        book.derive();
        let graph = book.graph();
        let is_possible = |id| graph.value(id).is_possible(book.game().value_max(graph.node(id).key));
        if let Some(id) = graph.ids().find(|&id| !is_possible(id)) {
            let text = book.game().text(graph.node(id).key);
            return Err(self.damaged(format!("the facts of {text} and of its moves contradict each other")));
        }
        Ok(book)
    }

    /// Reads the book for one who does not expand it. Values do not depend on the strategy.
    ///
    /// # Errors
    /// As [`load`](BookFile::load).
    pub fn load_values(&self) -> Result<Book<AwariGame>, BookError> {
        let rule = DropOut { omega: 100, forced: None, solves: false };
        self.load(Strategy::DropOut(rule), BookSides::Both)
    }

    /// Reads the book as it was when it first had a number of positions. Results that databases replaced later are the
    /// later ones.
    ///
    /// # Errors
    /// As [`load`](BookFile::load).
    pub fn load_first(
        &self,
        strategy: Strategy,
        sides: BookSides,
        positions: usize,
    ) -> Result<Book<AwariGame>, BookError> {
        let facts = self.facts()?;
        let mut book = self.restored(&facts, strategy, sides, facts.expansions.len(), positions)?;
        book.derive();
        Ok(book)
    }

    /// Reads a book that goes on, with the queue of its builder: the leaves chosen but not expanded, and the number of
    /// positions that were expanded when each was chosen.
    ///
    /// A leaf is entered at most `look_ahead` expansions after it was chosen. So the choices of the queue are
    /// repeated in the book as it was that many expansions ago, or after the last one on request, from which
    /// on leaves are chosen anew. A book that was expanded with other settings makes others: then its queue
    /// begins empty.
    ///
    /// # Errors
    /// As [`load`](BookFile::load).
    pub(crate) fn resume(
        &self,
        strategy: Strategy,
        sides: BookSides,
        look_ahead: usize,
    ) -> Result<(Book<AwariGame>, ChosenLeaves), BookError> {
        let whole = self.load(strategy, sides)?;
        if look_ahead <= 1 {
            return Ok((whole, Vec::new()));
        }
        let facts = self.facts()?;
        let all = facts.expansions.len();
        let near = all.saturating_sub(look_ahead - 1);
        let on_request = facts.expansions[near..].iter().rposition(|(_, chosen)| chosen.is_none());
        let first = on_request.map_or(near, |at| near + at + 1);
        let mut book = self.restored(&facts, strategy, sides, first, usize::MAX)?;
        let mut queue = VecDeque::new();
        for (key, chosen) in &facts.expansions[first..] {
            if let (Some(chosen), Some(leaf)) = (chosen, book.graph().find(*key))
                && *chosen < first as u64
            {
                queue.push_back((leaf, *chosen));
            }
        }
        book.wait_for(queue.iter().map(|&(leaf, _)| leaf));
        book.derive();
        for entered in first..all {
            while queue.len() < look_ahead
                && let Some(leaf) = book.choose()
            {
                queue.push_back((leaf, entered as u64));
            }
            let (key, chosen) = facts.expansions[entered];
            let Some((leaf, at)) = queue.pop_front() else { return Ok((whole, Vec::new())) };
            if book.graph().node(leaf).key != key || chosen != Some(at) {
                return Ok((whole, Vec::new()));
            }
            let known = |key: u64| facts.assessments.get(&key).copied().ok_or_else(|| self.missing(key));
            book.expand(leaf, known)?;
        }
        Ok((book, queue.into()))
    }

    fn missing(&self, key: u64) -> BookError {
        self.damaged(format!("the position {} is missing", self.game().text(key)))
    }

    /// Reads all facts.
    fn facts(&self) -> Result<BookFacts, BookError> {
        let state = &self.state;
        let engines = self.read_engines()?;
        let positions = self.read_positions()?;
        let roots = self.read_roots()?;
        self.begin();
        let mut number = 0;
        let expansions = EXPANSION.read(&self.connection, state.expansions, |row| {
            let chosen = match row.get::<_, Option<i64>>(2)? {
                None => None,
                Some(chosen) if (0..=number).contains(&chosen) => Some(chosen as u64),
                Some(_) => return Err(impossible(2, "an expansion was chosen after it was entered")),
            };
            number += 1;
            Ok((key_of(row, 1)?, chosen))
        });
        let expansions = expansions.map_err(|source| failed(&self.path, source))?;
        let sums = [engines.sum, positions.sum, roots.sum, expansions.sum];
        if sums.into_iter().fold(0, i64::wrapping_add) != state.facts {
            return Err(self.damaged("the facts are not those that the book was written with".to_owned()));
        }
        let rows = positions.rows.len();
        let assessments: HashMap<u64, Assessment> =
            positions.rows.into_iter().map(|row| (row.key, row.assessed.assessment)).collect();
        if assessments.len() != rows {
            return Err(self.damaged(format!("{rows} positions, of which {} are different", assessments.len())));
        }
        Ok(BookFacts { assessments, roots: roots.rows, expansions: expansions.rows })
    }

    pub(super) fn read_roots(&self) -> Result<CheckedRows<u64>, BookError> {
        self.begin();
        let read = ROOT.read(&self.connection, self.state.roots, |row| key_of(row, 1));
        read.map_err(|source| failed(&self.path, source))
    }

    /// Enters roots and the first expansions, until the book has a number of positions. Nothing is derived.
    fn restored(
        &self,
        facts: &BookFacts,
        strategy: Strategy,
        sides: BookSides,
        expansions: usize,
        positions: usize,
    ) -> Result<Book<AwariGame>, BookError> {
        let game = self.game();
        let mut book = Book::new(game, strategy, sides);
        for &key in &facts.roots {
            let assessment = facts.assessments.get(&key).ok_or_else(|| self.missing(key))?;
            book.add_root(key, *assessment);
        }
        for &(key, _) in &facts.expansions[..expansions] {
            if book.graph().len() >= positions {
                break;
            }
            let leaf = book.graph().find(key);
            let leaf =
                leaf.ok_or_else(|| self.damaged(format!("no move leads to the expanded position {}", game.text(key))))?;
            if book.graph().is_interior(leaf) {
                return Err(self.damaged(format!("the position {} is expanded twice", game.text(key))));
            }
            let restored = book.restore(leaf, |key| facts.assessments.get(&key).copied());
            restored.map_err(|key| self.missing(key))?;
        }
        Ok(book)
    }
}
