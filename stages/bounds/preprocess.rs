//! The stage `preprocess:n:b`: what captures say at bound b, and nothing said before.

use super::planes::{Group, Plane, PlaneWriter, Portion, SeedsReader};
use super::ranks;
use super::state::State;
use super::turn::Turned;
use crate::Shared;
use engines::bounds::{BitKernel, PlaneLayout};
use game::Index;
use pipeline::{StageContext, StageError, StageReport};
use std::time::Instant;

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, bound: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let start = Instant::now();
    let mut state = match ranks::job(shared, stones) {
        None => Some(State::done_above(shared, &index, bound, context)?),
        Some(_) => None,
    };
    let layout = PlaneLayout::new(&index, Plane::WinSeeds.orientation());
    let turned_layout = PlaneLayout::new(&index, Plane::Seed(bound).orientation());
    let groups = Group::all(&layout.units());
    let mut seeds = SeedsReader::input(context, settings, &index, Plane::WinSeeds, &groups)?;
    let (mut turned, mut slab) = (Turned::default(), None);
    let mut writer = PlaneWriter::output(context, settings, &index, Plane::Seed(bound))?;
    let (mut seeded, kernel) = (0u64, BitKernel::detect());
    let wins = |group: &Group, words: &mut [u64]| {
        let to = &turned_layout.slabs()[group.slab];
        let (mut row, mut words, mut any) = (group.rows.start, words, false);
        while row < group.rows.end {
            if slab != Some(group.slab) || !turned.rows().contains(&row) {
                slab = Some(group.slab);
                let slabs = (&layout.slabs()[group.slab], to);
                turned.fill(slabs, row, context, |words, into| seeds.read(bound, words, into))?;
            }
            let upto = group.rows.end.min(turned.rows().end);
            let (now, rest) = words.split_at_mut((upto - row) * to.row_words);
            match turned.words_of(row..upto) {
                Some(turned) => {
                    now.copy_from_slice(turned);
                    any = true;
                }
                None => now.fill(0),
            }
            (row, words) = (upto, rest);
        }
        Ok(any)
    };
    let new = |portion: Portion| {
        seeded += portion.count(kernel);
        writer.append(portion)
    };
    match &mut state {
        Some(state) => state.seed(shared, &index, bound, context, wins, new)?,
        None => ranks::seed(shared, &index, bound, context, wins, new)?,
    }
    writer.finish()?;
    shared.slot().note(stones, bound, 0, start.elapsed());
    if let Some(state) = state {
        shared.slot().put(state);
    }
    Ok(StageReport::new(index.positions()).with("won by captures", seeded))
}
