//! `GET /v1/analysis`: the search of a position, streamed as it deepens.
//!
//! An analysis ends when its limits are reached, its client leaves, or the server stops. What is proved and what is
//! estimated are separate fields.

use super::client::{Client, Departure};
use super::engine::StopOnDrop;
use super::probe::{after, category};
use super::query_number::QueryNumber;
use super::race::{Either, either};
use super::refusal::Refusal;
use super::reply;
use super::site::Site;
use super::transcript::play_all;
use axum::Extension;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use game::notation::{MoveText, PositionText};
use game::play::{Game, GameEnd};
use game::{Board, Pit, Rules};
use http_body::Frame;
use oracle::{Bounds, OracleError, SearchProbes};
use search::{MoveEstimate, SearchLimits, SearchReport, SearchRequest, SearchStop, SearchedMove};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::mpsc;

/// The time of an analysis that asks for none, in milliseconds.
const TIME_DEFAULT: u32 = 1_000;

/// The most moves of a position.
const LINES_MAX: u32 = 6;

/// Events that may wait for a slow client: more than a search has iterations, so that none is lost.
const EVENTS_MAX: usize = 256;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnalysisQuery {
    pos: String,
    #[serde(default)]
    moves: String,
    time: Option<QueryNumber>,
    nodes: Option<QueryNumber>,
    depth: Option<QueryNumber>,
    lines: Option<QueryNumber>,
    #[serde(default)]
    format: AnalysisFormat,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum AnalysisFormat {
    /// Server-sent events.
    #[default]
    Events,
    /// The result as one object.
    Json,
}

/// What an analysis found out so far.
#[derive(Serialize)]
struct Analyzed {
    position: String,
    stones: u32,
    depth: u32,
    proved: ProvedBounds,
    /// The certain outcome.
    category: &'static str,
    /// Hundredths of a stone.
    estimate: i32,
    moves: Vec<AnalysisMove>,
    nodes: u64,
    probes: u64,
    milliseconds: u64,
}

#[derive(Serialize)]
struct ProvedBounds {
    lo: i8,
    hi: i8,
}

#[derive(Serialize)]
struct AnalysisMove {
    pit: String,
    captures: u8,
    proved: ProvedBounds,
    category: &'static str,
    estimate: i32,
    /// Whether the estimate is only an upper bound.
    at_most: bool,
    line: Vec<String>,
    next: String,
}

/// What the thread of a search sends.
enum AnalysisEvent {
    Iteration(SearchReport),
    Result(Result<SearchReport, OracleError>),
}

/// The position to analyze, and the game before it.
pub(super) struct AnalysisRoot {
    pub(super) position: PositionText,
    /// The positions since the last capture.
    pub(super) before: Vec<Board>,
}

impl AnalysisRoot {
    /// Plays moves from a position.
    ///
    /// # Errors
    /// If a move is not legal, or the last position repeats an earlier one.
    pub(super) fn new(site: &Site, start: PositionText, letters: &str) -> Result<AnalysisRoot, Refusal> {
        let refused = |what: String| {
            let hint = "moves=FfBd, the letters of the moves after pos, up to the end of the game";
            Refusal::new(StatusCode::BAD_REQUEST, "bad-moves", what, hint)
        };
        let mut game = Game::from(*site.oracle.rules(), &start);
        play_all(&mut game, letters).map_err(refused)?;
        if game.outcome().is_some_and(|outcome| matches!(outcome.end, GameEnd::Repeats { .. })) {
            return Err(refused("the game is over: the position is repeated".to_owned()));
        }
        let turns = game.turns();
        let from = turns.iter().rposition(|turn| turn.captured > 0).map_or(0, |capture| capture + 1);
        let boards = std::iter::once(game.start().board).chain(turns.iter().map(|turn| turn.after.board));
        let before = boards.skip(from).take(turns.len() - from).collect();
        let position = if turns.is_empty() { start } else { game.now().text() };
        Ok(AnalysisRoot { position, before })
    }
}

/// `GET /v1/analysis`.
pub(super) async fn analyze(
    State(site): State<Arc<Site>>,
    client: Option<Extension<Client>>,
    query: Result<Query<AnalysisQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(query) = query.map_err(|error| Refusal::query(&error))?;
    let format = query.format;
    let (time_max, departure) = match format {
        AnalysisFormat::Events => (site.limits.analysis_stream, Departure::Closed),
        AnalysisFormat::Json => (site.limits.analysis_answer, Departure::Broken),
    };
    let milliseconds_max = u32::try_from(site.limits.analysis_stream.as_millis()).unwrap_or(u32::MAX).max(1);
    let within = |number: Option<QueryNumber>, name: &str, most: u32| {
        number.map(|number| number.within(name, 1..=most)).transpose()
    };
    let milliseconds = within(query.time, "time", milliseconds_max)?.unwrap_or(TIME_DEFAULT);
    let limits = SearchLimits {
        depth: within(query.depth, "depth", u32::MAX)?,
        nodes: within(query.nodes, "nodes", u32::MAX)?.map(u64::from),
        time: Some(Duration::from_millis(milliseconds.into()).min(time_max)),
        iteration_time: None,
    };
    let lines = within(query.lines, "lines", LINES_MAX)?.unwrap_or(1) as usize;
    let root = AnalysisRoot::new(&site, query.pos.parse()?, &query.moves)?;
    let position = root.position;

    let mut left: Pin<Box<dyn Future<Output = ()> + Send>> = match client {
        Some(Extension(client)) => Box::pin(client.left(departure)),
        None => Box::pin(pending()),
    };
    let Either::Left(permit) = either(site.analyses.enter(), left.as_mut()).await else {
        return Err(Refusal::busy());
    };
    let (sender, events) = mpsc::channel(EVENTS_MAX);
    let rules = *site.oracle.rules();
    let mut stream =
        EventStream { rules, position, first: None, events, left: Some(left), stop: StopOnDrop::default() };
    let (shared_site, stop) = (Arc::clone(&site), Arc::clone(&stream.stop.0));
    site.engine.start(permit?, move || run(&shared_site, &root, limits, lines, &stop, &sender))?;
    let response = match format {
        // The head is sent with the first event: an error that comes earlier has a status.
        AnalysisFormat::Events => match stream.next().await? {
            AnalysisEvent::Result(Err(error)) => return Err(error.into()),
            first => stream.starting_with(first),
        },
        AnalysisFormat::Json => loop {
            if let AnalysisEvent::Result(result) = stream.next().await? {
                break reply::json(StatusCode::OK, &Analyzed::new(&rules, &position, &result?));
            }
        },
    };
    Ok(reply::not_kept(response))
}

/// Searches, and sends each iteration and the result. A database that cannot be read is an error.
fn run(
    site: &Site,
    root: &AnalysisRoot,
    limits: SearchLimits,
    lines: usize,
    stop: &SearchStop,
    sender: &mpsc::Sender<AnalysisEvent>,
) {
    let request = SearchRequest { board: root.position.board(), before: &root.before, limits, lines, threads: 1 };
    let probes = SearchProbes::new(&site.oracle, site.oracle.stones_max().unwrap_or(0));
    // A failure to send means that the client has left, which sets `stop`.
    let mut progress = |report: &SearchReport| {
        if probes.has_error() {
            stop.stop();
        }
        let _ = sender.try_send(AnalysisEvent::Iteration(report.clone()));
    };
    let result = site.oracle.analyze_through(&probes, &site.engine.searcher, &request, stop, &mut progress);
    let result = probes.error().map_or(result, Err);
    let _ = sender.try_send(AnalysisEvent::Result(result));
}

/// The events of an analysis, as the body of a response. Ends the search when dropped.
struct EventStream {
    rules: Rules,
    position: PositionText,
    /// An event that was received already.
    first: Option<AnalysisEvent>,
    events: mpsc::Receiver<AnalysisEvent>,
    /// Ready when the client leaves; `None` afterwards.
    left: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    stop: StopOnDrop,
}

impl EventStream {
    /// Returns the next event, and stops the search if the client leaves.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<AnalysisEvent>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if self.left.as_mut().is_some_and(|left| left.as_mut().poll(context).is_ready()) {
            self.left = None;
            self.stop.0.stop();
        }
        self.events.poll_recv(context)
    }

    /// # Errors
    /// If the thread of the search has failed.
    async fn next(&mut self) -> Result<AnalysisEvent, Refusal> {
        poll_fn(|context| self.poll_event(context)).await.ok_or_else(Refusal::broken)
    }

    fn starting_with(self, first: AnalysisEvent) -> Response {
        let body = Body::new(EventStream { first: Some(first), ..self });
        let mut response = reply::text(StatusCode::OK, "text/event-stream", body);
        // Proxies of this kind would keep events until they have a block of them.
        response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }
}

