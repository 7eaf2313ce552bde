//! The ranks of a job: the one that leads, those that follow, and the watch that ends all when one of them is lost.

use crate::args::ManifestArgs;
use crate::builds::job_role::{JobMember, JobRole};
use crate::builds::logs;
use crate::builds::request::ResolvedBuild;
use crate::error::{CliError, Result};
use crate::signals;
use crate::text::terminal::say;
use disk::{Io, RealDisk};
use messaging::CommunicationError;
use pipeline::{Event, Exit, Observer};
use stages::distributed::{JobLeader, LostRank, RankWatch, Roster};
use std::cell::Cell;
use std::error::Error;
use std::iter::successors;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The job of which this process is rank 0.
pub(crate) struct LedJob {
    leader: Arc<JobLeader>,
    roster: Roster,
    watch: OnceLock<RankWatch>,
}

impl LedJob {
    /// Starts to lead a job.
    pub(crate) fn new(member: JobMember) -> Result<LedJob> {
        let leader = Arc::new(JobLeader::new(member.communicator).map_err(CliError::Thread)?);
        Ok(LedJob { leader, roster: member.roster, watch: OnceLock::new() })
    }

    pub(crate) fn leader(&self) -> &Arc<JobLeader> {
        &self.leader
    }

    /// Starts the watch over the other ranks, in a directory that is not claimed yet.
    pub(crate) fn watch(&self, directory: &Path) -> Result<&RankWatch> {
        let started = watch(directory, self.roster.clone(), 0)?;
        Ok(self.watch.get_or_init(|| started))
    }

    /// Ends the job on all ranks. The watch ends last, so that a rank that is lost meanwhile is noticed.
    pub(crate) fn end(self) {
        let LedJob { leader, watch, .. } = self;
        leader.dismiss();
        drop(leader);
        drop(watch);
    }
}

/// Runs `lead` if this process is alone, or rank 0 of a job; otherwise takes part in what rank 0 leads.
pub(crate) fn run_in_role(
    manifest: &ManifestArgs,
    io: Io,
    directory: Option<&Path>,
    lead: impl FnOnce(Option<&LedJob>, &AtomicBool) -> Result<Exit>,
) -> Result<Exit> {
    // Signals are caught before joining the job, which takes a while. Only rank 0 prints.
    let is_first = messaging::launched_rank().unwrap_or(0) == 0;
    let stop = if is_first { signals::stop_flag()? } else { signals::quiet_stop_flag()? };
    match JobRole::of_this_process()? {
        JobRole::Alone => lead(None, &stop),
        JobRole::First(member) => {
            let job = LedJob::new(member)?;
            let done = lead(Some(&job), &stop);
            if let (Err(error), Some(watch)) = (&done, job.watch.get()) {
                wait_for_loss_after(error, watch);
            }
            job.end();
            done
        }
        JobRole::Other(member) => follow(manifest, io, directory, member, &stop),
    }
}

/// Takes part in a run or a stage that rank 0 leads, in a directory, by default that of the manifest. Prints
/// nothing, but writes the log of the rank.
fn follow(
    manifest: &ManifestArgs,
    io: Io,
    directory: Option<&Path>,
    member: JobMember,
    stop: &AtomicBool,
) -> Result<Exit> {
    let JobMember { mut communicator, roster } = member;
    let rank = communicator.rank();
    let disk = RealDisk::new(io)?;
    let request = ResolvedBuild::read(&disk, manifest);
    let settings = request.as_ref().map(ResolvedBuild::settings).map_err(ToString::to_string);
    if let Ok(settings) = &settings {
        disk.set_threads(settings.threads);
    }
    // Without a manifest the rank leaves with the first order.
    let directory = settings.as_ref().ok().map(|settings| directory.unwrap_or(&settings.dir));
    let watch = directory.map(|directory| watch(directory, roster, rank)).transpose()?;
    let is_logged = Cell::new(false);
    let note = |stage: Option<&str>| {
        watch.iter().for_each(|watch| watch.note(stage.unwrap_or("to wait for rank 0")));
        // Before the first order, rank 0 may not have the lock of the directory.
        if let (Some(_), Some(directory), false) =
            (stage, directory, is_logged.replace(stage.is_some() || is_logged.get()))
        {
            logs::open_rank(&disk, directory, rank);
        }
        match stage {
            Some(stage) => tracing::info!("{stage} begins"),
            None => tracing::info!("waits for rank 0"),
        }
    };
    let done = stages::follow(settings.clone(), &disk, &mut *communicator, stop, &note);
    if let (Err(error), Some(watch)) = (&done, &watch) {
        wait_for_loss_after(error, watch);
    }
    drop(communicator);
    drop(watch);
    done.map_err(|error| CliError::Rank { rank, error: Box::new(error) })?;
    // Only rank 0 exits with the outcome of the run: some launchers kill all ranks when one fails, before rank 0 could
    // print the reason.
    Ok(Exit::Done)
}

/// Starts the watch of a rank over the others.
fn watch(directory: &Path, roster: Roster, rank: usize) -> Result<RankWatch> {
    // A disk of its own: the rings of the other may be full of reads.
    let disk = RealDisk::new(Io::Plain)?;
    RankWatch::start(disk, directory, roster, rank, move |lost| end(lost, rank)).map_err(CliError::Thread)
}

/// If communication failed, waits for the watch to find the rank that was lost, and to end this process.
fn wait_for_loss_after(error: &(dyn Error + 'static), watch: &RankWatch) {
    let failed = |error: &(dyn Error + 'static)| {
        matches!(error.downcast_ref(), Some(CommunicationError::Library { .. } | CommunicationError::Silent { .. }))
    };
    if successors(Some(error), |&error| error.source()).any(failed) {
        tracing::warn!("communication failed: {error}; waits to see whether a rank was lost");
        watch.wait_for_loss();
    }
}

/// Ends this process at once, because a rank was lost: the communicator cannot be relied on to end.
fn end(lost: &LostRank, rank: usize) {
    let message = format!("{lost}; the job ends with {}, and finished work is kept", Exit::Stopped.code());
    tracing::error!(shown = true, "{message}");
    if lost.is_reported_by(rank) {
        say(format_args!("awari: {message}: the same command resumes"));
    }
    signal_hook::low_level::exit(i32::from(Exit::Stopped.code()));
}

/// An observer with which rank 0 notes in its sign of life what it does.
pub(crate) struct WatchObserver<'a> {
    watch: &'a RankWatch,
    inner: &'a dyn Observer,
}

impl<'a> WatchObserver<'a> {
    /// Notes events for `watch`, and forwards all of them.
    pub(crate) fn new(watch: &'a RankWatch, inner: &'a dyn Observer) -> WatchObserver<'a> {
        WatchObserver { watch, inner }
    }
}

impl Observer for WatchObserver<'_> {
    fn notice(&self, event: &Event) {
        let note = |activity: &str| self.watch.note(activity);
        match event {
            // The run holds the lock of the directory from here on.
            Event::RunStarted { .. } => {
                if let Err(error) = self.watch.claim() {
                    tracing::warn!("ranks do not watch each other: {error}");
                }
                note("to plan");
            }
            Event::StageStarted { stage, .. } => note(&stage.to_string()),
            Event::StageDone { stage, .. } => note(&format!("to plan after {stage}")),
            Event::RunEnded { .. } => note("to end the run"),
            _ => {}
        }
        self.inner.notice(event);
    }

    fn interval(&self) -> Duration {
        self.inner.interval()
    }
}
