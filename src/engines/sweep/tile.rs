//! Full passes: tiles, each in the cache of one thread.
//!
//! What a tile reads of itself comes of moves that stay in the mover's half, and such moves raise its rank. All else,
//! captures among it, is first brought together as the *base* of its positions, for the tiles of all pairs at once,
//! while nobody writes. Then each tile is taken by itself again and again, the rows of its high slab, then those of
//! its low one, from their bases and what changed in the tile. Tiles of different pairs share no slab, so that each
//! thread has one of its own.

use super::Done;
use super::pair::{Pair, units};
use crate::apply::{Changed, apply};
use crate::kernel::{Child, Floor, Kernel, Moves, STRAIGHT, SlabWork, UNIT_BYTES_MAX, Unit};
use crate::marks::Region;
use crate::rows::{Rows, SlabRows};
use crate::tables::CHUNK;
use game::Slab;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Positions of a tile in one of its slabs, roughly. Larger ones take more rounds, smaller ones more barriers.
const TILE_POSITIONS: usize = 3 << 17;

/// Chunks of ranks in a band, at least where there are as many: what a row reads of long rows in other slabs, the rows
/// around it read too.
const BAND_CHUNKS_MIN: usize = 4;

/// The most chunks of ranks in a band or in a part of the others: a word has a bit for each chunk of columns, and there
/// may be one more.
const TILE_CHUNKS_MAX: usize = 63;

/// How often a tile is taken in one pass, at most.
const ROUNDS_MAX: usize = 4;

/// A band of ranks of a pair, and a part of the others.
#[derive(Clone, Debug)]
struct Block {
    pair: usize,
    band: Range<usize>,
    part: usize,
    parts: usize,
}

/// Full passes over the pairs of a database.
pub(crate) struct Tiles<'a> {
    pairs: &'a [Pair<'a>],
    /// By pair, its slabs as moves see them that stay in the mover's half: each alone in an array.
    straight: Vec<[SlabWork<'a>; 2]>,
    kernel: Kernel,
    /// Blocks that are taken at once, each of another pair.
    waves: Vec<Vec<Block>>,
    bases: Vec<i8>,
    rooms: Vec<Mutex<Room>>,
}

/// What a thread needs for a tile.
#[derive(Default)]
struct Room {
    staged: Vec<i8>,
    /// Of the high slab, then the low one: by column of the tile, the chunks of columns of the other slab that moves
    /// from there lead to what changed.
    changed: [Vec<u64>; 2],
    /// By row, the chunks of its columns with a changed child.
    stale: Vec<u64>,
}

