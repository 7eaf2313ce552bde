//! The stage `process:n:b`: who is won and who is lost at bound b.
//!
//! Between passes the state is snapshot on a timer, and when the run is asked to stop.

use super::planes::{Plane, PlaneReader, PlaneWriter, Portion};
use super::state::{At, State};
use crate::{Shared, files, watch::Watch};
use engines::bounds::{BitKernel, SolverError};
use game::Index;
use pipeline::{StageContext, StageError, StageReport};
use planner::Method;
use std::time::Duration;

/// A stage that ran for less than this when it was asked to stop is sooner repeated than snapshot.
const WORTH_A_SNAPSHOT: Duration = Duration::from_secs(10);

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, bound: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let start = context.stopwatch();
    let mut state = match shared.slot().take(stones, At::Seeded(bound)) {
        Some(state) => state,
        None => {
            let mut state = State::done_above(shared, &index, bound, context)?;
            let mut seeds = PlaneReader::input(context, settings, &index, Plane::Seed(bound))?;
            state.seed(
                shared,
                &index,
                bound,
                context,
                |group, words| {
                    let read = seeds.read(group.words.clone(), words);
                    read.map_err(|error| files::unreadable(&Plane::Seed(bound).name(stones), error))
                },
                |_| Ok(()),
            )?;
            state
        }
    };
    let snapshot = Snapshot { shared, index: &index, context };
    let resumed = snapshot.read(&state)?;
    tracing::info!(resumed, threads = context.threads(), "state ready after {:.3} s", start.elapsed().as_secs_f64());
    let before = state.solver.counts().unwrap_or_default();
    let watch = Watch::bound(context, index.positions(), bound, stones);
    let mut last = context.stopwatch();
    let solved = state.solver.solve(&watch, &mut || {
        if last.elapsed() >= context.snapshots().interval() {
            // Without a snapshot a crash costs more time, and that is all: no reason to give up the work.
            match snapshot.write(&state) {
                Ok(()) => tracing::info!("snapshot after {:.1} s", start.elapsed().as_secs_f64()),
                Err(error) => tracing::warn!("cannot save a snapshot of process:{stones}:{bound}: {error}"),
            }
            last.restart();
        }
        // But bits that were lost on their way to or from the disk meanwhile are.
        state.solver.check()
    });
    let report = match solved {
        Ok(report) => report,
        Err(SolverError::Storage(error)) => return Err(error.into()),
        Err(SolverError::Stopped) => {
            if start.elapsed() >= WORTH_A_SNAPSHOT {
                snapshot.write(&state)?;
            }
            return Err(StageError::Stopped);
        }
    };
    tracing::info!(passes = report.passes, rows = report.rows, "solved after {:.3} s", start.elapsed().as_secs_f64());
    watch.end();
    let counts = state.solver.counts();
    let mut won = PlaneWriter::output(context, settings, &index, Plane::Won(bound))?;
    let mut lost = PlaneWriter::output(context, settings, &index, Plane::Lost(bound))?;
    let (mut won_count, mut lost_count, kernel) = (0, 0, BitKernel::detect());
    state.harvest(
        bound,
        |portion| {
            won_count += portion.count(kernel);
            won.append(portion)
        },
        |portion| {
            lost_count += portion.count(kernel);
            lost.append(portion)
        },
    )?;
    won.finish()?;
    state.note_lost(lost.finish()?);
    shared.slot().note(stones, bound, 1, start.elapsed());
    shared.slot().put(state);
    let bits = match shared.plan(stones).method() {
        Method::TwoBit => 2u64,
        Method::OneBit => 1,
        _ => 0,
    };
    let mut stage = StageReport::new(index.positions())
        .with("passes", report.passes)
        .with("bits in memory", bits)
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

/// The snapshot of a bound under way: wins and candidates as two planes.
struct Snapshot<'a> {
    shared: &'a Shared,
    index: &'a Index,
    context: &'a StageContext<'a>,
}

/// Files and what they are; bound 0 is no bound's.
const WINS: (&str, Plane) = ("wins", Plane::Won(0));
const CANDIDATES: (&str, Plane) = ("candidates", Plane::Lost(0));

impl Snapshot<'_> {
    /// Adds a saved state to one in which the bound begins, and tells whether there was one.
    fn read(&self, state: &State) -> Result<bool, StageError> {
        let Some(saved) = self.context.snapshots().saved() else { return Ok(false) };
        let settings = self.shared.settings();
        let open = |(name, plane): (&str, Plane)| {
            PlaneReader::open(self.context.disk(), &saved.join(name), settings, self.index, plane)
        };
        // The wins so far are wins all the same.
        let anew = |error| files::begin_anew(saved, error).map(|()| false);
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
        // Losses are believed only once all the wins that follow from them are known.
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

    /// Writes the wins first: a crash may leave them beside the candidates of the snapshot before, and that is sound, where
    /// losses without the wins that follow from them would not be.
    fn write(&self, state: &State) -> Result<(), StageError> {
        let directory = self.context.snapshots().prepare()?.to_owned();
        let settings = self.shared.settings();
        let create = |(name, plane): (&str, Plane)| {
            PlaneWriter::create(self.context.disk(), &directory.join(name), settings, self.index, plane)
        };
        let mut words = Vec::new();
        let mut wins = create(WINS)?;
        for unit in state.solver.wins_units() {
            words.resize(unit.words.len(), 0);
            state.solver.read_wins(unit, &mut words);
            wins.append(Portion::Words(&mut words))?;
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
            candidates.append(Portion::Words(&mut words))?;
        }
        candidates.finish()?;
        Ok(())
    }
}
