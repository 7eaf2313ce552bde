//! Tables compiled for the kernels: everything that depends on halves and classes of moves but not on scores.
//!
//! Tables are built on first use, and shared by all threads and by all databases up to a number of stones. Sizes, with
//! R = C(n+6,6) halves of up to n stones: 24 bytes a half for the moves of rows, about 20 for their parents, and less
//! than 3 bytes a column for each class of moves (R columns a class in all); together a few per cent of a database.

use super::bit_maps::{Pull, Push, PushClass};
use crate::layout::plane;
pub(crate) use crate::layout::rows::CHUNK;
use game::sow::{self, Ends, SowClass, SowMap};
use game::{HALF_PITS, Half, Halves, Index, PositionSet, Rules, Score, Slab};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::OnceLock;

/// Returns the number of chunks of a number of columns.
pub(crate) fn chunks(halves: u32) -> usize {
    (halves as usize).div_ceil(CHUNK)
}

/// Returns the columns of a range of chunks, out of `halves` columns.
pub(crate) fn halves_of(chunks: &Range<usize>, halves: u32) -> Range<usize> {
    let last = halves as usize;
    (chunks.start * CHUNK).min(last)..(chunks.end * CHUNK).min(last)
}

/// The compiled tables for one position set, up to a number of stones.
pub struct Tables {
    rules: Rules,
    index: Index,
    /// By the mover's stones.
    rows: Vec<OnceLock<Vec<[PackedMove; HALF_PITS]>>>,
    /// By the opponent's stones and the class number.
    gathers: Vec<OnceLock<Gather>>,
    captures: Vec<OnceLock<CaptureLists>>,
    columns: Vec<OnceLock<Columns>>,
    parents: OnceLock<Vec<Parents>>,
    /// By the opponent's stones and the crossing ones.
    pulls: Vec<OnceLock<Pull>>,
    /// By the mover's stones, then the class number.
    pushes: Vec<OnceLock<Vec<Push>>>,
}

/// Move of a row in four bytes: rank of the half left behind, class, and number among the moves of the row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedMove(u32);

impl PackedMove {
    /// Filler behind the moves of a row.
    pub(crate) const NONE: PackedMove = PackedMove(u32::MAX);
    // C(53,5) ranks fit in 22 bits, 98 class numbers in 7.
    const RANK_BITS: u32 = 22;

    const CLASS_BITS: u32 = 7;

    pub(crate) fn new(rank: u32, class: SowClass, slot: usize) -> PackedMove {
        debug_assert!(rank < 1 << PackedMove::RANK_BITS && slot < HALF_PITS);
        let above_rank = (slot as u32) << PackedMove::CLASS_BITS | class.number() as u32;
        PackedMove(above_rank << PackedMove::RANK_BITS | rank)
    }

    /// Rank, among the opponent's halves of the position set, of the half left behind (or of the row in [`Parents`]).
    #[inline(always)]
    pub(crate) fn rank(self) -> u32 {
        self.0 & ((1 << PackedMove::RANK_BITS) - 1)
    }

    /// Stones that cross to the opponent.
    #[inline(always)]
    pub(crate) fn crossing(self) -> u32 {
        (self.0 >> (PackedMove::RANK_BITS + 1)) & 0x3f
    }

    /// [`SowClass::number`].
    #[inline(always)]
    pub(crate) fn class(self) -> usize {
        (self.0 >> PackedMove::RANK_BITS) as usize & ((1 << PackedMove::CLASS_BITS) - 1)
    }

    /// Number among the moves of the row.
    #[inline(always)]
    pub(crate) fn slot(self) -> usize {
        (self.0 >> (PackedMove::RANK_BITS + PackedMove::CLASS_BITS)) as usize
    }
}

