//! The rules as data.
//!
//! Only this crate and the table builder ([`crate::sow`]) evaluate a `Rules`; kernels read masks and lists.
//!
//! The parameters are those by which collections of mancala rules tell games of this family apart.

use crate::half::{HALF_PITS, Half};
use std::fmt;
use std::ops::Range;

/// A score: the stones on the board that the player to move will capture, minus those that the opponent will.
pub type Score = i8;

/// The parameters of sowing games of this family, and the identity of a database.
///
/// The rest is fixed: sowing is counter-clockwise and skips the origin of a lap; a move that captures nothing
/// and leaves the opponent without stones is illegal unless no legal move leaves it some (the duty to feed;
/// see [`RestOwner`] for what happens then).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    /// The name that manifests and file headers carry.
    pub name: &'static str,
    /// The fewest stones at which an opponent's pit is captured.
    pub capture_low: u8,
    /// The most stones at which an opponent's pit is captured.
    pub capture_high: u8,
    /// What becomes of a move that captures all of the opponent's stones.
    pub slam: Slam,
    /// Who gets the stones on the board when the player to move cannot move.
    pub rest: RestOwner,
    /// What a repeated position does to the stones on the board.
    pub repetition: RepetitionRule,
}

/// What becomes of a *slam*, a move that captures all of the opponent's stones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slam {
    /// Illegal unless no legal move leaves the opponent stones; then it is played, and all stones are the mover's.
    IllegalUnlessAll,
    /// Legal, and captures nothing.
    NoCapture,
    /// Legal, and captures.
    Capture,
    /// Illegal.
    Illegal,
    /// Legal; the pit captured first, in which the last stone fell, keeps its stones.
    LeaveFirst,
    /// Legal; the pit captured last keeps its stones.
    LeaveLast,
}

/// Who gets the stones on the board when the player to move cannot move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RestOwner {
    /// The opponent of the player to move. A player who can give an opponent without stones none makes any
    /// move; the opponent then cannot move.
    Opponent,
    /// Each player gets the stones on the own side. A player who can give an opponent without stones none cannot move.
    OwnSide,
}

/// What a repeated position does to the stones on the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RepetitionRule {
    /// They are shared equally: a score of 0.
    Split,
    /// Each player gets the stones on the own side. A board has no score then, but bounds.
    OwnSide,
}

impl fmt::Display for Slam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Slam::IllegalUnlessAll => "illegal-unless-all",
            Slam::NoCapture => "no-capture",
            Slam::Capture => "capture",
            Slam::Illegal => "illegal",
            Slam::LeaveFirst => "leave-first",
            Slam::LeaveLast => "leave-last",
        })
    }
}

impl fmt::Display for RestOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RestOwner::Opponent => "opponent",
            RestOwner::OwnSide => "own-side",
        })
    }
}

impl fmt::Display for RepetitionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RepetitionRule::Split => "split",
            RepetitionRule::OwnSide => "own-side",
        })
    }
}

/// What a sowing does to the opponent's half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SowEffect {
    /// It captures nothing, and leaves stones.
    Quiet,
    /// A legal capture.
    Captures,
    /// It leaves no stones: illegal unless every other move is of this kind or illegal.
    Starves,
    /// It is illegal.
    Forbidden,
}

impl Rules {
    /// Awari as in Bal & Allis 1995, Lincke 2002 (appendix A) and Romein & Bal 2002 (section 2).
    pub const AWARI: Rules = Rules {
        name: "awari",
        capture_low: 2,
        capture_high: 3,
        slam: Slam::IllegalUnlessAll,
        rest: RestOwner::Opponent,
        repetition: RepetitionRule::Split,
    };

    /// Awari with the traditional slam, which captures nothing: asked for by Donkers 2002 (ICGA Journal 25(3)).
    pub const WARI: Rules = Rules { name: "wari", slam: Slam::NoCapture, ..Rules::AWARI };

    /// Awari with a slam that captures all.
    pub const SLAM_CAPTURE: Rules = Rules { name: "slam-capture", slam: Slam::Capture, ..Rules::AWARI };

    /// Awari with a slam that is illegal even if there is no other move; the opponent then gets the rest.
    pub const SLAM_ILLEGAL: Rules = Rules { name: "slam-illegal", slam: Slam::Illegal, ..Rules::AWARI };

