//! The main loop of a rank other than 0.

use super::FollowerRank;
use super::agreement::{RankFailure, RankResult, agree};
use super::order::JobOrder;
use super::{book, bounds, capture, solve, stats, verify};
use crate::{Result, thread_pool};
use disk::Disk;
use engines::Tables;
use messaging::Communicator;
use pipeline::StageError;
use planner::{BuildPlan, Settings};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Executes the orders of rank 0 until the last one. `settings` are those of the manifest, or an error of reading it.
pub fn follow(
    settings: Result<&Settings, String>,
    disk: &dyn Disk,
    communicator: &mut dyn Communicator,
    stop: &AtomicBool,
) -> Result<()> {
    let plan = settings.map(|settings| BuildPlan::new(settings.clone().with_ranks(communicator.size())));
    let mut kept = FollowerState::default();
    loop {
        let order = communicator.broadcast(0, None).map_err(StageError::failed)?;
        let order = JobOrder::decode(&order).map_err(StageError::failed)?;
        if order == JobOrder::Leave {
            return Ok(());
        }
        let followed = match &plan {
            Ok(plan) => {
                let pool = thread_pool(plan.settings().threads).map_err(StageError::no_threads)?;
                let follower = FollowerRank { plan, disk, stop };
                pool.install(|| follower.obey(order, &mut kept, communicator))
            }
            Err(why) => agree(communicator, Err(StageError::failed(why.clone()))),
        };
        if let Err(RankFailure::Isolated(error)) = followed {
            return Err(error);
        }
    }
}

/// State of a rank between orders.
#[derive(Default)]
struct FollowerState {
    tables: Option<Arc<Tables>>,
    share: Option<bounds::BoundShare>,
}

impl FollowerRank<'_> {
    fn obey(&self, order: JobOrder, kept: &mut FollowerState, communicator: &mut dyn Communicator) -> RankResult<()> {
        match order {
            JobOrder::Capture(task) => capture::follow(self, &task, &self.tables(kept), communicator),
            JobOrder::Solve(task) => solve::follow(self, &task, &self.tables(kept), communicator),
            JobOrder::Bound(task) => {
                let tables = self.tables(kept);
                if task.is_last() {
                    // The tables for pushing wins are large, and not needed for other orders.
                    kept.tables = None;
                }
                bounds::follow(self.plan.settings(), self.disk, tables, &task, &mut kept.share, communicator, self.stop)
            }
            JobOrder::Verify(task) => verify::follow(self, &task, communicator),
            JobOrder::Count(task) => stats::follow(self, &task, &self.tables(kept), communicator),
            JobOrder::Book(task) => book::follow(self, &task, communicator),
            JobOrder::Leave => Ok(()),
        }
    }

    fn tables(&self, kept: &mut FollowerState) -> Arc<Tables> {
        let settings = self.plan.settings();
        let make = || Arc::new(Tables::new(settings.rules, settings.set, settings.stones_max()));
        let tables = kept.tables.get_or_insert_with(make);
        Arc::clone(tables)
    }
}
