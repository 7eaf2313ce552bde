//! The driver of the method *counting*, by the ranks of a job (Bal & Allis 1995): the logical processors of
//! [`crate::counting`], with the same number on every rank. A machine alone is a job of one rank.
//!
//! A rank holds the positions of its processors, their captures, and queues of bounded size. In each superstep a rank
//! sends the updates of all its processors to each other rank in one message. Then all ranks vote: a bound ends with a
//! superstep in which no updates were sent and none are pending. So all counts but those of messages are the same as on
//! one machine with as many processors.
//!
//! Unlike those of [`sweep`](crate::sweep::ranks), checkpoints of the ranks fit together only if they are of the
//! same time.

#[cfg(test)]
mod tests;

use crate::counting::partition::UnitPartition;
use crate::counting::processor::{ActiveProcessor, Processor, ProcessorInputs, QUEUES_BYTES};
use crate::counting::{Distribution, Flush, UpdateCounts, exchange};
use crate::huge_pages::Bytes;
use crate::kernels::tables::Tables;
use crate::ranks::{JobError, JobObserver, RowBand, ScoreShare, fits};
use game::{Index, Slab};
use messaging::{CommunicationError, Communicator, Result};
use rayon::prelude::*;
use std::io;
use std::ops::Range;

/// The values of a rank, unit by unit: those of a machine alone in the order of positions, those of a rank of
/// several by processor.
#[derive(Debug)]
pub struct RankValues {
    partition: UnitPartition,
    distribution: Distribution,
    rank: usize,
    ranks: usize,
    slabs: Vec<Slab>,
    /// By processor of the rank and by unit, the offset of the unit.
    offsets: Vec<Vec<usize>>,
    values: Bytes,
}

/// Work done by a job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CountingReport {
    /// Number of exchanges of queues.
    pub supersteps: u64,
    /// Logical processors of all ranks.
    pub processors: u64,
    /// Sum of the counts of all processors, as on one machine.
    pub total: UpdateCounts,
    /// Updates sent from rank to rank.
    pub sent: u64,
    /// Messages from rank to rank with updates.
    pub messages: u64,
    /// Traffic of this rank, including votes.
    pub traffic: messaging::MessageTraffic,
}

impl CountingReport {
    /// The paper's combining factor: updates sent from rank to rank by message; none without messages.
    pub fn combining(&self) -> Option<f64> {
        (self.messages > 0).then(|| self.sent as f64 / self.messages as f64)
    }
}

impl RankValues {
    /// Allocates the values of `rank` among `ranks` ranks, each with the processors of `distribution`, or
    /// more if a part would have more than 2^31 positions; all 0.
    ///
    /// # Panics
    /// If there is no such rank, there is no processor, or messages have no room.
    pub fn zeroed(index: &Index, ranks: usize, rank: usize, distribution: Distribution) -> io::Result<RankValues> {
        assert!(rank < ranks, "rank {rank} of {ranks}");
        assert!(distribution.processors > 0 && distribution.batch > 0, "{distribution:?}");
        let partition = partitioned(index, ranks, distribution.processors);
        let each = partition.processors() / ranks;
        let own = rank * each..(rank + 1) * each;
        let (mut end, mut offsets) = (0, vec![Vec::new(); each]);
        let order = order(&partition, ranks, own.clone());
        let units = order.map(|start| {
            let offset = end;
            end += partition.length(start) as usize;
            (start, offset)
        });
        for (processor, units) in offsets.iter_mut().zip(partition.split(own, units)) {
            *processor = units;
        }
        let (slabs, values) = (index.slabs().to_vec(), Bytes::zeroed(end)?);
        Ok(RankValues { partition, distribution, rank, ranks, slabs, offsets, values })
    }

    /// The rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Processors of each rank.
    pub fn processors(&self) -> usize {
        self.offsets.len()
    }

