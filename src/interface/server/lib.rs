//! Serves databases over HTTP: a JSON API, and a web page.
//!
//! [`Site`] is the state, [`router`] the routes, [`Server`] the connections. Values are from the point of view of the
//! player to move in the queried position, and count stones on the board, without stores.
//!
//! Invariants:
//!
//! * The size of every input is bounded before it is read: see [`ServerLimits`].
//! * Queries that memory maps answer immediately run on the thread of the connection. Searches, block decoding and
//!   lines run on a bounded number of blocking threads.
//! * A client has a bounded share of the connections and of each queue; see [`ClientAddress`].
//! * Analyses run on a bounded number of threads of low priority, share one table, and end when their client leaves.
//! * The same databases give the same bytes, so one entity tag covers all answers, except moves chosen without a seed.
//!
//! `openapi.json` describes the routes; a test compares the two.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod analysis;
mod assets;
mod batch;
mod body;
mod book_tree;
mod catalogue;
mod client;
mod client_address;
mod client_shares;
mod connections;
mod engine;
mod framing;
mod host;
mod limits;
mod metrics;
mod middleware;
mod page;
mod play;
mod probe;
mod query_number;
mod race;
mod refusal;
mod reply;
mod router;
mod server;
mod site;
mod transcript;

pub use catalogue::Catalogue;
pub use client_address::ClientAddress;
pub use engine::SiteEngine;
pub use limits::ServerLimits;
pub use router::router;
pub use server::{Server, ServerStop};
pub use site::Site;
