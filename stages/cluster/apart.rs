//! Directories of which each rank has one on a disk of its own, for snapshots and for what else nobody else reads.
//!
//! In it a run has a directory of its own, by the place of its databases; ranks of one machine share it. It serves one
//! stage at a time, which the fingerprint there tells, and is gone once that is done. What a crash leaves there the next
//! stage removes.

use super::{Failure, agree};
use disk::{Digest, Disk, DiskError};
use messaging::Communicator;
use pipeline::{Snapshots, StageContext, StageError};
use planner::Settings;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What names of runs begin with, and how many digits follow.
const RUN: &str = "awari-";
const NAME_DIGITS: usize = 16;

/// Where each rank has the snapshots, and what else nobody else reads, below a directory of its own: what tells this run
/// from others there, and what the snapshots are made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Apart {
    name: String,
    fingerprint: Digest,
}

impl Apart {
    /// For a stage that is to make a database.
    pub(super) fn new(context: &StageContext, database: &Path) -> Apart {
        let name = name_of(context.disk(), database.parent().unwrap_or(database));
        Apart { name, fingerprint: context.snapshots().fingerprint() }
    }

    /// What tells the run from others.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Both names, or nothing twice.
    pub(super) fn lines(apart: Option<&Apart>) -> [String; 2] {
        apart.map(|Apart { name, fingerprint }| [name.clone(), fingerprint.to_string()]).unwrap_or_default()
    }

    pub(super) fn of_lines(lines: [&str; 2]) -> Option<Option<Apart>> {
        let [name, fingerprint] = lines;
        if lines == ["", ""] {
            return Some(None);
        }
        let fingerprint = fingerprint.parse().ok()?;
        is_name(name).then(|| Some(Apart { name: name.to_owned(), fingerprint }))
    }

    /// The directory of this rank, in which nothing is left of other stages: on all ranks, or on none.
    pub(super) fn claim<'a>(
        &self,
        settings: &Settings,
        disk: &'a dyn Disk,
        stones: u32,
        communicator: &mut dyn Communicator,
    ) -> Result<(PathBuf, Snapshots<'a>), Failure> {
        let unusable =
            |error: DiskError| StageError::failed(format!("cannot use the directory [cluster] scratch: {error}"));
        let ranks = communicator.size();
        let open = || {
            let missing = || StageError::failed("this rank has no [cluster] scratch in its manifest");
            let directory = settings.scratch.as_ref().ok_or_else(missing)?.join(&self.name);
            let snapshots = Snapshots::open(disk, directory.clone(), self.fingerprint, Duration::ZERO);
            Ok((directory, snapshots.map_err(unusable)?))
        };
        // Ranks of one machine share it: it is emptied before anybody writes there.
        let (directory, snapshots) = agree(communicator, open())?;
        let bytes = settings.set.positions(stones) / ranks as u64;
        let mut prepared = Ok(());
        // In turn: what they write at first has the same name.
        for turn in 0..ranks {
            if turn == communicator.rank() {
                prepared = disk.probe(&directory, bytes).and_then(|()| snapshots.prepare().map(drop));
            }
            communicator.barrier().map_err(Failure::lost)?;
        }
        agree(communicator, prepared.map_err(unusable))?;
        Ok((directory, snapshots))
    }
}

/// The name of a run in the directory of a rank, by the directory of its databases.
pub(crate) fn name_of(disk: &dyn Disk, databases: &Path) -> String {
    let run = disk.canonical(databases);
    let digest = Digest::of(run.as_os_str().as_encoded_bytes()).to_string();
    format!("{RUN}{}", &digest[..NAME_DIGITS])
}

/// Whether a name is that of a run in the directory of a rank.
fn is_name(name: &str) -> bool {
    let digits = name.strip_prefix(RUN).unwrap_or_default();
    digits.len() == NAME_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_paths() {
        let fingerprint = Digest::of(b"a result");
        let apart = Apart { name: "awari-0123456789abcdef".to_owned(), fingerprint };
        let [name, digits] = Apart::lines(Some(&apart));
        assert_eq!(Apart::of_lines([&name, &digits]), Some(Some(apart)));
        assert_eq!(Apart::lines(None), ["", ""]);
        assert_eq!(Apart::of_lines(["", ""]), Some(None));
        for other in ["", "..", "awari-0123456789abcde/", "awari-0123456789abcdef0", "/0123456789abcdef"] {
            assert_eq!(Apart::of_lines([other, &digits]), None, "{other}");
        }
        assert_eq!(Apart::of_lines([&name, ""]), None);
    }
}
