//! Subscribers: the ranks to which each changed score is sent.
//!
//! A rank keeps whole rows and chunks of columns, see [`Needs`](super::partition::Needs), but reads only the scores
//! that its moves lead to. These follow from the moves that leave a half: if the mover's half before the move is the
//! larger one, it determines the rank; otherwise the opponent's half does, from which the columns arise by gaining
//! stones. Ranks subscribe to less than half of what they keep: at 20 stones two ranks subscribe to 0.2 times the
//! positions of the database and keep 0.46 times, eight ranks 0.72 and 1.6 times.

use super::partition::ScorePartition;
use crate::kernels::tables::{CHUNK, Tables, chunks};
use game::Slab;
use game::sow::SowClass;
use rayon::prelude::*;

/// Subscribers of the scores that one rank changes.
pub(crate) struct Subscribers<'t> {
    /// By the mover's stones.
    slabs: Vec<Readers<'t>>,
}

/// Readers of a slab, `OpponentMajor`.
#[derive(Default)]
struct Readers<'t> {
    /// By row, its first entry in `movers`; plus the end.
    first: Vec<u32>,
    /// Ranks that own the mover's larger half, with the class of their moves.
    movers: Vec<Mover>,
    /// By class number, the columns that moves lead to.
    led_to: Vec<&'t [u64]>,
    /// By row, the mask of the numbers of crossing stones of moves where the opponent has the larger half.
    crossing: Vec<u32>,
    /// By chunk of columns, the other ranks with such moves.
    opponents: Vec<Vec<Opponent>>,
}

/// A rank and a class number, in four bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mover(u32);

impl Mover {
    fn new(rank: u32, class: usize) -> Mover {
        debug_assert!(class < SowClass::COUNT && rank < u32::MAX / SowClass::COUNT as u32);
        Mover(rank * SowClass::COUNT as u32 + class as u32)
    }

    fn rank(self) -> usize {
        self.0 as usize / SowClass::COUNT
    }

    fn class(self) -> usize {
        self.0 as usize % SowClass::COUNT
    }
}

/// Rank that owns the opponent's larger half in positions with moves to a chunk.
struct Opponent {
    rank: usize,
    /// Mask with the bit of the number of crossing stones.
    crossing: u32,
    /// The columns of the chunk that such moves lead to.
    columns: u64,
}

impl<'t> Subscribers<'t> {
    /// Computes the subscribers of the changes of `rank`. It subscribes itself to slabs from `first_mirrored` on, which
    /// have a mirror.
    pub(crate) fn new(tables: &'t Tables, partition: &ScorePartition, rank: usize, first_mirrored: usize) -> Self {
        let (slabs, ranks) = (partition.slabs(), 0..partition.ranks());
        let last = slabs.len() - 1;
        let owners = |mover: usize| {
            let mut owners = vec![0; if 2 * mover >= last { chunks(slabs[mover].mover_halves) } else { 0 }];
            if !owners.is_empty() {
                ranks.clone().for_each(|rank| owners[partition.chunks(rank, mover)].fill(rank as u32));
            }
            owners
        };
        let owners: Vec<Vec<u32>> = (0..=last).map(owners).collect();
        let readers = |slab: usize| {
            let subscribes = |reader: u32| reader as usize != rank || slab >= first_mirrored;
            let mut readers = Readers::of_rows(tables, &owners, slab, slabs[slab].opponent_halves, subscribes);
            readers.led_to = (0..2 * slab + 2).map(|class| led_to(tables, slab, class)).collect();
            readers.opponents = opponents(tables, partition, rank, slab);
            readers
        };
        Subscribers { slabs: (0..slabs.len()).into_par_iter().map(readers).collect() }
    }

    /// Bytes of the subscribers, about: up to four movers for each row.
    pub(super) fn bytes(slabs: &[Slab]) -> u64 {
        slabs.iter().map(|slab| u64::from(slab.opponent_halves) * 24).sum()
    }

    /// Whether a chunk of a row has any subscriber.
    #[inline]
    pub(crate) fn is_any(&self, slab: usize, row: usize, chunk: usize) -> bool {
        let readers = &self.slabs[slab];
        let reads = |opponent: &Opponent| readers.crossing[row] & opponent.crossing != 0;
        readers.first[row] < readers.first[row + 1] || readers.opponents[chunk].iter().any(reads)
    }

