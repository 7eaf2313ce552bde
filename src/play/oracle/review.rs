//! Reviews of games: the value and the loss of every move. Romein & Bal (2002, section 6) reviewed the games of the
//! 2000 Computer Olympiad in this way.

use crate::answer::Oracle;
use crate::bounds::Bounds;
use crate::error::OracleError;
use game::Pit;
use game::notation::Side;
use game::play::{Game, GameTurn, Situation};

/// The review of a game.
#[derive(Clone, Debug, PartialEq)]
pub struct Review {
    /// The moves.
    pub turns: Vec<JudgedMove>,
    /// The summaries of South and North.
    pub players: [Player; 2],
}

/// A judged move.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedMove {
    /// The move.
    pub turn: GameTurn,
    /// The position before it.
    pub before: Situation,
    /// Its value for the player, if known.
    pub value: Option<Bounds>,
    /// The value of the best move, if known.
    pub best: Option<Bounds>,
    /// Stones lost against the best move, if both values are exact.
    pub loss: Option<u8>,
    /// The best moves, if the move was not one of them.
    pub better: Vec<Pit>,
}

/// The summary of the moves of a player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Player {
    /// The number of moves.
    pub moves: u32,
    /// Moves with a known loss.
    pub judged: u32,
    /// Moves that lost stones.
    pub errors: u32,
    /// Stones lost.
    pub lost: u32,
}

impl Player {
    /// Returns the stones lost per judged move.
    pub fn average_loss(&self) -> Option<f64> {
        (self.judged > 0).then(|| f64::from(self.lost) / f64::from(self.judged))
    }
}

impl Oracle {
    /// Judges every move of a game from a known position.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn review(&self, game: &Game) -> Result<Review, OracleError> {
        let mut review = Review { turns: Vec::new(), players: [Player::default(); 2] };
        let mut before = game.start();
        for turn in game.turns() {
            let judged = self.judge(before, *turn)?;
            let player = &mut review.players[if turn.side == Side::South { 0 } else { 1 }];
            player.moves += 1;
            if let Some(loss) = judged.loss {
                player.judged += 1;
                player.errors += u32::from(loss > 0);
                player.lost += u32::from(loss);
            }
            review.turns.push(judged);
            before = turn.after;
        }
        Ok(review)
    }

    fn judge(&self, before: Situation, turn: GameTurn) -> Result<JudgedMove, OracleError> {
        let mut judged = JudgedMove { turn, before, value: None, best: None, loss: None, better: Vec::new() };
        let answer = self.answer(&before.board)?;
        judged.best = Some(answer.score);
        judged.value = answer.moves.iter().find(|valued| valued.pit == turn.pit).map(|valued| valued.value);
        if let (Some(best), Some(value)) = (answer.score.score(), judged.value.and_then(Bounds::score)) {
            judged.loss = Some(best.saturating_sub(value).unsigned_abs());
        }
        // A move may be known to lose stones, but not how many.
        let is_best = judged.value.is_some_and(|value| value.high() >= answer.score.high());
        if !is_best {
            judged.better = answer.moves.iter().filter(|valued| valued.is_best).map(|valued| valued.pit).collect();
        }
        Ok(judged)
    }
}
