//! Preflight: compares the predicted memory and disk space of a plan with what is available.

use crate::budget::Budget;
use crate::plan::PlanPrediction;
use crate::stage::StageName;
use disk::DiskError;
use std::path::{Path, PathBuf};

/// The reason why a run cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant explains its fields")]
pub enum PreflightError {
    /// A stage takes more memory than the budget.
    #[error(
        "{stage} needs {} of memory, the budget is {}; raise the budget, or choose a method that needs less",
        Budget::show(*needed), Budget::show(*budget)
    )]
    MemoryBudget {
        stage: StageName,
        /// Bytes it is predicted to take.
        needed: u64,
        budget: u64,
    },
    /// A stage takes more memory than is available.
    #[error(
        "{stage} needs {} of memory, {} are available on this machine; close other programs, or choose a method that \
         needs less",
        Budget::show(*needed), Budget::show(*available)
    )]
    MemoryAvailable {
        stage: StageName,
        /// Bytes it is predicted to take.
        needed: u64,
        available: u64,
    },
    /// The steps take more disk space than is free.
    #[error(
        "the remaining stages need {} of disk space, {} are free in {}; free some space, or choose another directory",
        Budget::show(*needed), Budget::show(*free), directory.display()
    )]
    Disk {
        directory: PathBuf,
        /// Bytes that the steps are predicted to take.
        needed: u64,
        free: u64,
    },
    /// The next stage takes more disk space than is free.
    #[error(
        "{stage} needs {} of disk space, {} are free in {}; free some space, and the same command resumes",
        Budget::show(*needed), Budget::show(*free), directory.display()
    )]
    StageDisk {
        stage: StageName,
        directory: PathBuf,
        /// Bytes that it is predicted to take.
        needed: u64,
        free: u64,
    },
    /// The file system has free space, but this process may not use it.
    #[error(
        "cannot reserve {needed} of disk space in {}, although {free} are free: {source}; a quota or reserved blocks \
         forbid it; raise the quota, or choose another directory",
        directory.display(), needed = Budget::show(*needed), free = Budget::show(*free)
    )]
    Quota {
        directory: PathBuf,
        /// Bytes to reserve.
        needed: u64,
        free: u64,
        source: DiskError,
    },
    /// The directory holds foreign files, and no file of a run.
    #[error(
        "{} holds files that are not awari's ({}); choose an empty directory, or move them away; nothing was \
         changed",
        directory.display(), few(names)
    )]
    Foreign { directory: PathBuf, names: Vec<String> },
    /// The directory cannot be used.
    #[error("cannot use the directory {}: {source}", directory.display())]
    Directory { directory: PathBuf, source: DiskError },
}

impl PreflightError {
    /// Returns the reason why a stage of a run cannot start.
    pub(crate) fn of_stage(self, stage: &StageName) -> PreflightError {
        match self {
            PreflightError::Disk { directory, needed, free } => {
                PreflightError::StageDisk { stage: stage.clone(), directory, needed, free }
            }
            other => other,
        }
    }
}

/// Lists the first names, and the number of the others, on one line.
fn few(names: &[String]) -> String {
    const NAMES_MAX: usize = 3;
    let shown = names.iter().take(NAMES_MAX).map(|name| name.replace(char::is_control, "\u{fffd}"));
    let more = (names.len() > NAMES_MAX).then(|| format!("and {} more", names.len() - NAMES_MAX));
    shown.chain(more).collect::<Vec<_>>().join(", ")
}

/// The available resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// The memory budget.
    pub memory: Budget,
    /// The memory available on the machine, where known.
    pub memory_available: Option<u64>,
    /// Free disk space in bytes.
    pub disk_free: u64,
}

impl Resources {
    /// Checks that the resources suffice for a prediction.
    pub fn check(&self, prediction: &PlanPrediction, directory: &Path) -> Result<(), PreflightError> {
        let needed = prediction.memory_bytes;
        if let Some(stage) = &prediction.memory_stage {
            if !self.memory.fits(needed) {
                return Err(PreflightError::MemoryBudget { stage: stage.clone(), needed, budget: self.memory.bytes() });
            }
            if let Some(available) = self.memory_available.filter(|bytes| *bytes < needed) {
                return Err(PreflightError::MemoryAvailable { stage: stage.clone(), needed, available });
            }
        }
        if prediction.disk_bytes > self.disk_free {
            return Err(PreflightError::Disk {
                directory: directory.to_path_buf(),
                needed: prediction.disk_bytes,
                free: self.disk_free,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_give_both_numbers_and_the_remedy() {
        let prediction = PlanPrediction {
            memory_bytes: 3 << 30,
            memory_stage: Some("sweep:24".parse().unwrap()),
            disk_bytes: 5 << 30,
            ..PlanPrediction::default()
        };
        let enough = Resources { memory: Budget::new(3 << 30), memory_available: Some(3 << 30), disk_free: 5 << 30 };
        let check = |room: Resources, expect: &str| {
            let error = room.check(&prediction, Path::new("runs/small"));
            assert_eq!(error.unwrap_err().to_string(), expect);
        };
        enough.check(&prediction, Path::new("runs/small")).unwrap();
        check(
            Resources { memory: Budget::new(2 << 30), ..enough },
            "sweep:24 needs 3 GiB of memory, the budget is 2 GiB; raise the budget, or choose a method \
             that needs less",
        );
        check(
            Resources { memory_available: Some(1 << 30), ..enough },
            "sweep:24 needs 3 GiB of memory, 1 GiB are available on this machine; close other programs, \
             or choose a method that needs less",
        );
        check(
            Resources { disk_free: 1 << 20, ..enough },
            "the remaining stages need 5 GiB of disk space, 1 MiB are free in runs/small; free some space, or \
             choose another directory",
        );
        let unknown = Resources { memory_available: None, ..enough };
        unknown.check(&prediction, Path::new("x")).unwrap();
    }
}
