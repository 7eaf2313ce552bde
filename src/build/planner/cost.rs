//! The cost model: the load of a stage, independent of the machine.
//!
//! A stage of a database with n stones does some work for each position: nanoseconds of a core and bytes read and
//! written ([`Rates`]), each constant or growing with n. In addition, files of known length are read and written whole,
//! codecs take time, verification derives a number of positions, and two caches miss: that of the blocks which captures
//! read, and that of the pages of one-bit-dual. [`Hardware`](crate::Hardware) converts a load to seconds.
//!
//! Each parameter was measured in builds of 14 to 20 stones on the reference machine (all positions, one thread, codec
//! zstd unless stated, the smaller of two repetitions, on a shared machine); growth beyond 20 stones in the build of
//! all reachable positions of up to 30 stones there. `cargo bench -p bench --bench cost_model` repeats the
//! measurements.

use crate::codec::CodecRates;
use crate::file_size::{captures_bits, expected_bits, seeds_bytes};
use crate::load::Load;
use crate::memory::{CaptureMemory, StageMemory};
use crate::method::{OneStage, StageClass};
use crate::ramp::{Ramp, Rates, Saturation};
use crate::settings::{Intermediates, Settings, Verify};
use check::{Extent, Sample};

/// Seconds of the smallest stage: syncing files and directories.
pub(crate) const STAGE_SECONDS: f64 = 0.01;

/// Nanoseconds to derive one score by the plain rules: 380 to 419 with `verify = "full"`; of a sample 240 in tiles with
/// codec packed, 500 to 600 with sorted look-ups.
const CHECK_NANOSECONDS: f64 = 400.0;
const CHECK_TILES_NANOSECONDS: f64 = 240.0;
const CHECK_SORTED_NANOSECONDS: f64 = 550.0;

/// Times that verification decodes a position: once for the digest, and in smaller databases where a sample falls.
const VERIFY_READS: f64 = 1.4;

/// Nanoseconds to count statistics that the solver has not counted, 6.6 at 20 stones, and bytes read for that: blocks
/// that stripes share more than once, 3.5 at 20 stones, 2.0 at 29.
const STATS_NANOSECONDS: f64 = 5.6;
const STATS_READ: Ramp = Ramp::growing(3.4, 15, -0.18);
/// Nanoseconds to count the score of a position.
const SCORES_NANOSECONDS: f64 = 0.4;

/// Captures in s stripes read the smaller databases s to this power times, more often if these are small: by
/// 4 ranks 2.4 times and by 8 ranks 4.0 times (20 stones), by 8 ranks 4.2 times (23 stones) and 3.3 times (28
/// stones); in 12.0 stripes 3.45 times (29 stones), in 3.2 1.7 times (36 stones). And nanoseconds of a
/// position read, besides decoding.
const STRIPES_READ: Saturation = Saturation::new(0.67, 23, 0.5, 6.0);
const STRIPES_NANOSECONDS: f64 = 0.3;

/// Fit of an evaluation: positions of a game for each stone of the largest database; nanoseconds to play a
/// game and look its positions up, and to fit to a position once. Positions of a block, which is decoded for
/// each score of a large database. At 16 stones 0.79 s with 1,000 games and a round, 1.07 s with nine rounds,
/// 2.81 s with 4,000 games and a round.
const SAMPLES_A_STONE: f64 = 2.9;
const GAME_NANOSECONDS: f64 = 660_000.0;
const FIT_NANOSECONDS: f64 = 790.0;
const SAMPLE_BLOCK: f64 = 65_536.0;

/// Nanoseconds of a miss of the page cache: a block read, often another written, and the copies. 1.9 µs at 17 stones,
/// 3.4 at 18, 3.1 at 19, with 1 MiB.
pub(crate) const MISS_NANOSECONDS: f64 = 3_000.0;

/// Misses of a pass, in blocks of the whole plane, by ln(1 / s) for a cache that holds the share s of the plane. At 22
/// stones (docs/measurements.md, dual indexing) 5.7 at 1 %, 2.8 at 10 %, 1.8 at 20 %, 1.2 at 30 %, 0.5 at 50 %;
/// 20 stones and 39 % give 286,779 misses of 289,000 predicted.
const MISSES_A_PASS: f64 = 1.25;

/// Share of misses that have to write a block first.
const MISSES_WRITTEN: f64 = 0.3;

