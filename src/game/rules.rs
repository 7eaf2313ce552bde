//! The rules as data.
//!
//! Only [`crate::Board`] and the table builder in [`crate::sow`] evaluate a `Rules`; kernels read masks and lists.

use crate::{Board, Score, Slab};
use std::ops::Range;

/// The parameters of sowing games of this family, and the identity of a database.
///
/// The rest is fixed: sowing is counter-clockwise and skips the origin of a lap; a repetition shares out the remaining
/// stones (score 0); a move that leaves the opponent without stones is illegal unless every move does; a player without
/// stones cannot move and loses the remaining stones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    /// The name that manifests and file headers carry.
    pub name: &'static str,
    /// The fewest stones at which an opponent's pit is captured.
    pub capture_low: u8,
    /// The most stones at which an opponent's pit is captured.
    pub capture_high: u8,
}

impl Rules {
    /// Awari as in Bal & Allis 1995, Lincke 2002 (appendix A) and Romein & Bal 2002 (section 2).
    pub const AWARI: Rules = Rules { name: "awari", capture_low: 2, capture_high: 3 };

    /// All rules that this build knows.
    pub const KNOWN: [Rules; 1] = [Rules::AWARI];

    /// The rules of this name.
    pub fn by_name(name: &str) -> Option<Rules> {
        Rules::KNOWN.into_iter().find(|rules| rules.name == name)
    }

    /// Whether a pit holding `stones` is captured when the last stone fell there.
    #[inline]
    pub const fn captures(&self, stones: u8) -> bool {
        self.capture_low <= stones && stones <= self.capture_high
    }

    /// The stones of the databases that captures from `stones` stones lead to.
    pub fn smaller(&self, stones: u32) -> Range<u32> {
        0..(stones + 1).saturating_sub(u32::from(self.capture_low))
    }

    /// The score of a position whose mover has no move: the opponent takes all.
    pub fn terminal_score(&self, board: &Board) -> Score {
        -(board.stones() as Score)
    }

    /// As [`terminal_score`](Self::terminal_score), for the positions of a slab.
    pub fn terminal_score_in(&self, slab: &Slab) -> Score {
        -((slab.mover_stones + slab.opponent_stones) as Score)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_names() {
        assert_eq!(Rules::by_name("awari"), Some(Rules::AWARI));
        assert_eq!(Rules::by_name("oware"), None);
    }

    #[test]
    fn twos_and_threes_are_captured() {
        let rules = Rules::AWARI;
        let captured: Vec<u8> = (0..=48).filter(|&stones| rules.captures(stones)).collect();
        assert_eq!(captured, [2, 3]);
        let smaller = [0, 1, 2, 3, 10].map(|stones| rules.smaller(stones));
        assert_eq!(smaller, [0..0, 0..0, 0..1, 0..2, 0..9]);
        assert_eq!(rules.terminal_score(&Board([0, 0, 0, 0, 0, 0, 1, 2, 0, 4, 0, 0])), -7);
    }
}
