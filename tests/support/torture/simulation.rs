//! Random jobs: a manifest, and runs of it by one or several ranks, with faults of disk, network and clock
//! and requests to stop, until a run ends undisturbed.
//!
//! The seed determines which disk operation fails or kills the job, the state of the disk afterwards, delays
//! of messages, the call in which a rank is lost, the readings of clocks, and which of the stages that run
//! side by side goes on. With one rank, a seed determines every operation. With several, the scheduler of the
//! host decides the order of messages and operations: a seed gives the same job and kinds of faults, but not
//! always at the same moment.

use super::case::{CaseOutcome, Trial};
use super::class::{FaultClass, FaultRound, Injection, RoundEnd};
use super::conditions::{ClockPace, Clocks, Conditions, PlannedStop};
use super::each;
use super::journal::RANK_SCRATCH;
use super::subject::Subject;
use crate::Random;
use messaging::NetworkFaults;
use planner::Method;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use store::Codec;

/// A job to run.
pub struct Simulation {
    seed: u64,
    subject: Subject,
    rounds: Vec<FaultRound>,
    last: Conditions,
}

/// Simulations to run.
#[derive(Clone, Copy, Debug)]
pub struct Simulations {
    /// Seed of the first job; the others have consecutive ones.
    pub seed: u64,
    /// Maximal number of jobs.
    pub jobs: u64,
    /// No further one begins after this time.
    pub time_max: Duration,
    /// Number of concurrent jobs.
    pub threads: usize,
}

/// Outcomes of simulations.
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    /// Counts of jobs, faults and outcomes, by name.
    pub counts: BTreeMap<&'static str, u64>,
    /// Mistakes, each with the command that shows it again.
    pub wrong: Vec<String>,
}

const STONES: [&str; 5] = ["0..4", "0..5", "0..6", "0..7", "0..8"];

/// Ranks of a job, at most.
const RANKS_MAX: u64 = 4;

impl Simulation {
    /// The job of a seed.
    ///
    /// # Panics
    /// If an undisturbed build of its manifest fails.
    pub fn new(seed: u64) -> Simulation {
        let mut random = Random::of(&[seed]);
        let is_alone = random.below(3) == 0;
        let method = *random.pick(&Method::ALL);
        // Methods of bounds have many more stages.
        let stones = STONES[..if method.has_bounds() { 3 } else { 5 }].to_vec();
        let mut key = |key: &'static str, values: &[&'static str]| (key, *random.pick(values));
        let mut manifest = vec![
            key("build.stones", &stones),
            key("build.snapshot", &["0 s", "0 s", "0 s", "1 s", "10 s", "10 min"]),
            key("game.positions", &["all", "reachable"]),
            key("store.codec", &Codec::ALL.map(Codec::name)),
            key("store.intermediates", &["fast", "small"]),
            key("store.keep", &["databases", "all"]),
            key("check.verify", &["none", "sample", "full"]),
        ];
        if is_alone {
            manifest.push(("build.stages-at-a-time", *random.pick(&["1", "2", "3"])));
        } else if random.below(4) == 0 {
            manifest.push(("cluster.scratch", RANK_SCRATCH));
        }
        let subject = Subject::new(method, &manifest);
        let pace = *random.pick(&[ClockPace::Still, ClockPace::Even, ClockPace::Jumping]);
        let conditions = |random: &mut Random| {
            let ranks = if is_alone { 1 } else { 1 + random.below(RANKS_MAX) as usize };
            let network = network_faults(random, ranks);
            let clocks = Some(Clocks { seed: random.bits(), pace });
            Conditions { ranks, network, clocks, turns: random.bits(), stop: stop(random, &subject, ranks) }
        };
        let rounds = (0..1 + random.below(4)).map(|_| round(&mut random, &subject, &conditions)).collect();
        let mut last = conditions(&mut random);
        (last.stop, last.network.lost) = (None, None);
        Simulation { seed, subject, rounds, last }
    }

    /// The command that runs just this one.
    pub fn again(&self) -> String {
        format!("torture --job {}", self.seed)
    }

    /// Whether one rank alone does all of it.
    pub fn is_alone(&self) -> bool {
        self.rounds.iter().map(|round| &round.conditions).chain([&self.last]).all(|conditions| conditions.ranks == 1)
    }

    /// The most stages at a time.
    pub fn stages_at_a_time(&self) -> usize {
        self.subject.build().stages_at_a_time()
    }

    /// Runs it.
    pub(crate) fn run(&self) -> CaseOutcome {
        Trial::new(&self.subject, Random::of(&[self.seed, 1]).bits()).run(&self.rounds, &self.last)
    }

    /// Runs it. Returns the number of disk operations.
    ///
    /// # Errors
    /// The mistake, if there was one.
    pub fn operations(&self) -> Result<u64, String> {
        let outcome = self.run();
        outcome.wrong.map_or(Ok(outcome.operations), Err)
    }
}

