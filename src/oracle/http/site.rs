//! What is served, and the routes to it.

use super::catalogue::{Catalogue, Count};
use super::framing::TwoLengths;
use super::host::BadHost;
use super::limits::Limits;
use super::metrics::Metrics;
use super::probe::Probed;
use super::refusal::Refusal;
use super::{batch, play, reply, transcript};
use crate::{Answer, Line, Oracle, page};
use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{MatchedPath, Path, Query, Request, State};
use axum::http::header::{self, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use game::Board;
use game::notation::PositionText;
use serde::{Deserialize, Serialize};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

const OPENAPI: &str = include_str!("openapi.json");

/// Everything that is served.
#[derive(Debug)]
pub struct Site {
    pub(super) oracle: Oracle,
    pub(super) limits: Limits,
    catalogue: Catalogue,
    tag: HeaderValue,
    /// A permit for each search that may go on.
    searches: Arc<Semaphore>,
    metrics: Metrics,
    random: (RandomState, AtomicU64),
}

impl Site {
    /// What an oracle and the catalogue of its databases have to say.
    pub fn new(oracle: Oracle, catalogue: Catalogue, limits: Limits) -> Arc<Site> {
        let tag = catalogue.tag(&[page::SCRIPT, page::GAME, page::STYLE, OPENAPI]);
        Arc::new(Site {
            oracle,
            tag: HeaderValue::try_from(tag).expect("a tag is made of digits and quotes"),
            catalogue,
            searches: Arc::new(Semaphore::new(limits.searches_max)),
            limits,
            metrics: Metrics::default(),
            random: (RandomState::new(), AtomicU64::new(0)),
        })
    }

    /// Makes what the first question about each number of stones would have to wait for.
    pub fn warm(&self) {
        self.oracle.warm();
    }

    /// Works on a question where it may block, once it is its turn. A question that nobody waits for any more keeps
    /// its permit until it is done, so there are never more.
    pub(super) async fn search<T: Send + 'static>(
        self: &Arc<Site>,
        work: impl FnOnce(&Site) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let turn = timeout(self.limits.turn, Arc::clone(&self.searches).acquire_owned()).await;
        let Ok(Ok(permit)) = turn else { return Err(Refusal::busy()) };
        let site = Arc::clone(self);
        let done = spawn_blocking(move || {
            let _permit = permit;
            work(&site)
        });
        done.await.map_err(|_| Refusal::broken())
    }

    /// What there is to say about a position: at once where maps tell it, else when it is its turn.
    pub(crate) async fn answer(self: &Arc<Site>, board: Board) -> Result<Answer, Refusal> {
        if self.oracle.is_immediate(&board) {
            return Ok(self.oracle.answer(&board)?);
        }
        Ok(self.search(move |site| site.oracle.answer(&board)).await??)
    }

    /// The line of best moves of a position, unless it takes longer than a page waits.
    pub(crate) async fn line(self: &Arc<Site>, board: Board, moves_max: usize) -> Option<Line> {
        let line = self.search(move |site| site.oracle.line(&board, moves_max));
        timeout(self.limits.glance, line).await.ok()?.ok()?.ok()
    }

    /// How often each score occurs among positions of so many stones, the least first, if somebody has counted.
    pub(crate) fn histogram(&self, stones: u32) -> Option<&[Count]> {
        self.catalogue.histogram(stones)
    }

    /// The most stones of which there is a sound database.
    pub(crate) fn stones_max(&self) -> Option<u32> {
        self.catalogue.stones_max()
    }

    /// A seed that nobody asked for.
    pub(super) fn seed(&self) -> u32 {
        let (state, count) = &self.random;
        state.hash_one(count.fetch_add(1, Ordering::Relaxed)) as u32
    }
}

/// The routes of a site.
pub fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(page::show))
        .route("/app.js", get(|| async { reply::text(StatusCode::OK, "text/javascript; charset=utf-8", page::SCRIPT) }))
        .route("/game.js", get(|| async { reply::text(StatusCode::OK, "text/javascript; charset=utf-8", page::GAME) }))
        .route("/style.css", get(|| async { reply::text(StatusCode::OK, "text/css; charset=utf-8", page::STYLE) }))
        .route("/v1/probe", get(probe).post(batch::run))
        .route("/v1/mainline", get(play::mainline))
        .route("/v1/choose", get(play::choose))
        .route("/v1/transcript", get(transcript::write).post(transcript::read))
        .route("/v1/databases", get(databases))
        .route("/v1/databases/{stones}", get(database))
        .route("/v1/openapi.json", get(|| async { reply::text(StatusCode::OK, "application/json", OPENAPI) }))
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .fallback(nowhere)
        .layer(from_fn_with_state(Arc::clone(&site), around))
        .with_state(site)
}

