//! Connections to the server: reused, half closed, slow and ambiguous ones, and those of a stopping server.

use crate::http::listening;
use server::ServerLimits;
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Answers several requests of one connection, refuses an endless header, and closes idle connections on a stop.
#[test]
fn connections_are_reused_and_closed() {
    let (address, end) = listening(ServerLimits::default());
    let mut kept = TcpStream::connect(address).unwrap();
    for _ in 0..2 {
        kept.write_all(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        let mut found = vec![0; 4096];
        let length = kept.read(&mut found).unwrap();
        assert!(found[..length].starts_with(b"HTTP/1.1 200 OK"));
    }
    let mut endless = TcpStream::connect(address).unwrap();
    // Exactly as many bytes as the server reads: unread ones would reset the connection.
    let mut head = b"GET /healthz HTTP/1.1\r\nX: ".to_vec();
    head.resize(ServerLimits::default().head_bytes_max, b'x');
    endless.write_all(&head).unwrap();
    let mut found = Vec::new();
    endless.read_to_end(&mut found).unwrap();
    assert!(found.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&found));
    end();
    assert_eq!(kept.read_to_end(&mut Vec::new()).unwrap(), 0);
    assert!(TcpStream::connect(address).is_err());
}

/// Sends bytes, closes the sending side, and returns the whole answer.
fn answers(address: SocketAddr, sent: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    // A server that has refused the head may have closed the connection.
    let _ = stream.write_all(sent);
    let _ = stream.shutdown(Shutdown::Write);
    let mut found = Vec::new();
    // Unread bytes reset the connection after the answer.
    let _ = stream.read_to_end(&mut found);
    String::from_utf8_lossy(&found).into_owned()
}

/// A client that closes its sending side still gets its answer.
#[test]
fn half_closed_connections_are_answered() {
    let (address, end) = listening(ServerLimits::default());
    let body = r#"{"positions": ["1 0 0 0 0 2 1 0 0 0 0 1"]}"#;
    let post = format!("POST /v1/probe HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    for request in [
        "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /healthz HTTP/1.0\r\n\r\n",
        "GET /v1/mainline?pos=1+0+0+0+0+2+1+0+0+0+0+1 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        &post,
        &format!("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n{post}"),
    ] {
        for _ in 0..50 {
            let found = answers(address, request.as_bytes());
            let (count, asked) = (found.matches("HTTP/1.1 200 OK").count(), request.matches(" HTTP/1.").count());
            assert_eq!(count + found.matches("HTTP/1.0 200 OK").count(), asked, "{request}: {found}");
        }
    }
    end();
}

