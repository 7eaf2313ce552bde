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
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a stage uses of the stage cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheUse {
    /// The captures of its database.
    pub(crate) captures: bool,
    /// Solved databases, instead of decoded blocks.
    pub(crate) databases: bool,
    /// Spare arrays, which its planned memory includes.
    pub(crate) arrays: bool,
}

impl CacheUse {
    pub(crate) const NOTHING: CacheUse = CacheUse { captures: false, databases: false, arrays: false };
    pub(crate) const DATABASES: CacheUse = CacheUse { databases: true, ..CacheUse::NOTHING };
    pub(crate) const ALL: CacheUse = CacheUse { captures: true, databases: true, arrays: true };
}

/// Cache that the stages of a build share.
#[derive(Default)]
pub(crate) struct StageCache(Mutex<CacheContent>);

/// Counts of the latest databases that are kept: more than are solved and not counted at any time.
const COUNTS_MAX: usize = 16;

#[derive(Default)]
struct CacheContent {
    /// Memory of the running stages, as planned.
    running: Vec<u64>,
    /// Captures of databases that are not solved yet, one if only one stage runs at a time.
    captures: Vec<(Digest, Bytes)>,
    choices: VecDeque<CountedChoice>,
    histograms: VecDeque<(Digest, Histogram)>,
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

    fn begin_alone(&mut self, cache_use: CacheUse, stage_bytes: u64, plan: &DatabasePlan) {
        if !cache_use.captures {
            self.spare.extend(self.captures.drain(..).map(|(_, captures)| captures));
        }
        // The plans of other stages have no cache of blocks.
        if !cache_use.databases {
            self.databases.clear();
        }
        // No stage of a bound method takes a spare array.
        if plan.method().has_bounds() {
            self.spare.clear();
        }
        if cache_use.arrays {
            return;
        }
        let StageMemory { cache_bytes, budget_bytes, .. } = *plan.memory();
        while stage_bytes + self.memory_bytes(cache_bytes) > budget_bytes {
            if self.spare.pop().is_none() && self.databases.pop_first().is_none() {
                break;
            }
        }
    }

    /// Drops arrays until all that are left fit the budget beside the running stages.
    fn shrink(&mut self, budget_bytes: u64) {
        let running = self.running.iter().copied().fold(0, u64::saturating_add);
        let captures =
            |content: &CacheContent| content.captures.iter().map(|(_, bytes)| bytes.memory_bytes()).sum::<u64>();
        while running.saturating_add(self.memory_bytes(0) + captures(self)) > budget_bytes {
            let is_dropped =
                self.spare.pop().is_some() || self.databases.pop_first().is_some() || self.captures.pop().is_some();
            if !is_dropped {
                break;
            }
        }
    }
}

/// The part of a running stage in the cache; it ends when dropped.
pub(crate) struct CachePart<'c> {
    cache: &'c StageCache,
    stage_bytes: u64,
}

impl Drop for CachePart<'_> {
    fn drop(&mut self) {
        let mut content = self.cache.content();
        if let Some(at) = content.running.iter().position(|bytes| *bytes == self.stage_bytes) {
            content.running.swap_remove(at);
        }
    }
}

impl StageCache {
    /// Drops what the next stage does not use, and spare arrays that do not fit the budget beside its memory.
    /// While other stages run, which may use anything, it drops only what does not fit beside all of them.
    pub(crate) fn begin(&self, cache_use: CacheUse, stage_bytes: u64, plan: &DatabasePlan) -> CachePart<'_> {
        let mut content = self.content();
        content.running.push(stage_bytes);
        if content.running.len() > 1 {
            content.shrink(plan.memory().budget_bytes);
        } else {
            content.begin_alone(cache_use, stage_bytes, plan);
        }
        CachePart { cache: self, stage_bytes }
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
        self.content().captures.push((digest, captures));
    }

    /// Takes the captures with this digest.
    pub(crate) fn captures(&self, digest: Digest) -> Option<Bytes> {
        let captures = &mut self.content().captures;
        let at = captures.iter().position(|(found, _)| *found == digest)?;
        Some(captures.swap_remove(at).1)
    }

    /// Keeps the counts of a database and its captures.
    pub(crate) fn keep_choice(&self, captures: Digest, database: Digest, choice: ChoiceCounts) {
        keep_latest(&mut self.content().choices, CountedChoice { captures, database, choice });
    }

    /// Returns the counts of a database and its captures.
    pub(crate) fn choice(&self, captures: Digest, database: Digest) -> Option<ChoiceCounts> {
        let content = self.content();
        let is_it = |chosen: &&CountedChoice| chosen.captures == captures && chosen.database == database;
        content.choices.iter().find(is_it).map(|chosen| chosen.choice)
    }

    /// Keeps the histogram of a database.
    pub(crate) fn keep_histogram(&self, database: Digest, histogram: &Histogram) {
        keep_latest(&mut self.content().histograms, (database, histogram.clone()));
    }

    /// Returns the histogram of a database.
    pub(crate) fn histogram(&self, database: Digest) -> Option<Histogram> {
        let content = self.content();
        let (_, histogram) = content.histograms.iter().find(|(found, _)| *found == database)?;
        Some(histogram.clone())
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

/// Appends counts, and drops the oldest beyond the limit.
fn keep_latest<T>(counts: &mut VecDeque<T>, latest: T) {
    counts.push_back(latest);
    if counts.len() > COUNTS_MAX {
        counts.pop_front();
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

    #[test]
    fn captures_are_kept_for_the_solver_by_digest() {
        let (plan, index) = (plan(), Index::new(12, game::PositionSet::All));
        let (right, wrong) = (Digest::of(b"right"), Digest::of(b"wrong"));
        let cache = StageCache::default();
        let keep = || cache.keep_captures(right, cache.array(&plan, &index).unwrap());
        keep();
        cache.begin(CacheUse::ALL, 0, plan.database(12));
        assert_eq!(cache.captures(right).unwrap().len() as u64, index.positions());
        assert!(cache.captures(right).is_none(), "they were taken");
        keep();
        assert!(cache.captures(wrong).is_none());
        cache.begin(CacheUse::DATABASES, 0, plan.database(12));
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
        cache.begin(CacheUse::DATABASES, 8 << 20, plan.database(12));
        assert!(!cache.content().spare.is_empty() && cache.has_databases());
        cache.begin(CacheUse::DATABASES, 64 << 20, plan.database(12));
        assert!(cache.content().spare.is_empty() && cache.has_databases(), "databases are within the cache");
        cache.begin(CacheUse::NOTHING, 0, plan.database(12));
        assert!(!cache.has_databases());
    }

    #[test]
    fn stages_side_by_side_share_the_budget() {
        let plan = plan();
        let index = Index::new(12, game::PositionSet::All);
        let [first, second] = [b"one", b"two"].map(|text| Digest::of(text));
        let cache = StageCache::default();
        let solving = cache.begin(CacheUse::ALL, 30 << 20, plan.database(11));
        for digest in [first, second] {
            cache.keep_captures(digest, cache.array(&plan, &index).unwrap());
        }
        cache.give_back(cache.array(&plan, &index).unwrap());
        // Captures of both databases stay for the stages that solve them, while there is room.
        let checking = cache.begin(CacheUse::DATABASES, 10 << 20, plan.database(10));
        assert_eq!(cache.content().captures.len(), 2);
        drop(checking);
        drop(cache.begin(CacheUse::DATABASES, 34 << 20, plan.database(10)));
        assert!(cache.content().captures.is_empty() && cache.content().spare.is_empty());
        drop(solving);
        assert!(cache.content().running.is_empty());
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
