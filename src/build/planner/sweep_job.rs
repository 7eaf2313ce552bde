//! Prediction of the stage `sweep:n` of a job: a sweep of one database by several ranks, each on a machine of its own.
//!
//! The memory layout of each rank comes from the solver ([`solvers::sweep::ranks::memory_layouts`]); nothing is
//! allocated. A rank works for a position as long as one machine does, and longer with each doubling of the ranks,
//! because updates of other ranks arrive late. Traffic is proportional to the positions of others that ranks keep. The
//! constants were measured in jobs of 16 and 18 stones on 1 to 8 ranks that were threads; `cargo bench -p bench --bench
//! cost_model` compares them with larger jobs.

use crate::cost::CostModel;
use crate::hardware::Hardware;
use crate::load::Load;
use crate::memory::fixed_bytes;
use crate::method::{OneStage, StageClass};
use crate::settings::Settings;
use solvers::Tables;
use solvers::sweep::ranks::{MemoryLayout, SLACK, memory_layouts, phases};

/// Additional work of a position with each doubling of the ranks, as a share: it is recomputed more often. 12.7 times
/// on one rank at 20 stones, 14.0 on two, 16.6 on four, 17.0 on eight.
const MORE_WORK: f64 = 0.13;

/// Bytes sent for each position that a rank keeps of others: it reads less than half of them, they change 1.2 to 1.3
/// times, and changes share masks.
const BYTES_A_FOREIGN_POSITION: f64 = 1.0;

/// Processor nanoseconds per byte, of sender and receiver together.
const BYTE_NANOSECONDS: f64 = 4.5;

/// Nanoseconds to send a message and to receive it.
const MESSAGE_NANOSECONDS: f64 = 5_000.0;

/// Passes over the database, and additional ones with each doubling of the ranks: of 18 to 20 stones 20 to 22 of two
/// ranks, 23 or 24 of four, 20 to 26 of eight, 34 and 37 of 32.
const SUPERSTEPS: [f64; 2] = [20.0, 2.0];

/// Wait for other ranks, as a share of the work: phases are not balanced.
const WAITED: f64 = 0.14;

/// Traffic that is buffered at a time, in passes: each of the first passes sends a third of the total.
const BUFFERED_PASSES: f64 = 0.4;

/// While the ranks collect the scores of their parts of the file, round by round, excess of the largest sender over the
/// mean with each doubling of the ranks: of 48 stones 2.5 times the mean on 16 ranks, 3.3 times on 64. (Computed for
/// ranks that own the same share of all slabs.)
const UNEVEN: f64 = 0.38;

/// Predicted resources of a sweep by several ranks, from the captures of a database to its file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SweepJob {
    /// Ranks.
    pub ranks: usize,
    /// Time, without collecting the scores.
    pub seconds: f64,
    /// Seconds of the cores of all ranks, without waits.
    pub cpu_seconds: f64,
    /// Seconds of the rank with the most work, without waits.
    pub work_seconds: f64,
    /// The same, with waits for other ranks.
    pub busy_seconds: f64,
    /// Network seconds of the rank that receives the most.
    pub network_seconds: f64,
    /// Seconds of waiting for messages in flight.
    pub latency_seconds: f64,
    /// Memory of the fullest rank, in bytes.
    pub memory_bytes: u64,
    /// Memory of all ranks for scores and captures, in bytes.
    pub held_bytes: u64,
    /// Memory of all ranks, in bytes.
    pub all_bytes: u64,
    /// Bytes that the ranks send while they solve.
    pub sent_bytes: f64,
    /// Messages that the ranks send while they solve.
    pub messages: f64,
    /// Bytes that the ranks send afterwards: scores, to the ranks that write them.
    pub collected_bytes: f64,
    /// Those of the rank that sends or receives the most.
    pub collected_bytes_max: f64,
}

impl SweepJob {
    /// Predicts a sweep by `ranks` ranks. Takes some nanoseconds for each half and rank.
    ///
    /// # Panics
    /// If `ranks` is 0, or the tables serve fewer stones.
    pub(crate) fn new(settings: &Settings, tables: &Tables, stones: u32, ranks: usize) -> SweepJob {
        let layouts = memory_layouts(tables, &settings.set.slabs(stones), ranks);
        SweepJob::of_layouts(settings, stones, &layouts)
    }

