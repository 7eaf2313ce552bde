//! The stage `capture:n`: the best captures of all n-stone positions, from the smaller databases.
//!
//! Smaller databases are read through a cache of decoded blocks, and captures are written as they are
//! computed, so memory does not depend on n except for the tables. If the solver keeps the captures, they
//! stay in memory. If the cache is too small, smaller databases are read sequentially, for all captures or
//! for one stripe at a time.

mod ranks;

use crate::build_context::BuildContext;
use crate::declaration;
use crate::files;
use crate::kind::{Declaration, FamilyContent, FileFamily, KindOptions, Phase, StageKind, is_numbered};
use crate::solver_progress::SolverProgress;
use crate::stage_cache::CacheUse;
use crate::team;
use disk::{Digest, Disk};
use game::{Index, Score, Slab};
use pipeline::{ArtifactKind, StageContext, StageError, StageReport, StageResult as Result};
use planner::{CaptureMemory, DatabasePlan, Settings, StageClass};
use solvers::Bytes;
use solvers::capture::{CaptureError, ChildRow, DecodeRun, Sequential, SmallerRows, capture_in_stripes, capture_into};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{BlockCache, CachedScores, PendingRange, RangeDecoder, Scores, StoreError, Window};

/// Version of capture databases, raised when the same inputs give another content.
const VERSION: u32 = 1;

const KIND: &str = "capture";

/// Capture databases: `captures/NN.cap`.
static CAPTURES: FileFamily = FileFamily {
    folder: "captures",
    has: |file| is_numbered(file, "cap"),
    content: FamilyContent::Values(|_, rules| files::capture_kind(rules)),
};

/// The kind `capture:n`.
pub(crate) static CAPTURE: StageKind = StageKind {
    word: KIND,
    phase: Phase::Captures,
    files: Some(&CAPTURES),
    declare: |kind, build| declaration::of_databases(kind, build, declare),
    run: |build, parameters, context| {
        let stones = parameters[0];
        match build.job_that_shares(stones) {
            Some(job) => ranks::run(build, job, stones, context),
            None => run(build, stones, context),
        }
    },
    options: KindOptions {
        classes: &[StageClass::Capture],
        cache_use: CacheUse::DATABASES,
        follow: |follower, order, communicator| team::follow(follower, order, communicator, ranks::capture_part),
        ..KindOptions::OF_DATABASES
    },
};

/// Declares the stage of a database: it reads the smaller databases and makes the captures.
fn declare(kind: &StageKind, settings: &Settings, plan: &DatabasePlan) -> Declaration {
    let (stones, captures) = (plan.stones(), files::capture(plan.stones()));
    let smaller = settings.smaller(stones).map(files::database).collect();
    let stage = declaration::stage(kind, plan, None, smaller, vec![captures.clone()]);
    let captures = declaration::artifact(settings, stones, captures, ArtifactKind::Intermediate, KIND);
    Declaration { stage, artifacts: vec![captures.version(VERSION)] }
}

/// Runs the stage.
fn run(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    let (settings, plan) = (build.settings(), build.plan(stones));
    let index = Index::new(stones, settings.set);
    let cache_bytes = build.stage_cache().cache_bytes(plan);
    let cache = BlockCache::new(cache_bytes);
    let path = context.output(&files::capture(stones));
    let (kind, codec) = (files::capture_kind(&settings.rules), settings.intermediates.captures_codec());
    let mut writer = files::create(context.disk(), &path, settings, kind, &index, codec)?;
    let watch = SolverProgress::new(context, index.slab_positions());
    let all = 0..index.slab_positions();
    let mut receive = |best: &[Score]| writer.append(best).map_err(files::unwritable);
    let (tables, stage_cache) = (build.tables(), build.stage_cache());
    let mut kept = None;
    let (mut blocks, mut decoded) = (0, 0);
    for &section in sections(settings) {
        if let Some(captures) = kept.take() {
            stage_cache.give_back(captures);
        }
        let paths = settings.smaller(stones).map(|stones| context.input(&files::database(stones)));
        let cached = |stones, digest| build.stage_cache().database(stones, digest);
        let smaller = SmallerFiles::open(settings, context.disk(), paths, &cache, cached, section)?;
        let captured = match plan.memory().captures {
            CaptureMemory::Whole => {
                let best = kept.insert(stage_cache.array(build.plans(), &index)?);
                if smaller.read_positions() > cache_bytes {
                    // Through the cache, blocks would be decoded repeatedly.
                    capture_in_stripes(&tables, (&index, &all), &smaller, &watch, best, &mut receive)
                } else {
                    capture_into(&tables, &index, &smaller, &watch, best, &mut receive)
                }
            }
            CaptureMemory::Stripes(bytes) => {
                let mut stripe = Bytes::zeroed(bytes as usize).map_err(StageError::failed)?;
                capture_in_stripes(&tables, (&index, &all), &smaller, &watch, &mut stripe, &mut receive)
            }
            CaptureMemory::Streamed => solvers::capture::capture(&tables, &index, &smaller, &watch, &mut receive),
        };
        captured.map_err(ended)?;
        blocks += smaller.blocks();
        decoded += smaller.decoded.load(Ordering::Relaxed);
    }
    let written = writer.finish().map_err(files::unwritable)?;
    match kept {
        Some(captures) if settings.rules.has_scores() => stage_cache.keep_captures(written.digest, captures),
        Some(captures) => stage_cache.give_back(captures),
        None => {}
    }
    let decoded = cache.decoded() + decoded;
    Ok(StageReport::new(index.slab_positions()).with("blocks", blocks).with("decoded", decoded))
}

