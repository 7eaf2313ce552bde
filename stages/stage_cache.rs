//! The stage cache: arrays and counts that a stage leaves in memory for later stages of the same process.
//!
//! No result depends on it: on a miss a stage reads files. Entries are looked up by the content digests in the headers
//! of files, so they equal what the files hold. Large arrays are reused from database to database, because clearing
//! their pages anew takes as long as a pass of a kernel.

use check::Histogram;
use disk::Digest;
use game::Index;
use pipeline::StageError;
use pipeline::StageResult as Result;
use planner::{BuildPlan, DatabasePlan, StageMemory};
use solvers::{Bytes, ChoiceCounts, ScoreRows};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a stage uses of the stage cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheUse {
    /// The captures of its database.
    pub(crate) captures: bool,
    /// Solved databases, instead of decoded blocks.
    pub(crate) databases: bool,
    /// Spare arrays, which its planned memory includes.
    pub(crate) arrays: bool,
}

/// Cache that the stages of a build share.
#[derive(Default)]
pub(crate) struct StageCache(Mutex<CacheContent>);

#[derive(Default)]
struct CacheContent {
    captures: Option<(Digest, Bytes)>,
    choice: Option<CountedChoice>,
    histogram: Option<(Digest, Histogram)>,
    spare: Vec<Bytes>,
    /// Scores of whole databases, in canonical order, instead of decoded blocks.
    databases: BTreeMap<u32, (Digest, Arc<Bytes>)>,
}

/// Counts of a database and its captures.
struct CountedChoice {
    captures: Digest,
    database: Digest,
    choice: ChoiceCounts,
}

impl CacheContent {
    /// Returns the memory of spare arrays, and of databases beyond the planned cache.
    fn memory_bytes(&self, cache_bytes: u64) -> u64 {
        self.spare.iter().map(Bytes::memory_bytes).sum::<u64>() + self.database_bytes().saturating_sub(cache_bytes)
    }

    fn database_bytes(&self) -> u64 {
        self.databases.values().map(|(_, scores)| scores.memory_bytes()).sum()
    }
}

impl StageCache {
    /// Drops what the next stage does not use, and spare arrays that do not fit the budget beside its memory.
    pub(crate) fn begin(&self, cache_use: CacheUse, stage_bytes: u64, plan: &DatabasePlan) {
        let mut content = self.content();
        if !cache_use.captures
            && let Some((_, captures)) = content.captures.take()
        {
            content.spare.push(captures);
        }
        // The plans of other stages have no cache of blocks.
        if !cache_use.databases {
            content.databases.clear();
        }
        // No stage of a bound method takes a spare array.
        if plan.method().has_bounds() {
            content.spare.clear();
        }
        if cache_use.arrays {
            return;
        }
        let StageMemory { cache_bytes, budget_bytes, .. } = *plan.memory();
        while stage_bytes + content.memory_bytes(cache_bytes) > budget_bytes {
            if content.spare.pop().is_none() && content.databases.pop_first().is_none() {
                break;
            }
        }
    }

    /// Returns an array for the captures of an index, with arbitrary content.
    pub(crate) fn array(&self, plan: &BuildPlan, index: &Index) -> Result<Bytes> {
        let len = index.slab_positions() as usize;
        match self.spare().and_then(|spare| spare.resized(len)) {
            Some(bytes) => Ok(bytes),
            // A limit on address space may forbid the spare capacity.
            None => Bytes::zeroed_within(len, plan.array_bytes_max().max(len))
                .or_else(|_| Bytes::zeroed(len))
                .map_err(StageError::failed),
        }
    }

    /// Returns rows for the scores of an index, all 0.
    pub(crate) fn rows(&self, plan: &BuildPlan, index: &Index) -> Result<ScoreRows> {
        let found = self.spare().and_then(|spare| ScoreRows::zeroed_in(index, spare));
        match found {
            Some(rows) => Ok(rows),
            None => ScoreRows::zeroed_within(index, plan.array_bytes_max())
                .or_else(|_| ScoreRows::zeroed(index))
                .map_err(StageError::failed),
        }
    }

    /// Takes back an array for later use.
    pub(crate) fn give_back(&self, bytes: Bytes) {
        self.content().spare.push(bytes);
    }

    /// Keeps captures by their digest.
    pub(crate) fn keep_captures(&self, digest: Digest, captures: Bytes) {
        self.content().captures = Some((digest, captures));
    }

    /// Takes the captures with this digest.
    pub(crate) fn captures(&self, digest: Digest) -> Option<Bytes> {
        let (found, captures) = self.content().captures.take()?;
        (found == digest).then_some(captures)
    }

    /// Keeps the counts of a database and its captures.
    pub(crate) fn keep_choice(&self, captures: Digest, database: Digest, choice: ChoiceCounts) {
        self.content().choice = Some(CountedChoice { captures, database, choice });
    }

    /// Returns the counts of a database and its captures.
    pub(crate) fn choice(&self, captures: Digest, database: Digest) -> Option<ChoiceCounts> {
        let content = self.content();
        let chosen = content.choice.as_ref()?;
        (chosen.captures == captures && chosen.database == database).then_some(chosen.choice)
    }

    /// Keeps the histogram of a database.
    pub(crate) fn keep_histogram(&self, database: Digest, histogram: &Histogram) {
        self.content().histogram = Some((database, histogram.clone()));
    }

    /// Returns the histogram of a database.
    pub(crate) fn histogram(&self, database: Digest) -> Option<Histogram> {
        let content = self.content();
        let (found, histogram) = content.histogram.as_ref()?;
        (*found == database).then(|| histogram.clone())
    }