/// Passes of the bound methods over all bounds: 77 at 14 stones, 92 at 16, 112 at 18, 141 at 20.
const PASSES: Ramp = Ramp::growing(77.0, 14, 10.5);

/// Nanoseconds a position that compressing and decompressing small planes takes, in all stages of a class.
fn small_planes_nanoseconds(class: StageClass) -> f64 {
    match class {
        StageClass::Seeds => 2.2,
        StageClass::PreprocessTwoBit | StageClass::PreprocessOneBit => 1.1,
        StageClass::ProcessTwoBit | StageClass::ProcessOneBit | StageClass::ProcessOneBitDual => 1.9,
        StageClass::Postprocess => 0.9,
        StageClass::Merge => 0.7,
        _ => 0.0,
    }
}

/// Rates of all classes of stages.
#[derive(Clone, Debug, PartialEq)]
pub struct CostModel {
    rates: [Rates; StageClass::ALL.len()],
}

impl Default for CostModel {
    /// Returns the rates measured on the reference machine.
    fn default() -> CostModel {
        CostModel { rates: std::array::from_fn(|class| measured(StageClass::ALL[class])) }
    }
}

/// Returns the rates measured on the reference machine. The totals in comments include the terms of [`fixed_load`].
const fn measured(class: StageClass) -> Rates {
    const NONE: Ramp = Ramp::constant(0.0);
    match class {
        // 2.0 to 2.8 with codec packed at 20 to 22 stones if the smaller databases are in the stage cache.
        StageClass::Capture => Rates { cpu: Ramp::constant(2.6), read: NONE, written: NONE },
        StageClass::OneStage(method) => method.model().rates,
        StageClass::Seeds => Rates { cpu: Ramp::constant(2.1), read: NONE, written: Ramp::growing(0.49, 14, 0.022) },
        // 4.3 to 5.2 at 18 to 22 stones; more at 14, where stages are many and small.
        StageClass::PreprocessTwoBit => {
            Rates { cpu: Ramp::growing(4.5, 19, 0.13), read: Ramp::constant(1.8), written: Ramp::constant(2.8) }
        }
        // Candidates on disk are read and written once more.
        StageClass::PreprocessOneBit => {
            Rates { cpu: Ramp::growing(5.5, 19, 0.13), read: Ramp::constant(4.2), written: Ramp::constant(5.2) }
        }
        // All stages of two-bit together take 37 to 41 at 22 stones; more at 14 stones, where building tables
        // dominates. The slope is that of 16 to 20 stones: nothing larger was measured.
        StageClass::ProcessTwoBit => Rates {
            cpu: Ramp::growing(21.5, 18, 0.8),
            read: Ramp::growing(3.8, 14, 0.115),
            written: Ramp::growing(2.45, 14, 0.11),
        },
        // Each pass reads all candidates, and writes those that changed.
        StageClass::ProcessOneBit => Rates {
            cpu: Ramp::growing(26.0, 18, 0.8),
            read: Ramp::growing(16.0, 14, 0.4),
            written: Ramp::growing(11.2, 14, 0.18),
        },
        // 32 at 14 stones, where the cache holds all.
        StageClass::ProcessOneBitDual => Rates {
            cpu: Ramp::growing(29.5, 18, 0.8),
            read: Ramp::growing(16.0, 14, 0.4),
            written: Ramp::growing(11.2, 14, 0.18),
        },
        StageClass::Postprocess => {
            Rates { cpu: Ramp::constant(1.4), read: Ramp::constant(0.28), written: Ramp::constant(0.33) }
        }
        // 2.5 more with zstd.
        StageClass::Merge => Rates { cpu: Ramp::constant(2.8), read: Ramp::constant(0.87), written: NONE },
        // 1.9 to 2.7 at 19 to 22 stones with codec packed, samples included; 5.5 at 27 and 5.7 at 31 with zstd.
        StageClass::Verify => Rates { cpu: Ramp::constant(1.7), read: NONE, written: NONE },
        // Measured after a sweep, which has counted the choices.
        StageClass::Stats => Rates { cpu: Ramp::constant(0.03), read: NONE, written: NONE },
        // Not by the positions of a database: see `fixed_load`.
        StageClass::Evaluation => Rates { cpu: NONE, read: NONE, written: NONE },
    }
}

