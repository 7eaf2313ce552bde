//! What the stages of one build share: plans, tables, the stage cache, and the job.

use crate::distributed::JobLeader;
use crate::kept_state::KeptState;
use crate::stage_cache::StageCache;
use planner::{BuildPlan, DatabasePlan, Settings};
use solvers::Tables;
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// State that the stages of one build share.
pub(crate) struct BuildContext {
    plan: BuildPlan,
    tables: Mutex<Option<Arc<Tables>>>,
    stage_cache: StageCache,
    kept: KeptState,
    job: Option<Arc<JobLeader>>,
}

impl BuildContext {
    /// Returns the context of a build, on this machine or led by rank 0 of a job.
    pub(crate) fn new(plan: BuildPlan, job: Option<Arc<JobLeader>>) -> BuildContext {
        let (stage_cache, kept) = (StageCache::default(), KeptState::default());
        BuildContext { plan, tables: Mutex::new(None), stage_cache, kept, job }
    }

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

    /// Returns what a kind of stage keeps in memory from one stage to the next.
    pub(crate) fn kept<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        self.kept.of()
    }

    /// Returns the job, if this process is rank 0 of one.
    pub(crate) fn job(&self) -> Option<&JobLeader> {
        self.job.as_deref()
    }

    /// Returns the job, if its ranks capture, verify and count this database together.
    pub(crate) fn job_that_shares(&self, stones: u32) -> Option<&JobLeader> {
        self.job().filter(|job| job.shares(self.settings(), stones))
    }
}
