//! How much of a database a check looks at.
//!
//! A sample is stratified: the positions are cut into as many equal runs as there are samples, and each run gives one,
//! chosen by a hash of seed and run. So it is the same on every machine and for any number of threads, and no region is
//! left out.
//!
//! A sample that looks at a share s of the positions misses k that do not follow from their children with a chance of
//! at most (1 - s)^k, wherever they lie: of a run of r positions, j of them bad, it misses them with 1 - j/r, which
//! Bernoulli's inequality says is not more than (1 - 1/r)^j. It is a chance over seeds, or over mistakes that know
//! nothing of the seed: the same seed looks at the same positions again. A wrong score is seldom alone in this: parents
//! that rest on it do not follow any more either.

//!
//! A sample of tiles is cut so from the tiles of all slabs, eight halves of one player by eight of the other, instead of
//! the positions: every position is as likely as before, but those that share a tile come together. Their children lie
//! together too, in a few rows, so a look costs half as much in memory, and a fraction of it where blocks are decoded.
//! What it may miss is what keeps to few tiles: k bad positions in t tiles it misses with a chance of at most
//! (1 - s)^t. Of the whole blocks of a file, 65,536 positions, a sample of 16 to 27 stones touches 96 to 100 %; and
//! the parents of a bad one, which are in others, do not follow from their children either.

/// Everything, or a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Every position.
    Full,
    /// Some, each chosen alone.
    Sample(Sample),
    /// About as many, in tiles of up to 64.
    Tiles(Sample),
}

/// Which positions a sample has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// One position of so many.
    pub one_in: u64,
    /// But not fewer than this, or all where the database has fewer.
    pub at_least: u64,
    /// Chooses other positions of equally many.
    pub seed: u64,
}

impl Default for Sample {
    /// One position in 1,000, at least 100,000.
    fn default() -> Sample {
        Sample { one_in: 1_000, at_least: 100_000, seed: 0 }
    }
}

impl Extent {
    /// How many of `positions` it has; of tiles, about.
    pub fn count(&self, positions: u64) -> u64 {
        match self {
            Extent::Full => positions,
            Extent::Sample(sample) | Extent::Tiles(sample) => sample.count(positions),
        }
    }
}

impl Sample {
    /// How many of `positions` the sample has.
    pub fn count(&self, positions: u64) -> u64 {
        positions.div_ceil(self.one_in.max(1)).max(self.at_least).min(positions)
    }

    /// The least chance of meeting one of `bad` positions among `positions`, 0 to 1.
    pub fn chance(&self, positions: u64, bad: u64) -> f64 {
        1.0 - self.missed_share(positions).powf(bad as f64)
    }

    /// So many bad positions among `positions` are met with this chance (above 0, below 1) at least; more than there
    /// are positions, where not even that would do.
    pub fn noticed(&self, positions: u64, chance: f64) -> u64 {
        match self.missed_share(positions) {
            0.0 => 1,
            missed => ((1.0 - chance).ln() / missed.ln()).ceil() as u64,
        }
    }

    /// The share of positions that it does not look at.
    fn missed_share(&self, positions: u64) -> f64 {
        1.0 - self.count(positions) as f64 / positions as f64
    }

    /// The sample's position number `at` of `count`, out of `positions`. Ascends with `at`.
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
    fn counts() {
        let sample = Sample::default();
        assert_eq!(sample.count(12), 12);
        assert_eq!(sample.count(1_000_000), 100_000);
        assert_eq!(sample.count(1_000_000_000), 1_000_000);
        assert_eq!(Extent::Full.count(1_000_000_000), 1_000_000_000);
    }

    #[test]
    fn chances() {
        let sample = Sample::default();
        assert_eq!((sample.chance(1_000, 1), sample.noticed(1_000, 0.95)), (1.0, 1));
        let positions = 1_000_000_000;
        assert!((sample.chance(positions, 1) - 0.001).abs() < 1e-9);
        assert_eq!((sample.noticed(positions, 0.5), sample.noticed(positions, 0.95)), (693, 2_995));
        for chance in [0.1, 0.5, 0.99] {
            let bad = sample.noticed(positions, chance);
            assert!(sample.chance(positions, bad) >= chance && sample.chance(positions, bad - 1) < chance);
        }
    }

    #[test]
    fn every_position_is_as_likely_as_its_run_is_short() {
        const SEEDS: u64 = 4_000;
        let (positions, count) = (12_376, 62);
        let mut looked = vec![0u64; positions as usize];
        for seed in 0..SEEDS {
            let sample = Sample { seed, ..Sample::default() };
            (0..count).for_each(|at| looked[sample.position(at, count, positions) as usize] += 1);
        }
        let expected = SEEDS as f64 * count as f64 / positions as f64;
        let squares: f64 = looked.iter().map(|&times| (times as f64 - expected).powi(2) / expected).sum();
        // A chi-squared of so many degrees of freedom: mean as many, standard deviation the root of twice as many.
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
