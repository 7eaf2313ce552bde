//! Which databases there are: what `/v1/databases` tells, and the tag of all answers.

use crate::{Library, LibraryFile};
use game::Score;
use serde::Serialize;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The databases of a library, and how often each score occurs where somebody has counted.
#[derive(Clone, Debug)]
pub struct Catalogue {
    rules: &'static str,
    positions: String,
    databases: BTreeMap<u32, CatalogueEntry>,
}

/// A database; what only a sound file tells is absent where it is damaged.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CatalogueEntry {
    stones: u32,
    state: &'static str,
    positions: u64,
    digest: Option<String>,
    codec: Option<String>,
    bytes: Option<u64>,
    #[serde(skip)]
    histogram: Option<Vec<ScoreCount>>,
}

/// How many positions have a score.
#[derive(Clone, Copy, Debug, Serialize, Hash)]
pub(crate) struct ScoreCount {
    pub(crate) score: Score,
    pub(crate) positions: u64,
}

#[derive(Serialize)]
struct CatalogueList<'a> {
    rules: &'a str,
    positions: &'a str,
    databases: Vec<&'a CatalogueEntry>,
}

#[derive(Serialize)]
struct CatalogueDatabase<'a> {
    #[serde(flatten)]
    entry: &'a CatalogueEntry,
    histogram: Option<&'a [ScoreCount]>,
}

impl Catalogue {
    /// The databases of a library. Nobody has counted any scores yet.
    pub fn new(library: &Library) -> Catalogue {
        let entry = |stones: u32, held: &LibraryFile| {
            let scores = match held {
                LibraryFile::Sound(scores) => Some(scores),
                LibraryFile::Damaged { .. } => None,
            };
            CatalogueEntry {
                stones,
                state: if scores.is_some() { "sound" } else { "damaged" },
                positions: library.set().positions(stones),
                digest: scores.map(|scores| scores.digest().to_string()),
                codec: scores.map(|scores| scores.codec().to_string()),
                bytes: scores.map(|scores| scores.bytes()),
                histogram: None,
            }
        };
        Catalogue {
            rules: library.rules().name,
            positions: library.set().to_string(),
            databases: library.held().iter().map(|(&stones, held)| (stones, entry(stones, held))).collect(),
        }
    }

    /// Adds how often each score occurs in a database. Of one that is not there, nothing is kept.
    #[must_use]
    pub fn with_histogram(mut self, stones: u32, counts: impl IntoIterator<Item = (Score, u64)>) -> Catalogue {
        if let Some(entry) = self.databases.get_mut(&stones) {
            entry.histogram =
                Some(counts.into_iter().map(|(score, positions)| ScoreCount { score, positions }).collect());
        }
        self
    }

    pub(super) fn listed(&self) -> impl Serialize + '_ {
        CatalogueList { rules: self.rules, positions: &self.positions, databases: self.databases.values().collect() }
    }

    pub(super) fn shown(&self, stones: u32) -> Option<impl Serialize + '_> {
        let entry = self.databases.get(&stones)?;
        Some(CatalogueDatabase { entry, histogram: entry.histogram.as_deref() })
    }

    /// How often each score occurs in a database, the least first, if somebody has counted.
    pub(super) fn histogram(&self, stones: u32) -> Option<&[ScoreCount]> {
        self.databases.get(&stones)?.histogram.as_deref()
    }

    /// The most stones of which there is a sound database.
    pub(super) fn stones_max(&self) -> Option<u32> {
        let sound = self.databases.values().filter(|entry| entry.digest.is_some());
        sound.map(|entry| entry.stones).max()
    }

    /// How many there are, and how many of them are damaged.
    pub(super) fn counts(&self) -> (usize, usize) {
        let damaged = self.databases.values().filter(|entry| entry.digest.is_none());
        (self.databases.len(), damaged.count())
    }

    /// Differs between databases that differ, and between programs that answer or show something else: `assets` is all
    /// that the page is made of.
    pub(super) fn tag(&self, assets: &[&str]) -> String {
        // No secret and no identity of a file: two that collide cost a stale page, at 64 bits never.
        let mut hasher = DefaultHasher::new();
        (env!("CARGO_PKG_VERSION"), self.rules, &self.positions, assets).hash(&mut hasher);
        for entry in self.databases.values() {
            (entry.stones, &entry.digest, &entry.histogram).hash(&mut hasher);
        }
        format!("\"{:016x}\"", hasher.finish())
    }
}
