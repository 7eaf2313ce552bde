//! Scores and captures of a rank: those that it owns, and those of others that it reads.
//!
//! In slabs whose mover has fewer stones than the opponent, a rank needs some `OpponentMajor` rows. In the others it
//! needs some columns of all rows, which are stored in the main copy, and some rows as a whole, which are stored in a
//! second copy, the *mirror*. The mirror gets changes after each phase, as other ranks do. All rows have addresses, but
//! only those that are written take memory.

use super::memory_layout::{MemoryLayout, NeededSlab, RankPlaces, SlabCaptures};
use super::partition::{Needs, ScorePartition, SlabPatch};
use crate::huge_pages::Bytes;
use crate::kernels::tables::{Tables, halves_of};
use crate::layout::rows::{ScoreRows, SlabRows};
use crate::ranks::{RowBand, ScoreShare, fits};
use game::{Index, Slab};
use messaging::Result;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Positions read at a time; at least one row.
const BATCH_POSITIONS: usize = 1 << 22;

/// The scores of a rank: those that it owns, and its copies of others.
#[derive(Debug)]
pub struct RankScores {
    partition: Arc<ScorePartition>,
    rank: usize,
    /// The needs of all ranks, if there are several.
    pub(super) needs: Option<Needs>,
    /// The slabs, then the mirror.
    pub(super) rows: ScoreRows,
    /// By the mover's stones.
    captures: Vec<SlabCaptures>,
    /// Length of the captures in bytes.
    captures_bytes: usize,
    /// Whether all scores are still 0.
    pub(super) is_fresh: bool,
}

impl RankScores {
    /// Allocates the scores of `rank`, all 0.
    ///
    /// # Panics
    /// If there is no such rank, or the tables serve fewer stones.
    pub fn zeroed(tables: &Tables, partition: Arc<ScorePartition>, rank: usize) -> io::Result<RankScores> {
        assert!(rank < partition.ranks(), "no more ranks than there are");
        let needs = (partition.ranks() > 1).then(|| Needs::new(tables, &partition));
        let places =
            RankPlaces::new(&partition, rank, |slab| needs.as_ref().map_or(0..0, |needs| needs.chunks(rank, slab)));
        let rows = ScoreRows::sparse(places.rows, places.rows_bytes)?;
        let (captures, captures_bytes) = (places.captures, places.captures_bytes);
        Ok(RankScores { partition, rank, needs, rows, captures, captures_bytes, is_fresh: true })
    }

    /// Takes the scores of a whole database, zeros or a checkpoint, for a machine alone.
    ///
    /// # Panics
    /// If the rows are of another database, or the tables serve fewer stones.
    pub fn alone(tables: &Tables, index: &Index, rows: ScoreRows) -> RankScores {
        let partition = ScorePartition::new(tables, index.slabs(), 1);
        let places = RankPlaces::new(&partition, 0, |_| 0..0);
        assert!(rows.slabs() == places.rows, "rows of the database");
        let (captures, captures_bytes) = (places.captures, places.captures_bytes);
        RankScores {
            partition: Arc::new(partition),
            rank: 0,
            needs: None,
            rows,
            captures,
            captures_bytes,
            is_fresh: true,
        }
    }

    /// The rows of the scores. On a machine alone they are those of the whole database.
    pub fn rows(&self) -> &ScoreRows {
        &self.rows
    }

    /// Returns the rows of the scores, for reuse.
    pub fn into_rows(self) -> ScoreRows {
        self.rows
    }

