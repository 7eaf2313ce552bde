//! Walks over the positions of a database, all or a sample, with the stored and the derived score of each.
//!
//! A full walk goes tile by tile: a range of movers' halves against a range of opponents' halves, the mover's half
//! outermost. With the mover's half fixed, each of the six moves reads along one row of its child's slab, so look-ups
//! stay in a few cache lines (and a few blocks of a compressed file). Memory is one tile per thread.
//!
//! A sample of positions has no such order. Its look-ups are collected and sorted by database and position, so a
//! compressed file decodes each block once per batch. Memory is one batch of look-ups. A sample of tiles goes tile by
//! tile, like a full walk; its tiles are small.
//!
//! Tiles and batches depend on the database alone, and tallies are merged in their order, so results do not depend on
//! the number of threads.

use crate::databases::{Database, Databases, ScoreSource};
use crate::derive::Derived;
use crate::error::{CheckError, Result};
use crate::extent::{Extent, Sample};
use game::{Board, Half, Rules, Score, Slab};
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};

/// Movers' halves in a tile: one cache line of each row.
const TILE_MOVERS: u32 = 64;

/// Opponents' halves in a tile, so that a tile has at most 2^20 positions.
const TILE_OPPONENTS: u32 = 1 << 14;

/// Halves of either player in a tile of a sample. Larger tiles cost less, but spread less.
const SAMPLE_TILE: u32 = 8;

/// Tiles of a sample in one parallel unit.
const SAMPLE_UNIT: usize = 64;

/// Positions in a batch of samples: about 1.3 million look-ups, 20 MB.
const BATCH_POSITIONS: u64 = 1 << 18;

/// Look-ups in one parallel unit of a batch.
const BATCH_UNIT: usize = 1 << 14;

/// A position of a walk.
pub(crate) struct VisitedPosition {
    pub(crate) position: u64,
    pub(crate) board: Board,
    pub(crate) derived: Derived,
    pub(crate) expected: Score,
    pub(crate) found: Score,
}

impl VisitedPosition {
    pub(crate) fn new(rules: &Rules, position: u64, board: Board, derived: Derived, found: Score) -> VisitedPosition {
        VisitedPosition { position, board, derived, expected: derived.score(&board, rules), found }
    }
}

/// An accumulator of a walk.
pub(crate) trait WalkTally: Default + Send {
    /// Records a visited position.
    fn see(&mut self, seen: &VisitedPosition);

    /// Adds the tally of another part of the walk.
    fn merge(&mut self, other: Self);
}

/// Receives the number of further positions visited; may end the walk early.
pub(crate) type Watch<'a> = &'a (dyn Fn(u64) -> ControlFlow<()> + Sync);

/// Walks a database whose scores follow from those of the children in `children`.
pub(crate) fn walk_of<L: ScoreSource, T: WalkTally>(
    database: &Database<L>,
    children: &Databases<L>,
    extent: Extent,
    watch: Watch,
) -> Result<T> {
    Walk { databases: children, database, watch }.portion(extent, DatabasePortion::WHOLE)
}

/// Walks a portion of the `stones`-stone database.
pub(crate) fn walk_portion<L: ScoreSource, T: WalkTally>(
    databases: &Databases<L>,
    stones: u32,
    extent: Extent,
    portion: DatabasePortion,
    watch: Watch,
) -> Result<T> {
    Walk::new(databases, stones, watch)?.portion(extent, portion)
}

/// A walk over a database.
pub(crate) struct Walk<'a, L> {
    pub(crate) databases: &'a Databases<L>,
    pub(crate) database: &'a Database<L>,
    pub(crate) watch: Watch<'a>,
}

impl<'a, L: ScoreSource> Walk<'a, L> {
    pub(crate) fn new(databases: &'a Databases<L>, stones: u32, watch: Watch<'a>) -> Result<Self> {
        Ok(Walk { databases, database: databases.get(stones)?, watch })
    }

