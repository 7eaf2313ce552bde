//! One logical processor: its positions, pending updates and queues.

use super::partition::UnitPartition;
use super::pending::Pending;
use super::unmoves::Unmoves;
use super::{Distribution, QUEUED, UpdateCounts};
use crate::kernels::tables::{CHUNK, PackedMove, Tables};
use game::Index;

/// Updates of a processor to itself that are applied together, to overlap their cache misses.
const KEPT: usize = 2048;

/// Bytes of the queues of a processor, sent and received.
pub(crate) const QUEUES_BYTES: u64 = 4 * super::UPDATE_BYTES * QUEUED as u64;

/// Shared inputs of all processors.
pub(crate) struct ProcessorInputs<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) index: &'a Index,
    pub(crate) partition: &'a UnitPartition,
    pub(crate) bound: i8,
}

/// Update of a parent: its place in the receiver's part, and whether the child is lost.
#[derive(Clone, Copy)]
pub(crate) struct Update(u32);

impl Update {
    fn new(place: u32, lost: bool) -> Update {
        Update(place << 1 | u32::from(lost))
    }
}

/// State of a processor from bound to bound.
pub(crate) struct Processor {
    me: usize,
    batch: usize,
    /// Updates in a queue at which the processor stops.
    full: usize,
    /// Decided positions whose parents are not updated yet.
    pending: Pending,
    /// By receiver; its own entry has updates to itself.
    queues: Vec<Vec<Update>>,
    /// By sender.
    received: Vec<Vec<Update>>,
    /// Positions that a batch of updates may have decided.
    touched: Vec<Update>,
    decided: u64,
    /// Whether a position got more updates than it has children.
    inconsistent: bool,
    traffic: UpdateCounts,
}

/// A processor with its values and captures.
pub(crate) struct ActiveProcessor<'v> {
    processor: &'v mut Processor,
    units: Vec<&'v mut [i8]>,
    captures: Vec<&'v [i8]>,
}

impl Processor {
    /// Creates processor `me` of a partition.
    pub(crate) fn new(partition: &UnitPartition, me: usize, distribution: Distribution) -> Processor {
        let Distribution { batch, queued, .. } = distribution;
        let many = partition.processors();
        let messages = (queued / many / batch).max(1);
        Processor {
            me,
            batch,
            full: messages * batch,
            pending: Pending::new(partition.starts(me).len() << partition.bits()),
            queues: (0..many).map(|_| Vec::new()).collect(),
            received: (0..many).map(|_| Vec::new()).collect(),
            touched: Vec::new(),
            decided: 0,
            inconsistent: false,
            traffic: UpdateCounts { positions: partition.positions(me), ..UpdateCounts::default() },
        }
    }

    pub(crate) fn traffic(&self) -> UpdateCounts {
        self.traffic
    }
}

impl ProcessorInputs<'_> {
    /// Value of an undecided position without undecided quiet children; one less for each of these.
    fn no_children(&self) -> i8 {
        -(self.index.stones() as i8) - 1
    }

    /// Least value of an undecided position. Values below mark lost positions with pending updates.
    fn most_children(&self) -> i8 {
        self.no_children() - 6
    }
}

impl<'v> ActiveProcessor<'v> {
    pub(crate) fn new(processor: &'v mut Processor, units: Vec<&'v mut [i8]>, captures: Vec<&'v [i8]>) -> Self {
        ActiveProcessor { processor, units, captures }
    }

    pub(crate) fn decided(&self) -> u64 {
        self.processor.decided
    }

    /// Whether a position got more updates than it has children.
    pub(crate) fn is_inconsistent(&self) -> bool {
        self.processor.inconsistent
    }

    /// Whether no updates are pending.
    pub(crate) fn is_idle(&self) -> bool {
        self.processor.pending.is_empty()
    }

    /// Counts the children of untouched positions, and returns the least magnitude of a score.
    pub(crate) fn restore(&mut self, work: &ProcessorInputs) -> Option<i8> {
        let (stones, most) = (work.index.stones() as i8, work.most_children());
        let mut least = None;
        for (number, unit) in self.units.iter_mut().enumerate() {
            if unit.contains(&0) {
                count_children(work, work.partition.starts(self.processor.me)[number], unit);
            }
            let first = number << work.partition.bits();
            for (within, value) in unit.iter_mut().enumerate() {
                let untold = match *value {
                    value if value > stones => Some(value - stones),
                    value if value < most => Some(value - most),
                    _ => None,
                };
                if let Some(score) = untold {
                    self.processor.pending.insert((first + within) as u32);
                    *value = score;
                }
                assert!(*value <= stones, "a score of {value} with {stones} stones");
                if *value >= -stones {
                    self.processor.decided += 1;
                    least = Some(least.unwrap_or(i8::MAX).min(value.abs()));
                }
            }
        }
        least
    }

