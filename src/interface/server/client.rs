//! The connection of a request, watched for the departure of its client.
//!
//! hyper reads nothing while it answers, since a client may close its sending side and wait for the answer. A
//! long answer needs to notice sooner that no client waits for it.

use super::connections::OpenConnection;
use super::race::either;
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// The client of a request.
#[derive(Clone, Debug)]
pub(super) struct Client {
    stream: Arc<TcpStream>,
    /// Whether the server stops.
    stopped: watch::Receiver<bool>,
}

/// How a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Departure {
    /// The client closes the connection, or its sending side.
    Closed,
    /// The connection breaks: of a client that closes its sending side only, the answer is wanted.
    Broken,
}

impl Client {
    /// Makes the client of a connection.
    pub(super) fn new(stream: Arc<TcpStream>, stopped: watch::Receiver<bool>) -> Client {
        Client { stream, stopped }
    }

    /// Waits until the client leaves or the server stops.
    pub(super) async fn left(mut self, departure: Departure) {
        let stream = Arc::clone(&self.stream);
        let gone = async {
            let is_gone = match stream.peek(&mut [0]).await {
                Ok(0) => departure == Departure::Closed,
                // A further request, which hides what comes after it.
                Ok(_) => false,
                Err(_) => true,
            };
            if !is_gone {
                std::future::pending::<()>().await;
            }
        };
        either(gone, until_stopped(&mut self.stopped)).await;
    }
}

/// Waits until the server is stopped.
pub(super) async fn until_stopped(stopped: &mut watch::Receiver<bool>) {
    // All senders are dropped: the server will not be stopped.
    if stopped.wait_for(|stopped| *stopped).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A stream of which [`Client`] has a part. It notes in its connection whether the server waits for the client.
#[derive(Debug)]
pub(super) struct SharedStream {
    pub(super) stream: Arc<TcpStream>,
    pub(super) connection: Arc<OpenConnection>,
}

impl AsyncRead for SharedStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let Poll::Ready(ready) = self.stream.poll_read_ready(context) else {
                self.connection.wait();
                return Poll::Pending;
            };
            ready?;
            match self.stream.try_read(buffer.initialize_unfilled()) {
                Ok(bytes) => {
                    self.connection.note_read();
                    buffer.advance(bytes);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl SharedStream {
    fn poll_to_write(
        &self,
        context: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let Poll::Ready(ready) = self.stream.poll_write_ready(context) else {
                self.connection.wait();
                return Poll::Pending;
            };
            ready?;
            match write(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => {
                    self.connection.note_written();
                    return Poll::Ready(done);
                }
            }
        }
    }
}

impl AsyncWrite for SharedStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_to_write(context, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_to_write(context, |stream| stream.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A shared stream of `tokio` cannot be shut down; one of the standard library can.
        let twin = std::net::TcpStream::from(self.stream.as_fd().try_clone_to_owned()?);
        Poll::Ready(twin.shutdown(Shutdown::Write))
    }
}
