//! The stages of a manifest, as the pipeline sees them.

use crate::build_context::BuildContext;
use crate::distributed::{self, JobLeader};
use crate::thread_pool::thread_pool;
use crate::{files, graph, inspection, kinds};
use disk::{Disk, DiskError};
use pipeline::{
    ArtifactName, ArtifactSpec, Graph, Inspection, StageContext, StageError, StageReport, StageResult, StageSpec, Work,
};
use planner::{BuildPlan, Settings};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The stages of one manifest.
pub struct Awari {
    graph: Graph,
    build: BuildContext,
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
        Awari { graph: graph::graph(&plan), build: BuildContext::new(plan, job) }
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
        let family = kinds::family(&artifact.name).expect("stages declare files of their families");
        inspection::inspect(self.settings(), disk, path, artifact, family)
    }

    fn folders(&self) -> Vec<PathBuf> {
        kinds::folders().into_iter().map(PathBuf::from).collect()
    }

    fn is_name(&self, name: &ArtifactName) -> bool {
        kinds::family(name).is_some()
    }

    fn is_ours(&self, disk: &dyn Disk, path: &Path) -> bool {
        store::begins_as_ours(disk, path)
    }

    fn recognises(&self, disk: &dyn Disk, path: &Path, name: &ArtifactName) -> Result<bool, DiskError> {
        Ok(inspection::recognised(disk, path).is_some_and(|recognised| recognised == *name))
    }

    fn is_kept(&self, name: &ArtifactName) -> bool {
        kinds::KINDS.into_iter().any(|kind| (kind.options.is_kept)(name))
    }

    fn local_snapshots(&self, disk: &dyn Disk, directory: &Path) -> Option<PathBuf> {
        let databases = files::database(0).below(directory);
        let scratch = self.settings().scratch.as_ref()?;
        Some(scratch.join(distributed::name_of(disk, databases.parent().unwrap_or(directory))))
    }

    fn run(&self, stage: &StageSpec, context: &StageContext<'_>) -> StageResult<StageReport> {
        let pool = thread_pool(context.threads()).map_err(StageError::no_threads)?;
        let (build, parameters) = (&self.build, stage.name.parameters());
        let kind = kinds::kind_of(&stage.name).expect("the graph has stages of known kinds");
        let plan = build.plan((kind.options.stones)(build.settings(), parameters));
        let _part = build.stage_cache().begin(kind.options.cache_use, stage.cost.memory_bytes, plan);
        pool.install(|| (kind.run)(build, parameters, context))
    }
}
