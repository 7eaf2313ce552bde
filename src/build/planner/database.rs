//! Plans of databases: method, memory layout and predicted cost of each.

use crate::cost::{CostModel, STAGE_SECONDS};
use crate::file_size::{
    bound_bytes, bound_snapshot_bytes, captures_bytes, database_bytes, file_bytes_max, planes_bytes, seeds_bytes,
};
use crate::load::Load;
use crate::memory::{CaptureMemory, KEPT_SHARES_MAX, StageMemory};
use crate::method::{ByMethod, Method, StageClass};
use crate::settings::{Settings, Verify};
use pipeline::Cost;
use std::time::Duration;
use store::Codec;

/// Snapshots on disk at a time: one stays until the next is durable.
const SNAPSHOTS: u64 = 2;

/// Planes of a bit a position in scratch files, at most: candidates, wins, and both as they were when the bound began.
const SCRATCH_PLANES: u64 = 4;

/// Margin of the expected sizes of compressed files.
const COMPRESSED_MARGIN: f64 = 1.05;

/// A stage that is asked to stop and has run for less than this saves nothing: repeating it is cheaper.
pub const WORTH_A_SNAPSHOT: Duration = Duration::from_secs(10);

/// Time of the longest bounds, as a multiple of the mean.
const LONGEST_BOUND: f64 = 5.0;

/// Bytes of a file of statistics, at most.
const STATS_FILE_BYTES: u64 = 4096;

/// Bytes of the evaluation and of its errors, at most.
const EVALUATION_FILES_BYTES: u64 = 64 << 10;

/// Plans of all databases of a build.
#[derive(Clone, Debug)]
pub struct BuildPlan {
    settings: Settings,
    databases: Vec<DatabasePlan>,
    array_bytes_max: usize,
}

impl BuildPlan {
    /// Plans all databases of a manifest.
    pub fn new(settings: Settings) -> BuildPlan {
        let plan = |stones| DatabasePlan::new(&settings, stones);
        let databases: Vec<DatabasePlan> = settings.stones().map(plan).collect();
        let is_whole = |plan: &&DatabasePlan| plan.memory().captures == CaptureMemory::Whole;
        // Values of pairs are in arrays of their own.
        let largest = databases.iter().rev().find(is_whole);
        let array_bytes_max = largest.map_or(0, |plan| solvers::row_bytes(&settings.set.slabs(plan.stones())) as usize);
        BuildPlan { settings, databases, array_bytes_max }
    }

    /// Returns the settings that were planned.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the predicted cost of the stage that ends a book at a milestone.
    ///
    /// # Panics
    /// If the build has no book.
    pub fn book_cost(&self, milestone: u32) -> Cost {
        let Settings { ref hardware, ranks, .. } = self.settings;
        self.settings.book().expect("the build has a book").cost(milestone, hardware, ranks)
    }

    /// Returns the plan of the database of `stones`.
    ///
    /// # Panics
    /// If the build has no such database.
    pub fn database(&self, stones: u32) -> &DatabasePlan {
        let at = self.databases.binary_search_by_key(&stones, DatabasePlan::stones);
        &self.databases[at.expect("the build has this database")]
    }

    /// Returns the plans by number of stones.
    pub fn databases(&self) -> &[DatabasePlan] {
        &self.databases
    }

    /// Returns the length of the longest array of captures or scores that any stage holds whole.
    pub fn array_bytes_max(&self) -> usize {
        self.array_bytes_max
    }
}

/// Plan of one database.
#[derive(Clone, Debug)]
pub struct DatabasePlan {
    memory: StageMemory,
    /// By class.
    stages: [Cost; StageClass::ALL.len()],
    solving: MethodPrediction,
    all_stages: MethodPrediction,
}

/// Predicted resources of making one database by one method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MethodPrediction {
    /// Method.
    pub method: Method,
    /// Work of the stages.
    pub load: Load,
    /// Time of all stages.
    pub seconds: f64,
    /// The peak memory of any stage, in bytes.
    pub memory_bytes: u64,
    /// The peak disk space, in bytes, including files that are removed afterwards.
    pub disk_bytes: u64,
    /// Whether the method can solve databases by the rules, and the memory is within the budget.
    pub fits: bool,
}

