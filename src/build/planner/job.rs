//! Plans of jobs: what each stage of a database takes if all ranks share it, each rank on a machine of its own.
//!
//! A stage takes as long as the busiest of the cores, the network and the disks that it uses at the same
//! time, each of the rank that has the most to do; and latency, which nothing hides. The work is that of one
//! machine and some more with each doubling of the ranks. The bytes that ranks exchange, and those of files,
//! follow from what the stages do: see [`StageTraffic`]. How rows are shared, and with them the memory of the
//! fullest rank, is computed by the code of the solvers; nothing is allocated.

use crate::cost::{CostModel, MISS_NANOSECONDS, STAGE_SECONDS};
use crate::database::{BuildPlan, DatabasePlan};
use crate::hardware::Hardware;
use crate::load::Load;
use crate::memory::rank_bytes;
use crate::method::{ByMethod, Method, StageClass};
use crate::settings::{Settings, Verify};
use crate::sharing::{RankModel, Sharing};
use crate::stage_traffic::StageTraffic;
use crate::sweep_job::SweepJob;
use solvers::Tables;
use solvers::bounds::ranks::{PlaneShare, plane_shares};

/// Positions of a database below which rank 0 alone is faster than the exchange of messages.
const SHARED_POSITIONS_MIN: u64 = 1 << 16;

/// Messages that the ranks of a stage wait for one after the other, besides those of its solver, with each
/// doubling of the ranks: votes on whether each file can be opened and is written.
const VOTES: f64 = 20.0;

/// Nanoseconds to send a message and to receive it.
const MESSAGE_NANOSECONDS: f64 = 5_000.0;

/// Predictor of jobs with the ranks of the settings.
pub struct JobPlanner<'a> {
    settings: &'a Settings,
    tables: Tables,
}

/// Predicted resources of making one database by a method.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseJob {
    /// Stones of the database.
    pub stones: u32,
    /// Method that solves it.
    pub method: Method,
    /// Its stages by class, in the order in which they run.
    pub stages: Vec<StageJob>,
    /// Bound on the memory of a rank: a run refuses to start with a smaller budget.
    pub memory_bytes_max: u64,
    /// Memory of all ranks for what they own and keep of the database; 0 if it is not shared by rows.
    pub held_bytes: u64,
    /// The peak disk space of the run directory, all smaller databases included.
    pub shared_bytes: u64,
    /// Whether memory and disks suffice, and the method can solve databases by the rules.
    pub fits: bool,
}

/// Predicted resources of all stages of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageJob {
    /// The class.
    pub class: StageClass,
    /// Number of stages: one for each bound, or one.
    pub stages: u32,
    /// Time.
    pub seconds: f64,
    /// Seconds that the resources of the rank with the most to do are busy.
    pub busy: BusySeconds,
    /// Seconds of the cores of all ranks, as fast as those of the machine.
    pub cpu_seconds: f64,
    /// Bytes that the ranks send each other.
    pub sent_bytes: f64,
    /// Bytes that the ranks read from files and write to them.
    pub disk_bytes: f64,
    /// Memory of the fullest rank, in bytes.
    pub memory_bytes: u64,
    /// The peak disk space of the fullest rank in its own directory, in bytes; 0 if it has none.
    pub local_bytes: u64,
    /// The peak disk space of the run directory, in bytes, without other databases.
    pub shared_bytes: u64,
}

/// Seconds that the resources of a rank are busy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BusySeconds {
    /// The cores, and waits for other ranks.
    pub cores: f64,
    /// The network, with files of the run directory.
    pub network: f64,
    /// Messages in flight that all ranks wait for.
    pub latency: f64,
    /// The disk of the rank.
    pub local_disk: f64,
    /// The disk of the run directory, if it is another one.
    pub shared_disk: f64,
}

/// Resource that limits the speed of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum JobLimit {
    /// The cores, and waits for other ranks.
    Cores,
    /// Bandwidth of the network.
    Network,
    /// Latency of messages.
    Latency,
    /// The local disk.
    LocalDisk,
    /// The disk of the run directory.
    SharedDisk,
}

