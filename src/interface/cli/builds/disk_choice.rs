//! The way to the disk that `--io auto` takes: measured in the run directory, if the build is long enough.

use crate::text::terminal::say;
use disk::machine::StreamSpeed;
use disk::{FileSystem, IoChoice, RealDisk};
use pipeline::{Budget, Event, Observer};
use std::path::Path;
use std::time::Duration;

/// The least seconds of a build, as predicted, that are worth a measurement, which takes some tenths of one.
const SECONDS_MIN: f64 = 60.0;

/// Bytes of the file with which a way is measured: at most this, and at most this share of the free space.
const MEASURED_BYTES: u64 = 32 << 20;
const FREE_SHARE: u64 = 16;

/// An observer that lets a disk of [`Io::Auto`](disk::Io::Auto) take the faster way before the first stage.
pub(crate) struct DiskChoiceObserver<'a> {
    disk: &'a RealDisk,
    dir: &'a Path,
    is_quiet: bool,
    inner: &'a dyn Observer,
}

impl<'a> DiskChoiceObserver<'a> {
    /// Measures in `dir`, and forwards all events.
    pub(crate) fn new(disk: &'a RealDisk, dir: &'a Path, is_quiet: bool, inner: &'a dyn Observer) -> Self {
        DiskChoiceObserver { disk, dir, is_quiet, inner }
    }

    fn choose(&self) {
        let free = FileSystem::inspect(self.dir).map_or(0, |storage| storage.free_bytes);
        match IoChoice::measure(self.dir, MEASURED_BYTES.min(free / FREE_SHARE)) {
            Ok(Some(choice)) => {
                self.disk.choose(choice.io);
                let line = sentence(&choice);
                tracing::info!("{line}");
                if !self.is_quiet {
                    say(line);
                }
            }
            // The run says so at its end.
            Ok(None) => {}
            Err(error) => tracing::warn!("the speed of the disk was not measured: {error}"),
        }
    }
}

/// Says which way is taken, and why.
fn sentence(choice: &IoChoice) -> String {
    let rates = |StreamSpeed { write, read }: StreamSpeed| {
        format!("{}/s written, {}/s read", Budget::show(write as u64), Budget::show(read as u64))
    };
    let (uring, plain) = (rates(choice.uring), rates(choice.plain));
    format!("--io auto takes {} here (uring: {uring}; plain: {plain})", choice.io)
}

impl Observer for DiskChoiceObserver<'_> {
    fn notice(&self, event: &Event) {
        if let Event::RunStarted { run_seconds, .. } = event
            && *run_seconds >= SECONDS_MIN
        {
            self.choose();
        }
        self.inner.notice(event);
    }

    fn interval(&self) -> Duration {
        self.inner.interval()
    }
}
