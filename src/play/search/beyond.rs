//! Positions beyond the databases to which an evaluation is fitted: those of games of the engine, which play
//! on to a position whose score is known.
//!
//! The label of a position is a mean of what a search estimates and of what the game yields (Sutton 1988,
//! TD(lambda)): the nearer to the end of the game, the more it rests on the score. After a random move the
//! game says nothing about the positions before it.

use crate::evaluation::Evaluation;
use crate::exact_scores::NoScores;
use crate::limits::{SearchLimits, SearchStop};
use crate::report::SearchReport;
use crate::sampling::SplitMix;
use crate::searcher::{SearchRequest, Searcher};
use game::{Board, Rules, Score};
use std::io;

/// The positions that a search of a game visits.
const NODES: u64 = 2_000;

/// The bytes of the table.
const TABLE_BYTES: u64 = 4 << 20;

/// The share of a label that the next position of the game decides.
const LAMBDA: f64 = 0.75;

/// The chances of a random move, by game in turn.
const NOISE: [f64; 4] = [0.02, 0.08, 0.2, 0.4];

/// A game begins with fewer random moves than this.
const RANDOM_MOVES: u64 = 9;

/// The most moves of a game.
const MOVES_MAX: u64 = 250;

/// The most random moves that lead to a position beside a game, which every second position has.
const BESIDE_MAX: u64 = 6;

/// Plays games from the opening position, and returns positions that no database holds with estimates of their scores.
#[derive(Debug)]
pub struct EstimateSampler {
    searcher: Searcher,
}

/// A position of a game.
struct GameStep {
    board: Board,
    /// What a search estimates, in hundredths of a stone.
    estimate: f64,
    /// What the move captures, in hundredths of a stone.
    captured: f64,
    /// Whether the move is a random one.
    is_random: bool,
}

impl EstimateSampler {
    /// Makes a sampler of games by the rules of awari, which a search with an evaluation plays.
    ///
    /// # Errors
    /// If the system refuses the memory of a small transposition table.
    pub fn new(evaluation: Evaluation) -> io::Result<EstimateSampler> {
        Ok(EstimateSampler { searcher: Searcher::new(TABLE_BYTES, evaluation)? })
    }

    /// Returns the positions of more than `known` stones of the game of this number, and beside it, with
    /// their labels in stones. `score` returns the score of a position of at most `known` stones. A game
    /// depends on the evaluation and on its number alone.
    pub fn game(&self, number: u64, known: u32, score: impl Fn(&Board) -> Score) -> Vec<(Board, f32)> {
        self.searcher.table().clear();
        let rules = self.searcher.rules();
        let mut random = SplitMix::of_state(number.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 77);
        let noise = NOISE[number as usize % NOISE.len()];
        let random_moves = random.bits() % RANDOM_MOVES;
        let mut found = Vec::new();
        let (mut steps, mut before): (Vec<GameStep>, Vec<Board>) = (Vec::new(), Vec::new());
        let mut board = Board::OPENING;
        let mut end = None;
        for ply in 0..MOVES_MAX {
            let moves: Vec<_> = board.moves(rules).map(|(_, played)| played).collect();
            end = match board.stones() <= known {
                true => Some(score(&board)),
                false if moves.is_empty() => Some(rules.terminal_score(&board)),
                false => before.contains(&board).then_some(0),
            };
            if end.is_some() {
                break;
            }
            let pick = |random: &mut SplitMix| moves[(random.bits() % moves.len() as u64) as usize];
            let played = if ply < random_moves {
                pick(&mut random)
            } else {
                let report = self.search(&board, &before);
                if random.bits().is_multiple_of(2) {
                    let other = beside(rules, board, &mut random);
                    if other.stones() > known && other.moves(rules).next().is_some() {
                        found.push((other, label(&other, f64::from(self.search(&other, &[]).estimate))));
                    }
                }
                let is_random = random.unit() <= noise;
                let best = report.moves.first().and_then(|best| board.play(rules, best.pit).ok());
                let played = best.filter(|_| !is_random).unwrap_or_else(|| pick(&mut random));
                let (estimate, captured) = (f64::from(report.estimate), f64::from(played.captured) * 100.0);
                steps.push(GameStep { board, estimate, captured, is_random });
                played
            };
            match played.captured {
                0 => before.push(board),
                _ => before.clear(),
            }
            board = played.child;
        }
        let mut next = end.map(|end| f64::from(end) * 100.0);
        for step in steps.iter().rev() {
            let value = match next {
                Some(next) if !step.is_random => (1.0 - LAMBDA) * step.estimate + LAMBDA * (step.captured - next),
                _ => step.estimate,
            };
            found.push((step.board, label(&step.board, value)));
            next = Some(value);
        }
        found
    }

    fn search(&self, board: &Board, before: &[Board]) -> SearchReport {
        let limits = SearchLimits { nodes: Some(NODES), ..SearchLimits::default() };
        let request = SearchRequest { before, ..SearchRequest::new(*board, limits) };
        self.searcher.search(&request, &NoScores, &SearchStop::new(), &mut |_| {})
    }
}

/// Returns the label of a position in stones, of a value in hundredths: no player gets more than all stones.
fn label(board: &Board, value: f64) -> f32 {
    let most = f64::from(board.stones()) * 100.0;
    value.clamp(-most, most).round() as f32 / 100.0
}

/// Returns the position after a few random moves.
fn beside(rules: &Rules, mut board: Board, random: &mut SplitMix) -> Board {
    for _ in 0..=random.bits() % BESIDE_MAX {
        let moves: Vec<Board> = board.moves(rules).map(|(_, played)| played.child).collect();
        if moves.is_empty() {
            break;
        }
        board = moves[(random.bits() % moves.len() as u64) as usize];
    }
    board
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of the score at the end changes the label of the last position by 3/4 of it, with the other
    /// sign, the one before by 9/16, and so on up to a random move. Positions beside the game keep theirs.
    #[test]
    fn labels_rest_on_the_end_of_the_game() {
        let sampler = EstimateSampler::new(Evaluation::default()).unwrap();
        let (mut longest, mut kept) = (0, 0);
        for number in 0..6 {
            let game = |score| sampler.game(number, 46, |_| score);
            let (drawn, other) = (game(0), game(8));
            assert_eq!(drawn.len(), other.len());
            let changes: Vec<f32> = drawn
                .iter()
                .zip(&other)
                .map(|((board, label), (same, other))| {
                    assert!(board == same && (47..=48).contains(&board.stones()));
                    assert!(label.abs() <= board.stones() as f32);
                    other - label
                })
                .collect();
            let beside = changes.iter().take_while(|&&change| change == 0.0).count();
            let mut expected = 8.0;
            let followed = changes[beside..].iter().take_while(|&&change| {
                expected *= -LAMBDA as f32;
                (change - expected).abs() < 0.011
            });
            let followed = followed.count();
            assert!(changes[beside + followed..].iter().all(|&change| change == 0.0), "{changes:?}");
            longest = longest.max(followed);
            kept += beside;
        }
        assert!(longest > 3 && kept > 10, "{longest} {kept}");
    }
}
