//! Full passes, in tiles that fit the cache of a thread.
//!
//! A tile reads its own positions only by moves that stay in the mover's half, which raise the half's rank. All other
//! moves and captures are first combined into the *base* of each position, for tiles of several pairs at once, while no
//! thread writes. Then each tile is repeated: the rows of its high slab, then those of its low slab, from their bases
//! and the changes in the tile. Tiles of different pairs share no slab, so each thread has its own tiles and their
//! bases in its cache. An idle thread takes columns of another thread's tile: one side of a tile is derived from the
//! other slab, which no thread writes at that time.

use super::PassCounts;
use super::pair::{PairTile, SlabPair, units};
use crate::kernels::apply::{ChangedColumn, apply};
use crate::kernels::scores::{
    ChildScores, Floor, Kernel, Moves, RowTask, RowUnit, STRAIGHT, SlabWork, UNIT_BYTES_MAX, UNIT_CHUNKS,
};
use crate::kernels::tables::CHUNK;
use crate::layout::rows::{ScoreRows, SlabRows};
use crate::sweep::marks::SlabRegion;
use crate::work_stealing::{for_each_part, for_each_piece};
use game::Slab;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Target positions of a tile in one slab. Larger tiles take more rounds, smaller ones more barriers.
const TILE_POSITIONS: usize = 3 << 17;

/// Least chunks of halves in a band, if there are as many: neighbouring rows read the same long rows of other slabs.
const BAND_CHUNKS_MIN: usize = 4;

/// Most chunks of halves in a band or a part: a word has a bit for each chunk of columns, of which there may be one
/// more.
const TILE_CHUNKS_MAX: usize = 63;

/// A thread keeps the next tile of a pair, since its cache holds the inputs, unless the load of the thread exceeds its
/// share of the wave by this factor.
const STAYS_BELOW: f64 = 1.3;

/// Most rounds of a tile in one pass.
const ROUNDS_MAX: usize = 4;

/// Most blocks in a wave, a thread. More would save barriers, but only about four are ready at a time.
const BLOCKS_PER_THREAD: usize = 2;

/// Least chunks of columns that a thread takes of a tile of another, since each row has a fixed cost.
const SHARED_CHUNKS_MIN: usize = 2;

/// Shares of columns a thread: they take unequal time once few of their chunks are stale.
const SHARES_PER_THREAD: usize = 2;

/// Block of a pair: a band of halves, and a part of the other halves.
#[derive(Clone, Debug)]
struct TileBlock {
    pair: usize,
    band: Range<usize>,
    part: usize,
    parts: usize,
}

/// Full passes over the pairs of a database.
pub(crate) struct Tiles<'a> {
    pairs: &'a [SlabPair<'a>],
    /// By pair, the views of its slabs for moves that stay in the mover's half: each slab alone in an array.
    straight: Vec<[SlabWork<'a>; 2]>,
    kernel: Kernel,
    /// Waves: blocks of different pairs whose bases are computed together.
    waves: Vec<Vec<TileBlock>>,
    /// By pair, the thread that processed its last tile.
    had: Vec<usize>,
    /// By thread, the buffer for the bases of its tiles.
    bases: Vec<Vec<i8>>,
    rooms: TileBuffers,
}

/// Pools of the buffers of tiles and shares, as many as are in use at once.
#[derive(Default)]
struct TileBuffers {
    tiles: Mutex<Vec<TileBuffer>>,
    staged: Mutex<Vec<Vec<i8>>>,
}

/// Buffers of a tile.
#[derive(Default)]
struct TileBuffer {
    /// For the high slab, then the low one: by column of the tile, the chunks of columns of the other slab with moves
    /// to changed positions.
    changed: [Vec<u64>; 2],
    /// By row, the mask of the chunks of columns with changed children.
    stale: Vec<u64>,
}

