//! The stage `postprocess:n:b`: the positions lost at bound b, transposed into the orientation of the database.

use super::declaration::{self, PLANES};
use super::planes::PlaneFile;
use super::state::{BoundState, slot};
use super::team::{PlaneMember, PlaneTask};
use super::transpose::TransposedRows;
use crate::build_context::BuildContext;
use crate::distributed::{RankResult, agree};
use crate::files;
use crate::kind::{KindOptions, Phase, StageKind};
use crate::team::{self, TeamMember};
use game::Index;
use messaging::Communicator;
use pipeline::{StageContext, StageReport, StageResult as Result};
use planner::StageClass;
use solvers::bounds::{PlaneLayout, PlaneSlab};
use std::mem::swap;
use std::ops::Range;
use std::time::{Duration, Instant};

const KIND: &str = "postprocess";

/// The kind `postprocess:n:b`.
pub(crate) static POSTPROCESS: StageKind = StageKind {
    word: KIND,
    phase: Phase::Solving,
    files: Some(&PLANES),
    declare: |kind, build| {
        declaration::of_bounds(kind, build, |_, bound| (vec![PlaneFile::Lost(bound)], vec![PlaneFile::Decided(bound)]))
    },
    run: |build, parameters, context| {
        let (stones, bound) = declaration::stones_and_bound(parameters);
        run(build, stones, bound, context)
    },
    options: KindOptions {
        parameters: declaration::PARAMETERS,
        classes: &[StageClass::Postprocess],
        follow: |follower, order, communicator| team::follow(follower, order, communicator, transpose),
        ..KindOptions::OF_DATABASES
    },
};

/// Runs the stage.
fn run(build: &BuildContext, stones: u32, bound: u32, context: &StageContext) -> Result<StageReport> {
    let start = Instant::now();
    let (lost, decided) = (PlaneFile::Lost(bound).name(stones), PlaneFile::Decided(bound).name(stones));
    let task = PlaneTask::new(context, (stones, bound), [lost], [decided]);
    let job = build.job_that_shares(stones);
    let (state, loads) = team::lead(KIND, build, job, &task, context, transpose)?;
    if let Some(state) = state {
        slot(build).put(state);
    }
    let [before, solving] = slot(build).times(stones, bound);
    let report = StageReport::new(Index::new(stones, build.settings().set).positions());
    let mut report = team::report(report, loads);
    // The times are known only if one process ran all three stages of the bound.
    if before > Duration::ZERO && solving > Duration::ZERO {
        let around = (before + start.elapsed()).as_secs_f64();
        report = report.with("share of pre- and postprocessing", around / (around + solving.as_secs_f64()));
    }
    Ok(report)
}

/// Transposes the rows of which this rank writes words. If the state of the bounds is in memory with the lost
/// positions, their plane is not read, and the state is returned.
fn transpose(member: &PlaneMember, communicator: &mut dyn Communicator) -> RankResult<Option<BoundState>> {
    let TeamMember { build, ref index, task, .. } = *member;
    let (lost, decided) = (PlaneFile::Lost(task.bound), PlaneFile::Decided(task.bound));
    let mut reader = agree(communicator, member.open(lost))?.with_long_reads();
    let state = slot(build).take_lost(task.stones, task.bound, reader.digest());
    let mut writer = member.create(decided, communicator)?;
    let layouts = [lost, decided].map(|plane| PlaneLayout::new(index, plane.orientation()));
    let words = writer.words();
    let slabs = layouts[0].slabs().iter().zip(layouts[1].slabs());
    let slabs: Vec<_> =
        slabs.map(|slabs| (slabs, slabs.1.rows_with(&words))).filter(|(_, rows)| !rows.is_empty()).collect();
    let positions = |rows: &Range<usize>, to: &PlaneSlab| (rows.len() * to.columns) as u64;
    member.begin_progress(slabs.iter().map(|((_, to), rows)| positions(rows, to)).sum());
    let mut read = |words, into: &mut [u64]| match &state {
        Some(state) => Ok(state.read_lost(words, into)),
        None => reader.read(words, into).map_err(|error| files::unreadable(&lost.name(task.stones), error)),
    };
    // Rows are written while the next ones are transposed.
    let transposed_bytes = member.plan().memory().transposed_bytes as usize / 2;
    let [mut now, mut next] = [(); 2].map(|()| TransposedRows::new(transposed_bytes));
    let mut transpose_all = || {
        let Some((first, rows)) = slabs.first() else { return Ok(()) };
        now.fill(*first, rows.clone(), || member.stop(), &mut read)?;
        writer.begin_at(first.1.word(now.rows().start));
        let mut slab = 0;
        while slab < slabs.len() {
            let ((_, to), rows) = &slabs[slab];
            let end = now.rows().end;
            let is_whole = end == rows.end;
            slab += usize::from(is_whole);
            let fill = || match slabs.get(slab) {
                Some((slabs, rows)) => {
                    let first = if is_whole { rows.start } else { end };
                    next.fill(*slabs, first..rows.end, || member.stop(), &mut read)
                }
                None => Ok(()),
            };
            let (written, filled) = rayon::join(|| writer.append(now.words_mut()), fill);
            written.and(filled)?;
            if is_whole {
                member.advance(positions(rows, to));
            }
            swap(&mut now, &mut next);
            // Sends keep-alive messages. An error is returned again by the next message.
            let _ = communicator.poll();
        }
        Ok(())
    };
    let appended = transpose_all();
    writer.finish_with(appended, communicator)?;
    Ok(state)
}
