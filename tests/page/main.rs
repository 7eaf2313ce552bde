//! The page, in Chromium, which is driven by its `chromedriver`; without them these tests are skipped.

#![allow(clippy::unwrap_used)]

mod book;
mod browser;
mod game;
mod layout;
mod play;
mod rules;
mod search;
mod views;
