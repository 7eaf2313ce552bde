//! What stages do, whatever the machine: the model behind every predicted time.
//!
//! A stage of a database with n stones does something for each position: so many nanoseconds of one core, so many bytes
//! read and written ([`Rates`]), each a constant, or one that grows from some n on. Besides, files of known length are
//! read and written whole, codecs take their time, verification looks at so many positions, and two caches miss: that of
//! blocks which captures read, and that of the bits of one-bit-dual. [`Hardware`](crate::Hardware) makes seconds of it.
//!
//! Each parameter is what builds of 14 to 20 stones took on the reference (all positions, one thread, codec zstd where
//! nothing else is said, the least of two repetitions, others at work on the machine); what grows from 20 stones on is
//! from the build of all reachable positions of up to 30 stones there. `cargo bench -p bench --bench cost_model` measures
//! and compares them.

use crate::{Method, Settings, Verify, bounds, graph};
use check::{Extent, Sample};
use store::Codec;

/// What a stage does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Seconds of one core of the reference.
    pub cpu_seconds: f64,
    /// Besides, seconds that a core of the reference waits for memory at places that nothing foresees.
    pub memory_seconds: f64,
    /// Bytes read in sequence, of files.
    pub read_bytes: f64,
    /// Bytes written in sequence, to files.
    pub written_bytes: f64,
    /// Bytes read in sequence, of scratch files.
    pub scratch_read_bytes: f64,
    /// Bytes written in sequence, to scratch files.
    pub scratch_written_bytes: f64,
    /// Blocks of scratch files read at random places.
    pub random_reads: f64,
    /// Blocks of scratch files written at random places.
    pub random_writes: f64,
}

impl Load {
    /// The same where scratch files stay in memory that nobody else wants.
    #[must_use]
    pub fn without_scratch(self) -> Load {
        Load { scratch_read_bytes: 0.0, scratch_written_bytes: 0.0, random_reads: 0.0, random_writes: 0.0, ..self }
    }

    /// A share of it.
    #[must_use]
    pub fn share(self, share: f64) -> Load {
        Load {
            cpu_seconds: self.cpu_seconds * share,
            memory_seconds: self.memory_seconds * share,
            read_bytes: self.read_bytes * share,
            written_bytes: self.written_bytes * share,
            scratch_read_bytes: self.scratch_read_bytes * share,
            scratch_written_bytes: self.scratch_written_bytes * share,
            random_reads: self.random_reads * share,
            random_writes: self.random_writes * share,
        }
    }
}

impl std::ops::Add for Load {
    type Output = Load;

    fn add(self, other: Load) -> Load {
        Load {
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
            memory_seconds: self.memory_seconds + other.memory_seconds,
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
            scratch_read_bytes: self.scratch_read_bytes + other.scratch_read_bytes,
            scratch_written_bytes: self.scratch_written_bytes + other.scratch_written_bytes,
            random_reads: self.random_reads + other.random_reads,
            random_writes: self.random_writes + other.random_writes,
        }
    }
}

/// A quantity that is the same up to some number of stones, and from there on grows with each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    /// Its value up to there.
    pub level: f64,
    /// The stones where it begins to grow: what is worked on no longer fits some cache, or the passes become more.
    pub from: u32,
    /// More with each stone.
    pub a_stone: f64,
}

impl Line {
    /// The same for all.
    pub const fn constant(level: f64) -> Line {
        Line { level, from: 0, a_stone: 0.0 }
    }

    /// One that grows.
    pub const fn growing(level: f64, from: u32, a_stone: f64) -> Line {
        Line { level, from, a_stone }
    }

    /// Its value, never below zero.
    pub fn at(self, stones: u32) -> f64 {
        (self.level + self.a_stone * f64::from(stones.saturating_sub(self.from))).max(0.0)
    }
}

/// What a part of a build does for each position.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Nanoseconds of one core, waiting for memory among them.
    pub cpu: Line,
    /// Bytes read, files of known length left out.
    pub read: Line,
    /// Bytes written, files of known length left out.
    pub written: Line,
}

