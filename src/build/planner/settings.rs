//! Keys of a manifest, and their typed values.

use crate::book::{self, BookRequest};
use crate::hardware::Hardware;
use crate::method::Method;
use game::{Opening, PositionSet, Rules};
use pipeline::Keep;
use pipeline::manifest::{ByRange, Manifest, ManifestKey, Schema, Value, ValueType};
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::time::Duration;
use store::Codec;

/// The largest number of stones of a database: all stones of the game.
const STONES_MAX: u32 = game::STONES_MAX;

/// Sizes of a page of the page cache: at least a page of memory, and small enough that a cache holds many.
const BLOCK_BYTES: RangeInclusive<u64> = 4 << 10..=1 << 20;

/// Method that leaves the choice to the planner.
const AUTO: &str = "auto";

/// Typed values of a manifest. They do not change while a build runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The rules.
    pub rules: Rules,
    /// The positions that databases hold.
    pub set: PositionSet,
    /// Databases to build, ascending.
    stones: Vec<u32>,
    method: Option<Method>,
    methods: ByRange,
    book: Option<BookRequest>,
    /// Threads of each rank, at least one.
    pub threads: usize,
    /// The most stages that run at the same time; 0 is the number whose predicted schedule is best. A job of
    /// several ranks runs one.
    pub stages_at_a_time: usize,
    /// Ranks of the job, each with its own threads and memory.
    pub ranks: usize,
    /// Memory budget of each rank.
    pub memory_bytes: u64,
    /// Interval between snapshots of a long stage.
    pub snapshot: Duration,
    /// Codec of databases.
    pub codec: Codec,
    /// Compression of intermediate files: capture databases and planes.
    pub intermediates: Intermediates,
    /// Artifacts that are kept after a build.
    pub keep: Keep,
    /// Page cache of the method one-bit-dual.
    pub dual: Dual,
    /// Extent of verification.
    pub verify: Verify,
    /// Whether counts are compared with published ones.
    pub published: bool,
    /// The most puzzles of a database.
    pub puzzles: u64,
    /// The fit of an evaluation for the engine, if one is wanted.
    pub evaluation: Option<EvaluationFit>,
    /// The run directory.
    pub dir: PathBuf,
    /// Directory on a local disk of each rank for files that only this rank reads; `None` is the run directory.
    pub scratch: Option<PathBuf>,
    /// Machine that times are predicted for, by default this one.
    pub hardware: Hardware,
}

/// Compression of intermediate files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intermediates {
    /// Values are packed, and the bytes of planes that are zero are left out.
    Fast,
    /// Compressed by Zstandard.
    Small,
}

impl Intermediates {
    /// The codec of capture databases.
    pub fn captures_codec(self) -> Codec {
        match self {
            Intermediates::Fast => Codec::Packed,
            Intermediates::Small => Codec::Zstd,
        }
    }

    /// The codec of planes.
    pub fn planes_codec(self) -> Codec {
        match self {
            Intermediates::Fast => Codec::Zstd,
            Intermediates::Small => Codec::SparseZstd,
        }
    }
}

/// Page cache of the method one-bit-dual over its bits on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dual {
    /// Bytes of blocks in memory; `None` is the remainder of the budget.
    pub cache_bytes: Option<u64>,
    /// Bytes of a block, a power of two.
    pub block_bytes: u64,
    /// Order of the bits.
    pub index: DualIndex,
}

/// Order of the bits of one-bit-dual, which decides the positions that share a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DualIndex {
    /// By the opponent's half, which the children of a row have in common.
    Dual,
    /// By the mover's half, as the baseline for `Dual`.
    Single,
}

/// The fit of an evaluation to databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvaluationFit {
    /// Games from which positions are taken.
    pub games: u64,
    /// How many times the fit goes over all positions.
    pub rounds: u32,
}

/// Extent of the verification of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Verify {
    /// Every position.
    Full,
    /// One position in 1,000, about 100,000 of a database or more.
    Sample,
    /// None.
    None,
}