    /// Keeps the scores of a database for later captures, if the planned cache has room; smaller databases are evicted.
    /// If there is no memory, later stages read the file.
    pub(crate) fn keep_database(&self, plan: &BuildPlan, stones: u32, digest: Digest, scores: &ScoreRows) {
        let settings = plan.settings();
        let mut above = settings.stones().filter(|&above| above > stones);
        let (Some(next), true) = (above.clone().next(), above.any(|above| settings.smaller(above).contains(&stones)))
        else {
            return;
        };
        // The plan of the next capture includes this cache; for stages before that, `begin` applies their limits.
        let (bytes, most) = (settings.set.positions(stones), plan.database(next).memory().cache_bytes);
        if bytes > most {
            return;
        }
        while self.database_bytes() + bytes > most {
            self.content().databases.pop_first();
        }
        if let Ok(scores) = scores.to_bytes() {
            self.content().databases.insert(stones, (digest, Arc::new(scores)));
        }
    }

    /// Returns the scores of a database with this digest.
    pub(crate) fn database(&self, stones: u32, digest: Digest) -> Option<Arc<Bytes>> {
        let content = self.content();
        let (found, scores) = content.databases.get(&stones)?;
        (*found == digest).then(|| Arc::clone(scores))
    }

    /// Returns the planned cache of blocks, less the databases in this cache.
    pub(crate) fn cache_bytes(&self, plan: &DatabasePlan) -> u64 {
        plan.memory().cache_bytes.saturating_sub(self.database_bytes())
    }

    /// Whether the cache has any database.
    pub(crate) fn has_databases(&self) -> bool {
        !self.content().databases.is_empty()
    }

    /// Returns the bytes of databases in this cache.
    fn database_bytes(&self) -> u64 {
        self.content().database_bytes()
    }

    /// Takes the largest spare array.
    fn spare(&self) -> Option<Bytes> {
        let spare = &mut self.content().spare;
        let largest = (0..spare.len()).max_by_key(|&at| spare[at].memory_bytes())?;
        Some(spare.swap_remove(largest))
    }

    fn content(&self) -> MutexGuard<'_, CacheContent> {
        // A panic leaves no partial change: each change is one assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::Manifest;
    use planner::{Settings, schema};

    fn plan() -> BuildPlan {
        let text = "[build]\nstones = \"0..12\"\nmemory = \"64 MiB\"\nmethod = \"sweep\"\nthreads = 1";
        BuildPlan::new(Settings::new(&Manifest::parse(text, "m.toml", &schema(), &[]).unwrap()))
    }

    const SOLVER: CacheUse = CacheUse { captures: true, databases: true, arrays: true };
    const CHECK: CacheUse = CacheUse { captures: false, databases: true, arrays: false };

    #[test]
    fn captures_are_kept_for_the_solver_by_digest() {
        let (plan, index) = (plan(), Index::new(12, game::PositionSet::All));
        let (right, wrong) = (Digest::of(b"right"), Digest::of(b"wrong"));
        let cache = StageCache::default();
        let keep = || cache.keep_captures(right, cache.array(&plan, &index).unwrap());
        keep();
        cache.begin(SOLVER, 0, plan.database(12));
        assert_eq!(cache.captures(right).unwrap().len() as u64, index.positions());
        assert!(cache.captures(right).is_none(), "they were taken");
        keep();
        assert!(cache.captures(wrong).is_none());
        keep();
        cache.begin(CHECK, 0, plan.database(12));
        assert!(cache.captures(right).is_none());
        assert_eq!(cache.content().spare.len(), 1, "the array is reused");
    }

    #[test]
    fn the_cache_stays_within_the_budget() {
        let plan = plan();
        let cache = StageCache::default();
        let digest = Digest::of(b"any");
        for stones in 0..=12 {
            let rows = cache.rows(&plan, &Index::new(stones, game::PositionSet::All)).unwrap();
            cache.keep_database(&plan, stones, digest, &rows);
            cache.give_back(rows.into_bytes());
        }
        assert_eq!(cache.database(10, digest).unwrap().len() as u64, game::PositionSet::All.positions(10));
        assert!(cache.database(11, digest).is_none(), "no capture of up to 12 stones leads there");
        assert!(cache.database(10, Digest::of(b"other")).is_none());
        cache.begin(CHECK, 8 << 20, plan.database(12));
        assert!(!cache.content().spare.is_empty() && cache.has_databases());
        cache.begin(CHECK, 64 << 20, plan.database(12));
        assert!(cache.content().spare.is_empty() && cache.has_databases(), "databases are within the cache");
        cache.begin(CacheUse::default(), 0, plan.database(12));
        assert!(!cache.has_databases());
    }

    #[test]
    fn counts_are_found_by_both_digests() {
        let cache = StageCache::default();
        let digest = |text: &str| Digest::of(text.as_bytes());
        let choice = ChoiceCounts { offered: 3, declined: 2 };
        cache.keep_choice(digest("captures"), digest("database"), choice);
        assert_eq!(cache.choice(digest("captures"), digest("database")), Some(choice));
        assert_eq!(cache.choice(digest("other"), digest("database")), None);
        assert_eq!(cache.choice(digest("captures"), digest("other")), None);
        cache.keep_histogram(digest("database"), &Histogram::EMPTY);
        assert!(cache.histogram(digest("database")).is_some() && cache.histogram(digest("other")).is_none());
    }
}
