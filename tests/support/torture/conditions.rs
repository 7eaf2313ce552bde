//! The conditions of a run besides its disk: ranks, network, clocks, the turns of stages side by side, and
//! requests to stop.

use crate::Random;
use disk::Clock;
use messaging::NetworkFaults;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Conditions of a run; by default one rank and the clock of this host.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// Ranks of the job; a single one needs no network.
    pub ranks: usize,
    /// The network between them.
    pub network: NetworkFaults,
    /// Simulated clocks, one a rank.
    pub clocks: Option<Clocks>,
    /// Seed of the turns of stages that run side by side.
    pub turns: u64,
    /// A request to stop.
    pub stop: Option<PlannedStop>,
}

impl Default for Conditions {
    fn default() -> Conditions {
        Conditions { ranks: 1, network: NetworkFaults::none(), clocks: None, turns: 0, stop: None }
    }
}

impl Conditions {
    /// Whether a rank is lost or a stop requested, some time in the run.
    pub(crate) fn may_end(&self) -> bool {
        self.stop.is_some() || self.loses_rank()
    }

    /// Whether a rank is lost.
    pub(crate) fn loses_rank(&self) -> bool {
        self.ranks > 1 && self.network.lost.is_some()
    }
}

/// Simulated clocks of the ranks. Each reading advances a clock by a random time.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Seed of the pseudo-random generator.
    pub seed: u64,
    /// Size of the steps.
    pub pace: ClockPace,
}

/// Step of a clock at a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockPace {
    /// None.
    Still,
    /// Milliseconds, sometimes seconds.
    Even,
    /// The same, and sometimes the time of day is set forward or back by up to a year.
    Jumping,
}

/// A request to stop.
#[derive(Clone, Copy, Debug)]
pub enum PlannedStop {
    /// A signal when the clock of rank 0 is read for this time, counted from 0.
    Signal {
        /// Which reading.
        reading: u64,
        /// To this rank; else to all.
        only: Option<usize>,
    },
    /// `awari stop` at this event of the run, counted from 0.
    Request {
        /// Which event.
        event: u64,
    },
}

/// The flags that a signal raises, of each rank.
pub(crate) type Flags = Vec<Arc<AtomicBool>>;

/// A simulated clock.
#[derive(Debug)]
pub(crate) struct HostClock {
    pace: ClockPace,
    /// Reading at which a signal arrives, and the flags that it raises.
    signal: Option<(u64, Flags)>,
    state: Mutex<Time>,
}

#[derive(Debug)]
struct Time {
    random: Random,
    utc: Duration,
    steady: Duration,
    readings: u64,
}

const YEAR: Duration = Duration::from_secs(365 * 86_400);

impl HostClock {
    /// The clock of a rank, which can raise flags at a reading.
    pub(crate) fn new(clocks: Clocks, rank: usize, signal: Option<(u64, Flags)>) -> HostClock {
        let mut random = Random::of(&[clocks.seed, rank as u64]);
        // Before 1970, about now, and when 32 bits of seconds are over.
        let utc = *random.pick(&[Duration::ZERO, 56 * YEAR, Duration::from_secs(u32::MAX as u64)]);
        let time = Time { random, utc, steady: Duration::ZERO, readings: 0 };
        HostClock { pace: clocks.pace, signal, state: Mutex::new(time) }
    }

    fn read(&self) -> MutexGuard<'_, Time> {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let time = &mut *guard;
        if let Some((reading, flags)) = &self.signal
            && *reading == time.readings
        {
            flags.iter().for_each(|flag| flag.store(true, Ordering::Relaxed));
        }
        time.readings += 1;
        let random = &mut time.random;
        let step = match (self.pace, random.below(8)) {
            (ClockPace::Still, _) | (_, 0) => Duration::ZERO,
            (_, 1..6) => Duration::from_micros(random.below(20_000)),
            _ => Duration::from_millis(random.below(15_000)),
        };
        time.steady += step;
        time.utc += step;
        if self.pace == ClockPace::Jumping {
            let jump = Duration::from_millis(random.below(YEAR.as_millis() as u64) >> random.below(30));
            match random.below(8) {
                0 => time.utc += jump,
                1 => time.utc = time.utc.saturating_sub(jump),
                _ => {}
            }
        }
        guard
    }
}

impl Clock for HostClock {
    fn utc(&self) -> Duration {
        self.read().utc
    }

    fn steady(&self) -> Duration {
        self.read().steady
    }
}
