//! The driver with all positions in memory.

use super::partition::UnitPartition;
use super::processor::{ActiveProcessor, Processor, ProcessorInputs};
use super::{Distribution, Flush, UpdateCounts, exchange};
use crate::huge_pages::Bytes;
use crate::kernels::tables::Tables;
use crate::{DriverObserver, Stopped};
use game::Index;
use rayon::prelude::*;

/// `OpponentMajor` rows that a thread transposes at a time, at the end.
const TRANSPOSE_ROWS: usize = 64;

/// Reason why a database was not solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CountingError {
    /// The observer stopped it.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The initial array counts fewer children than there are: no call wrote it.
    #[error("a position received more updates than it has children")]
    Inconsistent,
}

/// Work done by a call. Counts start at 0 when a solve resumes from a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountingReport {
    /// Number of exchanges of queues.
    pub supersteps: u64,
    /// Counts by processor.
    pub processors: Vec<UpdateCounts>,
}

impl CountingReport {
    /// Sums the counts of all processors.
    pub fn total(&self) -> UpdateCounts {
        self.processors.iter().fold(UpdateCounts::default(), |sum, &one| sum.add(one))
    }
}

/// Solves the database of `index` from its best captures (`MoverMajor`, see [`crate::capture`]).
///
/// `values` is zeros, or the array of a stopped call or of `checkpoint`. In the end it has the scores in
/// `OpponentMajor` order. `checkpoint` gets it between bounds, when no update is in flight. A stopped call leaves all
/// decisions in it. A solve may resume with another distribution.
///
/// # Errors
/// [`CountingError::Inconsistent`] if `values` is detected to be something else; undetected, the scores are wrong.
///
/// # Panics
/// If the arrays do not have the size of the index, the tables serve fewer stones or another position set, there is no
/// processor, messages have no room, or `values` is outside [`checkpoint_range`].
pub fn counting(
    tables: &Tables,
    index: &Index,
    captures: &Bytes,
    values: &mut Bytes,
    distribution: Distribution,
    progress: &dyn DriverObserver,
    checkpoint: &mut dyn FnMut(&Bytes),
) -> Result<CountingReport, CountingError> {
    assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
    assert!(captures.len() as u64 == index.slab_positions() && values.len() as u64 == index.slab_positions());
    assert!(distribution.processors > 0 && distribution.batch > 0, "{distribution:?}");
    let partition = UnitPartition::new(index.slab_positions(), distribution.processors);
    let processors = (0..partition.processors()).map(|me| Processor::new(&partition, me, distribution)).collect();
    let mut counting = CountingSolver { tables, index, captures, partition, processors, supersteps: 0 };
    let first = counting.restore(values);
    for bound in (1..=first).rev() {
        progress.begin_bound(bound as u32, index.stones());
        counting.bound(bound, values, progress)?;
        checkpoint(values);
    }
    let report = counting.report();
    drop(counting);
    finish(index, values);
    let _ = progress.advance(index.slab_positions(), index.slab_positions());
    Ok(report)
}

struct CountingSolver<'a> {
    tables: &'a Tables,
    index: &'a Index,
    captures: &'a Bytes,
    partition: UnitPartition,
    processors: Vec<Processor>,
    supersteps: u64,
}

impl CountingSolver<'_> {
    /// Counts the children of untouched positions, finds pending updates, and returns the bound to resume at.
    fn restore(&mut self, values: &mut Bytes) -> i8 {
        let (work, mut parts) = self.parts(0, values);
        let least = parts.par_iter_mut().filter_map(|part| part.restore(&work)).min();
        least.unwrap_or(self.index.stones() as i8)
    }

    /// All supersteps of a bound.
    fn bound(&mut self, bound: i8, values: &mut Bytes, progress: &dyn DriverObserver) -> Result<(), CountingError> {
        let positions = self.index.slab_positions();
        let mut supersteps = 0;
        let (work, mut parts) = self.parts(bound, values);
        parts.par_iter_mut().for_each(|part| part.look_at_captures(&work));
        loop {
            let decided = parts.iter().map(ActiveProcessor::decided).sum();
            if progress.advance(decided, positions).is_break() {
                // Delivers all updates, including those in partial messages.
                parts.par_iter_mut().for_each(|part| part.receive(&work));
                exchange(&mut parts, 0, Flush::All);
                parts.par_iter_mut().for_each(|part| {
                    part.receive(&work);
                    part.save(&work);
                });
                return Err(Stopped.into());
            }
            parts.par_iter_mut().for_each(|part| {
                part.receive(&work);
                part.notify(&work);
            });
            supersteps += 1;
            if parts.iter().any(ActiveProcessor::is_inconsistent) {
                return Err(CountingError::Inconsistent);
            }
            let sent = exchange(&mut parts, 0, Flush::Idle);
            if sent == 0 && parts.iter().all(ActiveProcessor::is_idle) {
                break;
            }
        }
        drop(parts);
        self.supersteps += supersteps;
        Ok(())
    }

    /// Pairs the processors with their parts of the array.
    fn parts<'v>(&'v mut self, bound: i8, values: &'v mut Bytes) -> (ProcessorInputs<'v>, Vec<ActiveProcessor<'v>>) {
        let CountingSolver { tables, index, captures, partition, processors, .. } = self;
        let units = partition
            .split(values.chunks_mut(partition.unit()))
            .into_iter()
            .zip(partition.split(captures.chunks(partition.unit())));
        let parts = processors.iter_mut().zip(units);
        let parts =
            parts.map(|(processor, (units, captures))| ActiveProcessor::new(processor, units, captures)).collect();
        (ProcessorInputs { tables, index, partition, bound }, parts)
    }

    fn report(&self) -> CountingReport {
        CountingReport {
            supersteps: self.supersteps,
            processors: self.processors.iter().map(|processor| processor.traffic()).collect(),
        }
    }
}

/// Scores undecided positions 0, and transposes every slab.
fn finish(index: &Index, values: &mut Bytes) {
    let undecided = -(index.stones() as i8);
    let mut copy = Vec::new();
    for slab in index.slabs() {
        let (rows, columns) = (slab.mover_halves as usize, slab.opponent_halves as usize);
        let slab = &mut values[slab.offset as usize..][..rows * columns];
        copy.clear();
        copy.extend_from_slice(slab);
        slab.par_chunks_mut(TRANSPOSE_ROWS * rows).enumerate().for_each(|(at, band)| {
            let first = at * TRANSPOSE_ROWS;
            let width = band.len() / rows;
            for (row, from) in copy.chunks_exact(columns).enumerate() {
                for (column, &value) in from[first..first + width].iter().enumerate() {
                    band[column * rows + row] = if value < undecided { 0 } else { value };
                }
            }
        });
    }
    // The opening position of 48 stones lies behind all slabs and has no place in a method.
}
