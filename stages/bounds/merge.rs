//! The stage `merge:n`: the database, from the planes of all bounds.
//!
//! A position won at bound b scores b, one lost at b scores -b, and an undecided one 0.

use super::declaration;
use super::planes::{PlaneFile, PlaneReader};
use super::state::slot;
use super::team::{PlaneMember, PlaneTask};
use crate::build_context::BuildContext;
use crate::distributed::{RankResult, agree};
use crate::files;
use crate::kind::{Declaration, KindOptions, Phase, StageKind};
use crate::opening;
use crate::solver::{self, DATABASES, DatabaseOutput, DatabaseWriter};
use crate::team;
use disk::Digest;
use game::Index;
use messaging::Communicator;
use pipeline::{ArtifactName, StageContext, StageError, StageReport, StageResult as Result};
use planner::StageClass;
use rayon::prelude::*;
use solvers::bounds::{BitKernel, PlaneLayout, PlaneUnit};
use std::mem::swap;
use std::path::Path;

/// Compressed bytes that all readers hold and read ahead: less than the state of a bound, which is dropped.
const READ_BYTES: u64 = 8 << 20;

/// Units of work for each thread in a unit of planes.
const UNITS_A_THREAD: usize = 4;

const KIND: &str = "merge";

/// The kind `merge:n`.
pub(crate) static MERGE: StageKind = StageKind {
    word: KIND,
    phase: Phase::Solving,
    files: Some(&DATABASES),
    declare: |kind, build| {
        crate::declaration::of_databases(kind, build, |kind, settings, plan| {
            let stones = plan.stones();
            let inputs = (1..=stones).flat_map(|bound| [PlaneFile::Won(bound), PlaneFile::Decided(bound)]);
            let Declaration { mut stage, mut artifacts } =
                declaration::of_planes(kind, settings, plan, None, inputs.collect(), &[]);
            stage.inputs.extend(opening::inputs(settings, stones));
            stage.outputs.push(files::database(stones));
            artifacts.push(solver::declare_database(settings, stones));
            Declaration { stage, artifacts }
        })
    },
    run: |build, parameters, context| run(build, parameters[0], context),
    options: KindOptions {
        classes: &[StageClass::Merge],
        follow: |follower, order, communicator| team::follow(follower, order, communicator, merge),
        ..KindOptions::OF_DATABASES
    },
};

/// Runs the stage.
fn run(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    slot(build).clear(context, stones);
    // Drops the tables for pushing wins, which are large and which this stage does not need, and returns the
    // memory of both.
    build.forget_tables();
    let settings = build.settings();
    let inputs = planes(stones).map(|(_, plane)| plane.name(stones)).chain(opening::inputs(settings, stones));
    let task = PlaneTask::new(context, (stones, 0), inputs, [files::database(stones)]);
    let (database, loads) = team::lead(KIND, build, build.job_that_shares(stones), &task, context, merge)?;
    if let (Some(database), Some((seeds, choice))) = (database, slot(build).take_choice(stones)) {
        build.stage_cache().keep_choice(seeds, database, choice);
    }
    Ok(team::report(StageReport::new(Index::new(stones, settings.set).positions()), loads))
}

/// Returns the planes that are merged, with the scores of their positions.
fn planes(stones: u32) -> impl Iterator<Item = (i8, PlaneFile)> {
    (1..=stones).flat_map(|bound| {
        [(bound as i8, PlaneFile::Won(bound)), (-(bound as i8), PlaneFile::Decided(bound))].into_iter()
    })
}

