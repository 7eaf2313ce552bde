//! Partition of the positions among logical processors.
//!
//! A unit is a run of positions, of a size that depends on their number alone. Units are assigned in an order shuffled
//! by a hash: the paper found that any regular pattern makes some processors wait for others.

use std::ops::Range;

/// Most bits of a place in a unit: 64 Ki positions.
const UNIT_BITS_MAX: u32 = 16;
/// Least bits of a place in a unit: the 64 positions of a word of pending bits.
const UNIT_BITS_MIN: u32 = 6;
/// Target number of units, which makes parts of about equal size.
const UNITS_LOG: u32 = 10;

/// Most positions of a part: an update has 31 bits for a place.
const PART_BITS: u32 = 31;

/// The units of a database and their owners.
#[derive(Debug)]
pub(crate) struct UnitPartition {
    bits: u32,
    /// By unit.
    owners: Vec<Owner>,
    /// By processor, the first positions of its units.
    starts: Vec<Vec<u64>>,
    positions: u64,
}

/// Owner of a unit.
#[derive(Clone, Copy, Debug)]
struct Owner {
    processor: u32,
    /// Number of the unit among those of the processor.
    place: u32,
}

impl UnitPartition {
    /// Partitions `positions` positions.
    pub(crate) fn new(positions: u64, processors: usize) -> UnitPartition {
        let bits = positions.ilog2().saturating_sub(UNITS_LOG).clamp(UNIT_BITS_MIN, UNIT_BITS_MAX);
        let units = positions.div_ceil(1 << bits);
        let processors = processors.max(units.div_ceil(1 << (PART_BITS - bits)) as usize);
        let mut order: Vec<u64> = (0..units).collect();
        order.sort_unstable_by_key(|&unit| (shuffled(unit), unit));
        let mut owners = vec![Owner { processor: 0, place: 0 }; units as usize];
        let mut starts = vec![Vec::new(); processors];
        for (turn, &unit) in order.iter().enumerate() {
            let processor = turn % processors;
            owners[unit as usize] = Owner { processor: processor as u32, place: starts[processor].len() as u32 };
            starts[processor].push(unit << bits);
        }
        UnitPartition { bits, owners, starts, positions }
    }

    /// Logical processors.
    pub(crate) fn processors(&self) -> usize {
        self.starts.len()
    }

    /// Bits of a position's place in its unit.
    pub(crate) fn bits(&self) -> u32 {
        self.bits
    }

    /// The first positions of the units of a processor.
    pub(crate) fn starts(&self, processor: usize) -> &[u64] {
        &self.starts[processor]
    }

    /// Positions of a processor.
    pub(crate) fn positions(&self, processor: usize) -> u64 {
        self.starts[processor].iter().map(|&start| self.length(start)).sum()
    }

    /// Positions of the unit that starts at `start`.
    pub(crate) fn length(&self, start: u64) -> u64 {
        (self.positions - start).min(1 << self.bits)
    }

    /// Returns the processor that owns a position, and the place of the position there.
    #[inline(always)]
    pub(crate) fn find(&self, position: u64) -> (usize, u32) {
        let owner = self.owners[(position >> self.bits) as usize];
        let within = position as u32 & ((1 << self.bits) - 1);
        (owner.processor as usize, owner.place << self.bits | within)
    }

    /// Positions of a unit, but for the last one.
    pub(crate) fn unit(&self) -> usize {
        1 << self.bits
    }

    /// Iterates over the first positions of all units, ascending.
    pub(crate) fn all_starts(&self) -> impl Iterator<Item = u64> + use<> {
        let bits = self.bits;
        (0..self.owners.len() as u64).map(move |unit| unit << bits)
    }

    /// Distributes the units of some processors, each with its first position, to these processors.
    pub(crate) fn split<U>(&self, processors: Range<usize>, units: impl Iterator<Item = (u64, U)>) -> Vec<Vec<U>> {
        let places = |processor: usize| self.starts[processor].iter().map(|_| None).collect();
        let mut placed: Vec<Vec<Option<U>>> = processors.clone().map(places).collect();
        for (start, unit) in units {
            let owner = &self.owners[(start >> self.bits) as usize];
            placed[owner.processor as usize - processors.start][owner.place as usize] = Some(unit);
        }
        let every = |unit: Option<_>| unit.expect("every place of a processor has a unit");
        placed.into_iter().map(|units| units.into_iter().map(every).collect()).collect()
    }
}

/// Hashes a number (SplitMix64, Steele, Lea & Flood 2014).
pub(crate) fn shuffled(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_has_one_place() {
        for positions in [1, 63, 64, 65, 1000, 200_000] {
            for processors in [1, 2, 3, 8] {
                let partition = UnitPartition::new(positions, processors);
                let mut values = vec![0; positions as usize];
                let units = partition.all_starts().zip(values.chunks_mut(partition.unit()));
                let mut parts = partition.split(0..processors, units);
                let parts_positions: Vec<u64> =
                    (0..processors).map(|processor| partition.positions(processor)).collect();
                assert_eq!(parts_positions.iter().sum::<u64>(), positions);
                for (part, &positions) in parts.iter().zip(&parts_positions) {
                    assert_eq!(part.iter().map(|unit| unit.len() as u64).sum::<u64>(), positions);
                }
                for position in 0..positions {
                    let (processor, place) = partition.find(position);
                    let (unit, within) = (place >> partition.bits(), place & ((1 << partition.bits()) - 1));
                    assert_eq!(partition.starts(processor)[unit as usize] + u64::from(within), position);
                    parts[processor][unit as usize][within as usize] += 1;
                }
                assert!(values.iter().all(|&times| times == 1));
            }
        }
    }

    #[test]
    fn places_of_parts_fit_an_update() {
        let partition = UnitPartition::new(5 << PART_BITS, 2);
        assert_eq!(partition.processors(), 5);
        assert!((0..5).all(|processor| partition.positions(processor) <= 1 << PART_BITS));
    }
}