/// The stages of one kind of one database: of the bound methods those of all bounds together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// `capture:n`.
    Capture,
    /// `counting:n`.
    Counting,
    /// `sweep:n`.
    Sweep,
    /// `seeds:n`.
    Seeds,
    /// `preprocess:n:b`, candidates in memory.
    PreprocessTwoBit,
    /// `preprocess:n:b`, candidates on disk.
    PreprocessOneBit,
    /// `process:n:b`, two-bit.
    ProcessTwoBit,
    /// `process:n:b`, one-bit.
    ProcessOneBit,
    /// `process:n:b`, one-bit-dual, but for its misses.
    ProcessOneBitDual,
    /// `postprocess:n:b`.
    Postprocess,
    /// `merge:n`.
    Merge,
    /// `verify:n`.
    Verify,
    /// `stats:n`.
    Stats,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 13] = [
        Part::Capture,
        Part::Counting,
        Part::Sweep,
        Part::Seeds,
        Part::PreprocessTwoBit,
        Part::PreprocessOneBit,
        Part::ProcessTwoBit,
        Part::ProcessOneBit,
        Part::ProcessOneBitDual,
        Part::Postprocess,
        Part::Merge,
        Part::Verify,
        Part::Stats,
    ];

    /// The part that stages of a kind belong to, in the build of a database by a method.
    pub fn of(kind: &str, method: Method) -> Option<Part> {
        Some(match (kind, method) {
            ("capture", _) => Part::Capture,
            ("counting", _) => Part::Counting,
            ("sweep", _) => Part::Sweep,
            ("seeds", _) => Part::Seeds,
            ("preprocess", Method::TwoBit) => Part::PreprocessTwoBit,
            ("preprocess", _) => Part::PreprocessOneBit,
            ("process", Method::TwoBit) => Part::ProcessTwoBit,
            ("process", Method::OneBit) => Part::ProcessOneBit,
            ("process", _) => Part::ProcessOneBitDual,
            ("postprocess", _) => Part::Postprocess,
            ("merge", _) => Part::Merge,
            ("verify", _) => Part::Verify,
            ("stats", _) => Part::Stats,
            _ => return None,
        })
    }

    /// Whether what it reads and writes is in scratch files, or nearly all of it.
    const fn is_scratch(self) -> bool {
        matches!(
            self,
            Part::PreprocessTwoBit
                | Part::PreprocessOneBit
                | Part::ProcessTwoBit
                | Part::ProcessOneBit
                | Part::ProcessOneBitDual
        )
    }

    /// Whether what it does more for a position where there are more stones is waiting for memory: each update finds its
    /// score anywhere, in less and less of a cache.
    const fn waits_for_memory(self) -> bool {
        matches!(self, Part::Counting)
    }

    /// The parts that solve a database by a method, from its captures to its scores.
    pub fn solving(method: Method) -> &'static [Part] {
        match method {
            Method::Counting => &[Part::Counting],
            Method::Sweep => &[Part::Sweep],
            Method::TwoBit => {
                &[Part::Seeds, Part::PreprocessTwoBit, Part::ProcessTwoBit, Part::Postprocess, Part::Merge]
            }
            Method::OneBit => {
                &[Part::Seeds, Part::PreprocessOneBit, Part::ProcessOneBit, Part::Postprocess, Part::Merge]
            }
            Method::OneBitDual => {
                &[Part::Seeds, Part::PreprocessOneBit, Part::ProcessOneBitDual, Part::Postprocess, Part::Merge]
            }
        }
    }

    /// What it is called in tables.
    pub const fn word(self) -> &'static str {
        match self {
            Part::Capture => "capture",
            Part::Counting => "counting",
            Part::Sweep => "sweep",
            Part::Seeds => "seeds",
            Part::PreprocessTwoBit => "preprocess, two-bit",
            Part::PreprocessOneBit => "preprocess, one-bit",
            Part::ProcessTwoBit => "process, two-bit",
            Part::ProcessOneBit => "process, one-bit",
            Part::ProcessOneBitDual => "process, one-bit-dual",
            Part::Postprocess => "postprocess",
            Part::Merge => "merge",
            Part::Verify => "verify",
            Part::Stats => "stats",
        }
    }
}

/// Seconds a stage takes however small: syncing files and directories.
pub(crate) const STAGE_SECONDS: f64 = 0.01;

/// Nanoseconds to derive one score again by the plain rules: 380 to 419 a position with `verify = "full"`, and of a
/// sample 240 in tiles with codec packed, 500 to 600 where its look-ups are sorted.
const CHECK_NANOSECONDS: f64 = 400.0;
const CHECK_TILES_NANOSECONDS: f64 = 240.0;
const CHECK_SORTED_NANOSECONDS: f64 = 550.0;

