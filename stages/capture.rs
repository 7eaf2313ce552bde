//! The stage `capture:n`: the best captures of all n-stone positions, from the smaller databases.
//!
//! Smaller databases are read through a cache of decoded blocks, captures are written as they come: memory does not
//! depend on n but for the tables, and the captures themselves where the stage that comes next holds them anyway. Where
//! these are held and the cache is too small, smaller databases are read from one end to the other.

use crate::{Shared, files, graph, handed::Handed, watch::Watch};
use engines::capture::{CaptureError, ChildRow, Sequential, Smaller};
use game::{Index, Score};
use pipeline::{StageContext, StageError, StageReport};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{BlockCache, CachedScores, Codec, Kind, StoreError, Window};

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let cache_bytes = graph::cache_bytes(settings, graph::positions_with_smaller(settings, stones));
    let cache = BlockCache::new(cache_bytes);
    let smaller = Files::open(shared, stones, context, &cache)?;
    let path = context.output(&files::capture(stones));
    let mut writer = files::create(context.disk(), &path, settings, Kind::Capture, &index, Codec::Packed)?;
    let watch = Watch::new(context, index.positions());
    let mut receive = |best: &[Score]| writer.append(best).map_err(files::unwritable);
    let (tables, handed) = (shared.tables(), shared.handed());
    let mut kept = match Handed::keeps_captures(settings, stones) {
        true => Some(handed.array(settings, &index)?),
        false => None,
    };
    let all_smaller: u64 = settings.smaller(stones).map(|stones| settings.set.positions(stones)).sum();
    let captured = match &mut kept {
        // Blocks would be decoded again and again.
        Some(best) if all_smaller > cache_bytes => {
            let captured = engines::capture::capture_by_children(&tables, &index, &smaller, &watch, best);
            captured.and_then(|()| receive(best).map_err(CaptureError::Failed))
        }
        Some(best) => engines::capture::capture_into(&tables, &index, &smaller, &watch, best, &mut receive),
        None => engines::capture::capture(&tables, &index, &smaller, &watch, &mut receive),
    };
    captured.map_err(|error| match error {
        CaptureError::Stopped(_) => StageError::Stopped,
        CaptureError::Failed(error) => error,
    })?;
    let written = writer.finish().map_err(files::unwritable)?;
    if let Some(captures) = kept {
        handed.keep_captures(written.digest, captures);
    }
    let decoded = cache.decoded() + smaller.decoded.load(Ordering::Relaxed);
    Ok(StageReport::new(index.positions()).with("blocks", smaller.blocks()).with("decoded", decoded))
}

/// The smaller databases that captures can lead to, by their stones: none has one or `stones` captured less.
struct Files {
    databases: Vec<CachedScores>,
    /// Blocks decoded in sequence.
    decoded: AtomicU64,
}

impl Files {
    fn open(
        shared: &Shared,
        stones: u32,
        context: &StageContext,
        cache: &Arc<BlockCache>,
    ) -> Result<Files, StageError> {
        let settings = shared.settings();
        let open = |stones| {
            let name = files::database(stones);
            let index = Index::new(stones, settings.set);
            files::open_windowed(context.disk(), &context.input(&name), settings, Kind::Database, &index)
                .map(|scores| CachedScores::sharing(scores, Arc::clone(cache)))
                .map_err(|error| files::unreadable(&name, error))
        };
        let databases = settings.smaller(stones).map(open).collect::<Result<_, _>>()?;
        Ok(Files { databases, decoded: AtomicU64::new(0) })
    }

    fn blocks(&self) -> u64 {
        self.databases.iter().map(|database| database.scores().block_count() as u64).sum()
    }
}

impl Smaller for Files {
    type Window = Window;
    type Error = StageError;

    fn window(&self) -> Window {
        Window::new()
    }

    fn row<'w>(&'w self, window: &'w mut Window, row: ChildRow) -> Result<&'w [Score], StageError> {
        let database = &self.databases[row.stones as usize];
        let unreadable = |error: StoreError| files::unreadable(&files::database(row.stones), error);
        database.row(row.mover_stones as usize, row.row, row.columns, window).map_err(unreadable)
    }
}

impl Sequential for Files {
    type Error = StageError;

    fn run_end(&self, stones: u32, position: u64) -> u64 {
        let scores = self.databases[stones as usize].scores();
        scores.block_range(scores.block_of(position)).end
    }

    fn read(&self, stones: u32, positions: Range<u64>, out: &mut [Score]) -> Result<(), StageError> {
        let scores = self.databases[stones as usize].scores();
        let blocks = scores.block_of(positions.end - 1) - scores.block_of(positions.start) + 1;
        self.decoded.fetch_add(blocks as u64, Ordering::Relaxed);
        scores.read_range(positions, out).map_err(|error| files::unreadable(&files::database(stones), error))
    }
}
