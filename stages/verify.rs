//! The stage `verify:n`: scores derived again by the plain rules, counts against the published ones, every checksum.

use crate::{Shared, files};
use check::{CheckError, Database, Databases, Extent, Histogram, Published, Sample, ScoreSource, Verified};
use disk::{Digest, Disk};
use engines::Bytes;
use game::quantity::plural;
use game::{Index, Score};
use pipeline::{StageContext, StageError, StageReport};
use planner::{DatabasePlan, Settings, Verify};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{BlockCache, CachedScores, FileKind, Scores};

/// Scores that a thread counts at a time.
const COUNTED_POSITIONS: usize = 1 << 18;

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let handed = shared.handed();
    let paths: Vec<_> = with_smaller(settings, stones).map(|stones| context.input(&files::database(stones))).collect();
    let mut kept = BTreeMap::new();
    for (smaller, path) in settings.smaller(stones).zip(&paths).filter(|_| handed.has_databases()) {
        let index = Index::new(smaller, settings.set);
        let scores = files::open_windowed(context.disk(), path, settings, FileKind::Database, &index);
        let digest = scores.map_err(|error| files::unreadable(&files::database(smaller), error))?.digest();
        if let Some(scores) = handed.database(smaller, digest) {
            kept.insert(smaller, scores);
        }
    }
    let plan = shared.plan(stones);
    let opened = Opened::new(settings, plan, context.disk(), &paths, kept, handed.cache_bytes(plan))?;
    let scores = opened.scores();
    // All of it, whatever the sample. No score is beyond the range that the file gives, which was compared.
    let read = |see: &mut dyn FnMut(&[Score])| {
        let mut histogram = Histogram::EMPTY;
        scores.verify_digest_of(|scores| {
            histogram = histogram.plus(&counted(scores));
            see(scores);
        })?;
        Ok(histogram)
    };
    let positions = settings.set.positions(stones);
    let extent = extent(settings);
    context.progress().begin(extent.count(positions), "positions");
    let watch = |more| {
        context.progress().advance(more);
        if context.stop_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let databases = &opened.databases;
    let editions = databases.editions();
    let verified = match opened.round_bytes.map(|bytes| (bytes, extent)) {
        Some((bytes, Extent::Tiles(sample))) => {
            check::verify_streamed(databases, stones, sample, bytes, &mut { read }, &watch)
        }
        _ => {
            read(&mut |_| ()).and_then(|histogram| check::verify_counted(databases, stones, histogram, extent, &watch))
        }
    };
    let verified = databases.unchanged(&editions).and(verified).map_err(|error| wrong(error, stones, &paths))?;
    report(shared, scores.digest(), &verified)
}

/// Databases that a verification reads, by their stones: that of `stones` is the last one.
pub(crate) fn with_smaller(settings: &Settings, stones: u32) -> impl Iterator<Item = u32> {
    settings.smaller(stones).chain([stones])
}

/// How much is derived again.
pub(crate) fn extent(settings: &Settings) -> Extent {
    match settings.verify {
        Verify::Full => Extent::Full,
        Verify::Sample | Verify::None => Extent::Tiles(Sample::default()),
    }
}

/// Positions by score.
pub(crate) fn counted(scores: &[Score]) -> Histogram {
    let counted = scores.par_chunks(COUNTED_POSITIONS).map(Histogram::of_scores);
    counted.reduce(|| Histogram::EMPTY, |a, b| a.plus(&b))
}

/// What is wrong with the databases at these paths, as the error of a stage.
pub(crate) fn wrong(error: CheckError, stones: u32, paths: &[PathBuf]) -> StageError {
    match error {
        CheckError::Stopped => StageError::Stopped,
        CheckError::Store(error) => {
            let at = paths.iter().position(|path| error.path() == Some(path)).filter(|at| at + 1 < paths.len());
            files::unreadable(&files::database(at.map_or(stones, |at| at as u32)), *error)
        }
        wrong => StageError::Damaged { artifact: files::database(stones), what: wrong.what(), silent: true },
    }
}

/// What is left to compare once all was derived.
pub(crate) fn report(shared: &Shared, digest: Digest, verified: &Verified) -> Result<StageReport, StageError> {
    let (settings, stones) = (shared.settings(), verified.stones());
    shared.handed().keep_histogram(digest, verified.histogram());
    let mut report = StageReport::new(settings.set.positions(stones)).with("checked", verified.checked());
    if settings.published {
        let matches = match Published::compare(stones, settings.set, verified.histogram()) {
            Published::Matches => 1u64,
            Published::Absent => 0,
            Published::Differs { score, expected, found } => {
                let what = format!("{} of score {score}, published: {expected}", plural(found, "position"));
                return Err(StageError::Damaged { artifact: files::database(stones), what, silent: true });
            }
        };
        report = report.with("published", matches);
    }
    Ok(report)
}