/// One of the two slabs of a tile.
struct TileSide<'a, 'b> {
    /// View of the slab with all moves.
    work: &'a SlabWork<'a>,
    /// View of the slab with the moves that stay in the mover's half.
    straight: &'a SlabWork<'a>,
    rows: Range<usize>,
    columns: Range<usize>,
    /// Halves that moves within the tile lead to.
    inside: Range<u32>,
    /// Units, with buffers for their bases; by columns, then by rows.
    units: Vec<(RowUnit, &'b mut [i8])>,
}

/// Columns of a side that a thread processes in a turn.
struct ColumnShare<'t> {
    /// Columns, in chunks.
    columns: Range<usize>,
    /// The slab, from the first column on.
    write: &'t mut [i8],
    /// Marks of these columns.
    changed: &'t mut [u64],
    done: PassCounts,
}

impl<'a> Tiles<'a> {
    /// Creates the tiles of a range of halves of each pair, in chunks.
    pub(crate) fn new(pairs: &'a [SlabPair<'a>], kernel: Kernel, ranks: impl Fn(&SlabPair) -> Range<usize>) -> Self {
        let threads = rayon::current_num_threads();
        // A single thread needs no barriers, and one tile at a time stays in its cache.
        let most = if threads == 1 { 1 } else { threads * BLOCKS_PER_THREAD };
        let straight = pairs.iter().map(|pair| [straight(&pair.high), straight(&pair.low)]);
        Tiles {
            pairs,
            straight: straight.collect(),
            kernel,
            waves: waves(pairs.iter().enumerate().map(|(at, pair)| blocks(at, pair, &ranks(pair))).collect(), most),
            had: vec![0; pairs.len()],
            bases: vec![Vec::new(); threads],
            rooms: TileBuffers::default(),
        }
    }

    /// Number of waves of a pass.
    pub(crate) fn waves(&self) -> usize {
        self.waves.len()
    }

    /// Iterates over the tiles of a wave, with their pairs.
    pub(crate) fn tiles(&self, wave: usize) -> impl Iterator<Item = (&SlabPair<'a>, PairTile)> {
        self.waves[wave].iter().filter_map(|block| {
            let pair = &self.pairs[block.pair];
            Some((pair, pair.tile(&block.band, block.part, block.parts)?))
        })
    }

    /// Processes the blocks of a wave; if `settle`, until moves within them change nothing.
    ///
    /// Calls `notify` with each change, its slab, and the region whose parents by moves within the mover's half are
    /// already up to date.
    pub(crate) fn wave(
        &mut self,
        wave: usize,
        settle: bool,
        values: &mut ScoreRows,
        notify: Option<&(impl Fn(&Slab, &ChangedColumn, &SlabRegion) + Sync)>,
    ) -> PassCounts {
        let (mut bases, mut had) = (std::mem::take(&mut self.bases), std::mem::take(&mut self.had));
        let sides = |block: &TileBlock| Some((block.pair, self.sides(block)?));
        let mut by_thread = assign_tiles(self.waves[wave].iter().filter_map(sides).collect(), &mut had, bases.len());
        for (one_thread, bases) in by_thread.iter_mut().zip(&mut bases) {
            let needed = one_thread.iter().map(bytes).sum();
            if bases.len() < needed {
                bases.resize(needed, 0);
            }
            one_thread.iter_mut().flatten().fold(&mut bases[..], |rest, side| side.assign_buffers(rest));
        }
        let done = self.settle(&mut by_thread, if settle { usize::MAX } else { ROUNDS_MAX }, values, notify);
        drop(by_thread);
        (self.bases, self.had) = (bases, had);
        done
    }

    /// Returns the two sides of a block with their units.
    fn sides<'b>(&'b self, block: &TileBlock) -> Option<[TileSide<'b, 'b>; 2]>
    where
        'a: 'b,
    {
        let (pair, [high, low]) = (&self.pairs[block.pair], &self.straight[block.pair]);
        let tile = pair.tile(&block.band, block.part, block.parts)?;
        Some([
            TileSide::new(&pair.high, high, &tile.high_rows, &tile.high_columns, &tile.low_columns),
            TileSide::new(&pair.low, low, &tile.low_rows, &tile.low_columns, &tile.high_columns),
        ])
    }

    /// Computes the bases of the tiles of each thread, then processes the tiles.
    fn settle(
        &self,
        by_thread: &mut [Vec<[TileSide; 2]>],
        rounds: usize,
        values: &mut ScoreRows,
        notify: Option<&(impl Fn(&Slab, &ChangedColumn, &SlabRegion) + Sync)>,
    ) -> PassCounts {
        let old = values.bytes().padded();
        let mut units: Vec<Vec<_>> = by_thread
            .iter_mut()
            .map(|one_thread| {
                let units = one_thread.iter_mut().flatten().flat_map(|side| {
                    let (work, inside) = (side.work, &side.inside);
                    side.units.iter_mut().map(move |(unit, base)| (work, inside, unit, base))
                });
                units.collect()
            })
            .collect();
        for_each_part(units.iter_mut().map(Vec::as_mut_slice), |(work, inside, unit, base)| {
            let (moves, floor) = (Moves::all_but((*inside).clone()), work.floor(unit));
            self.kernel.recompute(&RowTask { work, unit, values: old, moves, floor }, base);
        });
        drop(units);
        let mut slabs: Vec<_> = values.slabs_mut().into_iter().map(Some).collect();
        let mut by_thread: Vec<Vec<_>> = by_thread
            .iter()
            .map(|one_thread| {
                let tiles = one_thread.iter().map(|sides| {
                    let [high, low] = sides.each_ref().map(|side| slabs[side.work.slab.mover_stones as usize].take());
                    (sides, high.expect("each slab is of one pair"), low, PassCounts::default())
                });
                tiles.collect()
            })
            .collect();
        let left = AtomicUsize::new(by_thread.iter().map(Vec::len).sum());
        for_each_part(by_thread.iter_mut().map(Vec::as_mut_slice), |(sides, high, low, done)| {
            let mut room = pop(&self.rooms.tiles);
            *done = self.take(sides, rounds, high, low.as_deref_mut(), &mut room, &left, notify);
            left.fetch_sub(1, Relaxed);
            push(&self.rooms.tiles, room);
        });
        by_thread.iter().flatten().fold(PassCounts::default(), |all, (.., done)| all.add(*done))
    }

    /// Repeats a tile while anything in it changes. `low` is `None` if both slabs are one. `left` counts the unfinished
    /// tiles.
    #[expect(clippy::too_many_arguments, reason = "the tile, its two slabs, and how to take them")]
    fn take(
        &self,
        sides: &[TileSide; 2],
        rounds: usize,
        high: &mut [i8],
        mut low: Option<&mut [i8]>,
        room: &mut TileBuffer,
        left: &AtomicUsize,
        notify: Option<&(impl Fn(&Slab, &ChangedColumn, &SlabRegion) + Sync)>,
    ) -> PassCounts {
        let TileBuffer { changed, stale } = room;
        for (changed, side) in changed.iter_mut().zip(sides) {
            changed.clear();
            changed.resize(side.columns.len() * CHUNK, 0);
        }
        let mut all = PassCounts::default();
        // Both sides in turn; the first time as a whole.
        for turn in 0..2 * rounds.min(usize::MAX / 2) {
            let at = turn % 2;
            let (side, other) = (&sides[at], &sides[1 - at]);
            let stale = if turn < 2 {
                None
            } else {
                side.find_stale(other, &changed[1 - at], stale);
                if stale.iter().all(|&chunks| chunks == 0) {
                    break;
                }
                Some(&*stale)
            };
            changed[1 - at].fill(0);
            let turn = SideTurn { kernel: self.kernel, side, other, stale, notify };
            let (read, write) = match &mut low {
                Some(low) if at == 0 => (&**low, &mut *high),
                Some(low) => (&*high, &mut **low),
                None => {
                    all = all.add(turn.take_one(high, &mut changed[at], &self.rooms));
                    continue;
                }
            };
            // Splitting has a cost, and is useless while each thread has a tile.
            let threads = rayon::current_num_threads();
            let shares = if left.load(Relaxed) < threads { threads * SHARES_PER_THREAD } else { 1 };
            let mut shares = side.split_columns(shares, write, &mut changed[at]);
            for_each_piece(&mut shares, |share| turn.take(share, read, &self.rooms));
            all = shares.iter().fold(all, |all, share| all.add(share.done));
        }
        all
    }
}

