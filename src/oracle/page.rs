//! The page: a board, what it scores, and what its moves are worth.
//!
//! The server renders any position, and each legal move is a link to the position it leads to; the scripts in `page/`
//! take over where there are any. An address is the whole state: `pos` the position the game began with, `moves` the
//! letters of its moves, `at` how many of them are played on the board, `hide=1` to hide values.

use crate::http::{Refusal, Site, Value, category};
use crate::{Answer, Bounds};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use game::notation::{MoveText, PositionText, Seats, Side};
use game::play::{End, Game};
use game::{Board, Pit, Rules};
use maud::{DOCTYPE, Markup, html};
use serde::Deserialize;
use std::sync::Arc;

/// What runs in the browser.
pub(crate) const SCRIPT: &str = include_str!("page/app.js");

/// The rules and the notation of games, which the script uses.
pub(crate) const GAME: &str = include_str!("page/game.js");

/// How it looks.
pub(crate) const STYLE: &str = include_str!("page/style.css");

/// Nothing from elsewhere, and nothing but scripts and styles of this server.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);

/// An address. What only the script minds (who plays, at which level) is passed over.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Address {
    pos: Option<String>,
    moves: Option<String>,
    at: Option<usize>,
    hide: Option<String>,
}

/// `GET /`.
pub(crate) async fn show(
    State(site): State<Arc<Site>>,
    query: Result<Query<Address>, QueryRejection>,
) -> impl IntoResponse {
    let game = query.map_err(|error| error.body_text()).and_then(|Query(address)| {
        let hidden = address.hide.as_deref() == Some("1");
        Ok((game(&address)?, hidden))
    });
    let (status, markup) = match game {
        Ok((game, hidden)) => {
            let answer = site.answer(game.now().board).await;
            (StatusCode::OK, document(&position(&game, &answer, hidden)))
        }
        Err(what) => (StatusCode::BAD_REQUEST, document(&mistaken(&what))),
    };
    let mut response: Response = (status, markup.into_string()).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY);
    response
}

/// The game of an address, as far as it is played on the board.
fn game(address: &Address) -> Result<Game, String> {
    let opening = PositionText::of_game(Board::OPENING, Seats { south_store: 0, north_store: 0, side: Side::South });
    let start = address.pos.as_deref().map_or(Ok(opening), str::parse).map_err(|error| error.to_string())?;
    let mut game = Game::from(Rules::AWARI, &start);
    let moves = address.moves.as_deref().unwrap_or_default();
    for (number, letter) in moves.chars().enumerate().take(address.at.unwrap_or(usize::MAX)) {
        let text: MoveText =
            letter.to_string().parse().map_err(|_| format!("move {}: {letter} is no pit", number + 1))?;
        if text.side != game.now().seats.side {
            return Err(format!("move {}: {letter} is not a pit of the player to move", number + 1));
        }
        if game.outcome().is_some() {
            return Err(format!("move {}: the game is over", number + 1));
        }
        game.play(text.pit).map_err(|error| format!("move {}: {error}", number + 1))?;
    }
    Ok(game)
}

fn document(body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Awari oracle" }
                link rel="stylesheet" href="style.css";
                link rel="icon" href="data:,";
                script type="module" src="app.js" {}
            }
            body {
                header {
                    h1 { a href="./" { "Awari oracle" } }
                    span.badge title="Capture 2 or 3; a move that leaves the opponent no stones is illegal unless all do; \
                                      a repeated position shares out what remains; who cannot move loses what remains" {
                        "rules: awari"
                    }
                }
                main id="main" { (body) }
                footer {
                    p {
                        "Every value is what the player to move wins by, of the stones still on the board. "
                        a href="v1/openapi.json" { "API" } " · " a href="v1/databases" { "databases" }
                    }
                }
            }
        }
    }
}

fn mistaken(what: &str) -> Markup {
    html! {
        p.banner role="alert" { (what) }
        (form(""))
    }
}

