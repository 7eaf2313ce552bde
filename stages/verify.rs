//! The stage `verify:n`: scores derived again by the plain rules, counts against the published ones, every checksum.

use crate::{Shared, files, graph, settings::Verify};
use check::{CheckError, Databases, Extent, Histogram, Published, Sample};
use game::{Index, Score};
use pipeline::{StageContext, StageError, StageReport};
use std::ops::ControlFlow;
use std::sync::Arc;
use store::{BlockCache, CachedScores, Kind};

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let name = files::database(stones);
    let positions = settings.set.positions(stones);
    let names = || settings.smaller(stones).chain([stones]).map(|stones| (stones, files::database(stones)));
    let reads = graph::positions_with_smaller(settings, stones);
    let cache = BlockCache::new(graph::cache_bytes(settings, reads));
    let mut bytes = 0;
    for (_, name) in names() {
        bytes += context.disk().bytes(&context.input(&name))?.unwrap_or(0);
    }
    let maps = graph::has_room_for_maps(settings, bytes, reads);
    let open = if maps { files::open } else { files::open_windowed };
    let mut databases = Databases::new(settings.rules, settings.set);
    let mut histogram = Histogram::EMPTY;
    for (smaller, name) in names() {
        let index = Index::new(smaller, settings.set);
        let damaged = |error| files::unreadable(&name, error);
        let scores = open(context.disk(), &context.input(&name), settings, Kind::Database, &index).map_err(damaged)?;
        if smaller == stones {
            // None is beyond the range that the file gives, which was compared.
            let count = |scores: &[Score]| histogram = histogram.plus(&Histogram::of_scores(scores));
            scores.verify_digest_of(count).map_err(damaged)?;
            shared.handed().keep_histogram(scores.digest(), &histogram);
        }
        databases.insert(smaller, CachedScores::sharing(scores, Arc::clone(&cache))).map_err(StageError::failed)?;
    }
    let extent = match settings.verify {
        Verify::Full => Extent::Full,
        Verify::Sample | Verify::None => Extent::Tiles(Sample::default()),
    };
    context.progress().begin(extent.count(positions), "positions");
    let watch = |more| {
        context.progress().advance(more);
        if context.stop_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let verified =
        check::verify_counted(&databases, stones, histogram, extent, &watch).map_err(|error| match error {
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
