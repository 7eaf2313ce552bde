//! The stage `process:n:b`: the positions won and lost at bound b.
//!
//! Between passes the stage saves a snapshot at the interval of the manifest, and when it is asked to stop.

use super::declaration::{self, PLANES};
use super::planes::{PlaneFile, PlanePortion, PlaneReader, PlaneWriter, SeedsReader};
use super::ranks;
use super::state::{BoundProgress, BoundState, slot};
use crate::build_context::BuildContext;
use crate::files;
use crate::kind::{KindOptions, Phase, StageKind};
use crate::snapshot_timer::SnapshotTimer;
use crate::solver_progress::SolverProgress;
use game::Index;
use pipeline::{StageContext, StageError, StageReport, StageResult as Result};
use planner::StageClass;
use solvers::bounds::{BitKernel, SolverError};

const KIND: &str = "process";

/// The kind `process:n:b`.
pub(crate) static PROCESS: StageKind = StageKind {
    word: KIND,
    phase: Phase::Solving,
    files: Some(&PLANES),
    declare: |kind, build| {
        declaration::of_bounds(kind, build, |stones, bound| {
            let inputs = [PlaneFile::CandidateSeeds, PlaneFile::Seed(bound)].into_iter();
            let inputs = inputs.chain(declaration::decided_above(stones, bound));
            (inputs.collect(), vec![PlaneFile::Won(bound), PlaneFile::Lost(bound)])
        })
    },
    run: |build, parameters, context| {
        let (stones, bound) = declaration::stones_and_bound(parameters);
        match ranks::job(build, stones) {
            Some(job) => ranks::process(KIND, build, job, stones, bound, context),
            None => run(build, stones, bound, context),
        }
    },
    options: KindOptions {
        parameters: declaration::PARAMETERS,
        classes: &[StageClass::ProcessTwoBit, StageClass::ProcessOneBit, StageClass::ProcessOneBitDual],
        follow: ranks::follow,
        ..KindOptions::OF_DATABASES
    },
};

/// Runs the stage.
fn run(build: &BuildContext, stones: u32, bound: u32, context: &StageContext) -> Result<StageReport> {
    let settings = build.settings();
    let index = Index::new(stones, settings.set);
    let mut timer = SnapshotTimer::start(context);
    let mut state = match slot(build).take(context, stones, BoundProgress::Seeded(bound)) {
        Some(state) => state,
        None => {
            let mut state = BoundState::done_above(build, &index, bound, context)?;
            let mut seeds = PlaneReader::input(context, settings, &index, PlaneFile::Seed(bound))?;
            state.seed(
                build,
                &index,
                bound,
                context,
                |group, words| {
                    let read = seeds.read(group.words.clone(), words);
                    read.map_err(|error| files::unreadable(&PlaneFile::Seed(bound).name(stones), error))
                },
                |_| Ok(()),
            )?;
            state
        }
    };
    let snapshot = BoundSnapshot { build, index: &index, context };
    let resumed = snapshot.read(&state)?;
    tracing::info!(resumed, threads = context.threads(), "state ready after {:.3} s", timer.elapsed().as_secs_f64());
    let seeds_groups = PlaneFile::CandidateSeeds.groups(&index);
    // Of the highest bound they are positions without captures.
    let counts_losses = state.captures.is_some() && bound < stones;
    let input = || SeedsReader::input(context, settings, &index, PlaneFile::CandidateSeeds, &seeds_groups);
    let seeds = counts_losses.then(input).transpose()?;
    let before = state.solver.page_counts().unwrap_or_default();
    let watch = SolverProgress::bound(context, index.positions(), bound, stones);
    timer.restart();
    let solved = state.solver.solve(&watch, &mut || {
        timer.save_if_due(format_args!("process:{stones}:{bound}"), || snapshot.write(&state));
        // Unlike a failed snapshot, a failure of the storage of the planes ends the stage.
        state.solver.check()
    });
    let report = match solved {
        Ok(report) => report,
        Err(SolverError::Storage(error)) => return Err(error.into()),
        Err(SolverError::Stopped) => {
            timer.save_at_stop(|| snapshot.write(&state))?;
            return Err(StageError::Stopped);
        }
    };
    tracing::info!(passes = report.passes, rows = report.rows, "solved after {:.3} s", timer.elapsed().as_secs_f64());
    watch.end();
    let counts = state.solver.page_counts();
    let mut won = PlaneWriter::output(context, settings, &index, PlaneFile::Won(bound))?;
    let mut lost = PlaneWriter::output(context, settings, &index, PlaneFile::Lost(bound))?;
    let (mut won_count, mut lost_count, kernel) = (0, 0, BitKernel::detect());
    state.harvest(
        bound,
        seeds.as_ref(),
        |portion| {
            won_count += portion.count(kernel);
            won.append(portion)
        },
        |portion| {
            lost_count += portion.count(kernel);
            lost.append(portion)
        },
    )?;
    let (won, lost) = rayon::join(|| won.finish(), || lost.finish());
    won?;
    state.note_lost(lost?);
    if let Some(captures) = &mut state.captures {
        captures.add_decided(won_count + lost_count);
    }
    if let (1, Some(seeds)) = (bound, seeds)
        && let Some(choice) = state.choice(build, &index)
    {
        slot(build).put_choice(stones, seeds.digest(), choice);
    }
    slot(build).note(stones, bound, 1, timer.elapsed());
    slot(build).put(state);
    let mut stage = StageReport::new(index.positions())
        .with("passes", report.passes)
        .with("bits in memory", declaration::planes_in_memory(build.plan(stones)).bits())
        .with("rows tested", report.rows)
        .with("won", won_count)
        .with("lost", lost_count)
        .with("resumed", u64::from(resumed));
    if let Some(counts) = counts {
        stage = stage
            .with("cache hits", counts.hits - before.hits)
            .with("cache misses", counts.misses - before.misses)
            .with("pages written", counts.written - before.written);
    }
    Ok(stage)
}

