//! Ranges of values.

use std::fmt;

/// An inclusive range of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueRange {
    low: i8,
    high: i8,
}

impl ValueRange {
    /// The range `low..=high`.
    ///
    /// # Panics
    /// If `low` is above `high`.
    pub fn new(low: i8, high: i8) -> Self {
        assert!(low <= high, "the range {low}..={high} is empty");
        ValueRange { low, high }
    }

    /// The least value.
    pub fn low(self) -> i8 {
        self.low
    }

    /// The greatest value.
    pub fn high(self) -> i8 {
        self.high
    }

    /// The number of values in the range.
    pub(crate) fn values(self) -> usize {
        usize::from(self.span()) + 1
    }

    /// Bits of a packed value: 0 for a range of one value, 8 for all.
    pub fn bits(self) -> u32 {
        u8::BITS - self.span().leading_zeros()
    }

    /// Whether a value lies in the range.
    #[inline]
    pub fn contains(self, value: i8) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Returns the index of the first value (as a byte) that lies outside.
    pub(crate) fn find_outside(self, values: &[u8]) -> Option<usize> {
        let span = self.span();
        if span == u8::MAX {
            return None;
        }
        let outside = |value: u8| value.wrapping_sub(self.low as u8) > span;
        // Without an early exit this runs at memory bandwidth; the search below runs only if a value is outside.
        let clean = values.iter().fold(0, |or, &value| or | u8::from(outside(value))) == 0;
        if clean {
            return None;
        }
        values.iter().position(|&value| outside(value))
    }

    fn span(self) -> u8 {
        self.high.wrapping_sub(self.low) as u8
    }
}

impl fmt::Display for ValueRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bits_of_ranges() {
        let check = |low, high, bits| assert_eq!(ValueRange::new(low, high).bits(), bits);
        check(0, 0, 0);
        check(-128, -128, 0);
        check(0, 1, 1);
        check(-1, 1, 2);
        check(-24, 24, 6);
        check(-48, 48, 7);
        check(-128, 127, 8);
        check(0, 127, 7);
    }

    proptest! {
        #[test]
        fn outside_is_found(low: i8, high: i8, values in prop::collection::vec(any::<i8>(), 0..20)) {
            let range = ValueRange::new(low.min(high), low.max(high));
            let expect = values.iter().position(|&value| !range.contains(value));
            prop_assert_eq!(range.find_outside(disk::bytes_of(&values)), expect);
        }
    }
}
