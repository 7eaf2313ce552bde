//! The stages of a build and what they read, make and cost.
//!
//! For each number of stones: capture, solve, verify, statistics; the next number waits for the verification. What a
//! stage does is asked of the model in [`cost`](crate::cost), and what that takes of the machine; memory and disk are
//! bounds, so that what cannot fit is refused.

use crate::bounds::{self, Plane};
use crate::cost::{Load, Model, Part, STAGE_SECONDS, bits, packed_bits, sweep_on_disk};
use crate::{Method, Settings, cluster, files, settings::Verify};
use engines::bounds::PlaneLayout;
use engines::sweep::disk::DiskPlan;
use pipeline::{ArtifactKind, ArtifactName, ArtifactSpec, Cost, Graph, StageName, StageSpec};
use store::Codec;

/// Versions of what the stages compute: raised when the same inputs should give other contents.
const DATABASE_VERSION: u32 = 1;
const CAPTURE_VERSION: u32 = 1;
const PLANE_VERSION: u32 = 1;
const VERIFY_VERSION: u32 = 1;
const STATS_VERSION: u32 = 1;

/// Memory of the process besides the arrays of a stage: code, staging, batches of positions on their way to or from
/// a file.
const WORKSPACE_BYTES: u64 = 22 << 20;
/// And for each thread: staging, blocks at hand, contexts of codecs, what an allocator keeps.
const THREAD_BYTES: u64 = 4 << 20;
/// What the stages of bounds take besides: groups of planes at hand, and the tables of what is told to whom.
const BOUNDS_BYTES: u64 = 6 << 20;
/// And what stays of them when a sweep on disk has forgotten them: it took 0.7 MiB more than without this at 20 stones.
const FORGOTTEN_TABLE_BYTES: u64 = 6;
/// Bytes of tables for each half of up to n stones, measured.
const TABLE_BYTES: u64 = 75;

/// A writer of the codec rans has so many times the longest block: appended, being encoded with a class each and a code
/// each, and encoded; blocks are of 16 rows, but within these bounds (see `store`).
const BANDS: u64 = 5;
const BAND_ROWS: u64 = 16;
const BAND_BYTES_MIN: u64 = 1 << 20;
const BAND_BYTES_MAX: u64 = 8 << 20;

/// The most decoded blocks that a stage keeps of the files it reads.
const CACHE_BYTES_MAX: u64 = 1 << 30;
/// And no budget is so small that fewer would do: captures read some hundred streams at a time.
const CACHE_BYTES_MIN: u64 = 8 << 20;
/// A cache takes no more than one part in so many of what the budget leaves: the allocator may hold on to it, so all
/// stages count it, and the arrays of solvers need the rest.
const CACHE_SHARE: u64 = 4;

/// Captures that are not kept are made in stripes where the smaller databases are more than so many times the cache; a
/// stripe takes one part in so many of what the budget leaves.
const CAPTURE_CACHE_TIMES: f64 = 1.5;
const CAPTURE_STRIPE_SHARE: u64 = 2;

/// A snapshot stays until the next one is durable.
const SNAPSHOTS: u64 = 2;

/// Room of a database and of the snapshots on the way to it, all that there may be at a time: it is written beside the
/// last one.
fn beside_snapshots(database: u64, snapshots: u64) -> u64 {
    (database + snapshots / SNAPSHOTS).max(snapshots)
}

/// A rank holds no more than so many times its share of a database, times the root of the number of ranks: of 16 stones
/// 3.0 times for 4 ranks, 6.5 for 16, 16.3 for 64; of 24 stones 2.7, 4.9 and 12.
const HELD_SHARES_MAX: f64 = 2.1;

/// Planes of a bit a position in scratch files, at most: candidates, wins, and both as they were a bound before.
const SCRATCH_PLANES: u64 = 4;

/// The least that is held of a slab, of which workspace counts.
const STRIPE_BYTES_MIN: u64 = 8 << 20;

