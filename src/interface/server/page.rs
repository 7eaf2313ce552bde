//! The web page: a board, its score, and the values of its moves.
//!
//! The server renders any position; each legal move is a link to the next position. The scripts in `page/`
//! take over in browsers that run them, and load this page again for the parts that they do not render: the
//! table of moves, the principal line and the histogram. The URL is the whole state: `pos` is the first
//! position, `moves` the letters of the moves, `at` the number of them that are played, `hide=1` hides values
//! and `hide=0` shows them; else they are hidden where a person plays the `computer`.

mod board;
mod details;
pub(crate) mod how_to_play;

use crate::probe::category;
use crate::refusal::{Refusal, query_mistake};
use crate::reply::not_kept;
use crate::site::Site;
use crate::transcript::play_all;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use details::Details;
use game::notation::PositionText;
use game::play::{Game, GameEnd};
use game::quantity::plural;
use game::transcript::side_name;
use game::{Board, Rules, Score};
use maud::{DOCTYPE, Markup, html};
use oracle::{Answer, AnswerSource, Bounds, ValuedMove};
use serde::Deserialize;
use std::sync::Arc;

/// Allows only scripts and styles of this server.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);

/// The query of the URL, without most parameters of the script.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Address {
    pos: Option<String>,
    #[serde(default)]
    moves: String,
    at: Option<String>,
    hide: Option<String>,
    computer: Option<String>,
}

/// A game, up to the displayed position.
#[derive(Debug)]
struct PageState {
    game: Game,
    /// The letters of all moves, including those that were taken back.
    letters: String,
    hidden: bool,
}

/// `GET /`.
pub(crate) async fn show(
    State(site): State<Arc<Site>>,
    query: Result<Query<Address>, QueryRejection>,
) -> impl IntoResponse {
    let address = query.map(|Query(address)| address).map_err(|error| query_mistake(&error));
    let mut is_whole = true;
    let (status, markup) = match address
        .as_ref()
        .map_err(String::clone)
        .and_then(|address| PageState::new(site.oracle.rules(), address))
    {
        Ok(shown) => {
            let answer = site.answer(shown.game.now().board).await;
            let details = match answer.as_ref().ok().filter(|_| !shown.hidden && shown.game.outcome().is_none()) {
                Some(answer) => Some(Details::of(&site, answer).await),
                None => None,
            };
            is_whole = match &answer {
                Ok(_) => details.as_ref().is_none_or(Details::is_whole),
                Err(refusal) => refusal.status != StatusCode::SERVICE_UNAVAILABLE,
            };
            let body = position(&shown, &answer, details.as_ref(), site.stones_max());
            (StatusCode::OK, document(site.oracle.rules(), Some("app.js"), &body))
        }
        Err(what) => {
            let written = address.ok().and_then(|address| address.pos).unwrap_or_default();
            (StatusCode::BAD_REQUEST, document(site.oracle.rules(), Some("app.js"), &mistaken(&what, &written)))
        }
    };
    let mut response: Response = (status, markup.into_string()).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY);
    // A later request may succeed with the parts that timed out.
    if is_whole { response } else { not_kept(response) }
}

impl PageState {
    fn new(rules: &Rules, address: &Address) -> Result<PageState, String> {
        let opening = PositionText::of_board(Board::OPENING);
        let start = address.pos.as_deref().map_or(Ok(opening), str::parse).map_err(|error| error.to_string())?;
        let mut game = Game::from(*rules, &start);
        play_all(&mut game, &address.moves)?;
        let letters = address.moves.clone();
        // An invalid number is ignored.
        let at = address.at.as_deref().and_then(|at| at.parse().ok()).unwrap_or(usize::MAX);
        while game.turns().len() > at {
            game.take_back();
        }
        let is_against_computer = matches!(address.computer.as_deref(), Some("S" | "N"));
        let hidden = address.hide.as_deref().map_or(is_against_computer, |hide| hide == "1");
        Ok(PageState { game, letters, hidden })
    }

