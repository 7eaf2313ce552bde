//! Partition of positions among ranks.
//!
//! In the two slabs in which the players have m and n - m stones, with m at least n - m, a position is assigned by its
//! *larger half*, that with m stones, regardless of who is to move. Each rank owns a run of larger halves, in chunks of
//! 64, with all other halves: rows of one slab and columns of the other. Runs are cut about where the four leading pits
//! change, so lines of play without crossing stay with a rank unless they change these. If both players have half of
//! the stones, the later one of the two halves decides.
//!
//! A rank keeps the scores that its moves lead to: in some `OpponentMajor` rows, where the mover has the larger half,
//! and elsewhere in some columns. Which of these it reads is in `subscribers.rs`.

use super::MESSAGE_WORDS;
use crate::kernels::tables::{CHUNK, PackedMove, Tables, chunks, halves_of};
use crate::sweep::marks::Own;
use crate::sweep::pair::Cuts;
use game::Slab;
use game::sow::SowClass;
use std::ops::Range;

/// Partition of the positions of one database. A function of the database and the number of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScorePartition {
    slabs: Vec<Slab>,
    /// By rank, then by the stones of the larger half: the first chunk of its halves; plus the end.
    first: Vec<Vec<usize>>,
    /// By the mover's stones, the cuts of columns at chunks of larger halves.
    cuts: Vec<Option<Cuts>>,
}

/// Rectangle of positions of a slab, `OpponentMajor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlabPatch {
    pub(crate) slab: usize,
    /// The opponent's halves.
    pub(crate) rows: Range<usize>,
    /// The mover's halves.
    pub(crate) columns: Range<usize>,
}

impl SlabPatch {
    pub(crate) fn positions(&self) -> usize {
        self.rows.len() * self.columns.len()
    }

    /// Cuts the patch into ranges of rows.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = SlabPatch> {
        let rows = (MESSAGE_WORDS / self.columns.len().div_ceil(CHUNK).max(1)).max(1);
        let first = self.rows.clone().step_by(rows);
        first.map(move |first| SlabPatch { rows: first..self.rows.end.min(first + rows), ..self.clone() })
    }

    /// Iterates over its chunks of columns, each with the mask of its columns in the patch.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (usize, u64)> + use<> {
        let columns = self.columns.clone();
        (columns.start / CHUNK..columns.end.div_ceil(CHUNK)).map(move |chunk| {
            let first = columns.start.saturating_sub(chunk * CHUNK);
            let end = CHUNK.min(columns.end - chunk * CHUNK);
            (chunk, u64::MAX << first & u64::MAX >> (CHUNK - end))
        })
    }

    /// Returns the intersection with another patch.
    pub(crate) fn meet(&self, other: &SlabPatch) -> Option<SlabPatch> {
        let both = |a: &Range<usize>, b: &Range<usize>| a.start.max(b.start)..a.end.min(b.end);
        let (rows, columns) = (both(&self.rows, &other.rows), both(&self.columns, &other.columns));
        let is_any = self.slab == other.slab && !rows.is_empty() && !columns.is_empty();
        is_any.then_some(SlabPatch { slab: self.slab, rows, columns })
    }
}

