//! The stages of a build. They connect the pipeline, which knows nothing of awari, with the engines, which know nothing
//! of files.
//!
//! A module for each kind of stage declares its inputs and outputs, and runs it: it opens the inputs, calls an engine
//! and publishes the outputs. Method, memory layout and caches are in the [`DatabasePlan`]; costs come from there too.
//! A stage decides only what depends on the content of the stage cache and of files: where the previous plane is
//! (`bounds`), in which direction captures are computed (`capture`), whether files are mapped (`verify`).
//!
//! * `capture`, then one of `counting`, `sweep`, `sweep_on_disk`, `guarantees` or `bounds`, then `verify` and `stats`.
//! * After all databases, `evaluation` fits the evaluation of the engine, and `book` expands an opening book.
//! * [`distributed`] runs stages on all ranks of a job.
//! * `graph` lists all stages of a build, `files` names and opens their files, `stage_cache` keeps arrays from one
//!   stage to the next, `snapshot_timer` decides when a long stage saves its state.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod book;
mod book_databases;
mod bounds;
mod capture;
mod counting;
mod database_file;
mod declaration;
pub mod distributed;
mod engine_progress;
mod evaluation;
pub mod files;
mod graph;
mod guarantees;
mod opening;
mod snapshot_timer;
mod stage_cache;
mod stats;
mod sweep;
mod sweep_on_disk;
mod verify;

pub use book_databases::{BookDatabases, NamedDatabases};

use disk::{Digest, Disk, DiskError, threads};
use distributed::JobLeader;
use engines::Tables;
use game::Rules;
use pipeline::{
    ArtifactKind, ArtifactName, ArtifactSpec, Graph, Inspection, StageContext, StageError, StageReport, StageSpec, Work,
};
use planner::{BuildPlan, DatabasePlan, Settings};
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use stage_cache::StageCache;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use store::{FileKind, Identity, Scores, Shape, StoreError};

/// The result of a stage, or of a part of one.
pub type Result<T, E = StageError> = std::result::Result<T, E>;

/// Makes a pool of threads, all of which run when it is returned.
///
/// # Errors
/// If a thread cannot be started.
pub fn thread_pool(threads: usize) -> Result<ThreadPool, ThreadPoolBuildError> {
    let spawn = |thread: ThreadBuilder| threads::spawn(thread::Builder::new(), || thread.run()).map(drop);
    ThreadPoolBuilder::new().num_threads(threads).spawn_handler(spawn).build()
}

/// Upper bound on a file of statistics.
const STATS_BYTES_MAX: u64 = 1 << 20;

/// The stages of one manifest.
pub struct Awari {
    graph: Graph,
    build: BuildContext,
}

/// State that the stages of one build share.
pub(crate) struct BuildContext {
    plan: BuildPlan,
    tables: Mutex<Option<Arc<Tables>>>,
    slot: bounds::StateSlot,
    stage_cache: StageCache,
    leader_state: distributed::BoundsOfLeader,
    job: Option<Arc<JobLeader>>,
}

impl BuildContext {
    pub(crate) fn settings(&self) -> &Settings {
        self.plan.settings()
    }

    /// Returns the plans of all databases.
    pub(crate) fn plans(&self) -> &BuildPlan {
        &self.plan
    }

    /// Returns the plan of the database of `stones`.
    pub(crate) fn plan(&self, stones: u32) -> &DatabasePlan {
        self.plan.database(stones)
    }

    /// Returns the tables for all databases of the build, made at the first call.
    pub(crate) fn tables(&self) -> Arc<Tables> {
        let settings = self.settings();
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(
            tables.get_or_insert_with(|| Arc::new(Tables::new(settings.rules, settings.set, settings.stones_max()))),
        )
    }

    /// Drops the tables and returns their memory to the system, until the next call of [`tables`](Self::tables).
    pub(crate) fn forget_tables(&self) {
        *self.tables.lock().unwrap_or_else(PoisonError::into_inner) = None;
        disk::heap::release();
    }

    /// Drops the tables of captures and returns their memory to the system, unless a stage has the tables.
    pub(crate) fn forget_captures(&self) {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tables) = tables.as_mut().and_then(Arc::get_mut) {
            tables.forget_captures();
            disk::heap::release();
        }
    }

    /// Returns the cache that stages share.
    pub(crate) fn stage_cache(&self) -> &StageCache {
        &self.stage_cache
    }

    /// Returns the job, if its ranks capture, verify and count this database together.
    fn job_that_shares(&self, stones: u32) -> Option<&JobLeader> {
        self.job.as_deref().filter(|job| job.shares(self.settings(), stones))
    }

    /// Returns the state of rank 0 while all ranks solve bounds.
    pub(crate) fn leader_state(&self) -> &distributed::BoundsOfLeader {
        &self.leader_state
    }

    /// Returns the slot for the state of a database that is solved bound after bound.
    pub(crate) fn slot(&self) -> &bounds::StateSlot {
        &self.slot
    }
}

