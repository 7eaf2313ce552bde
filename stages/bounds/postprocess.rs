//! The stage `postprocess:n:b`: the positions lost at bound b, turned into the orientation of the database.

use super::planes::{Plane, PlaneReader, PlaneWriter};
use super::turn::Turned;
use crate::{Shared, files};
use engines::bounds::PlaneLayout;
use game::Index;
use pipeline::{StageContext, StageError, StageReport};
use std::time::{Duration, Instant};

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, bound: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let start = Instant::now();
    let lost = Plane::Lost(bound);
    let mut reader = PlaneReader::input(context, settings, &index, lost)?.with_long_reads();
    // Where it is still in memory it need not be read.
    let state = shared.slot().take_lost(stones, bound, reader.digest());
    let mut writer = PlaneWriter::output(context, settings, &index, Plane::Decided(bound))?;
    let layout = PlaneLayout::new(&index, lost.orientation());
    let turned_layout = PlaneLayout::new(&index, Plane::Decided(bound).orientation());
    let mut turned = Turned::default();
    context.progress().begin(index.positions(), "positions");
    for slabs in layout.slabs().iter().zip(turned_layout.slabs()) {
        let (from, to) = slabs;
        let mut row = 0;
        while row < to.rows {
            turned.fill(slabs, row, context, |words, into| match &state {
                Some(state) => Ok(state.read_lost(words, into)),
                None => reader.read(words, into).map_err(|error| files::unreadable(&lost.name(stones), error)),
            })?;
            row = turned.rows().end;
            writer.append(turned.words_mut())?;
        }
        context.progress().advance((from.rows * from.columns) as u64);
    }
    writer.finish()?;
    if let Some(state) = state {
        shared.slot().put(state);
    }
    let [before, solving] = shared.slot().times(stones, bound);
    let mut report = StageReport::new(index.positions());
    // Known only where all three stages of the bound ran in one go.
    if before > Duration::ZERO && solving > Duration::ZERO {
        let around = (before + start.elapsed()).as_secs_f64();
        report = report.with("share of pre- and postprocessing", around / (around + solving.as_secs_f64()));
    }
    Ok(report)
}