impl DatabasePlan {
    /// Plans a database by the method that the manifest asks for, else by the fastest one that fits the memory.
    pub fn new(settings: &Settings, stones: u32) -> DatabasePlan {
        match settings.asked_method(stones) {
            Some(method) => DatabasePlan::by(settings, stones, method),
            None => fastest(settings, stones),
        }
    }

    /// Plans a database by each method.
    pub fn by_each_method(settings: &Settings, stones: u32) -> ByMethod<DatabasePlan> {
        Method::ALL.map(|method| DatabasePlan::by(settings, stones, method))
    }

    /// Plans a database by a method.
    pub fn by(settings: &Settings, stones: u32, method: Method) -> DatabasePlan {
        let memory = StageMemory::new(settings, stones, method);
        let estimate = Estimate { settings, memory: &memory };
        let whole = |&class: &StageClass| (estimate.load(class), estimate.cost(class, 1));
        let solving: Vec<_> = method.stages().iter().map(whole).collect();
        let captures = captures_bytes(settings, stones);
        let beside_captures = |class: &StageClass| {
            let (load, cost) = whole(class);
            // A bound method reads captures once; `seeds` writes the seeds beside them.
            let are_there = *class == StageClass::Seeds || !method.has_bounds();
            let captures = if are_there { captures } else { 0 };
            (load, Cost { disk_bytes: cost.disk_bytes + captures, ..cost })
        };
        let mut all = vec![whole(&StageClass::Capture)];
        all.extend(method.stages().iter().map(beside_captures));
        all.extend((settings.verify != Verify::None).then(|| beside_captures(&StageClass::Verify)));
        all.push(beside_captures(&StageClass::Stats));
        let all_stages = estimate.prediction(&all);
        let smaller = settings.stones().take_while(|&smaller| smaller < stones);
        let smaller = smaller.map(|stones| database_bytes(settings, stones)).sum::<u64>();
        DatabasePlan {
            stages: std::array::from_fn(|class| estimate.stage_cost(StageClass::ALL[class])),
            solving: estimate.prediction(&solving),
            all_stages: MethodPrediction { disk_bytes: all_stages.disk_bytes + smaller, ..all_stages },
            memory,
        }
    }

    /// Returns the number of stones.
    pub fn stones(&self) -> u32 {
        self.memory.stones
    }

    /// Returns the method that solves the database.
    pub fn method(&self) -> Method {
        self.memory.method
    }

    /// Returns the memory layout of the stages.
    pub fn memory(&self) -> &StageMemory {
        &self.memory
    }

    /// Returns the predicted cost of one stage of a class.
    pub fn cost(&self, class: StageClass) -> Cost {
        self.stages[class.number()]
    }

    /// Returns the predicted resources of the stages from captures to scores.
    pub fn solving(&self) -> &MethodPrediction {
        &self.solving
    }

    /// Returns the predicted resources of all stages, with the disk space of all smaller databases. Mapped files count
    /// as no memory: they use only the memory that is left over.
    pub fn all_stages(&self) -> &MethodPrediction {
        &self.all_stages
    }
}

/// Plans a database where the manifest names no method (Lincke 2002, section 2.5): the fastest of those that
/// fit the memory, otherwise the one that needs the least.
fn fastest(settings: &Settings, stones: u32) -> DatabasePlan {
    let plans = DatabasePlan::by_each_method(settings, stones).into_iter();
    let is_possible = |method: Method| method.is_chosen() && method.refusal(&settings.rules).is_none();
    let fitting = plans.filter(|plan| plan.solving.fits && is_possible(plan.method()));
    let fastest = fitting.min_by(|plan, other| plan.solving.seconds.total_cmp(&other.solving.seconds));
    let smallest = if settings.rules.has_scores() { Method::OneBitDual } else { Method::Sweep };
    fastest.unwrap_or_else(|| DatabasePlan::by(settings, stones, smallest))
}