impl Verify {
    const ALL: [Verify; 3] = [Verify::Full, Verify::Sample, Verify::None];
}

/// Returns the keys of a manifest.
pub fn schema() -> Schema {
    let tables: [fn(Schema) -> Schema; 8] =
        [game_keys, build_keys, dual_keys, store_keys, check_keys, derived_keys, book::keys, run_keys];
    tables.into_iter().fold(Schema::new(), |schema, keys| keys(schema))
}

/// Adds the keys of the table `[game]`.
fn game_keys(schema: Schema) -> Schema {
    let rules: Vec<&str> = Rules::KNOWN.iter().map(|rules| rules.name).collect();
    schema
        .table("game", "What to solve. Part of every file's identity.")
        .key(ManifestKey::new("game.rules", ValueType::one_of(&rules), rules[0], "Rules; part of every file's identity."))
        .key(ManifestKey::new(
            "game.positions",
            ValueType::one_of(&["all", "reachable"]),
            "all",
            "All positions, or only those in which the opponent has an empty pit, as after any move.",
        ))
        .key(ManifestKey::new(
            "game.opening",
            ValueType::Integer(1, Opening::PIT_STONES_MAX.into()),
            "4",
            "Stones in each pit at the start of the game; the reachable database of all its stones, twelve times as many, has \
             the opening position too.",
        ))
}

/// Adds the keys of the table `[build]`.
fn build_keys(schema: Schema) -> Schema {
    let methods: Vec<&str> = [AUTO].into_iter().chain(Method::ALL.map(Method::word)).collect();
    schema
        .table("build", "What to build, and with which resources.")
        .key(ManifestKey::required(
            "build.stones",
            ValueType::Ranges(0, STONES_MAX),
            "Databases to build, by number of stones, such as \"0..46, 48\"; those below the first are built too, since captures \
             lead to them. Only the number below the last can be omitted: a capture takes at least two stones.",
        ).check(|value| match value {
            Value::Ranges(ranges) => refuse_gaps(ranges),
            _ => Ok(()),
        }))
        .key(ManifestKey::new(
            "build.method",
            ValueType::one_of(&methods),
            AUTO,
            "Method of solving databases; auto picks the fastest that fits the memory.",
        ))
        .key(ManifestKey::new(
            "build.methods",
            ValueType::by_range(0, STONES_MAX, &methods),
            "{}",
            "Other methods for ranges of stones, such as `\"10..12\" = \"sweep\"`.",
        ))
        .key(
            ManifestKey::new(
                "build.memory",
                ValueType::Size,
                "2 GiB",
                "Memory limit of the process, or of each rank; at least 48 MiB.",
            )
            .check(|value| match value {
                Value::Size(size) if size.bytes() < 48 << 20 => {
                    Err(format!("must be at least 48 MiB, the minimum for buffers; found {size}"))
                }
                _ => Ok(()),
            }),
        )
        .key(ManifestKey::new("build.threads", ValueType::Integer(0, 1024), "0", "Number of threads; 0 is one a core."))
        .key(ManifestKey::new(
            "build.stages-at-a-time",
            ValueType::Integer(0, 64),
            "0",
            "The most stages that run at the same time, within build.memory and build.threads; 0 is the number whose \
             predicted schedule is best, and 1 with one thread; a job of several ranks runs one at a time.",
        ))
        .key(ManifestKey::new(
            "build.snapshot",
            ValueType::Duration,
            "10 min",
            "Interval at which a long stage saves its state: the most work that a crash can cost.",
        ))
}

