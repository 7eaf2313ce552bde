//! What a manifest may say, and what it then means.

use crate::{Method, graph};
use game::{PositionSet, Rules};
use pipeline::Keep;
use pipeline::manifest::{Key, Manifest, Schema, Type, Value};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;
use store::Codec;

/// The most stones of a build. Databases with more would not fit any one machine; the index goes to 48.
const STONES_MAX: u32 = 46;

/// A manifest, understood.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The rules.
    pub rules: Rules,
    /// The positions that databases hold.
    pub set: PositionSet,
    stones_max: u32,
    /// Threads, at least one.
    pub threads: usize,
    /// By stones, the method asked for; none is to be picked.
    asked: Vec<Option<Method>>,
    /// The method one-bit-dual.
    pub dual: Dual,
    /// Bytes to stay within.
    pub memory_bytes: u64,
    /// Time between snapshots of a long stage.
    pub snapshot: Duration,
    /// How databases are stored.
    pub codec: Codec,
    /// What is kept in the end.
    pub keep: Keep,
    /// How databases are verified.
    pub verify: Verify,
    /// Whether counts are compared with published ones.
    pub published: bool,
    /// The run directory.
    pub dir: PathBuf,
}

/// Settings of the method one-bit-dual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dual {
    /// Bytes of the cache, or 0 for a tenth of the wins.
    pub cache_bytes: u64,
    /// Bytes of a block: a power of two.
    pub block_bytes: u64,
    /// Whether the wins are ordered like everything else.
    pub is_single: bool,
}

/// The word for no method in particular.
const AUTO: &str = "auto";

/// Sizes of a block of the cache.
const BLOCKS: std::ops::RangeInclusive<u64> = 4 << 10..=1 << 20;

/// How much of each database is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Every position.
    Full,
    /// One position in 1,000, at least 100,000 of a database.
    Sample,
    /// None.
    None,
}

impl Verify {
    const ALL: [Verify; 3] = [Verify::Full, Verify::Sample, Verify::None];
}

impl fmt::Display for Verify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verify::Full => "full",
            Verify::Sample => "sample",
            Verify::None => "none",
        })
    }
}

