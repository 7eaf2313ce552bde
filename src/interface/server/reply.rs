//! Responses from values and bytes.

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// The cache policy of a response that differs from request to request.
pub(super) const NOT_KEPT: HeaderValue = HeaderValue::from_static("no-store");

/// Makes a JSON response.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => text(status, "application/json", bytes),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Makes a response of a media type.
pub(crate) fn text(status: StatusCode, media_type: &'static str, bytes: impl Into<Body>) -> Response {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// Marks a response that differs from request to request.
pub(crate) fn not_kept(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, NOT_KEPT);
    response
}
