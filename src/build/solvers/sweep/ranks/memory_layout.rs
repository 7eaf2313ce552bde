//! Memory layout of a rank: the addresses of its scores and captures, and the memory that they take.
//!
//! [`RankScores`](super::RankScores) allocates by [`RankPlaces`]. A planner computes from the same places which pages a
//! sweep will touch, without allocating.

use super::changes::PendingChanges;
use super::partition::{Needs, ScorePartition, SlabPatch, hull};
use super::patches;
use super::subscribers::Subscribers;
use crate::kernels::tables::{CHUNK, Tables, halves_of};
use crate::layout::rows::{SlabRows, sparse_places};
use crate::sweep::marks::Marks;
use game::Slab;
use rayon::prelude::*;
use std::ops::Range;

/// Page size of large arrays.
const PAGE_BYTES: usize = 2 << 20;

/// Sizes of what a rank owns and holds of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryLayout {
    /// Positions that the rank owns.
    pub positions: u64,
    /// Positions of others that it keeps. It reads, and subscribes to, less than half of them.
    pub foreign: u64,
    /// Bytes of memory of all scores that it keeps.
    pub scores_bytes: u64,
    /// Bytes of memory of its best captures.
    pub captures_bytes: u64,
    /// Bytes of memory of marks, pending changes and subscribers.
    pub marks_bytes: u64,
}

impl MemoryLayout {
    /// Total memory of the rank, without tables and messages.
    pub fn memory_bytes(&self) -> u64 {
        self.scores_bytes + self.captures_bytes + self.marks_bytes
    }
}

/// Computes the memory layouts of all ranks of a job.
///
/// # Panics
/// If `ranks` is 0, or the tables serve fewer stones.
pub fn memory_layouts(tables: &Tables, slabs: &[Slab], ranks: usize) -> Vec<MemoryLayout> {
    let partition = ScorePartition::new(tables, slabs, ranks);
    // Builds the tables first: otherwise all threads wait for the one that does.
    (slabs.len() as u32 / 2..slabs.len() as u32).into_par_iter().for_each(|mover| {
        tables.rows(mover);
    });
    (0..ranks).into_par_iter().map(|rank| needed(tables, &partition, rank).memory_layout(&partition)).collect()
}

/// Computes the needs of one rank, which [`Needs`] has of all ranks, from the ends of the ranges that it owns.
fn needed(tables: &Tables, partition: &ScorePartition, rank: usize) -> NeededSlab {
    let slabs = partition.slabs();
    let mut rows: Vec<_> = slabs.iter().map(|slab| vec![0u64; words(slab)]).collect();
    partition.each_row_led_to(tables, rank, |slab, row| rows[slab][row / CHUNK] |= 1 << (row % CHUNK));
    NeededSlab { rank, rows, chunks: partition.chunks_led_to(tables, rank) }
}

fn words(slab: &Slab) -> usize {
    (slab.opponent_halves as usize).div_ceil(CHUNK)
}

/// The needs of a rank in one slab.
pub(super) struct NeededSlab {
    rank: usize,
    /// Mask of the `OpponentMajor` rows that it needs as a whole.
    rows: Vec<Vec<u64>>,
    /// Hull of the chunks of columns that it needs of all rows.
    chunks: Vec<Range<usize>>,
}

impl NeededSlab {
    /// Computes the needs of a rank. A machine alone has all it needs.
    pub(super) fn of(needs: Option<&Needs>, partition: &ScorePartition, rank: usize) -> NeededSlab {
        let slabs = partition.slabs();
        let Some(needs) = needs else {
            let rows = slabs.iter().map(|slab| vec![0; words(slab)]).collect();
            return NeededSlab { rank, rows, chunks: vec![0..0; slabs.len()] };
        };
        let rows = slabs.iter().enumerate().map(|(at, slab)| {
            let mut rows = vec![0u64; words(slab)];
            (0..slab.opponent_halves as usize)
                .filter(|&row| needs.has_row(rank, at, row))
                .for_each(|row| rows[row / CHUNK] |= 1 << (row % CHUNK));
            rows
        });
        NeededSlab {
            rank,
            rows: rows.collect(),
            chunks: (0..slabs.len()).map(|slab| needs.chunks(rank, slab)).collect(),
        }
    }