/// The stages of one database by one method, under estimation.
struct Estimate<'a> {
    settings: &'a Settings,
    memory: &'a StageMemory,
}

impl Estimate<'_> {
    /// The load of all stages of a class.
    fn load(&self, class: StageClass) -> Load {
        let StageMemory { method, solving_bytes, .. } = *self.memory;
        let load = CostModel::default().load(self.settings, self.memory, class);
        // The page cache of the system holds scratch files where there is enough spare memory.
        let scratch_bytes = SCRATCH_PLANES * self.positions() / 8;
        let spare_bytes = self.settings.hardware.memory_bytes.saturating_sub(solving_bytes);
        let is_cached = method.has_bounds() && method.stages().contains(&class);
        let has_none = self.memory.previous_in_memory || scratch_bytes <= spare_bytes;
        if is_cached && has_none { load.without_scratch() } else { load }
    }

    /// The cost of one stage of a class that has `stages`.
    fn cost(&self, class: StageClass, stages: u32) -> Cost {
        let Settings { hardware, threads, .. } = self.settings;
        let load = self.load(class).share(1.0 / f64::from(stages));
        let (disk_bytes, disk_kept_bytes) = self.disk_bytes(class);
        Cost {
            positions: self.positions(),
            seconds: hardware.seconds(&load, *threads) + STAGE_SECONDS,
            core_seconds: hardware.core_seconds(&load, *threads) * (*threads).clamp(1, hardware.cores) as f64,
            disk_seconds: hardware.disk_seconds(&load),
            memory_bytes: self.memory.peak_bytes(self.settings, class),
            disk_bytes,
            disk_kept_bytes,
        }
    }

    /// The cost of one stage of a class, as the pipeline runs it.
    fn stage_cost(&self, class: StageClass) -> Cost {
        let stones = self.memory.stones;
        let cost = self.cost(class, if class.is_repeated() { stones.max(1) } else { 1 });
        if class != StageClass::Verify {
            return cost;
        }
        Cost { memory_bytes: cost.memory_bytes + self.memory.mapped_bytes(self.settings), ..cost }
    }

    /// The peak disk space of a stage, and the part of it that its outputs keep.
    fn disk_bytes(&self, class: StageClass) -> (u64, u64) {
        let Settings { ranks, codec, ref scratch, .. } = *self.settings;
        let stones = self.memory.stones;
        let file = |codec| file_bytes_max(self.settings, codec, stones);
        let expected = |bytes: u64| (bytes as f64 * COMPRESSED_MARGIN) as u64;
        let database =
            if codec.is_compressed() { expected(database_bytes(self.settings, stones)) } else { file(codec) };
        let captures = expected(captures_bytes(self.settings, stones));
        let [planes, seeds] = [planes_bytes, seeds_bytes].map(|bytes| expected(bytes(self.settings, stones)));
        // Several ranks keep compressed parts in the run directory until the offset of each part in the file is known.
        let parts =
            |codec: Codec, bytes| if ranks > 1 && codec.is_compressed() && scratch.is_none() { bytes } else { 0 };
        let with_parts = database + parts(codec, database);
        let intermediates = self.settings.intermediates;
        let parts_of_planes = |bytes| parts(intermediates.planes_codec(), bytes);
        match class {
            StageClass::Capture => (captures + parts(intermediates.captures_codec(), captures), captures),
            StageClass::OneStage(method) => {
                let is_elsewhere = ranks > 1 && scratch.is_some();
                let snapshots = if is_elsewhere { 0 } else { SNAPSHOTS * file(method.model().snapshot_bound) };
                (beside_snapshots(database, snapshots) + parts(codec, database), database)
            }
            StageClass::Seeds => (seeds + parts_of_planes(seeds), 0),
            // The seeds are there until the statistics are.
            StageClass::Merge => (seeds + planes + with_parts, database),
            StageClass::Verify => (0, 0),
            StageClass::Stats => (STATS_FILE_BYTES, STATS_FILE_BYTES),
            StageClass::Evaluation => (EVALUATION_FILES_BYTES, EVALUATION_FILES_BYTES),
            StageClass::PreprocessTwoBit
            | StageClass::PreprocessOneBit
            | StageClass::ProcessTwoBit
            | StageClass::ProcessOneBit
            | StageClass::ProcessOneBitDual
            | StageClass::Postprocess => {
                let of_bound = expected(bound_bytes(self.settings, stones));
                let files = seeds + planes + of_bound + parts_of_planes(of_bound);
                (files + self.scratch_bytes() + self.bound_snapshot_bytes(class), 0)
            }
        }
    }

    /// The disk space of snapshots of a bound, if its stage is of a class that saves them and long enough.
    /// Ranks save none.
    fn bound_snapshot_bytes(&self, class: StageClass) -> u64 {
        let Settings { ref hardware, threads, ranks, snapshot, .. } = *self.settings;
        let stones = self.memory.stones;
        let of_longest = self.load(class).share(LONGEST_BOUND / f64::from(stones.max(1)));
        let least = snapshot.min(WORTH_A_SNAPSHOT).as_secs_f64();
        let saves = class.is_process() && ranks == 1 && hardware.seconds(&of_longest, threads) >= least;
        if saves { bound_snapshot_bytes(self.settings, stones) } else { 0 }
    }

    /// The disk space in the run directory of scratch files while a bound is solved.
    fn scratch_bytes(&self) -> u64 {
        let StageMemory { method, wins_plane_bytes, previous_in_memory, .. } = *self.memory;
        let Settings { ranks, ref scratch, .. } = *self.settings;
        let Some(in_memory) = method.planes_in_memory() else { return 0 };
        let planes = if ranks == 1 {
            if previous_in_memory { 0 } else { SCRATCH_PLANES - in_memory.bits() }
        } else if scratch.is_some() {
            0
        } else {
            in_memory.on_disks_of_ranks(KEPT_SHARES_MAX.min(ranks as u64) as f64) as u64
        };
        planes * wins_plane_bytes
    }

    /// The stages of some classes together.
    fn prediction(&self, stages: &[(Load, Cost)]) -> MethodPrediction {
        let StageMemory { method, stones, budget_bytes, .. } = *self.memory;
        let most = |bytes: fn(&Cost) -> u64| stages.iter().map(|(_, cost)| bytes(cost)).max().unwrap_or(0);
        let memory_bytes = most(|cost| cost.memory_bytes);
        let bounds = if method.has_bounds() { 3 * stones } else { 0 };
        MethodPrediction {
            method,
            load: stages.iter().fold(Load::default(), |sum, &(load, _)| sum + load),
            seconds: stages.iter().map(|(_, cost)| cost.seconds).sum::<f64>() + f64::from(bounds) * STAGE_SECONDS,
            memory_bytes,
            disk_bytes: most(|cost| cost.disk_bytes),
            fits: memory_bytes <= budget_bytes && method.refusal(&self.settings.rules).is_none(),
        }
    }

    fn positions(&self) -> u64 {
        self.settings.set.positions(self.memory.stones)
    }
}

/// Returns the peak disk space of a database and its snapshots: the database is written while the last snapshot exists.
fn beside_snapshots(database: u64, snapshots: u64) -> u64 {
    (database + snapshots / SNAPSHOTS).max(snapshots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::Manifest;

    /// The prediction for a method does not depend on the method that is chosen.
    #[test]
    fn a_prediction_is_that_of_its_own_method() {
        let prediction = |method: Method, asked: &str, stones| {
            let text = format!("[build]\nstones = \"0..40\"\nmemory = \"4 GiB\"\nmethod = \"{asked}\"\n");
            let settings = Settings::new(&Manifest::parse(&text, "m.toml", &crate::schema(), &[]).unwrap());
            let plans = DatabasePlan::by_each_method(&settings, stones);
            *plans.into_iter().find(|plan| plan.method() == method).unwrap().all_stages()
        };
        for (method, stones) in Method::ALL.into_iter().flat_map(|method| [12, 24, 40].map(|stones| (method, stones))) {
            let (forced, auto) = (prediction(method, method.word(), stones), prediction(method, "auto", stones));
            assert_eq!(auto, forced, "{stones} stones by {method}");
        }
    }
}
