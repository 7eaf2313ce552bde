//! The stage `postprocess:n:b`: the positions lost at bound b, transposed into the orientation of the database.

use super::declaration::{self, BOUND_METHODS, PLANES};
use super::planes::{PlaneFile, PlaneReader, PlaneWriter};
use super::state::{slot, stop};
use super::transpose::TransposedRows;
use crate::build_context::BuildContext;
use crate::files;
use crate::kind::{Phase, StageKind};
use game::Index;
use pipeline::{StageContext, StageReport, StageResult as Result};
use planner::StageClass;
use solvers::bounds::PlaneLayout;
use std::mem::swap;
use std::time::{Duration, Instant};

/// The kind `postprocess:n:b`.
pub(crate) static POSTPROCESS: StageKind = StageKind {
    word: "postprocess",
    parameters: declaration::PARAMETERS,
    phase: Phase::Solving,
    methods: BOUND_METHODS,
    class: |_| Some(StageClass::Postprocess),
    files: Some(&PLANES),
    declare: |kind, build| {
        declaration::of_bounds(kind, build, |_, bound| (vec![PlaneFile::Lost(bound)], vec![PlaneFile::Decided(bound)]))
    },
    run: |build, parameters, context| {
        let (stones, bound) = declaration::stones_and_bound(parameters);
        run(build, stones, bound, context)
    },
    ..StageKind::OF_DATABASES
};

/// Runs the stage.
fn run(build: &BuildContext, stones: u32, bound: u32, context: &StageContext) -> Result<StageReport> {
    let settings = build.settings();
    let index = Index::new(stones, settings.set);
    let start = Instant::now();
    let lost = PlaneFile::Lost(bound);
    let mut reader = PlaneReader::input(context, settings, &index, lost)?.with_long_reads();
    // The file is not read if the state has the plane in memory.
    let state = slot(build).take_lost(stones, bound, reader.digest());
    let mut writer = PlaneWriter::output(context, settings, &index, PlaneFile::Decided(bound))?;
    let layout = PlaneLayout::new(&index, lost.orientation());
    let transposed_layout = PlaneLayout::new(&index, PlaneFile::Decided(bound).orientation());
    let mut read = |words, into: &mut [u64]| match &state {
        Some(state) => Ok(state.read_lost(words, into)),
        None => reader.read(words, into).map_err(|error| files::unreadable(&lost.name(stones), error)),
    };
    // Rows are written while the next ones are transposed.
    let transposed_bytes = build.plan(stones).memory().transposed_bytes as usize / 2;
    let [mut now, mut next] = [(); 2].map(|()| TransposedRows::new(transposed_bytes));
    let slabs: Vec<_> = layout.slabs().iter().zip(transposed_layout.slabs()).collect();
    context.progress().begin(index.positions(), "positions");
    now.fill(slabs[0], 0, || stop(context), &mut read)?;
    let mut slab = 0;
    while slab < slabs.len() {
        let (at, end) = (slab, now.rows().end);
        let is_whole = end == slabs[at].1.rows;
        slab += usize::from(is_whole);
        let first = if is_whole { 0 } else { end };
        let fill = || slabs.get(slab).map_or(Ok(()), |&slabs| next.fill(slabs, first, || stop(context), &mut read));
        let (written, filled) = rayon::join(|| writer.append(now.words_mut()), fill);
        written.and(filled)?;
        if is_whole {
            context.progress().advance((slabs[at].0.rows * slabs[at].0.columns) as u64);
        }
        swap(&mut now, &mut next);
    }
    writer.finish()?;
    if let Some(state) = state {
        slot(build).put(state);
    }
    let [before, solving] = slot(build).times(stones, bound);
    let mut report = StageReport::new(index.positions());
    // The times are known only if one process ran all three stages of the bound.
    if before > Duration::ZERO && solving > Duration::ZERO {
        let around = (before + start.elapsed()).as_secs_f64();
        report = report.with("share of pre- and postprocessing", around / (around + solving.as_secs_f64()));
    }
    Ok(report)
}