    /// As [`Rules::SLAM_ILLEGAL`], but each player gets the stones on the own side when the player to move cannot move.
    pub const SLAM_ILLEGAL_OWN_SIDE: Rules =
        Rules { name: "slam-illegal-own-side", rest: RestOwner::OwnSide, ..Rules::SLAM_ILLEGAL };

    /// Awari with a slam that leaves the pit captured first.
    pub const SLAM_LEAVE_FIRST: Rules = Rules { name: "slam-leave-first", slam: Slam::LeaveFirst, ..Rules::AWARI };

    /// Awari with a slam that leaves the pit captured last.
    pub const SLAM_LEAVE_LAST: Rules = Rules { name: "slam-leave-last", slam: Slam::LeaveLast, ..Rules::AWARI };

    /// Oware (abapa) as the Oware Society and the Mind Sports Olympiad play it.
    pub const OWARE: Rules =
        Rules { name: "oware", rest: RestOwner::OwnSide, repetition: RepetitionRule::OwnSide, ..Rules::WARI };

    /// The rules by which databases can be built.
    pub const KNOWN: [Rules; 8] = [
        Rules::AWARI,
        Rules::WARI,
        Rules::SLAM_CAPTURE,
        Rules::SLAM_ILLEGAL,
        Rules::SLAM_ILLEGAL_OWN_SIDE,
        Rules::SLAM_LEAVE_FIRST,
        Rules::SLAM_LEAVE_LAST,
        Rules::OWARE,
    ];

    /// The known rules by which a board has a score: all but those of oware.
    pub fn with_scores() -> impl DoubleEndedIterator<Item = Rules> + Clone {
        Rules::KNOWN.into_iter().filter(Rules::has_scores)
    }

    /// The rules of this name, by which databases can be built.
    pub fn by_name(name: &str) -> Option<Rules> {
        Rules::KNOWN.into_iter().find(|rules| rules.name == name)
    }

    /// Whether a board has a score. Where a repetition gives each player the stones on the own side, what it
    /// yields depends on where it happens, and a board has two bounds: what the player to move can force, and
    /// to what the opponent can hold that player.
    pub const fn has_scores(&self) -> bool {
        matches!(self.repetition, RepetitionRule::Split)
    }

