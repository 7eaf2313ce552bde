//! The state that all requests share: an oracle, the catalogue of its databases, limits and permits.

use super::catalogue::{Catalogue, ScoreCount};
use super::client_shares::ClientShares;
use super::engine::{SearchQueue, SiteEngine};
use super::limits::ServerLimits;
use super::metrics::Metrics;
use super::refusal::Refusal;
use crate::assets;
use axum::http::header::HeaderValue;
use book::OpeningBook;
use game::Board;
use oracle::{Answer, Oracle, PrincipalLine};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The description of the API.
pub(super) const OPENAPI: &str = include_str!("openapi.json");

/// The state of a site.
#[derive(Debug)]
pub struct Site {
    pub(super) oracle: Oracle,
    pub(super) limits: ServerLimits,
    pub(super) catalogue: Catalogue,
    /// The entity tag of all responses.
    pub(super) tag: HeaderValue,
    /// One permit for each concurrent search.
    searches: Arc<Semaphore>,
    pub(super) engine: SiteEngine,
    /// The opening book, if there is one.
    pub(super) book: Option<OpeningBook>,
    /// Analyses.
    pub(super) analyses: SearchQueue,
    /// Searches for the moves of players.
    pub(super) moves: SearchQueue,
    /// Shares of clients in analyses, in searches for moves, and in other requests.
    pub(super) shares: SiteShares,
    pub(super) metrics: Metrics,
    random: (RandomState, AtomicU64),
}

/// Shares of clients by kinds of requests, so that those of one kind do not block those of another.
#[derive(Debug)]
pub(super) struct SiteShares {
    analyses: Arc<ClientShares>,
    moves: Arc<ClientShares>,
    searches: Arc<ClientShares>,
}

impl SiteShares {
    fn new(limits: &ServerLimits) -> SiteShares {
        SiteShares {
            analyses: ClientShares::new(limits.analyses_client_max),
            moves: ClientShares::new(limits.analyses_client_max),
            searches: ClientShares::new(limits.searches_client_max),
        }
    }

    /// Returns the shares that requests of a route need; `None` for routes that search nothing.
    pub(super) fn of_route(&self, route: &str) -> Option<&Arc<ClientShares>> {
        match route {
            "/v1/analysis" => Some(&self.analyses),
            "/v1/choose" => Some(&self.moves),
            "/v1/probe" | "/v1/mainline" | "/v1/book" | "/" => Some(&self.searches),
            _ => None,
        }
    }
}

impl Site {
    /// Makes the site of an oracle, the catalogue of its databases, an engine for positions beyond them, and an opening
    /// book.
    pub fn new(
        oracle: Oracle,
        catalogue: Catalogue,
        engine: SiteEngine,
        book: Option<OpeningBook>,
        limits: ServerLimits,
    ) -> Arc<Site> {
        let scripts = assets::SCRIPTS.map(|(_, script)| script);
        let read = book.as_ref().map_or_else(String::new, book_tag);
        let tag = catalogue.tag(&[&scripts[..], &[assets::STYLE, OPENAPI, &read]].concat());
        Arc::new(Site {
            oracle,
            tag: HeaderValue::try_from(tag).expect("a tag is made of digits and quotes"),
            catalogue,
            searches: Arc::new(Semaphore::new(limits.searches_max)),
            engine,
            book,
            analyses: SearchQueue::new(&limits),
            moves: SearchQueue::new(&limits),
            shares: SiteShares::new(&limits),
            limits,
            metrics: Metrics::default(),
            random: (RandomState::new(), AtomicU64::new(0)),
        })
    }

    /// Builds the tables of all databases in advance, since they would delay the first queries.
    pub fn warm(&self) {
        self.oracle.warm();
    }

    /// Runs blocking work once a permit is free. Abandoned work keeps its permit until it is done, which bounds the
    /// number of threads.
    pub(super) async fn search<T: Send + 'static>(
        self: &Arc<Site>,
        work: impl FnOnce(&Site) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let turn = timeout(self.limits.queue_wait, Arc::clone(&self.searches).acquire_owned()).await;
        let Ok(Ok(permit)) = turn else { return Err(Refusal::busy()) };
        let site = Arc::clone(self);
        let done = spawn_blocking(move || {
            let _permit = permit;
            work(&site)
        });
        done.await.map_err(|_| Refusal::broken())
    }

    /// Answers a question about a position: immediately from memory maps, otherwise as blocking work.
    pub(crate) async fn answer(self: &Arc<Site>, board: Board) -> Result<Answer, Refusal> {
        if self.oracle.is_immediate(&board) {
            return Ok(self.oracle.answer(&board)?);
        }
        Ok(self.search(move |site| site.oracle.answer(&board)).await??)
    }

    /// Returns the principal line of a position, unless it takes longer than the page waits.
    pub(crate) async fn line(self: &Arc<Site>, board: Board, moves_max: usize) -> Option<PrincipalLine> {
        let line = self.search(move |site| site.oracle.line(&board, moves_max));
        timeout(self.limits.line_wait, line).await.ok()?.ok()?.ok()
    }

    /// Returns the histogram of scores for a number of stones, ascending, if known.
    pub(crate) fn histogram(&self, stones: u32) -> Option<&[ScoreCount]> {
        self.catalogue.histogram(stones)
    }

    /// Returns the stones of the largest sound database.
    pub(crate) fn stones_max(&self) -> Option<u32> {
        self.catalogue.stones_max()
    }

    /// Returns a random seed.
    pub(super) fn seed(&self) -> u32 {
        let (state, count) = &self.random;
        state.hash_one(count.fetch_add(1, Ordering::Relaxed)) as u32
    }
}

/// Describes what a book holds, for the entity tag.
fn book_tag(book: &OpeningBook) -> String {
    format!("{:?} {} {:?}", book.root(), book.positions(), book.position(&book.root()).ok())
}