/// The quiet columns of a class, compiled to windows of the child row.
///
/// A chunk of 64 columns is made of pieces; a piece takes some of its lanes from 128 consecutive bytes of the child
/// row, by a byte permutation, or from 64 without one.
pub(crate) struct Gather {
    /// By chunk, its first piece; plus the end.
    pub(crate) first: Vec<u32>,
    pub(crate) pieces: Vec<GatherPiece>,
    /// By piece that permutes: for each lane the byte of its window; lanes do not descend.
    pub(crate) lanes: Vec<LaneMap>,
    /// By chunk of 64 child columns, the range of chunks with columns that map there.
    pub(crate) inverse: Vec<(u32, u32)>,
    /// Bit mask of the child columns that columns map to.
    pub(crate) led_to: Vec<u64>,
}

#[derive(Clone, Copy)]
pub(crate) struct GatherPiece {
    /// Offset of the window in the child row.
    pub(crate) base: u32,
    /// Index into `lanes`, or [`GatherPiece::STRAIGHT`].
    pub(crate) lanes: u32,
    pub(crate) mask: u64,
}

impl GatherPiece {
    /// Lane j takes byte j of the window.
    pub(crate) const STRAIGHT: u32 = u32::MAX;
}

#[repr(align(64))]
pub(crate) struct LaneMap(pub(crate) [u8; CHUNK]);

/// The capturing columns of a class.
#[derive(Default)]
pub(crate) struct CaptureLists {
    /// Captured stones, and the end of their entries.
    pub(crate) groups: Vec<(u8, u32)>,
    /// Column of the row, and column of the child in its row.
    pub(crate) entries: Vec<(u32, u32)>,
    /// Columns in which the move is illegal, or legal only if no move leaves the opponent stones; ascending.
    pub(crate) barred: Vec<u32>,
    /// Those of them in which it is illegal.
    pub(crate) forbidden: Vec<u32>,
}

/// Bit masks of the columns of a class, a word a chunk.
pub(crate) struct Columns {
    /// Quiet: nothing is captured.
    pub(crate) quiet: Vec<u64>,
    /// Legal captures.
    pub(crate) capturing: Vec<u64>,
}

/// Parents of halves: by rank of the opponent's half, the rows (mover's halves) with a move that leaves it behind.
pub(crate) struct Parents {
    first: Vec<u32>,
    /// In each run ascending by crossing stones.
    entries: Vec<PackedMove>,
}

impl Parents {
    /// Returns the parents of a half, ascending by crossing stones.
    #[inline]
    pub(crate) fn of(&self, rank: u32) -> &[PackedMove] {
        &self.entries[self.first[rank as usize] as usize..self.first[rank as usize + 1] as usize]
    }
}

