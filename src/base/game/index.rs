//! The index: the numbering of positions by slab, row and column.
//!
//! Slab m contains the n-stone positions whose mover has m stones: the product of the mover's halves with m
//! stones and the opponent's with n - m. In [`Orientation::MoverMajor`] the mover's half is the row, in
//! [`Orientation::OpponentMajor`] the opponent's is; one slab is the transpose of the other, so slabs have
//! the same offsets in both. [`PositionSet::Reachable`] omits the opponent's halves without an empty pit; the
//! index of all stones of the game (48) then has one more position, the opening, after all slabs. The methods
//! of the engines solve the slabs; the score of the opening, which no move leads to, follows from them.

use crate::binomial::binomial;
use crate::board::Board;
use crate::half::{Half, Halves, STONES_MAX};
use crate::opening::Opening;
use crate::rules::{Rules, Score};
use std::fmt;
use std::str::FromStr;

/// Which half indexes the rows of a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Orientation {
    /// Rows fix the mover's half.
    MoverMajor,
    /// Rows fix the opponent's half. Finished databases are in this orientation.
    OpponentMajor,
}

impl Orientation {
    /// Returns the orientation whose rows are the columns of this one.
    #[must_use]
    pub const fn transposed(self) -> Orientation {
        match self {
            Orientation::MoverMajor => Orientation::OpponentMajor,
            Orientation::OpponentMajor => Orientation::MoverMajor,
        }
    }
}

/// The set of positions in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PositionSet {
    /// All C(n+11,11) positions.
    All,
    /// Positions in which the opponent has an empty pit, C(n+11,11) - C(n+5,11) of them, and the opening.
    Reachable {
        /// The opening of the game.
        opening: Opening,
    },
}

impl fmt::Display for PositionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PositionSet::All => "all",
            PositionSet::Reachable { .. } => "reachable",
        })
    }
}

/// One slab of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slab {
    /// Stones of the mover.
    pub mover_stones: u32,
    /// Stones of the opponent.
    pub opponent_stones: u32,
    /// Halves of the mover.
    pub mover_halves: u32,
    /// Halves of the opponent (in the position set).
    pub opponent_halves: u32,
    /// Index of the slab's first position.
    pub offset: u64,
}

/// The index of all positions of one number of stones in one position set.
#[derive(Clone, Debug)]
pub struct Index {
    stones: u32,
    set: PositionSet,
    slabs: Vec<Slab>,
    halves: Halves,
    /// By the opponent's stones, for `Reachable` only.
    open: Vec<OpenHalves>,
}

/// Halves of some number of stones that have an empty pit: a bit vector with rank and select.
#[derive(Clone, Debug)]
struct OpenHalves {
    words: Vec<u64>,
    /// Open halves before each word.
    before: Vec<u32>,
    count: u32,
}

impl Slab {
    /// Positions in the slab.
    pub fn positions(&self) -> u64 {
        u64::from(self.mover_halves) * u64::from(self.opponent_halves)
    }

    /// Rows and columns in an orientation.
    pub fn rows_columns(&self, orientation: Orientation) -> (u32, u32) {
        match orientation {
            Orientation::MoverMajor => (self.mover_halves, self.opponent_halves),
            Orientation::OpponentMajor => (self.opponent_halves, self.mover_halves),
        }
    }
}

impl Rules {
    /// The score of the positions of a slab whose mover has no move.
    pub fn terminal_score_in(&self, slab: &Slab) -> Score {
        self.rest_score(slab.mover_stones as Score, slab.opponent_stones as Score)
    }
}

impl PositionSet {
    /// The positions of awari that can be reached.
    pub const REACHABLE: PositionSet = PositionSet::Reachable { opening: Opening::AWARI };

    /// The opponent's halves with `stones` stones.
    pub const fn opponent_halves(self, stones: u32) -> u32 {
        match self {
            PositionSet::All => Halves::count(stones),
            // A half without an empty pit is one of six stones fewer with a stone added to each pit.
            PositionSet::Reachable { .. } if stones >= 6 => Halves::count(stones) - Halves::count(stones - 6),
            PositionSet::Reachable { .. } => Halves::count(stones),
        }
    }

    /// Positions with `stones` stones, the opening included.
    pub const fn positions(self, stones: u32) -> u64 {
        self.slab_positions(stones) + if self.opening(stones).is_some() { 1 } else { 0 }
    }

