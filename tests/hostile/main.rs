//! Bytes, files and systems that work against a command: every one ends by itself with an error.

#![allow(clippy::unwrap_used)]

mod allocations;
mod changed_files;
mod corruption;
mod limits;
mod mutants;
mod special_files;
mod unreadable_sectors;
