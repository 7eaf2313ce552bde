//! What is known of a score: two bounds, which are equal where a database tells the score itself.

use game::Score;
use std::fmt;

/// A score between two bounds, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    low: Score,
    high: Score,
}

impl Bounds {
    /// A score that is known.
    pub fn exact(score: Score) -> Bounds {
        Bounds { low: score, high: score }
    }

    /// A score that is known to lie between two.
    ///
    /// # Panics
    /// If `low` exceeds `high`.
    pub fn new(low: Score, high: Score) -> Bounds {
        assert!(low <= high, "no score lies between {low} and {high}");
        Bounds { low, high }
    }

    /// What is known of any position with so many stones: that nobody wins more than there are.
    pub fn anything(stones: u32) -> Bounds {
        let most = Score::try_from(stones).unwrap_or(Score::MAX);
        Bounds { low: -most, high: most }
    }

    /// What is known if both are. Of bounds that contradict each other, the first.
    #[must_use]
    pub fn and(self, other: Bounds) -> Bounds {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        if low <= high { Bounds { low, high } } else { self }
    }

    /// The least that the score can be.
    pub fn low(self) -> Score {
        self.low
    }

    /// The most that the score can be.
    pub fn high(self) -> Score {
        self.high
    }

    /// The score, where it is known.
    pub fn score(self) -> Option<Score> {
        (self.low == self.high).then_some(self.low)
    }

    /// What a move is worth that captures so much and leaves the opponent a position of this score.
    pub fn after_capture(self, captured: u8) -> Bounds {
        let captured = captured as Score;
        Bounds { low: captured - self.high, high: captured - self.low }
    }

    /// The better of two, for who may choose.
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
    }

    #[test]
    fn text() {
        assert_eq!(format!("{:>3}", Bounds::exact(0)), "  0");
        assert_eq!(Bounds::exact(7).to_string(), "+7");
        assert_eq!(Bounds::new(-1, 7).to_string(), "-1 to +7");
    }
}