/// One of the two slabs of a tile.
struct Side<'a, 'b> {
    /// Everything.
    work: &'a SlabWork<'a>,
    /// Only what stays in the mover's half.
    straight: &'a SlabWork<'a>,
    rows: Range<usize>,
    columns: Range<usize>,
    /// Ranks that moves lead to which stay in the tile.
    inside: Range<u32>,
    /// With room for their bases.
    units: Vec<(Unit, &'b mut [i8])>,
}

impl<'a> Tiles<'a> {
    pub(crate) fn new(pairs: &'a [Pair<'a>], kernel: Kernel) -> Tiles<'a> {
        let threads = rayon::current_num_threads();
        let straight = pairs.iter().map(|pair| [straight(&pair.high), straight(&pair.low)]);
        Tiles {
            pairs,
            straight: straight.collect(),
            kernel,
            waves: waves(pairs.iter().enumerate().map(|(at, pair)| blocks(at, pair)).collect(), threads),
            bases: Vec::new(),
            rooms: (0..threads).map(|_| Mutex::default()).collect(),
        }
    }

    /// Waves of a pass.
    pub(crate) fn waves(&self) -> usize {
        self.waves.len()
    }

    /// Takes the blocks of a wave, where `settle` until nothing changes that stays in them.
    ///
    /// Tells what changed in which slab, and of which region parents are looked after by moves that stay in the mover's
    /// half.
    pub(crate) fn wave(
        &mut self,
        wave: usize,
        settle: bool,
        values: &mut Rows,
        tell: impl Fn(&Slab, &Changed, &Region) + Sync,
    ) -> Done {
        let mut bases = std::mem::take(&mut self.bases);
        let mut tiles: Vec<_> = self.waves[wave].iter().filter_map(|block| self.sides(block)).collect();
        let needed = tiles.iter().map(bytes).sum();
        if bases.len() < needed {
            bases.resize(needed, 0);
        }
        let mut rest = &mut bases[..];
        for side in tiles.iter_mut().flatten() {
            rest = side.place(rest);
        }
        tiles.sort_by_key(|sides| Reverse(bytes(sides)));
        let rounds = if settle { usize::MAX } else { ROUNDS_MAX };
        // The rows of low slabs are derived when those of high ones are up to date.
        let done = self.derive(&mut tiles, 0, 1, values, &tell);
        let done = done.add(self.derive(&mut tiles, 1, rounds, values, &tell));
        drop(tiles);
        self.bases = bases;
        done
    }

    /// The two slabs of a block, each with its units.
    fn sides<'b>(&'b self, block: &Block) -> Option<[Side<'b, 'b>; 2]>
    where
        'a: 'b,
    {
        let (pair, [high, low]) = (&self.pairs[block.pair], &self.straight[block.pair]);
        let tile = pair.tile(&block.band, block.part, block.parts)?;
        Some([
            Side::new(&pair.high, high, &tile.high_rows, &tile.high_columns, &tile.low_columns),
            Side::new(&pair.low, low, &tile.low_rows, &tile.low_columns, &tile.high_columns),
        ])
    }

    /// Brings together the bases of one side of tiles, then takes the tiles from that side on.
    fn derive(
        &self,
        tiles: &mut [[Side; 2]],
        first: usize,
        rounds: usize,
        values: &mut Rows,
        tell: &(impl Fn(&Slab, &Changed, &Region) + Sync),
    ) -> Done {
        let old = values.bytes().padded();
        let mut units: Vec<_> = tiles
            .iter_mut()
            .map(|sides| &mut sides[first])
            .flat_map(|side| {
                let (work, inside) = (side.work, &side.inside);
                side.units.iter_mut().map(move |(unit, base)| (work, inside, unit, base))
            })
            .collect();
        units.par_iter_mut().for_each(|(work, inside, unit, base)| {
            let moves = Moves::all_but((*inside).clone());
            self.kernel.recompute(work, unit, old, &moves, work.floor(unit), base);
        });
        drop(units);
        let mut slabs: Vec<_> = values.slabs_mut().into_iter().map(Some).collect();
        let mut tiles: Vec<_> = tiles
            .iter()
            .map(|sides| {
                let [high, low] = sides.each_ref().map(|side| slabs[side.work.slab.mover_stones as usize].take());
                (sides, high.expect("each slab is of one pair"), low)
            })
            .collect();
        let take = |(sides, high, low): &mut (&[Side; 2], &mut [i8], Option<&mut [i8]>)| {
            let room = &self.rooms[rayon::current_thread_index().unwrap_or(0)];
            let mut room = room.lock().unwrap_or_else(PoisonError::into_inner);
            take(self.kernel, sides, first, rounds, high, low.as_deref_mut(), &mut room, tell)
        };
        tiles.par_iter_mut().with_max_len(1).map(take).reduce(Done::default, Done::add)
    }
}

/// Takes a tile again and again while anything changes in it, one of its sides first. `low` is absent where both slabs
/// are one.
#[expect(clippy::too_many_arguments, reason = "the tile, its two slabs, and how to take them")]
fn take(
    kernel: Kernel,
    sides: &[Side; 2],
    first: usize,
    rounds: usize,
    high: &mut [i8],
    mut low: Option<&mut [i8]>,
    room: &mut Room,
    tell: &(impl Fn(&Slab, &Changed, &Region) + Sync),
) -> Done {
    let Room { staged, changed, stale } = room;
    staged.resize(UNIT_BYTES_MAX, 0);
    for (changed, side) in changed.iter_mut().zip(sides) {
        changed.clear();
        changed.resize(side.columns.len() * CHUNK, 0);
    }
    let mut all = Done::default();
    // Both sides in turn; each wholly at first.
    for turn in 0..2 * rounds.min(usize::MAX / 2) - 1 {
        let at = (first + turn) % 2;
        let (side, other) = (&sides[at], &sides[1 - at]);
        let is_first = at == first && turn == 0;
        if !is_first {
            side.find_stale(other, &changed[1 - at], stale);
            changed[1 - at].fill(0);
            if stale.iter().all(|&chunks| chunks == 0) {
                break;
            }
        }
        let again = other.region();
        for (unit, base) in &side.units {
            let mut unit = *unit;
            if !is_first && !side.wants(&mut unit, stale) {
                continue;
            }
            let read: &[i8] = match &low {
                Some(low) if at == 0 => low,
                _ => high,
            };
            let floor = Floor { scores: base, stride: unit.stride() };
            kernel.recompute(side.straight, &unit, read, &Moves::only(side.inside.clone()), floor, staged);
            let write: &mut [i8] = match &mut low {
                Some(low) if at == 1 => low,
                _ => high,
            };
            all.recomputed += side.straight.recomputed(&unit);
            all.changed += apply(kernel, side.straight, &unit, staged, write, |change| {
                changed[at][change.column as usize - side.columns.start * CHUNK] |= other.reached(&change);
                tell(side.work.slab, &change, &again);
            });
        }
    }
    all
}

