//! The stage `verify:n`: scores derived again by the plain rules, counts against the published ones, every checksum.

use crate::{Shared, files, graph, settings::Verify};
use check::{CheckError, Database, Databases, Extent, Histogram, Look, Published, Sample};
use engines::Bytes;
use game::{Index, Score};
use pipeline::{StageContext, StageError, StageReport};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use store::{BlockCache, CachedScores, Kind};

/// Scores that a thread counts at a time.
const COUNTED_POSITIONS: usize = 1 << 18;

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let name = files::database(stones);
    let positions = settings.set.positions(stones);
    let names = || settings.smaller(stones).chain([stones]).map(|stones| (stones, files::database(stones)));
    let reads = graph::positions_with_smaller(settings, stones);
    let handed = shared.handed();
    let mut kept = BTreeMap::new();
    let mut bytes = 0;
    for (smaller, name) in names() {
        let path = context.input(&name);
        if smaller < stones && handed.has_databases() {
            let index = Index::new(smaller, settings.set);
            let scores = files::open_windowed(context.disk(), &path, settings, Kind::Database, &index);
            let digest = scores.map_err(|error| files::unreadable(&name, error))?.digest();
            if let Some(scores) = handed.database(smaller, digest) {
                kept.insert(smaller, scores);
                continue;
            }
        }
        bytes += context.disk().bytes(&path)?.unwrap_or(0);
    }
    let cache_bytes = handed.cache_bytes(settings, stones);
    // A look would decode thousands of scores. Half the cache is for look-ups that wait, half for what they then find.
    let is_streamed = settings.codec.is_compressed() && settings.verify != Verify::Full;
    let cache = BlockCache::new(if is_streamed { cache_bytes / 2 } else { cache_bytes });
    let maps = graph::has_room_for_maps(settings, bytes, reads);
    let open = if maps { files::open } else { files::open_windowed };
    let mut databases = Databases::new(settings.rules, settings.set);
    for (smaller, name) in names() {
        if let Some(scores) = kept.remove(&smaller) {
            databases.insert(smaller, Shelf::Kept(scores)).map_err(StageError::failed)?;
            continue;
        }
        let index = Index::new(smaller, settings.set);
        let damaged = |error| files::unreadable(&name, error);
        let scores = open(context.disk(), &context.input(&name), settings, Kind::Database, &index).map_err(damaged)?;
        let scores = Shelf::File(Box::new(CachedScores::sharing(scores, Arc::clone(&cache))));
        databases.insert(smaller, scores).map_err(StageError::failed)?;
    }
    let sample = Sample::default();
    let extent = match settings.verify {
        Verify::Full => Extent::Full,
        Verify::Sample | Verify::None => Extent::Tiles(sample),
    };
    let Ok(Shelf::File(scores)) = databases.get(stones).map(Database::scores) else {
        unreachable!("the database itself is read, and was opened just now")
    };
    // All of it, whatever the sample. No score is beyond the range that the file gives, which was compared.
    let read = |see: &mut dyn FnMut(&[Score])| {
        let mut histogram = Histogram::EMPTY;
        scores.scores().verify_digest_of(|scores| {
            let counted = scores.par_chunks(COUNTED_POSITIONS).map(Histogram::of_scores);
            histogram = histogram.plus(&counted.reduce(|| Histogram::EMPTY, |a, b| a.plus(&b)));
            see(scores);
        })?;
        handed.keep_histogram(scores.scores().digest(), &histogram);
        Ok(histogram)
    };
    context.progress().begin(extent.count(positions), "positions");
    let watch = |more| {
        context.progress().advance(more);
        if context.stop_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let is_part = extent.count(positions) < positions;
    let verified = match extent {
        Extent::Tiles(sample) if is_part && is_streamed && !scores.scores().is_in_place() => {
            check::verify_streamed(&databases, stones, sample, cache_bytes / 2, &mut { read }, &watch)
        }
        _ => {
            read(&mut |_| ()).and_then(|histogram| check::verify_counted(&databases, stones, histogram, extent, &watch))
        }
    };
    let verified = verified.map_err(|error| match error {
        CheckError::Stopped => StageError::Stopped,
        CheckError::Store(error) => {
            let of = |smaller: &u32| error.path() == Some(context.input(&files::database(*smaller)).as_path());
            files::unreadable(&files::database((0..stones).find(of).unwrap_or(stones)), *error)
        }
        wrong => StageError::Damaged { artifact: name.clone(), what: wrong.to_string() },
    })?;
    let mut report = StageReport::new(positions).with("checked", verified.checked());
    if settings.published {
        let matches = match Published::compare(stones, settings.set, verified.histogram()) {
            Published::Matches => 1u64,
            Published::Absent => 0,
            Published::Differs { score, expected, found } => {
                let what = format!("{found} positions score {score}, published are {expected}");
                return Err(StageError::Damaged { artifact: name, what });
            }
        };
        report = report.with("published", matches);
    }
    Ok(report)
}

/// Where the scores of a database are.
enum Shelf {
    File(Box<CachedScores>),
    /// In memory, those that the file has by its digest: smaller databases, verified themselves.
    Kept(Arc<Bytes>),
}

impl Look for Shelf {
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
            Shelf::File(scores) => Look::scores(&**scores, positions, out),
            Shelf::Kept(scores) => Look::scores(&&scores[..], positions, out),
        }
    }

    fn read(&self, first: u64, out: &mut [Score]) -> Result<(), CheckError> {
        match self {
            Shelf::File(scores) => scores.read(first, out),
            Shelf::Kept(scores) => (&scores[..]).read(first, out),
        }
    }
}
