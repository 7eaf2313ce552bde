//! The address by which the server tells clients apart.

use axum::http::HeaderMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The header in which a proxy names the client.
const FORWARDED: &str = "x-forwarded-for";

/// The address of a client. All addresses of an IPv6 network of 64 bits are of one client, since a client
/// usually has the whole network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientAddress(IpAddr);

impl ClientAddress {
    /// Makes the address of a client.
    pub fn new(address: IpAddr) -> ClientAddress {
        ClientAddress(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
            address => address,
        })
    }

    /// Returns the address of the client of a request from `peer`. If that is the proxy, it is the last address in
    /// `X-Forwarded-For`, which the proxy has appended; clients may have sent those before it.
    pub(super) fn of_request(peer: IpAddr, proxy: Option<IpAddr>, headers: &HeaderMap) -> ClientAddress {
        let is_proxy = proxy.is_some_and(|proxy| proxy.to_canonical() == peer.to_canonical());
        let last = headers.get_all(FORWARDED).iter().next_back().filter(|_| is_proxy);
        let named = last.and_then(|value| value.to_str().ok()?.rsplit(',').next().and_then(read));
        ClientAddress::new(named.unwrap_or(peer))
    }
}

/// Reads an address, with or without a port.
fn read(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    text.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_proxy_names_clients() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let client_of = |peer: &str, proxy: Option<&str>, values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(FORWARDED, value.parse().unwrap());
            }
            ClientAddress::of_request(address(peer), proxy.map(address), &headers)
        };
        let client = |text: &str| ClientAddress::new(address(text));
        let proxy = Some("127.0.0.1");
        assert_eq!(client_of("127.0.0.1", None, &["10.0.0.7"]), client("127.0.0.1"));
        assert_eq!(client_of("10.0.0.9", proxy, &["10.0.0.7"]), client("10.0.0.9"));
        assert_eq!(client_of("127.0.0.1", proxy, &["10.0.0.7"]), client("10.0.0.7"));
        assert_eq!(client_of("::ffff:127.0.0.1", proxy, &["10.0.0.7"]), client("10.0.0.7"));
        assert_eq!(client_of("127.0.0.1", proxy, &["1.2.3.4, 10.0.0.7"]), client("10.0.0.7"));
        assert_eq!(client_of("127.0.0.1", proxy, &["1.2.3.4", "10.0.0.7:4711"]), client("10.0.0.7"));
        assert_eq!(client_of("127.0.0.1", proxy, &["[2001:db8::1]:80"]), client("2001:db8::ffff"));
        assert_eq!(client_of("127.0.0.1", proxy, &["unknown"]), client("127.0.0.1"));
        assert_eq!(client_of("127.0.0.1", proxy, &[]), client("127.0.0.1"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
    }
}