/// Returns the nanoseconds a position where a board has two bounds. `None` for classes that no such build has.
///
/// Of the run of 0 to 22 stones by oware (codec packed, one thread, machine Z beside other work, which takes
/// a tenth more than alone): captures 10.3 to 13; verification 6.1 to 7.7 and statistics 4.7 to 5.9 at 18 to
/// 22 stones.
const fn of_bounds(class: StageClass) -> Option<f64> {
    match class {
        StageClass::Capture => Some(10.0),
        StageClass::OneStage(method) => method.model().two_bound_nanoseconds,
        StageClass::Verify => Some(5.5),
        StageClass::Stats => Some(5.0),
        _ => None,
    }
}

impl CostModel {
    /// Returns the rates of a class.
    pub fn rates(&self, class: StageClass) -> Rates {
        self.rates[class.number()]
    }

    /// Returns the model with other rates for a class.
    #[must_use]
    pub fn with(mut self, class: StageClass, rates: Rates) -> CostModel {
        self.rates[class.number()] = rates;
        self
    }

    /// Returns the load of all stages of a class, in the given memory.
    pub fn load(&self, settings: &Settings, memory: &StageMemory, class: StageClass) -> Load {
        let stones = memory.stones;
        let positions = settings.set.positions(stones) as f64;
        let Rates { mut cpu, read, written } = self.rates(class);
        if let Some(nanoseconds) = of_bounds(class).filter(|_| !settings.rules.has_scores()) {
            cpu = Ramp::constant(nanoseconds);
        }
        let nanoseconds = cpu.at(stones);
        let waits_for_memory = matches!(class, StageClass::OneStage(method) if method.model().waits_for_memory);
        let waited = if waits_for_memory { nanoseconds - cpu.level } else { 0.0 };
        let [cpu_seconds, memory_seconds] = [nanoseconds - waited, waited].map(|each| each * positions * 1e-9);
        let (read_bytes, written_bytes) = (read.at(stones) * positions, written.at(stones) * positions);
        let by_rates = if class.is_scratch() {
            Load {
                cpu_seconds,
                memory_seconds,
                scratch_read_bytes: read_bytes,
                scratch_written_bytes: written_bytes,
                ..Load::default()
            }
        } else {
            Load { cpu_seconds, memory_seconds, read_bytes, written_bytes, ..Load::default() }
        };
        by_rates + fixed_load(settings, memory, class)
    }
}

