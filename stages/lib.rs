//! One module a stage kind: what it reads and makes, what it costs, and the one engine or store function it calls.
//!
//! This is where the pipeline, which knows nothing of awari, meets the engines, which know nothing of files.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bounds;
mod capture;
pub mod cluster;
mod counting;
pub mod files;
mod graph;
mod handed;
mod stats;
mod sweep;
mod tiled;
mod verify;
mod watch;

use disk::{Digest, Disk, DiskError, heap};
use engines::Tables;
use pipeline::{
    ArtifactKind, ArtifactName, ArtifactSpec, Graph, Inspection, StageContext, StageError, StageReport, StageSpec, Work,
};
use planner::{BuildPlan, DatabasePlan, Settings};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use store::{FileKind, Identity, Scores, Shape, StoreError};

/// More than any statistics take.
const STATS_BYTES_MAX: u64 = 1 << 20;

/// The build of one manifest.
#[derive(Debug)]
pub struct Awari {
    graph: Graph,
    shared: Shared,
}

/// What the stages of one build share.
#[derive(Debug)]
pub(crate) struct Shared {
    plan: BuildPlan,
    tables: Mutex<Option<Arc<Tables>>>,
    slot: bounds::Slot,
    handed: handed::Handed,
    job: Option<Arc<cluster::Job>>,
}

impl Shared {
    pub(crate) fn settings(&self) -> &Settings {
        self.plan.settings()
    }

    /// Returns the plans of all databases.
    pub(crate) fn build_plan(&self) -> &BuildPlan {
        &self.plan
    }

    /// Returns the plan of the database of `stones`.
    pub(crate) fn plan(&self, stones: u32) -> &DatabasePlan {
        self.plan.database(stones)
    }

    /// Tables for all databases of the build, made when first asked for.
    pub(crate) fn tables(&self) -> Arc<Tables> {
        let settings = self.settings();
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(
            tables.get_or_insert_with(|| Arc::new(Tables::new(settings.rules, settings.set, settings.stones_max()))),
        )
    }

    /// Gives the memory of the tables back, until they are asked for again.
    pub(crate) fn forget_tables(&self) {
        *self.tables.lock().unwrap_or_else(PoisonError::into_inner) = None;
        disk::heap::release();
    }

    /// What stages leave to those that come next.
    pub(crate) fn handed(&self) -> &handed::Handed {
        &self.handed
    }

    /// The job whose ranks capture for a database together, verify it, and count.
    pub(crate) fn job_that_shares(&self, stones: u32) -> Option<&cluster::Job> {
        self.job.as_deref().filter(|job| job.shares(self.settings(), stones))
    }

    /// The state of a database that is solved bound after bound.
    pub(crate) fn slot(&self) -> &bounds::Slot {
        &self.slot
    }
}

impl Awari {
    /// The build that a manifest asks for.
    pub fn new(settings: Settings) -> Awari {
        Awari::by(settings, None)
    }

    /// The same, by all ranks of a job.
    pub fn led(settings: Settings, job: Arc<cluster::Job>) -> Awari {
        Awari::by(settings.with_ranks(job.ranks()), Some(job))
    }

    fn by(settings: Settings, job: Option<Arc<cluster::Job>>) -> Awari {
        let plan = BuildPlan::new(settings);
        Awari {
            graph: graph::graph(&plan),
            shared: Shared {
                plan,
                tables: Mutex::new(None),
                slot: bounds::Slot::default(),
                handed: handed::Handed::default(),
                job,
            },
        }
    }

    /// Whether a file of these stones has the orientation and the shape that it must have. Other positions, and other
    /// rules, have other shapes, and are told apart by their names.
    fn is_laid_out(&self, found: &Identity, shape: &Shape) -> bool {
        let Settings { rules, set, .. } = self.shared.settings();
        let expected = files::identity(rules.name, *set, found.kind, found.stones.into());
        let has_shape = || *shape == files::shape_of(&set.slabs(found.stones.into()), expected.orientation);
        // A plane has as many columns as its rows have bytes, which its reader compares.
        let is_plane = matches!(found.kind, FileKind::Plane { .. });
        found.orientation == expected.orientation && (is_plane || found.positions != expected.positions || has_shape())
    }

    /// What the manifest asks for.
    pub fn settings(&self) -> &Settings {
        self.shared.settings()
    }

