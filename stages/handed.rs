//! What one stage leaves in memory for those that come next in the same process.
//!
//! Nothing depends on it: a stage that finds nothing here reads files, with the same result. What is found is told apart
//! by content digests, which the files have in their headers, so it is what reading them would give. And large arrays go
//! from database to database: the kernel clears each page at its first touch, which takes as long as a pass of a kernel.

use check::Histogram;
use disk::Digest;
use engines::{Bytes, ChoiceCounts, ScoreRows};
use game::Index;
use pipeline::{StageError, StageSpec};
use planner::{BuildPlan, DatabasePlan, StageMemory};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What there is.
#[derive(Default)]
pub(crate) struct Handed(Mutex<Content>);

#[derive(Default)]
struct Content {
    captures: Option<(Digest, Bytes)>,
    choice: Option<Chosen>,
    histogram: Option<(Digest, Histogram)>,
    spare: Vec<Bytes>,
    /// Whole databases, in canonical order, in the place of decoded blocks.
    databases: BTreeMap<u32, (Digest, Arc<Bytes>)>,
}

/// What was counted of a database and its captures.
struct Chosen {
    captures: Digest,
    database: Digest,
    choice: ChoiceCounts,
}

impl Content {
    /// Memory of spare arrays, and of databases beyond a cache that stages count.
    fn memory_bytes(&self, cache_bytes: u64) -> u64 {
        self.spare.iter().map(Bytes::memory_bytes).sum::<u64>() + self.database_bytes().saturating_sub(cache_bytes)
    }

    fn database_bytes(&self) -> u64 {
        self.databases.values().map(|(_, scores)| scores.memory_bytes()).sum()
    }
}

impl Handed {
    /// Lets go of what the stage that comes has no use for, and of spare arrays that its budget leaves no room for.
    pub(crate) fn begin(&self, stage: &StageSpec, plan: &DatabasePlan) {
        let mut content = self.content();
        let is_solved_here = matches!(stage.name.kind(), "sweep" | "counting");
        if !is_solved_here && let Some((_, captures)) = content.captures.take() {
            content.spare.push(captures);
        }
        // Others do not count a cache of blocks.
        if !matches!(stage.name.kind(), "capture" | "sweep" | "counting" | "verify" | "stats") {
            content.databases.clear();
        }
        let StageMemory { arena_bytes, cache_bytes, budget_bytes, .. } = *plan.memory();
        // What sweep in memory takes is told with its arrays, and these they are.
        if stage.name.kind() == "sweep" && arena_bytes.is_none() {
            return;
        }
        while stage.cost.memory_bytes + content.memory_bytes(cache_bytes) > budget_bytes {
            if content.spare.pop().is_none() && content.databases.pop_first().is_none() {
                break;
            }
        }
    }

    /// Memory of what is here that no stage counts.
    pub(crate) fn memory_bytes(&self, plan: &DatabasePlan) -> u64 {
        self.content().memory_bytes(plan.memory().cache_bytes)
    }

    /// An array for the captures of an index, its content anything.
    pub(crate) fn array(&self, plan: &BuildPlan, index: &Index) -> Result<Bytes, StageError> {
        let len = index.positions() as usize;
        match self.spare().and_then(|spare| spare.resized(len)) {
            Some(bytes) => Ok(bytes),
            // A limit on addresses may forbid the room.
            None => Bytes::zeroed_within(len, plan.array_bytes_max().max(len))
                .or_else(|_| Bytes::zeroed(len))
                .map_err(StageError::failed),
        }
    }

    /// Rows for the scores of an index, all 0.
    pub(crate) fn rows(&self, plan: &BuildPlan, index: &Index) -> Result<ScoreRows, StageError> {
        let found = self.spare().and_then(|spare| ScoreRows::zeroed_in(index, spare));
        match found {
            Some(rows) => Ok(rows),
            None => ScoreRows::zeroed_within(index, plan.array_bytes_max())
                .or_else(|_| ScoreRows::zeroed(index))
                .map_err(StageError::failed),
        }
    }

    /// Takes an array that its owner is done with.
    pub(crate) fn give_back(&self, bytes: Bytes) {
        self.content().spare.push(bytes);
    }

    /// Keeps captures whose content has this digest.
    pub(crate) fn keep_captures(&self, digest: Digest, captures: Bytes) {
        self.content().captures = Some((digest, captures));
    }

    /// The captures with this digest, if they are here.
    pub(crate) fn captures(&self, digest: Digest) -> Option<Bytes> {
        let (found, captures) = self.content().captures.take()?;
        (found == digest).then_some(captures)
    }

    /// Keeps what was counted of a database and its captures.
    pub(crate) fn keep_choice(&self, captures: Digest, database: Digest, choice: ChoiceCounts) {
        self.content().choice = Some(Chosen { captures, database, choice });
    }

    /// What was counted of a database and its captures.
    pub(crate) fn choice(&self, captures: Digest, database: Digest) -> Option<ChoiceCounts> {
        let content = self.content();
        let chosen = content.choice.as_ref()?;
        (chosen.captures == captures && chosen.database == database).then_some(chosen.choice)
    }

    /// Keeps how many positions of a database have which score.
    pub(crate) fn keep_histogram(&self, database: Digest, histogram: &Histogram) {
        self.content().histogram = Some((database, histogram.clone()));
    }

