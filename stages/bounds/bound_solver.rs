//! The solver of a bound, independent of the storage of its planes.

use disk::DiskError;
use solvers::DriverObserver;
use solvers::bounds::{BoundReport, PlaneUnit, Solver, SolverError, Units, Wins, WinsInMemory};
use store::PageCounts;

/// A solver with any storage of its planes.
pub(crate) trait BoundSolver: Send + Sync {
    fn enter_pool(&mut self);
    fn units(&self) -> &[PlaneUnit];
    fn wins_units(&self) -> &[PlaneUnit];
    fn add_wins(&self, unit: &PlaneUnit, words: &mut [u64]);
    fn read_wins(&self, unit: &PlaneUnit, into: &mut [u64]);
    fn add_candidates(&self, unit: usize, new: &[u64], then: &mut dyn FnMut(&[u64])) -> Result<(), DiskError>;
    fn remove_candidates(&self, unit: usize, kept: &[u64]) -> Result<(), DiskError>;
    fn visit(&self, unit: usize, visitor: &mut dyn FnMut(&mut [u64]) -> bool) -> Result<(), DiskError>;
    fn has_won(&self, unit: usize) -> bool;
    fn take_won(&self, unit: usize) -> bool;
    fn has_lost(&self, unit: usize) -> bool;
    fn take_lost(&self, unit: usize) -> bool;
    fn settle(&self);
    fn unsettle(&self);
    fn solve(
        &self,
        progress: &dyn DriverObserver,
        checkpoint: &mut dyn FnMut() -> Result<(), DiskError>,
    ) -> Result<BoundReport, SolverError<DiskError>>;
    fn check(&self) -> Result<(), DiskError>;
    fn page_counts(&self) -> Option<PageCounts>;
}

impl<W: Wins<DiskError> + HasPageCounts + Send, U: Units<DiskError> + Send> BoundSolver for Solver<W, U, DiskError> {
    fn enter_pool(&mut self) {
        self.enter_pool();
    }

    fn units(&self) -> &[PlaneUnit] {
        self.units()
    }

    fn wins_units(&self) -> &[PlaneUnit] {
        self.wins_units()
    }

    fn add_wins(&self, unit: &PlaneUnit, words: &mut [u64]) {
        self.add_wins(unit, words);
    }

    fn read_wins(&self, unit: &PlaneUnit, into: &mut [u64]) {
        self.wins().read(unit.slab, unit.rows.clone(), into);
    }

    fn add_candidates(&self, unit: usize, new: &[u64], then: &mut dyn FnMut(&[u64])) -> Result<(), DiskError> {
        self.add_candidates(unit, new, then)
    }

    fn remove_candidates(&self, unit: usize, kept: &[u64]) -> Result<(), DiskError> {
        self.remove_candidates(unit, kept)
    }

    fn visit(&self, unit: usize, visitor: &mut dyn FnMut(&mut [u64]) -> bool) -> Result<(), DiskError> {
        self.candidates().visit(unit, visitor)
    }

    fn has_won(&self, unit: usize) -> bool {
        self.has_won(unit)
    }

    fn take_won(&self, unit: usize) -> bool {
        self.take_won(unit)
    }

    fn has_lost(&self, unit: usize) -> bool {
        self.has_lost(unit)
    }

    fn take_lost(&self, unit: usize) -> bool {
        self.take_lost(unit)
    }

    fn settle(&self) {
        self.settle();
    }

    fn unsettle(&self) {
        self.unsettle();
    }

    fn solve(
        &self,
        progress: &dyn DriverObserver,
        checkpoint: &mut dyn FnMut() -> Result<(), DiskError>,
    ) -> Result<BoundReport, SolverError<DiskError>> {
        self.solve(progress, checkpoint)
    }

    fn check(&self) -> Result<(), DiskError> {
        self.wins().check()
    }

    fn page_counts(&self) -> Option<PageCounts> {
        self.wins().page_counts()
    }
}

/// Counters of the page cache, for storage that has one.
pub(crate) trait HasPageCounts {
    fn page_counts(&self) -> Option<PageCounts>;
}

impl HasPageCounts for WinsInMemory {
    fn page_counts(&self) -> Option<PageCounts> {
        None
    }
}