    /// Forgets all scores.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.is_fresh = true;
    }

    /// The partition of the database.
    pub fn partition(&self) -> &ScorePartition {
        &self.partition
    }

    /// The rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of positions that the rank owns.
    pub fn positions(&self) -> u64 {
        self.partition.positions(self.rank)
    }

    /// The memory layout of the rank.
    pub fn memory_layout(&self) -> MemoryLayout {
        NeededSlab::of(self.needs.as_ref(), &self.partition, self.rank).memory_layout(&self.partition)
    }

    /// Whether no checkpoint was taken over.
    pub fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    /// Iterates over the scores that the rank owns, in runs, in the order of a checkpoint.
    pub fn runs(&self) -> impl Iterator<Item = &[i8]> {
        self.partition.patches(self.rank).into_iter().flat_map(move |patch| {
            let slab = self.rows.slabs()[patch.slab];
            patch.rows.clone().map(move |row| &self.rows.bytes()[slab.range(row, &patch.columns)])
        })
    }

    /// Takes over the scores of a checkpoint that this rank owns. The checkpoint is of `rank` in `partition`; `read`
    /// reads ranges in the order of its [`runs`](Self::runs). Of two states of a score the one further from 0 is later,
    /// and is kept.
    ///
    /// # Errors
    /// The first error of `read`; scores read until then are kept.
    ///
    /// # Panics
    /// If the checkpoint is of another database.
    pub fn take_over<E>(
        &mut self,
        partition: &ScorePartition,
        rank: usize,
        mut read: impl FnMut(Range<u64>, &mut [i8]) -> Result<(), E>,
    ) -> Result<(), E> {
        assert!(self.partition.slabs() == partition.slabs(), "both are of one database");
        let mine = self.partition.patches(self.rank);
        let mut first = 0;
        let mut batch = Vec::new();
        for theirs in partition.patches(rank) {
            let (slab, width) = (self.rows.slabs()[theirs.slab], theirs.columns.len());
            for rows in in_batches(&theirs.rows, width) {
                let piece = SlabPatch { rows: rows.clone(), ..theirs.clone() };
                let positions = first..first + piece.positions() as u64;
                first = positions.end;
                let both: Vec<_> = mine.iter().filter_map(|mine| mine.meet(&piece)).collect();
                if both.is_empty() {
                    continue;
                }
                self.is_fresh = false;
                batch.resize(piece.positions(), 0);
                read(positions, &mut batch)?;
                for SlabPatch { rows: common, columns, .. } in both {
                    for row in common {
                        let from = &batch[(row - rows.start) * width..][..width];
                        let from = &from[columns.start - theirs.columns.start..];
                        let to = self.rows.bytes_mut()[slab.range(row, &columns)].iter_mut();
                        for (to, &score) in to.zip(from) {
                            if score.unsigned_abs() > to.unsigned_abs() {
                                *to = score;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads the best captures of the positions that the rank recomputes, for [`sweep`](super::sweep). `read` reads
    /// ranges of positions, `MoverMajor` in canonical order. On a machine alone these are the captures of the database.
    ///
    /// # Errors
    /// If addresses cannot be allocated; the first error of `read`.
    pub fn captures<E: From<io::Error>>(
        &self,
        mut read: impl FnMut(Range<u64>, &mut [i8]) -> Result<(), E>,
    ) -> Result<Bytes, E> {
        let mut captures = Bytes::sparse(self.captures_bytes)?;
        let mut batch = Vec::new();
        for (at, slab) in self.partition.slabs().iter().enumerate() {
            let (own, place) = (self.partition.own(self.rank, at), self.captures[at]);
            let columns = slab.opponent_halves as usize;
            let wanted = [
                (own.rows.clone(), halves_of(&(0..own.chunks_end), slab.opponent_halves)),
                (0..own.rows_end, halves_of(&own.chunks, slab.opponent_halves)),
            ];
            for (rows, wanted) in wanted.into_iter().filter(|(_, wanted)| !wanted.is_empty()) {
                for rows in in_batches(&rows, columns) {
                    batch.resize(rows.len() * columns, 0);
                    let first = slab.offset + (rows.start * columns) as u64;
                    read(first..first + batch.len() as u64, &mut batch)?;
                    for (row, from) in rows.zip(batch.chunks_exact(columns)) {
                        let to = place.offset + row * place.stride;
                        captures[to + wanted.start..to + wanted.end].copy_from_slice(&from[wanted.clone()]);
                    }
                }
            }
        }
        Ok(captures)
    }

    /// Returns the captures of a slab and their stride.
    pub(super) fn captures_of<'c>(&self, captures: &'c Bytes, slab: usize) -> (&'c [i8], usize) {
        assert_eq!(captures.len(), self.captures_bytes, "captures of this part");
        let place = self.captures[slab];
        (&captures.padded()[place.offset..], place.stride)
    }

    /// Returns the locations of the scores that moves lead to: from slabs whose mover has the larger half, and from
    /// others.
    pub(super) fn places(&self) -> [Vec<SlabRows>; 2] {
        let (slabs, mirror) = self.rows.slabs().split_at(self.partition.slabs().len());
        let mut high = slabs.to_vec();
        high[self.first_mirrored()..].copy_from_slice(mirror);
        [high, slabs.to_vec()]
    }

    /// Returns the first slab with a mirror.
    pub(super) fn first_mirrored(&self) -> usize {
        let slabs = self.partition.slabs().len();
        slabs - (self.rows.slabs().len() - slabs)
    }

    /// Returns the location of the mirror of a slab.
    pub(super) fn mirror(&self, slab: usize) -> Option<SlabRows> {
        let at = slab.checked_sub(self.first_mirrored())?;
        Some(self.rows.slabs()[self.partition.slabs().len() + at])
    }
}

/// Cuts rows of some width into ranges of about [`BATCH_POSITIONS`].
fn in_batches(rows: &Range<usize>, width: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let (rows, at_once) = (rows.clone(), (BATCH_POSITIONS / width.max(1)).max(1));
    rows.clone().step_by(at_once).map(move |first| first..rows.end.min(first + at_once))
}

impl RankScores {
    /// Iterates over the patches of a band that a rank owns.
    fn patches_of<'a>(&'a self, rank: usize, band: &'a RowBand) -> impl Iterator<Item = SlabPatch> + 'a {
        let columns = 0..self.slabs()[band.slab].mover_halves as usize;
        let band = SlabPatch { slab: band.slab, rows: band.rows.clone(), columns };
        let patches = self.partition().patches_in(rank, band.slab).into_iter();
        patches.filter_map(move |patch| patch.meet(&band))
    }
}

impl ScoreShare for RankScores {
    fn slabs(&self) -> &[Slab] {
        self.partition().slabs()
    }

    /// By patch, then by row.
    fn give(&self, band: &RowBand, piece: &mut Vec<u8>) {
        let slab = self.rows.slabs()[band.slab];
        for patch in self.patches_of(RankScores::rank(self), band) {
            for row in patch.rows {
                let scores = &self.rows.bytes()[slab.range(row, &patch.columns)];
                piece.extend(scores.iter().map(|&score| score as u8));
            }
        }
    }

    fn join(&self, band: &RowBand, pieces: &[&[u8]], rows: &mut [i8]) -> Result<()> {
        let all = self.slabs()[band.slab].mover_halves as usize;
        for (rank, piece) in pieces.iter().enumerate() {
            fits(rank, self.patches_of(rank, band).map(|patch| patch.positions()).sum(), piece)?;
            let mut rest = *piece;
            for patch in self.patches_of(rank, band) {
                for row in patch.rows {
                    let (scores, later) = rest.split_at(patch.columns.len());
                    let first = (row - band.rows.start) * all + patch.columns.start;
                    let to = rows[first..].iter_mut().zip(scores);
                    to.for_each(|(to, &score)| *to = score as i8);
                    rest = later;
                }
            }
        }
        Ok(())
    }
}
