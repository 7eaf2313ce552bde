//! The end of a series of runs that make no progress, such as those of a job that a batch system starts again.

use crate::directory::{journal_path, snapshots_path};
use crate::error::{PipelineError, Result};
use crate::journal::{Contents, History, RunEnd, RunSpan, StageOutcome};
use crate::orchestrator::Orchestrator;
use disk::DiskError;
use std::path::PathBuf;
use std::time::Duration;

impl Orchestrator<'_> {
    /// Checks that one of the last runs made progress, if the options say how many may have made none. The
    /// current run, which is in the journal, does not count. A run that has failed ends a series, since its
    /// reason was reported.
    ///
    /// # Errors
    /// [`PipelineError::NoProgress`] if none did; if the journal or the snapshots cannot be read.
    pub(super) fn check_progress(&self) -> Result<()> {
        let Some(runs) = self.options.attempts_max else { return Ok(()) };
        let history = History::of(&Contents::read(self.disk, &journal_path(&self.directory))?.entries);
        let [earlier @ .., _] = &history.runs[..] else { return Ok(()) };
        let last = &earlier[earlier.len().saturating_sub(runs)..];
        if last.len() < runs || !last.iter().all(is_fruitless) {
            return Ok(());
        }
        let began = last.first().map_or(0.0, |run| run.began_at);
        let is_later = |time: Duration| time.as_secs_f64() >= began;
        if self.snapshot_time()?.is_some_and(is_later) {
            return Ok(());
        }
        Err(PipelineError::NoProgress { runs })
    }

    /// Returns the time at which the latest snapshot was written.
    fn snapshot_time(&self) -> Result<Option<Duration>, DiskError> {
        let mut folders: Vec<PathBuf> = self.disk.list_directories(&snapshots_path(&self.directory))?;
        folders.extend(self.work.local_snapshots(self.disk, &self.directory));
        let mut latest = None;
        for folder in folders {
            for path in self.disk.list(&folder)? {
                latest = latest.max(self.disk.modified(&path)?);
            }
        }
        Ok(latest)
    }
}

/// Whether a run can be resumed and has completed no stage.
fn is_fruitless(run: &RunSpan) -> bool {
    let is_done = |outcome: &StageOutcome| matches!(outcome, StageOutcome::Done(_));
    matches!(run.end, None | Some(RunEnd::Stopped)) && !run.stages.iter().any(|stage| is_done(&stage.outcome))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::{Event, Observer};
    use crate::orchestrator::RunOptions;
    use crate::toy::Design;
    use crate::{Exit, Work};
    use disk::{Disk, RealDisk};
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Stops the run at the event of this name.
    struct StopAt<'a>(fn(&Event) -> bool, &'a AtomicBool);

    impl Observer for StopAt<'_> {
        fn notice(&self, event: &Event) {
            if (self.0)(event) {
                self.1.store(true, Ordering::Relaxed);
            }
        }
    }

    fn run(directory: &Path, work: &dyn Work, stop_at: fn(&Event) -> bool) -> Result<Exit> {
        let options = RunOptions { attempts_max: Some(2), ..RunOptions::default() };
        let (disk, stop) = (RealDisk::default(), AtomicBool::new(false));
        let observer = StopAt(stop_at, &stop);
        let orchestrator = Orchestrator::new(&disk, directory, work, options).observer(&observer).stop(&stop);
        orchestrator.run().map(|summary| summary.exit())
    }

    const AT_ONCE: fn(&Event) -> bool = |event| matches!(event, Event::RunStarted { .. });
    const AFTER_A_STAGE: fn(&Event) -> bool = |event| matches!(event, Event::StageDone { .. });

    #[test]
    fn a_series_of_runs_without_progress_ends() {
        let place = tempfile::tempdir().unwrap();
        let (directory, toy) = (place.path().join("run"), Design::default().toy());
        let run = |stop_at| run(&directory, &toy, stop_at);
        assert_eq!(run(AT_ONCE).unwrap(), Exit::Stopped);
        assert_eq!(run(AT_ONCE).unwrap(), Exit::Stopped);
        let error = run(|_| false).unwrap_err();
        assert!(matches!(error, PipelineError::NoProgress { runs: 2 }), "{error}");
        assert_eq!(error.exit(), Exit::StageFailed);
        // The failure ends the series; a completed stage too.
        for stop_at in [AT_ONCE, AT_ONCE] {
            assert_eq!(run(stop_at).unwrap(), Exit::Stopped);
        }
        run(AFTER_A_STAGE).unwrap_err();
        for stop_at in [AFTER_A_STAGE, AT_ONCE, AFTER_A_STAGE, AT_ONCE] {
            assert_eq!(run(stop_at).unwrap(), Exit::Stopped);
        }
        assert_eq!(run(|_| false).unwrap(), Exit::Done);
    }

    #[test]
    fn a_snapshot_is_progress() {
        let place = tempfile::tempdir().unwrap();
        let (directory, toy) = (place.path().join("run"), Design::default().toy());
        for _ in 0..2 {
            assert_eq!(run(&directory, &toy, AT_ONCE).unwrap(), Exit::Stopped);
        }
        let disk = RealDisk::default();
        let folder = snapshots_path(&directory).join("solve-1");
        disk.create_dir_all(&folder).unwrap();
        disk.post(&folder.join("part"), b"saved").unwrap();
        assert_eq!(run(&directory, &toy, |_| false).unwrap(), Exit::Done);
    }
}
