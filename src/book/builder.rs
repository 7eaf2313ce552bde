//! Builds a book of awari in a file: chooses leaves, assesses their successors, and enters the results.
//!
//! A queue holds the leaves chosen next, `look_ahead` of them. Their successors are assessed together, by all threads,
//! and entered in the order of the queue. So the book depends on the look-ahead, and on neither threads nor
//! interruptions: a book that is loaded again chooses the leaves of its queue once more. After a position that is
//! expanded on request, the leaves are chosen anew.

use crate::assess::{Assessed, AssessmentError, AssessmentLimits};
use crate::assessor_pool::AssessorPool;
use crate::awari::AwariGame;
use crate::expand::Book;
use crate::game::{Assessment, BookGame};
use crate::graph::NodeId;
use crate::storage::{BookError, BookFile};
use crate::strategy::{BookSides, Strategy};
use game::Board;
use search::{ExactScores, SearchStop};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;

/// A book in a file, open for expansion.
pub struct BookBuilder<'a> {
    file: BookFile,
    book: Book<AwariGame>,
    assessors: AssessorPool<'a>,
    stop: &'a SearchStop,
    settings: BookSettings,
    /// Chosen leaves, in the order in which they are entered.
    queue: VecDeque<QueuedLeaf>,
    /// Results of successors of leaves in the queue.
    results: HashMap<u64, Assessed>,
}

/// A leaf in the queue.
#[derive(Clone, Copy, Debug)]
struct QueuedLeaf {
    leaf: NodeId,
    /// The number of positions expanded when it was chosen.
    chosen: u64,
}

/// How a book is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookSettings {
    /// The strategy.
    pub strategy: Strategy,
    /// The players that the book serves.
    pub sides: BookSides,
    /// Limits of a search.
    pub limits: AssessmentLimits,
    /// The number of leaves that are chosen ahead, at least 1.
    pub look_ahead: usize,
    /// The number of threads, at least 1.
    pub threads: usize,
}

impl BookSettings {
    /// Returns the settings that determine the book, as text.
    pub fn text(&self) -> String {
        let BookSettings { strategy, sides, limits, look_ahead, .. } = self;
        format!("{strategy} {sides} {limits} look-ahead={look_ahead}")
    }
}

