//! Kernels on rows of scores, in portable Rust, and the choice of a faster implementation at run time.
//!
//! A unit has up to 64 rows of a `MoverMajor` slab by up to 16 chunks of 64 columns. *Recompute* derives the scores of
//! the wanted row chunks of a unit from their children and stages them row by row. *Apply* transposes a staged chunk
//! into the `OpponentMajor` array and reports the changes. Recompute only reads the array, apply only writes the bytes
//! of its own rows and columns; a driver separates the two in time. Where few positions are wanted, drivers recompute
//! single row chunks.

pub(super) mod x86_64;

use super::cpu;
use super::tables::{CHUNK, Gather, GatherPiece, LaneMap, PackedMove};
use crate::huge_pages::PAD;
use crate::layout::rows::SlabRows;
use game::sow::{Ends, SowClass};
use game::{HALF_PITS, Slab};
use std::ops::Range;
use std::sync::OnceLock;

/// Sow classes of the moves that stay in the mover's half.
pub(crate) const STRAIGHT: usize = SowClass { crossing: 0, ends: Ends::Mover }.number();

/// Rows in a unit.
pub(crate) const UNIT_ROWS: usize = 64;
/// Chunks in a unit: the staged scores of a unit fit the second-level cache, those of a row the first.
pub(crate) const UNIT_CHUNKS: usize = 16;

/// Implementation of the row kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Kernel {
    /// Plain Rust, on any processor.
    Portable,
    /// AVX2: plain Rust in wider vectors, with byte shuffles.
    Avx2,
    /// AVX-512 with VBMI byte permutations.
    Avx512,
}

/// A slab as the kernels see it.
pub(crate) struct SlabWork<'a> {
    pub(crate) slab: &'a Slab,
    /// Location of its scores in the array.
    pub(crate) to: SlabRows,
    /// By the rank of the mover's half.
    pub(crate) rows: &'a [[PackedMove; HALF_PITS]],
    /// Columns of the slab in `MoverMajor`.
    pub(crate) columns: usize,
    /// By class number.
    pub(crate) children: Vec<Option<ChildScores<'a>>>,
    /// Best captures of the slab, row by row, readable for one vector behind the end.
    pub(crate) captures: &'a [i8],
    /// Bytes from one row of captures to the next.
    pub(crate) captures_stride: usize,
}

/// Child slab that the moves of a class lead to.
#[derive(Clone, Copy)]
pub(crate) struct ChildScores<'a> {
    pub(crate) gather: &'a Gather,
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
    /// Bytes from one row of the child slab in `OpponentMajor` to the next.
    pub(crate) stride: usize,
    /// End of its columns that are in the array.
    pub(crate) end: usize,
}

/// Unit of work: rows by chunks of a slab, and a mask of the wanted chunks of each row.
#[derive(Clone, Copy)]
pub(crate) struct RowUnit {
    pub(crate) row: usize,
    pub(crate) rows: usize,
    pub(crate) chunk: usize,
    pub(crate) chunks: usize,
    pub(crate) wanted: [u16; UNIT_ROWS],
}

/// Bytes of the largest staged unit.
pub(crate) const UNIT_BYTES_MAX: usize = UNIT_ROWS * (UNIT_CHUNKS + 1) * CHUNK;

impl RowUnit {
    /// A unit with all of some chunks wanted, from `row` on, of rows before `rows_end`.
    pub(crate) fn whole(row: usize, rows_end: usize, chunks: Range<usize>) -> RowUnit {
        let rows = UNIT_ROWS.min(rows_end - row);
        let mut wanted = [0; UNIT_ROWS];
        wanted[..rows].fill(((1u32 << chunks.len()) - 1) as u16);
        RowUnit { row, rows, chunk: chunks.start, chunks: chunks.len(), wanted }
    }

