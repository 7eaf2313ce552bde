//! The stage `postprocess:n:b`: the positions lost at bound b, transposed into the orientation of the database.

use super::planes::{PlaneFile, PlaneReader, PlaneWriter};
use super::transpose::TransposedRows;
use crate::{BuildContext, Result, files};
use engines::bounds::PlaneLayout;
use game::Index;
use pipeline::{StageContext, StageReport};
use std::time::{Duration, Instant};

/// Runs the stage.
pub(crate) fn run(build: &BuildContext, stones: u32, bound: u32, context: &StageContext) -> Result<StageReport> {
    let settings = build.settings();
    let index = Index::new(stones, settings.set);
    let start = Instant::now();
    let lost = PlaneFile::Lost(bound);
    let mut reader = PlaneReader::input(context, settings, &index, lost)?.with_long_reads();
    // The file is not read if the state has the plane in memory.
    let state = build.slot().take_lost(stones, bound, reader.digest());
    let mut writer = PlaneWriter::output(context, settings, &index, PlaneFile::Decided(bound))?;
    let layout = PlaneLayout::new(&index, lost.orientation());
    let transposed_layout = PlaneLayout::new(&index, PlaneFile::Decided(bound).orientation());
    let mut transposed = TransposedRows::default();
    context.progress().begin(index.positions(), "positions");
    for slabs in layout.slabs().iter().zip(transposed_layout.slabs()) {
        let (from, to) = slabs;
        let mut row = 0;
        while row < to.rows {
            transposed.fill(slabs, row, context, |words, into| match &state {
                Some(state) => Ok(state.read_lost(words, into)),
                None => reader.read(words, into).map_err(|error| files::unreadable(&lost.name(stones), error)),
            })?;
            row = transposed.rows().end;
            writer.append(transposed.words_mut())?;
        }
        context.progress().advance((from.rows * from.columns) as u64);
    }
    writer.finish()?;
    if let Some(state) = state {
        build.slot().put(state);
    }
    let [before, solving] = build.slot().times(stones, bound);
    let mut report = StageReport::new(index.positions());
    // The times are known only if one process ran all three stages of the bound.
    if before > Duration::ZERO && solving > Duration::ZERO {
        let around = (before + start.elapsed()).as_secs_f64();
        report = report.with("share of pre- and postprocessing", around / (around + solving.as_secs_f64()));
    }
    Ok(report)
}