    /// The values, in the order of [`runs`](Self::runs): scores, or values within
    /// [`checkpoint_range`](crate::counting::checkpoint_range) before the end of the solve.
    pub fn values(&self) -> &[i8] {
        &self.values
    }

    /// The values, to restore a checkpoint.
    pub fn values_mut(&mut self) -> &mut [i8] {
        &mut self.values
    }

    /// Iterates over the positions of the rank (`MoverMajor`), in its order.
    pub fn runs(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let starts = order(&self.partition, self.ranks, self.own());
        starts.map(|start| start..start + self.partition.length(start))
    }

    /// Processors of this rank.
    fn own(&self) -> Range<usize> {
        self.of(self.rank)
    }

    /// Processors of a rank.
    fn of(&self, rank: usize) -> Range<usize> {
        rank * self.processors()..(rank + 1) * self.processors()
    }

    /// Visits a band by the mover's halves, in runs of one unit: processor, place there, half, and rows in the band.
    fn each_run(&self, band: &RowBand, mut visit: impl FnMut(usize, usize, usize, Range<usize>)) {
        let slab = &self.slabs[band.slab];
        for half in 0..slab.mover_halves as usize {
            let start = slab.offset + half as u64 * u64::from(slab.opponent_halves);
            let mut row = band.rows.start;
            while row < band.rows.end {
                let (processor, place) = self.partition.find(start + row as u64);
                let left = self.partition.unit() - (place as usize & (self.partition.unit() - 1));
                let end = band.rows.end.min(row + left);
                visit(processor, place as usize, half, row - band.rows.start..end - band.rows.start);
                row = end;
            }
        }
    }
}

/// Returns, by rank, the positions of the rank in its order ([`RankValues::runs`]). The runs do not depend on the
/// number of ranks and processors, only their owners do.
///
/// # Panics
/// If `ranks` or `processors` is 0.
pub fn runs(index: &Index, ranks: usize, processors: usize) -> Vec<Vec<Range<u64>>> {
    assert!(ranks > 0 && processors > 0, "{ranks} ranks, {processors} processors");
    let partition = partitioned(index, ranks, processors);
    let run = |start: u64| start..start + partition.length(start);
    let each = partition.processors() / ranks;
    let of_rank = |rank| order(&partition, ranks, rank * each..(rank + 1) * each).map(run).collect();
    (0..ranks).map(of_rank).collect()
}

/// Iterates over the first positions of the units of a rank with some processors, in the order of its values.
fn order(partition: &UnitPartition, ranks: usize, processors: Range<usize>) -> Box<dyn Iterator<Item = u64> + '_> {
    match ranks {
        1 => Box::new(partition.all_starts()),
        _ => Box::new(processors.flat_map(|processor| partition.starts(processor)).copied()),
    }
}

/// Returns the processors of each rank when `processors` are requested: more if a part would have more than 2^31
/// positions.
///
/// # Panics
/// If `ranks` or `processors` is 0.
pub fn processors_a_rank(index: &Index, ranks: usize, processors: usize) -> usize {
    partitioned(index, ranks, processors).processors() / ranks
}

/// Partitions a database among the processors of all ranks, see [`RankValues::zeroed`].
fn partitioned(index: &Index, ranks: usize, processors: usize) -> UnitPartition {
    let positions = index.slabs().iter().map(Slab::positions).sum();
    let partition = UnitPartition::new(positions, ranks * processors);
    if partition.processors().is_multiple_of(ranks) {
        return partition;
    }
    UnitPartition::new(positions, partition.processors().next_multiple_of(ranks))
}

/// Bytes that a rank takes for a database of `positions` positions: values and captures, pending bits, queues and
/// messages.
pub fn memory_bytes(positions: u64, ranks: usize, processors: usize) -> u64 {
    let rank_values = positions.div_ceil(ranks as u64);
    rank_values * 2 + rank_values / 8 * 65 / 64 + 2 * processors as u64 * QUEUES_BYTES
}

