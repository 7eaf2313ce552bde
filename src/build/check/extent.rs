//! The extent of a check: all positions of a database, or a sample.
//!
//! A sample is stratified: the positions are divided into as many equal runs as there are samples, and a hash of seed
//! and run chooses one position of each run. So the sample is the same on every machine and for any number of threads,
//! and covers every region.
//!
//! A sample of a share s of the positions misses k inconsistent positions with a probability of at most (1 - s)^k,
//! wherever they are: it misses j of a run of r positions with probability 1 - j/r, which by Bernoulli's inequality is
//! at most (1 - 1/r)^j. The probability is over seeds, or over mistakes that are independent of the seed: the same seed
//! chooses the same positions again. A wrong score is seldom the only inconsistent one, since its parents do not follow
//! from it either.
//!
//! A sample of tiles is stratified over the tiles of all slabs, eight halves of one player by eight of the other: every
//! position is as likely as in a sample of positions, but the positions of a tile are chosen together. Their children
//! lie in a few rows, so a look-up costs half as much in memory, and a fraction of that where blocks are decoded. It
//! misses k inconsistent positions in t tiles with a probability of at most (1 - s)^t. A sample of 16 to 27 stones
//! touches 96 to 100 % of the blocks of 65,536 positions of a file.

/// All positions of a database, or a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Every position.
    Full,
    /// Single positions.
    Sample(Sample),
    /// About as many positions as the sample has, in tiles of up to 64.
    Tiles(Sample),
}

/// The parameters of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The sample has one position in this many.
    pub one_in: u64,
    /// The least number of positions, unless the database has fewer.
    pub at_least: u64,
    /// Seed of the choice of positions.
    pub seed: u64,
}

impl Default for Sample {
    /// One position in 1,000, at least 100,000.
    fn default() -> Sample {
        Sample { one_in: 1_000, at_least: 100_000, seed: 0 }
    }
}

impl Extent {
    /// Returns the number of positions of the extent, out of `positions`; approximate for tiles.
    pub fn count(&self, positions: u64) -> u64 {
        match self {
            Extent::Full => positions,
            Extent::Sample(sample) | Extent::Tiles(sample) => sample.count(positions),
        }
    }
}

impl Sample {
    /// Returns the number of positions of the sample, out of `positions`.
    pub fn count(&self, positions: u64) -> u64 {
        positions.div_ceil(self.one_in.max(1)).max(self.at_least).min(positions)
    }

    /// Returns the least probability of finding one of `bad` positions among `positions`.
    pub fn chance(&self, positions: u64, bad: u64) -> f64 {
        1.0 - self.missed_share(positions).powf(bad as f64)
    }

    /// Returns the number of bad positions among `positions` of which one is found with at least this probability
    /// (above 0, below 1). May exceed `positions`.
    pub fn detectable(&self, positions: u64, chance: f64) -> u64 {
        match self.missed_share(positions) {
            0.0 => 1,
            missed => ((1.0 - chance).ln() / missed.ln()).ceil() as u64,
        }
    }

    /// Returns the share of positions that are not in the sample.
    fn missed_share(&self, positions: u64) -> f64 {
        1.0 - self.count(positions) as f64 / positions as f64
    }

    /// Returns position number `at` of the `count` positions of the sample, out of `positions`. Ascends with `at`.
    pub(crate) fn position(&self, at: u64, count: u64, positions: u64) -> u64 {
        let start = |at: u64| (u128::from(at) * u128::from(positions) / u128::from(count)) as u64;
        let (first, end) = (start(at), start(at + 1));
        first + mixed(self.seed ^ mixed(at)) % (end - first)
    }
}

/// The finalizer of SplitMix64 (Steele, Lea & Flood 2014).
fn mixed(bits: u64) -> u64 {
    let mut bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_drawn_with_splitmix64() {
        // The first outputs of the generator with the seeds 0 and 1.
        assert_eq!([mixed(0), mixed(1)], [0xe220_a839_7b1d_cdaf, 0x910a_2dec_8902_5cc1]);
    }

    #[test]
    fn the_sample_grows_with_the_database() {
        let sample = Sample::default();
        assert_eq!(sample.count(12), 12);
        assert_eq!(sample.count(1_000_000), 100_000);
        assert_eq!(sample.count(1_000_000_000), 1_000_000);
        assert_eq!(Extent::Full.count(1_000_000_000), 1_000_000_000);
    }

    #[test]
    fn probabilities_of_detection() {
        let sample = Sample::default();
        assert_eq!((sample.chance(1_000, 1), sample.detectable(1_000, 0.95)), (1.0, 1));
        let positions = 1_000_000_000;
        assert!((sample.chance(positions, 1) - 0.001).abs() < 1e-9);
        assert_eq!((sample.detectable(positions, 0.5), sample.detectable(positions, 0.95)), (693, 2_995));
        for chance in [0.1, 0.5, 0.99] {
            let bad = sample.detectable(positions, chance);
            assert!(sample.chance(positions, bad) >= chance && sample.chance(positions, bad - 1) < chance);
        }
    }

    #[test]
    fn every_position_is_as_likely_as_its_run_is_short() {
        const SEEDS: u64 = 4_000;
        let (positions, count) = (12_376, 62);
        let mut chosen = vec![0u64; positions as usize];
        for seed in 0..SEEDS {
            let sample = Sample { seed, ..Sample::default() };
            (0..count).for_each(|at| chosen[sample.position(at, count, positions) as usize] += 1);
        }
        let expected = SEEDS as f64 * count as f64 / positions as f64;
        let squares: f64 = chosen.iter().map(|&times| (times as f64 - expected).powi(2) / expected).sum();
        // Chi-squared distribution: the mean is the degrees of freedom, the variance twice that.
        let (mean, deviation) = ((positions - count) as f64, (2.0 * positions as f64).sqrt());
        assert!((squares - mean).abs() < 5.0 * deviation, "{squares}, expected {mean} +- {deviation}");
    }

    #[test]
    fn positions_ascend_and_cover() {
        let positions = 700_001;
        for seed in 0..3 {
            let sample = Sample { seed, ..Sample::default() };
            let count = sample.count(positions);
            let chosen: Vec<u64> = (0..count).map(|at| sample.position(at, count, positions)).collect();
            assert!(chosen.is_sorted_by(|a, b| a < b && b - a < 16));
            assert!(chosen.first().unwrap() < &8 && chosen.last().unwrap() > &(positions - 9));
        }
    }
}
