//! Shares of clients: one that asks for more than its share is refused with 429, and others are answered.

use crate::http::listening;
use serde_json::Value;
use server::ServerLimits;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const ENDLESS: &str = "/v1/analysis?pos=4+4+4+4+4+4+4+4+4+4+4+4&time=60000";

/// Sends a request, which a proxy would say to come from `client`.
fn request(server: SocketAddr, client: &str, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {client}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// The whole answer to a request.
fn answer(server: SocketAddr, client: &str, path: &str) -> (u16, String) {
    let mut text = String::new();
    request(server, client, path).read_to_string(&mut text).unwrap();
    (text[9..12].parse().unwrap(), text)
}

/// Asks for an endless analysis, and returns once it runs.
fn endless(server: SocketAddr, client: &str) -> TcpStream {
    let mut stream = request(server, client, ENDLESS);
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200", "{}", String::from_utf8_lossy(&head));
    stream
}

/// Waits until an answer has a status.
fn until(server: SocketAddr, client: &str, path: &str, status: u16) {
    let end = Instant::now() + Duration::from_secs(10);
    while answer(server, client, path).0 != status {
        assert!(Instant::now() < end, "{client} {path}: never {status}");
    }
}

#[test]
fn a_greedy_client_leaves_room_for_others() {
    let proxy: Option<IpAddr> = Some([127, 0, 0, 1].into());
    let limits = ServerLimits { analyses_max: 3, analyses_client_max: 2, proxy, ..ServerLimits::default() };
    let (server, end) = listening(limits);
    let short = ENDLESS.replace("time=60000", "depth=2");
    let (greedy, other) = ("10.0.0.1", "10.0.0.2");
    let first = endless(server, greedy);
    let _second = endless(server, greedy);
    let (status, text) = answer(server, greedy, &short);
    assert_eq!(status, 429, "{text}");
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.to_lowercase().contains("\r\nretry-after: 1"), "{head}");
    assert_eq!(serde_json::from_str::<Value>(body).unwrap()["code"], "too-many-requests");
    // The last free place is for others. Moves and probes have places of their own.
    assert_eq!(answer(server, other, &short).0, 200);
    let opening = "pos=4+4+4+4+4+4+4+4+4+4+4+4";
    assert_eq!(answer(server, greedy, &format!("/v1/probe?{opening}")).0, 200);
    assert_eq!(answer(server, greedy, &format!("/v1/choose?{opening}&level=beginner")).0, 200);
    assert_eq!(answer(server, greedy, "/healthz").0, 200);
    // A client that leaves gives its place back.
    drop(first);
    until(server, greedy, &short, 200);
    end();
}

/// Only a proxy says who the client is: otherwise one client could claim to be many.
#[test]
fn clients_do_not_name_themselves() {
    let limits = ServerLimits { analyses_max: 3, analyses_client_max: 1, ..ServerLimits::default() };
    let (server, end) = listening(limits);
    let _first = endless(server, "10.0.0.1");
    assert_eq!(answer(server, "10.0.0.2", ENDLESS).0, 429);
    end();
}

/// Requests that wait for a thread count.
#[test]
fn probes_that_wait_are_bounded_for_each_client() {
    let proxy: Option<IpAddr> = Some([127, 0, 0, 1].into());
    let limits = ServerLimits {
        searches_max: 0,
        searches_client_max: 3,
        queue_wait: Duration::from_secs(4),
        proxy,
        ..ServerLimits::default()
    };
    let (server, end) = listening(limits);
    let path = "/v1/probe?pos=4+4+4+4+4+4+4+4+4+4+4+4";
    let status = |mut stream: TcpStream| -> u16 {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text[9..12].parse().unwrap()
    };
    // The server may accept them in any order.
    let asked: Vec<TcpStream> = (0..4).map(|_| request(server, "10.0.0.1", path)).collect();
    let other = request(server, "10.0.0.2", path);
    let mut found: Vec<u16> = asked.into_iter().map(status).collect();
    found.sort_unstable();
    assert_eq!(found, [429, 503, 503, 503]);
    assert_eq!(status(other), 503);
    end();
}
