//! The stage `capture:n`: the best captures of all n-stone positions, from the smaller databases.
//!
//! Smaller databases are read through a cache of decoded blocks, captures are written as they come: memory does not
//! depend on n but for the tables, and the captures themselves where the stage that comes next holds them anyway. Where
//! the cache is too small, smaller databases are read from one end to the other, for all captures or as many at a time as
//! the memory allows.

use crate::{Shared, files, watch::Watch};
use disk::{Digest, Disk};
use engines::Bytes;
use engines::capture::{CaptureError, ChildRow, Sequential, SmallerRows};
use game::{Index, Score, Slab};
use pipeline::{StageContext, StageError, StageReport};
use planner::{CaptureMemory, Settings};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{BlockCache, CachedScores, Codec, FileKind, StoreError, Window};

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let (settings, plan) = (shared.settings(), shared.plan(stones));
    let index = Index::new(stones, settings.set);
    let cache_bytes = shared.handed().cache_bytes(plan);
    let cache = BlockCache::new(cache_bytes);
    let smaller = settings.smaller(stones).map(|stones| context.input(&files::database(stones)));
    let kept = |stones, digest| shared.handed().database(stones, digest);
    let smaller = Files::open(settings, context.disk(), smaller, &cache, kept)?;
    let path = context.output(&files::capture(stones));
    let mut writer = files::create(context.disk(), &path, settings, FileKind::Capture, &index, Codec::Packed)?;
    let watch = Watch::new(context, index.positions());
    let mut receive = |best: &[Score]| writer.append(best).map_err(files::unwritable);
    let (tables, handed) = (shared.tables(), shared.handed());
    let mut kept = None;
    let captured = match plan.memory().captures {
        CaptureMemory::Whole => {
            let best = kept.insert(handed.array(shared.build_plan(), &index)?);
            if smaller.read_positions() > cache_bytes {
                // Blocks would be decoded again and again.
                let captured = engines::capture::capture_by_children(&tables, &index, &smaller, &watch, best);
                captured.and_then(|()| receive(best).map_err(CaptureError::Failed))
            } else {
                engines::capture::capture_into(&tables, &index, &smaller, &watch, best, &mut receive)
            }
        }
        CaptureMemory::Stripes(bytes) => {
            let mut stripe = Bytes::zeroed(bytes as usize).map_err(StageError::failed)?;
            engines::capture::capture_in_stripes(&tables, &index, &smaller, &watch, &mut stripe, &mut receive)
        }
        CaptureMemory::Streamed => engines::capture::capture(&tables, &index, &smaller, &watch, &mut receive),
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
pub(crate) struct Files {
    databases: Vec<File>,
    /// Blocks decoded in sequence.
    decoded: AtomicU64,
}

/// One of them.
struct File {
    scores: CachedScores,
    slabs: Vec<Slab>,
    /// All scores, if they are in memory.
    kept: Option<Arc<Bytes>>,
}

impl Files {
    /// Opens them, ascending by their stones; `kept` has the scores of some by their digests.
    pub(crate) fn open(
        settings: &Settings,
        disk: &dyn Disk,
        paths: impl IntoIterator<Item = PathBuf>,
        cache: &Arc<BlockCache>,
        kept: impl Fn(u32, Digest) -> Option<Arc<Bytes>>,
    ) -> Result<Files, StageError> {
        let open = |(stones, path): (u32, PathBuf)| {
            let index = Index::new(stones, settings.set);
            files::open_windowed(disk, &path, settings, FileKind::Database, &index)
                .map(|scores| File {
                    kept: kept(stones, scores.digest()),
                    scores: CachedScores::sharing(scores, Arc::clone(cache)),
                    slabs: index.slabs().to_vec(),
                })
                .map_err(|error| files::unreadable(&files::database(stones), error))
        };
        let databases = (0..).zip(paths).map(open).collect::<Result<_, _>>()?;
        Ok(Files { databases, decoded: AtomicU64::new(0) })
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.databases.iter().map(|database| database.scores.scores().block_count() as u64).sum()
    }

    /// Positions of those that are not in memory.
    fn read_positions(&self) -> u64 {
        let read = self.databases.iter().filter(|database| database.kept.is_none());
        read.map(|database| database.scores.scores().shape().positions()).sum()
    }
}

impl SmallerRows for Files {
    type Window = Window;
    type Error = StageError;

    fn window(&self) -> Window {
        Window::new()
    }

    fn row<'w>(&'w self, window: &'w mut Window, row: ChildRow) -> Result<&'w [Score], StageError> {
        let database = &self.databases[row.stones as usize];
        if let Some(kept) = &database.kept {
            let first = database.slabs[row.mover_stones as usize].offset as usize;
            return Ok(&kept[first + row.row as usize * row.columns as usize..][..row.columns as usize]);
        }
        let unreadable = |error: StoreError| files::unreadable(&files::database(row.stones), error);
        database.scores.row(row.mover_stones as usize, row.row, row.columns, window).map_err(unreadable)
    }
}

impl Sequential for Files {
    type Error = StageError;

    fn run_end(&self, stones: u32, position: u64) -> u64 {
        let scores = self.databases[stones as usize].scores.scores();
        scores.block_range(scores.block_of(position)).end
    }

    fn read(&self, stones: u32, positions: Range<u64>, out: &mut [Score]) -> Result<(), StageError> {
        let database = &self.databases[stones as usize];
        if let Some(kept) = &database.kept {
            out.copy_from_slice(&kept[positions.start as usize..positions.end as usize]);
            return Ok(());
        }
        let scores = database.scores.scores();
        let blocks = scores.block_of(positions.end - 1) - scores.block_of(positions.start) + 1;
        self.decoded.fetch_add(blocks as u64, Ordering::Relaxed);
        scores.read_range(positions, out).map_err(|error| files::unreadable(&files::database(stones), error))
    }
}
