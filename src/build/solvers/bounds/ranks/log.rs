//! Decisions of a rank at a bound, logged until the planes of the bound are written.

use super::message::{BoundMessage, EncodedBits};
use crate::bounds::{BitKernel, PlaneLayout, PlaneSlab, Units};
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

    /// Logs encoded bits of a row.
    pub(super) fn write(&self, slab: usize, row: usize, encoded: &EncodedBits) {
        let layout = &self.slabs[slab];
        let bound_message = &self.bound_messages[self.first_units[slab] + row / layout.unit_rows()];
        let mut bound_message = bound_message.lock().unwrap_or_else(PoisonError::into_inner);
        bound_message.append((layout.first_row + row) as u32, encoded);
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
    /// By thread, scratch space.
    encoded: Vec<Mutex<EncodedBits>>,
}

/// Storage of units, or parts of units.
pub type BoxedUnits<E> = Box<dyn Units<E> + Send + Sync>;

impl<E> OwnedCandidates<E> {
    /// Creates the candidates in `units`, which are empty.
    pub(super) fn none(layout: &PlaneLayout, units: BoxedUnits<E>, kernel: BitKernel) -> OwnedCandidates<E> {
        let encoded = (0..rayon::current_num_threads()).map(|_| Mutex::default()).collect();
        OwnedCandidates { units, lost: DecisionLog::new(layout, kernel), encoded }
    }
}

impl<E> Units<E> for OwnedCandidates<E> {
    fn visit(&self, unit: usize, visitor: &mut dyn FnMut(&mut [u64]) -> bool) -> Result<(), E> {
        self.units.visit(unit, visitor)
    }

    fn lost(&self, slab: usize, row: usize, bits: &[(u32, u64)]) {
        let encoded = &self.encoded[rayon::current_thread_index().unwrap_or(0) % self.encoded.len()];
        let mut encoded = encoded.lock().unwrap_or_else(PoisonError::into_inner);
        encoded.encode(self.lost.kernel, bits);
        self.lost.write(slab, row, &encoded);
    }
}