impl fmt::Display for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.subject)?;
        for (number, round) in self.rounds.iter().enumerate() {
            writeln!(f, "  run {}: {round:?}", number + 1)?;
        }
        write!(f, "  last run: {:?}", self.last)
    }
}

/// A network without or with random delays, which sometimes loses a rank.
fn network_faults(random: &mut Random, ranks: usize) -> NetworkFaults {
    let mut faults = match random.below(2) {
        0 => NetworkFaults::none(),
        _ => {
            let delay = Duration::ZERO..Duration::from_micros(random.below(300));
            let stall = Duration::from_micros(500);
            NetworkFaults { delay, stall_every: random.below(100), stall, ..NetworkFaults::jitter(random.bits()) }
        }
    };
    if random.below(4) == 0 {
        let rank = random.below(ranks as u64) as usize;
        let calls = 1 << random.below(12);
        faults.lost = Some((rank, random.below(calls)));
    }
    faults
}

fn stop(random: &mut Random, subject: &Subject, ranks: usize) -> Option<PlannedStop> {
    let events = 2 * subject.stages() as u64;
    match random.below(8) {
        0 => {
            let only = (random.below(2) == 0).then(|| random.below(ranks as u64) as usize);
            Some(PlannedStop::Signal { reading: random.below(4 * events), only })
        }
        1 => Some(PlannedStop::Request { event: random.below(events) }),
        _ => None,
    }
}

fn round(random: &mut Random, subject: &Subject, conditions: &impl Fn(&mut Random) -> Conditions) -> FaultRound {
    let conditions = conditions(random);
    let classes = FaultClass::combinable(subject);
    let mut injections: Vec<Injection> = Vec::new();
    let torn = RoundEnd::PowerLostTorn(random.bits());
    let mut end = *random.pick(&[RoundEnd::Exit, RoundEnd::Killed, RoundEnd::PowerLost, torn]);
    // A run with a lost rank or a stop may have no other fault.
    let count = if conditions.may_end() { random.below(2) } else { 1 + random.below(2) };
    for _ in 0..count {
        let class = *random.pick(&classes);
        // Several ranks have more operations than one.
        let extent = class.extent(subject) * if conditions.ranks > 1 { 2 } else { 1 };
        let at = random.below(extent) >> random.below(3);
        let (injection, ends) = class.injection(subject, at, random);
        injections.push(injection);
        end = ends;
    }
    FaultRound { conditions, injections, end }
}

impl Simulations {
    /// Runs them. `begins` and `ends` are given each seed.
    pub fn run(&self, begins: impl Fn(u64) + Sync, ends: impl Fn(u64) + Sync) -> Simulated {
        let simulated = Mutex::new(Simulated::default());
        let started = Instant::now();
        let seeds = (0..self.jobs).map(|job| self.seed.wrapping_add(job));
        each(seeds, self.threads, |seed| {
            if started.elapsed() >= self.time_max {
                return;
            }
            begins(seed);
            let simulation = Simulation::new(seed);
            let outcome = simulation.run();
            ends(seed);
            simulated.lock().expect("a panic while counting ends the harness").add(&simulation, outcome);
        });
        simulated.into_inner().expect("all threads have ended")
    }
}

impl Simulated {
    fn add(&mut self, simulation: &Simulation, outcome: CaseOutcome) {
        for (name, count) in [
            ("jobs", 1),
            ("jobs of several ranks", u64::from(!simulation.is_alone())),
            ("jobs with stages side by side", u64::from(simulation.stages_at_a_time() > 1)),
            ("faults", outcome.struck),
            ("runs ended early", outcome.ended),
            ("stopped on request", outcome.stopped),
            ("ranks lost", outcome.lost_ranks),
            ("losses of power", outcome.power_lost),
            ("stages gone on from a snapshot", outcome.from_snapshots),
        ] {
            *self.counts.entry(name).or_default() += count;
        }
        if let Some(wrong) = outcome.wrong {
            self.wrong.push(format!("{}: {wrong}\n  {}", simulation.again(), simulation.subject));
        }
    }
}

impl fmt::Display for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in &self.counts {
            write!(f, "{name} {count}, ")?;
        }
        write!(f, "wrong {}", self.wrong.len())
    }
}
