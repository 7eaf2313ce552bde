//! Validation of the `Host` header.
//!
//! A proxy in front of the server may use another `Host` header than the server, so there must be exactly
//! one, with the name of a host (RFC 9112, section 3.2). It may be absent in HTTP/1.0.

use axum::http::header::{HOST, HeaderMap};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Version};

/// Marks a request with an invalid `Host` header.
#[derive(Clone, Copy, Debug)]
pub(super) struct BadHost;

/// Whether the `Host` header of a request is valid.
pub(super) fn is_sound(version: Version, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => version < Version::HTTP_11,
        (Some(host), None) => is_host(host),
        (Some(_), Some(_)) => false,
    }
}

/// Whether a value is a host with an optional port, or empty.
fn is_host(value: &HeaderValue) -> bool {
    let Ok(text) = value.to_str() else { return false };
    if text.is_empty() {
        return true;
    }
    let Ok(authority) = text.parse::<Authority>() else { return false };
    // A user name is not part of a host.
    let port = text.strip_prefix(authority.host());
    port.is_some_and(|port| port.is_empty() || is_port(port))
}

/// Whether text is a colon and a number, which may be absent.
fn is_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_are_accepted() {
        for sound in ["", "x", "localhost:8080", "127.0.0.1", "[::1]:80", "a-b.example.org", "a_b", "x:"] {
            assert!(is_host(&HeaderValue::from_static(sound)), "{sound}");
        }
        for other in ["a b", "a/b", "user@host", "user@user", "http://x", "x:80:90", "x:8o", "[::1"] {
            assert!(!is_host(&HeaderValue::from_static(other)), "{other}");
        }
    }
}
