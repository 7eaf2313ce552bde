//! The oracle, the server and its page, and games in the terminal.

#![allow(clippy::unwrap_used)]

mod browser;
mod games;
mod http;
mod oracle;
mod page;
mod page_layout;
mod page_play;
mod serve_command;
