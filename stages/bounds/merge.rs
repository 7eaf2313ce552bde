//! The stage `merge:n`: the database, from the planes of all bounds.
//!
//! A position won at bound b scores b, one lost at b scores -b, and an undecided one 0.

use super::declaration::{self, BOUND_METHODS};
use super::planes::{PlaneFile, PlaneReader};
use super::state::{slot, stop};
use crate::build_context::BuildContext;
use crate::files;
use crate::kind::{Declaration, Phase, StageKind};
use crate::opening;
use crate::solver::{self, DATABASES, DatabaseWriter};
use game::Index;
use pipeline::{StageContext, StageError, StageReport, StageResult as Result};
use planner::StageClass;
use rayon::prelude::*;
use solvers::bounds::{BitKernel, PlaneLayout, PlaneUnit};
use std::mem::swap;

/// Compressed bytes that all readers hold and read ahead: less than the state of a bound, which is dropped.
const READ_BYTES: u64 = 8 << 20;

/// Units of work for each thread in a unit of planes.
const UNITS_A_THREAD: usize = 4;

/// The kind `merge:n`.
pub(crate) static MERGE: StageKind = StageKind {
    word: "merge",
    phase: Phase::Solving,
    methods: BOUND_METHODS,
    class: |_| Some(StageClass::Merge),
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
    ..StageKind::OF_DATABASES
};

/// Runs the stage.
fn run(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    slot(build).clear();
    // Drops the tables for pushing wins, which are large and which this stage does not need, and returns the memory of both.
    build.forget_tables();
    let settings = build.settings();
    let index = Index::new(stones, settings.set);
    let open = |plane| {
        let reader = PlaneReader::input(context, settings, &index, plane)?;
        Ok::<_, StageError>((plane, reader.with_share(READ_BYTES, 2 * stones)))
    };
    let bounds = (1..=stones).flat_map(|bound| [(bound, PlaneFile::Won(bound)), (bound, PlaneFile::Decided(bound))]);
    let readers = bounds.map(|(bound, plane)| {
        let score = bound as i8;
        let score = if plane == PlaneFile::Won(bound) { score } else { -score };
        open(plane).map(|(plane, reader)| MergeInput { score, plane, reader })
    });
    let mut readers = readers.collect::<Result<Vec<_>, _>>()?;
    let mut writer = DatabaseWriter::create(context, settings, &index)?;
    let layout = PlaneLayout::new(&index, PlaneFile::Won(1).orientation());
    let units = layout.units();
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
    context.progress().begin(index.slab_positions(), "positions");
    read(&units[0], &mut now)?;
    for (at, unit) in units.iter().enumerate() {
        stop(context)?;
        let slab = &layout.slabs()[unit.slab];
        let merge = || {
            let planes: Vec<_> = now.iter().filter(|plane: &&MergePlane| plane.has_bits).collect();
            scores.resize(unit.rows.len() * slab.columns, 0);
            let rows = unit.rows.len().div_ceil(UNITS_A_THREAD * rayon::current_num_threads());
            scores.par_chunks_mut(rows * slab.columns).enumerate().for_each(|(at, scores)| {
                let first = at * rows * slab.row_words;
                let marks: Vec<_> = planes.iter().map(|plane| (plane.score, &plane.words[first..])).collect();
                kernel.mark(scores, slab.columns, &marks);
            });
            writer.append(&scores)
        };
        let read_next = || units.get(at + 1).map_or(Ok(()), |unit| read(unit, &mut next));
        let (written, read) = rayon::join(merge, read_next);
        written.and(read)?;
        context.progress().advance(scores.len() as u64);
        swap(&mut now, &mut next);
    }
    writer.finish()?;
    Ok(StageReport::new(index.positions()))
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
