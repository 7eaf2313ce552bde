//! What a rank other than 0 keeps from one order to the next.

use crate::kept_state::KeptState;
use disk::Disk;
use planner::BuildPlan;
use solvers::Tables;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Environment of a rank other than 0.
pub(crate) struct FollowerRank<'a> {
    pub(crate) plan: &'a BuildPlan,
    pub(crate) disk: &'a dyn Disk,
    /// Set by a signal that requests a stop.
    pub(crate) stop: &'a AtomicBool,
    tables: Option<Arc<Tables>>,
    kept: KeptState,
}

impl<'a> FollowerRank<'a> {
    pub(crate) fn new(plan: &'a BuildPlan, disk: &'a dyn Disk, stop: &'a AtomicBool) -> FollowerRank<'a> {
        FollowerRank { plan, disk, stop, tables: None, kept: KeptState::default() }
    }

    /// Returns the tables for all databases of the build, made at the first call.
    pub(crate) fn tables(&mut self) -> Arc<Tables> {
        let settings = self.plan.settings();
        let make = || Arc::new(Tables::new(settings.rules, settings.set, settings.stones_max()));
        Arc::clone(self.tables.get_or_insert_with(make))
    }

    /// Drops the tables, until the next call of [`tables`](Self::tables).
    pub(crate) fn forget_tables(&mut self) {
        self.tables = None;
    }

    /// Returns what a kind of stage keeps in memory from one order to the next.
    pub(crate) fn kept<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        self.kept.of()
    }
}
