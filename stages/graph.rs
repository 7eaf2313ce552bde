//! The stages of a build and what they read, make and cost.
//!
//! For each number of stones: capture, solve, verify, statistics; the next number waits for the verification. A cost
//! is a prediction from the rates measured on one core of a server of 2023 and scaled by threads: good enough to say
//! minutes from hours, and to refuse what cannot fit.

use crate::{Settings, files, settings::Verify};
use pipeline::{ArtifactKind, ArtifactName, ArtifactSpec, Cost, Graph, StageName, StageSpec};
use store::Codec;

/// Versions of what the stages compute: raised when the same inputs should give other contents.
const DATABASE_VERSION: u32 = 1;
const CAPTURE_VERSION: u32 = 1;
const VERIFY_VERSION: u32 = 1;
const STATS_VERSION: u32 = 1;

/// Nanoseconds of one core a position.
const CAPTURE_NANOSECONDS: f64 = 4.0;
const SWEEP_NANOSECONDS: f64 = 40.0;
const ENCODE_NANOSECONDS: f64 = 5.0;
const VERIFY_NANOSECONDS: f64 = 500.0;
const SAMPLE_NANOSECONDS: f64 = 2.0;
const STATS_NANOSECONDS: f64 = 4.0;
/// Seconds a stage takes however small: syncing files and directories.
const STAGE_SECONDS: f64 = 0.01;

/// Memory of the process besides the arrays of a stage: code, staging, batches of positions on their way to or from
/// a file.
const WORKSPACE_BYTES: u64 = 20 << 20;
/// And for each thread: staging, blocks at hand, contexts of codecs, what an allocator keeps.
const THREAD_BYTES: u64 = 4 << 20;
/// Bytes of tables for each half of up to n stones, measured.
const TABLE_BYTES: u64 = 75;

/// The most decoded blocks that a stage keeps of the files it reads.
const CACHE_BYTES_MAX: u64 = 256 << 20;
/// And no budget is so small that fewer would do: captures read some hundred streams at a time.
const CACHE_BYTES_MIN: u64 = 8 << 20;
/// A cache takes no more than one part in so many of what the budget leaves: the allocator may hold on to it, so all
/// stages count it, and the arrays of solvers need the rest.
const CACHE_SHARE: u64 = 4;

/// What the budget leaves besides what every stage takes.
fn room_bytes(settings: &Settings) -> u64 {
    settings.memory_bytes.saturating_sub(fixed_bytes(settings))
}

/// Decoded blocks that a stage keeps which reads so many positions.
pub(crate) fn cache_bytes(settings: &Settings, positions: u64) -> u64 {
    positions.min((room_bytes(settings) / CACHE_SHARE).clamp(CACHE_BYTES_MIN, CACHE_BYTES_MAX))
}

/// Whether there is room for maps of so many bytes and a cache for so many positions. Maps are faster than reads, but
/// their pages are memory of the process.
pub(crate) fn has_room_for_maps(settings: &Settings, bytes: u64, positions: u64) -> bool {
    bytes + cache_bytes(settings, positions) <= room_bytes(settings)
}

/// Positions of a database and of those that captures lead to from there.
pub(crate) fn positions_with_smaller(settings: &Settings, stones: u32) -> u64 {
    settings.smaller(stones).chain([stones]).map(|stones| settings.set.positions(stones)).sum()
}

/// Memory that does not depend on the database under way.
fn fixed_bytes(settings: &Settings) -> u64 {
    let halves = game::binomial(settings.stones_max() + 6, 6);
    halves * TABLE_BYTES + WORKSPACE_BYTES + settings.threads as u64 * THREAD_BYTES
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
        stages.push(StageSpec {
            inputs: smaller.clone(),
            outputs: vec![capture.clone()],
            after,
            cost: self.capture_cost(),
            ..StageSpec::new(StageName::new("capture", &[stones]))
        });
        artifacts.push(self.artifact(capture.clone(), ArtifactKind::Intermediate, "capture").version(CAPTURE_VERSION));

        stages.push(StageSpec {
            inputs: vec![capture.clone()],
            outputs: vec![database.clone()],
            cost: self.sweep_cost(),
            ..StageSpec::new(StageName::new("sweep", &[stones]))
        });
        artifacts.push(self.artifact(database.clone(), ArtifactKind::Target, "database").version(DATABASE_VERSION));

        if self.settings.verify != Verify::None {
            let verified = files::verification(stones);
            let mut inputs = smaller;
            inputs.push(database.clone());
            stages.push(StageSpec {
                inputs,
                outputs: vec![verified.clone()],
                cost: self.verify_cost(),
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
            cost: self.cost(STATS_NANOSECONDS, 0, 4096, 4096),
            ..StageSpec::new(StageName::new("stats", &[stones]))
        });
        artifacts.push(self.artifact(stats, ArtifactKind::Report, "statistics").version(STATS_VERSION));
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
            Codec::Packed | Codec::Zstd => u64::from((2 * self.stones + 2).next_power_of_two().ilog2().max(1)),
        };
        self.positions() * bits / 8 + 4096
    }

    fn capture_cost(&self) -> Cost {
        let bytes = self.file_bytes(Codec::Packed);
        self.cost(CAPTURE_NANOSECONDS, 0, bytes, bytes)
    }

    fn sweep_cost(&self) -> Cost {
        let kept = self.file_bytes(self.settings.codec);
        // Besides the database, a snapshot.
        self.cost(SWEEP_NANOSECONDS + ENCODE_NANOSECONDS, 2, kept + self.file_bytes(Codec::Packed), kept)
    }

    fn verify_cost(&self) -> Cost {
        let nanoseconds = match self.settings.verify {
            Verify::Full => VERIFY_NANOSECONDS,
            Verify::Sample | Verify::None => SAMPLE_NANOSECONDS,
        };
        let mut cost = self.cost(nanoseconds, 0, 0, 0);
        let of = |stones| OneDatabase { settings: self.settings, stones };
        let mapped = self.settings.smaller(self.stones).chain([self.stones]);
        let mapped = mapped.map(|stones| of(stones).file_bytes(self.settings.codec)).sum();
        let positions = positions_with_smaller(self.settings, self.stones);
        if has_room_for_maps(self.settings, mapped, positions) {
            cost.memory_bytes += mapped;
        }
        cost
    }

    fn cost(&self, nanoseconds: f64, arrays: u64, disk_bytes: u64, disk_kept_bytes: u64) -> Cost {
        let positions = self.positions();
        let read = positions_with_smaller(self.settings, self.stones);
        Cost {
            positions,
            seconds: positions as f64 * nanoseconds * 1e-9 / self.settings.threads as f64 + STAGE_SECONDS,
            memory_bytes: positions * arrays + fixed_bytes(self.settings) + cache_bytes(self.settings, read),
            disk_bytes,
            disk_kept_bytes,
        }
    }
}
