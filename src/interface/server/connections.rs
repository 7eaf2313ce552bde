//! The open connections: a bounded number, and a bounded share of each client.
//!
//! Where a bound is reached, the connection is closed that has waited longest for its client: for the head of
//! a request or the rest of a body, or for the client to read an answer. So the time for a head is the
//! shorter the more connections come. A connection for which the server works is not closed.

use super::client_address::ClientAddress;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Time between two searches of a full table for a connection to close.
const SEARCH_INTERVAL: Duration = Duration::from_millis(50);

/// The open connections of a server.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    open: Mutex<HashMap<ClientAddress, Vec<Arc<OpenConnection>>>>,
    /// A permit for each connection, held until its socket is closed.
    places: Arc<Semaphore>,
    places_max: usize,
    client_places_max: usize,
}

/// An open connection.
#[derive(Debug)]
pub(super) struct OpenConnection {
    state: Mutex<ConnectionState>,
    closed: Notify,
}

#[derive(Debug)]
struct ConnectionState {
    /// Whether a request was read whose answer is not yet made.
    is_answering: bool,
    /// The start of the time that the server waits for the client; `None` while the server works.
    waits_since: Option<Instant>,
}

/// The place of a connection in the table, given back when dropped.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    table: Arc<ConnectionTable>,
    client: ClientAddress,
    connection: Arc<OpenConnection>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionTable {
    /// Makes a table of a number of connections, and of a number for each client.
    pub(super) fn new(places_max: usize, client_places_max: usize) -> Arc<ConnectionTable> {
        let places = Arc::new(Semaphore::new(places_max));
        Arc::new(ConnectionTable { open: Mutex::default(), places, places_max, client_places_max })
    }

    /// Takes a place for a connection, and closes others if there is none. `None` if the client has as many
    /// as it may, and the server works for all of them. Connections of a proxy are those of many clients, and
    /// are not counted.
    pub(super) async fn admit(
        self: &Arc<ConnectionTable>,
        client: ClientAddress,
        is_proxy: bool,
    ) -> Option<ConnectionPlace> {
        if !is_proxy {
            let mut open = self.open();
            let own = open.get_mut(&client).filter(|own| own.len() >= self.client_places_max);
            if own.is_some_and(|own| !close_longest_waiting(own)) {
                return None;
            }
        }
        let permit = loop {
            let place = Arc::clone(&self.places).acquire_owned();
            if self.places.available_permits() == 0 {
                self.close_any();
            }
            if let Ok(Ok(permit)) = timeout(SEARCH_INTERVAL, place).await {
                break permit;
            }
        };
        let state = Mutex::new(ConnectionState { is_answering: false, waits_since: Some(Instant::now()) });
        let connection = Arc::new(OpenConnection { state, closed: Notify::new() });
        self.open().entry(client).or_default().push(Arc::clone(&connection));
        Some(ConnectionPlace { table: Arc::clone(self), client, connection, _permit: permit })
    }

    /// Closes the connection of any client that has waited longest.
    pub(super) fn close_any(&self) {
        let mut open = self.open();
        let oldest = open.values_mut().filter_map(|own| Some((longest_waiting(own)?.1, own)));
        if let Some((_, own)) = oldest.min_by_key(|(since, _)| *since) {
            close_longest_waiting(own);
        }
    }

    /// Waits until all connections are closed.
    pub(super) async fn until_empty(&self) {
        let all = u32::try_from(self.places_max).unwrap_or(u32::MAX);
        let _ = self.places.acquire_many(all).await;
    }

    fn open(&self) -> MutexGuard<'_, HashMap<ClientAddress, Vec<Arc<OpenConnection>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the index of the connection that has waited longest for its client, and the start of the wait.
fn longest_waiting(connections: &[Arc<OpenConnection>]) -> Option<(usize, Instant)> {
    let waiting =
        connections.iter().enumerate().filter_map(|(index, connection)| Some((index, connection.state().waits_since?)));
    waiting.min_by_key(|(_, since)| *since)
}

/// Closes the connection that has waited longest, if any waits, and removes it.
fn close_longest_waiting(connections: &mut Vec<Arc<OpenConnection>>) -> bool {
    let longest = longest_waiting(connections);
    if let Some((index, _)) = longest {
        connections.swap_remove(index).closed.notify_one();
    }
    longest.is_some()
}

impl ConnectionPlace {
    /// Returns the connection.
    pub(super) fn connection(&self) -> Arc<OpenConnection> {
        Arc::clone(&self.connection)
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut open = self.table.open();
        if let Some(own) = open.get_mut(&self.client) {
            own.retain(|connection| !Arc::ptr_eq(connection, &self.connection));
            if own.is_empty() {
                open.remove(&self.client);
            }
        }
    }
}

impl OpenConnection {
    /// Waits until the table closes the connection.
    pub(super) async fn until_closed(&self) {
        self.closed.notified().await;
    }

    /// Notes that a request was read.
    pub(super) fn start_answer(&self) {
        *self.state() = ConnectionState { is_answering: true, waits_since: None };
    }

    /// Notes that the answer to a request is made.
    pub(super) fn finish_answer(&self) {
        *self.state() = ConnectionState { is_answering: false, waits_since: None };
    }

    /// Notes that the client has not sent what the server reads, or not read what it writes.
    pub(super) fn wait(&self) {
        self.state().waits_since.get_or_insert_with(Instant::now);
    }

    /// Notes that bytes were read. A client that sends a head slowly still counts as one that is waited for.
    pub(super) fn note_read(&self) {
        let mut state = self.state();
        if state.is_answering {
            state.waits_since = None;
        }
    }

    /// Notes that bytes were written.
    pub(super) fn note_written(&self) {
        self.state().waits_since = None;
    }

    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn client(text: &str) -> ClientAddress {
        ClientAddress::new(text.parse::<IpAddr>().unwrap())
    }

    /// Whether the table has closed one of some connections.
    async fn is_closed(places: &[ConnectionPlace]) -> bool {
        for place in places {
            if timeout(Duration::ZERO, place.connection.until_closed()).await.is_ok() {
                return true;
            }
        }
        false
    }

    fn run(work: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work);
    }

    #[test]
    fn a_client_closes_its_own_connections() {
        run(async {
            let table = ConnectionTable::new(10, 2);
            let other = table.admit(client("10.0.0.2"), false).await.unwrap();
            let mut own = Vec::new();
            for _ in 0..2 {
                own.push(table.admit(client("2001:db8::1"), false).await.unwrap());
            }
            own[0].connection.start_answer();
            // The next address of its network.
            own.push(table.admit(client("2001:db8::2"), false).await.unwrap());
            assert!(is_closed(&own[1..2]).await && !is_closed(&own).await);
            own[2].connection.start_answer();
            assert!(table.admit(client("2001:db8::1"), false).await.is_none(), "the server works for both");
            let proxy = table.admit(client("2001:db8::1"), true).await;
            assert!(proxy.is_some() && !is_closed(&[other]).await);
            drop((own, proxy));
            assert!(table.open().is_empty(), "clients are forgotten");
            table.until_empty().await;
        });
    }

    #[test]
    fn the_longest_waiting_connection_of_a_full_table_is_closed() {
        run(async {
            let table = ConnectionTable::new(3, 3);
            let (mut open, mut working) = (Vec::new(), Vec::new());
            for number in 1..=3 {
                open.push(table.admit(client(&format!("10.0.0.{number}")), false).await.unwrap());
            }
            open[0].connection.start_answer();
            open[0].connection.finish_answer();
            // The second one sends a head slowly; the third one has sent a request, and does not read the answer.
            open[1].connection.note_read();
            open[2].connection.start_answer();
            open[2].connection.wait();
            open[0].connection.wait();
            // The order in which they have waited.
            for number in [2, 3, 1] {
                let admitting = Arc::clone(&table);
                let fresh = tokio::spawn(async move { admitting.admit(client("10.0.0.9"), true).await });
                let index = open.iter().position(|place| place.client == client(&format!("10.0.0.{number}")));
                let place = open.swap_remove(index.unwrap());
                place.connection.until_closed().await;
                assert!(!is_closed(&open).await, "{number}");
                drop(place);
                let fresh = fresh.await.unwrap().unwrap();
                fresh.connection.start_answer();
                working.push(fresh);
            }
        });
    }
}