/// How often verification decodes a position: for the digest, and in smaller databases where a sample falls.
const VERIFY_READS: f64 = 1.4;

/// Nanoseconds of statistics that nobody counted by the way, 6.6 at 20 stones, and bytes they read: blocks more than once
/// where stripes share them, 3.5 at 20 stones, 2.0 at 29.
const STATS_NANOSECONDS: f64 = 5.6;
const STATS_READ: Line = Line::growing(3.4, 15, -0.18);

/// Captures in so many stripes read the smaller databases that number to this power times: in 1.9 stripes 1.5 times, in
/// 4.0 2.3 times, in 8.1 3.8 times, in 12.6 5.1 times (17 to 20 stones). And what a position read takes besides decoding.
const STRIPES_READ: f64 = 0.65;
const STRIPES_NANOSECONDS: f64 = 0.6;

/// Nanoseconds of a miss of the cache of bits: a block read, often another written, and the copies. 1.9 µs at 17 stones,
/// 3.4 at 18, 3.1 at 19, with 1 MiB.
const MISS_NANOSECONDS: f64 = 3_000.0;

/// Misses of a pass, in blocks of the whole plane, with a cache that holds the share s of it: so many times ln(1 / s). At
/// 22 stones (`cargo bench -p bench --bench dual_index`) 5.7 at 1 %, 2.8 at 10 %, 1.8 at 20 %, 1.2 at 30 %, 0.5 at 50 %;
/// 20 stones and 39 % give 286,779 misses of 289,000 predicted.
const MISSES_A_PASS: f64 = 1.25;

/// Of misses, those that have to write a block first.
const MISSES_WRITTEN: f64 = 0.3;

/// Passes of the bound methods over all bounds: 77 at 14 stones, 92 at 16, 112 at 18, 141 at 20.
const PASSES: Line = Line::growing(77.0, 14, 10.5);

/// What a sweep on disk does besides: at 24 stones in 79 MiB, 17 passes, 214 ns, 106 and 17 bytes a position in all.
const ON_DISK: Rates = Rates { cpu: Line::constant(180.0), read: Line::constant(106.0), written: Line::constant(17.0) };

/// Bits a position of compressed scores: zstd 3.4 at 15 stones, 3.7 at 20, 3.9 at 27; rans 3.1 at 18;
/// with floors 2.1 at 20.
const ZSTD_BITS: Line = Line::growing(3.41, 15, 0.043);
const RANS_BITS: Line = Line::growing(3.1, 18, 0.043);
const FLOORS_BITS: Line = Line::growing(2.06, 20, 0.03);

/// What a codec costs over packing, for each position.
struct CodecRates {
    /// Nanoseconds to encode.
    encode: f64,
    /// Nanoseconds to decode.
    decode: f64,
    /// How often captures read a block that the cache could keep: the larger it is, the more ranges share one.
    capture_reads: f64,
}

const fn codec_rates(codec: Codec) -> CodecRates {
    match codec {
        Codec::Raw | Codec::Packed => CodecRates { encode: 0.0, decode: 0.0, capture_reads: 1.15 },
        Codec::Zstd => CodecRates { encode: 2.5, decode: 1.4, capture_reads: 1.15 },
        Codec::Rans => CodecRates { encode: 6.0, decode: 6.3, capture_reads: 2.2 },
        // Of archives, which no build reads or writes.
        Codec::Floors => CodecRates { encode: 14.0, decode: 12.0, capture_reads: 2.2 },
    }
}

/// The cost model: what each part does for a position.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    rates: [Rates; Part::ALL.len()],
}

impl Default for Model {
    /// As measured on the reference.
    fn default() -> Model {
        Model { rates: Part::ALL.map(measured) }
    }
}

