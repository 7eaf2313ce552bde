//! The solver of a bound on one rank of a job, independent of the storage of its planes.

use super::declaration;
use super::plane_storage::{PagedWords, UnitsOnDisk};
use super::team::PlaneMember;
use crate::team::TeamMember;
use disk::DiskError;
use planner::PlanesInMemory;
use solvers::Tables;
use solvers::bounds::ranks::{self, BoxedUnits, KeptInMemory, RankPlanes, RankSolver, RowPartition};
use solvers::bounds::{BitKernel, PlaneUnit};
use std::path::Path;
use std::sync::Arc;

/// Returns the solver of a rank with empty planes, in the planned storage. Scratch files are on the local
/// disk of the rank, or beside the planes in `directory`.
pub(super) fn empty(
    member: &PlaneMember,
    tables: Arc<Tables>,
    (rank, ranks): (usize, usize),
    directory: &Path,
) -> Result<Box<dyn RankSolver<DiskError>>, DiskError> {
    let TeamMember { disk, ref index, .. } = *member;
    let (settings, plan) = (member.settings(), member.plan());
    let partition = RowPartition::new(index.stones(), settings.set, ranks);
    let directory = settings.scratch.as_deref().unwrap_or(directory);
    let scratch = |name: &str, words: usize| disk.scratch(&directory.join(name), words as u64 * 8);
    let on_disk = |units: &[PlaneUnit]| -> Result<BoxedUnits<DiskError>, DiskError> {
        let words = units.iter().map(|unit| unit.words.len()).sum();
        Ok(Box::new(UnitsOnDisk::new(scratch("candidates", words)?, units)))
    };
    let in_memory = |words| Ok(KeptInMemory::zeroed(words));
    let kernel = BitKernel::detect();
    Ok(match declaration::planes_in_memory(plan) {
        PlanesInMemory::WinsAndCandidates => {
            let candidates = |units: &[PlaneUnit]| Ok(ranks::in_memory(units));
            Box::new(RankPlanes::empty(tables, index, &partition, rank, kernel, in_memory, candidates)?)
        }
        PlanesInMemory::Wins => {
            Box::new(RankPlanes::empty(tables, index, &partition, rank, kernel, in_memory, on_disk)?)
        }
        PlanesInMemory::None => {
            let (block_bytes, bytes) = (settings.dual.block_bytes as usize, plan.memory().page_cache_bytes);
            let paged = |words| Ok(PagedWords::new(scratch("wins", words)?, block_bytes, bytes));
            Box::new(RankPlanes::empty(tables, index, &partition, rank, kernel, paged, on_disk)?)
        }
    })
}
