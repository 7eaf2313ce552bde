//! `GET /v1/book`: what the opening book has of a position, and the tree of moves after it. Without a book
//! the answer is that it has no positions, so that a page can ask without an error.

use super::probe::after;
use super::query_number::QueryNumber;
use super::refusal::Refusal;
use super::reply;
use super::site::Site;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use book::{Assessment, BookError, BookPosition, OpeningBook};
use game::notation::{MoveText, PositionText};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The depth of the tree if none is asked for.
const DEPTH_DEFAULT: u32 = 2;

/// The largest depth: a tree of six moves a position has 1,554 moves.
const DEPTH_MAX: u32 = 4;

/// The most moves of the line of best moves.
const LINE_MOVES_MAX: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BookQuery {
    pos: String,
    depth: Option<QueryNumber>,
}

/// What the book has of a position.
#[derive(Serialize)]
struct BookShown {
    position: String,
    /// The positions of the book; 0 without a book.
    positions: usize,
    /// Whether the book has the position.
    found: bool,
    value: Option<BookValue>,
    /// The moves, the best first; none where the book ends.
    moves: Vec<BookTreeMove>,
    /// The best moves of both players up to the end of the book.
    line: Vec<String>,
}

/// Proved bounds in stones, and an estimate in hundredths of a stone.
#[derive(Serialize)]
struct BookValue {
    lo: i16,
    hi: i16,
    estimate: i16,
}

#[derive(Serialize)]
struct BookTreeMove {
    pit: String,
    captures: u8,
    value: BookValue,
    best: bool,
    /// Whether the book has the moves after it.
    goes_on: bool,
    next: String,
    moves: Vec<BookTreeMove>,
}

impl From<Assessment> for BookValue {
    fn from(value: Assessment) -> BookValue {
        BookValue { lo: value.low / 100, hi: value.high / 100, estimate: value.estimate }
    }
}

/// `GET /v1/book`.
pub(super) async fn show(
    State(site): State<Arc<Site>>,
    query: Result<Query<BookQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(query) = query.map_err(|error| Refusal::query(&error))?;
    let position: PositionText = query.pos.parse()?;
    let depth = query.depth.map(|depth| depth.within("depth", 1..=DEPTH_MAX)).transpose()?.unwrap_or(DEPTH_DEFAULT);
    let shown = site.search(move |site| shown(site, &position, depth)).await??;
    // A book grows.
    Ok(reply::not_kept(reply::json(StatusCode::OK, &shown)))
}

/// Returns what the book has of a position, with the moves up to a depth.
fn shown(site: &Site, position: &PositionText, depth: u32) -> Result<BookShown, BookError> {
    let mut shown = BookShown {
        position: position.to_string(),
        positions: 0,
        found: false,
        value: None,
        moves: Vec::new(),
        line: Vec::new(),
    };
    if let Some(book) = &site.book {
        shown.positions = book.positions();
        if let Some(found) = book.position(&position.board())? {
            (shown.found, shown.value) = (true, Some(found.value.into()));
            shown.moves = moves(book, position, &found, depth)?;
            shown.line = line(book, position)?;
        }
    }
    Ok(shown)
}

/// Returns the moves of a position, with those after them up to a depth.
fn moves(
    book: &OpeningBook,
    position: &PositionText,
    found: &BookPosition,
    depth: u32,
) -> Result<Vec<BookTreeMove>, BookError> {
    let side = position.side();
    let tree = |reply: &book::BookReply| {
        let next = after(position, reply.child, reply.captured);
        let below = if depth > 1 && reply.goes_on { book.position(&reply.child)? } else { None };
        Ok(BookTreeMove {
            pit: MoveText { pit: reply.pit, side }.to_string(),
            captures: reply.captured,
            value: reply.value.into(),
            best: reply.is_best,
            goes_on: reply.goes_on,
            next: next.to_string(),
            moves: below.map_or_else(|| Ok(Vec::new()), |below| moves(book, &next, &below, depth - 1))?,
        })
    };
    found.moves.iter().map(tree).collect()
}

/// Returns the best moves of both players from a position.
fn line(book: &OpeningBook, position: &PositionText) -> Result<Vec<String>, BookError> {
    let (mut board, mut side, mut line) = (position.board(), position.side(), Vec::new());
    while line.len() < LINE_MOVES_MAX
        && let Some(best) = book.best(&board)?
    {
        line.push(MoveText { pit: best.pit, side }.to_string());
        (board, side) = (best.child, side.other());
    }
    Ok(line)
}