/// Returns the load that does not follow from [`Rates`]: files of known length, codecs, verified positions, cache
/// misses.
fn fixed_load(settings: &Settings, memory: &StageMemory, class: StageClass) -> Load {
    let positions_of = |stones| settings.set.positions(stones) as f64;
    let StageMemory { stones, method, .. } = *memory;
    let model = method.one_stage().map(OneStage::model);
    let positions = positions_of(stones);
    let CodecRates { encode, decode, .. } = CodecRates::of(settings.codec);
    let captures = positions * captures_bits(settings, stones) / 8.0;
    let captures_codec = settings.intermediates.captures_codec();
    let CodecRates { encode: encode_captures, decode: decode_captures, .. } = CodecRates::of(captures_codec);
    let scores = |stones| positions_of(stones) * expected_bits(settings.codec, stones) / 8.0;
    let (nanoseconds, read_bytes, written_bytes, misses) = match class {
        StageClass::Capture => {
            let decoded = settings.smaller(stones).map(positions_of).sum::<f64>();
            let (reads, each) = smaller_reads(settings, memory, decoded);
            let read_bytes = reads * settings.smaller(stones).map(scores).sum::<f64>();
            (reads * each * decoded + encode_captures * positions, read_bytes, captures, 0.0)
        }
        // Captures are taken over in memory.
        StageClass::OneStage(_) => (encode * positions, 0.0, scores(stones), 0.0),
        StageClass::Seeds => (decode_captures * positions, captures, 0.0, 0.0),
        StageClass::Merge => (encode * positions, 0.0, scores(stones), 0.0),
        StageClass::ProcessOneBitDual => {
            let misses = misses(settings, memory);
            (MISS_NANOSECONDS * misses, 0.0, 0.0, misses)
        }
        StageClass::Verify => {
            // Scores that are neither in place nor decoded in a cache are looked up in the order of their files.
            let is_sorted = settings.codec.is_compressed() || memory.mapped_bytes(settings) == 0;
            let (extent, each) = match settings.verify {
                Verify::Full => (Extent::Full, CHECK_NANOSECONDS),
                Verify::Sample | Verify::None if is_sorted => {
                    (Extent::Tiles(Sample::default()), CHECK_SORTED_NANOSECONDS)
                }
                Verify::Sample | Verify::None => (Extent::Tiles(Sample::default()), CHECK_TILES_NANOSECONDS),
            };
            let checked = extent.count(settings.set.positions(stones)) as f64;
            // A sample has positions with children in almost every block of the smaller databases.
            let smaller = settings.smaller(stones).filter(|_| is_sorted);
            let read_bytes = scores(stones) + smaller.map(scores).sum::<f64>();
            (each * checked + VERIFY_READS * decode * positions, read_bytes, 0.0, 0.0)
        }
        // The bounds have counted the choices, and verification counts the scores, unless the run was resumed between.
        StageClass::Stats if method.bounds_count_choices(settings.ranks) => match settings.verify {
            Verify::None => ((SCORES_NANOSECONDS + decode) * positions, scores(stones), 0.0, 0.0),
            Verify::Sample | Verify::Full => (0.0, 0.0, 0.0, 0.0),
        },
        StageClass::Stats if model.is_none_or(|model| !model.counts_choices) => {
            // Of the captures, or of the seeds that a bound method has made from them.
            let (decode_captures, captures) = if method.has_bounds() {
                (0.0, seeds_bytes(settings, stones) as f64)
            } else {
                (decode_captures, captures)
            };
            let read_bytes = STATS_READ.at(stones) * positions + captures + scores(stones);
            ((STATS_NANOSECONDS + decode + decode_captures) * positions, read_bytes, 0.0, 0.0)
        }
        StageClass::Evaluation => {
            let (games, rounds) = settings.evaluation.map_or((0.0, 0.0), |fit| (fit.games as f64, fit.rounds.into()));
            let samples = games * f64::from(stones) * SAMPLES_A_STONE;
            let nanoseconds = games * GAME_NANOSECONDS + samples * rounds * FIT_NANOSECONDS;
            let all: f64 = settings.stones().map(positions_of).sum();
            let share = (samples * SAMPLE_BLOCK / all).min(1.0);
            let read_bytes = share * settings.stones().map(scores).sum::<f64>();
            (nanoseconds + share * all * decode, read_bytes, 0.0, 0.0)
        }
        // The solver counts the choices. Stages of planes have only work by rates.
        StageClass::Stats
        | StageClass::PreprocessTwoBit
        | StageClass::PreprocessOneBit
        | StageClass::ProcessTwoBit
        | StageClass::ProcessOneBit
        | StageClass::Postprocess => (0.0, 0.0, 0.0, 0.0),
    };
    // Both bounds are encoded, written, read, decoded and verified.
    let values = settings.values() as f64;
    let [nanoseconds, read_bytes, written_bytes] = [nanoseconds, read_bytes, written_bytes].map(|each| each * values);
    let planes = match settings.intermediates {
        Intermediates::Fast => 0.0,
        Intermediates::Small => small_planes_nanoseconds(class) * positions,
    };
    Load {
        cpu_seconds: (nanoseconds + planes) * 1e-9,
        read_bytes,
        written_bytes,
        random_reads: misses,
        random_writes: MISSES_WRITTEN * misses,
        ..Load::default()
    }
}

/// Returns how often captures read the smaller databases, of `decoded` positions together, and the nanoseconds to
/// decode a position.
fn smaller_reads(settings: &Settings, memory: &StageMemory, decoded: f64) -> (f64, f64) {
    let StageMemory { stones, method, .. } = *memory;
    let CodecRates { decode, decode_runs, capture_reads, .. } = CodecRates::of(settings.codec);
    match memory.captures {
        // Blocks that fit the cache are hits; the remainder is read sequentially.
        CaptureMemory::Whole if method.one_stage().is_some_and(|method| method.model().keeps_databases) => {
            ((1.0 - memory.cache_bytes as f64 / decoded.max(1.0)).max(0.0), decode)
        }
        CaptureMemory::Whole => (1.0, decode),
        CaptureMemory::Stripes(stripe) => {
            let stripes = (settings.set.positions(stones) as f64 / stripe as f64).max(settings.ranks as f64);
            (stripes.powf(STRIPES_READ.at(stones)), decode_runs + STRIPES_NANOSECONDS)
        }
        CaptureMemory::Streamed => (capture_reads, decode),
    }
}

