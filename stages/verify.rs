//! The stage `verify:n`: derives scores by the plain rules, compares counts with published ones, and checks every
//! checksum.

mod part;

use crate::build_context::BuildContext;
use crate::declaration;
use crate::distributed::ReadTask;
use crate::files;
use crate::kind::{Declaration, KindOptions, Phase, StageKind};
use crate::stage_cache::CacheUse;
use crate::team::{self, TeamMember};
use check::{CheckError, Database, Databases, Extent, Histogram, Published, Sample, ScoreSource, Verified};
use disk::Digest;
use game::quantity::plural;
use game::{Index, Score};
use part::AllFindings;
use pipeline::{ArtifactKind, ArtifactName, StageContext, StageError, StageName, StageReport, StageResult as Result};
use planner::{DatabasePlan, Settings, StageClass, Verify};
use rayon::prelude::*;
use solvers::Bytes;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{BlockCache, CachedScores, FileKind, Scores};

/// Scores in one unit of counting.
const COUNTED_POSITIONS: usize = 1 << 18;

/// Share of the cache that is not for sorted look-ups if blocks are read in order.
const ORDERED_SHARE: u64 = 8;

/// Version of verification, raised when it detects other kinds of mistakes.
const VERSION: u32 = 1;

const KIND: &str = "verify";

/// The kind `verify:n`.
pub(crate) static VERIFY: StageKind = StageKind {
    word: KIND,
    phase: Phase::Verification,
    files: None,
    declare: |kind, build| {
        if build.settings().verify == Verify::None {
            return Vec::new();
        }
        declaration::of_databases(kind, build, declare)
    },
    run: |build, parameters, context| {
        let verify = if build.settings().rules.has_scores() { verify_scores } else { verify_pairs };
        verify(build, parameters[0], context)
    },
    options: KindOptions {
        classes: &[StageClass::Verify],
        cache_use: CacheUse::DATABASES,
        follow: |follower, order, communicator| team::follow(follower, order, communicator, part::verify_part),
        ..KindOptions::OF_DATABASES
    },
};

/// Returns the stage that verifies a database, if the build has it.
pub(crate) fn stage_of(settings: &Settings, stones: u32) -> Option<StageName> {
    (settings.verify != Verify::None).then(|| StageName::new(KIND, &[stones]))
}

/// Declares the stage of a database: it reads the database and the smaller ones, and vouches for the database.
fn declare(kind: &StageKind, settings: &Settings, plan: &DatabasePlan) -> Declaration {
    let (stones, verified) = (plan.stones(), verification(plan.stones()));
    let databases = with_smaller(settings, stones).map(files::database).collect();
    let stage = declaration::stage(kind, plan, None, databases, vec![verified.clone()]);
    let fact = declaration::artifact(settings, stones, verified, ArtifactKind::Verification, "verification")
        .version(VERSION)
        .identity("extent", settings.verify)
        .identity("published", settings.published);
    let fact = fact.accept("extent", Verify::Full).accept("published", true);
    Declaration { stage, artifacts: vec![fact.vouch(files::database(stones))] }
}

/// Returns the name of the fact that a database was verified.
fn verification(stones: u32) -> ArtifactName {
    files::name(format!("verified/{stones:02}"))
}

/// Runs the stage, by all ranks that share the database.
fn verify_scores(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    let paths = with_smaller(build.settings(), stones).map(|stones| context.input(&files::database(stones)));
    let task = ReadTask { stones, threads: context.threads(), files: paths.collect() };
    let job = build.job_that_shares(stones);
    let (all, loads) = team::lead(KIND, build, job, &task, context, part::verify_part)?;
    let (opened, AllFindings { hashes, histogram, findings }) = all.expect("rank 0 gathers the results");
    let wrong = |error| wrong(error, stones, &task.files);
    opened.scores().verify_hashes(&hashes).map_err(|error| wrong(error.into()))?;
    let verified = findings.verified(stones, histogram).map_err(wrong)?;
    Ok(team::report(report(build, opened.scores().digest(), &verified)?, loads))
}