impl BusySeconds {
    /// Returns the time in which all of them work side by side.
    fn side_by_side(&self) -> f64 {
        [self.network, self.local_disk, self.shared_disk].into_iter().fold(self.cores, f64::max) + self.latency
    }

    /// Returns the resource that takes the most time.
    pub fn limit(&self) -> JobLimit {
        let BusySeconds { cores, network, latency, local_disk, shared_disk } = *self;
        let all = [
            (JobLimit::Cores, cores),
            (JobLimit::Network, network),
            (JobLimit::Latency, latency),
            (JobLimit::LocalDisk, local_disk),
            (JobLimit::SharedDisk, shared_disk),
        ];
        all.into_iter().reduce(|most, next| if next.1 > most.1 { next } else { most }).expect("there are five").0
    }

    /// Returns a share of the seconds.
    #[must_use]
    pub fn share(self, share: f64) -> BusySeconds {
        BusySeconds {
            cores: self.cores * share,
            network: self.network * share,
            latency: self.latency * share,
            local_disk: self.local_disk * share,
            shared_disk: self.shared_disk * share,
        }
    }
}

impl std::ops::Add for BusySeconds {
    type Output = BusySeconds;

    fn add(self, other: BusySeconds) -> BusySeconds {
        BusySeconds {
            cores: self.cores + other.cores,
            network: self.network + other.network,
            latency: self.latency + other.latency,
            local_disk: self.local_disk + other.local_disk,
            shared_disk: self.shared_disk + other.shared_disk,
        }
    }
}

impl DatabaseJob {
    /// Returns the prediction for a class of stages.
    pub fn stage(&self, class: StageClass) -> Option<&StageJob> {
        self.stages.iter().find(|stage| stage.class == class)
    }

    /// Returns the time of all stages.
    pub fn seconds(&self) -> f64 {
        self.stages.iter().map(|stage| stage.seconds).sum()
    }

    /// Returns what the rank with the most to do is busy with, in all stages.
    pub fn busy(&self) -> BusySeconds {
        self.stages.iter().map(|stage| stage.busy).fold(BusySeconds::default(), std::ops::Add::add)
    }

    /// Returns the bytes that the ranks send each other.
    pub fn sent_bytes(&self) -> f64 {
        self.stages.iter().map(|stage| stage.sent_bytes).sum()
    }

    /// Returns the seconds of the cores of all ranks.
    pub fn cpu_seconds(&self) -> f64 {
        self.stages.iter().map(|stage| stage.cpu_seconds).sum()
    }

    /// Returns the memory of the fullest rank.
    pub fn memory_bytes(&self) -> u64 {
        self.stages.iter().map(|stage| stage.memory_bytes).max().unwrap_or(0)
    }

    /// Returns the peak disk space of the fullest rank in its own directory.
    pub fn local_bytes(&self) -> u64 {
        self.stages.iter().map(|stage| stage.local_bytes).max().unwrap_or(0)
    }
}

