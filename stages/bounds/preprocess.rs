//! The stage `preprocess:n:b`: what captures say at bound b, and nothing said before.

use super::planes::{Plane, PlaneReader, PlaneWriter};
use super::state::State;
use crate::{Shared, files};
use game::Index;
use pipeline::{StageContext, StageError, StageReport};
use std::time::Instant;

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, bound: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let start = Instant::now();
    let mut state = State::done_above(shared, &index, bound, settings.method(stones), context)?;
    let seeds = Plane::WinSeeds;
    let mut reader = PlaneReader::input(context, settings, &index, seeds)?;
    let mut writer = PlaneWriter::output(context, settings, &index, Plane::Seed(bound))?;
    let mut seeded = 0u64;
    state.seed(
        shared,
        &index,
        bound,
        context,
        |group, words| {
            let read = reader.read(group.seeds(bound, stones), words);
            read.map_err(|error| files::unreadable(&seeds.name(stones), error))
        },
        |words| {
            seeded += words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            writer.append(words)
        },
    )?;
    writer.finish()?;
    shared.slot().note(stones, bound, 0, start.elapsed());
    shared.slot().put(state);
    Ok(StageReport::new(index.positions()).with("won by captures", seeded))
}
