//! Bounded reading of request bodies.

use super::limits::ServerLimits;
use super::refusal::Refusal;
use axum::body::{Body, HttpBody};
use axum::http::StatusCode;
use std::future::poll_fn;
use std::pin::Pin;
use tokio::time::timeout;

/// Reads a body.
///
/// # Errors
/// If it is too long, too slow, or truncated.
pub(super) async fn read(limits: &ServerLimits, mut body: Body) -> Result<Vec<u8>, Refusal> {
    let all = async {
        let mut bytes = Vec::new();
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let Ok(frame) = frame else {
                let (what, hint) = ("the body breaks off, or its chunks are malformed", "send all of it");
                return Err(Refusal::new(StatusCode::BAD_REQUEST, "bad-body", what, hint));
            };
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > limits.body_bytes_max {
                let message = format!("the body has more than {} bytes", limits.body_bytes_max);
                return Err(Refusal::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "body-too-long",
                    message,
                    "send less at a time",
                ));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes)
    };
    timeout(limits.body, all).await.unwrap_or_else(|_| {
        let hint = "send it faster, or less of it";
        Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "slow-body", "the body took too long to arrive", hint))
    })
}
