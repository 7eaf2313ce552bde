//! The oracle: answers for positions.
//!
//! Checksums detect damage, but not wrong scores. So the score of a position is compared with the values of its moves,
//! and the score of each child with the values of its moves. A contradiction is an error.

use crate::bounds::Bounds;
use crate::error::OracleError;
use crate::guarantee_graph::KeptGuarantees;
use crate::library::{Library, LibraryFile};
#[cfg(feature = "search")]
use crate::searcher_pool::SearcherPool;
use game::{Board, Illegal, Index, Orientation, Pit, Played, PositionSet, Rules, STONES_MAX, Score};
use std::path::Path;
#[cfg(feature = "search")]
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use store::{BlockCache, CachedScores, StoreError};

/// Answers queries about positions.
#[derive(Debug)]
pub struct Oracle {
    rules: Rules,
    set: PositionSet,
    /// The databases, or the errors of their files, by stones.
    databases: Vec<Option<Result<IndexedDatabase, Arc<StoreError>>>>,
    /// One bit per number of stones whose database is not used any more.
    dropped: AtomicU64,
    cache: Arc<BlockCache>,
    #[cfg(feature = "search")]
    pub(crate) searchers: SearcherPool,
    #[cfg(feature = "search")]
    pub(crate) memo: search::BoundsMemo,
    /// By rules that give a board two bounds; made before the first search.
    #[cfg(feature = "search")]
    pub(crate) open_estimates: OnceLock<search::OpenEstimates>,
    /// Held while they are made.
    #[cfg(feature = "search")]
    pub(crate) making_estimates: Mutex<()>,
    pub(crate) kept_guarantees: KeptGuarantees,
}

#[derive(Debug)]
struct IndexedDatabase {
    /// Built on first use: its tables take time, and most queries need few databases.
    index: OnceLock<Index>,
    /// Scores, or lower bounds.
    scores: CachedScores,
    /// The upper bounds of a database of pairs.
    high: Option<CachedScores>,
    /// The edition of the file that [`Oracle::is_served`] has found to be readable.
    readable_edition: AtomicU64,
    /// The last position that could not be read; [`NONE_FAILED`] if there is none.
    failed: AtomicU64,
}

/// No position.
const NONE_FAILED: u64 = u64::MAX;

impl IndexedDatabase {
    fn new(scores: CachedScores, high: Option<CachedScores>) -> IndexedDatabase {
        let readable_edition = scores.scores().edition().into();
        IndexedDatabase { index: OnceLock::new(), scores, high, readable_edition, failed: NONE_FAILED.into() }
    }

    /// Reads a position from the file, whatever the cache holds.
    fn is_readable(&self, position: u64) -> bool {
        let mut bounds = [Some(&self.scores), self.high.as_ref()].into_iter().flatten();
        bounds.all(|scores| scores.scores().get(scores.first() + position).is_ok())
    }

    /// Whether the file can be read as far as is known: where the last read failed, and, if another process
    /// has changed it, at its start and end.
    fn is_served(&self) -> bool {
        let (edition, failed) = (self.scores.scores().latest_edition(), self.failed.load(Ordering::Relaxed));
        if failed == NONE_FAILED && edition == self.readable_edition.load(Ordering::Relaxed) {
            return true;
        }
        let last = self.scores.positions().saturating_sub(1);
        let is_served = [0, last, failed.min(last)].into_iter().all(|position| self.is_readable(position));
        if is_served {
            self.failed.store(NONE_FAILED, Ordering::Relaxed);
            self.readable_edition.store(edition, Ordering::Relaxed);
        }
        is_served
    }
}

/// The answer for a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The position.
    pub board: Board,
    /// Its score.
    pub score: Bounds,
    /// What a search expects of a score that is not proved, in hundredths of a stone.
    pub estimate: Option<i32>,
    /// The source of the score.
    pub source: AnswerSource,
    /// The legal moves, A to F.
    pub moves: Vec<ValuedMove>,
    /// The illegal moves, A to F.
    pub illegal: Vec<IllegalMove>,
}

