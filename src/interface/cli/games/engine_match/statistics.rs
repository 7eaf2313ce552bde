//! Statistics of a match: Elo with its error, and the sequential probability ratio test.
//!
//! The two games of an opening depend on each other: an opening may be won for one side. So the unit is the
//! pair of games with exchanged sides, which has five results (the pentanomial model of the test framework of
//! Stockfish, fishtest).
//!
//! The log-likelihood ratio is that of the generalized sequential probability ratio test: the most likely
//! distributions of pair results whose mean is the expected score of either hypothesis are compared (M. Van
//! den Bergh, *A practical introduction to the GSPRT*, 2018).

use crate::args::Sprt;

/// The standard normal deviate of a two-sided error of 5 %.
const NORMAL_95: f64 = 1.959_963_984_540_054;

/// The probability of either wrong decision of the sequential test.
const SPRT_ERROR: f64 = 0.05;

/// Stands for a result that has not occurred, so that its likelihood is not 0.
const COUNT_MIN: f64 = 1e-3;

/// Steps of a bisection: more than the digits of a number.
const BISECTIONS: u32 = 200;

/// Numbers of pairs by the points of the first engine: 0, half, 1, one and a half, 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PairCounts(pub(super) [u32; 5]);

/// A difference in Elo with its confidence interval of 95 %; infinite where all games are won or lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EloEstimate {
    pub(super) elo: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The state of a sequential test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SprtState {
    /// More games are needed.
    Undecided,
    /// The difference is rather `elo0`.
    First,
    /// The difference is rather `elo1`.
    Second,
}

/// Returns the expected score of a player who is stronger by this much.
fn expected_score(elo: f64) -> f64 {
    1.0 / (1.0 + 10_f64.powf(-elo / 400.0))
}

/// Returns the difference in Elo for a score, the inverse of [`expected_score`].
fn elo(score: f64) -> f64 {
    match score {
        s if s <= 0.0 => f64::NEG_INFINITY,
        s if s >= 1.0 => f64::INFINITY,
        s => -400.0 * (1.0 / s - 1.0).log10(),
    }
}

impl PairCounts {
    /// Adds a pair in which the first engine has this many half points.
    pub(super) fn add(&mut self, half_points: usize) {
        self.0[half_points.min(4)] += 1;
    }

    /// Returns the number of pairs.
    pub(super) fn pairs(&self) -> u32 {
        self.0.iter().sum()
    }

    /// Returns the difference in Elo; `None` without pairs.
    pub(super) fn elo(&self) -> Option<EloEstimate> {
        if self.pairs() == 0 {
            return None;
        }
        let pairs = f64::from(self.pairs());
        let results = (0..5).map(|at| (f64::from(at) / 4.0, f64::from(self.0[at as usize]) / pairs));
        let mean: f64 = results.clone().map(|(score, share)| score * share).sum();
        let variance: f64 = results.map(|(score, share)| (score - mean).powi(2) * share).sum();
        let error = NORMAL_95 * (variance / pairs).sqrt();
        Some(EloEstimate { elo: elo(mean), low: elo(mean - error), high: elo(mean + error) })
    }

    /// Returns the log-likelihood ratio of `elo1` against `elo0`.
    pub(super) fn log_likelihood_ratio(&self, sprt: Sprt) -> f64 {
        let counts = self.0.map(|count| f64::from(count).max(COUNT_MIN));
        let all: f64 = counts.iter().sum();
        let shares = counts.map(|count| count / all);
        let first = most_likely(&shares, expected_score(sprt.elo0));
        let second = most_likely(&shares, expected_score(sprt.elo1));
        (0..5).map(|at| counts[at] * (second[at] / first[at]).ln()).sum()
    }
}

/// Returns the most likely distribution of pair results with this mean, given the observed shares.
///
/// It is `share / (1 + x (score - mean))`, with the multiplier `x` for which the mean is right.
fn most_likely(shares: &[f64; 5], mean: f64) -> [f64; 5] {
    let distance = |at: usize| at as f64 / 4.0 - mean;
    let (mut low, mut high) = (-1.0 / distance(4), -1.0 / distance(0));
    for _ in 0..BISECTIONS {
        let middle = (low + high) / 2.0;
        let excess: f64 = (0..5).map(|at| shares[at] * distance(at) / (1.0 + middle * distance(at))).sum();
        if excess > 0.0 { low = middle } else { high = middle }
    }
    std::array::from_fn(|at| shares[at] / (1.0 + low * distance(at)))
}