fn pop<T: Default>(from: &Mutex<Vec<T>>) -> T {
    from.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
}

fn push<T>(to: &Mutex<Vec<T>>, value: T) {
    to.lock().unwrap_or_else(PoisonError::into_inner).push(value);
}

/// One turn of a side of a tile.
struct SideTurn<'t, 'a, 'b, F> {
    kernel: Kernel,
    side: &'t TileSide<'a, 'b>,
    other: &'t TileSide<'a, 'b>,
    /// The stale chunks of each row; `None` for all.
    stale: Option<&'t Vec<u64>>,
    notify: Option<&'t F>,
}

impl<F: Fn(&Slab, &ChangedColumn, &SlabRegion) + Sync> SideTurn<'_, '_, '_, F> {
    /// Processes a share, reading from a slab that no thread writes.
    fn take(&self, share: &mut ColumnShare, read: &[i8], rooms: &TileBuffers) {
        let mut staged: Vec<i8> = pop(&rooms.staged);
        staged.resize(UNIT_BYTES_MAX, 0);
        let first_column = share.columns.start * CHUNK;
        for (unit, base) in &self.side.units {
            if let Some(unit) = unit.within(&share.columns).and_then(|unit| self.wanted(unit)) {
                self.recompute(&unit, base, read, &mut staged);
                let done = self.apply(&unit, &staged, share.write, first_column, share.changed, first_column);
                share.done = share.done.add(done);
            }
        }
        push(&rooms.staged, staged);
    }

    /// Processes all columns, if a slab leads to itself.
    fn take_one(&self, slab: &mut [i8], changed: &mut [u64], rooms: &TileBuffers) -> PassCounts {
        let mut staged: Vec<i8> = pop(&rooms.staged);
        staged.resize(UNIT_BYTES_MAX, 0);
        let mut done = PassCounts::default();
        for (unit, base) in &self.side.units {
            if let Some(unit) = self.wanted(*unit) {
                self.recompute(&unit, base, slab, &mut staged);
                done = done.add(self.apply(&unit, &staged, slab, 0, changed, self.side.columns.start * CHUNK));
            }
        }
        push(&rooms.staged, staged);
        done
    }

    fn wanted(&self, mut unit: RowUnit) -> Option<RowUnit> {
        self.stale.is_none_or(|stale| self.side.wants(&mut unit, stale)).then_some(unit)
    }

    fn recompute(&self, unit: &RowUnit, base: &[i8], read: &[i8], staged: &mut [i8]) {
        let floor = Floor { scores: base, stride: unit.stride() };
        let moves = Moves::only(self.side.inside.clone());
        self.kernel.recompute(&RowTask { work: self.side.straight, unit, values: read, moves, floor }, staged);
    }

    /// `write` and `changed` each start at a column of their own.
    fn apply(
        &self,
        unit: &RowUnit,
        staged: &[i8],
        write: &mut [i8],
        write_column: usize,
        changed: &mut [u64],
        changed_column: usize,
    ) -> PassCounts {
        let (side, again, reached) = (self.side, self.other.region(), self.other.reached(unit.row));
        let changes = apply(self.kernel, side.straight, unit, staged, write, write_column, |chunk| {
            chunk.mark(changed, changed_column, reached);
            if let Some(notify) = self.notify {
                chunk.each().for_each(|change| notify(side.work.slab, &change, &again));
            }
        });
        PassCounts { recomputed: side.straight.recomputed(unit), changed: changes }
    }
}

