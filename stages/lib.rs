//! The stages of a build. They connect the pipeline, which knows nothing of awari, with the solvers, which know nothing
//! of files.
//!
//! A kind of stage is a module with a [`StageKind`](kind::StageKind), and a row of the table in [`kinds`]: it
//! declares its stages with their inputs and outputs, and runs them. A stage opens its inputs, calls a solver
//! and publishes its outputs. Method, memory layout and caches are in the plan of its database; costs come
//! from there too. A stage decides only what depends on the content of the stage cache and of files: where
//! the previous plane is (`bounds`), in which direction captures are computed (`capture`), whether files are
//! mapped (`verify`).
//!
//! * `capture`, then `counting`, `sweep` or those of `bounds`, then `verify`, `stats` and `puzzles`.
//! * After all databases, `evaluation` fits the evaluation of the engine, and `book` expands an opening book.
//! * `team` runs a stage on all ranks of a job; a machine alone is a team of one. [`distributed`] has what
//!   only several ranks need, and a submodule `ranks` what only those of one kind do.
//! * [`Awari`] is the table as the pipeline sees it, and [`follow`] as a rank other than 0 sees it; `graph`
//!   orders the stages.
//! * `files` names and opens files, `inspection` recognises them, `stage_cache` keeps arrays from one stage
//!   to the next, `snapshot_timer` decides when a long stage saves its state.
//!
//! # Overview of types
//!
//! * **Kinds.** A `StageKind` has the functions of a kind of stage; its `declare` returns `Declaration`s, and
//!   a `FileFamily` describes the files of a folder.
//! * **A build.** A `BuildContext` has the plans, the tables, the `StageCache` (arrays and databases in
//!   memory) and the `KeptState` of kinds (a `BoundState` of planes, for example). With many machines it has
//!   a [`distributed::JobLeader`].
//! * **A team.** A `TeamMember` is one rank in one stage, with a task that rank 0 has sent as a `StageOrder`:
//!   a `ReadTask`, `SolveTask` or `PlaneTask`. A rank other than 0 is a `FollowerRank`. Errors that all ranks
//!   know are `RankFailure::Agreed`.
//! * **Files.** A `TeamFile` is written in parts, by a `TeamWriter` on each rank; `DatabaseWriter` adds the opening.
//! * **Bounds.** `PlaneReader` and `PlaneWriter` stream planes; a `BoundSolver`, or a `RankSolver` of several
//!   ranks, hides how a method stores its bits.
//! * **Solvers.** A `OneStageSolver` makes all scores in one stage, on each `SolveRank` of a team, watched by
//!   a `SolveObserver`.
//! * **Long stages.** A `SnapshotTimer` says when state is saved; `SolverProgress` passes progress on and
//!   stops a solver.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod awari;
mod book;
mod bounds;
mod build_context;
mod capture;
mod counting;
mod declaration;
pub mod distributed;
mod evaluation;
pub mod files;
mod follower;
mod graph;
mod inspection;
mod kept_state;
mod kind;
pub mod kinds;
mod opening;
mod puzzles;
mod snapshot_timer;
mod solver;
mod solver_progress;
mod solving;
mod stage_cache;
mod stats;
mod sweep;
mod team;
mod thread_pool;
mod verify;

pub use awari::Awari;
pub use book::{BookDatabases, NamedDatabases};
pub use follower::follow;
pub use kind::Phase;
pub use thread_pool::thread_pool;
