//! The databases of a run directory as exact scores for searches and books.

use crate::args::{BookDatabasesArgs, BookFileArgs};
use crate::databases::{OpenedDatabases, cache_bytes, holds_artifacts, library};
use crate::error::{CliError, Result};
use disk::RealDisk;
use game::{Board, Rules, STONES_MAX, Score};
use pipeline::Budget;
use search::ExactScores;
use std::sync::Mutex;

/// Databases of up to a number of stones. The first error of a look-up is kept, and ends the work.
pub(super) struct BookDatabases {
    opened: Option<OpenedDatabases>,
    known: [bool; STONES_MAX as usize + 1],
    failure: Mutex<Option<CliError>>,
}

impl BookDatabases {
    /// Opens the databases of a directory, none if it has none.
    pub(super) fn open(args: &BookFileArgs, chosen: &BookDatabasesArgs) -> Result<BookDatabases> {
        let (stones_max, cache) = (chosen.databases, chosen.cache.map_or_else(cache_bytes, Budget::bytes));
        let disk = RealDisk::default();
        let mut known = [false; STONES_MAX as usize + 1];
        let opened = match holds_artifacts(&disk, &args.dir) {
            true => Some(OpenedDatabases::with_cache(library(&disk, &args.dir)?, cache)?),
            false => None,
        };
        if let Some(opened) = &opened {
            for stones in (0..=STONES_MAX).filter(|&stones| stones_max.is_none_or(|most| stones <= most)) {
                known[stones as usize] = opened.sound.get(stones).is_ok();
            }
        }
        Ok(BookDatabases { opened, known, failure: Mutex::new(None) })
    }

    /// Returns the rules of the databases.
    pub(super) fn rules(&self) -> Rules {
        self.opened.as_ref().map_or(Rules::AWARI, |opened| *opened.sound.rules())
    }

    /// Returns the opening of the game that the databases are of.
    pub(super) fn opening(&self) -> Board {
        self.opened.as_ref().map_or(Board::OPENING, |opened| opened.sound.set().start().board())
    }

    /// Returns the numbers of stones of the databases, as `0..16` or `0..9 11`.
    pub(super) fn text(&self) -> String {
        let known: Vec<usize> = (0..self.known.len()).filter(|&stones| self.known[stones]).collect();
        let ranges = known.chunk_by(|before, after| before + 1 == *after).map(|range| match range {
            [one] => one.to_string(),
            _ => format!("{}..{}", range[0], range[range.len() - 1]),
        });
        let ranges: Vec<String> = ranges.collect();
        if ranges.is_empty() { "none".to_owned() } else { ranges.join(" ") }
    }

    /// Returns the error of a look-up that failed.
    pub(super) fn failure(&self) -> Result<()> {
        let mut failure = self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        failure.take().map_or(Ok(()), Err)
    }

    fn look_up(&self, board: &Board) -> Result<Option<Score>> {
        let Some(opened) = &self.opened else { return Ok(None) };
        if !opened.sound.set().contains(board) {
            return Ok(None);
        }
        let database = opened.sound.get(board.stones())?;
        let score = database.scores().get(database.position(board)?);
        Ok(Some(score.map_err(check::CheckError::from)?))
    }
}

impl ExactScores for BookDatabases {
    fn knows(&self, stones: u32) -> bool {
        self.known.get(stones as usize).copied().unwrap_or(false)
    }

    fn score(&self, board: &Board) -> Option<Score> {
        match self.look_up(board) {
            Ok(score) => score,
            Err(error) => {
                let mut failure = self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                failure.get_or_insert(error);
                None
            }
        }
    }
}
