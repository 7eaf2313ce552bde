//! The stage `stats:n`: the figures that the papers report, counted over the whole database: by the stages that solved and
//! verified it, if they ran in this process, else here, by all ranks of a job.

use crate::{Shared, cluster, files};
use check::{CaptureChoice, Histogram, Statistics};
use disk::{Digest, Staged};
use engines::{DatabasePart, Tables};
use game::{Index, Score};
use pipeline::{ArtifactName, StageContext, StageError, StageReport};
use std::sync::{Mutex, PoisonError};
use store::{CachedScores, FileKind, Scores};

/// Decoded blocks of scores: each is needed while the parts of its rows are read, one after the other on each thread.
const CACHE_BYTES: u64 = 8 << 20;

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let open = |name: &ArtifactName, kind| {
        files::open_windowed(context.disk(), &context.input(name), settings, kind, &index)
            .map_err(|error| files::unreadable(name, error))
    };
    let (captures_name, scores_name) = (files::capture(stones), files::database(stones));
    let captures = open(&captures_name, FileKind::Capture)?;
    let scores = open(&scores_name, FileKind::Database)?;
    let handed = shared.handed();
    let counted = handed.choice(captures.digest(), scores.digest()).zip(handed.histogram(scores.digest()));
    let mut loads = None;
    let Counted { choice, histogram } = match (counted, shared.job_that_shares(stones)) {
        (Some((choice, histogram)), _) => Counted { choice, histogram },
        (None, Some(job)) => {
            let (counted, all) = cluster::count(shared, job, &index, context)?;
            loads = Some(all);
            counted
        }
        (None, None) => {
            let stripe_bytes = shared.plan(stones).memory().stats_stripe_bytes;
            count(&shared.tables(), &index, stripe_bytes, DatabasePart::WHOLE, &captures, scores)?
        }
    };
    let choice = CaptureChoice { positions: index.positions(), offered: choice.offered, declined: choice.declined };
    let text = Statistics::new(stones, histogram, choice).json() + "\n";
    let name = files::stats(stones);
    let path = context.output(&name);
    let mut staged = Staged::create(context.disk(), &path, text.len() as u64)?;
    staged.write(text.as_bytes())?;
    staged.publish()?;
    let report = StageReport::new(index.positions()).wrote(name, Digest::of(text.as_bytes()));
    Ok(match loads {
        Some(loads) => loads.report(report),
        None => report,
    })
}

/// What was counted.
pub(crate) struct Counted {
    pub(crate) choice: engines::ChoiceCounts,
    pub(crate) histogram: Histogram,
}

/// Reads captures and scores, and counts a part. Each score is read once, so they are counted by the way; none is beyond
/// the range that the file gives.
pub(crate) fn count(
    tables: &Tables,
    index: &Index,
    stripe_bytes: u64,
    part: DatabasePart,
    captures: &Scores,
    scores: Scores,
) -> Result<Counted, StageError> {
    let stones = index.stones();
    let scores = CachedScores::new(scores, CACHE_BYTES);
    let end = |first: u64, out: &[Score]| first..first + out.len() as u64;
    let read_captures = |first: u64, out: &mut [Score]| {
        captures.read_range(end(first, out), out).map_err(|error| files::unreadable(&files::capture(stones), error))
    };
    let histogram = Mutex::new(Histogram::EMPTY);
    let read_scores = |first: u64, out: &mut [Score]| {
        scores.read_range(end(first, out), out).map_err(|error| files::unreadable(&files::database(stones), error))?;
        let counted = Histogram::of_scores(out);
        let mut histogram = histogram.lock().unwrap_or_else(PoisonError::into_inner);
        *histogram = histogram.plus(&counted);
        Ok(())
    };
    let choice = engines::choice(tables, index, stripe_bytes as usize, part, &read_captures, &read_scores)?;
    Ok(Counted { choice, histogram: histogram.into_inner().unwrap_or_else(PoisonError::into_inner) })
}
