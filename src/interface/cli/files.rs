//! The commands that check, export and pack the files of finished databases.

pub(crate) mod archive;
pub(crate) mod compare;
pub(crate) mod databases;
pub(crate) mod export;
pub(crate) mod stats;
pub(crate) mod verify;