/// A position from a query.
pub(super) fn position(text: &str) -> Result<PositionText, Refusal> {
    Ok(text.parse()?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProbeQuery {
    pos: String,
}

async fn probe(
    State(site): State<Arc<Site>>,
    query: Result<Query<ProbeQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(query) = query.map_err(|error| Refusal::query(&error))?;
    let position = position(&query.pos)?;
    let answer = site.answer(position.board()).await?;
    Ok(reply::json(StatusCode::OK, &Probed::new(&position, &answer)))
}

async fn databases(State(site): State<Arc<Site>>) -> Response {
    reply::json(StatusCode::OK, &site.catalogue.listed())
}

async fn database(
    State(site): State<Arc<Site>>,
    stones: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    // What is no text is no number of stones either.
    let stones = stones.ok().and_then(|Path(stones)| stones.parse().ok());
    let shown = stones.and_then(|stones| site.catalogue.shown(stones));
    let shown = shown.ok_or_else(|| {
        let hint = "/v1/databases lists the available databases";
        Refusal::new(StatusCode::NOT_FOUND, "no-database", "there is no such database", hint)
    })?;
    Ok(reply::json(StatusCode::OK, &shown))
}

#[derive(Serialize)]
struct Health {
    status: &'static str,
    databases: usize,
    damaged: usize,
}

async fn health(State(site): State<Arc<Site>>) -> Response {
    let (databases, damaged) = site.catalogue.counts();
    reply::not_kept(reply::json(StatusCode::OK, &Health { status: "ok", databases, damaged }))
}

async fn metrics(State(site): State<Arc<Site>>) -> Response {
    let text = site.metrics.text(site.oracle.blocks_decoded(), site.oracle.cache_bytes());
    reply::not_kept(reply::text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text))
}

async fn nowhere() -> Refusal {
    let hint = "/v1/openapi.json lists all routes; the page is at /";
    Refusal::new(StatusCode::NOT_FOUND, "no-route", "there is no such route", hint)
}

/// What happens before and after every request.
async fn around(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let asked = request.headers().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let query_bytes = request.uri().query().map_or(0, str::len);
    let codings: Vec<&HeaderValue> = asked.get_all(header::TRANSFER_ENCODING).iter().collect();
    let is_chunked = |coding: &&HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    let response = if request.extensions().get::<TwoLengths>().is_some() {
        let message = "the request has a Content-Length and a Transfer-Encoding, which may differ";
        Refusal::new(StatusCode::BAD_REQUEST, "two-lengths", message, "send one of them").into_response()
    } else if request.extensions().get::<BadHost>().is_some() {
        let message = "the request needs one Host header, with the name of a host";
        Refusal::new(StatusCode::BAD_REQUEST, "bad-host", message, "send Host: NAME or Host: NAME:PORT").into_response()
    } else if codings.len() > 1 || !codings.iter().all(is_chunked) {
        let message = "the only Transfer-Encoding of this server is chunked";
        Refusal::new(StatusCode::NOT_IMPLEMENTED, "bad-coding", message, "send the body as it is").into_response()
    } else if query_bytes > site.limits.query_bytes_max {
        let message = format!("the query has more than {} bytes", site.limits.query_bytes_max);
        let hint = "a position needs fewer than 50";
        Refusal::new(StatusCode::URI_TOO_LONG, "query-too-long", message, hint).into_response()
    } else if method == Method::OPTIONS {
        reply::preflight()
    } else {
        let response = timeout(site.limits.request, next.run(request)).await;
        response.unwrap_or_else(|_| Refusal::busy().into_response())
    };
    let mut response = reply::finished(response, &method, &asked, &site.tag);
    if !codings.is_empty() {
        // Where the next request begins is not followed.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    site.metrics.count(route.as_ref().map(MatchedPath::as_str), response.status().as_u16(), begun.elapsed());
    response
}
