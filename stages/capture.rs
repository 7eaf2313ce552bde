//! The stage `capture:n`: the best captures of all n-stone positions, from the smaller databases.
//!
//! Smaller databases are read through a cache of decoded blocks, captures are written as they come: memory does not
//! depend on n but for the tables.

use crate::{Shared, files, graph, watch::Watch};
use engines::capture::{CaptureError, ChildRow, Smaller};
use game::{Index, Score};
use pipeline::{StageContext, StageError, StageReport};
use std::sync::Arc;
use store::{BlockCache, CachedScores, Codec, Kind, StoreError, Window};

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let cache = BlockCache::new(graph::cache_bytes(settings, graph::positions_with_smaller(settings, stones)));
    let smaller = Files::open(shared, stones, context, &cache)?;
    let path = context.output(&files::capture(stones));
    let mut writer = files::create(context.disk(), &path, settings, Kind::Capture, &index, Codec::Packed)?;
    let watch = Watch::new(context, index.positions());
    let mut receive = |best: &[Score]| writer.append(best).map_err(files::unwritable);
    engines::capture::capture(&shared.tables(), &index, &smaller, &watch, &mut receive).map_err(
        |error| match error {
            CaptureError::Stopped(_) => StageError::Stopped,
            CaptureError::Failed(error) => error,
        },
    )?;
    writer.finish().map_err(files::unwritable)?;
    Ok(StageReport::new(index.positions()).with("blocks", smaller.blocks()).with("decoded", cache.decoded()))
}

/// The smaller databases that captures can lead to, by their stones: none has one or `stones` captured less.
struct Files(Vec<CachedScores>);

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
        settings.smaller(stones).map(open).collect::<Result<_, _>>().map(Files)
    }

    fn blocks(&self) -> u64 {
        self.0.iter().map(|database| database.scores().block_count() as u64).sum()
    }
}

impl Smaller for Files {
    type Window = Window;
    type Error = StageError;

    fn window(&self) -> Window {
        Window::new()
    }

    fn row<'w>(&'w self, window: &'w mut Window, row: ChildRow) -> Result<&'w [Score], StageError> {
        let database = &self.0[row.stones as usize];
        let unreadable = |error: StoreError| files::unreadable(&files::database(row.stones), error);
        database.row(row.mover_stones as usize, row.row, row.columns, window).map_err(unreadable)
    }
}