impl<'a, 'b> Side<'a, 'b> {
    fn new(
        work: &'a SlabWork<'a>,
        straight: &'a SlabWork<'a>,
        rows: &Range<usize>,
        columns: &Range<usize>,
        inside: &Range<usize>,
    ) -> Side<'a, 'b> {
        let rows_end = (rows.end * CHUNK).min(work.slab.mover_halves as usize);
        assert!(columns.len() <= u64::BITS as usize, "a word has a bit for each chunk");
        Side {
            work,
            straight,
            rows: rows.start * CHUNK..rows_end.max(rows.start * CHUNK),
            columns: columns.clone(),
            inside: (inside.start * CHUNK) as u32..(inside.end * CHUNK) as u32,
            units: units(work, rows, columns).map(|unit| (unit, Default::default())).collect(),
        }
    }

    fn region(&self) -> Region {
        Region { slab: self.work.slab.mover_stones as usize, rows: self.rows.clone(), chunks: self.columns.clone() }
    }

    /// Leaves of the chunks wanted those that are stale; whether any is.
    fn wants(&self, unit: &mut Unit, stale: &[u64]) -> bool {
        let stale = &stale[unit.row - self.rows.start..];
        for (wanted, stale) in unit.wanted[..unit.rows].iter_mut().zip(stale) {
            *wanted &= (stale >> (unit.chunk - self.columns.start)) as u16;
        }
        unit.wanted_chunks() > 0
    }

    fn staged_bytes(&self) -> usize {
        self.units.iter().map(|(unit, _)| unit.staged_bytes()).sum()
    }

    /// Gives each unit its room, and the rest back.
    fn place(&mut self, mut room: &'b mut [i8]) -> &'b mut [i8] {
        for (unit, base) in &mut self.units {
            let rest;
            (*base, rest) = room.split_at_mut(unit.staged_bytes());
            room = rest;
        }
        room
    }

    /// For each row, the chunks of its columns with a move in the tile to what changed in the other slab.
    fn find_stale(&self, other: &Side, changed: &[u64], stale: &mut Vec<u64>) {
        let moves = Moves::only(self.inside.clone());
        let first = other.columns.start * CHUNK;
        stale.clear();
        stale.extend(self.work.rows[self.rows.clone()].iter().map(|row| {
            moves.of(row).map(|to| to.rank() as usize - first).fold(0, |all, column| all | changed[column])
        }));
    }

    /// The chunks of columns of the tile with moves to what changed in the other slab.
    fn reached(&self, change: &Changed) -> u64 {
        let child = self.straight.children[STRAIGHT].as_ref().expect("a slab has moves that stay in the mover's half");
        let (from, to) = child.gather.inverse[change.first_row / CHUNK];
        let from = (from as usize).max(self.columns.start);
        let to = (to as usize).min(self.columns.end);
        if from < to { (u64::MAX >> (64 - (to - from))) << (from - self.columns.start) } else { 0 }
    }
}

/// Bytes that the bases of a tile take.
fn bytes(sides: &[Side; 2]) -> usize {
    sides.iter().map(Side::staged_bytes).sum()
}

/// A slab, alone in an array, with its moves that stay in the mover's half, to another alone in an array.
fn straight<'a>(work: &SlabWork<'a>) -> SlabWork<'a> {
    let mut children = SlabWork::no_children();
    children[STRAIGHT] = work.children[STRAIGHT].map(|child| Child { offset: 0, ..child });
    SlabWork { to: SlabRows { offset: 0, ..work.to }, children, ..*work }
}

/// The blocks of a pair, in the order in which they are taken: the highest ranks first.
fn blocks(at: usize, pair: &Pair) -> Vec<Block> {
    let mut end = pair.row_chunks();
    let mut blocks = Vec::new();
    while end > 0 {
        let columns = if pair.is_one() { pair.high.columns.min(end * CHUNK) } else { pair.high.columns };
        let row_chunk = CHUNK * columns;
        let chunks = ((TILE_POSITIONS + row_chunk / 2) / row_chunk).clamp(BAND_CHUNKS_MIN, TILE_CHUNKS_MAX);
        let band = end.saturating_sub(chunks)..end;
        let parts = (chunks * row_chunk).div_ceil(TILE_POSITIONS * 3 / 2);
        let parts = parts.max(pair.others(&band).div_ceil(TILE_CHUNKS_MAX));
        end = band.start;
        blocks.extend((0..parts).map(|part| Block { pair: at, band: band.clone(), part, parts }));
    }
    blocks
}

/// Takes the blocks of pairs in turn, so many at once at most: first those of the first pairs, each when the pair before
/// is done with its ranks.
fn waves(pairs: Vec<Vec<Block>>, threads: usize) -> Vec<Vec<Block>> {
    let mut rest: Vec<_> = pairs.iter().map(|blocks| &blocks[..]).collect();
    let mut waves = Vec::new();
    while rest.iter().any(|blocks| !blocks.is_empty()) {
        let mut wave = Vec::new();
        let mut reached = 0;
        for blocks in &rest {
            let Some(next) = blocks.first() else { continue };
            if wave.len() < threads && reached <= next.band.start {
                wave.push(next.clone());
            }
            reached = next.band.end;
        }
        for block in &wave {
            rest[block.pair] = &rest[block.pair][1..];
        }
        waves.push(wave);
    }
    waves
}
