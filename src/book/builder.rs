//! Builds a book of awari in a file: chooses leaves, assesses their successors by threads, and enters the results.
//!
//! Threads share the successors of one leaf, and results are entered in the order of moves: so the book is the same for
//! any number of threads, interrupted or not.

use crate::{
    Assessed, Assessment, AssessmentError, AssessmentLimits, Assessor, AwariGame, Book, BookError, BookFile, BookGame,
    BookSides, Strategy,
};
use game::Board;
use search::{ExactScores, SearchStop};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A book in a file, open for expansion.
pub struct BookBuilder<'a> {
    file: BookFile,
    book: Book<AwariGame>,
    assessors: Vec<Assessor<'a>>,
    stop: &'a SearchStop,
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
    /// The number of threads, at least 1.
    pub threads: usize,
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
        mut file: BookFile,
        game: AwariGame,
        root: &Board,
        settings: &BookSettings,
        databases: &'a dyn ExactScores,
        stop: &'a SearchStop,
    ) -> Result<BookBuilder<'a>, BuildError> {
        let assessor = |_| Assessor::new(game, databases, settings.limits).map_err(BuildError::Memory);
        let assessors: Vec<Assessor<'a>> = (0..settings.threads.max(1)).map(assessor).collect::<Result<_, _>>()?;
        let mut book = file.load(*game.rules(), settings.strategy, settings.sides)?;
        if book.roots().is_empty() {
            let key = AwariGame::key(root);
            let assessed = assessors[0].assess(key, stop)?;
            file.enter_root(key, &assessed)?;
            book.add_root(key, assessed.assessment);
        }
        Ok(BookBuilder { file, book, assessors, stop })
    }

    /// Returns the book.
    pub fn book(&self) -> &Book<AwariGame> {
        &self.book
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
            let value = self.assessors[0].known(&AwariGame::board(key))?;
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
        let Some(leaf) = self.book.choose() else { return Ok(false) };
        let graph = self.book.graph();
        let mut successors: Vec<u64> = self.book.moves(leaf).iter().map(|one| one.successor).collect();
        successors.sort_unstable();
        successors.dedup();
        successors.retain(|&key| graph.find(key).is_none());
        let found = self.assess(&successors)?;
        let key = graph.node(leaf).key;
        self.file.enter_expansion(key, &found)?;
        self.book.expand(leaf, |key| {
            let assessed = found.iter().find(|(found, _)| *found == key);
            // Every new successor was assessed.
            assessed.map(|(_, assessed)| assessed.assessment).ok_or(AssessmentError::Stopped)
        })?;
        Ok(true)
    }

    /// Assesses positions, by all threads.
    fn assess(&self, keys: &[u64]) -> Result<Vec<(u64, Assessed)>, BuildError> {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(vec![None; keys.len()]);
        let work = |assessor: &Assessor<'a>| {
            while let Some(&key) = keys.get(next.fetch_add(1, Ordering::Relaxed)) {
                let result = assessor.assess(key, self.stop);
                let at = keys.iter().position(|&one| one == key);
                let mut results = results.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                if let Some(place) = at.and_then(|at| results.get_mut(at)) {
                    *place = Some(result);
                }
            }
        };
        thread::scope(|scope| {
            for assessor in self.assessors.iter().skip(1).take(keys.len().saturating_sub(1)) {
                let work = &work;
                // Without a thread, the others have more to do.
                let _ = thread::Builder::new().name("book".to_owned()).spawn_scoped(scope, move || work(assessor));
            }
            work(&self.assessors[0]);
        });
        let results = results.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let entered = keys.iter().zip(results);
        entered.map(|(&key, result)| Ok((key, result.unwrap_or(Err(AssessmentError::Stopped))?))).collect()
    }
}

fn graph_value(book: &Book<AwariGame>, id: crate::NodeId) -> Assessment {
    book.graph().value(id)
}