    /// Restricts the wanted chunks to `columns`; `None` if the unit has none of them.
    pub(crate) fn within(&self, columns: &Range<usize>) -> Option<RowUnit> {
        let start = columns.start.max(self.chunk);
        let end = columns.end.min(self.chunk + self.chunks);
        if start >= end {
            return None;
        }
        let mut unit = *self;
        if end - start < self.chunks {
            let these = ((1u32 << (end - start)) - 1) << (start - self.chunk);
            unit.wanted.iter_mut().for_each(|wanted| *wanted &= these as u16);
        }
        Some(unit)
    }

    /// Number of wanted row chunks.
    pub(crate) fn wanted_chunks(&self) -> u32 {
        self.wanted[..self.rows].iter().map(|wanted| wanted.count_ones()).sum()
    }

    /// Bytes from one staged row to the next: one vector more than a row, which spreads columns over cache sets.
    pub(crate) fn stride(&self) -> usize {
        (self.chunks + 1) * CHUNK
    }

    /// Bytes staged.
    pub(crate) fn staged_bytes(&self) -> usize {
        UNIT_ROWS * self.stride()
    }

    /// Mask of the rows in which a chunk is wanted.
    pub(crate) fn wanted_rows(&self, chunk: usize) -> u64 {
        self.wanted[..self.rows]
            .iter()
            .enumerate()
            .fold(0, |rows, (row, chunks)| rows | u64::from(chunks >> chunk & 1) << row)
    }
}

/// Selection of the moves of a row: those that stay in the mover's half and lead to a range of halves, or all others.
#[derive(Clone)]
pub(crate) struct Moves {
    ranks: Range<u32>,
    are_taken: bool,
}

impl Moves {
    /// Selects the moves that stay in the mover's half and lead to `ranks`.
    pub(crate) fn only(ranks: Range<u32>) -> Moves {
        Moves { ranks, are_taken: true }
    }

    /// Selects all other moves.
    pub(crate) fn all_but(ranks: Range<u32>) -> Moves {
        Moves { ranks, are_taken: false }
    }

    /// Iterates over the selected moves of a row.
    #[inline(always)]
    pub(crate) fn of(&self, row: &[PackedMove; HALF_PITS]) -> impl Iterator<Item = PackedMove> {
        let moves = row.iter().copied().take_while(|&to| to != PackedMove::NONE);
        moves.filter(|to| (to.class() == STRAIGHT && self.ranks.contains(&to.rank())) == self.are_taken)
    }
}

/// Lower bounds on the scores of a unit, from moves that are not selected: row by row from the unit's first chunk.
#[derive(Clone, Copy)]
pub(crate) struct Floor<'a> {
    pub(crate) scores: &'a [i8],
    /// Bytes from one row to the next.
    pub(crate) stride: usize,
}

/// What recompute derives: the wanted chunks of a unit, from the selected moves and a floor for all other moves and
/// captures.
pub(crate) struct RowTask<'a> {
    pub(crate) work: &'a SlabWork<'a>,
    pub(crate) unit: &'a RowUnit,
    /// The whole `OpponentMajor` array with its padding.
    pub(crate) values: &'a [i8],
    pub(crate) moves: Moves,
    pub(crate) floor: Floor<'a>,
}

/// A staged chunk, row by row.
#[derive(Clone, Copy)]
pub(crate) struct StagedChunk<'a> {
    pub(crate) scores: &'a [i8],
    /// Bytes from one row to the next.
    pub(crate) stride: usize,
    /// Mask of the wanted rows.
    pub(crate) wanted: u64,
}

