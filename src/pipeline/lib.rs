//! The pipeline: what is to be done, why, in which order, and how far it is.
//!
//! Stages with declared inputs, outputs and costs form a [`Graph`]; the [`plan`](plan::plan) is a pure
//! function of the graph, the [`Journal`](journal::Journal) and what is on disk; the [`Orchestrator`]
//! carries it out one stage at a time, so that a kill at any moment costs at most the stage at hand.
//!
//! Invariants:
//!
//! * It knows nothing of any game: stages, keys, identities and values are data that [`Work`] and the
//!   [`Schema`] give it.
//! * What decides whether something is rebuilt are contents and parameters: never times of files,
//!   never method, codec, threads, memory or paths (module [`fingerprint`]).
//! * A file is in the journal only after it is durable, and used only if journal and header agree, or
//!   if its header alone tells all.
//! * Only the holder of the directory's lock writes to it, and where locks fail the latest (module `fence`). Planning, status and single stages read.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod artifact;
pub mod budget;
mod claim;
pub mod counts;
mod diagnostic;
pub mod directory;
pub mod error;
mod execution;
pub mod exit;
pub mod explain;
mod fence;
pub mod fingerprint;
pub mod forecast;
mod freshness;
pub mod garbage;
pub mod graph;
pub mod heartbeat;
pub mod history;
pub mod journal;
pub mod manifest;
pub mod observer;
pub mod orchestrator;
pub mod passes;
mod path_text;
pub mod plan;
pub mod preflight;
pub mod progress;
pub mod reason;
pub mod record;
mod schema;
pub mod single;
mod snapshots;
mod space;
pub mod stage;
pub mod state;
pub mod status;
mod stop;
mod suggest;
mod value;
pub mod work;

#[cfg(test)]
mod claim_cases;
#[cfg(test)]
mod fence_cases;
#[cfg(test)]
mod journal_cases;
#[cfg(test)]
mod manifest_cases;
#[cfg(test)]
mod plan_cases;
#[cfg(test)]
mod run_cases;
#[cfg(test)]
mod toy;

pub use artifact::{ArtifactKind, ArtifactName, ArtifactSpec, Found};
pub use budget::Budget;
pub use counts::{Counts, Standing};
pub use directory::Directory;
pub use error::PipelineError;
pub use exit::Exit;
pub use graph::{Graph, GraphError};
pub use heartbeat::{Beating, Heartbeat};
pub use manifest::{Diagnostic, Manifest, Schema};
pub use observer::{Event, Observer, Silent};
pub use orchestrator::{Orchestrator, RunOptions, Summary};
pub use path_text::PathText;
pub use plan::{Keep, Plan, PlanOptions};
pub use progress::{Progress, Reading};
pub use reason::Reason;
pub use snapshots::Snapshots;
pub use space::Space;
pub use stage::{Cost, StageName, StageSpec};
pub use stop::StopRequest;
pub use work::{Counter, StageContext, StageError, StageReport, Work};
