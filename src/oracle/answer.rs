//! The oracle: a position in, scores and moves out.
//!
//! Checksums tell damage, not intent, so scores are compared with each other as well: that of a position with what its
//! moves are worth, and each score that a move's worth follows from with what the moves there are worth. A database of wrong
//! scores under right checksums is refused wherever a comparison of these two levels shows it.

use crate::{Bounds, Library, LibraryFile, OracleError};
use game::{Board, Illegal, Index, Orientation, Pit, PositionSet, Rules, STONES_MAX};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use store::{BlockCache, CachedScores, StoreError};

/// Answers questions about positions.
#[derive(Debug)]
pub struct Oracle {
    rules: Rules,
    set: PositionSet,
    /// By their stones: each, or what is wrong with its file.
    databases: BTreeMap<u32, Result<IndexedDatabase, String>>,
    cache: Arc<BlockCache>,
}

#[derive(Debug)]
struct IndexedDatabase {
    /// Made when first asked for: its tables take time, and most questions need few databases.
    index: OnceLock<Index>,
    scores: CachedScores,
}

/// What there is to say about a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The position.
    pub board: Board,
    /// What it scores.
    pub score: Bounds,
    /// Where that comes from.
    pub source: AnswerSource,
    /// The legal moves, A to F.
    pub moves: Vec<ValuedMove>,
    /// The other moves, A to F.
    pub illegal: Vec<IllegalMove>,
}

/// Where a score comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerSource {
    /// The database of as many stones.
    Database,
    /// The children: the database does not hold the position itself.
    Children,
    /// The rules: the mover cannot move.
    Rules,
    /// A search, down to positions that databases know: there is none of so many stones.
    Search,
}

/// A legal move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValuedMove {
    /// Where it starts.
    pub pit: Pit,
    /// Stones that it captures.
    pub captured: u8,
    /// What it is worth to the mover: captured stones included.
    pub value: Bounds,
    /// Whether no other move can be worth more.
    pub is_best: bool,
    /// The position it leads to, turned round.
    pub child: Board,
}

/// A move that may not be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IllegalMove {
    /// Where it would start.
    pub pit: Pit,
    /// Why it may not be played.
    pub reason: Illegal,
}

/// Times that a question is asked anew because others change a database.
const READS_MAX: usize = 4;

/// The databases that were read for an answer, and the editions that their files had.
#[derive(Default)]
pub(crate) struct ReadEditions {
    /// A bit a number of stones.
    stones: Cell<u64>,
    /// Their sum: editions only ever grow.
    editions: Cell<u64>,
}

const _: () = assert!(STONES_MAX < u64::BITS);

impl ReadEditions {
    fn note(&self, stones: u32, edition: impl FnOnce() -> u64) {
        if self.stones.get() >> stones & 1 == 0 {
            self.stones.set(self.stones.get() | 1 << stones);
            self.editions.set(self.editions.get().wrapping_add(edition()));
        }
    }

    fn stones(&self) -> impl Iterator<Item = u32> {
        let stones = self.stones.get();
        (0..=STONES_MAX).filter(move |number| stones >> number & 1 == 1)
    }
}

impl Oracle {
    /// An oracle that answers from these databases, with a cache of so many bytes for compressed ones.
    pub fn new(library: Library, cache_bytes_max: u64) -> Oracle {
        let cache = BlockCache::new(cache_bytes_max);
        let (rules, set) = (library.rules(), library.set());
        let databases = library.into_held().into_iter().map(|(stones, held)| {
            let database = match held {
                LibraryFile::Sound(scores) => Ok(IndexedDatabase {
                    index: OnceLock::new(),
                    scores: CachedScores::sharing(*scores, Arc::clone(&cache)),
                }),
                LibraryFile::Damaged { what, .. } => Err(what),
            };
            (stones, database)
        });
        Oracle { rules, set, databases: databases.collect(), cache }
    }

    /// The rules by which it answers.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The positions that its databases hold. It answers for the others from their children.
    pub fn set(&self) -> PositionSet {
        self.set
    }

