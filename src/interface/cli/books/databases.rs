//! The databases of a run directory, for a book.

use super::path;
use crate::args::{BookDatabasesArgs, BookFileArgs};
use crate::error::Result;
use crate::files::databases::{OpenedDatabases, cache_bytes, holds_artifacts, library};
use book::{BookError, BookFile};
use disk::RealDisk;
use game::{Board, Rules};
use pipeline::Budget;
use stages::BookDatabases;

/// Databases, with the game that they are of.
pub(super) struct DirectoryDatabases {
    /// The databases.
    pub(super) scores: BookDatabases,
    /// Their rules.
    pub(super) rules: Rules,
    /// The opening of their game.
    pub(super) opening: Board,
}

impl DirectoryDatabases {
    /// Opens the databases of a directory, none if it has none.
    pub(super) fn open(args: &BookFileArgs, chosen: &BookDatabasesArgs) -> Result<DirectoryDatabases> {
        let (stones_max, cache) = (chosen.databases, chosen.cache.map_or_else(cache_bytes, Budget::bytes));
        let disk = RealDisk::default();
        let opened = if holds_artifacts(&disk, &args.dir) {
            Some(OpenedDatabases::with_cache(library(&disk, &args.dir)?, cache)?.sound)
        } else {
            None
        };
        let game = opened.as_ref().map(|opened| (*opened.rules(), opened.set().start().board()));
        let (rules, opening) = match game {
            Some(game) => game,
            // Without databases a book that exists keeps its rules.
            None => match BookFile::open_any(&path(args)) {
                Err(BookError::Missing(_)) => (Rules::AWARI, Board::OPENING),
                file => (*file?.rules(), Board::OPENING),
            },
        };
        let scores = BookDatabases::new(opened, |stones| stones_max.is_none_or(|most| stones <= most));
        Ok(DirectoryDatabases { scores, rules, opening })
    }
}
