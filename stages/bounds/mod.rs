//! The stages of the bound methods *two-bit*, *one-bit* and *one-bit-dual*, which exchange planes on disk.
//!
//! First `seeds:n` sorts the captures by the bound at which they begin to matter. Then, for each bound b from
//! n down to 1,
//!
//! * `preprocess:n:b` finds the positions that a capture wins at b but not at b + 1 (`BB.seed`);
//! * `process:n:b` solves the bound: the positions won (`BB.won`) and lost (`BB.lost`) at b but not at b + 1;
//! * `postprocess:n:b` transposes the lost positions into the orientation of the database (`BB.plane`);
//!
//! and `merge:n` makes the database from all bounds. A position is in the planes of one bound only, and the
//! state at bound b is the union of the planes of b and above. The state stays in memory from stage to stage
//! ([`state`]); a resumed run or a single stage loads it from the planes. The methods differ in the storage
//! of the state ([`plane_storage`]), not in files.

mod batches;
mod bound_solver;
mod capture_counts;
mod decided;
mod declaration;
mod merge;
mod plane_storage;
mod planes;
mod planes_above;
mod postprocess;
mod preprocess;
mod previous_plane;
mod process;
mod rank_solver;
mod ranks;
mod seed_captures;
mod seeds;
mod state;
mod team;
mod transpose;
mod wins_by_capture;

pub(crate) use merge::MERGE;
pub(crate) use planes::{PlaneFile, PlaneReader};
pub(crate) use postprocess::POSTPROCESS;
pub(crate) use preprocess::PREPROCESS;
pub(crate) use process::PROCESS;
pub(crate) use seed_captures::{SEEDS, SeedCaptures};
pub(crate) use seeds::SEEDS_OF_BOUNDS;