/// Adds the keys of the table `[dual]`.
fn dual_keys(schema: Schema) -> Schema {
    schema
        .table("dual", "Cache and order of the bits of the method one-bit-dual.")
        .key(ManifestKey::new(
            "dual.cache",
            ValueType::Size,
            "0 MiB",
            "Memory limit of one-bit-dual for blocks of bits; 0 is the remainder of build.memory.",
        ))
        .key(
            ManifestKey::new(
                "dual.block",
                ValueType::Size,
                "16 KiB",
                "Size of a block of bits; a power of two between 4 KiB and 1 MiB.",
            )
            .check(|value| match value {
                Value::Size(size) if !size.bytes().is_power_of_two() || !BLOCK_BYTES.contains(&size.bytes()) => {
                    Err(format!("must be a power of two between 4 KiB and 1 MiB, found {size}"))
                }
                _ => Ok(()),
            }),
        )
        .key(ManifestKey::new(
            "dual.index",
            ValueType::one_of(&["dual", "single"]),
            "dual",
            "Order of the bits: that in which children are read (dual), or that of positions (single).",
        ))
}

/// Describes the codecs.
fn codec_doc() -> String {
    let codecs = Codec::ALL.map(|codec| format!("{} ({codec})", codec.summary().unwrap_or_default()));
    format!("Codec of databases: {}.", codecs.join(", "))
}

/// Adds the keys of the table `[store]`.
fn store_keys(schema: Schema) -> Schema {
    schema
        .table("store", "Codec of databases, and files to keep.")
        .key(ManifestKey::new("store.codec", ValueType::one_of(&Codec::ALL.map(Codec::name)), "packed", &codec_doc()))
        .key(ManifestKey::new(
            "store.intermediates",
            ValueType::one_of(&["fast", "small"]),
            "fast",
            "Compression of intermediate files, which are removed before the build ends: light (fast), or by zstd into \
             two thirds of the space, which takes a tenth more time (small).",
        ))
        .key(ManifestKey::new(
            "store.keep",
            ValueType::one_of(&["databases", "all"]),
            "databases",
            "Files to keep after a database is verified: databases, or all, with capture databases and planes.",
        ))
}

/// Adds the keys of the table `[check]`.
fn check_keys(schema: Schema) -> Schema {
    schema
        .table("check", "Checks of a database before the next one is built.")
        .key(ManifestKey::new(
            "check.verify",
            ValueType::one_of(&["full", "sample", "none"]),
            "sample",
            "Positions whose scores are derived again by the plain rules: all (full), one in 1,000 but about 100,000 or \
             more a database (sample), or none.",
        ))
        .key(ManifestKey::new(
            "check.published",
            ValueType::Boolean,
            "true",
            "Whether to compare counts with the published ones, which exist for all positions of up to 34 stones.",
        ))
}

/// Adds the keys of what is made from finished databases.
fn derived_keys(schema: Schema) -> Schema {
    schema
        .table("puzzles", "Positions for people to solve, from each database.")
        .key(ManifestKey::new(
            "puzzles.count",
            ValueType::Integer(0, 1000),
            "0",
            "Puzzles of each database, at most: positions in which one move alone keeps the best result, and another one \
             captures more at once. 0 looks for none.",
        ))
        .table("evaluation", "Evaluation of the engine, fitted to the databases.")
        .key(ManifestKey::new(
            "evaluation.games",
            ValueType::Integer(0, 1_000_000),
            "0",
            "Games of the engine to whose positions its evaluation is fitted, when all databases are built; 0 fits none, \
             and 40000 is enough for 32 stones.",
        ))
        .key(ManifestKey::new(
            "evaluation.rounds",
            ValueType::Integer(1, 1000),
            "12",
            "How many times the fit goes over all positions.",
        ))
}

/// Adds the keys of the tables `[cluster]` and `[run]`.
fn run_keys(schema: Schema) -> Schema {
    schema
        .table("cluster", "Resources of each rank of a job.")
        .key(ManifestKey::new(
            "cluster.scratch",
            ValueType::String,
            "",
            "Directory on a local disk of each rank, for snapshots and for parts of unfinished databases; empty is \
             the run directory.",
        ))
        .table("run", "Files of a run.")
        .key(
            ManifestKey::new(
                "run.dir",
                ValueType::String,
                "runs/awari",
                "Run directory, relative to the current directory; runs/NAME for NAME.toml by default.",
            )
            .check(|value| match value {
                Value::String(dir) if dir.is_empty() => Err("must not be empty".to_owned()),
                _ => Ok(()),
            }),
        )
}

