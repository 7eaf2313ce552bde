//! Shares of clients in the queues of the server: a client that sends many requests at a time gets its later
//! ones refused, and leaves room for other clients.

use super::client_address::ClientAddress;
use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// The requests of each client in a queue, those that are answered and those that wait.
#[derive(Debug)]
pub(super) struct ClientShares {
    held: Mutex<HashMap<ClientAddress, usize>>,
    places_max: usize,
}

/// A place of a client, which is given back when dropped.
#[derive(Debug)]
pub(super) struct ClientPlace {
    shares: Arc<ClientShares>,
    client: ClientAddress,
}

impl ClientShares {
    /// Makes shares of a number of places for each client.
    pub(super) fn new(places_max: usize) -> Arc<ClientShares> {
        Arc::new(ClientShares { held: Mutex::default(), places_max })
    }

    /// Takes a place; `None` if the client has as many as it may.
    pub(super) fn enter(self: &Arc<ClientShares>, client: ClientAddress) -> Option<ClientPlace> {
        let mut all = self.held();
        // Connections bound the number of clients.
        let held = all.get(&client).copied().unwrap_or(0);
        if held >= self.places_max {
            return None;
        }
        all.insert(client, held + 1);
        Some(ClientPlace { shares: Arc::clone(self), client })
    }

    fn held(&self) -> MutexGuard<'_, HashMap<ClientAddress, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        let mut all = self.shares.held();
        match all.get_mut(&self.client) {
            Some(held) if *held > 1 => *held -= 1,
            _ => drop(all.remove(&self.client)),
        }
    }
}

/// The body of a response, with the place of its client until the end.
#[derive(Debug)]
pub(super) struct PlacedBody {
    body: Body,
    _place: ClientPlace,
}

impl PlacedBody {
    pub(super) fn new(body: Body, place: ClientPlace) -> PlacedBody {
        PlacedBody { body, _place: place }
    }
}

impl HttpBody for PlacedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn each_client_has_its_share() {
        let shares = ClientShares::new(2);
        let client = |text: &str| ClientAddress::new(text.parse::<IpAddr>().unwrap());
        let places: Vec<_> = (0..2).map(|_| shares.enter(client("10.0.0.1")).unwrap()).collect();
        assert!(shares.enter(client("10.0.0.1")).is_none());
        let other = shares.enter(client("10.0.0.2")).unwrap();
        drop(places);
        assert!(shares.enter(client("10.0.0.1")).is_some());
        drop(other);
        assert!(shares.held().is_empty(), "clients are forgotten");
    }
}