    /// Positions with `stones` stones in the slabs.
    pub const fn slab_positions(self, stones: u32) -> u64 {
        let all = binomial(stones + 11, 11);
        match self {
            PositionSet::All => all,
            PositionSet::Reachable { .. } => all - binomial(stones + 5, 11),
        }
    }

    /// The opening, if the index of `stones` stones has it after its slabs.
    pub const fn opening(self, stones: u32) -> Option<Opening> {
        match self {
            PositionSet::Reachable { opening } if opening.stones() == stones => Some(opening),
            _ => None,
        }
    }

    /// The position in which a game begins.
    pub const fn start(self) -> Opening {
        match self {
            PositionSet::All => Opening::AWARI,
            PositionSet::Reachable { opening } => opening,
        }
    }

    /// The most stones of a position.
    pub const fn stones_max(self) -> u32 {
        match self {
            PositionSet::All => STONES_MAX,
            PositionSet::Reachable { opening } => opening.stones(),
        }
    }

    /// The slabs of the positions with `stones` stones, ascending by the mover's stones.
    pub fn slabs(self, stones: u32) -> Vec<Slab> {
        let mut offset = 0;
        let slab = |mover_stones| {
            let opponent_stones = stones - mover_stones;
            let slab = Slab {
                mover_stones,
                opponent_stones,
                mover_halves: Halves::count(mover_stones),
                opponent_halves: self.opponent_halves(opponent_stones),
                offset,
            };
            offset += slab.positions();
            slab
        };
        (0..=stones).map(slab).collect()
    }

    /// Whether the set contains a position.
    pub fn contains(self, board: &Board) -> bool {
        match self {
            PositionSet::All => true,
            PositionSet::Reachable { opening } => !board.opponent_full() || *board == opening.board(),
        }
    }
}

impl Index {
    /// The index of the `stones`-stone positions of a set.
    ///
    /// # Panics
    /// When `stones` exceeds [`STONES_MAX`].
    pub fn new(stones: u32, set: PositionSet) -> Index {
        let halves = Halves::new(stones);
        let slabs = set.slabs(stones);
        let open = match set {
            PositionSet::All => Vec::new(),
            PositionSet::Reachable { .. } => (0..=stones).map(|stones| OpenHalves::new(&halves, stones)).collect(),
        };
        Index { stones, set, slabs, halves, open }
    }

    /// Stones on the board.
    pub fn stones(&self) -> u32 {
        self.stones
    }

    /// The position set.
    pub fn set(&self) -> PositionSet {
        self.set
    }

    /// Number of positions, the opening included.
    pub fn positions(&self) -> u64 {
        self.slab_positions() + u64::from(self.opening().is_some())
    }

    /// Number of positions in the slabs.
    pub fn slab_positions(&self) -> u64 {
        // Not from the set: `unrank` asks, and binomials are slow.
        self.slabs.last().map_or(0, |slab| slab.offset + slab.positions())
    }

    /// The opening, if it is the last position.
    pub fn opening(&self) -> Option<Opening> {
        self.set.opening(self.stones)
    }

    /// The slabs, by the mover's stones.
    pub fn slabs(&self) -> &[Slab] {
        &self.slabs
    }

    /// The slab whose mover has `mover_stones` stones.
    pub fn slab(&self, mover_stones: u32) -> &Slab {
        &self.slabs[mover_stones as usize]
    }

    /// The tables of halves.
    pub fn halves(&self) -> &Halves {
        &self.halves
    }

    /// The index of a position, or `None` if the set does not contain it.
    ///
    /// # Panics
    /// When the board does not hold this index's number of stones.
    pub fn rank(&self, board: &Board, orientation: Orientation) -> Option<u64> {
        let (mover, opponent) = (board.mover(), board.opponent());
        let mover_stones: u32 = mover.iter().map(|&s| u32::from(s)).sum();
        assert_eq!(board.stones(), self.stones, "the index is of positions with {} stones", self.stones);
        let slab = &self.slabs[mover_stones as usize];
        let Some(opponent_number) = self.rank_opponent(&opponent) else {
            return self.opening().filter(|opening| *board == opening.board()).map(|_| self.slab_positions());
        };
        let (mover_number, opponent_number) = (u64::from(Halves::rank(&mover)), u64::from(opponent_number));
        Some(
            slab.offset
                + match orientation {
                    Orientation::MoverMajor => mover_number * u64::from(slab.opponent_halves) + opponent_number,
                    Orientation::OpponentMajor => opponent_number * u64::from(slab.mover_halves) + mover_number,
                },
        )
    }

