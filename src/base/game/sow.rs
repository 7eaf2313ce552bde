//! Sow maps: the effect of a move on a whole row, that is, the target of each of its columns.
//!
//! A row of a `MoverMajor` slab fixes the mover's half, and with it the half that each move leaves ([`RowMove`]) and
//! the number of stones that cross to the opponent. So all columns of the row go to columns of one child row, and the
//! opponent's pits gain a constant vector. This translation preserves the order of halves, hence the map of columns is
//! a monotone injection. Only captures depend on the column; [`SowMap`] lists them for a class of moves and a number of
//! opponent's stones. No other module evaluates [`Rules`] for the kernels.

use crate::half::{HALF_PITS, Half, Halves, STONES_MAX};
use crate::index::PositionSet;
use crate::rules::{Rules, SowEffect};

/// A class of moves with the same effect on the opponent's pits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SowClass {
    /// Stones that the opponent's pits gain.
    pub crossing: u8,
    /// The side on which the last stone falls. Only a last stone with the opponent captures.
    pub ends: Ends,
}

/// The side on which the last stone falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ends {
    /// With the mover: nothing is captured.
    Mover,
    /// With the opponent.
    Opponent,
}

/// The effect of a move on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowMove {
    /// The mover's pit, 0 to 5.
    pub pit: u8,
    /// Its effect on the opponent's pits.
    pub class: SowClass,
    /// The mover's half after sowing: the opponent's half of every child.
    pub half: Half,
}

/// A column on which a move of the class captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The column of the row.
    pub column: u32,
    /// Stones captured, at least one.
    pub captured: u8,
    /// The column of the child in its row, with the captured stones gone.
    pub child: u32,
}

/// The targets of the columns of rows whose opponent has a given number of stones, for a class of moves.
#[derive(Clone, Debug, Default)]
pub struct SowMap {
    /// By column: the column of the child in its row before any capture. Strictly increasing.
    pub targets: Vec<u32>,
    /// One bit a column: the move captures nothing and leaves the opponent stones.
    pub quiet: Vec<u64>,
    /// The legal captures, by captured stones, then by column.
    pub captures: Vec<Capture>,
    /// The columns on which the move leaves the opponent without stones, and is legal only if no other move leaves it
    /// some, ascending.
    pub starves: Vec<u32>,
    /// The columns on which the move is illegal, ascending.
    pub forbidden: Vec<u32>,
}

impl SowClass {
    /// The number of different [`SowClass::number`]s.
    pub const COUNT: usize = 2 * (STONES_MAX as usize + 1);

    /// The number of the class, from 0 on.
    #[inline]
    pub const fn number(self) -> usize {
        2 * self.crossing as usize + matches!(self.ends, Ends::Opponent) as usize
    }

    /// The class of a number.
    pub const fn from_number(number: usize) -> SowClass {
        SowClass { crossing: (number / 2) as u8, ends: if number % 2 == 1 { Ends::Opponent } else { Ends::Mover } }
    }

    /// Whether any move is of the class: a sowing that crosses and ends with the mover has filled all six pits equally
    /// often, and one that crosses nothing cannot end with the opponent.
    #[inline]
    pub const fn occurs(self) -> bool {
        match self.ends {
            Ends::Mover => (self.crossing as usize).is_multiple_of(HALF_PITS),
            Ends::Opponent => self.crossing > 0,
        }
    }

    /// The fewest stones of a mover who has a move of the class, if it [occurs](Self::occurs). They are in
    /// the last pit; from there, six stones cross in each lap, and five go to the other pits between two
    /// laps.
    pub const fn stones_min(self) -> Option<u32> {
        if !self.occurs() {
            return None;
        }
        let crossing = self.crossing as u32;
        let between = crossing.saturating_sub(1) / HALF_PITS as u32 * (HALF_PITS as u32 - 1);
        let beyond = matches!(self.ends, Ends::Mover) as u32;
        Some(crossing + between + beyond)
    }

    /// The stones that each of the opponent's pits gains.
    pub fn gain(self) -> Half {
        let (laps, rest) = (self.crossing / HALF_PITS as u8, self.crossing as usize % HALF_PITS);
        std::array::from_fn(|pit| laps + u8::from(pit < rest))
    }

    /// The opponent's half after the move, if nothing is captured and the opponent has stones.
    pub fn quiet_half(self, rules: &Rules, before: &Half) -> Option<Half> {
        let gain = self.gain();
        let sown: Half = std::array::from_fn(|pit| before[pit] + gain[pit]);
        (self.capture(rules, &mut { sown }).0 == SowEffect::Quiet).then_some(sown)
    }

