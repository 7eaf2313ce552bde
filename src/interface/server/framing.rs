//! Detection of requests with an ambiguous end.
//!
//! hyper drops a `Content-Length` beside a `Transfer-Encoding` before a service can see it. A proxy in front of the
//! server may use the dropped header, and take the rest of a body for the next request (RFC 9112, section 6.1). So this
//! module parses the bytes of a connection on their way to hyper. Bodies with a `Transfer-Encoding` are not parsed: the
//! server closes the connection after such a request.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The largest number of headers; hyper refuses more.
const HEADERS_MAX: usize = 100;

/// Marks a request that has both a `Content-Length` and a `Transfer-Encoding`.
#[derive(Clone, Copy, Debug)]
pub(super) struct TwoLengths;

/// The position of the parser in a connection.
#[derive(Debug)]
enum FramingState {
    /// In a head; these are its bytes so far.
    Head(Vec<u8>),
    /// In a body with this number of bytes left.
    Body(u64),
    /// After the last head that hyper accepts.
    End,
}

/// Parses the requests of a connection.
#[derive(Debug)]
struct RequestFollower {
    state: FramingState,
    head_bytes_max: usize,
    two_lengths: Arc<AtomicBool>,
}

impl RequestFollower {
    fn new(head_bytes_max: usize) -> RequestFollower {
        RequestFollower { state: FramingState::Head(Vec::new()), head_bytes_max, two_lengths: Arc::default() }
    }

    fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match &mut self.state {
                FramingState::Head(head) => {
                    // Empty lines may precede a head.
                    let blank = bytes.iter().take_while(|&&byte| byte == b'\r' || byte == b'\n').count();
                    bytes = &bytes[if head.is_empty() { blank } else { 0 }..];
                    let Some(line) = bytes.iter().position(|&byte| byte == b'\n') else {
                        head.extend_from_slice(bytes);
                        if head.len() > self.head_bytes_max {
                            self.state = FramingState::End;
                        }
                        return;
                    };
                    head.extend_from_slice(&bytes[..=line]);
                    bytes = &bytes[line + 1..];
                    let is_end = head.ends_with(b"\n\n") || head.ends_with(b"\n\r\n");
                    if head.len() > self.head_bytes_max {
                        self.state = FramingState::End;
                    } else if is_end {
                        let head = std::mem::take(head);
                        self.state = self.behind(&head);
                    }
                }
                FramingState::Body(left) => {
                    let taken = (bytes.len() as u64).min(*left);
                    *left -= taken;
                    bytes = &bytes[taken as usize..];
                    if *left == 0 {
                        self.state = FramingState::Head(Vec::new());
                    }
                }
                FramingState::End => return,
            }
        }
    }

    /// Returns the state after a head.
    fn behind(&self, head: &[u8]) -> FramingState {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        if !request.parse(head).is_ok_and(|status| status.is_complete()) {
            return FramingState::End;
        }
        let find = |name: &str| request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        let length = find("content-length");
        if find("transfer-encoding").is_some() {
            self.two_lengths.store(length.is_some(), Ordering::Release);
            return FramingState::End;
        }
        match length.map(|header| std::str::from_utf8(header.value).ok().and_then(|text| text.trim().parse().ok())) {
            None | Some(Some(0)) => FramingState::Head(Vec::new()),
            Some(Some(bytes)) => FramingState::Body(bytes),
            // Refused by hyper, as are two that differ.
            Some(None) => FramingState::End,
        }
    }
}

/// A connection whose requests are parsed.
#[derive(Debug)]
pub(super) struct Followed<S> {
    stream: S,
    follower: RequestFollower,
}

impl<S> Followed<S> {
    /// Parses a connection; the flag is raised by a request with two lengths, which is the last one.
    pub(super) fn new(stream: S, head_bytes_max: usize) -> (Followed<S>, Arc<AtomicBool>) {
        let follower = RequestFollower::new(head_bytes_max);
        let two_lengths = Arc::clone(&follower.two_lengths);
        (Followed { stream, follower }, two_lengths)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Followed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.follower.follow(&buffer.filled()[filled..]);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Followed<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a request with two lengths is found in a stream that arrives in pieces.
    fn found(stream: &[u8], piece: usize) -> bool {
        let mut follower = RequestFollower::new(1000);
        stream.chunks(piece).for_each(|bytes| follower.follow(bytes));
        follower.two_lengths.load(Ordering::Acquire)
    }

    #[test]
    fn requests_with_two_lengths_are_found() {
        let both = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n";
        let long = format!("GET /{} HTTP/1.1\r\n\r\n{both}", "x".repeat(2000));
        let cases = [
            (both.to_owned(), true),
            (format!("\r\n\n{both}"), true),
            (both.replace("\r\n", "\n"), true),
            ("POST / HTTP/1.1\r\ncontent-length: 3\r\ntransfer-encoding: gzip, chunked\r\n\r\n".to_owned(), true),
            (format!("GET / HTTP/1.1\r\nA: b\r\n\r\n{both}"), true),
            (format!("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n12345{both}"), true),
            // In a body.
            (format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{both}", both.len()), false),
            // Behind the last request.
            (format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{both}"), false),
            (format!("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n{both}"), false),
            (long, false),
            ("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n123".to_owned(), false),
        ];
        for (stream, expected) in cases {
            for piece in [1, 2, 7, 10_000] {
                assert_eq!(found(stream.as_bytes(), piece), expected, "{stream:?} in pieces of {piece}");
            }
        }
    }
}