/// Merges the units of which this rank writes positions. A unit at the border of two ranks is merged by both.
/// Returns the digest of the database on rank 0.
fn merge(member: &PlaneMember, communicator: &mut dyn Communicator) -> RankResult<Option<Digest>> {
    let (settings, index, disk) = (member.settings(), &member.index, member.disk);
    let stones = index.stones();
    let open = |(score, plane)| {
        let reader = member.open(plane)?.with_share(READ_BYTES, 2 * stones);
        Ok::<_, StageError>(MergeInput { score, plane, reader })
    };
    let readers = planes(stones).map(open).collect::<Result<Vec<_>, _>>();
    let path = |name: &ArtifactName| member.path(name).map(Path::to_path_buf).unwrap_or_default();
    let opening_capture = opening::best_capture(settings, stones, disk, path, 0);
    let opened = readers.and_then(|readers| Ok((readers, opening_capture?)));
    let (mut readers, opening_capture) = agree(communicator, opened)?;
    let path = &path(&files::database(stones));
    let scratch = settings.scratch.as_deref();
    // The positions are computed while they are written.
    let output = DatabaseOutput { settings, disk, index, path, scratch, opening_capture, progress: None };
    let mut writer = DatabaseWriter::begin(&output, communicator)?;
    let layout = PlaneLayout::new(index, PlaneFile::Won(1).orientation());
    let own = writer.positions();
    // The positions of a unit.
    let positions = |unit: &PlaneUnit| {
        let (slab, offset) = (&layout.slabs()[unit.slab], index.slabs()[unit.slab].offset);
        offset + (unit.rows.start * slab.columns) as u64..offset + (unit.rows.end * slab.columns) as u64
    };
    let units = layout.units().into_iter().filter(|unit| {
        let positions = positions(unit);
        positions.start < own.end && own.start < positions.end
    });
    let units: Vec<_> = units.collect();
    let mut read = |unit: &PlaneUnit, planes: &mut Vec<MergePlane>| {
        planes.resize_with(readers.len(), MergePlane::default);
        readers.par_iter_mut().zip(planes).try_for_each(|(input, plane)| {
            plane.words.resize(unit.words.len(), 0);
            let read = input.reader.read(unit.words.clone(), &mut plane.words);
            plane.has_bits = read.map_err(|error| files::unreadable(&input.plane.name(stones), error))?;
            plane.score = input.score;
            Ok::<_, StageError>(())
        })
    };
    let (mut now, mut next, mut scores) = (Vec::new(), Vec::new(), Vec::<i8>::new());
    let kernel = BitKernel::detect();
    member.begin_progress(own.end - own.start);
    let mut merge_all = || {
        if let Some(first) = units.first() {
            read(first, &mut now)?;
        }
        for (at, unit) in units.iter().enumerate() {
            member.stop()?;
            let (slab, positions) = (&layout.slabs()[unit.slab], positions(unit));
            let within = |position: u64| (position.clamp(positions.start, positions.end) - positions.start) as usize;
            let mine = within(own.start)..within(own.end);
            let merge = || {
                let planes: Vec<_> = now.iter().filter(|plane: &&MergePlane| plane.has_bits).collect();
                scores.resize(unit.rows.len() * slab.columns, 0);
                let rows = unit.rows.len().div_ceil(UNITS_A_THREAD * rayon::current_num_threads());
                scores.par_chunks_mut(rows * slab.columns).enumerate().for_each(|(at, scores)| {
                    let first = at * rows * slab.row_words;
                    let marks: Vec<_> = planes.iter().map(|plane| (plane.score, &plane.words[first..])).collect();
                    kernel.mark(scores, slab.columns, &marks);
                });
                writer.append(&scores[mine.clone()])
            };
            let read_next = || units.get(at + 1).map_or(Ok(()), |unit| read(unit, &mut next));
            let (written, read) = rayon::join(merge, read_next);
            written.and(read)?;
            member.advance(mine.len() as u64);
            swap(&mut now, &mut next);
            // Sends keep-alive messages. An error is returned again by the next message.
            let _ = communicator.poll();
        }
        Ok(())
    };
    let merged = merge_all();
    writer.finish_with(merged, communicator)
}

/// A plane that is merged.
struct MergeInput {
    score: i8,
    plane: PlaneFile,
    reader: PlaneReader,
}

/// Words of a plane: a unit.
#[derive(Default)]
struct MergePlane {
    score: i8,
    words: Vec<u64>,
    /// Whether any word may have a bit.
    has_bits: bool,
}