/// Returns the misses of the page cache of one-bit-dual, all bounds together. The index `single` is predicted like
/// `dual`: it exists only for comparison.
fn misses(settings: &Settings, memory: &StageMemory) -> f64 {
    let (cache_bytes, plane_bytes) = (memory.page_cache_bytes, memory.wins_plane_bytes);
    if cache_bytes >= plane_bytes {
        return 0.0;
    }
    let blocks = plane_bytes as f64 / settings.dual.block_bytes as f64;
    PASSES.at(memory.stones) * blocks * MISSES_A_PASS * (plane_bytes as f64 / cache_bytes as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;
    use pipeline::Manifest;

    fn settings(more: &str) -> Settings {
        let text = format!("[build]\nstones = \"0..48\"\nmemory = \"64 GiB\"\n{more}");
        Settings::new(&Manifest::parse(&text, "m.toml", &crate::schema(), &[]).unwrap())
    }

    fn load(model: &CostModel, settings: &Settings, class: StageClass, stones: u32, method: Method) -> Load {
        model.load(settings, &StageMemory::new(settings, stones, method), class)
    }

    #[test]
    fn rates_can_be_replaced() {
        let settings = settings("");
        let rates = Rates { cpu: Ramp::constant(1.0), read: Ramp::constant(2.0), written: Ramp::constant(3.0) };
        let model = CostModel::default().with(StageClass::Seeds, rates);
        let positions = settings.set.positions(20) as f64;
        let seeds = load(&model, &settings, StageClass::Seeds, 20, Method::TwoBit);
        assert_eq!(seeds.cpu_seconds, positions * 1e-9);
        assert_eq!(seeds.written_bytes, positions * 3.0);
        // Captures of 20 stones have six bits.
        assert_eq!(seeds.read_bytes, positions * (2.0 + 0.75));
        let sweep =
            |model: &CostModel| load(model, &settings, StageClass::OneStage(OneStage::Sweep), 20, Method::Sweep);
        assert_eq!(sweep(&model), sweep(&CostModel::default()));
    }

    /// Processor time of builds by oware, against the runs that `docs/rules.md` names.
    #[test]
    fn oware_takes_the_passes_of_two_bounds() {
        for (stones_max, codec, measured) in [(20, "packed", 31.0), (24, "zstd", 165.0)] {
            let settings = settings(&format!("[game]\nrules = \"oware\"\n[store]\ncodec = \"{codec}\"\n"));
            let classes =
                [StageClass::Capture, StageClass::OneStage(OneStage::Sweep), StageClass::Verify, StageClass::Stats];
            let loads =
                |stones| classes.map(|class| load(&CostModel::default(), &settings, class, stones, Method::Sweep));
            let all: f64 = (0..=stones_max).flat_map(loads).map(|load| load.cpu_seconds + load.memory_seconds).sum();
            assert!((0.8..1.25).contains(&(all / measured)), "0..{stones_max}: {all} s, measured {measured} s");
        }
    }

    #[test]
    fn caches_miss_where_they_are_small() {
        let model = CostModel::default();
        let dual = |more| load(&model, &settings(more), StageClass::ProcessOneBitDual, 20, Method::OneBitDual);
        assert_eq!(dual("").random_reads, 0.0, "all bits are in memory");
        let (half, tenth) = (dual("[dual]\ncache = \"5 MiB\""), dual("[dual]\ncache = \"1 MiB\""));
        assert!(0.0 < half.random_reads && half.random_reads < tenth.random_reads);
        assert!(half.cpu_seconds < tenth.cpu_seconds);
        // There are 5.7 thousand million positions with fewer than 30 stones, of which the cache holds a fifth. Sweep
        // reads the rest once. A bound method keeps no captures: it reads all databases once for each stripe, of which
        // 44 stones need several.
        let reads = |method, stones| {
            let settings = settings("");
            let smaller = settings.smaller(stones).map(|stones| settings.set.positions(stones)).sum::<u64>();
            load(&model, &settings, StageClass::Capture, stones, method).read_bytes / smaller as f64
        };
        let reads_by = |method| [20, 30, 44].map(|stones| reads(method, stones));
        let (bounds, sweep) = (reads_by(Method::TwoBit), reads_by(Method::Sweep));
        assert!(bounds[0] < 0.9 && bounds[1] <= 1.0 && bounds[2] > 1.2, "{bounds:?}");
        assert!(sweep[0] == 0.0 && (0.3..1.0).contains(&sweep[1]), "{sweep:?}");
    }
}