impl ScoreShare for RankValues {
    fn slabs(&self) -> &[Slab] {
        &self.slabs
    }

    /// By the mover's halves.
    fn give(&self, band: &RowBand, piece: &mut Vec<u8>) {
        let (own, bits) = (self.own(), self.partition.bits());
        self.each_run(band, |processor, place, _, rows| {
            if own.contains(&processor) {
                let unit = self.offsets[processor - own.start][place >> bits];
                let first = unit + (place & (self.partition.unit() - 1));
                piece.extend(self.values[first..first + rows.len()].iter().map(|&score| score as u8));
            }
        });
    }

    fn join(&self, band: &RowBand, pieces: &[&[u8]], rows: &mut [i8]) -> Result<()> {
        let all = self.slabs[band.slab].mover_halves as usize;
        let mut taken = vec![0; pieces.len()];
        self.each_run(band, |processor, _, half, run| {
            let rank = processor / self.processors();
            let at = taken[rank];
            taken[rank] += run.len();
            for (row, &score) in run.zip(pieces[rank].get(at..).unwrap_or_default()) {
                rows[row * all + half] = score as i8;
            }
        });
        pieces.iter().zip(&taken).enumerate().try_for_each(|(rank, (piece, &expected))| fits(rank, expected, piece))
    }
}

/// Solves the database of `index` together with the other ranks. `captures` has the best captures of the positions of
/// `rank_values`, in their order. The values are zeros, or those of a stopped call or checkpoint, of the same time and
/// number of ranks.
///
/// # Panics
/// If the arrays differ in length, the values are of another rank, database or number of ranks, the tables serve fewer
/// stones or another position set, or a value is outside [`checkpoint_range`](crate::counting::checkpoint_range).
pub fn counting(
    tables: &Tables,
    index: &Index,
    captures: &Bytes,
    rank_values: &mut RankValues,
    communicator: &mut dyn Communicator,
    watch: &dyn JobObserver<RankValues>,
) -> Result<CountingReport, JobError> {
    assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
    assert!(rank_values.slabs == index.slabs() && captures.len() == rank_values.values.len());
    assert!((rank_values.rank, rank_values.ranks) == (communicator.rank(), communicator.size()));
    let before = communicator.traffic();
    let distribution = Distribution { processors: rank_values.partition.processors(), ..rank_values.distribution };
    let processors = rank_values.own().map(|me| Processor::new(&rank_values.partition, me, distribution)).collect();
    let mut member = CountingRank {
        tables,
        index,
        captures,
        processors,
        communicator,
        decided: 0,
        report: CountingReport::default(),
    };
    let first = member.restore(rank_values)?;
    for bound in (1..=first).rev() {
        watch.begin_bound(bound as u32, index.stones());
        member.bound(bound, rank_values, watch)?;
        if member.communicator.sum(&[u64::from(watch.is_due())])? != [0] {
            watch.checkpoint(rank_values);
        }
    }
    let report = member.report(rank_values)?;
    let undecided = -(index.stones() as i8);
    rank_values.values.par_iter_mut().filter(|value| **value < undecided).for_each(|value| *value = 0);
    Ok(CountingReport { traffic: communicator.traffic().since(&before), ..report })
}

/// Driver of one rank.
struct CountingRank<'a> {
    tables: &'a Tables,
    index: &'a Index,
    captures: &'a Bytes,
    processors: Vec<Processor>,
    communicator: &'a mut dyn Communicator,
    /// Decided positions of all ranks, as of the last superstep.
    decided: u64,
    /// Counts of this rank so far.
    report: CountingReport,
}

/// Numbers of updates that a rank exchanged.
struct Exchanged {
    /// Among its processors.
    within: u64,
    sent: u64,
    received: u64,
}

