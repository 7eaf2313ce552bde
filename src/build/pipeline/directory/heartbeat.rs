//! The heartbeat file: the current stages and progress of an active run.
//!
//! `heartbeat` in the run directory is one JSON object, replaced every second and removed when the run ends. Nothing
//! depends on it: the lock determines whether a run is active.

use crate::directory::layout::heartbeat_path;
use crate::progress::{BoundReading, PassReading};
use crate::stage::StageName;
use disk::Disk;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Seconds without a heartbeat after which a run counts as stalled.
pub const SILENT_SECONDS_MAX: u64 = 30;

/// Seconds without progress after which a stage counts as stalled.
pub const IDLE_SECONDS_MAX: u64 = 300;

/// The maximum length of a heartbeat file, in bytes: a stage takes some hundreds.
const BYTES_MAX: u64 = 64 << 10;

/// The current stages and progress of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The number of the run.
    pub run: u64,
    /// When this was written, in seconds since 1970.
    pub at: u64,
    /// The steps of this run, as currently planned.
    pub steps: usize,
    /// Estimated seconds left for the run: the prediction of the plan, corrected by the progress so far.
    pub run_left_seconds: Option<f64>,
    /// Resident memory of the process, where known.
    pub memory_bytes: Option<u64>,
    /// The current stage; of several, the one that began first.
    #[serde(flatten)]
    pub first: StageHeartbeat,
    /// The stages that run beside it, in the order in which they began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<StageHeartbeat>,
}

/// The progress of a running stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageHeartbeat {
    /// Which.
    pub stage: StageName,
    /// Its number among the steps of this run, from 1.
    pub number: usize,
    /// Completed units of the stage, or of the current pass.
    pub done: u64,
    /// Units in total; 0 if unknown.
    pub total: u64,
    /// Name of the unit.
    pub unit: String,
    /// The current bound, where there are bounds.
    #[serde(default)]
    pub bound: Option<BoundReading>,
    /// The current pass, where there are passes.
    #[serde(default)]
    pub pass: Option<PassReading>,
    /// Seconds since the stage began to write its result.
    #[serde(default)]
    pub writing_seconds: Option<f64>,
    /// Seconds since the stage began.
    pub seconds: f64,
    /// When `done` last changed, in seconds since 1970.
    pub advanced_at: u64,
    /// Estimated seconds left for the stage.
    pub stage_left_seconds: Option<f64>,
}

impl Heartbeat {
    /// Reads the heartbeat of a run directory, if there is a readable one.
    pub fn read(disk: &dyn Disk, directory: &Path) -> Option<Heartbeat> {
        serde_json::from_slice(&disk.read(&heartbeat_path(directory), BYTES_MAX).ok()?).ok()
    }

    /// Returns all current stages, in the order in which they began.
    pub fn stages(&self) -> impl Iterator<Item = &StageHeartbeat> {
        std::iter::once(&self.first).chain(&self.beside)
    }

    /// Describes why the run counts as stalled at `now`, in seconds since 1970, if it does.
    pub fn stalled(&self, now: u64) -> Option<String> {
        let silent = now.saturating_sub(self.at);
        let advanced_at = self.stages().map(|stage| stage.advanced_at).max().unwrap_or(0);
        let idle = now.saturating_sub(advanced_at);
        if silent > SILENT_SECONDS_MAX {
            Some(format!("no heartbeat for {silent} s; the process hangs or was suspended"))
        } else if idle > IDLE_SECONDS_MAX {
            Some(format!("no progress for {idle} s"))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::MemoryDisk;

    #[test]
    fn a_silent_and_an_idle_run_are_stalled() {
        let text = r#"{"run":1,"at":1000,"stage":"sweep:9","number":1,"steps":2,"done":1,"total":2,"unit":"rows",
            "seconds":1.0,"advanced_at":990,"stage_left_seconds":null,"run_left_seconds":3.0,"memory_bytes":null}"#;
        let seen: Heartbeat = serde_json::from_str(text).unwrap();
        assert_eq!(seen.stalled(1005), None);
        assert!(seen.stalled(1031).unwrap().starts_with("no heartbeat for 31 s"));
        let first = StageHeartbeat { advanced_at: 600, ..seen.first.clone() };
        let seen = Heartbeat { first: first.clone(), ..seen };
        assert_eq!(seen.stalled(1000).unwrap(), "no progress for 400 s");
        // Another stage advances.
        let seen = Heartbeat { beside: vec![StageHeartbeat { advanced_at: 990, ..first }], ..seen };
        assert_eq!(seen.stalled(1000), None);
        assert_eq!(serde_json::from_str::<Heartbeat>(&serde_json::to_string(&seen).unwrap()).unwrap(), seen);
    }

    #[test]
    fn other_files_are_not_a_heartbeat() {
        let disk = MemoryDisk::new();
        let directory = Path::new("/run");
        for text in [&b""[..], b"{}", b"\xff", &[b' '; 5000]] {
            disk.put(&heartbeat_path(directory), text);
            assert_eq!(Heartbeat::read(&disk, directory), None);
        }
    }
}