impl Awari {
    /// Returns the stages that a manifest asks for.
    pub fn new(settings: Settings) -> Awari {
        Awari::by(settings, None)
    }

    /// Returns the same stages, run by all ranks of a job.
    pub fn led(settings: Settings, job: Arc<JobLeader>) -> Awari {
        Awari::by(settings.with_ranks(job.ranks()), Some(job))
    }

    fn by(settings: Settings, job: Option<Arc<JobLeader>>) -> Awari {
        let plan = BuildPlan::new(settings);
        Awari {
            graph: graph::graph(&plan),
            build: BuildContext {
                plan,
                tables: Mutex::new(None),
                slot: bounds::StateSlot::default(),
                stage_cache: StageCache::default(),
                leader_state: Default::default(),
                job,
            },
        }
    }

    /// Whether a file has the orientation and the shape of its number of stones. Files for other rules or positions
    /// have other shapes and are not checked: their identity differs.
    fn is_laid_out(&self, found: &Identity, shape: &Shape) -> bool {
        let Settings { rules, set, .. } = self.build.settings();
        let expected = files::identity(rules.name, *set, found.kind, found.stones.into());
        let has_shape = || *shape == files::shape_of(*set, found.kind, found.stones.into());
        // The reader of a plane compares its columns, which are bytes of bits.
        let is_plane = matches!(found.kind, FileKind::Plane { .. });
        found.orientation == expected.orientation && (is_plane || found.positions != expected.positions || has_shape())
    }

    /// Returns the settings of the manifest.
    pub fn settings(&self) -> &Settings {
        self.build.settings()
    }

    /// Returns the plans of all databases.
    pub fn plan(&self) -> &BuildPlan {
        self.build.plans()
    }
}

impl Work for Awari {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn inspect(&self, disk: &dyn Disk, path: &Path, artifact: &ArtifactSpec) -> Result<Inspection, DiskError> {
        if artifact.content == book::CONTENT
            && let Some(name) = artifact.identity.get("name")
            && disk.bytes(&book::path(path.to_path_buf(), name))?.is_none()
        {
            // Without the book its report is of no use.
            return Ok(Inspection::Absent);
        }
        if artifact.kind == ArtifactKind::Report {
            return match disk.read(path, STATS_BYTES_MAX) {
                Ok(text) => Ok(Inspection::Header { digest: Digest::of(&text), identity: Default::default() }),
                Err(error) if error.is_not_found() => Ok(Inspection::Absent),
                Err(error @ DiskError::TooLarge { .. }) => Ok(Inspection::Unreadable(error.to_string())),
                Err(error) => Err(error),
            };
        }
        let number = |key| artifact.identity.get(key).and_then(|text: &String| text.parse().ok()).unwrap_or(0);
        let kind_by = |rules: &Rules| match &*artifact.content {
            "capture" => files::capture_kind(rules),
            "database" => files::database_kind(rules),
            plane => bounds::PlaneFile::kind_of(plane, number("bound")).unwrap_or(FileKind::Database),
        };
        let opened = Scores::open_windowed(disk, path);
        // A sound file of other rules is no damage, also where these rules have other kinds of files.
        let rules = opened.as_ref().ok().and_then(|file| Rules::by_name(&file.identity().rules));
        let kind = kind_by(&rules.unwrap_or(self.settings().rules));
        Ok(match opened {
            Err(StoreError::Disk(error)) if error.is_not_found() => Inspection::Absent,
            Err(StoreError::Disk(error)) => return Err(error),
            Err(error) if error.is_damage() => Inspection::Damaged(error.what()),
            Err(error) => Inspection::Unreadable(error.what()),
            Ok(file) if file.identity().kind != kind => {
                Inspection::Unreadable(format!("it is {}, not a {kind}", file.identity()))
            }
            Ok(file) if file.range() != files::range(kind, u32::from(file.identity().stones)) => {
                Inspection::Unreadable(format!("its header announces values in {}, which are impossible", file.range()))
            }
            Ok(file) if !self.is_laid_out(file.identity(), file.shape()) => Inspection::Unreadable(format!(
                "it is {} with {}, which does not match its name",
                file.identity(),
                file.shape()
            )),
            Ok(file) => {
                let of = file.identity();
                let identity = [
                    ("rules", of.rules.clone()),
                    ("positions", of.positions.clone()),
                    ("stones", of.stones.to_string()),
                ];
                let identity = identity.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
                let mut identity: BTreeMap<_, _> = identity;
                if let FileKind::Plane { bound, .. } = of.kind {
                    identity.insert("bound".to_owned(), bound.to_string());
                }
                // The shape shows the opening, and was compared.
                let set = self.build.settings().set;
                let opening = set.opening(of.stones.into()).filter(|_| of.positions == set.to_string());
                if let (FileKind::Database | FileKind::Bounds, Some(opening)) = (of.kind, opening) {
                    identity.insert("opening".to_owned(), opening.pit_stones().to_string());
                }
                Inspection::Header { digest: file.digest(), identity }
            }
        })
    }