/// The keys of a manifest.
pub fn schema() -> Schema {
    let rules: Vec<&str> = Rules::KNOWN.iter().map(|rules| rules.name).collect();
    let methods: Vec<&str> = std::iter::once(AUTO).chain(Method::ALL.map(Method::word)).collect();
    Schema::new()
        .table("game", "What is solved. Part of every file's identity.")
        .key(Key::new("game.rules", Type::one_of(&rules), rules[0], "The rules."))
        .key(Key::new(
            "game.positions",
            Type::one_of(&["all", "reachable"]),
            "all",
            "All positions, or only those in which the opponent has an empty pit, as after any move.",
        ))
        .table("build", "What is built, and with what.")
        .key(Key::required(
            "build.stones",
            Type::Range(0, STONES_MAX),
            "Databases to build, by their stones; those below are built too, captures lead there.",
        ))
        .key(Key::new(
            "build.method",
            Type::one_of(&methods),
            AUTO,
            "How databases are solved; auto picks the fastest that fits the memory.",
        ))
        .key(Key::new(
            "build.methods",
            Type::by_range(0, STONES_MAX, &methods),
            "{}",
            "The method for ranges of stones, where it differs.",
        ))
        .key(Key::new("build.memory", Type::Size, "2 GiB", "The most memory to use.").check(|value| match value {
            Value::Size(size) if size.bytes() < 64 << 20 => {
                Err(format!("must be at least 64 MiB, found {size}: buffers alone take most of that"))
            }
            _ => Ok(()),
        }))
        .key(Key::new("build.threads", Type::Integer(0, 1024), "0", "Threads; 0 is one for each core."))
        .key(Key::new(
            "build.snapshot",
            Type::Duration,
            "10 min",
            "How often a long stage saves its state: the most work that a crash costs.",
        ))
        .table("dual", "The method one-bit-dual: wins on disk behind a cache.")
        .key(Key::new(
            "dual.cache",
            Type::Size,
            "0 B",
            "The cache of each database; 0 is a tenth of its wins, one eightieth of a byte a position.",
        ))
        .key(Key::new("dual.block", Type::Size, "16 KiB", "What is read and written at a time.").check(|value| {
            match value {
                Value::Size(size) if !size.bytes().is_power_of_two() || !BLOCKS.contains(&size.bytes()) => {
                    Err(format!("must be a power of two between 4 KiB and 1 MiB, found {size}"))
                }
                _ => Ok(()),
            }
        }))
        .key(Key::new(
            "dual.index",
            Type::one_of(&["dual", "single"]),
            "dual",
            "Whether the wins are ordered by the half that stays when a move is made, or like everything else, which \
             is only good to compare.",
        ))
        .table("store", "What is kept, and how.")
        .key(Key::new(
            "store.codec",
            Type::one_of(&["raw", "packed", "zstd"]),
            "packed",
            "How databases are stored: a byte a position, as few bits as the scores need, or compressed.",
        ))
        .key(Key::new(
            "store.keep",
            Type::one_of(&["databases", "all"]),
            "databases",
            "Whether capture databases are kept once a database is verified.",
        ))
        .table("check", "How databases are checked before the next is built on them.")
        .key(Key::new(
            "check.verify",
            Type::one_of(&["full", "sample", "none"]),
            "sample",
            "Every position, one in 1,000 (at least 100,000 a database), or none is derived again by the plain rules.",
        ))
        .key(Key::new(
            "check.published",
            Type::Boolean,
            "true",
            "Whether counts are compared with the published ones; there are some for all positions of up to 16 stones.",
        ))
        .table("run", "Where.")
        .key(Key::new("run.dir", Type::String, "runs/awari", "The run directory, relative to the current one.").check(
            |value| match value {
                Value::String(dir) if dir.is_empty() => Err("must not be empty".to_owned()),
                _ => Ok(()),
            },
        ))
}

impl Settings {
    /// Reads a manifest of this [`schema`].
    pub fn new(manifest: &Manifest) -> Settings {
        let word = |key: &str| manifest.string(key);
        let threads = manifest.integer("build.threads") as usize;
        let methods = manifest.by_range("build.methods");
        let asked = |stones| methods.get(stones).unwrap_or(word("build.method")).parse().ok();
        Settings {
            rules: Rules::by_name(word("game.rules")).expect("the schema lists the rules"),
            set: word("game.positions").parse().expect("the schema lists the position sets"),
            stones_max: *manifest.range("build.stones").end(),
            threads: if threads == 0 { disk::clock::cores() } else { threads },
            asked: (0..=STONES_MAX).map(asked).collect(),
            dual: Dual {
                cache_bytes: manifest.size("dual.cache").bytes(),
                block_bytes: manifest.size("dual.block").bytes(),
                is_single: word("dual.index") == "single",
            },
            memory_bytes: manifest.size("build.memory").bytes(),
            snapshot: manifest.duration("build.snapshot"),
            codec: word("store.codec").parse().expect("the schema lists the codecs"),
            keep: if word("store.keep") == "all" { Keep::All } else { Keep::Targets },
            verify: Verify::ALL
                .into_iter()
                .find(|verify| verify.to_string() == word("check.verify"))
                .expect("the schema lists the kinds of verification"),
            published: manifest.boolean("check.published"),
            dir: PathBuf::from(word("run.dir")),
        }
    }

    /// How the database of `stones` stones is solved: as asked, else the fastest way that fits the memory.
    pub fn method(&self, stones: u32) -> Method {
        self.asked[stones as usize].unwrap_or_else(|| graph::pick(self, stones))
    }

    /// The databases that captures lead to from `stones` stones.
    pub fn smaller(&self, stones: u32) -> Range<u32> {
        0..(stones + 1).saturating_sub(u32::from(self.rules.capture_low))
    }

    /// The most stones of a database to build.
    pub fn stones_max(&self) -> u32 {
        self.stones_max
    }
}
