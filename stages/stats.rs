//! The stage `stats:n`: the figures that the papers report, counted over the whole database.
//!
//! The stages that solve and verify a database count them as well; if they ran in this process, nothing is read.

use crate::{BuildContext, Result, declaration, files};
use check::{CaptureStatistics, Histogram, Statistics};
use disk::{Digest, Staged};
use engines::{DatabasePart, Tables};
use game::{Index, Score};
use pipeline::{ArtifactKind, ArtifactName, ArtifactSpec, StageContext, StageReport, StageSpec};
use planner::{DatabasePlan, Settings};
use std::sync::{Mutex, PoisonError};
use store::{CachedScores, FileKind, Scores};

/// Cache of decoded blocks: a block is needed while each thread reads the parts of its rows.
const CACHE_BYTES: u64 = 8 << 20;

/// Version of statistics, raised when the same databases give other figures.
const VERSION: u32 = 1;

/// Declares the stage: it reads captures and scores, and makes the statistics.
pub(crate) fn declare(settings: &Settings, plan: &DatabasePlan) -> (StageSpec, Vec<ArtifactSpec>) {
    let (stones, stats) = (plan.stones(), files::stats(plan.stones()));
    let inputs = vec![files::capture(stones), files::database(stones)];
    let stage = declaration::stage(plan, "stats", None, inputs, vec![stats.clone()]);
    let stats = declaration::artifact(settings, stones, stats, ArtifactKind::Report, "statistics");
    (stage, vec![stats.version(VERSION)])
}

/// Runs the stage.
pub(crate) fn run(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    let index = Index::new(stones, build.settings().set);
    let inputs = StatsInputs::open(build, &index, context)?;
    let counted = match inputs.cached(build) {
        Some(counted) => counted,
        None => {
            let stripe_bytes = build.plan(stones).memory().stats_stripe_bytes;
            count(&build.tables(), &index, stripe_bytes, DatabasePart::WHOLE, &inputs.captures, inputs.scores)?
        }
    };
    publish(&index, counted, context)
}

/// The files that the stage reads.
pub(crate) struct StatsInputs {
    captures: Scores,
    scores: Scores,
}

impl StatsInputs {
    pub(crate) fn open(build: &BuildContext, index: &Index, context: &StageContext) -> Result<StatsInputs> {
        let open = |name: ArtifactName, kind| {
            files::open_windowed(context.disk(), &context.input(&name), build.settings(), kind, index)
                .map_err(|error| files::unreadable(&name, error))
        };
        let captures = open(files::capture(index.stones()), FileKind::Capture)?;
        Ok(StatsInputs { captures, scores: open(files::database(index.stones()), FileKind::Database)? })
    }

    /// Returns what the stages that solved and verified the database have counted, if they ran in this process.
    pub(crate) fn cached(&self, build: &BuildContext) -> Option<CountedDatabase> {
        let (cache, scores) = (build.stage_cache(), self.scores.digest());
        let counted = cache.choice(self.captures.digest(), scores).zip(cache.histogram(scores));
        counted.map(|(choice, histogram)| CountedDatabase { choice, histogram })
    }
}

/// Publishes the statistics.
pub(crate) fn publish(index: &Index, counted: CountedDatabase, context: &StageContext) -> Result<StageReport> {
    let CountedDatabase { choice, histogram } = counted;
    let choice = CaptureStatistics { positions: index.positions(), offered: choice.offered, declined: choice.declined };
    let text = Statistics::new(index.stones(), histogram, choice).json() + "\n";
    let name = files::stats(index.stones());
    let path = context.output(&name);
    let mut staged = Staged::create(context.disk(), &path, text.len() as u64)?;
    staged.write(text.as_bytes())?;
    staged.publish()?;
    Ok(StageReport::new(index.positions()).wrote(name, Digest::of(text.as_bytes())))
}

/// Counts over a database.
pub(crate) struct CountedDatabase {
    pub(crate) choice: engines::ChoiceCounts,
    pub(crate) histogram: Histogram,
}

/// Reads captures and scores of a part of the database, and counts them. Each score is read once.
pub(crate) fn count(
    tables: &Tables,
    index: &Index,
    stripe_bytes: u64,
    part: DatabasePart,
    captures: &Scores,
    scores: Scores,
) -> Result<CountedDatabase> {
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
    Ok(CountedDatabase { choice, histogram: histogram.into_inner().unwrap_or_else(PoisonError::into_inner) })
}