/// What the budget leaves besides what every stage takes.
fn room_bytes(settings: &Settings) -> u64 {
    settings.memory_bytes.saturating_sub(fixed_bytes(settings))
}

/// Decoded blocks that a stage keeps which reads a database and those that captures lead to from there.
pub(crate) fn cache_bytes(settings: &Settings, stones: u32) -> u64 {
    positions_with_smaller(settings, stones)
        .min((room_bytes(settings) / CACHE_SHARE).clamp(CACHE_BYTES_MIN, CACHE_BYTES_MAX))
}

/// Bytes of a slab that the stage stats holds at a time: the largest slab where there is room, so that no row is read
/// in parts.
pub(crate) fn stripe_bytes(settings: &Settings, stones: u32) -> usize {
    let largest = settings.set.slabs(stones).iter().map(game::Slab::positions).max().unwrap_or(0);
    largest.min((room_bytes(settings) / CACHE_SHARE).max(STRIPE_BYTES_MIN)) as usize
}

/// Whether there is room for maps of so many bytes and the cache of a database. Maps are faster than reads, but their
/// pages are memory of the process.
pub(crate) fn has_room_for_maps(settings: &Settings, bytes: u64, stones: u32) -> bool {
    bytes + cache_bytes(settings, stones) <= room_bytes(settings)
}

/// Whether the captures of a database stay in memory for the stage that solves it by a method.
pub(crate) fn keeps_captures(settings: &Settings, stones: u32, method: Method) -> bool {
    settings.ranks == 1 && !method.has_bounds() && !(method == Method::Sweep && sweeps_on_disk(settings, stones))
}

/// Bytes of captures that a stage has at a time which neither keeps all of them nor has room in its cache for what it
/// reads, for a method. A quarter more is what they lead to.
pub(crate) fn capture_stripe_bytes(settings: &Settings, stones: u32, method: Method) -> Option<u64> {
    let positions = settings.set.positions(stones);
    let read = positions_with_smaller(settings, stones) - positions;
    let cache = cache_bytes(settings, stones);
    let is_read_once = keeps_captures(settings, stones, method) || read as f64 <= CAPTURE_CACHE_TIMES * cache as f64;
    if settings.ranks > 1 || is_read_once {
        return None;
    }
    let room = room_bytes(settings) / CAPTURE_STRIPE_SHARE;
    Some((room.max(CACHE_BYTES_MIN) * 4 / 5).min(positions))
}

/// Positions of a database and of those that captures lead to from there.
fn positions_with_smaller(settings: &Settings, stones: u32) -> u64 {
    settings.smaller(stones).chain([stones]).map(|stones| settings.set.positions(stones)).sum()
}

/// Memory that does not depend on the database under way.
pub(crate) fn fixed_bytes(settings: &Settings) -> u64 {
    game::binomial(settings.stones_max() + 6, 6) * TABLE_BYTES + process_bytes(settings)
}

/// The same without tables.
fn process_bytes(settings: &Settings) -> u64 {
    let block = match settings.codec {
        Codec::Rans | Codec::Floors => {
            (BAND_ROWS * game::binomial(settings.stones_max() + 5, 5)).clamp(BAND_BYTES_MIN, BAND_BYTES_MAX)
        }
        Codec::Raw | Codec::Packed | Codec::Zstd => 0,
    };
    WORKSPACE_BYTES + BANDS * block + settings.threads as u64 * THREAD_BYTES
}

/// Whether the sweep of a database keeps its scores on disk: where they do not fit the memory, unless it would take even
/// more of it then.
pub(crate) fn sweeps_on_disk(settings: &Settings, stones: u32) -> bool {
    let in_memory = OneDatabase { settings, stones }.sweep_memory();
    settings.ranks == 1 && in_memory > settings.memory_bytes && on_disk_bytes(settings, stones) < in_memory
}

/// Bytes of each of the two arenas of a sweep on disk: what the memory leaves, but no less than there must be.
pub(crate) fn arena_bytes(settings: &Settings, stones: u32) -> u64 {
    let room = settings.memory_bytes.saturating_sub(on_disk_fixed_bytes(settings, stones));
    (room / 2).max(DiskPlan::arena_bytes_min(stones, settings.set) as u64)
}

