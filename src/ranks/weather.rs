//! How well messages between threads travel.

use std::ops::Range;
use std::time::Duration;

/// What befalls the messages and ranks of [`crate::Threads`]; calm by default. Which message is late by how much depends
/// on the seed, the two ranks and the number of the message, not on the threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weather {
    /// Another seed is other luck.
    pub seed: u64,
    /// How long a message takes, so that those of different ranks overtake each other; none where the range is empty.
    /// A message that follows another to the same rank does not overtake it.
    pub delay: Range<Duration>,
    /// One call in so many, of each rank, stalls before it does anything; none if 0.
    pub stall_every: u64,
    /// For how long.
    pub stall: Duration,
    /// A rank that leaves the job in its call of this number, counted from 0, as if its process had died.
    pub lost: Option<(usize, u64)>,
}

impl Weather {
    /// Messages are there at once, and no rank stalls.
    pub fn calm() -> Weather {
        Weather::default()
    }

    /// Messages take up to two milliseconds, and one call in 50 stalls for three.
    pub fn stormy(seed: u64) -> Weather {
        let delay = Duration::ZERO..Duration::from_millis(2);
        Weather { seed, delay, stall_every: 50, stall: Duration::from_millis(3), lost: None }
    }

    /// The delay of one message.
    pub(crate) fn delay_of(&self, from: usize, to: usize, message: u64) -> Duration {
        let Some(span) = self.delay.end.checked_sub(self.delay.start).filter(|span| !span.is_zero()) else {
            return Duration::ZERO;
        };
        let luck = self.luck(&[1, from as u64, to as u64, message]);
        self.delay.start + span.mul_f64(luck as f64 / u64::MAX as f64)
    }

    /// Whether a rank has left the job in this call of its own, or before.
    pub(crate) fn is_lost(&self, rank: usize, call: u64) -> bool {
        self.lost.is_some_and(|(lost, from)| lost == rank && call >= from)
    }

    /// How long one call of a rank stalls.
    pub(crate) fn stall_of(&self, rank: usize, call: u64) -> Duration {
        let stalls = self.stall_every > 0 && self.luck(&[2, rank as u64, call]).is_multiple_of(self.stall_every);
        if stalls { self.stall } else { Duration::ZERO }
    }

    /// Evenly distributed bits, by the finalizer of SplitMix64 (Steele, Lea, Flood, 2014).
    fn luck(&self, of: &[u64]) -> u64 {
        of.iter().fold(self.seed, |state, &value| {
            let mut bits = (state ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            bits ^ (bits >> 31)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calm_weather_does_nothing_and_storms_are_even() {
        let calm = Weather::calm();
        assert!((0..1000).all(|message| calm.delay_of(0, 1, message).is_zero() && calm.stall_of(0, message).is_zero()));
        let stormy = Weather::stormy(7);
        let delays: Vec<Duration> = (0..1000).map(|message| stormy.delay_of(0, 1, message)).collect();
        assert!(delays.iter().all(|delay| *delay <= stormy.delay.end));
        let late = delays.iter().filter(|delay| **delay > stormy.delay.end / 2).count();
        assert!((400..600).contains(&late), "{late} of 1000");
        let stalls = (0..5000).filter(|&call| !stormy.stall_of(0, call).is_zero()).count();
        assert!((50..150).contains(&stalls), "{stalls} of 5000");
        assert_ne!(delays[0], stormy.delay_of(1, 0, 0));
        assert_ne!(delays[0], Weather::stormy(8).delay_of(0, 1, 0));
    }
}
