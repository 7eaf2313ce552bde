//! Logs: `tracing` events of libraries, as warnings on stderr and in a file for each stage.
//!
//! `logs/STAGE.log` in the run directory holds every attempt at a stage, `logs/run.log` the events between stages, and
//! `logs/rank-NNNN.log` those of another rank than 0 of a job.
//! Logs are for people: nothing reads them, they are not synced, and a run continues if they cannot be written.

use crate::builds::progress::StagePace;
use crate::text::quantity;
use crate::text::terminal::{printable, say};
use disk::{Disk, OutputFile, RealDisk};
use pipeline::directory::{RUN_LOG, log_path};
use pipeline::{Budget, Event, Observer, thread_label};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::{Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// The beginning of the name of the log of a rank other than 0.
pub(crate) const RANK_LOG: &str = "rank-";

/// The open log files of the process, which has one run.
static OPEN: Mutex<OpenLogs> = Mutex::new(OpenLogs { run: None, stages: BTreeMap::new() });

/// The open log files of a run.
struct OpenLogs {
    /// The log of events between stages.
    run: Option<Box<dyn OutputFile>>,
    /// The logs of the running stages, by name.
    stages: BTreeMap<String, Option<Box<dyn OutputFile>>>,
}

impl OpenLogs {
    /// Returns the log for an event on this thread: that of the stage which the thread works for, by its
    /// label; without a label that of the only stage, else that of the run.
    fn current(&mut self) -> Option<&mut Box<dyn OutputFile>> {
        match (thread_label::label(), self.stages.len()) {
            (Some(label), _) if self.stages.contains_key(&*label) => self.stages.get_mut(&*label)?.as_mut(),
            (None, 1) => self.stages.values_mut().next()?.as_mut(),
            _ => self.run.as_mut(),
        }
    }
}

fn open_logs() -> MutexGuard<'static, OpenLogs> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts printing warnings and writing to the open log.
pub(crate) fn begin(level: LevelFilter) {
    let files = tracing_subscriber::fmt::layer().with_ansi(false).with_target(false).with_writer(LogFiles);
    // Fails only if another subscriber is installed.
    let _ = tracing_subscriber::registry().with(Warnings).with(files.with_filter(level)).try_init();
}

/// Returns the path of the log of a stage, or of the events between stages.
pub(crate) fn path(dir: &Path, stage: Option<&pipeline::StageName>) -> PathBuf {
    log_path(dir, &stage.map_or_else(|| RUN_LOG.to_owned(), log_name))
}

/// Returns a file name for a stage that sorts as the stages do: `process-08-03`.
fn log_name(stage: &pipeline::StageName) -> String {
    let parameters = stage.parameters().iter().map(|parameter| format!("-{parameter:02}"));
    std::iter::once(stage.kind().to_owned()).chain(parameters).collect()
}

/// Opens the log of a rank other than 0, which writes all its events to one file.
pub(crate) fn open_rank(disk: &RealDisk, dir: &Path, rank: usize) {
    let output = disk.append(&log_path(dir, &format!("{RANK_LOG}{rank:04}"))).ok();
    open_logs().run = output;
}

/// An observer that opens the log of each stage and writes the events of the run to it.
pub(crate) struct LogObserver<'a> {
    disk: &'a RealDisk,
    dir: &'a Path,
    inner: &'a dyn Observer,
}

