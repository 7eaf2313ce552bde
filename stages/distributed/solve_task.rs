//! The task to solve a database by sweep or counting.

use super::PROCESSORS_MAX;
use super::counting_snapshots::ResumePlan;
use super::local_scratch::LocalScratch;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A database to solve and write: its captures, its snapshots, and how a snapshot of counting is resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SolveTask {
    pub(super) by: DistributedMethod,
    pub(super) stones: u32,
    pub(super) captures: PathBuf,
    pub(super) database: PathBuf,
    pub(super) snapshots: Option<PathBuf>,
    pub(super) counts: Option<ResumePlan>,
    pub(super) scratch: Option<LocalScratch>,
}

/// A method that all ranks run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DistributedMethod {
    Sweep,
    /// Counting with a number of logical processors for each rank.
    Counting {
        processors: usize,
    },
}

impl fmt::Display for DistributedMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DistributedMethod::Sweep => f.write_str("sweep"),
            DistributedMethod::Counting { processors } => write!(f, "counting {processors}"),
        }
    }
}

impl FromStr for DistributedMethod {
    type Err = ();

    fn from_str(text: &str) -> Result<DistributedMethod, ()> {
        match text.split_once(' ') {
            None if text == "sweep" => Ok(DistributedMethod::Sweep),
            Some(("counting", processors)) => {
                let processors = processors.parse().ok().filter(|processors| (1..=PROCESSORS_MAX).contains(processors));
                processors.map(|processors| DistributedMethod::Counting { processors }).ok_or(())
            }
            _ => Err(()),
        }
    }
}

impl SolveTask {
    /// Encodes the task as lines: method, stones, captures, database; snapshots, plan to resume, scratch or empty lines.
    pub(super) fn lines(&self) -> Vec<String> {
        let SolveTask { by, stones, captures, database, snapshots, counts, scratch } = self;
        let snapshots = snapshots.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let counts = counts.map(|plan| plan.to_string()).unwrap_or_default();
        let (captures, database) = (captures.display().to_string(), database.display().to_string());
        let [name, fingerprint] = LocalScratch::lines(scratch.as_ref());
        vec![by.to_string(), stones.to_string(), captures, database, snapshots, counts, name, fingerprint]
    }

    pub(super) fn of_lines(lines: &[&str]) -> Option<SolveTask> {
        let &[by, stones, captures, database, snapshots, counts, name, fingerprint] = lines else { return None };
        let (by, stones) = (by.parse().ok()?, stones.parse().ok()?);
        let snapshots = Some(snapshots).filter(|path| !path.is_empty()).map(PathBuf::from);
        let counts = Some(counts).filter(|plan| !plan.is_empty()).map(str::parse).transpose().ok()?;
        let scratch = LocalScratch::of_lines([name, fingerprint])?;
        Some(SolveTask { by, stones, captures: captures.into(), database: database.into(), snapshots, counts, scratch })
    }
}
