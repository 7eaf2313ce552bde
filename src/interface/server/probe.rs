//! The answer for a position as JSON.
//!
//! The format follows the lichess tablebase API: the position, and its moves, best first. Unlike in that API, the value
//! and the category of a move are from the point of view of the mover.

use game::notation::{MoveText, PositionText, Seats, Side};
use game::{Board, Illegal};
use oracle::{Answer, AnswerSource, Bounds, ValuedMove};
use serde::Serialize;

/// A score, or its bounds.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ScoreValue {
    Exact(i16),
    Between { lo: i16, hi: i16 },
}

/// Why a move that starves is illegal.
pub(crate) const STARVES: &str = "it would leave the opponent without stones";

/// Why a slam is illegal.
pub(crate) const SLAM: &str = "it would capture all of the opponent's stones";

/// The answer for a position. Fields may be added, but never change.
#[derive(Debug, Serialize)]
pub(super) struct Probed {
    position: String,
    stones: u32,
    score: ScoreValue,
    category: &'static str,
    /// In hundredths of a stone, if the score is not proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<i32>,
    source: &'static str,
    moves: Vec<ProbedMove>,
    illegal: Vec<ProbedIllegalMove>,
}

#[derive(Debug, Serialize)]
struct ProbedMove {
    pit: String,
    value: ScoreValue,
    category: &'static str,
    /// In hundredths of a stone, if the value is not proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<i32>,
    captures: u8,
    loss: ScoreValue,
    best: bool,
    next: String,
}

#[derive(Debug, Serialize)]
struct ProbedIllegalMove {
    pit: String,
    code: &'static str,
    reason: &'static str,
}

impl Probed {
    pub(super) fn new(position: &PositionText, answer: &Answer) -> Probed {
        let side = position.side();
        let legal = |valued: &ValuedMove| ProbedMove {
            pit: MoveText { pit: valued.pit, side }.to_string(),
            value: valued.value.into(),
            category: category(valued.value),
            estimate: valued.estimate,
            captures: valued.captured,
            loss: loss(answer.score, valued),
            best: valued.is_best,
            next: after(position, valued.child, valued.captured).to_string(),
        };
        Probed {
            position: position.to_string(),
            stones: answer.board.stones(),
            score: answer.score.into(),
            category: category(answer.score),
            estimate: answer.estimate,
            source: match answer.source {
                AnswerSource::Database => "database",
                AnswerSource::Children => "children",
                AnswerSource::Rules => "rules",
                AnswerSource::Search => "search",
            },
            moves: best_first(answer).into_iter().map(legal).collect(),
            illegal: answer
                .illegal
                .iter()
                .map(|illegal| {
                    let (code, reason) = match illegal.reason {
                        Illegal::Empty(_) => ("empty", "the pit is empty"),
                        Illegal::Starves(_) => ("starves", STARVES),
                        Illegal::Slam(_) => ("slam", SLAM),
                    };
                    ProbedIllegalMove { pit: MoveText { pit: illegal.pit, side }.to_string(), code, reason }
                })
                .collect(),
        }
    }
}

/// Returns the legal moves, best first.
pub(crate) fn best_first(answer: &Answer) -> Vec<&ValuedMove> {
    let mut moves: Vec<&ValuedMove> = answer.moves.iter().collect();
    // The estimate, or else the middle of the bounds, in hundredths of a stone; the sort keeps A before F.
    let middle = |value: Bounds| 50 * (i32::from(value.low()) + i32::from(value.high()));
    let worth = |valued: &ValuedMove| valued.estimate.unwrap_or_else(|| middle(valued.value));
    moves.sort_by_key(|valued| std::cmp::Reverse((valued.is_best, worth(valued), valued.captured)));
    moves
}

/// Returns the position after a move, in the notation of the position.
pub(super) fn after(position: &PositionText, child: Board, captured: u8) -> PositionText {
    let Some(Seats { mut south_store, mut north_store, side }) = position.seats() else {
        return PositionText::of_board(child);
    };
    match side {
        Side::South => south_store = south_store.saturating_add(captured),
        Side::North => north_store = north_store.saturating_add(captured),
    }
    PositionText::of_game(child, Seats { south_store, north_store, side: side.other() })
}

/// Returns the certain outcome of a score for the player to move.
pub(crate) fn category(score: Bounds) -> &'static str {
    match (score.low(), score.high()) {
        (1.., _) => "win",
        (_, ..=-1) => "loss",
        (0, 0) => "draw",
        _ => "unknown",
    }
}

/// Returns the stones that a move loses compared with the best move.
pub(crate) fn loss(score: Bounds, valued: &ValuedMove) -> ScoreValue {
    if valued.is_best {
        return ScoreValue::Exact(0);
    }
    let (low, high) = (i16::from(valued.value.low()), i16::from(valued.value.high()));
    let lo = (i16::from(score.low()) - high).max(0);
    let hi = (i16::from(score.high()) - low).max(0);
    if lo == hi { ScoreValue::Exact(lo) } else { ScoreValue::Between { lo, hi } }
}

impl From<Bounds> for ScoreValue {
    fn from(bounds: Bounds) -> ScoreValue {
        match bounds.score() {
            Some(score) => ScoreValue::Exact(score.into()),
            None => ScoreValue::Between { lo: bounds.low().into(), hi: bounds.high().into() },
        }
    }
}