/// Runs the stage for a database of pairs, on this machine alone: verifies the lower bounds against the upper ones of
/// the children, the upper ones against the lower, and that none are crossed.
fn verify_pairs(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    let (settings, plan) = (build.settings(), build.plan(stones));
    let paths: Vec<_> = with_smaller(settings, stones).map(|stones| context.input(&files::database(stones))).collect();
    let cache = BlockCache::new(build.stage_cache().cache_bytes(plan));
    let bytes = paths.iter().map(|path| Ok(context.disk().bytes(path)?.unwrap_or(0))).sum::<Result<u64>>()?;
    let maps = plan.memory().maps(bytes);
    let open = if maps { files::open } else { files::open_windowed };
    let [mut low, mut high] = [(); 2].map(|()| Databases::new(settings.rules, settings.set));
    for (smaller, path) in with_smaller(settings, stones).zip(&paths) {
        let index = Index::new(smaller, settings.set);
        let file = open(context.disk(), path, settings, FileKind::Bounds, &index)?;
        let [lows, highs] = CachedScores::sections(file, Arc::clone(&cache));
        low.insert(smaller, lows).map_err(StageError::failed)?;
        high.insert(smaller, highs).map_err(StageError::failed)?;
    }
    let extent = extent(settings);
    context.progress().begin(2 * extent.count(settings.set.positions(stones)), "positions");
    let watch = |more| {
        context.progress().advance(more);
        if context.stop_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let editions = low.editions();
    let verified = || {
        let scores = low.get(stones)?.scores().scores();
        scores.verify_digest()?;
        Ok((scores.digest(), check::verify_bounds_watched(&low, &high, stones, extent, &watch)?))
    };
    let verified = verified();
    let verified = low.unchanged(&editions).and(verified);
    let (digest, [lows, highs]) = verified.map_err(|error| wrong(error, stones, &paths))?;
    Ok(report(build, digest, &lows)?.with("upper", highs.checked()))
}

/// Returns the databases that a verification reads, by number of stones; the last one is verified.
pub(crate) fn with_smaller(settings: &Settings, stones: u32) -> impl Iterator<Item = u32> {
    settings.smaller(stones).chain([stones])
}

/// Returns the extent of verification.
pub(crate) fn extent(settings: &Settings) -> Extent {
    match settings.verify {
        Verify::Full => Extent::Full,
        Verify::Sample | Verify::None => Extent::Tiles(Sample::default()),
    }
}

/// Counts scores on all threads.
pub(crate) fn counted(scores: &[Score]) -> Histogram {
    let counted = scores.par_chunks(COUNTED_POSITIONS).map(Histogram::of_scores);
    counted.reduce(|| Histogram::EMPTY, |a, b| a.plus(&b))
}

/// Converts an error with the databases at `paths` to that of a stage.
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

/// Compares the counts with published ones, and reports.
pub(crate) fn report(build: &BuildContext, digest: Digest, verified: &Verified) -> Result<StageReport> {
    let (settings, stones) = (build.settings(), verified.stones());
    build.stage_cache().keep_histogram(digest, verified.histogram());
    let mut report = StageReport::new(settings.set.positions(stones)).with("checked", verified.checked());
    if settings.published {
        let matches = match Published::compare(&settings.rules, stones, settings.set, verified.histogram()) {
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

/// Open databases of a verification.
pub(crate) struct VerifyInputs {
    stones: u32,
    pub(crate) databases: Databases<OpenedScores>,
    /// Memory for look-ups that are sorted by their offsets in files; `None` if they are cheap in any order.
    pub(crate) round_bytes: Option<u64>,
}

impl VerifyInputs {
    /// Opens the databases of [`with_smaller`], which are the files of the task; those in the stage cache are in
    /// memory.
    pub(crate) fn open(member: &TeamMember<ReadTask>) -> Result<VerifyInputs> {
        let TeamMember { build, disk, ref index, task, .. } = *member;
        let (settings, plan, stage_cache, paths) = (member.settings(), member.plan(), build.stage_cache(), &task.files);
        let mut kept = BTreeMap::new();
        for (smaller, path) in settings.smaller(task.stones).zip(paths).filter(|_| stage_cache.has_databases()) {
            let index = Index::new(smaller, settings.set);
            let digest = files::open_windowed(disk, path, settings, FileKind::Database, &index)?.digest();
            kept.extend(stage_cache.database(smaller, digest).map(|scores| (smaller, scores)));
        }
        let cache_bytes = stage_cache.cache_bytes(plan);
        let (stones, mut bytes) = (task.stones, 0);
        for (smaller, path) in with_smaller(settings, stones).zip(paths) {
            if !kept.contains_key(&smaller) {
                bytes += disk.bytes(path)?.unwrap_or(0);
            }
        }
        let maps = plan.memory().maps(bytes);
        // Look-ups in any order are cheap in maps of scores that are not compressed. Sorted ones take half of
        // the cache, or all but what reads of blocks in order need.
        let is_streamed = (settings.codec.is_compressed() || !maps) && settings.verify != Verify::Full;
        let is_ordered = !maps && !settings.codec.has_bands();
        let sorted_bytes = if is_ordered { cache_bytes - cache_bytes / ORDERED_SHARE } else { cache_bytes / 2 };
        let cache = BlockCache::new(if is_streamed { cache_bytes - sorted_bytes } else { cache_bytes });
        let open = if maps { files::open } else { files::open_windowed };
        let mut databases = Databases::new(settings.rules, settings.set);
        for (smaller, path) in with_smaller(settings, stones).zip(paths) {
            if let Some(scores) = kept.remove(&smaller) {
                databases.insert(smaller, OpenedScores::Kept(scores)).map_err(StageError::failed)?;
                continue;
            }
            let index = Index::new(smaller, settings.set);
            let scores = open(disk, path, settings, FileKind::Database, &index)?;
            let scores = OpenedScores::File(Box::new(CachedScores::sharing(scores, Arc::clone(&cache))));
            databases.insert(smaller, scores).map_err(StageError::failed)?;
        }
        let mut opened = VerifyInputs { stones, databases, round_bytes: None };
        let is_part = extent(settings).count(index.positions()) < index.positions();
        if is_part && is_streamed && !opened.scores().is_in_place() {
            opened.round_bytes = Some(sorted_bytes);
        }
        Ok(opened)
    }

    /// Returns the scores to verify.
    pub(crate) fn scores(&self) -> &Scores {
        let Ok(OpenedScores::File(scores)) = self.databases.get(self.stones).map(Database::scores) else {
            unreachable!("the database under verification is always opened")
        };
        scores.scores()
    }
}

/// Source of the scores of a database.
pub(crate) enum OpenedScores {
    File(Box<CachedScores>),
    /// Scores in the stage cache with the digest of the file.
    Kept(Arc<Bytes>),
}

impl ScoreSource for OpenedScores {
    fn positions(&self) -> u64 {
        match self {
            OpenedScores::File(scores) => scores.positions(),
            OpenedScores::Kept(scores) => (&scores[..]).positions(),
        }
    }

    fn score(&self, position: u64) -> Result<Score, CheckError> {
        match self {
            OpenedScores::File(scores) => scores.score(position),
            OpenedScores::Kept(scores) => (&scores[..]).score(position),
        }
    }

    fn scores(&self, positions: &[u64], out: &mut [Score]) -> Result<(), CheckError> {
        match self {
            OpenedScores::File(scores) => ScoreSource::scores(&**scores, positions, out),
            OpenedScores::Kept(scores) => ScoreSource::scores(&&scores[..], positions, out),
        }
    }

    fn read(&self, first: u64, out: &mut [Score]) -> Result<(), CheckError> {
        match self {
            OpenedScores::File(scores) => scores.read(first, out),
            OpenedScores::Kept(scores) => (&scores[..]).read(first, out),
        }
    }

    fn edition(&self) -> u64 {
        match self {
            OpenedScores::File(scores) => scores.edition(),
            OpenedScores::Kept(_) => 0,
        }
    }

    fn path(&self) -> &Path {
        match self {
            OpenedScores::File(scores) => ScoreSource::path(&**scores),
            OpenedScores::Kept(_) => Path::new(""),
        }
    }
}