/// Converts what ended the computation of captures.
fn ended(error: CaptureError<StageError>) -> StageError {
    match error {
        CaptureError::Stopped(_) => StageError::Stopped,
        CaptureError::Failed(error) => error,
    }
}

/// Returns the sections of smaller databases that captures are computed from, in the order of those of
/// captures. A lower bound follows from the upper one of the child, and an upper one from the lower.
fn sections(settings: &Settings) -> &'static [usize] {
    if settings.rules.has_scores() { &[0] } else { &[1, 0] }
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
    /// Opens a section of the databases, in ascending order of stones; `cached` returns the scores of those
    /// in the stage cache, by digest.
    pub(crate) fn open(
        settings: &Settings,
        disk: &dyn Disk,
        paths: impl IntoIterator<Item = PathBuf>,
        cache: &Arc<BlockCache>,
        cached: impl Fn(u32, Digest) -> Option<Arc<Bytes>>,
        section: usize,
    ) -> Result<SmallerFiles> {
        let open = |(stones, path): (u32, PathBuf)| -> Result<SmallerDatabase> {
            let index = Index::new(stones, settings.set);
            let kind = files::database_kind(&settings.rules);
            let scores = files::open_windowed(disk, &path, settings, kind, &index)?;
            let cached = cached(stones, scores.digest());
            let (scores, slabs) = (section_of(scores, section, cache), index.slabs().to_vec());
            Ok(SmallerDatabase { scores, slabs, cached })
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
        read.map(|database| database.scores.positions()).sum()
    }
}

/// Returns a section of a file: its scores, or the lower or the upper bounds.
pub(crate) fn section_of(scores: Scores, section: usize, cache: &Arc<BlockCache>) -> CachedScores {
    if scores.identity().kind.has_pairs() {
        let [low, high] = CachedScores::sections(scores, Arc::clone(cache));
        if section == 0 { low } else { high }
    } else {
        CachedScores::sharing(scores, Arc::clone(cache))
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
    type Pending = PendingScores;

    fn run_end(&self, stones: u32, position: u64) -> u64 {
        let scores = &self.databases[stones as usize].scores;
        let (first, scores) = (scores.first(), scores.scores());
        scores.block_range(scores.block_of(first + position)).end - first
    }

    fn start(&self, stones: u32, positions: Range<u64>) -> PendingScores {
        let database = &self.databases[stones as usize];
        if let Some(cached) = &database.cached {
            return PendingScores::Cached(Arc::clone(cached), positions.start as usize..positions.end as usize);
        }
        let (first, scores) = (database.scores.first(), database.scores.scores());
        let positions = first + positions.start..first + positions.end;
        let blocks = scores.block_of(positions.end - 1) - scores.block_of(positions.start) + 1;
        self.decoded.fetch_add(blocks as u64, Ordering::Relaxed);
        PendingScores::Started(stones, scores.start_range(positions))
    }

    fn decoder<'a>(&'a self, pending: PendingScores, out: &'a mut [Score]) -> impl DecodeRun<StageError> + 'a {
        match pending {
            PendingScores::Cached(scores, range) => {
                out.copy_from_slice(&scores[range]);
                ScoresDecoder(None)
            }
            PendingScores::Started(stones, range) => {
                ScoresDecoder(Some((stones, self.databases[stones as usize].scores.scores().decoder(range, out))))
            }
        }
    }
}

/// Decoder of scores of the database of this many stones, unless they are there.
struct ScoresDecoder<'a>(Option<(u32, RangeDecoder<'a>)>);

impl DecodeRun<StageError> for ScoresDecoder<'_> {
    fn work(&self) {
        if let Some((_, decoder)) = &self.0 {
            decoder.work();
        }
    }

    fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), |(stones, decoder)| {
            decoder.finish().map_err(|error| files::unreadable(&files::database(stones), error))
        })
    }
}

/// Scores of a smaller database that are being read.
pub(crate) enum PendingScores {
    /// A range of the scores of the stage cache.
    Cached(Arc<Bytes>, Range<usize>),
    /// A range of the file of this many stones.
    Started(u32, PendingRange),
}