impl ScorePartition {
    /// Partitions a database among `ranks` ranks.
    ///
    /// # Panics
    /// If `ranks` is 0, or the tables serve fewer stones.
    pub fn new(tables: &Tables, slabs: &[Slab], ranks: usize) -> ScorePartition {
        assert!(ranks > 0, "a job has a rank");
        let stones = slabs.len() as u32 - 1;
        assert!(stones <= tables.stones_max());
        let half = slabs.len() / 2;
        // Number of positions of the larger halves so far, with all others.
        let with_others = |large: usize, end: u64| match slabs.len() - 1 - large {
            other if other == large => end * end,
            other => end * (u64::from(slabs[large].opponent_halves) + u64::from(slabs[other].mover_halves)),
        };
        let total: u64 = (half..slabs.len()).map(|large| with_others(large, slabs[large].mover_halves.into())).sum();
        let mut end = vec![0; slabs.len()];
        let in_chunks = |end: &[u64]| end.iter().map(|&end| (end as usize + CHUNK / 2) / CHUNK).collect::<Vec<_>>();
        let mut first = vec![in_chunks(&end)];
        let mut taken = 0;
        for first_pit in (0..=stones).rev() {
            for two in (first_pit..=stones).rev() {
                for three in (two..=stones).rev() {
                    for leading in (three..=stones).rev() {
                        let before = end.clone();
                        let mut weight = 0;
                        for large in (leading as usize..slabs.len()).filter(|&large| large >= half) {
                            end[large] += large as u64 - u64::from(leading) + 1;
                            weight += with_others(large, end[large]) - with_others(large, before[large]);
                        }
                        // The run of a rank ends before the first chunk with its middle beyond the share of the rank.
                        let middle = u128::from(2 * taken + weight) * ranks as u128;
                        while first.len() < ranks && middle >= 2 * first.len() as u128 * u128::from(total) {
                            first.push(in_chunks(&before));
                        }
                        taken += weight;
                    }
                }
            }
        }
        let all: Vec<_> = slabs.iter().map(|slab| chunks(slab.mover_halves)).collect();
        first.resize(ranks + 1, all.clone());
        first[ranks] = all;
        let cuts = |slab: &Slab| {
            let large = slabs.len() - 1 - slab.mover_stones as usize;
            (large >= half).then(|| Cuts::new(tables, slab, chunks(slabs[large].mover_halves)))
        };
        ScorePartition { slabs: slabs.to_vec(), first, cuts: slabs.iter().map(cuts).collect() }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.first.len() - 1
    }

    /// The slabs of the database.
    pub fn slabs(&self) -> &[Slab] {
        &self.slabs
    }

    /// Returns the chunks of larger halves with `stones` stones that a rank owns.
    pub(crate) fn chunks(&self, rank: usize, stones: usize) -> Range<usize> {
        self.first[rank][stones]..self.first[rank + 1][stones]
    }

    /// Returns the number of positions that a rank owns.
    pub fn positions(&self, rank: usize) -> u64 {
        self.patches(rank).iter().map(|patch| patch.positions() as u64).sum()
    }

    /// Whether the mover's halves are larger or equal, and whether the opponent's are.
    fn large(&self, slab: usize) -> (bool, bool) {
        let other = self.slabs.len() - 1 - slab;
        (slab >= other, slab <= other)
    }

    /// Returns the `MoverMajor` rows of a slab that a rank owns.
    fn movers(&self, rank: usize, slab: usize) -> Range<usize> {
        halves_of(&self.chunks(rank, slab), self.slabs[slab].mover_halves)
    }

    /// Returns the columns of a slab (opponent's halves) that a rank owns.
    fn opponents(&self, rank: usize, slab: usize) -> Range<usize> {
        let halves = self.chunks(rank, self.slabs.len() - 1 - slab);
        halves_of(&self.cuts(slab).of(&halves), self.slabs[slab].opponent_halves)
    }

    fn cuts(&self, slab: usize) -> &Cuts {
        self.cuts[slab].as_ref().expect("the opponent has the larger half")
    }

    /// Iterates over the patches that a rank owns, slab by slab. Each position is owned by one rank.
    pub(crate) fn patches(&self, rank: usize) -> Vec<SlabPatch> {
        (0..self.slabs.len()).flat_map(|slab| self.patches_in(rank, slab)).collect()
    }

    /// Returns the patches of one slab that a rank owns.
    pub(crate) fn patches_in(&self, rank: usize, slab: usize) -> Vec<SlabPatch> {
        let mut patches = Vec::new();
        let mut add = |rows: Range<usize>, columns: Range<usize>| {
            if !rows.is_empty() && !columns.is_empty() {
                patches.push(SlabPatch { slab, rows, columns });
            }
        };
        match self.large(slab) {
            (true, true) => {
                let (movers, opponents) = (self.movers(rank, slab), self.opponents(rank, slab));
                add(0..opponents.end, movers.clone());
                add(opponents, 0..movers.start);
            }
            (true, false) => add(0..self.slabs[slab].opponent_halves as usize, self.movers(rank, slab)),
            _ => add(self.opponents(rank, slab), 0..self.slabs[slab].mover_halves as usize),
        }
        patches
    }

