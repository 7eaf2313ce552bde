//! Routes of a site, and the handlers that need no module of their own.

use super::middleware::around;
use super::probe::Probed;
use super::refusal::Refusal;
use super::site::{OPENAPI, Site};
use super::{analysis, batch, book_tree, play, reply, transcript};
use crate::assets;
use crate::page;
use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::get;
use game::notation::PositionText;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Returns the routes of a site.
pub fn router(site: Arc<Site>) -> Router {
    let script = |router: Router<Arc<Site>>, (route, script): (&str, &'static str)| {
        router.route(
            route,
            get(move || async move { reply::text(StatusCode::OK, "text/javascript; charset=utf-8", script) }),
        )
    };
    assets::SCRIPTS
        .into_iter()
        .fold(Router::new(), script)
        .route("/", get(page::show))
        .route("/how-to-play", get(page::how_to_play::show))
        .route("/style.css", get(|| async { reply::text(StatusCode::OK, "text/css; charset=utf-8", assets::STYLE) }))
        .route("/v1/probe", get(probe).post(batch::run))
        .route("/v1/analysis", get(analysis::analyze))
        .route("/v1/mainline", get(play::mainline))
        .route("/v1/choose", get(play::choose))
        .route("/v1/book", get(book_tree::show))
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
    let position: PositionText = query.pos.parse()?;
    let answer = site.answer(position.board()).await?;
    Ok(reply::json(StatusCode::OK, &Probed::new(&position, &answer)))
}

async fn databases(State(site): State<Arc<Site>>) -> Response {
    let listed = site.catalogue.listed(|stones| site.oracle.is_served(stones));
    reply::not_kept(reply::json(StatusCode::OK, &listed))
}

async fn database(
    State(site): State<Arc<Site>>,
    stones: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    // A path that is not UTF-8 is not a number of stones.
    let stones = stones.ok().and_then(|Path(stones)| stones.parse().ok());
    let shown = stones.and_then(|stones| site.catalogue.shown(stones, |stones| site.oracle.is_served(stones)));
    let shown = shown.ok_or_else(|| {
        let hint = "/v1/databases lists the available databases";
        Refusal::new(StatusCode::NOT_FOUND, "no-database", "there is no such database", hint)
    })?;
    Ok(reply::not_kept(reply::json(StatusCode::OK, &shown)))
}

#[derive(Serialize)]
struct Health {
    status: &'static str,
    databases: usize,
    damaged: usize,
}

async fn health(State(site): State<Arc<Site>>) -> Response {
    let (databases, damaged) = site.catalogue.database_counts(|stones| site.oracle.is_served(stones));
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