impl<'a> LogObserver<'a> {
    /// Logs to files of `dir`, and forwards all events.
    pub(crate) fn new(disk: &'a RealDisk, dir: &'a Path, inner: &'a dyn Observer) -> LogObserver<'a> {
        LogObserver { disk, dir, inner }
    }

    fn append(&self, stage: Option<&pipeline::StageName>) -> Option<Box<dyn OutputFile>> {
        self.disk.append(&path(self.dir, stage)).ok()
    }

    fn open_run(&self) {
        let output = self.append(None);
        open_logs().run = output;
    }

    /// Writes the last events of a stage to its log, closes it, and writes others to the log of the run.
    fn end(&self, stage: &pipeline::StageName, last: impl FnOnce(), then: impl FnOnce()) {
        labelled(&stage.to_string(), last);
        open_logs().stages.remove(&stage.to_string());
        labelled(RUN_LOG, then);
    }
}

/// Does something whose events go to the log of a stage, or of the run.
fn labelled(name: &str, log: impl FnOnce()) {
    thread_label::labelled(Some(name.into()), log);
}

impl Observer for LogObserver<'_> {
    fn notice(&self, event: &Event) {
        match event {
            Event::RunStarted { run, counts, run_seconds: seconds, .. } => {
                self.open_run();
                tracing::info!("run {run}: {counts}; {seconds:.0} s predicted");
            }
            Event::StageStarted { stage, reason, number, steps, cost } => {
                labelled(RUN_LOG, || {
                    tracing::info!("{stage}: stage {number} of {steps}; reason: {reason}");
                });
                let output = self.append(Some(stage));
                open_logs().stages.insert(stage.to_string(), output);
                labelled(&stage.to_string(), || {
                    tracing::info!(
                        "begins; reason: {reason}; predicted: {}, {} of memory, {} of disk",
                        quantity::about(cost.seconds),
                        Budget::show(cost.memory_bytes),
                        Budget::show(cost.disk_bytes)
                    );
                });
            }
            Event::StageDone { stage, measured, bytes } => {
                let done = || tracing::info!("done: {}; {} made", measures(measured), Budget::show(*bytes));
                self.end(stage, done, || ());
            }
            Event::StageStopped { stage } => {
                let stopped = || tracing::info!("stopped on request");
                self.end(stage, stopped, || tracing::info!("{stage} stopped on request"));
            }
            Event::StageFailed { stage, message } => {
                let failed = || tracing::error!(shown = true, "failed: {message}");
                self.end(stage, failed, || tracing::error!(shown = true, "{stage} failed: {message}"));
            }
            Event::DamageFound { artifact, what } => tracing::warn!(shown = true, "damage in {artifact}: {what}"),
            Event::JournalCut { bytes } => {
                self.open_run();
                tracing::warn!(
                    shown = true,
                    "{} of a torn record cut off the journal after a crash",
                    quantity::plural(*bytes, "byte")
                );
            }
            Event::Adopted { artifacts } => {
                tracing::info!("{} adopted (headers checked)", quantity::plural(artifacts.len() as u64, "file"))
            }
            Event::Removed { artifacts, bytes } => {
                let files = quantity::plural(artifacts.len() as u64, "file");
                tracing::info!("removed {files} that no stage needs, {}", Budget::show(*bytes));
            }
            Event::RunEnded { how, seconds } => {
                tracing::info!("the run ends after {seconds:.1} s: {how:?}");
                *open_logs() = OpenLogs { run: None, stages: BTreeMap::new() };
            }
            Event::Progress { stage, reading, seconds } => {
                let words = StagePace::of_event(reading, *seconds).words(stage).join(", ");
                tracing::debug!("{words} after {seconds:.1} s");
            }
        }
        self.inner.notice(event);
    }

    fn interval(&self) -> Duration {
        self.inner.interval()
    }
}

/// Formats the measurements and counters of a stage.
fn measures(measured: &pipeline::journal::Measured) -> String {
    let mut text = format!("{:.3} s, {:.3} s of processor time", measured.wall_seconds, measured.cpu_seconds);
    let bytes = [
        ("peak memory", measured.memory_peak_bytes),
        ("read", measured.read_bytes),
        ("written", measured.written_bytes),
    ];
    for (name, bytes) in bytes {
        if let Some(bytes) = bytes {
            let _ = write!(text, ", {name} {}", Budget::show(bytes));
        }
    }
    for (name, counter) in &measured.report.counters {
        let _ = write!(text, ", {name} {}", counter.as_f64());
    }
    text
}

/// A writer to the open log, if there is one.
struct LogFiles;

impl<'a> MakeWriter<'a> for LogFiles {
    type Writer = LogWriter;

    fn make_writer(&'a self) -> LogWriter {
        LogWriter
    }
}

/// A writer that appends to the open log.
struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(output) = open_logs().current() {
            let _ = output.write(printable(&String::from_utf8_lossy(bytes)).as_bytes());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Prints warnings and errors of libraries on stderr.
struct Warnings;

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() > Level::WARN {
            return;
        }
        let mut warning = Warning { text: String::from("warning:"), is_shown: false };
        event.record(&mut warning);
        if !warning.is_shown {
            say(warning.text);
        }
    }
}

struct Warning {
    text: String,
    /// Whether the progress display prints the event.
    is_shown: bool,
}

impl Visit for Warning {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.is_shown |= field.name() == "shown" && value;
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let name = match field.name() {
            "message" => String::new(),
            name => format!("{name} = "),
        };
        let _ = write!(self.text, " {name}{value:?}");
    }
}
