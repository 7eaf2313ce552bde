//! Random games.

use crate::{Assessment, Book, BookGame, BookSides, Hundredths, NodeId, Strategy, TableGame, TableMove};

/// A generator of random numbers (SplitMix64).
pub(crate) struct GameRandom(pub(crate) u64);

impl GameRandom {
    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }

    pub(crate) fn within(&mut self, least: Hundredths, most: Hundredths) -> Hundredths {
        least + self.below((most - least) as u64 + 1) as Hundredths
    }
}

/// The largest value of random games.
pub(crate) const VALUE_MAX: Hundredths = 5;

/// A game, and what is known of each position without the book.
pub(crate) struct RandomGame {
    pub(crate) game: TableGame,
    pub(crate) assessments: Vec<Assessment>,
}

/// What moves a random game has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GameShape {
    /// From any position to any.
    Any,
    /// From even positions to odd ones, and back: no position occurs with both players at the move.
    TwoColored,
    /// To positions of higher numbers.
    Acyclic,
}

impl GameShape {
    pub(crate) const ALL: [GameShape; 3] = [GameShape::Any, GameShape::TwoColored, GameShape::Acyclic];
}

/// Draws a game of up to `positions_max` positions. Its end positions are known or unknown.
pub(crate) fn game(random: &mut GameRandom, positions_max: u64, shape: GameShape) -> RandomGame {
    let count = 2 + random.below(positions_max - 1) as usize;
    let mut moves: Vec<Vec<TableMove>> = Vec::new();
    for from in 0..count {
        let is_end = random.below(3) == 0 && from > 0 || shape == GameShape::Acyclic && from + 1 == count;
        let degree = if is_end { 0 } else { 1 + random.below(3) };
        let draw = |_| {
            let successor = match shape {
                GameShape::Acyclic => from + 1 + random.below((count - from - 1) as u64) as usize,
                GameShape::Any => random.below(count as u64) as usize,
                GameShape::TwoColored => {
                    let first = (from + 1) % 2;
                    first + 2 * random.below(((count - first) as u64).div_ceil(2)) as usize
                }
            };
            TableMove { successor, gain: 0 }
        };
        let successors: Vec<TableMove> = (0..degree).map(draw).collect();
        moves.push(successors);
    }
    let estimate = |random: &mut GameRandom| random.within(-VALUE_MAX, VALUE_MAX);
    let assessments: Vec<Assessment> = moves
        .iter()
        .map(|_| match random.below(2) {
            0 => Assessment::exact(estimate(random)),
            _ => Assessment { low: -VALUE_MAX, high: VALUE_MAX, estimate: estimate(random) },
        })
        .collect();
    // Gains where they are allowed: between components.
    let mut game = TableGame::new(moves.clone(), VALUE_MAX * 4).unwrap();
    for from in 0..count {
        for at in 0..moves[from].len() {
            let gain = random.within(0, 2);
            let before = std::mem::replace(&mut moves[from][at].gain, gain);
            match TableGame::new(moves.clone(), VALUE_MAX * 4) {
                Ok(with_gain) => game = with_gain,
                Err(_) => moves[from][at].gain = before,
            }
        }
    }
    // Nothing is known of positions with moves.
    let assessments = assessments.into_iter().zip(&moves).map(|(end, moves)| {
        if moves.is_empty() {
            end
        } else {
            Assessment { low: -VALUE_MAX * 4, high: VALUE_MAX * 4, estimate: end.estimate }
        }
    });
    RandomGame { assessments: assessments.collect(), game }
}

impl RandomGame {
    /// Returns the value of every position if the ends have these values. From the lowest level up, games
    /// that stay in a level are broken off after many moves, worth 0.
    pub(crate) fn solve(&self, ends: &[Hundredths]) -> Vec<Hundredths> {
        let level = |at: usize| self.game.level(at as u64);
        let count = self.game.positions();
        let mut values = vec![0; count];
        let mut moves = Vec::new();
        for now in 0..=(0..count).map(level).max().unwrap_or(0) {
            let here: Vec<usize> = (0..count).filter(|&at| level(at) == now).collect();
            for _ in 0..=here.len() * 4 * VALUE_MAX as usize {
                let next = here.iter().map(|&at| {
                    moves.clear();
                    self.game.moves(at as u64, &mut moves);
                    let best =
                        moves.iter().map(|book_move| book_move.gain - values[book_move.successor as usize]).max();
                    best.unwrap_or(ends[at])
                });
                let next: Vec<Hundredths> = next.collect();
                here.iter().zip(next).for_each(|(&at, next)| values[at] = next);
            }
        }
        values
    }

    /// Makes a book with position 0 as its root.
    pub(crate) fn book(&self, strategy: Strategy) -> Book<TableGame> {
        let mut book = Book::new(self.game.clone(), strategy, BookSides::Both);
        book.add_root(0, self.assessments[0]);
        book
    }

    /// Expands a leaf.
    pub(crate) fn expand(&self, book: &mut Book<TableGame>, leaf: NodeId) {
        book.expand(leaf, |key| Ok::<_, ()>(self.assessments[key as usize])).unwrap();
    }

    /// Expands everything that can be reached, in a random order. Calls a function after each expansion.
    pub(crate) fn expand_all(
        &self,
        book: &mut Book<TableGame>,
        random: &mut GameRandom,
        mut check: impl FnMut(&Book<TableGame>),
    ) {
        loop {
            let graph = book.graph();
            let leaves: Vec<NodeId> =
                graph.ids().filter(|&id| !graph.is_interior(id) && !book.moves(id).is_empty()).collect();
            if leaves.is_empty() {
                return;
            }
            let leaf = leaves[random.below(leaves.len() as u64) as usize];
            self.expand(book, leaf);
            check(book);
        }
    }
}
