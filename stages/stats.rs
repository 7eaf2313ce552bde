//! The stage `stats:n`: the figures that the papers report, counted over the whole database.
//!
//! The stages that solve a database count its choices, and those that verify it its scores. Of what was
//! counted in this process no file is read, but for the scores of the opening position and of its captures.

use crate::bounds::{self, PlaneFile, PlaneReader, SeedCaptures};
use crate::build_context::BuildContext;
use crate::declaration;
use crate::distributed::{RankResult, ReadTask, agree, separately};
use crate::kind::{Declaration, FamilyContent, FileFamily, KindOptions, Phase, StageKind, is_numbered};
use crate::stage_cache::CacheUse;
use crate::team::{self, TeamMember};
use crate::{files, opening, verify};
use check::{CaptureStatistics, Histogram, PairStatistics, Statistics};
use disk::Disk;
use game::{Index, Score};
use messaging::Communicator;
use pipeline::{ArtifactKind, ArtifactName, StageContext, StageError, StageReport, StageResult as Result, StageSpec};
use planner::{DatabasePlan, Settings, StageClass};
use solvers::{ChoiceCounts, DatabasePart, Tables};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use store::{CachedScores, FileKind, Scores};

/// Cache of decoded blocks: a block is needed while each thread reads the parts of its rows.
const CACHE_BYTES: u64 = 8 << 20;

/// Positions of a read that needs no cache.
const LONG_POSITIONS: usize = 1 << 20;

/// Positions whose scores are counted at a time, where nothing else is.
const SCORES_AT_ONCE: usize = 8 << 20;

/// Positions whose bounds are counted at a time.
const PAIRS_AT_ONCE: u64 = 1 << 20;

/// Version of statistics, raised when the same databases give other figures.
const VERSION: u32 = 1;

const KIND: &str = "stats";

/// Statistics: `stats/NN.json`.
static STATISTICS: FileFamily =
    FileFamily { folder: "stats", has: |file| is_numbered(file, "json"), content: FamilyContent::REPORT };

/// The kind `stats:n`.
pub(crate) static STATS: StageKind = StageKind {
    word: KIND,
    phase: Phase::Statistics,
    files: Some(&STATISTICS),
    declare: |kind, build| declaration::of_databases(kind, build, declare),
    run: |build, parameters, context| run(build, parameters[0], context),
    options: KindOptions {
        classes: &[StageClass::Stats],
        cache_use: CacheUse::DATABASES,
        follow: |follower, order, communicator| team::follow(follower, order, communicator, count_part),
        ..KindOptions::OF_DATABASES
    },
};

/// Declares the stage of a database: it reads captures and scores, and makes the statistics.
fn declare(kind: &StageKind, settings: &Settings, plan: &DatabasePlan) -> Declaration {
    let (stones, stats) = (plan.stones(), statistics_of(plan.stones()));
    let inputs = StatsInputs::names(plan).into_iter().chain(opening::inputs(settings, stones)).collect();
    let stage = StageSpec {
        // Which counts the scores.
        after: verify::stage_of(settings, stones).into_iter().collect(),
        ..declaration::stage(kind, plan, None, inputs, vec![stats.clone()])
    };
    let stats = declaration::artifact(settings, stones, stats, ArtifactKind::Report, "statistics");
    Declaration { stage, artifacts: vec![stats.version(VERSION)] }
}

/// Returns `stats/NN.json`.
fn statistics_of(stones: u32) -> ArtifactName {
    files::name(format!("stats/{stones:02}.json"))
}

/// Runs the stage.
fn run(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    let index = Index::new(stones, build.settings().set);
    let (settings, plan) = (build.settings(), build.plan(stones));
    let inputs = StatsInputs::open(settings, plan, &index, context.disk(), |name| Some(context.input(name)))?;
    let opening = inputs.opening(settings, &index, context)?;
    let pairs = inputs.pairs(stones)?;
    let choice = inputs.kept_choice(build);
    if let (Some(choice), Some(histogram)) = (choice, build.stage_cache().histogram(inputs.scores.digest())) {
        let choice = opening.add_choice(choice);
        return publish(&index, CountedDatabase { choice, histogram }, pairs, context);
    }
    drop(inputs);
    let names = StatsInputs::names(plan);
    let names = if choice.is_some() { &names[names.len() - 1..] } else { &names };
    let files = names.iter().map(|name| context.input(name)).collect();
    let task = ReadTask { stones, threads: context.threads(), files };
    let (counted, loads) = team::lead(KIND, build, build.job_that_shares(stones), &task, context, count_part)?;
    let counted = CountedDatabase { choice: choice.unwrap_or(counted.choice), ..counted };
    Ok(team::report(publish(&index, opening.add(counted), pairs, context)?, loads))
}