impl<'a, 'b> TileSide<'a, 'b> {
    fn new(
        work: &'a SlabWork<'a>,
        straight: &'a SlabWork<'a>,
        rows: &Range<usize>,
        columns: &Range<usize>,
        inside: &Range<usize>,
    ) -> TileSide<'a, 'b> {
        let rows_end = (rows.end * CHUNK).min(work.slab.mover_halves as usize);
        assert!(columns.len() <= u64::BITS as usize, "a word has a bit for each chunk");
        let units_of = |columns: Range<usize>| units(work, rows, columns).map(|unit| (unit, Default::default()));
        TileSide {
            work,
            straight,
            rows: rows.start * CHUNK..rows_end.max(rows.start * CHUNK),
            columns: columns.clone(),
            inside: (inside.start * CHUNK) as u32..(inside.end * CHUNK) as u32,
            units: cut(columns, columns.len().div_ceil(UNIT_CHUNKS)).flat_map(units_of).collect(),
        }
    }

    fn region(&self) -> SlabRegion {
        SlabRegion { slab: self.work.slab.mover_stones as usize, rows: self.rows.clone(), chunks: self.columns.clone() }
    }

    /// Restricts the wanted chunks to the stale ones, and returns whether there are any.
    fn wants(&self, unit: &mut RowUnit, stale: &[u64]) -> bool {
        let stale = &stale[unit.row - self.rows.start..];
        for (wanted, stale) in unit.wanted[..unit.rows].iter_mut().zip(stale) {
            *wanted &= (stale >> (unit.chunk - self.columns.start)) as u16;
        }
        unit.wanted_chunks() > 0
    }

