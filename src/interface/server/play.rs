//! `GET /v1/mainline` and `GET /v1/choose`: principal lines, and moves at a level of play.

use super::analysis::AnalysisRoot;
use super::engine::StopOnDrop;
use super::probe::{ScoreValue, after};
use super::query_number::QueryNumber;
use super::refusal::Refusal;
use super::reply;
use super::site::Site;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use game::notation::{MoveText, PositionText};
use game::{Board, Pit};
use oracle::{Level, LevelError, LineEnd, OracleError, PrincipalLine, SearchProbes, ValuedMove};
use search::{SearchLimits, SearchRequest};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Bytes of the table of a search for a move. It begins empty, so that the same seed gives the same move.
const TABLE_BYTES: u64 = 1 << 20;

/// The most moves of a position.
const MOVES_MAX: usize = 6;

/// Time of a search for a move on a machine that is too busy to search all its positions.
const TIME_MAX: Duration = Duration::from_secs(2);

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
    fn new(position: &PositionText, pit: Pit, captured: u8, child: Board) -> LineStep {
        LineStep {
            pit: MoveText { pit, side: position.side() }.to_string(),
            captures: captured,
            next: after(position, child, captured).to_string(),
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
    let step = |valued: &ValuedMove| {
        let step = LineStep::new(&at, valued.pit, valued.captured, valued.child);
        at = after(&at, valued.child, valued.captured);
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
    #[serde(default)]
    moves: String,
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
    /// What the move rests on: a database, a search, or the book.
    source: &'static str,
}

/// `GET /v1/choose`.
pub(super) async fn choose(
    State(site): State<Arc<Site>>,
    query: Result<Query<ChooseQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(query) = query.map_err(|error| Refusal::query(&error))?;
    let root = AnalysisRoot::new(&site, query.pos.parse()?, &query.moves)?;
    let from = root.position;
    let level: Level = query.level.parse().map_err(|error: LevelError| {
        let hint = "level=beginner, casual, strong, expert or perfect";
        Refusal::new(StatusCode::BAD_REQUEST, "bad-level", error.to_string(), hint)
    })?;
    let seed = query.seed.map_or_else(|| site.seed(), |QueryNumber(seed)| seed);
    let board = from.board();
    let is_known = board.moves(site.oracle.rules()).next().is_none()
        || site.oracle.stones().any(|stones| stones == board.stones());
    // A player by the book plays its best moves only.
    let by_book = if site.book.is_some() && !is_known && level == Level::Perfect {
        site.search(move |site| site.book.as_ref().map(|book| book.best(&board))).await?.transpose()?.flatten()
    } else {
        None
    };
    let (mut is_complete, mut is_searched) = (true, !is_known);
    let chosen = if let Some(best) = by_book {
        Some((best.pit, best.captured, best.child))
    } else {
        let known = if is_known && site.oracle.rules().has_scores() {
            site.search(move |site| known(site, &board, level, fraction(seed))).await?
        } else {
            Ok(None)
        };
        match known {
            Ok(Some(chosen)) => chosen,
            Err(error @ OracleError::SearchTable { .. }) => return Err(error.into()),
            // A game goes on without a database that cannot be read.
            known => {
                let found = searched(&site, root, level, fraction(seed)).await?;
                is_complete = known.is_ok() && found.is_complete;
                is_searched |= found.is_searched;
                let played = found.pit.and_then(|pit| Some((pit, board.play(site.oracle.rules(), pit).ok()?)));
                played.map(|(pit, played)| (pit, played.captured, played.child))
            }
        }
    };
    let source = match by_book {
        Some(_) => "book",
        None if !is_searched && is_complete => "database",
        None => "search",
    };
    let chosen = chosen.map(|(pit, captured, child)| LineStep::new(&from, pit, captured, child));
    let shown = ChosenMove { position: from.to_string(), level: level.word(), seed, chosen, source };
    let response = reply::json(StatusCode::OK, &shown);
    // A book grows, and a database may be repaired.
    Ok(if query.seed.is_none() || by_book.is_some() || !is_complete { reply::not_kept(response) } else { response })
}

/// A move, the stones that it captures, and the position after it.
type PlayedMove = (Pit, u8, Board);

/// Chooses a move of a position whose score is known; `None` within if there is no move.
fn known(site: &Site, board: &Board, level: Level, random: f64) -> Result<Option<Option<PlayedMove>>, OracleError> {
    let answer = site.oracle.answer(board)?;
    let pit = site.oracle.choose(&answer, level, random)?;
    let chosen = answer.moves.into_iter().find(|valued| Some(valued.pit) == pit);
    Ok(Some(chosen.map(|valued| (valued.pit, valued.captured, valued.child))))
}

/// The move that a search chose.
struct SearchedChoice {
    pit: Option<Pit>,
    /// Whether positions were searched: the databases alone may have the answer.
    is_searched: bool,
    /// Whether all databases that were needed could be read.
    is_complete: bool,
}

/// Chooses a move of a position beyond the databases, by a search that lasts the longer the stronger the
/// level is; or of one whose bounds are known, after the game before it. Goes on without databases that
/// cannot be read or trusted.
async fn searched(site: &Arc<Site>, root: AnalysisRoot, level: Level, random: f64) -> Result<SearchedChoice, Refusal> {
    let permit = site.moves.enter().await?;
    let stop = StopOnDrop::default();
    let (sender, chosen) = oneshot::channel();
    let (shared_site, flag) = (Arc::clone(site), Arc::clone(&stop.0));
    let search = move || -> Result<SearchedChoice, Refusal> {
        let searcher = shared_site.engine.searcher(TABLE_BYTES).map_err(|_| Refusal::busy())?;
        let board = root.position.board();
        let request = SearchRequest {
            board,
            before: &root.before,
            limits: SearchLimits { nodes: Some(nodes(level)), time: Some(TIME_MAX), ..SearchLimits::default() },
            // Other levels choose among all moves.
            lines: if level == Level::Perfect { 1 } else { MOVES_MAX },
            threads: 1,
        };
        let mut is_complete = true;
        let mut analyze = |stones_max: u32| {
            let probes = SearchProbes::new(&shared_site.oracle, stones_max).repeatable();
            let result = shared_site.oracle.analyze_through(&probes, &searcher, &request, &flag, &mut |_| {});
            is_complete &= result.is_ok() && !probes.has_error();
            if result.is_err() {
                // Bounds of the table may rest on wrong scores.
                searcher.table().clear();
            }
            result
        };
        // Without the database of the position, and without any.
        let report = analyze(shared_site.oracle.stones_max().unwrap_or(0))
            .or_else(|_| analyze(board.stones().saturating_sub(1)))
            .or_else(|_| analyze(0))?;
        Ok(SearchedChoice { pit: level.choose(&report, random), is_searched: report.nodes > 0, is_complete })
    };
    // A failure to send means that no client waits for the move.
    site.engine.start(permit, move || _ = sender.send(search()))?;
    chosen.await.map_err(|_| Refusal::broken())?
}

/// Returns the positions that a player of a level searches for a move.
fn nodes(level: Level) -> u64 {
    match level {
        Level::Beginner => 2_000,
        Level::Casual => 10_000,
        Level::Strong => 50_000,
        Level::Expert => 200_000,
        Level::Perfect => 1_000_000,
    }
}

/// Returns a number between 0 and 1, uncorrelated with that of the next seed (SplitMix64, Steele, Lea & Flood 2014).
fn fraction(seed: u32) -> f64 {
    let mut mixed = (u64::from(seed) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}