/// The source of a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerSource {
    /// The database for the number of stones.
    Database,
    /// The children: the position set does not contain the position.
    Children,
    /// The rules: the player to move cannot move.
    Rules,
    /// A short search, or without the feature `search` the values of moves: there is no database for the
    /// number of stones.
    Search,
}

/// A legal move with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValuedMove {
    /// The pit sown from.
    pub pit: Pit,
    /// The captured stones.
    pub captured: u8,
    /// Its value for the mover, captured stones included.
    pub value: Bounds,
    /// What a search expects of a value that is not proved, in hundredths of a stone.
    pub estimate: Option<i32>,
    /// Whether no other move can have a higher value.
    pub is_best: bool,
    /// The position after it, from the other side.
    pub child: Board,
}

impl ValuedMove {
    /// A move with its value, and what a search expects of it. An answer compares it with the others.
    pub(crate) fn new(pit: Pit, played: &Played, value: Bounds, expected: Option<i32>) -> ValuedMove {
        let estimate = expected.and_then(|expected| value.estimate(expected));
        ValuedMove { pit, captured: played.captured, value, estimate, is_best: false, child: played.child }
    }
}

/// An illegal move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IllegalMove {
    /// The pit.
    pub pit: Pit,
    /// Why it is illegal.
    pub reason: Illegal,
}

/// The largest number of attempts at an answer while other processes change databases.
const READS_MAX: usize = 4;

/// The databases read for an answer, with the editions of their files.
#[derive(Default)]
pub(crate) struct ReadEditions {
    /// One bit per number of stones.
    stones: AtomicU64,
    /// The sum of the editions, which only grow.
    editions: AtomicU64,
}

const _: () = assert!(STONES_MAX < u64::BITS);

impl ReadEditions {
    pub(crate) fn note(&self, stones: u32, edition: impl FnOnce() -> u64) {
        let bit = 1 << stones;
        let is_new = self.stones.load(Ordering::Relaxed) & bit == 0;
        if is_new && self.stones.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            // Wraps around.
            self.editions.fetch_add(edition(), Ordering::Relaxed);
        }
    }

    fn stones(&self) -> impl Iterator<Item = u32> {
        let stones = self.stones.load(Ordering::Relaxed);
        (0..=STONES_MAX).filter(move |number| stones >> number & 1 == 1)
    }
}

impl Oracle {
    /// Makes an oracle of a library, with a cache for compressed databases.
    pub fn new(library: Library, cache_bytes_max: u64) -> Oracle {
        let cache = BlockCache::new(cache_bytes_max);
        let (rules, set) = (library.rules(), library.set());
        let mut databases: Vec<_> = (0..=STONES_MAX).map(|_| None).collect();
        for (stones, file) in library.into_files() {
            databases[stones as usize] = Some(match file {
                LibraryFile::Sound(scores) => {
                    let (scores, high) = if scores.identity().kind.has_pairs() {
                        let [low, high] = CachedScores::sections(*scores, Arc::clone(&cache));
                        (low, Some(high))
                    } else {
                        (CachedScores::sharing(*scores, Arc::clone(&cache)), None)
                    };
                    Ok(IndexedDatabase::new(scores, high))
                }
                LibraryFile::Damaged { error, .. } => Err(error),
            });
        }
        Oracle {
            rules,
            set,
            databases,
            dropped: AtomicU64::new(0),
            cache,
            #[cfg(feature = "search")]
            searchers: SearcherPool::new(rules, search::Evaluation::default()),
            #[cfg(feature = "search")]
            memo: search::BoundsMemo::default(),
            #[cfg(feature = "search")]
            open_estimates: OnceLock::new(),
            #[cfg(feature = "search")]
            making_estimates: Mutex::default(),
            kept_guarantees: KeptGuarantees::default(),
        }
    }

