//! Planning: which stages run, and why. A pure function of the graph, the journal and the files on disk.
//!
//! A stage runs if
//!
//! * one of its targets or reports is not fresh (module `freshness`),
//! * or the user forces it,
//! * or a stage that runs reads one of its intermediates, and that is not fresh.
//!
//! Contents depend on fingerprints alone. So an artifact that is only absent, damaged or forced is expected
//! to get its old digest, and no stage after it is planned. A new plan is made after each stage: if the
//! digest did change, the new plan contains the stages after it; if an artifact that was expected to change
//! did not, the stages after it are dropped.

mod decision;
mod freshness;
#[cfg(test)]
mod tests;

pub use decision::plan;
pub(crate) use decision::{find, plan_of};
pub(crate) use freshness::{Freshness, FreshnessTable, evaluate};