    fn portion<T: WalkTally>(&self, extent: Extent, portion: DatabasePortion) -> Result<T> {
        let database = self.database;
        let mut tally = match extent {
            Extent::Sample(sample) if sample.count(database.positions()) < database.positions() => {
                self.sampled(sample, portion)?
            }
            Extent::Tiles(sample) if sample.count(database.positions()) < database.positions() => {
                self.tiles(portion.tiles(&sample_tiles(database, sample)), SAMPLE_UNIT)?
            }
            _ => self.tiles(portion.tiles(&all_tiles(database)), 1)?,
        };
        if portion.is_last() {
            self.see_opening(&mut tally)?;
        }
        Ok(tally)
    }

    /// Visits the opening position, which is in no slab, if the database has it. Every extent includes it.
    pub(crate) fn see_opening<T: WalkTally>(&self, tally: &mut T) -> Result<()> {
        let Walk { databases, database, .. } = *self;
        for position in database.index().slab_positions()..database.positions() {
            let board = database.board(position);
            let derived = Derived::of(databases, &board)?;
            let found = database.scores().score(position)?;
            tally.see(&VisitedPosition::new(databases.rules(), position, board, derived, found));
        }
        Ok(())
    }

    /// Walks tiles, `unit` of them at a time in parallel.
    fn tiles<T: WalkTally>(&self, tiles: &[WalkTile<'_>], unit: usize) -> Result<T> {
        let walk = |tiles: &[WalkTile<'_>]| {
            let mut tally = T::default();
            for tile in tiles {
                tally.merge(tile.walk(self)?);
            }
            let seen = tiles.iter().map(WalkTile::positions).sum();
            if (self.watch)(seen).is_break() { Err(CheckError::Stopped) } else { Ok(tally) }
        };
        Ok(merged(tiles.par_chunks(unit).map(walk).collect::<Result<_>>()?))
    }

    fn sampled<T: WalkTally>(&self, sample: Sample, portion: DatabasePortion) -> Result<T> {
        let positions = self.database.index().slab_positions();
        let count = sample.count(positions);
        let share = portion.share(count);
        let mut tally = T::default();
        for first in share.clone().step_by(BATCH_POSITIONS as usize) {
            let batch: Vec<u64> = (first..share.end.min(first + BATCH_POSITIONS))
                .into_par_iter()
                .map(|at| sample.position(at, count, positions))
                .collect();
            tally.merge(self.batch(&batch)?);
            if (self.watch)(batch.len() as u64).is_break() {
                return Err(CheckError::Stopped);
            }
        }
        Ok(tally)
    }

    fn batch<T: WalkTally>(&self, positions: &[u64]) -> Result<T> {
        let Walk { databases, database, .. } = *self;
        let boards: Vec<Board> = positions.par_iter().map(|&position| database.board(position)).collect();
        let look_ups: Vec<Vec<SampleLookUp>> = boards
            .par_chunks(BATCH_UNIT)
            .enumerate()
            .map(|(unit, boards)| look_ups(databases, unit * BATCH_UNIT, boards))
            .collect::<Result<_, _>>()?;
        let mut look_ups = look_ups.concat();
        look_ups.par_sort_unstable();

        let stones = database.index().stones();
        let mut answers = vec![0; look_ups.len()];
        look_ups.par_chunks(BATCH_UNIT).zip(answers.par_chunks_mut(BATCH_UNIT)).try_for_each_init(
            Vec::new,
            |places, (look_ups, mut answers)| {
                for look_ups in look_ups.chunk_by(|a, b| a.captured() == b.captured()) {
                    let (here, rest) = answers.split_at_mut(look_ups.len());
                    answers = rest;
                    places.clear();
                    places.extend(look_ups.iter().map(|look_up| look_up.position()));
                    let child = databases.get(stones - u32::from(look_ups[0].captured()))?;
                    child.scores().scores(places, here)?;
                }
                Ok::<_, CheckError>(())
            },
        )?;
        let mut derived = vec![Derived::NONE; positions.len()];
        for (look_up, answer) in look_ups.into_iter().zip(answers) {
            derived[look_up.parent()].offer(look_up.captured(), answer);
        }

        let parts: Vec<T> = (positions.par_chunks(BATCH_UNIT))
            .zip(boards.par_chunks(BATCH_UNIT))
            .zip(derived.par_chunks(BATCH_UNIT))
            .map(|((positions, boards), derived)| {
                let mut found = vec![0; positions.len()];
                database.scores().scores(positions, &mut found)?;
                let mut tally = T::default();
                for (at, &board) in boards.iter().enumerate() {
                    tally.see(&VisitedPosition::new(databases.rules(), positions[at], board, derived[at], found[at]));
                }
                Ok(tally)
            })
            .collect::<Result<_>>()?;
        Ok(merged(parts))
    }
}

/// One of several portions of about equal size. Portions depend only on the database, the extent and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabasePortion {
    /// The number of the portion, from 0.
    pub number: u64,
    /// The number of portions.
    pub of: u64,
}

