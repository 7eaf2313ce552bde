//! Positions, moves and un-moves.
//!
//! The mover owns pits 0..6 (A..F, left to right from the mover's seat), the opponent pits 6..12 (a..f). After a move
//! the board is turned, so a `Board` is always seen from the player to move.

use crate::half::{HALF_PITS, Half};
use crate::rules::{RepetitionRule, RestOwner, Rules, Score, Slam, SowEffect};
use std::fmt;
use thiserror::Error;

/// A position: the stones in the twelve pits, the mover's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Board(pub [u8; 12]);

/// One of the mover's pits: 0 to 5 for A to F.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pit(u8);

/// The result of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played {
    /// The position after the move, seen from the opponent, who moves next.
    pub child: Board,
    /// The number of stones captured.
    pub captured: u8,
}

/// The legal moves of a position, in the order A to F. See [`Board::moves`].
#[derive(Clone, Debug)]
pub struct LegalMoves {
    /// The result of a move from each pit that holds stones.
    played: [Played; 6],
    /// The pits whose moves are legal and not returned yet, one bit each.
    left: u8,
}

/// The reason why a move is illegal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Illegal {
    /// The pit is empty.
    #[error("pit {0} is empty")]
    Empty(Pit),
    /// The opponent would be left without stones although another move leaves it some, or by rules that never allow it.
    #[error("pit {0} would leave the opponent without stones")]
    Starves(Pit),
    /// All of the opponent's stones would be captured, which the rules forbid.
    #[error("pit {0} would capture all of the opponent's stones")]
    Slam(Pit),
}

impl Pit {
    /// All pits, A to F.
    pub const ALL: [Pit; 6] = [Pit(0), Pit(1), Pit(2), Pit(3), Pit(4), Pit(5)];

    /// The pit of this number, 0 to 5.
    pub const fn new(number: u8) -> Option<Pit> {
        if number < 6 { Some(Pit(number)) } else { None }
    }

    /// The number of the pit, 0 to 5.
    pub const fn number(self) -> usize {
        self.0 as usize
    }
}

impl Iterator for LegalMoves {
    type Item = (Pit, Played);

    #[inline]
    fn next(&mut self) -> Option<(Pit, Played)> {
        let pit = Pit::new(self.left.trailing_zeros() as u8)?;
        self.left &= self.left - 1;
        Some((pit, self.played[pit.number()]))
    }
}

impl fmt::Display for Pit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", (b'A' + self.0) as char)
    }
}

impl Board {
    /// The opening position: four stones in every pit.
    pub const OPENING: Board = Board([4; 12]);

    /// Joins two halves to a board.
    pub fn from_halves(mover: Half, opponent: Half) -> Board {
        let mut pits = [0; 12];
        pits[..HALF_PITS].copy_from_slice(&mover);
        pits[HALF_PITS..].copy_from_slice(&opponent);
        Board(pits)
    }

    /// The mover's pits A to F.
    pub fn mover(&self) -> Half {
        [self.0[0], self.0[1], self.0[2], self.0[3], self.0[4], self.0[5]]
    }

    /// The opponent's pits a to f.
    pub fn opponent(&self) -> Half {
        [self.0[6], self.0[7], self.0[8], self.0[9], self.0[10], self.0[11]]
    }

    /// Stones on the board.
    pub fn stones(&self) -> u32 {
        self.0.iter().map(|&stones| u32::from(stones)).sum()
    }

    /// The same position seen from the other player.
    pub fn turned(&self) -> Board {
        Board::from_halves(self.opponent(), self.mover())
    }

    /// Whether all six of the opponent's pits hold stones: no move leads to such a position.
    pub fn opponent_full(&self) -> bool {
        self.0[HALF_PITS..].iter().all(|&stones| stones > 0)
    }

    /// Plays a move after checking that it is legal.
    pub fn play(&self, rules: &Rules, pit: Pit) -> Result<Played, Illegal> {
        if self.0[pit.number()] == 0 {
            return Err(Illegal::Empty(pit));
        }
        match self.sow(rules, pit) {
            (_, SowEffect::Forbidden) => Err(Illegal::Slam(pit)),
            (_, SowEffect::Starves) if !rules.excuses_from_feeding() || self.can_feed(rules) => {
                Err(Illegal::Starves(pit))
            }
            (played, _) => Ok(played),
        }
    }

    /// Plays a move from a pit that holds stones, legal or not.
    pub fn play_unchecked(&self, rules: &Rules, pit: Pit) -> Played {
        self.sow(rules, pit).0
    }

    fn sow(&self, rules: &Rules, pit: Pit) -> (Played, SowEffect) {
        let (pits, last) = sown(&self.0, pit.number());
        let sown = Board(pits);
        let mut half = sown.opponent();
        let (effect, captured) = rules.capture(&mut half, last.checked_sub(HALF_PITS));
        (Played { child: Board::from_halves(half, sown.mover()), captured }, effect)
    }