    /// Describes the rules in words.
    pub fn text(&self) -> String {
        let slam = match self.slam {
            Slam::IllegalUnlessAll => "a move that leaves the opponent no stones is illegal unless all do",
            Slam::NoCapture => "a move that would capture all of the opponent's stones captures nothing",
            Slam::Capture => "a move may capture all of the opponent's stones",
            Slam::Illegal => "a move that would capture all of the opponent's stones is illegal",
            Slam::LeaveFirst => "a move that would capture all of the opponent's stones leaves the pit captured first",
            Slam::LeaveLast => "a move that would capture all of the opponent's stones leaves the pit captured last",
        };
        let feed = match (self.slam, self.rest) {
            (Slam::IllegalUnlessAll, _) => "",
            (_, RestOwner::Opponent) => "; an opponent without stones must be given some if possible",
            (_, RestOwner::OwnSide) => "; an opponent without stones must be given some",
        };
        let repetition = match self.repetition {
            RepetitionRule::Split => "a repeated position shares the remaining stones",
            RepetitionRule::OwnSide => "at a repeated position each player gets the stones on the own side",
        };
        let rest = match self.rest {
            RestOwner::Opponent => "a player who cannot move loses them",
            RestOwner::OwnSide => "when a player cannot move, each gets the stones on the own side",
        };
        let Rules { capture_low, capture_high, .. } = self;
        let bounds = if self.has_scores() {
            ""
        } else {
            "; so a board has two numbers: what the player to move can force, and to what the opponent can hold that player"
        };
        let to = if capture_high - capture_low > 1 { "to" } else { "or" };
        format!("Capture {capture_low} {to} {capture_high}; {slam}{feed}; {repetition}; {rest}{bounds}")
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

    /// Whether a move may leave the opponent without stones where no other one leaves it some.
    pub(crate) const fn excuses_from_feeding(&self) -> bool {
        matches!(self.rest, RestOwner::Opponent)
    }

    /// The score of a position whose mover has no move, where the players have these stones on their sides.
    pub(crate) fn rest_score(&self, mover: Score, opponent: Score) -> Score {
        match self.rest {
            RestOwner::Opponent => -(mover + opponent),
            RestOwner::OwnSide => mover - opponent,
        }
    }

    /// Removes the stones that a sowing captures from the opponent's half after it, `half`; `last` is the
    /// opponent's pit in which the last stone fell. Of an illegal slam all stones are removed. Returns the
    /// effect, and the number of captured stones.
    #[inline]
    pub(crate) fn capture(&self, half: &mut Half, last: Option<usize>) -> (SowEffect, u8) {
        let mut captured = 0;
        let mut end = last.map_or(0, |last| last + 1);
        let sown = *half;
        while end > 0 && self.captures(half[end - 1]) {
            end -= 1;
            captured += std::mem::take(&mut half[end]);
        }
        if *half != [0; HALF_PITS] {
            let effect = if captured == 0 { SowEffect::Quiet } else { SowEffect::Captures };
            return (effect, captured);
        }
        let Some(last) = last.filter(|_| captured > 0) else { return (SowEffect::Starves, 0) };
        let kept = match self.slam {
            Slam::IllegalUnlessAll => return (SowEffect::Starves, captured),
            Slam::Illegal => return (SowEffect::Forbidden, captured),
            Slam::Capture => return (SowEffect::Captures, captured),
            Slam::NoCapture => end..last + 1,
            Slam::LeaveFirst => last..last + 1,
            Slam::LeaveLast => end..end + 1,
        };
        half[kept.clone()].copy_from_slice(&sown[kept.clone()]);
        captured -= sown[kept].iter().sum::<u8>();
        (if captured == 0 { SowEffect::Quiet } else { SowEffect::Captures }, captured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_names() {
        assert_eq!(Rules::by_name("awari"), Some(Rules::AWARI));
        assert_eq!(Rules::by_name("wari"), Some(Rules::WARI));
        assert_eq!(Rules::by_name("kalah"), None);
        for (at, rules) in Rules::KNOWN.iter().enumerate() {
            assert!(rules.name.len() < 32, "the field of a file header");
            assert!(Rules::KNOWN[..at].iter().all(|other| other.name != rules.name && other != rules));
        }
    }

    #[test]
    fn twos_and_threes_are_captured() {
        let rules = Rules::AWARI;
        let captured: Vec<u8> = (0..=48).filter(|&stones| rules.captures(stones)).collect();
        assert_eq!(captured, [2, 3]);
        let smaller = [0, 1, 2, 3, 10].map(|stones| rules.smaller(stones));
        assert_eq!(smaller, [0..0, 0..0, 0..1, 0..2, 0..9]);
    }

    /// A sowing that ends in pit c with 2, 3 and 2 stones in a to c, and nothing elsewhere.
    #[test]
    fn a_slam_is_what_the_rules_say() {
        let check = |rules: Rules, effect, captured, left| {
            let mut half = [2, 3, 2, 0, 0, 0];
            assert_eq!(rules.capture(&mut half, Some(2)), (effect, captured), "{}", rules.name);
            assert_eq!(half, left, "{}", rules.name);
        };
        check(Rules::AWARI, SowEffect::Starves, 7, [0; 6]);
        check(Rules::WARI, SowEffect::Quiet, 0, [2, 3, 2, 0, 0, 0]);
        check(Rules::SLAM_CAPTURE, SowEffect::Captures, 7, [0; 6]);
        check(Rules::SLAM_ILLEGAL, SowEffect::Forbidden, 7, [0; 6]);
        check(Rules::SLAM_LEAVE_FIRST, SowEffect::Captures, 5, [0, 0, 2, 0, 0, 0]);
        check(Rules::SLAM_LEAVE_LAST, SowEffect::Captures, 5, [2, 0, 0, 0, 0, 0]);
        // With a stone that stays, no rules differ.
        for rules in Rules::KNOWN {
            let mut half = [2, 3, 2, 0, 1, 0];
            assert_eq!(rules.capture(&mut half, Some(2)), (SowEffect::Captures, 7));
            assert_eq!(half, [0, 0, 0, 0, 1, 0]);
            assert_eq!(rules.capture(&mut [0; 6], None), (SowEffect::Starves, 0));
        }
    }
}
