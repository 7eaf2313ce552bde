//! Stages that all ranks of a job work on.
//!
//! Rank 0 leads: only this rank runs the pipeline, writes the journal and publishes files. The others follow: each
//! waits for a [`JobOrder`](order::JobOrder) and does its share. All ranks see the run directory and read their inputs
//! there.
//!
//! * `capture:n`: each rank captures for some rows of each slab and sends them to rank 0 ([`capture`]).
//! * `sweep:n`, `counting:n`: each rank solves its part ([`solve`]), with snapshots on a local disk if it has one
//!   ([`local_scratch`]), and writes a part of the database ([`database_writer`]).
//! * `process:n:b` of two-bit: each rank solves its part, and rank 0 writes ([`bounds`]).
//! * `verify:n`, `stats:n`: each rank checks or counts a part ([`verify`], [`stats`]).
//! * `book:K`: each rank assesses a share of the positions, and rank 0 enters them ([`book`]).
//!
//! An error on one rank is reported to all, so that all leave the stage together ([`agreement::agree`]).

mod agreement;
mod book;
mod bound_task;
mod bounds;
mod capture;
mod counting_snapshots;
mod database_writer;
mod follower;
mod job;
mod leases;
mod local_scratch;
mod message;
mod order;
mod rank_load;
mod solve;
mod solve_task;
mod stats;
mod verify;

pub(crate) use book::BookRanks;
pub(crate) use bounds::{BoundsOfLeader, is_distributed, preprocess, process};
pub(crate) use capture::run as capture;
pub use follower::follow;
pub use job::JobLeader;
pub(crate) use local_scratch::name_of;
pub(crate) use solve::run as solve;
pub(crate) use stats::run as stats;
pub(crate) use verify::run as verify;

use disk::Disk;
use planner::BuildPlan;
use std::sync::atomic::AtomicBool;

/// Upper bound on the ranks of a job.
const RANKS_MAX: usize = 1 << 16;

/// Upper bound on the logical processors of a rank.
const PROCESSORS_MAX: usize = 1 << 16;

/// Environment of a rank other than 0.
struct FollowerRank<'a> {
    plan: &'a BuildPlan,
    disk: &'a dyn Disk,
    /// Set by a signal that requests a stop.
    stop: &'a AtomicBool,
}
