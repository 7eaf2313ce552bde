//! The comparison of databases with external files.

use crate::error::Result;
use crate::text::quantity;
use check::Database;
use disk::Disk;
use exchange::ExchangeError;
use game::PositionSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use store::CachedScores;

/// The number of scores compared at once.
const MEMORY_BYTES: u64 = 256 << 20;

/// A directory with files `scores.N`.
pub(crate) struct ScoreFiles<'a> {
    disk: &'a dyn Disk,
    directory: &'a Path,
}

/// The result of a comparison.
pub(crate) struct ExternalComparison {
    /// The message about equal scores.
    pub(crate) agreement: String,
    /// The message about different scores.
    pub(crate) differences: Vec<String>,
}

impl<'a> ScoreFiles<'a> {
    /// Creates the comparison with the files of a directory.
    pub(crate) fn new(disk: &'a dyn Disk, directory: &'a Path) -> ScoreFiles<'a> {
        ScoreFiles { disk, directory }
    }

    /// Checks that each database has scores, and a file of the right length.
    pub(crate) fn check<'d>(&self, databases: impl Iterator<Item = &'d Database<CachedScores>>) -> Result<()> {
        for database in databases {
            exchange::require_scores(database.scores().scores())?;
            let stones = database.index().stones();
            let path = self.directory.join(exchange::file_of(stones));
            let expected = PositionSet::REACHABLE.positions(stones);
            match self.disk.bytes(&path)? {
                None => return Err(ExchangeError::Missing { path, stones, expected }.into()),
                Some(found) if found != expected => {
                    return Err(ExchangeError::Length { path, stones, expected, found }.into());
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Compares a database with its file.
    pub(crate) fn compare(&self, database: &Database<CachedScores>, stop: &AtomicBool) -> Result<ExternalComparison> {
        let scores = database.scores().scores();
        let index = database.index();
        let found = exchange::compare(self.disk, scores, index, self.directory, MEMORY_BYTES, stop)?;
        let name = exchange::file_of(index.stones());
        let path = self.directory.join(&name);
        let agreement = format!("{name} has the same {}", quantity::plural(found.positions, "score"));
        if found.differing == 0 {
            return Ok(ExternalComparison { agreement, differences: Vec::new() });
        }
        let mut head = format!(
            "{} has other scores of {} of {}",
            path.display(),
            quantity::grouped(found.differing),
            quantity::plural(found.positions, "position")
        );
        if found.senseless > 0 {
            let senseless = quantity::grouped(found.senseless);
            head.push_str(&format!(
                "; impossible with {}: {senseless}",
                quantity::plural(index.stones().into(), "stone")
            ));
        }
        let mut differences = vec![head];
        differences.extend(found.first.iter().map(ToString::to_string));
        if found.differing > found.first.len() as u64 {
            differences.push(format!("and {} more", quantity::grouped(found.differing - found.first.len() as u64)));
        }
        Ok(ExternalComparison { agreement, differences })
    }
}