    /// The legal moves, in the order A to F.
    pub fn moves(&self, rules: &Rules) -> LegalMoves {
        let mut played = [Played { child: *self, captured: 0 }; 6];
        let (mut feeding, mut starving) = (0u8, 0u8);
        for pit in Pit::ALL {
            if self.0[pit.number()] > 0 {
                let (after, effect) = self.sow(rules, pit);
                played[pit.number()] = after;
                match effect {
                    SowEffect::Quiet | SowEffect::Captures => feeding |= 1 << pit.number(),
                    SowEffect::Starves => starving |= 1 << pit.number(),
                    SowEffect::Forbidden => (),
                }
            }
        }
        let may_starve = feeding == 0 && rules.excuses_from_feeding();
        LegalMoves { played, left: if may_starve { starving } else { feeding } }
    }

    /// The positions from which a legal move without a capture leads here, with the pit of the move.
    ///
    /// The un-moves of Bal & Allis 1995 (section 3): from each possible origin, one more stone at a time is taken back.
    pub fn unmoves(&self, rules: &Rules) -> Vec<(Pit, Board)> {
        let after = self.turned().0;
        let mut parents = Vec::new();
        for pit in Pit::ALL {
            let origin = pit.number();
            // Sowing skips the origin, so it is empty afterwards.
            if after[origin] != 0 {
                continue;
            }
            let mut before = after;
            let mut at = origin;
            let mut sown_stones = 0u8;
            loop {
                at = (at + 1) % 12;
                if at == origin {
                    continue;
                }
                if before[at] == 0 {
                    break;
                }
                before[at] -= 1;
                sown_stones += 1;
                let mut parent = before;
                parent[origin] = sown_stones;
                let parent = Board(parent);
                if parent.play(rules, pit) == Ok(Played { child: *self, captured: 0 }) {
                    parents.push((pit, parent));
                }
            }
        }
        parents
    }

    /// Whether a move is a slam: whether it would capture all of the opponent's stones, were that allowed.
    pub fn offers_slam(&self, rules: &Rules) -> bool {
        let rules = Rules { slam: Slam::Capture, ..*rules };
        let mut pits = Pit::ALL.into_iter().filter(|pit| self.0[pit.number()] > 0);
        pits.any(|pit| {
            let Played { child, captured } = self.play_unchecked(&rules, pit);
            captured > 0 && child.mover_starves()
        })
    }

    /// Whether the mover has no stones, and so no move.
    pub fn mover_starves(&self) -> bool {
        self.0[..HALF_PITS].iter().all(|&stones| stones == 0)
    }

    /// Whether a move leaves the opponent stones, or captures them all by rules that allow it.
    fn can_feed(&self, rules: &Rules) -> bool {
        let mut pits = Pit::ALL.into_iter().filter(|pit| self.0[pit.number()] > 0);
        pits.any(|pit| matches!(self.sow(rules, pit).1, SowEffect::Quiet | SowEffect::Captures))
    }
}

impl Rules {
    /// The score of a position whose mover has no move.
    pub fn terminal_score(&self, board: &Board) -> Score {
        let stones = |half: Half| half.iter().map(|&stones| u32::from(stones)).sum::<u32>() as Score;
        self.rest_score(stones(board.mover()), stones(board.opponent()))
    }

    /// The score of a position that is repeated.
    pub fn repetition_score(&self, board: &Board) -> Score {
        match self.repetition {
            RepetitionRule::Split => 0,
            RepetitionRule::OwnSide => Rules { rest: RestOwner::OwnSide, ..*self }.terminal_score(board),
        }
    }
}

/// By origin and pit: which stone of a sowing falls there first, the first one being 1. None falls into the
/// origin: `u8::MAX`.
const DISTANCES: [[u8; 12]; 6] = distances();

const fn distances() -> [[u8; 12]; 6] {
    let mut table = [[u8::MAX; 12]; 6];
    let mut origin = 0;
    while origin < 6 {
        let mut distance = 1;
        while distance < 12 {
            table[origin][(origin + distance) % 12] = distance as u8;
            distance += 1;
        }
        origin += 1;
    }
    table
}