    /// Returns the plans of all databases.
    pub fn plan(&self) -> &BuildPlan {
        self.shared.build_plan()
    }
}

impl Work for Awari {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn inspect(&self, disk: &dyn Disk, path: &Path, artifact: &ArtifactSpec) -> Result<Inspection, DiskError> {
        if artifact.kind == ArtifactKind::Report {
            return match disk.read(path, STATS_BYTES_MAX) {
                Ok(text) => Ok(Inspection::Header { digest: Digest::of(&text), identity: Default::default() }),
                Err(error) if error.is_not_found() => Ok(Inspection::Absent),
                Err(error @ DiskError::TooLarge { .. }) => Ok(Inspection::Unreadable(error.to_string())),
                Err(error) => Err(error),
            };
        }
        let number = |key| artifact.identity.get(key).and_then(|text: &String| text.parse().ok()).unwrap_or(0);
        let kind = match &*artifact.content {
            "capture" => FileKind::Capture,
            "database" => FileKind::Database,
            plane => bounds::Plane::kind_of(plane, number("bound")).unwrap_or(FileKind::Database),
        };
        Ok(match Scores::open_windowed(disk, path) {
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
                Inspection::Header { digest: file.digest(), identity }
            }
        })
    }

    fn folders(&self) -> Vec<PathBuf> {
        ["captures", "databases", "planes", "stats"].map(PathBuf::from).into()
    }

    fn is_name(&self, name: &ArtifactName) -> bool {
        files::is_name(name)
    }

    fn is_ours(&self, disk: &dyn Disk, path: &Path) -> bool {
        store::begins_as_ours(disk, path)
    }

    fn recognises(&self, disk: &dyn Disk, path: &Path, name: &ArtifactName) -> Result<bool, DiskError> {
        // What cannot be opened (a link, a pipe) is none of ours.
        let Ok(file) = Scores::open_windowed(disk, path) else { return Ok(false) };
        let of = file.identity();
        let stones = u32::from(of.stones);
        let named = match of.kind {
            FileKind::Database => files::database(stones),
            FileKind::Capture => files::capture(stones),
            FileKind::Plane { role, bound } => bounds::Plane::of(role, bound.into()).name(stones),
            FileKind::Snapshot => return Ok(false),
        };
        Ok(*name == named)
    }

    fn local_snapshots(&self, disk: &dyn Disk, directory: &Path) -> Option<PathBuf> {
        let databases = files::database(0).below(directory);
        let scratch = self.settings().scratch.as_ref()?;
        Some(scratch.join(cluster::name_of(disk, databases.parent().unwrap_or(directory))))
    }

    fn run(&self, stage: &StageSpec, context: &StageContext<'_>) -> Result<StageReport, StageError> {
        heap::room_for_threads(context.threads()).map_err(StageError::no_threads)?;
        let pool =
            rayon::ThreadPoolBuilder::new().num_threads(context.threads()).build().map_err(StageError::no_threads)?;
        let stones = stage.name.parameters().first().copied().unwrap_or(0);
        self.shared.handed.begin(stage, self.shared.plan(stones));
        pool.install(|| match stage.name.kind() {
            "sweep" if let Some(job) = &self.shared.job => {
                cluster::solve(&self.shared, job, cluster::By::Sweep, stones, context)
            }
            "counting" if let Some(job) = &self.shared.job => {
                let by = cluster::By::Counting { processors: context.threads() };
                cluster::solve(&self.shared, job, by, stones, context)
            }
            "capture" if let Some(job) = self.shared.job_that_shares(stones) => {
                cluster::capture(&self.shared, job, stones, context)
            }
            "verify" if let Some(job) = self.shared.job_that_shares(stones) => {
                cluster::verify(&self.shared, job, stones, context)
            }
            "capture" => capture::run(&self.shared, stones, context),
            "counting" => counting::run(&self.shared, stones, context),
            "sweep" if self.shared.plan(stones).memory().arena_bytes.is_some() => {
                tiled::run(&self.shared, stones, context)
            }
            "sweep" => sweep::run(&self.shared, stones, context),
            "verify" => verify::run(&self.shared, stones, context),
            "stats" => stats::run(&self.shared, stones, context),
            kind => bounds::run(&self.shared, kind, stage.name.parameters(), context),
        })
    }
}
