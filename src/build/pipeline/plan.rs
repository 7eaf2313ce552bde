//! What a plan says: the stages to run, each with its reason, and those that are settled.

mod reason;
mod stage_counts;
mod steps;

pub use reason::Reason;
pub use stage_counts::{StageCounts, Standing};
pub use steps::{
    AdoptedArtifact, Keep, Plan, PlanOptions, PlanPrediction, PlannedStage, ReplacedArtifact, SettledReason,
    SettledStage,
};