    /// Returns the number of moves of the displayed position.
    fn at(&self) -> usize {
        self.game.turns().len()
    }

    /// Returns the URL of this game after `at` moves.
    fn address(&self, at: usize) -> String {
        self.written(&self.letters, at)
    }

    /// Returns the URL of this game with `more` moves from here.
    fn address_after(&self, more: &str) -> String {
        let at = self.at() + more.len();
        // If `more` equals the next moves, the moves after those are kept.
        if self.letters[self.at()..].starts_with(more) {
            return self.address(at);
        }
        self.written(&format!("{}{more}", &self.letters[..self.at()]), at)
    }

    fn written(&self, letters: &str, at: usize) -> String {
        let mut address = format!("./?pos={}", self.game.start().text());
        if !letters.is_empty() {
            address += &format!("&moves={letters}");
        }
        if at < letters.len() {
            address += &format!("&at={at}");
        }
        if self.hidden {
            address += "&hide=1";
        }
        address
    }
}

/// Renders a page. `script` is that of the game.
fn document(rules: &Rules, script: Option<&str>, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" data-slam=(rules.slam) data-rest=(rules.rest) data-repetition=(rules.repetition) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Awari oracle" }
                link rel="stylesheet" href="style.css";
                link rel="icon" href="data:,";
                @if let Some(script) = script { script type="module" src=(script) {} }
            }
            body {
                header {
                    h1 { a href="./" { "Awari oracle" } }
                    div id="tools" {
                        a href="how-to-play" { "How to play" }
                        span.badge { "rules: " (rules.name) }
                    }
                }
                main id="main" { (body) }
                footer {
                    p { "Rules of " (rules.name) ": " (rules.text()) "." }
                    p {
                        @if rules.has_scores() {
                            "Every value is the margin by which the player to move wins, of the stones still on the board. "
                        } @else {
                            "Values are margins, of the stones still on the board. One number says that both are equal. "
                        }
                        a href="v1/openapi.json" { "API" } " · " a href="v1/databases" { "databases" }
                    }
                }
            }
        }
    }
}

fn mistaken(what: &str, written: &str) -> Markup {
    html! {
        p.banner role="alert" { "invalid position in the URL: " (what) "." }
        (form(written))
        nav.controls { a href="./" { "To the opening position" } }
    }
}

/// Renders a position with its score and moves.
fn position(
    shown: &PageState,
    answer: &Result<Answer, Refusal>,
    details: Option<&Details<'_>>,
    stones_max: Option<u32>,
) -> Markup {
    let beyond = stones_max.filter(|_| answer.as_ref().is_ok_and(|answer| answer.estimate.is_some()));
    let known = details.map(|details| details.answer);
    let tone = known.map_or("banner".to_owned(), |answer| format!("banner {}", category(answer.score)));
    let flip = PageState { game: shown.game.clone(), letters: shown.letters.clone(), hidden: !shown.hidden };
    html! {
        div.table {
        (board::board(shown, known))
        p class=(tone) id="banner" role="status" { (banner(shown, answer, beyond)) }
        nav.controls aria-label="The game" {
            @if shown.at() > 0 {
                a href=(shown.address(0)) { "Start" }
                a href=(shown.address(shown.at() - 1)) { "← Back" }
            }
            @if shown.at() < shown.letters.len() { a href=(shown.address(shown.at() + 1)) { "Forward →" } }
            @if let Some(stones) = beyond {
                a href={ "./?pos=" (spread(stones)) } { "A position of " (stones) " stones" }
            }
            a href=(flip.address(flip.at())) { @if shown.hidden { "Show values" } @else { "Hide values" } }
        }
        }
        div.panel { @if let Some(details) = details { (details.line(shown)) (details.moves(shown)) } }
        div.more {
            @if let Some(details) = details { (details.histogram()) }
            (form(&shown.game.now().text().to_string()))
        }
    }
}

fn form(text: &str) -> Markup {
    html! {
        form.position action="./" {
            label { "Position " input name="pos" value=(text) size="40" autocomplete="off" spellcheck="false"; }
            " " button { "Show" }
        }
    }
}