impl<'a> JobPlanner<'a> {
    /// Returns a predictor for a build with these settings, each rank on a machine of their hardware.
    pub fn new(settings: &'a Settings) -> JobPlanner<'a> {
        JobPlanner { settings, tables: Tables::new(settings.rules, settings.set, settings.stones_max()) }
    }

    /// Predicts the stage `sweep` by `ranks` ranks. Takes some nanoseconds for each half and rank.
    ///
    /// # Panics
    /// If `ranks` is 0, or the build has no such database.
    pub fn sweep(&self, stones: u32, ranks: usize) -> SweepJob {
        SweepJob::new(self.settings, &self.tables, stones, ranks)
    }

    /// Predicts all databases of a build, by the methods of its plan.
    pub fn databases(&self, build: &BuildPlan) -> Vec<DatabaseJob> {
        build.databases().iter().map(|plan| self.database(plan, &self.shares(plan))).collect()
    }

    /// Predicts a database by each method.
    pub fn by_each_method(&self, stones: u32) -> ByMethod<DatabaseJob> {
        let plans = DatabasePlan::by_each_method(self.settings, stones);
        let shares = self.shares(&plans[Method::TwoBit as usize]);
        plans.map(|plan| self.database(&plan, &shares))
    }

    /// Returns what each rank owns and keeps of a database; nothing if the method has no bounds.
    fn shares(&self, plan: &DatabasePlan) -> Vec<PlaneShare> {
        let Settings { set, ranks, .. } = *self.settings;
        if plan.method().has_bounds() { plane_shares(&self.tables, set, plan.stones(), ranks) } else { Vec::new() }
    }

    fn database(&self, plan: &DatabasePlan, shares: &[PlaneShare]) -> DatabaseJob {
        let (settings, stones, method) = (self.settings, plan.stones(), plan.method());
        let is_sweep = method.one_stage().is_some_and(|method| matches!(method.model().ranks, RankModel::Sweep));
        let sweep = is_sweep.then(|| self.sweep(stones, settings.ranks));
        let database = DatabaseStages { settings, plan, shares, sweep };
        let mut classes = vec![StageClass::Capture];
        classes.extend(method.stages());
        classes.extend((settings.verify != Verify::None).then_some(StageClass::Verify));
        classes.push(StageClass::Stats);
        let stages: Vec<_> = classes.into_iter().map(|class| database.stage(class)).collect();
        let mut job = DatabaseJob {
            stones,
            method,
            stages,
            memory_bytes_max: plan.all_stages().memory_bytes,
            held_bytes: 0,
            shared_bytes: plan.all_stages().disk_bytes,
            fits: true,
        };
        let planes_bytes = || shares.iter().map(|share| share.candidates_bytes + share.wins_bytes).sum();
        job.held_bytes = sweep.map_or_else(planes_bytes, |sweep| sweep.held_bytes);
        let Hardware { disk_bytes, .. } = settings.hardware;
        let local_bytes = job.local_bytes();
        let ranks = settings.ranks as u64;
        let shared_free =
            settings.hardware.shared.bytes.or(disk_bytes.map(|bytes| ranks * (bytes - local_bytes.min(bytes))));
        job.fits = plan.all_stages().fits
            && job.memory_bytes() <= settings.memory_bytes
            && disk_bytes.is_none_or(|free| local_bytes <= free)
            && shared_free.is_none_or(|free| job.shared_bytes <= free);
        job
    }
}

/// The stages of one database, under estimation.
struct DatabaseStages<'a> {
    settings: &'a Settings,
    plan: &'a DatabasePlan,
    /// By rank; none if the method has no bounds.
    shares: &'a [PlaneShare],
    /// Prediction of its sweep, for [`RankModel::Sweep`].
    sweep: Option<SweepJob>,
}

