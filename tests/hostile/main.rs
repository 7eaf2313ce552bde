//! Damaged, forged and changing files, and scarce resources.

#![allow(clippy::unwrap_used)]

mod allocations;
mod books;
mod changed_files;
mod corruption;
mod engine_sessions;
mod limits;
mod memory_budgets;
mod mutants;
mod special_files;
mod unreadable_sectors;
