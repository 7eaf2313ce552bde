//! What a client may send, and what the server spends on it.

use std::time::Duration;

/// The bounds of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Bytes of the query of an address: a position and a long game.
    pub query_bytes_max: usize,
    /// Bytes of a request's body: a thousand positions in the long form, quoted.
    pub body_bytes_max: usize,
    /// Bytes of a request's head; no less than 8,192.
    pub head_bytes_max: usize,
    /// Positions of one batch.
    pub batch_positions_max: usize,
    /// Moves of a principal line.
    pub line_moves_max: usize,
    /// Connections at once; more wait to be accepted.
    pub connections_max: usize,
    /// Searches, lines and batches at once; more wait for their turn.
    pub searches_max: usize,
    /// How long a request's head may take to arrive, and a connection may idle.
    pub head: Duration,
    /// How long a request's body may take to arrive.
    pub body: Duration,
    /// How long a search may wait for its turn.
    pub turn: Duration,
    /// How long the page waits for the line of best moves, without which it is a page still.
    pub glance: Duration,
    /// How long a request may take in all.
    pub request: Duration,
    /// How long a batch goes on with positions that it has not begun.
    pub batch: Duration,
    /// How long one connection may serve, so that nobody who reads nothing holds it for ever.
    pub connection: Duration,
    /// How long requests under way may go on when the server is told to stop.
    pub farewell: Duration,
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
            searches_max: std::thread::available_parallelism().map_or(2, usize::from),
            head: Duration::from_secs(20),
            body: Duration::from_secs(10),
            turn: Duration::from_secs(5),
            glance: Duration::from_secs(2),
            request: Duration::from_secs(30),
            batch: Duration::from_secs(5),
            connection: Duration::from_secs(600),
            farewell: Duration::from_secs(10),
        }
    }
}
