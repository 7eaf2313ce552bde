//! Bodies of requests, read within their bounds.

use super::limits::Limits;
use super::refusal::Refusal;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::StatusCode;
use tokio::time::timeout;

/// All of a body.
///
/// # Errors
/// It is too long, or takes too long to arrive.
pub(super) async fn read(limits: &Limits, body: Body) -> Result<Bytes, Refusal> {
    let Ok(bytes) = timeout(limits.body, to_bytes(body, limits.body_bytes_max)).await else {
        let hint = "send it faster, or less of it";
        return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "slow-body", "the body took too long to arrive", hint));
    };
    // It is too long, or the client has gone and will not read this.
    bytes.map_err(|_| {
        let message = format!("the body has more than {} bytes", limits.body_bytes_max);
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-long", message, "send less at a time")
    })
}
