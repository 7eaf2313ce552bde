//! Connections: a bounded number, each for a bounded time, with a graceful shutdown.

use super::client::{Client, SharedStream, until_stopped};
use super::client_address::ClientAddress;
use super::connections::{ConnectionPlace, ConnectionTable};
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
use socket2::SockRef;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Time to wait after a failure to accept a connection, usually for want of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(5);

/// Time for which each search thread is kept busy at the start, so that all of them are started.
const THREAD_START: Duration = Duration::from_millis(50);

/// Connections that the system holds for the server to accept. It drops those beyond, which their clients
/// repeat after a second; 128, the default of the standard library, are fewer than one burst of a client.
const BACKLOG: i32 = 4096;

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
        SockRef::from(&listener).listen(BACKLOG)?;
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
            runtime.spawn_blocking(|| std::thread::sleep(THREAD_START));
        }
        let done = runtime.block_on(self.accept(router));
        // Searches that are unfinished by then end with the process.
        runtime.shutdown_timeout(shutdown_grace);
        done
    }

    async fn accept(self, router: Router) -> io::Result<()> {
        let Server { listener, limits, stop } = self;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let table = ConnectionTable::new(limits.connections_max, limits.connections_client_max);
        let mut stopped = stop.0.subscribe();
        loop {
            let next = async {
                let (stream, peer) = listener.accept().await?;
                let client = ClientAddress::new(peer.ip());
                Ok((table.admit(client, limits.is_proxy(peer.ip())).await, stream, peer.ip()))
            };
            let until = until_stopped(&mut stopped);
            let accepted: io::Result<_> = match either(next, until).await {
                Either::Left(accepted) => accepted,
                Either::Right(_) => break,
            };
            match accepted {
                Ok((Some(place), stream, peer)) => {
                    let service = TowerToHyperService::new(router.clone());
                    let stopped = stop.0.subscribe();
                    tokio::spawn(connection(stream, peer, place, service, limits, stopped));
                }
                Ok((None, ..)) => {}
                Err(_) => {
                    table.close_any();
                    sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
        drop(listener);
        let _ = timeout(limits.shutdown_grace, table.until_empty()).await;
        Ok(())
    }
}

/// Serves one connection. Errors are ignored: the client is gone, or does not speak HTTP.
async fn connection(
    stream: TcpStream,
    peer: IpAddr,
    place: ConnectionPlace,
    service: TowerToHyperService<Router>,
    limits: ServerLimits,
    mut stopped: watch::Receiver<bool>,
) {
    // Disables Nagle's algorithm: answers are small.
    let _ = stream.set_nodelay(true);
    let stream = Arc::new(stream);
    let client = Client::new(Arc::clone(&stream), stopped.clone());
    let open = place.connection();
    let stream = SharedStream { stream, connection: Arc::clone(&open) };
    let (stream, two_lengths) = Followed::new(stream, limits.head_bytes_max);
    let marked = service_fn(|mut request: http::Request<_>| {
        if two_lengths.load(Ordering::Acquire) && request.headers().contains_key(TRANSFER_ENCODING) {
            request.extensions_mut().insert(TwoLengths);
        }
        if !host::is_sound(request.version(), request.headers()) {
            request.extensions_mut().insert(BadHost);
        }
        let address = ClientAddress::of_request(peer, limits.proxy, request.headers());
        request.extensions_mut().insert(address);
        request.extensions_mut().insert(client.clone());
        open.start_answer();
        let answer = service.call(request);
        let open = &open;
        async move {
            let answer = answer.await;
            open.finish_answer();
            answer
        }
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
    let served = async {
        if let Either::Right(_) = either(connection.as_mut(), until).await {
            connection.as_mut().graceful_shutdown();
            let _ = timeout(limits.shutdown_grace, connection).await;
        }
    };
    either(served, open.until_closed()).await;
}