    fn staged_bytes(&self) -> usize {
        self.units.iter().map(|(unit, _)| unit.staged_bytes()).sum()
    }

    /// Assigns a buffer to each unit, and returns the rest.
    fn assign_buffers(&mut self, mut room: &'b mut [i8]) -> &'b mut [i8] {
        for (unit, base) in &mut self.units {
            let rest;
            (*base, rest) = room.split_at_mut(unit.staged_bytes());
            room = rest;
        }
        room
    }

    /// Splits the columns of the slab and of their marks into `shares` shares, or fewer if these would be too small.
    fn split_columns<'t>(&self, shares: usize, slab: &'t mut [i8], changed: &'t mut [u64]) -> Vec<ColumnShare<'t>> {
        let to = self.straight.to;
        let (mut slab, mut changed) = (slab, changed);
        let mut first = 0;
        let share = |columns: Range<usize>| {
            let place = |column: usize| if column > 0 { column * to.stride + to.lead } else { 0 };
            let begin = place(columns.start * CHUNK);
            let end = place((columns.end * CHUNK).min(to.rows));
            let rest = std::mem::take(&mut slab).split_at_mut(begin - first).1;
            let (write, rest) = rest.split_at_mut(end - begin);
            slab = rest;
            first = end;
            let (marks, rest) = std::mem::take(&mut changed).split_at_mut(columns.len() * CHUNK);
            changed = rest;
            ColumnShare { columns, write, changed: marks, done: PassCounts::default() }
        };
        cut(&self.columns, shares.min(self.columns.len() / SHARED_CHUNKS_MIN).max(1)).map(share).collect()
    }

    /// Returns, by row, the chunks of columns with a move in the tile to changed positions of the other slab.
    fn find_stale(&self, other: &TileSide, changed: &[u64], stale: &mut Vec<u64>) {
        let moves = Moves::only(self.inside.clone());
        let first = other.columns.start * CHUNK;
        stale.clear();
        stale.extend(self.work.rows[self.rows.clone()].iter().map(|row| {
            moves.of(row).map(|to| to.rank() as usize - first).fold(0, |all, column| all | changed[column])
        }));
    }

    /// Returns the chunks of columns of the tile with moves to changed positions, in 64 rows from `first_row` on.
    fn reached(&self, first_row: usize) -> u64 {
        let child = self.straight.children[STRAIGHT].as_ref().expect("a slab has moves that stay in the mover's half");
        let (from, to) = child.gather.inverse[first_row / CHUNK];
        let from = (from as usize).max(self.columns.start);
        let to = (to as usize).min(self.columns.end);
        if from < to { (u64::MAX >> (64 - (to - from))) << (from - self.columns.start) } else { 0 }
    }
}

/// Cuts a range into `parts` ranges of about the same length.
fn cut(all: &Range<usize>, parts: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let Range { start, end } = *all;
    let at = move |part: usize| start + (end - start) * part / parts;
    (0..parts).map(move |part| at(part)..at(part + 1))
}

/// Assigns tiles to threads with about equal loads: first tiles that cannot be shared, then the largest.
fn assign_tiles<'a, 'b>(
    mut tiles: Vec<(usize, [TileSide<'a, 'b>; 2])>,
    had: &mut [usize],
    threads: usize,
) -> Vec<Vec<[TileSide<'a, 'b>; 2]>> {
    tiles.sort_by_key(|(_, sides)| (sides[0].work.slab != sides[1].work.slab, Reverse(bytes(sides))));
    let all: usize = tiles.iter().map(|(_, sides)| bytes(sides)).sum();
    let most = (all as f64 / threads as f64 * STAYS_BELOW) as usize;
    let mut by_thread: Vec<_> = (0..threads).map(|_| (0, Vec::new())).collect();
    for (pair, sides) in tiles {
        let bytes = bytes(&sides);
        if by_thread[had[pair]].0 + bytes > most {
            had[pair] = (0..threads).min_by_key(|&thread| by_thread[thread].0).expect("there is a thread");
        }
        let one_thread = &mut by_thread[had[pair]];
        one_thread.0 += bytes;
        one_thread.1.push(sides);
    }
    by_thread.into_iter().map(|(_, tiles)| tiles).collect()
}

/// Bytes of the bases of a tile.
fn bytes(sides: &[TileSide; 2]) -> usize {
    sides.iter().map(TileSide::staged_bytes).sum()
}

/// Builds the view of a slab for its moves that stay in the mover's half, with each of the two slabs alone in an array.
fn straight<'a>(work: &SlabWork<'a>) -> SlabWork<'a> {
    let mut children = SlabWork::no_children();
    children[STRAIGHT] = work.children[STRAIGHT].map(|child| ChildScores { offset: 0, ..child });
    SlabWork { to: SlabRows { offset: 0, ..work.to }, children, ..*work }
}