impl Settings {
    /// Reads a manifest of this [`schema`].
    pub fn new(manifest: &Manifest) -> Settings {
        let word = |key: &str| manifest.string(key);
        let threads = manifest.integer("build.threads") as usize;
        let threads = if threads == 0 { disk::clock::cores() } else { threads };
        Settings {
            rules: Rules::by_name(word("game.rules")).expect("the schema lists the rules"),
            set: match word("game.positions") {
                "all" => PositionSet::All,
                _ => PositionSet::Reachable {
                    opening: Opening::new(manifest.integer("game.opening") as u8).expect("the schema has the limits"),
                },
            },
            method: word("build.method").parse().ok(),
            methods: manifest.by_range("build.methods").clone(),
            stones: stones(manifest.ranges("build.stones")),
            ranks: 1,
            stages_at_a_time: manifest.integer("build.stages-at-a-time") as usize,
            threads,
            book: BookRequest::new(manifest, threads),
            memory_bytes: manifest.size("build.memory").bytes(),
            snapshot: manifest.duration("build.snapshot"),
            codec: word("store.codec").parse().expect("the schema lists the codecs"),
            intermediates: if word("store.intermediates") == "small" {
                Intermediates::Small
            } else {
                Intermediates::Fast
            },
            keep: if word("store.keep") == "all" { Keep::All } else { Keep::Targets },
            dual: Dual {
                cache_bytes: Some(manifest.size("dual.cache").bytes()).filter(|&bytes| bytes > 0),
                block_bytes: manifest.size("dual.block").bytes(),
                index: if word("dual.index") == "single" { DualIndex::Single } else { DualIndex::Dual },
            },
            verify: Verify::ALL
                .into_iter()
                .find(|verify| verify.to_string() == word("check.verify"))
                .expect("the schema lists the kinds of verification"),
            published: manifest.boolean("check.published"),
            puzzles: manifest.integer("puzzles.count") as u64,
            evaluation: Some(manifest.integer("evaluation.games") as u64)
                .filter(|&games| games > 0)
                .map(|games| EvaluationFit { games, rounds: manifest.integer("evaluation.rounds") as u32 }),
            dir: PathBuf::from(word("run.dir")),
            scratch: Some(word("cluster.scratch")).filter(|dir| !dir.is_empty()).map(PathBuf::from),
            hardware: Hardware::this(),
        }
    }

    /// Returns the method that the manifest asks for; `None` leaves the choice to the planner.
    pub fn asked_method(&self, stones: u32) -> Option<Method> {
        match self.methods.get(stones) {
            Some(word) => word.parse().ok(),
            None => self.method,
        }
    }

    /// Returns the book to build.
    pub fn book(&self) -> Option<&BookRequest> {
        self.book.as_ref()
    }

    /// Returns the settings for a job of this many ranks.
    #[must_use]
    pub fn with_ranks(self, ranks: usize) -> Settings {
        // Several ranks share one stage.
        let stages_at_a_time = if ranks > 1 { 1 } else { self.stages_at_a_time };
        Settings { ranks, stages_at_a_time, ..self }
    }

    /// Returns the settings for another machine, with a memory budget in bytes.
    #[must_use]
    pub fn for_machine(self, hardware: Hardware, memory_bytes: u64, threads: usize) -> Settings {
        let mut settings = Settings { hardware, memory_bytes, threads, ..self };
        if let Some(book) = &mut settings.book {
            book.settings.threads = threads;
        }
        settings
    }

