//! The bound methods: *two-bit*, *one-bit* and *one-bit-dual*, as stages that speak through planes on disk.
//!
//! For a database, first `seeds:n` sorts the captures by the bound at which they begin to matter. Then, for each bound
//! b from n down to 1,
//!
//! * `preprocess:n:b` finds which positions a capture wins at b that were not won before (`BB.seed`);
//! * `process:n:b` solves the bound: who is won (`BB.won`) and lost (`BB.lost`) at b and was not at b + 1;
//! * `postprocess:n:b` turns the lost positions into the orientation of the database (`BB.plane`);
//!
//! and `merge:n` makes the database of all bounds. So every position is written as decided once, and the state at
//! bound b is the union of the planes so far. It stays in memory from stage to stage ([`State`]), and is loaded from the
//! planes when a run is resumed or a single stage rerun; where it has in memory what was lost, `postprocess` takes it from
//! there. The methods differ in where [`State`] lives, and in nothing that is written. The ranks of a job solve the bounds
//! of `two-bit` together, each with its share of the state, see `bounds/ranks.rs`.

mod before;
mod homes;
mod merge;
mod planes;
mod postprocess;
mod preprocess;
mod process;
mod ranks;
mod seeds;
mod state;
mod turn;

pub(crate) use planes::Plane;
pub(crate) use ranks::{Share, Task, follow};
pub(crate) use state::Slot;

use crate::Shared;
use pipeline::{StageContext, StageError, StageReport};

/// Runs a stage of a bound method.
pub(crate) fn run(
    shared: &Shared,
    kind: &str,
    parameters: &[u32],
    context: &StageContext,
) -> Result<StageReport, StageError> {
    match (kind, parameters) {
        ("seeds", &[stones]) => seeds::run(shared, stones, context),
        ("preprocess", &[stones, bound]) => preprocess::run(shared, stones, bound, context),
        ("process", &[stones, bound]) if let Some(job) = ranks::job(shared, stones) => {
            ranks::process(shared, job, stones, bound, context)
        }
        ("process", &[stones, bound]) => process::run(shared, stones, bound, context),
        ("postprocess", &[stones, bound]) => postprocess::run(shared, stones, bound, context),
        ("merge", &[stones]) => merge::run(shared, stones, context),
        _ => unreachable!("the graph has no such stage: {kind} {parameters:?}"),
    }
}