    /// Whether a move after which the opponent has the half `sown`, not an empty one, captures nothing.
    #[inline]
    pub fn is_quiet_into(self, rules: &Rules, sown: &Half) -> bool {
        self.capture(rules, &mut { *sown }).0 == SowEffect::Quiet
    }

    /// Removes the stones captured from the opponent's pits after sowing; returns the effect and their number.
    #[inline]
    fn capture(self, rules: &Rules, half: &mut Half) -> (SowEffect, u8) {
        let last = (self.crossing as usize + HALF_PITS - 1) % HALF_PITS;
        rules.capture(half, Some(last).filter(|_| self.ends == Ends::Opponent))
    }
}

/// The moves of a row, from the mover's half alone, by pit.
pub fn row_moves(half: &Half) -> impl Iterator<Item = RowMove> + use<> {
    let half = *half;
    (0..HALF_PITS).filter(move |&pit| half[pit] > 0).map(move |pit| row_move(&half, pit))
}

fn row_move(half: &Half, pit: usize) -> RowMove {
    let mut after = *half;
    let mut hand = std::mem::take(&mut after[pit]);
    let own = (HALF_PITS - 1 - pit) as u8;
    if hand <= own + HALF_PITS as u8 {
        // No pit gains two stones.
        after.iter_mut().skip(pit + 1).zip(0..hand).for_each(|(stones, _)| *stones += 1);
        let ends = if hand <= own { Ends::Mover } else { Ends::Opponent };
        return RowMove { pit: pit as u8, class: SowClass { crossing: hand.saturating_sub(own), ends }, half: after };
    }
    let mut crossing = 0;
    let mut ends = Ends::Mover;
    let mut next = pit + 1;
    while hand > 0 {
        for (own, stones) in after.iter_mut().enumerate().skip(next) {
            if own != pit && hand > 0 {
                *stones += 1;
                hand -= 1;
                ends = Ends::Mover;
            }
        }
        let crossed = hand.min(HALF_PITS as u8);
        if crossed > 0 {
            crossing += crossed;
            hand -= crossed;
            ends = Ends::Opponent;
        }
        next = 0;
    }
    RowMove { pit: pit as u8, class: SowClass { crossing, ends }, half: after }
}

impl SowMap {
    /// The map of a class for rows whose opponent has `stones` stones.
    ///
    /// # Panics
    /// When `halves` has no table for `stones`.
    pub fn new(rules: &Rules, halves: &Halves, set: PositionSet, stones: u32, class: SowClass) -> SowMap {
        let all = (0..Halves::count(stones)).map(|number| halves.unrank(stones, number));
        let columns = all.filter(|half| set == PositionSet::All || half.contains(&0));
        let count = set.opponent_halves(stones) as usize;
        let gain = class.gain();
        let mut map =
            SowMap { targets: Vec::with_capacity(count), quiet: vec![0; count.div_ceil(64)], ..SowMap::default() };
        for before in columns {
            let column = map.targets.len() as u32;
            let mut after: Half = std::array::from_fn(|pit| before[pit] + gain[pit]);
            map.targets.push(Halves::rank(&after));
            match class.capture(rules, &mut after) {
                (SowEffect::Quiet, _) => map.quiet[column as usize / 64] |= 1 << (column % 64),
                (SowEffect::Captures, captured) => {
                    map.captures.push(Capture { column, captured, child: Halves::rank(&after) });
                }
                (SowEffect::Starves, _) => map.starves.push(column),
                (SowEffect::Forbidden, _) => map.forbidden.push(column),
            }
        }
        map.captures.sort_by_key(|capture| (capture.captured, capture.column));
        map
    }

