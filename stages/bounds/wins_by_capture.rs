//! The positions that a capture wins at a bound and nothing won at higher bounds.

use super::planes::{PlaneFile, PlanePortion, UnitGroup};
use super::team::PlaneMember;
use super::transpose::TransposedReader;
use crate::distributed::{RankResult, agree};
use crate::team::TeamMember;
use messaging::Communicator;
use pipeline::StageResult as Result;
use solvers::bounds::BitKernel;

/// Reads the winning captures of a group of units, and returns whether there may be any.
pub(crate) type ReadGroup<'a> = &'a mut (dyn FnMut(&UnitGroup, &mut [u64]) -> Result<bool> + Send);

/// Writes the next words of a plane.
pub(crate) type WritePortion<'a> = &'a mut (dyn FnMut(PlanePortion<'_>) -> Result<()> + Send);

/// Writes the wins by captures that are new at the bound, and returns their number. `seed` gets the groups of
/// this rank; it reads the winning captures and writes those of them that were not won at a higher bound.
pub(crate) fn find_wins(
    member: &PlaneMember,
    communicator: &mut dyn Communicator,
    seed: impl FnOnce(&[UnitGroup], ReadGroup, WritePortion) -> Result<()>,
) -> RankResult<u64> {
    let TeamMember { ref index, task, .. } = *member;
    let plane = PlaneFile::Seed(task.bound);
    let mut writer = member.create(plane, communicator)?;
    let groups = plane.groups(index);
    let groups = UnitGroup::overlapping(&groups, &writer.words(), 1);
    let end = groups.last().map_or(0, |group| group.words.end);
    if let Some(first) = groups.first() {
        writer.begin_at(first.words.start);
    }
    let transposed_bytes = member.plan().memory().transposed_bytes as usize;
    let mut transposed = TransposedReader::new(index, plane.orientation(), transposed_bytes).until(end);
    let groups_of_seeds = PlaneFile::WinSeeds.groups(index);
    let seeds = agree(communicator, member.open_seeds(PlaneFile::WinSeeds, &groups_of_seeds))?;
    let (mut seeded, kernel) = (0u64, BitKernel::detect());
    let mut wins = |group: &UnitGroup, words: &mut [u64]| {
        let read = |words, into: &mut [u64]| Ok(seeds.read_on(task.bound, words, into)?.contains(&true));
        transposed.read(group.slab, group.rows.clone(), words, || member.stop(), read)
    };
    let mut new = |portion: PlanePortion| {
        seeded += writer.append_and_count(portion, kernel)?;
        Ok(())
    };
    let appended = seed(groups, &mut wins, &mut new);
    writer.finish_with(appended, communicator)?;
    Ok(communicator.sum(&[seeded])?[0])
}
