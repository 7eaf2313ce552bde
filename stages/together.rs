//! What the ranks of a job are predicted to take for one database, each on a machine of its own.
//!
//! Who owns and holds how much is asked of the engine that will ([`engines::sweep::distributed::memory_layouts`]); nothing is allocated
//! for it. What a rank does for a position of its own is what one machine does, and more with each doubling of the ranks,
//! as they know later what the others found; what travels is a constant share of the positions that ranks keep of others.
//! The constants are what jobs of 16 and 18 stones took on 1 to 8 ranks that are threads; `cargo bench -p bench --bench
//! cost_model` compares them with larger ones.

use crate::cost::{Load, Model, Part};
use crate::{Hardware, Settings, graph};
use engines::Tables;
use engines::sweep::distributed::{MemoryLayout, SLACK, memory_layouts, phases};
use std::fmt;

/// What a position takes more with each doubling of the ranks, as a share: it is recomputed more often. 12.7 times on one
/// rank at 20 stones, 14.0 on two, 16.6 on four, 17.0 on eight.
const MORE_WORK: f64 = 0.13;

/// Bytes sent for each position that a rank keeps of others: it reads less than half of them, they change 1.2 to 1.3 times,
/// and changes share masks.
const BYTES_A_FOREIGN_POSITION: f64 = 1.0;

/// Nanoseconds of the sender and the receiver together for a byte.
const BYTE_NANOSECONDS: f64 = 4.5;

/// Nanoseconds of a rank for each message that it sends, and for its receiving.
const MESSAGE_NANOSECONDS: f64 = 5_000.0;

/// Passes over the database, and more with each doubling of the ranks: of 18 to 20 stones 20 to 22 of two ranks, 23 or 24 of
/// four, 20 to 26 of eight, 34 and 37 of 32.
const SUPERSTEPS: [f64; 2] = [20.0, 2.0];

/// What a rank waits for others, as a share of its work: phases do not take all of them as long.
const WAITED: f64 = 0.14;

/// What is on its way and in buffers of what is sent in all, phase by phase: of the first passes, a third each.
const BUFFERED_PASSES: f64 = 0.4;

/// While each rank collects the scores of its part of the file, round by round, what the rank sends that has most of what
/// is wanted is so much more than the mean with each doubling of the ranks: of 48 stones 2.5 times the mean on 16 ranks, 3.3
/// times on 64. (Reckoned with ranks that own the same share of all slabs.)
const UNEVEN: f64 = 0.38;

/// What the ranks of a job are predicted to take for one database, from its captures to its file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Together {
    /// Ranks.
    pub ranks: usize,
    /// The time.
    pub seconds: f64,
    /// Seconds of cores of all ranks together, waiting left out.
    pub cpu_seconds: f64,
    /// Seconds that the rank with most work needs for it.
    pub work_seconds: f64,
    /// Seconds that the network of the rank which hears most needs for that.
    pub network_seconds: f64,
    /// Seconds that pass while messages of which somebody waits are on their way.
    pub latency_seconds: f64,
    /// Seconds until each rank has the scores of its part of the file, and has written them.
    pub collect_seconds: f64,
    /// Memory of the rank that holds most, in bytes.
    pub memory_bytes: u64,
    /// Memory of all ranks for what they hold, in bytes.
    pub held_bytes: u64,
    /// Memory of all ranks for all that they need, in bytes.
    pub all_bytes: u64,
    /// Bytes that all ranks send each other while they solve.
    pub sent_bytes: f64,
    /// Messages that they send for it.
    pub messages: f64,
    /// What most of the time goes by with.
    pub limit: JobLimit,
    /// Whether the memory is within the budget.
    pub fits: bool,
}

/// What takes the time of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobLimit {
    /// The cores, and waiting for those of others.
    Cores,
    /// What the network carries a second.
    Network,
    /// Messages on their way.
    Latency,
    /// Bringing the scores to those who write them, and to the file.
    Collecting,
}

impl fmt::Display for JobLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            JobLimit::Cores => "cores",
            JobLimit::Network => "network",
            JobLimit::Latency => "latency",
            JobLimit::Collecting => "collecting",
        })
    }
}

/// Predicts jobs of several ranks.
pub struct Jobs<'a> {
    settings: &'a Settings,
    tables: Tables,
    model: Model,
}

impl fmt::Debug for Jobs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("tables", &self.tables).finish_non_exhaustive()
    }
}

