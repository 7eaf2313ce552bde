//! Limits on the input of clients, and on the resources of the server.

use std::net::IpAddr;
use std::time::Duration;

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Bytes of the query of an address: a position and a long game.
    pub query_bytes_max: usize,
    /// Bytes of the body of a request: a thousand quoted positions in the long form.
    pub body_bytes_max: usize,
    /// Bytes of the head of a request; at least 8,192.
    pub head_bytes_max: usize,
    /// Positions of one batch.
    pub batch_positions_max: usize,
    /// Moves of a principal line.
    pub line_moves_max: usize,
    /// Concurrent connections. For a further one, that which has waited longest for its client is closed; it
    /// waits while the server works for all.
    pub connections_max: usize,
    /// Concurrent connections of one client. For a further one, that which has waited longest is closed; it is closed
    /// itself while the server works for all.
    pub connections_client_max: usize,
    /// Concurrent searches, lines and batches; more wait.
    pub searches_max: usize,
    /// Concurrent analyses, and as many concurrent searches for moves of players; more wait.
    pub analyses_max: usize,
    /// Analyses that wait, and searches for moves; more are refused.
    pub analyses_waiting_max: usize,
    /// Analyses of one client that run or wait, and searches for moves; more are refused.
    pub analyses_client_max: usize,
    /// Requests of one client for probes, batches, lines, book positions and pages that are answered or wait; more are
    /// refused.
    pub searches_client_max: usize,
    /// The address of a proxy, whose requests name their client in `X-Forwarded-For`.
    pub proxy: Option<IpAddr>,
    /// Time that an analysis may wait to start.
    pub analysis_wait: Duration,
    /// Time of a streamed analysis.
    pub analysis_stream: Duration,
    /// Time of an analysis whose answer is one object.
    pub analysis_answer: Duration,
    /// Time for the head of a request to arrive, and of an idle connection.
    pub head: Duration,
    /// Time for the body of a request to arrive.
    pub body: Duration,
    /// Time that a search may wait to start.
    pub queue_wait: Duration,
    /// Time that the page waits for the principal line, which is optional.
    pub line_wait: Duration,
    /// Time of a whole request.
    pub request: Duration,
    /// Time after which a batch starts no more positions.
    pub batch: Duration,
    /// Time of a connection, so that a client that reads nothing cannot hold it forever.
    pub connection: Duration,
    /// Time for active requests to finish after a stop request.
    pub shutdown_grace: Duration,
}

impl ServerLimits {
    /// Whether an address is that of the proxy.
    pub(super) fn is_proxy(&self, address: IpAddr) -> bool {
        self.proxy.is_some_and(|proxy| proxy.to_canonical() == address.to_canonical())
    }
}

impl Default for ServerLimits {
    fn default() -> ServerLimits {
        ServerLimits {
            query_bytes_max: 4 << 10,
            body_bytes_max: 128 << 10,
            head_bytes_max: 16 << 10,
            batch_positions_max: 1000,
            line_moves_max: 200,
            connections_max: 1024,
            connections_client_max: 128,
            searches_max: std::thread::available_parallelism().map_or(2, usize::from),
            analyses_max: std::thread::available_parallelism().map_or(1, |cores| (cores.get() - 1).max(1)),
            analyses_waiting_max: 16,
            analyses_client_max: 4,
            searches_client_max: 16,
            proxy: None,
            analysis_wait: Duration::from_secs(10),
            analysis_stream: Duration::from_secs(60),
            analysis_answer: Duration::from_secs(15),
            head: Duration::from_secs(20),
            body: Duration::from_secs(10),
            queue_wait: Duration::from_secs(5),
            line_wait: Duration::from_secs(2),
            request: Duration::from_secs(30),
            batch: Duration::from_secs(5),
            connection: Duration::from_secs(600),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}
