//! Responses, and the headers that all of them carry.

use super::refusal::Refusal;
use axum::body::Body;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// How long who asked may keep an answer without asking again. It is checked by its tag after that.
const KEPT: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// What is another the next time.
const NOT_KEPT: HeaderValue = HeaderValue::from_static("no-store");

/// A value as JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => text(status, "application/json", bytes),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Bytes of a media type.
pub(crate) fn text(status: StatusCode, media_type: &'static str, bytes: impl Into<Body>) -> Response {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// Marks an answer that is another the next time.
pub(crate) fn not_kept(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, NOT_KEPT);
    response
}

/// What a browser asks before it asks a page of another site's question.
pub(crate) fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, POST, OPTIONS"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("content-type, if-none-match"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}

/// Adds what every response carries; says in a few bytes that an answer is still the one the client has.
pub(crate) fn finished(mut response: Response, method: &Method, asked: &HeaderMap, tag: &HeaderValue) -> Response {
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        let hint = "/v1/openapi.json lists the methods of every route";
        let refusal =
            Refusal::new(response.status(), "bad-method", format!("this route does not accept {method}"), hint);
        let allow = response.headers_mut().remove(header::ALLOW);
        response = refusal.into_response();
        response.headers_mut().extend(allow.map(|allow| (header::ALLOW, allow)));
    }
    let is_kept = response.status() == StatusCode::OK
        && (method == Method::GET || method == Method::HEAD)
        && !response.headers().contains_key(header::CACHE_CONTROL);
    if is_kept && asked.get(header::IF_NONE_MATCH).is_some_and(|known| names(known, tag)) {
        response = StatusCode::NOT_MODIFIED.into_response();
    }
    let headers = response.headers_mut();
    if is_kept {
        headers.insert(header::ETAG, tag.clone());
        headers.insert(header::CACHE_CONTROL, KEPT);
    } else {
        headers.entry(header::CACHE_CONTROL).or_insert(NOT_KEPT);
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("etag"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Whether a list of tags has this one.
fn names(known: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(known), Ok(tag)) = (known.to_str(), tag.to_str()) else { return false };
    known.split(',').map(str::trim).any(|one| one.trim_start_matches("W/") == tag)
}