    /// Returns the number of values of a position in a database: one score, or two bounds.
    pub fn values(&self) -> u64 {
        if self.rules.has_scores() { 1 } else { 2 }
    }

    /// Returns the databases that captures lead to from `stones` stones.
    pub fn smaller(&self, stones: u32) -> Range<u32> {
        self.rules.smaller(stones)
    }

    /// Returns the databases to build by number of stones, ascending.
    pub fn stones(&self) -> impl DoubleEndedIterator<Item = u32> + Clone + '_ {
        self.stones.iter().copied()
    }

    /// Returns the stones of the largest database to build.
    pub fn stones_max(&self) -> u32 {
        *self.stones.last().expect("a manifest names databases")
    }
}

/// Returns the numbers of all databases of a manifest: those that it lists, and all below the first.
fn stones(listed: &[RangeInclusive<u32>]) -> Vec<u32> {
    let first = listed.first().map_or(0, |range| *range.start());
    (0..first).chain(listed.iter().cloned().flatten()).collect()
}

/// Refuses a list that omits a database to which captures from the largest one lead.
fn refuse_gaps(listed: &[RangeInclusive<u32>]) -> Result<(), String> {
    let built = stones(listed);
    let Some(&largest) = built.last() else { return Ok(()) };
    let is_needed = |stones: &u32| Rules::KNOWN.iter().any(|rules| rules.smaller(largest).contains(stones));
    match (0..largest).find(|stones| is_needed(stones) && !built.contains(stones)) {
        None => Ok(()),
        Some(missing) => Err(format!(
            "must include {missing}, since captures from {largest} stones lead there; only {} can be omitted",
            largest - 1
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn read(text: &str) -> Result<Settings, String> {
        let text = format!("[build]\nstones = \"0..9\"\n{text}");
        match Manifest::parse(&text, "m.toml", &schema(), &[]) {
            Ok(manifest) => Ok(Settings::new(&manifest)),
            Err(mistakes) => Err(mistakes.into_iter().map(|mistake| mistake.message + "\n").collect()),
        }
    }

    /// Returns keys and values as the program prints them.
    fn values(text: &str) -> BTreeMap<String, String> {
        let printed = Manifest::parse(text, "m.toml", &schema(), &[]).unwrap().to_toml();
        let mut table = String::new();
        let mut values = BTreeMap::new();
        for line in printed.lines() {
            match line.split_once(" = ") {
                Some((name, value)) if !line.starts_with('#') => {
                    values.insert(format!("{table}.{name}"), value.to_owned());
                }
                _ if line.starts_with('[') => table = line.trim_matches(['[', ']']).to_owned(),
                _ => {}
            }
        }
        values
    }

    #[test]
    fn the_example_gives_every_key_with_its_default() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../manifests/quickstart.toml");
        let text = std::fs::read_to_string(path).unwrap();
        let (shown, defaults) = (values(&text), values("[build]\nstones = 3"));
        let (mut table, mut comment, mut found) = (String::new(), String::new(), Vec::new());
        for line in text.lines() {
            if let Some(more) = line.strip_prefix('#') {
                comment.push_str(more);
            } else if line.starts_with('[') {
                table = line.trim_matches(['[', ']']).to_owned();
                comment.clear();
            } else if let Some((name, _)) = line.split_once(" = ") {
                let key = format!("{table}.{name}");
                let said = comment.split_once("Default: ").map(|(_, value)| value.trim_end_matches('.'));
                match key.as_str() {
                    "build.stones" => assert!(said.is_none() && comment.ends_with("Required.")),
                    "run.dir" => assert_eq!(said, Some("\"runs/NAME\" for NAME.toml")),
                    _ if shown[&key] == defaults[&key] => assert_eq!(said, None, "{key}"),
                    _ => assert_eq!(said, Some(&*defaults[&key]), "{key}"),
                }
                found.push(key);
                comment.clear();
            } else {
                comment.clear();
            }
        }
        assert!(text.contains("# [build.methods]\n") && defaults["build.methods"] == "{}");
        found.push("build.methods".to_owned());
        found.sort();
        assert!(defaults.keys().eq(&found), "{found:?}");
    }

    #[test]
    fn ranges_override_the_method() {
        assert!((0..=9).all(|stones| read("").unwrap().asked_method(stones).is_none()));
        for method in Method::ALL {
            let settings = read(&format!("method = \"{method}\"")).unwrap();
            assert!((0..=9).all(|stones| settings.asked_method(stones) == Some(method)));
        }
        let text = "method = \"counting\"\nmethods = { \"2..3\" = \"one-bit-dual\", \"5..5\" = \"auto\" }";
        let asked: Vec<_> = (0..=6).map(|stones| read(text).unwrap().asked_method(stones)).collect();
        let (counting, dual) = (Some(Method::Counting), Some(Method::OneBitDual));
        assert_eq!(asked, [counting, counting, dual, dual, counting, None, counting]);
    }

    #[test]
    fn lists_of_stones_may_omit_the_next_to_last() {
        let built = |stones: &str| {
            let text = format!("[game]\npositions = \"reachable\"\n[build]\nstones = {stones}");
            let read = Manifest::parse(&text, "m.toml", &schema(), &[]);
            read.map(|manifest| Settings::new(&manifest)).map_err(|mistakes| mistakes[0].message.clone())
        };
        let check = |stones: &str, expect: &[u32]| {
            let settings = built(stones).unwrap();
            assert!(settings.stones().eq(expect.iter().copied()), "{stones}");
            assert_eq!(settings.stones_max(), expect[expect.len() - 1]);
        };
        check("3", &[0, 1, 2, 3]);
        check("\"2..3\"", &[0, 1, 2, 3]);
        check("\"0..2, 4\"", &[0, 1, 2, 4]);
        check("\"2, 4\"", &[0, 1, 2, 4]);
        check("\"0..2, 3, 4\"", &[0, 1, 2, 3, 4]);
        let whole: Vec<u32> = (0..=46).chain([48]).collect();
        check("\"0..46, 48\"", &whole);
        for (stones, missing) in [("\"0..45, 48\"", 46), ("\"0..2, 5\"", 3), ("\"0..2, 4, 6..7\"", 3)] {
            let error = built(stones).unwrap_err();
            assert!(error.contains(&format!("build.stones must include {missing},")), "{error}");
        }
    }

    #[test]
    fn openings() {
        let read = |game: &str| {
            let text = format!("[game]\n{game}\n[build]\nstones = 12");
            Manifest::parse(&text, "m.toml", &schema(), &[]).map(|manifest| Settings::new(&manifest).set)
        };
        let reachable = "positions = \"reachable\"";
        let few = PositionSet::Reachable { opening: Opening::new(1).unwrap() };
        assert_eq!(read(reachable), Ok(PositionSet::REACHABLE));
        assert_eq!(read(&format!("{reachable}\nopening = 1")), Ok(few));
        assert_eq!(read("opening = 1"), Ok(PositionSet::All));
        assert!(read("opening = 5").is_err() && read("opening = 0").is_err());
    }

    #[test]
    fn bits_on_disk() {
        let dual = read("").unwrap().dual;
        assert_eq!(dual, Dual { cache_bytes: None, block_bytes: 16 << 10, index: DualIndex::Dual });
        let dual = read("[dual]\ncache = \"1 MiB\"\nblock = \"4 KiB\"\nindex = \"single\"").unwrap().dual;
        assert_eq!(dual, Dual { cache_bytes: Some(1 << 20), block_bytes: 4 << 10, index: DualIndex::Single });
        for block in ["2 KiB", "2 MiB", "5 KiB", "0 B"] {
            let error = read(&format!("[dual]\nblock = \"{block}\"")).unwrap_err();
            assert!(error.contains("must be a power of two between 4 KiB and 1 MiB, found"), "{error}");
        }
    }
}
