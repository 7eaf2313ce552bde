//! Refused requests: a status and a JSON object.

use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use axum::http::header::{HeaderValue, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use book::BookError;
use game::notation::NotationError;
use oracle::OracleError;
use serde::Serialize;

/// The codes of requests that may be repeated soon.
const BUSY: &str = "busy";
const TOO_MANY: &str = "too-many-requests";

/// A refused request. `code` is for programs and never changes its meaning; `message` and `hint` are for people.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Refusal {
    #[serde(skip)]
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>, hint: &str) -> Refusal {
        Refusal { status, code, message: message.into(), hint: hint.to_owned() }
    }

    /// Returns the refusal of an invalid query.
    pub(crate) fn query(error: &QueryRejection) -> Refusal {
        let message = query_mistake(error);
        let hint = "/v1/openapi.json lists the parameters of every route";
        Refusal::new(StatusCode::BAD_REQUEST, "bad-query", message, hint)
    }

    /// Returns the refusal of a request that found no free search, or not enough time.
    pub(crate) fn busy() -> Refusal {
        let message = "the server is busy";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, BUSY, message, "try again in a second")
    }

    /// Returns the refusal of a request whose client has as many others under way as it may.
    pub(crate) fn too_many() -> Refusal {
        let message = "the server answers as many requests of this client as it may at a time";
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, TOO_MANY, message, "wait for earlier answers, and try again")
    }

    /// Returns the refusal of an analysis for which there is no place.
    pub(crate) fn queue_full() -> Refusal {
        let message = "the server runs and queues as many analyses as it may";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, BUSY, message, "try again in a second, or ask for less time")
    }

    /// Returns the refusal after a panic of a search.
    pub(crate) fn broken() -> Refusal {
        let hint = "the log of the server has the details; try another position";
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the request failed inside the server", hint)
    }
}

/// Describes the mistake in a query, with "parameter" for "field".
pub(crate) fn query_mistake(error: &QueryRejection) -> String {
    let text = error.body_text();
    let text = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
    // The name of the field would be repeated.
    let text = match text.split_once(": ") {
        Some((key, rest)) if rest.contains(&format!(" field `{key}`")) => rest,
        _ => text,
    };
    text.replacen(" field `", " parameter `", 1)
}

impl From<NotationError> for Refusal {
    fn from(error: NotationError) -> Refusal {
        let hint = "pos=4+4+4+4+4+4+4+4+4+4+4+4 (the player to move first) or pos=4-4-4-4-4-4-4-4-4-4-4-4-0-0-S";
        Refusal::new(StatusCode::BAD_REQUEST, "bad-position", error.to_string(), hint)
    }
}

impl From<OracleError> for Refusal {
    fn from(error: OracleError) -> Refusal {
        match error {
            OracleError::Missing { stones, .. } => Refusal::new(
                StatusCode::NOT_FOUND,
                "unknown-position",
                format!("no {stones}-stone database here"),
                "/v1/databases lists the available databases",
            ),
            OracleError::SearchTable { .. } => Refusal::busy(),
            // The text names files of the server, which clients must not see.
            error if error.is_damage() => Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "damaged",
                "a required database is damaged or wrong",
                "positions that do not need it are answered; the operator of the server can find it with `awari verify`",
            ),
            _ => Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unreadable",
                "a required database cannot be read",
                "positions that do not need it are answered; the operator of the server can find it with `awari verify`",
            ),
        }
    }
}

impl From<BookError> for Refusal {
    /// The text of the error names a file of the server, which clients must not see.
    fn from(error: BookError) -> Refusal {
        let (code, message) = if error.is_damage() {
            ("damaged", "the opening book is damaged")
        } else {
            ("unreadable", "the opening book cannot be read")
        };
        let hint = "other requests are answered; the operator of the server can find it with `awari book verify`";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code, message, hint)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = super::reply::json(self.status, &self);
        if [BUSY, TOO_MANY].contains(&self.code) {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
