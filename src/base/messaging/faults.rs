//! Injected network faults.

use std::ops::Range;
use std::time::Duration;

/// Faults of the network between the ranks of a [`crate::ThreadCommunicator`]; none by default. The delay of a message
/// depends on the seed, the two ranks and the number of the message, not on the schedule of the threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkFaults {
    /// Seed of the pseudo-random generator.
    pub seed: u64,
    /// Delay of a message, drawn evenly; an empty range means no delay. Messages of different ranks overtake each
    /// other; those from one rank to another stay in order.
    pub delay: Range<Duration>,
    /// One of this many calls of a rank begins with a sleep; 0 means none.
    pub stall_every: u64,
    /// Duration of such a sleep.
    pub stall: Duration,
    /// A rank, and the number of its call (from 0) at which it leaves the job as if its process had died.
    pub lost: Option<(usize, u64)>,
    /// A rank, and the number of its call (from 0) from which its messages do not arrive.
    pub muted: Option<(usize, u64)>,
}

impl NetworkFaults {
    /// Messages arrive at once, and no rank stalls.
    pub fn none() -> NetworkFaults {
        NetworkFaults::default()
    }

    /// Messages take up to two milliseconds, and one call in 50 stalls for three milliseconds.
    pub fn jitter(seed: u64) -> NetworkFaults {
        let delay = Duration::ZERO..Duration::from_millis(2);
        NetworkFaults { seed, delay, stall_every: 50, stall: Duration::from_millis(3), ..NetworkFaults::none() }
    }

    /// Returns the delay of a message, given its number among those from `from` to `to`.
    pub(crate) fn delay_of(&self, from: usize, to: usize, message: u64) -> Duration {
        let Some(span) = self.delay.end.checked_sub(self.delay.start).filter(|span| !span.is_zero()) else {
            return Duration::ZERO;
        };
        let bits = self.random(&[1, from as u64, to as u64, message]);
        self.delay.start + span.mul_f64(bits as f64 / u64::MAX as f64)
    }

    /// Whether a rank has left the job by the given call.
    pub(crate) fn is_lost(&self, rank: usize, call: u64) -> bool {
        self.lost.is_some_and(|(lost, from)| lost == rank && call >= from)
    }

    /// Whether a message that a rank sends in the given call is lost.
    pub(crate) fn is_muted(&self, rank: usize, call: u64) -> bool {
        self.muted.is_some_and(|(muted, from)| muted == rank && call >= from)
    }

    /// Returns the sleep before a call of a rank.
    pub(crate) fn stall_of(&self, rank: usize, call: u64) -> Duration {
        let stalls = self.stall_every > 0 && self.random(&[2, rank as u64, call]).is_multiple_of(self.stall_every);
        if stalls { self.stall } else { Duration::ZERO }
    }

    /// Evenly distributed bits for a key, by the finalizer of SplitMix64 (Steele, Lea, Flood, 2014).
    fn random(&self, key: &[u64]) -> u64 {
        key.iter().fold(self.seed, |state, &value| {
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
    fn no_faults_delay_nothing_and_jitter_is_even() {
        let none = NetworkFaults::none();
        assert!((0..1000).all(|message| none.delay_of(0, 1, message).is_zero() && none.stall_of(0, message).is_zero()));
        let jitter = NetworkFaults::jitter(7);
        let delays: Vec<Duration> = (0..1000).map(|message| jitter.delay_of(0, 1, message)).collect();
        assert!(delays.iter().all(|delay| *delay <= jitter.delay.end));
        let late = delays.iter().filter(|delay| **delay > jitter.delay.end / 2).count();
        assert!((400..600).contains(&late), "{late} of 1000");
        let stalls = (0..5000).filter(|&call| !jitter.stall_of(0, call).is_zero()).count();
        assert!((50..150).contains(&stalls), "{stalls} of 5000");
        assert_ne!(delays[0], jitter.delay_of(1, 0, 0));
        assert_ne!(delays[0], NetworkFaults::jitter(8).delay_of(0, 1, 0));
    }
}