impl Sprt {
    /// Returns the log-likelihood ratio at which the test ends with `elo1`; with `elo0` it ends at minus this.
    pub(super) fn bound() -> f64 {
        ((1.0 - SPRT_ERROR) / SPRT_ERROR).ln()
    }

    /// Returns the state of the test.
    pub(super) fn state(self, counts: &PairCounts) -> SprtState {
        let ratio = counts.log_likelihood_ratio(self);
        match counts.pairs() {
            0 => SprtState::Undecided,
            _ if ratio >= Sprt::bound() => SprtState::Second,
            _ if ratio <= -Sprt::bound() => SprtState::First,
            _ => SprtState::Undecided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64, within: f64) {
        assert!((found - expected).abs() <= within, "{found}, expected {expected}");
    }

    /// Results and ratios that fishtest printed for patches of Stockfish in 2020 (pull requests 3209, 3098,
    /// 2971, 3232 and 2950), before it changed to normalized Elo.
    #[test]
    fn ratios_are_those_of_fishtest() {
        for (counts, elo0, elo1, ratio) in [
            ([253, 4282, 17604, 4431, 286], -0.25, 1.25, 2.94),
            ([58, 3302, 33130, 3518, 84], 0.25, 1.25, 2.97),
            ([491, 7345, 29693, 7670, 465], -0.25, 1.25, 2.96),
            ([17, 253, 1042, 337, 39], -0.5, 1.5, 2.96),
            ([11, 407, 3238, 513, 11], 0.25, 1.75, 2.93),
            ([85, 1800, 8241, 1930, 100], -0.25, 1.25, 2.94),
            ([133, 1751, 5094, 1849, 165], -0.5, 1.5, 2.94),
            ([149, 4748, 32785, 5063, 159], 0.25, 1.75, 2.95),
        ] {
            near(PairCounts(counts).log_likelihood_ratio(Sprt { elo0, elo1 }), ratio, 0.0051);
        }
    }

    #[test]
    fn a_test_ends_at_its_bounds() {
        near(Sprt::bound(), 2.944, 0.001);
        let sprt = Sprt { elo0: 0.0, elo1: 10.0 };
        assert_eq!(sprt.state(&PairCounts::default()), SprtState::Undecided);
        assert_eq!(sprt.state(&PairCounts([0, 0, 1, 0, 0])), SprtState::Undecided);
        assert_eq!(sprt.state(&PairCounts([10, 100, 300, 200, 40])), SprtState::Second);
        assert_eq!(sprt.state(&PairCounts([40, 200, 300, 100, 10])), SprtState::First);
        // Exchanged engines have exchanged hypotheses.
        let counts = [17, 253, 1042, 337, 39];
        let ratio = PairCounts(counts).log_likelihood_ratio(Sprt { elo0: -0.5, elo1: 1.5 });
        let mut turned = counts;
        turned.reverse();
        near(PairCounts(turned).log_likelihood_ratio(Sprt { elo0: 0.5, elo1: -1.5 }), ratio, 1e-6);
    }

    /// Scores and differences as in any table of Elo; the error by hand.
    #[test]
    fn differences_follow_from_scores() {
        for (score, expected) in [(0.5, 0.0), (0.75, 190.848_501_887_865), (0.64, 99.950_989), (0.1, -381.697)] {
            near(elo(score), expected, 0.001);
            near(expected_score(expected), score, 1e-5);
        }
        let found = PairCounts([17, 253, 1042, 337, 39]).elo().unwrap();
        near(found.elo, 13.179_230_770_762, 1e-9);
        near(found.low, 7.453_644_309_636, 1e-9);
        near(found.high, 18.911_981_727_902, 1e-9);
        assert_eq!(PairCounts::default().elo(), None);
        let all_won = PairCounts([0, 0, 0, 0, 9]).elo().unwrap();
        assert_eq!((all_won.elo, all_won.low), (f64::INFINITY, f64::INFINITY));
        let drawn = PairCounts([0, 0, 3, 0, 0]).elo().unwrap();
        assert_eq!((drawn.low, drawn.elo, drawn.high), (0.0, 0.0, 0.0));
    }

    /// Colours that decide every game say nothing about the engines: pairs have no spread, single games do.
    #[test]
    fn pairs_cancel_the_colour() {
        let mut counts = PairCounts::default();
        (0..100).for_each(|_| counts.add(2));
        let found = counts.elo().unwrap();
        assert_eq!((counts.pairs(), found.low, found.high), (100, 0.0, 0.0));
    }
}
