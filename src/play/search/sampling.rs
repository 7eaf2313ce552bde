//! Positions to which an evaluation is fitted: those of games, and some moves beside them.
//!
//! A search estimates positions that good players never reach, a few bad moves away from those of a game. So
//! each position of a game comes with another one, which random moves lead to.

use crate::evaluation::Evaluation;
use crate::exact_scores::NoScores;
use crate::limits::{SearchLimits, SearchStop};
use crate::searcher::{SearchRequest, Searcher};
use game::{Board, Rules};
use std::io;

/// The depth to which moves of the games are searched, with [`Evaluation::MATERIAL`].
const DEPTH: u32 = 3;

/// The chances of a random move, by game in turn.
const NOISE: [f64; 4] = [0.05, 0.15, 0.3, 0.6];

/// The most moves of a game.
const MOVES_MAX: u32 = 160;

/// The most random moves that lead to a position beside a game.
const BESIDE_MAX: u64 = 6;

/// The fewest stones of a position.
const STONES_MIN: u32 = 3;

/// From this number of stones on, every position is taken; below it one of [`FEW_STONES_STEP`], since games
/// are long and databases small there.
const MANY_STONES: u32 = 13;
const FEW_STONES_STEP: u64 = 4;

/// Plays games from the opening position and returns positions of them.
#[derive(Debug)]
pub struct GameSampler {
    searcher: Searcher,
    seed: u64,
}

impl GameSampler {
    /// Makes a sampler of games by some rules. Games depend on the rules, on the seed and on their number alone.
    ///
    /// # Errors
    /// If the system refuses the memory of a small transposition table.
    ///
    /// # Panics
    /// As [`Searcher::by`].
    pub fn new(rules: Rules, seed: u64) -> io::Result<GameSampler> {
        Ok(GameSampler { searcher: Searcher::by(rules, 0, Evaluation::MATERIAL)?, seed })
    }

    /// Returns positions of at most `stones_max` stones, of the game of this number and beside it.
    pub fn game(&self, number: u64, stones_max: u32) -> Vec<Board> {
        self.searcher.table().clear();
        let rules = self.searcher.rules();
        let mut random = SplitMix::new(self.seed, number);
        let noise = NOISE[number as usize % NOISE.len()];
        let mut found = Vec::new();
        let mut take = |board: Board, random: &mut SplitMix| {
            let stones = board.stones();
            let is_wanted = (STONES_MIN..=stones_max).contains(&stones) && !board.mover_starves();
            if is_wanted && (stones >= MANY_STONES || random.below(FEW_STONES_STEP) == 0) {
                found.push(board);
            }
        };
        let mut board = Board::OPENING;
        for _ in 0..MOVES_MAX {
            let moves: Vec<(_, Board)> = board.moves(rules).map(|(pit, played)| (pit, played.child)).collect();
            if moves.is_empty() {
                break;
            }
            take(board, &mut random);
            if board.stones() <= stones_max {
                take(beside(rules, board, &mut random), &mut random);
            }
            let at = if random.unit() < noise {
                random.below(moves.len() as u64) as usize
            } else {
                let limits = SearchLimits { depth: Some(DEPTH), ..SearchLimits::default() };
                let request = SearchRequest::new(board, limits);
                let report = self.searcher.search(&request, &NoScores, &SearchStop::new(), &mut |_| {});
                let best = report.moves.first().map(|best| best.pit);
                moves.iter().position(|(pit, _)| Some(*pit) == best).unwrap_or(0)
            };
            board = moves[at].1;
        }
        found
    }
}

/// Returns the position after a few random moves.
fn beside(rules: &Rules, mut board: Board, random: &mut SplitMix) -> Board {
    for _ in 0..=random.below(BESIDE_MAX) {
        let moves: Vec<Board> = board.moves(rules).map(|(_, played)| played.child).collect();
        match moves.len() {
            0 => break,
            count => board = moves[random.below(count as u64) as usize],
        }
    }
    board
}

/// A generator of pseudo-random numbers: SplitMix64 (Steele, Lea & Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct SplitMix(u64);

impl SplitMix {
    /// The generator of a seed, another one for each number.
    pub(crate) fn new(seed: u64, number: u64) -> SplitMix {
        let mut first = SplitMix(seed);
        let mut second = SplitMix(first.bits() ^ number);
        second.bits();
        second
    }

    /// The generator of a state.
    pub(crate) fn of_state(state: u64) -> SplitMix {
        SplitMix(state)
    }

    /// Returns the next 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 up to `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    /// Returns a number from 0 up to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn games_depend_on_seed_and_number_alone() {
        let sampler = GameSampler::new(Rules::AWARI, 1).unwrap();
        let game = sampler.game(3, 24);
        assert!(game.len() > 10, "{}", game.len());
        assert!(game.iter().all(|board| (3..=24).contains(&board.stones()) && !board.mover_starves()));
        assert_ne!(sampler.game(4, 24), game);
        assert_eq!(sampler.game(3, 24), game);
        assert_eq!(GameSampler::new(Rules::AWARI, 1).unwrap().game(3, 24), game);
        assert_ne!(GameSampler::new(Rules::AWARI, 2).unwrap().game(3, 24), game);
    }
}