/// Snapshot of the stage: wins and candidates as two planes.
struct BoundSnapshot<'a> {
    build: &'a BuildContext,
    index: &'a Index,
    context: &'a StageContext<'a>,
}

/// Files of a snapshot. Bound 0 stands for no bound.
const WINS: (&str, PlaneFile) = ("wins", PlaneFile::Won(0));
const CANDIDATES: (&str, PlaneFile) = ("candidates", PlaneFile::Lost(0));

impl BoundSnapshot<'_> {
    /// Adds the snapshot, if there is one, to the state in which the bound begins. Returns whether there was one.
    fn read(&self, state: &BoundState) -> Result<bool> {
        let Some(saved) = self.context.snapshots().saved() else { return Ok(false) };
        let settings = self.build.settings();
        let open = |(name, plane): (&str, PlaneFile)| {
            PlaneReader::open(self.context.disk(), &saved.join(name), settings, self.index, plane)
        };
        // Wins that were read are valid even if the rest is not.
        let anew = |error| files::ignore_snapshot(saved, error).map(|()| false);
        let (mut wins, mut candidates) = match (open(WINS), open(CANDIDATES)) {
            (Ok(wins), Ok(candidates)) => (wins, candidates),
            (Err(error), _) | (_, Err(error)) => return anew(error),
        };
        let mut words = Vec::new();
        for unit in state.solver.wins_units() {
            words.resize(unit.words.len(), 0);
            if let Err(error) = wins.read(unit.words.clone(), &mut words) {
                return anew(error);
            }
            state.solver.add_wins(unit, &mut words);
        }
        // Losses count only once all wins that follow from them are known.
        state.solver.unsettle();
        for (number, unit) in state.solver.units().iter().enumerate() {
            words.resize(unit.words.len(), 0);
            if let Err(error) = candidates.read(unit.words.clone(), &mut words) {
                return anew(error);
            }
            state.solver.remove_candidates(number, &words)?;
        }
        Ok(true)
    }

    /// Writes the snapshot, wins first: after a crash between the files, new wins beside old candidates are sound, but
    /// new losses without the wins that follow from them would not be.
    fn write(&self, state: &BoundState) -> Result<()> {
        let directory = self.context.snapshots().prepare()?.to_owned();
        let settings = self.build.settings();
        let create = |(name, plane): (&str, PlaneFile)| {
            PlaneWriter::create(self.context.disk(), &directory.join(name), settings, self.index, plane)
        };
        let mut words = Vec::new();
        let mut wins = create(WINS)?;
        for unit in state.solver.wins_units() {
            words.resize(unit.words.len(), 0);
            state.solver.read_wins(unit, &mut words);
            wins.append(PlanePortion::Words(&mut words))?;
        }
        state.solver.check()?;
        wins.finish()?;
        let mut candidates = create(CANDIDATES)?;
        for (number, unit) in state.solver.units().iter().enumerate() {
            words.resize(unit.words.len(), 0);
            state.solver.visit(number, &mut |now| {
                words.copy_from_slice(now);
                false
            })?;
            candidates.append(PlanePortion::Words(&mut words))?;
        }
        candidates.finish()?;
        Ok(())
    }
}
