//! The result of a stage: a report, or an error.

use crate::artifact::ArtifactName;
use disk::{Digest, DiskError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The report of a completed stage. The pipeline measures time and memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// Positions processed.
    pub positions: u64,
    /// Counters such as passes, changes or cache misses.
    pub counters: BTreeMap<String, Counter>,
    /// Digests of the bytes written to files without a checksum, to detect damage immediately after writing.
    #[serde(skip)]
    pub written: BTreeMap<ArtifactName, Digest>,
}

impl StageReport {
    /// Makes a report without counters.
    pub fn new(positions: u64) -> Self {
        StageReport { positions, ..StageReport::default() }
    }

    /// Adds the digest of a written file.
    #[must_use]
    pub fn wrote(mut self, name: ArtifactName, digest: Digest) -> Self {
        self.written.insert(name, digest);
        self
    }

    /// Adds a counter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Counter>) -> Self {
        self.counters.insert(name.to_owned(), value.into());
        self
    }
}

/// A counted or measured number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Counter {
    /// A count.
    Integer(u64),
    /// A measurement; infinity and NaN, which JSON lacks, are read back as 0.
    Real(#[serde(deserialize_with = "real_or_zero")] f64),
}

impl Counter {
    /// Returns the number, rounded if it is a large integer.
    pub fn as_f64(self) -> f64 {
        match self {
            Counter::Integer(value) => value as f64,
            Counter::Real(value) => value,
        }
    }
}

impl From<u64> for Counter {
    fn from(value: u64) -> Self {
        Counter::Integer(value)
    }
}

impl From<f64> for Counter {
    fn from(value: f64) -> Self {
        Counter::Real(value)
    }
}

fn real_or_zero<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(0.0))
}

/// The result of a stage, or of a part of one.
pub type StageResult<T, E = StageError> = std::result::Result<T, E>;

/// The reason why a stage did not finish.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant explains its fields")]
pub enum StageError {
    /// It stopped on request, and continues when run again.
    #[error("stopped on request")]
    Stopped,
    /// A file operation failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// An artifact is damaged: a checksum differs, or a check of its content failed. Recorded, so the next run rebuilds
    /// it.
    #[error("{artifact} is damaged: {what}")]
    Damaged {
        artifact: ArtifactName,
        /// What was expected and found, in words.
        what: String,
        /// Whether readers cannot detect the damage: the content is wrong, but every checksum is right. Artifacts made
        /// from it since it was last known to be good are then rebuilt too.
        silent: bool,
    },
    /// Any other error.
    #[error("{0}")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StageError {
    /// Wraps any error, or a message.
    pub fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        StageError::Failed(error.into())
    }

    /// Returns the error of a thread that cannot be started, with the remedy.
    pub fn no_threads(error: impl fmt::Display) -> Self {
        StageError::failed(format!(
            "threads cannot be started: {error}; allow more (ulimit -u, ulimit -v, or the pids control \
             group), or ask for fewer with --threads"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_survive_json() {
        let report = StageReport::new(7).with("passes", 50u64).with("share", 0.25).with("largest", u64::MAX);
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<StageReport>(&text).unwrap(), report);
        let strange = StageReport::new(7).with("strange", f64::NAN);
        let text = serde_json::to_string(&strange).unwrap();
        let back: StageReport = serde_json::from_str(&text).unwrap();
        assert_eq!(back.counters["strange"].as_f64(), 0.0);
    }
}
