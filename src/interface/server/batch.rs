//! `POST /v1/probe`: several positions in one request.

use super::probe::Probed;
use super::refusal::Refusal;
use super::site::Site;
use super::{body, reply};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use game::notation::PositionText;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Instant;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProbeBatch {
    positions: Vec<String>,
}

#[derive(Serialize)]
struct Answers {
    answers: Vec<BatchAnswer>,
}

/// The answer for one position of a batch.
#[derive(Serialize)]
#[serde(untagged)]
enum BatchAnswer {
    Known(Probed),
    Refused { error: Refusal },
}

/// `POST /v1/probe`.
pub(super) async fn run(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Refusal> {
    let batch = read(&site, request.into_body()).await?;
    let answers = site.search(move |site| answers(site, &batch)).await?;
    Ok(reply::json(StatusCode::OK, &answers))
}

async fn read(site: &Site, body: Body) -> Result<ProbeBatch, Refusal> {
    let limits = &site.limits;
    let bytes = body::read(limits, body).await?;
    let hint = "{\"positions\": [\"0 0 0 0 0 2 1 0 0 0 0 0\"]}";
    let batch: ProbeBatch = serde_json::from_slice(&bytes).map_err(|error| {
        Refusal::new(StatusCode::BAD_REQUEST, "bad-body", format!("the body cannot be read: {error}"), hint)
    })?;
    let (found, most) = (batch.positions.len(), limits.batch_positions_max);
    if found > most {
        let message = format!("expected at most {most} positions, found {found}");
        return Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "too-many-positions",
            message,
            "send fewer positions at a time",
        ));
    }
    Ok(batch)
}

fn answers(site: &Site, batch: &ProbeBatch) -> Answers {
    let end = Instant::now() + site.limits.batch;
    let answer = |text: &String| -> Result<Probed, Refusal> {
        if Instant::now() >= end {
            return Err(Refusal::busy());
        }
        let position: PositionText = text.parse()?;
        Ok(Probed::new(&position, &site.oracle.answer(&position.board())?))
    };
    let batch_answer = |text| answer(text).map_or_else(|error| BatchAnswer::Refused { error }, BatchAnswer::Known);
    Answers { answers: batch.positions.iter().map(batch_answer).collect() }
}
