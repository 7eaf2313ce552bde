//! The oracle: a position in, scores and moves out.

use crate::{Bounds, Held, Library, OracleError};
use game::{Board, Illegal, Index, Orientation, Pit, PositionSet, Rules};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use store::{BlockCache, CachedScores};

/// Answers questions about positions.
#[derive(Debug)]
pub struct Oracle {
    rules: Rules,
    set: PositionSet,
    /// By their stones: each, or what is wrong with its file.
    databases: BTreeMap<u32, Result<Database, String>>,
    cache: Arc<BlockCache>,
}

#[derive(Debug)]
struct Database {
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
    pub source: Source,
    /// The legal moves, A to F.
    pub moves: Vec<Move>,
    /// The other moves, A to F.
    pub illegal: Vec<Refused>,
}

/// Where a score comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
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
pub struct Move {
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
pub struct Refused {
    /// Where it would start.
    pub pit: Pit,
    /// Why it may not be played.
    pub reason: Illegal,
}

impl Oracle {
    /// An oracle that answers from these databases, with a cache of so many bytes for compressed ones.
    pub fn new(library: Library, cache_bytes_max: u64) -> Oracle {
        let cache = BlockCache::new(cache_bytes_max);
        let (rules, set) = (library.rules(), library.set());
        let databases = library.into_held().into_iter().map(|(stones, held)| {
            let database = match held {
                Held::Sound(scores) => {
                    Ok(Database { index: OnceLock::new(), scores: CachedScores::sharing(*scores, Arc::clone(&cache)) })
                }
                Held::Damaged { what, .. } => Err(what),
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
        let is_ready = |board: &Board| match self.databases.get(&board.stones()) {
            _ if board.mover_starves() => true,
            Some(Ok(Database { index, scores })) => index.get().is_some() && scores.scores().is_in_place(),
            Some(Err(_)) => true,
            None => false,
        };
        is_ready(board) && board.moves(&self.rules).all(|(_, played)| is_ready(&played.child))
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
        let mut illegal = Vec::new();
        let mut moves = Vec::new();
        for pit in Pit::ALL {
            match board.play(&self.rules, pit) {
                Ok(played) => moves.push((pit, played)),
                Err(reason) => illegal.push(Refused { pit, reason }),
            }
        }
        let known = moves.is_empty() || self.databases.contains_key(&board.stones());
        let stored = if known && !moves.is_empty() { self.stored(board)? } else { None };
        let mut moves = moves
            .into_iter()
            .map(|(pit, played)| {
                let child = match self.score(&played.child) {
                    // Where one move leads, does not keep others from being known.
                    Err(OracleError::Missing { .. }) => Bounds::anything(played.child.stones()),
                    child => child?,
                };
                Ok(Move {
                    pit,
                    captured: played.captured,
                    value: child.after_capture(played.captured),
                    is_best: false,
                    child: played.child,
                })
            })
            .collect::<Result<Vec<Move>, OracleError>>()?;
        let best = moves.iter().map(|one| one.value).reduce(Bounds::max);
        for at in 0..moves.len() {
            let others = moves.iter().enumerate().filter(|(other, _)| *other != at);
            let rival = others.map(|(_, other)| other.value.high()).max();
            moves[at].is_best = rival.is_none_or(|rival| moves[at].value.low() >= rival);
        }
        let (score, source) = match (best, stored) {
            (None, _) => (Bounds::exact(self.rules.terminal_score(board)), Source::Rules),
            (Some(best), _) if !known => (self.searched(board)?.and(best), Source::Search),
            (Some(best), None) => (best, Source::Children),
            (Some(best), Some(stored)) if best.and(stored) == stored => (stored, Source::Database),
            (Some(expected), Some(found)) => {
                return Err(OracleError::Inconsistent { board: *board, expected, found });
            }
        };
        Ok(Answer { board: *board, score, source, moves, illegal })
    }

    /// What a position scores; with fewer look-ups than [`answer`](Self::answer) where its database holds it.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn score(&self, board: &Board) -> Result<Bounds, OracleError> {
        if board.mover_starves() {
            return Ok(Bounds::exact(self.rules.terminal_score(board)));
        }
        if !self.databases.contains_key(&board.stones()) {
            return self.searched(board);
        }
        match self.stored(board)? {
            Some(score) => Ok(score),
            // Every child is reachable, so this goes no deeper.
            None => Ok(self.answer(board)?.score),
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
    fn stored(&self, board: &Board) -> Result<Option<Bounds>, OracleError> {
        if !self.set.contains(board) {
            return Ok(None);
        }
        let stones = board.stones();
        match self.databases.get(&stones) {
            None => Err(self.missing(stones)),
            Some(Err(what)) => Err(OracleError::Damaged { stones, what: what.clone() }),
            Some(Ok(Database { index, scores })) => {
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
