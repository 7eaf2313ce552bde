//! The main loop of a rank other than 0.

use crate::distributed::{JobOrder, RankFailure, agree};
use crate::kinds;
use crate::team::FollowerRank;
use crate::thread_pool::thread_pool;
use disk::Disk;
use messaging::Communicator;
use pipeline::StageError;
use planner::{BuildPlan, Settings};
use std::sync::atomic::AtomicBool;

/// Executes the orders of rank 0 until the last one. `settings` are those of the manifest, or an error of
/// reading it; `note` gets the stage that the rank begins, and `None` when it waits for an order.
///
/// # Errors
/// If communication with the other ranks fails.
pub fn follow(
    settings: Result<&Settings, String>,
    disk: &dyn Disk,
    communicator: &mut dyn Communicator,
    stop: &AtomicBool,
    note: &dyn Fn(Option<&str>),
) -> Result<(), StageError> {
    let plan = settings.map(|settings| BuildPlan::new(settings.clone().with_ranks(communicator.size())));
    let rank = plan.map(|plan| FollowerRank::new(plan, disk, stop));
    loop {
        note(None);
        let order = communicator.broadcast(0, None).map_err(StageError::failed)?;
        let JobOrder::Stage(order) = JobOrder::decode(&order).map_err(StageError::failed)? else { return Ok(()) };
        note(Some(&order.to_string()));
        let followed = match &rank {
            Ok(rank) => {
                let pool = thread_pool(rank.build.settings().threads).map_err(StageError::no_threads)?;
                let kind = kinds::named(&order.kind).ok_or_else(|| StageError::failed(order.unexpected()))?;
                pool.install(|| (kind.options.follow)(rank, &order, communicator))
            }
            Err(why) => agree(communicator, Err(StageError::failed(why.as_str()))),
        };
        if let Err(RankFailure::Isolated(error)) = followed {
            return Err(error);
        }
    }
}
