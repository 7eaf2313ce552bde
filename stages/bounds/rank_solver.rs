//! The solver of a bound on one rank of a job, independent of the storage of its planes.

use super::declaration;
use super::plane_storage::{PagedWords, UnitsOnDisk};
use super::team::PlaneMember;
use crate::team::TeamMember;
use disk::DiskError;
use messaging::Communicator;
use planner::PlanesInMemory;
use solvers::bounds::ranks::{
    self, BoxedUnits, Decided, DistributedBoundReport, KeptInMemory, KeptWords, PlaneRun, RankPlanes, RowPartition,
};
use solvers::bounds::{BitKernel, PlaneUnit};
use solvers::ranks::JobError;
use solvers::{DriverObserver, Tables};
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

/// Planes of a rank with any storage: see [`RankPlanes`].
pub(super) trait RankSolver: Send + Sync {
    fn units(&self) -> &[PlaneUnit];
    fn kept_runs(&self) -> Box<dyn Iterator<Item = PlaneUnit> + '_>;
    fn add_wins_above(&self, run: &PlaneUnit, words: &mut [u64]);
    fn add_seeds(&self, run: &PlaneUnit, words: &mut [u64]);
    fn add_candidates(&self, number: usize, words: &[u64]) -> Result<(), DiskError>;
    fn settle(&self);
    fn solve(
        &mut self,
        communicator: &mut dyn Communicator,
        progress: &dyn DriverObserver,
    ) -> Result<DistributedBoundReport, JobError>;
    fn collect(
        &mut self,
        decided: Decided,
        ranges: &[Range<usize>],
        communicator: &mut dyn Communicator,
        sink: &mut dyn FnMut(PlaneRun) -> ControlFlow<()>,
    ) -> messaging::Result<bool>;
    fn check(&mut self) -> Result<(), DiskError>;
}

impl<W: KeptWords<DiskError> + Send> RankSolver for RankPlanes<W, DiskError> {
    fn units(&self) -> &[PlaneUnit] {
        self.units()
    }

    fn kept_runs(&self) -> Box<dyn Iterator<Item = PlaneUnit> + '_> {
        Box::new(self.kept_runs())
    }

    fn add_wins_above(&self, run: &PlaneUnit, words: &mut [u64]) {
        self.add_wins_above(run, words);
    }

    fn add_seeds(&self, run: &PlaneUnit, words: &mut [u64]) {
        self.add_seeds(run, words);
    }

    fn add_candidates(&self, number: usize, words: &[u64]) -> Result<(), DiskError> {
        self.add_candidates(number, words)
    }

    fn settle(&self) {
        self.settle();
    }

    fn solve(
        &mut self,
        communicator: &mut dyn Communicator,
        progress: &dyn DriverObserver,
    ) -> Result<DistributedBoundReport, JobError> {
        self.solve(communicator, progress)
    }

    fn collect(
        &mut self,
        decided: Decided,
        ranges: &[Range<usize>],
        communicator: &mut dyn Communicator,
        sink: &mut dyn FnMut(PlaneRun) -> ControlFlow<()>,
    ) -> messaging::Result<bool> {
        self.collect(decided, ranges, communicator, sink)
    }

    fn check(&mut self) -> Result<(), DiskError> {
        self.check()
    }
}

/// Returns the solver of a rank with empty planes, in the planned storage. Scratch files are on the local
/// disk of the rank, or beside the planes in `directory`.
pub(super) fn empty(
    member: &PlaneMember,
    tables: Arc<Tables>,
    (rank, ranks): (usize, usize),
    directory: &Path,
) -> Result<Box<dyn RankSolver>, DiskError> {
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