    fn of_layouts(settings: &Settings, stones: u32, layouts: &[MemoryLayout]) -> SweepJob {
        let Settings { threads, set, .. } = *settings;
        let hardware: &Hardware = &settings.hardware;
        let ranks = layouts.len();
        let positions = set.positions(stones);
        let doublings = (ranks as f64).log2();
        let nanoseconds = CostModel::default().rates(StageClass::OneStage(OneStage::Sweep)).cpu.at(stones)
            * (1.0 + MORE_WORK * doublings);
        let phases = phases(positions, ranks) as f64;
        let others = (ranks - 1) as f64;
        // Each rank sends to all others in each phase, and votes.
        let supersteps = SUPERSTEPS[0] + SUPERSTEPS[1] * doublings;
        let messages = supersteps * (phases * others + 2.0 * doublings.ceil());
        let sent = |foreign: u64| foreign as f64 * BYTES_A_FOREIGN_POSITION;
        let sent_bytes: f64 = layouts.iter().map(|layout| sent(layout.foreign)).sum();
        let cpu_seconds = |layout: &MemoryLayout| {
            // Half of the work for a byte is the sender's, which is about the same on all ranks.
            let bytes = (sent(layout.foreign) + sent_bytes / ranks as f64) / 2.0;
            (nanoseconds * layout.positions as f64 + BYTE_NANOSECONDS * bytes + MESSAGE_NANOSECONDS * messages) * 1e-9
        };
        let most = |figure: &dyn Fn(&MemoryLayout) -> f64| layouts.iter().map(figure).fold(0.0, f64::max);
        let work_seconds = hardware.core_seconds(&Load { cpu_seconds: most(&cpu_seconds), ..Load::default() }, threads);
        let waiting = if ranks > 1 { 1.0 + WAITED } else { 1.0 };
        let network_seconds = most(&|layout| sent(layout.foreign)) / hardware.network.bandwidth;
        // A phase begins when the messages of all but the last phases have arrived; a superstep ends with a vote, up
        // the tree and down.
        let latency = if ranks > 1 { hardware.network.latency } else { 0.0 };
        let computing = (work_seconds * waiting).max(network_seconds);
        let in_flight = (supersteps * phases * latency / SLACK as f64 - computing).max(0.0);
        let latency_seconds = in_flight + supersteps * latency * (1.0 + 2.0 * doublings.ceil());
        // A rank sends the scores of other parts.
        let collected_bytes = positions as f64 * others / ranks as f64;
        let buffers =
            |layout: &MemoryLayout| (BUFFERED_PASSES * sent(layout.foreign) * (SLACK + 1) as f64 / phases) as u64;
        let memory = |layout: &MemoryLayout| fixed_bytes(settings) + layout.memory_bytes() + buffers(layout);
        let fullest = layouts.iter().map(memory).max().unwrap_or(0);
        SweepJob {
            ranks,
            seconds: computing + latency_seconds,
            cpu_seconds: layouts.iter().map(cpu_seconds).sum(),
            work_seconds,
            busy_seconds: work_seconds * waiting,
            network_seconds,
            latency_seconds,
            memory_bytes: fullest,
            all_bytes: layouts.iter().map(memory).sum(),
            held_bytes: layouts.iter().map(MemoryLayout::memory_bytes).sum(),
            sent_bytes,
            messages: messages * ranks as f64,
            collected_bytes,
            collected_bytes_max: collected_bytes / ranks as f64 * (1.0 + UNEVEN * doublings),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobPlanner;
    use pipeline::Manifest;

    fn settings(stones: u32, more: &str) -> Settings {
        let text = format!("[build]\nstones = \"0..{stones}\"\nmemory = \"64 GiB\"\nthreads = 16\n{more}");
        let mut settings = Settings::new(&Manifest::parse(&text, "m.toml", &crate::schema(), &[]).unwrap());
        settings.hardware = Hardware { cores: 16, ..Hardware::REFERENCE };
        settings
    }

    #[test]
    fn more_ranks_take_less_memory_each_and_send_more() {
        let settings = settings(30, "");
        let jobs = JobPlanner::new(&settings);
        let all = [1, 2, 4, 8, 16, 32, 64].map(|ranks| jobs.sweep(30, ranks));
        assert_eq!((all[0].sent_bytes, all[0].messages, all[0].latency_seconds), (0.0, 0.0, 0.0));
        for pair in all.windows(2) {
            assert!(pair[1].memory_bytes < pair[0].memory_bytes && pair[1].held_bytes >= pair[0].held_bytes);
            assert!(pair[1].sent_bytes > pair[0].sent_bytes && pair[1].messages > pair[0].messages);
            assert!(pair[1].work_seconds < pair[0].work_seconds && pair[1].cpu_seconds > pair[0].cpu_seconds);
            assert!(pair[1].seconds < 1.5 * pair[0].seconds);
            // The more ranks, the less each of them collects.
            assert!(pair[1].collected_bytes_max < pair[0].collected_bytes_max || pair[0].ranks == 1);
        }
        // One rank works as long as one machine.
        let alone = CostModel::default().rates(StageClass::OneStage(OneStage::Sweep)).cpu.at(30)
            * settings.set.positions(30) as f64
            * 1e-9;
        assert!((all[0].cpu_seconds / alone - 1.0).abs() < 1e-9);
        // All ranks hold at least 1.7 times the database, and all captures.
        assert!(all[1].held_bytes > 2 * settings.set.positions(30));
        assert!(all.iter().all(|job| job.all_bytes >= job.held_bytes && job.all_bytes >= job.memory_bytes));
    }

    #[test]
    fn the_largest_database_is_planned() {
        let settings = settings(48, "");
        let jobs = JobPlanner::new(&settings);
        let [some, more] = [32, 64].map(|ranks| jobs.sweep(48, ranks));
        let positions = settings.set.positions(48);
        for (job, ranks) in [(some, 32), (more, 64)] {
            // A score and a capture for each owned position, and less than twice the database.
            assert!((2 * positions / ranks..2 * positions).contains(&job.memory_bytes), "{job:?}");
            assert!(job.held_bytes > 2 * positions && job.sent_bytes > positions as f64, "{job:?}");
            assert!(job.seconds >= job.work_seconds.max(job.network_seconds), "{job:?}");
            assert!(job.collected_bytes_max < positions as f64 && job.collected_bytes < positions as f64, "{job:?}");
        }
        assert!(more.memory_bytes < some.memory_bytes && more.work_seconds < some.work_seconds);
        assert!(more.sent_bytes > some.sent_bytes && more.messages > some.messages);
    }

    #[test]
    fn slow_networks_limit_a_job() {
        let job = |bandwidth: f64, latency: f64| {
            let mut settings = settings(22, "");
            settings.hardware.network = crate::Network { bandwidth, latency };
            JobPlanner::new(&settings).sweep(22, 8)
        };
        let fast = job(1e12, 1e-6);
        assert!(fast.busy_seconds > fast.network_seconds.max(fast.latency_seconds), "{fast:?}");
        let narrow = job(1e6, 1e-6);
        assert!(narrow.network_seconds > narrow.busy_seconds && narrow.seconds > 10.0 * fast.seconds, "{narrow:?}");
        let far = job(1e12, 1e-1).seconds;
        // Some 26 supersteps of 64 phases, two of which may be under way.
        assert!((70.0..120.0).contains(&far), "{far}");
    }

    /// The memory of a rank is within that of the plan of its stage.
    #[test]
    fn memory_is_within_the_bound_of_the_stage() {
        for (stones, ranks) in [(12, 2), (16, 4), (16, 16), (22, 3), (24, 8), (24, 64)] {
            let settings = settings(stones, "method = \"sweep\"").with_ranks(ranks);
            let planned = crate::DatabasePlan::new(&settings, stones).solving().memory_bytes;
            let job = JobPlanner::new(&settings).sweep(stones, ranks);
            assert!(job.memory_bytes <= planned, "{stones} stones, {ranks} ranks: {} {planned}", job.memory_bytes);
        }
    }
}
