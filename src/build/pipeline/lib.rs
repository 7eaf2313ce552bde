//! A resumable pipeline of stages: manifest, plan, journal and runs.
//!
//! Stages with declared inputs, outputs and costs form a [`Graph`]. The [`plan`](planning::plan) is a pure
//! function of the graph, the [journal](journal::Journal) and the files on disk. The [`Orchestrator`] runs
//! the plan, one stage or several at a time, so that a kill at any moment costs at most the current ones.
//!
//! Invariants:
//!
//! * The crate knows nothing of any game. Stages, manifest keys, identities and values are data that [`Work`] and the
//!   [`Schema`] supply.
//! * Contents and parameters decide whether something is rebuilt; file times, method, codec, threads, memory and paths
//!   never do (module `fingerprint`).
//! * A file is recorded in the journal only after it is durable. It is used only if journal and header agree, or if its
//!   header alone is complete.
//! * Only the holder of the directory's lock writes to it; where locks fail, only the latest run does (module
//!   `journal::fence`). Planning, status and single stages only read.
//!
//! # Overview of types
//!
//! * **What is wanted.** A [`Manifest`] has values for the keys of a [`Schema`], or [`Diagnostic`]s that
//!   point into its text. A [`Work`] turns them into a [`Graph`] of [`StageSpec`]s and [`ArtifactSpec`]s, and
//!   runs a stage.
//! * **What is there.** [`Directory`] is a run directory under its lock. [`journal::Contents`] are the
//!   records of its journal, [`journal::JournalState`] what they come to, [`journal::History`] what happened
//!   in order. An [`Inspection`] tells what a file says of itself.
//! * **What is to do.** A [`Plan`] lists the stages to run, each with a [`Reason`], and those that are up to date.
//! * **Running.** An [`Orchestrator`] runs a plan by [`RunOptions`] and returns a [`RunSummary`]. It gives each stage a
//!   [`StageContext`], with its paths, [`StageProgress`], [`Snapshots`] and stop flag, and gets a [`StageReport`] or
//!   [`StageError`]. An [`Observer`] sees [`Event`]s; [`status::Status`] is what another process sees.
//! * **Limits.** A [`Budget`] of memory, the [`Cost`] of a stage, the [`Space`] on disk, [`preflight::Resources`].
//! * **Ends.** A [`PipelineError`] has an [`Exit`] code.

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
pub mod planning;
pub mod preflight;
pub mod progress;
mod report;
mod schedule;
mod snapshots;
mod stage;
pub mod status;
mod stop_signal;
mod suggest;
pub mod thread_label;
#[cfg(test)]
mod toy;
mod turns;
mod work;

pub use artifact::{ArtifactKind, ArtifactName, ArtifactSpec, Inspection};
pub use budget::Budget;
pub use directory::{Directory, Heartbeat, Space, StageHeartbeat, StopRequest};
pub use error::{PipelineError, Result};
pub use exit::Exit;
pub use graph::{Graph, GraphError};
pub use manifest::{Diagnostic, Manifest, Schema};
pub use observer::{Event, Observer, SilentObserver};
pub use orchestrator::{HeartbeatObserver, Orchestrator, RunOptions, RunSummary};
pub use path_text::PathText;
pub use plan::{Keep, Plan, PlanOptions, Reason, StageCounts, Standing};
pub use progress::{ProgressReading, StageProgress};
pub use report::{Counter, StageError, StageReport, StageResult};
pub use schedule::SchedulePrediction;
pub use snapshots::Snapshots;
pub use stage::{Cost, StageName, StageSpec};
pub use stop_signal::StopSignal;
pub use turns::Turns;
pub use work::{StageContext, Work};