    /// Marks positions with pending updates in the values, for [`ActiveProcessor::restore`].
    pub(crate) fn save(&mut self, work: &ProcessorInputs) {
        let (stones, most) = (work.index.stones() as i8, work.most_children());
        let bits = work.partition.bits();
        while let Some((word, places)) = self.processor.pending.take() {
            for place in each_place(word, places) {
                let value = &mut self.units[place as usize >> bits][place as usize & ((1 << bits) - 1)];
                *value += if *value > 0 { stones } else { most };
            }
        }
    }

    /// Decides the positions that their best capture decides at this bound.
    pub(crate) fn look_at_captures(&mut self, work: &ProcessorInputs) {
        let (bound, none) = (work.bound, work.no_children());
        let decides = |value: i8, best: i8| (value <= none) & ((best == bound) | (best == -bound) & (value == none));
        let Processor { pending, decided, traffic, .. } = &mut *self.processor;
        for (number, (unit, captures)) in self.units.iter_mut().zip(&self.captures).enumerate() {
            let first = (number << work.partition.bits()) / CHUNK;
            for (word, (values, captures)) in unit.chunks_mut(CHUNK).zip(captures.chunks(CHUNK)).enumerate() {
                let pairs = || values.iter().zip(captures);
                if !pairs().fold(false, |any, (&value, &best)| any | decides(value, best)) {
                    continue;
                }
                let mut places = 0;
                for (at, (value, &best)) in values.iter_mut().zip(captures).enumerate() {
                    if decides(*value, best) {
                        *value = best;
                        places |= 1 << at;
                    }
                }
                *decided += u64::from(u64::count_ones(places));
                traffic.decided += u64::from(u64::count_ones(places));
                pending.insert_all(first + word, places);
            }
        }
    }

    /// Applies the updates received from others and those to itself.
    pub(crate) fn receive(&mut self, work: &ProcessorInputs) {
        for from in 0..self.processor.received.len() {
            let mut updates = std::mem::take(&mut self.processor.received[from]);
            self.processor.traffic.received += updates.len() as u64;
            for batch in updates.chunks(KEPT) {
                self.update(work, batch);
            }
            updates.clear();
            self.processor.received[from] = updates;
        }
        self.keep(work);
    }

    /// Generates the updates of parents until none is pending or a queue is full.
    pub(crate) fn notify(&mut self, work: &ProcessorInputs) {
        let (me, full, bits) = (self.processor.me, self.processor.full, work.partition.bits());
        let starts = work.partition.starts(me);
        let mut unmoves = Unmoves::new(work.tables, work.index);
        loop {
            while let Some((word, places)) = self.processor.pending.take() {
                let number = (word * CHUNK) >> bits;
                let mut left = places;
                while left != 0 {
                    let place = word * CHUNK + left.trailing_zeros() as usize;
                    left &= left - 1;
                    let within = place & ((1 << bits) - 1);
                    let lost = self.units[number][within] < 0;
                    let mut wait = false;
                    let queues = &mut self.processor.queues;
                    unmoves.each_parent(starts[number] + within as u64, |parent| {
                        let (processor, place) = work.partition.find(parent);
                        let queue = &mut queues[processor];
                        queue.push(Update::new(place, lost));
                        wait |= queue.len() >= full && processor != me;
                    });
                    if wait {
                        self.processor.pending.insert_all(word, left);
                        self.keep(work);
                        return;
                    }
                }
                if self.processor.queues[me].len() >= KEPT {
                    self.keep(work);
                }
            }
            self.keep(work);
            if self.processor.pending.is_empty() {
                return;
            }
        }
    }

    /// Applies the updates to itself.
    fn keep(&mut self, work: &ProcessorInputs) {
        let me = self.processor.me;
        let mut updates = std::mem::take(&mut self.processor.queues[me]);
        self.processor.traffic.kept += updates.len() as u64;
        self.update(work, &updates);
        updates.clear();
        self.processor.queues[me] = updates;
    }

    /// Applies updates, without branches on the values: each mispredicted one would wait for memory.
    fn update(&mut self, work: &ProcessorInputs, updates: &[Update]) {
        let Processor { pending, touched, decided, inconsistent, traffic, .. } = &mut *self.processor;
        let (bits, bound, none) = (work.partition.bits(), work.bound, work.no_children());
        touched.resize(updates.len(), Update(0));
        let mut count = 0;
        let mut wrong = false;
        for &update in updates {
            let (place, lost) = ((update.0 >> 1) as usize, update.0 & 1 == 1);
            let value = &mut self.units[place >> bits][place & ((1 << bits) - 1)];
            let undecided = *value <= none;
            wrong |= *value == none;
            let updated = if lost { bound } else { *value + 1 };
            *value = if undecided { updated } else { *value };
            touched[count] = update;
            count += usize::from(undecided & (lost | (updated == none)));
        }
        if wrong {
            // A position may be touched twice.
            *inconsistent = true;
            return;
        }
        for &Update(update) in &touched[..count] {
            let (place, lost) = (update >> 1, update & 1 == 1);
            if !lost {
                let (unit, within) = (place as usize >> bits, place as usize & ((1 << bits) - 1));
                // A better capture decides the position at its own bound.
                if self.captures[unit][within] > -bound {
                    continue;
                }
                self.units[unit][within] = -bound;
            }
            pending.insert(place);
            *decided += 1;
            traffic.decided += 1;
        }
    }