impl HttpBody for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let event = ready!(self.poll_event(context));
        let (rules, position) = (&self.rules, &self.position);
        let written = match event {
            None => return Poll::Ready(None),
            Some(AnalysisEvent::Iteration(report)) => written("iteration", &Analyzed::new(rules, position, &report)),
            Some(AnalysisEvent::Result(Ok(report))) => written("result", &Analyzed::new(rules, position, &report)),
            Some(AnalysisEvent::Result(Err(error))) => written("error", &Refusal::from(error)),
        };
        Poll::Ready(Some(Ok(Frame::data(written))))
    }
}

/// Formats an event.
fn written(name: &str, data: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(data).unwrap_or_default();
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

impl Analyzed {
    fn new(rules: &Rules, position: &PositionText, report: &SearchReport) -> Analyzed {
        Analyzed {
            position: position.to_string(),
            stones: position.board().stones(),
            depth: report.depth,
            proved: ProvedBounds { lo: report.low, hi: report.high },
            category: certain(report.low, report.high),
            estimate: report.estimate,
            moves: report.moves.iter().map(|candidate| AnalysisMove::new(rules, position, candidate)).collect(),
            nodes: report.nodes,
            probes: report.probes,
            milliseconds: u64::try_from(report.time.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl AnalysisMove {
    fn new(rules: &Rules, position: &PositionText, candidate: &SearchedMove) -> AnalysisMove {
        let mut side = position.side();
        let name = |&pit: &Pit| {
            let name = MoveText { pit, side }.to_string();
            side = side.other();
            name
        };
        let line: Vec<String> = candidate.line.iter().map(name).collect();
        let child = position.board().play_unchecked(rules, candidate.pit);
        AnalysisMove {
            pit: MoveText { pit: candidate.pit, side: position.side() }.to_string(),
            captures: candidate.captured,
            proved: ProvedBounds { lo: candidate.low, hi: candidate.high },
            category: certain(candidate.low, candidate.high),
            estimate: candidate.estimated_hundredths(),
            at_most: candidate.low < candidate.high && matches!(candidate.estimate, MoveEstimate::AtMost(_)),
            line,
            next: after(position, child.child, child.captured).to_string(),
        }
    }
}

/// Returns the certain outcome of bounds for the player to move.
fn certain(low: i8, high: i8) -> &'static str {
    category(Bounds::new(low, high.max(low)))
}