/// An error that ends the expansion of a book. What was entered is kept.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The file failed.
    #[error(transparent)]
    File(#[from] BookError),
    /// An assessment failed.
    #[error(transparent)]
    Assessment(#[from] AssessmentError),
    /// The system refuses memory.
    #[error("no memory for the tables of the searches: {0}; choose fewer threads")]
    Memory(io::Error),
}

impl<'a> BookBuilder<'a> {
    /// Loads a book from a file that is open for writing. `root` is the first root of a new book.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn new(
        file: BookFile,
        root: &Board,
        settings: &BookSettings,
        databases: &'a dyn ExactScores,
        stop: &'a SearchStop,
    ) -> Result<BookBuilder<'a>, BuildError> {
        let assessors = AssessorPool::new(file.game(), databases, settings.limits, settings.threads);
        let assessors = assessors.map_err(BuildError::Memory)?;
        let (book, queue) = file.resume(settings.strategy, settings.sides, settings.look_ahead)?;
        let queue = queue.into_iter().map(|(leaf, chosen)| QueuedLeaf { leaf, chosen }).collect();
        let settings = BookSettings { look_ahead: settings.look_ahead.max(1), ..*settings };
        let mut builder = BookBuilder { file, book, assessors, stop, settings, queue, results: HashMap::new() };
        if builder.book.roots().is_empty() {
            builder.add_roots(&[*root])?;
        }
        Ok(builder)
    }

    /// Returns the book.
    pub fn book(&self) -> &Book<AwariGame> {
        &self.book
    }

    /// Adds the roots that the book does not have. If it has expansions already, it is not one that a manifest makes.
    ///
    /// # Errors
    /// [`BuildError`]; the roots before the one that failed are entered then.
    pub fn add_roots(&mut self, roots: &[Board]) -> Result<(), BuildError> {
        let graph = self.book.graph();
        let is_root = |key| graph.find(key).is_some_and(|id| self.book.roots().contains(&id));
        let mut seen = HashSet::new();
        let keys = roots.iter().map(AwariGame::key).filter(|&key| !is_root(key) && seen.insert(key));
        let keys: Vec<u64> = keys.collect();
        let unknown: Vec<u64> = keys.iter().copied().filter(|&key| graph.find(key).is_none()).collect();
        let mut searched = self.assessors.assess(&unknown, self.stop)?.into_iter();
        let assessed = keys.iter().filter_map(|&key| {
            let known = |id| Assessed { assessment: graph.node(id).assessment, depth: 0, nodes: 0 };
            Some((key, graph.find(key).map(known).or_else(|| searched.next())?))
        });
        let assessed: Vec<(u64, Assessed)> = assessed.collect();
        if !assessed.is_empty() && self.book.expansions() > 0 {
            self.file.set_settings(None)?;
        }
        for (key, assessed) in assessed {
            self.file.enter_root(key, &assessed)?;
            self.book.add_root(key, assessed.assessment);
        }
        Ok(())
    }

    /// Returns the book as it was when it first had a number of positions.
    ///
    /// # Errors
    /// [`BuildError::File`].
    pub fn first(&self, positions: usize) -> Result<Book<AwariGame>, BuildError> {
        let (strategy, sides) = (self.settings.strategy, self.settings.sides);
        Ok(self.file.load_first(strategy, sides, positions)?)
    }

    /// Takes over the scores of databases that the book was begun without. Positions that they hold become closed, also
    /// those with moves. Returns their number.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn look_up(&mut self) -> Result<usize, BuildError> {
        let graph = self.book.graph();
        let unknown = graph.ids().filter(|&id| !graph.node(id).assessment.is_exact());
        let look = |id| {
            let key = graph.node(id).key;
            let value = self.assessors.first().known(&AwariGame::board(key))?;
            Some((id, key, Assessed { assessment: Assessment::exact(value), depth: 0, nodes: 0 }))
        };
        let found: Vec<_> = unknown.filter_map(look).collect();
        for &(id, key, assessed) in &found {
            let (now, value) = (graph_value(&self.book, id), assessed.assessment.low);
            if value < now.low || now.high < value {
                return Err(AssessmentError::Contradiction { position: self.book.game().text(key) }.into());
            }
            self.book.reassess(id, assessed.assessment);
        }
        let facts: Vec<(u64, Assessed)> = found.iter().map(|&(_, key, assessed)| (key, assessed)).collect();
        if !facts.is_empty() {
            self.file.replace(&facts)?;
        }
        Ok(found.len())
    }

    /// Expands a leaf. Returns whether there was one.
    ///
    /// # Errors
    /// [`BuildError`]; the expansion is not entered then.
    pub fn expand(&mut self) -> Result<bool, BuildError> {
        self.expand_by(|builder, keys| builder.assess(keys))
    }

    /// Expands a leaf, whose successors `assess` assesses with those of the other leaves in the queue. It returns the
    /// results in the order of the positions.
    ///
    /// # Errors
    /// [`BuildError`], or those of `assess`; the expansion is not entered then.
    pub fn expand_by<E: From<BuildError>>(
        &mut self,
        assess: impl FnOnce(&Self, &[u64]) -> Result<Vec<Assessed>, E>,
    ) -> Result<bool, E> {
        while self.queue.len() < self.settings.look_ahead
            && let Some(leaf) = self.book.choose()
        {
            self.queue.push_back(QueuedLeaf { leaf, chosen: self.book.expansions() });
        }
        let Some(&next) = self.queue.front() else { return Ok(false) };
        if self.missing(next.leaf).next().is_some() {
            let mut seen = HashSet::new();
            let all = self.queue.iter().flat_map(|queued| self.missing(queued.leaf));
            let keys: Vec<u64> = all.filter(|&key| seen.insert(key)).collect();
            let found = assess(self, &keys)?;
            self.results.extend(keys.into_iter().zip(found));
        }
        self.enter(next.leaf, Some(next.chosen))?;
        self.queue.pop_front();
        Ok(true)
    }

    /// Expands a position, if the book has it and it is neither expanded nor closed. Returns whether it did.
    /// The book is then not one that a manifest makes.
    ///
    /// # Errors
    /// [`BuildError`]; the expansion is not entered then.
    pub fn expand_position(&mut self, board: &Board) -> Result<bool, BuildError> {
        let graph = self.book.graph();
        let is_open = |&id: &NodeId| !graph.is_interior(id) && !graph.is_closed(id);
        let Some(leaf) = graph.find(AwariGame::key(board)).filter(is_open) else { return Ok(false) };
        let missing: Vec<u64> = self.missing(leaf).collect();
        let found = self.assess(&missing)?;
        self.results.extend(missing.into_iter().zip(found));
        self.file.set_settings(None)?;
        self.enter(leaf, None)?;
        Ok(true)
    }

    fn assess(&self, keys: &[u64]) -> Result<Vec<Assessed>, BuildError> {
        Ok(self.assessors.assess(keys, self.stop)?)
    }

    /// Returns the successors of a leaf that are neither in the book nor assessed, ascending.
    fn missing(&self, leaf: NodeId) -> impl Iterator<Item = u64> + use<'_, 'a> {
        self.new_successors(leaf).into_iter().filter(|key| !self.results.contains_key(key))
    }

    /// Returns the successors of a leaf that are not in the book, ascending.
    fn new_successors(&self, leaf: NodeId) -> Vec<u64> {
        let mut keys: Vec<u64> = self.book.moves(leaf).iter().map(|book_move| book_move.successor).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.retain(|&key| self.book.graph().find(key).is_none());
        keys
    }

    /// Enters the expansion of a leaf, whose successors are assessed. `chosen` is the number of positions
    /// that were expanded when the strategy chose it.
    fn enter(&mut self, leaf: NodeId, chosen: Option<u64>) -> Result<(), BuildError> {
        // Every successor was assessed.
        let result = |key: u64| self.results.get(&key).copied().ok_or(AssessmentError::Stopped);
        let found = self.new_successors(leaf).into_iter().map(|key| Ok((key, result(key)?)));
        let found: Vec<(u64, Assessed)> = found.collect::<Result<_, AssessmentError>>()?;
        self.file.enter_expansion(self.book.graph().node(leaf).key, chosen, &found)?;
        if chosen.is_none() {
            self.book.release(self.queue.drain(..).map(|queued| queued.leaf));
            self.book.wait_for([leaf]);
        }
        self.book.expand(leaf, |key| result(key).map(|assessed| assessed.assessment))?;
        for (key, _) in found {
            self.results.remove(&key);
        }
        Ok(())
    }

    /// Stores the values of all positions in the file, so that a player need not derive them.
    ///
    /// # Errors
    /// [`BuildError::File`].
    pub fn store_values(&mut self) -> Result<(), BuildError> {
        Ok(self.file.store_values(&self.book)?)
    }

    /// Returns what assesses positions.
    pub fn assessors(&self) -> &AssessorPool<'a> {
        &self.assessors
    }
}

fn graph_value(book: &Book<AwariGame>, id: NodeId) -> Assessment {
    book.graph().value(id)
}