impl CountingRank<'_> {
    /// Counts the children of untouched positions, finds pending updates, and returns the bound to resume at.
    fn restore(&mut self, rank_values: &mut RankValues) -> Result<i8, JobError> {
        let stones = self.index.stones() as usize;
        let (work, mut parts) = parts(self.tables, self.index, self.captures, &mut self.processors, rank_values, 0);
        let least = parts.par_iter_mut().filter_map(|part| part.restore(&work)).min();
        let mut vote = vec![0; stones + 1];
        if let Some(least) = least {
            vote[least as usize] = 1;
        }
        let all = self.communicator.sum(&vote)?;
        Ok(all.iter().position(|&ranks| ranks > 0).unwrap_or(stones) as i8)
    }

    /// Runs all supersteps of a bound.
    fn bound(
        &mut self,
        bound: i8,
        rank_values: &mut RankValues,
        watch: &dyn JobObserver<RankValues>,
    ) -> Result<(), JobError> {
        let CountingRank { tables, index, captures, processors, communicator, decided: known, report } = self;
        let mut route =
            QueueRoute { rank: rank_values.rank, ranks: rank_values.ranks, each: rank_values.processors(), report };
        let (work, mut parts) = parts(tables, index, captures, processors, rank_values, bound);
        parts.par_iter_mut().for_each(|part| part.look_at_captures(&work));
        loop {
            parts.par_iter_mut().for_each(|part| {
                part.receive(&work);
                part.notify(&work);
            });
            let exchanged = route.exchange(&work, &mut parts, Flush::Idle, &mut **communicator)?;
            let wants_stop = u64::from(watch.advance(*known, index.slab_positions()).is_break());
            let decided = parts.iter().map(ActiveProcessor::decided).sum();
            let busy = parts.iter().filter(|part| !part.is_idle()).count() as u64;
            let wrong = parts.iter().filter(|part| part.is_inconsistent()).count() as u64;
            let vote = [exchanged.within, exchanged.sent, exchanged.received, busy, wrong, wants_stop, decided];
            let all = <[u64; 7]>::try_from(communicator.sum(&vote)?).expect("as many sums as values");
            let [within, sent, received, busy, wrong, wants_stop, decided] = all;
            *known = decided;
            assert_eq!(sent, received, "updates got lost");
            route.report.supersteps += 1;
            if wrong > 0 {
                return Err(JobError::Inconsistent);
            }
            if within + sent + busy == 0 {
                return Ok(());
            }
            if wants_stop > 0 {
                break;
            }
        }
        // Delivers all updates, including those in partial messages.
        parts.par_iter_mut().for_each(|part| part.receive(&work));
        route.exchange(&work, &mut parts, Flush::All, &mut **communicator)?;
        parts.par_iter_mut().for_each(|part| {
            part.receive(&work);
            part.save(&work);
        });
        drop(parts);
        watch.checkpoint(rank_values);
        Err(JobError::Stopped)
    }

    /// Sums the counts of all ranks.
    fn report(&mut self, rank_values: &RankValues) -> Result<CountingReport, JobError> {
        let own = self.processors.iter().fold(UpdateCounts::default(), |sum, processor| sum.add(processor.traffic()));
        let UpdateCounts { positions, decided, kept, sent, received, messages } = own;
        let mine = [positions, decided, kept, sent, received, messages, self.report.sent, self.report.messages];
        let all = self.communicator.sum(&mine)?;
        let total = UpdateCounts {
            positions: all[0],
            decided: all[1],
            kept: all[2],
            sent: all[3],
            received: all[4],
            messages: all[5],
        };
        let processors = rank_values.partition.processors() as u64;
        Ok(CountingReport { processors, total, sent: all[6], messages: all[7], ..self.report })
    }
}

