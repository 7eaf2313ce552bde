//! `/v1/transcript`: reads and writes the notation of games.

use super::query_number::QueryNumber;
use super::refusal::Refusal;
use super::site::Site;
use super::{body, reply};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use game::notation::MoveText;
use game::play::{Game, GameEnd, GameOutcome};
use game::transcript::{BadTranscript, Transcript, side_name};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Serialize)]
struct TranscriptReply {
    /// The first position, in the long form.
    start: String,
    /// The letters of its moves.
    moves: String,
    /// The position after them, in the long form.
    position: String,
    tags: Vec<Tag>,
    over: Option<Over>,
    /// The number of the game, from 1.
    game: u32,
    /// The number of games in the text.
    games: u32,
}

#[derive(Serialize)]
struct Tag {
    name: String,
    value: String,
}

/// The first end of a game; the transcript may continue after it.
#[derive(Serialize)]
struct Over {
    /// The number of moves before it.
    after: usize,
    end: &'static str,
    /// South's stones minus North's at the end.
    lead: i8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadQuery {
    game: Option<QueryNumber>,
}

/// `POST /v1/transcript`.
pub(super) async fn read(
    State(site): State<Arc<Site>>,
    query: Result<Query<ReadQuery>, QueryRejection>,
    request: Request,
) -> Result<Response, Refusal> {
    let Query(query) = query.map_err(|error| Refusal::query(&error))?;
    let bytes = body::read(&site.limits, request.into_body()).await?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let message = format!("the body cannot be read: {error}");
        Refusal::new(StatusCode::BAD_REQUEST, "bad-body", message, "a game is text in UTF-8")
    })?;
    let rules = *site.oracle.rules();
    let mut games = 0;
    let mut chosen = None;
    let wanted = query.game.map_or(1, |QueryNumber(number)| number);
    let of_rules = |game: &Transcript| match game.variant() {
        Some(other) if other != rules => {
            let message =
                format!("the game is of the variant {}, the databases are by the rules {}", other.name, rules.name);
            let hint = "serve databases of that variant, or leave out the tag Variant";
            Err(Refusal::new(StatusCode::BAD_REQUEST, "bad-transcript", message, hint))
        }
        _ => Ok(()),
    };
    // By the rules of the databases a move may be wrong that is right by those of the game.
    let tagged = (1..).zip(Transcript::games_by_variant(text)).find(|(number, _)| *number == wanted);
    if let Some((_, Ok(game))) = tagged {
        of_rules(&game)?;
    }
    for game in Transcript::games(rules, text) {
        games += 1;
        chosen = Some(game?).filter(|_| games == wanted).or(chosen);
    }
    if games == 0 {
        (games, chosen) = (1, Some(Transcript::empty(rules)).filter(|_| wanted == 1));
    }
    let transcript = chosen.ok_or_else(|| {
        let message = format!("game: expected a number from 1 to {games}, found {wanted}");
        Refusal::new(StatusCode::BAD_REQUEST, "bad-query", message, "games are numbered from 1")
    })?;
    of_rules(&transcript)?;
    let game = &transcript.game;
    let over = over(game).map(|(after, outcome)| Over {
        after,
        end: match outcome.end {
            GameEnd::CannotMove(_) => "over",
            GameEnd::Repeats { .. } => "repeats",
        },
        lead: outcome.lead,
    });
    let read = TranscriptReply {
        start: game.start().text().to_string(),
        moves: game.turns().iter().map(|turn| turn.text().to_string()).collect(),
        position: game.now().text().to_string(),
        over,
        game: wanted,
        games,
        tags: transcript.tags.into_iter().map(|(name, value)| Tag { name, value }).collect(),
    };
    Ok(reply::json(StatusCode::OK, &read))
}

/// Returns the first end of a game, and the number of moves before it.
fn over(game: &Game) -> Option<(usize, GameOutcome)> {
    let mut again = Game::from(*game.rules(), &game.start().text());
    for (after, turn) in game.turns().iter().enumerate() {
        if let Some(outcome) = again.outcome() {
            return Some((after, outcome));
        }
        again.play(turn.pit).expect("it was played from the same position before");
    }
    again.outcome().map(|outcome| (game.turns().len(), outcome))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteQuery {
    pos: String,
    #[serde(default)]
    moves: String,
    /// The side that has resigned after the moves.
    resigned: Option<ResignedSide>,
}

#[derive(Clone, Copy, Deserialize)]
enum ResignedSide {
    S,
    N,
}

/// `GET /v1/transcript`.
pub(super) async fn write(
    State(site): State<Arc<Site>>,
    query: Result<Query<WriteQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(query) = query.map_err(|error| Refusal::query(&error))?;
    let mut game = Game::from(*site.oracle.rules(), &query.pos.parse()?);
    play_all(&mut game, &query.moves).map_err(|what| {
        Refusal::new(StatusCode::BAD_REQUEST, "bad-moves", what, "moves=FfBd, up to the end of the game")
    })?;
    let result = match (game.outcome().map(|outcome| outcome.lead), query.resigned) {
        (None, None) => "*",
        (Some(1..), _) | (None, Some(ResignedSide::N)) => "1-0",
        (Some(0), _) => "1/2-1/2",
        (Some(_), _) | (None, Some(ResignedSide::S)) => "0-1",
    };
    let space = if game.turns().is_empty() { "\n\n" } else { "\n" };
    let text = Transcript { tags: vec![("Game".to_owned(), "Awari".to_owned())], game }.text();
    let text = format!("{}{space}{result}\n", text.trim_end());
    Ok(reply::text(StatusCode::OK, "text/plain; charset=utf-8", text))
}

/// Plays the letters of moves in a URL.
pub(crate) fn play_all(game: &mut Game, letters: &str) -> Result<(), String> {
    for (at, letter) in letters.chars().enumerate() {
        let place = format!("move {}, {letter}", at + 1);
        let text: MoveText =
            letter.to_string().parse().map_err(|_| format!("{place}: expected a pit, A to F or a to f"))?;
        let side = game.now().seats.side;
        if game.outcome().is_some() {
            return Err(format!("{place}: the game is over"));
        }
        if text.side != side {
            return Err(format!("{place}: {} is to move", side_name(side)));
        }
        game.play(text.pit).map_err(|error| format!("{place}: {error}"))?;
    }
    Ok(())
}

impl From<BadTranscript> for Refusal {
    fn from(error: BadTranscript) -> Refusal {
        let hint = "moves are pits, as `1. F f 2. B d` or `F4 f4 B5x2`; [FEN \"4-4-4-4-4-4-4-4-4-4-4-4-0-0-S\"] \
            before them gives the first position";
        Refusal::new(StatusCode::BAD_REQUEST, "bad-transcript", error.to_string(), hint)
    }
}