/// The pits after sowing from `origin`, which holds stones, and where the last stone fell.
#[inline]
fn sown(pits: &[u8; 12], origin: usize) -> ([u8; 12], usize) {
    // A lap has eleven pits.
    let (laps, rest) = (pits[origin] / 11, pits[origin] % 11);
    let mut after = *pits;
    for (pit, distance) in after.iter_mut().zip(DISTANCES[origin]) {
        // Without branches, and without a check of what 48 stones cannot do, so that vector instructions serve.
        let sown = pit.wrapping_add(laps).wrapping_add(u8::from(distance <= rest));
        *pit = if distance == u8::MAX { 0 } else { sown };
    }
    let last = if rest == 0 { 11 } else { usize::from(rest) };
    (after, (origin + last) % 12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{self, Pits, Positions, ReferenceMove};

    /// All small boards, and some with a pit from which a move laps.
    fn boards() -> impl Iterator<Item = Pits> {
        let with_heap = |pits: Pits, pit: usize, more: u8| {
            let mut pits = pits;
            pits[pit] += more;
            pits
        };
        let laps = (0..=3).flat_map(reference::boards).flat_map(move |pits| {
            (0..HALF_PITS).flat_map(move |pit| [10, 11, 12, 22, 30].map(|more| with_heap(pits, pit, more)))
        });
        (0..=6).flat_map(reference::boards).chain(laps)
    }

    #[test]
    fn moves_are_those_of_the_slow_twin() {
        for rules in &Rules::KNOWN {
            boards().for_each(|pits| agree(rules, pits));
        }
    }

    fn agree(rules: &Rules, pits: Pits) {
        let board = Board(pits);
        let expected = reference::moves_by(rules, pits);
        for (pit, expected) in Pit::ALL.into_iter().zip(expected) {
            match (expected, board.play(rules, pit)) {
                (ReferenceMove::Empty, found) => assert_eq!(found, Err(Illegal::Empty(pit)), "{pits:?}"),
                (ReferenceMove::Starves, found) => assert_eq!(found, Err(Illegal::Starves(pit)), "{pits:?}"),
                (ReferenceMove::Slam, found) => assert_eq!(found, Err(Illegal::Slam(pit)), "{pits:?}"),
                (ReferenceMove::Legal { captured, child }, found) => {
                    assert_eq!(found, Ok(Played { child: Board(child), captured }), "{pits:?} {pit} {}", rules.name);
                }
            }
            if let Some((captured, child)) = reference::sow_by(rules, pits, pit.number()) {
                let found = board.play_unchecked(rules, pit);
                assert_eq!(found, Played { child: Board(child), captured }, "{pits:?} {pit} {}", rules.name);
            }
        }
        let legal = Pit::ALL.into_iter().zip(expected).filter_map(|(pit, played)| match played {
            ReferenceMove::Legal { captured, child } => Some((pit, Played { child: Board(child), captured })),
            _ => None,
        });
        assert!(board.moves(rules).eq(legal), "{pits:?} {}", rules.name);
    }

    #[test]
    fn unmoves_are_those_of_the_slow_twin() {
        for rules in &Rules::KNOWN {
            // Children of these boards: positions that laps lead to have more un-moves.
            let children = boards().flat_map(|pits| {
                reference::moves_by(rules, pits).into_iter().filter_map(|played| match played {
                    ReferenceMove::Legal { child, .. } => Some(child),
                    _ => None,
                })
            });
            let mut found_any = 0;
            for pits in boards().chain(children.step_by(7)).step_by(3) {
                let mut found: Vec<_> =
                    Board(pits).unmoves(rules).into_iter().map(|(pit, parent)| (pit.number(), parent.0)).collect();
                found.sort_unstable();
                let mut expected = reference::unmoves_by(rules, pits);
                expected.sort_unstable();
                assert_eq!(found, expected, "{pits:?} {}", rules.name);
                found_any += found.len();
            }
            assert!(found_any > 3_000, "{found_any}");
        }
    }

    #[test]
    fn who_cannot_move_loses_the_rest_or_keeps_the_own_side() {
        let board = Board([0, 0, 3, 0, 0, 0, 1, 2, 0, 1, 0, 0]);
        assert_eq!(Rules::SLAM_ILLEGAL.terminal_score(&board), -7);
        assert_eq!(Rules::SLAM_ILLEGAL_OWN_SIDE.terminal_score(&board), -1);
        let empty = Board([0, 0, 0, 0, 0, 0, 1, 2, 0, 4, 0, 0]);
        for rules in Rules::KNOWN {
            assert_eq!(rules.terminal_score(&empty), -7);
        }
    }

    #[test]
    fn a_full_opponent_is_unreachable() {
        for pits in boards() {
            let board = Board(pits);
            assert_eq!(board.opponent_full(), pits[6..].iter().all(|&stones| stones != 0), "{pits:?}");
            assert_eq!(board.opponent_full(), !reference::contains(Positions::Reachable, pits), "{pits:?}");
            assert_eq!(board.mover_starves(), pits[..6] == [0; 6], "{pits:?}");
            assert_eq!(board.turned().turned(), board);
            assert_eq!(Board::from_halves(board.opponent(), board.mover()), board.turned());
        }
        assert!(Board::OPENING.opponent_full());
    }
}
