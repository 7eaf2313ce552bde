//! The catalogue of databases: the answer of `/v1/databases`, and the entity tag of all answers.

use game::Score;
use oracle::{Library, LibraryFile};
use serde::Serialize;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The state of a database that cannot be read.
const DAMAGED: &str = "damaged";

/// The databases of a library, with known histograms.
#[derive(Clone, Debug)]
pub struct Catalogue {
    rules: &'static str,
    has_scores: bool,
    positions: String,
    databases: BTreeMap<u32, CatalogueEntry>,
}

/// A database; fields from the file are absent if it is damaged.
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

/// The number of positions with a score.
#[derive(Clone, Copy, Debug, Serialize, Hash)]
pub(crate) struct ScoreCount {
    pub(crate) score: Score,
    pub(crate) positions: u64,
}

#[derive(Serialize)]
struct CatalogueList<'a> {
    rules: &'a str,
    positions: &'a str,
    databases: Vec<CatalogueEntry>,
}

#[derive(Serialize)]
struct CatalogueDatabase<'a> {
    #[serde(flatten)]
    entry: CatalogueEntry,
    /// Of the lower bounds of positions, where rules have bounds.
    histogram_of: &'static str,
    histogram: Option<&'a [ScoreCount]>,
}

impl CatalogueEntry {
    /// Returns the entry of a database that can be read, or no more.
    fn now(&self, is_served: bool) -> CatalogueEntry {
        let Self { stones, positions, .. } = *self;
        if is_served {
            Self { histogram: None, digest: self.digest.clone(), codec: self.codec.clone(), ..*self }
        } else {
            Self { stones, positions, state: DAMAGED, digest: None, codec: None, bytes: None, histogram: None }
        }
    }
}

impl Catalogue {
    /// Makes the catalogue of a library, without histograms.
    pub fn new(library: &Library) -> Catalogue {
        let entry = |stones: u32, held: &LibraryFile| {
            let scores = match held {
                LibraryFile::Sound(scores) => Some(scores),
                LibraryFile::Damaged { .. } => None,
            };
            CatalogueEntry {
                stones,
                state: if scores.is_some() { "sound" } else { DAMAGED },
                positions: library.set().positions(stones),
                digest: scores.map(|scores| scores.digest().to_string()),
                codec: scores.map(|scores| scores.codec().to_string()),
                bytes: scores.map(|scores| scores.bytes()),
                histogram: None,
            }
        };
        Catalogue {
            rules: library.rules().name,
            has_scores: library.rules().has_scores(),
            positions: library.set().to_string(),
            databases: library.files().iter().map(|(&stones, held)| (stones, entry(stones, held))).collect(),
        }
    }

    /// Adds the histogram of a database. Ignored if the database is missing.
    #[must_use]
    pub fn with_histogram(mut self, stones: u32, counts: impl IntoIterator<Item = (Score, u64)>) -> Catalogue {
        if let Some(entry) = self.databases.get_mut(&stones) {
            entry.histogram =
                Some(counts.into_iter().map(|(score, positions)| ScoreCount { score, positions }).collect());
        }
        self
    }

    /// Returns the list of the databases. `is_served` says of a number of stones whether its database can be read now.
    pub(super) fn listed(&self, is_served: impl Fn(u32) -> bool) -> impl Serialize + '_ {
        let databases = self.databases.values().map(|entry| entry.now(is_served(entry.stones))).collect();
        CatalogueList { rules: self.rules, positions: &self.positions, databases }
    }

    /// Returns a database, with its histogram.
    pub(super) fn shown(&self, stones: u32, is_served: impl Fn(u32) -> bool) -> Option<impl Serialize + '_> {
        let entry = self.databases.get(&stones)?;
        let histogram_of = if self.has_scores { "score" } else { "low" };
        let (entry, histogram) = (entry.now(is_served(stones)), entry.histogram.as_deref());
        Some(CatalogueDatabase { entry, histogram_of, histogram })
    }

    /// Returns the histogram of a database, ascending, if known.
    pub(super) fn histogram(&self, stones: u32) -> Option<&[ScoreCount]> {
        self.databases.get(&stones)?.histogram.as_deref()
    }

    /// Returns the stones of the largest sound database.
    pub(super) fn stones_max(&self) -> Option<u32> {
        let sound = self.databases.values().filter(|entry| entry.digest.is_some());
        sound.map(|entry| entry.stones).max()
    }

    /// Returns the number of databases, and of those that cannot be read now.
    pub(super) fn database_counts(&self, is_served: impl Fn(u32) -> bool) -> (usize, usize) {
        let damaged = self.databases.keys().filter(|stones| !is_served(**stones));
        (self.databases.len(), damaged.count())
    }

    /// Returns the entity tag, which depends on the databases, the version of the program and the assets of the page.
    pub(super) fn tag(&self, assets: &[&str]) -> String {
        // Not a secret: a collision of 64 bits would cost a stale page.
        let mut hasher = DefaultHasher::new();
        (env!("CARGO_PKG_VERSION"), self.rules, &self.positions, assets).hash(&mut hasher);
        for entry in self.databases.values() {
            (entry.stones, &entry.digest, &entry.histogram).hash(&mut hasher);
        }
        format!("\"{:016x}\"", hasher.finish())
    }
}