    /// The numbers of stones of which it has databases, ascending.
    pub fn stones(&self) -> impl Iterator<Item = u32> + '_ {
        self.databases.keys().copied()
    }

    /// Makes what the first question about each number of stones would have to wait for.
    pub fn warm(&self) {
        for (&stones, database) in &self.databases {
            if let Ok(database) = database {
                database.index.get_or_init(|| Index::new(stones, self.set));
            }
        }
    }

    /// Whether [`answer`](Self::answer) takes microseconds: it decodes nothing, makes no tables and searches nothing.
    pub fn is_immediate(&self, board: &Board) -> bool {
        let is_ready = |stones: u32| match self.databases.get(&stones) {
            Some(Ok(IndexedDatabase { index, scores })) => index.get().is_some() && scores.scores().is_in_place(),
            Some(Err(_)) => true,
            None => false,
        };
        board.mover_starves() || (0..=board.stones()).all(is_ready)
    }

    /// Blocks of compressed databases that were decoded, each as often as it was.
    pub fn blocks_decoded(&self) -> u64 {
        self.cache.decoded()
    }

    /// Bytes of decoded blocks held now.
    pub fn cache_bytes(&self) -> u64 {
        self.cache.bytes()
    }

    /// What there is to say about a position.
    ///
    /// Where there is no database of as many stones, the score and the moves are bounds, found by a short search.
    ///
    /// # Errors
    /// [`OracleError::Missing`] with the database that is needed and not there, if nothing is known at all;
    /// [`OracleError::Damaged`], [`OracleError::Store`] or [`OracleError::Inconsistent`] if one that is needed cannot be
    /// trusted.
    pub fn answer(&self, board: &Board) -> Result<Answer, OracleError> {
        for _ in 0..READS_MAX {
            let read = ReadEditions::default();
            let answer = self.answer_once(board, &read);
            if self.is_current(&read) {
                return answer;
            }
        }
        let databases = self.databases.values().flatten();
        let changing = databases.map(|database| database.scores.scores()).find(|scores| scores.edition() > 0);
        let path = changing.map(|scores| scores.path().to_owned()).unwrap_or_default();
        Err(StoreError::Changing { path }.into())
    }

    /// Whether what was read is still the same.
    fn is_current(&self, read: &ReadEditions) -> bool {
        let now = read.stones().filter_map(|stones| match self.databases.get(&stones) {
            Some(Ok(database)) => Some(database.scores.scores().latest_edition()),
            _ => None,
        });
        now.fold(0, u64::wrapping_add) == read.editions.get()
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
        let known = moves.is_empty() || self.databases.contains_key(&board.stones());
        let stored = if known && !moves.is_empty() { self.stored(board, read)? } else { None };
        let mut moves = moves
            .into_iter()
            .map(|(pit, played)| {
                let child = match self.checked(&played.child, read) {
                    // Where one move leads, does not keep others from being known.
                    Err(OracleError::Missing { .. }) => Bounds::anything(played.child.stones()),
                    child => child?,
                };
                Ok(ValuedMove {
                    pit,
                    captured: played.captured,
                    value: child.after_capture(played.captured),
                    is_best: false,
                    child: played.child,
                })
            })
            .collect::<Result<Vec<ValuedMove>, OracleError>>()?;
        let best = moves.iter().map(|one| one.value).reduce(Bounds::max);
        for at in 0..moves.len() {
            let others = moves.iter().enumerate().filter(|(other, _)| *other != at);
            let rival = others.map(|(_, other)| other.value.high()).max();
            moves[at].is_best = rival.is_none_or(|rival| moves[at].value.low() >= rival);
        }
        let (score, source) = match (best, stored) {
            (None, _) => (Bounds::exact(self.rules.terminal_score(board.stones())), AnswerSource::Rules),
            (Some(best), _) if !known => (self.searched(board, read)?.and(best), AnswerSource::Search),
            (Some(best), None) => (best, AnswerSource::Children),
            (Some(best), Some(stored)) if best.and(stored) == stored => (stored, AnswerSource::Database),
            (Some(expected), Some(found)) => {
                return Err(OracleError::Inconsistent { board: *board, expected, found });
            }
        };
        Ok(Answer { board: *board, score, source, moves, illegal })
    }

    /// What a position scores, with a single look-up where its database holds it; it is then compared with nothing.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn score(&self, board: &Board) -> Result<Bounds, OracleError> {
        if board.mover_starves() {
            return Ok(Bounds::exact(self.rules.terminal_score(board.stones())));
        }
        let stored = if self.has(board.stones()) { self.stored(board, &ReadEditions::default())? } else { None };
        stored.map_or_else(|| Ok(self.answer(board)?.score), Ok)
    }

    /// What a position scores, compared with what its moves are worth by the scores of its children.
    pub(crate) fn checked(&self, board: &Board, read: &ReadEditions) -> Result<Bounds, OracleError> {
        if board.mover_starves() {
            return Ok(Bounds::exact(self.rules.terminal_score(board.stones())));
        }
        if !self.has(board.stones()) {
            return self.searched(board, read);
        }
        // Every child is reachable, so this goes no deeper.
        let Some(stored) = self.stored(board, read)? else { return Ok(self.answer_once(board, read)?.score) };
        let values = board.moves(&self.rules).map(|(_, played)| {
            let child = match played.child.mover_starves() {
                true => Some(Bounds::exact(self.rules.terminal_score(played.child.stones()))),
                // What cannot be read tells nothing against the score.
                false => self.stored(&played.child, read).ok().flatten(),
            };
            child.unwrap_or(Bounds::anything(played.child.stones())).after_capture(played.captured)
        });
        match values.reduce(Bounds::max) {
            Some(expected) if expected.and(stored) != stored => {
                Err(OracleError::Inconsistent { board: *board, expected, found: stored })
            }
            Some(_) => Ok(stored),
            None => Ok(Bounds::exact(self.rules.terminal_score(board.stones()))),
        }
    }

    /// The stones of the largest database, sound or not.
    pub fn stones_max(&self) -> Option<u32> {
        self.databases.keys().max().copied()
    }

    /// The error of a question for a database that does not exist.
    pub(crate) fn missing(&self, stones: u32) -> OracleError {
        OracleError::Missing { stones, largest: self.stones_max() }
    }

    /// Whether there is a database of so many stones, sound or not.
    pub(crate) fn has(&self, stones: u32) -> bool {
        self.databases.contains_key(&stones)
    }

    /// What the database of as many stones says of a position; nothing where its position set does not have it.
    fn stored(&self, board: &Board, read: &ReadEditions) -> Result<Option<Bounds>, OracleError> {
        if !self.set.contains(board) {
            return Ok(None);
        }
        let stones = board.stones();
        match self.databases.get(&stones) {
            None => Err(self.missing(stones)),
            Some(Err(what)) => Err(OracleError::Damaged { stones, what: what.clone() }),
            Some(Ok(IndexedDatabase { index, scores })) => {
                read.note(stones, || scores.scores().edition());
                let index = index.get_or_init(|| Index::new(stones, self.set));
                let position = index.rank(board, Orientation::OpponentMajor);
                // The opening is in the set of reachable positions, but in no slab of a file.
                match position.filter(|position| *position < scores.scores().shape().positions()) {
                    Some(position) => Ok(Some(Bounds::exact(scores.get(position)?))),
                    None => Ok(None),
                }
            }
        }
    }
}