    /// Returns the columns of an `OpponentMajor` row that a rank owns.
    #[cfg(test)]
    pub(crate) fn columns(&self, rank: usize, slab: usize, row: usize) -> Range<usize> {
        let all = 0..self.slabs[slab].mover_halves as usize;
        match self.large(slab) {
            (true, false) => self.movers(rank, slab),
            (is_same, _) => {
                let (opponents, movers) = (self.opponents(rank, slab), self.movers(rank, slab));
                match is_same {
                    true if row < opponents.start => movers,
                    true if opponents.contains(&row) => 0..movers.end,
                    false if opponents.contains(&row) => all,
                    _ => 0..0,
                }
            }
        }
    }

    /// Returns the `OpponentMajor` chunks of columns in which a rank recomputes anything.
    pub(crate) fn chunks_sent(&self, rank: usize, slab: usize) -> Range<usize> {
        match self.large(slab) {
            (true, false) => self.chunks(rank, slab),
            _ => 0..chunks(self.slabs[slab].mover_halves),
        }
    }

    /// Returns the positions of a slab that a rank recomputes: those that it owns, and chunks of columns shared with
    /// others.
    pub(crate) fn own(&self, rank: usize, slab: usize) -> Own {
        let (rows, columns) = (self.movers(rank, slab), chunks(self.slabs[slab].opponent_halves));
        let (is_mover, is_opponent) = self.large(slab);
        let halves = || self.chunks(rank, self.slabs.len() - 1 - slab);
        let touched = || if halves().is_empty() { 0..0 } else { self.cuts(slab).touching(&halves()) };
        match (is_mover, is_opponent) {
            (true, true) => {
                let chunks_end = self.cuts(slab).of(&(0..halves().end)).end;
                Own { rows_end: rows.start, rows, chunks_end, chunks: touched() }
            }
            (true, false) => Own { rows, chunks_end: columns, chunks: 0..0, rows_end: 0 },
            _ => {
                let rows_end = self.slabs[slab].mover_halves as usize;
                Own { rows: 0..0, chunks_end: 0, chunks: touched(), rows_end }
            }
        }
    }

    /// Visits, by slab, the `OpponentMajor` rows that moves of a rank lead to where the mover has the larger half. Rows
    /// may be visited more than once.
    pub(super) fn each_row_led_to(&self, tables: &Tables, rank: usize, mut visit: impl FnMut(usize, usize)) {
        let last = self.slabs.len() - 1;
        for mover in last.div_ceil(2)..=last {
            for moves in &tables.rows(mover as u32)[self.movers(rank, mover)] {
                for to in moves.iter().take_while(|&&to| to != PackedMove::NONE) {
                    visit(last - mover + to.crossing() as usize, to.rank() as usize);
                }
            }
        }
    }

    /// Returns the chunks of columns that moves of a class lead to from the chunks of a rank, where the mover has
    /// `mover` stones and the opponent the larger half.
    pub(super) fn chunks_led_to_by<'t>(
        &self,
        tables: &'t Tables,
        rank: usize,
        mover: usize,
        number: usize,
    ) -> impl Iterator<Item = usize> + use<'t> {
        let own = self.own(rank, mover).chunks;
        let is_any = !own.is_empty() && SowClass::from_number(number).occurs();
        let opponent = (self.slabs.len() - 1 - mover) as u32;
        let inverse = if is_any { &tables.gather(opponent, number).inverse[..] } else { &[] };
        let leads =
            move |&(_, &(from, end)): &(usize, &(u32, u32))| (from as usize) < own.end && own.start < end as usize;
        inverse.iter().enumerate().filter(leads).map(|(chunk, _)| chunk)
    }

    /// Returns, by slab, the hull of the chunks of columns that moves of a rank lead to where the opponent has the
    /// larger half. Moves keep the order of columns, so the first and the last quiet column determine it.
    pub(super) fn chunks_led_to(&self, tables: &Tables, rank: usize) -> Vec<Range<usize>> {
        let last = self.slabs.len() - 1;
        let mut all = vec![0..0; self.slabs.len()];
        for mover in 0..=last / 2 {
            let own = halves_of(&self.own(rank, mover).chunks, self.slabs[mover].opponent_halves);
            for class in (0..SowClass::COUNT).map(SowClass::from_number).filter(|class| class.occurs()) {
                let crossing = usize::from(class.crossing);
                if crossing <= mover {
                    let target = |column| tables.quiet_target((last - mover) as u32, class, column as u32);
                    let first = own.clone().find_map(target);
                    if let (Some(first), Some(end)) = (first, own.clone().rev().find_map(target)) {
                        let to = &mut all[last - mover + crossing];
                        *to = hull(to, &(first as usize / CHUNK..end as usize / CHUNK + 1));
                    }
                }
            }
        }
        all
    }
}