impl DatabasePortion {
    /// The whole database.
    pub const WHOLE: DatabasePortion = DatabasePortion { number: 0, of: 1 };

    pub(crate) fn is_last(self) -> bool {
        self.number + 1 == self.of
    }

    /// Returns its share of `many` items.
    fn share(self, many: u64) -> Range<u64> {
        let cut = |number: u64| (u128::from(many) * u128::from(number) / u128::from(self.of)) as u64;
        cut(self.number)..cut(self.number + 1)
    }

    /// Returns its share of `tiles`: those that begin in its share of their positions.
    pub(crate) fn tiles<'t, 'a>(self, tiles: &'t [WalkTile<'a>]) -> &'t [WalkTile<'a>] {
        let share = self.share(tiles.iter().map(WalkTile::positions).sum());
        let mut end = 0;
        let mut first_of = |tile: &WalkTile| {
            end += tile.positions();
            end - tile.positions()
        };
        let first: Vec<u64> = tiles.iter().map(&mut first_of).collect();
        &tiles[first.partition_point(|&at| at < share.start)..first.partition_point(|&at| at < share.end)]
    }
}

/// Returns the tiles of a full walk.
fn all_tiles<L: ScoreSource>(database: &Database<L>) -> Vec<WalkTile<'_>> {
    let slabs = database.index().slabs().iter();
    let tiles = slabs.flat_map(|slab| {
        cuts(slab.mover_halves, TILE_MOVERS).flat_map(move |movers| {
            cuts(slab.opponent_halves, TILE_OPPONENTS).map(move |opponents| WalkTile {
                slab,
                movers: movers.clone(),
                opponents,
            })
        })
    });
    tiles.collect()
}

/// The tiles of a slab that a sample chooses from.
struct SampleTiles<'a> {
    slab: &'a Slab,
    first: u64,
    in_row: u64,
}

/// Returns the tiles of a sample, ascending.
pub(crate) fn sample_tiles<L: ScoreSource>(database: &Database<L>, sample: Sample) -> Vec<WalkTile<'_>> {
    let across = |halves: u32| u64::from(halves.div_ceil(SAMPLE_TILE));
    let mut tiles = 0;
    let mut slabs = Vec::new();
    for slab in database.index().slabs() {
        slabs.push(SampleTiles { slab, first: tiles, in_row: across(slab.mover_halves) });
        tiles += across(slab.mover_halves) * across(slab.opponent_halves);
    }
    let positions = database.positions();
    // Tiles at the edges of slabs are smaller.
    let share = u128::from(sample.count(positions)) * u128::from(tiles);
    let count = share.div_ceil(u128::from(positions)) as u64;
    let chosen = (0..count).map(|at| {
        let tile = sample.position(at, count, tiles);
        let tiled = &slabs[slabs.partition_point(|slab| slab.first <= tile) - 1];
        let (row, column) = ((tile - tiled.first) / tiled.in_row, (tile - tiled.first) % tiled.in_row);
        let halves = |at: u64, end: u32| {
            let first = at as u32 * SAMPLE_TILE;
            first..end.min(first + SAMPLE_TILE)
        };
        let (movers, opponents) = (halves(column, tiled.slab.mover_halves), halves(row, tiled.slab.opponent_halves));
        WalkTile { slab: tiled.slab, movers, opponents }
    });
    chosen.collect()
}

/// A rectangle of a slab.
pub(crate) struct WalkTile<'a> {
    slab: &'a Slab,
    movers: Range<u32>,
    opponents: Range<u32>,
}

