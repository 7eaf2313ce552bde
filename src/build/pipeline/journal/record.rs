//! The records of the journal, as JSON objects with the kind under `kind`.
//!
//! Fields may be added with a default. Readers skip records of an unknown kind.

use crate::artifact::ArtifactName;
use crate::fingerprint::Fingerprint;
use crate::report::StageReport;
use crate::stage::StageName;
use disk::Digest;
use serde::{Deserialize, Serialize};

/// A record with its run and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The fencing counter: one more for each run that writes. Readers ignore a record of a lower number after one of a
    /// higher number.
    pub run: u64,
    /// Seconds since 1970.
    pub at: u64,
    /// Milliseconds of that second; 0 in records of older versions, which ignore the field.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub millis: u16,
    /// The event.
    #[serde(flatten)]
    pub record: Record,
}

impl Entry {
    /// Returns the time of the record in seconds since 1970.
    pub fn seconds(&self) -> f64 {
        self.at as f64 + f64::from(self.millis.min(999)) / 1e3
    }
}

fn is_zero(millis: &u16) -> bool {
    *millis == 0
}

/// The last heartbeat of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastHeartbeat {
    /// The run.
    pub run: u64,
    /// Seconds since 1970.
    pub at: u64,
}

/// An event in a run directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the doc of a variant explains its fields")]
pub enum Record {
    /// A run with work to do begins.
    RunStarted {
        command: String,
        /// Name and version of the program.
        program: String,
        host: String,
        pid: u32,
        threads: usize,
        memory_bytes: u64,
        /// Digest of the resolved manifest.
        manifest: Digest,
        /// The last heartbeat of a killed run, if it left one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        killed: Option<LastHeartbeat>,
    },
    /// A stage begins.
    StageStarted { stage: StageName, reason: String },
    /// A stage is done; its outputs are durable.
    StageDone { stage: StageName, artifacts: Vec<ArtifactRecord>, measured: Measured },
    /// A stage failed.
    StageFailed { stage: StageName, message: String },
    /// A file was adopted by its header.
    Adopted { artifact: ArtifactRecord },
    /// An artifact is damaged.
    DamageFound {
        artifact: ArtifactName,
        what: String,
        /// Whether stages read the artifact without noticing, so that what was made from it may be wrong too. Assumed
        /// in records of the first versions, which lack the field.
        #[serde(default = "yes")]
        silent: bool,
    },
    /// An artifact was checked, outside of a stage.
    Verified {
        artifact: ArtifactName,
        /// The digest of its content.
        digest: Digest,
        /// The name of the check.
        how: String,
        /// Whether only a sample was checked. A full check that passes clears earlier damage.
        sampled: bool,
    },
    /// Unneeded files were removed.
    Removed { artifacts: Vec<ArtifactName> },
    /// The run is over. Absent if it was killed.
    RunEnded { how: RunEnd },
}

/// An artifact as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactRecord {
    /// Its name.
    pub name: ArtifactName,
    /// The digest of its content; for a verification that of its fingerprint.
    pub digest: Digest,
    /// The length of its file.
    pub bytes: u64,
    /// The fingerprint of its content.
    pub fingerprint: Fingerprint,
}

/// The measured cost of a stage, with its report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Wall-clock seconds.
    pub wall_seconds: f64,
    /// Processor seconds: of all threads of the process meanwhile, or of those of the stage where others ran beside it.
    pub cpu_seconds: f64,
    /// Peak resident memory of the process during the stage, where known; since its start, where the kernel cannot
    /// reset the peak.
    pub memory_peak_bytes: Option<u64>,
    /// Bytes read, without mapped files; `None` in records of older versions.
    #[serde(default)]
    pub read_bytes: Option<u64>,
    /// Bytes written; `None` as for those read.
    #[serde(default)]
    pub written_bytes: Option<u64>,
    /// The report of the stage.
    #[serde(flatten)]
    pub report: StageReport,
}

impl Measured {
    /// Returns the positions per second of wall-clock time, if there were any.
    pub fn rate(&self) -> Option<f64> {
        (self.report.positions > 0 && self.wall_seconds > 0.0).then(|| self.report.positions as f64 / self.wall_seconds)
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEnd {
    /// Everything requested is built.
    Done,
    /// It was stopped on request, and can be resumed.
    Stopped,
    /// It failed with this error.
    Failed(String),
}

fn yes() -> bool {
    true
}

/// Returns the start of a message, so that no record exceeds its bound.
pub(crate) fn clip(message: &str) -> String {
    const CHARS_MAX: usize = 4000;
    message.chars().take(CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_need_positions_and_time() {
        let check = |positions, wall_seconds, expect| {
            let measured = Measured { wall_seconds, report: StageReport::new(positions), ..Measured::default() };
            assert_eq!(measured.rate(), expect, "{positions} in {wall_seconds} s");
        };
        check(12, 4.0, Some(3.0));
        check(1, 0.5, Some(2.0));
        check(0, 4.0, None);
        check(12, 0.0, None);
        check(12, -1.0, None);
    }

    #[test]
    fn messages_are_cut_between_characters() {
        assert_eq!(clip("no room"), "no room");
        assert_eq!(clip(&"\u{e4}".repeat(5000)), "\u{e4}".repeat(4000));
    }
}