    /// The position of an index.
    ///
    /// # Panics
    /// When `position` is not below [`Index::positions`].
    pub fn unrank(&self, position: u64, orientation: Orientation) -> Board {
        assert!(position < self.positions(), "position {position} of {}", self.positions());
        if let Some(opening) = self.opening().filter(|_| position == self.slab_positions()) {
            return opening.board();
        }
        let slab = &self.slabs[self.slabs.partition_point(|slab| slab.offset <= position) - 1];
        let within = position - slab.offset;
        let (_, columns) = slab.rows_columns(orientation);
        let row = (within / u64::from(columns)) as u32;
        let column = (within % u64::from(columns)) as u32;
        let (mover, opponent) = match orientation {
            Orientation::MoverMajor => (row, column),
            Orientation::OpponentMajor => (column, row),
        };
        Board::from_halves(
            self.halves.unrank(slab.mover_stones, mover),
            self.unrank_opponent(slab.opponent_stones, opponent),
        )
    }

    /// The number of an opponent's half among those of the set with as many stones, or `None` if the set does not
    /// contain it.
    pub fn rank_opponent(&self, half: &Half) -> Option<u32> {
        let number = Halves::rank(half);
        match self.set {
            PositionSet::All => Some(number),
            PositionSet::Reachable { .. } if half.contains(&0) => {
                let stones: usize = half.iter().map(|&s| usize::from(s)).sum();
                Some(self.open[stones].rank(number))
            }
            PositionSet::Reachable { .. } => None,
        }
    }

    /// The opponent's half of this number among those of the set with `stones` stones.
    pub fn unrank_opponent(&self, stones: u32, number: u32) -> Half {
        match self.set {
            PositionSet::All => self.halves.unrank(stones, number),
            PositionSet::Reachable { .. } => self.halves.unrank(stones, self.open[stones as usize].select(number)),
        }
    }
}

impl OpenHalves {
    /// The open halves of `stones` stones.
    fn new(halves: &Halves, stones: u32) -> OpenHalves {
        let all = Halves::count(stones) as usize;
        let mut words = vec![0u64; all.div_ceil(64)];
        let mut before = Vec::with_capacity(words.len());
        let mut count = 0;
        for (at, word) in words.iter_mut().enumerate() {
            before.push(count);
            for bit in 0..64.min(all - at * 64) {
                if halves.unrank(stones, (at * 64 + bit) as u32).contains(&0) {
                    *word |= 1 << bit;
                }
            }
            count += word.count_ones();
        }
        OpenHalves { words, before, count }
    }

    /// The number of open halves below a half of this number.
    fn rank(&self, number: u32) -> u32 {
        let (word, bit) = (number as usize / 64, number % 64);
        self.before[word] + (self.words[word] & ((1 << bit) - 1)).count_ones()
    }

    /// The number among all halves of the open half number `open`.
    ///
    /// # Panics
    /// If there are not more than `open` open halves.
    fn select(&self, open: u32) -> u32 {
        assert!(open < self.count, "open half {open} of {}", self.count);
        let word = self.before.partition_point(|&before| before <= open) - 1;
        let mut bits = self.words[word];
        for _ in self.before[word]..open {
            bits &= bits - 1;
        }
        word as u32 * 64 + bits.trailing_zeros()
    }
}

impl FromStr for PositionSet {
    type Err = String;

