//! The stage `capture:n`: the best captures of all n-stone positions, from the smaller databases.
//!
//! Smaller databases are read through a cache of decoded blocks, and captures are written as they are computed, so memory
//! does not depend on n except for the tables. If the solver keeps the captures, they stay in memory. If the cache is too
//! small, smaller databases are read sequentially, for all captures or for one stripe at a time.

use crate::engine_progress::EngineProgress;
use crate::{BuildContext, Result, declaration, files};
use disk::{Digest, Disk};
use engines::Bytes;
use engines::capture::{CaptureError, ChildRow, Sequential, SmallerRows};
use game::{Index, Score, Slab};
use pipeline::{ArtifactKind, ArtifactSpec, StageContext, StageError, StageName, StageReport, StageSpec};
use planner::{CaptureMemory, DatabasePlan, Settings, Verify};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{BlockCache, CachedScores, FileKind, StoreError, Window};

/// Version of capture databases, raised when the same inputs give another content.
const VERSION: u32 = 1;

/// Declares the stage: it reads the smaller databases and makes the captures.
pub(crate) fn declare(settings: &Settings, plan: &DatabasePlan) -> (StageSpec, Vec<ArtifactSpec>) {
    let (stones, captures) = (plan.stones(), files::capture(plan.stones()));
    let smaller = settings.smaller(stones).map(files::database).collect();
    let before = settings.stones().rev().find(|&before| before < stones).filter(|_| settings.verify != Verify::None);
    let stage = StageSpec {
        after: before.map(|before| StageName::new("verify", &[before])).into_iter().collect(),
        ..declaration::stage(plan, "capture", None, smaller, vec![captures.clone()])
    };
    let captures = declaration::artifact(settings, stones, captures, ArtifactKind::Intermediate, "capture");
    (stage, vec![captures.version(VERSION)])
}

/// Runs the stage.
pub(crate) fn run(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    let (settings, plan) = (build.settings(), build.plan(stones));
    let index = Index::new(stones, settings.set);
    let cache_bytes = build.stage_cache().cache_bytes(plan);
    let cache = BlockCache::new(cache_bytes);
    let smaller = settings.smaller(stones).map(|stones| context.input(&files::database(stones)));
    let cached = |stones, digest| build.stage_cache().database(stones, digest);
    let smaller = SmallerFiles::open(settings, context.disk(), smaller, &cache, cached)?;
    let path = context.output(&files::capture(stones));
    let mut writer = files::create(
        context.disk(),
        &path,
        settings,
        FileKind::Capture,
        &index,
        settings.intermediates.captures_codec(),
    )?;
    let watch = EngineProgress::new(context, index.slab_positions());
    let mut receive = |best: &[Score]| writer.append(best).map_err(files::unwritable);
    let (tables, stage_cache) = (build.tables(), build.stage_cache());
    let mut kept = None;
    let captured = match plan.memory().captures {
        CaptureMemory::Whole => {
            let best = kept.insert(stage_cache.array(build.plans(), &index)?);
            if smaller.read_positions() > cache_bytes {
                // Through the cache, blocks would be decoded repeatedly.
                engines::capture::capture_in_stripes(&tables, &index, &smaller, &watch, best, &mut receive)
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
        stage_cache.keep_captures(written.digest, captures);
    }
    let decoded = cache.decoded() + smaller.decoded.load(Ordering::Relaxed);
    Ok(StageReport::new(index.slab_positions()).with("blocks", smaller.blocks()).with("decoded", decoded))
}

/// The databases that captures lead to, by number of stones.
pub(crate) struct SmallerFiles {
    databases: Vec<SmallerDatabase>,
    /// Blocks decoded by sequential reads.
    decoded: AtomicU64,
}

/// A database that captures lead to.
struct SmallerDatabase {
    scores: CachedScores,
    slabs: Vec<Slab>,
    /// All scores, if the stage cache has them.
    cached: Option<Arc<Bytes>>,
}

impl SmallerFiles {
    /// Opens the databases, in ascending order of stones; `cached` returns the scores of those in the stage cache, by digest.
    pub(crate) fn open(
        settings: &Settings,
        disk: &dyn Disk,
        paths: impl IntoIterator<Item = PathBuf>,
        cache: &Arc<BlockCache>,
        cached: impl Fn(u32, Digest) -> Option<Arc<Bytes>>,
    ) -> Result<SmallerFiles> {
        let open = |(stones, path): (u32, PathBuf)| {
            let index = Index::new(stones, settings.set);
            files::open_windowed(disk, &path, settings, FileKind::Database, &index)
                .map(|scores| SmallerDatabase {
                    cached: cached(stones, scores.digest()),
                    scores: CachedScores::sharing(scores, Arc::clone(cache)),
                    slabs: index.slabs().to_vec(),
                })
                .map_err(|error| files::unreadable(&files::database(stones), error))
        };
        let databases = (0..).zip(paths).map(open).collect::<Result<_, _>>()?;
        Ok(SmallerFiles { databases, decoded: AtomicU64::new(0) })
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.databases.iter().map(|database| database.scores.scores().block_count() as u64).sum()
    }

    /// Returns the positions of databases that are not in memory.
    fn read_positions(&self) -> u64 {
        let read = self.databases.iter().filter(|database| database.cached.is_none());
        read.map(|database| database.scores.scores().shape().positions()).sum()
    }
}

impl SmallerRows for SmallerFiles {
    type Window = Window;
    type Error = StageError;

    fn window(&self) -> Window {
        Window::new()
    }

    fn row<'w>(&'w self, window: &'w mut Window, row: ChildRow) -> Result<&'w [Score]> {
        let database = &self.databases[row.stones as usize];
        if let Some(cached) = &database.cached {
            let first = database.slabs[row.mover_stones as usize].offset as usize;
            return Ok(&cached[first + row.row as usize * row.columns as usize..][..row.columns as usize]);
        }
        let unreadable = |error: StoreError| files::unreadable(&files::database(row.stones), error);
        database.scores.row(row.mover_stones as usize, row.row, row.columns, window).map_err(unreadable)
    }
}

impl Sequential for SmallerFiles {
    type Error = StageError;

    fn run_end(&self, stones: u32, position: u64) -> u64 {
        let scores = self.databases[stones as usize].scores.scores();
        scores.block_range(scores.block_of(position)).end
    }

    fn read(&self, stones: u32, positions: Range<u64>, out: &mut [Score]) -> Result<()> {
        let database = &self.databases[stones as usize];
        if let Some(cached) = &database.cached {
            out.copy_from_slice(&cached[positions.start as usize..positions.end as usize]);
            return Ok(());
        }
        let scores = database.scores.scores();
        let blocks = scores.block_of(positions.end - 1) - scores.block_of(positions.start) + 1;
        self.decoded.fetch_add(blocks as u64, Ordering::Relaxed);
        scores.read_range(positions, out).map_err(|error| files::unreadable(&files::database(stones), error))
    }
}