/// A position, what it scores and what its moves are worth.
fn position(game: &Game, answer: &Result<Answer, Refusal>, hidden: bool) -> Markup {
    let now = game.now();
    let text = now.text();
    let known = answer.as_ref().ok().filter(|_| !hidden);
    let tone = known.map_or("banner".to_owned(), |answer| format!("banner {}", category(answer.score)));
    html! {
        (board(&text, game, known, if hidden { "&hide=1" } else { "" }))
        p class=(tone) id="banner" role="status" { (banner(game, answer, hidden)) }
        @if let Some(answer) = known { (table(&text, answer)) }
        (form(&text.to_string()))
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

fn banner(game: &Game, answer: &Result<Answer, Refusal>, hidden: bool) -> String {
    let side = name(game.now().seats.side);
    if let Some(outcome) = game.outcome() {
        let why = match outcome.end {
            End::CannotMove(side) => format!("{} cannot move", name(side)),
            End::Repeats { .. } => "the position came again".to_owned(),
        };
        return match outcome.lead {
            0 => format!("The game is over: {why}; nobody wins."),
            lead if lead > 0 => format!("The game is over: {why}; South wins by {lead}."),
            lead => format!("The game is over: {why}; North wins by {}.", -lead),
        };
    }
    match answer {
        _ if hidden => format!("{side} to move."),
        Err(refusal) => format!("{side} to move; {}.", refusal.message),
        Ok(answer) => match answer.score.score() {
            Some(0) => format!("{side} to move: a draw of the stones on the board."),
            Some(score) if score > 0 => format!("{side} to move wins by {}.", stones(score)),
            Some(score) => format!("{side} to move loses by {}.", stones(-score)),
            None => format!("{side} to move: between {} and {:+} stones.", answer.score.low(), answer.score.high()),
        },
    }
}

/// With bounds that decide nothing, the bounds say all there is.
fn worth(value: Bounds) -> String {
    match category(value) {
        "unknown" => value.to_string(),
        category => format!("{value} {category}"),
    }
}

fn stones(count: i8) -> String {
    if count == 1 { "1 stone".to_owned() } else { format!("{count} stones") }
}

fn name(side: Side) -> &'static str {
    match side {
        Side::South => "South",
        Side::North => "North",
    }
}

/// South's pits below, North's above; those of the player to move are links, which end with what is `kept`.
fn board(text: &PositionText, game: &Game, known: Option<&Answer>, kept: &str) -> Markup {
    let Seats { south_store, north_store, side } =
        text.seats().unwrap_or(Seats { south_store: 0, north_store: 0, side: Side::South });
    let moves = game.moves();
    let pit = |owner: Side, pit: Pit| {
        let half = if owner == side { text.board().mover() } else { text.board().opponent() };
        let label = MoveText { pit, side: owner }.to_string();
        let played = moves.iter().find(|(one, _)| owner == side && *one == pit);
        let shown = known.filter(|_| owner == side).and_then(|answer| answer.moves.iter().find(|one| one.pit == pit));
        let inside = html! {
            span.name { (label) }
            span.stones { (half[pit.number()]) }
            span.value { @if let Some(one) = shown { (worth(one.value)) } }
        };
        let class = match shown {
            Some(one) => format!("pit {}{}", category(one.value), if one.is_best { " best" } else { "" }),
            None => "pit".to_owned(),
        };
        html! {
            @match played {
                Some((_, played)) => {
                    @let next = crate::http::after(text, played.child, played.captured).to_string();
                    a class=(class) href={ "./?pos=" (next) (kept) } { (inside) }
                }
                None => div class=(class) { (inside) }
            }
        }
    };
    html! {
        div.board id="board" {
            div.store.north { span.name { "North" } span.stones { (north_store) } }
            div.row.north { @for at in Pit::ALL.into_iter().rev() { (pit(Side::North, at)) } }
            div.row.south { @for at in Pit::ALL { (pit(Side::South, at)) } }
            div.store.south { span.name { "South" } span.stones { (south_store) } }
        }
    }
}

fn table(text: &PositionText, answer: &Answer) -> Markup {
    let mut moves: Vec<_> = answer.moves.iter().collect();
    moves.sort_by_key(|one| std::cmp::Reverse((one.is_best, i16::from(one.value.low()) + i16::from(one.value.high()))));
    let bounds = |value: Value| match value {
        Value::Exact(value) => value.to_string(),
        Value::Between { lo, hi } => format!("{lo} to {hi}"),
    };
    html! {
        table id="moves" {
            caption { "Moves, the best first" }
            thead { tr { th scope="col" { "Pit" } th scope="col" { "Value" } th scope="col" { "Captures" } th scope="col" { "Loses" } } }
            tbody {
                @for one in moves {
                    tr {
                        th scope="row" { (MoveText { pit: one.pit, side: text.side() }) }
                        td class=(category(one.value)) { (worth(one.value)) }
                        td { (one.captured) }
                        td { (bounds(crate::http::loss(answer.score, one))) }
                    }
                }
            }
        }
    }
}