    /// Finds the ranks that read any of some columns of a chunk of a row, and the columns that each of them reads.
    /// Includes this rank if it reads them in its mirror.
    pub(crate) fn of(&self, slab: usize, row: usize, chunk: usize, columns: u64, found: &mut Vec<(usize, u64)>) {
        let readers = &self.slabs[slab];
        found.clear();
        let mut add = |rank: usize, columns: u64| match found.iter_mut().find(|(subscriber, _)| *subscriber == rank) {
            _ if columns == 0 => {}
            Some((_, all)) => *all |= columns,
            None => found.push((rank, columns)),
        };
        for mover in &readers.movers[readers.first[row] as usize..readers.first[row + 1] as usize] {
            add(mover.rank(), columns & readers.led_to[mover.class()][chunk]);
        }
        for opponent in
            readers.opponents[chunk].iter().filter(|opponent| readers.crossing[row] & opponent.crossing != 0)
        {
            add(opponent.rank, columns & opponent.columns);
        }
    }
}

impl Readers<'_> {
    /// Computes the readers of the rows of a slab. `owners` has the ranks of the mover's larger halves, by stones and
    /// chunk.
    fn of_rows(tables: &Tables, owners: &[Vec<u32>], slab: usize, rows: u32, subscribes: impl Fn(u32) -> bool) -> Self {
        let last = owners.len() - 1;
        let opponent = last - slab;
        let mut readers = Readers { first: vec![0], ..Readers::default() };
        for row in 0..rows {
            let begin = readers.movers.len();
            let mut crossing = 0;
            let parents = tables.parents(opponent as u32).of(row).iter();
            for parent in parents.take_while(|parent| parent.crossing() as usize <= slab) {
                let mover = opponent + parent.crossing() as usize;
                if 2 * mover <= last {
                    crossing |= 1 << parent.crossing();
                }
                if 2 * mover >= last {
                    let rank = owners[mover][parent.rank() as usize / CHUNK];
                    let mover = Mover::new(rank, parent.class());
                    if subscribes(rank) && !readers.movers[begin..].contains(&mover) {
                        readers.movers.push(mover);
                    }
                }
            }
            readers.first.push(readers.movers.len() as u32);
            readers.crossing.push(crossing);
        }
        readers
    }
}

/// Returns the columns of a slab that moves of a class lead to.
fn led_to(tables: &Tables, slab: usize, number: usize) -> &[u64] {
    let class = SowClass::from_number(number);
    match slab.checked_sub(class.crossing.into()) {
        Some(opponent) if class.occurs() => &tables.gather(opponent as u32, number).led_to,
        _ => &[],
    }
}