/// Scores that each rank keeps: for each `OpponentMajor` row and each chunk of columns, the set of ranks that need it.
#[derive(Debug)]
pub(crate) struct Needs {
    /// Words of a set of ranks.
    words: usize,
    slabs: Vec<NeedingRanks>,
}

#[derive(Debug)]
struct NeedingRanks {
    rows: Vec<u64>,
    chunks: Vec<u64>,
}

impl Needs {
    pub(crate) fn new(tables: &Tables, partition: &ScorePartition) -> Needs {
        let (ranks, slabs) = (partition.ranks(), partition.slabs());
        let words = ranks.div_ceil(u64::BITS as usize);
        let last = slabs.len() - 1;
        let none = |slab: &Slab| NeedingRanks {
            rows: vec![0; slab.opponent_halves as usize * words],
            chunks: vec![0; chunks(slab.mover_halves) * words],
        };
        let mut needs = Needs { words, slabs: slabs.iter().map(none).collect() };
        let set = |bits: &mut [u64], at: usize, rank: usize| {
            bits[at * words + rank / u64::BITS as usize] |= 1 << (rank % u64::BITS as usize);
        };
        for rank in 0..ranks {
            partition.each_row_led_to(tables, rank, |slab, row| set(&mut needs.slabs[slab].rows, row, rank));
            for mover in 0..=last / 2 {
                for number in 0..=2 * mover + 1 {
                    let slab = last - mover + SowClass::from_number(number).crossing as usize;
                    partition.chunks_led_to_by(tables, rank, mover, number).for_each(|chunk| {
                        set(&mut needs.slabs[slab].chunks, chunk, rank);
                    });
                }
            }
        }
        needs
    }

    /// Bytes of the needs of all ranks of a job.
    pub(super) fn bytes(partition: &ScorePartition) -> u64 {
        let sets = |slab: &Slab| u64::from(slab.opponent_halves) + chunks(slab.mover_halves) as u64;
        let words = partition.ranks().div_ceil(u64::BITS as usize) as u64;
        partition.slabs().iter().map(sets).sum::<u64>() * words * size_of::<u64>() as u64
    }

    /// Whether a rank needs part of an `OpponentMajor` row.
    pub(crate) fn has_row(&self, rank: usize, slab: usize, row: usize) -> bool {
        has(&self.slabs[slab].rows[row * self.words..], rank)
    }

    /// Whether a rank needs part of a chunk of columns.
    pub(crate) fn has_chunk(&self, rank: usize, slab: usize, chunk: usize) -> bool {
        has(&self.slabs[slab].chunks[chunk * self.words..], rank)
    }

    /// Returns the hull of the chunks that a rank needs.
    pub(crate) fn chunks(&self, rank: usize, slab: usize) -> Range<usize> {
        let needed: Vec<_> = self.slabs[slab].chunks.chunks_exact(self.words).map(|ranks| has(ranks, rank)).collect();
        let first = needed.iter().position(|&needed| needed);
        first.map_or(0..0, |first| first..needed.iter().rposition(|&needed| needed).map_or(first, |last| last + 1))
    }

    /// Whether a rank needs a chunk of an `OpponentMajor` row.
    pub(crate) fn has(&self, rank: usize, slab: usize, row: usize, chunk: usize) -> bool {
        self.has_row(rank, slab, row) || self.has_chunk(rank, slab, chunk)
    }
}

/// Whether a set of ranks contains a rank.
fn has(ranks: &[u64], rank: usize) -> bool {
    ranks[rank / u64::BITS as usize] >> (rank % u64::BITS as usize) & 1 == 1
}