impl<'a> SlabWork<'a> {
    /// Returns the best captures of a unit as floor.
    pub(crate) fn floor(&self, unit: &RowUnit) -> Floor<'a> {
        let stride = self.captures_stride;
        Floor { scores: &self.captures[unit.row * stride + unit.chunk * CHUNK..], stride }
    }

    /// Returns the moves of a row, and its best captures in a chunk.
    #[inline]
    fn row_chunk(&self, at: RowChunk) -> (&[PackedMove; HALF_PITS], &[i8; CHUNK]) {
        let captures = &self.captures[at.row as usize * self.captures_stride + at.chunk as usize * CHUNK..];
        (&self.rows[at.row as usize], captures.first_chunk().expect("captures are padded"))
    }

    /// Number of positions in the wanted chunks of a unit, counted by whole chunks.
    pub(crate) fn recomputed(&self, unit: &RowUnit) -> u64 {
        u64::from(unit.wanted_chunks()) * (CHUNK as u64).min(self.columns as u64)
    }

    pub(crate) fn no_children() -> Vec<Option<ChildScores<'a>>> {
        vec![None; SowClass::COUNT]
    }
}

/// Destination of apply in the `OpponentMajor` array: a chunk of columns of the rows of a unit.
#[derive(Clone, Copy)]
pub(crate) struct Destination {
    /// Offset of the chunk's first column at the unit's first row.
    pub(crate) offset: usize,
    /// Bytes from one column to the next.
    pub(crate) stride: usize,
    /// Columns, at most [`CHUNK`].
    pub(crate) columns: usize,
    /// Rows, at most [`UNIT_ROWS`].
    pub(crate) rows: usize,
}

/// The kernel chosen for this process, if any.
static CHOSEN: OnceLock<Kernel> = OnceLock::new();

impl Kernel {
    /// Returns the kernel chosen for this process, or else the fastest that the processor supports.
    pub fn detect() -> Kernel {
        CHOSEN.get().copied().unwrap_or_else(|| Kernel::available().next_back().unwrap_or(Kernel::Portable))
    }

    /// Sets the kernel of this process, which `detect` returns from then on, and limits bit kernels to its generation.
    ///
    /// # Panics
    /// If the processor does not support it, or another kernel was chosen before.
    pub fn choose(self) {
        assert!(Kernel::available().any(|kernel| kernel == self), "this processor has no {self}");
        assert_eq!(*CHOSEN.get_or_init(|| self), self, "a kernel is chosen once");
    }

    /// Iterates over the kernels that this processor supports, fastest last.
    pub fn available() -> impl DoubleEndedIterator<Item = Kernel> {
        let has = |kernel: &Kernel| match kernel {
            Kernel::Portable => true,
            Kernel::Avx2 => cpu::has_avx2(),
            Kernel::Avx512 => cpu::has_avx512(),
        };
        [Kernel::Portable, Kernel::Avx2, Kernel::Avx512].into_iter().filter(has)
    }

    /// Derives a chunk of a row. Lanes behind the last column are unspecified.
    pub(crate) fn recompute_row_chunk(self, work: &SlabWork, row_chunk: RowChunk, values: &[i8]) -> [i8; CHUNK] {
        if self == Kernel::Avx512 {
            x86_64::recompute_row_chunk_avx512(work, row_chunk, values)
        } else {
            let (row, floor) = work.row_chunk(row_chunk);
            recompute_chunk(work, row.iter().copied(), row_chunk.chunk as usize, values, floor, permute)
        }
    }

    /// Prefetches the inputs of a row chunk and its current scores.
    pub(crate) fn prefetch(self, work: &SlabWork, row_chunk: RowChunk, values: &[i8]) {
        if self == Kernel::Avx512 {
            x86_64::prefetch_avx512(work, row_chunk, values);
        }
    }

    /// Returns a superset of the columns of a chunk whose moves of a class lead to the given columns of a child chunk.
    pub(crate) fn reached(self, gather: &Gather, chunk: usize, child: usize, columns: u64) -> u64 {
        if self == Kernel::Avx512 {
            return x86_64::reached_avx512(gather, chunk, child, columns);
        }
        let (first, end) = (gather.first[chunk], gather.first[chunk + 1]);
        gather.pieces[first as usize..end as usize].iter().fold(0, |lanes, piece| lanes | piece.mask)
    }