    /// Takes the emptied queue of a sender, for reuse.
    pub(crate) fn take_spare(&mut self, from: usize) -> Vec<Update> {
        std::mem::take(&mut self.processor.received[from])
    }

    /// Takes the updates to be sent to a receiver now: all, or full messages while updates are pending. `spare`
    /// replaces the queue.
    pub(crate) fn take_queue(&mut self, to: usize, all: bool, mut spare: Vec<Update>) -> Vec<Update> {
        let Processor { queues, pending, batch, traffic, .. } = &mut *self.processor;
        debug_assert!(spare.is_empty());
        let queue = &mut queues[to];
        let send = if all || pending.is_empty() { queue.len() } else { queue.len() / *batch * *batch };
        spare.extend_from_slice(&queue[send..]);
        queue.truncate(send);
        traffic.sent += send as u64;
        traffic.messages += send.div_ceil(*batch) as u64;
        std::mem::replace(queue, spare)
    }

    /// Delivers the queue of a sender.
    pub(crate) fn deliver(&mut self, from: usize, updates: Vec<Update>) {
        self.processor.received[from] = updates;
    }

    /// Delivers updates encoded by [`write`](Self::write). Returns false if a position is not of this processor.
    pub(crate) fn read(&mut self, work: &ProcessorInputs, from: usize, bytes: &[u8]) -> bool {
        let (words, rest) = bytes.as_chunks();
        let bits = work.partition.bits();
        let mut updates = self.take_spare(from);
        let mut known = rest.is_empty();
        updates.extend(words.iter().map(|&word| {
            let update = Update(u32::from_le_bytes(word));
            let place = (update.0 >> 1) as usize;
            known &= self.units.get(place >> bits).is_some_and(|unit| place & ((1 << bits) - 1) < unit.len());
            update
        }));
        if known {
            self.deliver(from, updates);
        }
        known
    }

    /// Appends the updates to be sent to a receiver now, see [`take_queue`](Self::take_queue), and returns their
    /// number.
    pub(crate) fn write(&mut self, to: usize, all: bool, message: &mut Vec<u8>) -> u64 {
        let mut queue = self.take_queue(to, all, Vec::new());
        message.extend(queue.iter().flat_map(|update| update.0.to_le_bytes()));
        let sent = queue.len() as u64;
        // Keeps the memory of the longer one.
        let rest = &mut self.processor.queues[to];
        queue.clear();
        queue.append(rest);
        *rest = queue;
        sent
    }
}

/// Iterates over the places of a word, ascending.
fn each_place(word: usize, mut places: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = places.trailing_zeros();
        (places != 0).then(|| {
            places &= places - 1;
            (word * CHUNK) as u32 + bit
        })
    })
}

/// Counts the quiet moves of the positions of a unit that are still 0. Slow, but done once a position.
fn count_children(work: &ProcessorInputs, start: u64, unit: &mut [i8]) {
    let slabs = work.index.slabs();
    let none = work.no_children();
    let mut rest = unit;
    let mut position = start;
    while !rest.is_empty() {
        let Some(slab) = slabs.get(slabs.partition_point(|slab| slab.offset <= position) - 1) else { return };
        let columns = u64::from(slab.opponent_halves);
        let (row, first) = ((position - slab.offset) / columns, ((position - slab.offset) % columns) as usize);
        let Some(moves) = work.tables.rows(slab.mover_stones).get(row as usize) else { return };
        let length = rest.len().min(columns as usize - first);
        let (values, after) = rest.split_at_mut(length);
        let moves = moves.iter().take_while(|&&to| to != PackedMove::NONE);
        let quiet: Vec<&[u64]> =
            moves.map(|to| &work.tables.columns(slab.opponent_stones, to.class()).quiet[..]).collect();
        for (column, value) in (first..).zip(values).filter(|(_, value)| **value == 0) {
            let children: u64 = quiet.iter().map(|quiet| quiet[column / CHUNK] >> (column % CHUNK) & 1).sum();
            *value = none - children as i8;
        }
        rest = after;
        position += length as u64;
    }
}
