//! What several ranks of a job need besides the stages themselves.
//!
//! Rank 0 leads: only this rank runs the pipeline, writes the journal and publishes files. The others follow:
//! each waits for a [`JobOrder`] and does its share. All ranks see the run directory and read their inputs
//! there. An error on one rank is reported to all, so that all leave the stage together ([`agree`]).
//!
//! * [`job`] and [`order`]: what rank 0 asks of the others.
//! * [`agreement`], [`rank_load`], [`leases`]: results, loads, and work that a lost rank leaves to others.
//! * [`roster`] and [`rank_watch`]: which processes the ranks are, and that they still exist.
//! * [`separate_work`]: work without messages.
//! * [`team_file`]: a file of which each rank writes a part.
//! * [`local_scratch`]: a directory on the local disk of each rank.

mod agreement;
mod job;
mod leases;
pub(crate) mod limits;
mod local_scratch;
pub(crate) mod message;
mod order;
mod rank_load;
mod rank_watch;
mod roster;
mod separate_work;
mod team_file;

pub(crate) use agreement::{RankFailure, RankResult, agree};
pub use job::JobLeader;
pub(crate) use job::is_shared;
pub(crate) use leases::{LeaseAnswer, LeaseResult, Leases};
pub(crate) use local_scratch::{LocalScratch, name_of};
pub(crate) use order::{DatabaseTask, JobOrder, ReadTask, StageOrder, StageTask};
pub(crate) use rank_load::{LoadMeter, RankLoads};
pub use rank_watch::{LostRank, RankSign, RankWatch, SignedEnd, lost_rank};
pub use roster::{RankIdentity, Roster};
pub(crate) use separate_work::separately;
pub(crate) use team_file::{TeamFile, TeamWriter};
