//! Connections: accepted up to a bound, each for a bounded time, and ended politely.

use super::framing::{Followed, TwoLengths};
use super::host::{self, BadHost};
use super::limits::ServerLimits;
use axum::Router;
use axum::http::{self, header::TRANSFER_ENCODING};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

/// How long to wait when a connection could not be accepted: no file is left for it, so others must end first.
const AGAIN: Duration = Duration::from_millis(50);

/// How long a thread for searches waits for the next one: for ever.
const KEPT: Duration = Duration::from_secs(u32::MAX as u64);

/// A server that listens, but accepts nothing yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    limits: ServerLimits,
    stop: ServerStop,
}

/// Tells a server to stop; copies tell the same one.
#[derive(Clone, Debug)]
pub struct ServerStop(Arc<watch::Sender<bool>>);

impl ServerStop {
    /// No more connections are accepted, requests under way are answered, and [`Server::run`] returns.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Listens at the first address that can be bound; at port 0, at any that is free.
    ///
    /// # Errors
    /// What the operating system says: the address is in use, is no address of this machine, or needs a privilege.
    pub fn bind(address: impl ToSocketAddrs, limits: ServerLimits) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Server { listener, limits, stop: ServerStop(Arc::new(watch::Sender::new(false))) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What stops it.
    pub fn stop(&self) -> ServerStop {
        self.stop.clone()
    }

    /// Serves until it is told to stop, on threads of its own.
    ///
    /// # Errors
    /// If threads cannot be started or the listener is refused.
    pub fn run(self, router: Router) -> io::Result<()> {
        let farewell = self.limits.farewell;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(self.limits.searches_max.max(1))
            // Once there they stay: another may not be had any more.
            .thread_keep_alive(KEPT)
            .build()?;
        for _ in 0..self.limits.searches_max {
            runtime.spawn_blocking(|| std::thread::sleep(AGAIN));
        }
        let done = runtime.block_on(self.accept(router));
        // A search that nobody waits for any more ends with the process.
        runtime.shutdown_timeout(farewell);
        done
    }

    async fn accept(self, router: Router) -> io::Result<()> {
        let Server { listener, limits, stop } = self;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let places = Arc::new(Semaphore::new(limits.connections_max));
        let mut stopped = stop.0.subscribe();
        loop {
            let next = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (listener.accept().await, place)
            };
            let until = told(&mut stopped);
            let (accepted, place) = match either(next, until).await {
                Either::Left(next) => next,
                Either::Right(_) => break,
            };
            let Ok((stream, _)) = accepted else {
                sleep(AGAIN).await;
                continue;
            };
            let service = TowerToHyperService::new(router.clone());
            let stopped = stop.0.subscribe();
            tokio::spawn(async move {
                let _place = place;
                connection(stream, service, limits, stopped).await;
            });
        }
        drop(listener);
        // Every connection holds a place until it ends.
        let all = u32::try_from(limits.connections_max).unwrap_or(u32::MAX);
        let _ = timeout(limits.farewell, places.acquire_many(all)).await;
        Ok(())
    }
}

/// Serves one connection. What goes wrong there is the client's business: it has gone, or speaks no HTTP.
async fn connection(
    stream: TcpStream,
    service: TowerToHyperService<Router>,
    limits: ServerLimits,
    mut stopped: watch::Receiver<bool>,
) {
    // Answers are small, and nothing follows that they could wait for.
    let _ = stream.set_nodelay(true);
    let (stream, two_lengths) = Followed::new(stream, limits.head_bytes_max);
    let marked = service_fn(move |mut request: http::Request<_>| {
        if two_lengths.load(Ordering::Acquire) && request.headers().contains_key(TRANSFER_ENCODING) {
            request.extensions_mut().insert(TwoLengths);
        }
        if !host::is_sound(request.version(), request.headers()) {
            request.extensions_mut().insert(BadHost);
        }
        service.call(request)
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_buf_size(limits.head_bytes_max)
            // A client that has sent its request may close its side, and still waits for the answer.
            .half_close(true)
            .serve_connection(TokioIo::new(stream), marked)
    );
    let until = timeout(limits.connection, told(&mut stopped));
    if let Either::Right(_) = either(connection.as_mut(), until).await {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(limits.farewell, connection).await;
    }
}

/// Waits until the server is told to stop.
async fn told(stopped: &mut watch::Receiver<bool>) {
    // Whoever could tell is gone: then nobody will.
    if stopped.wait_for(|stopped| *stopped).await.is_err() {
        std::future::pending::<()>().await;
    }
}

enum Either<A, B> {
    Left(A),
    Right(B),
}

/// Whichever is ready first; the other is dropped.
async fn either<A: Future, B: Future>(left: A, right: B) -> Either<A::Output, B::Output> {
    let (mut left, mut right) = (pin!(left), pin!(right));
    std::future::poll_fn(|context| {
        if let std::task::Poll::Ready(output) = left.as_mut().poll(context) {
            return std::task::Poll::Ready(Either::Left(output));
        }
        right.as_mut().poll(context).map(Either::Right)
    })
    .await
}