    /// Whether the move captures nothing and leaves the opponent stones on this column.
    pub fn is_quiet(&self, column: u32) -> bool {
        self.quiet[column as usize / 64] >> (column % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Board, Index, Pit, Slam};

    /// Compares the row moves of a board with single-board sowing.
    fn agree(rules: &Rules, index: &Index, board: &Board) {
        let (mover, opponent) = (board.mover(), board.opponent());
        let opponent_stones = opponent.iter().map(|&s| u32::from(s)).sum();
        let Some(column) = index.rank_opponent(&opponent) else { return };
        for row_move in row_moves(&mover) {
            let pit = Pit::new(row_move.pit).expect("a row move has a pit");
            let played = board.play_unchecked(rules, pit);
            assert_eq!(played.child.opponent(), row_move.half, "{board:?} {pit}");
            let map = SowMap::new(rules, index.halves(), index.set(), opponent_stones, row_move.class);
            let capture = map.captures.iter().find(|capture| capture.column == column);
            let illegal = [&map.starves, &map.forbidden].map(|columns| columns.contains(&column));
            let is_slam = rules.slam == Slam::Capture && played.captured > 0;
            if played.child.mover_starves() && !is_slam {
                let is_forbidden = rules.slam == Slam::Illegal && played.captured > 0;
                assert_eq!(illegal, [!is_forbidden, is_forbidden]);
                assert!(capture.is_none() && !map.is_quiet(column));
            } else if played.captured > 0 {
                let capture = capture.expect("the column captures");
                assert!(!map.is_quiet(column) && illegal == [false; 2]);
                assert_eq!(capture.captured, played.captured);
                assert_eq!(capture.child, Halves::rank(&played.child.mover()));
            } else {
                assert!(map.is_quiet(column) && capture.is_none() && illegal == [false; 2]);
                assert_eq!(map.targets[column as usize], Halves::rank(&played.child.mover()));
            }
        }
    }

    #[test]
    fn rows_agree_with_boards() {
        for set in [PositionSet::All, PositionSet::REACHABLE] {
            for (stones, rules) in (0..=5).flat_map(|stones| Rules::KNOWN.iter().map(move |rules| (stones, rules))) {
                let index = Index::new(stones, set);
                for position in 0..index.positions() {
                    agree(rules, &index, &index.unrank(position, crate::Orientation::MoverMajor));
                }
            }
        }
    }

    #[test]
    fn laps_agree_with_boards() {
        for set in [PositionSet::All, PositionSet::REACHABLE] {
            let index = Index::new(20, set);
            for board in [
                [0, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0],
                [19, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0],
                [0, 0, 18, 0, 0, 0, 0, 1, 1, 0, 0, 0],
                [0, 0, 0, 0, 13, 0, 1, 2, 1, 0, 2, 1],
                [12, 0, 0, 2, 0, 0, 0, 0, 0, 0, 2, 4],
            ] {
                Rules::KNOWN.iter().for_each(|rules| agree(rules, &index, &Board(board)));
            }
        }
    }

    #[test]
    fn classes_have_dense_numbers() {
        assert_eq!(SowClass::COUNT, 98);
        let classes = (0..=STONES_MAX as u8)
            .flat_map(|crossing| [Ends::Mover, Ends::Opponent].map(|ends| SowClass { crossing, ends }));
        assert!(classes.clone().map(SowClass::number).eq(0..SowClass::COUNT));
        assert!(classes.eq((0..SowClass::COUNT).map(SowClass::from_number)));
    }

    #[test]
    fn rows_have_a_move_for_each_pit_with_stones() {
        let halves = Halves::new(8);
        for number in 0..Halves::count(8) {
            let half = halves.unrank(8, number);
            let pits: Vec<usize> = (0..HALF_PITS).filter(|&pit| half[pit] != 0).collect();
            assert!(row_moves(&half).map(|row_move| usize::from(row_move.pit)).eq(pits), "{half:?}");
        }
    }

    #[test]
    fn classes_that_occur_are_those_of_some_move() {
        const CROSSING_MAX: u8 = 20;
        let heaps = (0..HALF_PITS).flat_map(|pit| (1..=STONES_MAX as u8).map(move |stones| (pit, stones)));
        let mut seen = [None; SowClass::COUNT];
        for (pit, stones) in heaps {
            let mut half = [0; HALF_PITS];
            half[pit] = stones;
            for row_move in row_moves(&half) {
                let least = &mut seen[row_move.class.number()];
                *least = Some(u32::from(stones).min(least.unwrap_or(u32::MAX)));
            }
        }
        let classes = (0..SowClass::COUNT).map(SowClass::from_number).filter(|class| class.crossing <= CROSSING_MAX);
        for class in classes {
            assert_eq!(class.occurs(), seen[class.number()].is_some(), "{class:?}");
            assert_eq!(class.stones_min(), seen[class.number()], "{class:?}");
        }
    }

    #[test]
    fn targets_increase() {
        let halves = Halves::new(12);
        for set in [PositionSet::All, PositionSet::REACHABLE] {
            for number in 0..2 * 36 {
                let map = SowMap::new(&Rules::AWARI, &halves, set, 12, SowClass::from_number(number));
                assert!(map.targets.is_sorted_by(|a, b| a < b));
            }
        }
    }
}