/// Databases that are open for a verification.
pub(crate) struct Opened {
    stones: u32,
    pub(crate) databases: Databases<Shelf>,
    /// Where a look would decode thousands of scores, and only some are looked at: memory for look-ups that wait to be
    /// made in the order of the files.
    pub(crate) round_bytes: Option<u64>,
}

impl Opened {
    /// Opens them, at paths as [`with_smaller`] says; `kept` are in memory.
    pub(crate) fn new(
        settings: &Settings,
        plan: &DatabasePlan,
        disk: &dyn Disk,
        paths: &[PathBuf],
        mut kept: BTreeMap<u32, Arc<Bytes>>,
        cache_bytes: u64,
    ) -> Result<Opened, StageError> {
        let (stones, mut bytes) = (plan.stones(), 0);
        for (smaller, path) in with_smaller(settings, stones).zip(paths) {
            if !kept.contains_key(&smaller) {
                bytes += disk.bytes(path)?.unwrap_or(0);
            }
        }
        // Half the cache is for look-ups that wait, half for what they then find.
        let is_streamed = settings.codec.is_compressed() && settings.verify != Verify::Full;
        let cache = BlockCache::new(if is_streamed { cache_bytes / 2 } else { cache_bytes });
        let maps = plan.memory().map_bytes_max.is_some_and(|most| bytes <= most);
        let open = if maps { files::open } else { files::open_windowed };
        let mut databases = Databases::new(settings.rules, settings.set);
        for (smaller, path) in with_smaller(settings, stones).zip(paths) {
            if let Some(scores) = kept.remove(&smaller) {
                databases.insert(smaller, Shelf::Kept(scores)).map_err(StageError::failed)?;
                continue;
            }
            let index = Index::new(smaller, settings.set);
            let damaged = |error| files::unreadable(&files::database(smaller), error);
            let scores = open(disk, path, settings, FileKind::Database, &index).map_err(damaged)?;
            let scores = Shelf::File(Box::new(CachedScores::sharing(scores, Arc::clone(&cache))));
            databases.insert(smaller, scores).map_err(StageError::failed)?;
        }
        let mut opened = Opened { stones, databases, round_bytes: None };
        let (positions, extent) = (settings.set.positions(stones), extent(settings));
        let is_part = extent.count(positions) < positions;
        if is_part && is_streamed && !opened.scores().is_in_place() {
            opened.round_bytes = Some(cache_bytes / 2);
        }
        Ok(opened)
    }

    /// The scores to verify.
    pub(crate) fn scores(&self) -> &Scores {
        let Ok(Shelf::File(scores)) = self.databases.get(self.stones).map(Database::scores) else {
            unreachable!("the database itself is read, and was opened just now")
        };
        scores.scores()
    }
}

/// Where the scores of a database are.
pub(crate) enum Shelf {
    File(Box<CachedScores>),
    /// In memory, those that the file has by its digest: smaller databases, verified themselves.
    Kept(Arc<Bytes>),
}

impl ScoreSource for Shelf {
    fn positions(&self) -> u64 {
        match self {
            Shelf::File(scores) => scores.positions(),
            Shelf::Kept(scores) => (&scores[..]).positions(),
        }
    }

    fn score(&self, position: u64) -> Result<Score, CheckError> {
        match self {
            Shelf::File(scores) => scores.score(position),
            Shelf::Kept(scores) => (&scores[..]).score(position),
        }
    }

    fn scores(&self, positions: &[u64], out: &mut [Score]) -> Result<(), CheckError> {
        match self {
            Shelf::File(scores) => ScoreSource::scores(&**scores, positions, out),
            Shelf::Kept(scores) => ScoreSource::scores(&&scores[..], positions, out),
        }
    }

    fn read(&self, first: u64, out: &mut [Score]) -> Result<(), CheckError> {
        match self {
            Shelf::File(scores) => scores.read(first, out),
            Shelf::Kept(scores) => (&scores[..]).read(first, out),
        }
    }

    fn edition(&self) -> u64 {
        match self {
            Shelf::File(scores) => scores.edition(),
            Shelf::Kept(_) => 0,
        }
    }

    fn path(&self) -> &Path {
        match self {
            Shelf::File(scores) => ScoreSource::path(&**scores),
            Shelf::Kept(_) => Path::new(""),
        }
    }
}
