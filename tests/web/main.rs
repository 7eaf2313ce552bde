//! The oracle, the server, and games in the terminal.

#![allow(clippy::unwrap_used)]

mod analysis;
mod client_shares;
mod connections;
mod continued_matches;
mod engine_session;
mod games;
mod http;
mod load;
mod matches;
mod opening_book;
mod oracle;
mod other_rules;
mod serve_command;
