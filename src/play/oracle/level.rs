//! Levels of play.
//!
//! The weight of a move halves for each number of stones that it loses against the best move; the number depends on the
//! level. Perfect play never loses any. All levels choose randomly among equally good moves, except perfect play, which
//! follows the principal line, because best moves alone may repeat positions forever.

use crate::answer::{Answer, Oracle, ValuedMove};
use crate::error::OracleError;
use game::Pit;
use std::fmt;
use std::str::FromStr;

/// A level of play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Halves the weight of a move every 6 stones that it loses.
    Beginner,
    /// Every 3 stones.
    Casual,
    /// Every stone and a half.
    Strong,
    /// Every half a stone.
    Expert,
    /// Plays only best moves, towards a capture or the end.
    Perfect,
}

/// An unknown name of a level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no level \"{found}\"; expected beginner, casual, strong, expert or perfect")]
pub struct LevelError {
    /// The word.
    pub found: String,
}

impl Level {
    /// All levels, the weakest first.
    pub const ALL: [Level; 5] = [Level::Beginner, Level::Casual, Level::Strong, Level::Expert, Level::Perfect];

    /// Returns the name.
    pub fn word(self) -> &'static str {
        match self {
            Level::Beginner => "beginner",
            Level::Casual => "casual",
            Level::Strong => "strong",
            Level::Expert => "expert",
            Level::Perfect => "perfect",
        }
    }

    /// Returns the name that it had at first, which is still understood.
    pub fn former_word(self) -> Option<&'static str> {
        match self {
            Level::Beginner => Some("fair"),
            Level::Casual => Some("good"),
            Level::Strong | Level::Expert | Level::Perfect => None,
        }
    }

    /// Returns the lost stones that halve the weight of a move; `None` if none may be lost.
    pub(crate) fn stones_halving(self) -> Option<f64> {
        match self {
            Level::Beginner => Some(6.0),
            Level::Casual => Some(3.0),
            Level::Strong => Some(1.5),
            Level::Expert => Some(0.5),
            Level::Perfect => None,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl Oracle {
    /// Chooses a move at a level; `None` if there is none. `random` is between 0 and 1.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub fn choose(&self, answer: &Answer, level: Level, random: f64) -> Result<Option<Pit>, OracleError> {
        let Some(stones_halving) = level.stones_halving() else {
            // Without a line, the first of the best moves.
            let line = if answer.score.score().is_some() { self.line(&answer.board, 1)?.moves } else { Vec::new() };
            let best = answer.moves.iter().max_by(|a, b| worth(a).total_cmp(&worth(b)));
            return Ok(line.first().or(best).map(|valued| valued.pit));
        };
        let worths = answer.moves.iter().map(|valued| (valued.pit, worth(valued)));
        Ok(choose_weighted(worths, stones_halving, random))
    }
}

/// Chooses a move with a weight that halves for each number of stones that the move loses against the best one.
pub(crate) fn choose_weighted(
    moves: impl Iterator<Item = (Pit, f64)> + Clone,
    stones_halving: f64,
    random: f64,
) -> Option<Pit> {
    let best = moves.clone().map(|(_, worth)| worth).fold(f64::NEG_INFINITY, f64::max);
    let weight = |worth: f64| ((worth - best) / stones_halving).exp2();
    let total: f64 = moves.clone().map(|(_, worth)| weight(worth)).sum();
    let mut left = random.clamp(0.0, 1.0) * total;
    let chosen = moves.clone().find(|(_, worth)| {
        left -= weight(*worth);
        left <= 0.0
    });
    chosen.or(moves.last()).map(|(pit, _)| pit)
}

/// Returns the estimate in stones, or else the middle of the bounds.
fn worth(valued: &ValuedMove) -> f64 {
    let middle = (f64::from(valued.value.low()) + f64::from(valued.value.high())) / 2.0;
    valued.estimate.map_or(middle, |hundredths| f64::from(hundredths) / 100.0)
}

impl FromStr for Level {
    type Err = LevelError;

    fn from_str(text: &str) -> Result<Level, LevelError> {
        let found = text.trim().to_lowercase();
        let is_it = |level: &Level| level.word() == found || level.former_word() == Some(&found);
        Level::ALL.into_iter().find(is_it).ok_or(LevelError { found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_names_are_understood() {
        for level in Level::ALL {
            for word in [Some(level.word()), level.former_word()].into_iter().flatten() {
                assert_eq!(word.parse(), Ok(level), "{word}");
            }
        }
        assert_eq!("good".parse(), Ok(Level::Casual));
        assert!("best".parse::<Level>().is_err());
    }
}