/// Counts a part of the slabs on each rank, and returns the sums.
fn count_part(member: &TeamMember<ReadTask>, communicator: &mut dyn Communicator) -> RankResult<CountedDatabase> {
    let part = DatabasePart { number: communicator.rank(), of: communicator.size() };
    let TeamMember { build, disk, ref index, task, .. } = *member;
    let plan = member.plan();
    let names = StatsInputs::names(plan);
    let open = || {
        if ![1, names.len()].contains(&task.files.len()) {
            return Err(StageError::failed(format!("1 or {} files to count, found {}", names.len(), task.files.len())));
        }
        let path = |name: &ArtifactName| {
            let mut named = names.iter().rev().zip(task.files.iter().rev());
            named.find(|(other, _)| *other == name).map(|(_, path)| path.clone())
        };
        StatsInputs::open(member.settings(), plan, index, disk, path)
    };
    let counted = separately(communicator, |others_go_on| {
        let go_on = || member.stop().and_then(|()| others_go_on());
        count((&build.tables(), index), plan.memory().stats_stripe_bytes, part, open()?, &go_on)
    })?;
    let CountedDatabase { choice, histogram } = agree(communicator, counted)?;
    let numbers: Vec<u64> = [choice.offered, choice.declined].into_iter().chain(histogram.by_score()).collect();
    let sums = communicator.sum(&numbers)?;
    let [offered, declined, counts @ ..] = &sums[..] else { unreachable!("as many sums as numbers") };
    let choice = ChoiceCounts { offered: *offered, declined: *declined };
    let histogram = Histogram::of_counts(counts.try_into().expect("as many sums as counts"));
    Ok(CountedDatabase { choice, histogram })
}

/// The files that the stage reads.
struct StatsInputs {
    /// Not needed if the choices are counted.
    captures: Option<CaptureSource>,
    scores: Scores,
}

/// The captures of a database, or the seeds that a bound method has made from them, so that these can be removed.
enum CaptureSource {
    Captures(Box<Scores>),
    Seeds(Box<[PlaneReader; 2]>),
}

/// Whether the stage reads seeds.
fn has_seeds(plan: &DatabasePlan) -> bool {
    plan.method().has_bounds() && plan.stones() > 0
}

impl StatsInputs {
    /// Returns the names of the files.
    fn names(plan: &DatabasePlan) -> Vec<ArtifactName> {
        let stones = plan.stones();
        let captures = if has_seeds(plan) {
            bounds::SEEDS.map(|plane| plane.name(stones)).to_vec()
        } else {
            vec![files::capture(stones)]
        };
        captures.into_iter().chain([files::database(stones)]).collect()
    }

    /// Opens the files, of which `path` returns the paths: that of the database, and those of captures if
    /// these are needed.
    fn open(
        settings: &Settings,
        plan: &DatabasePlan,
        index: &Index,
        disk: &dyn Disk,
        path: impl Fn(&ArtifactName) -> Option<PathBuf>,
    ) -> Result<StatsInputs> {
        let stones = index.stones();
        let scores = |path: PathBuf, kind: FileKind| files::open_windowed(disk, &path, settings, kind, index);
        let seeds = |plane: PlaneFile| {
            let name = plane.name(stones);
            let open = |path: PathBuf| {
                PlaneReader::open(disk, &path, settings, index, plane).map_err(|error| files::unreadable(&name, error))
            };
            path(&name).map(open).transpose()
        };
        let captures = if has_seeds(plan) {
            let [wins, candidates] = bounds::SEEDS.map(seeds);
            wins?.zip(candidates?).map(|(wins, candidates)| CaptureSource::Seeds(Box::new([wins, candidates])))
        } else {
            let kind = files::capture_kind(&settings.rules);
            let captures = path(&files::capture(stones)).map(|path| scores(path, kind)).transpose()?;
            captures.map(|captures| CaptureSource::Captures(Box::new(captures)))
        };
        let path = path(&files::database(stones)).expect("the last file is the database");
        let scores = scores(path, files::database_kind(&settings.rules))?;
        Ok(StatsInputs { captures, scores })
    }

    /// Counts the opening position, if the index has it.
    fn opening(&self, settings: &Settings, index: &Index, context: &StageContext) -> Result<CountedOpening> {
        let stones = index.stones();
        let Some(position) = index.opening().map(|_| index.slab_positions()) else { return Ok(CountedOpening(None)) };
        let mut score = [0];
        let read = self.scores.read_range(position..position + 1, &mut score);
        read.map_err(|error| files::unreadable(&files::database(stones), error))?;
        // Of pairs, the lower bounds are counted.
        let section = if settings.rules.has_scores() { 0 } else { 1 };
        let capture = opening::best_capture(settings, stones, context.disk(), |name| context.input(name), section)?;
        Ok(CountedOpening(Some((score[0], opening::choice(settings.rules, index, capture, score[0])))))
    }

    /// Counts the bounds of all positions, if the database has pairs.
    fn pairs(&self, stones: u32) -> Result<Option<PairStatistics>> {
        if !self.scores.identity().kind.has_pairs() {
            return Ok(None);
        }
        let (mut counted, [mut low, mut high]) = (PairStatistics::default(), [Vec::new(), Vec::new()]);
        let positions = self.scores.shape().positions() / 2;
        for first in (0..positions).step_by(PAIRS_AT_ONCE as usize) {
            let end = positions.min(first + PAIRS_AT_ONCE);
            for (bounds, section) in [(&mut low, 0), (&mut high, positions)] {
                bounds.resize((end - first) as usize, 0);
                self.scores
                    .read_range(section + first..section + end, bounds)
                    .map_err(|error| files::unreadable(&files::database(stones), error))?;
            }
            counted = counted.plus(PairStatistics::of_bounds(&low, &high));
        }
        Ok(Some(counted))
    }