    /// How many positions of a database have which score.
    pub(crate) fn histogram(&self, database: Digest) -> Option<Histogram> {
        let content = self.content();
        let (found, histogram) = content.histogram.as_ref()?;
        (*found == database).then(|| histogram.clone())
    }

    /// Keeps the scores of a database for those that captures lead from there, as far as these may take memory for what
    /// they read; smaller databases give way. Without memory, it is read.
    pub(crate) fn keep_database(&self, plan: &BuildPlan, stones: u32, digest: Digest, scores: &ScoreRows) {
        let settings = plan.settings();
        if !(stones + 1..=settings.stones_max()).any(|above| settings.smaller(above).contains(&stones)) {
            return;
        }
        // What the next capture counts; stages before are held to theirs when they begin.
        let (bytes, most) = (settings.set.positions(stones), plan.database(stones + 1).memory().cache_bytes);
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

    /// The scores of a database, if those with this digest are here.
    pub(crate) fn database(&self, stones: u32, digest: Digest) -> Option<Arc<Bytes>> {
        let content = self.content();
        let (found, scores) = content.databases.get(&stones)?;
        (*found == digest).then(|| Arc::clone(scores))
    }

    /// Bytes of a cache of blocks besides the databases that are here.
    pub(crate) fn cache_bytes(&self, plan: &DatabasePlan) -> u64 {
        plan.memory().cache_bytes.saturating_sub(self.database_bytes())
    }

    /// Whether any database is here.
    pub(crate) fn has_databases(&self) -> bool {
        !self.content().databases.is_empty()
    }

    /// Bytes of the databases that are here.
    fn database_bytes(&self) -> u64 {
        self.content().database_bytes()
    }

    /// The largest spare array.
    fn spare(&self) -> Option<Bytes> {
        let spare = &mut self.content().spare;
        let largest = (0..spare.len()).max_by_key(|&at| spare[at].memory_bytes())?;
        Some(spare.swap_remove(largest))
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        // Each change is one assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Handed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let content = self.content();
        write!(f, "Handed({} databases, {} spare arrays)", content.databases.len(), content.spare.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::{Cost, Manifest, StageName};
    use planner::{Settings, schema};

    fn plan() -> BuildPlan {
        let text = "[build]\nstones = \"0..12\"\nmemory = \"64 MiB\"\nmethod = \"sweep\"\nthreads = 1";
        BuildPlan::new(Settings::new(&Manifest::parse(text, "m.toml", &schema(), &[]).unwrap()))
    }

    fn stage(kind: &str, memory_bytes: u64) -> StageSpec {
        let name = StageName::new(kind, &[12]);
        StageSpec { cost: Cost { memory_bytes, ..Cost::default() }, ..StageSpec::new(name) }
    }

    #[test]
    fn captures_are_for_who_solves_and_told_by_their_digest() {
        let (plan, index) = (plan(), Index::new(12, game::PositionSet::All));
        let (right, wrong) = (Digest::of(b"right"), Digest::of(b"wrong"));
        let handed = Handed::default();
        let keep = || handed.keep_captures(right, handed.array(&plan, &index).unwrap());
        keep();
        handed.begin(&stage("sweep", 0), plan.database(12));
        assert_eq!(handed.captures(right).unwrap().len() as u64, index.positions());
        assert!(handed.captures(right).is_none(), "they were taken");
        keep();
        assert!(handed.captures(wrong).is_none());
        keep();
        handed.begin(&stage("verify", 0), plan.database(12));
        assert!(handed.captures(right).is_none());
        assert_eq!(handed.content().spare.len(), 1, "the array serves again");
    }

    #[test]
    fn nothing_is_kept_beyond_the_budget() {
        let plan = plan();
        let handed = Handed::default();
        let digest = Digest::of(b"any");
        for stones in 0..=12 {
            let rows = handed.rows(&plan, &Index::new(stones, game::PositionSet::All)).unwrap();
            handed.keep_database(&plan, stones, digest, &rows);
            handed.give_back(rows.into_bytes());
        }
        assert_eq!(handed.database(10, digest).unwrap().len() as u64, game::PositionSet::All.positions(10));
        assert!(handed.database(11, digest).is_none(), "no capture of up to 12 stones leads there");
        assert!(handed.database(10, Digest::of(b"other")).is_none());
        handed.begin(&stage("stats", 8 << 20), plan.database(12));
        assert!(!handed.content().spare.is_empty() && handed.has_databases());
        handed.begin(&stage("stats", 64 << 20), plan.database(12));
        assert!(handed.content().spare.is_empty() && handed.has_databases(), "databases are within the cache");
        handed.begin(&stage("process", 0), plan.database(12));
        assert!(!handed.has_databases());
    }

    #[test]
    fn counts_are_told_by_both_digests() {
        let handed = Handed::default();
        let digest = |text: &str| Digest::of(text.as_bytes());
        let choice = ChoiceCounts { offered: 3, declined: 2 };
        handed.keep_choice(digest("captures"), digest("database"), choice);
        assert_eq!(handed.choice(digest("captures"), digest("database")), Some(choice));
        assert_eq!(handed.choice(digest("other"), digest("database")), None);
        assert_eq!(handed.choice(digest("captures"), digest("other")), None);
        handed.keep_histogram(digest("database"), &Histogram::EMPTY);
        assert!(handed.histogram(digest("database")).is_some() && handed.histogram(digest("other")).is_none());
    }
}
