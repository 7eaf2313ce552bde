//! Bounds of a score, which are equal if the score is known.

use game::Score;
use std::fmt;

/// A score between two bounds, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    low: Score,
    high: Score,
}

impl Bounds {
    /// Makes the bounds of a known score.
    pub fn exact(score: Score) -> Bounds {
        Bounds { low: score, high: score }
    }

    /// Makes the bounds of a score.
    ///
    /// # Panics
    /// If `low` exceeds `high`.
    pub fn new(low: Score, high: Score) -> Bounds {
        assert!(low <= high, "no score lies between {low} and {high}");
        Bounds { low, high }
    }

    /// Returns the widest bounds of a position with this number of stones: no player wins more than all of them.
    pub fn anything(stones: u32) -> Bounds {
        let most = Score::try_from(stones).unwrap_or(Score::MAX);
        Bounds { low: -most, high: most }
    }

    /// Returns the intersection of two bounds; `self` if they contradict each other.
    #[must_use]
    pub fn and(self, other: Bounds) -> Bounds {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        if low <= high { Bounds { low, high } } else { self }
    }

    /// Returns the lower bound.
    pub fn low(self) -> Score {
        self.low
    }

    /// Returns the upper bound.
    pub fn high(self) -> Score {
        self.high
    }

    /// Returns the score, if it is known.
    pub fn score(self) -> Option<Score> {
        (self.low == self.high).then_some(self.low)
    }

    /// Returns the number within the bounds that is nearest to what a search expects, both in hundredths of a
    /// stone; `None` if the score is known.
    pub(crate) fn estimate(self, expected: i32) -> Option<i32> {
        let known = self.score().is_some();
        (!known).then(|| expected.clamp(i32::from(self.low) * 100, i32::from(self.high) * 100))
    }

    /// Returns the value of a move that captures `captured` stones and leads to a position with these bounds.
    pub fn after_capture(self, captured: u8) -> Bounds {
        let captured = captured as Score;
        Bounds { low: captured - self.high, high: captured - self.low }
    }

    /// Returns the bounds of the better of two moves.
    pub fn max(self, other: Bounds) -> Bounds {
        Bounds { low: self.low.max(other.low), high: self.high.max(other.high) }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signed = |score: Score| if score == 0 { "0".to_owned() } else { format!("{score:+}") };
        match self.score() {
            Some(score) => f.pad(&signed(score)),
            None => f.pad(&format!("{} to {}", signed(self.low), signed(self.high))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic() {
        let child = Bounds::new(-2, 5);
        assert_eq!(child.after_capture(3), Bounds::new(-2, 5));
        assert_eq!(child.after_capture(0), Bounds::new(-5, 2));
        assert_eq!(Bounds::exact(1).max(Bounds::new(-3, 2)), Bounds::new(1, 2));
        assert_eq!(Bounds::exact(4).score(), Some(4));
        assert_eq!(child.score(), None);
        assert_eq!(Bounds::anything(5), Bounds::new(-5, 5));
        assert_eq!(child.and(Bounds::new(0, 9)), Bounds::new(0, 5));
        assert_eq!(child.and(Bounds::new(6, 9)), child);
        assert_eq!([-201, 40, 501].map(|expected| child.estimate(expected)), [Some(-200), Some(40), Some(500)]);
        assert_eq!(Bounds::exact(4).estimate(300), None);
    }

    #[test]
    fn bounds_are_formatted() {
        assert_eq!(format!("{:>3}", Bounds::exact(0)), "  0");
        assert_eq!(Bounds::exact(7).to_string(), "+7");
        assert_eq!(Bounds::new(-1, 7).to_string(), "-1 to +7");
    }
}
