//! Whole numbers in queries.

use super::refusal::Refusal;
use axum::http::StatusCode;
use serde::Deserialize;
use std::ops::RangeInclusive;

/// A whole number in a query.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct QueryNumber(pub(super) u32);

impl QueryNumber {
    /// Returns the number, if it lies in a range.
    pub(super) fn within(self, name: &str, range: RangeInclusive<u32>) -> Result<u32, Refusal> {
        let (low, high) = (range.start(), range.end());
        if range.contains(&self.0) {
            return Ok(self.0);
        }
        let message = format!("{name}: expected a whole number from {low} to {high}, found {}", self.0);
        let hint = "/v1/openapi.json lists the parameters of every route";
        Err(Refusal::new(StatusCode::BAD_REQUEST, "bad-query", message, hint))
    }
}

impl TryFrom<String> for QueryNumber {
    type Error = String;

    fn try_from(text: String) -> Result<QueryNumber, String> {
        text.parse().map(QueryNumber).map_err(|_| format!("expected a whole number, at most {}", u32::MAX))
    }
}
