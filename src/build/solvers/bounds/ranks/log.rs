//! Decisions of a rank at a bound, logged until the planes of the bound are written.

use super::message::{BoundMessage, EncodedBits};
use crate::bounds::storage::Units;
use crate::bounds::{BitKernel, PlaneLayout, PlaneSlab};
use std::mem::take;
use std::sync::{Mutex, PoisonError};

/// Log of the bits that were set, by unit of a plane. Encoded as messages, since a bound sets few bits.
#[derive(Debug)]
pub(super) struct DecisionLog {
    slabs: Vec<PlaneSlab>,
    /// By slab, its first unit.
    first_units: Vec<usize>,
    bound_messages: Vec<Mutex<BoundMessage>>,
    pub(super) kernel: BitKernel,
}

impl DecisionLog {
    pub(super) fn new(layout: &PlaneLayout, kernel: BitKernel) -> DecisionLog {
        let units = layout.units();
        let first = |slab: usize| units.partition_point(|unit| unit.slab < slab);
        DecisionLog {
            slabs: layout.slabs().to_vec(),
            first_units: (0..layout.slabs().len()).map(first).collect(),
            bound_messages: units.iter().map(|_| Mutex::default()).collect(),
            kernel,
        }
    }

    /// Logs bits of a row, by word.
    pub(super) fn write(&self, slab: usize, row: usize, bits: &[(u32, u64)]) {
        self.of_row(slab, row, |bound_message, row| bound_message.write(self.kernel, row, bits));
    }

    /// Logs encoded bits of a row.
    pub(super) fn append(&self, slab: usize, row: usize, encoded: &EncodedBits) {
        self.of_row(slab, row, |bound_message, row| bound_message.append(row, encoded));
    }

    /// Passes the log of the unit of a row, and the number of the row, counted over all slabs.
    fn of_row(&self, slab: usize, row: usize, log: impl FnOnce(&mut BoundMessage, u32)) {
        let layout = &self.slabs[slab];
        let bound_message = &self.bound_messages[self.first_units[slab] + row / layout.unit_rows()];
        log(&mut bound_message.lock().unwrap_or_else(PoisonError::into_inner), (layout.first_row + row) as u32);
    }

    /// Returns the log of a unit.
    pub(super) fn of_unit(&self, unit: usize) -> Vec<u8> {
        self.bound_messages[unit].lock().unwrap_or_else(PoisonError::into_inner).bytes().to_vec()
    }

    /// Clears the log.
    pub(super) fn clear(&mut self) {
        self.bound_messages.iter_mut().for_each(|bound_message| drop(take(bound_message)));
    }
}

/// The candidates that a rank owns.
pub(super) struct OwnedCandidates<E> {
    units: BoxedUnits<E>,
    /// Log of the candidates found lost.
    pub(super) lost: DecisionLog,
}

/// Storage of units, or parts of units.
pub type BoxedUnits<E> = Box<dyn Units<E> + Send + Sync>;

impl<E> OwnedCandidates<E> {
    /// Creates the candidates in `units`, which are empty.
    pub(super) fn none(layout: &PlaneLayout, units: BoxedUnits<E>, kernel: BitKernel) -> OwnedCandidates<E> {
        OwnedCandidates { units, lost: DecisionLog::new(layout, kernel) }
    }
}

impl<E> Units<E> for OwnedCandidates<E> {
    fn visit(&self, unit: usize, visitor: &mut dyn FnMut(&mut [u64]) -> bool) -> Result<(), E> {
        self.units.visit(unit, visitor)
    }

    fn lost(&self, slab: usize, row: usize, bits: &[(u32, u64)]) {
        self.lost.write(slab, row, bits);
    }
}
