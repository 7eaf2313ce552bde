//! The host that a request names.
//!
//! A proxy in front of the server may route a request by one `Host` header and the server read another, so there must be
//! exactly one, and it must be the name of a host (RFC 9112, section 3.2). HTTP/1.0 has no such header: there it may be
//! absent.

use axum::http::header::{HOST, HeaderMap};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Version};

/// Marks a request that names no host, several, or what is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct BadHost;

/// Whether a request names its host as it must.
pub(super) fn is_sound(version: Version, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => version < Version::HTTP_11,
        (Some(host), None) => is_host(host),
        (Some(_), Some(_)) => false,
    }
}

/// Whether a value is a host, with a port or without, or the empty one of a URI without a host.
fn is_host(value: &HeaderValue) -> bool {
    let Ok(text) = value.to_str() else { return false };
    if text.is_empty() {
        return true;
    }
    let Ok(authority) = text.parse::<Authority>() else { return false };
    // Names of users are no part of a host.
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
    fn hosts_are_told_from_other_values() {
        for sound in ["", "x", "localhost:8080", "127.0.0.1", "[::1]:80", "a-b.example.org", "a_b", "x:"] {
            assert!(is_host(&HeaderValue::from_static(sound)), "{sound}");
        }
        for other in ["a b", "a/b", "user@host", "user@user", "http://x", "x:80:90", "x:8o", "[::1"] {
            assert!(!is_host(&HeaderValue::from_static(other)), "{other}");
        }
    }
}