/// Memory of a sweep on disk: all that it may take, or the least it does with.
fn on_disk_bytes(settings: &Settings, stones: u32) -> u64 {
    on_disk_fixed_bytes(settings, stones) + 2 * arena_bytes(settings, stones)
}

/// Memory of a sweep on disk besides its arenas.
fn on_disk_fixed_bytes(settings: &Settings, stones: u32) -> u64 {
    let forgotten = game::binomial(settings.stones_max() + 6, 6) * FORGOTTEN_TABLE_BYTES;
    process_bytes(settings) + DiskPlan::other_bytes(stones, settings.set) + forgotten
}

/// The whole build of these settings.
pub(crate) fn graph(settings: &Settings) -> Graph {
    let mut stages = Vec::new();
    let mut artifacts = Vec::new();
    for stones in 0..=settings.stones_max() {
        let one = OneDatabase { settings, stones };
        one.declare(&mut stages, &mut artifacts);
    }
    Graph::new(stages, artifacts).expect("stages are declared in the order in which they read each other")
}

/// What a method is predicted to take for one database.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The method.
    pub method: Method,
    /// What its stages do.
    pub load: Load,
    /// The time of all of them.
    pub seconds: f64,
    /// The most memory of one of them, in bytes.
    pub memory_bytes: u64,
    /// The most disk, in bytes, with files that are removed afterwards.
    pub disk_bytes: u64,
    /// Whether the memory is within the budget.
    pub fits: bool,
}

/// What each method is predicted to take to solve the database of `stones`, once its captures are known.
pub fn predictions(settings: &Settings, stones: u32) -> [Prediction; 5] {
    let one = OneDatabase { settings, stones };
    Method::ALL.map(|method| one.prediction(method, one.solving(method)))
}

/// What each method is predicted to take for all stages of `stones`, and for disk besides that all smaller databases are
/// there. Maps of files, which take only what is left, count for no memory.
pub fn whole_predictions(settings: &Settings, stones: u32) -> [Prediction; 5] {
    let one = OneDatabase { settings, stones };
    let smaller = (0..stones).map(|stones| database_bytes(settings, stones)).sum::<u64>();
    Method::ALL.map(|method| {
        let mut costs = vec![(one.load(Part::Capture, method), one.capture_cost(method))];
        costs.extend(one.solving(method));
        if settings.verify != Verify::None {
            let load = one.load(Part::Verify, method);
            costs.push((load, one.cost(load, 0, 0, 0)));
        }
        costs.push((one.load(Part::Stats, method), one.stats_cost(method)));
        let prediction = one.prediction(method, costs);
        let disk_bytes = prediction.disk_bytes + one.file_bytes(Codec::Packed) + smaller;
        Prediction { disk_bytes, ..prediction }
    })
}

/// Bytes of the database of `stones` on disk, about: what its codec made of others.
pub fn database_bytes(settings: &Settings, stones: u32) -> u64 {
    (settings.set.positions(stones) as f64 * bits(settings.codec, stones) / 8.0) as u64 + 4096
}

/// The method for a database where none is asked for (Lincke 2002, section 2.5): of those that fit the memory the
/// fastest, else the one that takes least. Counting is never picked, for it needs as much memory as sweep.
pub(crate) fn pick(settings: &Settings, stones: u32) -> Method {
    let all = predictions(settings, stones);
    let fitting = all.iter().filter(|prediction| prediction.fits && prediction.method != Method::Counting);
    let fastest = fitting.min_by(|one, other| one.seconds.total_cmp(&other.seconds));
    fastest.map_or(Method::OneBitDual, |prediction| prediction.method)
}

/// Memory of a bound method besides its planes: workspace, tables, and what is told of the rows of the candidates.
pub(crate) fn bounds_workspace(settings: &Settings, candidates: &PlaneLayout) -> u64 {
    fixed_bytes(settings) + BOUNDS_BYTES + candidates.rows() as u64 * 8
}