    fn from_str(text: &str) -> Result<PositionSet, String> {
        match text {
            "all" => Ok(PositionSet::All),
            "reachable" => Ok(PositionSet::REACHABLE),
            _ => Err(format!("`{text}` is not a position set: expected `all` or `reachable`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{self, Positions, RowHalf};

    const ORIENTATIONS: [Orientation; 2] = [Orientation::MoverMajor, Orientation::OpponentMajor];
    const SETS: [PositionSet; 2] = [PositionSet::All, PositionSet::REACHABLE];

    #[test]
    fn rank_and_unrank_are_inverse() {
        for set in SETS {
            for orientation in ORIENTATIONS {
                for stones in 0..=7 {
                    let index = Index::new(stones, set);
                    let last = index.slabs().last().expect("an index has slabs");
                    assert_eq!(last.offset + last.positions(), index.positions());
                    for position in 0..index.positions() {
                        let board = index.unrank(position, orientation);
                        assert_eq!(board.stones(), stones);
                        assert!(set.contains(&board));
                        assert_eq!(index.rank(&board, orientation), Some(position));
                    }
                }
            }
        }
    }

    #[test]
    fn large_indexes() {
        for set in SETS {
            for orientation in ORIENTATIONS {
                let index = Index::new(48, set);
                let step = index.positions() / 10_007;
                for at in (0..10_007).map(|i| i * step).chain([index.positions() - 1]) {
                    assert_eq!(index.rank(&index.unrank(at, orientation), orientation), Some(at));
                }
            }
        }
    }

    #[test]
    fn the_opening_follows_all_slabs() {
        for stones in [12, 24, 36, 48] {
            let opening = Opening::with_stones(stones).unwrap();
            let set = PositionSet::Reachable { opening };
            assert_eq!((set.stones_max(), set.opening(stones), set.opening(stones - 1)), (stones, Some(opening), None));
            assert_eq!(set.positions(stones), set.slab_positions(stones) + 1);
            let fewer = Opening::with_stones(stones % 48 + 12).unwrap();
            assert_eq!(PositionSet::Reachable { opening: fewer }.positions(stones), set.slab_positions(stones));
            if stones > 24 {
                continue;
            }
            let index = Index::new(stones, set);
            let last = index.slabs().last().unwrap();
            assert_eq!(last.offset + last.positions(), index.slab_positions());
            for orientation in ORIENTATIONS {
                assert_eq!(index.unrank(index.slab_positions(), orientation), opening.board());
                assert_eq!(index.rank(&opening.board(), orientation), Some(index.slab_positions()));
                let before = index.unrank(index.slab_positions() - 1, orientation);
                assert_eq!(index.rank(&before, orientation), Some(index.slab_positions() - 1));
            }
            let other = Index::new(stones, PositionSet::Reachable { opening: fewer });
            assert_eq!(other.rank(&opening.board(), Orientation::MoverMajor), None);
        }
    }

    #[test]
    fn published_sizes() {
        assert_eq!(PositionSet::REACHABLE.positions(6), 12_375);
        assert_eq!(PositionSet::REACHABLE.positions(41), 47_062_945_644);
        let total: u64 = (0..=46).chain([48]).map(|stones| PositionSet::REACHABLE.positions(stones)).sum();
        assert_eq!(total, 889_063_398_406);
    }

    #[test]
    fn positions_are_in_the_order_of_the_slow_twin() {
        for (set, positions) in SETS.into_iter().zip([Positions::All, Positions::Reachable]) {
            for (orientation, rows) in ORIENTATIONS.into_iter().zip([RowHalf::Mover, RowHalf::Opponent]) {
                for stones in 0..=7 {
                    let index = Index::new(stones, set);
                    assert_eq!((index.stones(), index.set()), (stones, set));
                    let found = (0..index.positions()).map(|position| index.unrank(position, orientation).0);
                    assert!(found.eq(reference::ordered(stones as u8, positions, rows)), "{stones}, {set}");
                }
            }
        }
    }

    #[test]
    fn sets_have_the_positions_of_the_slow_twin() {
        for (set, positions) in SETS.into_iter().zip([Positions::All, Positions::Reachable]) {
            let indexes: Vec<Index> = (0..=7).map(|stones| Index::new(stones, set)).collect();
            for pits in
                (0..=7).flat_map(reference::boards).chain([Board::OPENING.0, [1, 7, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4]])
            {
                let board = Board(pits);
                assert_eq!(set.contains(&board), reference::contains(positions, pits), "{pits:?}, {set}");
                if let Some(index) = indexes.get(board.stones() as usize) {
                    let is_ranked = index.rank(&board, Orientation::MoverMajor).is_some();
                    assert_eq!(is_ranked, set.contains(&board), "{pits:?}, {set}");
                }
            }
        }
    }

    #[test]
    fn sets_are_read_as_they_are_written() {
        let check =
            |set: PositionSet, text: &str| assert_eq!((set.to_string(), text.parse()), (text.to_owned(), Ok(set)));
        check(PositionSet::All, "all");
        check(PositionSet::REACHABLE, "reachable");
        assert!("some".parse::<PositionSet>().is_err());
    }
}