/// Returns the blocks of a range of halves of a pair, in the order of a pass: highest first.
fn blocks(at: usize, pair: &SlabPair, ranks: &Range<usize>) -> Vec<TileBlock> {
    let mut end = ranks.end;
    let mut blocks = Vec::new();
    while end > ranks.start {
        let columns = if pair.is_one() { pair.high.columns.min(end * CHUNK) } else { pair.high.columns };
        let row_chunk = CHUNK * columns;
        let chunks = ((TILE_POSITIONS + row_chunk / 2) / row_chunk).clamp(BAND_CHUNKS_MIN, TILE_CHUNKS_MAX);
        let band = end.saturating_sub(chunks).max(ranks.start)..end;
        let parts = (chunks * row_chunk).div_ceil(TILE_POSITIONS * 3 / 2);
        let parts = parts.max(pair.others(&band).div_ceil(TILE_CHUNKS_MAX));
        end = band.start;
        blocks.extend((0..parts).map(|part| TileBlock { pair: at, band: band.clone(), part, parts }));
    }
    blocks
}

/// Schedules the blocks of all pairs in waves of at most `most` blocks: those of the first pairs first, each after the
/// pair before has finished its halves.
fn waves(pairs: Vec<Vec<TileBlock>>, most: usize) -> Vec<Vec<TileBlock>> {
    let mut rest: Vec<_> = pairs.iter().map(|blocks| &blocks[..]).collect();
    let mut waves = Vec::new();
    while rest.iter().any(|blocks| !blocks.is_empty()) {
        let mut wave = Vec::new();
        let mut reached = 0;
        for blocks in &rest {
            let Some(next) = blocks.first() else { continue };
            if wave.len() < most && reached <= next.band.start {
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