    /// Returns the choices in the slabs that the stages that solved the database have counted, if they ran in
    /// this process.
    fn kept_choice(&self, build: &BuildContext) -> Option<ChoiceCounts> {
        let captures = match self.captures.as_ref()? {
            CaptureSource::Captures(captures) => captures.digest(),
            CaptureSource::Seeds(files) => files[1].digest(),
        };
        build.stage_cache().choice(captures, self.scores.digest())
    }
}

/// Score and choice of the opening position, if the database has it.
struct CountedOpening(Option<(Score, ChoiceCounts)>);

impl CountedOpening {
    /// Adds the opening to the counts of all slabs.
    fn add(&self, slabs: CountedDatabase) -> CountedDatabase {
        let CountedDatabase { choice, mut histogram } = slabs;
        if let Some((score, _)) = self.0 {
            histogram.add(score, 1);
        }
        CountedDatabase { choice: self.add_choice(choice), histogram }
    }

    /// Adds the choice of the opening to those of all slabs.
    fn add_choice(&self, slabs: ChoiceCounts) -> ChoiceCounts {
        self.0.map_or(slabs, |(_, choice)| slabs.plus(choice))
    }
}

/// Publishes the statistics.
fn publish(
    index: &Index,
    counted: CountedDatabase,
    pairs: Option<PairStatistics>,
    context: &StageContext,
) -> Result<StageReport> {
    let CountedDatabase { choice, histogram } = counted;
    let choice = CaptureStatistics { positions: index.positions(), offered: choice.offered, declined: choice.declined };
    let statistics = Statistics::new(index.stones(), histogram, choice);
    let text = pairs.into_iter().fold(statistics, Statistics::with_pairs).json() + "\n";
    let report = StageReport::new(index.positions());
    files::publish(context, report, statistics_of(index.stones()), text.as_bytes())
}

/// Counts over a database.
struct CountedDatabase {
    choice: ChoiceCounts,
    histogram: Histogram,
}

/// Reads the scores of a part of the slabs, and captures if they are needed, and counts them. Each score is
/// read once. An error of `go_on` ends it.
fn count(
    (tables, index): (&Tables, &Index),
    stripe_bytes: u64,
    part: DatabasePart,
    inputs: StatsInputs,
    go_on: &(dyn Fn() -> Result<()> + Sync),
) -> Result<CountedDatabase> {
    let stones = index.stones();
    let scores = CachedScores::new(inputs.scores, CACHE_BYTES);
    let end = |first: u64, out: &[Score]| first..first + out.len() as u64;
    let histogram = Mutex::new(Histogram::EMPTY);
    let read_scores = |first: u64, out: &mut [Score]| {
        go_on()?;
        let read = if out.len() >= LONG_POSITIONS {
            // Read ahead and decoded on all threads.
            scores.scores().read_range(end(first, out), out)
        } else {
            scores.read_range(end(first, out), out)
        };
        read.map_err(|error| files::unreadable(&files::database(stones), error))?;
        let counted = Histogram::of_scores(out);
        let mut histogram = histogram.lock().unwrap_or_else(PoisonError::into_inner);
        *histogram = histogram.plus(&counted);
        Ok(())
    };
    let choice = match inputs.captures {
        None => {
            let cut = |number: usize| index.slab_positions() * number as u64 / part.of as u64;
            let (end, mut out) = (cut(part.number + 1), Vec::new());
            for first in (cut(part.number)..end).step_by(SCORES_AT_ONCE) {
                out.resize((end - first).min(SCORES_AT_ONCE as u64) as usize, 0);
                read_scores(first, &mut out)?;
            }
            ChoiceCounts::default()
        }
        Some(CaptureSource::Captures(captures)) => {
            let read_captures = |first: u64, out: &mut [Score]| {
                go_on()?;
                let read = captures.read_range(end(first, out), out);
                read.map_err(|error| files::unreadable(&files::capture(stones), error))
            };
            solvers::choice(tables, index, stripe_bytes as usize, part, &[], &read_captures, &read_scores)?
        }
        Some(CaptureSource::Seeds(files)) => {
            let groups = bounds::SEEDS[0].groups(index);
            let captures = SeedCaptures::new(index, *files, &groups);
            let read_captures = |first: u64, out: &mut [Score]| go_on().and_then(|()| captures.read(first, out));
            solvers::choice(tables, index, stripe_bytes as usize, part, &captures.cuts(), &read_captures, &read_scores)?
        }
    };
    Ok(CountedDatabase { choice, histogram: histogram.into_inner().unwrap_or_else(PoisonError::into_inner) })
}