/// Pairs the processors of a rank with their parts of the values.
fn parts<'v>(
    tables: &'v Tables,
    index: &'v Index,
    captures: &'v Bytes,
    processors: &'v mut [Processor],
    rank_values: &'v mut RankValues,
    bound: i8,
) -> (ProcessorInputs<'v>, Vec<ActiveProcessor<'v>>) {
    let (partition, own) = (&rank_values.partition, rank_values.own());
    let (mut values, mut captures) = (&mut rank_values.values[..], &captures[..]);
    let units = order(partition, rank_values.ranks, own.clone()).map(|start| {
        let length = partition.length(start) as usize;
        let unit = values.split_off_mut(..length).expect("the values have all units");
        (start, (unit, captures.split_off(..length).expect("there are captures of all units")))
    });
    let parts = processors.iter_mut().zip(partition.split(own, units)).map(|(processor, units)| {
        let (units, captures) = units.into_iter().unzip();
        ActiveProcessor::new(processor, units, captures)
    });
    let parts = parts.collect();
    (ProcessorInputs { tables, index, partition, bound }, parts)
}

/// Exchange of queues with the other ranks.
struct QueueRoute<'a> {
    rank: usize,
    ranks: usize,
    each: usize,
    report: &'a mut CountingReport,
}

impl QueueRoute<'_> {
    /// Exchanges the queues: sends one message to each other rank, and receives one from it.
    fn exchange(
        &mut self,
        work: &ProcessorInputs,
        parts: &mut [ActiveProcessor],
        flush: Flush,
        communicator: &mut dyn Communicator,
    ) -> Result<Exchanged> {
        let QueueRoute { rank, ranks, each, .. } = *self;
        let within = exchange(parts, rank * each, flush);
        let mut exchanged = Exchanged { within, sent: 0, received: 0 };
        let others = || (0..ranks).filter(|&other| other != rank);
        for to in others() {
            let (message, sent) = message(parts, to * each..(to + 1) * each, flush);
            exchanged.sent += sent;
            self.report.messages += u64::from(sent > 0);
            communicator.send(to, message)?;
        }
        self.report.sent += exchanged.sent;
        for from in others() {
            let message = communicator.receive(from)?;
            let read = read(work, parts, from * each..(from + 1) * each, &message);
            exchanged.received += read.ok_or_else(|| unexpected(from))?;
        }
        Ok(exchanged)
    }
}

/// Encodes the message for a rank, and returns it with the number of updates: by sender and receiver the number of
/// their updates, then all updates. Empty if there are none.
fn message(parts: &mut [ActiveProcessor], to: Range<usize>, flush: Flush) -> (Vec<u8>, u64) {
    let mut message = vec![0; 4 * parts.len() * to.len()];
    let mut sent = 0;
    let mut at = 0;
    for part in parts {
        for to in to.clone() {
            let count = part.write(to, flush == Flush::All, &mut message);
            message[at..at + 4].copy_from_slice(&(count as u32).to_le_bytes());
            at += 4;
            sent += count;
        }
    }
    if sent == 0 {
        message.clear();
    }
    (message, sent)
}

/// Delivers a message to its processors. Returns the number of updates, or `None` if it is malformed.
fn read(work: &ProcessorInputs, parts: &mut [ActiveProcessor], from: Range<usize>, message: &[u8]) -> Option<u64> {
    if message.is_empty() {
        return Some(0);
    }
    let (counts, mut rest) = message.split_at_checked(4 * parts.len() * from.len())?;
    let mut counts = counts.as_chunks::<4>().0.iter();
    let mut received = 0;
    for from in from {
        for part in &mut *parts {
            let count = u32::from_le_bytes(*counts.next()?) as usize;
            let (updates, others) = rest.split_at_checked(count.checked_mul(4)?)?;
            rest = others;
            if !part.read(work, from, updates) {
                return None;
            }
            received += count as u64;
        }
    }
    rest.is_empty().then_some(received)
}

fn unexpected(rank: usize) -> CommunicationError {
    let (expected, found) = ("updates of positions that this rank has".to_owned(), "something else".to_owned());
    CommunicationError::Unexpected { rank, expected, found }
}