    /// Compresses the selected ones of 64 scores to the front; the rest is unspecified.
    #[inline]
    pub(crate) fn pick(self, scores: &[i8; CHUNK], columns: u64) -> [u8; CHUNK] {
        if self == Kernel::Avx512 {
            return x86_64::pick_avx512(scores, columns);
        }
        let mut picked = [0; CHUNK];
        picked.iter_mut().zip(lanes(columns)).for_each(|(to, lane)| *to = scores[lane % CHUNK] as u8);
        picked
    }

    /// Writes the selected ones of 64 scores, given compressed, where they are further from 0 than the present ones,
    /// and returns the mask of those written. (Of two states of a score the later one is further from 0.)
    ///
    /// # Panics
    /// If there are fewer scores than columns, or the array ends before one of them.
    #[inline]
    pub(crate) fn merge(self, to: &mut [i8], columns: u64, scores: &[u8]) -> u64 {
        assert!(
            scores.len() >= columns.count_ones() as usize && to.len() >= (u64::BITS - columns.leading_zeros()) as usize
        );
        if self == Kernel::Avx512 {
            return x86_64::merge_avx512(to, columns, scores);
        }
        let mut changed = 0;
        for (lane, &score) in lanes(columns).zip(scores) {
            let score = score as i8;
            if score.unsigned_abs() > to[lane].unsigned_abs() {
                to[lane] = score;
                changed |= 1 << lane;
            }
        }
        changed
    }

    /// Derives the wanted chunks of a unit.
    pub(crate) fn recompute(self, task: &RowTask, staged: &mut [i8]) {
        let RowTask { work, unit, .. } = task;
        assert!(staged.len() >= unit.staged_bytes() && unit.row + unit.rows <= work.rows.len());
        match self {
            Kernel::Portable => recompute_rows(task, staged, permute),
            Kernel::Avx2 => x86_64::recompute_avx2(task, staged),
            Kernel::Avx512 => x86_64::recompute_avx512(task, staged),
        }
    }
}

/// Chunk of a row, with a mask of wanted columns.
#[derive(Clone, Copy)]
pub(crate) struct RowChunk {
    pub(crate) row: u32,
    pub(crate) chunk: u32,
    /// Mask of the wanted columns.
    pub(crate) lanes: u64,
}

/// Derives the wanted chunks of a unit, given a permutation of the bytes of a window. Compiled for each kernel that is
/// vectorized by the compiler.
#[inline(always)]
pub(crate) fn recompute_rows(task: &RowTask, staged: &mut [i8], permute: impl Fn(&[i8; PAD], &LaneMap) -> [i8; CHUNK]) {
    let &RowTask { work, unit, values, ref moves, floor } = task;
    let stride = unit.stride();
    for (row, &wanted) in unit.wanted[..unit.rows].iter().enumerate().filter(|&(_, &wanted)| wanted != 0) {
        let staged = &mut staged[row * stride..][..unit.chunks * CHUNK];
        let floor = &floor.scores[row * floor.stride..];
        for (at, staged) in staged.as_chunks_mut::<CHUNK>().0.iter_mut().enumerate() {
            if wanted >> at & 1 == 0 {
                continue;
            }
            let floor = floor[at * CHUNK..].first_chunk().expect("floors are padded");
            let moves = moves.of(&work.rows[unit.row + row]);
            *staged = recompute_chunk(work, moves, unit.chunk + at, values, floor, &permute);
        }
    }
}