/// The rates of a part, on the reference. What is measured besides includes the terms of [`besides`].
const fn measured(part: Part) -> Rates {
    const NONE: Line = Line::constant(0.0);
    match part {
        // 2.0 to 2.8 with codec packed at 20 to 22 stones where smaller databases are in memory still.
        Part::Capture => Rates { cpu: Line::constant(2.6), read: NONE, written: NONE },
        // Updates wait for memory: 121 at 14 stones, 166 at 18, 200 at 20.
        Part::Counting => Rates { cpu: Line::growing(115.0, 14, 14.0), read: NONE, written: NONE },
        // 17 at 20 and 21 stones, 19.3 at 22 with codec packed, 34 at 30 with zstd.
        Part::Sweep => Rates { cpu: Line::growing(17.0, 20, 1.3), read: NONE, written: NONE },
        Part::Seeds => Rates { cpu: Line::constant(3.5), read: NONE, written: Line::growing(0.49, 14, 0.022) },
        // 5 to 6 at 18 to 22 stones; 17 at 14, where stages are many and small.
        Part::PreprocessTwoBit => {
            Rates { cpu: Line::growing(5.2, 19, 0.15), read: Line::constant(1.8), written: Line::constant(2.8) }
        }
        // Candidates on disk are read and written once more.
        Part::PreprocessOneBit => {
            Rates { cpu: Line::growing(6.2, 19, 0.15), read: Line::constant(4.2), written: Line::constant(5.2) }
        }
        // All stages of two-bit together take 37 to 41 at 22 stones. More at 14 stones, where tables are a good part of it.
        // The slope is the one of 16 to 20 stones when passes took the first rows first: nothing larger was measured.
        Part::ProcessTwoBit => Rates {
            cpu: Line::growing(21.5, 18, 0.8),
            read: Line::growing(3.8, 14, 0.115),
            written: Line::growing(2.45, 14, 0.11),
        },
        // Candidates stream, where they changed, in each pass.
        Part::ProcessOneBit => Rates {
            cpu: Line::growing(26.0, 18, 0.8),
            read: Line::growing(16.0, 14, 0.4),
            written: Line::growing(11.2, 14, 0.18),
        },
        // 32 at 14 stones, where the cache holds all.
        Part::ProcessOneBitDual => Rates {
            cpu: Line::growing(29.5, 18, 0.8),
            read: Line::growing(16.0, 14, 0.4),
            written: Line::growing(11.2, 14, 0.18),
        },
        Part::Postprocess => {
            Rates { cpu: Line::constant(2.0), read: Line::constant(0.28), written: Line::constant(0.33) }
        }
        // 2.5 more with zstd.
        Part::Merge => Rates { cpu: Line::constant(2.8), read: Line::constant(0.87), written: NONE },
        // 1.9 to 2.7 at 19 to 22 stones with codec packed, samples included; 5.5 at 27 and 5.7 at 31 with zstd.
        Part::Verify => Rates { cpu: Line::constant(1.7), read: NONE, written: NONE },
        // Sweep has counted by the way.
        Part::Stats => Rates { cpu: Line::constant(0.03), read: NONE, written: NONE },
    }
}

impl Model {
    /// The rates of a part.
    pub fn rates(&self, part: Part) -> Rates {
        self.rates[part as usize]
    }

    /// The model with other rates for a part.
    #[must_use]
    pub fn with(mut self, part: Part, rates: Rates) -> Model {
        self.rates[part as usize] = rates;
        self
    }

    /// What a part of the build of a database by a method does.
    pub fn load(&self, settings: &Settings, part: Part, stones: u32, method: Method) -> Load {
        let positions = settings.set.positions(stones) as f64;
        let Rates { cpu, read, written } = self.rates(part);
        let nanoseconds = cpu.at(stones);
        let waited = if part.waits_for_memory() { nanoseconds - cpu.level } else { 0.0 };
        let [cpu_seconds, memory_seconds] = [nanoseconds - waited, waited].map(|each| each * positions * 1e-9);
        let (read_bytes, written_bytes) = (read.at(stones) * positions, written.at(stones) * positions);
        let line = match part.is_scratch() {
            true => Load {
                cpu_seconds,
                memory_seconds,
                scratch_read_bytes: read_bytes,
                scratch_written_bytes: written_bytes,
                ..Load::default()
            },
            false => Load { cpu_seconds, memory_seconds, read_bytes, written_bytes, ..Load::default() },
        };
        line + besides(settings, part, stones, method)
    }
}