/// Ambiguous heads and bodies are refused, and nothing after them is answered.
#[test]
fn ambiguous_requests_are_refused() {
    let limits = ServerLimits { body: Duration::from_millis(200), ..ServerLimits::default() };
    let (address, end) = listening(limits);
    let next = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let post =
        |headers: &str, body: &str| format!("POST /v1/transcript HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}{next}");
    let many: String = (0..200).map(|at| format!("H{at}: x\r\n")).collect();
    let cases = [
        ("two lengths", post("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\nX"), &["400"][..]),
        ("two lengths, turned", post("Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", "0\r\n\r\nX"), &["400"]),
        (
            "two lengths, later",
            format!("{next}{}", post("Content-Length: 0\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n")),
            &["200", "400"],
        ),
        ("lengths that differ", post("Content-Length: 1\r\nContent-Length: 2\r\n", "xy"), &["400"]),
        ("a list of lengths", post("Content-Length: 2, 2\r\n", "xy"), &["400"]),
        ("a length with a sign", post("Content-Length: +2\r\n", "xy"), &["400"]),
        ("a length that is no number", post("Content-Length: 0x2\r\n", "xy"), &["400"]),
        ("a length beyond all", post("Content-Length: 99999999999999999999\r\n", "xy"), &["400"]),
        ("chunks, then gzip", post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"), &["400"]),
        ("gzip, then chunks", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), &["501"]),
        ("chunks twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), &["501"]),
        (
            "chunks of HTTP/1.0",
            post("Transfer-Encoding: chunked\r\n", "0\r\n\r\n")
                .replace("1 HTTP/1.1", "1 HTTP/1.0")
                .replace("transcript HTTP/1.1", "transcript HTTP/1.0"),
            &["400"],
        ),
        ("a chunk without a length", post("Transfer-Encoding: chunked\r\n", "x\r\n\r\n"), &["400"]),
        ("a folded header", post("A: b\r\n c\r\nContent-Length: 0\r\n", ""), &["400"]),
        ("a blank before the colon", post("Content-Length : 0\r\n", ""), &["400"]),
        ("a zero byte in a header", post("A: b\0c\r\nContent-Length: 0\r\n", ""), &["400"]),
        ("a zero byte in a name", post("A\0: b\r\nContent-Length: 0\r\n", ""), &["400"]),
        ("many headers", post(&many, ""), &["431"]),
        ("a request behind a long body", post("Content-Length: 200000\r\n", &" ".repeat(200_000)), &["413"]),
        (
            "a body that breaks off",
            "POST /v1/transcript HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nF4".to_owned(),
            &["400"],
        ),
        ("no host", "GET /healthz HTTP/1.1\r\n\r\n".to_owned(), &["400"]),
        ("two hosts", "GET /healthz HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n".to_owned(), &["400"]),
        ("two hosts of HTTP/1.0", "GET /healthz HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n".to_owned(), &["400"]),
        ("what is no host", "GET /healthz HTTP/1.1\r\nHost: x/y\r\n\r\n".to_owned(), &["400"]),
        // These are not ambiguous.
        ("an empty host", "GET /healthz HTTP/1.1\r\nHost:\r\n\r\n".to_owned(), &["200"]),
        ("chunks", post("Transfer-Encoding: Chunked\r\n", "2\r\nF4\r\n0\r\n\r\n"), &["200"]),
        ("a length twice", post("Content-Length: 2\r\nContent-Length: 2\r\n", "F4"), &["200", "200"]),
        ("lines without a carriage return", post("Content-Length: 2\r\n", "F4").replace("\r\n", "\n"), &["200", "200"]),
    ];
    for (what, sent, expected) in cases {
        let found = answers(address, sent.as_bytes());
        let statuses: Vec<&str> =
            found.match_indices("HTTP/1.").filter_map(|(at, _)| found.get(at + 9..at + 12)).collect();
        assert_eq!(statuses, expected, "{what}: {found}");
        let is_refusal = |code: &str| found.contains(&format!("{{\"code\":\"{code}\""));
        assert_eq!(is_refusal("bad-host"), what.contains(" host") && expected[0] == "400", "{what}: {found}");
    }
    // A body that arrives too slowly.
    let mut slow = TcpStream::connect(address).unwrap();
    slow.write_all(b"POST /v1/transcript HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nF4").unwrap();
    let mut found = Vec::new();
    slow.read_to_end(&mut found).unwrap();
    assert!(found.starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(&found));
    end();
}

/// The server closes connections that exceed short time limits.
#[test]
fn connections_that_take_too_long_are_closed() {
    let short = Duration::from_millis(1);
    for limits in [
        ServerLimits { head: short, ..ServerLimits::default() },
        ServerLimits { connection: short, shutdown_grace: short, ..ServerLimits::default() },
    ] {
        let (address, end) = listening(limits);
        let mut slow = TcpStream::connect(address).unwrap();
        // It may be closed already.
        let _ = slow.write_all(b"GET /healthz HT");
        // Returns when the server closes.
        let _ = slow.read_to_end(&mut Vec::new());
        end();
    }
}

/// Connects from an address of the loopback network.
pub(crate) fn connect_from(source: [u8; 4], server: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((source, 0)).into()).unwrap();
    socket.connect(&server.into()).unwrap();
    socket.into()
}

/// Whether the server closes a connection. Waits for it if it does.
fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 1 << 16]) {
        Ok(bytes) => bytes == 0,
        // Unread bytes of the client reset the connection.
        Err(error) if error.kind() == ErrorKind::ConnectionReset => true,
        Err(error) => panic!("{error}"),
    }
}

/// A client that opens more connections than it may closes its own that have waited longest; those of others stay.
#[test]
fn connections_of_a_client_are_bounded() {
    let limits = ServerLimits { connections_client_max: 3, ..ServerLimits::default() };
    let (server, end) = listening(limits);
    let greedy = || connect_from([127, 0, 0, 1], server);
    let ask = |stream: &mut TcpStream| {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert!(!is_closed(stream), "no answer");
    };
    let mut other = connect_from([127, 0, 0, 2], server);
    ask(&mut other);
    // A stream of events is not closed: the server works for it.
    let mut analysis = greedy();
    analysis.write_all(b"GET /v1/analysis?pos=4+4+4+4+4+4+4+4+4+4+4+4&time=60000 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert!(!is_closed(&mut analysis));
    let mut slow_head = greedy();
    slow_head.write_all(b"GET /healthz HT").unwrap();
    let mut idle = greedy();
    ask(&mut idle);
    let mut kept = Vec::new();
    for mut oldest in [slow_head, idle] {
        kept.push(greedy());
        ask(kept.last_mut().unwrap());
        assert!(is_closed(&mut oldest));
    }
    ask(&mut other);
    assert!(!is_closed(&mut analysis));
    drop((analysis, kept));
    end();
}

/// In a full table the connection that has waited longest is closed, of any client.
#[test]
fn a_full_table_makes_room() {
    let limits = ServerLimits { connections_max: 3, ..ServerLimits::default() };
    let (server, end) = listening(limits);
    let mut open: Vec<TcpStream> = (1..=3).map(|number| connect_from([127, 0, 0, number], server)).collect();
    for number in 4..=6 {
        open.push(connect_from([127, 0, 0, number], server));
        assert!(is_closed(&mut open.remove(0)));
    }
    for stream in &mut open {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert!(!is_closed(stream));
    }
    end();
}
