//! Halves: the six pits of one side, and their numbering.
//!
//! A half with m stones has C(m+5,5) forms. Its number is the colexicographic combinatorial number of its partial sums
//! taken from the last pit: with `c(j) = (stones in the last j pits) + j - 1`,
//!
//! ```text
//! number = C(c(1),1) + C(c(2),2) + C(c(3),3) + C(c(4),4) + C(c(5),5)
//! ```
//!
//! The first pit does not occur in it. So the numbers of halves with fewer stones are the first numbers of those with
//! more, one table serves all m, and adding stones to the first pit alone changes no number. Halves are ordered by the
//! first pit descending, then the second, and so on. The order is translation invariant: adding the same stones to two
//! halves preserves it. Sowing adds stones to the first pits first, so halves that first differ in a late pit stay
//! adjacent.

use crate::binomial::binomial;

/// Pits on a side.
pub const HALF_PITS: usize = 6;

/// The most stones a board holds.
pub const STONES_MAX: u32 = 48;

/// The stones in the six pits of one side, in the order of sowing.
pub type Half = [u8; HALF_PITS];

/// `TERMS[j - 1][sum]` is the j-th term of the number when the last j pits hold `sum` stones.
static TERMS: [[u32; STONES_MAX as usize + 1]; 5] = terms();

const fn terms() -> [[u32; STONES_MAX as usize + 1]; 5] {
    let mut table = [[0; STONES_MAX as usize + 1]; 5];
    let mut j = 1;
    while j <= 5 {
        let mut sum = 0;
        while sum <= STONES_MAX {
            table[j as usize - 1][sum as usize] = binomial(sum + j - 1, j) as u32;
            sum += 1;
        }
        j += 1;
    }
    table
}

/// A table of the halves with up to some number of stones.
#[derive(Clone, Debug)]
pub struct Halves {
    stones_max: u32,
    /// The last five pits by number; the first pit contains the rest.
    tails: Vec<[u8; 5]>,
}

impl Halves {
    /// Builds the table for halves of up to `stones_max` stones: 5 bytes for each of C(stones_max + 5, 5) halves.
    ///
    /// # Panics
    /// When `stones_max` exceeds [`STONES_MAX`].
    pub fn new(stones_max: u32) -> Halves {
        assert!(stones_max <= STONES_MAX, "a board holds at most {STONES_MAX} stones");
        let mut tails = Vec::with_capacity(Halves::count(stones_max) as usize);
        for sum in 0..=stones_max as u8 {
            // `sum` is that of the last five pits; within it the second pit descends, and so on.
            for two in 0..=sum {
                for three in 0..=two {
                    for four in 0..=three {
                        for five in 0..=four {
                            tails.push([sum - two, two - three, three - four, four - five, five]);
                        }
                    }
                }
            }
        }
        Halves { stones_max, tails }
    }

    /// The number of halves with exactly `stones` stones.
    pub const fn count(stones: u32) -> u32 {
        binomial(stones + 5, 5) as u32
    }

    /// The number of a half among those with as many stones (or with more).
    pub fn rank(half: &Half) -> u32 {
        let mut sum = 0;
        let mut number = 0;
        for (j, terms) in TERMS.iter().enumerate() {
            sum += half[HALF_PITS - 1 - j] as usize;
            number += terms[sum];
        }
        number
    }

    /// The half of this number among those with `stones` stones.
    ///
    /// # Panics
    /// When `number` is not below `Halves::count(stones)` or `stones` exceeds the table.
    pub fn unrank(&self, stones: u32, number: u32) -> Half {
        assert!(
            stones <= self.stones_max && number < Halves::count(stones),
            "no half of {stones} stones has number {number}"
        );
        let tail = self.tails[number as usize];
        let rest: u8 = tail.iter().sum();
        [stones as u8 - rest, tail[0], tail[1], tail[2], tail[3], tail[4]]
    }

    /// The most stones of a half in this table.
    pub fn stones_max(&self) -> u32 {
        self.stones_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_is_a_bijection_for_every_number_of_stones() {
        let halves = Halves::new(20);
        for stones in 0..=20 {
            for number in 0..Halves::count(stones) {
                let half = halves.unrank(stones, number);
                assert_eq!(half.iter().map(|&s| u32::from(s)).sum::<u32>(), stones);
                assert_eq!(Halves::rank(&half), number);
            }
        }
    }

    #[test]
    fn the_largest_half_fits() {
        let halves = Halves::new(STONES_MAX);
        assert_eq!(halves.stones_max(), STONES_MAX);
        let count = Halves::count(STONES_MAX);
        assert_eq!(count, 2_869_685);
        for number in (0..count).step_by(997).chain([count - 1]) {
            assert_eq!(Halves::rank(&halves.unrank(STONES_MAX, number)), number);
        }
    }

    #[test]
    fn order_is_translation_invariant() {
        let halves = Halves::new(9);
        for shift in [[1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0], [2, 1, 1, 1, 1, 1]] {
            let numbers = (0..Halves::count(9)).map(|number| {
                let half = halves.unrank(9, number);
                Halves::rank(&std::array::from_fn(|pit| half[pit] + shift[pit]))
            });
            assert!(numbers.is_sorted_by(|a, b| a < b), "{shift:?}");
        }
    }
}