    pub(super) fn memory_layout(&self, partition: &ScorePartition) -> MemoryLayout {
        let (slabs, ranks) = (partition.slabs(), partition.ranks());
        let places = RankPlaces::new(partition, self.rank, |slab| self.chunks[slab].clone());
        let (mut scores, mut captures) = (TouchedPages::default(), TouchedPages::default());
        self.touched(partition, &places, |bytes| scores.touch(&bytes));
        places.captures_touched(partition, self.rank, |bytes| captures.touch(&bytes));
        let own = (0..slabs.len()).map(|slab| partition.own(self.rank, slab));
        let marks_bytes = Marks::own_bytes(slabs, own)
            + match ranks {
                1 => 0,
                _ => {
                    PendingChanges::bytes(&partition.patches(self.rank))
                        + Needs::bytes(partition)
                        + Subscribers::bytes(slabs)
                }
            };
        MemoryLayout {
            positions: partition.positions(self.rank),
            foreign: if ranks > 1 { self.foreign(partition) } else { 0 },
            scores_bytes: scores.bytes(),
            captures_bytes: captures.bytes(),
            marks_bytes,
        }
    }

    /// Counts the positions that the rank keeps but does not own.
    fn foreign(&self, partition: &ScorePartition) -> u64 {
        let needed = |patch: &SlabPatch| {
            let rows = self.count(patch.slab, &patch.rows);
            let columns = halves_of(&self.chunks[patch.slab], partition.slabs()[patch.slab].mover_halves);
            let both = columns.start.max(patch.columns.start)..columns.end.min(patch.columns.end);
            (rows * patch.columns.len() + (patch.rows.len() - rows) * both.len()) as u64
        };
        let all = |(at, slab): (usize, &Slab)| {
            needed(&SlabPatch {
                slab: at,
                rows: 0..slab.opponent_halves as usize,
                columns: 0..slab.mover_halves as usize,
            })
        };
        let all: u64 = partition.slabs().iter().enumerate().map(all).sum();
        all - partition.patches(self.rank).iter().map(needed).sum::<u64>()
    }

    /// Counts the rows of a range that it needs as a whole.
    fn count(&self, slab: usize, rows: &Range<usize>) -> usize {
        let below = |row: usize| {
            let (word, bit) = (row / CHUNK, row % CHUNK);
            let whole: u32 = self.rows[slab][..word].iter().map(|word| word.count_ones()).sum();
            let rest = if bit == 0 { 0 } else { (self.rows[slab][word] & ((1 << bit) - 1)).count_ones() };
            (whole + rest) as usize
        };
        below(rows.end) - below(rows.start)
    }

    /// Visits the byte ranges of scores that the rank reads or writes, ascending.
    fn touched(&self, partition: &ScorePartition, places: &RankPlaces, mut visit: impl FnMut(Range<usize>)) {
        let slabs = partition.slabs();
        let (main, mirror) = places.rows.split_at(slabs.len());
        let first_mirrored = slabs.len() - mirror.len();
        for (at, (slab, place)) in slabs.iter().zip(main).enumerate() {
            if at >= first_mirrored {
                let first = place.offset + place.lead;
                visit(first..first + place.rows * place.stride);
                continue;
            }
            let all = slab.mover_halves as usize;
            let columns = halves_of(&self.chunks[at], slab.mover_halves);
            // Both ranks recompute a chunk of which each has halves.
            let owned = patches(at, slab, &partition.own(self.rank, at));
            if columns.is_empty() && owned.iter().all(|patch| patch.columns.len() == all) {
                let mut rows = self.rows[at].clone();
                owned
                    .iter()
                    .flat_map(|patch| patch.rows.clone())
                    .for_each(|row| rows[row / CHUNK] |= 1 << (row % CHUNK));
                each_row(&rows, |row| visit(place.range(row, &(0..all))));
                continue;
            }
            for row in 0..slab.opponent_halves as usize {
                let mut touched =
                    if self.rows[at][row / CHUNK] >> (row % CHUNK) & 1 == 1 { 0..all } else { columns.clone() };
                for patch in owned.iter().filter(|patch| patch.rows.contains(&row)) {
                    touched = hull(&touched, &patch.columns);
                }
                if !touched.is_empty() {
                    visit(place.range(row, &touched));
                }
            }
        }
        for (at, place) in (first_mirrored..).zip(mirror) {
            each_row(&self.rows[at], |row| visit(place.range(row, &(0..place.columns))));
        }
    }
}