    fn folders(&self) -> Vec<PathBuf> {
        ["captures", "databases", "evaluation", "planes", "stats", "books"].map(PathBuf::from).into()
    }

    fn is_name(&self, name: &ArtifactName) -> bool {
        files::is_name(name)
    }

    fn is_ours(&self, disk: &dyn Disk, path: &Path) -> bool {
        store::begins_as_ours(disk, path)
    }

    fn recognises(&self, disk: &dyn Disk, path: &Path, name: &ArtifactName) -> Result<bool, DiskError> {
        // A link, a pipe or another file that cannot be opened was not written by awari.
        let Ok(file) = Scores::open_windowed(disk, path) else { return Ok(false) };
        let of = file.identity();
        let stones = u32::from(of.stones);
        let named = match of.kind {
            FileKind::Database | FileKind::Bounds => files::database(stones),
            FileKind::Capture | FileKind::BoundCaptures => files::capture(stones),
            FileKind::Plane { role, bound } => bounds::PlaneFile::of(role, bound.into()).name(stones),
            FileKind::Snapshot | FileKind::BoundSnapshot => return Ok(false),
        };
        Ok(*name == named)
    }

    fn is_kept(&self, name: &ArtifactName) -> bool {
        files::is_book(name)
    }

    fn local_snapshots(&self, disk: &dyn Disk, directory: &Path) -> Option<PathBuf> {
        let databases = files::database(0).below(directory);
        let scratch = self.settings().scratch.as_ref()?;
        Some(scratch.join(distributed::name_of(disk, databases.parent().unwrap_or(directory))))
    }

    fn run(&self, stage: &StageSpec, context: &StageContext<'_>) -> Result<StageReport> {
        let pool = thread_pool(context.threads()).map_err(StageError::no_threads)?;
        let parameters = stage.name.parameters();
        let stones = parameters.first().copied().unwrap_or(0);
        if stage.name.kind() == "book" {
            self.build.forget_tables();
            self.build.stage_cache.begin(stage, self.build.plan(self.settings().stones_max()));
            return pool.install(|| book::run(&self.build, stones, context));
        }
        let (build, plan) = (&self.build, self.build.plan(stones));
        build.stage_cache.begin(stage, plan);
        let all_ranks = build.job.as_deref();
        let all_ranks_if_large = build.job_that_shares(stones);
        let bounds_ranks = all_ranks.filter(|_| distributed::is_distributed(plan.method()));
        pool.install(|| match (stage.name.kind(), parameters) {
            ("capture", _) if let Some(job) = all_ranks_if_large => distributed::capture(build, job, stones, context),
            ("capture", _) => capture::run(build, stones, context),
            ("counting" | "sweep", _) if let Some(job) = all_ranks => distributed::solve(build, job, stones, context),
            ("counting", _) => counting::run(build, stones, context),
            ("sweep", _) if !self.settings().rules.has_scores() => guarantees::run(build, stones, context),
            ("sweep", _) if plan.memory().arena_bytes.is_some() => sweep_on_disk::run(build, stones, context),
            ("sweep", _) => sweep::run(build, stones, context),
            ("preprocess", &[_, bound]) if bounds_ranks.is_some() => {
                distributed::preprocess(build, stones, bound, context)
            }
            ("process", &[_, bound]) if let Some(job) = bounds_ranks => {
                distributed::process(build, job, stones, bound, context)
            }
            ("verify", _) if let Some(job) = all_ranks_if_large => distributed::verify(build, job, stones, context),
            ("verify", _) => verify::run(build, stones, context),
            ("stats", _) if let Some(job) = all_ranks_if_large => distributed::stats(build, job, stones, context),
            ("stats", _) => stats::run(build, stones, context),
            ("evaluation", _) => evaluation::run(build, stones, context),
            (kind, _) => bounds::run(build, kind, parameters, context),
        })
    }
}