    /// Returns the rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the position set of the databases. Other positions are answered from their children.
    pub fn set(&self) -> PositionSet {
        self.set
    }

    /// Returns the stones of the databases, ascending.
    pub fn stones(&self) -> impl Iterator<Item = u32> + '_ {
        (0..=STONES_MAX).filter(|&stones| self.has(stones))
    }

    /// Builds the tables of all databases, and what a search needs, in advance, since they would delay the first
    /// queries.
    pub fn warm(&self) {
        for stones in self.stones() {
            if let Some(Ok(database)) = self.database(stones) {
                database.index.get_or_init(|| Index::new(stones, self.set));
            }
        }
        #[cfg(feature = "search")]
        self.prepare_search();
    }

    /// Whether [`answer`](Self::answer) takes microseconds: it decodes nothing, makes no tables and searches nothing.
    pub fn is_immediate(&self, board: &Board) -> bool {
        let is_ready = |stones: u32| match self.database(stones) {
            Some(Ok(IndexedDatabase { index, scores, .. })) => index.get().is_some() && scores.scores().is_in_place(),
            Some(Err(_)) => true,
            None => false,
        };
        board.mover_starves() || (0..=board.stones()).all(is_ready)
    }

    /// Returns the number of blocks decoded so far.
    pub fn blocks_decoded(&self) -> u64 {
        self.cache.decoded()
    }

    /// Returns the index and the scores of a database, or its lower bounds.
    ///
    /// # Errors
    /// [`OracleError::Missing`] or [`OracleError::Damaged`].
    pub fn indexed(&self, stones: u32) -> Result<(&Index, &CachedScores), OracleError> {
        match self.database(stones) {
            None => Err(self.missing(stones)),
            Some(Err(error)) => Err(OracleError::Damaged { stones, error: Arc::clone(error) }),
            Some(Ok(IndexedDatabase { index, scores, .. })) => {
                Ok((index.get_or_init(|| Index::new(stones, self.set)), scores))
            }
        }
    }

    /// Returns the upper bounds of a database of pairs; `None` if it has scores, or is missing or damaged.
    pub fn upper(&self, stones: u32) -> Option<&CachedScores> {
        self.database(stones)?.as_ref().ok()?.high.as_ref()
    }

    /// Returns the bytes of decoded blocks in the cache.
    pub fn cache_bytes(&self) -> u64 {
        self.cache.bytes()
    }

    /// Answers a question about a position.
    ///
    /// Without a database for the number of stones, the score and the values are proved bounds with
    /// estimates, from a search of a fixed number of positions.
    ///
    /// # Errors
    /// [`OracleError::Damaged`], [`OracleError::Store`], [`OracleError::Inconsistent`] or
    /// [`OracleError::Contradiction`] if a required database cannot be trusted; [`OracleError::SearchTable`]
    /// if there is no memory for a search.
    pub fn answer(&self, board: &Board) -> Result<Answer, OracleError> {
        for _ in 0..READS_MAX {
            let read = ReadEditions::default();
            let answer = self.answer_once(board, &read);
            if self.is_current(&read) {
                return answer;
            }
        }
        let databases = self.databases.iter().flatten().flatten();
        let changing = databases.map(|database| database.scores.scores()).find(|scores| scores.edition() > 0);
        let path = changing.map(|scores| scores.path().to_owned()).unwrap_or_default();
        Err(StoreError::Changing { path }.into())
    }

    /// Whether no database that was read has changed.
    fn is_current(&self, read: &ReadEditions) -> bool {
        let now = read.stones().filter_map(|stones| match self.database(stones) {
            Some(Ok(database)) => Some(database.scores.scores().latest_edition()),
            _ => None,
        });
        now.fold(0, u64::wrapping_add) == read.editions.load(Ordering::Relaxed)
    }

    fn answer_once(&self, board: &Board, read: &ReadEditions) -> Result<Answer, OracleError> {
        let mut illegal = Vec::new();
        let mut moves = Vec::new();
        for pit in Pit::ALL {
            match board.play(&self.rules, pit) {
                Ok(played) => moves.push((pit, played)),
                Err(reason) => illegal.push(IllegalMove { pit, reason }),
            }
        }
        let mut answer = if moves.is_empty() || self.has(board.stones()) {
            self.known_answer(board, moves, illegal, read)?
        } else {
            self.searched_answer(board, moves, illegal, read)?
        };
        let moves = &mut answer.moves;
        for at in 0..moves.len() {
            let others = moves.iter().enumerate().filter(|(other, _)| *other != at);
            let rival = others.map(|(_, other)| other.value.high()).max();
            moves[at].is_best = rival.is_none_or(|rival| moves[at].value.low() >= rival);
        }
        Ok(answer)
    }

    /// Returns moves with the proved values of the positions that they lead to.
    pub(crate) fn valued_moves(
        &self,
        moves: Vec<(Pit, Played)>,
        read: &ReadEditions,
    ) -> Result<Vec<ValuedMove>, OracleError> {
        let valued = |(pit, played): (Pit, Played)| {
            let value = self.checked(&played.child, read)?.after_capture(played.captured);
            Ok(ValuedMove::new(pit, &played, value, None))
        };
        moves.into_iter().map(valued).collect()
    }

    /// Answers a question about a position by its database, its children, or the rules.
    fn known_answer(
        &self,
        board: &Board,
        moves: Vec<(Pit, Played)>,
        illegal: Vec<IllegalMove>,
        read: &ReadEditions,
    ) -> Result<Answer, OracleError> {
        let stored = if moves.is_empty() { None } else { self.stored(board, read)? };
        let moves = self.valued_moves(moves, read)?;
        let best = moves.iter().map(|valued| valued.value).reduce(Bounds::max);
        let (score, source) = match (best, stored) {
            (None, _) => (Bounds::exact(self.rules.terminal_score(board)), AnswerSource::Rules),
            (Some(best), None) => (best, AnswerSource::Children),
            (Some(best), Some(stored)) if best.and(stored) == stored => (stored, AnswerSource::Database),
            (Some(expected), Some(found)) => {
                return Err(OracleError::Inconsistent { board: *board, expected, found });
            }
        };
        Ok(Answer { board: *board, score, estimate: None, source, moves, illegal })
    }

    /// Returns the score of a position, with a single look-up if its database holds it, and without a comparison.
    ///
    /// # Errors
    /// As [`answer`](Self::answer), but a wrong score is not noticed.
    pub fn score(&self, board: &Board) -> Result<Bounds, OracleError> {
        if board.mover_starves() {
            return Ok(Bounds::exact(self.rules.terminal_score(board)));
        }
        match self.stored(board, &ReadEditions::default()) {
            Ok(Some(stored)) => Ok(stored),
            // Not in the position set, or beyond the databases.
            Ok(None) | Err(OracleError::Missing { .. }) => Ok(self.answer(board)?.score),
            Err(error) => Err(error),
        }
    }

    /// Returns the score of a position, compared with the values of its moves.
    pub(crate) fn checked(&self, board: &Board, read: &ReadEditions) -> Result<Bounds, OracleError> {
        if board.mover_starves() {
            return Ok(Bounds::exact(self.rules.terminal_score(board)));
        }
        if !self.has(board.stones()) {
            return self.searched(board, read);
        }
        // Every child is reachable, so the recursion ends here.
        let Some(stored) = self.stored(board, read)? else { return Ok(self.answer_once(board, read)?.score) };
        let values = board.moves(&self.rules).map(|(_, played)| {
            let child = match played.child.mover_starves() {
                true => Some(Bounds::exact(self.rules.terminal_score(&played.child))),
                // An unreadable child does not contradict the score.
                false => self.stored(&played.child, read).ok().flatten(),
            };
            child.unwrap_or(Bounds::anything(played.child.stones())).after_capture(played.captured)
        });
        match values.reduce(Bounds::max) {
            Some(expected) if expected.and(stored) != stored => {
                Err(OracleError::Inconsistent { board: *board, expected, found: stored })
            }
            Some(_) => Ok(stored),
            None => Ok(Bounds::exact(self.rules.terminal_score(board))),
        }
    }

    /// Returns the stones of the largest database, sound or not.
    pub fn stones_max(&self) -> Option<u32> {
        self.stones().max()
    }

    /// Returns the error of a missing database.
    pub(crate) fn missing(&self, stones: u32) -> OracleError {
        OracleError::Missing { stones, largest: self.stones_max() }
    }

    /// Whether there is a database for a number of stones, sound or not.
    pub(crate) fn has(&self, stones: u32) -> bool {
        self.database(stones).is_some()
    }

    /// Whether there is a database for a number of stones that was sound when it was opened.
    #[cfg(feature = "search")]
    pub(crate) fn has_sound(&self, stones: u32) -> bool {
        matches!(self.database(stones), Some(Ok(_)))
    }

    fn database(&self, stones: u32) -> Option<&Result<IndexedDatabase, Arc<StoreError>>> {
        let database = self.databases.get(stones as usize)?.as_ref();
        database.filter(|_| self.dropped.load(Ordering::Relaxed) >> stones & 1 == 0)
    }

    /// Whether a database can be read now, as far as is known without reading all of it.
    pub fn is_served(&self, stones: u32) -> bool {
        self.database(stones).is_some_and(|database| database.as_ref().is_ok_and(IndexedDatabase::is_served))
    }

    /// Notes that a position of a database could not be read.
    pub(crate) fn note_failed(&self, stones: u32, position: u64) {
        if let Some(Ok(database)) = self.database(stones) {
            database.failed.store(position, Ordering::Relaxed);
        }
    }

    /// Gives up the databases that an error is about: they are as if they did not exist. Those that
    /// contradict each other are all given up, since any of them may be wrong. Returns whether there were
    /// any.
    pub fn drop_databases(&self, error: &OracleError) -> bool {
        let of_file = |path: &Path| {
            let is_it = |stones: &u32| match self.database(*stones) {
                Some(Ok(database)) => database.scores.scores().path() == path,
                _ => false,
            };
            self.stones().filter(is_it).collect::<Vec<u32>>()
        };
        let given_up = match error {
            OracleError::Store(error) => match &**error {
                StoreError::Disk(error) => error.path().map_or_else(Vec::new, of_file),
                error => error.path().map_or_else(Vec::new, of_file),
            },
            OracleError::Damaged { stones, .. } => vec![*stones],
            OracleError::Inconsistent { board, .. } | OracleError::Crossed { board, .. } => vec![board.stones()],
            OracleError::Contradiction { .. } => self.stones().collect(),
            _ => Vec::new(),
        };
        let bits = given_up.iter().fold(0, |bits, stones| bits | 1 << stones);
        bits & !self.dropped.fetch_or(bits, Ordering::Relaxed) != 0
    }

    /// Looks a position up in its database; `None` if the position set does not contain it.
    pub(crate) fn stored(&self, board: &Board, read: &ReadEditions) -> Result<Option<Bounds>, OracleError> {
        if !self.set.contains(board) {
            return Ok(None);
        }
        let stones = board.stones();
        let (index, scores) = self.indexed(stones)?;
        read.note(stones, || scores.scores().edition());
        match index.rank(board, Orientation::OpponentMajor) {
            Some(position) => {
                let read = || -> Result<(Score, Score), StoreError> {
                    let low = scores.get(position)?;
                    Ok((low, self.upper(stones).map_or(Ok(low), |high| high.get(position))?))
                };
                let (low, high) = read().inspect_err(|_| self.note_failed(stones, position))?;
                if low > high {
                    return Err(OracleError::Crossed { board: *board, low, high });
                }
                Ok(Some(Bounds::new(low, high)))
            }
            None => Ok(None),
        }
    }
}
