//! The stage `preprocess:n:b`: what captures say at bound b, and nothing said before.

use super::planes::{Group, Plane, PlaneReader, PlaneWriter};
use super::state::State;
use crate::{Shared, files};
use engines::bound::PlaneLayout;
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
    let layout = PlaneLayout::new(&index, seeds.orientation());
    let groups = Group::all(&layout, state.solver.wins_units());
    let mut writer = PlaneWriter::output(context, settings, &index, Plane::Seed(bound))?;
    let (mut number, mut seeded) = (0, 0u64);
    let mut won = Vec::new();
    state.seed(shared, &index, bound, context, |solver, unit, words| {
        let group = &groups[groups.partition_point(|group| group.units.end <= number)];
        reader
            .read(group.seeds(unit, bound, stones), words)
            .map_err(|error| files::unreadable(&seeds.name(stones), error))?;
        number += 1;
        if words.iter().any(|&word| word != 0) {
            won.resize(words.len(), 0);
            solver.read_wins(unit, &mut won);
            words.iter_mut().zip(&won).for_each(|(word, won)| *word &= !won);
            seeded += words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        }
        writer.append(words)
    })?;
    writer.finish()?;
    shared.slot().note(stones, bound, 0, start.elapsed());
    shared.slot().put(state);
    Ok(StageReport::new(index.positions()).with("won by captures", seeded))
}
