//! `GET /v1/mainline` and `GET /v1/choose`: principal lines, and moves at a level of play.

use super::probe::{ScoreValue, after};
use super::refusal::Refusal;
use super::reply;
use super::site::Site;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use game::notation::{MoveText, PositionText};
use oracle::{Level, LevelError, LineEnd, OracleError, PrincipalLine, ValuedMove};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A whole number in a query.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
struct QueryNumber(u32);

impl TryFrom<String> for QueryNumber {
    type Error = String;

    fn try_from(text: String) -> Result<QueryNumber, String> {
        text.parse().map(QueryNumber).map_err(|_| format!("expected a whole number, at most {}", u32::MAX))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LineQuery {
    pos: String,
    moves: Option<QueryNumber>,
}

#[derive(Serialize)]
struct Mainline {
    position: String,
    score: ScoreValue,
    moves: Vec<LineStep>,
    /// Why the line ends.
    end: &'static str,
    /// The number of moves before the repeated position.
    repeats_from: Option<usize>,
}

#[derive(Serialize)]
struct LineStep {
    pit: String,
    captures: u8,
    next: String,
}

impl LineStep {
    fn new(position: &PositionText, one: &ValuedMove) -> LineStep {
        LineStep {
            pit: MoveText { pit: one.pit, side: position.side() }.to_string(),
            captures: one.captured,
            next: after(position, one.child, one.captured).to_string(),
        }
    }
}

/// `GET /v1/mainline`.
pub(super) async fn mainline(
    State(site): State<Arc<Site>>,
    query: Result<Query<LineQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(query) = query.map_err(|error| Refusal::query(&error))?;
    let from: PositionText = query.pos.parse()?;
    let moves_max = match query.moves {
        Some(QueryNumber(moves)) => usize::try_from(moves).unwrap_or(usize::MAX).min(site.limits.line_moves_max),
        None => site.limits.line_moves_max,
    };
    let (score, line) = site
        .search(move |site| -> Result<_, OracleError> {
            let board = from.board();
            Ok((site.oracle.answer(&board)?.score, site.oracle.line(&board, moves_max)?))
        })
        .await??;
    let PrincipalLine { moves, end } = line;
    let mut at = from;
    let step = |one: &ValuedMove| {
        let step = LineStep::new(&at, one);
        at = after(&at, one.child, one.captured);
        step
    };
    let (end, repeats_from) = match end {
        LineEnd::Over => ("over", None),
        LineEnd::Repeats { from } => ("repeats", Some(from)),
        LineEnd::CutOff => ("cut-off", None),
        LineEnd::Unknown => ("unknown", None),
    };
    let moves = moves.iter().map(step).collect();
    Ok(reply::json(
        StatusCode::OK,
        &Mainline { position: from.to_string(), score: score.into(), moves, end, repeats_from },
    ))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChooseQuery {
    pos: String,
    level: String,
    seed: Option<QueryNumber>,
}

#[derive(Serialize)]
struct ChosenMove {
    position: String,
    level: &'static str,
    /// The seed; the same seed chooses the same move.
    seed: u32,
    /// `None` if the player to move cannot move.
    #[serde(rename = "move")]
    chosen: Option<LineStep>,
}

/// `GET /v1/choose`.
pub(super) async fn choose(
    State(site): State<Arc<Site>>,
    query: Result<Query<ChooseQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(query) = query.map_err(|error| Refusal::query(&error))?;
    let from: PositionText = query.pos.parse()?;
    let level: Level = query.level.parse().map_err(|error: LevelError| {
        let hint = "level=fair, good, strong, expert or perfect";
        Refusal::new(StatusCode::BAD_REQUEST, "bad-level", error.to_string(), hint)
    })?;
    let seed = query.seed.map_or_else(|| site.seed(), |QueryNumber(seed)| seed);
    let chosen = site
        .search(move |site| -> Result<_, OracleError> {
            let answer = site.oracle.answer(&from.board())?;
            let pit = site.oracle.choose(&answer, level, fraction(seed))?;
            Ok(answer.moves.into_iter().find(|one| Some(one.pit) == pit))
        })
        .await??;
    let chosen = chosen.map(|one| LineStep::new(&from, &one));
    let response =
        reply::json(StatusCode::OK, &ChosenMove { position: from.to_string(), level: level.word(), seed, chosen });
    Ok(if query.seed.is_none() { reply::not_kept(response) } else { response })
}

/// Returns a number between 0 and 1, uncorrelated with that of the next seed (SplitMix64, Steele, Lea & Flood 2014).
fn fraction(seed: u32) -> f64 {
    let mut mixed = (u64::from(seed) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}
