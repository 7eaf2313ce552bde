//! Rank-local scratch: a directory on a local disk of each rank, for snapshots and files that only this rank reads.
//!
//! Each run has a subdirectory, named by the path of its databases; ranks of one machine share it. It serves
//! one stage at a time, which its fingerprint identifies, and is removed at the end of that stage. The next
//! stage removes what a crash leaves.

use super::agreement::{RankResult, agree};
use disk::{Digest, Disk, DiskError};
use messaging::Communicator;
use pipeline::{Snapshots, StageContext, StageError};
use planner::Settings;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prefix of the names of runs, and number of digits that follow.
const RUN: &str = "awari-";
const NAME_DIGITS: usize = 16;

/// Subdirectory of a run in the scratch directory of each rank, and the fingerprint of the stage that uses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LocalScratch {
    name: String,
    fingerprint: Digest,
}

impl LocalScratch {
    /// Returns the subdirectory for a stage that makes a database.
    pub(crate) fn new(context: &StageContext, database: &Path) -> LocalScratch {
        let name = name_of(context.disk(), database.parent().unwrap_or(database));
        LocalScratch { name, fingerprint: context.snapshots().fingerprint() }
    }

    /// Returns the name of the subdirectory.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the name is that of a subdirectory, not a path.
    pub(crate) fn is_valid(&self) -> bool {
        let digits = self.name.strip_prefix(RUN).unwrap_or_default();
        digits.len() == NAME_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    /// Empties the directory of this rank of files of other stages, and returns it. Succeeds on all ranks or on none.
    pub(crate) fn claim<'a>(
        &self,
        settings: &Settings,
        disk: &'a dyn Disk,
        stones: u32,
        communicator: &mut dyn Communicator,
    ) -> RankResult<(PathBuf, Snapshots<'a>)> {
        let unusable =
            |error: DiskError| StageError::failed(format!("cannot use the directory [cluster] scratch: {error}"));
        let ranks = communicator.size();
        let open = || -> Result<_, StageError> {
            let missing = || StageError::failed("this rank has no [cluster] scratch in its manifest");
            let directory = settings.scratch.as_ref().ok_or_else(missing)?.join(&self.name);
            let snapshots = Snapshots::open(disk, directory.clone(), self.fingerprint, Duration::ZERO);
            Ok((directory, snapshots.map_err(unusable)?))
        };
        // Ranks of one machine share the directory: all must have emptied it before any rank writes.
        let (directory, snapshots) = agree(communicator, open())?;
        let bytes = settings.set.positions(stones) / ranks as u64;
        let mut prepared = Ok(());
        // One after the other: their first files have the same name.
        for turn in 0..ranks {
            if turn == communicator.rank() {
                prepared = disk.probe(&directory, bytes).and_then(|()| snapshots.prepare().map(drop));
            }
            communicator.barrier()?;
        }
        agree(communicator, prepared.map_err(unusable))?;
        Ok((directory, snapshots))
    }
}

/// Returns the name of the subdirectory of a run, by the directory of its databases.
pub(crate) fn name_of(disk: &dyn Disk, databases: &Path) -> String {
    let run = disk.canonical(databases);
    let digest = Digest::of(run.as_os_str().as_encoded_bytes()).to_string();
    format!("{RUN}{}", &digest[..NAME_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_be_paths() {
        let scratch = |name: &str| LocalScratch { name: name.to_owned(), fingerprint: Digest::of(b"a result") };
        assert!(scratch("awari-0123456789abcdef").is_valid());
        for other in ["", "..", "awari-0123456789abcde/", "awari-0123456789abcdef0", "/0123456789abcdef"] {
            assert!(!scratch(other).is_valid(), "{other}");
        }
    }
}