/// Returns, by chunk of columns of a slab, the ranks other than `but` with moves there, where the opponent has the
/// larger half.
fn opponents(tables: &Tables, partition: &ScorePartition, but: usize, slab: usize) -> Vec<Vec<Opponent>> {
    let last = partition.slabs().len() - 1;
    let mut all: Vec<_> = (0..chunks(partition.slabs()[slab].mover_halves)).map(|_| Vec::new()).collect();
    for mover in last - slab..=last / 2 {
        let crossing = mover + slab - last;
        for rank in (0..partition.ranks()).filter(|&rank| rank != but) {
            for number in 2 * crossing..2 * crossing + 2 {
                let columns = led_to(tables, slab, number);
                partition.chunks_led_to_by(tables, rank, mover, number).for_each(|chunk| {
                    all[chunk].push(Opponent { rank, crossing: 1 << crossing, columns: columns[chunk] });
                });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::partition::{Needs, SlabPatch};
    use super::*;
    use crate::kernels::tables::{PackedMove, halves_of};
    use game::{Index, PositionSet, Rules};
    use std::collections::HashSet;
    use std::ops::Range;

    type ReadPosition = (usize, usize, usize);

    /// Returns the positions (slab, row, column) that a rank reads in the main copy and in the mirror.
    fn read(tables: &Tables, partition: &ScorePartition, rank: usize) -> [HashSet<ReadPosition>; 2] {
        let last = partition.slabs().len() - 1;
        let mut all = [HashSet::new(), HashSet::new()];
        for (mover, slab) in partition.slabs().iter().enumerate() {
            let own = partition.own(rank, mover);
            let has_larger = 2 * mover >= last;
            let columns = |chunks: &Range<usize>| halves_of(chunks, slab.opponent_halves);
            let some = [(own.rows.clone(), columns(&(0..own.chunks_end))), (0..own.rows_end, columns(&own.chunks))];
            for (row, columns) in
                some.into_iter().flat_map(|(rows, columns)| rows.map(move |row| (row, columns.clone())))
            {
                for to in tables.rows(mover as u32)[row].iter().take_while(|&&to| to != PackedMove::NONE) {
                    let class = SowClass::from_number(to.class());
                    let targets =
                        columns.clone().filter_map(|o| tables.quiet_target((last - mover) as u32, class, o as u32));
                    let child = last - mover + to.crossing() as usize;
                    all[usize::from(has_larger)]
                        .extend(targets.map(|to_column| (child, to.rank() as usize, to_column as usize)));
                }
            }
        }
        all
    }

    #[test]
    fn readers_of_a_score_subscribe_to_it() {
        for (set, stones, ranks) in [
            (PositionSet::All, 9, 2),
            (PositionSet::All, 10, 5),
            (PositionSet::REACHABLE, 10, 3),
            (PositionSet::All, 0, 2),
        ] {
            let tables = Tables::new(Rules::AWARI, set, stones);
            let partition = ScorePartition::new(&tables, Index::new(stones, set).slabs(), ranks);
            let (needs, first_mirrored) = (Needs::new(&tables, &partition), stones as usize / 2 + 1);
            let read: Vec<_> = (0..ranks).map(|rank| read(&tables, &partition, rank)).collect();
            for owner in 0..ranks {
                let subscribers = Subscribers::new(&tables, &partition, owner, first_mirrored);
                for SlabPatch { slab, rows, columns } in partition.patches(owner) {
                    for (row, column) in rows.flat_map(|row| columns.clone().map(move |column| (row, column))) {
                        let (chunk, lane) = (column / CHUNK, 1 << (column % CHUNK));
                        let mut sent = Vec::new();
                        subscribers.of(slab, row, chunk, lane, &mut sent);
                        assert!(sent.is_empty() || subscribers.is_any(slab, row, chunk));
                        assert!(sent.iter().all(|&(_, columns)| columns == lane));
                        for (rank, read) in read.iter().enumerate() {
                            let place = (slab, row, column);
                            let subscribes = sent.iter().any(|&(subscriber, _)| subscriber == rank);
                            let (from_columns, from_rows) = (read[0].contains(&place), read[1].contains(&place));
                            let is_read = if rank == owner {
                                from_rows && slab >= first_mirrored
                            } else {
                                from_columns || from_rows
                            };
                            assert!(subscribes || !is_read, "{set} {stones}: {place:?}, rank {rank} of {ranks}");
                            assert!(!subscribes || needs.has(rank, slab, row, chunk));
                            // In whole chunks of columns exactly these; otherwise not all moves are of the rank.
                            assert!(!subscribes || is_read || 2 * slab >= stones as usize, "{place:?}, rank {rank}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn ranks_subscribe_to_less_than_half_of_what_they_keep() {
        for ranks in [2, 4, 8] {
            let tables = Tables::new(Rules::AWARI, PositionSet::All, 15);
            let partition = ScorePartition::new(&tables, Index::new(15, PositionSet::All).slabs(), ranks);
            let needs = Needs::new(&tables, &partition);
            let (mut sent, mut kept, mut found) = (0u64, 0u64, Vec::new());
            for owner in 0..ranks {
                let subscribers = Subscribers::new(&tables, &partition, owner, partition.slabs().len());
                for patch in partition.patches(owner) {
                    for (chunk, columns) in patch.chunks() {
                        for row in patch.rows.clone() {
                            subscribers.of(patch.slab, row, chunk, columns, &mut found);
                            sent += found.iter().map(|(_, columns)| u64::from(columns.count_ones())).sum::<u64>();
                            let others = (0..ranks).filter(|&rank| rank != owner);
                            let keep = others.filter(|&rank| needs.has(rank, patch.slab, row, chunk)).count() as u64;
                            kept += keep * u64::from(columns.count_ones());
                        }
                    }
                }
            }
            assert!((sent as f64) < 0.5 * kept as f64, "{ranks} ranks are sent {sent}, and keep {kept}");
        }
    }
}
