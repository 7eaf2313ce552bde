//! What the journal says: its records, as JSON objects with the kind under `kind`.
//!
//! Fields may be added with a default; a kind that a reader does not know is skipped.

use disk::Digest;
use serde::{Deserialize, Serialize};

use crate::artifact::ArtifactName;
use crate::fingerprint::{Fingerprint, hex};
use crate::report::StageReport;
use crate::stage::StageName;

/// A record with the circumstances in which it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The fencing counter: one more for each holder of the directory's lock that writes. What a
    /// holder of a lower number wrote after one of a higher number does not count.
    pub run: u64,
    /// Seconds since 1970.
    pub at: u64,
    /// Milliseconds of that second; 0 in records of versions that counted whole seconds. These versions pass the field
    /// over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub millis: u16,
    /// What happened.
    #[serde(flatten)]
    pub record: Record,
}

impl Entry {
    /// When it was written, in seconds since 1970.
    pub fn seconds(&self) -> f64 {
        self.at as f64 + f64::from(self.millis.min(999)) / 1e3
    }
}

fn is_zero(millis: &u16) -> bool {
    *millis == 0
}

/// The last sign of life of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastSign {
    /// The run.
    pub run: u64,
    /// Seconds since 1970.
    pub at: u64,
}

/// Something that happened in a run directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Record {
    /// A run has work to do and begins.
    RunStarted {
        /// The command line.
        command: String,
        /// Name and version of the program.
        program: String,
        /// The machine.
        host: String,
        /// The process.
        pid: u32,
        /// Threads used.
        threads: usize,
        /// Memory budget.
        memory_bytes: u64,
        /// Digest of the resolved manifest.
        #[serde(with = "hex")]
        manifest: Digest,
        /// The last sign of life of a run that was killed here, if it left one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        killed: Option<LastSign>,
    },
    /// A stage begins.
    StageStarted {
        /// Which.
        stage: StageName,
        /// Why, in words.
        reason: String,
    },
    /// A stage is done; its outputs are durable.
    StageDone {
        /// Which.
        stage: StageName,
        /// What it made.
        artifacts: Vec<ArtifactRecord>,
        /// What it took.
        measured: Measured,
    },
    /// A stage failed.
    StageFailed {
        /// Which.
        stage: StageName,
        /// Why.
        message: String,
    },
    /// A file was taken over on the word of its header.
    Adopted {
        /// Which.
        artifact: ArtifactRecord,
    },
    /// An artifact is damaged.
    DamageFound {
        /// Which.
        artifact: ArtifactName,
        /// What is wrong with it.
        what: String,
        /// Whether stages read it all the same, so that what was made from it may be wrong as well. Assumed where a
        /// record does not say: the first versions did not.
        #[serde(default = "yes")]
        silent: bool,
    },
    /// An artifact was checked, outside of a stage.
    Verified {
        /// Which.
        artifact: ArtifactName,
        /// The digest of its content.
        #[serde(with = "hex")]
        digest: Digest,
        /// By which check.
        how: String,
        /// Whether only a sample was checked. A whole check that passes takes back earlier damage.
        sampled: bool,
    },
    /// Files that were no longer needed were removed.
    Removed {
        /// Which.
        artifacts: Vec<ArtifactName>,
    },
    /// The run is over. Absent if it was killed.
    RunEnded {
        /// How.
        how: RunEnd,
    },
}

/// An artifact as it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactRecord {
    /// Its name.
    pub name: ArtifactName,
    /// The digest of its content; for a verification that of its fingerprint.
    #[serde(with = "hex")]
    pub digest: Digest,
    /// The length of its file.
    pub bytes: u64,
    /// What decided its content.
    pub fingerprint: Fingerprint,
}

/// What a stage took, and what it says about its run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Wall-clock seconds.
    pub wall_seconds: f64,
    /// Processor seconds of all threads.
    pub cpu_seconds: f64,
    /// The most memory that the process had resident during the stage, where known; where the kernel does not let the
    /// mark be taken back, up to the end of the stage.
    pub memory_peak_bytes: Option<u64>,
    /// Bytes read, mapped files left out; `None` in records of versions that did not count them.
    #[serde(default)]
    pub read_bytes: Option<u64>,
    /// Bytes written; `None` as above.
    #[serde(default)]
    pub written_bytes: Option<u64>,
    /// What the stage says.
    #[serde(flatten)]
    pub report: StageReport,
}

impl Measured {
    /// Positions a second of wall-clock time, if there were any.
    pub fn rate(&self) -> Option<f64> {
        (self.report.positions > 0 && self.wall_seconds > 0.0).then(|| self.report.positions as f64 / self.wall_seconds)
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEnd {
    /// All that was asked for is there.
    Done,
    /// On request; it can be resumed.
    Stopped,
    /// With this error.
    Failed(String),
}

fn yes() -> bool {
    true
}

/// The start of a message, so that no record outgrows its bound.
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