/// Returns the smallest range that covers two ranges.
pub(super) fn hull(range: &Range<usize>, other: &Range<usize>) -> Range<usize> {
    match (range.is_empty(), other.is_empty()) {
        (true, _) => other.clone(),
        (_, true) => range.clone(),
        _ => range.start.min(other.start)..range.end.max(other.end),
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory_layout::memory_layouts;
    use super::*;
    use game::{Index, PositionSet, Rules};

    fn partition(set: PositionSet, stones: u32, ranks: usize) -> (Tables, ScorePartition) {
        let tables = Tables::new(Rules::AWARI, set, stones);
        let partition = ScorePartition::new(&tables, Index::new(stones, set).slabs(), ranks);
        (tables, partition)
    }

    #[test]
    fn each_position_is_recomputed_by_one_owner() {
        for (set, stones) in [(PositionSet::All, 9), (PositionSet::REACHABLE, 12), (PositionSet::All, 0)] {
            for ranks in [1, 2, 3, 4, 7, 40] {
                let (_, partition) = partition(set, stones, ranks);
                for (at, slab) in partition.slabs().iter().enumerate() {
                    let columns = slab.mover_halves as usize;
                    let mut owners = vec![None; slab.opponent_halves as usize * columns];
                    for rank in 0..ranks {
                        let own = partition.own(rank, at);
                        for patch in partition.patches(rank).into_iter().filter(|patch| patch.slab == at) {
                            for (row, column) in
                                patch.rows.flat_map(|row| patch.columns.clone().map(move |at| (row, at)))
                            {
                                assert_eq!(
                                    owners[row * columns + column].replace(rank),
                                    None,
                                    "{set} {stones} {ranks}"
                                );
                                assert!(own.has(column, row / CHUNK));
                            }
                        }
                    }
                    for (row, owners) in owners.chunks(columns).enumerate() {
                        for rank in 0..ranks {
                            let owned = partition.columns(rank, at, row);
                            let all = (0..columns).filter(|&column| owners[column] == Some(rank));
                            assert!(all.eq(owned), "{set} {stones}, rank {rank} of {ranks}");
                        }
                        assert!(owners.iter().all(Option::is_some));
                    }
                }
            }
        }
    }

    #[test]
    fn ranks_own_about_the_same_and_hold_little_more() {
        for (ranks, held_max) in [(2, 1.9), (3, 2.2), (4, 2.5), (8, 3.2)] {
            let (tables, partition) = partition(PositionSet::All, 20, ranks);
            let all = PositionSet::All.positions(20);
            let mut held = 0;
            for (rank, layout) in memory_layouts(&tables, partition.slabs(), ranks).into_iter().enumerate() {
                assert_eq!(layout.positions, partition.positions(rank));
                let share = layout.positions as f64 * ranks as f64 / all as f64;
                assert!((0.94..1.06).contains(&share), "rank {rank} of {ranks} owns {share} of its share");
                held += layout.positions + layout.foreign;
            }
            assert!((held as f64) < held_max * all as f64, "{ranks} ranks hold {held} of {all}");
        }
    }

    #[test]
    fn moves_lead_to_needed_rows() {
        let (tables, partition) = partition(PositionSet::REACHABLE, 10, 3);
        let needs = Needs::new(&tables, &partition);
        for mover in 0..=10u32 {
            let slab = &partition.slabs()[mover as usize];
            for rank in 0..3 {
                let own = partition.own(rank, mover as usize);
                for row in 0..slab.mover_halves as usize {
                    for to in tables.rows(mover)[row].iter().take_while(|&&to| to != PackedMove::NONE) {
                        let child = (10 - mover + to.crossing()) as usize;
                        let gather = tables.gather(10 - mover, to.class());
                        for (chunk, &(from, end)) in gather.inverse.iter().enumerate() {
                            let leads = (from..end).any(|from| own.has(row, from as usize));
                            let is_needed = needs.has(rank, child, to.rank() as usize, chunk);
                            assert!(is_needed || !leads, "rank {rank}, slab {mover}, row {row}");
                        }
                    }
                }
            }
        }
    }
}