/// Returns a position of `stones` stones, evenly spread.
fn spread(stones: u32) -> String {
    let stones = stones as usize;
    let pits: Vec<String> = (0..12).map(|pit| (stones * (pit + 1) / 12 - stones * pit / 12).to_string()).collect();
    pits.join("+")
}

/// Returns the text of the banner. `beyond` is the stones of the largest database, if this position has more.
fn banner(shown: &PageState, answer: &Result<Answer, Refusal>, beyond: Option<u32>) -> String {
    let side = side_name(shown.game.now().seats.side);
    if let (Some(outcome), Some(result)) = (shown.game.outcome(), shown.game.result_text()) {
        let why = match outcome.end {
            GameEnd::CannotMove(side) => format!("{} cannot move", side_name(side)),
            GameEnd::Repeats { .. } => "the position is repeated".to_owned(),
        };
        return format!("The game is over: {why}; {result}.");
    }
    match answer {
        _ if shown.hidden => format!("{side} to move."),
        Err(refusal) => format!("{side} to move; {}.", refusal.message),
        Ok(answer) => match answer.score.score() {
            Some(0) => format!("{side} to move: the stones on the board are shared."),
            Some(score) if score > 0 => format!("{side} to move wins by {}.", stones(score)),
            Some(score) => format!("{side} to move loses by {}.", stones(-score)),
            None if let Some(estimate) = answer.estimate => {
                let largest = beyond.map(|most| format!(" (the largest has {})", plural(most.into(), "stone")));
                let is_proved = is_something_proved(answer.score, answer.board.stones());
                let proved = if is_proved { format!(", proved {}", bounds_text(answer.score)) } else { String::new() };
                format!(
                    "{side} to move: estimated {}{proved} stones; no {}-stone database here{}.",
                    estimated(estimate),
                    answer.board.stones(),
                    largest.unwrap_or_default()
                )
            }
            None if !shown.game.rules().has_scores() && answer.source != AnswerSource::Search => {
                format!(
                    "{side} to move can force {}, and be held to {} stones.",
                    signed(answer.score.low()),
                    signed(answer.score.high())
                )
            }
            None => {
                format!(
                    "{side} to move: between {} and {} stones.",
                    signed(answer.score.low()),
                    signed(answer.score.high())
                )
            }
        },
    }
}

/// Formats a value with its category, if certain.
fn worth(value: Bounds) -> String {
    let text = bounds_text(value);
    match category(value) {
        "unknown" => text,
        category => format!("{text} {category}"),
    }
}

/// Formats a value, proved or not: an estimate is marked.
fn worth_or_estimate(valued: &ValuedMove) -> String {
    valued.estimate.map_or_else(|| worth(valued.value), |hundredths| format!("≈ {}", estimated(hundredths)))
}

/// Whether bounds say more than that no player can win more than all stones on the board.
fn is_something_proved(value: Bounds, stones: u32) -> bool {
    let all = i64::from(stones);
    i64::from(value.low()) > -all || i64::from(value.high()) < all
}

/// Formats a score or its bounds.
fn bounds_text(value: Bounds) -> String {
    match value.score() {
        Some(score) => signed(score),
        None => format!("{} to {}", signed(value.low()), signed(value.high())),
    }
}

/// Formats an estimate in hundredths of a stone, with one decimal.
fn estimated(hundredths: i32) -> String {
    let tenths = (hundredths.unsigned_abs() + 5) / 10;
    let sign = match hundredths {
        _ if tenths == 0 => "",
        1.. => "+",
        _ => "\u{2212}",
    };
    format!("{sign}{}.{}", tenths / 10, tenths % 10)
}

/// Formats a score with a real minus sign: a line may break at a hyphen.
fn signed(score: Score) -> String {
    match score {
        0 => "0".to_owned(),
        1.. => format!("+{score}"),
        ..0 => format!("\u{2212}{}", score.unsigned_abs()),
    }
}

fn stones(count: Score) -> String {
    plural(count.unsigned_abs().into(), "stone")
}