fn each_row(words: &[u64], mut visit: impl FnMut(usize)) {
    for (at, &word) in words.iter().enumerate() {
        let mut left = word;
        while left != 0 {
            visit(at * CHUNK + left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}

/// Locations of the scores and captures of a rank. Only touched pages take memory.
#[derive(Debug)]
pub(super) struct RankPlaces {
    /// The slabs, then the mirror.
    pub(super) rows: Vec<SlabRows>,
    pub(super) rows_bytes: usize,
    /// By the mover's stones.
    pub(super) captures: Vec<SlabCaptures>,
    pub(super) captures_bytes: usize,
}

/// Where the captures of a slab are, `MoverMajor`.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlabCaptures {
    /// Offset of the first row, as if it had all columns.
    pub(super) offset: usize,
    /// Bytes from one row to the next.
    pub(super) stride: usize,
}

impl RankPlaces {
    /// Computes the places of a rank that needs the given chunks of columns of all rows, by slab.
    pub(super) fn new(partition: &ScorePartition, rank: usize, chunks: impl Fn(usize) -> Range<usize>) -> RankPlaces {
        let slabs = partition.slabs();
        // A single rank keeps everything.
        let first_mirrored = if partition.ranks() == 1 { slabs.len() } else { (slabs.len() - 1) / 2 + 1 };
        let kept = |slab: usize| {
            if slab < first_mirrored {
                return 0..slabs[slab].mover_halves as usize;
            }
            let own = partition.own(rank, slab).rows;
            let own = own.start / CHUNK..own.end.div_ceil(CHUNK);
            halves_of(&hull(&chunks(slab), &own), slabs[slab].mover_halves)
        };
        let mirrored: Vec<_> = (first_mirrored..slabs.len()).collect();
        let (rows, rows_bytes) = sparse_places(slabs, kept, &mirrored);
        let mut captures_bytes = 0;
        let place = |(at, slab): (usize, &Slab)| {
            let (own, all) = (partition.own(rank, at), slab.opponent_halves);
            let columns = if own.rows.is_empty() { halves_of(&own.chunks, all) } else { 0..all as usize };
            let captures = SlabCaptures { offset: captures_bytes, stride: columns.len() };
            captures_bytes += columns.start + slab.mover_halves as usize * columns.len();
            captures
        };
        let captures = slabs.iter().enumerate().map(place).collect();
        RankPlaces { rows, rows_bytes, captures, captures_bytes }
    }

    /// Visits the byte ranges of captures of a rank, ascending except in the slab with equal halves.
    fn captures_touched(&self, partition: &ScorePartition, rank: usize, mut visit: impl FnMut(Range<usize>)) {
        for (at, (slab, place)) in partition.slabs().iter().zip(&self.captures).enumerate() {
            let own = partition.own(rank, at);
            let columns = |chunks: &Range<usize>| halves_of(chunks, slab.opponent_halves);
            let mut some = |rows: Range<usize>, columns: Range<usize>| {
                let first = place.offset + columns.start;
                if columns.len() == place.stride && !rows.is_empty() {
                    visit(first + rows.start * place.stride..first + rows.end * place.stride);
                } else if !columns.is_empty() {
                    rows.for_each(|row| visit(first + row * place.stride..first + row * place.stride + columns.len()));
                }
            };
            // The rows before its own rows come first.
            some(0..own.rows_end, columns(&own.chunks));
            some(own.rows.clone(), columns(&(0..own.chunks_end)));
        }
    }
}

/// Counter of the pages that ascending ranges of addresses touch.
#[derive(Default)]
struct TouchedPages {
    count: usize,
    /// End of the last touched page.
    end: usize,
}

impl TouchedPages {
    fn touch(&mut self, bytes: &Range<usize>) {
        if !bytes.is_empty() {
            let (first, end) = ((bytes.start / PAGE_BYTES).max(self.end), bytes.end.div_ceil(PAGE_BYTES));
            self.count += end.saturating_sub(first);
            self.end = self.end.max(end);
        }
    }

    fn bytes(&self) -> u64 {
        (self.count * PAGE_BYTES) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RankScores, sweep};
    use super::*;
    use crate::Kernel;
    use game::{Index, PositionSet, Rules};
    use messaging::{Communicator, NetworkFaults, ThreadCommunicator};
    use std::sync::Arc;

    fn tables(set: PositionSet, stones: u32) -> (Tables, Index) {
        (Tables::new(Rules::AWARI, set, stones), Index::new(stones, set))
    }

    #[test]
    fn the_plan_has_what_a_rank_needs() {
        for (set, stones) in [
            (PositionSet::All, 0),
            (PositionSet::All, 7),
            (PositionSet::All, 14),
            (PositionSet::REACHABLE, 9),
            (PositionSet::REACHABLE, 12),
        ] {
            let (tables, index) = tables(set, stones);
            for ranks in [1, 2, 3, 4, 7, 40] {
                let partition = Arc::new(ScorePartition::new(&tables, index.slabs(), ranks));
                let planned = memory_layouts(&tables, index.slabs(), ranks);
                assert_eq!(
                    planned.iter().map(|layout| layout.positions).sum::<u64>(),
                    set.slabs(stones).iter().map(Slab::positions).sum()
                );
                for (rank, planned) in planned.into_iter().enumerate() {
                    let part = RankScores::zeroed(&tables, Arc::clone(&partition), rank).unwrap();
                    assert_eq!(part.memory_layout(), planned, "{set} {stones}, rank {rank} of {ranks}");
                    let needed = needed(&tables, &partition, rank);
                    assert_eq!(needed.foreign(&partition) > 0, ranks > 1 && planned.foreign > 0);
                    // The needed positions of others, one by one.
                    let mut foreign = 0u64;
                    for (at, slab) in index.slabs().iter().enumerate().filter(|_| ranks > 1) {
                        let hull = needed.chunks[at].clone();
                        for row in 0..slab.opponent_halves as usize {
                            let own = partition.columns(rank, at, row);
                            let needs = part.needs.as_ref().unwrap();
                            let is_needed =
                                |column: usize| needs.has_row(rank, at, row) || hull.contains(&(column / CHUNK));
                            foreign += (0..slab.mover_halves as usize)
                                .filter(|&column| !own.contains(&column) && is_needed(column))
                                .count() as u64;
                        }
                    }
                    assert_eq!(planned.foreign, foreign, "{set} {stones}, rank {rank} of {ranks}");
                }
            }
        }
    }

    /// A sweep writes the planned bytes, except scores of 0 and scores of others that the rank does not read.
    #[test]
    fn the_plan_has_what_a_sweep_touches() {
        for (set, ranks) in
            [(PositionSet::All, 1), (PositionSet::All, 2), (PositionSet::REACHABLE, 3), (PositionSet::All, 5)]
        {
            let (tables, index) = tables(set, 10);
            let partition = Arc::new(ScorePartition::new(&tables, index.slabs(), ranks));
            std::thread::scope(|scope| {
                for mut end in ThreadCommunicator::job(ranks, NetworkFaults::none()) {
                    let (tables, index, partition) = (&tables, &index, &partition);
                    scope.spawn(move || {
                        let mut part = RankScores::zeroed(tables, Arc::clone(partition), end.rank()).unwrap();
                        let captures = part.captures(|positions, out: &mut [i8]| {
                            out.iter_mut().zip(positions).for_each(|(out, at)| *out = (at % 21) as i8 - 10);
                            Ok::<_, std::io::Error>(())
                        });
                        let captures = captures.unwrap();
                        sweep(tables, index, &captures, &mut part, Kernel::detect(), &mut end, &()).unwrap();
                        let needed = needed(tables, partition, part.rank());
                        let places = RankPlaces::new(partition, part.rank(), |slab| needed.chunks[slab].clone());
                        let (mut touched, mut other_than_0, mut end) = (0, 0, 0);
                        let scores = part.rows.bytes();
                        needed.touched(partition, &places, |bytes| {
                            assert!(bytes.start >= end && scores[end..bytes.start].iter().all(|&score| score == 0));
                            end = bytes.end;
                            touched += bytes.len();
                            other_than_0 += scores[bytes].iter().filter(|&&score| score != 0).count();
                        });
                        assert!(scores[end..].iter().all(|&score| score == 0));
                        assert!(other_than_0 * 3 > touched, "{other_than_0} of {touched} bytes");
                    });
                }
            });
        }
    }

    #[test]
    fn more_ranks_hold_less_each() {
        let (tables, index) = tables(PositionSet::All, 30);
        let (mut before, mut foreign_before) = (u64::MAX, 0);
        for ranks in [1, 2, 4, 8, 16, 64] {
            let all = memory_layouts(&tables, index.slabs(), ranks);
            assert_eq!(all.iter().map(|layout| layout.positions).sum::<u64>(), index.slab_positions());
            let most = all.iter().map(MemoryLayout::memory_bytes).max().unwrap();
            let foreign = all.iter().map(|layout| layout.foreign).sum::<u64>();
            assert!(most < before && foreign >= foreign_before, "{ranks} ranks: {most}, {foreign}");
            // At least a score and a capture each.
            assert!(all.iter().all(|layout| layout.memory_bytes() > 2 * layout.positions));
            (before, foreign_before) = (most, foreign);
        }
    }

    #[test]
    fn pages_are_counted_once() {
        let mut pages = TouchedPages::default();
        for bytes in [0..1, 5..9, PAGE_BYTES - 1..PAGE_BYTES + 1, 7 * PAGE_BYTES..7 * PAGE_BYTES] {
            pages.touch(&bytes);
        }
        assert_eq!(pages.count, 2);
        pages.touch(&(3 * PAGE_BYTES - 1..5 * PAGE_BYTES));
        assert_eq!(pages.bytes(), 5 * PAGE_BYTES as u64);
    }
}