impl Tables {
    /// Creates tables for databases of up to `stones_max` stones, without computing them.
    pub fn new(rules: Rules, set: PositionSet, stones_max: u32) -> Tables {
        let sizes = stones_max as usize + 1;
        let locks = sizes * SowClass::COUNT;
        Tables {
            rules,
            index: Index::new(stones_max, set),
            rows: (0..sizes).map(|_| OnceLock::new()).collect(),
            gathers: (0..locks).map(|_| OnceLock::new()).collect(),
            captures: (0..locks).map(|_| OnceLock::new()).collect(),
            columns: (0..locks).map(|_| OnceLock::new()).collect(),
            parents: OnceLock::new(),
            pulls: (0..sizes * sizes).map(|_| OnceLock::new()).collect(),
            pushes: (0..sizes).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The position set.
    pub fn set(&self) -> PositionSet {
        self.index.set()
    }

    /// Most stones of a database that these tables serve.
    pub fn stones_max(&self) -> u32 {
        self.index.stones()
    }

    /// Returns the moves of all rows of slabs whose mover has `stones` stones; each row is filled up with `NONE`.
    #[inline]
    pub(crate) fn rows(&self, stones: u32) -> &[[PackedMove; HALF_PITS]] {
        self.rows[stones as usize].get_or_init(|| {
            let ranks = 0..Halves::count(stones);
            ranks.map(|rank| row_of(&self.index, stones, rank)).collect()
        })
    }

    /// The quiet columns of a class where the opponent has `stones` stones.
    #[inline]
    pub(crate) fn gather(&self, stones: u32, class: usize) -> &Gather {
        self.gathers[stones as usize * SowClass::COUNT + class].get_or_init(|| {
            Gather::new(&self.map(stones, class), {
                Halves::count(stones + u32::from(SowClass::from_number(class).crossing)) as usize
            })
        })
    }

    /// The capturing columns of a class where the opponent has `stones` stones.
    #[inline]
    pub(crate) fn captures(&self, stones: u32, class: usize) -> &CaptureLists {
        self.captures[stones as usize * SowClass::COUNT + class]
            .get_or_init(|| CaptureLists::new(&self.map(stones, class)))
    }

    /// Computes on all threads the capturing columns of the classes of all moves with `stones` stones on the
    /// board. Threads that compute rows in order need the same ones at the same time, and would wait for each
    /// other.
    pub(crate) fn prepare_captures(&self, stones: u32) {
        prepare_classes(stones, |opponent, class| _ = self.captures(opponent, class));
    }

    /// Drops the capturing columns of all classes, which solvers of bounds do not need.
    pub fn forget_captures(&mut self) {
        self.captures.iter_mut().for_each(|captures| _ = captures.take());
    }

    /// Computes on all threads which columns capture, of the classes of all moves with `stones` stones on the board.
    pub(crate) fn prepare_columns(&self, stones: u32) {
        prepare_classes(stones, |opponent, class| _ = self.columns(opponent, class));
    }

    /// Computes on all threads the moves of all rows of databases of up to `stones` stones.
    pub(crate) fn prepare_rows(&self, stones: u32) {
        for mover in 0..=stones {
            let rows = &self.rows[mover as usize];
            // Not within the lock, whose owner may execute other work that waits for it.
            if rows.get().is_none() {
                let ranks = (0..Halves::count(mover)).into_par_iter();
                let _ = rows.set(ranks.map(|rank| row_of(&self.index, mover, rank)).collect());
            }
        }
    }

    /// Computes on all threads the maps of bits to parents in databases of up to `stones` stones.
    pub(crate) fn prepare_pushes(&self, stones: u32) {
        for (mover, pushes) in (0..=stones).zip(&self.pushes) {
            if pushes.get().is_none() {
                let classes = PushClass::all(&self.index, mover).into_par_iter();
                let _ = pushes.set(classes.map(Push::new).collect());
            }
        }
    }

    /// Which columns of a class capture, where the opponent has `stones` stones.
    #[inline]
    pub(crate) fn columns(&self, stones: u32, class: usize) -> &Columns {
        self.columns[stones as usize * SowClass::COUNT + class].get_or_init(|| {
            let map = self.map(stones, class);
            let mut capturing = vec![0; map.quiet.len()];
            for capture in &map.captures {
                capturing[capture.column as usize / CHUNK] |= 1 << (capture.column % CHUNK as u32);
            }
            Columns { quiet: map.quiet, capturing }
        })
    }

    /// The parents of the opponent's halves with `stones` stones.
    #[inline]
    pub(crate) fn parents(&self, stones: u32) -> &Parents {
        &self.parents.get_or_init(|| self.build_parents())[stones as usize]
    }

    /// Returns the map of bits for rows whose opponent has `stones` stones, by moves with `crossing` crossing stones.
    #[inline]
    pub(crate) fn pull(&self, stones: u32, crossing: u32) -> &Pull {
        self.pulls[stones as usize * (self.stones_max() as usize + 1) + crossing as usize].get_or_init(|| {
            let ends = if crossing == 0 { Ends::Mover } else { Ends::Opponent };
            let class = SowClass { crossing: crossing as u8, ends };
            let words = |columns: u32| columns.div_ceil(CHUNK as u32) as usize;
            let own = words(self.set().opponent_halves(stones));
            let child = words(Halves::count(stones + crossing));
            Pull::new(&self.map(stones, class.number()), plane::part_shift(own), plane::share_shift(child))
        })
    }

    /// Returns, by class number, the maps of bits to parents whose mover has `mover` stones.
    #[inline]
    pub(crate) fn pushes(&self, mover: u32) -> &[Push] {
        self.pushes[mover as usize]
            .get_or_init(|| PushClass::all(&self.index, mover).into_iter().map(Push::new).collect())
    }

    /// Returns the column that a quiet move of a class maps a column to, where the opponent has `stones` stones; `None`
    /// if the move is not quiet there. [`gather`](Self::gather) has this for all columns.
    #[inline]
    pub(crate) fn quiet_target(&self, stones: u32, class: SowClass, column: u32) -> Option<u32> {
        let half = self.index.unrank_opponent(stones, column);
        class.quiet_half(&self.rules, &half).map(|half| Halves::rank(&half))
    }

    /// Whether a move of a class after which the opponent has the half `sown`, not an empty one, captures nothing.
    #[inline]
    pub(crate) fn is_quiet_into(&self, class: SowClass, sown: &Half) -> bool {
        class.is_quiet_into(&self.rules, sown)
    }

    /// Returns the databases that captures lead to from `stones` stones.
    pub(crate) fn smaller(&self, stones: u32) -> Range<u32> {
        self.rules.smaller(stones)
    }

    /// Returns the score of the positions of a slab whose mover has no move.
    pub(crate) fn terminal_score(&self, slab: &Slab) -> Score {
        self.rules.terminal_score_in(slab)
    }

    fn map(&self, stones: u32, class: usize) -> SowMap {
        SowMap::new(&self.rules, self.index.halves(), self.set(), stones, SowClass::from_number(class))
    }

    fn build_parents(&self) -> Vec<Parents> {
        let mut parents: Vec<Parents> = (0..=self.stones_max())
            .map(|stones| Parents {
                first: vec![0; self.set().opponent_halves(stones) as usize + 1],
                entries: Vec::new(),
            })
            .collect();
        self.each_move(|half, to, _| parents[half].first[to.rank() as usize + 1] += 1);
        for parents in &mut parents {
            for at in 1..parents.first.len() {
                parents.first[at] += parents.first[at - 1];
            }
            parents.entries = vec![PackedMove::NONE; parents.first.last().map_or(0, |&end| end as usize)];
        }
        let mut next: Vec<Vec<u32>> = parents.iter().map(|parents| parents.first.clone()).collect();
        self.each_move(|half, to, row| {
            let next = &mut next[half][to.rank() as usize];
            parents[half].entries[*next as usize] = PackedMove::new(row, SowClass::from_number(to.class()), to.slot());
            *next += 1;
        });
        parents
    }

    /// Visits every move of every row: stones of the half left behind, the move, the rank of the row.
    fn each_move(&self, mut visit: impl FnMut(usize, PackedMove, u32)) {
        // Ascending in the mover's stones, hence for each half left behind in crossing stones.
        for mover in 0..=self.stones_max() {
            for (row, moves) in self.rows(mover).iter().enumerate() {
                for &to in moves.iter().take_while(|&&to| to != PackedMove::NONE) {
                    let crossing = usize::from(SowClass::from_number(to.class()).crossing);
                    visit(mover as usize - crossing, to, row as u32);
                }
            }
        }
    }
}

/// Calls `prepare` on all threads for the opponent's stones and the class of all moves with `stones` stones
/// on the board.
fn prepare_classes(stones: u32, prepare: impl Fn(u32, usize) + Sync) {
    let has_moves = |&(opponent, class): &(u32, usize)| {
        SowClass::from_number(class).stones_min().is_some_and(|least| opponent + least <= stones)
    };
    let all = (0..=stones).flat_map(|opponent| (0..SowClass::COUNT).map(move |class| (opponent, class)));
    let needed: Vec<_> = all.filter(has_moves).collect();
    needed.into_par_iter().with_max_len(1).for_each(|(opponent, class)| prepare(opponent, class));
}

/// Computes the moves of a row whose mover has `stones` stones, filled up with `NONE`.
fn row_of(index: &Index, stones: u32, rank: u32) -> [PackedMove; HALF_PITS] {
    let mut moves = [PackedMove::NONE; HALF_PITS];
    let half = index.halves().unrank(stones, rank);
    for (slot, (to, from)) in moves.iter_mut().zip(sow::row_moves(&half)).enumerate() {
        // The pit a move starts from is empty behind it, so the position set has the half.
        let rank = index.rank_opponent(&from.half).expect("a half with an empty pit has a rank");
        *to = PackedMove::new(rank, from.class, slot);
    }
    moves
}

impl Gather {
    pub(crate) fn new(map: &SowMap, child_columns: usize) -> Gather {
        let mut gather = Gather {
            first: vec![0],
            pieces: Vec::new(),
            lanes: Vec::new(),
            inverse: vec![(u32::MAX, 0); child_columns.div_ceil(CHUNK)],
            led_to: vec![0; child_columns.div_ceil(CHUNK)],
        };
        for (chunk, targets) in map.targets.chunks(CHUNK).enumerate() {
            gather.pieces_of(targets, map.quiet[chunk]);
            gather.first.push(gather.pieces.len() as u32);
            for (lane, &target) in targets.iter().enumerate() {
                if map.quiet[chunk] >> lane & 1 == 1 {
                    let range = &mut gather.inverse[target as usize / CHUNK];
                    range.0 = range.0.min(chunk as u32);
                    range.1 = range.1.max(chunk as u32 + 1);
                    gather.led_to[target as usize / CHUNK] |= 1 << (target as usize % CHUNK);
                }
            }
        }
        gather
    }

    /// Covers the quiet lanes of a chunk by pieces, greedily from the left.
    fn pieces_of(&mut self, targets: &[u32], quiet: u64) {
        let mut left = quiet;
        while left != 0 {
            let start = left.trailing_zeros() as usize;
            let reach = |holds: &dyn Fn(usize) -> bool| {
                (start..targets.len())
                    .filter(|&lane| left >> lane & 1 == 1)
                    .take_while(|&lane| holds(lane))
                    .fold(0, |mask, lane| mask | 1u64 << lane)
            };
            let base = targets[start];
            let straight = reach(&|lane| (targets[lane] - base) as usize == lane - start);
            let window = reach(&|lane| targets[lane] - base < 2 * CHUNK as u32);
            let (mask, piece) = if straight == window {
                // A column's target is never less than the column, so this does not go below the row's start.
                (straight, GatherPiece { base: base - start as u32, lanes: GatherPiece::STRAIGHT, mask: straight })
            } else {
                // Lanes that are left out repeat the one before: kernels may rely on lanes that do not descend.
                let mut lanes = [0; CHUNK];
                let mut last = 0;
                for (lane, to) in lanes.iter_mut().enumerate() {
                    if window >> lane & 1 == 1 {
                        last = (targets[lane] - base) as u8;
                    }
                    *to = last;
                }
                self.lanes.push(LaneMap(lanes));
                (window, GatherPiece { base, lanes: self.lanes.len() as u32 - 1, mask: window })
            };
            self.pieces.push(piece);
            left &= !mask;
        }
    }
}

impl CaptureLists {
    fn new(map: &SowMap) -> CaptureLists {
        // Of exact size: there are several hundred.
        let mut barred = [&map.starves[..], &map.forbidden].concat();
        barred.sort_unstable();
        let mut captures = CaptureLists {
            barred,
            forbidden: map.forbidden.clone(),
            entries: Vec::with_capacity(map.captures.len()),
            ..CaptureLists::default()
        };
        for (at, capture) in map.captures.iter().enumerate() {
            captures.entries.push((capture.column, capture.child));
            match captures.groups.last_mut() {
                Some((captured, end)) if *captured == capture.captured => *end = at as u32 + 1,
                _ => captures.groups.push((capture.captured, at as u32 + 1)),
            }
        }
        captures.groups.shrink_to_fit();
        captures
    }
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables")
            .field("set", &self.set())
            .field("stones_max", &self.stones_max())
            .finish_non_exhaustive()
    }
}
