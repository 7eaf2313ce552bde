//! The small builds that are disturbed, with the files of an undisturbed one.

use super::build::{DisturbedBuild, artifacts};
use disk::{MemoryDisk, OperationSet};
use planner::Method;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// A manifest, and an undisturbed build of it.
pub struct Subject {
    method: Method,
    overrides: Vec<(&'static str, &'static str)>,
    /// The disk after an undisturbed build, for the numbers of its operations.
    disk: MemoryDisk,
    /// Files at the end.
    pub(crate) kept: BTreeMap<PathBuf, Vec<u8>>,
    /// Files that exist at some time.
    pub(crate) made: BTreeMap<PathBuf, Vec<u8>>,
}

/// Manifests; most write a snapshot after each pass, so that most runs resume from one.
const MANIFESTS: [&[(&str, &str)]; 4] = [
    &[("build.stones", "0..3"), ("build.snapshot", "0 s"), ("store.keep", "all"), ("check.verify", "full")],
    &[("build.stones", "0..4"), ("build.snapshot", "0 s"), ("store.codec", "zstd"), ("check.verify", "full")],
    &[("build.stones", "0..3"), ("store.codec", "raw"), ("check.verify", "none")],
    &[
        ("build.stones", "0..4"),
        ("build.snapshot", "0 s"),
        ("store.keep", "all"),
        ("game.positions", "reachable"),
        ("build.stages-at-a-time", "3"),
    ],
];

/// A database whose bits do not fit the cache: passes and snapshots evict pages.
const PAGES: &[(&str, &str)] = &[
    ("build.stones", "0..7"),
    ("build.method", "sweep"),
    ("build.methods.\"7..7\"", "one-bit-dual"),
    ("build.snapshot", "0 s"),
    ("check.verify", "none"),
    ("dual.cache", "4 KiB"),
];

/// Operations in the same order each time.
const ALWAYS: [(&str, &str); 2] = [("build.threads", "1"), ("dual.block", "4 KiB")];

impl Subject {
    /// All builds by a method. Faults strike the first at every operation.
    pub fn all(method: Method) -> Vec<Subject> {
        let pages = (method == Method::OneBitDual).then_some(PAGES);
        MANIFESTS.into_iter().chain(pages).map(|manifest| Subject::new(method, manifest)).collect()
    }

    /// A build by a method, with these keys of a manifest.
    ///
    /// # Panics
    /// If an undisturbed build fails.
    pub(crate) fn new(method: Method, manifest: &[(&'static str, &'static str)]) -> Subject {
        let mut overrides = vec![("build.method", method.word())];
        overrides.extend(ALWAYS);
        overrides.retain(|(key, _)| manifest.iter().all(|(other, _)| other != key));
        overrides.extend(manifest);
        let built = |more: &[(&str, &str)]| {
            let mut words = overrides.clone();
            words.retain(|(key, _)| more.iter().all(|(other, _)| other != key));
            let disk = MemoryDisk::new();
            let run = DisturbedBuild::new(&[&words[..], more].concat()).run(&disk);
            run.unwrap_or_else(|error| panic!("an undisturbed build by {method} failed: {error}"));
            disk
        };
        let disk = built(&[]);
        let kept = artifacts(&disk);
        let made = artifacts(&built(&[("store.keep", "all"), ("build.stages-at-a-time", "1")]));
        let are_same = kept.iter().all(|(path, bytes)| made.get(path) == Some(bytes));
        assert!(are_same, "keeping files, or stages side by side, change bytes");
        Subject { method, overrides, disk, kept, made }
    }

    /// Number of stages.
    pub(crate) fn stages(&self) -> usize {
        self.build().stages()
    }

    /// Method of the build.
    pub fn method(&self) -> Method {
        self.method
    }

    /// A new process for it.
    pub fn build(&self) -> DisturbedBuild {
        DisturbedBuild::new(&self.overrides)
    }

    /// A run that also verifies all databases in full.
    pub(crate) fn verification(&self) -> DisturbedBuild {
        let mut overrides = self.overrides.clone();
        overrides.retain(|(key, _)| *key != "check.verify");
        overrides.push(("check.verify", "full"));
        DisturbedBuild::new(&overrides)
    }

    /// A bound on the operations of a run by this number of ranks: a run with more does not terminate.
    pub(crate) fn operations_max(&self, ranks: usize) -> u64 {
        10_000 + 20 * ranks as u64 * self.operations(OperationSet::All)
    }

    /// Number of operations of an undisturbed build.
    pub(crate) fn operations(&self, among: OperationSet) -> u64 {
        self.disk.operations_among(among)
    }

    /// Bytes on the disk at the end.
    pub(crate) fn bytes(&self) -> u64 {
        self.disk.paths().iter().filter_map(|path| self.disk.peek(path)).map(|bytes| bytes.len() as u64).sum()
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.overrides.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        write!(f, "{}", keys.join(", "))
    }
}