impl<'a> Jobs<'a> {
    /// For databases of a build of these settings, on machines of their hardware.
    pub fn new(settings: &'a Settings) -> Jobs<'a> {
        let tables = Tables::new(settings.rules, settings.set, settings.stones_max());
        Jobs { settings, tables, model: Model::default() }
    }

    /// What `sweep` takes on so many ranks. Takes processor time of its own: some nanoseconds for each half and rank.
    ///
    /// # Panics
    /// Without ranks, or for more stones than the build has.
    pub fn sweep(&self, stones: u32, ranks: usize) -> Together {
        let slabs = self.settings.set.slabs(stones);
        let memory_layouts = memory_layouts(&self.tables, &slabs, ranks);
        self.of_footprints(stones, &memory_layouts)
    }

    fn of_footprints(&self, stones: u32, memory_layouts: &[MemoryLayout]) -> Together {
        let Settings { threads, set, memory_bytes, .. } = *self.settings;
        let hardware: &Hardware = &self.settings.hardware;
        let ranks = memory_layouts.len();
        let positions = set.positions(stones);
        let doublings = (ranks as f64).log2();
        let nanoseconds = self.model.rates(Part::Sweep).cpu.at(stones) * (1.0 + MORE_WORK * doublings);
        let phases = phases(positions, ranks) as f64;
        let others = (ranks - 1) as f64;
        // Of a rank. Each tells all others in each phase, and votes.
        let supersteps = SUPERSTEPS[0] + SUPERSTEPS[1] * doublings;
        let messages = supersteps * (phases * others + 2.0 * doublings.ceil());
        let sent = |foreign: u64| foreign as f64 * BYTES_A_FOREIGN_POSITION;
        let sent_bytes: f64 = memory_layouts.iter().map(|of| sent(of.foreign)).sum();
        let cpu_seconds = |of: &MemoryLayout| {
            // Half of the work for a byte is that of the sender: the same of each rank, about.
            let bytes = (sent(of.foreign) + sent_bytes / ranks as f64) / 2.0;
            (nanoseconds * of.positions as f64 + BYTE_NANOSECONDS * bytes + MESSAGE_NANOSECONDS * messages) * 1e-9
        };
        let most = |of: &dyn Fn(&MemoryLayout) -> f64| memory_layouts.iter().map(of).fold(0.0, f64::max);
        let work_seconds = hardware.core_seconds(&Load { cpu_seconds: most(&cpu_seconds), ..Load::default() }, threads);
        let waiting = if ranks > 1 { 1.0 + WAITED } else { 1.0 };
        let network_seconds = most(&|of| sent(of.foreign)) / hardware.network.bandwidth;
        // A phase begins when those before the last ones have come; a superstep ends with a vote, up the tree and down.
        let latency = if ranks > 1 { hardware.network.latency } else { 0.0 };
        let computing = (work_seconds * waiting).max(network_seconds);
        let on_the_way = (supersteps * phases * latency / SLACK as f64 - computing).max(0.0);
        let latency_seconds = on_the_way + supersteps * latency * (1.0 + 2.0 * doublings.ceil());
        // Of a part: a rank sends others what it has of theirs, and then the file system its part.
        let part = graph::database_bytes(self.settings, stones) as f64 / ranks as f64;
        let told = positions as f64 / ranks as f64 * (others / ranks as f64) * (1.0 + UNEVEN * doublings);
        let moved = told + if ranks > 1 { part } else { 0.0 };
        // Without a place before all are encoded, it is written twice.
        let is_kept = ranks > 1 && self.settings.codec.is_compressed();
        let kept = if is_kept { part / hardware.write + part / hardware.read } else { 0.0 };
        let collect_seconds = (moved / hardware.network.bandwidth).max(part / hardware.write) + kept;
        let buffers = |of: &MemoryLayout| (BUFFERED_PASSES * sent(of.foreign) * (SLACK + 1) as f64 / phases) as u64;
        let memory = |of: &MemoryLayout| graph::fixed_bytes(self.settings) + of.memory_bytes() + buffers(of);
        let fullest = memory_layouts.iter().map(memory).max().unwrap_or(0);
        let parts = [
            (JobLimit::Cores, work_seconds * waiting),
            (JobLimit::Network, network_seconds),
            (JobLimit::Latency, latency_seconds),
            (JobLimit::Collecting, collect_seconds),
        ];
        Together {
            ranks,
            seconds: computing + latency_seconds + collect_seconds,
            cpu_seconds: memory_layouts.iter().map(cpu_seconds).sum(),
            work_seconds,
            network_seconds,
            latency_seconds,
            collect_seconds,
            memory_bytes: fullest,
            all_bytes: memory_layouts.iter().map(memory).sum(),
            held_bytes: memory_layouts.iter().map(MemoryLayout::memory_bytes).sum(),
            sent_bytes,
            messages: messages * ranks as f64,
            limit: parts.into_iter().max_by(|one, other| one.1.total_cmp(&other.1)).expect("there are parts").0,
            fits: fullest <= memory_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::Manifest;

    fn settings(stones: u32, more: &str) -> Settings {
        let text = format!("[build]\nstones = \"0..{stones}\"\nmemory = \"64 GiB\"\nthreads = 16\n{more}");
        let mut settings = Settings::new(&Manifest::parse(&text, "m.toml", &crate::schema(), &[]).unwrap());
        settings.hardware = Hardware { cores: 16, ..Hardware::REFERENCE };
        settings
    }

    #[test]
    fn more_ranks_take_less_each_and_send_more() {
        let settings = settings(30, "");
        let jobs = Jobs::new(&settings);
        let all = [1, 2, 4, 8, 16, 32, 64].map(|ranks| jobs.sweep(30, ranks));
        assert_eq!((all[0].sent_bytes, all[0].messages, all[0].latency_seconds), (0.0, 0.0, 0.0));
        for pair in all.windows(2) {
            assert!(pair[1].memory_bytes < pair[0].memory_bytes && pair[1].held_bytes >= pair[0].held_bytes);
            assert!(pair[1].sent_bytes > pair[0].sent_bytes && pair[1].messages > pair[0].messages);
            assert!(pair[1].work_seconds < pair[0].work_seconds && pair[1].cpu_seconds > pair[0].cpu_seconds);
            assert!(pair[1].seconds < 1.5 * pair[0].seconds);
            // Two have half of the file each, but they have to hear of it first.
            assert!(pair[1].collect_seconds < pair[0].collect_seconds || pair[0].ranks == 1);
        }
        // One rank takes what one machine does.
        let alone = Model::default().rates(Part::Sweep).cpu.at(30) * settings.set.positions(30) as f64 * 1e-9;
        assert!((all[0].cpu_seconds / alone - 1.0).abs() < 1e-9);
        // Ranks hold 1.7 times the database together, or more, and captures of all of it.
        assert!(all[1].held_bytes > 2 * settings.set.positions(30));
        assert!(all.iter().all(|of| of.all_bytes >= of.held_bytes && of.all_bytes >= of.memory_bytes));
    }

    #[test]
    fn the_largest_database_is_planned() {
        let settings = settings(48, "");
        let jobs = Jobs::new(&settings);
        let [some, more] = [32, 64].map(|ranks| jobs.sweep(48, ranks));
        let positions = settings.set.positions(48);
        for (of, ranks) in [(some, 32), (more, 64)] {
            // A score and a capture of each position of its own, and less than twice the database.
            assert!((2 * positions / ranks..2 * positions).contains(&of.memory_bytes), "{of:?}");
            assert!(of.held_bytes > 2 * positions && of.sent_bytes > positions as f64, "{of:?}");
            assert!(of.seconds >= of.work_seconds.max(of.network_seconds) + of.collect_seconds, "{of:?}");
        }
        assert!(more.memory_bytes < some.memory_bytes && more.work_seconds < some.work_seconds);
        assert!(more.sent_bytes > some.sent_bytes && more.messages > some.messages);
    }

    #[test]
    fn slow_networks_are_waited_for() {
        let of = |bandwidth: f64, latency: f64| {
            let mut settings = settings(22, "");
            (settings.hardware.network, settings.hardware.write) = (crate::Network { bandwidth, latency }, 1e12);
            let together = Jobs::new(&settings).sweep(22, 8);
            (together.limit, together.seconds)
        };
        let (limit, fast) = of(1e12, 1e-6);
        assert_eq!(limit, JobLimit::Cores);
        let (limit, narrow) = of(1e6, 1e-6);
        assert!(limit != JobLimit::Cores && narrow > 10.0 * fast, "{limit} {narrow} {fast}");
        let (limit, far) = of(1e12, 1e-1);
        assert_eq!(limit, JobLimit::Latency);
        // Some 26 supersteps of 64 phases, two of which may be under way.
        assert!((70.0..120.0).contains(&far), "{far}");
    }

    #[test]
    fn memory_decides_whether_it_fits() {
        let mut settings = settings(26, "");
        let together = Jobs::new(&settings).sweep(26, 4);
        assert!(together.fits);
        settings.memory_bytes = together.memory_bytes - 1;
        assert!(!Jobs::new(&settings).sweep(26, 4).fits);
        // No part of a job takes more than the plan of one that runs leaves room for.
        for (stones, ranks) in [(12, 2), (16, 4), (16, 16), (22, 3), (24, 8), (24, 64)] {
            let mut settings = super::tests::settings(stones, "method = \"sweep\"");
            settings.ranks = ranks;
            let planned = crate::predictions(&settings, stones)[1].memory_bytes;
            let together = Jobs::new(&settings).sweep(stones, ranks);
            assert!(
                together.memory_bytes <= planned,
                "{stones} stones, {ranks} ranks: {} {planned}",
                together.memory_bytes
            );
        }
    }
}
