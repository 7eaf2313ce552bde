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

mod artifact;
mod budget;
pub mod directory;
mod error;
mod exit;
mod fingerprint;
mod graph;
pub mod journal;
pub mod manifest;
mod observer;
pub mod orchestrator;
mod path_text;
pub mod plan;
pub mod preflight;
pub mod progress;
mod report;
mod stage;
pub mod status;
mod suggest;
#[cfg(test)]
mod toy;
mod work;

pub use artifact::{ArtifactKind, ArtifactName, ArtifactSpec, Inspection};
pub use budget::Budget;
pub use directory::{Directory, Heartbeat, Snapshots, Space, StopRequest};
pub use error::PipelineError;
pub use exit::Exit;
pub use graph::{Graph, GraphError};
pub use manifest::{Diagnostic, Manifest, Schema};
pub use observer::{Event, Observer, SilentObserver};
pub use orchestrator::{HeartbeatObserver, Orchestrator, RunOptions, RunSummary};
pub use path_text::PathText;
pub use plan::{Keep, Plan, PlanOptions, Reason, StageCounts, Standing};
pub use progress::{ProgressReading, StageProgress};
pub use report::{Counter, StageError, StageReport};
pub use stage::{Cost, StageName, StageSpec};
pub use work::{StageContext, Work};