/// Derives a chunk of a row from some moves.
#[inline(always)]
fn recompute_chunk(
    work: &SlabWork,
    moves: impl Iterator<Item = PackedMove>,
    chunk: usize,
    values: &[i8],
    floor: &[i8; CHUNK],
    permute: impl Fn(&[i8; PAD], &LaneMap) -> [i8; CHUNK],
) -> [i8; CHUNK] {
    let mut least = [i8::MAX; CHUNK];
    for to in moves.take_while(|&to| to != PackedMove::NONE) {
        let child = work.children[to.class()].as_ref().expect("every class of a row has a child slab");
        let scores = &values[child.offset + to.rank() as usize * child.stride..];
        let (first, end) = (child.gather.first[chunk], child.gather.first[chunk + 1]);
        for piece in &child.gather.pieces[first as usize..end as usize] {
            let window = scores[piece.base as usize..].first_chunk().expect("scores are padded by a window");
            let taken = match piece.lanes {
                GatherPiece::STRAIGHT => *window.first_chunk().expect("a window has two chunks"),
                lanes => permute(window, &child.gather.lanes[lanes as usize]),
            };
            let keep = keep(piece.mask);
            for lane in 0..CHUNK {
                least[lane] = least[lane].min(taken[lane].max(keep[lane]));
            }
        }
    }
    std::array::from_fn(|lane| floor[lane].max(-least[lane]))
}

/// Returns the least score in the lanes of the mask and the greatest elsewhere, which excludes those lanes from a
/// minimum.
#[inline(always)]
fn keep(mask: u64) -> [i8; CHUNK] {
    let mut keep = [0; CHUNK];
    for (eight, mask) in keep.as_chunks_mut::<8>().0.iter_mut().zip(mask.to_le_bytes()) {
        *eight = KEEP[mask as usize];
    }
    keep
}

