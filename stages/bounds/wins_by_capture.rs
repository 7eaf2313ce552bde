//! The positions that a capture wins at a bound and nothing won at higher bounds.

use super::planes::{PlaneFile, PlanePortion, PlaneWriter, SeedsReader, UnitGroup};
use super::state::stop;
use super::transpose::TransposedReader;
use crate::build_context::BuildContext;
use game::Index;
use pipeline::{StageContext, StageReport, StageResult as Result};
use solvers::bounds::{BitKernel, PlaneLayout};

/// Reads the winning captures of a group of units, and returns whether there may be any.
pub(crate) type ReadGroup<'a> = &'a mut (dyn FnMut(&UnitGroup, &mut [u64]) -> Result<bool> + Send);

/// Writes the next words of a plane.
pub(crate) type WritePortion<'a> = &'a mut (dyn FnMut(PlanePortion<'_>) -> Result<()> + Send);

/// Writes the wins by captures that are new at `bound`. `seed` reads the winning captures and writes those of them that
/// were not won at a higher bound.
pub(crate) fn find_wins(
    build: &BuildContext,
    index: &Index,
    bound: u32,
    context: &StageContext,
    seed: impl FnOnce(ReadGroup, WritePortion) -> Result<()>,
) -> Result<StageReport> {
    let settings = build.settings();
    let transposed_bytes = build.plan(index.stones()).memory().transposed_bytes as usize;
    let layout = PlaneLayout::new(index, PlaneFile::WinSeeds.orientation());
    let transposed_layout = PlaneLayout::new(index, PlaneFile::Seed(bound).orientation());
    let groups = PlaneFile::WinSeeds.groups(index);
    let seeds = SeedsReader::input(context, settings, index, PlaneFile::WinSeeds, &groups)?;
    let mut transposed = TransposedReader::new(layout, transposed_layout, transposed_bytes);
    let mut writer = PlaneWriter::output(context, settings, index, PlaneFile::Seed(bound))?;
    let (mut seeded, kernel) = (0u64, BitKernel::detect());
    let mut wins = |group: &UnitGroup, words: &mut [u64]| {
        let read = |words, into: &mut [u64]| Ok(seeds.read_on(bound, words, into)?.contains(&true));
        transposed.read(group.slab, group.rows.clone(), words, || stop(context), read)
    };
    let mut new = |portion: PlanePortion| {
        seeded += portion.count(kernel);
        writer.append(portion)
    };
    seed(&mut wins, &mut new)?;
    writer.finish()?;
    Ok(StageReport::new(index.positions()).with("won by captures", seeded))
}