/// What is not a line in the stones.
fn besides(settings: &Settings, part: Part, stones: u32, method: Method) -> Load {
    let of = |stones| settings.set.positions(stones) as f64;
    let positions = of(stones);
    let CodecRates { encode, decode, capture_reads } = codec_rates(settings.codec);
    let captures = positions * f64::from(packed_bits(stones)) / 8.0;
    let scores = |stones| of(stones) * bits(settings.codec, stones) / 8.0;
    let (nanoseconds, read_bytes, written_bytes, misses) = match part {
        Part::Capture => {
            let smaller = settings.smaller(stones);
            let decoded = smaller.clone().map(of).sum::<f64>();
            let cache = graph::cache_bytes(settings, stones) as f64;
            let (reads, each) = match graph::capture_stripe_bytes(settings, stones, method) {
                _ if graph::keeps_captures(settings, stones, method) => match method {
                    // What the cache has room for is still there, the rest is read from one end to the other.
                    Method::Sweep => ((1.0 - cache / decoded.max(1.0)).max(0.0), decode),
                    _ => (1.0, decode),
                },
                Some(stripe) => ((positions / stripe as f64).powf(STRIPES_READ), decode + STRIPES_NANOSECONDS),
                None => (capture_reads, decode),
            };
            (reads * each * decoded, reads * smaller.map(scores).sum::<f64>(), captures, 0.0)
        }
        // Captures are handed over in memory.
        Part::Counting | Part::Sweep => (encode * positions, 0.0, scores(stones), 0.0),
        Part::Seeds => (0.0, captures, 0.0, 0.0),
        Part::Merge => (encode * positions, 0.0, scores(stones), 0.0),
        Part::ProcessOneBitDual => {
            let misses = misses(settings, stones);
            (MISS_NANOSECONDS * misses, 0.0, 0.0, misses)
        }
        Part::Verify => {
            let (extent, each) = match settings.verify {
                Verify::Full => (Extent::Full, CHECK_NANOSECONDS),
                Verify::Sample | Verify::None if settings.codec.is_compressed() => {
                    (Extent::Tiles(Sample::default()), CHECK_SORTED_NANOSECONDS)
                }
                Verify::Sample | Verify::None => (Extent::Tiles(Sample::default()), CHECK_TILES_NANOSECONDS),
            };
            let checked = extent.count(settings.set.positions(stones)) as f64;
            (each * checked + VERIFY_READS * decode * positions, scores(stones), 0.0, 0.0)
        }
        Part::Stats if method != Method::Sweep => {
            let read_bytes = STATS_READ.at(stones) * positions + captures + scores(stones);
            ((STATS_NANOSECONDS + decode) * positions, read_bytes, 0.0, 0.0)
        }
        _ => (0.0, 0.0, 0.0, 0.0),
    };
    Load {
        cpu_seconds: nanoseconds * 1e-9,
        read_bytes,
        written_bytes,
        random_reads: misses,
        random_writes: MISSES_WRITTEN * misses,
        ..Load::default()
    }
}

/// What a sweep on disk does more than one in memory.
pub(crate) fn sweep_on_disk(settings: &Settings, stones: u32) -> Load {
    let positions = settings.set.positions(stones) as f64;
    Load {
        cpu_seconds: ON_DISK.cpu.at(stones) * positions * 1e-9,
        scratch_read_bytes: ON_DISK.read.at(stones) * positions,
        scratch_written_bytes: ON_DISK.written.at(stones) * positions,
        ..Load::default()
    }
}

/// Misses of the cache of one-bit-dual, all bounds together; with one index, to which nobody turns for speed, as with
/// two.
fn misses(settings: &Settings, stones: u32) -> f64 {
    let (cache_bytes, plane_bytes) = bounds::cache_and_plane_bytes(settings, stones);
    if cache_bytes >= plane_bytes {
        return 0.0;
    }
    let blocks = plane_bytes as f64 / settings.dual.block_bytes as f64;
    PASSES.at(stones) * blocks * MISSES_A_PASS * (plane_bytes as f64 / cache_bytes as f64).ln()
}

/// Bits of a packed position, scores and captures alike.
pub(crate) fn packed_bits(stones: u32) -> u32 {
    (2 * stones + 2).next_power_of_two().ilog2().max(1)
}

