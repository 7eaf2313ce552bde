//! Connections: a bounded number, each for a bounded time, with a graceful shutdown.

use super::client::{Client, SharedStream, until_stopped};
use super::client_address::ClientAddress;
use super::framing::{Followed, TwoLengths};
use super::host::{self, BadHost};
use super::limits::ServerLimits;
use super::race::{Either, either};
use axum::Router;
use axum::http::{self, header::TRANSFER_ENCODING};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

/// Time to wait after a failure to accept a connection, usually for want of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Time that an idle search thread is kept: forever.
const KEPT: Duration = Duration::from_secs(u32::MAX as u64);

/// A listening server.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    limits: ServerLimits,
    stop: ServerStop,
}

/// A handle that stops a server. Clones stop the same server.
#[derive(Clone, Debug)]
pub struct ServerStop(Arc<watch::Sender<bool>>);

impl ServerStop {
    /// Stops the server: it accepts no more connections, answers active requests, and [`Server::run`] returns.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Listens on the first address that can be bound; port 0 is any free port.
    ///
    /// # Errors
    /// If the address is in use, is not an address of this machine, or needs a privilege.
    pub fn bind(address: impl ToSocketAddrs, limits: ServerLimits) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Server { listener, limits, stop: ServerStop(Arc::new(watch::Sender::new(false))) })
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns a handle that stops the server.
    pub fn stop(&self) -> ServerStop {
        self.stop.clone()
    }

    /// Serves until stopped, on its own threads.
    pub fn run(self, router: Router) -> io::Result<()> {
        let shutdown_grace = self.limits.shutdown_grace;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(self.limits.searches_max.max(1))
            // A thread is kept, because a new one may not start later.
            .thread_keep_alive(KEPT)
            .build()?;
        for _ in 0..self.limits.searches_max {
            runtime.spawn_blocking(|| std::thread::sleep(ACCEPT_RETRY_DELAY));
        }
        let done = runtime.block_on(self.accept(router));
        // Searches that are unfinished by then end with the process.
        runtime.shutdown_timeout(shutdown_grace);
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
            let until = until_stopped(&mut stopped);
            let (accepted, place) = match either(next, until).await {
                Either::Left(next) => next,
                Either::Right(_) => break,
            };
            let Ok((stream, peer)) = accepted else {
                sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            };
            let service = TowerToHyperService::new(router.clone());
            let stopped = stop.0.subscribe();
            tokio::spawn(async move {
                let _place = place;
                connection(stream, peer.ip(), service, limits, stopped).await;
            });
        }
        drop(listener);
        // Every connection holds a place until it ends.
        let all = u32::try_from(limits.connections_max).unwrap_or(u32::MAX);
        let _ = timeout(limits.shutdown_grace, places.acquire_many(all)).await;
        Ok(())
    }
}

/// Serves one connection. Errors are ignored: the client is gone, or does not speak HTTP.
async fn connection(
    stream: TcpStream,
    peer: IpAddr,
    service: TowerToHyperService<Router>,
    limits: ServerLimits,
    mut stopped: watch::Receiver<bool>,
) {
    // Disables Nagle's algorithm: answers are small.
    let _ = stream.set_nodelay(true);
    let stream = Arc::new(stream);
    let client = Client::new(Arc::clone(&stream), stopped.clone());
    let (stream, two_lengths) = Followed::new(SharedStream(stream), limits.head_bytes_max);
    let marked = service_fn(move |mut request: http::Request<_>| {
        if two_lengths.load(Ordering::Acquire) && request.headers().contains_key(TRANSFER_ENCODING) {
            request.extensions_mut().insert(TwoLengths);
        }
        if !host::is_sound(request.version(), request.headers()) {
            request.extensions_mut().insert(BadHost);
        }
        let address = ClientAddress::of_request(peer, limits.proxy, request.headers());
        request.extensions_mut().insert(address);
        request.extensions_mut().insert(client.clone());
        service.call(request)
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_buf_size(limits.head_bytes_max)
            // A client may close its side after the request, and wait for the answer.
            .half_close(true)
            .serve_connection(TokioIo::new(stream), marked)
    );
    let until = timeout(limits.connection, until_stopped(&mut stopped));
    if let Either::Right(_) = either(connection.as_mut(), until).await {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(limits.shutdown_grace, connection).await;
    }
}