static KEEP: [[i8; 8]; 256] = {
    let mut table = [[i8::MAX; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let mut lane = 0;
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                table[mask][lane] = i8::MIN;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
};

fn permute(window: &[i8; PAD], lanes: &LaneMap) -> [i8; CHUNK] {
    lanes.0.map(|lane| window[lane as usize])
}

/// Iterates over the set bits of a word, from the lowest.
pub(crate) fn lanes(mut columns: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = columns.trailing_zeros() as usize;
        (columns != 0).then(|| {
            columns &= columns - 1;
            lane
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::apply::apply;
    use crate::sweep::work;
    use crate::{Bytes, ScoreRows, Tables};
    use game::sow::SowMap;
    use game::{Halves, Index, PositionSet, Rules};

    /// A hash of the index: every byte of an array differs from its neighbours.
    fn fake(len: usize, seed: u64) -> Bytes {
        let mut bytes = Bytes::zeroed(len).unwrap();
        for (at, byte) in bytes.iter_mut().enumerate() {
            let hash = (at as u64 ^ seed << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            *byte = ((hash >> 40) % 15) as i8 - 7;
        }
        bytes
    }

    /// A change marks every parent, and with vectors nothing else.
    #[test]
    fn kernels_reach_every_parent() {
        for (rules, set, stones) in [
            (Rules::AWARI, PositionSet::All, 9),
            (Rules::AWARI, PositionSet::REACHABLE, 10),
            (Rules::WARI, PositionSet::All, 7),
            (Rules::SLAM_LEAVE_LAST, PositionSet::REACHABLE, 7),
        ] {
            let (tables, halves) = (Tables::new(rules, set, 2 * stones), Halves::new(2 * stones));
            for number in (0..SowClass::COUNT).filter(|&number| SowClass::from_number(number).occurs()) {
                let class = SowClass::from_number(number);
                if u32::from(class.crossing) > stones {
                    continue;
                }
                let (gather, map) = (tables.gather(stones, number), SowMap::new(&rules, &halves, set, stones, class));
                for (chunk, targets) in map.targets.chunks(CHUNK).enumerate() {
                    for child in 0..gather.inverse.len() {
                        for columns in [u64::MAX, 1, 1 << 63, 0x1248_0102_8001_9009] {
                            let leads = |&(lane, &to): &(usize, &u32)| {
                                map.quiet[chunk] >> lane & 1 == 1
                                    && to as usize / CHUNK == child
                                    && columns >> (to as usize % CHUNK) & 1 == 1
                            };
                            let lanes = targets.iter().enumerate().filter(leads);
                            let expected = lanes.fold(0, |lanes, (lane, _)| lanes | 1u64 << lane);
                            let (from, to) = gather.inverse[child];
                            assert!(expected == 0 || (from..to).contains(&(chunk as u32)));
                            for kernel in Kernel::available() {
                                let found = kernel.reached(gather, chunk, child, columns);
                                assert_eq!(found & expected, expected, "{kernel:?}, class {number}");
                                assert!(kernel != Kernel::Avx512 || found == expected, "class {number}");
                            }
                        }
                    }
                }
            }
        }
    }

    /// Every row of every slab of a small database, on hashed scores.
    #[test]
    fn kernels_agree_on_every_row() {
        for (set, stones) in [(PositionSet::All, 9), (PositionSet::REACHABLE, 10)] {
            let (tables, index) = (Tables::new(Rules::AWARI, set, stones), Index::new(stones, set));
            let len = index.slab_positions() as usize;
            let captures = fake(len, 2);
            let fill = |seed: u64| {
                let (mut rows, from) = (ScoreRows::zeroed(&index).unwrap(), fake(len, seed));
                rows.fill(|range, out| {
                    out.copy_from_slice(&from[range.start as usize..range.end as usize]);
                    Ok::<_, ()>(())
                })
                .unwrap();
                rows
            };
            let scores = fill(1);
            for (at, slab) in index.slabs().iter().enumerate() {
                let best = (&captures.padded()[slab.offset as usize..], slab.opponent_halves as usize);
                let work = work(&tables, slab, scores.slabs()[at], scores.slabs(), best);
                let mut expected: Option<(Vec<i8>, Vec<i8>)> = None;
                for kernel in Kernel::available() {
                    let mut staged_all = Vec::new();
                    let mut after = fill(1);
                    for row in (0..slab.mover_halves as usize).step_by(UNIT_ROWS) {
                        let chunks_all = (slab.opponent_halves as usize).div_ceil(CHUNK);
                        for chunk in (0..chunks_all).step_by(UNIT_CHUNKS) {
                            let rows = UNIT_ROWS.min(slab.mover_halves as usize - row);
                            let chunks = UNIT_CHUNKS.min(chunks_all - chunk);
                            let full = ((1u32 << chunks) - 1) as u16;
                            let mut unit = RowUnit { row, rows, chunk, chunks, wanted: [0; UNIT_ROWS] };
                            for (row, wanted) in unit.wanted[..rows].iter_mut().enumerate() {
                                *wanted = if row % 3 == 0 { full } else { 0xb6d3 >> (row % 5) & full };
                            }
                            let mut staged = vec![0; unit.staged_bytes()];
                            let old = scores.bytes().padded();
                            let (moves, floor) = (Moves::all_but(0..0), work.floor(&unit));
                            let task = RowTask { work: &work, unit: &unit, values: old, moves, floor };
                            kernel.recompute(&task, &mut staged);
                            apply(kernel, &work, &unit, &staged, after.bytes_mut(), 0, |_| {});
                            // Lanes behind the last column are unspecified.
                            let columns = (slab.opponent_halves as usize - chunk * CHUNK).min(chunks * CHUNK);
                            let row_chunk = RowChunk { row: row as u32, chunk: chunk as u32, lanes: u64::MAX };
                            let spot = kernel.recompute_row_chunk(&work, row_chunk, scores.bytes().padded());
                            assert!(spot[..columns.min(CHUNK)] == staged[..columns.min(CHUNK)], "{kernel:?}, spot");
                            for row in staged.chunks(unit.stride()) {
                                staged_all.extend_from_slice(&row[..columns]);
                            }
                        }
                    }
                    let found = (staged_all, after.to_vec());
                    match &expected {
                        None => expected = Some(found),
                        Some(expected) => assert!(*expected == found, "{kernel:?}, slab {at} of {stones}, {set}"),
                    }
                }
            }
        }
    }
}