impl WalkTile<'_> {
    pub(crate) fn positions(&self) -> u64 {
        self.movers.len() as u64 * self.opponents.len() as u64
    }

    /// Returns its positions, in canonical order.
    pub(crate) fn each(&self) -> impl Iterator<Item = u64> + '_ {
        self.opponents.clone().flat_map(|opponent| {
            let row = self.slab.offset + u64::from(opponent) * u64::from(self.slab.mover_halves);
            self.movers.clone().map(move |mover| row + u64::from(mover))
        })
    }

    fn walk<L: ScoreSource, T: WalkTally>(&self, walk: &Walk<L>) -> Result<T> {
        let Walk { databases, database, .. } = *walk;
        let slab = self.slab;
        let width = self.movers.len();
        let at = |opponent: u32| {
            slab.offset + u64::from(opponent) * u64::from(slab.mover_halves) + u64::from(self.movers.start)
        };
        let mut found = vec![0; width * self.opponents.len()];
        for (opponent, row) in self.opponents.clone().zip(found.chunks_exact_mut(width)) {
            database.scores().read(at(opponent), row)?;
        }
        let opponents: Vec<Half> =
            self.opponents.clone().map(|rank| database.index().unrank_opponent(slab.opponent_stones, rank)).collect();
        let mut tally = T::default();
        for (column, mover) in self.movers.clone().enumerate() {
            let mover = database.index().halves().unrank(slab.mover_stones, mover);
            for (row, (rank, &opponent)) in self.opponents.clone().zip(&opponents).enumerate() {
                let board = Board::from_halves(mover, opponent);
                tally.see(&VisitedPosition::new(
                    databases.rules(),
                    at(rank) + column as u64,
                    board,
                    Derived::of(databases, &board)?,
                    found[row * width + column],
                ));
            }
        }
        Ok(tally)
    }
}

/// The look-up of a child of a sampled position, in 62 bits. Sorts by database (captures of the same number of stones
/// lead into the same one), then by position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SampleLookUp(u64);

/// Bits for the number of a position in its batch.
const PARENT_BITS: u32 = BATCH_POSITIONS.trailing_zeros();

/// Bits for a position in a database: C(59, 11) is less than 2^39.
const POSITION_BITS: u32 = 39;

const _: () = assert!(BATCH_POSITIONS.is_power_of_two() && PARENT_BITS + POSITION_BITS + 6 <= 64);

impl SampleLookUp {
    fn new(captured: u8, position: u64, parent: usize) -> SampleLookUp {
        SampleLookUp((u64::from(captured) << POSITION_BITS | position) << PARENT_BITS | parent as u64)
    }

    fn captured(self) -> u8 {
        (self.0 >> (POSITION_BITS + PARENT_BITS)) as u8
    }

    fn position(self) -> u64 {
        self.0 >> PARENT_BITS & ((1 << POSITION_BITS) - 1)
    }

    fn parent(self) -> usize {
        (self.0 & (BATCH_POSITIONS - 1)) as usize
    }
}

fn look_ups<L: ScoreSource>(
    databases: &Databases<L>,
    first_parent: usize,
    boards: &[Board],
) -> Result<Vec<SampleLookUp>> {
    let mut look_ups = Vec::with_capacity(boards.len() * 6);
    for (parent, board) in (first_parent..).zip(boards) {
        let stones = board.stones();
        for (_, played) in board.moves(databases.rules()) {
            let database = databases.get(stones - u32::from(played.captured))?;
            let position = database.position(&played.child)?;
            look_ups.push(SampleLookUp::new(played.captured, position, parent));
        }
    }
    Ok(look_ups)
}

pub(crate) fn merged<T: WalkTally>(parts: Vec<T>) -> T {
    let mut tally = T::default();
    for part in parts {
        tally.merge(part);
    }
    tally
}

/// Cuts `0..end` into runs of `most`, the last one shorter.
fn cuts(end: u32, most: u32) -> impl Iterator<Item = Range<u32>> + Clone {
    (0..end.div_ceil(most)).map(move |at| at * most..end.min((at + 1) * most))
}
