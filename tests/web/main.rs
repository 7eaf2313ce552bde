//! The oracle, the server and its page, and games in the terminal.

#![allow(clippy::unwrap_used)]

mod analysis;
mod browser;
mod engine_session;
mod games;
mod http;
mod load;
mod matches;
mod oracle;
mod page;
mod page_layout;
mod page_play;
mod page_search;
mod serve_command;