/// Bits that a position is likely to take.
pub(crate) fn bits(codec: Codec, stones: u32) -> f64 {
    let packed = f64::from(packed_bits(stones));
    match codec {
        Codec::Raw => 8.0,
        Codec::Packed => packed,
        Codec::Zstd => ZSTD_BITS.at(stones).min(packed),
        Codec::Rans => RANS_BITS.at(stones).min(packed),
        Codec::Floors => FLOORS_BITS.at(stones).min(packed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::Manifest;

    fn settings(more: &str) -> Settings {
        let text = format!("[build]\nstones = \"0..48\"\nmemory = \"64 GiB\"\n{more}");
        Settings::new(&Manifest::parse(&text, "m.toml", &crate::schema(), &[]).unwrap())
    }

    #[test]
    fn parts_are_told_apart() {
        for (at, part) in Part::ALL.into_iter().enumerate() {
            assert_eq!(part as usize, at, "rates are looked up by place");
        }
        for method in Method::ALL {
            let kinds = ["seeds", "preprocess", "process", "postprocess", "merge"];
            let kinds = if method.has_bounds() { &kinds[..] } else { &[method.word()] };
            let parts: Vec<_> = kinds.iter().map(|kind| Part::of(kind, method).unwrap()).collect();
            assert_eq!(parts, Part::solving(method));
        }
        assert_eq!(Part::of("cook", Method::Sweep), None);
    }

    #[test]
    fn lines_bend_and_stay_above_zero() {
        let line = Line::growing(2.0, 10, 0.5);
        assert_eq!([0, 10, 11, 14].map(|stones| line.at(stones)), [2.0, 2.0, 2.5, 4.0]);
        assert_eq!(Line::growing(2.0, 10, -0.5).at(20), 0.0);
    }

    #[test]
    fn rates_can_be_replaced() {
        let settings = settings("");
        let rates = Rates { cpu: Line::constant(1.0), read: Line::constant(2.0), written: Line::constant(3.0) };
        let model = Model::default().with(Part::Seeds, rates);
        let positions = settings.set.positions(20) as f64;
        let load = model.load(&settings, Part::Seeds, 20, Method::TwoBit);
        assert_eq!(load.cpu_seconds, positions * 1e-9);
        assert_eq!(load.written_bytes, positions * 3.0);
        // Captures of 20 stones have six bits.
        assert_eq!(load.read_bytes, positions * (2.0 + 0.75));
        let sweep = |model: &Model| model.load(&settings, Part::Sweep, 20, Method::Sweep);
        assert_eq!(sweep(&model), sweep(&Model::default()));
    }

    #[test]
    fn caches_miss_where_they_are_small() {
        let dual = |more| Model::default().load(&settings(more), Part::ProcessOneBitDual, 20, Method::OneBitDual);
        assert_eq!(dual("").random_reads, 0.0, "all bits are in memory");
        let (half, tenth) = (dual("[dual]\ncache = \"5 MiB\""), dual("[dual]\ncache = \"1 MiB\""));
        assert!(0.0 < half.random_reads && half.random_reads < tenth.random_reads);
        assert!(half.cpu_seconds < tenth.cpu_seconds);
        // 30 stones have 5.7 thousand million positions with fewer, of which the cache holds a fifth. Sweep reads the rest
        // once. A bound method keeps no captures: it reads all for as many as there is room for, which those of 44 stones
        // are not.
        let reads = |method, stones| {
            let settings = settings("");
            let smaller = settings.smaller(stones).map(|stones| settings.set.positions(stones)).sum::<u64>();
            Model::default().load(&settings, Part::Capture, stones, method).read_bytes / smaller as f64
        };
        let of = |method| [20, 30, 44].map(|stones| reads(method, stones));
        let (bounds, sweep) = (of(Method::TwoBit), of(Method::Sweep));
        assert!(bounds[0] < 0.9 && bounds[1] <= 1.0 && bounds[2] > 1.2, "{bounds:?}");
        assert!(sweep[0] == 0.0 && (0.3..1.0).contains(&sweep[1]), "{sweep:?}");
    }

    #[test]
    fn a_build_of_a_share_does_a_share() {
        let load = Load {
            cpu_seconds: 4.0,
            memory_seconds: 2.0,
            read_bytes: 8.0,
            written_bytes: 16.0,
            scratch_read_bytes: 32.0,
            scratch_written_bytes: 64.0,
            random_reads: 128.0,
            random_writes: 256.0,
        };
        assert_eq!(load.share(0.25) + load.share(0.75), load);
    }
}
