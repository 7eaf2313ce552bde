//! The commands that compare, count, export and pack the files of finished databases.

pub(crate) mod archive;
pub(crate) mod compare;
pub(crate) mod databases;
pub(crate) mod export;
pub(crate) mod stats;