/// The stages of one number of stones.
struct OneDatabase<'a> {
    settings: &'a Settings,
    stones: u32,
}

impl OneDatabase<'_> {
    fn declare(&self, stages: &mut Vec<StageSpec>, artifacts: &mut Vec<ArtifactSpec>) {
        let stones = self.stones;
        let (capture, database) = (files::capture(stones), files::database(stones));
        let smaller = self.smaller();

        let mut after = Vec::new();
        if let Some(before) = stones.checked_sub(1).filter(|_| self.settings.verify != Verify::None) {
            after.push(StageName::new("verify", &[before]));
        }
        let method = self.settings.method(stones);
        stages.push(StageSpec {
            inputs: smaller.clone(),
            outputs: vec![capture.clone()],
            after,
            cost: self.capture_cost(method),
            ..StageSpec::new(StageName::new("capture", &[stones]))
        });
        artifacts.push(self.artifact(capture.clone(), ArtifactKind::Intermediate, "capture").version(CAPTURE_VERSION));

        if method.has_bounds() {
            self.declare_bounds(method, stages, artifacts);
        } else {
            stages.push(StageSpec {
                inputs: vec![capture.clone()],
                outputs: vec![database.clone()],
                cost: self.solve_cost(method),
                ..StageSpec::new(StageName::new(method.word(), &[stones]))
            });
        }
        artifacts.push(self.artifact(database.clone(), ArtifactKind::Target, "database").version(DATABASE_VERSION));

        if self.settings.verify != Verify::None {
            let verified = files::verification(stones);
            let mut inputs = smaller;
            inputs.push(database.clone());
            stages.push(StageSpec {
                inputs,
                outputs: vec![verified.clone()],
                cost: self.verify_cost(method),
                ..StageSpec::new(StageName::new("verify", &[stones]))
            });
            let fact = self
                .artifact(verified, ArtifactKind::Verification, "verification")
                .version(VERIFY_VERSION)
                .identity("extent", self.settings.verify)
                .identity("published", self.settings.published);
            artifacts.push(fact.accept("extent", Verify::Full).accept("published", true).vouch(database.clone()));
        }

        let stats = files::stats(stones);
        stages.push(StageSpec {
            inputs: vec![capture, database],
            outputs: vec![stats.clone()],
            cost: self.stats_cost(method),
            ..StageSpec::new(StageName::new("stats", &[stones]))
        });
        artifacts.push(self.artifact(stats, ArtifactKind::Report, "statistics").version(STATS_VERSION));
    }

    /// The stages of a method that solves bound after bound, up to the database.
    fn declare_bounds(&self, method: Method, stages: &mut Vec<StageSpec>, artifacts: &mut Vec<ArtifactSpec>) {
        let stones = self.stones;
        let name = |plane: Plane| plane.name(stones);
        let part = |kind: &str| Part::of(kind, method).expect("each kind of stage is part of a build");
        let mut stage = |kind: &str, bound: Option<u32>, inputs: Vec<Plane>, outputs: &[Plane]| {
            let parameters: Vec<u32> = std::iter::once(stones).chain(bound).collect();
            let mut inputs: Vec<_> = inputs.into_iter().map(name).collect();
            let mut produced: Vec<_> = outputs.iter().copied().map(name).collect();
            match kind {
                "seeds" => inputs.push(files::capture(stones)),
                "merge" => produced.push(files::database(stones)),
                _ => {}
            }
            stages.push(StageSpec {
                inputs,
                outputs: produced,
                cost: self.bounds_cost(method, part(kind), bound.map_or(1, |_| stones)),
                // Those of seeds are reserved whole before they are written.
                folder: (kind != "seeds").then(|| Plane::folder(stones)),
                ..StageSpec::new(StageName::new(kind, &parameters))
            });
            artifacts.extend(outputs.iter().map(|&plane| {
                self.artifact(name(plane), ArtifactKind::Intermediate, plane.content())
                    .version(PLANE_VERSION)
                    .identity("bound", plane.bound())
            }));
        };
        if stones > 0 {
            stage("seeds", None, Vec::new(), &[Plane::WinSeeds, Plane::CandidateSeeds]);
        }
        for bound in (1..=stones).rev() {
            // The state is that of the bounds above.
            let above = || (bound + 1..=stones).rev().flat_map(|above| [Plane::Won(above), Plane::Lost(above)]);
            let inputs = [Plane::WinSeeds, Plane::CandidateSeeds].into_iter().chain(above()).collect();
            stage("preprocess", Some(bound), inputs, &[Plane::Seed(bound)]);
            let inputs = [Plane::CandidateSeeds, Plane::Seed(bound)].into_iter().chain(above()).collect();
            stage("process", Some(bound), inputs, &[Plane::Won(bound), Plane::Lost(bound)]);
            stage("postprocess", Some(bound), vec![Plane::Lost(bound)], &[Plane::Decided(bound)]);
        }
        let inputs = (1..=stones).flat_map(|bound| [Plane::Won(bound), Plane::Decided(bound)]).collect();
        stage("merge", None, inputs, &[]);
    }

    /// The databases that captures lead to.
    fn smaller(&self) -> Vec<ArtifactName> {
        self.settings.smaller(self.stones).map(files::database).collect()
    }

    fn artifact(&self, name: ArtifactName, kind: ArtifactKind, content: &str) -> ArtifactSpec {
        ArtifactSpec::new(name, kind, content)
            .identity("rules", self.settings.rules.name)
            .identity("positions", self.settings.set)
            .identity("stones", self.stones)
    }

    fn positions(&self) -> u64 {
        self.settings.set.positions(self.stones)
    }

    /// Bytes of a file of this database, at most.
    fn file_bytes(&self, codec: Codec) -> u64 {
        let bits = match codec {
            Codec::Raw => 8,
            // Compressed blocks are stored packed where that is smaller.
            Codec::Packed | Codec::Zstd | Codec::Rans | Codec::Floors => u64::from(packed_bits(self.stones)),
        };
        self.positions() * bits / 8 + 4096
    }

    /// What the parts of a method do and cost that solve the database, each with all its bounds.
    fn solving(&self, method: Method) -> Vec<(Load, Cost)> {
        let parts = Part::solving(method).iter();
        let of = |&part: &Part| match method.has_bounds() {
            true => (self.bounds_load(method, part), self.bounds_cost(method, part, 1)),
            false if part == Part::Sweep => (self.sweep_load(), self.solve_cost(method)),
            false => (self.load(part, method), self.solve_cost(method)),
        };
        parts.map(of).collect()
    }

    /// The parts together.
    fn prediction(&self, method: Method, costs: Vec<(Load, Cost)>) -> Prediction {
        let most = |of: fn(&Cost) -> u64| costs.iter().map(|(_, cost)| of(cost)).max().unwrap_or(0);
        let memory_bytes = most(|cost| cost.memory_bytes);
        let bounds = if method.has_bounds() { 3 * self.stones } else { 0 };
        Prediction {
            method,
            load: costs.iter().fold(Load::default(), |sum, &(load, _)| sum + load),
            seconds: costs.iter().map(|(_, cost)| cost.seconds).sum::<f64>() + f64::from(bounds) * STAGE_SECONDS,
            memory_bytes,
            disk_bytes: most(|cost| cost.disk_bytes),
            fits: memory_bytes <= self.settings.memory_bytes,
        }
    }

    fn load(&self, part: Part, method: Method) -> Load {
        Model::default().load(self.settings, part, self.stones, method)
    }

    fn capture_cost(&self, method: Method) -> Cost {
        let bytes = self.file_bytes(Codec::Packed);
        let is_kept = keeps_captures(self.settings, self.stones, method);
        let cost = self.cost(self.load(Part::Capture, method), u64::from(is_kept), bytes, bytes);
        let pieces = if self.settings.ranks > 1 { cluster::CAPTURES_BYTES } else { 0 };
        let stripe = capture_stripe_bytes(self.settings, self.stones, method);
        // In the place of the cache, which nothing is read through then.
        let striped = stripe.map_or(0, |bytes| fixed_bytes(self.settings) + bytes + bytes / 4);
        Cost { memory_bytes: striped.max(cost.memory_bytes + pieces), ..cost }
    }

    /// Of a method that needs one stage.
    fn solve_cost(&self, method: Method) -> Cost {
        let kept = self.file_bytes(self.settings.codec);
        if method == Method::Counting {
            return self.counting_cost();
        }
        if sweeps_on_disk(self.settings, self.stones) {
            let disk_bytes = kept + DiskPlan::file_bytes_max(self.stones, self.settings.set);
            let cost = self.cost(self.sweep_load(), 0, disk_bytes, kept);
            return Cost { memory_bytes: on_disk_bytes(self.settings, self.stones), ..cost };
        }
        // Besides the database, snapshots, unless each rank has its own elsewhere.
        let is_elsewhere = self.settings.ranks > 1 && self.settings.scratch.is_some();
        let snapshots = if is_elsewhere { 0 } else { SNAPSHOTS * self.file_bytes(Codec::Packed) };
        let disk_bytes = beside_snapshots(kept, snapshots) + self.parts_bytes();
        let cost = self.cost(self.sweep_load(), 1, disk_bytes, kept);
        Cost { memory_bytes: self.sweep_memory(), ..cost }
    }

    /// What several ranks keep of the database in the run directory until each part has its place in the file.
    fn parts_bytes(&self) -> u64 {
        let Settings { codec, ranks, ref scratch, .. } = *self.settings;
        if ranks > 1 && codec.is_compressed() && scratch.is_none() { self.file_bytes(codec) } else { 0 }
    }

    /// Memory of a sweep in memory.
    fn sweep_memory(&self) -> u64 {
        if self.settings.ranks > 1 {
            return self.cost(Load::default(), 0, 0, 0).memory_bytes + self.part_bytes();
        }
        let scores = engines::sweep::memory_bytes(&self.settings.set.slabs(self.stones));
        self.cost(Load::default(), 1, 0, 0).memory_bytes + scores
    }

    /// What one of several ranks has of a database: its part and the captures, the rows that it holds, and messages.
    fn part_bytes(&self) -> u64 {
        let ranks = self.settings.ranks as u64;
        let held = engines::sweep::memory_bytes(&self.settings.set.slabs(self.stones));
        // Nothing is held more than twice.
        let shares = (HELD_SHARES_MAX * (ranks as f64).sqrt()).min(2.0 * ranks as f64);
        self.positions() / ranks * 3 + (held as f64 / ranks as f64 * shares) as u64
    }

    fn sweep_load(&self) -> Load {
        let load = self.load(Part::Sweep, Method::Sweep);
        match sweeps_on_disk(self.settings, self.stones) {
            true => load + sweep_on_disk(self.settings, self.stones),
            false => load,
        }
    }

    /// Of a stage of a method that solves bound after bound, one of so many that make a part.
    fn bounds_cost(&self, method: Method, part: Part, stages: u32) -> Cost {
        let kept = if part == Part::Merge { self.file_bytes(self.settings.codec) } else { 0 };
        let load = self.bounds_load(method, part).share(1.0 / f64::from(stages));
        let planes = match part {
            Part::Seeds => bounds::seeds_bytes_max(&self.settings.set.slabs(self.stones), self.stones),
            _ => bounds::disk_bytes(self.positions(), self.stones),
        };
        let cost = self.cost(load, 0, planes + kept, kept);
        Cost { memory_bytes: self.bounds_memory(method), ..cost }
    }

    fn bounds_memory(&self, method: Method) -> u64 {
        let seeds = fixed_bytes(self.settings) + BOUNDS_BYTES + bounds::group_bytes(self.stones);
        let solving = match method {
            Method::TwoBit if self.settings.ranks > 1 => bounds::share_bytes(self.settings, self.stones),
            _ => bounds::memory_bytes(self.settings, self.stones, method),
        };
        seeds.max(solving)
    }

    /// What a part does for a bound method: scratch files stay in memory that nobody else wants, where there is enough.
    fn bounds_load(&self, method: Method, part: Part) -> Load {
        let load = self.load(part, method);
        let scratch = SCRATCH_PLANES * self.positions() / 8;
        let spare = self.settings.hardware.memory_bytes.saturating_sub(self.bounds_memory(method));
        if scratch <= spare { load.without_scratch() } else { load }
    }

    fn counting_cost(&self) -> Cost {
        let kept = self.file_bytes(self.settings.codec);
        let Settings { ranks, threads, .. } = *self.settings;
        if ranks > 1 {
            // No snapshot.
            let cost = self.cost(self.load(Part::Counting, Method::Counting), 0, kept + self.parts_bytes(), kept);
            let hand = engines::counting::distributed::memory_bytes(self.positions(), ranks, threads);
            return Cost { memory_bytes: cost.memory_bytes + hand, ..cost };
        }
        // A snapshot has more values than scores: up to a byte a position.
        let disk_bytes = beside_snapshots(kept, SNAPSHOTS * self.file_bytes(Codec::Raw));
        let cost = self.cost(self.load(Part::Counting, Method::Counting), 0, disk_bytes, kept);
        let more = engines::counting::memory_bytes(self.stones, self.settings.set, self.settings.threads);
        // Nothing is looked up in smaller databases.
        let arrays = 2 * self.positions() + fixed_bytes(self.settings);
        Cost { memory_bytes: arrays + more, ..cost }
    }

    fn stats_cost(&self, method: Method) -> Cost {
        let cost = self.cost(self.load(Part::Stats, method), 0, 4096, 4096);
        let stripe = stripe_bytes(self.settings, self.stones) as u64;
        Cost { memory_bytes: cost.memory_bytes + stripe.saturating_sub(STRIPE_BYTES_MIN), ..cost }
    }

    fn verify_cost(&self, method: Method) -> Cost {
        let mut cost = self.cost(self.load(Part::Verify, method), 0, 0, 0);
        let of = |stones| OneDatabase { settings: self.settings, stones };
        let mapped = self.settings.smaller(self.stones).chain([self.stones]);
        let mapped = mapped.map(|stones| of(stones).file_bytes(self.settings.codec)).sum();
        if has_room_for_maps(self.settings, mapped, self.stones) {
            cost.memory_bytes += mapped;
        }
        cost
    }

    fn cost(&self, load: Load, arrays: u64, disk_bytes: u64, disk_kept_bytes: u64) -> Cost {
        let positions = self.positions();
        Cost {
            positions,
            seconds: self.settings.hardware.seconds(&load, self.settings.threads) + STAGE_SECONDS,
            memory_bytes: positions * arrays + fixed_bytes(self.settings) + cache_bytes(self.settings, self.stones),
            disk_bytes,
            disk_kept_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::Manifest;

    /// The prediction for a method does not depend on the method that is chosen.
    #[test]
    fn a_prediction_is_that_of_its_own_method() {
        let predictions = |method: Method, asked: &str, stones| {
            let text = format!("[build]\nstones = \"0..40\"\nmemory = \"4 GiB\"\nmethod = \"{asked}\"\n");
            let settings = Settings::new(&Manifest::parse(&text, "m.toml", &crate::schema(), &[]).unwrap());
            let all = whole_predictions(&settings, stones);
            all.into_iter().find(|prediction| prediction.method == method).unwrap()
        };
        for (method, stones) in Method::ALL.into_iter().flat_map(|method| [12, 24, 40].map(|stones| (method, stones))) {
            let (forced, auto) = (predictions(method, method.word(), stones), predictions(method, "auto", stones));
            assert_eq!(auto, forced, "{stones} stones by {method}");
        }
    }
}