impl DatabaseStages<'_> {
    /// Whether all ranks share a stage.
    fn is_shared(&self, class: StageClass) -> bool {
        let Settings { ranks, set, .. } = *self.settings;
        let has_ranks = matches!(class, StageClass::OneStage(_));
        let is_of_rank_0 = class == StageClass::Evaluation;
        ranks > 1 && !is_of_rank_0 && (has_ranks || set.positions(self.plan.stones()) >= SHARED_POSITIONS_MIN)
    }

    fn stage(&self, class: StageClass) -> StageJob {
        let Settings { ref hardware, threads, ref scratch, .. } = *self.settings;
        let (stones, mut memory) = (self.plan.stones(), *self.plan.memory());
        let stages = if class.is_repeated() { stones } else { 1 };
        let cost = self.plan.cost(class);
        let is_shared = self.is_shared(class);
        if is_shared && class == StageClass::ProcessOneBitDual {
            // The cache of a rank is for the wins that it keeps.
            let kept = self.shares.iter().map(|share| share.wins_bytes).max();
            memory.wins_plane_bytes = kept.expect("the method has bounds");
        }
        let memory = &memory;
        let load = CostModel::default().load(self.settings, memory, class);
        let ranks = if is_shared { self.settings.ranks as f64 } else { 1.0 };
        let doublings = ranks.log2();
        let traffic = if is_shared {
            StageTraffic::of_ranks(self.settings, self.plan, (class, &load), self.kept_shares())
        } else {
            StageTraffic::of_one(&load)
        };
        let sharing = Sharing::of(class);
        let messages = traffic.supersteps * ranks * (ranks - 1.0);
        // Of each rank.
        let misses = load.random_reads + load.random_writes;
        let other_misses = (ranks - 1.0) * load.random_reads;
        let by_messages = traffic.sent_bytes * sharing.byte_nanoseconds + messages * MESSAGE_NANOSECONDS;
        // Of all ranks together.
        let work = Load { cpu_seconds: load.cpu_seconds * (1.0 + sharing.more_work * doublings), ..load }
            + Load { cpu_seconds: (by_messages + other_misses * MISS_NANOSECONDS) * 1e-9, ..Load::default() };
        let excess = |share: f64| if ranks > 1.0 { 1.0 + share } else { 1.0 };
        let (uneven, unevenly_sent) = (excess(sharing.uneven), excess(sharing.unevenly_sent));
        let of_rank = |bytes: f64| bytes / ranks * uneven;
        let bandwidth = if is_shared { hardware.network.bandwidth } else { f64::INFINITY };
        let latency = if is_shared { hardware.network.latency } else { 0.0 };
        let votes = f64::from(stages) * VOTES + 2.0 * traffic.supersteps;
        let all = self.settings.ranks as f64;
        let read_rate = hardware.shared.read.unwrap_or(all * hardware.read);
        let write_rate = hardware.shared.write.unwrap_or(all * hardware.write);
        // Without a directory of their own, ranks use that of the run.
        let StageTraffic { read_bytes, written_bytes, own_read_bytes, own_written_bytes, .. } = traffic;
        let local = scratch.is_some();
        let [own_read, own_written] = [own_read_bytes, own_written_bytes].map(|bytes| if local { bytes } else { 0.0 });
        let shared_read = read_bytes + own_read_bytes - own_read;
        let shared_written = written_bytes + own_written_bytes - own_written;
        let own_seconds = of_rank(own_read) / hardware.read + of_rank(own_written) / hardware.write;
        let shared_seconds = shared_read / read_rate + shared_written / write_rate;
        let files = shared_read.max(shared_written) / ranks;
        let is_of_disks = hardware.shared.read.is_none() && hardware.shared.write.is_none();
        let shared_disk = if is_of_disks { 0.0 } else { shared_seconds };
        let busy = BusySeconds {
            cores: hardware.core_seconds(&work, threads) / ranks * uneven,
            network: (traffic.sent_bytes / ranks * unevenly_sent + if is_shared { files } else { 0.0 }) / bandwidth,
            latency: votes * latency * doublings.ceil(),
            local_disk: own_seconds + misses / hardware.operations + shared_seconds - shared_disk,
            shared_disk,
        };
        let mut job = StageJob {
            class,
            stages,
            seconds: busy.side_by_side() + f64::from(stages) * STAGE_SECONDS,
            busy,
            cpu_seconds: hardware.core_seconds(&work, 1),
            sent_bytes: traffic.sent_bytes,
            disk_bytes: read_bytes + written_bytes + own_read_bytes + own_written_bytes,
            memory_bytes: cost.memory_bytes,
            local_bytes: if local { traffic.own_bytes as u64 } else { 0 },
            shared_bytes: cost.disk_bytes,
        };
        if is_shared {
            let none = [PlaneShare::default()];
            let shares = if self.shares.is_empty() { &none } else { self.shares };
            let fullest = shares.iter().map(|share| rank_bytes(self.settings, memory, class, share)).max();
            job.memory_bytes = fullest.expect("a job has a rank");
        }
        if let Some(sweep) = self.sweep.filter(|_| matches!(class, StageClass::OneStage(_)) && is_shared) {
            // The scores are collected and written when they are known.
            let solving = BusySeconds {
                cores: sweep.busy_seconds,
                network: sweep.network_seconds,
                latency: sweep.latency_seconds,
                ..BusySeconds::default()
            };
            let collecting =
                BusySeconds { cores: 0.0, network: (sweep.collected_bytes_max + files) / bandwidth, ..busy };
            job.busy = solving + collecting;
            job.seconds = solving.side_by_side() + collecting.side_by_side() + STAGE_SECONDS;
            job.cpu_seconds = hardware.core_seconds(&Load { cpu_seconds: sweep.cpu_seconds, ..Load::default() }, 1);
            job.sent_bytes = sweep.sent_bytes + sweep.collected_bytes;
            job.memory_bytes = sweep.memory_bytes;
        }
        job
    }

    /// Returns how many ranks keep a row of wins, on average.
    fn kept_shares(&self) -> f64 {
        let all: u64 = self.shares.iter().map(|share| share.wins_bytes).sum();
        all as f64 / self.plan.memory().wins_plane_bytes.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Network, SharedDisk};
    use pipeline::Manifest;

    fn settings(stones: u32, ranks: usize, more: &str) -> Settings {
        let text = format!("[build]\nstones = \"0..{stones}\"\nthreads = 1\n{more}");
        Settings::new(&Manifest::parse(&text, "m.toml", &crate::schema(), &[]).unwrap()).with_ranks(ranks)
    }

    fn job(settings: &Settings) -> DatabaseJob {
        let planner = JobPlanner::new(settings);
        let plan = DatabasePlan::new(settings, settings.stones_max());
        planner.database(&plan, &planner.shares(&plan))
    }

    /// The counters of jobs by MPICH, two-bit without verification, one thread a rank: bytes sent and bytes
    /// of files in MB by stage, of all bounds, and memory of the fullest rank.
    #[test]
    fn jobs_take_what_was_measured() {
        const CLASSES: [StageClass; 7] = [
            StageClass::Capture,
            StageClass::Seeds,
            StageClass::PreprocessTwoBit,
            StageClass::ProcessTwoBit,
            StageClass::Postprocess,
            StageClass::Merge,
            StageClass::Stats,
        ];
        let of_20_by_4 = [0.22, 0.60, 4.35, 142.6, 3.63, 0.23, 0.0];
        let of_20_by_8 = [0.57, 1.27, 9.30, 216.1, 7.82, 0.57, 0.01];
        let of_23_by_8 = [0.65, 1.8, 12.0, 757.6, 10.6, 0.6, 0.0];
        let files_of_20_by_4 = [222.3, 189.1, 292.4, 763.8, 78.5, 153.0, 65.3];
        let files_of_20_by_8 = [333.5, 150.6, 320.0, 912.5, 102.9, 175.5, 65.7];
        let files_of_23_by_8 = [1263.6, 727.6, 1185.0, 3338.6, 384.3, 528.2, 220.9];
        let mut wrong = Vec::new();
        for (stones, ranks, sent, files, memory) in [
            (20, 4, of_20_by_4, files_of_20_by_4, 108.6),
            (20, 8, of_20_by_8, files_of_20_by_8, 98.5),
            (23, 8, of_23_by_8, files_of_23_by_8, 147.4),
        ] {
            let job = job(&settings(stones, ranks, "method = \"two-bit\"\n[check]\nverify = \"none\"\n"));
            let mut check = |what: String, predicted: f64, measured: f64, most: f64| {
                println!("{stones} stones, {ranks} ranks, {what}: {predicted:.2} for {measured:.2}");
                if !(1.0 - most..1.0 + most).contains(&(predicted / measured)) {
                    wrong.push(what);
                }
            };
            for ((class, sent), files) in CLASSES.into_iter().zip(sent).zip(files) {
                let stage = job.stage(class).unwrap();
                if sent > 2.0 {
                    check(format!("{class:?} sent"), stage.sent_bytes / 1e6, sent, 0.25);
                }
                check(format!("{class:?} files"), stage.disk_bytes / 1e6, files, 0.25);
            }
            check("sent".to_owned(), job.sent_bytes() / 1e6, sent.iter().sum(), 0.1);
            let of_files = CLASSES.iter().map(|&class| job.stage(class).unwrap().disk_bytes).sum::<f64>();
            check("files".to_owned(), of_files / 1e6, files.iter().sum(), 0.1);
            check("memory".to_owned(), job.memory_bytes() as f64 / 1e6, memory, 0.1);
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn the_busiest_resource_limits_a_job() {
        let limit = |bandwidth: f64, latency: f64, disk: f64, shared: f64| {
            let mut settings = settings(20, 8, "method = \"two-bit\"\n[cluster]\nscratch = \"scratch\"\n");
            let hardware = &mut settings.hardware;
            hardware.network = Network { bandwidth, latency };
            (hardware.read, hardware.write) = (disk, disk);
            hardware.shared = SharedDisk { bytes: None, read: Some(shared), write: Some(shared) };
            let job = job(&settings);
            let busy = job.busy();
            // Stages wait for one of them each, and the smallest takes some time.
            let most = [busy.cores, busy.network, busy.local_disk, busy.shared_disk].into_iter().fold(0.0, f64::max);
            assert!(job.seconds() >= most + busy.latency, "{} {busy:?}", job.seconds());
            busy.limit()
        };
        assert_eq!(limit(1e13, 1e-9, 1e13, 1e13), JobLimit::Cores);
        assert_eq!(limit(1e5, 1e-9, 1e13, 1e13), JobLimit::Network);
        assert_eq!(limit(1e13, 1.0, 1e13, 1e13), JobLimit::Latency);
        assert_eq!(limit(1e13, 1e-9, 1e5, 1e13), JobLimit::LocalDisk);
        assert_eq!(limit(1e13, 1e-9, 1e13, 1e5), JobLimit::SharedDisk);
    }

    #[test]
    fn every_method_is_planned_in_all_its_stages() {
        for (method, ranks) in Method::ALL.into_iter().flat_map(|method| [1, 3, 16].map(|ranks| (method, ranks))) {
            let settings = settings(18, ranks, &format!("method = \"{method}\"\n"));
            let job = job(&settings);
            let classes: Vec<StageClass> = job.stages.iter().map(|stage| stage.class).collect();
            let mut expected = vec![StageClass::Capture];
            expected.extend(method.stages());
            expected.extend([StageClass::Verify, StageClass::Stats]);
            assert_eq!((classes, job.fits), (expected, true), "{method}");
            assert!(job.stages.iter().all(|stage| stage.seconds > 0.0 && stage.memory_bytes > 0), "{job:?}");
            assert_eq!(ranks == 1, job.sent_bytes() == 0.0, "{method}");
            // Without a directory of their own, ranks use that of the run.
            assert_eq!(job.local_bytes(), 0);
        }
    }

    #[test]
    fn a_job_fits_into_memory_and_disks() {
        let scratch = "method = \"one-bit\"\nmemory = \"1 GiB\"\n[cluster]\nscratch = \"scratch\"\n";
        let mut settings = settings(20, 4, scratch);
        let fitting = job(&settings);
        assert!(fitting.fits && fitting.local_bytes() > 0);
        settings.hardware.disk_bytes = Some(fitting.local_bytes() - 1);
        assert!(!job(&settings).fits);
        settings.hardware.disk_bytes = Some(fitting.local_bytes());
        settings.hardware.shared.bytes = Some(fitting.shared_bytes);
        assert!(job(&settings).fits);
        settings.hardware.shared.bytes = Some(fitting.shared_bytes - 1);
        assert!(!job(&settings).fits);
        // A file system of the disks of all machines has what is left there.
        settings.hardware.shared.bytes = None;
        settings.hardware.disk_bytes = Some(fitting.local_bytes() + fitting.shared_bytes / 4 + 1);
        assert!(job(&settings).fits);
        settings.hardware.disk_bytes = Some(fitting.local_bytes() + fitting.shared_bytes / 4 - 1);
        assert!(!job(&settings).fits);
        settings.hardware.disk_bytes = None;
        settings.memory_bytes = 64 << 20;
        assert!(!job(&settings).fits);
    }
}
