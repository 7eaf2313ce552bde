//! Checks and headers common to all requests.

use super::client_address::ClientAddress;
use super::client_shares::{ClientPlace, PlacedBody};
use super::framing::TwoLengths;
use super::host::BadHost;
use super::refusal::Refusal;
use super::reply::NOT_KEPT;
use super::site::Site;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Instant;
use tokio::time::timeout;

/// Cache policy of an answer, which is revalidated by its entity tag.
const KEPT: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// Refuses malformed requests, bounds the time of the others, and adds the headers and metrics of the response.
pub(super) async fn around(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let asked = request.headers().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let query_bytes = request.uri().query().map_or(0, str::len);
    let codings: Vec<&HeaderValue> = asked.get_all(header::TRANSFER_ENCODING).iter().collect();
    let is_chunked = |coding: &&HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    let response = if request.extensions().get::<TwoLengths>().is_some() {
        let message = "the request has a Content-Length and a Transfer-Encoding, which may differ";
        Refusal::new(StatusCode::BAD_REQUEST, "two-lengths", message, "send one of them").into_response()
    } else if request.extensions().get::<BadHost>().is_some() {
        let message = "the request needs one Host header, with the name of a host";
        Refusal::new(StatusCode::BAD_REQUEST, "bad-host", message, "send Host: NAME or Host: NAME:PORT").into_response()
    } else if codings.len() > 1 || !codings.iter().all(is_chunked) {
        let message = "the only Transfer-Encoding of this server is chunked";
        Refusal::new(StatusCode::NOT_IMPLEMENTED, "bad-coding", message, "send the body as it is").into_response()
    } else if query_bytes > site.limits.query_bytes_max {
        let message = format!("the query has more than {} bytes", site.limits.query_bytes_max);
        let hint = "a position needs fewer than 50";
        Refusal::new(StatusCode::URI_TOO_LONG, "query-too-long", message, hint).into_response()
    } else if method == Method::OPTIONS {
        preflight()
    } else {
        match enter_share(&site, &request, route.as_ref()) {
            Err(refusal) => refusal.into_response(),
            Ok(place) => {
                let response = timeout(site.limits.request, next.run(request)).await;
                let response = response.unwrap_or_else(|_| Refusal::busy().into_response());
                match place {
                    // An analysis goes on while its body is sent.
                    Some(place) => response.map(|body| Body::new(PlacedBody::new(body, place))),
                    None => response,
                }
            }
        }
    };
    let mut response = finished(response, &method, &asked, &site.tag);
    if !codings.is_empty() {
        // The start of the next request is not tracked.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    site.metrics.count(route.as_ref().map(MatchedPath::as_str), response.status().as_u16(), begun.elapsed());
    response
}

/// Takes the place of a request in the share of its client, if its route has shares.
fn enter_share(site: &Site, request: &Request, route: Option<&MatchedPath>) -> Result<Option<ClientPlace>, Refusal> {
    let shares = route.and_then(|route| site.shares.of_route(route.as_str()));
    let (Some(shares), Some(client)) = (shares, request.extensions().get::<ClientAddress>()) else { return Ok(None) };
    shares.enter(*client).map(Some).ok_or_else(Refusal::too_many)
}

/// Answers the preflight request of a browser for a page of another site.
fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, POST, OPTIONS"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("content-type, if-none-match"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}

/// Adds the common headers; answers 304 if the client has the current answer.
fn finished(mut response: Response, method: &Method, asked: &HeaderMap, tag: &HeaderValue) -> Response {
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
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("etag, retry-after"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Whether the header, a list of entity tags, contains the tag.
fn names(known: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(known), Ok(tag)) = (known.to_str(), tag.to_str()) else { return false };
    known.split(',').map(str::trim).any(|listed| listed.trim_start_matches("W/") == tag)
}
