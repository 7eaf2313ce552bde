//! The planner: from a manifest and a machine to one plan for each database of a build.
//!
//! [`Settings`] is the manifest with typed values, [`Hardware`] the machine. A [`DatabasePlan`] holds every
//! decision that the stages of a database need (method, memory layout) and what they are predicted to take
//! (time, memory, disk). It is made once, before the first stage runs; stages read it and never ask the cost
//! model. The memory budget of the manifest reaches every array and cache through its [`StageMemory`].
//!
//! The planner opens no file and allocates nothing that a stage uses.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod book;
mod codec;
mod cost;
mod database;
mod file_size;
mod hardware;
mod job;
mod load;
mod memory;
mod method;
mod one_stage;
mod ramp;
mod settings;
mod sharing;
mod stage_traffic;
mod sweep_job;

pub use book::BookRequest;
pub use cost::CostModel;
pub use database::{BuildPlan, DatabasePlan, MethodPrediction, WORTH_A_SNAPSHOT};
pub use file_size::database_bytes;
pub use hardware::{Hardware, Limit, Network, SharedDisk};
pub use job::{BusySeconds, DatabaseJob, JobLimit, JobPlanner, StageJob};
pub use load::Load;
pub use memory::{CaptureMemory, SEEDS_GROUP_WORDS, StageMemory};
pub use method::{ByMethod, Method, OneStage, PlanesInMemory, StageClass};
pub use ramp::{Ramp, Rates};
pub use settings::{Dual, DualIndex, EvaluationFit, Intermediates, Settings, Verify, schema};
pub use sweep_job::SweepJob;
